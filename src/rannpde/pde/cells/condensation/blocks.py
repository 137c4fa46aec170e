"""Blocks of a static condensation, and the dense factorisations that make them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, get_lapack_funcs, lapack, solve_triangular

from rannpde.arrays import Array
from rannpde.rounding import EPS

RANK_TOLERANCE = 1e-13
"""A triangular factor with a smaller reciprocal condition number is numerically rank deficient."""
BLOCK_SIZE = 32
"""Block size of the QR factorisation that appends rows to a triangular factor."""
CHOLESKY_CONDITION = 8 * EPS**0.5
"""Reciprocal condition number of a Cholesky factor, for columns of length 1, below which it is not used: normal
equations square it, and the rounding of their entries is then more than 1/64 of what they hold."""


@dataclass(frozen=True, eq=False)
class SchurComplement:
    """The rows [traces of these faces | right-hand sides] that remain after the unknowns of a subtree are
    eliminated."""

    faces: tuple[int, ...]
    rows: Array


class IllConditioned(Exception):
    """The normal equations are too ill-conditioned for the accuracy that is needed."""


@dataclass(frozen=True, eq=False)
class PivotBlock:
    """Rows in echelon form that determine ``pivots`` unknowns once the traces on ``faces`` are known."""

    pivots: int
    faces: tuple[int, ...]
    rows: Array

    def solve(self, traces: Sequence[Array]) -> tuple[Array, bool]:
        """Return the unknowns (pivots, rhs), and whether the block is rank deficient; then the solution of least norm
        is taken."""
        rhs = self.rows[:, self.pivots :]
        if self.faces:
            known = np.concatenate([traces[j] for j in self.faces])
            rhs = rhs[:, len(known) :] - rhs[:, : len(known)] @ known
        triangle = self.rows[:, : self.pivots]
        if not self.pivots:
            return rhs[:0], False
        if len(triangle) == self.pivots and lapack.dtrcon(triangle)[0] > RANK_TOLERANCE:
            return solve_triangular(triangle, rhs, check_finite=False), False
        return np.linalg.lstsq(triangle, rhs, rcond=RANK_TOLERANCE)[0], True


def schur(matrix: Array, pivots: int, rest: tuple[int, ...]) -> tuple[PivotBlock, SchurComplement]:
    """Eliminate the first ``pivots`` unknowns from normal equations that are given by their upper triangle.

    IllConditioned where the result would not be accurate.
    """
    if not pivots:
        return PivotBlock(0, rest, matrix[:0]), SchurComplement(rest, matrix)
    lengths = np.sqrt(np.abs(np.diag(matrix)[:pivots]))
    potrf, trcon, trtrs = get_lapack_funcs(("potrf", "trcon", "trtrs"), (matrix,))
    with np.errstate(divide="ignore", invalid="ignore"):
        triangle, failed = potrf(matrix[:pivots, :pivots] / lengths / lengths[:, None], clean=1)
        if failed or not trcon(triangle)[0] > CHOLESKY_CONDITION:
            raise IllConditioned
    coupling = trtrs(triangle, matrix[:pivots, pivots:] / lengths[:, None], trans=2)[0]
    left = _rank_update(coupling)(
        -1.0, coupling, beta=1.0, c=np.asfortranarray(matrix[pivots:, pivots:]), trans=2, overwrite_c=1
    )
    return PivotBlock(pivots, rest, np.hstack([triangle * lengths, coupling])), SchurComplement(rest, np.asarray(left))


def gram(rows: Array) -> Array:
    """Return the upper triangle of A*A.

    >>> for rows in (np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.0j], [3.0, 4.0 + 1j]])):
    ...     print(bool(np.allclose(gram(rows), np.triu(rows.conj().T @ rows))))
    True
    True
    """
    if not rows.size:
        return np.zeros((rows.shape[1],) * 2, dtype=rows.dtype)
    return np.asarray(_rank_update(rows)(1.0, np.asfortranarray(rows), trans=2))


def _rank_update(rows: Array) -> Callable[..., Array]:
    """Return the BLAS routine for α A*A + β C, which computes one triangle."""
    return blas.zherk if np.iscomplexobj(rows) else blas.dsyrk


def triangular_factor(matrix: Array) -> Array:
    """Return R of a QR factorisation, with at most as many rows as columns.

    The matrix, in Fortran order, is overwritten.
    """
    rows, columns = matrix.shape
    if not rows:
        return np.zeros((0, columns), dtype=matrix.dtype)
    geqrf = lapack.zgeqrf if np.iscomplexobj(matrix) else lapack.dgeqrf
    factored, _, _, _ = geqrf(matrix, lwork=64 * columns, overwrite_a=1)
    return np.triu(factored[: min(rows, columns)])


def append_rows(rows: Array, more: Array, pivots: int) -> tuple[Array, Array]:
    """Update the QR factorisation of rows [R | C], R triangular with ``pivots`` columns, by further rows [B | D].

    Return the new [R | C], with R padded with zero rows where it was incomplete, and the rows that remain in the
    columns of C alone, as many as were appended.
    """
    kind = np.result_type(rows, more)
    upper = np.zeros((pivots, rows.shape[1]), dtype=kind, order="F")
    upper[: len(rows)] = rows[:pivots]
    if not len(more):
        return upper, more[:, pivots:]
    tpqrt, tpmqrt = get_lapack_funcs(("tpqrt", "tpmqrt"), dtype=kind)
    block_size = min(pivots, BLOCK_SIZE)
    triangle, vectors, factors, _ = tpqrt(
        0, block_size, upper[:, :pivots], np.asfortranarray(more[:, :pivots], dtype=kind)
    )
    turn = "C" if np.iscomplexobj(triangle) else "T"
    coupling, left, _ = tpmqrt(
        0, vectors, factors, upper[:, pivots:], np.asfortranarray(more[:, pivots:], dtype=kind), trans=turn
    )
    return np.hstack([np.triu(triangle), coupling]), left
