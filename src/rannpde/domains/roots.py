"""Roots of functions of one variable within brackets, many at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rannpde.arrays import Array

HALVINGS_TO_ROUNDING = 54
"""Halvings after which a bracket is as short as rounding."""


def bisected(unchanged: Callable[[Array], Array], low: Array, high: Array) -> tuple[Array, Array]:
    """Brackets (M,), from ``low`` to ``high``, of a point where a condition changes, shortened to rounding.

    unchanged : whether the condition is at coordinates (M,) what it is at ``low``

    >>> low, high = bisected(lambda x: x**2 < 2, np.array([0.0]), np.array([2.0]))
    >>> bool(low[0] <= 2**0.5 <= high[0] < low[0] + 1e-15)
    True
    """
    for _ in range(HALVINGS_TO_ROUNDING if len(low) else 0):
        middle = 0.5 * (low + high)
        same = unchanged(middle)
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return low, high


def bracketed_roots(
    both: Callable[[Array], tuple[Array, Array]], low: Array, high: Array, start: Array, rising: Array, accuracy: float
) -> Array:
    """Roots (M,) between ``low`` and ``high``: Newton's method within brackets, halved wherever it would leave them.

    both : values and slopes (M,) at coordinates (M,), of another sign at ``high`` than at ``low``
    start : where to begin; rising (M,) : whether the values rise; accuracy : error of the roots that is allowed

    >>> roots = bracketed_roots(lambda x: (x**2 - 2, 2 * x), *np.array([[0.0], [2.0], [1.0]]), np.array([True]), 1e-15)
    >>> bool(abs(roots[0] - 2**0.5) < 1e-15)
    True
    """
    point = start
    for _ in range(HALVINGS_TO_ROUNDING):
        value, slope = both(point)
        below = (value < 0) == rising
        low, high = np.where(below, point, low), np.where(below, high, point)
        newton = point - np.divide(value, slope, out=np.full(len(point), np.inf), where=slope != 0)
        point, before = np.where((low <= newton) & (newton <= high), newton, 0.5 * (low + high)), point
        if (np.abs(point - before) <= accuracy).all():
            break
    return point
