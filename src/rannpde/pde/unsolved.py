"""The result of a solve whose time was too short for any solution: the initial guess, with a status that says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.domains.domain import SpaceTime
from rannpde.pde.monitor import Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import Choice, Solution
from rannpde.pde.start import first_guess


@dataclass(frozen=True, eq=False)
class InitialGuess:
    """The initial values at the first time and NaN beyond it; without time, what ``first_guess`` makes of the data."""

    problem: Problem

    widths = (0,)

    @property
    def dim(self) -> int:
        return self.problem.domain.dim

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * self.dim)

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """∂^α of every field at points (M, n): (M, fields)."""
        values = np.array(first_guess(self.problem).derivative(points, derivative), dtype=float)
        domain = self.problem.domain
        if isinstance(domain, SpaceTime):
            values[points[:, 0] > domain.time[0]] = np.nan
        return values

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays for a file: the problem says it all."""
        return {"function": "initial guess"}, {}


@dataclass(frozen=True)
class UnsolvedHistory:
    """The history of a solve that finished no iteration."""

    advice = "give it more time"

    def lines(self) -> list[str]:
        """The lines of a report."""
        return []

    def to_table(self) -> dict[str, Any]:
        """The history as data that JSON can hold."""
        return {}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> UnsolvedHistory:
        return cls()


def unsolved(problem: Problem, status: Status, why: str, seconds: float) -> Solution:
    """The initial guess as a solution that did not converge, and whose error is not known."""
    return Solution(
        problem=problem, fields=problem.fields, function=InitialGuess(problem), status=status,
        detail=f"{status} before there was any solution; this is the initial guess",
        estimate=np.inf, held_out={}, losses={}, integrals={}, history=UnsolvedHistory(),
        method=Choice("unsolved", "initial guess", why), seconds=seconds,
    )  # fmt: skip
