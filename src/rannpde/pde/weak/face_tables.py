"""The functions of a whole box on flat faces, by sums over one axis after another.

On a face one coordinate is constant, and in space the others form a grid: products of Legendre polynomials are summed
along the axis across the face first, once for all faces at the same end of their cells, then along each other axis.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.weak.legendre import orthonormal_legendre


class FaceTables:
    """Values and derivatives on faces of functions given by Legendre coefficients.

    modes (R, d) : degrees of the products of orthonormal Legendre polynomials; jet (R, n) : coefficients
    """

    def __init__(self, modes: Array, jet: Array, highest: int) -> None:
        dim = modes.shape[1]
        self._legendre = partial(orthonormal_legendre, degree=highest)
        self._cube = np.zeros((highest + 1,) * dim + (jet.shape[1],))
        self._cube[tuple(modes.T)] = jet
        self._across: dict[tuple[int, float], Array] = {}

    def at(self, points: Array) -> Array | None:
        """The functions (q, n) at the nodes (q, d) of a face; None if it is not flat, or its nodes form no grid."""
        axis = int(np.ptp(points, axis=0).argmin())
        others = [a for a in range(points.shape[1]) if a != axis]
        if np.ptp(points[:, axis]) or points.shape[1] not in (2, 3):
            return None
        cut = self._cut(axis, float(points[0, axis]))
        if len(others) == 1:
            return np.asarray(self._legendre(points[:, others[0]]) @ cut)
        count = round(len(points) ** 0.5)
        if count**2 != len(points):
            return None
        first, second = (points[:, other].reshape(count, count) for other in others)
        if np.ptp(first, axis=1).any() or np.ptp(second, axis=0).any():
            return None
        rows, width = len(self._cube), cut.shape[-1]
        lines = (self._legendre(first[:, 0]) @ cut.reshape(rows, -1)).reshape(count, rows, width)
        return np.asarray(np.matmul(self._legendre(second[0]), lines).reshape(count * count, width))

    def in_plane(self, points: Array) -> tuple[Array, Array]:
        """Which faces (P,) with nodes (P, q, 2) are flat, and the functions (N, q, n) on the flat ones."""
        across = np.ptp(points, axis=1).argmin(axis=1)
        flat = np.ptp(points, axis=1).min(axis=1) == 0.0
        tables = np.empty((int(flat.sum()), points.shape[1], self._cube.shape[2]))
        rows = np.cumsum(flat) - 1
        for axis in (0, 1):
            mine = np.flatnonzero(flat & (across == axis))
            if not len(mine):
                continue
            values, same = np.unique(points[mine, 0, axis], return_inverse=True)
            cuts = np.tensordot(self._legendre(values), self._cube, axes=(1, axis))
            along = self._legendre(points[mine, :, 1 - axis].ravel()).reshape(len(mine), points.shape[1], -1)
            tables[rows[mine]] = np.matmul(along, cuts[same.ravel()])
        return flat, tables

    def _cut(self, axis: int, value: float) -> Array:
        """Coefficients along the other axes of the functions where one coordinate is ``value``."""
        key = (axis, value)
        if key not in self._across:
            self._across[key] = np.tensordot(self._legendre(np.array([value]))[0], self._cube, axes=(0, axis))
        return self._across[key]
