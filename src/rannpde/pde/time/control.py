"""Step-size control: the settings of the adaptive steppers, the factor of the next step, and dyadic steps.

Two controllers share the same formula, h_new = h · safety · (allowed / error)^(1/order) (Hairer & Wanner, Solving ODEs
II, IV.8). The free one takes any length; the dyadic one takes only intervals of a binary tree, so that few lengths
occur and the factorisations of one length serve many steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil, log2, sqrt
from typing import Generic, TypeVar

import numpy as np

from rannpde.pde.tolerance import ALGEBRA_SHARE, MUCH_SMALLER, UNBOUNDED

Factors = TypeVar("Factors")
Payload = TypeVar("Payload")

DEEPEST_LEVEL = 40
"""Dyadic steps are never shorter than a segment of the time over 2 to this power."""
SAFETY = 0.85
"""Factor of the step that the error estimate would just allow."""
HIGH_ORDER_TOLERANCE = 1e-6
"""Tolerance below which a method of higher order takes less time, although its steps cost more: five stages instead of
three, and collocation instead of ETDRK4."""


@dataclass(frozen=True)
class StepControl:
    """Step sizes and Newton iterations of the adaptive steppers.

    newton_iterations : in one step at most; a smaller step is better than more of them
    growth, shrink, safety : largest and smallest factor of successive steps, and the factor of the step that the
        error estimate would just allow (Hairer & Wanner, IV.8)
    rounding : corrections below this share of the state are rounding, which Newton's method cannot improve
    blow_up : a solution that is this many times its scale counts as a blow-up if steps are as short as before a pole of
        order two, which is that large at blow_up^(-1/2) of the time before it; bounded sources make large solutions
        too, but not small steps
    most_steps, judged_after : an integration ends after ``most_steps``, or when after ``judged_after`` steps it would
        need more than ``most_steps`` at its pace: a wave that grows at an outflow went on for minutes; layers in
        time take some dozen small steps, not a thousand
    scipy_share : share of the tolerance that SciPy's integrators get: they bound the error of a step, entry by entry,
        and errors add up over the steps (measured on heat and transport)
    """

    newton_iterations: int = 12
    growth: float = 1 / MUCH_SMALLER
    shrink: float = MUCH_SMALLER
    safety: float = SAFETY
    rounding: float = 50 * float(np.finfo(float).eps)
    blow_up: float = UNBOUNDED
    most_steps: int = 100_000
    judged_after: int = 1000
    scipy_share: float = ALGEBRA_SHARE


def step_factor(allowed: float, error: float, order: int, safety: float = SAFETY) -> float:
    """The factor by which a step may be longer, for an error of that order in its length.

    >>> round(step_factor(1e-6, 1e-6 / 2**4, 4, safety=1.0), 9)
    2.0
    """
    return float(safety * (allowed / max(error, 1e-300)) ** (1.0 / order))


@dataclass
class FactorCache(Generic[Factors]):
    """The factorisations of the last few step lengths: the storage policy of a stepper.

    capacity : lengths whose factors are held at most; the oldest is dropped first, before a new one is made. One is
        enough where every step has its own length; a dyadic controller alternates between two or three.

    >>> cache = FactorCache[str](2)
    >>> for step in (1.0, 0.5, 0.25):
    ...     cache.make_room()
    ...     cache[step] = f"factors of {step}"
    >>> sorted(cache)
    [0.25, 0.5]
    """

    capacity: int
    held: dict[float, Factors] = field(default_factory=dict)

    def get(self, step: float) -> Factors | None:
        """The factors of a step of that length, if they are held."""
        return self.held.get(step)

    def __getitem__(self, step: float) -> Factors:
        return self.held[step]

    def __setitem__(self, step: float, factors: Factors) -> None:
        self.held[step] = factors

    def __iter__(self) -> Iterator[float]:
        return iter(self.held)

    def make_room(self) -> None:
        """Drop the oldest until one more fits: before it is made, for both may not fit into memory."""
        while len(self.held) >= self.capacity:
            del self.held[next(iter(self.held))]

    def drop(self, step: float) -> None:
        """Forget the factors of one length."""
        self.held.pop(step, None)

    def clear(self) -> None:
        """Forget all, for the Jacobian has changed."""
        self.held.clear()


@dataclass(frozen=True, eq=False)
class TrialStep(Generic[Payload]):
    """Step number ``position`` at a level of the binary tree, its error, and what the stepper computed in it."""

    level: int
    position: int
    error: float
    payload: Payload


class DyadicController(Generic[Payload]):
    """Where an integration is, and how long its next step may be: steps are intervals of a binary tree over time.

    span, segments : the whole time, and into how many equal segments it is divided before they are halved
    level : how often a segment is halved at first
    tol : of the error of a step at the end of time, which is of ``order`` in its length (see ``allowed``)
    fixed : whether all steps have one length
    patience : steps of one length before they are doubled
    wait : steps of a shorter length after Newton's method has failed with a longer one, and the least number of steps
        left for which a change of length pays
    futile : a shorter step whose error is above this share of the longer one's has not helped
    """

    def __init__(
        self,
        span: float,
        segments: int,
        level: int,
        tol: float,
        order: int,
        wait: int,
        futile: float,
        fixed: bool = False,
        patience: int = 1,
    ) -> None:
        self.span, self.segments, self.level, self.position = span, segments, level, 0
        self.tol, self.order, self.fixed, self.patience = tol, order, fixed, patience
        self.wait, self.futile = wait, futile
        self.rejected: TrialStep[Payload] | None = None
        self.spatial_error = 0.0  # the error that shorter steps did not reduce
        self.failed_level, self.cooldown = -1, 0
        self.last, self.repeats = -1, 0

    @property
    def left(self) -> int:
        """Steps of the present length up to the end."""
        return int(self.segments * 2**self.level - self.position)

    @property
    def length(self) -> float:
        return self.span / (self.segments * 2**self.level)

    @property
    def time(self) -> float:
        """The time since the start."""
        return self.position * self.length

    @property
    def too_short(self) -> bool:
        """Whether steps have become too short to go on."""
        return self.level > DEEPEST_LEVEL

    def allowed(self, level: int, position: int) -> float:
        """The error allowed to a step that ends at the time t: tol·√(T/t).

        Such steps leave tol·√(log of their number) in L² over the whole time T, however short the first ones are. The
        initial layers of data that do not agree with the boundary need no more.
        """
        return self.tol * sqrt(self.segments * 2**level / (position + 1))

    def decide(self, trial: TrialStep[Payload]) -> TrialStep[Payload] | None:
        """The step to take, this or an earlier one; None where a shorter one is to be tried.

        Where a shorter step had no smaller error, the basis in space cannot follow, and no step will change that: the
        longer one is taken, and longer ones after it.
        """
        if self.fixed or trial.error <= self.allowed(trial.level, trial.position):
            self.spatial_error = 0.0
            return trial
        if trial.error <= 2 * self.spatial_error:
            return trial
        before = self.rejected
        if before is None or trial.error < self.futile * before.error:
            deeper = max(1, ceil(-log2(self._factor(trial))))
            self._shorten(min(3, deeper) if trial.position else 3)  # the first step may be of any order
            self.rejected = trial
            return None
        self.spatial_error = before.error
        return before

    def corrections_failed(self) -> None:
        """Newton's method did not converge in a step: shorter steps follow, for a while."""
        self.failed_level, self.cooldown, self.rejected = self.level, self.wait, None
        self._shorten(1 if self.position else 3)

    def advance(self, trial: TrialStep[Payload]) -> None:
        """Record that a step was taken."""
        self.level, self.position, self.rejected = trial.level, trial.position + 1, None
        self.cooldown -= 1
        if self.cooldown <= 0:
            self.failed_level = -1
        self.repeats = self.repeats + 1 if trial.level == self.last else 1
        self.last = trial.level
        if not self.fixed and self.left >= self.wait:
            self._lengthen(self._factor(trial))

    def _lengthen(self, factor: float) -> None:
        """Longer steps where they are allowed: by four, as new factors cost many steps, by two after ``patience``."""
        for rise, wanted in ((2, 1), (1, self.patience)):
            room = self.level - rise > self.failed_level and self.level >= rise
            easy = factor > 2**rise or (self.spatial_error > 0 and rise == 1)
            if room and easy and self.position % 2**rise == 0 and (self.repeats >= wanted or self.spatial_error > 0):
                self.level, self.position = self.level - rise, self.position // 2**rise
                return

    def _shorten(self, deeper: int) -> None:
        self.level, self.position = self.level + deeper, self.position * 2**deeper

    def _factor(self, trial: TrialStep[Payload]) -> float:
        return step_factor(self.allowed(trial.level, trial.position), trial.error, self.order)
