"""The method of cells: random networks on the cells of an adaptive mesh, as a choice of settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError, positive_integer, require
from rannpde.pde.adaptivity.result import Iteration, iteration_lines, iteration_table, iterations_from
from rannpde.pde.capability import Capability
from rannpde.pde.cells.adaptivity.loop import CellsLoop, CellsResult
from rannpde.pde.cells.model import CellsModel, CellsTimeModel
from rannpde.pde.cells.network import CellNetwork
from rannpde.pde.cells.time.integration import CellIntegration, integration_obstacles
from rannpde.pde.cells.time.trajectory import CellTrajectory
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.forward_model import ForwardModel, ModelRequest
from rannpde.pde.functions import Negated, State, Zero
from rannpde.pde.initial import integrated
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import held_out_residual, loss_integrals
from rannpde.pde.solution import Choice, Solution
from rannpde.pde.start import as_state, check_weights, first_guess, linearises, poisson_guesses
from rannpde.pde.tolerance import SAME_SOLUTION, UNSOLVED_RESIDUAL
from rannpde.threads import one_thread


@dataclass(frozen=True)
class Cells:
    """Solve on cells, each with a random network of its own, coupled by the traces on their faces.

    The least-squares system is solved by static condensation and nested dissection. Cells are split where the residual
    is large, across the axes along which the solution is not resolved. One to three coordinates, any domain.

    degree : the functions of a cell approximate as well as polynomials of this degree; None derives it from ``tol``
    guess : field → formula or callable with derivatives, or a Solution
    weights : factors of the rows of an equation or condition, by name
    time_stepping : True integrates in time with cells in space, False treats time as a coordinate like the others; None
        integrates where the problem allows it and space has at least two coordinates
    tuning : the empirical settings

    >>> from rannpde.pde.solve import solve
    >>> from rannpde.pde.zoo import zoo
    >>> solution = solve(zoo("nonlinear_poisson"), tol=1e-9, method=Cells())
    >>> solution.converged, solution.errors()["u"] < 1e-9
    (True, True)
    """

    degree: int | None = None
    guess: Any = None
    weights: Mapping[str, float] = field(default_factory=dict)
    time_stepping: bool | None = None
    tuning: CellsTuning = field(default_factory=CellsTuning)

    name = "cells"
    reason: ClassVar[str] = "it has no more than three coordinates"
    share: ClassVar[float] = 1.0
    hands_over: ClassVar[frozenset[Status]] = frozenset()
    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    def __post_init__(self) -> None:
        if self.degree is not None:
            require(2 <= positive_integer("degree", self.degree) <= 30, "degree", self.degree, "from 2 to 30")
        require(self.time_stepping in (True, False, None), "time_stepping", self.time_stepping, "True, False or None")
        require(isinstance(self.weights, Mapping), "weights", self.weights, "a mapping of names to numbers")

    def obstacles(self, problem: Problem) -> tuple[str, ...]:
        """Return reasons why this method cannot solve the problem."""
        reasons = list(integration_obstacles(problem)) if self.time_stepping else []
        if problem.domain.dim > 3 and not self._integrates_in_time(problem):
            reasons.append(f"the domain has {problem.domain.dim} coordinates, more than three")
        if problem.bounds:
            reasons.append("fields have bounds")
        if problem.pairings:
            reasons.append("some fields are periodic and others not")
        if self.guess is not None and self._integrates_in_time(problem):
            reasons.append("time integration starts from the initial values and takes no guess")
        return tuple(reasons)

    def drawbacks(self, problem: Problem) -> tuple[str, ...]:
        """Return reasons to prefer another method that can solve the problem too."""
        around = isinstance(problem.domain, SpaceTime) and set(problem.domain.space.names) <= set(problem.periodic)
        if around and self._integrates_in_time(problem):
            return ("space is periodic in all coordinates, where one network without seams is better",)
        return ()

    def _integrates_in_time(self, problem: Problem) -> bool:
        wanted = self.time_stepping is not False and isinstance(problem.domain, SpaceTime)
        wanted = wanted and (self.time_stepping is True or problem.domain.dim > 2)
        return wanted and not integration_obstacles(problem)

    def solve(self, problem: Problem, tol: float, rng: np.random.Generator, monitor: Monitor, why: str) -> Solution:
        """Return the solution with a relative L² error of about ``tol``, or the best one so far, with its error
        estimate."""
        if self.weights:
            check_weights(problem, self.weights)
        with one_thread(problem.domain.dim < 3):  # for small matrices threads cost more than they gain
            loop, state = self._prepared(problem, tol, rng, monitor)

            def keep(status: Status, detail: str) -> Solution | None:
                if loop.last is None:
                    return None
                return self._solution(problem, loop.result(status, detail), tol, monitor, why)

            monitor.keep(keep)
            result = loop.run(state)
        return self._solution(problem, result, tol, monitor, why)

    def model(self, request: ModelRequest) -> ForwardModel | None:
        """Return the model of a solution by this method, with its degree, weights and tuning; None for unknown
        functions where time is integrated."""
        function, history = request.solution.function, request.solution.history
        assert isinstance(history, CellsHistory)
        degree = history.iterations[-1].degree
        assert degree is not None
        if isinstance(function, CellNetwork):
            return CellsModel(request, function, degree, self.tuning, self.weights)
        assert isinstance(function, CellTrajectory)
        return None if request.unknowns.bases else CellsTimeModel(request, function, degree, self.tuning, self.weights)

    def _prepared(
        self, problem: Problem, tol: float, rng: np.random.Generator, monitor: Monitor
    ) -> tuple[CellsLoop, State]:
        """The adaptive loop, and the state at which it starts."""
        if self._integrates_in_time(problem):
            integration = CellIntegration(problem, tol, monitor, self.tuning, self.weights)
            loop = CellsLoop(problem, tol, monitor, rng, self.tuning, self.degree, self.weights, integration)
            return loop, Zero(len(problem.fields))
        loop = CellsLoop(problem, tol, monitor, rng, self.tuning, self.degree, self.weights)
        if problem.linear and self.guess is None:  # any linearisation will do; amplitudes of initial value problems
            return loop, initial_value_guess(problem) or Zero(len(problem.fields))
        return loop, self._start(problem, rng, monitor)

    def _start(self, problem: Problem, rng: np.random.Generator, monitor: Monitor) -> State:
        """Return the user's guess, or that of an ODE solver, or the first one that satisfies the conditions.

        Where the equations cannot be linearised there, return the Poisson initial guess with the smallest residual.
        """
        known = as_state(self.guess, problem)
        known = initial_value_guess(problem) if known is None else known
        if known is not None:
            return known
        guess = first_guess(problem)
        if linearises(problem, guess):
            return guess
        if not isinstance(problem.domain, SpaceTime):
            tried = [
                CellsLoop(one, SAME_SOLUTION, monitor, rng, self.tuning).run(guess).best.network
                for one in poisson_guesses(problem)
            ]
            usable = [network for network in tried if linearises(problem, network)]
            if usable:
                return min(usable, key=lambda network: max(held_out_residual(problem, network).values()))
        raise InputError(
            "the equations have no linearisation at the first guess (a root or quotient leaves its domain there, or "
            "all derivatives vanish); pass rp.Cells(guess={…}) with a formula for each field"
        )

    def _solution(self, problem: Problem, result: CellsResult, tol: float, monitor: Monitor, why: str) -> Solution:
        best, network = result.best, result.best.network
        held_out = held_out_residual(problem, network)
        status, detail = result.status, result.detail
        worst = max(held_out.values())
        residual_tolerance = (
            self.tuning.residual_tolerance_in_time
            if isinstance(network, CellTrajectory)
            else self.tuning.residual_tolerance
        )
        if status is Status.CONVERGED and worst > max(residual_tolerance, 3 * tol):
            status = Status.RESIDUAL_TOO_LARGE
            detail = f"two iterations agree, but leave a relative residual of {worst:.1e}"
        estimate = result.estimate
        judged = not status.converged and status is not Status.BLOW_UP
        if judged and not isinstance(network, CellTrajectory):
            # two iterations may agree on what has little to do with the equations, or on where Newton's method ended
            if worst > UNSOLVED_RESIDUAL or best.status is Status.NEWTON:
                estimate = max(estimate, worst)
            if (
                worst <= UNSOLVED_RESIDUAL
                and not problem.linear
                and max(held_out_residual(problem, Negated(network)).values()) <= 2 * worst
            ):
                estimate, reason = max(estimate, 2.0), "the negative of the solution satisfies the equations as well"
                detail = f"{detail or status}; {reason}"
        label = f"{len(network.boxes)} cells of degree {result.iterations[-1].degree}"
        label += f", {network.steps} steps in time" if isinstance(network, CellTrajectory) else ""
        return Solution(
            problem=problem, fields=problem.fields, function=network, status=status, detail=detail,
            estimate=estimate, held_out=held_out, losses=best.losses,
            integrals=loss_integrals(problem, best.losses),
            history=CellsHistory(result.iterations), method=Choice(self.name, label, why), seconds=monitor.elapsed,
        )  # fmt: skip


def initial_value_guess(problem: Problem) -> State | None:
    """Return the initial guess for an initial value problem of one coordinate, by an ODE solver; None for all
    others."""
    return integrated(problem) if problem.domain.dim == 1 else None


@dataclass(frozen=True)
class CellsHistory:
    """The iterations of the method of cells, with cells, residuals and changes."""

    iterations: tuple[Iteration, ...]

    advice = "more time, a higher degree or a better guess of rp.Cells may help"

    def lines(self) -> list[str]:
        """Return the lines for the report."""
        return iteration_lines(self.iterations)

    def to_table(self) -> dict[str, Any]:
        """Return the history as data that JSON can hold."""
        return {"iterations": iteration_table(self.iterations)}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> CellsHistory:
        return cls(iterations_from(Iteration, table["iterations"]))
