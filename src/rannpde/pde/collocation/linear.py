"""Orthogonal least-squares steps: one QR of the Jacobian, then rank decision and damping on its small factor.

With J equilibrated to unit columns and [J | r] = Q R, everything happens on the triangular R: a pivoted QR decides the
rank, a second QR gives the step of least norm (a complete orthogonal decomposition: about half the time of an SVD, and
the same digits where the rank is full), and Levenberg–Marquardt stacks λI under R. Normal equations are never formed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_triangular

from rannpde.fitting.orthogonal import triangular_factor

Array = np.ndarray


@dataclass(frozen=True)
class Step:
    """A least-squares solution with the rank and the condition of what was kept."""

    solution: Array
    rank: int
    condition: float


@dataclass(frozen=True, eq=False)
class Factor:
    """R and Qᵀr of a Jacobian with columns scaled to length 1."""

    triangle: Array
    right: Array
    norms: Array

    @classmethod
    def of(cls, jacobian: Array, right: Array) -> Factor:
        """Factorise J (M, N), which is overwritten when it is Fortran-ordered, and the right-hand side (M,)."""
        columns = jacobian.shape[1]
        norms = np.sqrt(np.einsum("ij,ij->j", jacobian, jacobian))
        norms[norms == 0] = 1.0
        stacked = np.empty((len(jacobian), columns + 1), order="F")
        np.divide(jacobian, norms, out=stacked[:, :columns])
        stacked[:, columns] = right
        factor = triangular_factor(stacked)
        return cls(factor[:columns, :columns], factor[:columns, columns], norms)

    def solve(self, cutoff: float) -> Step:
        """The least-squares solution of least norm, dropping directions below cutoff × the largest pivot."""
        rotation, factor, order = qr(self.triangle, mode="economic", pivoting=True, check_finite=False)
        pivots = np.abs(factor.diagonal())
        rank = int((pivots > cutoff * pivots[0]).sum()) if pivots[0] > 0 else 0
        solution = np.zeros(len(self.norms))
        if rank:
            right = (rotation.T @ self.right)[:rank]
            basis, lower = qr(factor[:rank].T, mode="economic", check_finite=False)
            solution[order] = basis @ solve_triangular(lower, right, trans="T", check_finite=False)
        return Step(solution / self.norms, rank, float(pivots[0] / pivots[rank - 1]) if rank else np.inf)

    def damped(self, damping: float) -> Step:
        """The Levenberg–Marquardt step: minimise |J x - r|² + damping² |norms ∘ x|²."""
        columns = len(self.norms)
        stacked = np.zeros((len(self.triangle) + columns, columns + 1), order="F")
        stacked[: len(self.triangle), :columns] = self.triangle
        stacked[: len(self.triangle), columns] = self.right
        np.fill_diagonal(stacked[len(self.triangle) :, :columns], damping)
        factor = triangular_factor(stacked)
        solution = solve_triangular(factor[:columns, :columns], factor[:columns, columns], check_finite=False)
        return Step(solution / self.norms, columns, 1.0 / damping)
