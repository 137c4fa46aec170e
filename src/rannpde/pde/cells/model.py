"""Models of the method of cells for identification: solutions on a fixed mesh as functions of the unknowns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.domain import SpaceTime
from rannpde.pde.cells.basis.basis import BasisSample
from rannpde.pde.cells.mesh.mesh import MeshBuilder
from rannpde.pde.cells.network import CellNetwork, Weights, cell_network
from rannpde.pde.cells.stationary.system import CellsSystem
from rannpde.pde.cells.time.integration import CellIntegration
from rannpde.pde.cells.time.trajectory import CellTrajectory
from rannpde.pde.cells.tuning import NEWTON_CONVERGED, CellsTuning
from rannpde.pde.forward_model import FailedEvaluation, ModelRequest, Response, UnknownVector
from rannpde.pde.functions import State
from rannpde.pde.initial import integrated
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import Jet
from rannpde.pde.tolerance import COMPARABLE, LINEAR_CHANGE, NONLINEAR_SHARE

NEWTON_STEPS = 20
NEWTON_ROUNDING = 1e-13
"""Relative size of a Newton step that is rounding."""
DIFFERENCE_STEP = NEWTON_CONVERGED**0.5
"""Relative change of a number between neighbouring solutions, whose difference is the sensitivity: it balances their
errors, divided by the step, with that of a one-sided difference, which is of the size of the step."""
DIVERGED_AFTER = 8
"""Newton steps after which a step as large as the solution counts as divergence."""
SIZE_POINTS = 2000
"""Points at which the sizes of the fields are measured."""


@dataclass(eq=False)
class CurrentUnknowns:
    """The unknowns at their current values, as the rows of a system of cells need them."""

    unknowns: UnknownVector
    vector: Array

    @property
    def count(self) -> int:
        return self.unknowns.count

    def value(self, jet: Jet, points: Array) -> Array:
        return self.unknowns.value(jet, points, self.vector)

    def slopes(self, jet: Jet, points: Array) -> Array:
        whole = np.zeros((len(points), self.count))
        whole[:, self.unknowns.slices[jet.field]] = self.unknowns.table(jet, points)
        return whole


class CellsModel:
    """A forward model on the mesh of a stationary solution: its tree, with newly sampled basis functions.

    start : the solution; tuning, weights : those of the method that computed it
    """

    def __init__(
        self, request: ModelRequest, start: CellNetwork, degree: int, tuning: CellsTuning, weights: Mapping[str, float]
    ) -> None:
        problem, rng = request.problem, request.rng
        draw = BasisSample.sample(problem.domain.dim, degree, tuning, rng)
        names = problem.domain.names
        mesh = MeshBuilder(problem.domain, draw).build(start.tree, tuple(map(names.index, problem.periodic)))
        values = start(problem.domain.sample(SIZE_POINTS, rng=3))
        sizes = np.maximum(np.sqrt(np.mean(values**2, axis=0)), 1e-300)
        self.current, self.monitor = CurrentUnknowns(request.unknowns, request.unknowns.guess), request.monitor
        tight = np.zeros(len(start.tree.leaves), dtype=bool)
        self.system = CellsSystem(problem, mesh, sizes, tight, weights, int(rng.integers(2**31)), self.current)
        self.start: State | Weights = start
        self.last: tuple[Array, list[Weights]] | None = None
        self.problem, self.initial_value = problem, problem.domain.dim == 1 and integrated(problem.at({})) is not None
        self.linear = _linear_in_fields(problem)
        self.fields = len(problem.fields)

    @property
    def latest(self) -> State | None:
        """None: the next solve starts anew."""
        return None

    def respond(self, vector: Array) -> Response:
        """Solve by Newton's method from the last solution, or that of an ODE solver; its last step gives sensitivities.

        Where it does not converge, because the unknowns are too far from the last ones, all values are NaN.
        """
        weights = self._solve(vector, NEWTON_ROUNDING)
        if weights is None:
            return Response(FailedEvaluation(self.fields * (1 + self.current.count)), self.fields)
        self.start, self.last = weights[0], (np.array(vector), weights)
        stacked = tuple(np.concatenate(parts, axis=1) for parts in zip(*(w.cells for w in weights), strict=True))
        return Response(cell_network(self.system.mesh, Weights(stacked, ())), self.fields)

    def solution(self, vector: Array) -> State:
        """The solution to a few digits; Newton's method starts from the last one with sensitivities, which is kept."""
        weights = self._solve(vector, NEWTON_CONVERGED)
        return FailedEvaluation(self.fields) if weights is None else cell_network(self.system.mesh, weights[0])

    def _solve(self, vector: Array, tolerance: float) -> list[Weights] | None:
        """Weights and their derivatives once Newton's steps are below ``tolerance``; None where they never are."""
        self.current.vector = np.array(vector)
        start = None
        if self.initial_value:
            start = integrated(self.problem.at(self.current.unknowns.values(vector)))
        return self._newton(self._predicted(vector) if start is None else start, tolerance)

    def _predicted(self, vector: Array) -> State | Weights:
        """The last solution, extrapolated by its derivatives where the unknowns are near enough."""
        if self.last is None or self.linear:
            return self.start
        step, (first, *slopes) = vector - self.last[0], self.last[1]
        predicted = first
        for change, slope in zip(step, slopes, strict=True):
            if change:
                predicted = predicted.plus(slope, float(change))
        return predicted if first.distance(predicted) < LINEAR_CHANGE else first

    def _newton(self, start: State | Weights, tolerance: float) -> list[Weights] | None:
        weights, _ = self.system.solve_all(start)
        change, steps = np.inf, 1
        if self.linear:
            change = 0.0
        elif isinstance(start, Weights):
            change = start.distance(weights[0])
        while change > tolerance and steps < NEWTON_STEPS and not self.monitor.exhausted:
            before = weights[0]
            try:
                weights, _ = self.system.solve_all(before)
            except np.linalg.LinAlgError:  # the equations have no linearisation at the last iterate
                return None
            last, change, steps = change, before.distance(weights[0]), steps + 1
            diverged = not np.isfinite(change) or (steps > DIVERGED_AFTER and change > 1.0)
            if diverged or (change < NEWTON_CONVERGED and change > COMPARABLE * last):
                break
            if (  # the next ratio of two steps is the square of this one
                change < NONLINEAR_SHARE * last < np.inf
                and change * (change / last) ** 2 < tolerance
                and change < NEWTON_CONVERGED
            ):
                break
        return weights if change < NEWTON_CONVERGED or self.monitor.exhausted else None


