"""Dyadic step-size control: steps are intervals of a binary tree over the whole time, or over equal segments of it.

Few step lengths occur, so that factorisations serve many steps, and the last step ends at the end of the interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2, sqrt

from rannpde.arrays import Array
from rannpde.pde.cells.tuning import CellsTuning

MAX_LEVEL = 40
"""The smallest step is 2 to the minus this of a segment."""


@dataclass(frozen=True, eq=False)
class CellTrialStep:
    """A trial step: its level and position in the binary tree, its stages, its error, and the partial derivatives
    used."""

    level: int
    position: int
    stages: Array
    error: float
    partials: list[list[Array]]


class CellStepController:
    """The current time of an integration, and the length of its next step.

    span, segments : the whole time, and the number of segments of it that are bisected; level : of bisection, at first
    tol : tolerance for the error of a step at the final time; order : of that error in the step length (see
        ``allowed``)
    fixed : whether all steps have one length; patience : number of steps of one length before it may be doubled
    """

    def __init__(
        self,
        span: float,
        segments: int,
        level: int,
        tol: float,
        order: int,
        tuning: CellsTuning,
        fixed: bool = False,
        patience: int = 1,
    ) -> None:
        self.span, self.segments, self.level, self.position = span, segments, level, 0
        self.tol, self.order, self.tuning, self.fixed, self.patience = tol, order, tuning, fixed, patience
        self.rejected: CellTrialStep | None = None
        self.spatial_error = 0.0
        self.failed_level, self.cooldown = -1, 0
        self.last, self.repeats = -1, 0

    @property
    def left(self) -> int:
        """Number of steps of the current length up to the end."""
        return int(self.segments * 2**self.level - self.position)

    @property
    def length(self) -> float:
        return self.span / (self.segments * 2**self.level)

    @property
    def time(self) -> float:
        """Time since the start."""
        return self.position * self.length

    @property
    def too_short(self) -> bool:
        """Whether the step length has fallen below the smallest one."""
        return self.level > MAX_LEVEL

    def allowed(self, level: int, position: int) -> float:
        """Return the error allowed in a step up to time t: tol·√(T/t).

        Such steps leave an error of tol·√(log of their number) in L² over the whole time T, however short the first
        ones are. Initial layers of incompatible data do not deserve a smaller one.
        """
        return self.tol * sqrt(self.segments * 2**level / (position + 1))

    def decide(self, trial: CellTrialStep) -> CellTrialStep | None:
        """Return the step to accept, this or an earlier one; None where a shorter one must be tried.

        Where a shorter step does not have a smaller error, the error is one of the spatial discretisation, which no
        step length can reduce: the longer step is accepted, and longer ones after it.
        """
        if self.fixed or trial.error <= self.allowed(trial.level, trial.position):
            self.spatial_error = 0.0
            return trial
        if trial.error <= 2 * self.spatial_error:
            return trial
        before = self.rejected
        if before is None or trial.error < self.tuning.spatial_error_ratio * before.error:
            deeper = max(1, ceil(-log2(self._factor(trial))))
            self._shorten(min(3, deeper) if trial.position else 3)  # the error of a first step may be of any order
            self.rejected = trial
            return None
        self.spatial_error = before.error
        return before

    def corrections_failed(self) -> None:
        """Shorten the steps for a while, because the corrections of a step did not converge."""
        self.failed_level, self.cooldown, self.rejected = self.level, self.tuning.steps_per_factor, None
        self._shorten(1 if self.position else 3)

    def advance(self, trial: CellTrialStep) -> None:
        """Record an accepted step, and lengthen the next one where that is allowed."""
        self.level, self.position, self.rejected = trial.level, trial.position + 1, None
        self.cooldown -= 1
        if self.cooldown <= 0:
            self.failed_level = -1
        self.repeats = self.repeats + 1 if trial.level == self.last else 1
        self.last = trial.level
        if not self.fixed and self.left >= self.tuning.steps_per_factor:
            self._lengthen(self._factor(trial))

    def _lengthen(self, factor: float) -> None:
        """Lengthen steps: by a factor of four, as new factorisations are expensive, or by two after ``patience``
        steps."""
        for rise, wanted in ((2, 1), (1, self.patience)):
            room = self.level - rise > self.failed_level and self.level >= rise
            easy = factor > 2**rise or (self.spatial_error > 0 and rise == 1)
            if room and easy and self.position % 2**rise == 0 and (self.repeats >= wanted or self.spatial_error > 0):
                self.level, self.position = self.level - rise, self.position // 2**rise
                return

    def _shorten(self, deeper: int) -> None:
        self.level, self.position = self.level + deeper, self.position * 2**deeper

    def _factor(self, trial: CellTrialStep) -> float:
        """Return the factor by which a step could be longer."""
        allowed = self.allowed(trial.level, trial.position)
        return float(0.85 * (allowed / max(trial.error, 1e-300)) ** (1 / self.order))
