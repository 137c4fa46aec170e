"""Sums of products of Legendre polynomials in space at points whose coordinates are nested, one axis after another.

Points of whole boxes form a grid. Those of pieces of cut cells do not, but one coordinate depends on the first index
only, and a second one on the first two: sums along the axis of the first are formed once for each of its values, and so
on, which is a small part of the work of all products at all points.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.weak.legendre import orthonormal_legendre


class LegendreCube:
    """Functions with coefficients (R, n) of products of orthonormal Legendre polynomials, of degrees ``modes`` (R, 3)
    up to the highest."""

    def __init__(self, modes: Array, highest: int, coefficients: Array) -> None:
        self._legendre = partial(orthonormal_legendre, degree=highest)
        self._cube = np.zeros((highest + 1,) * 3 + (coefficients.shape[1],))
        self._cube[tuple(modes.T)] = coefficients
        self._total = int(modes.sum(axis=1).max(initial=0))
        self._layers: dict[int, list[tuple[tuple[Array, Array], Array]]] = {}

    def in_pieces(self, points: Array, count: int) -> Array:
        """The functions (M, n) at points (M, 3) of pieces with ``count``³ nodes each."""
        return np.concatenate([self._nested(piece) for piece in points.reshape(-1, count, count, count, 3)])

    def _nested(self, grid: Array) -> Array:
        """The functions (a b c, n) at nested points (a, b, c, 3)."""
        first = next(axis for axis in range(3) if not np.ptp(grid[..., axis], axis=(1, 2)).any())
        others = [axis for axis in range(3) if axis != first]
        second = next(axis for axis in others if not np.ptp(grid[..., axis], axis=2).any())
        third = next(axis for axis in others if axis != second)
        (a, b, c), order, width = grid.shape[:3], len(self._cube), self._cube.shape[3]
        planes, along = np.zeros((a, order, order, width)), self._legendre(grid[:, 0, 0, first])
        for (low, high), matrix in self._along(first):
            degrees = (low, high) if second < third else (high, low)
            planes[:, *degrees] = (along[:, : len(matrix)] @ matrix).reshape(a, len(low), width)
        lines = np.matmul(self._legendre(grid[:, :, 0, second]), planes.reshape(a, order, -1))
        values = np.matmul(self._legendre(grid[..., third]), lines.reshape(a, b, order, width))
        return np.asarray(values.reshape(a * b * c, width))

    def _along(self, axis: int) -> list[tuple[tuple[Array, Array], Array]]:
        """The coefficients by the degree along one axis, for each sum of the degrees along the two others, and these
        degrees: few along the axis where the sum is large, since total degrees are bounded."""
        if axis not in self._layers:
            turned, order = np.moveaxis(self._cube, axis, 0), len(self._cube)
            layers = []
            for total in range(min(2 * order - 1, self._total + 1)):
                low = np.arange(max(0, total - order + 1), min(total, order - 1) + 1)
                used = min(self._total - total + 1, order)
                layers.append(((low, total - low), turned[:used, low, total - low].reshape(used, -1)))
            self._layers[axis] = layers
        return self._layers[axis]
