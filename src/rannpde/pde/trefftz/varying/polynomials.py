"""Orthonormal polynomials of a total degree on the square [-1, 1]², and their values and derivatives anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander

from rannpde.arrays import Array, MultiIndex


@lru_cache(maxsize=64)
def unit_gauss(count: int) -> tuple[Array, Array]:
    """Nodes and weights (count,) of Gauss' rule on [-1, 1]."""
    nodes, weights = leggauss(count)
    return nodes, weights


@dataclass(frozen=True)
class SquarePolynomials:
    """P_i(x) P_j(y) with i + j ≤ degree, P_i being Legendre's polynomials with the L² norm one.

    >>> square = SquarePolynomials(3)
    >>> gram = square.table((0, 0)).T @ (square.weights[:, None] * square.table((0, 0)))
    >>> bool(np.allclose(gram, np.eye(square.count)))
    True
    """

    degree: int

    @cached_property
    def powers(self) -> tuple[Array, Array]:
        """i (N,) and j (N,) of every function."""
        pairs = [(i, total - i) for total in range(self.degree + 1) for i in range(total + 1)]
        first, second = np.array(pairs).T
        return first, second

    @property
    def count(self) -> int:
        return (self.degree + 1) * (self.degree + 2) // 2

    @property
    def solutions(self) -> int:
        """The dimension 2·degree + 1 of the solutions of an equation of order two among them."""
        return 2 * self.degree + 1

    @cached_property
    def rule(self) -> tuple[Array, Array]:
        """Nodes and weights along an axis: exact for products of two polynomials with one of degree 3."""
        return unit_gauss(self.degree + 2)

    @cached_property
    def points(self) -> Array:
        """The nodes (M, 2) on the square."""
        nodes = self.rule[0]
        return np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)

    @cached_property
    def weights(self) -> Array:
        """Their weights (M,)."""
        return np.outer(self.rule[1], self.rule[1]).ravel()

    @cached_property
    def differentiation(self) -> Array:
        """The matrix (degree + 1, degree + 1) of d/dx: P_j' = Σ_i D_ij P_i, over i < j with i + j odd."""
        norms = np.sqrt(np.arange(self.degree + 1) + 0.5)
        order = np.arange(self.degree + 1)
        below = (order[:, None] < order) & ((order[:, None] + order) % 2 == 1)
        return np.where(below, 2 * norms[:, None] * norms, 0.0)

    def along(self, points: Array, order: int) -> Array:
        """∂^order of all P_i (K, degree + 1) at points (K,) of [-1, 1]."""
        values = legvander(points, self.degree) * np.sqrt(np.arange(self.degree + 1) + 0.5)
        for _ in range(order):
            values = values @ self.differentiation
        return np.asarray(values)

    def on_segment(self, low: float, high: float, count: int, order: int) -> Array:
        """∂^order of all P_i (count, degree + 1) at Gauss' nodes of a segment of [-1, 1]; most faces have one of a few.

        Ends have 14 digits: what is beyond is rounding.
        """
        key = round(low, 14), round(high, 14), count, order
        if key not in self._segments:
            middle, half = 0.5 * (key[0] + key[1]), 0.5 * (key[1] - key[0])
            self._segments[key] = self.along(middle + half * unit_gauss(count)[0], order)
        return self._segments[key]

    @cached_property
    def _segments(self) -> dict[tuple[float, float, int, int], Array]:
        return {}

    def at(self, points: Array, index: MultiIndex) -> Array:
        """∂^index of all functions (K, N) at points (K, 2) of the square."""
        first, second = self.powers
        return np.asarray(self.along(points[:, 0], index[0])[:, first] * self.along(points[:, 1], index[1])[:, second])

    def trace(self, axis: int, end: int, order: int) -> Array:
        """∂^order across the side of an axis at ``end``, -1 or 1: coefficients (degree + 1, N) along that side."""
        key = axis, end, order
        if key not in self._traces:
            own, other = self.powers if axis == 0 else self.powers[::-1]
            trace = np.zeros((self.degree + 1, self.count))
            trace[other, np.arange(self.count)] = self.along(np.array([float(end)]), order)[0][own]
            self._traces[key] = trace
        return self._traces[key]

    @cached_property
    def _traces(self) -> dict[tuple[int, int, int], Array]:
        return {}

    @cached_property
    def _tables(self) -> dict[MultiIndex, Array]:
        return {}

    def table(self, index: MultiIndex) -> Array:
        """∂^index of all functions (M, N) at the nodes."""
        if index not in self._tables:
            self._tables[index] = self.at(self.points, index)
        return self._tables[index]

    @cached_property
    def tests(self) -> Array:
        """The matrix (T, M) that projects values at the nodes (M,) on the polynomials of two degrees less."""
        low = np.add(*self.powers) <= self.degree - 2
        return np.ascontiguousarray((self.table((0, 0))[:, low] * self.weights[:, None]).T)

    def square_coefficients(self, coefficients: Array) -> Array:
        """Coefficients (…, N) as matrices (…, degree + 1, degree + 1) of i and j."""
        matrices = np.zeros((*coefficients.shape[:-1], self.degree + 1, self.degree + 1))
        matrices[..., self.powers[0], self.powers[1]] = coefficients
        return matrices


@lru_cache(maxsize=4)
def square_polynomials(degree: int) -> SquarePolynomials:
    """The polynomials of a degree, whose tables all cells share."""
    return SquarePolynomials(degree)
