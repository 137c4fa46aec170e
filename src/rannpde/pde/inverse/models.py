"""Models: a problem on a fixed discretisation as a function of its unknowns, with exact sensitivities.

The discretisation comes from a solve at values near by. On it the solution is a smooth function of the unknowns, and
its derivatives are those of the discrete solution itself: what a least-squares fit needs to converge to all digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.domains.domain import SpaceTime
from rannpde.pde.cells.basis.basis import BasisSample
from rannpde.pde.cells.mesh.mesh import MeshBuilder
from rannpde.pde.cells.method import initial_value_guess
from rannpde.pde.cells.network import CellNetwork, Weights, cell_network
from rannpde.pde.cells.stationary.system import CellsSystem
from rannpde.pde.cells.time.integration import CellIntegration
from rannpde.pde.cells.time.trajectory import CellTrajectory
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.functions import State
from rannpde.pde.inverse.estimates import FunctionEstimate
from rannpde.pde.inverse.tangent import with_sensitivities
from rannpde.pde.inverse.unknowns import Unknowns
from rannpde.pde.lines.evolved import Evolved
from rannpde.pde.lines.response.again import march_again
from rannpde.pde.lines.response.influence import Influence, weak_form
from rannpde.pde.lines.response.sensitivities import sensitive
from rannpde.pde.monitor import Monitor
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import Jet

NEWTON_STEPS = 20
SMOOTHLY = 0.1
"""Share of the tolerance with which marches of a model are made: steps in time differ from one to the next, and a
search compares what they leave."""
BESIDE = 1e-3
"""Relative change of a number by which a march beside another differs: derivatives are good to about as much, and far
above what the corrections of a step leave."""
STEADY, ARRIVED = 1e-13, 1e-6
"""Relative change by a Newton step that is rounding, and one that is followed by no larger ones."""
LOST_AFTER = 8
"""Newton steps after which one that is still as large as the solution leads nowhere."""
SQUARED = 0.1
"""Ratio of two Newton steps below which the next ratio is its square, so that the next step need not be made."""
AHEAD = 0.3
"""Relative change of a solution up to which its derivatives by the unknowns say where the next one begins."""


@dataclass(frozen=True, eq=False)
class Response:
    """A solution and its derivatives by the unknowns: a function with fields · (1 + p) outputs.

    fields : how many; the outputs are those of the solution, then for each unknown those of its sensitivity
    """

    function: State
    fields: int

    def jets(self, points: Array, index: MultiIndex) -> tuple[Array, Array]:
        """∂^index of the fields (M, fields), and its change with each unknown (M, p, fields)."""
        values = self.function.derivative(points, index)
        return values[:, : self.fields], values[:, self.fields :].reshape(len(points), -1, self.fields)


class Model(Protocol):
    """What a fit asks."""

    def respond(self, vector: Array) -> Response:
        """The solution with sensitivities at these unknowns (p,)."""
        ...

    def solution(self, vector: Array) -> State:
        """The solution alone; what it has beyond the fields is not looked at."""
        ...


@dataclass(eq=False)
class Present:
    """The unknowns at their present values, as the rows of a system of cells ask for them."""

    unknowns: Unknowns
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
    """On the cells of a solution: its tree, with functions drawn anew."""

    def __init__(
        self,
        problem: Problem,
        unknowns: Unknowns,
        start: CellNetwork,
        degree: int,
        rng: np.random.Generator,
        over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.over = over
        tuning = CellsTuning()
        draw = BasisSample.sample(problem.domain.dim, degree, tuning, rng)
        names = problem.domain.names
        mesh = MeshBuilder(problem.domain, draw).build(start.tree, tuple(map(names.index, problem.periodic)))
        values = start(problem.domain.sample(2000, rng=3))
        sizes = np.maximum(np.sqrt(np.mean(values**2, axis=0)), 1e-300)
        self.present = Present(unknowns, unknowns.guess)
        tight = np.zeros(len(start.tree.leaves), dtype=bool)
        self.system = CellsSystem(problem, mesh, sizes, tight, {}, int(rng.integers(2**31)), self.present)
        self.start: State | Weights = start
        self.last: tuple[Array, list[Weights]] | None = None
        self.problem, self.initial = problem, initial_value_guess(problem.at({})) is not None
        self.linear = _linear_in_fields(problem)
        self.fields = len(problem.fields)

    def respond(self, vector: Array) -> Response:
        """Newton's method from the last solution, or what an integrator says; its last step gives the sensitivities.

        Where it does not converge, because the unknowns are too far from the last ones, there is no answer: NaN.
        """
        found = self._found(vector, STEADY)
        if found is None:
            return Response(Unanswered(self.fields * (1 + self.present.count)), self.fields)
        self.start, self.last = found[0], (np.array(vector), found)
        together = tuple(np.concatenate(parts, axis=1) for parts in zip(*(w.cells for w in found), strict=True))
        return Response(cell_network(self.system.mesh, Weights(together, ())), self.fields)

    def solution(self, vector: Array) -> State:
        """To the digits that a look needs, from the last that was asked for with its sensitivities, which stays."""
        found = self._found(vector, ARRIVED)
        return Unanswered(self.fields) if found is None else cell_network(self.system.mesh, found[0])

    def _found(self, vector: Array, steady: float) -> list[Weights] | None:
        """Weights with their changes where Newton's steps are that small; None where they do not become small."""
        self.present.vector = np.array(vector)
        start = initial_value_guess(self.problem.at(self.present.unknowns.values(vector))) if self.initial else None
        return self._newton(self._begin(vector) if start is None else start, steady)

    def _begin(self, vector: Array) -> State | Weights:
        """The last solution, moved along its derivatives where the unknowns are near enough for that."""
        if self.last is None or self.linear:
            return self.start
        step, (first, *slopes) = vector - self.last[0], self.last[1]
        moved = first
        for change, slope in zip(step, slopes, strict=True):
            if change:
                moved = moved.plus(slope, float(change))
        return moved if first.distance(moved) < AHEAD else first

    def _newton(self, start: State | Weights, steady: float) -> list[Weights] | None:
        found, _ = self.system.solve_all(start, _go_on)
        change, steps = np.inf, 1
        if self.linear:
            change = 0.0
        elif isinstance(start, Weights):
            change = start.distance(found[0])
        while change > steady and steps < NEWTON_STEPS and not self.over():
            before = found[0]
            try:
                found, _ = self.system.solve_all(before, _go_on)
            except np.linalg.LinAlgError:  # no linearisation where the step before has led
                return None
            last, change, steps = change, before.distance(found[0]), steps + 1
            lost = not np.isfinite(change) or (steps > LOST_AFTER and change > 1.0)
            if lost or (change < ARRIVED and change > 0.3 * last):
                break
            if change < SQUARED * last < np.inf and change * (change / last) ** 2 < steady and change < ARRIVED:
                break
        return found if change < ARRIVED or self.over() else None


