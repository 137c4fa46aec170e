"""SOLVE → ESTIMATE → MARK → REFINE: the one adaptive loop of all methods, for any kind of state and of resolution.

A discretisation knows how to solve on a resolution, how to estimate the error of its solution, which indicators its
parts have, and how to refine marked parts. The loop knows when to stop, and keeps the best state. Further checks of a
method, such as those of residuals, enter as its ``verdict``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Generic, Protocol, TypeVar

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.adaptivity.result import AdaptiveResult, IterationT, StateT
from rannpde.pde.monitor import Status
from rannpde.pde.tolerance import DOERFLER_SHARE, GAIN

ResolutionT = TypeVar("ResolutionT")
ERROR_SHARE = 1 / float(np.sqrt(2))
"""The error of one of two solutions over their difference, where their errors are independent and equally large."""


class AdaptiveDiscretisation(Protocol[ResolutionT, StateT]):
    """A discretisation that the adaptive loop solves, estimates and refines."""

    def solve(self, resolution: ResolutionT) -> StateT:
        """SOLVE on a resolution."""
        ...

    def estimate(self, before: StateT | None, now: StateT) -> float:
        """ESTIMATE the relative error of the later of two states; infinite where nothing is known."""
        ...

    def indicators(self, now: StateT) -> Array:
        """Squared local indicators (C,) ≥ 0 of the error of a state; a single one where there are no parts."""
        ...

    def refine(self, resolution: ResolutionT, now: StateT, marked: Array) -> ResolutionT | None:
        """REFINE marked parts (bool, (C,)); None where nothing finer is allowed."""
        ...


class OutOfBudget(Exception):
    """Raised inside ``solve`` when the time allowed is used up."""


class Inadmissible(Exception):
    """Raised inside ``solve`` where a resolution has no solution of use: the best state before is the result."""

    def __init__(self, status: Status, detail: str = "") -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


def doerfler(indicators: Array, theta: float) -> Array:
    """The fewest parts (bool, (C,)) that hold at least the share theta of the sum of the indicators.

    >>> doerfler(np.array([1.0, 8.0, 2.0, 1.0]), 0.7).tolist()
    [False, True, True, False]
    """
    order = np.argsort(indicators)[::-1]
    reached = np.cumsum(indicators[order])
    count = int(np.searchsorted(reached, theta * reached[-1])) + 1 if len(order) and reached[-1] > 0 else 0
    marked = np.zeros(len(indicators), dtype=bool)
    marked[order[:count]] = True
    return marked


def stagnates(measures: Sequence[float], patience: int, gain: float) -> bool:
    """Whether none of the last ``patience`` measures of an error is below ``gain`` times the least one before.

    >>> stagnates([1.0, 0.1, 0.09, 0.2, 0.1], 3, 0.8), stagnates([1.0, 0.1, 0.09, 0.2, 0.01], 3, 0.8)
    (True, False)
    """
    early = measures[: len(measures) - patience]
    return len(early) > 0 and bool(min(measures[-patience:]) >= gain * min(early)) and bool(np.isfinite(min(early)))


class AdaptiveRecord(Generic[StateT, IterationT]):
    """The iterations of a loop so far, with the best state and its estimate."""

    def __init__(self) -> None:
        self.iterations: list[IterationT] = []
        self.estimates: list[float] = []
        self.last: StateT | None = None
        self.best: StateT | None = None
        self.best_estimate = np.inf

    def choose(self, state: StateT, estimate: float) -> None:
        """Make a state the best one."""
        self.best, self.best_estimate = state, estimate

    def result(self, status: Status, detail: str = "") -> AdaptiveResult[StateT, IterationT]:
        """The best state so far, for a loop that ends with a status and a reason."""
        assert self.best is not None
        return AdaptiveResult(self.best, tuple(self.iterations), self.best_estimate, status, detail)


@dataclass(frozen=True)
class AdaptiveLoop:
    """Settings of the loop: how it marks, and when it gives up.

    theta : share of the squared indicators that marked parts hold
    most : iterations at most
    patience : iterations in a row that may fail to lower the best estimate by the factor ``gain``; None where the
        verdict of the method decides instead
    """

    theta: float = DOERFLER_SHARE
    most: int = 30
    patience: int | None = 3
    gain: float = GAIN

    def run(
        self,
        discretisation: AdaptiveDiscretisation[ResolutionT, StateT],
        resolution: ResolutionT,
        tol: float,
        over: Callable[[], Status | None],
        describe: Callable[[StateT, float, float], IterationT],
        verdict: Callable[[StateT, float], Status | None] | None = None,
        record: AdaptiveRecord[StateT, IterationT] | None = None,
        better: Callable[[StateT, float], bool] | None = None,
        report: Callable[[StateT, float], None] | None = None,
    ) -> AdaptiveResult[StateT, IterationT]:
        """Iterate until the estimate is below ``tol``, or time, resolution or progress are at an end.

        over : the status of a solve whose time is used up, None before
        describe : the record of an iteration, from its state, estimate and seconds
        verdict : the status with which a state and its estimate end the loop, None where it goes on; by default a loop
            converges where the estimate is below ``tol``
        record : where the iterations are kept; a limit or Ctrl-C that ends a solve finds them there
        better : whether a new state with this estimate replaces the best one; by default where its estimate is no
            larger
        report : called with a state and its estimate after they are recorded
        """
        progress: AdaptiveRecord[StateT, IterationT] = AdaptiveRecord() if record is None else record
        while True:
            begin = perf_counter()
            try:
                now = discretisation.solve(resolution)
                estimate = discretisation.estimate(progress.last, now)
            except OutOfBudget:
                if progress.best is None:
                    raise
                return progress.result(over() or Status.BUDGET)
            except Inadmissible as stop:
                if progress.best is None:
                    raise
                return progress.result(stop.status, stop.detail)
            progress.last = now
            progress.estimates.append(estimate)
            progress.iterations.append(describe(now, estimate, perf_counter() - begin))
            comparable = progress.best is not None and np.isfinite(progress.best_estimate)
            if not comparable or (estimate <= progress.best_estimate if better is None else better(now, estimate)):
                progress.choose(now, estimate)
            if report is not None:
                report(now, estimate)
            converged = Status.CONVERGED if estimate <= tol else None
            status = (converged if verdict is None else verdict(now, estimate)) or over()
            if status is not None:
                return progress.result(status)
            if self.patience is not None and stagnates(progress.estimates, self.patience, self.gain):
                return progress.result(Status.STALLED, "refinement does not lower the estimate any more")
            finer = None
            if len(progress.iterations) < self.most:
                marked = doerfler(discretisation.indicators(now), self.theta)
                finer = discretisation.refine(resolution, now, marked)
            if finer is None:
                return progress.result(Status.STALLED, "the finest resolution allowed was reached")
            resolution = finer
