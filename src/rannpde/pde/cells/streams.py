"""Rows of the fluxes through joints where they jump, and how much more than others the rows of some cells weigh."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.cells.basis import Cell
from rannpde.pde.cells.fluxes import Fluxes, strengths
from rannpde.pde.cells.mesh import Mesh
from rannpde.pde.cells.places import Place
from rannpde.pde.cells.ties import Through, Ties
from rannpde.pde.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class Stream:
    """The flux of one jumping equation through one joint, on one side of it."""

    joint: int
    number: int
    place: Place


class Streams:
    """The streams of each cell (own); strongest : largest factor of the rows of a cell."""

    def __init__(self, problem: Problem, mesh: Mesh, ties: Ties, fluxes: Fluxes, strongest: float) -> None:
        self.problem, self.mesh, self.ties, self.fluxes, self.strongest = problem, mesh, ties, fluxes, strongest
        self.scales: dict[tuple[int, int], float] = {}
        self.strengths: dict[tuple[int, str], float] = {}
        self.own: list[list[Stream]] = [[] for _ in mesh.cells]
        for number, cell in mesh.present if len(fluxes) else ():
            self.own[number] = list(self._through(number, cell))

    @property
    def places(self) -> list[Place]:
        """Of all streams."""
        return [stream.place for own in self.own for stream in own]

    def _through(self, number: int, cell: Cell) -> Iterator[Stream]:
        """Fluxes through the joints of a cell where they jump."""
        words = self.problem.vocabulary
        for j in self.ties.own[number]:
            joint = self.mesh.joints[j]
            for side in (0, 1):
                if not joint.flux or joint.cells[side] != number:
                    continue
                points = joint.sides[side]
                straight = np.broadcast_to(np.arange(points.shape[1]) == joint.axis, points.shape)
                normals = straight.astype(float) if joint.normals is None else joint.normals
                for k in range(len(self.fluxes)):
                    term = self.fluxes.term(k, cell.points)
                    known = term.known(points, words) | dict(zip(words.normals, normals.T, strict=True))
                    tables = cell.at(points, {jet.index for jet in term.expression.jets})
                    yield Stream(j, k, Place(term, points, joint.weights, known, tables))

    # -------------------------------------------------------------------------------------------------------- rows

    def row(self, stream: Stream, block: Array) -> Through:
        """The rows (P, own + 1) of a stream, made dimensionless, as the joint sees them."""
        root, basis, beyond = self.ties.split(stream.joint)
        rows = block * (root / self.scales[stream.joint, stream.number])
        return Through(stream.joint, len(self.fluxes.beside) + stream.number, basis.T @ rows, beyond.T @ rows)

    def gap(self, stream: Stream, values: Array, traces: Array) -> float:
        """Sum of the squares of what the rows of a stream lack, from its flux (P,) and the traces of its joint."""
        root, basis, beyond = self.ties.split(stream.joint)
        flow = root[:, 0] * values / self.scales[stream.joint, stream.number]
        first = (len(self.fluxes.beside) + stream.number) * basis.shape[1]
        trace = traces[first : first + basis.shape[1]]
        return float(np.square(basis.T @ flow - trace).sum() + np.square(beyond.T @ flow).sum())

    # ----------------------------------------------------------------------------------------------------- weights

    def rescale(
        self, places: Sequence[Sequence[Place]], coefficients: Callable[[Place, int], tuple[list[Array], float]]
    ) -> None:
        """What makes the rows of fluxes dimensionless: the smaller of the sizes on the two sides of a joint.

        And the strengths of cells, see ``strengths``. places : of terms by cell; coefficients : of one in a cell, the
        partial derivatives and the size
        """
        self.scales, self.strengths = {}, {}
        for number, _ in self.mesh.present:
            for stream in self.own[number]:
                key = (stream.joint, stream.number)
                self.scales[key] = min(coefficients(stream.place, number)[1], self.scales.get(key, np.inf))
        for name, flux in self.fluxes.expressions.items():
            diffusion = {}
            for number, _ in self.mesh.present:
                place = next(one for one in places[number] if one.term.name == name)
                pairs = zip(place.term.expression.jets, coefficients(place, number)[0], strict=True)
                diffusion[number] = sum(float(np.mean(np.abs(part))) for jet, part in pairs if jet.order == 2)
            held = {number for number in diffusion if _held(places[number], flux.fields)}
            found = strengths(diffusion, [joint.cells for joint in self.mesh.joints], held)
            self.strengths |= {(number, name): min(one, self.strongest) for number, one in found.items()}

    def strength(self, place: Place, number: int) -> float:
        """By which the rows of a term in this cell weigh more than those in others."""
        if place.term.kind == "interior":
            return self.strengths.get((number, place.term.name), 1.0)
        firm = self.firmness(number)
        fields = self.problem.fields
        return max(float(firm[fields.index(name)]) for name in place.term.expression.fields if name in fields)

    def firmness(self, number: int) -> Array:
        """(fields,): how much more than others the joints of a cell weigh: what leaks through them does harm."""
        found = np.ones(len(self.problem.fields))
        for name, flux in self.fluxes.expressions.items():
            for jet in flux.jets:
                if jet.order == 1 and jet.field in self.problem.fields:
                    column = self.problem.fields.index(jet.field)
                    found[column] = max(found[column], self.strengths.get((number, name), 1.0))
        return found


def _held(places: Sequence[Place], fields: Sequence[str]) -> bool:
    """Whether values of these fields are given at one of the places."""
    jets = [jet for place in places if place.term.kind != "interior" for jet in place.term.expression.jets]
    return any(jet.order == 0 and jet.field in fields for jet in jets)
