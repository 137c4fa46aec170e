"""Functions of cells at points of rules: over whole cells, along the boundary, in shapes inside, at single points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.weak.functions import CellFunctions
from rannpde.pde.weak.local import LocalMatrices


@dataclass(frozen=True, eq=False)
class CellSamples:
    """Points of cells with the functions there; J = 1 + d counts the value and the slopes.

    cells (P,); points (P, q, d), weights (P, q), normals (P, q, d) or None; table (P or 1, q, J, k) : the functions,
    where 1 those that all cells share; scale (P, J) : factors of its values and slopes
    """

    cells: Array
    points: Array
    weights: Array
    table: Array
    scale: Array
    normals: Array | None = None

    def jets(self, weights: Array) -> Array:
        """Values and slopes (P, q, F, J) of fields of weights (C, F, k)."""
        own, flat = weights[self.cells], self.table.reshape(len(self.table), -1, self.table.shape[3]).swapaxes(1, 2)
        # functions that cells share take one product for all of them
        known = own.reshape(-1, own.shape[2]) @ flat[0] if len(flat) == 1 else np.matmul(own, flat)
        shaped = known.reshape(*own.shape[:2], *self.table.shape[1:3])
        return np.asarray((shaped * self.scale[:, None, None]).transpose(0, 2, 1, 3))

    def tested(self, density: Array) -> Array:
        """∫ density·(φ, ∇φ) of all functions φ, (P, F, k), for density (P, q, F, J)."""
        (p, _, fields, _), k = density.shape, self.table.shape[3]
        scaled = (density * self.weights[:, :, None, None] * self.scale[:, None, None]).transpose(0, 2, 1, 3)
        tall, flat = scaled.reshape(p, fields, -1), self.table.reshape(len(self.table), -1, k)
        tested = tall.reshape(p * fields, -1) @ flat[0] if len(flat) == 1 else np.matmul(tall, flat)
        return np.asarray(tested.reshape(p, fields, k))

    def tangent(self, flow: Array) -> Array:
        """∫ Σ flow_ab ∂_a φ_i ∂_b φ_j of functions that all cells share, (P, k, k), for flow (P, q, J, J).

        By the rows and columns that do not vanish.
        """
        used: Array = np.asarray(flow.any(axis=(0, 1)))
        left, right = np.flatnonzero(used.any(axis=1)), np.flatnonzero(used.any(axis=0))
        (table,), p, k = self.table, len(self.cells), self.table.shape[3]
        if not len(left):
            return np.zeros((p, k, k))
        scale = self.scale[:, left][:, None, :, None] * self.scale[:, right][:, None, None, :]
        scaled = flow[:, :, left[:, None], right] * self.weights[:, :, None, None] * scale
        sides = np.ascontiguousarray(scaled.transpose(1, 2, 0, 3)).reshape(len(table), -1, len(right))
        pushed = np.matmul(sides, table[:, right]).reshape(-1, p * k)  # (Q left, P k)
        return np.asarray(table[:, left].reshape(-1, k).T @ pushed).reshape(k, p, k).transpose(1, 0, 2)


def volume_samples(functions: CellFunctions, cells: Array) -> Iterator[CellSamples]:
    """Cells with their rules: whole boxes together, then each cut cell."""
    mesh, layer = functions.mesh, functions.layer
    cut = np.array([cell in mesh.parts for cell in cells.tolist()], dtype=bool)
    whole = cells[~cut]
    if len(whole):
        (grid, shares), (values, slopes) = layer.grid, layer.reference
        half = mesh.halfwidths[whole]
        table = np.ascontiguousarray(np.concatenate([values[None], slopes]).transpose(1, 0, 2))[None]
        scale = np.concatenate([np.ones((len(whole), 1)), 1 / half], axis=1)
        yield CellSamples(whole, mesh.mapped(whole, grid), half.prod(axis=1)[:, None] * shares, table, scale)
    for cell in cells[cut].tolist():
        part, table = mesh.parts[cell], functions.part_table(cell)[None]
        ones = np.ones((1, table.shape[2]))
        yield CellSamples(np.array([cell]), part.points[None], part.weights[None], table, ones)


def patch_samples(local: LocalMatrices, chosen: Array) -> CellSamples:
    """Patches of the boundary of these numbers (P,)."""
    pairs = local.interior + chosen
    values, slopes = local.tables(local.cell[pairs], local.points[pairs])
    table = np.concatenate([values[None], slopes]).transpose(1, 2, 0, 3)
    ones = np.ones((len(pairs), table.shape[2]))
    return CellSamples(local.cell[pairs], local.points[pairs], local.weights[pairs], table, ones, local.normals[pairs])


def point_samples(local: LocalMatrices, cells: Array, points: Array, weights: Array) -> Iterator[CellSamples]:
    """Points (M, d) of weights (M,) that lie in these cells (M,), cell by cell."""
    for cell in np.unique(cells):
        mine = np.flatnonzero(cells == cell)
        table = local.layer.tables(local.mesh.scaled(np.array([cell]), points[None, mine])[0])
        combined = local.combinations.get(int(cell))
        table = table if combined is None else table @ combined
        scale = np.concatenate([[1.0], 1 / local.mesh.halfwidths[cell]])[None]
        yield CellSamples(np.array([cell]), points[None, mine], weights[None, mine], table[None], scale)
