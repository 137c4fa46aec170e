"""Lists and small functions that several test modules share."""

from __future__ import annotations

import mpmath as mp
import numpy as np

from rannpde.network import ACTIVATIONS

EPS = np.finfo(float).eps

SMOOTH = [a for a in ACTIVATIONS.values() if a.smoothness == np.inf]
"""Every activation with derivatives of all orders."""

PRECISE = {
    "tanh": mp.tanh,
    "sigmoid": lambda z: 1 / (1 + mp.exp(-z)),
    "cos": mp.cos,
    "sin": mp.sin,
    "gaussian": lambda z: mp.exp(-z * z / 2),
    "softplus": lambda z: mp.log(1 + mp.exp(z)),
    "swish": lambda z: z / (1 + mp.exp(-z)),
}
"""The smooth activations in arbitrary precision, independent of ours."""


def relative(approximation: np.ndarray, exact: np.ndarray) -> float:
    """Relative l² distance."""
    return float(np.linalg.norm(approximation - exact) / np.linalg.norm(exact))


def slope(widths: np.ndarray, errors: np.ndarray) -> float:
    """Least-squares slope of log error against log width."""
    return float(np.polyfit(np.log(widths), np.log(errors), 1)[0])
