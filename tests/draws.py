"""How many of its draws a test makes: a few of them in ``make test``, all of them in ``make test-all``.

The few are always the same ones, and among the many: what fails in the short run fails in the long one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any
from zlib import adler32

FULL = os.environ.get("RANNPDE_FULL", "0") != "0"


def draws(few: int, many: int) -> int:
    """``many`` with ``RANNPDE_FULL=1``, else ``few``."""
    assert few <= many
    return many if FULL else few


def seeds(name: str, few: int, many: int) -> list[int]:
    """``few`` of the seeds 0, …, many - 1 in a row, or all with ``RANNPDE_FULL=1``.

    Where the row begins depends on the name: families of problems do not all look at their first seeds.
    """
    first = 0 if FULL else adler32(name.encode()) % (many - few + 1)
    return list(range(first, first + draws(few, many)))


def some(values: Iterable[Any], few: int) -> list[Any]:
    """``few`` of the values, spread over all of them, or all with ``RANNPDE_FULL=1``.

    For variations that all go through the same code. One is the first of them, two are the first and the last.
    """
    every = list(values)
    if FULL or few >= len(every):
        return every
    return [every[round(k * (len(every) - 1) / max(few - 1, 1))] for k in range(few)]


def covering(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Combinations in which each value of each axis is at least once, or all of them with ``RANNPDE_FULL=1``."""
    if FULL:
        return list(product(*axes))
    return [tuple(axis[k % len(axis)] for axis in axes) for k in range(max(map(len, axes)))]
