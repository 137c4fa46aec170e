"""Interfaces as level sets: values, normals, and points on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy
from numpy.polynomial.legendre import leggauss

from rannpde.arrays import Array
from rannpde.pde.statement.expression import differentiate, evaluate

BISECTIONS, NEWTON_STEPS = 6, 6
"""Bisections of a bracket, then Newton steps in it: together they find a root to rounding."""
LINE_POINTS = 33
"""Points of a line through a box between which crossings of an interface are bracketed."""


@dataclass(frozen=True, eq=False)
class Interface:
    """The zeros of a smooth formula in the coordinates ``symbols``; flux : whether a flux jumps there."""

    formula: sympy.Expr
    symbols: tuple[sympy.Symbol, ...]
    flux: bool

    @cached_property
    def slopes(self) -> tuple[sympy.Expr, ...]:
        return tuple(differentiate(self.formula, symbol) for symbol in self.symbols)

    def evaluated(self, formulas: Sequence[sympy.Expr], points: Array) -> Array:
        """Formulas in the coordinates at points (M, n), (M, formulas)."""
        known = dict(zip(self.symbols, points.T, strict=True))
        return np.stack([np.broadcast_to(value, len(points)) for value in evaluate(formulas, known)], axis=1)

    def value(self, points: Array) -> Array:
        """Return the level (M,), which is zero on the interface."""
        return self.evaluated([self.formula], points)[:, 0]

    def normals(self, points: Array) -> Array:
        """Return unit normals (M, n) that point towards positive values."""
        slopes = self.evaluated(self.slopes, points)
        return slopes / np.maximum(np.linalg.norm(slopes, axis=1), 1e-300)[:, None]

    def within(self, bounds: Array, count: int) -> tuple[Array, Array]:
        """Return points (P, n) of the interface in a box and quadrature weights (P,), sum 1.

        Lines through a product Gauss grid are intersected with the interface, along each axis in turn; a point counts
        if the normal of the interface is closest to that axis.
        """
        nodes, gauss_weights = leggauss(count)
        points, weights = [np.empty((0, len(bounds)))], [np.empty(0)]
        for axis in range(len(bounds)):
            rest = [k for k in range(len(bounds)) if k != axis]
            ends = [bounds[k, 0] + 0.5 * (bounds[k, 1] - bounds[k, 0]) * (1 + nodes) for k in rest]
            grid = np.stack([part.ravel() for part in np.meshgrid(*ends, indexing="ij")], axis=1)
            parts = np.meshgrid(*[0.5 * gauss_weights * (bounds[k, 1] - bounds[k, 0]) for k in rest], indexing="ij")
            here, lines = self._roots(grid, rest, axis, bounds[axis])
            slopes = np.abs(self.normals(here))
            steepest = slopes.argmax(axis=1) == axis
            points.append(here[steepest])
            weights.append(np.prod([part.ravel() for part in parts], axis=0)[lines[steepest]] / slopes[steepest, axis])
        all_weights = np.concatenate(weights)
        return np.concatenate(points), all_weights / max(float(all_weights.sum()), 1e-300)

    def _roots(self, grid: Array, rest: list[int], axis: int, span: Array) -> tuple[Array, Array]:
        """Return the points (P, n) where lines through a grid meet the interface, and the numbers (P,) of the lines."""
        steps = np.linspace(span[0], span[1], LINE_POINTS)
        lines = np.empty((len(grid), LINE_POINTS, len(rest) + 1))
        lines[:, :, rest], lines[:, :, axis] = grid[:, None, :], steps
        positive = (self.value(lines.reshape(-1, len(rest) + 1)) > 0).reshape(len(grid), LINE_POINTS)
        rows, columns = np.nonzero(positive[:, 1:] != positive[:, :-1])
        points, first = lines[rows, columns].copy(), positive[rows, columns]
        lower, upper = steps[columns], steps[columns + 1]
        for step in range(BISECTIONS + NEWTON_STEPS):
            if step <= BISECTIONS:
                points[:, axis] = 0.5 * (lower + upper)
            value, slope = self.evaluated([self.formula, self.slopes[axis]], points).T
            below = (value > 0) == first
            lower, upper = np.where(below, points[:, axis], lower), np.where(below, upper, points[:, axis])
            if step >= BISECTIONS:
                with np.errstate(all="ignore"):
                    moved = np.nan_to_num(points[:, axis] - value / slope, nan=np.inf)
                points[:, axis] = np.where((lower <= moved) & (moved <= upper), moved, 0.5 * (lower + upper))
        return points, rows
