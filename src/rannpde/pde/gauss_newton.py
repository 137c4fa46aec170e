"""Damped Gauss–Newton with Levenberg–Marquardt as fallback: one loop for every problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import Ended
from rannpde.errors import MethodError, positive_integer, require
from rannpde.fitting.orthogonal import Factor, SolvedRows
from rannpde.pde.monitor import Status, status_of
from rannpde.pde.tolerance import SUFFICIENT_DECREASE

_ROUNDING = 100 * float(np.finfo(float).eps)
"""A residual below this fraction of its own summands |J| |c| is rounding."""


class NonlinearSystem(Protocol):
    """Residual and Jacobian of a least-squares problem."""

    @property
    def linear(self) -> bool: ...

    def residual(self, vector: Array) -> Array: ...

    def linearise(self, vector: Array) -> tuple[Array, Array]: ...


@dataclass(frozen=True)
class GaussNewtonStep:
    """One row of the convergence history: residual norm after the step, step length or damping, rank, condition."""

    norm: float
    step: float
    damping: float
    rank: int
    condition: float


@dataclass(frozen=True, eq=False)
class Descent:
    """Where the iteration ended: ``vector`` is the best iterate, whatever the reason to stop."""

    vector: Array
    steps: tuple[GaussNewtonStep, ...]
    status: Status
    reason: str
    solve_seconds: float
    """Time spent in orthogonal factorisations."""


@dataclass(frozen=True)
class GaussNewton:
    """Settings of the loop.

    iterations : limit on the number of steps
    tolerance : converged when a full step reduces the residual norm by less than this fraction
    cutoff : relative rank tolerance of the orthogonal solves
    smallest_step : shortest step of the line search, after which Levenberg–Marquardt damping is tried
    """

    iterations: int = 30
    tolerance: float = 1e-2
    cutoff: float = 1e-14
    smallest_step: float = 1 / 64
    dampings: tuple[float, ...] = (1e-6, 1e-4, 1e-2, 1.0)

    def __post_init__(self) -> None:
        positive_integer("iterations", self.iterations)
        require(0 < self.tolerance < 1, "tolerance", self.tolerance, "a number in (0, 1)")
        require(0 < self.cutoff < 1, "cutoff", self.cutoff, "a number in (0, 1)")

    def run(
        self, system: NonlinearSystem, vector: Array, on_step: Callable[[int], Status | None] | None = None
    ) -> Descent:
        """Minimise |residual|² from that vector. A linear system takes one solve.

        A residual that is not finite at the start is a MethodError; later it shortens the step, and if no step helps
        the last good iterate is returned with the reason. ``on_step`` is called with the number of steps done; a Status
        that it returns ends the iteration.
        """
        norm = _norm(system.residual(vector))
        if not np.isfinite(norm):
            raise MethodError(
                "the residual is not finite at the first guess (a logarithm or root leaves its domain); pass guess=…"
            )
        history: list[GaussNewtonStep] = []
        seconds = 0.0

        def ended(status: Status, reason: str) -> Descent:
            return Descent(vector, tuple(history), status, reason, seconds)

        for number in range(1, self.iterations + 1):
            try:
                residual, jacobian = system.linearise(vector)
                start = perf_counter()
                factor = Factor.of(jacobian, -residual) if np.isfinite(jacobian).all() else None
            except Ended as ending:
                if not history:
                    raise
                status, reason = status_of(ending)
                return ended(status, reason or str(status))
            if factor is None:
                return ended(Status.NEWTON, "the Jacobian is not finite at the last iterate")
            step = factor.solve(self.cutoff)
            seconds += perf_counter() - start
            accepted = self._search(system, vector, step, norm)
            if accepted is None and not system.linear:
                start = perf_counter()
                accepted = self._damp(system, vector, factor, norm)
                seconds += perf_counter() - start
            if accepted is None:
                # no descent: either the model itself predicts no reduction, or the residual is rounding
                gain = _norm(jacobian @ step.solution + residual)
                rounding = _ROUNDING * _norm(np.abs(jacobian) @ np.abs(vector))
                if system.linear or gain > (1 - self.tolerance) * norm or norm <= rounding:
                    return ended(Status.CONVERGED, "no step lowers the residual further")
                return ended(Status.NEWTON, self._failure_reason(system, vector, step))
            predicted = _norm(jacobian @ step.solution + residual)
            vector, iteration = accepted
            history.append(iteration)
            # a full step that reduces the residual no further, or that ends where the linear model predicted
            stays = iteration.norm > (1 - self.tolerance) * norm
            reached = iteration.step == 1.0 and (stays or self.linear_model_holds(iteration.norm, predicted))
            norm = iteration.norm
            if system.linear or reached or norm == 0:
                return ended(Status.CONVERGED, "")
            stop = on_step(number) if on_step is not None else None
            if stop is not None:
                return ended(stop, str(stop))
        return ended(Status.NEWTON, f"Gauss–Newton stopped after {self.iterations} iterations")

    def linear_model_holds(self, norm: float, predicted: float) -> bool:
        """Return whether a full step did what the linear model predicted: what the model neglects is then below the
        residual."""
        return bool(norm <= (1 + self.tolerance) * predicted)

    def _search(
        self, system: NonlinearSystem, vector: Array, step: SolvedRows, norm: float
    ) -> tuple[Array, GaussNewtonStep] | None:
        length = 1.0
        while length >= self.smallest_step:
            trial = vector + length * step.solution
            new = _norm(system.residual(trial))
            if np.isfinite(new) and new < norm * (1 - SUFFICIENT_DECREASE * length):
                return trial, GaussNewtonStep(new, length, 0.0, step.rank, step.condition)
            length /= 2
        return None

    def _damp(
        self, system: NonlinearSystem, vector: Array, factor: Factor, norm: float
    ) -> tuple[Array, GaussNewtonStep] | None:
        for damping in self.dampings:
            step = factor.damped(damping)
            new = _norm(system.residual(vector + step.solution))
            if np.isfinite(new) and new < norm * (1 - SUFFICIENT_DECREASE):
                return vector + step.solution, GaussNewtonStep(new, 0.0, damping, step.rank, step.condition)
        return None

    def _failure_reason(self, system: NonlinearSystem, vector: Array, step: SolvedRows) -> str:
        if np.isfinite(_norm(system.residual(vector + self.smallest_step * step.solution))):
            return "no step lowers the residual, although the linear model promises it"
        return "every step leaves the domain of a logarithm, a root or a quotient; the last good iterate is kept"


def _norm(residual: Array) -> float:
    with np.errstate(all="ignore"):
        return float(np.linalg.norm(residual))
