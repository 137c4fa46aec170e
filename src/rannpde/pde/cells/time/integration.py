"""Method of lines with cells in space: one time integration on one mesh, as an iteration of the adaptive loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log2

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.domains.domain import SpaceTime
from rannpde.pde.cells.basis.basis import BasisSample, Cell
from rannpde.pde.cells.interfaces.detection import interfaces_of
from rannpde.pde.cells.mesh.initial import first_tree
from rannpde.pde.cells.mesh.mesh import Mesh, MeshBuilder
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.cells.network import DiscreteSolution, Weights, cell_network
from rannpde.pde.cells.time.integrator import CellIntegrator, IntegrationResult
from rannpde.pde.cells.time.rows import measured_series
from rannpde.pde.cells.time.space import SpaceSystem
from rannpde.pde.cells.time.trajectory import CellTrajectory
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import evaluate
from rannpde.pde.time.tableau import radau_tableau
from rannpde.pde.time.trajectory import StageTrajectory
from rannpde.pde.tolerance import TIME_SHARE
from rannpde.rounding import COMPUTED

MIN_TIMES = 4
"""A position must be measured at this many times for time integration to use the data."""
MIN_FIELD_SIZE = 1e-8
"""A field smaller than this fraction of the largest one is zero."""


@dataclass(frozen=True)
class InitialValues:
    """The initial values of a problem: (field, order in time) → formula in the coordinates of space and time."""

    problem: Problem
    formulas: Mapping[tuple[str, int], tuple[sympy.Expr, Mapping[str, Callable[..., object]]]]

    @classmethod
    def of(cls, problem: Problem) -> InitialValues:
        formulas = {}
        for term in problem.constraints:
            given = term.prescribed if term.kind == "initial" else None
            if given is not None and not any(given[0].index[1:]):
                formulas[given[0].field, given[0].index[0]] = (given[1], term.expression.functions)
        return cls(problem, formulas)

    def values(self, points: Array, order: int) -> Array:
        """Return ∂_t^order of the fields (M, fields) at points (M, d) of space, 0 where nothing is prescribed."""
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
    """Return for each field the highest time derivative in equations and conditions, 0 for none."""
    terms = [term for term in problem.terms if term.kind != "initial"]
    return {name: max(0, *(term.expression.order(name, 0) for term in terms)) for name in problem.fields}


def integration_obstacles(problem: Problem) -> tuple[str, ...]:
    """Return reasons why a problem cannot be solved by time integration with cells in space."""
    if not isinstance(problem.domain, SpaceTime):
        return ("the domain has no time",)
    reasons = []
    if problem.domain.space.dim > 3:
        reasons.append(f"the space has {problem.domain.space.dim} coordinates, more than three")
    orders = orders_in_time(problem)
    if max(orders.values()) == 0:
        reasons.append("no field has a derivative in time")
    given = InitialValues.of(problem).formulas
    for name, order in orders.items():
        if order > 2:
            reasons.append(
                f"{name} has a derivative of order {order} in time, but time integration supports the first two"
            )
        elif any((name, k) not in given for k in range(order)):
            reasons.append(f"the initial conditions do not give the value of {name}" + " and of its rate" * (order > 1))
    for term in problem.constraints:
        if term.kind == "initial" and (term.prescribed is None or any(term.prescribed[0].index[1:])):
            reasons.append(f"the condition {term.name!r} at the start does not give a field its value")
        if term.kind == "slice" and getattr(term.region, "axis", 0) == 0:
            reasons.append(f"the condition {term.name!r} holds at a later time")
        if term.points is not None and not _covers(problem.domain.time, [one[1] for one in measured_series(term)]):
            reasons.append(f"the data {term.name!r} are not measured over the whole time at each of their points")
    if problem.jumping:
        reasons.append(f"the flux of {' and '.join(map(repr, problem.jumping))} jumps")
    if "t" in problem.periodic:
        reasons.append("the fields are periodic in time")
    return tuple(dict.fromkeys(reasons))


def _covers(interval: tuple[float, float], series: list[Array]) -> bool:
    slack = COMPUTED * (interval[1] - interval[0])
    ends = (interval[0] + slack, interval[1] - slack)
    return all(
        len(times) >= MIN_TIMES and times[0] <= ends[0] and times[-1] >= ends[1] and (np.diff(times) > 0).all()
        for times in series
    )


class CellIntegration:
    """Solves an evolution problem on given meshes of space by time integration (see ``adaptivity.solving.MeshSolver``).

    tol : the tolerance for the whole solve; factors : factors of the rows of a term, by name
    """

    def __init__(
        self, problem: Problem, tol: float, monitor: Monitor, tuning: CellsTuning, factors: Mapping[str, float]
    ) -> None:
        assert isinstance(problem.domain, SpaceTime)
        self.problem, self.tol, self.monitor, self.tuning, self.factors = problem, tol, monitor, tuning, factors
        self.space = problem.domain.space
        self.dim = self.space.dim
        self.start = InitialValues.of(problem)
        self.orders = orders_in_time(problem)
        names = self.space.names
        self.periodic = tuple(names.index(name) for name in problem.periodic)
        self.interfaces = interfaces_of(problem, problem.domain.dim - self.dim)
        self.level, self.tightened = tuning.first_step_level, 0
        # tolerance at which the first step of the last integration would just have been accepted
        self.first_step_excess = 0.0

    # --------------------------------------------------------------------------------------------------------- begin

    @property
    def bounds(self) -> Array:
        """The bounds (d, 2) of space."""
        return self.space.bounds

    def first_tree(self, basis: BasisSample) -> CellNode:
        """Return an initial mesh on which data and initial values are resolved."""
        tree = first_tree(self.problem, basis.degree, self.tol, self.tuning, self.interfaces, self.space)
        max_cells = self.tuning.max_cells[self.dim - 1] // 4
        while len(tree.leaves) < max_cells:
            mesh = MeshBuilder(self.space, basis, self.interfaces).build(tree, self.periodic)
            splits = {}
            _, misfit = self._projected(mesh, 0)
            for number, _ in mesh.present:
                if misfit[number] > self.tol:
                    splits[tree.leaves[mesh.homes[number]]] = tuple(range(self.dim))
            if not splits:
                break
            tree = tree.refined(splits)
        return tree

    def _projected(self, mesh: Mesh, order: int) -> tuple[list[Array], Array]:
        """Return weights (fields, functions) of ∂_t^order at the start, and their relative misfit by leaf."""
        projections, misfit, sizes = [], np.zeros((len(mesh.cells), len(self.orders))), np.zeros(len(self.orders))
        for number, cell in mesh.present:
            values = self.start.values(cell.points, order)
            weights, miss = project(cell, values)
            projections.append(weights)
            misfit[number] = miss
            sizes = np.maximum(sizes, np.sqrt(cell.weights @ values**2))
        return projections, (misfit / np.where(sizes > 0, sizes, 1.0)).max(axis=1)

    def _vector(self, system: SpaceSystem, order: int) -> tuple[Array, Array]:
        """Return ∂_t^order at the start as a vector of all weights, and its relative misfit by leaf."""
        vector, missed = np.zeros(system.total), np.zeros(len(system.mesh.cells))
        if any(own == order for _, own in self.start.formulas):
            segments, missed = self._projected(system.mesh, order)
            for (number, _), part in zip(system.mesh.present, segments, strict=True):
                vector[system.spans[number]] = part.ravel()
        return vector, missed

    # -------------------------------------------------------------------------------------------------------- iteration

    def solve(
        self,
        tree: CellNode,
        basis: BasisSample,
        sizes: Array,
        last: DiscreteSolution | None,
        seed: int,
        number: int,
    ) -> DiscreteSolution:
        """Integrate in time on the leaves of a tree."""
        mesh = MeshBuilder(self.space, basis, self.interfaces).build(tree, self.periodic)
        tol = self._tolerance(None if last is None else float(last.indicators.max()))
        if last is None:
            sizes = self._sizes(mesh, seed)
        sizes = np.maximum(sizes, MIN_FIELD_SIZE * sizes.max())
        system = SpaceSystem(self.problem, mesh, sizes, self.factors, seed)
        cells = sum(cell is not None for cell in mesh.cells)
        in_thirds = number % 2 == 0
        integrator = CellIntegrator(
            system, self.tuning.tableau(tol), tol, self.tuning,
            on_step=lambda step, time: self.monitor.tell(number, step, time=time, width=cells, counted="cells"),
            segments=3 if in_thirds else 1,
        )  # fmt: skip
        start, missed = self._vector(system, 0)
        deeper = ceil(log2(max(1.0, self.first_step_excess / tol)))  # as if of first order, also at incompatible data
        result = integrator.run(start, self._vector(system, 1)[0], max(0, self.level + min(3, deeper) - in_thirds))
        self.level, self.first_step_excess = (
            max(self.tuning.first_step_level, result.level + in_thirds),
            result.excess * tol,
        )
        equation_residuals = np.hypot(result.equation_residuals, self.tuning.condition_weight[self.dim - 1] * missed)
        return DiscreteSolution(
            self._network(system, result.path), mesh, self._worst(system, result), equation_residuals,
            result.condition_residuals, result.losses, len(result.path.times) - 1, result.status, result.rank_deficient,
        )  # fmt: skip

    def _tolerance(self, residual: float | None) -> float:
        """Return the tolerance of a step: loose while space is not resolved, then tighter in every iteration.

        Errors in time then show in the difference of two iterations.
        """
        tuning = self.tuning
        wanted = tuning.step_tolerance(self.tol, self.tightened)
        allowed = tuning.max_step_tolerance * (1.0 if residual is None else min(1.0, residual))
        if allowed > wanted:
            return allowed
        self.tightened += 1
        return wanted

    def _sizes(self, mesh: Mesh, seed: int) -> Array:
        """Return the sizes of the fields over all times, from a few long steps."""
        sizes = np.ones(len(self.orders))
        plain = SpaceSystem(self.problem, mesh, sizes, self.factors, seed)
        begin, rates = self._vector(plain, 0)[0], self._vector(plain, 1)[0]
        norms = plain.norms(begin)
        integrator = CellIntegrator(plain, radau_tableau(1), self.tuning.max_step_tolerance, self.tuning)
        result = integrator.run(
            begin, rates, self.tuning.pilot_level, fixed=True, max_steps=self.tuning.max_pilot_steps
        )
        if result.status is Status.CONVERGED and np.isfinite(result.path.vectors).all():
            norms = np.sqrt(np.mean(plain.norms(result.path.vectors) ** 2, axis=0))
        return np.where(norms > 0, norms, norms.max()) if norms.max() > 0 else sizes

    def _worst(self, system: SpaceSystem, result: IntegrationResult) -> Weights:
        """Return for each cell the weights at the time when its residual was largest."""
        weights = []
        for number in range(len(system.mesh.cells)):
            vector = result.path.vectors[min(result.worst[number], len(result.path.vectors) - 1)]
            weights.append(system.cell_weights(vector, number).T)
        return Weights(tuple(weights), ())

    def with_sensitivities(
        self, mesh: Mesh, sizes: Array, seed: int, near: Sequence[tuple[Problem, float]]
    ) -> CellTrajectory:
        """Integrate on a mesh; the outputs are the fields, followed by their derivatives with respect to unknown
        numbers.

        near : for each unknown number a problem in which it is perturbed, and the size of that perturbation
        """
        tol = TIME_SHARE * self.tol
        system = SpaceSystem(self.problem, mesh, np.maximum(sizes, MIN_FIELD_SIZE * sizes.max()), self.factors, seed)
        integrator = CellIntegrator(
            system, self.tuning.tableau(tol), tol, self.tuning, stop=lambda: self.monitor.exhausted
        )
        start, rates = self._vector(system, 0)[0], self._vector(system, 1)[0]
        path = integrator.run(start, rates, self.level).path
        changes = []
        for problem, size in near:
            other, twin = (
                CellIntegration(problem, self.tol, self.monitor, self.tuning, self.factors),
                system.like(problem),
            )
            begin, faster = other._vector(twin, 0)[0], other._vector(twin, 1)[0]
            if len(integrator.lengths) == len(path.times) - 1:
                vectors = integrator.along_steps(twin, begin, faster)
                changes.append(
                    StageTrajectory(path.tableau, path.times, (vectors - path.vectors) / size, (faster - rates) / size)
                )
        return self._network(system, path, *changes)

    def _network(self, system: SpaceSystem, *paths: StageTrajectory) -> CellTrajectory:
        """Return the trajectory of paths with the same steps: the fields of the first, then those of the others."""
        first, fields = paths[0], len(self.orders)
        vectors = [self._with_rates(path) for path in paths]
        cells = []
        for number in range(len(system.mesh.cells)):
            every = np.concatenate([system.cell_weights(own, number) for own in vectors], axis=1)
            cells.append(np.moveaxis(every, 2, 0).reshape(-1, len(every) * fields * len(paths)))
        network = cell_network(system.mesh, Weights(tuple(cells), ()))
        orders = tuple(self.orders.values()) * len(paths)
        return CellTrajectory(network, first.times, len(first.tableau), orders, system.end)

    def _with_rates(self, path: StageTrajectory) -> Array:
        """Return all vectors of a path, followed by ∂_t at the start of each step where a field is of second order."""
        vectors, stages = path.vectors, len(path.tableau)
        if max(self.orders.values()) > 1:
            lengths = np.diff(path.times)
            rates = [path.rates]
            for step in range(len(lengths) - 1):
                own = vectors[1 + step * stages : 1 + (step + 1) * stages] - vectors[step * stages]
                rates.append(path.tableau.derivative[-1] @ own / lengths[step])
            vectors = np.concatenate([vectors, rates])
        return vectors


def project(cell: Cell, values: Array) -> tuple[Array, Array]:
    """Return the weights (fields, functions) that approximate values (M, fields) in a cell, and the misfit (fields,).

    The functions are orthonormal to about three digits only, so that a least-squares solve replaces inner products.
    """
    root, still = np.sqrt(cell.weights)[:, None], (0,) * len(cell.bounds)
    table = cell.tables([still])[still] * root
    weights = np.linalg.lstsq(table, root * values, rcond=None)[0]
    return weights.T, np.linalg.norm(table @ weights - root * values, axis=0)
