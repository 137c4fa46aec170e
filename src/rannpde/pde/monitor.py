"""How a solve is observed and how it ends: progress, the budget, and the status that all methods share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from math import isfinite
from typing import Any

from rannpde.checkpoints import Cause, Ended
from rannpde.pde.budget import GRACE, Budget
from rannpde.pde.tolerance import MUCH_SMALLER


class Status(Enum):
    """Why a solve ended. ``str(status)`` is a sentence, ``status.converged`` whether the wanted error was reached."""

    CONVERGED = "two adaptive iterations agree to the tolerance"
    EVENT = "a terminal event ended the integration in time, and two adaptive iterations agree up to it"
    DISAGREE = "the last two adaptive iterations do not agree to the tolerance"
    STALLED = "more features do not bring the adaptive iterations together"
    RESIDUAL_TOO_LARGE = "the adaptive iterations agree, but the solution does not satisfy its equations"
    UNDETERMINED = "the equations and conditions do not determine the solution"
    NEWTON = "the Gauss–Newton iteration did not converge"
    INTEGRATOR = "the integrator could not go on"
    BLOW_UP = "the solution grew beyond all bounds"
    BUDGET = "the time allowed was used up"
    MEMORY = "the memory allowed was used up"
    INTERRUPTED = "interrupted"

    @property
    def converged(self) -> bool:
        return self in (Status.CONVERGED, Status.EVENT)

    @property
    def by_caller(self) -> bool:
        """Whether a limit or the keyboard, not the problem, ended it."""
        return self in (Status.BUDGET, Status.MEMORY, Status.INTERRUPTED)

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Progress:
    """Where a solve is: iteration and step (from 1), time reached, size of the basis, present estimate, seconds.

    width : how many features, or what ``counted`` names instead, such as cells
    """

    number: int
    step: int
    seconds: float
    time: float | None = None
    width: int | None = None
    estimate: float | None = None
    counted: str = "features"

    def __str__(self) -> str:
        parts = [f"iteration {self.number}"]
        parts += [f"{self.width} {self.counted}"] if self.width is not None else []
        parts.append(f"step {self.step}")
        parts += [f"t = {self.time:.4g}"] if self.time is not None else []
        parts += [f"estimate {self.estimate:.1e}"] if self.estimate is not None else []
        return ", ".join([*parts, f"{self.seconds:.1f} s"])


class Kept:
    """Holds a function from status and reason to the best solution so far; None while there is no solution."""

    def __init__(self) -> None:
        self.make: Callable[[Status, str], Any] | None = None


def status_of(stop: KeyboardInterrupt) -> tuple[Status, str]:
    """The status that an interrupt gives to a solve, and a sentence where that needs one."""
    if not isinstance(stop, Ended) or stop.cause is Cause.INTERRUPT:
        return Status.INTERRUPTED, ""
    return (Status.MEMORY, stop.detail) if stop.cause is Cause.MEMORY else (Status.BUDGET, "")


class EndedSolve:
    """The base of results: a solve ended with a status and, where that does not say all, a detail."""

    status: Status
    detail: str

    @property
    def converged(self) -> bool:
        """Whether the wanted error was reached, by the estimate or by bounds."""
        return self.status.converged

    @property
    def reason(self) -> str:
        """The reason for the end, in a sentence."""
        return self.detail or str(self.status)


@dataclass(frozen=True)
class Monitor:
    """The observer of a solve: it reports progress and holds the budget.

    progress : called with a Progress after every step
    budget : the time that the solve may take
    kept : how to make the best solution so far
    residuals : whether residuals on held-out points are reported: a second solve is only compared with the first
    """

    progress: Callable[[Progress], None] | None = None
    budget: Budget = field(default_factory=Budget)
    kept: Kept = field(default_factory=Kept, compare=False)
    residuals: bool = True

    @property
    def elapsed(self) -> float:
        """Seconds since the solve began."""
        return self.budget.elapsed

    @property
    def exhausted(self) -> bool:
        """Whether the budget is used up, or the caller has interrupted the solve."""
        return self.budget.exhausted

    @property
    def ending(self) -> Status:
        """The status of a solve that ends because the budget is used up."""
        return Status.INTERRUPTED if self.budget.interrupted else Status.BUDGET

    @property
    def ended(self) -> Status | None:
        """The status of a solve that has to end, None while the budget lasts."""
        return self.ending if self.exhausted else None

    def keep(self, make: Callable[[Status, str], Any]) -> None:
        """Remember how to make the best solution so far, with the status and the reason of an untimely end.

        What alone guards a solve (``pde/selection.py``) makes it where a limit or Ctrl-C ends the solve.
        """
        self.kept.make = make

    def within(self, share: float) -> Monitor:
        """A monitor that runs with this one, for a share of the time that is left."""
        budget = self.budget
        if budget.seconds is None:
            return self
        return replace(self, budget=replace(budget, seconds=budget.elapsed + share * budget.remaining))

    def rest(self) -> Monitor:
        """A monitor for a solve within this one, with the time that is left, or a tenth of the overrun promised."""
        budget = self.budget
        left = None if budget.seconds is None else max(budget.remaining, MUCH_SMALLER * 2 * GRACE[1])
        return replace(self, budget=replace(budget, seconds=left, started=budget.clock()))

    def tell(
        self,
        number: int,
        step: int,
        *,
        time: float | None = None,
        width: int | None = None,
        estimate: float | None = None,
        counted: str = "features",
    ) -> None:
        """Report progress to the caller; an estimate that is not finite is left out."""
        if self.progress is not None:
            known = float(estimate) if estimate is not None and isfinite(estimate) else None
            self.progress(Progress(number, step, self.elapsed, time, width, known, counted))
