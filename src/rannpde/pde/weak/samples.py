"""Functions of cells at points of rules: over whole cells, along the boundary, in shapes inside, at single points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
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
        count, jets, size = self.table.shape[1:]
        values = np.matmul(self.table.reshape(-1, count * jets, size), weights[self.cells].transpose(0, 2, 1))
        return np.asarray(
            (values.reshape(len(self.cells), count, jets, -1) * self.scale[:, None, :, None]).swapaxes(2, 3)
        )

    def add_load(self, load: Array, density: Array) -> None:
        """Add ∫ density·(φ, ∇φ) of all functions φ to a load (C, F, k); density (P, q, F, J)."""
        count, jets, size = self.table.shape[1:]
        scaled = density.swapaxes(2, 3) * self.weights[:, :, None, None] * self.scale[:, None, :, None]
        tall = scaled.reshape(len(self.cells), count * jets, -1).swapaxes(1, 2)
        np.add.at(load, self.cells, np.matmul(tall, self.table.reshape(-1, count * jets, size)))


def volume_samples(local: LocalMatrices) -> Iterator[CellSamples]:
    """All cells with their rules: whole boxes together, then each cut cell."""
    mesh, layer = local.mesh, local.layer
    whole = np.array([cell for cell in range(mesh.count) if cell not in mesh.parts], dtype=int)
    if len(whole):
        (grid, shares), (values, slopes) = layer.grid, layer.reference
        half = mesh.halfwidths[whole]
        points = mesh.boxes[whole].mean(axis=2)[:, None] + half[:, None] * grid
        table = np.concatenate([values[None], slopes]).transpose(1, 0, 2)[None]
        scale = np.concatenate([np.ones((len(whole), 1)), 1 / half], axis=1)
        yield CellSamples(whole, points, half.prod(axis=1)[:, None] * shares, table, scale)
    for cell, part in mesh.parts.items():
        table = local.functions.part_table(cell)[None]
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
