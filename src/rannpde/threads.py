"""Threads of the linear algebra: fewer while small matrices are at work, and as many as before afterwards.

The limit of a BLAS library is one number for the whole process. Two solves in two threads that each set it and put it
back would leave it wherever the last one found it; so the first to come sets it, and the last to go puts it back.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


class _Shared:
    """How many hold the limit, and what puts the old number of threads back."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.holders = 0
        self.limits: Any = None


_SHARED = _Shared()
LOADING_PROCESS = os.getpid()
"""The process that loaded the library. In one that was forked from it since, the threads of OpenMP are missing: to use
them hangs for ever (finufft) or ends the process (numba), so that it works with one thread."""


_ON_ONE_CORE: ContextVar[bool] = ContextVar("on_one_core", default=False)


def openmp_threads() -> int:
    """How many threads a call of OpenMP may take: 1 on one core and in forked processes, or 0, as many as there are."""
    return 1 if _ON_ONE_CORE.get() or os.getpid() != LOADING_PROCESS else 0


def threaded_libraries() -> ThreadpoolController:
    """The libraries of this process that have threads: looked for, which takes milliseconds, where modules are new.

    One that was missed because it came later would keep its threads, and round its sums otherwise.
    """
    return _libraries_with(len(sys.modules))


@lru_cache(maxsize=1)
def _libraries_with(modules: int) -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_thread(wanted: bool = True) -> Iterator[None]:
    """BLAS with one thread within the block, if wanted; the same for all threads of Python that are in such a block."""
    if not wanted:
        yield
        return
    with _SHARED.lock:
        _SHARED.holders += 1
        if _SHARED.limits is None:
            _SHARED.limits = threaded_libraries().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _SHARED.lock:
            _SHARED.holders -= 1
            if _SHARED.holders == 0 and _SHARED.limits is not None:
                _SHARED.limits.restore_original_limits()
                _SHARED.limits = None


@contextmanager
def one_core() -> Iterator[None]:
    """A task has one core: BLAS, OpenMP and numba with one thread within the block.

    Workers run as many tasks at once as they have threads, so that more would only wait for each other; and sums are
    rounded alike on every worker.
    """
    import numba  # heavy: only tasks need it

    before = numba.get_num_threads()
    # the numbers of OpenMP and numba belong to the thread that asks, that of BLAS to the process
    with one_thread(), threaded_libraries().limit(limits=1, user_api="openmp"):
        numba.set_num_threads(1)
        token = _ON_ONE_CORE.set(True)  # finufft counts the cores itself, whatever OpenMP says
        try:
            yield
        finally:
            numba.set_num_threads(before)
            _ON_ONE_CORE.reset(token)
