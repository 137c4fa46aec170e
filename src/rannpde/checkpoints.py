"""Places at which a computation can be ended: every loop asks, wherever it is, whether it may go on.

What it asks is a guard that the start of the computation has set for everything below it, as a deadline is passed along
in other languages. So a loop deep inside a domain, a mesh or a factorisation keeps the limits of a solve without
knowing of it, and without a solve nothing is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Protocol

FLOAT_BYTES = 8
"""Bytes of one number in an array."""


class Cause(Enum):
    """Why a computation has to end."""

    TIME = "the time allowed is used up"
    MEMORY = "the memory allowed is used up"
    INTERRUPT = "interrupted"


class Ended(KeyboardInterrupt):
    """A limit was reached or Ctrl-C was pressed: the best so far is the result.

    It is an interrupt, not an error, so that nothing below the start of a computation takes it for its own failure.
    """

    def __init__(self, cause: Cause, detail: str = "") -> None:
        super().__init__(detail or cause.value)
        self.cause, self.detail = cause, detail


class Guard(Protocol):
    """The protocol of guards, which checkpoints ask whether a computation may go on."""

    def check(self) -> None:
        """Raise Ended where the computation has to end."""
        ...

    def reserve(self, size: float, what: str) -> None:
        """Raise Ended where this many bytes more are not allowed."""
        ...

    def begin(self, flops: float, kind: str) -> None:
        """Raise Ended where work of this many operations would end too late."""
        ...

    def finish(self, flops: float, kind: str, seconds: float) -> None:
        """Remember how long it took."""
        ...

    def now(self) -> float:
        """Seconds of the clock by which it allows."""
        ...

    def affordable(self, share: float, kind: str) -> float:
        """Operations of a kind of factorisation that take this share of the time that is left; may be infinite."""
        ...


_GUARD: ContextVar[Guard | None] = ContextVar("guard", default=None)
"""The guard of what runs now: a context variable, so that solves in several threads each have their own."""


@contextmanager
def guarded(guard: Guard | None) -> Iterator[None]:
    """Make checkpoints in the block ask this guard, or none, where a block must not end half done."""
    token = _GUARD.set(guard)
    try:
        yield
    finally:
        _GUARD.reset(token)


def checkpoint() -> None:
    """Ask whether to go on; Ended where not.

    >>> checkpoint()  # nothing happens outside a solve
    """
    guard = _GUARD.get()
    if guard is not None:
        guard.check()


def affordable(share: float, kind: str) -> float:
    """Operations of a kind of factorisation that take this share of the time that is left.

    >>> affordable(0.1, "svd")  # there is no limit outside a solve
    inf
    """
    guard = _GUARD.get()
    return float("inf") if guard is None else guard.affordable(share, kind)


def bound_checkpoint() -> Callable[[], None]:
    """``checkpoint`` with the guard of this thread, for use in others."""
    guard = _GUARD.get()
    return guard.check if guard is not None else (lambda: None)


def reserve(size: float, what: str) -> None:
    """Ask whether ``size`` bytes may be taken; Ended where not. ``what`` names them in the message."""
    guard = _GUARD.get()
    if guard is not None:
        guard.check()
        guard.reserve(size, what)


@contextmanager
def factorising(kind: str, flops: float, size: float = 0.0) -> Iterator[None]:
    """A factorisation of ``flops`` operations that takes ``size`` bytes; Ended where it would not end in time or fit.

    kind : "qr", "svd", …: those of one kind run at the speed of the last large one
    """
    guard = _GUARD.get()
    if guard is None:
        yield
        return
    guard.check()
    guard.reserve(size, f"a factorisation ({kind})")
    guard.begin(flops, kind)
    begin = guard.now()
    yield
    guard.finish(flops, kind, guard.now() - begin)
