"""Identify and sensitivity(): unknowns of a problem by the methods that solve it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Rng
from rannpde.errors import InputError, random_generator, require
from rannpde.pde.cells.method import Cells
from rannpde.pde.forward_model import ForwardModel, ModelRequest
from rannpde.pde.functions import State
from rannpde.pde.inverse.design import Sensitivity
from rannpde.pde.inverse.identified import Identified
from rannpde.pde.inverse.identify import Forward, identify, response_at_guess
from rannpde.pde.inverse.uncertainty import Uncertainty
from rannpde.pde.lines.method import Lines
from rannpde.pde.lines.sensitivities.dependence import functions_identifiable
from rannpde.pde.lines.solution import SpaceTimeSolution
from rannpde.pde.monitor import Monitor
from rannpde.pde.paths.method import Paths
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.unknown import UnknownFunction, check_shared
from rannpde.pde.selection import WITHOUT_MODEL, Method, chosen_method, guarded_solution
from rannpde.pde.solution import Solution
from rannpde.pde.tolerance import CONFIDENCE


@dataclass(frozen=True)
class Identify:
    """A method to identify the unknowns of a problem: how it is solved, and how intervals are computed.

    forward : method of the solutions, as in ``solve``; None takes the first that fits
    uncertainty : "covariance", which takes profiles by itself where the model bends; "profile"; "bootstrap"
    confidence : probability that an interval holds the true value; draws : number of bootstrap draws
    """

    forward: Method | str | None = None
    uncertainty: str = "covariance"
    confidence: float = CONFIDENCE
    draws: int = 100

    name = "identify"

    def __post_init__(self) -> None:
        self._intervals()

    def _intervals(self) -> Uncertainty:
        return Uncertainty(self.uncertainty, self.confidence, self.draws)

    def solve(self, problems: Sequence[Problem], tol: float, rng: np.random.Generator, monitor: Monitor) -> Identified:
        """Return the unknowns that the problems share, and the solution of the first."""
        check_shared(problems)
        return identify(problems, tol, self.solver(problems, monitor), self._intervals(), rng, monitor)

    def solver(self, problems: Sequence[Problem], monitor: Monitor) -> Forward:
        """Return the solver of the problems at given values of their unknowns."""
        functions = any(isinstance(one, UnknownFunction) for one in problems[0].unknown.values())
        wanted = self.forward
        if functions and wanted is None and not all(map(functions_identifiable, problems)):
            wanted = Cells(time_stepping=False)

        return ForwardSolver(wanted, monitor)


@dataclass(frozen=True)
class ForwardSolver:
    """Solves a problem at values of its unknowns by a method, or the first that fits, in the time that is left."""

    method: Method | str | None
    monitor: Monitor

    def __call__(
        self, problem: Problem, tol: float, rng: np.random.Generator, like: State | None = None, /
    ) -> Solution:
        chosen, why = chosen_method(problem, self.method, WITHOUT_MODEL)

        def run(monitor: Monitor) -> Solution:
            if isinstance(chosen, Lines) and isinstance(like, SpaceTimeSolution):
                return chosen.solve(problem, tol, rng, monitor, why, like)
            return chosen.solve(problem, tol, rng, monitor, why)

        solution = guarded_solution(run, self.monitor.rest())
        if solution is None:
            raise InputError(
                f"seconds is {self.monitor.budget.seconds}, too short to solve the problem once; allow more"
            )
        return solution

    def model(self, request: ModelRequest, /) -> ForwardModel | None:
        """The model of a solution by the method that gave it, with its settings."""
        chosen = chosen_method(request.solution.stated, self.method, WITHOUT_MODEL)[0]
        return None if isinstance(chosen, Paths) else chosen.model(request)  # no unknowns are identified in R^d


def sensitivity(
    problem: Problem,
    *,
    tol: float = 1e-4,
    method: Method | str | None = None,
    rng: Rng = 0,
) -> Sensitivity:
    """Return the derivatives of the fields by the unknown numbers of a problem, at their guesses: where to put sensors.

    >>> from rannpde.domains import SpaceTime
    >>> from rannpde.pde.problem.conditions import On
    >>> from rannpde.pde.problem.unknown import Unknown
    >>> conditions = {"start": On("t=0", "u = sin(pi*x)"), "ends": On(("x=0", "x=1"), "u = 0")}
    >>> domain = SpaceTime(t=(0, 1), x=(0, 1))
    >>> problem = Problem("u_t = k*u_xx", domain, conditions, unknown={"k": Unknown(guess=0.1)})
    >>> point = sensitivity(problem).best(1)[0]  # k·∂u/∂k = -kπ²t exp(-kπ²t) sin(πx) is largest at kπ²t = 1, x = ½
    >>> bool(abs(point[1] - 0.5) < 0.05), bool(point[0] > 0.9)
    (True, True)
    """
    require(isinstance(problem, Problem) and bool(problem.unknown), "problem", problem, "a Problem with unknowns")
    way = Identify(method)
    return response_at_guess(problem, tol, way.solver([problem], Monitor()), random_generator("rng", rng))
