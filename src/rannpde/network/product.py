"""Hidden layers whose neurons are products of functions of one coordinate each.

A column is Π_i h_ij(s_i) with s = (z - centre) / halfwidth and h_ij a polynomial, given by its Legendre coefficients.
Solutions in many dimensions are often short sums of such products. A derivative is a product again,

    ∂^α Π_i h_ij(s_i) = Π_i h_ij^(α_i)(s_i) / halfwidth_i^α_i .
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre

from rannpde.arrays import Array, MultiIndex
from rannpde.errors import finite_array, finite_points, require
from rannpde.network.features import ScaledLayer, multi_index


@dataclass(frozen=True, eq=False)
class ProductFeatures(ScaledLayer):
    """Columns Π_i h_ij(s_i), and 1 at the end if ``constant``.

    factors : (dim, degrees, width), the coefficients of h_ij in Legendre polynomials of degree 0, 1, …
    centre, halfwidth : (dim,)

    >>> both = ProductFeatures(np.array([[[0.0], [1.0]], [[1.0], [2.0]]]), np.zeros(2), np.ones(2))
    >>> both(np.array([[3.0, 4.0]])).tolist(), both(np.array([[3.0, 4.0]]), derivative=(0, 1)).tolist()
    ([[27.0]], [[6.0]])
    """

    factors: Array
    centre: Array
    halfwidth: Array
    constant: bool = False

    def __post_init__(self) -> None:
        factors = finite_array("factors", self.factors, 3)
        require(0 not in factors.shape, "factors with shape", factors.shape, "at least 1 × 1 × 1")
        object.__setattr__(self, "factors", factors)
        self._settle(len(factors))

    @property
    def width(self) -> int:
        return int(self.factors.shape[2])

    def __call__(self, points: Array, derivative: Sequence[int] | None = None) -> Array:
        """Design matrix (M, columns) of that partial derivative at the points (M, dim)."""
        return next(self.at(points).columns([multi_index(derivative, self.dim)]))[1]

    def at(self, points: Array) -> ProductJets:
        """All derivatives at fixed points (M, dim)."""
        return ProductJets(self, finite_points("points", points, self.dim))


@dataclass(frozen=True, eq=False)
class ProductJets:
    """The derivatives of all columns at fixed points."""

    features: ProductFeatures
    points: Array

    def factor(self, axis: int, order: int) -> Array:
        """h_ij^(order)(s_i) / halfwidth_i^order of one coordinate i, (M, width)."""
        features = self.features
        coefficients = legendre.legder(features.factors[axis], order, axis=0) if order else features.factors[axis]
        scaled = (self.points[:, axis] - features.centre[axis]) / features.halfwidth[axis]
        basis = legendre.legvander(scaled, len(coefficients) - 1)
        factor: Array = basis @ coefficients / features.halfwidth[axis] ** order
        return factor

    def columns(self, indices: Sequence[MultiIndex]) -> Iterator[tuple[MultiIndex, Array]]:
        """Each derivative with its design matrix (M, columns), one after the other.

        Derivatives that touch one coordinate share the product of all others, built up from both ends.
        """
        features = self.features
        plain = [self.factor(axis, 0) for axis in range(features.dim)]
        active = {index: [axis for axis, order in enumerate(index) if order] for index in indices}
        others = _leave_one_out(plain) if sum(len(axes) == 1 for axes in active.values()) > 1 else {}
        for index, axes in active.items():
            out = np.empty((len(self.points), features.columns))
            if len(axes) == 1 and others:
                product = others[axes[0]] * self.factor(axes[0], index[axes[0]])
            else:
                product = np.ones((len(self.points), features.width))
                for axis, array in enumerate(plain):
                    product *= self.factor(axis, index[axis]) if index[axis] else array
            out[:, : features.width] = product
            if features.constant:
                out[:, -1] = 0.0 if axes else 1.0
            yield index, out

    def combine(self, indices: Sequence[MultiIndex], partials: Sequence[Array]) -> Array:
        """Σ_α partial_α(z) ∂^α column_j(z), (M, columns); a partial is (M,) or a scalar."""
        total = np.zeros((len(self.points), self.features.columns))
        for (_, design), partial in zip(self.columns(indices), partials, strict=True):
            total += design * (partial[:, None] if partial.ndim else partial)
        return total


def _leave_one_out(arrays: list[Array]) -> dict[int, Array]:
    """Number → the product of all others."""
    left = [np.ones_like(arrays[0])]
    for array in arrays[:-1]:
        left.append(left[-1] * array)
    right, products = np.ones_like(arrays[0]), {}
    for number in reversed(range(len(arrays))):
        products[number] = left[number] * right
        right = right * arrays[number]
    return products
