"""The matrices of cells: volume integrals, faces with traces, patches of the boundary, in batches of alike cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.form import WeakForm
from rannpde.pde.weak.mesh import WeakMesh

MEMORY = 2**27
"""Bytes of the matrices of one batch of cells."""
UNEVEN = 1e-14
"""Relative change of coefficients within a cell below which they are constant there."""
INSIDE = 1e-12
"""How far face points are moved into a cell, as a share of the way to its middle, to see its side of a jump."""


@dataclass(frozen=True, eq=False)
class CellBatch:
    """Cells with the same numbers of faces and patches: cells (B,), pairs (B, s) of theirs, the first t interior."""

    cells: Array
    pairs: Array
    faces: int


class LocalMatrices:
    """Functions, faces and matrices of the cells of a mesh."""

    def __init__(self, form: WeakForm, mesh: WeakMesh, layer: HiddenLayer, pause: Callable[[], None]) -> None:
        self.form, self.mesh, self.layer, self.pause = form, mesh, layer, pause
        self.fields = form.fields
        self._prepare_functions()
        self._prepare_pairs()

    # ------------------------------------------------------------------------------------------------- preparation

    def _prepare_functions(self) -> None:
        """Combinations of the functions of whole boxes for all cut cells, padded where these have fewer; penalties."""
        mesh, layer = self.mesh, self.layer
        self.size = layer.size
        self.penalty = 2 * mesh.boxes.shape[1] * layer.side_constant / mesh.halfwidths  # (C, d), by the axis of a face
        self.combinations: dict[int, Array] = {}
        self.part_tables: dict[int, Array] = {}
        self.used = np.full(mesh.count, self.size)
        borders = self._borders() if mesh.parts else {}
        for cell, part in mesh.parts.items():
            one, scale = np.array([cell]), np.concatenate([[1.0], 1 / mesh.halfwidths[cell]])[None, :, None]
            table = layer.tables(mesh.scaled(one, part.points[None])[0])
            own = layer.orthonormal(table, part.weights)
            padded = np.zeros((self.size, self.size))
            padded[:, : own.shape[1]] = own
            self.combinations[cell], self.used[cell] = padded, own.shape[1]
            self.part_tables[cell] = table @ padded * scale
            points, lengths = borders[cell]
            border = layer.tables(mesh.scaled(one, points[None])[0])[:, 1:] @ own * scale[:, 1:]
            inside = self.part_tables[cell][:, 1:, : own.shape[1]]
            self.penalty[cell] = layer.trace_constant(inside, part.weights, border, lengths)
            self.pause()

    def _borders(self) -> dict[int, tuple[Array, Array]]:
        """Points and weights of faces and patches around each cut cell."""
        mesh = self.mesh
        points, weights = mesh.face_points(self.layer.nodes)
        found = {}
        for cell in mesh.parts:
            faces = np.flatnonzero((mesh.beside == cell).any(axis=1))
            own = np.flatnonzero(mesh.patches.cell == cell)
            dim = points.shape[2]
            around = [points[faces].reshape(-1, dim), mesh.patches.points[own].reshape(-1, dim)]
            found[cell] = (
                np.concatenate(around),
                np.concatenate([weights[faces].ravel(), mesh.patches.weights[own].ravel()]),
            )
        return found

    def _prepare_pairs(self) -> None:
        """Cells beside faces, then patches: cell, points, weights, normals, axis of each pair."""
        mesh, layer = self.mesh, self.layer
        points, weights = mesh.face_points(layer.nodes)
        normals = np.zeros(points.shape)
        rows = np.arange(len(mesh.axis))
        normals[rows, :, mesh.axis] = 1.0
        patches = mesh.patches
        self.interior = 2 * len(mesh.axis)
        self.cell = np.concatenate([mesh.beside[:, 0], mesh.beside[:, 1], patches.cell])
        self.face = np.concatenate([rows, rows, np.full(len(patches), -1)])
        self.points = np.concatenate([points, points, patches.points])
        self.weights = np.concatenate([weights, weights, patches.weights])
        self.normals = np.concatenate([normals, -normals, patches.normals])
        fields, count = self.fields, patches.points.shape[1]
        self.projection = np.zeros((len(patches), count, fields, fields))
        self.robin = np.zeros((len(patches), count, fields, fields))
        self.values, self.natural = np.zeros((2, len(patches), count, fields))
        for group, numbers in enumerate(mesh.conditions):
            mine = np.flatnonzero(patches.group == group)
            dim = patches.points.shape[2]
            found = self.form.rows(
                numbers, patches.points[mine].reshape(-1, dim), patches.normals[mine].reshape(-1, dim)
            )
            self.projection[mine] = found.projection.reshape(len(mine), count, fields, fields)
            self.robin[mine] = found.robin.reshape(len(mine), count, fields, fields)
            self.values[mine] = found.values.reshape(len(mine), count, fields)
            self.natural[mine] = found.natural.reshape(len(mine), count, fields)

    def batches(self) -> Iterator[CellBatch]:
        """Cells grouped by how many faces and patches they have, a bounded number at once."""
        count = self.mesh.count
        inner = np.bincount(self.cell[: self.interior], minlength=count)
        outer = np.bincount(self.cell[self.interior :], minlength=count)
        order = np.argsort(self.cell, kind="stable")  # interior pairs of a cell come before its patches
        starts = np.concatenate([[0], np.cumsum(inner + outer)])
        for t, b in np.unique(np.stack([inner, outer], axis=1), axis=0):
            cells = np.flatnonzero((inner == t) & (outer == b))
            bytes_each = 8 * (self.fields * self.size) ** 2 * 3
            for some in np.array_split(cells, len(cells) * bytes_each // MEMORY + 1):
                pairs = order[starts[some][:, None] + np.arange(t + b)]
                yield CellBatch(some, pairs, int(t))

    def tables(self, cells: Array, points: Array) -> tuple[Array, Array]:
        """Values (P, q, k) and gradients (d, P, q, k) of the functions of cells (P,) at points (P, q, d).

        Most faces look alike in the coordinates of their cells: what differs is computed once.
        """
        scaled = self.mesh.scaled(cells, points)
        ends = np.round(np.concatenate([scaled[:, 0], scaled[:, -1]], axis=1), 11) + 0.0
        if self.mesh.parts:
            own = np.array([cell if cell in self.combinations else -1 for cell in cells.tolist()], dtype=float)
            single = np.where(own >= 0, np.arange(len(cells)), -1)
            ends = np.concatenate([ends, own[:, None], single[:, None]], axis=1)
        _, first, same = np.unique(ends, axis=0, return_index=True, return_inverse=True)
        count = scaled.shape[1]
        table = self.layer.tables(scaled[first].reshape(-1, scaled.shape[2]))
        table = table.reshape(len(first), count, *table.shape[1:])
        for number, row in enumerate(first):
            if int(cells[row]) in self.combinations:
                table[number] = table[number] @ self.combinations[int(cells[row])]
        found = table[same.ravel()]
        half = self.mesh.halfwidths[cells]
        slopes = np.moveaxis(found[:, :, 1:], 2, 0) / half.T[:, :, None, None]
        return np.ascontiguousarray(found[:, :, 0]), slopes

    # ---------------------------------------------------------------------------------------------------- matrices

    def _volume(self, cells: Array) -> tuple[Array, Array]:
        """∫ A∇u·∇v + (b·∇u + c u) v as (B, F, k, F, k), and ∫ load·v as (B, F, k), over cells (B,)."""
        parts = self.mesh.parts
        if not parts:
            return self._whole(cells)
        matrix = np.zeros((len(cells), self.fields, self.size, self.fields, self.size))
        load = np.zeros((len(cells), self.fields, self.size))
        cut = np.array([cell in parts for cell in cells])
        if not cut.all():
            found, right = self._whole(cells[~cut])
            matrix[~cut], load[~cut] = found, right
        for row in np.flatnonzero(cut):
            part = parts[int(cells[row])]
            table = self.part_tables[int(cells[row])][None]
            values, slopes = table[:, :, 0], np.moveaxis(table[:, :, 1:], 2, 0)
            one = self.form.at(part.points)
            matrix[row], load[row] = _integrated(
                one.diffusion[None], one.advection[None], one.reaction[None], one.load[None],
                part.weights[None], values, slopes,
            )  # fmt: skip
        return matrix, load

    def _whole(self, cells: Array) -> tuple[Array, Array]:
        """The same for whole boxes, which share their functions."""
        mesh, layer = self.mesh, self.layer
        (grid, weights), (values, slopes) = layer.grid, layer.reference
        half = mesh.halfwidths[cells]
        points = mesh.boxes[cells].mean(axis=2)[:, None] + half[:, None] * grid
        dim = grid.shape[1]
        found = self.form.at(points.reshape(-1, dim))
        shape = (len(cells), len(grid))
        diffusion, advection, reaction, load = (
            array.reshape(*shape, *array.shape[1:])
            for array in (found.diffusion, found.advection, found.reaction, found.load)
        )
        scale = half.prod(axis=1)
        right = np.matmul(values.T * weights, load).transpose(0, 2, 1) * scale[:, None, None]
        even = all(_even(array) for array in (diffusion, advection, reaction))
        if not even:
            found_matrix = _integrated(
                diffusion / (half[:, None, None, None, :, None] * half[:, None, None, None, None, :]),
                advection / half[:, None, None, None, :], reaction, load,
                scale[:, None] * weights, values[None], slopes[:, None],
            )[0]  # fmt: skip
            return found_matrix, right
        stiff = np.matmul((slopes * weights[:, None]).transpose(0, 2, 1)[:, None], slopes[None])  # (d, d, k, k)
        drift = np.matmul(values.T * weights, slopes)  # (d, k, k)
        mass = (values.T * weights) @ values
        factor = (
            scale[:, None, None, None, None]
            * diffusion[:, 0]
            / (half[:, None, None, :, None] * half[:, None, None, None, :])
        )
        matrix = np.einsum("bpfij,ijkl->bpkfl", factor, stiff, optimize=True)
        if advection.any():
            matrix += np.einsum("bpfj,jkl->bpkfl", (scale[:, None, None, None] * advection[:, 0]) / half[:, None, None],
                                drift, optimize=True)  # fmt: skip
        if reaction.any():
            matrix += np.einsum("bpf,kl->bpkfl", scale[:, None, None] * reaction[:, 0], mass, optimize=True)
        return matrix, right

    def pair_coefficients(self, pairs: Array) -> tuple[Array, Array, Array]:
        """n·A (P, q, K, F, d), penalty (P, q, K, K) and b·n (P, q, K) of pairs (P,), seen from their cells."""
        cells, points, normals = self.cell[pairs], self.points[pairs], self.normals[pairs]
        seen = points
        if self.form.system.kinked:
            middle = self.mesh.boxes[cells].mean(axis=2)[:, None]
            seen = points + INSIDE * (middle - points)
        dim = points.shape[2]
        found = self.form.at(seen.reshape(-1, dim))
        shape = points.shape[:2]
        diffusion = found.diffusion.reshape(*shape, *found.diffusion.shape[1:])
        flux = np.einsum("pqi,pqkfij->pqkfj", normals, diffusion, optimize=True)
        across = np.einsum("pqkfj,pqj->pqkf", flux, normals, optimize=True)
        across = 0.5 * (across + np.swapaxes(across, 2, 3))
        constant = np.einsum("pqj,pj->pq", np.abs(normals), self.penalty[cells], optimize=True)
        penalty = self.layer.settings.coercivity * constant[:, :, None, None] * across
        advection = found.advection.reshape(*shape, *found.advection.shape[1:])
        drift = np.einsum("pqkkj,pqj->pqk", advection, normals, optimize=True)
        return flux, penalty, drift

    def matrices(self, batch: CellBatch) -> tuple[Array, Array, Array, Array, Array]:
        """Matrices of the cells of a batch: cell–cell (B, n, n), cell–trace (B, n, T), trace–cell, trace–trace."""
        cells, pairs, t = batch.cells, batch.pairs, batch.faces
        b, s, fields = len(cells), pairs.shape[1], self.fields
        flat = pairs.ravel()
        matrix, load = self._volume(cells)
        values, slopes = self.tables(self.cell[flat], self.points[flat])
        flux, penalty, drift = self.pair_coefficients(flat)
        weights = self.weights[flat]
        count = weights.shape[1]
        normal = np.einsum("pqkfj,jpqa->pqkfa", flux, slopes, optimize=True)  # (P, q, K, F, k): n·A∇ of the functions
        outer = np.flatnonzero(np.tile(np.arange(s) >= t, b))
        patch = flat[outer] - self.interior
        prescribed = np.broadcast_to(np.eye(fields), (*weights.shape, fields, fields)).copy()
        prescribed[outer] = self.projection[patch]
        held = np.einsum("pqkl,pqlfa->pqkfa", prescribed, normal, optimize=True) if len(outer) else normal
        total = penalty.copy()
        total[outer] = np.einsum(
            "pqlk,pqlm,pqmf->pqkf", prescribed[outer], penalty[outer], prescribed[outer], optimize=True
        )
        inflow, outflow = np.maximum(-drift, 0.0), np.maximum(drift, 0.0)
        if drift.any():
            total += np.einsum("pqk,pqkf->pqkf", inflow, prescribed)
        total[outer] += self.robin[patch]
        # cell–cell: all points of a cell are summed in one product
        k = values.shape[2]
        tall = (values * weights[:, :, None]).reshape(b, s * count, k)
        for f in range(fields):
            for g in range(fields):
                own = np.matmul(tall.transpose(0, 2, 1), held[:, :, f, g].reshape(b, s * count, k))
                matrix[:, f, :, g, :] -= own
                matrix[:, g, :, f, :] -= own.transpose(0, 2, 1)
                if total[:, :, f, g].any():
                    heavy = tall * total[:, :, f, g].reshape(b, s * count, 1)
                    matrix[:, f, :, g, :] += np.matmul(heavy.transpose(0, 2, 1), values.reshape(b, s * count, k))
        self._boundary_load(load, batch, outer, patch, values, normal, penalty, prescribed, inflow, weights)
        # cell–trace
        trace = self.layer.face_functions
        m = trace.shape[1]
        inner = np.flatnonzero(np.tile(np.arange(s) < t, b))
        upper = np.empty((b, fields, k, t, fields, m))
        lower = np.empty((b, t, fields, m, fields, k))
        corner = np.empty((b, t, fields, m, fields, m))
        heavy = weights[inner][:, :, None] * trace
        for f in range(fields):
            for g in range(fields):
                up = np.matmul(normal[inner][:, :, g, f].transpose(0, 2, 1), heavy)
                pushed = penalty[inner][:, :, f, g][:, :, None] * heavy
                up -= np.matmul(values[inner].transpose(0, 2, 1), pushed)
                corner[:, :, f, :, g, :] = np.matmul(trace.T, pushed).reshape(b, t, m, m)
                down = up.copy()
                if f == g and drift.any():
                    up -= np.matmul(values[inner].transpose(0, 2, 1), inflow[inner][:, :, f, None] * heavy)
                    leaving = outflow[inner][:, :, f, None] * heavy
                    down -= np.matmul(values[inner].transpose(0, 2, 1), leaving)
                    corner[:, :, f, :, g, :] += np.matmul(trace.T, leaving).reshape(b, t, m, m)
                upper[:, f, :, :, g, :] = up.reshape(b, t, k, m).transpose(0, 2, 1, 3)
                lower[:, :, g, :, f, :] = down.reshape(b, t, k, m).transpose(0, 1, 3, 2)
        n, size = fields * k, t * fields * m
        whole = np.zeros((b, t, fields * m, t, fields * m))
        index = np.arange(t)
        whole[:, index, :, index, :] = corner.reshape(b, t, fields * m, fields * m).transpose(1, 0, 2, 3)
        square = matrix.reshape(b, n, n)
        missing = np.arange(k) >= self.used[cells][:, None]  # padded columns
        if missing.any():
            row, column = np.nonzero(np.tile(missing, (1, fields)))
            square[row, column, column] = 1.0
        return (square, upper.reshape(b, n, size), lower.reshape(b, size, n), whole.reshape(b, size, size),
                load.reshape(b, n))  # fmt: skip

    def _boundary_load(
        self, load: Array, batch: CellBatch, outer: Array, patch: Array, values: Array, normal: Array, penalty: Array,
        prescribed: Array, inflow: Array, weights: Array,
    ) -> None:  # fmt: skip
        """Add what boundary data give to the load (B, F, k)."""
        if not len(outer):
            return
        given, w = self.values[patch], weights[outer]
        pushed = np.einsum("pqkl,pqlm,pqm->pqk", prescribed[outer], penalty[outer], given, optimize=True)
        pushed += inflow[outer] * given + self.natural[patch]
        right = np.einsum("pq,pqk,pqa->pka", w, pushed, values[outer], optimize=True)
        right -= np.einsum("pq,pqk,pqkfa->pfa", w, given, normal[outer], optimize=True)
        np.add.at(load, outer // batch.pairs.shape[1], right)


def _even(array: Array) -> bool:
    """Whether coefficients (B, Q, …) are constant in every cell."""
    size = float(np.abs(array).max(initial=0.0))
    return bool((np.abs(array - array[:, :1]) <= UNEVEN * size).all())


def _integrated(
    diffusion: Array, advection: Array, reaction: Array, load: Array, weights: Array, values: Array, slopes: Array
) -> tuple[Array, Array]:
    """Volume integrals with coefficients at points: matrix (B, F, k, F, k), load (B, F, k).

    diffusion (B, Q, K, F, d, d) and so on; weights (B, Q); values (B or 1, Q, k), slopes (d, B or 1, Q, k)
    """
    fields, dim, k = load.shape[2], slopes.shape[0], values.shape[-1]
    count = len(weights)
    matrix = np.zeros((count, fields, k, fields, k))
    tested = [np.swapaxes(one, -1, -2) for one in slopes]
    plain = np.swapaxes(values, -1, -2)
    for p in range(fields):
        for f in range(fields):
            for i in range(dim):
                flux = np.zeros((count, *values.shape[1:]))
                for j in range(dim):
                    if diffusion[:, :, p, f, i, j].any():
                        flux += (weights * diffusion[:, :, p, f, i, j])[:, :, None] * slopes[j]
                matrix[:, p, :, f, :] += np.matmul(tested[i], flux)
            lower = (weights * reaction[:, :, p, f])[:, :, None] * values
            for j in range(dim):
                lower = lower + (weights * advection[:, :, p, f, j])[:, :, None] * slopes[j]
            matrix[:, p, :, f, :] += np.matmul(plain, lower)
    right = np.matmul(plain, weights[:, :, None] * load).transpose(0, 2, 1)
    return matrix, right