def _linear_in_fields(problem: Problem) -> bool:
    for term in problem.terms:
        expression = term.expression
        field_symbols = {symbol for symbol, jet in expression.symbols.items() if jet.field in problem.fields}
        slopes = [p for jet, p in zip(expression.jets, expression.partials, strict=True) if jet.field in problem.fields]
        if any(slope.free_symbols & field_symbols for slope in slopes):
            return False
    return True


class CellsTimeModel:
    """A forward model on the mesh in space of a time integration, with newly sampled basis functions.

    The unknowns are numbers. Sensitivities are finite differences between solutions that take the same time steps.
    """

    def __init__(
        self,
        request: ModelRequest,
        start: CellTrajectory,
        degree: int,
        tuning: CellsTuning,
        weights: Mapping[str, float],
    ) -> None:
        problem, rng = request.problem, request.rng
        assert isinstance(problem.domain, SpaceTime)
        self.problem, self.unknowns, self.tol, self.monitor = problem, request.unknowns, request.tol, request.monitor
        space = problem.domain.space
        draw, names = BasisSample.sample(space.dim, degree, tuning, rng), space.names
        self.mesh = MeshBuilder(space, draw).build(start.cells.tree, tuple(map(names.index, problem.periodic)))
        self.sizes = np.sqrt(np.mean(np.square(start(problem.domain.sample(SIZE_POINTS, rng=3))), axis=0))
        self.seed, self.tuning, self.weights = int(rng.integers(2**31)), tuning, weights

    @property
    def latest(self) -> State | None:
        """None: the next solve starts anew."""
        return None

    def respond(self, vector: Array) -> Response:
        """One integration, and a neighbouring one for each number; NaN where it does not reach the end."""
        neighbours = []
        for part in self.unknowns.slices.values():
            k, change = part.start, np.zeros(len(vector))
            change[k] = DIFFERENCE_STEP * (abs(vector[k]) or abs(self.unknowns.guess[k]) or 1.0)
            change[k] *= 1.0 if vector[k] + change[k] <= self.unknowns.limits[1][k] else -1.0
            neighbours.append((self.problem.at(self.unknowns.values(vector + change)), float(change[k])))
        return Response(self._integrated(vector, neighbours), len(self.problem.fields))

    def solution(self, vector: Array) -> State:
        """The solution by one integration."""
        return self._integrated(vector, [])

    def _integrated(self, vector: Array, neighbours: list[tuple[Problem, float]]) -> State:
        """Integrate the problem and its neighbours: outputs are the fields, then their derivatives by each number."""
        forward = self.problem.at(self.unknowns.values(vector))
        outputs = len(self.problem.fields) * (1 + len(neighbours))
        integration = CellIntegration(forward, self.tol, self.monitor, self.tuning, self.weights)
        network = integration.with_sensitivities(self.mesh, self.sizes, self.seed, neighbours)
        complete = len(network.orders) == outputs and network.times[-1] >= network.end * (1 - 1e-9)
        return network if complete else FailedEvaluation(outputs)
