"""The resources that a solve may use: time, checked in every loop, and memory, checked before it is allocated.

``watched(budget)`` makes the budget the guard of all checkpoints below. A solve ends in two stages. At its deadline the
first checkpoint raises ``Ended``; the caller that holds a usable state catches it and assembles the result; only when
that takes too long (``GRACE``), ``Ended`` is raised once more, and the solve gives back what it has. Ctrl-C moves the
deadline to the present moment: it goes the same way, so that it can never fall into the middle of an assignment.

Time is that of a clock on the wall, since this is what a person waits for. ``timed_by(time.process_time)`` measures
budgets by the processor's time of this process instead, so that what a solve finds within its seconds does not depend
on what else the machine does: tests and comparisons of solvers want that.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from types import FrameType

import numpy as np

from rannpde.checkpoints import Cause, Ended, guarded
from rannpde.pde.memory import readable, resident_memory
from rannpde.pde.tolerance import MUCH_SMALLER

GRACE = (0.1, 0.5)
"""Share of the time allowed, and seconds, within which a result is assembled after the deadline: half of the overrun
that is promised (20 % and 1 s), since what comes after it takes time too."""
TIMED_FLOPS = 1e8
"""Operations of a factorisation whose time is measured and predicted: smaller ones take milliseconds."""
FIRST_SPEEDS = {"front": 0.6, "qr": 0.5, "pivoted qr": 0.25, "svd": 0.15}
"""Speeds of factorisations relative to that of a product (OpenBLAS on one core, 1,000 columns), until one is
measured."""
READING_SHARE = MUCH_SMALLER**2
"""Share of the time that is spent on reading how much memory the process holds: negligible in every time."""
PROBE_SIZE = 384
"""Rows of the product that is timed: a few milliseconds."""

TimeSource = Callable[[], float]
"""Seconds since some moment in the past, as ``time.perf_counter`` and ``time.process_time`` return them."""

_CLOCK: ContextVar[TimeSource] = ContextVar("clock", default=perf_counter)
"""The clock that new budgets use."""


def _scheduler_tick() -> float:
    """Seconds between two steps of the scheduler: those in which POSIX counts the times of processes, or Windows."""
    return 1 / (os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 64)


RESOLVED = 2 * _scheduler_tick()
"""Seconds that every clock measures to within one half: the processor's time of a process may advance in steps of the
scheduler. With such a clock a product of 2 ms took no time, and its speed was infinite."""


@contextmanager
def timed_by(clock: TimeSource) -> Iterator[None]:
    """Budgets that are made within the block are measured by this clock, in whatever thread they are asked.

    >>> from time import process_time, sleep
    >>> with timed_by(process_time):
    ...     budget = Budget(seconds=60.0)
    >>> sleep(0.05)  # the processor rests meanwhile
    >>> budget.elapsed < 0.05
    True
    """
    token = _CLOCK.set(clock)
    try:
        yield
    finally:
        _CLOCK.reset(token)


class Interrupt:
    """Whether Ctrl-C was pressed, and when; shared by all budgets of a solve."""

    def __init__(self) -> None:
        self.pressed: float | None = None

    def press(self, now: float) -> None:
        """Ctrl-C was pressed at this moment; KeyboardInterrupt where it had been pressed before."""
        if self.pressed is not None:
            raise KeyboardInterrupt
        self.pressed = now


_INTERRUPT: ContextVar[Interrupt | None] = ContextVar("interrupt", default=None)
"""The interrupt of the enclosing ``deferred_interrupts`` block, shared by all budgets in it."""


class MeasuredSpeeds:
    """Operations per second of the last large factorisation of each kind; before the first one, estimated from a matrix
    product.

    unresolved : operations and seconds of factorisations that together were too short for the clock
    """

    def __init__(self) -> None:
        self.known: dict[str, float] = {}
        self.unresolved: dict[str, tuple[float, float]] = {}

    def predicted(self, flops: float, kind: str, clock: TimeSource) -> float:
        """The predicted seconds of a factorisation of that kind with ``flops`` operations."""
        if kind not in self.known:
            self.known[kind] = FIRST_SPEEDS.get(kind, 1.0) * self._product_speed(clock)
        return flops / self.known[kind]

    def _product_speed(self, clock: TimeSource) -> float:
        """Operations per second of a product of two matrices, repeated until the clock resolves the time.

        Where the clock hardly advances, the repetition ends after ten times as long by the clock on the wall.
        """
        if "product" not in self.known:
            matrix = np.ones((PROBE_SIZE, PROBE_SIZE))
            begin, wall, flops, seconds = clock(), perf_counter(), 0.0, 0.0
            while seconds < RESOLVED and perf_counter() - wall < RESOLVED / MUCH_SMALLER:
                matrix @ matrix
                flops, seconds = flops + 2.0 * PROBE_SIZE**3, clock() - begin
            self.known["product"] = flops / max(seconds, 1e-9)
        return self.known["product"]

    def record(self, flops: float, kind: str, seconds: float) -> None:
        """Record the time of a factorisation; those too short for the clock are added until it resolves their time."""
        before, spent = self.unresolved.pop(kind, (0.0, 0.0))
        flops, seconds = before + flops, spent + seconds
        if seconds < RESOLVED:
            self.unresolved[kind] = flops, seconds
        else:
            self.known[kind] = flops / seconds


@dataclass(frozen=True)
class Budget:
    """The time and the memory that a solve may take.

    seconds : time allowed from the moment at which the budget was made; None for no limit
    started : that moment, in seconds of the clock
    memory : bytes allowed beyond those that the process held at that moment; None for no limit
    held : bytes that it held then
    interrupt, speeds : shared by the budgets of all parts of a solve
    clock : the source of the time, that of ``timed_by`` unless given

    >>> Budget(seconds=60.0).exhausted
    False
    """

    seconds: float | None = None
    started: float = field(default_factory=lambda: _CLOCK.get()())
    memory: float | None = None
    held: float = field(default_factory=lambda: resident_memory() or 0.0)
    interrupt: Interrupt = field(default_factory=lambda: _INTERRUPT.get() or Interrupt(), compare=False)
    speeds: MeasuredSpeeds = field(default_factory=MeasuredSpeeds, compare=False)
    clock: TimeSource = field(default_factory=lambda: _CLOCK.get(), compare=False)

    @property
    def elapsed(self) -> float:
        """Seconds since the budget was made."""
        return self.clock() - self.started

    @property
    def deadline(self) -> float:
        """The moment at which it is used up; infinite where there is no limit."""
        limit = float("inf") if self.seconds is None else self.started + self.seconds
        return limit if self.interrupt.pressed is None else min(limit, self.interrupt.pressed)

    @property
    def remaining(self) -> float:
        """Seconds that are left, never negative; infinite where there is no limit."""
        return max(self.deadline - self.clock(), 0.0)

    @property
    def exhausted(self) -> bool:
        """Whether the time is used up, or the caller has interrupted the solve."""
        return self.clock() > self.deadline

    def press(self) -> None:
        """End the solve at its next checkpoint, as Ctrl-C does."""
        if self.interrupt.pressed is None:
            self.interrupt.press(self.clock())

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed before the time was used up."""
        pressed = self.interrupt.pressed
        return pressed is not None and (self.seconds is None or pressed <= self.started + self.seconds)

    @property
    def latest(self) -> float:
        """The moment at which a result must be assembled; Ctrl-C does not change it."""
        share, seconds = GRACE
        return float("inf") if self.seconds is None else self.started + (1 + share) * self.seconds + seconds


