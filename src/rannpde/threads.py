"""Limits on the threads of BLAS and OpenMP within a block; the numbers before are restored when it ends.

The limit of a BLAS library is one number for the whole process. If two solves in two threads each set and restored it,
the last one would restore the limit of the other; so the first block to begin sets it, and the last to end restores it.
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
    """The number of blocks that hold the limit now, and the object that restores the number of threads before."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.holders = 0
        self.limits: Any = None


_SHARED = _Shared()
LOADING_PROCESS = os.getpid()
"""The process that loaded the library. A process that was forked from it later lacks the threads of OpenMP: a call that
uses them hangs for ever (finufft) or ends the process (numba). It therefore works with one thread."""


_ON_ONE_CORE: ContextVar[bool] = ContextVar("on_one_core", default=False)


def openmp_threads() -> int:
    """How many threads a call of OpenMP may take: 1 within ``one_core`` and in forked processes, else 0 (all)."""
    return 1 if _ON_ONE_CORE.get() or os.getpid() != LOADING_PROCESS else 0


def threaded_libraries() -> ThreadpoolController:
    """The multi-threaded libraries of this process, searched for again (in milliseconds) where modules were imported.

    A library that was loaded after the search would keep all its threads, and would round its sums differently.
    """
    return _libraries_with(len(sys.modules))


@lru_cache(maxsize=1)
def _libraries_with(modules: int) -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_thread(limited: bool = True) -> Iterator[None]:
    """Limit BLAS to one thread within the block, if ``limited``; all Python threads in such blocks share the limit."""
    if not limited:
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
    """Give a task one core: BLAS, OpenMP and numba have one thread within the block.

    A worker runs as many tasks at once as it has threads; more threads would only wait for each other. With one thread
    each, sums are also rounded alike on every worker.
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
