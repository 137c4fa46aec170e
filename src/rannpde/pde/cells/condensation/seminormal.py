"""The triangles of an elimination, kept to solve for many right sides."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.linalg import lapack

from rannpde.arrays import Array
from rannpde.pde.cells.condensation.blocks import RANK_TOLERANCE, PivotBlock
from rannpde.pde.cells.condensation.dissection import EliminationOrder


class SeminormalFactor:
    """R of a least-squares matrix A, kept to solve R*R x = A*b for many right sides (semi-normal equations).

    Corrections of a residual that is computed from A itself are as accurate as those of Q, which need not be kept.
    leaves : rows of each leaf's own unknowns, None for none; order : those of the traces; both real or complex
    free : whether something is left undetermined
    """

    def __init__(
        self, leaves: Sequence[PivotBlock | None], elimination: EliminationOrder, widths: Sequence[int]
    ) -> None:
        ends = np.cumsum([0, *widths])
        self.spans = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        self.leaves = [None if pivot is None else (TriangularFactor(pivot), self._at(pivot.faces)) for pivot in leaves]
        self.elimination = [
            (self._at(mine), TriangularFactor(pivot), self._at(pivot.faces)) for mine, pivot in elimination
        ]
        known = [one[0] for one in self.leaves if one is not None] + [one[1] for one in self.elimination]
        self.rank_deficient = any(triangle.inverse is not None for triangle in known)

    def _at(self, faces: Sequence[int]) -> Array:
        """Where the traces of these faces stand among all."""
        parts = [np.arange(self.spans[j].start, self.spans[j].stop) for j in faces]
        return np.concatenate([np.empty(0, dtype=int), *parts])

    def solve(self, cells: Sequence[Array], traces: Array) -> tuple[list[Array], Array]:
        """x of R*R x = g, both as one array per leaf and the traces of all faces."""
        trace_values = np.array(traces)
        inner: list[Array] = []
        for rhs, one in zip(cells, self.leaves, strict=True):
            inner.append(rhs)
            if one is not None:
                inner[-1] = one[0].solve(rhs, adjoint=True)
                trace_values[one[1]] -= one[0].coupling.conj().T @ inner[-1]
        for mine, triangle, others in self.elimination:
            trace_values[mine] = triangle.solve(trace_values[mine], adjoint=True)
            trace_values[others] -= triangle.coupling.conj().T @ trace_values[mine]
        for mine, triangle, others in reversed(self.elimination):
            trace_values[mine] = triangle.solve(trace_values[mine] - triangle.coupling @ trace_values[others])
        cell_values = [
            rhs if one is None else one[0].solve(rhs - one[0].coupling @ trace_values[one[1]])
            for rhs, one in zip(inner, self.leaves, strict=True)
        ]
        return cell_values, trace_values


class TriangularFactor:
    """PivotBlock rows [R | beside] without a right side; a singular R is replaced by its pseudo-inverse."""

    def __init__(self, pivot: PivotBlock) -> None:
        own = pivot.own
        self.matrix, self.coupling = np.asfortranarray(pivot.rows[:, :own]), pivot.rows[:, own:-1].copy()
        self.complex = np.iscomplexobj(self.matrix)
        condition = lapack.ztrcon if self.complex else lapack.dtrcon
        regular = not own or (len(self.matrix) == own and condition(self.matrix)[0] > RANK_TOLERANCE)
        self.inverse = None if regular else np.linalg.pinv(self.matrix, rcond=RANK_TOLERANCE)

    def solve(self, rhs: Array, adjoint: bool = False) -> Array:
        """R⁻¹ right, or R*⁻¹ right."""
        if self.inverse is not None:
            return (self.inverse.conj().T if adjoint else self.inverse) @ rhs
        if not len(self.matrix):
            return rhs
        solver = lapack.ztrtrs if self.complex else lapack.dtrtrs
        return np.asarray(solver(self.matrix, rhs, trans=2 * adjoint)[0])
