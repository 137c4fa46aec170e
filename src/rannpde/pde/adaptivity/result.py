"""What an adaptive loop gives back, and how its iterations are reported and stored in files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from rannpde.pde.monitor import Status

StateT = TypeVar("StateT")
IterationT = TypeVar("IterationT")


@dataclass(frozen=True, eq=False)
class AdaptiveResult(Generic[StateT, IterationT]):
    """The best state of an adaptive loop, and how the loop ended.

    iterations : a record of each iteration; estimate : of the relative L² error of the best state
    status, detail : why the loop ended, and a sentence about it where the status does not say all
    others : states that were computed and not chosen
    """

    best: StateT
    iterations: tuple[IterationT, ...]
    estimate: float
    status: Status
    detail: str = ""
    others: tuple[StateT, ...] = ()


def iteration_lines(iterations: Sequence[object]) -> list[str]:
    """One line of the report for each iteration."""
    return [f"iteration {number}: {one}" for number, one in enumerate(iterations, start=1)]


def iteration_table(iterations: Iterable[object]) -> list[list[Any]]:
    """The fields of every record as JSON-able rows; what is infinite, because it is not known, is None."""
    return [[None if value == np.inf else value for value in vars(one).values()] for one in iterations]


def iterations_from(kind: type[IterationT], table: Iterable[Sequence[Any]]) -> tuple[IterationT, ...]:
    """The records that ``iteration_table`` made."""
    return tuple(kind(*(np.inf if value is None else value for value in row)) for row in table)
