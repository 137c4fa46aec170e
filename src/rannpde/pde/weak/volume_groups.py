"""Fields at the points of many cells at once, and integrals over these: whole boxes share products of matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.weak.functions import CellFunctions


@dataclass(frozen=True, eq=False)
class VolumeGroup:
    """Cells that have the same functions up to the scales of derivatives: products over all of them at once.

    rows (b,) : of a batch; table (Q, J, k) : values and derivatives of the functions, J = 1 + d; scale (b, J) : what
    these are multiplied by in each cell; points (b, Q, d), weights (b, Q) : of the rule
    """

    rows: Array
    table: Array
    scale: Array
    points: Array
    weights: Array

    def sampled(self, weights: Array) -> tuple[Array, Array]:
        """Values (b Q, F) and slopes (b Q, F, d) of fields of weights (b, F, k)."""
        (b, fields, k), (q, jets, _) = weights.shape, self.table.shape
        known = (weights.reshape(-1, k) @ self.table.reshape(-1, k).T).reshape(b, fields, q, jets)
        scaled = (known * self.scale[:, None, None]).transpose(0, 2, 1, 3).reshape(b * q, fields, jets)
        return scaled[..., 0], scaled[..., 1:]

    def tested(self, terms: Array) -> Array:
        """∫ of terms (b, Q, F, J) with the functions and their derivatives, (b, F, k)."""
        b, q, fields, jets = terms.shape
        scaled = terms * self.weights[:, :, None, None] * self.scale[:, None, None]
        return np.asarray(
            scaled.transpose(0, 2, 1, 3).reshape(b * fields, q * jets) @ self.table.reshape(q * jets, -1)
        ).reshape(b, fields, -1)

    def tangent(self, flow: Array) -> Array:
        """∫ Σ flow_ab ∂_a φ_i ∂_b φ_j for flow (b, Q, J, J), (b, k, k), by the rows and columns that do not vanish."""
        used: Array = np.asarray(flow.any(axis=(0, 1)))
        left, right = np.flatnonzero(used.any(axis=1)), np.flatnonzero(used.any(axis=0))
        b, k = len(self.rows), self.table.shape[2]
        if not len(left):
            return np.zeros((b, k, k))
        scale = self.scale[:, left][:, None, :, None] * self.scale[:, right][:, None, None, :]
        scaled = flow[:, :, left[:, None], right] * self.weights[:, :, None, None] * scale
        sides = np.ascontiguousarray(scaled.transpose(1, 2, 0, 3)).reshape(len(self.table), -1, len(right))
        pushed = np.matmul(sides, self.table[:, right]).reshape(-1, b * k)  # (Q left, b k)
        return np.asarray(self.table[:, left].reshape(-1, k).T @ pushed).reshape(k, b, k).transpose(1, 0, 2)


def volume_groups(functions: CellFunctions, cells: Array) -> list[VolumeGroup]:
    """Whole cells, which share the functions of a box, then each cut cell."""
    mesh, layer = functions.mesh, functions.layer
    cut = np.array([int(cell) in mesh.parts for cell in cells], dtype=bool)
    groups = []
    rows = np.flatnonzero(~cut)
    if len(rows):
        grid, shares = layer.grid
        values, slopes = layer.reference
        half = mesh.halfwidths[cells[rows]]
        table = np.concatenate([values[None], slopes]).transpose(1, 0, 2)
        scale = np.concatenate([np.ones((len(rows), 1)), 1 / half], axis=1)
        points = mesh.boxes[cells[rows]].mean(axis=2)[:, None] + half[:, None] * grid
        weights = half.prod(axis=1)[:, None] * shares
        groups.append(VolumeGroup(rows, np.ascontiguousarray(table), scale, points, weights))
    for row in np.flatnonzero(cut):
        part, table = mesh.parts[int(cells[row])], functions.part_table(int(cells[row]))
        scale = np.ones((1, table.shape[1]))
        groups.append(VolumeGroup(np.array([row]), table, scale, part.points[None], part.weights[None]))
    return groups
