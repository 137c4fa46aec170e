"""Fluxes that jump across interfaces: the traces that are continuous there, their rows, and weights of cells.

Across an interface the fields and the normal components of the fluxes are continuous.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.pde.cells.basis.basis import Cell
from rannpde.pde.cells.constraints.continuity import ContinuityConstraints, FluxOperator, Traces
from rannpde.pde.cells.constraints.points import CollocationPoints
from rannpde.pde.cells.mesh.mesh import Mesh
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import Expression, evaluate
from rannpde.pde.statement.interfaces import on_side
from rannpde.pde.tolerance import MUCH_SMALLER

JUMPING_RATIO = 1 / MUCH_SMALLER
"""The diffusion coefficients of neighbouring cells differ by a smaller factor, unless they jump by so much that the
residuals of one cell count more than those of the other."""


def contrast_weights(
    diffusion: Mapping[int, float], pairs: Iterable[tuple[int, int]], dirichlet: Container[int]
) -> dict[int, float]:
    """Return a weight for each cell: its diffusion times its resistance to a cell with Dirichlet data, at least 1.

    A residual in a region of strong diffusion that is connected to the boundary only through weak diffusion must flow
    through the latter, where it causes an error that is larger by the ratio of the two. The resistance of a path is
    that of its weakest region.

    diffusion : coefficient of each cell; pairs : neighbouring cells; dirichlet : cells in which values are prescribed

    >>> contrast_weights({0: 1.0, 1: 1.0, 2: 500.0, 3: 0.1}, [(0, 1), (1, 2), (1, 3)], {0})
    {0: 1.0, 1: 1.0, 2: 500.0, 3: 1.0}
    """
    jumps, parent = [], {cell: cell for cell in diffusion}

    def root(cell: int) -> int:
        while parent[cell] != cell:
            cell = parent[cell]
        return cell

    for one, other in pairs:
        ratio = diffusion[one] / max(diffusion[other], 1e-300)
        if 1 / JUMPING_RATIO < ratio < JUMPING_RATIO:
            parent[root(one)] = root(other)
        else:
            jumps.append((one, other))
    regions: dict[int, list[int]] = {}
    for cell in diffusion:
        regions.setdefault(root(cell), []).append(cell)
    resistance = {key: 0.0 if any(cell in dirichlet for cell in cells) else np.inf for key, cells in regions.items()}
    if np.isinf(list(resistance.values())).all():
        resistance[max(regions, key=lambda key: len(regions[key]))] = 0.0
    own = {key: 1 / max(float(np.mean([diffusion[cell] for cell in cells])), 1e-300) for key, cells in regions.items()}
    for _ in regions:
        for one, other in [*jumps, *(pair[::-1] for pair in jumps)]:
            here, there = root(one), root(other)
            resistance[here] = min(resistance[here], max(resistance[there], own[there]))
    weights = {cell: diffusion[cell] * resistance[root(cell)] for cell in diffusion}
    return {cell: max(1.0, value) if np.isfinite(value) else 1.0 for cell, value in weights.items()}


class Fluxes:
    """The equations of a problem whose fluxes jump.

    >>> from rannpde.domains import Interval
    >>> from rannpde.pde.problem.conditions import On
    >>> ends = {"ends": On("boundary", "u = 0")}
    >>> problem = Problem("d(where(x < 0.3, 1, 5)*u_x, x) = 1", Interval(0, 1), ends)
    >>> fluxes = Fluxes(problem)
    >>> fluxes.flux_traces, [fluxes.term(0, np.array([[x]])).expression.formula for x in (0.2, 0.4)]
    ([(0, 0)], [normal x*u_x, 5*normal x*u_x])
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.expressions = {name: e.flux for name, e in problem.expressions.items() if e.flux is not None}
        self._terms: dict[tuple[int, sympy.Expr], Term] = {}

    def __len__(self) -> int:
        return len(self.expressions)

    @cached_property
    def flux_traces(self) -> Traces:
        """The traces that are continuous where a flux jumps, other than the flux.

        A field whose derivatives occur in such a flux is continuous itself. One that occurs by its value alone, such as
        a pressure, is not. Of all other fields the derivatives below the order of the equations are continuous.
        """
        traces: list[tuple[int, int]] = []
        jets = {jet for flux in self.expressions.values() for jet in flux.jets}
        for number, name in enumerate(self.problem.fields):
            orders = {jet.order for jet in jets if jet.field == name}
            order = self.problem.order(name)
            if 1 in orders:
                traces.append((number, 0))
            elif not orders or order > 1:
                traces += [(number, k) for k in range(max(1, order))]
        return traces

    def term(self, number: int, points: Array) -> Term:
        """Return the flux of a jumping equation on the side of the interfaces where points (M, n) lie."""
        name, flux = list(self.expressions.items())[number]
        formula = on_side(flux.formula, self._positive(flux, points))
        if (number, formula) not in self._terms:
            used = {symbol: jet for symbol, jet in flux.symbols.items() if symbol in formula.free_symbols}
            expression = replace(flux, formula=formula, symbols=used)
            self._terms[number, formula] = Term(f"flux of {name}", "flux", expression, None)
        return self._terms[number, formula]

    def _positive(self, flux: Expression, points: Array) -> Callable[[sympy.Expr], bool | None]:
        symbols = self.problem.vocabulary.symbols
        known = dict(zip(symbols, points.T, strict=True))

        def positive(formula: sympy.Expr) -> bool | None:
            if not formula.free_symbols <= set(symbols):
                return None
            return bool(np.mean(evaluate([formula], known, flux.functions)[0] > 0) > 0.5)

        return positive


