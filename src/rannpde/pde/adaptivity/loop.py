"""SOLVE → ESTIMATE → MARK → REFINE, whatever is solved on whatever resolution.

A discretisation knows how to solve on a resolution, how to estimate the error of what it found, which indicators its
parts have, and how to refine where it is told. The loop knows when to stop, and keeps what was best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.adaptivity.result import StateT

ResolutionT = TypeVar("ResolutionT")


class AdaptiveDiscretisation(Protocol[ResolutionT, StateT]):
    """What the loop drives."""

    def solve(self, resolution: ResolutionT) -> StateT:
        """SOLVE on a resolution."""
        ...

    def estimate(self, before: StateT | None, now: StateT) -> float:
        """ESTIMATE the relative error of the later of two states; infinite where nothing is known."""
        ...

    def indicators(self, now: StateT) -> Array:
        """Squared local indicators (C,) ≥ 0 of the error of a state."""
        ...

    def refine(self, resolution: ResolutionT, now: StateT, marked: Array) -> ResolutionT | None:
        """REFINE marked parts (bool, (C,)); None where nothing finer is allowed."""
        ...


class OutOfBudget(Exception):
    """Raised inside ``solve`` when the time allowed is used up."""


class StopReason(Enum):
    """Why the loop ended."""

    REACHED = "the estimate is below the tolerance"
    STAGNATED = "refinement does not lower the estimate any more"
    EXHAUSTED = "the finest resolution allowed was reached"
    TIME = "the time allowed was used up"


@dataclass(frozen=True, eq=False)
class AdaptiveOutcome(Generic[StateT]):
    """The best state with its estimate, all estimates in turn, and why the loop ended."""

    state: StateT
    estimate: float
    estimates: tuple[float, ...]
    reason: StopReason


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


@dataclass(frozen=True)
class AdaptiveLoop:
    """How the loop marks and when it gives up.

    theta : share of the squared indicators that marked parts hold
    most : iterations at most
    patience : iterations in a row that may fail to lower the best estimate by the factor ``gain``
    """

    theta: float = 0.5
    most: int = 30
    patience: int = 3
    gain: float = 0.8

    def run(
        self,
        discretisation: AdaptiveDiscretisation[ResolutionT, StateT],
        resolution: ResolutionT,
        tol: float,
        over: Callable[[], bool],
        tell: Callable[[StateT, float], None],
    ) -> AdaptiveOutcome[StateT]:
        """Iterate until the estimate is below ``tol``, or time, resolution or progress are at an end.

        over : whether the time is used up; tell : called with each state and its estimate
        """
        before: StateT | None = None
        best: tuple[StateT, float] | None = None
        estimates: list[float] = []
        idle = 0
        while True:
            try:
                now = discretisation.solve(resolution)
                estimate = discretisation.estimate(before, now)
            except OutOfBudget:
                if best is None:
                    raise
                return AdaptiveOutcome(best[0], best[1], tuple(estimates), StopReason.TIME)
            estimates.append(estimate)
            tell(now, estimate)
            better = best is None or estimate <= best[1] or not np.isfinite(best[1])
            idle = 0 if best is None or estimate < self.gain * best[1] or not np.isfinite(best[1]) else idle + 1
            if better:
                best = now, estimate
            assert best is not None
            reason = StopReason.REACHED if estimate <= tol else None
            if reason is None and over():
                reason = StopReason.TIME
            if reason is None and idle >= self.patience:
                reason = StopReason.STAGNATED
            if reason is None and len(estimates) >= self.most:
                reason = StopReason.EXHAUSTED
            finer = None
            if reason is None:
                finer = discretisation.refine(resolution, now, doerfler(discretisation.indicators(now), self.theta))
                reason = StopReason.EXHAUSTED if finer is None else None
            if reason is not None or finer is None:
                return AdaptiveOutcome(best[0], best[1], tuple(estimates), reason or StopReason.EXHAUSTED)
            before, resolution = now, finer
