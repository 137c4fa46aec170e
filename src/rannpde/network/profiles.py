"""Profiles σ of activations and their derivatives, in plain NumPy: this file is also a part of exported networks.

With p = sigmoid(z) and q = 1 - p all derivatives of sigmoids are sums that are homogeneous in p and q, with Eulerian
numbers as coefficients; see ``activations``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


@cache
def eulerian_row(n: int) -> tuple[float, ...]:
    """(-1)^k A(n, k) for k = 0, …, n - 1: row n ≥ 1 of the Eulerian triangle with alternating signs."""
    row = [1]
    for m in range(2, n + 1):
        row = [(k + 1) * (row[k] if k < m - 1 else 0) + (m - k) * (row[k - 1] if k else 0) for k in range(m)]
    return tuple(float((-1) ** k * a) for k, a in enumerate(row))


def sigmoid_profile(z: Any, order: int) -> Any:
    small = np.exp(-np.abs(z))
    large = 1.0 / (1.0 + small)
    if order in (1, 2):  # pq and pq(q - p) without telling p from q: half the time, for the orders of most equations
        slope = small * large
        slope *= large
        return slope if order == 1 else slope * np.copysign((1.0 - small) * large, -z)
    small = small * large
    p = np.where(z >= 0, large, small)
    if order == 0:
        return p
    q = np.where(z >= 0, small, large)
    *rest, last = eulerian_row(order)
    total = np.full_like(p, last)
    power = np.ones_like(p)
    for coefficient in reversed(rest):  # Horner in p, with one more factor q for each step down
        power = power * q
        total = total * p + coefficient * power
    total *= p * q
    return total


def tanh_profile(z: Any, order: int) -> Any:
    return np.tanh(z) if order == 0 else 2.0 ** (order + 1) * sigmoid_profile(2.0 * z, order)


def softplus_profile(z: Any, order: int) -> Any:
    return np.logaddexp(0.0, z) if order == 0 else sigmoid_profile(z, order - 1)


def swish_profile(z: Any, order: int) -> Any:
    return z * sigmoid_profile(z, order) + (order * sigmoid_profile(z, order - 1) if order else 0.0)


def cos_profile(z: Any, order: int) -> Any:
    value = np.cos(z) if order % 2 == 0 else np.sin(z)
    return -value if order % 4 in (1, 2) else value


def sin_profile(z: Any, order: int) -> Any:
    return cos_profile(z, order + 3)


def gaussian_profile(z: Any, order: int) -> Any:
    # exp(-z²/2): σ^(j+1) = -z σ^(j) - j σ^(j-1), the recurrence of the Hermite functions
    previous, value = np.zeros_like(z), np.exp(-0.5 * z * z)
    for j in range(order):
        previous, value = value, -z * value - j * previous
    return value


def relu_profile(z: Any, order: int) -> Any:
    return np.maximum(z, 0.0) if order == 0 else np.heaviside(z, 0.5)


def hard_tanh_profile(z: Any, order: int) -> Any:
    return np.clip(z, -1.0, 1.0) if order == 0 else np.where(np.abs(z) == 1.0, 0.5, (np.abs(z) < 1.0).astype(float))


ACTIVATION_PROFILES = {
    "tanh": tanh_profile,
    "sigmoid": sigmoid_profile,
    "cos": cos_profile,
    "sin": sin_profile,
    "gaussian": gaussian_profile,
    "softplus": softplus_profile,
    "swish": swish_profile,
    "relu": relu_profile,
    "hard_tanh": hard_tanh_profile,
}
"""Name of an activation → σ^(order)(z), element by element."""
