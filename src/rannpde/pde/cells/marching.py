"""Evolution with cells in space: what a march needs to begin, and one march as an iteration of the method of cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log2

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.domains.domain import SpaceTime
from rannpde.pde.cells.basis import Cell, Draw
from rannpde.pde.cells.cuts import Solved, first_tree
from rannpde.pde.cells.evolved import MarchedNetwork
from rannpde.pde.cells.interfaces import interfaces_of
from rannpde.pde.cells.march import CellMarch, Marched, SteppedPath
from rannpde.pde.cells.mesh import Mesh, MeshBuilder
from rannpde.pde.cells.network import Weights, cell_network
from rannpde.pde.cells.rows import measured_series
from rannpde.pde.cells.space import SpaceSystem
from rannpde.pde.cells.stages import Stages
from rannpde.pde.cells.tree import CellNode
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import evaluate

FEWEST_TIMES = 4
"""At which a place must be measured for a march to follow it."""
GAP = 1e-9
"""Share of the time by which measurements may begin late or end early."""
PILOT = 2
"""A march of 2 to this many steps tells the sizes of the fields before the first iteration."""
MOST_PILOT = 24
"""Steps of it, where corrections converge for short ones only."""
ROUGH = 1.25
"""The order of the error of a first step over what is allowed to it, where the start does not agree with a flux."""
SMALL = 1e-8
"""A field of less than this share of the largest is called zero."""


@dataclass(frozen=True)
class Start:
    """The initial values of a problem: (field, order in time) → formula in the coordinates of space and time."""

    problem: Problem
    formulas: Mapping[tuple[str, int], tuple[sympy.Expr, Mapping[str, Callable[..., object]]]]

    @classmethod
    def of(cls, problem: Problem) -> Start:
        found = {}
        for term in problem.constraints:
            given = term.prescribed if term.kind == "initial" else None
            if given is not None and not any(given[0].index[1:]):
                found[given[0].field, given[0].index[0]] = (given[1], term.expression.functions)
        return cls(problem, found)

    def values(self, points: Array, order: int) -> Array:
        """∂_t^order of the fields at points (M, d) of the space, 0 where nothing is given: (M, fields)."""
        problem = self.problem
        assert isinstance(problem.domain, SpaceTime)
        moment = np.column_stack([np.full(len(points), problem.domain.time[0]), points])
        known = dict(zip(problem.vocabulary.symbols, moment.T, strict=True))
        values = np.zeros((len(points), len(problem.fields)))
        for number, name in enumerate(problem.fields):
            if (name, order) in self.formulas:
                formula, functions = self.formulas[name, order]
                values[:, number] = evaluate([formula], known, functions)[0]
        return values


def orders_in_time(problem: Problem) -> dict[str, int]:
    """Field → its highest derivative in time in equations and conditions, 0 for none."""
    terms = [term for term in problem.terms if term.kind != "initial"]
    return {name: max(0, *(term.expression.order(name, 0) for term in terms)) for name in problem.fields}


def march_obstacles(problem: Problem) -> tuple[str, ...]:
    """Reasons why a problem cannot be solved by steps in time with cells in space."""
    if not isinstance(problem.domain, SpaceTime):
        return ("the domain has no time",)
    found = []
    if problem.domain.space.dim > 3:
        found.append(f"the space has {problem.domain.space.dim} coordinates, more than three")
    orders = orders_in_time(problem)
    if max(orders.values()) == 0:
        found.append("no field has a derivative in time")
    given = Start.of(problem).formulas
    for name, order in orders.items():
        if order > 2:
            found.append(f"{name} has a derivative of order {order} in time, and a march knows the first two")
        elif any((name, k) not in given for k in range(order)):
            found.append(f"the initial conditions do not give the value of {name}" + " and of its rate" * (order > 1))
    for term in problem.constraints:
        if term.kind == "initial" and (term.prescribed is None or any(term.prescribed[0].index[1:])):
            found.append(f"the condition {term.name!r} at the start does not give a field its value")
        if term.kind == "slice" and getattr(term.region, "axis", 0) == 0:
            found.append(f"the condition {term.name!r} holds at a later time")
        if term.points is not None and not _followed(problem.domain.time, [one[1] for one in measured_series(term)]):
            found.append(f"the data {term.name!r} are not measured over the whole time at each of their places")
    if problem.jumping:
        found.append(f"the flux of {' and '.join(map(repr, problem.jumping))} jumps")
    if "t" in problem.periodic:
        found.append("the fields are periodic in time")
    return tuple(dict.fromkeys(found))


def _followed(interval: tuple[float, float], series: list[Array]) -> bool:
    slack = GAP * (interval[1] - interval[0])
    ends = (interval[0] + slack, interval[1] - slack)
    return all(
        len(times) >= FEWEST_TIMES and times[0] <= ends[0] and times[-1] >= ends[1] and (np.diff(times) > 0).all()
        for times in series
    )


class Marching:
    """Marches in the place of stationary solves.

    tol : wanted of the whole; factors : of the rows of a term, by name
    """

    def __init__(
        self, problem: Problem, tol: float, monitor: Monitor, tuning: CellsTuning, factors: Mapping[str, float]
    ) -> None:
        assert isinstance(problem.domain, SpaceTime)
        self.problem, self.tol, self.monitor, self.tuning, self.factors = problem, tol, monitor, tuning, factors
        self.space = problem.domain.space
        self.dim = self.space.dim
        self.start = Start.of(problem)
        self.orders = orders_in_time(problem)
        names = self.space.names
        self.periodic = tuple(names.index(name) for name in problem.periodic)
        self.interfaces = interfaces_of(problem, problem.domain.dim - self.dim)
        self.level, self.tight = tuning.first_level, 0
        self.margin = 0.0  # tolerance at which the first step of the last march would have been just allowed

    # --------------------------------------------------------------------------------------------------------- begin

    def first_tree(self, draw: Draw) -> CellNode:
        """Cells on which the data and the initial values are resolved."""
        tree = first_tree(self.problem, draw.degree, self.tol, self.tuning, self.interfaces, self.space)
        most = self.tuning.most_cells[self.dim - 1] // 4
        while len(tree.leaves) < most:
            mesh = MeshBuilder(self.space, draw, self.interfaces).build(tree, self.periodic)
            cuts = {}
            _, misfit = self._projected(mesh, 0)
            for number, _ in mesh.present:
                if misfit[number] > self.tol:
                    cuts[tree.leaves[mesh.homes[number]]] = tuple(range(self.dim))
            if not cuts:
                break
            tree = tree.refined(cuts)
        return tree

    def _projected(self, mesh: Mesh, order: int) -> tuple[list[Array], Array]:
        """Weights (fields, functions) of ∂_t^order at the start, and what they miss, relative to the whole, by leaf."""
        found, misfit, sizes = [], np.zeros((len(mesh.cells), len(self.orders))), np.zeros(len(self.orders))
        for number, cell in mesh.present:
            values = self.start.values(cell.points, order)
            weights, miss = fitted(cell, values)
            found.append(weights)
            misfit[number] = miss
            sizes = np.maximum(sizes, np.sqrt(cell.weights @ values**2))
        return found, (misfit / np.where(sizes > 0, sizes, 1.0)).max(axis=1)

    def _vector(self, system: SpaceSystem, order: int) -> tuple[Array, Array]:
        """∂_t^order at the start, as a vector of all weights, and what it misses, as of ``_projected``."""
        vector, missed = np.zeros(system.total), np.zeros(len(system.mesh.cells))
        if any(own == order for _, own in self.start.formulas):
            parts, missed = self._projected(system.mesh, order)
            for (number, _), part in zip(system.mesh.present, parts, strict=True):
                vector[system.spans[number]] = part.ravel()
        return vector, missed

    # -------------------------------------------------------------------------------------------------------- iteration

    def solve(
        self,
        tree: CellNode,
        draw: Draw,
        sizes: Array,
        last: Solved | None,
        seed: int,
        number: int,
        checkpoint: Callable[[], None],
    ) -> Solved:
        """One march on the leaves of a tree."""
        mesh = MeshBuilder(self.space, draw, self.interfaces).build(tree, self.periodic)
        tol = self._tolerance(None if last is None else float(last.marks.max()))
        if last is None:
            sizes = self._sizes(mesh, seed)
        sizes = np.maximum(sizes, SMALL * sizes.max())
        system = SpaceSystem(self.problem, mesh, sizes, self.factors, seed)
        cells = sum(cell is not None for cell in mesh.cells)
        thirds = number % 2 == 0
        march = CellMarch(
            system, self._stages(tol), tol, self.tuning, checkpoint,
            told=lambda step, time: self.monitor.tell(number, step, time=time, width=cells),
            over=lambda: self.monitor.exhausted and last is None,
            parts=3 if thirds else 1,
        )  # fmt: skip
        start, missed = self._vector(system, 0)
        deeper = ceil(log2(max(1.0, self.margin / tol)) / ROUGH)
        marched = march.run(start, self._vector(system, 1)[0], max(0, self.level + min(3, deeper) - thirds))
        self.level, self.margin = max(self.tuning.first_level, marched.level + thirds), marched.margin * tol
        inside = np.hypot(marched.inside, self.tuning.condition_weight[self.dim - 1] * missed)
        return Solved(
            self._network(system, marched.path), mesh, self._worst(system, marched), inside, marched.beside,
            marched.losses, len(marched.path.times) - 1, marched.status, marched.free,
        )  # fmt: skip

    def _stages(self, tol: float) -> Stages:
        return Stages.radau(3 if tol > self.tuning.many_stages else 5)

    def _tolerance(self, residual: float | None) -> float:
        """Of a step: loose while space is not resolved, then tighter from iteration to iteration, so that errors in
        time show."""
        tuning = self.tuning
        wanted = tuning.time_share * self.tol / tuning.tighter**self.tight
        allowed = np.inf if residual is None else tuning.loose_share * residual
        if max(wanted, min(tuning.loosest, allowed)) > wanted:
            return max(wanted, min(tuning.loosest, allowed))
        self.tight += 1
        return wanted

    def _sizes(self, mesh: Mesh, seed: int) -> Array:
        """Of the fields over all times, from a few long steps."""
        sizes = np.ones(len(self.orders))
        plain = SpaceSystem(self.problem, mesh, sizes, self.factors, seed)
        begin, rates = self._vector(plain, 0)[0], self._vector(plain, 1)[0]
        found = plain.norms(begin)
        march = CellMarch(plain, Stages.radau(1), self.tuning.loosest, self.tuning)
        marched = march.run(begin, rates, PILOT, fixed=True, most=MOST_PILOT)
        if marched.status is Status.CONVERGED and np.isfinite(marched.path.vectors).all():
            found = np.sqrt(np.mean(plain.norms(marched.path.vectors) ** 2, axis=0))
        return np.where(found > 0, found, found.max()) if found.max() > 0 else sizes

    def _worst(self, system: SpaceSystem, marched: Marched) -> Weights:
        """By cell the weights at the time when it was worst."""
        found = []
        for number in range(len(system.mesh.cells)):
            vector = marched.path.vectors[min(marched.worst[number], len(marched.path.vectors) - 1)]
            found.append(system.cell_weights(vector, number).T)
        return Weights(tuple(found), ())

    def with_changes(
        self, mesh: Mesh, sizes: Array, seed: int, near: Sequence[tuple[Problem, float]]
    ) -> MarchedNetwork:
        """A march on a mesh; outputs are the fields, and for each problem near by how they change, over a number.

        The problems differ by as small a change of an unknown number as that number says.
        """
        tol = self.tuning.time_share * self.tol
        system = SpaceSystem(self.problem, mesh, np.maximum(sizes, SMALL * sizes.max()), self.factors, seed)
        march = CellMarch(system, self._stages(tol), tol, self.tuning, over=lambda: self.monitor.exhausted)
        start, rates = self._vector(system, 0)[0], self._vector(system, 1)[0]
        path = march.run(start, rates, self.level).path
        changes = []
        for problem, size in near:
            other, twin = Marching(problem, self.tol, self.monitor, self.tuning, self.factors), system.like(problem)
            begin, faster = other._vector(twin, 0)[0], other._vector(twin, 1)[0]
            if len(march.lengths) == len(path.times) - 1:
                vectors = march.along(twin, begin, faster)
                changes.append(
                    SteppedPath(path.stages, path.times, (vectors - path.vectors) / size, (faster - rates) / size)
                )
        return self._network(system, path, *changes)

    def _network(self, system: SpaceSystem, *paths: SteppedPath) -> MarchedNetwork:
        """Of paths along the same steps: the fields of the first, then those of the others."""
        first, fields = paths[0], len(self.orders)
        vectors = [self._with_rates(path) for path in paths]
        cells = []
        for number in range(len(system.mesh.cells)):
            every = np.concatenate([system.cell_weights(own, number) for own in vectors], axis=1)
            cells.append(np.moveaxis(every, 2, 0).reshape(-1, len(every) * fields * len(paths)))
        network = cell_network(system.mesh, Weights(tuple(cells), ()))
        orders = tuple(self.orders.values()) * len(paths)
        return MarchedNetwork(network, first.times, len(first.stages), orders, system.end)

    def _with_rates(self, path: SteppedPath) -> Array:
        """All vectors of a path, followed by ∂_t at the start of each step where a field is of second order."""
        vectors, stages = path.vectors, len(path.stages)
        if max(self.orders.values()) > 1:
            lengths = np.diff(path.times)
            rates = [path.rates]
            for step in range(len(lengths) - 1):
                own = vectors[1 + step * stages : 1 + (step + 1) * stages] - vectors[step * stages]
                rates.append(path.stages.derivative[-1] @ own / lengths[step])
            vectors = np.concatenate([vectors, rates])
        return vectors


def fitted(cell: Cell, values: Array) -> tuple[Array, Array]:
    """Weights (fields, functions) of the functions of a cell nearest to values (M, fields), and the misfit (fields,).

    The functions are orthonormal to about three digits only, so that the weights are no inner products.
    """
    root, still = np.sqrt(cell.weights)[:, None], (0,) * len(cell.bounds)
    table = cell.tables([still])[still] * root
    weights = np.linalg.lstsq(table, root * values, rcond=None)[0]
    return weights.T, np.linalg.norm(table @ weights - root * values, axis=0)
