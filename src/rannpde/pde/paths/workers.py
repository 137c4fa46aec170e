"""Work of several models or blocks of paths at once, in threads: NumPy releases Python's global lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from os import cpu_count
from typing import TypeVar

import numpy as np

T = TypeVar("T")
R = TypeVar("R")


def parallel(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """function of every item, in their order; checkpoints ask the guard of the caller.

    Values that overflow are infinite in silence: the loop ends with BLOW_UP where they are not finite.
    """

    def quiet(item: T) -> R:
        with np.errstate(all="ignore"):
            return function(item)

    workers = min(cpu_count() or 1, len(items))
    if workers <= 1:
        return [quiet(item) for item in items]
    with ThreadPoolExecutor(workers) as pool:
        tasks = [pool.submit(copy_context().run, quiet, item) for item in items]
        return [task.result() for task in tasks]
