"""Least squares that keeps digits, and how errors on the boundary act inside."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import get_lapack_funcs, solve_triangular, svdvals
from scipy.sparse.linalg import svds

from rannpde.arrays import Array
from rannpde.checkpoints import factorising
from rannpde.pde.tolerance import PILOT_TOLERANCE
from rannpde.rounding import EPS

SAFE = 1e-9
"""Size on the boundary, over that of the coefficients, below which combinations of features are too noisy to tell how
stable a problem is."""

PANEL = 64
"""Columns that factorisations and recurrences treat at once."""


@dataclass(frozen=True, eq=False)
class ColumnGains:
    """The parts of the data that columns of an orthogonal factorisation explain, each in addition to those before it.

    features (K,) : their numbers; gains (K,) : parts of the right-hand side; left : the square of what is left of it
    rows : the number of rows
    """

    features: Array
    gains: Array
    left: float
    rows: int

    def truncated(self, orders: Array, most: int) -> Array:
        """Squares of what is left without the features of an order above 0 … most: errors of smaller least-squares
        problems, for which no other factorisation is needed.

        orders (N,) of all features, which do not fall from one column to the next. A fit with K columns to M rows
        leaves the share 1 - K/M of the squares of errors beside its points, by which they are divided.
        """
        here = orders[self.features]
        ends = np.searchsorted(here, np.arange(most + 1), side="right")
        tails = np.concatenate([np.cumsum(np.square(self.gains[::-1]))[::-1], [0.0]])
        return np.asarray((self.left + tails[ends]) * self.rows / np.maximum(self.rows - ends, 1))


class Minimiser(ABC):
    """The minimiser of a least-squares problem on the boundary, and what its factors tell of errors inside."""

    if TYPE_CHECKING:  # fields of some, properties of others

        @property
        def coefficients(self) -> Array: ...

        @property
        def rank(self) -> int: ...

    @abstractmethod
    def responses(self, interior: Array) -> Array:
        """A matrix (N, K) whose largest singular value is the error inside for a unit of boundary error.

        interior (K, N) : values of the features at points inside, each row multiplied by 1/√K
        """

    @property
    def gains(self) -> tuple[ColumnGains, ...]:
        """The part of the data that every column explains, where it is known."""
        return ()

    def deviation(self, responses: Array) -> float:
        """The standard deviation inside for a unit of boundary error, where rows are at points that were sampled;
        infinite where it is not known."""
        return np.inf

    def sketch(self, values: Array) -> Array:
        """The values (K, …) of features at points that responses are asked for, or combinations of them."""
        return values


@dataclass(frozen=True, eq=False)
class LeastSquares(Minimiser):
    """The minimiser of ‖weights (matrix c - rhs)‖, and the factorisation of the matrix.

    sizes (N,) of the columns, which were divided by them; triangle (N, N) : of the orthogonal factorisation
    image (N,) : what the columns explain of the right-hand side, each beside those before it
    residual (M,) : what is left of the right-hand side; reciprocal_condition : of the triangle, an estimate
    """

    coefficients: Array
    sizes: Array
    factorisation: Householder
    triangle: Array
    image: Array
    residual: Array
    rank: int
    reciprocal_condition: float

    @cached_property
    def safe(self) -> Array:
        """The triangle above a multiple of the identity, or itself where that would not change it."""
        if self.reciprocal_condition > SAFE:
            return self.triangle
        return Regularised.of(self.triangle, SAFE).triangle

    @property
    def gains(self) -> tuple[ColumnGains, ...]:
        """The part of the data that every column explains."""
        return (self.gains_of(np.arange(len(self.image))),)

    def gains_of(self, features: Array) -> ColumnGains:
        """The same for columns that stand for features of other numbers (N,)."""
        return ColumnGains(features, self.image, float(self.residual @ self.residual), len(self.residual))

    def responses(self, interior: Array) -> Array:
        """A matrix (N, K) whose largest singular value is the maximum of ‖interior c‖ / ‖weights matrix c‖ over all c,
        the error inside for a unit of boundary error.

        interior (K, N): values of the features at points inside, each row multiplied by 1/√K. Combinations that are
        mere noise on the boundary do not count: a small multiple of the identity is added below the triangle.
        """
        return np.asarray(solve_triangular(self.safe, (interior / self.sizes).T, trans="T", check_finite=False))

    def deviation(self, responses: Array) -> float:
        """The standard deviation inside for a unit of boundary error, where rows are at points that were sampled."""
        return sampling_deviation([(self, responses)])


def sampling_deviation(blocks: Sequence[tuple[LeastSquares, Array]]) -> float:
    """The standard deviation inside for a unit of boundary error, where rows are at points that were sampled.

    The residual is orthogonal to all features, so that only its sampling errors reach the coefficients, as errors
    of the data at single points would: with h_i the response inside to an error at point i, the variance is
    Σ |h_i|² r_i² (the sandwich estimator of Eicker and White), here relative to Σ r_i². The sums |h_i|² are
    those of a few random combinations of the points inside. Rows of the same number in several blocks belong to one
    sample, whose contributions h_i r_i are added before they are squared; least squares with N columns and M rows have
    left the share 1 - N/M of the squares of its errors.

    blocks : of orthogonal features, each with its responses (N, K)
    """
    count = blocks[0][1].shape[1]
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (count, PANEL)) / np.sqrt(PANEL)
    errors, total = np.zeros((len(blocks[0][0].residual), PANEL)), 0.0
    for block, responses in blocks:
        rows, columns = len(block.residual), len(block.triangle)
        unfitted = block.residual * np.sqrt(rows / max(rows - columns, 1))
        inside = solve_triangular(block.safe, responses @ signs, check_finite=False)
        errors += block.factorisation.spanned(block.triangle @ inside) * unfitted[:, None]
        total += float(unfitted @ unfitted)
    return float(np.linalg.norm(errors) / np.sqrt(total)) if total else 0.0


def largest_singular_value(matrix: Array) -> float:
    """The largest singular value of a matrix (N, K), by Lanczos' iteration to three digits where it is large."""
    if not np.isfinite(matrix).all():
        return np.inf
    if min(matrix.shape) < PANEL:
        return float(svdvals(matrix, check_finite=False)[0]) if matrix.size else 0.0
    start = np.ones(min(matrix.shape))
    return float(svds(matrix, k=1, tol=PILOT_TOLERANCE, v0=start, return_singular_vectors=False)[0])


