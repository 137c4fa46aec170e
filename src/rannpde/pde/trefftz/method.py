"""Trefftz: random features that satisfy a linear equation exactly, fitted to the conditions, as a choice of
settings.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from rannpde.domains.domain import SpaceTime
from rannpde.errors import positive_integer
from rannpde.pde.capability import Capability
from rannpde.pde.forward_model import ForwardModel, ModelRequest
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import Solution
from rannpde.pde.start import as_state
from rannpde.pde.trefftz.cells.setting import cells_setting
from rannpde.pde.trefftz.constant_walls import stationary_walls
from rannpde.pde.trefftz.evolution import modal_problem
from rannpde.pde.trefftz.formulations import (
    Formulation,
    LocalFormulation,
    ModalFormulation,
    NetworkFormulation,
    WallFormulation,
)
from rannpde.pde.trefftz.result import TrefftzTask
from rannpde.pde.trefftz.setting import TYPICAL_TOLERANCE, outside_the_method, trefftz_setting
from rannpde.pde.trefftz.tuning import TrefftzTuning
from rannpde.pde.trefftz.varying.equation import varying_equation


@dataclass(frozen=True)
class Trefftz:
    """Solve by features that satisfy the equation exactly, so that only boundary conditions are left to fit.

    For linear equations of order two with constant coefficients in the plane and in space: Laplace, Poisson, Helmholtz,
    screened problems, diffusion with advection, isotropic or not; Stokes flow, plane elasticity and plates; heat, waves
    and Schrödinger's equation on boxes and discs; scalar equations with smooth coefficients that vary, and semilinear
    ones, on shapes in the plane made of boxes. See docs/trefftz.md for the features and for the bounds.

    features : their largest number; None for the number of the tuning
    guess : where Newton's method starts: field → formula, a Solution, or an object with derivatives; zero unless given
    tuning : the empirical numbers behind all this

    >>> from rannpde.domains import Ball, Box
    >>> from rannpde.pde.solve import solve
    >>> square = Box(x=(0, 1), y=(0, 1)) - Ball((0.4, 0.5), 0.2, name="hole")
    >>> problem = Problem("laplace(u) = 0", square, {"hole": "u = 1", "boundary except hole": "u = 0"})
    >>> solution = solve(problem, tol=1e-8, method=Trefftz())
    >>> solution.converged, solution.history.bound < 1e-7
    (True, True)
    """

    features: int | None = None
    guess: Any = None
    tuning: TrefftzTuning = field(default_factory=TrefftzTuning)

    name = "trefftz"
    reason: ClassVar[str] = "the equation is linear with constant coefficients"
    share: ClassVar[float] = 0.25
    """Of the time allowed, that it may take before another method is tried."""
    hands_over: ClassVar[frozenset[Status]] = frozenset(
        {Status.STALLED, Status.BUDGET, Status.RESIDUAL_TOO_LARGE, Status.NEWTON}
    )
    """Statuses after which another method is tried; a resonance is one for every method."""
    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    def __post_init__(self) -> None:
        if self.features is not None:
            positive_integer("features", self.features)

    def obstacles(self, problem: Problem) -> tuple[str, ...]:
        """Reasons why this method cannot solve the problem."""
        reasons = outside_the_method(problem)
        if self.guess is not None and problem.linear:
            reasons.append("it is linear and takes no guess")
        if reasons:
            return tuple(reasons)
        formulation = self._formulation(problem)
        return (formulation,) if isinstance(formulation, str) else ()

    def drawbacks(self, problem: Problem) -> tuple[str, ...]:
        """Reasons to prefer another method that can solve the problem too."""
        if any(term.expression.kinked for term in problem.constraints):
            return ("conditions have kinks or jumps within a side, at which no feature is singular",)
        return self._formulated(problem).drawbacks(problem, self.tuning)

    def model(self, request: ModelRequest) -> ForwardModel | None:
        """None: there are no sensitivities, and identification takes other methods."""
        return None

    def solve(self, problem: Problem, tol: float, rng: np.random.Generator, monitor: Monitor, why: str) -> Solution:
        """The solution to a relative L² error of about ``tol``, or the best that was found, with its estimate."""
        formulation = self._formulated(problem)
        if why == self.reason and formulation.reason is not None:
            why = formulation.reason
        tuning = self.tuning if self.features is None else replace(self.tuning, columns=self.features)
        return formulation.solve(TrefftzTask(problem, tol, tuning, rng, monitor, why, self.name))

    def _formulation(self, problem: Problem) -> Formulation | str:
        if self.guess is not None and not isinstance(problem.domain, SpaceTime):
            equation = varying_equation(problem, as_state(self.guess, problem))
            return equation if isinstance(equation, str) else LocalFormulation(equation)
        return _formulation(problem, self.tuning)

    def _formulated(self, problem: Problem) -> Formulation:
        """The formulation of a problem without obstacles."""
        formulation = self._formulation(problem)
        assert not isinstance(formulation, str)
        return formulation


@lru_cache(maxsize=1)
def _formulation(problem: Problem, tuning: TrefftzTuning) -> Formulation | str:
    """The formulation of a problem for this method, or the reason why there is none.

    One network where that suffices, cells of networks where coefficients jump or there are many holes, and cells of
    local solutions where coefficients vary. The last one is kept, since obstacles, drawbacks and the solve of a problem
    ask for it in turn.
    """
    if isinstance(problem.domain, SpaceTime):
        modal = modal_problem(problem)
        return modal if isinstance(modal, str) else ModalFormulation(modal)
    measures = stationary_walls(problem)
    if measures is not None:
        return WallFormulation(measures)
    obstacle = None
    if problem.linear:
        one = trefftz_setting(problem)
        if not isinstance(one, str) and one.suffices(problem, TYPICAL_TOLERANCE, tuning):
            return NetworkFormulation(one)
        several = cells_setting(problem, one)
        if not isinstance(several, str):
            return NetworkFormulation(several)
        if not isinstance(one, str):
            return NetworkFormulation(one)
        obstacle = several
    varying = varying_equation(problem)
    if not isinstance(varying, str):
        return LocalFormulation(varying)
    return obstacle or varying
