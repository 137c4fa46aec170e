"""Normal equations of ridge regression, accumulated in blocks: the M × C design matrix never exists.

One C × C array holds everything. Its lower triangle is the Gram matrix, written in place by ``dsyrk``; the upper one
is scratch for the Cholesky factor, so that solving needs no second array and the sums can go on afterwards.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, eigh, lapack

from rannpde.arrays import Array, block_rows, row_blocks
from rannpde.errors import InputError, reject
from rannpde.fitting.path import LinearFit, PenaltyPath, check_penalty, relative_error
from rannpde.network.features import Features


class NotPositiveDefinite(InputError):
    """The penalty is too small for the rounding of the normal equations."""


class NormalEquations:
    """Σ φφᵀ, Σ φy and Σ y² over the data, for features φ with ``columns`` entries and values with ``outputs``.

    constant : the last column is the constant, which has no penalty (the bias β of eq. uWfourier)

    >>> equations = NormalEquations(columns=1, outputs=1)
    >>> equations.add(np.array([[1.0], [2.0]]), np.array([[2.0], [4.0]]))
    >>> float(equations.solve(penalty=0.0).coefficients[0, 0])
    2.0
    """

    def __init__(self, columns: int, outputs: int, constant: bool = False) -> None:
        self.columns, self.outputs, self.constant = columns, outputs, constant
        self.count = 0.0
        self.moment = np.zeros((columns, outputs))
        self.energy = np.zeros(outputs)
        self._array = np.zeros((columns, columns), order="F")

    @property
    def gram(self) -> Array:
        """Σ φφᵀ as a full symmetric matrix (columns, columns), a copy."""
        lower = np.tril(self._array)
        return lower + np.tril(lower, -1).T

    def add(self, design: Array, values: Array, weights: Array | None = None) -> None:
        """Add rows: design (m, columns), C-contiguous, values (m, outputs), weights (m,) ≥ 0, 1 by default.

        With weights the design block is scaled in place.
        """
        if weights is not None:
            root = np.sqrt(weights)[:, None]
            design *= root
            values = values * root
        self._array = blas.dsyrk(1.0, design.T, beta=1.0, c=self._array, lower=1, overwrite_c=1)
        self.moment += design.T @ values
        self.energy += np.square(values).sum(axis=0)
        self.count += float(len(design) if weights is None else weights.sum())

    def add_sums(self, lower_gram: Array, moment: Array, energy: Array, count: float) -> None:
        """Add sums that were formed elsewhere; only the lower triangle of lower_gram is used."""
        self._array += lower_gram
        self.moment += moment
        self.energy += energy
        self.count += count

    def merge(self, other: NormalEquations) -> NormalEquations:
        """The equations of both data sets, as a new object; the order does not matter."""
        if (self.columns, self.outputs, self.constant) != (other.columns, other.outputs, other.constant):
            reject(
                "other",
                (other.columns, other.outputs),
                f"of the same columns and outputs {(self.columns, self.outputs)}",
            )
        both = NormalEquations(self.columns, self.outputs, self.constant)
        for part in (self, other):
            both.add_sums(part._array, part.moment, part.energy, part.count)
        return both

    def rescaled(self, factor: float) -> NormalEquations:
        """The equations of the same features and the values times a factor, as a new object."""
        scaled = NormalEquations(self.columns, self.outputs, self.constant)
        scaled.add_sums(self._array, factor * self.moment, factor * (factor * self.energy), self.count)
        return scaled

    def misfit(self, coefficients: Array) -> float:
        """Σ |wᵀφ - y|² over the data and all outputs, for w (columns, outputs); not below the rounding of Σ y²."""
        product = blas.dsymm(1.0, self._array, coefficients, lower=1)
        energy = float(self.energy.sum())
        return max(energy + float((coefficients * (product - 2 * self.moment)).sum()), _floor(energy))

    @property
    def square_sum(self) -> float:
        """Σ y² over the data and all outputs."""
        return float(self.energy.sum())

    @property
    def size(self) -> float:
        """Σ |φ|² / M without the constant: the sum of the eigenvalues that a penalty is added to."""
        return float(self._array.diagonal()[: self.columns - self.constant].sum() / self.count)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return int(self._array.nbytes + self.moment.nbytes + self.energy.nbytes)

    def solve(self, penalty: float) -> LinearFit:
        """Minimise (1/M) Σ |wᵀφ - y|² + λ|w|² by Cholesky, the protocol of the paper (appendix "Experiments")."""
        check_penalty(penalty)
        self._require_rows()
        diagonal = self._array.diagonal().copy()
        shifted = diagonal + penalty * self.count
        if self.constant:
            shifted[-1] = diagonal[-1]
        _mirror_lower(self._array)
        np.fill_diagonal(self._array, shifted)
        try:
            norm = _one_norm(self._array)
            factor, info = lapack.dpotrf(self._array, lower=0, clean=0, overwrite_a=1)
            if info:
                raise NotPositiveDefinite(
                    f"penalty is {penalty:g}, too small: the normal equations are singular to rounding; "
                    "use a larger penalty, or method='orthogonal' for many digits"
                )
            coefficients, _ = lapack.dpotrs(factor, self.moment, lower=0)
            reciprocal, _ = lapack.dpocon(factor, norm)
        finally:
            np.fill_diagonal(self._array, diagonal)
        condition = 1 / reciprocal if reciprocal > 0 else np.inf
        error = relative_error(self._mean_square(coefficients, penalty), self.energy.sum() / self.count)
        return LinearFit(coefficients, float(penalty), self.columns, float(condition), error)

    def path(self) -> PenaltyPath:
        """Ridge fits for all penalties from one eigendecomposition."""
        self._require_rows()
        matrix, moment = self.gram, self.moment
        energy = self.energy.sum() / self.count
        offset, elimination, centred = np.zeros((self.columns, self.outputs)), None, self.energy
        if self.constant:
            cross, total = matrix[-1, :-1], matrix[-1, -1]
            offset[-1] = moment[-1] / total
            elimination = np.append(cross / total, 0.0)
            matrix = matrix[:-1, :-1] - np.outer(cross, cross / total)
            moment, centred = moment[:-1] - np.outer(cross, offset[-1]), centred - np.square(moment[-1]) / total
        if len(matrix) == 0:
            values, vectors = np.zeros(0), np.zeros((0, 0))
        else:
            values, vectors = eigh(matrix / self.count, overwrite_a=True, check_finite=False, driver="evd")
        values, vectors = values[::-1], vectors[:, ::-1]
        top = values.max(initial=0.0)
        keep = values > np.finfo(float).eps * self.columns * top
        loadings = vectors[:, keep].T @ moment / self.count / np.sqrt(values[keep, None])
        rest = np.maximum(centred / self.count - np.square(loadings).sum(axis=0), _floor(energy))
        basis = np.zeros((self.columns, int(keep.sum())))
        basis[: len(vectors)] = vectors[:, keep]
        return PenaltyPath(values[keep], loadings, basis, rest, offset, elimination, energy, self.count, 1e-14 * top)

    def _mean_square(self, coefficients: Array, penalty: float) -> float:
        """rss/M from the sums: |y|² - w·(r + λM w). It cannot resolve relative errors below about 1e-8."""
        ridge = penalty * self.count * np.square(coefficients[: self.columns - self.constant]).sum()
        energy = self.energy.sum()
        rss = energy - (coefficients * self.moment).sum() - ridge
        return float(max(rss / self.count, _floor(energy / self.count)))

    def _require_rows(self) -> None:
        if self.count == 0:
            raise InputError("points is empty; give at least one point")


def add_dense(
    equations: NormalEquations, features: Features, points: Array, values: Array, weights: Array | None
) -> None:
    """Add points to the normal equations through blocks of the design matrix."""
    rows = min(block_rows(features.columns), len(points))
    buffer = np.empty((rows, features.columns))
    for block in row_blocks(len(points), rows):
        design = features.ridge(points[block], 0, buffer[: block.stop - block.start])
        equations.add(design, values[block], None if weights is None else weights[block])


def _floor(mean_square: float) -> float:
    """The rounding error of a difference of sums of this size."""
    return float(np.finfo(float).eps * mean_square)


def _mirror_lower(matrix: Array, block: int = 512) -> None:
    """Copy the strict lower triangle onto the upper one, block by block, in place."""
    size = len(matrix)
    for start in range(0, size, block):
        stop = min(start + block, size)
        square = matrix[start:stop, start:stop]
        square[...] = np.tril(square) + np.tril(square, -1).T
        matrix[start:stop, stop:] = matrix[stop:, start:stop].T


def _one_norm(matrix: Array, block: int = 512) -> float:
    """Largest absolute column sum, without a second matrix."""
    return max(float(np.abs(matrix[:, j : j + block]).sum(axis=0).max()) for j in range(0, len(matrix), block))
