"""How a solve goes on and how it ends: progress, a budget of time, and endings that methods share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from math import isfinite
from time import perf_counter


class Ending(Enum):
    """Why a solve ended. ``str(ending)`` is a sentence, ``ending.converged`` whether the wanted error was reached."""

    CONVERGED = "two passes agree to the tolerance"
    EVENT = "a terminal event ended the march, and two passes agree up to it"
    DISAGREE = "the last two passes do not agree to the tolerance"
    STALLED = "more features do not bring the passes together"
    VETOED = "the passes agree, but the solution does not satisfy its equations"
    UNDETERMINED = "the equations and conditions do not determine the solution"
    NEWTON = "the Gauss–Newton iteration did not converge"
    INTEGRATOR = "the integrator could not go on"
    BLOW_UP = "the solution grew beyond all bounds"
    BUDGET = "the time allowed was used up"
    INTERRUPTED = "interrupted"

    @property
    def converged(self) -> bool:
        return self in (Ending.CONVERGED, Ending.EVENT)

    @property
    def by_caller(self) -> bool:
        """Whether the clock or the keyboard, not the problem, ended it."""
        return self in (Ending.BUDGET, Ending.INTERRUPTED)

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Progress:
    """Where a solve is: pass and step (from 1), time reached by a march, neurons, the present estimate, seconds."""

    number: int
    step: int
    seconds: float
    time: float | None = None
    width: int | None = None
    estimate: float | None = None

    def __str__(self) -> str:
        parts = [f"pass {self.number}"]
        parts += [f"{self.width} features"] if self.width is not None else []
        parts.append(f"step {self.step}")
        parts += [f"t = {self.time:.4g}"] if self.time is not None else []
        parts += [f"estimate {self.estimate:.1e}"] if self.estimate is not None else []
        return ", ".join([*parts, f"{self.seconds:.1f} s"])


@dataclass(frozen=True)
class Watch:
    """Tells progress and knows when the time is used up.

    progress : called with a Progress after every step
    seconds : time allowed from the first moment, None for no limit
    """

    progress: Callable[[Progress], None] | None = None
    seconds: float | None = None
    begin: float = field(default_factory=perf_counter)

    @property
    def elapsed(self) -> float:
        return perf_counter() - self.begin

    @property
    def over(self) -> bool:
        return self.seconds is not None and self.elapsed > self.seconds

    def tell(
        self,
        number: int,
        step: int,
        *,
        time: float | None = None,
        width: int | None = None,
        estimate: float | None = None,
    ) -> None:
        """Progress to the caller; an estimate that is not finite is none."""
        if self.progress is not None:
            known = float(estimate) if estimate is not None and isfinite(estimate) else None
            self.progress(Progress(number, step, self.elapsed, time, width, known))
