"""Rank-revealing least squares by orthogonal factorisations, for fits and Gauss–Newton steps to many digits.

Normal equations square the condition number and stop at half the digits. Here only the triangular factor R of the
augmented matrix [A | y] is kept, so that everything after one QR happens on a small matrix:

- ``OrthogonalEquations`` updates R block by block with Householder reflections, so data may stream and two factors may
  be merged. A truncated SVD of the column-equilibrated R solves; the lower right corner of R is the residual, to full
  relative accuracy.
- ``Factor`` is for the one Jacobian of a Gauss–Newton step. A pivoted QR of R decides the rank and a second QR gives
  the step of least norm (a complete orthogonal decomposition: about half the time of an SVD, and the same digits where
  the rank is full); Levenberg–Marquardt stacks λI under R.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, qr, solve_triangular, svd

from rannpde.arrays import Array
from rannpde.checkpoints import FLOAT_BYTES, factorising
from rannpde.errors import InputError, reject, require
from rannpde.fitting.path import LinearFit, PenaltyPath, check_penalty, relative_error

SINGULAR_VALUE_CUTOFF = 1e-14
"""Default relative singular-value cut. Empirical: below it, rounding in the features is fitted, above it digits go."""


class OrthogonalEquations:
    """Accumulates R of [A | y] in blocks of rows; solves least squares and ridge problems from it.

    columns, outputs : sizes of A and y; constant : the last column of A is the constant, which has no penalty
    """

    def __init__(self, columns: int, outputs: int, constant: bool = False) -> None:
        self.columns, self.outputs, self.constant = columns, outputs, constant
        self.count = 0.0
        self._factor = np.zeros((0, columns + outputs))

    def add(self, design: Array, values: Array, weights: Array | None = None) -> None:
        """Add rows: design (m, columns), values (m, outputs), weights (m,) ≥ 0 of the rows, 1 by default."""
        factor_rows = len(self._factor)
        stacked = np.empty((factor_rows + len(design), self.columns + self.outputs), order="F")
        stacked[:factor_rows] = self._factor
        # the constant goes first, so that eliminating it leaves a trailing triangle
        stacked[factor_rows:, self._order] = design
        stacked[factor_rows:, self.columns :] = values
        if weights is not None:
            stacked[factor_rows:] *= np.sqrt(weights)[:, None]
        self._factor = triangular_factor(stacked)
        self.count += float(len(design) if weights is None else weights.sum())

    def merge(self, other: OrthogonalEquations) -> OrthogonalEquations:
        """The equations of both sets of rows, as a new object."""
        if (self.columns, self.outputs, self.constant) != (other.columns, other.outputs, other.constant):
            reject(
                "other",
                (other.columns, other.outputs),
                f"of the same columns and outputs {(self.columns, self.outputs)}",
            )
        both = OrthogonalEquations(self.columns, self.outputs, self.constant)
        both._factor = triangular_factor(np.asfortranarray(np.vstack([self._factor, other._factor])))
        both.count = self.count + other.count
        return both

    def rescaled(self, factor: float) -> OrthogonalEquations:
        """The equations of the same features and the values times a factor, as a new object."""
        scaled = OrthogonalEquations(self.columns, self.outputs, self.constant)
        scaled._factor = self._factor.copy(order="K")
        scaled._factor[:, self.columns :] *= factor
        scaled.count = self.count
        return scaled

    def misfit(self, coefficients: Array) -> float:
        """Σ |wᵀφ - y|² over the data and all outputs, for w (columns, outputs): |R [w; -1]|²."""
        rest = self._factor[:, self._order] @ coefficients - self._factor[:, self.columns :]
        return float(np.square(rest).sum())

    @property
    def square_sum(self) -> float:
        """Σ y² over the data and all outputs."""
        return float(np.square(self._factor[:, self.columns :]).sum())

    @property
    def size(self) -> float:
        """Σ |φ|² / M without the constant: the sum of the eigenvalues that a penalty is added to."""
        return float(np.square(self._factor[:, int(self.constant) : self.columns]).sum() / self.count)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return int(self._factor.nbytes)

    def solve(self, penalty: float = 0.0, cutoff: float | None = None) -> LinearFit:
        """Least squares with the singular values below ``cutoff`` × the largest dropped; or ridge for a penalty > 0."""
        check_penalty(penalty)
        self._require_rows()
        if penalty > 0:
            return self.path().solve(penalty)
        if cutoff is None and len(self._factor) < self.columns:
            raise InputError(
                f"{len(self._factor)} independent rows cannot determine {self.columns} columns with penalty 0; "
                "give more points, a smaller width, a penalty > 0, or a cutoff for the solution of least norm"
            )
        cutoff = SINGULAR_VALUE_CUTOFF if cutoff is None else cutoff
        require(0 < cutoff < 1, "cutoff", cutoff, "a number in (0, 1)")
        matrix, right = self._factor[: self.columns, : self.columns], self._factor[: self.columns, self.columns :]
        norms = _column_norms(matrix)
        left, singular, basis = svd(matrix / norms, full_matrices=False, check_finite=False)
        rank, condition = _kept(singular, cutoff)
        loadings = left.T @ right
        solution = basis[:rank].T @ (loadings[:rank] / singular[:rank, None]) / norms[:, None]
        coefficients = solution[self._order]
        rest = np.square(loadings[rank:]).sum() + np.square(self._factor[self.columns :, self.columns :]).sum()
        return LinearFit(coefficients, 0.0, rank, condition, relative_error(rest / self.count, self._energy()))

    def path(self) -> PenaltyPath:
        """Ridge fits for all penalties from one SVD."""
        self._require_rows()
        first = int(self.constant)
        factor, columns = self._factor, self.columns
        left, singular, basis = svd(factor[first:columns, first:columns], full_matrices=False, check_finite=False)
        keep = singular > np.finfo(float).eps * max(columns, 1) * singular.max(initial=0.0)
        loadings = left.T @ factor[first:columns, columns:] / np.sqrt(self.count)
        spectrum = np.square(singular) / self.count
        rest = (np.square(factor[columns:, columns:]).sum(axis=0) / self.count) + np.square(loadings[~keep]).sum(axis=0)
        lifted = np.zeros((columns, int(keep.sum())))
        lifted[: columns - first] = basis[keep].T
        offset = np.zeros((columns, self.outputs))
        elimination = None
        if self.constant:
            offset[-1] = factor[0, columns:] / factor[0, 0]
            elimination = np.append(factor[0, 1:columns] / factor[0, 0], 0.0)
        top = spectrum.max(initial=0.0)
        return PenaltyPath(
            spectrum[keep], loadings[keep], lifted, rest, offset, elimination, self._energy(), self.count, 1e-28 * top
        )

    @property
    def _order(self) -> Array:
        """Position of each column of A in the factor."""
        return np.roll(np.arange(self.columns), -1) if self.constant else np.arange(self.columns)

    def _energy(self) -> float:
        return self.square_sum / self.count

    def _require_rows(self) -> None:
        if self.count == 0:
            raise InputError("points is empty; give at least one point")


@dataclass(frozen=True, eq=False)
class SolvedRows:
    """A least-squares solution (N,), with the rank and the condition number of the directions that were kept."""

    solution: Array
    rank: int
    condition: float


@dataclass(frozen=True, eq=False)
class Factor:
    """R (min(M, N), N) and Qᵀr (min(M, N),) of a Jacobian with columns scaled to length 1; ``norms`` (N,) undo that.

    >>> jacobian, right = np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]]), np.array([3.0, 1.0, 2.0])
    >>> Factor.of(jacobian, right).solve(1e-14).solution.round(12)
    array([2., 1.])
    """

    triangle: Array
    right: Array
    norms: Array

    @classmethod
    def of(cls, jacobian: Array, right: Array) -> Factor:
        """Factorise J (M, N) and the right-hand side (M,)."""
        rows, columns = jacobian.shape
        norms = _column_norms(jacobian)
        with factorising("qr", 2.0 * rows * columns**2, FLOAT_BYTES * rows * columns):
            stacked = np.empty((rows, columns + 1), order="F")
            np.divide(jacobian, norms, out=stacked[:, :columns])
            stacked[:, columns] = right
            factor = triangular_factor(stacked)
        return cls(factor[:columns, :columns], factor[:columns, columns], norms)

    def solve(self, cutoff: float) -> SolvedRows:
        """The least-squares solution of least norm, dropping directions below cutoff × the largest pivot."""
        with factorising("pivoted qr", 2.0 * len(self.norms) ** 3, 3 * FLOAT_BYTES * len(self.norms) ** 2):
            rotation, factor, order = qr(self.triangle, mode="economic", pivoting=True, check_finite=False)
        rank, condition = _kept(np.abs(factor.diagonal()), cutoff)
        solution = np.zeros(len(self.norms))
        if rank:
            right = (rotation.T @ self.right)[:rank]
            basis, lower = qr(factor[:rank].T, mode="economic", check_finite=False)
            solution[order] = basis @ solve_triangular(lower, right, trans="T", check_finite=False)
        return SolvedRows(solution / self.norms, rank, condition)

    def damped(self, damping: float) -> SolvedRows:
        """The Levenberg–Marquardt step: minimise |J x - r|² + damping² |norms ∘ x|²."""
        columns = len(self.norms)
        stacked = np.zeros((len(self.triangle) + columns, columns + 1), order="F")
        stacked[: len(self.triangle), :columns] = self.triangle
        stacked[: len(self.triangle), columns] = self.right
        np.fill_diagonal(stacked[len(self.triangle) :, :columns], damping)
        factor = triangular_factor(stacked)
        solution = solve_triangular(factor[:columns, :columns], factor[:columns, columns], check_finite=False)
        return SolvedRows(solution / self.norms, columns, 1.0 / damping)


def _column_norms(matrix: Array) -> Array:
    """Lengths (C,) of the columns, 1 for a column of zeros."""
    norms: Array = np.sqrt(np.einsum("ij,ij->j", matrix, matrix))
    norms[norms == 0] = 1.0
    return norms


def _kept(sizes: Array, cutoff: float) -> tuple[int, float]:
    """Rank and condition number from decreasing sizes (singular values or pivots), those above cutoff × the first."""
    rank = int((sizes > cutoff * sizes[0]).sum()) if len(sizes) and sizes[0] > 0 else 0
    return rank, float(sizes[0] / sizes[rank - 1]) if rank else np.inf


def triangular_factor(matrix: Array) -> Array:
    """R of the QR factorisation of a Fortran-ordered matrix, which is overwritten: shape (min(M, C), C)."""
    if len(matrix) <= 1:
        return np.array(matrix)
    work, _ = lapack.dgeqrf_lwork(*matrix.shape)
    packed, _, _, info = lapack.dgeqrf(matrix, lwork=int(work), overwrite_a=1)
    if info:
        raise InputError(f"the QR factorisation refused argument {-info}")
    return np.triu(packed[: min(packed.shape)])


def null_and_lifting(matrix: Array, cutoff: float) -> tuple[Array, Array]:
    """Z (n, n - rank) with B Z = 0 and L (n, m) with B L = 1, as far as the rows of B (m, n) are independent.

    Both are well conditioned. A row is independent where its part orthogonal to the others is longer than ``cutoff``,
    relative to the row itself.

    >>> null, lifting = null_and_lifting(np.array([[1.0, 1.0, 0.0]]), 1e-12)
    >>> null.shape, lifting.ravel().round(12).tolist()
    ((3, 2), [0.5, 0.5, 0.0])
    """
    sizes = np.linalg.norm(matrix, axis=1, keepdims=True)
    sizes[sizes == 0] = 1.0
    orthogonal, triangle, order = qr((matrix / sizes).T, pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > cutoff * diagonal[0]).sum())
    small = triangle[:rank][:, np.argsort(order)]  # (B / sizes)ᵀ = orthogonal[:, :rank] @ small
    lifting = orthogonal[:, :rank] @ np.linalg.pinv(small.T, rcond=cutoff) / sizes.T
    return orthogonal[:, rank:], lifting
