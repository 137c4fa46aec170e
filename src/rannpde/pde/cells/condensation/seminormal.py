"""Triangular factors that are kept to solve for many right-hand sides (semi-normal equations)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.linalg import lapack

from rannpde.arrays import Array
from rannpde.pde.cells.condensation.blocks import RANK_TOLERANCE, PivotBlock
from rannpde.pde.cells.condensation.dissection import EliminationOrder


class SeminormalFactor:
    """The triangular factor R of a least-squares matrix A, which solves R*R x = A*b for many right-hand sides.

    Q is not stored. If residuals are computed with A itself, corrections by R alone converge to the same accuracy
    (corrected semi-normal equations, Björck 1987).

    leaves : pivot blocks of the leaves, None where there is no cell; elimination : pivot blocks of the traces; all real
        or all complex
    widths : number of trace coefficients per face; rank_deficient : whether some factor is singular to rounding
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
        factors = [leaf[0] for leaf in self.leaves if leaf is not None] + [step[1] for step in self.elimination]
        self.rank_deficient = any(factor.inverse is not None for factor in factors)

    def _at(self, faces: Sequence[int]) -> Array:
        """Return the positions of the traces on these faces in the vector of all traces."""
        parts = [np.arange(self.spans[j].start, self.spans[j].stop) for j in faces]
        return np.concatenate([np.empty(0, dtype=int), *parts])

    def solve(self, cells: Sequence[Array], traces: Array) -> tuple[list[Array], Array]:
        """Return x of R*R x = g; both are given as one array per leaf and the traces on all faces."""
        trace_values = np.array(traces)
        inner: list[Array] = []
        for rhs, leaf in zip(cells, self.leaves, strict=True):
            inner.append(rhs)
            if leaf is not None:
                factor, faces = leaf
                inner[-1] = factor.solve(rhs, adjoint=True)
                trace_values[faces] -= factor.coupling.conj().T @ inner[-1]
        for pivots, factor, coupled in self.elimination:
            trace_values[pivots] = factor.solve(trace_values[pivots], adjoint=True)
            trace_values[coupled] -= factor.coupling.conj().T @ trace_values[pivots]
        for pivots, factor, coupled in reversed(self.elimination):
            trace_values[pivots] = factor.solve(trace_values[pivots] - factor.coupling @ trace_values[coupled])
        cell_values = [
            rhs if leaf is None else leaf[0].solve(rhs - leaf[0].coupling @ trace_values[leaf[1]])
            for rhs, leaf in zip(inner, self.leaves, strict=True)
        ]
        return cell_values, trace_values


class TriangularFactor:
    """A pivot block [R | coupling] without right-hand sides; a singular R is replaced by its pseudo-inverse."""

    def __init__(self, pivot: PivotBlock) -> None:
        pivots = pivot.pivots
        self.matrix, self.coupling = np.asfortranarray(pivot.rows[:, :pivots]), pivot.rows[:, pivots:-1].copy()
        self.complex = np.iscomplexobj(self.matrix)
        condition = lapack.ztrcon if self.complex else lapack.dtrcon
        regular = not pivots or (len(self.matrix) == pivots and condition(self.matrix)[0] > RANK_TOLERANCE)
        self.inverse = None if regular else np.linalg.pinv(self.matrix, rcond=RANK_TOLERANCE)

    def solve(self, rhs: Array, adjoint: bool = False) -> Array:
        """Return R⁻¹ rhs, or R*⁻¹ rhs."""
        if self.inverse is not None:
            return (self.inverse.conj().T if adjoint else self.inverse) @ rhs
        if not len(self.matrix):
            return rhs
        solver = lapack.ztrtrs if self.complex else lapack.dtrtrs
        return np.asarray(solver(self.matrix, rhs, trans=2 * adjoint)[0])
