"""Least squares in blocks: the features of one cell after the other are eliminated by orthogonal factorisation.

Conditions on the boundary involve the features of one cell, jumps across a face those of two. To eliminate a cell, all
rows that involve it are gathered in a dense front and factorised. The first rows of the triangle express its weights by
those of its neighbours; the others, which involve the neighbours alone, go back among the rows. It is the multifrontal
method for least squares (Duff and Reid, 1983; Davis, 2011), with cells instead of variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.trefftz.least_squares import SAFE, Householder, Minimiser, rounding_ridge


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Rows Σ_k matrices[k] c_{cells[k]} = rhs (M,); weights (M,) are not applied."""

    cells: tuple[int, ...]
    matrices: tuple[Array, ...]
    rhs: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class Front:
    """One eliminated cell: its rows of the triangular factor, over its own weights and those of its neighbours."""

    cell: int
    others: tuple[int, ...]
    reflections: Householder
    inputs: tuple[int, ...]
    """Numbers of the row blocks that were gathered; those of the problem first, then remainders of earlier fronts."""

    def pivot(self, own: int) -> Array:
        return self.reflections.reflections[:own]


@dataclass(frozen=True, eq=False)
class BlockRows:
    """All rows of a problem with cells; columns (cells,) : the number of features of each."""

    blocks: tuple[RowBlock, ...]
    columns: tuple[int, ...]

    @property
    def count(self) -> int:
        return sum(len(one.rhs) for one in self.blocks)

    @property
    def data(self) -> float:
        """The L² norm of the right-hand side."""
        return float(np.linalg.norm(np.concatenate([one.rhs * one.weights for one in self.blocks])))

    @cached_property
    def starts(self) -> Array:
        return np.concatenate([[0], np.cumsum(self.columns)])

    def of(self, vector: Array, cell: int) -> Array:
        """The part of a vector (N, …) that belongs to a cell."""
        return vector[self.starts[cell] : self.starts[cell + 1]]

    def applied(self, coefficients: Array) -> list[Array]:
        """matrix · coefficients, block by block, without weights."""
        return [
            np.asarray(sum(m @ self.of(coefficients, c) for c, m in zip(one.cells, one.matrices, strict=True)))
            for one in self.blocks
        ]

    def solved(self, accuracy: float = 0.0) -> BlockLeastSquares:
        """The minimiser of the weighted residual with a ridge of rounding; one step of refinement for any accuracy."""
        sizes = np.zeros(self.starts[-1])
        for one in self.blocks:
            for cell, matrix in zip(one.cells, one.matrices, strict=True):
                self.of(sizes, cell)[:] += np.square(matrix * one.weights[:, None]).sum(axis=0)
        sizes = np.sqrt(sizes)
        sizes[~(sizes > 1e-280)] = np.inf  # a feature that vanishes on all rows is left out
        scaled = [
            np.concatenate(
                [m * one.weights[:, None] / self.of(sizes, c) for c, m in zip(one.cells, one.matrices, strict=True)],
                axis=1,
            )
            for one in self.blocks
        ]
        factors = Elimination.of(
            scaled, [b.cells for b in self.blocks], self.columns, rounding_ridge(max(self.columns))
        )
        coefficients = np.zeros(len(sizes))
        for _ in range(2):
            left = [
                (one.rhs - values) * one.weights
                for one, values in zip(self.blocks, self.applied(coefficients / sizes), strict=True)
            ]
            coefficients = coefficients + factors.solved(left)
        return BlockLeastSquares(coefficients / sizes, sizes, factors)


