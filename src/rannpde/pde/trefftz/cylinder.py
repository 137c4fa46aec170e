"""Cylinder functions of all orders at once, by their three-term recurrences in the direction in which each is stable.

scipy's functions of one order take a microsecond each; from the first two orders on, the recurrence takes a nanosecond.
"""

from __future__ import annotations

from math import ceil, lgamma, log, sqrt

import numpy as np
from scipy.special import i0e, k0e, k1e, y0, y1

from rannpde.arrays import Array
from rannpde.rounding import HALF_DIGITS

SMALL_ARGUMENT = HALF_DIGITS
"""Arguments below which the first term of the power series has all digits: the second one is their square."""
LARGE = 1e200
"""Size at which a recurrence is scaled down."""


def bessel_y(top: int, x: Array) -> Array:
    """Y_0 … Y_top (top + 1, …) at x > 0, upwards; -inf where they are beyond float64.

    >>> from scipy.special import yv
    >>> bool(np.allclose(bessel_y(9, np.array([0.3, 40.0])), [yv(n, [0.3, 40.0]) for n in range(10)], rtol=1e-12))
    True
    """
    return _upwards(top, x, y0(x), y1(x), -1.0)


def bessel_k(top: int, x: Array) -> Array:
    """eˣ K_0 … eˣ K_top (top + 1, …) at x > 0, upwards.

    >>> from scipy.special import kve
    >>> bool(np.allclose(bessel_k(9, np.array([0.3, 40.0])), [kve(n, [0.3, 40.0]) for n in range(10)], rtol=1e-13))
    True
    """
    return _upwards(top, x, k0e(x), k1e(x), 1.0)


def _upwards(top: int, x: Array, first: Array, second: Array, sign: float) -> Array:
    values = np.empty((max(top, 1) + 1, *np.shape(x)))
    values[0], values[1] = first, second
    with np.errstate(over="ignore", invalid="ignore"):
        for n in range(1, top):
            values[n + 1] = 2 * n / x * values[n] + sign * values[n - 1]
    return values[: top + 1]


def bessel_i(top: int, x: Array) -> Array:
    """e⁻ˣ I_0 … e⁻ˣ I_top (top + 1, …) at x ≥ 0, by ratios of neighbours, downwards.

    >>> from scipy.special import ive
    >>> bool(np.allclose(bessel_i(9, np.array([0.3, 40.0])), [ive(n, [0.3, 40.0]) for n in range(10)], rtol=1e-13))
    True
    """
    x = np.asarray(x, dtype=float)
    ratios = np.empty((top + 1, *x.shape))
    ratio = np.zeros(x.shape)
    for n in range(_start(top, x), 0, -1):
        ratio = x / (2 * n + x * ratio)
        if n <= top:
            ratios[n] = ratio
    ratios[0] = i0e(x)
    return np.asarray(np.cumprod(ratios, axis=0))


def bessel_j(top: int, x: Array) -> Array:
    """J_0 … J_top (top + 1, …) at x ≥ 0, downwards (Miller), normalised by J_0 + 2 J_2 + 2 J_4 + … = 1.

    >>> from scipy.special import jv
    >>> x = np.array([0.0, 1e-9, 0.3, 40.0])
    >>> bool(np.allclose(bessel_j(9, x), [jv(n, x) for n in range(10)], rtol=1e-11, atol=1e-300))
    True
    """
    x = np.asarray(x, dtype=float)
    safe = np.maximum(x, SMALL_ARGUMENT)
    values = np.zeros((top + 1, *x.shape))
    above, now, total = np.zeros(x.shape), np.full(x.shape, 1e-200), np.zeros(x.shape)
    for n in range(_start(top, safe), 0, -1):
        above, now = now, 2 * n / safe * now - above
        if n - 1 <= top:
            values[n - 1] = now
        if (n - 1) % 2 == 0:
            total += (1.0 if n == 1 else 2.0) * now
        large = np.abs(now) > LARGE
        if large.any():
            above[large] /= LARGE
            now[large] /= LARGE
            total[large] /= LARGE
            values[n - 1 :, large] /= LARGE
    values /= total
    small = x < SMALL_ARGUMENT
    if small.any():
        with np.errstate(divide="ignore"):
            logs = np.log(0.5 * x[small])
        for n in range(top + 1):
            values[n, small] = np.exp(n * logs - lgamma(n + 1)) if n else 1.0
    return values


def _start(top: int, x: Array) -> int:
    """An order so high that the recurrence forgets how it began."""
    most = max(float(top), float(np.max(x, initial=1.0)))
    return ceil(most + 20 + sqrt(60 * most) + log(most + 1))


