"""The triangles of an elimination, kept to solve for many right sides."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.linalg import lapack

from rannpde.arrays import Array
from rannpde.pde.cells.condensation.blocks import RANK_TOLERANCE, PivotBlock
from rannpde.pde.cells.condensation.dissection import Order


class SeminormalFactor:
    """R of a least-squares matrix A, kept to solve R*R x = A*b for many right sides (semi-normal equations).

    Corrections of a residual that is computed from A itself are as accurate as those of Q, which need not be kept.
    leaves : rows of each leaf's own unknowns, None for none; order : those of the traces; both real or complex
    free : whether something is left undetermined
    """

    def __init__(self, leaves: Sequence[PivotBlock | None], order: Order, widths: Sequence[int]) -> None:
        ends = np.cumsum([0, *widths])
        self.spans = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        self.leaves = [None if kept is None else (TriangularFactor(kept), self._at(kept.faces)) for kept in leaves]
        self.order = [(self._at(mine), TriangularFactor(kept), self._at(kept.faces)) for mine, kept in order]
        known = [one[0] for one in self.leaves if one is not None] + [one[1] for one in self.order]
        self.free = any(triangle.inverse is not None for triangle in known)

    def _at(self, faces: Sequence[int]) -> Array:
        """Where the traces of these faces stand among all."""
        parts = [np.arange(self.spans[j].start, self.spans[j].stop) for j in faces]
        return np.concatenate([np.empty(0, dtype=int), *parts])

    def solve(self, cells: Sequence[Array], traces: Array) -> tuple[list[Array], Array]:
        """x of R*R x = g, both as one array per leaf and the traces of all faces."""
        rest = np.array(traces)
        inner: list[Array] = []
        for right, one in zip(cells, self.leaves, strict=True):
            inner.append(right)
            if one is not None:
                inner[-1] = one[0].solve(right, adjoint=True)
                rest[one[1]] -= one[0].beside.conj().T @ inner[-1]
        for mine, triangle, others in self.order:
            rest[mine] = triangle.solve(rest[mine], adjoint=True)
            rest[others] -= triangle.beside.conj().T @ rest[mine]
        for mine, triangle, others in reversed(self.order):
            rest[mine] = triangle.solve(rest[mine] - triangle.beside @ rest[others])
        found = [
            right if one is None else one[0].solve(right - one[0].beside @ rest[one[1]])
            for right, one in zip(inner, self.leaves, strict=True)
        ]
        return found, rest


class TriangularFactor:
    """PivotBlock rows [R | beside] without a right side; a singular R is replaced by its pseudo-inverse."""

    def __init__(self, kept: PivotBlock) -> None:
        own = kept.own
        self.matrix, self.beside = np.asfortranarray(kept.rows[:, :own]), kept.rows[:, own:-1].copy()
        self.complex = np.iscomplexobj(self.matrix)
        condition = lapack.ztrcon if self.complex else lapack.dtrcon
        regular = not own or (len(self.matrix) == own and condition(self.matrix)[0] > RANK_TOLERANCE)
        self.inverse = None if regular else np.linalg.pinv(self.matrix, rcond=RANK_TOLERANCE)

    def solve(self, right: Array, adjoint: bool = False) -> Array:
        """R⁻¹ right, or R*⁻¹ right."""
        if self.inverse is not None:
            return (self.inverse.conj().T if adjoint else self.inverse) @ right
        if not len(self.matrix):
            return right
        solver = lapack.ztrtrs if self.complex else lapack.dtrtrs
        return np.asarray(solver(self.matrix, right, trans=2 * adjoint)[0])
