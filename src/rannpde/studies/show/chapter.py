"""A chapter of the report: a study with its figures, tables and remarks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rannpde.studies.show.analysis import Series
from rannpde.studies.show.figures import Drawing, error_drawings
from rannpde.studies.study import Study

Size = Literal["quick", "default", "full"]


@dataclass(frozen=True)
class Table:
    """Rows of text under a heading."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Chapter:
    """One study of the report with its figures, tables and remarks, which are made from the finished curves.

    question : what the study is to answer; deviations : what differs from the paper, and why
    remarks : sentences with measured numbers; with_slopes : whether slopes of the curves have a meaning here
    """

    name: str
    study: Study
    question: str
    draw: Callable[[Sequence[Series]], list[Drawing]]
    deviations: tuple[str, ...] = ()
    tables: Callable[[Sequence[Series]], list[Table]] = lambda series: []
    remarks: Callable[[Sequence[Series]], list[str]] = lambda series: []
    with_slopes: bool = True


def plain_chapter(study: Study) -> Chapter:
    """The chapter of a user's study: error against width, on linear and on logarithmic axes."""
    return Chapter(study.name, study, "", lambda series: error_drawings(series, study.name, study.title or study.name))


def seeds(size: Size) -> tuple[int, ...]:
    """Five seeds, from which a spread can be estimated; three for a quick run."""
    return tuple(range(3 if size == "quick" else 5))


def doubling(first: int, last: int, steps: int = 1) -> tuple[int, ...]:
    """first, 2 first, 4 first, … up to last; with steps = 2 also the widths √2 between."""
    widths, k = [], 0
    while round(first * 2 ** (k / steps)) <= last:
        widths.append(round(first * 2 ** (k / steps)))
        k += 1
    return tuple(widths)
