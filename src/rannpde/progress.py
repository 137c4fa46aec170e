"""Progress on a terminal, in a notebook, or as lines in a log: a bar, and the time left where it is known."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from math import isfinite, log
from typing import Any, Protocol

from rannpde.display import in_notebook
from rannpde.errors import reject

NOTEBOOK_DELAY = 2.0
"""Seconds after which a notebook shows progress without being asked to: shorter solves need none."""
REFRESH = 0.2
"""Seconds between two drawings: five in a second look continuous and cost nothing."""


class Stage(Protocol):
    """Where a computation is: number of the iteration, seconds since the start, time reached, present estimate.

    Its text is what is shown.
    """

    @property
    def number(self) -> int: ...

    @property
    def seconds(self) -> float: ...

    @property
    def time(self) -> float | None: ...

    @property
    def estimate(self) -> float | None: ...


ProgressListener = Callable[[Any], None]
Asked = ProgressListener | bool | None
"""A function of a Progress; True for a bar, False for none; None for a bar in notebooks after two seconds."""


@dataclass
class Course:
    """How far a solve is, from the progress that it reports.

    times : first and last time of the problem, None without time; tol : wanted error; seconds : time allowed
    """

    times: tuple[float, float] | None
    tol: float
    seconds: float | None
    begun: dict[int, float] = field(default_factory=dict)
    """Iteration → seconds at which it was first heard of."""

    def fraction(self, now: Stage) -> float | None:
        """Part of this iteration that is done, in time; else how far the estimate came towards tol; None if unknown."""
        if now.time is not None and self.times is not None:
            start, end = self.times
            return min(max((now.time - start) / (end - start), 0.0), 1.0)
        if now.estimate is not None and now.estimate > 0 and self.tol < 1:
            return min(max(log(now.estimate) / log(self.tol), 0.0), 1.0)
        return None

    def left(self, now: Stage) -> str:
        """The time left in words, empty where it is not known."""
        begun = self.begun.setdefault(now.number, now.seconds)
        parts = []
        if now.time is not None and self.times is not None:
            done = self.fraction(now) or 0.0
            if done > 0.02 and now.seconds > begun:
                parts.append(f"about {_duration((now.seconds - begun) * (1 - done) / done)} left of this iteration")
        if self.seconds is not None and isfinite(self.seconds):
            parts.append(f"at most {_duration(max(self.seconds - now.seconds, 0.0))} left")
        return ", ".join(parts)


class ProgressDisplay(Protocol):
    """The protocol of displays of progress, which are closed at the end."""

    def show(self, now: Stage) -> None: ...

    def close(self) -> None: ...


@contextmanager
def bar_shown(asked: Asked, course: Course) -> Iterator[ProgressListener | None]:
    """The function that a solve calls with its progress, or None; what it shows is gone when the solve has ended."""
    if callable(asked):
        yield asked
        return
    if asked not in (None, True, False):
        reject("progress", asked, "True, False, None or a function of a Progress")
    notebook = in_notebook()
    if asked is False or (asked is None and not notebook):
        yield None
        return
    display = NotebookBar(course, 0.0 if asked else NOTEBOOK_DELAY) if notebook else console_display(course)
    try:
        yield display.show
    finally:
        display.close()


def console_display(course: Course) -> ProgressDisplay:
    """A bar where standard error is a terminal, a line per iteration elsewhere."""
    return TerminalBar(course) if sys.stderr.isatty() else LogLines()


class TerminalBar:
    """A live line by rich."""

    def __init__(self, course: Course) -> None:
        from rich.console import Console  # a terminal is needed rarely
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bars

        columns = (BarColumn(24), TextColumn("{task.description}"), TextColumn("[dim]{task.fields[left]}"))
        self.course = course
        self.bars = Bars(*columns, console=Console(stderr=True, highlight=False), transient=True)
        self.bars.start()
        self.task = self.bars.add_task("starting", total=None, left="")

    def show(self, now: Stage) -> None:
        fraction = self.course.fraction(now)
        known: dict[str, Any] = {} if fraction is None else {"completed": 100 * fraction, "total": 100}
        self.bars.update(self.task, description=escape_markup(str(now)), left=self.course.left(now), **known)

    def close(self) -> None:
        self.bars.stop()


class LogLines:
    """A line on standard error whenever an iteration has a new estimate."""

    def __init__(self) -> None:
        self.reported: set[float] = set()

    def show(self, now: Stage) -> None:
        if now.estimate is not None and now.estimate not in self.reported:
            self.reported.add(now.estimate)
            print(f"  {now}", file=sys.stderr, flush=True)

    def close(self) -> None:
        pass


class NotebookBar:
    """A bar in the output of a notebook's cell, shown after ``delay`` seconds, and removed at the end."""

    def __init__(self, course: Course, delay: float) -> None:
        self.course, self.delay = course, delay
        self.handle: Any = None
        self.drawn = -REFRESH

    def show(self, now: Stage) -> None:
        if now.seconds < self.delay or now.seconds - self.drawn < REFRESH:
            self.course.left(now)  # it notes when the iteration began
            return
        library: Any = import_module("IPython.display")  # a notebook has it
        self.drawn = now.seconds
        shown = library.HTML(bar_html(self.course.fraction(now), str(now), self.course.left(now)))
        if self.handle is None:
            self.handle = library.display(shown, display_id=True)
        else:
            self.handle.update(shown)

    def close(self) -> None:
        if self.handle is not None:
            library: Any = import_module("IPython.display")
            self.handle.update(library.HTML(""))


def bar_html(fraction: float | None, words: str, left: str) -> str:
    """A bar of HTML's own with words beside it; without a fraction it only moves.

    >>> bar_html(0.25, "iteration 1", "")
    '<progress max="1" value="0.250"></progress> iteration 1'
    """
    value = "" if fraction is None else f' value="{fraction:.3f}"'
    aside = f" <small>({escape(left)})</small>" if left else ""
    return f'<progress max="1"{value}></progress> {escape(words)}{aside}'


def escape_markup(text: str) -> str:
    """Text in which rich finds no markup."""
    return text.replace("[", r"\[")


def _duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
