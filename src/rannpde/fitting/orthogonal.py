"""Least squares by orthogonal factorisations, for fits to many digits.

Normal equations square the condition number and stop at half the digits. Here only the triangular factor R of the
augmented matrix [A | y] is kept, updated block by block with Householder reflections, so data may stream and two
factors may be merged; a truncated SVD of the column-equilibrated R then solves. The lower right corner of R is the
residual, to full relative accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, svd

from rannpde.errors import InputError, finite_array, reject, require
from rannpde.fitting.path import LinearFit, PenaltyPath, check_penalty, relative_error

Array = np.ndarray

CUTOFF = 1e-14
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
        kept = len(self._factor)
        stacked = np.empty((kept + len(design), self.columns + self.outputs), order="F")
        stacked[:kept] = self._factor
        # the constant goes first, so that eliminating it leaves a trailing triangle
        stacked[kept:, self._order] = design
        stacked[kept:, self.columns :] = values
        if weights is not None:
            stacked[kept:] *= np.sqrt(weights)[:, None]
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
        cutoff = CUTOFF if cutoff is None else cutoff
        require(0 < cutoff < 1, "cutoff", cutoff, "a number in (0, 1)")
        matrix, right = self._factor[: self.columns, : self.columns], self._factor[: self.columns, self.columns :]
        norms = np.linalg.norm(matrix, axis=0)
        norms[norms == 0] = 1.0
        left, singular, basis = svd(matrix / norms, full_matrices=False, check_finite=False)
        rank = int((singular > cutoff * singular[0]).sum()) if singular[0] > 0 else 0
        loadings = left.T @ right
        solution = basis[:rank].T @ (loadings[:rank] / singular[:rank, None]) / norms[:, None]
        coefficients = solution[self._order]
        rest = np.square(loadings[rank:]).sum() + np.square(self._factor[self.columns :, self.columns :]).sum()
        condition = float(singular[0] / singular[rank - 1]) if rank else np.inf
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
        return float(np.square(self._factor[:, self.columns :]).sum() / self.count)

    def _require_rows(self) -> None:
        if self.count == 0:
            raise InputError("points is empty; give at least one point")


@dataclass(frozen=True)
class LeastSquares:
    """solution (columns,) or (columns, k), numerical rank, condition of the kept part, norm of the residual."""

    solution: Array
    rank: int
    condition: float
    residual: float


def solve_orthogonal(matrix: Array, rhs: Array, cutoff: float = CUTOFF) -> LeastSquares:
    """Minimise |matrix · x - rhs| by QR and a truncated SVD of the column-equilibrated factor.

    matrix (M, C) with any M; rhs (M,) or (M, k); singular values below cutoff × the largest are dropped.

    >>> solve_orthogonal(np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]]), np.array([3.0, 1.0, 2.0])).solution.round(12)
    array([2., 1.])
    """
    matrix, rhs = finite_array("matrix", matrix, 2), finite_array("rhs", rhs, (1, 2))
    require(len(matrix) == len(rhs), "rhs with shape", rhs.shape, f"of {len(matrix)} rows, as the matrix")
    columns = rhs[:, None] if rhs.ndim == 1 else rhs
    equations = OrthogonalEquations(matrix.shape[1], columns.shape[1])
    equations.add(matrix, columns)
    result = equations.solve(cutoff=cutoff)
    residual = result.training_error * np.sqrt(np.square(rhs).sum() if rhs.any() else len(rhs))
    solution = result.coefficients[:, 0] if rhs.ndim == 1 else result.coefficients
    return LeastSquares(solution, result.rank, result.condition, float(residual))


def triangular_factor(matrix: Array) -> Array:
    """R of the QR factorisation of a Fortran-ordered matrix, which is overwritten: shape (min(M, C), C)."""
    if len(matrix) <= 1:
        return np.array(matrix)
    work, _ = lapack.dgeqrf_lwork(*matrix.shape)
    packed, _, _, info = lapack.dgeqrf(matrix, lwork=int(work), overwrite_a=1)
    if info:
        raise InputError(f"the QR factorisation refused argument {-info}")
    return np.triu(packed[: min(packed.shape)])
