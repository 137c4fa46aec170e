"""How a solve is observed and how it ends: progress, the budget, and the status that all methods share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from math import isfinite

from rannpde.pde.budget import Budget


class Status(Enum):
    """Why a solve ended. ``str(status)`` is a sentence, ``status.converged`` whether the wanted error was reached."""

    CONVERGED = "two adaptive iterations agree to the tolerance"
    EVENT = "a terminal event ended the integration in time, and two adaptive iterations agree up to it"
    DISAGREE = "the last two adaptive iterations do not agree to the tolerance"
    STALLED = "more features do not bring the adaptive iterations together"
    VETOED = "the adaptive iterations agree, but the solution does not satisfy its equations"
    UNDETERMINED = "the equations and conditions do not determine the solution"
    NEWTON = "the Gauss–Newton iteration did not converge"
    INTEGRATOR = "the integrator could not go on"
    BLOW_UP = "the solution grew beyond all bounds"
    BUDGET = "the time allowed was used up"
    INTERRUPTED = "interrupted"

    @property
    def converged(self) -> bool:
        return self in (Status.CONVERGED, Status.EVENT)

    @property
    def by_caller(self) -> bool:
        """Whether the clock or the keyboard, not the problem, ended it."""
        return self in (Status.BUDGET, Status.INTERRUPTED)

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


@dataclass(frozen=True)
class Monitor:
    """What observes a solve from outside: it reports progress and holds the budget.

    progress : called with a Progress after every step
    budget : the time that the solve may take
    """

    progress: Callable[[Progress], None] | None = None
    budget: Budget = field(default_factory=Budget)

    @property
    def elapsed(self) -> float:
        """Seconds since the solve began."""
        return self.budget.elapsed

    @property
    def exhausted(self) -> bool:
        """Whether the budget is used up."""
        return self.budget.exhausted

    def rest(self) -> Monitor:
        """A monitor for a solve within this one, with the time that is left, but at least a tenth of a second."""
        limited = self.budget.seconds is not None
        return Monitor(self.progress, Budget(max(self.budget.remaining, 0.1) if limited else None))

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
