"""Brownian motion along one axis: the probabilities that it has ended at a wall, or has not, with all derivatives.

By images at early times, by eigenfunctions later, whichever has a handful of terms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf, log

import numpy as np
from scipy.special import erf, erfc, eval_hermite

from rannpde.arrays import Array
from rannpde.rounding import EPS

CUT_OFF = -log(EPS)
"""exp(-36) is the rounding of float64: sums and integrands are cut off there."""
IMAGES_UNTIL = 1 / (2 * np.pi)
"""a s/length² from which on eigenfunctions are summed instead of images: there exp(-n²/(4s)) and exp(-n²π²s) are equal,
and both need a handful of terms."""

IMAGES, EIGENFUNCTIONS = 6, 11
"""Terms of both sums: erfc(5/√0.64) and exp(-0.16·(10π)²) are below all digits, also in derivatives."""

MeasureSum = Callable[[Array, Array], Array]
"""Of the width of images, or the time, and the position."""


@dataclass(frozen=True)
class AxisWalls:
    """Both walls of an axis: the values given there, infinite where the wall is insulated; and its diffusivity a."""

    start: float
    length: float
    diffusivity: float
    low: float
    high: float

    @property
    def open(self) -> bool:
        """Whether there is a wall at which motion ends."""
        return np.isfinite(self.low) or np.isfinite(self.high)

    @cached_property
    def _whole(self) -> float:
        """The length of the interval without insulated walls, which is mirrored at one of them."""
        return self.length * (1.0 if np.isfinite(self.low) == np.isfinite(self.high) else 2.0)

    @property
    def decay(self) -> float:
        """The rate at which S vanishes."""
        return self.diffusivity * (np.pi / self._whole) ** 2 if self.open else 0.0

    def distance(self, x: Array) -> Array:
        """To the next wall at which motion ends (M,), in units of √a."""
        low = x - self.start if np.isfinite(self.low) else np.full_like(x, inf)
        high = self.start + self.length - x if np.isfinite(self.high) else np.full_like(x, inf)
        return np.maximum(np.minimum(low, high), 0.0) / np.sqrt(self.diffusivity)

    def survival(self, s: Array, x: Array, order: int) -> Array:
        """∂_x^order S (M, Q) at x (M,) and times s (M, Q)."""
        if not self.open:
            return np.full(s.shape, float(order == 0))
        return _survival(*self._unit(s, x), order) / self._scale**order

    def ended(self, s: Array, x: Array, order: int) -> Array:
        """∂_x^order G (M, Q)."""
        time, unit = self._unit(s, x)
        scale = self._scale**order
        if np.isfinite(self.low) and np.isfinite(self.high):
            total = np.zeros(s.shape)
            if self.low:
                total += self.low * _ended(time, unit, order)
            if self.high:
                total += self.high * (-1.0) ** order * _ended(time, 1 - unit, order)
            return total / scale
        value = self.low if np.isfinite(self.low) else self.high
        both = _ended(time, unit, order) + (-1.0) ** order * _ended(time, 1 - unit, order)
        return value * both / scale

    @property
    def _scale(self) -> float:
        """Length of the unit, negative where the axis is turned around so that its first wall has a value."""
        return self._whole if np.isfinite(self.low) else -self._whole

    def _unit(self, s: Array, x: Array) -> tuple[Array, Array]:
        from_low = x - self.start if np.isfinite(self.low) else self.start + self.length - x
        return self.diffusivity * s / self._whole**2, (from_low / self._whole)[:, None]


def _survival(time: Array, x: Array, order: int) -> Array:
    """∂^order of the probability that motion from x in (0, 1) has not ended: erf(x) - erfc(1 - x) + erfc(1 + x) + …"""
    far = x > 0.5  # near the wall where erf has all its digits
    x = np.where(far, 1 - x, x)
    turn = np.where(far, (-1.0) ** order, 1.0)

    def images(width: Array, x: Array) -> Array:
        total = -_erfc(x / width, order) if order else np.asarray(erf(x / width))
        for k in range(1, IMAGES):
            _add(total, k - x, width, order, (-1.0) ** (k + order), 0 * x)
            _add(total, k + x, width, order, (-1.0) ** (k + 1), 0 * x)
        return total / width**order

    def eigenfunctions(time: Array, x: Array) -> Array:
        total = np.zeros(time.shape)
        for n in range(1, EIGENFUNCTIONS, 2):
            total += 4 / (n * np.pi) * _sine(n, order, time, x)
        return total

    return turn * _summed(time, x, images, eigenfunctions)


def _ended(time: Array, x: Array, order: int) -> Array:
    """∂^order of the probability that motion from x in (0, 1) has ended at 0: erfc(x) - erfc(2 - x) + …"""

    def images(width: Array, x: Array) -> Array:
        total = _erfc(x / width, order)
        for k in range(2, IMAGES, 2):
            _add(total, k - x, width, order, -((-1.0) ** order), x)
            _add(total, k + x, width, order, 1.0, x)
        return total / width**order

    def eigenfunctions(time: Array, x: Array) -> Array:
        total = 1 - x if order == 0 else np.full(x.shape, -1.0 if order == 1 else 0.0)
        for n in range(1, EIGENFUNCTIONS):
            total -= 2 / (n * np.pi) * _sine(n, order, time, x)
        return total

    return _summed(time, x, images, eigenfunctions)


def _sine(n: int, order: int, time: Array, x: Array) -> Array:
    """The derivative of that order of exp(-n²π²time) sin nπx."""
    w = n * np.pi
    return w**order * np.sin(w * x + order * np.pi / 2) * np.exp(-(w**2) * time)


def _summed(time: Array, x: Array, images: MeasureSum, eigenfunctions: MeasureSum) -> Array:
    time, x = np.broadcast_arrays(time, x)
    early, values = time < IMAGES_UNTIL, np.empty(time.shape)
    values[early] = images(np.sqrt(4 * time[early]), x[early])
    values[~early] = eigenfunctions(time[~early], x[~early])
    return values


def _add(total: Array, distance: Array, width: Array, order: int, factor: float, first: Array) -> None:
    """Add the derivative of erfc(distance/width) where it has digits beside that of the first image."""
    counts = distance**2 - first**2 < CUT_OFF * width**2
    total[counts] += factor * _erfc(distance[counts] / width[counts], order)


def _erfc(z: Array, order: int) -> Array:
    """The derivative of erfc of that order."""
    if order == 0:
        return np.asarray(erfc(z))
    with np.errstate(over="ignore", under="ignore"):
        bell = np.exp(-np.square(np.minimum(np.abs(z), 30)))
        return (-1.0) ** order * 2 / np.sqrt(np.pi) * eval_hermite(order - 1, np.clip(z, -30, 30)) * bell