@dataclass(frozen=True)
class Unanswered:
    """What a model says where it has no solution."""

    outputs: int

    def __call__(self, points: Array) -> Array:
        return np.full((len(points), self.outputs), np.nan)

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        return self(points)


def _linear_in_fields(problem: Problem) -> bool:
    for term in problem.terms:
        expression = term.expression
        own = {symbol for symbol, jet in expression.symbols.items() if jet.field in problem.fields}
        slopes = [p for jet, p in zip(expression.jets, expression.partials, strict=True) if jet.field in problem.fields]
        if any(slope.free_symbols & own for slope in slopes):
            return False
    return True


def _go_on() -> None:
    """Models are small: nothing pauses them."""


class LinesModel:
    """In the functions of space of a march at a vector of unknowns; numbers, and functions in the equations."""

    def __init__(
        self,
        problem: Problem,
        unknowns: Unknowns,
        start: Evolved,
        vector: Array,
        influence: Influence,
        tol: float,
        over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.problem, self.unknowns, self.start = problem, unknowns, start
        self.influence, self.tol, self.over = influence, tol, over
        self.vector, self.forward = vector, start.evolution.problem

    def respond(self, vector: Array) -> Response:
        """One march, and its sensitivities along it."""
        found = sensitive(self.solution(vector), self.influence, self.unknowns, vector, self.over)
        return Response(found, len(self.problem.fields))

    def solution(self, vector: Array) -> Evolved:
        """One march."""
        if not np.array_equal(vector, self.vector):
            self.vector, self.forward = np.array(vector), self.problem.at(self.unknowns.values(vector))
        self.start = march_again(self.start, self.forward, SMOOTHLY * self.tol, self.over, self.influence.clock)
        return self.start


class MarchedModel:
    """On the cells in space of a march, drawn anew; numbers only. Sensitivities are those of marches beside it."""

    def __init__(
        self,
        problem: Problem,
        unknowns: Unknowns,
        start: CellTrajectory,
        degree: int,
        tol: float,
        rng: np.random.Generator,
        monitor: Monitor,
    ) -> None:
        assert isinstance(problem.domain, SpaceTime)
        self.problem, self.unknowns, self.tol, self.monitor = problem, unknowns, tol, monitor
        space, tuning = problem.domain.space, CellsTuning()
        draw, names = BasisSample.sample(space.dim, degree, tuning, rng), space.names
        self.mesh = MeshBuilder(space, draw).build(start.cells.tree, tuple(map(names.index, problem.periodic)))
        self.sizes = np.sqrt(np.mean(np.square(start(problem.domain.sample(2000, rng=3))), axis=0))
        self.seed, self.tuning = int(rng.integers(2**31)), tuning

    def respond(self, vector: Array) -> Response:
        """One march, and one beside it for each number; NaN where it does not come to the end."""
        near = []
        for part in self.unknowns.slices.values():
            k, change = part.start, np.zeros(len(vector))
            change[k] = BESIDE * (abs(vector[k]) or abs(self.unknowns.guess[k]) or 1.0)
            change[k] *= 1.0 if vector[k] + change[k] <= self.unknowns.limits[1][k] else -1.0
            near.append((self.problem.at(self.unknowns.values(vector + change)), float(change[k])))
        return Response(self._march(vector, near), len(self.problem.fields))

    def solution(self, vector: Array) -> State:
        """One march."""
        return self._march(vector, [])

    def _march(self, vector: Array, near: list[tuple[Problem, float]]) -> State:
        """A march with those beside it: outputs are the fields, then their changes."""
        forward, outputs = self.problem.at(self.unknowns.values(vector)), len(self.problem.fields) * (1 + len(near))
        marching = CellIntegration(forward, self.tol, self.monitor, self.tuning, {})
        found = marching.with_sensitivities(self.mesh, self.sizes, self.seed, near)
        whole = len(found.orders) == outputs and found.times[-1] >= found.end * (1 - 1e-9)
        return found if whole else Unanswered(outputs)


class SolvedModel:
    """Solved anew at every value by whatever method suits, sensitivities as fields; unknown numbers only."""

    def __init__(self, problem: Problem, unknowns: Unknowns, forward: Callable[[Problem], State]) -> None:
        self.problem, self.unknowns, self.forward = problem, unknowns, forward

    def respond(self, vector: Array) -> Response:
        """A solve of the problem with its sensitivities."""
        values: Mapping[str, float] = {n: float(vector[part][0]) for n, part in self.unknowns.slices.items()}
        return Response(self.forward(with_sensitivities(self.problem, values)), len(self.problem.fields))

    def solution(self, vector: Array) -> State:
        """A solve of the problem alone."""
        return self.forward(self.problem.at(self.unknowns.values(vector)))


@dataclass(eq=False)
class Remembered:
    """A model that keeps its first answer: fits to values drawn anew all begin there."""

    model: Model
    first: tuple[Array, Response] | None = None

    def respond(self, vector: Array) -> Response:
        """That of the model."""
        if self.first is None:
            self.first = np.array(vector), self.model.respond(vector)
        return self.first[1] if np.array_equal(vector, self.first[0]) else self.model.respond(vector)

    def solution(self, vector: Array) -> State:
        """That of the model."""
        return self.model.solution(vector)


def restored(
    problem: Problem, numbers: Mapping[str, float], functions: Mapping[str, FunctionEstimate], solution: Evolved
) -> Response:
    """The response of a march that a file holds: its sensitivities are computed again."""
    unknowns = Unknowns(problem, np.random.default_rng(0), {n: one.expanded.basis for n, one in functions.items()})
    vector = unknowns.guess.copy()
    for name, part in unknowns.slices.items():
        vector[part] = functions[name].expanded.weights if name in functions else numbers[name]
    influence = Influence.of(problem, weak=weak_form(solution))
    return Response(sensitive(solution, influence, unknowns, vector, lambda: False), len(problem.fields))