@dataclass(frozen=True, eq=False)
class Householder:
    """An orthogonal factorisation whose reflections are applied but never formed, which would cost as much again.

    reflections (M, N), factors (N,): as LAPACK stores them
    """

    reflections: Array
    factors: Array

    @classmethod
    def of(cls, matrix: Array) -> Householder:
        """The factorisation of a matrix (M, N)."""
        rows, columns = matrix.shape
        (geqrf,) = get_lapack_funcs(("geqrf",), (matrix,))
        with factorising("qr", 2.0 * rows * columns**2, matrix.nbytes):
            reflections, factors, _, _ = geqrf(matrix, lwork=PANEL * columns)
        return cls(reflections, factors)

    @property
    def triangle(self) -> Array:
        """The triangular factor (N, N), with rows of zeros where there are fewer rows than columns."""
        rows, columns = self.reflections.shape
        upper = np.triu(self.reflections[:columns])
        return upper if rows >= columns else np.pad(upper, ((0, columns - rows), (0, 0)))

    @property
    def orthonormal(self) -> Array:
        """The orthogonal factor (M, N) itself."""
        (orgqr,) = get_lapack_funcs(("orgqr",), (self.reflections,))
        return np.asarray(orgqr(self.reflections, self.factors, lwork=PANEL * self.reflections.shape[1])[0])

    def applied(self, vector: Array) -> Array:
        """The adjoint of the orthogonal factor times a vector (M,): its first N numbers."""
        columns = self.reflections.shape[1]
        (ormqr,) = get_lapack_funcs(
            ("unmqr" if np.iscomplexobj(self.reflections) else "ormqr",), (self.reflections, vector)
        )
        trans = "C" if np.iscomplexobj(self.reflections) else "T"
        vector = vector.astype(self.reflections.dtype)
        count = len(self.factors)
        turned = ormqr("L", trans, self.reflections[:, :count], self.factors, vector[:, None], PANEL)[0][:columns, 0]
        return np.pad(turned, (0, columns - len(turned)))

    def spanned(self, coefficients: Array) -> Array:
        """The orthogonal factor times real coefficients (N, K): (M, K)."""
        (ormqr,) = get_lapack_funcs(("ormqr",), (self.reflections,))
        padded = np.zeros((len(self.reflections), coefficients.shape[1]), order="F")
        count = len(self.factors)
        padded[:count] = coefficients[:count]
        work = PANEL * coefficients.shape[1]
        return np.asarray(ormqr("L", "N", self.reflections[:, :count], self.factors, padded, work)[0])


