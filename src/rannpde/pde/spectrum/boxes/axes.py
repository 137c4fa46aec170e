"""Functions of one coordinate of a box: integrated Legendre polynomials that satisfy conditions, or Fourier modes.

For an equation of order 2m along the axis the m-th derivatives of the polynomials are orthonormal (see interval/basis):
stiffness matrices are then close to the identity and mass matrices small, so that low eigenvalues keep their digits.
Conditions at the ends are built in by the null space of their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
from numpy.polynomial.legendre import legder, leggauss, legint, legvander

from rannpde.arrays import Array

EndCondition = tuple[int, dict[int, complex]]
"""An end, -1 or 1, and the coefficients of a condition there by the order of the derivative along the axis."""


@dataclass(frozen=True, eq=False)
class LegendreAxis:
    """Polynomials on [low, high]; coefficients (K, n) in Legendre polynomials P_k of the scaled coordinate."""

    low: float
    high: float
    coefficients: Array

    @classmethod
    def of(
        cls, bounds: tuple[float, float], degree: int, smoothness: int, conditions: Sequence[EndCondition]
    ) -> LegendreAxis:
        """All polynomials of a degree that satisfy the conditions; derivatives of order ``smoothness`` orthonormal."""
        low, high = bounds
        tops = np.diag(np.sqrt(np.arange(degree + 1 - smoothness) + 0.5))
        for _ in range(smoothness):
            tops = legint(tops, lbnd=-1, axis=0)
        raw = np.eye(degree + 1)  # integrals of the first ones have no parity: plain polynomials instead of them
        raw[: len(tops), 2 * smoothness :] = tops[:, smoothness:]
        axis = cls(low, high, raw)
        if not conditions:
            return axis
        rows = []
        for end, own in conditions:
            row = sum(factor * axis.table(np.array([low if end < 0 else high]), order)[0]
                      for order, factor in own.items())  # fmt: skip
            rows.append(row / np.linalg.norm(row))
        return cls(low, high, raw @ _null_space(np.real(np.array(rows))))

    @property
    def size(self) -> int:
        return self.coefficients.shape[1]

    @property
    def real(self) -> bool:
        return True

    def nodes(self, count: int) -> tuple[Array, Array]:
        """Points and weights of a Gauss rule."""
        points, weights = leggauss(count)
        half = 0.5 * (self.high - self.low)
        return self.low + half * (points + 1), half * weights

    def table(self, points: Array, order: int) -> Array:
        """A derivative of the functions (M, n) at points (M,)."""
        return self.raw_table(points, order) @ self.coefficients

    def raw_table(self, points: Array, order: int) -> Array:
        """A derivative of the Legendre polynomials (M, K) at points (M,)."""
        half = 0.5 * (self.high - self.low)
        series = legder(np.eye(len(self.coefficients)), m=order, axis=0) / half**order
        if not len(series):
            return np.zeros((len(points), len(self.coefficients)))
        return np.asarray(legvander((points - self.low) / half - 1, len(series) - 1) @ series)

    def tail(self, coefficients: Array) -> Array:
        """The last Legendre coefficients, (2, …), of fields given in Legendre polynomials (K, …)."""
        return coefficients[-2:]


def _null_space(rows: Array) -> Array:
    """An orthonormal basis (n, n - rank) of the vectors that rows (c, n) annihilate; of even and odd ones, if it can.

    Even and odd functions are the even and odd columns. Conditions that are the same at both ends keep them apart, and
    problems with reflection symmetry then fall into smaller ones.
    """
    whole = np.asarray(scipy.linalg.null_space(rows))
    parts = []
    for parity in (0, 1):
        own = scipy.linalg.null_space(rows[:, parity::2])
        part = np.zeros((rows.shape[1], own.shape[1]))
        part[parity::2] = own
        parts.append(part)
    apart = np.concatenate(parts, axis=1)
    return apart if apart.shape == whole.shape else whole


@dataclass(frozen=True, eq=False)
class FourierAxis:
    """exp(iκ(x - low)) with κ = (2πm + θ)/length for |m| ≤ degree; for θ = 0 cosines and sines, which are real.

    ``coefficients`` is the identity: fields are given in these functions.
    """

    low: float
    high: float
    degree: int
    phase: float

    @property
    def coefficients(self) -> Array:
        return np.eye(self.size)

    @property
    def size(self) -> int:
        return 2 * self.degree + 1

    @property
    def real(self) -> bool:
        """Whether the functions are real: modes that turn by a phase are not."""
        return self.phase == 0

    @cached_property
    def waves(self) -> Array:
        """Wave numbers: 0, 1, 1, 2, 2, … for real functions, 0, 1, -1, 2, -2, … otherwise."""
        numbers = (np.arange(self.size) + 1) // 2
        signs = 1 if self.real else np.where(np.arange(self.size) % 2, 1, -1)
        return np.asarray((2 * np.pi * numbers * signs + self.phase) / (self.high - self.low))

    def nodes(self, count: int) -> tuple[Array, Array]:
        """Points and weights of the trapezoidal rule."""
        length = self.high - self.low
        return self.low + length * (np.arange(count) + 0.5) / count, np.full(count, length / count)

    def table(self, points: Array, order: int) -> Array:
        """A derivative of the functions (M, n) at points (M,)."""
        angle = (points[:, None] - self.low) * self.waves
        if not self.real:
            return np.asarray((1j * self.waves) ** order * np.exp(1j * angle))
        quarter = 0.5 * np.pi * order  # each derivative turns a cosine and a sine by a quarter
        odd = np.arange(self.size) % 2 == 1
        return np.asarray(np.where(odd, np.sin(angle + quarter), np.cos(angle + quarter)) * self.waves**order)

    raw_table = table

    def tail(self, coefficients: Array) -> Array:
        """The coefficients of the shortest waves, (4, …)."""
        return coefficients[-4:]


BoxAxis = LegendreAxis | FourierAxis
