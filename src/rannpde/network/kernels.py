"""Compiled kernels for the Fourier features: phase and both trigonometric functions in one pass over the block.

NumPy would make three passes (matrix product, cos, sin) with scalar trigonometry; the fused loop below
vectorises completely. Argument reduction by Cody and Waite with fdlibm's minimax polynomials is accurate to one
unit in the last place while |z| < 1e6; beyond that the caller must reduce the argument first.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from rannpde.arrays import Array
from rannpde.threads import LOADING_PROCESS

REDUCTION_LIMIT = 1e6
"""Largest argument that the two parts of π/2 below reduce to full accuracy."""

# π/2 in two parts: the first has 33 bits, so that q times it is exact for |q| < 2^20
_HALF_PI_HIGH = 1.57079632673412561417e00
_HALF_PI_LOW = 6.07710050650619224932e-11
_TWO_OVER_PI = 0.6366197723675814

# 'contract' allows fused multiply-add; full fastmath would re-associate the reduction and ruin it
_OPTIONS: dict[str, Any] = {
    "fastmath": {"contract", "nsz"},
    "error_model": "numpy",
    "cache": True,
    "nogil": True,
}

Kernel = Callable[[Array, Array, Array, float, float, Array], None]


def cosine_sine_block(
    points: Array, weights: Array, phases: Array, scale: float, quarter_turns: float, out: Array
) -> None:
    """out[:, :N] = scale cos(z + k π/2) and out[:, N:2N] = scale sin(z + k π/2), z = points @ weights + phases.

    points (M, n), weights (n, N), phases (N,), quarter_turns k a float in {0, 1, 2, 3}; out has ≥ 2N columns.
    """
    # with one thread no parallel region is entered: numba's simplest pool ends a process that enters two at once
    alone = os.getpid() != LOADING_PROCESS or numba.get_num_threads() == 1
    kernel = _on_one_thread if alone else _on_all_threads
    kernel(points, weights, phases, scale, quarter_turns, out)


def _row(point: Array, weights: Array, phases: Array, scale: float, quarter_turns: float, row: Array) -> None:
    """One row of the block."""
    width = weights.shape[1]
    for j in range(width):
        row[j] = phases[j]
    for axis in range(weights.shape[0]):
        x = point[axis]
        for j in range(width):
            row[j] += x * weights[axis, j]
    for j in range(width):
        z = row[j]
        q = np.rint(z * _TWO_OVER_PI)
        r = (z - q * _HALF_PI_HIGH) - q * _HALF_PI_LOW
        r2 = r * r
        sine = -2.50507602534068634195e-08 + r2 * 1.58969099521155010221e-10
        sine = -1.98412698298579493134e-04 + r2 * (2.75573137070700676789e-06 + r2 * sine)
        sine = r + r * r2 * (-1.66666666666666324348e-01 + r2 * (8.33333333332248946124e-03 + r2 * sine))
        cosine = 2.08757232129817482790e-09 + r2 * -1.13596475577881948265e-11
        cosine = 2.48015872894767294178e-05 + r2 * (-2.75573143513906633035e-07 + r2 * cosine)
        cosine = 4.16666666666666019037e-02 + r2 * (-1.38888888888741095749e-03 + r2 * cosine)
        cosine = 1.0 - 0.5 * r2 + r2 * r2 * cosine
        q += quarter_turns
        quadrant = q - 4.0 * np.floor(q * 0.25)
        swapped = (quadrant == 1.0) | (quadrant == 3.0)
        a = sine if swapped else cosine
        b = cosine if swapped else sine
        row[j] = -scale * a if (quadrant == 1.0) | (quadrant == 2.0) else scale * a
        row[width + j] = -scale * b if quadrant >= 2.0 else scale * b


_compiled_row: Callable[..., None] = numba.njit(**_OPTIONS)(_row)


def _all_threads(points: Array, weights: Array, phases: Array, scale: float, quarter_turns: float, out: Array) -> None:
    for i in numba.prange(points.shape[0]):
        _compiled_row(points[i], weights, phases, scale, quarter_turns, out[i])


def _one_thread(points: Array, weights: Array, phases: Array, scale: float, quarter_turns: float, out: Array) -> None:
    for i in range(points.shape[0]):
        _compiled_row(points[i], weights, phases, scale, quarter_turns, out[i])


# two functions, not one with two settings: the cache on disk knows a function by its name alone
_on_all_threads: Kernel = numba.njit(parallel=True, **_OPTIONS)(_all_threads)
_on_one_thread: Kernel = numba.njit(**_OPTIONS)(_one_thread)
