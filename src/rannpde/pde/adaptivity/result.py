"""The result of an adaptive loop, and how its iterations are reported and stored in files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from rannpde.pde.monitor import Status

StateT = TypeVar("StateT")
IterationT = TypeVar("IterationT")


@dataclass(frozen=True)
class Iteration:
    """A record of one iteration of an adaptive loop; None where a method has no such number.

    width : how many features, or what ``counted`` names instead, such as cells
    steps : of Newton's method, or in time
    difference : relative L² difference to the iteration before, the largest over the fields; infinite where unknown
    residual : relative, on held-out points, or the largest over the cells; infinite where unknown
    degree : of the functions of a cell; rank, nodes : of a basis and its quadrature; tolerance : of the iteration
    counted : what ``width`` counts
    """

    width: int
    steps: int
    difference: float
    seconds: float
    residual: float = np.inf
    degree: int | None = None
    rank: int | None = None
    nodes: int | None = None
    tolerance: float | None = None
    counted: str = "features"

    def __str__(self) -> str:
        parts = [f"tolerance {self.tolerance:.1e}"] if self.tolerance is not None else []
        parts.append(f"{self.width} {self.counted}" + (f" of degree {self.degree}" if self.degree is not None else ""))
        parts += [f"rank {self.rank}"] if self.rank is not None else []
        parts += [f"{self.nodes} nodes"] if self.nodes is not None else []
        parts.append(f"{self.steps} step{'s' * (self.steps != 1)}")
        parts += [f"residual {self.residual:.1e}"] if np.isfinite(self.residual) else []
        parts.append(f"{self.seconds:.2f} s")
        return ", ".join([*parts, *([f"change {self.difference:.1e}"] if np.isfinite(self.difference) else [])])


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
    return [f"iteration {number}: {record}" for number, record in enumerate(iterations, start=1)]


def iteration_table(iterations: Iterable[object]) -> list[dict[str, Any]]:
    """The fields of every record as data for JSON: infinity, which stands for unknown values, becomes text."""
    return [{name: "inf" if value == np.inf else value for name, value in vars(each).items()} for each in iterations]


def iterations_from(kind: type[IterationT], table: Iterable[dict[str, Any]]) -> tuple[IterationT, ...]:
    """The records that ``iteration_table`` made."""
    return tuple(kind(**{name: np.inf if value == "inf" else value for name, value in row.items()}) for row in table)
