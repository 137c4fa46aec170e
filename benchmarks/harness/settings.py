"""What a case is solved with: the error wanted and the time allowed, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.harness.case import Case
from rannpde import __version__
from rannpde.errors import positive_number, require

PATIENCE, LEAST = 1.5, 20.0
"""Seconds allowed unless given: this many times the goal's, and no fewer than these, in which Python has begun."""
SMALL_SECONDS = 20.0


@dataclass(frozen=True)
class Settings:
    """tol : relative L² error wanted; seconds : time allowed; small : the small version of the case"""

    tol: float
    seconds: float
    small: bool = False

    def __post_init__(self) -> None:
        require(positive_number("tol", self.tol) < 1, "tol", self.tol, "below 1")
        positive_number("seconds", self.seconds)

    @property
    def table(self) -> dict[str, Any]:
        """As a record keeps them, with the version that solves."""
        return {"tol": self.tol, "seconds": self.seconds, "small": self.small, "version": __version__}


def settings_for(case: Case, tol: float | None, seconds: float | None, small: bool) -> Settings:
    """Those of a case, unless given: the goal's error, and one and a half of its seconds.

    >>> from benchmarks.pinnacle.table import CASES
    >>> settings_for(CASES["wave-1d"], None, None, False)
    Settings(tol=1e-10, seconds=20.0, small=False)
    """
    if small:
        return Settings(tol or case.small_tol, seconds or SMALL_SECONDS, True)
    return Settings(tol or case.goal, seconds or max(LEAST, PATIENCE * case.seconds))