@dataclass(frozen=True, eq=False)
class FaceFlux:
    """The flux of one jumping equation through one face, on one side of it."""

    face: int
    number: int
    collocation: CollocationPoints


class FaceFluxes:
    """The jumping fluxes through the faces of each cell (``own``); largest_weight : bound on the weights of cells."""

    def __init__(
        self, problem: Problem, mesh: Mesh, constraints: ContinuityConstraints, fluxes: Fluxes, largest_weight: float
    ) -> None:
        self.problem, self.mesh, self.continuity, self.fluxes, self.largest_weight = (
            problem,
            mesh,
            constraints,
            fluxes,
            largest_weight,
        )
        self.scales: dict[tuple[int, int], float] = {}
        self.contrast_weights: dict[tuple[int, str], float] = {}
        self.of_cell: list[list[FaceFlux]] = [[] for _ in mesh.cells]
        for number, cell in mesh.present if len(fluxes) else ():
            self.of_cell[number] = list(self._fluxes_of(number, cell))

    @property
    def collocations(self) -> list[CollocationPoints]:
        """The collocation points of all fluxes."""
        return [face_flux.collocation for fluxes in self.of_cell for face_flux in fluxes]

    def _fluxes_of(self, number: int, cell: Cell) -> Iterator[FaceFlux]:
        """Iterate over the jumping fluxes through the faces of a cell."""
        words = self.problem.vocabulary
        for j in self.continuity.cell_faces[number]:
            face = self.mesh.faces[j]
            for side in (0, 1):
                if not face.flux or face.cells[side] != number:
                    continue
                points = face.sides[side]
                straight = np.broadcast_to(np.arange(points.shape[1]) == face.axis, points.shape)
                normals = straight.astype(float) if face.normals is None else face.normals
                for k in range(len(self.fluxes)):
                    term = self.fluxes.term(k, cell.points)
                    known = term.known(points, words) | dict(zip(words.normals, normals.T, strict=True))
                    tables = cell.at(points, {jet.index for jet in term.expression.jets})
                    yield FaceFlux(j, k, CollocationPoints(term, points, face.weights, known, tables))

    # -------------------------------------------------------------------------------------------------------- rows

    def row(self, face_flux: FaceFlux, block: Array) -> FluxOperator:
        """Return the dimensionless rows of a flux, from a block (P, local + 1) at the points of its face."""
        root, trace_basis, complement_basis = self.continuity.face_bases_of(face_flux.face)
        rows = block * (root / self.scales[face_flux.face, face_flux.number])
        return FluxOperator(
            face_flux.face,
            len(self.fluxes.flux_traces) + face_flux.number,
            trace_basis.T @ rows,
            complement_basis.T @ rows,
        )

    def squared_defect(self, face_flux: FaceFlux, values: Array, traces: Array) -> float:
        """Return the sum of squares of the defects of a flux row, from its flux (P,) and the traces on its face."""
        root, trace_basis, complement_basis = self.continuity.face_bases_of(face_flux.face)
        flow = root[:, 0] * values / self.scales[face_flux.face, face_flux.number]
        first = (len(self.fluxes.flux_traces) + face_flux.number) * trace_basis.shape[1]
        trace = traces[first : first + trace_basis.shape[1]]
        return float(np.square(trace_basis.T @ flow - trace).sum() + np.square(complement_basis.T @ flow).sum())

    # ----------------------------------------------------------------------------------------------------- weights

    def rescale(
        self,
        collocations: Sequence[Sequence[CollocationPoints]],
        coefficients: Callable[[CollocationPoints, int], tuple[list[Array], float]],
    ) -> None:
        """Compute the scales that make flux rows dimensionless, and the weights of cells (``contrast_weights``).

        The scale of a face is the smaller of the natural sizes of the flux on its two sides.

        collocations : collocation points of all terms, by cell; coefficients : returns partial derivatives and natural
            size of a term in a cell
        """
        self.scales, self.contrast_weights = {}, {}
        for number, _ in self.mesh.present:
            for face_flux in self.of_cell[number]:
                key = (face_flux.face, face_flux.number)
                self.scales[key] = min(coefficients(face_flux.collocation, number)[1], self.scales.get(key, np.inf))
        for name, flux in self.fluxes.expressions.items():
            diffusion = {}
            for number, _ in self.mesh.present:
                collocation = next(one for one in collocations[number] if one.term.name == name)
                pairs = zip(collocation.term.expression.jets, coefficients(collocation, number)[0], strict=True)
                diffusion[number] = sum(float(np.mean(np.abs(part))) for jet, part in pairs if jet.order == 2)
            dirichlet = {number for number in diffusion if _has_dirichlet(collocations[number], flux.fields)}
            weights = contrast_weights(diffusion, [face.cells for face in self.mesh.faces], dirichlet)
            self.contrast_weights |= {(number, name): min(one, self.largest_weight) for number, one in weights.items()}

    def row_weight(self, collocation: CollocationPoints, number: int) -> float:
        """Return the factor by which the rows of a term in this cell are weighted."""
        if collocation.term.kind == "interior":
            return self.contrast_weights.get((number, collocation.term.name), 1.0)
        firm = self.constraint_weights(number)
        fields = self.problem.fields
        return max(float(firm[fields.index(name)]) for name in collocation.term.expression.fields if name in fields)

    def constraint_weights(self, number: int) -> Array:
        """Return the factors (fields,) of the continuity rows of a cell: fluxes lost through its faces cause large
        errors."""
        weights = np.ones(len(self.problem.fields))
        for name, flux in self.fluxes.expressions.items():
            for jet in flux.jets:
                if jet.order == 1 and jet.field in self.problem.fields:
                    column = self.problem.fields.index(jet.field)
                    weights[column] = max(weights[column], self.contrast_weights.get((number, name), 1.0))
        return weights


def _has_dirichlet(collocations: Sequence[CollocationPoints], fields: Sequence[str]) -> bool:
    """Return whether values of these fields are prescribed at one of the collocation points."""
    jets = [
        jet
        for collocation in collocations
        if collocation.term.kind != "interior"
        for jet in collocation.term.expression.jets
    ]
    return any(jet.order == 0 and jet.field in fields for jet in jets)