class Watch:
    """A guard of checkpoints that holds a budget: it raises Ended at the deadline, and once more at the latest moment.

    shortage : what was refused for want of memory, with its size; empty where nothing was
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.raised = 0
        self.shortage = ""
        self.next_reading = self.now()  # of the memory that the process holds

    def now(self) -> float:
        return self.budget.clock()

    def check(self) -> None:
        now = self.now()
        if self.raised == 0 and now > self.budget.deadline:
            self._end()
        if self.raised == 1 and now > self.budget.latest:
            self._end()
        if self.budget.memory is not None and now >= self.next_reading:
            self.reserve(0.0, "the present iteration")
            after = self.now()
            self.next_reading = after + (after - now) / READING_SHARE

    def reserve(self, size: float, what: str) -> None:
        memory = self.budget.memory
        if memory is None or self.shortage:
            return
        taken = max((resident_memory() or 0.0) - self.budget.held, 0.0)
        if taken + size > memory:
            self.shortage = (
                f"{what} would take the memory from {readable(taken)} to {readable(taken + size)}, more than the "
                f"{readable(memory)} allowed"
                if size
                else f"{what} takes {readable(taken)}, more than the {readable(memory)} allowed"
            )
            self._end()

    def begin(self, flops: float, kind: str) -> None:
        if flops < TIMED_FLOPS or self.raised > 1:
            return
        limit = self.budget.deadline if self.raised == 0 else self.budget.latest
        if limit == float("inf"):
            return
        predicted = self.budget.speeds.predicted(flops, kind, self.budget.clock)
        share, seconds = GRACE
        if self.now() + predicted > limit + share * (limit - self.budget.started) + seconds:
            self._end()

    def affordable(self, share: float, kind: str) -> float:
        if self.budget.seconds is None:
            return float("inf")
        return share * self.budget.remaining / self.budget.speeds.predicted(1.0, kind, self.budget.clock)

    def finish(self, flops: float, kind: str, seconds: float) -> None:
        if flops >= TIMED_FLOPS:
            self.budget.speeds.record(flops, kind, seconds)

    @property
    def cause(self) -> Cause:
        """Why the computation has to end."""
        if self.shortage:
            return Cause.MEMORY
        return Cause.INTERRUPT if self.budget.interrupted else Cause.TIME

    def _end(self) -> None:
        self.raised += 1
        raise Ended(self.cause, self.shortage)


@contextmanager
def watched(budget: Budget) -> Iterator[Watch]:
    """Within the block, checkpoints enforce the budget, and Ctrl-C ends the solve at the next of them.

    A second Ctrl-C raises KeyboardInterrupt at once.
    """
    watch = Watch(budget)
    with _pressing(budget.interrupt, budget.clock), guarded(watch):
        yield watch


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Within the block, Ctrl-C ends solves at their next checkpoints and nothing else, so that no result is lost.

    What is done with a result, between two solves or after the last one, is not interrupted by the first Ctrl-C, but by
    the second. A nested block changes nothing.
    """
    if _INTERRUPT.get() is not None:
        yield
        return
    interrupt = Interrupt()
    token = _INTERRUPT.set(interrupt)
    try:
        with _pressing(interrupt, _CLOCK.get()):
            yield
    finally:
        _INTERRUPT.reset(token)


@contextmanager
def _pressing(interrupt: Interrupt, clock: TimeSource) -> Iterator[None]:
    """Within the block, Ctrl-C presses ``interrupt``.

    The handler of the signal is changed only in the main thread and only where it is Python's own.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    replaced = in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def handler(number: int, frame: FrameType | None) -> None:
        interrupt.press(clock())

    if replaced:
        signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        if replaced:
            signal.signal(signal.SIGINT, signal.default_int_handler)
