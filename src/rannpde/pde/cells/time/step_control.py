"""The lengths of the steps of a march: intervals of a binary tree over the whole time, or over equal parts of it.

Few lengths occur, so that factors serve many steps, and the last step ends where time does.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2, sqrt

from rannpde.arrays import Array
from rannpde.pde.cells.tuning import CellsTuning

MAX_LEVEL = 40
"""Steps are never shorter than 2 to the minus this of a part of the time."""


@dataclass(frozen=True, eq=False)
class CellTrialStep:
    """Step number ``position`` at a level of the ladder, its stages, its error, and the partial derivatives used."""

    level: int
    position: int
    stages: Array
    error: float
    partials: list[list[Array]]


class CellStepController:
    """Where a march is, and how long its next step may be.

    span, parts : the whole time and how many parts of it are halved; level : how often, at first
    tol : of the error of a step at the end of time, which is of that order in its length (see ``allowed``)
    fixed : whether all steps are of one length
    patience : steps of one length before they are doubled
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
        """Steps of the present length up to the end."""
        return int(self.segments * 2**self.level - self.position)

    @property
    def length(self) -> float:
        return self.span / (self.segments * 2**self.level)

    @property
    def time(self) -> float:
        """From the start."""
        return self.position * self.length

    @property
    def too_short(self) -> bool:
        """Whether steps have become too short to go on."""
        return self.level > MAX_LEVEL

    def allowed(self, level: int, position: int) -> float:
        """The error of a step up to the time t: tol·√(T/t).

        Such steps leave tol·√(log of their number) in L² over the whole time T, however short the first ones are. The
        layers of a start that does not agree with the boundary are worth no more.
        """
        return self.tol * sqrt(self.segments * 2**level / (position + 1))

    def decide(self, trial: CellTrialStep) -> CellTrialStep | None:
        """The step to take, this or an earlier one; None where a shorter one is to be tried.

        Where a shorter step had no smaller error, the functions of space cannot follow, and no step will mend it: the
        longer one is taken, and longer ones after it.
        """
        if self.fixed or trial.error <= self.allowed(trial.level, trial.position):
            self.spatial_error = 0.0
            return trial
        if trial.error <= 2 * self.spatial_error:
            return trial
        before = self.rejected
        if before is None or trial.error < self.tuning.spatial_error_ratio * before.error:
            deeper = max(1, ceil(-log2(self._factor(trial))))
            self._shorten(min(3, deeper) if trial.position else 3)  # a start may be of any order
            self.rejected = trial
            return None
        self.spatial_error = before.error
        return before

    def corrections_failed(self) -> None:
        """The corrections of a step did not converge: shorter ones, for a while."""
        self.failed_level, self.cooldown, self.rejected = self.level, self.tuning.steps_per_factor, None
        self._shorten(1 if self.position else 3)

    def advance(self, trial: CellTrialStep) -> None:
        """A step was taken."""
        self.level, self.position, self.rejected = trial.level, trial.position + 1, None
        self.cooldown -= 1
        if self.cooldown <= 0:
            self.failed_level = -1
        self.repeats = self.repeats + 1 if trial.level == self.last else 1
        self.last = trial.level
        if not self.fixed and self.left >= self.tuning.steps_per_factor:
            self._lengthen(self._factor(trial))

    def _lengthen(self, factor: float) -> None:
        """Longer steps where they are allowed: by four, as new factors cost many steps, by two after a while."""
        for rise, wanted in ((2, 1), (1, self.patience)):
            room = self.level - rise > self.failed_level and self.level >= rise
            easy = factor > 2**rise or (self.spatial_error > 0 and rise == 1)
            if room and easy and self.position % 2**rise == 0 and (self.repeats >= wanted or self.spatial_error > 0):
                self.level, self.position = self.level - rise, self.position // 2**rise
                return

    def _shorten(self, deeper: int) -> None:
        self.level, self.position = self.level + deeper, self.position * 2**deeper

    def _factor(self, trial: CellTrialStep) -> float:
        """How much longer a step may be."""
        allowed = self.allowed(trial.level, trial.position)
        return float(0.85 * (allowed / max(trial.error, 1e-300)) ** (1 / self.order))
