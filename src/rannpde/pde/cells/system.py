"""The least-squares system of a problem on a mesh.

Unknown are the output weights y of every cell and the traces λ on every joint. Rows: the equations at the points of a
cell, the conditions at points of sides in it, and  ∂_axis^k u = λ_k  on its joints, k below the order of the equations;
where a flux jumps,  flux · n = λ .
Every row is made dimensionless: divided by what its terms would be for a field of the known size that varies over the
cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.sides import Side
from rannpde.pde.cells.basis import Cell
from rannpde.pde.cells.elimination import Kept, Remainder, eliminate
from rannpde.pde.cells.fluxes import Fluxes, Streams
from rannpde.pde.cells.mesh import Mesh
from rannpde.pde.cells.network import Weights
from rannpde.pde.cells.places import Flows, Place, calm, entering, note_flow, own_jets, places_of
from rannpde.pde.cells.ties import Through, Ties
from rannpde.pde.functions import State
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import jets_of
from rannpde.pde.statement.expression import Jet
from rannpde.threads import one_thread

Around = Mapping["Place", Mapping[Jet, Array]]


class Given(Protocol):
    """Unknowns of a problem that are no fields: their jets, and how these change with each of ``count`` numbers."""

    @property
    def count(self) -> int: ...

    def value(self, jet: Jet, points: Array) -> Array:
        """(P,) at points (P, n)."""
        ...

    def slopes(self, jet: Jet, points: Array) -> Array:
        """(P, count)."""
        ...


class CellsSystem:
    """Rows of a problem on a mesh.

    sizes (fields,) : of the fields, as far as known; loose (leaves,) : where a value that is prescribed at an outflow
        may be missed (see ``places.entering``); factors : of the rows of a term, by name
    given : unknowns beside the fields; checkpoint : called between cells
    """

    def __init__(
        self,
        problem: Problem,
        mesh: Mesh,
        sizes: Array,
        loose: Array,
        factors: Mapping[str, float],
        seed: int,
        given: Given | None = None,
        checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        self.given = given
        self.problem, self.mesh, self.sizes, self.loose, self.factors = problem, mesh, sizes, loose, factors
        self.draw = next(cell.draw for _, cell in mesh.present)
        self.tuning = self.draw.tuning
        fields, axes = list(enumerate(problem.fields)), range(problem.domain.dim)
        traces = [[(n, k) for n, name in fields for k in range(max(1, problem.order(name, a)))] for a in axes]
        self.streams: Streams | None = None
        self.ties = Ties(mesh, traces, sizes)
        if problem.jumping:
            fluxes = Fluxes(problem)
            self.ties = Ties(mesh, traces, sizes, fluxes.beside, len(fluxes))
            self.streams = Streams(problem, mesh, self.ties, fluxes, self.tuning.strongest)
        mixed = len({max(problem.order(name, axis) for axis in axes) for _, name in fields}) > 1
        self.calm = calm(mesh.tree, problem.domain, self.tuning.corner) if mixed else np.ones(len(mesh.cells))
        self.places = places_of(problem, mesh, np.random.default_rng(seed), checkpoint)
        self.roots: list[list[Array]] = [[] for _ in mesh.cells]

    # -------------------------------------------------------------------------------------------------------- rows

    def _given_jets(self, place: Place) -> dict[Jet, Array]:
        """The jets of what is given."""
        if self.given is None:
            return {}
        others = [jet for jet in place.term.expression.jets if jet.field not in self.problem.fields]
        return {jet: self.given.value(jet, place.points) for jet in others}

    def _jets(self, place: Place, weights: Array) -> dict[Jet, Array]:
        fields = self.problem.fields
        own = own_jets(self.problem, place.term)
        values = {jet: place.tables[jet.index] @ weights[:, fields.index(jet.field)] for jet in own}
        return values | self._given_jets(place)

    def _around(self, state: State) -> dict[Place, dict[Jet, Array]]:
        """The jets of a function at all places, evaluated together; zero for a linear problem, where any will do."""
        places = [place for own in self.places for place in own]
        places += self.streams.places if self.streams is not None else []
        if self.problem.linear:
            still = {p: dict.fromkeys(own_jets(self.problem, p.term), np.zeros(len(p.points))) for p in places}
            return {p: jets | self._given_jets(p) for p, jets in still.items()}
        needed = dict.fromkeys(jet for place in places for jet in own_jets(self.problem, place.term))
        points = np.concatenate([place.points for place in places])
        values = jets_of(state, self.problem.fields, points, needed)
        ends = np.cumsum([len(place.points) for place in places])
        found = {}
        for place, end in zip(places, ends, strict=True):
            rows = slice(end - len(place.points), end)
            found[place] = {jet: values[jet][rows] for jet in own_jets(self.problem, place.term)} | self._given_jets(
                place
            )
        return found

    def _linear(self, cell: Cell, place: Place, jets: Mapping[Jet, Array]) -> tuple[Array, list[Array], float]:
        """Value and partial derivatives of a term, and the size that makes its rows dimensionless."""
        value, partials = place.term.expression.linearised(place.known, jets)
        natural = 0.0
        for jet, partial in zip(place.term.expression.jets, partials, strict=True):
            if jet.field not in self.problem.fields:
                continue
            size = self.sizes[self.problem.fields.index(jet.field)]
            natural += float(np.sqrt(np.mean(np.square(partial)))) * cell.factor(jet.index) * size
        return np.broadcast_to(value, len(place.points)), partials, max(natural, 1e-300)

    def _weight(self, place: Place, number: int) -> float:
        """Of the rows of a term in a cell, over those of equations away from corners."""
        factor = place.term.weight * self.factors.get(place.term.name, 1.0) * float(self.calm[number])
        inside = place.term.kind == "interior"
        return factor if inside else self.tuning.condition_weight[self.draw.dim - 1] * factor * float(self.calm[number])

    def _firmness(self, number: int) -> Array:
        """(fields,): by which the joints of a cell weigh more than others."""
        own = np.ones(len(self.problem.fields)) if self.streams is None else self.streams.firmness(number)
        return np.asarray(self.calm[number] * own)

    def _leaf(self, number: int, around: Around | Weights) -> tuple[Kept, Remainder] | None:
        """A cell's rows after the elimination of its weights."""
        cell = self.mesh.cells[number]
        if cell is None:
            return None
        functions = cell.functions
        blocks, roots = [], []
        flows: Flows = {}
        for place in self.places[number]:
            jets = self._near(place, number, around)
            value, partials, natural = self._linear(cell, place, jets)
            if place.term.kind == "interior":
                note_flow(flows, place, partials)
            weight = self._weight(place, number)
            weight *= 1.0 if self.streams is None else self.streams.strength(place, number)
            root = np.sqrt(place.weights) * (weight / natural)
            root = root * entering(cell, place, flows, self.tuning.leaving) if self.loose[number] else root
            blocks.append(self._block(place, root, jets, value, partials, functions))
            roots.append(root)
        self.roots[number] = roots
        through = self._through(number, cell, around)
        return self.ties.eliminated(number, blocks, functions, through, self._firmness(number))

    def _through(self, number: int, cell: Cell, around: Around | Weights) -> list[Through]:
        """The rows of the fluxes that jump at the joints of a cell."""
        if self.streams is None:
            return []
        found = []
        for stream in self.streams.own[number]:
            jets = self._near(stream.place, number, around)
            value, partials, _ = self._linear(cell, stream.place, jets)
            plain = np.ones(len(stream.place.points))
            block = self._block(stream.place, plain, jets, value, partials, cell.functions)
            found.append(self.streams.row(stream, block))
        return found

    def _coefficients(self, place: Place, number: int, around: Around | Weights) -> tuple[list[Array], float]:
        """Partial derivatives of a term in a cell, and its size."""
        cell = self.mesh.cells[number]
        assert cell is not None
        return self._linear(cell, place, self._near(place, number, around))[1:]

    @property
    def sides(self) -> int:
        """Right sides: one, and one for each number of what is given."""
        return 1 + (0 if self.given is None else self.given.count)

    def _near(self, place: Place, number: int, around: Around | Weights) -> Mapping[Jet, Array]:
        """The jets at a place of a cell around which terms are linearised."""
        return self._jets(place, around.cells[number]) if isinstance(around, Weights) else around[place]

    def _block(
        self, place: Place, root: Array, jets: Mapping[Jet, Array], value: Array, partials: list[Array], functions: int
    ) -> Array:
        """Rows (P, own + right sides) of a term that is linearised around jets, times ``root`` (P,)."""
        fields, own = self.problem.fields, functions * len(self.problem.fields)
        block = np.zeros((len(root), own + self.sides))
        shift = -value
        for jet, partial in zip(place.term.expression.jets, partials, strict=True):
            if jet.field not in fields:
                assert self.given is not None
                block[:, own + 1 :] -= (root * partial)[:, None] * self.given.slopes(jet, place.points)
                continue
            start = fields.index(jet.field) * functions
            factor = root * partial
            block[:, start : start + functions] += place.tables[jet.index] * factor[:, None]
            shift = shift + partial * jets[jet]
        block[:, own] = shift * root
        return block

    # ---------------------------------------------------------------------------------------------------- solution

    def solve(self, state: State | Weights, checkpoint: Callable[[], None]) -> tuple[Weights, bool]:
        """Weights of the problem linearised at a state, and whether something is left free."""
        found, free = self.solve_all(state, checkpoint)
        return found[0], free

    def solve_all(self, state: State | Weights, checkpoint: Callable[[], None]) -> tuple[list[Weights], bool]:
        """The same, followed by how the weights change with each number of what is given."""
        around: Around | Weights = state if isinstance(state, Weights) else self._around(state)
        if self.streams is not None and self.streams.places:
            self.streams.rescale(self.places, lambda place, number: self._coefficients(place, number, around))

        def leaf(number: int) -> tuple[Kept, Remainder] | None:
            checkpoint()
            return self._leaf(number, around)

        with one_thread(), ThreadPoolExecutor(cpu_count()) as pool:
            leaves = list(pool.map(leaf, range(len(self.mesh.cells))))
        traces, free = eliminate(self.mesh.tree, self.mesh.owners, self.ties.widths, leaves, checkpoint)
        fields, sides = len(self.problem.fields), self.sides
        cells = []
        for found in leaves:
            solved, loose = (np.empty((0, sides)), False) if found is None else found[0].solve(traces)
            cells.append(solved.reshape(fields, -1, sides))
            free |= loose
        every = range(sides)
        return [Weights(tuple(c[:, :, k].T for c in cells), tuple(t[:, k] for t in traces)) for k in every], free

    def norm(self, weights: Weights) -> float:
        """Of all rows at these weights, scaled as in the last solve; infinite where they are not numbers."""
        total, heavy = 0.0, self.ties.heavy
        for number, _ in self.mesh.present:
            own = weights.cells[number]
            for place, root in zip(self.places[number], self.roots[number], strict=True):
                value = place.term.expression.value(place.known, self._jets(place, own))
                total += float(np.square(value * root).sum())
            firm = self._firmness(number)
            for crossing in self.ties.crossings[number]:
                traces = weights.traces[crossing.joint][: crossing.width].reshape(len(crossing.held), -1)
                for (column, _), held, lost, trace in zip(
                    crossing.traces, crossing.held, crossing.lost, traces, strict=True
                ):
                    gap = np.square(held @ own[:, column] - trace).sum() + np.square(lost @ own[:, column]).sum()
                    total += (heavy * firm[column]) ** 2 * float(gap)
        if self.streams is not None:
            total += heavy**2 * self._leaks(self.streams, weights)
        return float(np.sqrt(total)) if np.isfinite(total) else np.inf

    def _leaks(self, streams: Streams, weights: Weights) -> float:
        """Sum of the squares of what the rows of fluxes lack."""
        total = 0.0
        for number, _ in self.mesh.present:
            for stream in streams.own[number]:
                jets = self._jets(stream.place, weights.cells[number])
                value = stream.place.term.expression.value(stream.place.known, jets)
                total += streams.gap(stream, value, weights.traces[stream.joint])
        return total

    def residuals(self, weights: Weights) -> tuple[Array, Array]:
        """Dimensionless root mean squares per leaf: of equations (C,), of conditions by axis of the normal (C, n)."""
        dim = self.problem.domain.dim
        inside, beside = np.zeros(len(self.mesh.cells)), np.zeros((len(self.mesh.cells), dim))
        for number, cell in self.mesh.present:
            for place in self.places[number]:
                value, _, natural = self._linear(cell, place, self._jets(place, weights.cells[number]))
                square = place.weights * (value * (self._weight(place, number) / natural)) ** 2
                if place.term.kind == "boundary" and isinstance(place.term.region, Side):
                    beside[number] += square @ place.term.region.normals(place.points) ** 2
                else:
                    inside[number] += square.sum()
        return np.sqrt(inside), np.sqrt(beside)

    def losses(self, weights: Weights) -> dict[str, float]:
        """Name → mean square of the residual over all its points."""
        sums: dict[str, tuple[float, int]] = {}
        for number, _ in self.mesh.present:
            for place in self.places[number]:
                value = place.term.expression.value(place.known, self._jets(place, weights.cells[number]))
                square = float(np.square(np.broadcast_to(value, len(place.points))).sum())
                total, count = sums.get(place.term.name, (0.0, 0))
                sums[place.term.name] = (total + square, count + len(place.points))
        return {name: total / count for name, (total, count) in sums.items()}
