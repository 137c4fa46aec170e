"""Least squares over cells by nested dissection: separators of cells are eliminated last, by orthogonal factorisation.

Rows involve the unknowns of one or two neighbouring cells. The cells that a line crosses separate those on both sides
of it, which are treated in the same way first (George, 1973); elimination of a part leaves rows over the unknowns of
separators around it. The right-hand side is carried along as one more column, so that no orthogonal factor is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import get_lapack_funcs, solve_triangular

from rannpde.arrays import Array
from rannpde.checkpoints import factorising
from rannpde.pde.trefftz.least_squares import PANEL


@dataclass(frozen=True, eq=False)
class NeighbourRows:
    """Rows over the unknowns of some cells: matrix (H, m · cells), rhs (H,)."""

    cells: tuple[int, ...]
    matrix: Array
    rhs: Array

    def applied(self, unknowns: Array) -> Array:
        """matrix · unknowns (C, m): (H,)."""
        return np.asarray(self.matrix @ unknowns[list(self.cells)].ravel())


@dataclass(frozen=True, eq=False)
class EliminatedCells:
    """Rows of the triangle over cells that are eliminated, then over those that are left; last is the rhs."""

    own: tuple[int, ...]
    others: tuple[int, ...]
    rows: Array


@dataclass(eq=False)
class Dissection:
    """The triangular factor of all rows, in the order of elimination; width : unknowns of each of ``count`` cells."""

    count: int
    width: int
    parts: list[EliminatedCells] = field(default_factory=list)

    @classmethod
    def of(cls, rows: Sequence[NeighbourRows], boxes: Array, width: int) -> Dissection:
        """boxes (C, 2, 2) : where the cells are."""
        dissection = cls(len(boxes), width)
        dissection._dissected(np.arange(len(boxes)), boxes, list(rows))
        return dissection

    def _dissected(self, cells: Array, boxes: Array, rows: list[NeighbourRows]) -> list[NeighbourRows]:
        """Eliminate cells; rows : all that involve them. Return what is left for others."""
        below, between, above = _separated(cells, boxes)
        for part in (below, above):
            if len(part):
                inside = set(part.tolist())
                mine = [one for one in rows if not inside.isdisjoint(one.cells)]
                rest = [one for one in rows if inside.isdisjoint(one.cells)]
                rows = rest + self._dissected(part, boxes, mine)
        return self._eliminated(tuple(between.tolist()), rows)

    def _eliminated(self, own: tuple[int, ...], rows: list[NeighbourRows]) -> list[NeighbourRows]:
        others = tuple(sorted({cell for one in rows for cell in one.cells} - set(own)))
        width, columns = self.width, self.width * (len(own) + len(others))
        starts = {cell: width * k for k, cell in enumerate((*own, *others))}
        height = max(sum(len(one.rhs) for one in rows), columns + 1)
        with factorising("qr", 2.0 * height * columns**2, 8 * height * columns):
            front, at = np.zeros((height, columns + 1), order="F"), 0
            for one in rows:
                stop = at + len(one.rhs)
                for k, cell in enumerate(one.cells):
                    front[at:stop, starts[cell] : starts[cell] + width] = one.matrix[:, k * width : (k + 1) * width]
                front[at:stop, -1], at = one.rhs, stop
            (geqrf,) = get_lapack_funcs(("geqrf",), (front,))
            triangle = np.triu(geqrf(front, lwork=PANEL * (columns + 1), overwrite_a=True)[0][:columns])
        pivots = width * len(own)
        self.parts.append(EliminatedCells(own, others, triangle[:pivots].copy()))
        if not others:
            return []
        return [NeighbourRows(others, triangle[pivots:, pivots:-1].copy(), triangle[pivots:, -1].copy())]

    def solved(self) -> Array:
        """The minimiser (C, m)."""
        return self._backward([part.rows[:, -1] for part in self.parts])

    def corrected(self, products: Array) -> Array:
        """The solution (C, m) of the normal equations A*A c = products (C, m): semi-normal equations."""
        return self._backward(self._forward(products))

    def _backward(self, images: Sequence[Array]) -> Array:
        """R⁻¹ applied."""
        coefficients = np.zeros((self.count, self.width))
        for part, image in zip(reversed(self.parts), reversed(images), strict=True):
            pivots = self.width * len(part.own)
            if part.others:
                image = image - part.rows[:, pivots:-1] @ coefficients[list(part.others)].ravel()
            solution = solve_triangular(part.rows[:, :pivots], image, check_finite=False)
            coefficients[list(part.own)] = solution.reshape(-1, self.width)
        return coefficients

    def _forward(self, columns: Array) -> list[Array]:
        """The inverse adjoint of R applied to columns (C, m)."""
        left, images = columns.copy(), []
        for part in self.parts:
            pivots, own, others = self.width * len(part.own), list(part.own), list(part.others)
            image = solve_triangular(part.rows[:, :pivots], left[own].ravel(), trans="T", check_finite=False)
            images.append(image)
            if others:
                left[others] -= (part.rows[:, pivots:-1].T @ image).reshape(-1, self.width)
        return images

    def smallest_singular_value(self, weights: Array, steps: int = 4) -> float:
        """min ‖A c‖ / ‖weights c‖ over c (C, m), with weights (C,) of the cells: by inverse iteration.

        Near a resonance, where it matters, one mode grows more than all others, and few steps are enough.
        """
        vector = np.random.default_rng(0).standard_normal((self.count, self.width))
        size = 1.0
        for _ in range(steps):
            vector = weights[:, None] * self.corrected(weights[:, None] * vector / np.linalg.norm(vector))
            size = float(np.linalg.norm(vector))
            if not np.isfinite(size) or size == 0:
                return 0.0
        return float(size**-0.5)


def _separated(cells: Array, boxes: Array) -> tuple[Array, Array, Array]:
    """Cells below a line, those that it crosses, and those above it: the line through a middle that crosses fewest."""
    choices = []
    for axis in range(2):
        low, high = boxes[cells, axis, 0], boxes[cells, axis, 1]
        middles = 0.5 * (low + high)
        line = np.sort(middles)[len(middles) // 2]
        crossed = (low < line) & (line < high)
        choices.append((int(crossed.sum()), axis, crossed, middles < line))
    _, _, crossed, below = min(choices, key=lambda one: one[:2])
    return cells[below & ~crossed], cells[crossed], cells[~below & ~crossed]
