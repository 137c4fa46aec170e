"""Levels of rounding in float64, as multiples of the unit roundoff, instead of a threshold in every module."""

from __future__ import annotations

import numpy as np

EPS = float(np.finfo(np.float64).eps)
"""The distance from 1 to the next number."""
ROUNDED = 2**12 * EPS
"""9e-13: numbers that went through some thousand operations without cancellation agree to this relative difference."""
COMPUTED = 2**22 * EPS
"""9e-10: formulas with differences, roots or quotients, which lose digits by cancellation, agree to this."""
ROOT_ROUNDED = ROUNDED**0.5
"""1e-6: roots of what is only rounding beside 1, such as norms from squares; what is larger is no rounding."""
HALF_DIGITS = EPS**0.5
"""1.5e-8: half of the digits, which difference quotients and roots of sums of squares leave."""


def difference_step(order: int = 1) -> float:
    """Return the step, relative to the argument, of central differences of an order.

    It balances truncation, step², with rounding, eps / step^order.
    """
    return float(EPS ** (1 / (order + 2)))
