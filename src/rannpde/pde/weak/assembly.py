"""The matrices of cells, their static condensation on traces, and the solution.

The method is the hybridised interior penalty method: on every cell K and for traces û on the faces, find u, û with

    Σ_K  ∫ A∇u·∇v + (b·∇u + c u) v  -  ∫_∂K (n·A∇u)·(v - v̂)  -  ∫_∂K (n·A∇v)·(u - û)  +  ∫_∂K η (u - û)·(v - v̂)
       + ∫_{∂K, b·n<0} |b·n| (u - û) v  +  ∫_{∂K, b·n>0} |b·n| (û - u) v̂   =   Σ_K ∫ load·v  +  boundary data

for all v, v̂. Cells meet only in traces, so each is eliminated on its own, in batches of cells with as many faces. With
the penalty η = coercivity · c_K n·A n, c_K the trace constant of the cell (``HiddenLayer.side_constant``), the form is
coercive for every choice of functions and traces: |A∇u|_n is bounded by the energy of the cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import splu

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.weak.basis import HiddenLayer, gauss_cube
from rannpde.pde.weak.form import WeakForm
from rannpde.pde.weak.kernel import FreeMotions
from rannpde.pde.weak.mesh import WeakMesh

MEMORY = 2**27
"""Bytes of the matrices of one batch of cells."""
UNEVEN = 1e-14
"""Relative change of coefficients within a cell below which they are constant there."""
THINNED = 4
"""Of the points of a cut cell one in this many is looked at for indicators."""
INSIDE = 1e-12
"""How far face points are moved into a cell, as a share of the way to its middle, to see its side of a jump."""


@dataclass(frozen=True, eq=False)
class HybridSolution:
    """Weights of the functions of cells (C, F, k) and of traces (N, F, m).

    jumps (C,) : ∫_∂K η |u - û|², of the boundary included, and what natural conditions lack, as energies of each cell
    """

    weights: Array
    traces: Array
    jumps: Array


@dataclass(frozen=True, eq=False)
class _Batch:
    """Cells with the same numbers of faces and patches: cells (B,), pairs (B, s) of theirs, the first t interior."""

    cells: Array
    pairs: Array
    faces: int


class HybridSystem:
    """One linear solve of the weak form on a mesh."""

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

    def _batches(self) -> Iterator[_Batch]:
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
                yield _Batch(some, pairs, int(t))

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

    def _pair_coefficients(self, pairs: Array) -> tuple[Array, Array, Array]:
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

    def _local(self, batch: _Batch) -> tuple[Array, Array, Array, Array, Array]:
        """Matrices of the cells of a batch: cell–cell (B, n, n), cell–trace (B, n, T), trace–cell, trace–trace; loads."""
        cells, pairs, t = batch.cells, batch.pairs, batch.faces
        b, s, fields = len(cells), pairs.shape[1], self.fields
        flat = pairs.ravel()
        matrix, load = self._volume(cells)
        values, slopes = self.tables(self.cell[flat], self.points[flat])
        flux, penalty, drift = self._pair_coefficients(flat)
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
        self, load: Array, batch: _Batch, outer: Array, patch: Array, values: Array, normal: Array, penalty: Array,
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

    # ---------------------------------------------------------------------------------------------------- solution

    def solve(self, motions: FreeMotions | None = None) -> HybridSolution:
        """Eliminate cells, solve for traces, and go back; free motions get the mean zero."""
        fields, m = self.fields, self.layer.face_functions.shape[1]
        block = fields * m
        total = len(self.mesh.axis) * block
        rows, columns, entries = [], [], []
        right = np.zeros(total)
        kept: list[tuple[_Batch, Array, Array]] = []
        for batch in self._batches():
            square, upper, lower, corner, load = self._local(batch)
            if motions is not None and len(motions) and 0 in batch.cells:
                self._hold(square[int(np.flatnonzero(batch.cells == 0)[0])], motions)
            found = np.linalg.solve(square, np.concatenate([upper, load[:, :, None]], axis=2))
            response, own = found[:, :, :-1], found[:, :, -1]
            kept.append((batch, response, own))
            if batch.faces:
                schur = corner - np.matmul(lower, response)
                places = self._places(batch, block)
                np.add.at(right, places, -np.matmul(lower, own[:, :, None])[:, :, 0])
                rows.append(np.repeat(places, places.shape[1], axis=1).ravel())
                columns.append(np.tile(places, (1, places.shape[1])).ravel())
                entries.append(schur.ravel())
            self.pause()
        traces = np.zeros(total)
        if total:
            indices = (np.concatenate(rows), np.concatenate(columns))
            matrix = sparse.csc_matrix((np.concatenate(entries), indices), (total, total))
            traces = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.1,
                          options={"SymmetricMode": True}).solve(right)  # fmt: skip
        weights = np.zeros((self.mesh.count, fields, self.size))
        for batch, response, own in kept:
            inside = own
            if batch.faces:
                around = traces[self._places(batch, block)]
                inside = own - np.matmul(response, around[:, :, None])[:, :, 0]
            weights[batch.cells] = inside.reshape(len(batch.cells), fields, self.size)
        shaped = traces.reshape(len(self.mesh.axis), fields, m)
        if motions is not None and len(motions):
            self._centre(weights, shaped, motions)
        return HybridSolution(weights, shaped, self._jumps(weights, shaped))

    def _hold(self, square: Array, motions: FreeMotions) -> None:
        """Hold the free motions in the first cell: a balanced load leaves no reaction there."""
        values, weights, points = self._cell_table(0)
        moments = np.einsum("m,rmf,ma->rfa", weights, motions.at(points), values).reshape(len(motions), -1)
        size = float(np.einsum("ra,ra->", moments, moments)) / len(motions)
        square += float(np.trace(square)) / len(square) / max(size, 1e-300) * moments.T @ moments

    def _cell_table(self, cell: int) -> tuple[Array, Array, Array]:
        """Values (Q, k) of the functions of a cell, weights (Q,) and points (Q, d)."""
        part, (grid, shares) = self.mesh.parts.get(cell), self.layer.grid
        if part is not None:
            return self.part_tables[cell][:, 0], part.weights, part.points
        half = self.mesh.halfwidths[cell]
        points = self.mesh.boxes[cell].mean(axis=1) + half * grid
        return self.layer.reference[0], float(half.prod()) * shares, points

    def _centre(self, weights: Array, traces: Array, motions: FreeMotions) -> None:
        """Take the free motions out of a solution: they have the mean zero then."""
        gram = np.zeros((len(motions), len(motions)))
        right = np.zeros(len(motions))
        for cell in range(self.mesh.count):
            values, shares, points = self._cell_table(cell)
            moved = motions.at(points)
            gram += np.einsum("m,rmf,smf->rs", shares, moved, moved)
            right += np.einsum("m,rmf,ma,fa->r", shares, moved, values, weights[cell], optimize=True)
        amounts = np.linalg.solve(gram, right)
        for cell in range(self.mesh.count):
            values, shares, points = self._cell_table(cell)
            root = np.sqrt(shares)[:, None]
            taken = np.einsum("r,rmf->mf", amounts, motions.at(points))
            weights[cell] -= np.linalg.lstsq(root * values, root * taken, rcond=1e-12)[0].T
        points, shares = self.mesh.face_points(self.layer.nodes)
        trace, unit = self.layer.face_functions, self.layer.face_grid[1]
        for face, place in enumerate(points):
            taken = np.einsum("r,rmf->mf", amounts, motions.at(place))
            traces[face] -= ((trace * unit[:, None]).T @ taken).T

    def _places(self, batch: _Batch, block: int) -> Array:
        """Numbers (B, T) of the unknowns of the faces of each cell."""
        faces = self.face[batch.pairs[:, : batch.faces]]
        return np.asarray((faces[:, :, None] * block + np.arange(block)).reshape(len(batch.cells), -1))

    def _jumps(self, weights: Array, traces: Array) -> Array:
        """∫_∂K η |u - û|² of each cell (C,)."""
        found = np.zeros(self.mesh.count)
        for batch in self._batches():
            flat = batch.pairs.ravel()
            values, slopes = self.tables(self.cell[flat], self.points[flat])
            inside = np.einsum("pqa,pfa->pqf", values, weights[self.cell[flat]], optimize=True)
            flux, penalty, _ = self._pair_coefficients(flat)
            gap = np.zeros_like(inside)
            inner = np.flatnonzero(flat < self.interior)
            outer = np.flatnonzero(flat >= self.interior)
            on_face = np.einsum("qm,pfm->pqf", self.layer.face_functions, traces[self.face[flat[inner]]], optimize=True)
            gap[inner] = inside[inner] - on_face
            patch = flat[outer] - self.interior
            gap[outer] = np.einsum("pqkl,pql->pqk", self.projection[patch], inside[outer]) - self.values[patch]
            energy = np.einsum("pq,pqk,pqkl,pql->p", self.weights[flat], gap, penalty, gap, optimize=True)
            if len(outer):  # what natural conditions lack, over the penalty: of the same unit
                own = weights[self.cell[flat[outer]]]
                normal = np.einsum("pqkfj,jpqa,pfa->pqk", flux[outer], slopes[:, outer], own, optimize=True)
                lack = normal + np.einsum("pqkl,pql->pqk", self.robin[patch], inside[outer]) - self.natural[patch]
                lack -= np.einsum("pqkl,pql->pqk", self.projection[patch], lack)
                size = np.einsum("pqkk->pqk", penalty[outer])
                energy[outer] += np.einsum("pq,pqk->p", self.weights[flat[outer]], lack**2 / size)
            np.add.at(found, self.cell[flat], energy)
        return found

    def volume_points(self) -> tuple[Array, Array, Array]:
        """Points (M, d) of all cells with weights (M,), and the cells (M,) they lie in."""
        mesh, (grid, shares) = self.mesh, self.layer.grid
        whole = np.array([cell for cell in range(mesh.count) if cell not in mesh.parts], dtype=int)
        half = mesh.halfwidths[whole]
        points = mesh.boxes[whole].mean(axis=2)[:, None] + half[:, None] * grid
        weights = half.prod(axis=1)[:, None] * shares
        parts = list(mesh.parts.items())
        return (
            np.concatenate([points.reshape(-1, grid.shape[1]), *(part.points for _, part in parts)]),
            np.concatenate([weights.ravel(), *(part.weights for _, part in parts)]),
            np.concatenate([np.repeat(whole, len(grid)), *(np.full(len(p.points), c) for c, p in parts)]).astype(int),
        )

    def sampled(
        self, solution: HybridSolution, indices: Sequence[MultiIndex]
    ) -> tuple[Array, Array, Array, dict[MultiIndex, Array]]:
        """Points (M, d) of all cells, weights (M,), their cells (M,), and derivatives of the fields, each (M, F).

        Whole boxes are looked at in about half as many nodes as they are integrated with: for indicators.
        """
        mesh, layer = self.mesh, self.layer
        grid, shares = gauss_cube(layer.degree // 2 + 3, layer.dim)
        whole = np.array([cell for cell in range(mesh.count) if cell not in mesh.parts], dtype=int)
        half = mesh.halfwidths
        points = [(mesh.boxes[whole].mean(axis=2)[:, None] + half[whole][:, None] * grid).reshape(-1, layer.dim)]
        weights, owners = [(half[whole].prod(axis=1)[:, None] * shares).ravel()], [np.repeat(whole, len(grid))]
        table = layer.derivative_tables(grid, indices)
        factors = np.stack([np.prod(half ** -np.array(index, dtype=float), axis=1) for index in indices])  # (I, C)
        found = np.einsum("qik,cfk->icqf", table, solution.weights[whole], optimize=True)
        found *= factors[:, whole, None, None]
        values = [found.reshape(len(indices), -1, self.fields)]
        for cell, part in mesh.parts.items():
            some = slice(None, None, THINNED)
            scaled = mesh.scaled(np.array([cell]), part.points[None, some])[0]
            own = self.combinations[cell] @ solution.weights[cell].T
            one = np.einsum("qik,kf->iqf", layer.derivative_tables(scaled, indices), own)
            values.append(one * factors[:, cell, None, None])
            points.append(part.points[some])
            weights.append(part.weights[some] * part.weights.sum() / part.weights[some].sum())
            owners.append(np.full(len(scaled), cell))
        together = np.concatenate(values, axis=1)
        tables = {index: together[k] for k, index in enumerate(indices)}
        return np.concatenate(points), np.concatenate(weights), np.concatenate(owners), tables

    def decay(self, solution: HybridSolution) -> Array:
        """Logarithm of the factor by which Legendre coefficients fall from degree to degree, the least of all fields.

        By least squares over the upper half of the degrees, of each cell (C,).
        """
        whole = solution.weights.copy()
        for cell, combination in self.combinations.items():
            whole[cell] = whole[cell] @ combination.T
        sizes = self.layer.sizes_by_degree(whole)  # (C, F, degrees)
        degrees = np.arange(self.layer.degree // 2, self.layer.degree + 1)
        floor = 1e-13 * np.maximum(sizes.max(axis=(0, 2), keepdims=True), 1e-300)
        logs = np.log(np.maximum(sizes[:, :, degrees], floor))
        centred = degrees - degrees.mean()
        slopes = -(logs @ centred) / (centred @ centred)
        resolved = (sizes[:, :, degrees[-2:]] <= 10 * floor).all(axis=2)
        return np.asarray(np.where(resolved, np.inf, slopes).min(axis=1))

    def coefficients(self, solution: HybridSolution) -> Array:
        """Output weights of all cells, (C, columns, F), as ``CellNetwork`` has them."""
        whole = solution.weights.transpose(0, 2, 1).copy()
        for cell, combination in self.combinations.items():
            whole[cell] = combination @ whole[cell]
        return np.asarray(self.layer.outputs @ whole)


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