@dataclass(eq=False)
class Elimination:
    """The fronts of all cells in the order in which they were eliminated."""

    columns: tuple[int, ...]
    ridge: float
    fronts: list[Front] = field(default_factory=list)

    @classmethod
    def of(
        cls, matrices: Sequence[Array], cells: Sequence[tuple[int, ...]], columns: tuple[int, ...], ridge: float
    ) -> Elimination:
        """matrices : dense blocks of rows over the columns of their cells, one after the other."""
        elimination = cls(columns, ridge)
        rows: dict[int, tuple[tuple[int, ...], Array]] = dict(enumerate(zip(cells, matrices, strict=True)))
        left = set(range(len(columns)))
        while left:
            checkpoint()
            # the cell whose front is smallest: minimum degree
            met = {c: set().union(*(set(own) for own, _ in rows.values() if c in own)) | {c} for c in left}
            cell = min(left, key=lambda c: (sum(columns[k] for k in met[c]), c))
            others = tuple(sorted(met[cell] - {cell}))
            inputs = tuple(number for number, (own, _) in rows.items() if cell in own)
            front = elimination._gathered(cell, others, [rows.pop(number) for number in inputs])
            elimination.fronts.append(Front(cell, others, Householder.of(front), inputs))
            triangle = elimination.fronts[-1].reflections.triangle
            if others:
                own = columns[cell]
                rest = triangle[own : min(len(front), len(triangle)), own:]
                rows[len(matrices) + len(elimination.fronts) - 1] = (others, rest)
            left.remove(cell)
        return elimination

    def _gathered(self, cell: int, others: tuple[int, ...], rows: list[tuple[tuple[int, ...], Array]]) -> Array:
        order = (cell, *others)
        starts = dict(zip(order, np.cumsum([0, *(self.columns[k] for k in order)])[:-1].tolist(), strict=True))
        own = self.columns[cell]
        height, width = sum(len(matrix) for _, matrix in rows) + own, sum(self.columns[k] for k in order)
        front = np.zeros((max(height, width), width), order="F")
        at = 0
        for cells, matrix in rows:
            column = 0
            for k in cells:
                front[at : at + len(matrix), starts[k] : starts[k] + self.columns[k]] = matrix[
                    :, column : column + self.columns[k]
                ]
                column += self.columns[k]
            at += len(matrix)
        front[at : at + own, :own] = self.ridge * np.eye(own)  # columns have the size one
        return front

    def _split(self, vector: Array) -> list[Array]:
        return np.split(vector, np.cumsum(self.columns)[:-1])

    def solved(self, rhs: Sequence[Array]) -> Array:
        """The minimiser (N,) for right-hand sides of all blocks."""
        sides = dict(enumerate(rhs))
        images = []
        for number, front in enumerate(self.fronts):
            height = len(front.reflections.reflections)
            side = np.concatenate([sides[k] for k in front.inputs])
            turned = front.reflections.applied(np.pad(side, (0, height - len(side))))
            own = self.columns[front.cell]
            images.append(turned[:own])
            sides[len(rhs) + number] = turned[own:]
        solutions: list[Array] = [np.empty(0)] * len(self.columns)
        for front, image in zip(reversed(self.fronts), reversed(images), strict=True):
            own = self.columns[front.cell]
            pivot = front.pivot(own)
            if front.others:
                image = image - pivot[:, own:] @ np.concatenate([solutions[k] for k in front.others])
            solutions[front.cell] = solve_triangular(pivot[:, :own], image, check_finite=False)
        return np.concatenate(solutions)

    def transposed(self, columns: Array) -> Array:
        """The adjoint of the inverse of the whole triangle times columns (N, K)."""
        parts = self._split(columns.copy())
        for front in self.fronts:
            own = self.columns[front.cell]
            pivot = front.pivot(own)
            parts[front.cell] = solve_triangular(pivot[:, :own], parts[front.cell], trans="T", check_finite=False)
            ends = own
            for k in front.others:
                parts[k] = parts[k] - pivot[:, ends : ends + self.columns[k]].T @ parts[front.cell]
                ends += self.columns[k]
        return np.concatenate(parts)

    def with_ridge(self, ridge: float) -> Elimination:
        """The factorisation of the same rows with another ridge: of the triangle, whose rows are fewer."""
        matrices = [
            np.concatenate([np.triu(front.pivot(own)[:, :own]), front.pivot(own)[:, own:]], axis=1)
            for front in self.fronts
            for own in (self.columns[front.cell],)
        ]
        return Elimination.of(matrices, [(one.cell, *one.others) for one in self.fronts], self.columns, ridge)


@dataclass(frozen=True, eq=False)
class BlockLeastSquares(Minimiser):
    """The minimiser and the factors of the rows, with the methods of ``LeastSquares``."""

    coefficients: Array
    sizes: Array
    factors: Elimination

    @cached_property
    def rank(self) -> int:
        diagonals = [np.abs(np.diag(f.pivot(f_own)[:, :f_own])) for f in self.factors.fronts
                     for f_own in (self.factors.columns[f.cell],)]  # fmt: skip
        diagonal = np.concatenate(diagonals)
        return int((diagonal > 2 * self.factors.ridge).sum())

    @cached_property
    def _safe(self) -> Elimination:
        return self.factors.with_ridge(SAFE)

    def responses(self, interior: Array) -> Array:
        """Bound of the error inside for a unit of residual, (N, K) for interior (K, N), as in ``LeastSquares``."""
        return self._safe.transposed((interior / self.sizes).T)
