"""Functions of a cell: the m-th derivative is a Legendre series, and the function is integrated from it.

On [-1, 1] a field of order m is u = Σ_{j<m} a_j (x+1)^j / j! + Σ_k c_k ∫…∫ P_k, integrated m times from the left end.
Multiplied by the coefficients, the equation then is the identity plus smoothing operators, so that its condition number
does not grow with the degree: with values or plain coefficients as unknowns it grows like degree^(2m), which costs all
digits of the fourth-order Orr–Sommerfeld equation (Greengard 1991; Coutsias, Hagstrom and Torres 1996).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import factorial

import numpy as np
from numpy.polynomial import polynomial
from numpy.polynomial.legendre import legder, legint, legval, legvander, poly2leg

from rannpde.arrays import Array


@dataclass(frozen=True)
class IntegratedLegendre:
    """The functions of a field of this order on [-1, 1], the highest derivative of this degree."""

    order: int
    degree: int

    @property
    def size(self) -> int:
        """Number of functions."""
        return self.order + self.degree + 1

    def series(self, derivative: int) -> Array:
        """Legendre coefficients (order + degree + 1, size) of a derivative of each function."""
        return _series(self.order, self.degree, derivative)

    def table(self, points: Array, derivative: int) -> Array:
        """Values (M, size) of a derivative of the functions at points (M,) of [-1, 1]."""
        coefficients = self.series(derivative)
        return np.asarray(legvander(points, len(coefficients) - 1) @ coefficients)


@lru_cache(maxsize=256)
def _series(order: int, degree: int, derivative: int) -> Array:
    size = order + degree + 1
    series = np.zeros((size, size))
    for j in range(order):
        if j >= derivative:
            power = polynomial.polypow([1.0, 1.0], j - derivative) / factorial(j - derivative)
            own = poly2leg(power)
            series[: len(own), j] = own
    times = order - derivative
    columns: Array = np.eye(degree + 1)
    if times >= 0:
        for _ in range(times):
            columns = legint(columns, lbnd=-1, axis=0)
    else:
        columns = legder(columns, m=-times, axis=0)
    series[: len(columns), order:] = columns
    return series


@dataclass(frozen=True, eq=False)
class PiecewisePolynomial:
    """Fields on the cells of an interval.

    edges (C + 1,) : ends of the cells; coefficients (C, fields, K) : of Legendre series on the cells
    """

    edges: Array
    coefficients: Array

    @property
    def dim(self) -> int:
        return 1

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of polynomials of each cell."""
        return (self.coefficients.shape[2],) * len(self.coefficients)

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,))

    def derivative(self, points: Array, derivative: tuple[int, ...]) -> Array:
        """A derivative of the fields, (M, fields), at points (M, 1)."""
        (order,) = derivative
        positions = points[:, 0]
        cells = np.clip(np.searchsorted(self.edges, positions, side="right") - 1, 0, len(self.coefficients) - 1)
        half = 0.5 * np.diff(self.edges)
        values = np.empty((len(points), self.coefficients.shape[1]))
        for cell in np.unique(cells):
            own = np.flatnonzero(cells == cell)
            scaled = (positions[own] - self.edges[cell]) / half[cell] - 1
            series = self.coefficients[cell].T
            series = legder(series, m=order, axis=0) if order else series
            values[own] = legval(scaled, series).T / half[cell] ** order
        return values

    def pack(self) -> tuple[dict[str, object], dict[str, Array]]:
        """Header and arrays for a file."""
        return {"function": "polynomial"}, {"edges": self.edges, "coefficients": self.coefficients}