def spherical_y(top: int, x: Array) -> Array:
    """y_0 … y_top (top + 1, …) at x > 0, upwards.

    >>> from scipy.special import spherical_yn
    >>> x = np.array([0.3, 40.0])
    >>> bool(np.allclose(spherical_y(9, x), [spherical_yn(n, x) for n in range(10)], rtol=1e-12))
    True
    """
    return _spherically_upwards(top, x, -np.cos(x) / x, -(np.cos(x) / x + np.sin(x)) / x, -1.0)


def spherical_k(top: int, x: Array) -> Array:
    """eˣ k_0 … eˣ k_top (top + 1, …) at x > 0, with k_0 = e⁻ˣ/x, upwards.

    >>> from scipy.special import spherical_kn
    >>> x = np.array([0.3, 40.0])
    >>> wanted = [spherical_kn(n, x) * np.exp(x) * 2 / np.pi for n in range(10)]
    >>> bool(np.allclose(spherical_k(9, x), wanted, rtol=1e-12))
    True
    """
    return _spherically_upwards(top, x, 1 / x, (1 + 1 / x) / x, 1.0)


def _spherically_upwards(top: int, x: Array, first: Array, second: Array, sign: float) -> Array:
    values = np.empty((max(top, 1) + 1, *np.shape(x)))
    values[0], values[1] = first, second
    with np.errstate(over="ignore", invalid="ignore"):
        for n in range(1, top):
            values[n + 1] = (2 * n + 1) / x * values[n] + sign * values[n - 1]
    return values[: top + 1]


def spherical_j(top: int, x: Array) -> Array:
    """j_0 … j_top (top + 1, …) at x ≥ 0, by ratios of neighbours, downwards to the turning point.

    >>> from scipy.special import spherical_jn
    >>> x = np.array([1e-9, 0.3, np.pi, 40.0])
    >>> wanted = [spherical_jn(n, x) for n in range(10)]
    >>> bool(np.allclose(spherical_j(9, x), wanted, rtol=1e-11, atol=1e-15))
    True
    """
    x = np.maximum(np.asarray(x, dtype=float), 1e-300)
    values = np.zeros((max(top, 1) + 1, *x.shape))
    start = _start(max(top, 1), x)
    above, now = np.zeros(x.shape), np.full(x.shape, 1e-200)
    with np.errstate(over="ignore"):
        for n in range(start, 0, -1):
            above, now = now, (2 * n + 1) / np.maximum(x, SMALL_ARGUMENT) * now - above
            if n - 1 <= max(top, 1):
                values[n - 1] = now
            large = np.abs(now) > LARGE
            if large.any():
                above[large] /= LARGE
                now[large] /= LARGE
                values[n - 1 :, large] /= LARGE
    zeroth, first = np.sin(x) / x, (np.sin(x) / x - np.cos(x)) / x
    by_first = np.abs(first) > np.abs(zeroth)  # where one of the two has a zero, the other has none
    scale = np.where(by_first, first / np.where(by_first, values[1], 1.0), zeroth / np.where(by_first, 1.0, values[0]))
    values *= scale
    small = x < SMALL_ARGUMENT
    if small.any():
        logs = np.log(x[small])
        odd = np.cumsum(np.log(2 * np.arange(top + 1) + 1))
        for n in range(top + 1):
            values[n, small] = np.exp(n * logs - odd[n])
    return values[: top + 1]


def spherical_i(top: int, x: Array) -> Array:
    """e⁻ˣ i_0 … e⁻ˣ i_top (top + 1, …) at x ≥ 0, by ratios of neighbours, downwards.

    >>> from scipy.special import spherical_in
    >>> x = np.array([1e-9, 0.3, 40.0])
    >>> wanted = [spherical_in(n, x) * np.exp(-x) for n in range(10)]
    >>> bool(np.allclose(spherical_i(9, x), wanted, rtol=1e-12, atol=1e-300))
    True
    """
    x = np.maximum(np.asarray(x, dtype=float), 1e-300)
    ratios, ratio = np.empty((top + 1, *x.shape)), np.zeros(x.shape)
    for n in range(_start(top, x), 0, -1):
        ratio = x / (2 * n + 1 + x * ratio)
        if n <= top:
            ratios[n] = ratio
    ratios[0] = np.where(x > SMALL_ARGUMENT, -np.expm1(-2 * x) / (2 * x), np.exp(-x))
    return np.asarray(np.cumprod(ratios, axis=0))
