"""Radau IIA as data: nodes, the inverse of the Butcher matrix, its diagonalisation, and the step's Legendre series.

On a step [t, t + h] the solution is the polynomial U of degree s through u(t) and the stages U_i at t + c_i h. With D
the derivatives of the Lagrange polynomials at the nodes, which is the inverse of the Butcher matrix A,

    U'_i = Σ_j D_ij (U_j - u(t)) / h,

and once more from U' and u'(t) for second derivatives. D = T diag(λ) T⁻¹ decouples the s stages into one real system
and complex conjugate pairs, in each of which ∂_t^k is (λ/h)^k (Hairer & Wanner, Solving ODEs II, IV.8).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.polynomial import legendre, polynomial
from scipy.special import roots_jacobi

from rannpde.arrays import Array
from rannpde.rounding import COMPUTED

TINY = 1e-300
"""Keeps quotients of coefficients finite where all of them vanish."""
STAGE_TOLERANCES = (1e-5, 1e-6, 1e-9)
"""Tolerances at which two stages more are faster, measured for Burgers, KdV and the travelling wave."""
LEAST_RATIO = 0.02
"""Least ratio of successive Legendre coefficients that the error estimate uses: a smaller one may be chance."""
FIRST_RATIO = 0.25
"""Least ratio in a first step, where a field may be like √t: a smaller one is replaced by this one."""


@dataclass(frozen=True, eq=False)
class RadauTableau:
    """Radau IIA with s stages, of order 2s - 1 at the end of a step.

    nodes (s,) : c_1 < … < c_s = 1
    derivative (s, s) : D = A⁻¹ = vectors · diag(eigenvalues) · dual
    eigenvalues (s,), vectors (s, s), dual (s, s) : the first ``distinct`` eigenvalues are real or lie in the upper half
        plane; those after them are conjugates
    legendre (s + 1, s + 1) : values at 0, c_1, …, c_s to Legendre coefficients on the step

    >>> three = radau_tableau(3)
    >>> bool(np.allclose(three.derivative @ three.nodes**3, 3 * three.nodes**2))
    True
    """

    nodes: Array
    derivative: Array
    eigenvalues: Array
    vectors: Array
    dual: Array
    distinct: int
    legendre: Array

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def real_recombination(self) -> Array:
        """(s, distinct): the real part of its product with transformed values is the real stages."""
        both = np.where(self.eigenvalues[: self.distinct].imag == 0, 1.0, 2.0)
        return self.vectors[:, : self.distinct] * both

    def is_real(self, number: int) -> bool:
        """Whether that eigenvalue is real."""
        return bool(self.eigenvalues[number].imag == 0)

    def shift(self, number: int) -> float | complex:
        """An eigenvalue, as a float where it is real."""
        value = self.eigenvalues[number]
        return float(value.real) if self.is_real(number) else complex(value)

    def to_eigenbasis(self, number: int, stages: Array) -> Array:
        """The row of T⁻¹ of one eigenvalue, applied to stages (s, …): (…)."""
        row = self.dual[number]
        return np.tensordot(row.real if self.is_real(number) else row, stages, axes=1)

    def from_eigenbasis(self, number: int, part: Array) -> Array:
        """The contribution (s, …) of one eigenvalue and its conjugate to real stages, from transformed values (…)."""
        column = self.vectors[:, number]
        if self.is_real(number):
            return np.multiply.outer(column.real, part)
        return 2 * np.real(np.multiply.outer(column, part))


@lru_cache(maxsize=16)
def radau_tableau(stages: int) -> RadauTableau:
    """The tableau with an odd number of stages, for which exactly one eigenvalue is real."""
    inner = roots_jacobi(stages - 1, 1.0, 0.0)[0] if stages > 1 else np.empty(0)
    nodes = np.append((1.0 + inner) / 2.0, 1.0)
    # in Legendre polynomials, whose matrices stay well conditioned for nine stages
    powers = legendre.legvander(2.0 * nodes - 1.0, stages - 1)
    integrals = np.column_stack([_integral(degree, nodes) for degree in range(stages)])
    derivative = powers @ np.linalg.inv(integrals)
    values, vectors = np.linalg.eig(derivative)
    values = np.where(np.abs(values.imag) < COMPUTED, values.real, values).astype(complex)
    order = np.argsort(values.imag < 0, kind="stable")
    dual = np.linalg.inv(vectors)
    series = legendre_transform(np.append(0.0, nodes))
    distinct = int((values.imag >= 0).sum())
    return RadauTableau(nodes, derivative, values[order], vectors[:, order], dual[order], distinct, series)


def _integral(degree: int, upper: Array) -> Array:
    """∫_0^upper P_degree(2τ - 1) dτ."""
    series = legendre.legint(np.eye(degree + 1)[degree], lbnd=-1)
    return 0.5 * legendre.legval(2.0 * upper - 1.0, series)


def stages_for(tol: float) -> int:
    """The number of stages that is fastest at a tolerance."""
    return 3 + 2 * sum(tol <= one for one in STAGE_TOLERANCES)


def lagrange_matrix(nodes: Array, at: Array, order: int = 1) -> Array:
    """(M, K): the derivatives of that order of the Lagrange polynomials of K nodes at M positions.

    >>> lagrange_matrix(np.array([0.0, 1.0]), np.array([0.5]), 0).tolist()
    [[0.5, 0.5]]
    """
    columns = []
    for k, node in enumerate(nodes):
        others = np.delete(nodes, k)
        series = polynomial.polyfromroots(others) / np.prod(node - others)
        columns.append(polynomial.polyval(at, polynomial.polyder(series, order)))
    return np.stack(columns, axis=1)


def legendre_transform(nodes: Array) -> Array:
    """(K, K): values at K nodes of [0, 1] to Legendre coefficients of the polynomial through them."""
    return np.linalg.inv(legendre.legvander(2.0 * nodes - 1.0, len(nodes) - 1))


def truncation_estimate(last: Array, earlier: Array, least_ratio: float = LEAST_RATIO) -> Array:
    """The size of the first Legendre coefficient that a step's polynomial lacks, from the decay of the last ones.

    last, earlier : norms of the last coefficient and of the largest of those just before it, arrays of the same shape
    least_ratio : a smaller ratio of the two is replaced by this one

    Every stepper estimates its error in this way.

    >>> round(float(truncation_estimate(np.float64(1e-3), np.float64(1e-2))), 12)
    0.0001
    """
    last = np.maximum(last, TINY)
    return np.asarray(last * np.clip(last / np.maximum(earlier, TINY), least_ratio, 1.0))
