"""The resources that a solve may use: time, asked inside every loop, and memory, asked before it is taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter


@dataclass(frozen=True)
class Budget:
    """The time that a solve may take.

    seconds : time allowed from the moment at which the budget was made; None for no limit
    started : that moment, in seconds of ``time.perf_counter``

    >>> Budget(seconds=60.0).exhausted
    False
    """

    seconds: float | None = None
    started: float = field(default_factory=perf_counter)

    @property
    def elapsed(self) -> float:
        """Seconds since the budget was made."""
        return perf_counter() - self.started

    @property
    def remaining(self) -> float:
        """Seconds that are left, never negative; infinite where there is no limit."""
        return float("inf") if self.seconds is None else max(self.seconds - self.elapsed, 0.0)

    @property
    def exhausted(self) -> bool:
        """Whether the time is used up."""
        return self.seconds is not None and self.elapsed > self.seconds
