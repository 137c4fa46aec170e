"""Blocks of a static condensation, and the dense factorisations that make them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, get_lapack_funcs, lapack, solve_triangular

from rannpde.arrays import Array

RANK_TOLERANCE = 1e-13
"""A triangle of smaller reciprocal condition leaves something free, up to rounding."""
BLOCK_SIZE = 32
"""Columns that are turned together where rows are added to a triangle."""
CHOLESKY_CONDITION = 1e-7
"""A Cholesky factor of smaller reciprocal condition, for columns of length 1, has lost all but two digits."""


@dataclass(frozen=True, eq=False)
class SchurComplement:
    """Rows [traces of these faces | right sides] that a subtree leaves for the rest."""

    faces: tuple[int, ...]
    rows: Array


class IllConditioned(Exception):
    """Products of rows do not tell enough of them."""


@dataclass(frozen=True, eq=False)
class PivotBlock:
    """Rows that determine ``own`` unknowns once the traces of ``faces`` are known."""

    own: int
    faces: tuple[int, ...]
    rows: Array

    def solve(self, traces: Sequence[Array]) -> tuple[Array, bool]:
        """The unknowns (own, sides), and whether something was left free (its smallest solution is taken)."""
        rhs = self.rows[:, self.own :]
        if self.faces:
            known = np.concatenate([traces[j] for j in self.faces])
            rhs = rhs[:, len(known) :] - rhs[:, : len(known)] @ known
        triangle = self.rows[:, : self.own]
        if not self.own:
            return rhs[:0], False
        if len(triangle) == self.own and lapack.dtrcon(triangle)[0] > RANK_TOLERANCE:
            return solve_triangular(triangle, rhs, check_finite=False), False
        return np.linalg.lstsq(triangle, rhs, rcond=RANK_TOLERANCE)[0], True


def schur(matrix: Array, own: int, rest: tuple[int, ...]) -> tuple[PivotBlock, SchurComplement]:
    """The first ``own`` unknowns eliminated from products of rows, given by their upper triangle.

    IllConditioned where that is not accurate.
    """
    if not own:
        return PivotBlock(0, rest, matrix[:0]), SchurComplement(rest, matrix)
    lengths = np.sqrt(np.abs(np.diag(matrix)[:own]))
    potrf, trcon, trtrs = get_lapack_funcs(("potrf", "trcon", "trtrs"), (matrix,))
    with np.errstate(divide="ignore", invalid="ignore"):
        triangle, failed = potrf(matrix[:own, :own] / lengths / lengths[:, None], clean=1)
        if failed or not trcon(triangle)[0] > CHOLESKY_CONDITION:
            raise IllConditioned
    coupling = trtrs(triangle, matrix[:own, own:] / lengths[:, None], trans=2)[0]
    left = _rank_update(coupling)(
        -1.0, coupling, beta=1.0, c=np.asfortranarray(matrix[own:, own:]), trans=2, overwrite_c=1
    )
    return PivotBlock(own, rest, np.hstack([triangle * lengths, coupling])), SchurComplement(rest, np.asarray(left))


def gram(rows: Array) -> Array:
    """The upper triangle of A*A: products of rows are never needed below it.

    >>> for rows in (np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.0j], [3.0, 4.0 + 1j]])):
    ...     print(bool(np.allclose(gram(rows), np.triu(rows.conj().T @ rows))))
    True
    True
    """
    if not rows.size:
        return np.zeros((rows.shape[1],) * 2, dtype=rows.dtype)
    return np.asarray(_rank_update(rows)(1.0, np.asfortranarray(rows), trans=2))


def _rank_update(rows: Array) -> Callable[..., Array]:
    """α A*A + β C, of which half is computed."""
    return blas.zherk if np.iscomplexobj(rows) else blas.dsyrk


def triangular_factor(matrix: Array) -> Array:
    """R of a QR factorisation, at most as many rows as columns; the matrix (in Fortran order) is overwritten."""
    rows, columns = matrix.shape
    if not rows:
        return np.zeros((0, columns), dtype=matrix.dtype)
    geqrf = lapack.zgeqrf if np.iscomplexobj(matrix) else lapack.dgeqrf
    factored, _, _, _ = geqrf(matrix, lwork=64 * columns, overwrite_a=1)
    return np.triu(factored[: min(rows, columns)])


def append_rows(rows: Array, more: Array, own: int) -> tuple[Array, Array]:
    """Rows [R | C], R a triangle of ``own`` columns, with more rows [B | D] below: R and C of both, and what is left.

    As many rows as were added are left, in the columns of C alone; R is filled up with zeros if it is not whole.
    """
    kind = np.result_type(rows, more)
    upper = np.zeros((own, rows.shape[1]), dtype=kind, order="F")
    upper[: len(rows)] = rows[:own]
    if not len(more):
        return upper, more[:, own:]
    tpqrt, tpmqrt = get_lapack_funcs(("tpqrt", "tpmqrt"), dtype=kind)
    block_size = min(own, BLOCK_SIZE)
    triangle, vectors, factors, _ = tpqrt(0, block_size, upper[:, :own], np.asfortranarray(more[:, :own], dtype=kind))
    turn = "C" if np.iscomplexobj(triangle) else "T"
    coupling, left, _ = tpmqrt(
        0, vectors, factors, upper[:, own:], np.asfortranarray(more[:, own:], dtype=kind), trans=turn
    )
    return np.hstack([np.triu(triangle), coupling]), left
