"""Least squares for many holes: few features couple all of them, and those of each hole alone are found by iteration.

The higher multipoles of a hole die out before they reach its neighbours: on the boundary of their own hole they are a
basis, elsewhere they are small. So the features are divided into two levels. Polynomials, what corners need, and the
logarithms and dipoles of all holes are eliminated by orthogonal factorisation. The higher multipoles are made
orthonormal hole by hole, and conjugate gradients for least squares find them in what the first level leaves: their
matrix is the identity and a compact rest, so that ten to twenty steps give all digits. With n features of the first
level among N the cost is O(M n² + M N) instead of O(M N²).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal, solve_triangular
from scipy.linalg.blas import dtrsm

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.trefftz.least_squares import (
    PANEL,
    SAFE,
    Householder,
    Minimiser,
    Regularised,
    rounding_ridge,
    unit_columns,
)

MOST_GRADIENT_STEPS = 200
"""Steps of conjugate gradients at most; where holes nearly touch, fifty are needed."""
IDLE_STEPS = 12
"""Steps in a row without a smaller gradient, after which it is rounding."""


@dataclass(frozen=True, eq=False)
class HoleBlock:
    """The rows (R,) of the conditions on a hole, and the columns (C,) of its higher multipoles."""

    rows: Array
    columns: Array


@dataclass(frozen=True, eq=False)
class ColumnLevels:
    """Which columns belong to which level: the first ones couple everything, the others belong to one hole each."""

    coupled: Array
    blocks: tuple[HoleBlock, ...]

    @classmethod
    def of(cls, count: int, blocks: Sequence[HoleBlock]) -> ColumnLevels:
        """The levels of ``count`` columns; there is only the first level unless most columns belong to holes."""
        inner = np.concatenate([np.empty(0, dtype=int), *(block.columns for block in blocks)])
        if 2 * len(inner) <= count:
            return cls(np.arange(count), ())
        return cls(np.setdiff1d(np.arange(count), inner), tuple(blocks))

    @property
    def order(self) -> Array:
        """The columns (N,), level after level and hole after hole."""
        return np.concatenate([self.coupled, *(block.columns for block in self.blocks)])

    @property
    def slices(self) -> list[slice]:
        """Where the columns of each hole are among those of the second level."""
        ends = np.cumsum([0, *(len(block.columns) for block in self.blocks)]).tolist()
        return [slice(start, stop) for start, stop in pairwise(ends)]


@dataclass(frozen=True, eq=False)
class TwoLevelLeastSquares(Minimiser):
    """The minimiser of ‖matrix c - rhs‖, and the factors of the matrix, which give the gain of errors.

    sizes (N,) of the columns, which were divided by them, level after level; basis (M, n) : orthonormal, of the first
    level with its triangle; fine (M, N - n) : the second level, orthonormal on its own holes by triangles of theirs;
    smallest : its smallest singular value beside the first level
    """

    coefficients: Array
    levels: ColumnLevels
    sizes: Array
    triangle: Array
    triangles: tuple[Array, ...]
    basis: Array
    fine: Array
    smallest: float
    rank: int

    @cached_property
    def _safe(self) -> Array:
        return Regularised.of(self.triangle, SAFE).triangle

    def sketch(self, values: Array) -> Array:
        """Random combinations of values (K, …), as responses to all of them would be a third of the work."""
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (PANEL, len(values))) / np.sqrt(PANEL)
        return np.tensordot(signs, values, 1)

    def responses(self, interior: Array) -> Array:
        """A matrix (N, K) whose largest singular value bounds ‖interior c‖ / ‖matrix c‖ from above for all c, the error
        inside for a unit of boundary error. interior (K, N) : as in ``LeastSquares.responses``."""
        scaled, count = (interior[:, self.levels.order] / self.sizes).T, len(self.levels.coupled)
        first = solve_triangular(self._safe, scaled[:count], trans="T", check_finite=False)
        second = -self.fine.T @ (self.basis @ first)
        for hole, triangle in zip(self.levels.slices, self.triangles, strict=True):
            second[hole] += solve_triangular(triangle, scaled[count:][hole], trans="T", check_finite=False)
        return np.concatenate([first, second / self.smallest])


def two_level_least_squares(
    weighted: Array, rhs: Array, levels: ColumnLevels, accuracy: float = 0.0
) -> TwoLevelLeastSquares:
    """The minimiser of ‖weighted c - rhs‖, that of the second level by iteration.

    weighted (M, N) : columns level after level; it is overwritten
    accuracy : of the second level, relative, at which the iteration may end; rounding ends it anyway
    """
    sizes, count = unit_columns(weighted), len(levels.coupled)
    ridge = rounding_ridge(len(sizes))
    coupled, fine = weighted[:, :count], weighted[:, count:]
    first = Householder.of(coupled)
    triangle, basis = first.triangle, first.orthonormal
    second = Regularised.of(triangle, ridge)
    triangles = []
    for block, hole in zip(levels.blocks, levels.slices, strict=True):
        checkpoint()
        factor = Householder.of(np.asfortranarray(fine[block.rows, hole])).triangle
        triangles.append(Regularised.of(factor, ridge).triangle)
        fine[:, hole] = dtrsm(1.0, triangles[-1], fine[:, hole], side=1)
    solution, left, smallest = np.zeros(len(sizes)), rhs, 1.0
    # iterative refinement: one solve leaves rounding errors of its own
    half = float(np.sqrt(ridge))
    for decrease in (max(accuracy, half), max(accuracy / half, half)):
        if decrease >= 1:
            break
        inside, lowest = _conjugate_gradients(fine, basis, left, decrease, max(accuracy, ridge))
        smallest = min(smallest, lowest)
        rest = left - fine @ inside
        change = second.solved(first.applied(rest))
        left = rest - coupled @ change
        solution += np.concatenate([change, inside])
    for hole, factor in zip(levels.slices, triangles, strict=True):
        solution[count:][hole] = solve_triangular(factor, solution[count:][hole], check_finite=False)
    coefficients = np.empty(len(sizes))
    coefficients[levels.order] = solution / sizes
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > ridge * diagonal.max(initial=0.0)).sum()) + fine.shape[1]
    return TwoLevelLeastSquares(coefficients, levels, sizes, triangle, tuple(triangles), basis, fine, smallest, rank)


def _conjugate_gradients(
    fine: Array, basis: Array, rhs: Array, decrease: float, accuracy: float
) -> tuple[Array, float]:
    """The minimiser of ‖P (fine y - rhs)‖ with P = 1 - basis basisᵀ, until the gradient has fallen by a decrease, or to
    the accuracy relative to what is left; and the smallest singular value of P fine, as Lanczos' matrix has it."""
    solution, left = np.zeros(fine.shape[1]), rhs - basis @ (basis.T @ rhs)
    gradient = fine.T @ left
    step, square = gradient, float(gradient @ gradient)
    lengths: list[float] = []
    turns: list[float] = []
    best, least, idle = solution, square, 0
    enough = decrease**2 * square
    while (
        len(lengths) < MOST_GRADIENT_STEPS
        and idle < IDLE_STEPS
        and square > max(enough, accuracy**2 * float(left @ left))
    ):
        checkpoint()
        image = fine @ step
        image -= basis @ (basis.T @ image)
        length = square / float(image @ image)
        solution = solution + length * step
        left = left - length * image
        gradient = fine.T @ left
        before, square = square, float(gradient @ gradient)
        step = gradient + square / before * step
        lengths.append(length)
        turns.append(square / before)
        idle += 1
        if square < least:
            best, least, idle = solution, square, 0
    if not lengths:
        return best, 1.0
    a, b = np.array(lengths), np.array(turns)
    diagonal = 1 / a + np.concatenate([[0.0], b[:-1] / a[:-1]])
    beside = np.sqrt(b[:-1]) / a[:-1]
    lowest = float(eigvalsh_tridiagonal(diagonal, beside)[0])
    return best, float(np.sqrt(max(lowest, np.finfo(float).eps)))
