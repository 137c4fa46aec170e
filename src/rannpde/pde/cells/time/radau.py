"""Radau IIA collocation: nodes, diagonalisation of the inverse Butcher matrix, and the collocation polynomial.

On a step [t, t + h] a field is the polynomial U of degree s through u(t) and the stages U_i at t + c_i h. With D the
derivatives of the Lagrange polynomials at the stages (the inverse of the Butcher matrix A),

    U'_i = Σ_j D_ij (U_j - u(t)) / h,

and the same once more for second derivatives, from U' and u'(t). The diagonalisation D = T diag(λ) T⁻¹ decouples the s
stages into one real system and complex ones, each with ∂_t^k replaced by (λ/h)^k (Hairer & Wanner, Solving ODEs II,
IV.8).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import polynomial
from numpy.polynomial.legendre import legvander
from scipy.special import roots_jacobi

from rannpde.arrays import Array


@dataclass(frozen=True, eq=False)
class RadauStages:
    """The nodes and the diagonalised differentiation matrix of a Radau IIA method.

    nodes (s,) : in (0, 1], the last is 1; derivative (s, s) : the matrix D values (e,), vectors (s, e), dual (e, s) :
        the eigenvalues with non-negative imaginary part, their columns of T and rows of T⁻¹

    >>> three = RadauStages.radau(3)
    >>> values = three.nodes**3
    >>> bool(np.allclose(three.derivative @ values, 3 * three.nodes**2))
    True
    """

    nodes: Array
    derivative: Array
    values: Array
    vectors: Array
    dual: Array

    @classmethod
    @lru_cache(maxsize=8)
    def radau(cls, count: int) -> RadauStages:
        """Return Radau IIA with an odd number of stages, of order 2·count - 1 at the end of a step."""
        nodes = np.append((1 + roots_jacobi(count - 1, 1.0, 0.0)[0]) / 2, 1.0) if count > 1 else np.ones(1)
        derivative = differentiation(np.append(0.0, nodes), nodes)[:, 1:]
        values, vectors = np.linalg.eig(derivative)
        dual = np.linalg.inv(vectors)
        upper = values.imag > -1e-9
        return cls(nodes, derivative, values[upper], vectors[:, upper], dual[upper])

    def __len__(self) -> int:
        return len(self.nodes)

    def to_eigenbasis(self, number: int, stages: Array) -> Array:
        """Return the component of stage values (s, …) for one eigenvalue (…): a row of T⁻¹ times the stages."""
        row = self.dual[number]
        return np.tensordot(row.real if self.real(number) else row, stages, axes=1)

    def from_eigenbasis(self, number: int, part: Array) -> Array:
        """Return the contribution of one eigenvalue and its conjugate to the stages (s, …)."""
        column = self.vectors[:, number]
        if self.real(number):
            return np.multiply.outer(column.real, part)
        return 2 * np.real(np.multiply.outer(column, part))

    def real(self, number: int) -> bool:
        return abs(self.values[number].imag) < 1e-9

    def shift(self, number: int) -> float | complex:
        """Return λ, as a float where it is real."""
        value = self.values[number]
        return float(value.real) if self.real(number) else complex(value)


def differentiation(nodes: Array, at: Array, order: int = 1) -> Array:
    """Return the derivatives (M, K) of the Lagrange polynomials of K nodes at M points.

    >>> differentiation(np.array([0.0, 1.0]), np.array([0.5]), 0).tolist()
    [[0.5, 0.5]]
    """
    columns = []
    for k, node in enumerate(nodes):
        others = np.delete(nodes, k)
        series = polynomial.polyfromroots(others) / np.prod(node - others)
        columns.append(polynomial.polyval(at, polynomial.polyder(series, order)))
    return np.stack(columns, axis=1)


def to_legendre(nodes: Array) -> Array:
    """Return the matrix (K, K) from values at K nodes of [0, 1] to Legendre coefficients."""
    return np.linalg.inv(legvander(2 * nodes - 1, len(nodes) - 1))
