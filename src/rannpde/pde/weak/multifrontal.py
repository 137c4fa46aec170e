"""Direct solution of the system of traces in space: nested dissection along the tree, by dense factorisations.

Every face lies in the plane of one node of the tree, between a cell below and a cell above. When the traces inside both
children of a node are eliminated, its faces are eliminated too, which leaves a dense Schur complement on the faces
around the node (the multifrontal method). The work is in few large dense matrices, which take a small part of the time
of a general sparse factorisation, and no sparse matrix is formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, lu_factor, solve_triangular

from rannpde.arrays import Array
from rannpde.checkpoints import FLOAT_BYTES, checkpoint, factorising
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.weak.mesh import WeakMesh
from rannpde.pde.weak.self_similar import CondensedCells


@dataclass(frozen=True, eq=False)
class PartitionedComplement:
    """The blocks of a Schur complement: own (p, p), right (p, r), left (r, p), corner (r, r), and the numbers rest (r,)
    of the unknowns that are not eliminated next."""

    rest: Array
    own: Array
    right: Array
    left: Array
    corner: Array


@dataclass(frozen=True, eq=False)
class TraceComplement:
    """The Schur complement (n, n) of some cells, and the numbers (n,) of its unknowns."""

    unknowns: Array
    schur: Array

    def divided(self, own: Array) -> PartitionedComplement:
        """own (p,) : positions of the unknowns that are eliminated next."""
        others = np.delete(np.arange(len(self.unknowns)), own)
        rows, left = self.schur[own], self.schur[others]
        return PartitionedComplement(
            self.unknowns[others], rows[:, own], rows[:, others], left[:, own], left[:, others]
        )


@dataclass(frozen=True, eq=False)
class FrontFactors:
    """One front of a multifrontal factorisation, A_pp = P L U for the pivots p, and the rows and columns beside it.

    pivots (p,), rest (r,) : numbers of unknowns; order (p,) : rows in the order of P; lower, upper (p, p) : L and U;
    above (p, r) : L⁻¹ P A_pr; below (r, p) : A_rp U⁻¹
    """

    pivots: Array
    rest: Array
    order: Array
    lower: Array
    upper: Array
    above: Array
    below: Array

    @classmethod
    def of(cls, one: TraceComplement, other: TraceComplement, symmetric: bool) -> tuple[FrontFactors, TraceComplement]:
        """Eliminate the unknowns that two Schur complements share: the factors, and the complement of both."""
        pivots, *common = np.intersect1d(one.unknowns, other.unknowns, assume_unique=True, return_indices=True)
        p, first = len(pivots), len(one.unknowns) - len(pivots)
        parts = [part.divided(own) for part, own in zip((one, other), common, strict=True)]
        rest = np.concatenate([part.rest for part in parts])
        own = parts[0].own + parts[1].own
        right = np.concatenate([part.right for part in parts], axis=1)
        order = np.arange(p)
        lower = _cholesky(own) if symmetric else None
        if lower is not None:
            upper = lower.T
            above = solve_triangular(lower, right, lower=True, check_finite=False)
            below = above.T
        else:
            left = np.concatenate([part.left for part in parts])
            packed, swaps = lu_factor(own, check_finite=False)
            for row, swapped in enumerate(swaps):
                order[[row, swapped]] = order[[swapped, row]]
            lower, upper = np.tril(packed, -1) + np.eye(p), np.triu(packed)
            above = solve_triangular(lower, right[order], lower=True, check_finite=False)
            below = solve_triangular(upper, left.T, trans=1, check_finite=False).T
        schur = -(below @ above)
        schur[:first, :first] += parts[0].corner
        schur[first:, first:] += parts[1].corner
        return cls(pivots, rest, order, lower, upper, above, below), TraceComplement(rest, schur)


def _cholesky(matrix: Array) -> Array | None:
    """The lower triangular factor; None of a matrix that is not positive definite."""
    try:
        return np.tril(cho_factor(matrix, lower=True, check_finite=False)[0])
    except np.linalg.LinAlgError:
        return None


class MultifrontalFactors:
    """The factors of the matrix of traces that cells with these Schur complements make.

    used : which of the unknowns (n,) take part; None for all of them
    symmetric : whether the matrix is
    """

    def __init__(
        self, mesh: WeakMesh, cells: Sequence[CondensedCells], used: Array | None = None, symmetric: bool = False
    ) -> None:
        self._symmetric = symmetric
        self._fronts: list[FrontFactors] = []
        leaves = {node: number for number, node in enumerate(mesh.tree.leaves)}
        own: dict[int, TraceComplement] = {}
        for part in cells:
            for row, cell in enumerate(part.cells):
                dofs, schur = part.dofs[row], part.kinds[part.same[row]]
                if used is not None:
                    mine = used[dofs]
                    dofs, schur = dofs[mine], schur[np.ix_(mine, mine)]
                own[int(mesh.leaves[cell])] = TraceComplement(dofs, schur)
        plan = {leaf: part.unknowns for leaf, part in own.items()}
        flops, entries = self._work(mesh.tree, leaves, plan)[1:]
        with factorising("multifrontal", flops, FLOAT_BYTES * entries):
            self._eliminate(mesh.tree, leaves, own)

    def _work(self, node: CellNode, leaves: dict[CellNode, int], plan: dict[int, Array]) -> tuple[Array, float, float]:
        """Unknowns that a node leaves, operations, and numbers that are stored or needed at once, up to it."""
        if node.children is None:
            return plan.get(leaves[node], np.empty(0, dtype=int)), 0.0, 0.0
        (one, first, mine), (other, second, more) = (self._work(child, leaves, plan) for child in node.children)
        p, rest = len(np.intersect1d(one, other)), np.setxor1d(one, other)
        size, r = p + len(rest), len(rest)
        factor = 1.0 if self._symmetric else 2.0
        flops = factor * (p**3 / 3 + p**2 * r + p * r**2)
        return rest, first + second + flops, mine + more + factor * p * size + r**2

    def _eliminate(
        self, node: CellNode, leaves: dict[CellNode, int], own: dict[int, TraceComplement]
    ) -> TraceComplement | None:
        """The Schur complement on the faces around a node; None where no cell is in it."""
        if node.children is None:
            return own.pop(leaves[node], None)
        one, other = (self._eliminate(child, leaves, own) for child in node.children)
        if one is None or other is None:
            return one or other
        checkpoint()
        factors, complement = FrontFactors.of(one, other, self._symmetric)
        self._fronts.append(factors)
        return complement

    def solve(self, right: Array, transposed: bool = False) -> Array:
        """The solution (n,) of the system, or of the transposed one; unknowns that take no part are zero."""
        left, solution = right.copy(), np.zeros_like(right)
        for front in self._fronts:
            if transposed:
                half = solve_triangular(front.upper, left[front.pivots], trans=1, check_finite=False)
                left[front.rest] -= front.above.T @ half
            else:
                half = solve_triangular(front.lower, left[front.pivots][front.order], lower=True, check_finite=False)
                left[front.rest] -= front.below @ half
            solution[front.pivots] = half
        for front in reversed(self._fronts):
            if transposed:
                half = solution[front.pivots] - front.below.T @ solution[front.rest]
                own = np.empty_like(half)
                own[front.order] = solve_triangular(front.lower, half, lower=True, trans=1, check_finite=False)
            else:
                half = solution[front.pivots] - front.above @ solution[front.rest]
                own = solve_triangular(front.upper, half, check_finite=False)
            solution[front.pivots] = own
        return solution
