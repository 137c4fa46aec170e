"""What the user sees while cells run: a live bar on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from types import TracebackType

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from rannpde.studies.cell import StudyCell
from rannpde.studies.run.cell import Result
from rannpde.studies.run.fit import FitResult
from rannpde.studies.run.runner import Failure

PLAIN_INTERVAL = 15.0
"""Seconds between lines when the output is not a terminal."""


class Display:
    """LinesIteration ``notice`` to run_cells, inside the context.

    The time left is the time so far, times the ratio of the guessed costs of what is left and what is done.
    """

    def __init__(self, total: int, work: Sequence[StudyCell], console: Console) -> None:
        self._console, self._live = console, console.is_terminal
        self._total, self._kept, self._done, self._failed = total, total - len(work), 0, 0
        self._cost, self._spent = sum(cell.cost for cell in work), 0.0
        self._started = self._spoken = time.monotonic()
        self._errors: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
        columns = (SpinnerColumn(), BarColumn(16), MofNCompleteColumn(), TextColumn("{task.description}"))
        self._bar = Progress(*columns, console=console, disable=not self._live)
        self._task = self._bar.add_task("starting", total=total, completed=self._kept)

    def __enter__(self) -> Display:
        self._bar.start()
        if not self._live and self._kept < self._total:
            again = f", {self._kept} of them finished before" if self._kept else ""
            self._console.print(f"{self._total} cells{again}", highlight=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def notice(self, cell: StudyCell, outcome: Result | Failure) -> None:
        """Record that a cell is done."""
        self._done += 1
        self._spent += cell.cost
        if isinstance(outcome, Failure):
            self._failed += 1
            self._console.print(f"failed: {title(cell)}: {outcome.reason}", style="red", markup=False, soft_wrap=True)
        elif isinstance(outcome, FitResult):
            self._errors[cell.study, cell.curve].append((cell.widths[-1], outcome.error))
        text = self._status(cell, outcome)
        self._bar.update(self._task, completed=self._kept + self._done, description=text)
        now = time.monotonic()
        if not self._live and now - self._spoken >= PLAIN_INTERVAL:
            self._spoken = now
            line = f"{self._kept + self._done}/{self._total}, {text}"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _status(self, cell: StudyCell, outcome: Result | Failure) -> str:
        """The line of progress, the most important first, as a narrow terminal cuts its end."""
        left = (time.monotonic() - self._started) * (self._cost - self._spent) / max(self._spent, 1.0)
        parts = [f"about {duration(left)} left"]
        if self._failed:
            parts.append(f"{self._failed} failed")
        if not isinstance(outcome, Failure):
            parts.append(f"error {outcome.last_error:.3g}")
        slope = self._slope(cell)
        if slope is not None:
            parts.append(f"slope {slope:+.2f}")
        return ", ".join([*parts, title(cell)])

    def _slope(self, cell: StudyCell) -> float | None:
        """The slope of the current curve, from the cells of this run."""
        pairs = self._errors[cell.study, cell.curve]
        if len({width for width, _ in pairs}) < 3:
            return None
        logs = np.log(np.array(pairs, dtype=float))
        return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def title(cell: StudyCell) -> str:
    """Which cell, in words."""
    return f"{cell.study}, {cell.curve}, N = {cell.widths[-1]}, seed {cell.seed}"


def duration(seconds: float) -> str:
    """5 s, 3 min, 2.5 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