@dataclass(frozen=True, eq=False)
class Regularised:
    """The factorisation of a triangle above a multiple of the identity: least squares with a small ridge.

    Directions whose singular values are rounding are then bounded instead of left out, by fast operations on blocks; a
    factorisation with pivoting would move one column at a time.
    """

    triangle: Array
    below: Array
    blocks: Array

    @classmethod
    def of(cls, triangle: Array, ridge: float) -> Regularised:
        """ridge : relative to the largest entry of the diagonal."""
        count = len(triangle)
        size = float(np.abs(np.diag(triangle)).max(initial=0.0))
        (tpqrt,) = get_lapack_funcs(("tpqrt",), (triangle,))
        below = np.asfortranarray(np.diag(np.full(count, (ridge * size) or 1.0)).astype(triangle.dtype))
        panel = min(PANEL, count)
        with factorising("qr", 3 / 2 * count**3, 2.0 * triangle.nbytes):
            upper, lower, blocks, _ = tpqrt(count, panel, np.asfortranarray(triangle), below)
        return cls(np.triu(upper), lower, blocks)

    def solved(self, image: Array) -> Array:
        """The minimiser of ‖triangle c - image‖² + ridge² ‖c‖²."""
        (tpmqrt,) = get_lapack_funcs(("tpmqrt",), (self.triangle,))
        first = np.asfortranarray(image[:, None].astype(self.triangle.dtype))
        trans = "C" if np.iscomplexobj(self.triangle) else "T"
        turned = tpmqrt(len(image), self.below, self.blocks, first, np.zeros_like(first), "L", trans)[0]
        return np.asarray(solve_triangular(self.triangle, turned[:, 0], check_finite=False))


@dataclass(frozen=True, eq=False)
class Triangular:
    """A triangle that needs no ridge: its condition is below that which the ridge would allow."""

    triangle: Array

    def solved(self, image: Array) -> Array:
        """The solution of triangle c = image."""
        return np.asarray(solve_triangular(self.triangle, image, check_finite=False))


def _reciprocal_condition(triangle: Array) -> float:
    """An estimate, in the norm of column sums, without a factorisation."""
    (trcon,) = get_lapack_funcs(("trcon",), (triangle,))
    return float(trcon(triangle)[0]) if triangle.size else 0.0


def rounding_ridge(columns: int) -> float:
    """The rounding error of sums of ``columns`` terms of size one: smaller entries of a triangular factor are noise."""
    return EPS * float(np.sqrt(columns))


def unit_columns(matrix: Array) -> Array:
    """Divide the columns of a matrix (M, N) by their sizes (N,), which are returned."""
    sizes = np.sqrt(np.einsum("mn,mn->n", matrix, matrix.conj()).real)
    sizes[~(sizes > 1e-280)] = np.inf  # what vanishes on the boundary is no feature
    matrix /= sizes
    return np.asarray(sizes)


def least_squares(weighted: Array, rhs: Array) -> LeastSquares:
    """The minimiser of ‖weighted c - rhs‖ by orthogonal factorisation, with a ridge of rounding and one
    refinement; the matrix (M, N) is overwritten."""
    weighted = np.asfortranarray(weighted)
    sizes = unit_columns(weighted)
    first = Householder.of(weighted)
    triangle = first.triangle
    ridge = rounding_ridge(len(sizes))
    certain = _reciprocal_condition(triangle)
    second = Regularised.of(triangle, ridge) if certain <= ridge else Triangular(triangle)
    coefficients = np.zeros(len(sizes), dtype=weighted.dtype)
    left, image = rhs, first.applied(rhs)
    for _ in range(2):
        coefficients = coefficients + second.solved(image if left is rhs else first.applied(left))
        left = rhs - weighted @ coefficients
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > ridge * diagonal.max(initial=0.0)).sum())
    return LeastSquares(coefficients / sizes, sizes, first, triangle, image, left, rank, certain)
