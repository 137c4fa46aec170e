"""The matrices of cells: volume integrals, faces with traces, patches of the boundary, in batches of alike cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import reserve
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.flat_faces import FaceCoefficients, FaceProducts, PairCoefficients
from rannpde.pde.weak.form import WeakForm
from rannpde.pde.weak.functions import FACE_DIGITS, CellFunctions
from rannpde.pde.weak.mesh import WeakMesh
from rannpde.pde.weak.volume import VolumeCoefficients, VolumeIntegrals

MEMORY = 2**27
"""Bytes of the matrices of one batch of cells."""


@dataclass(frozen=True, eq=False)
class CellBatch:
    """Cells with the same numbers of faces and patches: cells (B,), pairs (B, s) of theirs, the first t interior."""

    cells: Array
    pairs: Array
    faces: int


@dataclass(frozen=True, eq=False)
class DistinctMatrices:
    """Matrices of a batch of cells, those of alike cells once.

    first (U,) : a cell of each kind, as a row of the batch; same (B,) : the kind of each cell; square (U, n, n), upper
    (U, n, T), lower (U, T, n), corner (U, T, T) : of the kinds; load (B, n) : of the cells
    """

    first: Array
    same: Array
    square: Array
    upper: Array
    lower: Array
    corner: Array
    load: Array


class LocalMatrices:
    """Functions, faces and matrices of the cells of a mesh."""

    def __init__(
        self,
        form: WeakForm,
        mesh: WeakMesh,
        layer: HiddenLayer,
        check_budget: Callable[[], None],
        functions: CellFunctions | None = None,
    ) -> None:
        self.form, self.mesh, self.layer, self.check_budget = form, mesh, layer, check_budget
        self.fields = form.fields
        self.functions = functions or CellFunctions(mesh, layer, check_budget)
        self.size, self.combinations = self.functions.size, self.functions.combinations
        self.volume = VolumeIntegrals(form, self.functions)
        self._prepare_pairs()

    # ------------------------------------------------------------------------------------------------- preparation

    def _prepare_pairs(self) -> None:
        """Cells beside faces, then patches: cell, points, weights, normals, axis of each pair."""
        mesh, layer = self.mesh, self.layer
        points, weights = mesh.face_points(layer.nodes)
        normals = mesh.face_normals(layer.nodes)
        rows = np.arange(mesh.faces)
        patches = mesh.patches
        self.interior = 2 * mesh.faces
        self.cell = np.concatenate([mesh.beside[:, 0], mesh.beside[:, 1], patches.cell])
        self.face = np.concatenate([rows, rows, np.full(len(patches), -1)])
        self.points = np.concatenate([points, points, patches.points])
        self.weights = np.concatenate([weights, weights, patches.weights])
        self.normals = np.concatenate([normals, -normals, patches.normals])
        self.read_conditions()

    def read_conditions(self) -> None:
        """Evaluate the conditions on the patches; to be repeated where data have changed."""
        mesh, patches = self.mesh, self.mesh.patches
        fields, count = self.fields, patches.points.shape[1]
        self.projection = np.zeros((len(patches), count, fields, fields))
        self.robin = np.zeros((len(patches), count, fields, fields))
        self.values, self.natural = np.zeros((2, len(patches), count, fields))
        for group, numbers in enumerate(mesh.conditions):
            mine = np.flatnonzero(patches.group == group)
            dim = patches.points.shape[2]
            rows = self.form.rows(
                numbers, patches.points[mine].reshape(-1, dim), patches.normals[mine].reshape(-1, dim)
            )
            self.projection[mine] = rows.projection.reshape(len(mine), count, fields, fields)
            self.robin[mine] = rows.robin.reshape(len(mine), count, fields, fields)
            self.values[mine] = rows.values.reshape(len(mine), count, fields)
            self.natural[mine] = rows.natural.reshape(len(mine), count, fields)

    def batches(self) -> Iterator[CellBatch]:
        """Cells grouped by how many faces and patches they have, a bounded number at once."""
        count = self.mesh.count
        inner = np.bincount(self.cell[: self.interior], minlength=count)
        outer = np.bincount(self.cell[self.interior :], minlength=count)
        order = np.argsort(self.cell, kind="stable")  # interior pairs of a cell come before its patches
        starts = np.concatenate([[0], np.cumsum(inner + outer)])
        cut = np.zeros(count, dtype=int)
        if self.layer.dim > 2:  # whole boxes have faces of few kinds
            cut[list(self.mesh.parts)] = 1
        for t, b, own in np.unique(np.stack([inner, outer, cut], axis=1), axis=0):
            cells = np.flatnonzero((inner == t) & (outer == b) & (cut == own))
            bytes_each = 8 * (self.fields * self.size) ** 2 * 3
            reserve(min(float(len(cells) * bytes_each), 2.0 * MEMORY), "the matrices of cells")
            for some in np.array_split(cells, len(cells) * bytes_each // MEMORY + 1):
                pairs = order[starts[some][:, None] + np.arange(t + b)]
                yield CellBatch(some, pairs, int(t))

    def dofs(self, batch: CellBatch) -> Array:
        """Numbers (B, T) of the unknowns of the faces of each cell."""
        block = self.fields * self.layer.face_functions.shape[1]
        faces = self.face[batch.pairs[:, : batch.faces]]
        return np.asarray((faces[:, :, None] * block + np.arange(block)).reshape(len(batch.cells), -1))

    def tables(self, cells: Array, points: Array) -> tuple[Array, Array]:
        """Values (P, q, k) and gradients (d, P, q, k) of the functions of cells (P,) at points (P, q, d).

        Most faces lie alike in the coordinates of their cells: each kind of face is computed once.
        """
        first, same, scaled = self._distinct_faces(cells, points)
        table = self.layer.side_tables(scaled[first])
        for number, row in enumerate(first):
            if int(cells[row]) in self.combinations:
                table[number] = table[number] @ self.combinations[int(cells[row])]
        tables = table[same]
        half = self.mesh.halfwidths[cells]
        slopes = np.moveaxis(tables[:, :, 1:], 2, 0) / half.T[:, :, None, None]
        return np.ascontiguousarray(tables[:, :, 0]), slopes

    def _distinct_faces(self, cells: Array, points: Array) -> tuple[Array, Array, Array]:
        """A row (U,) of each kind of face, the kind (P,) of each, and points (P, q, d) in the coordinates of cells."""
        scaled = self.functions.scaled_face_points(cells, points)
        ends = np.round(np.concatenate([scaled[:, 0], scaled[:, -1]], axis=1), FACE_DIGITS) + 0.0
        if self.mesh.parts:
            own = np.array([cell if cell in self.combinations else -1 for cell in cells.tolist()], dtype=float)
            single = np.where(own >= 0, np.arange(len(cells)), -1)
            ends = np.concatenate([ends, own[:, None], single[:, None]], axis=1)
        _, first, same = np.unique(ends, axis=0, return_index=True, return_inverse=True)
        return first, same.ravel(), scaled

    # ---------------------------------------------------------------------------------------------------- matrices

    def pair_coefficients(self, pairs: Array) -> tuple[Array, Array, Array]:
        """n·A (P, q, K, F, d), penalty (P, q, K, K) and b·n (P, q, K) of pairs (P,), seen from their cells."""
        cells, points, normals = self.cell[pairs], self.points[pairs], self.normals[pairs]
        seen = points
        if self.form.system.kinked:
            seen = self.mesh.moved_inside(cells, points, normals)
        dim = points.shape[2]
        coefficients = self.form.at(seen.reshape(-1, dim))
        shape = points.shape[:2]
        diffusion = coefficients.diffusion.reshape(*shape, *coefficients.diffusion.shape[1:])
        flux = np.einsum("pqi,pqkfij->pqkfj", normals, diffusion, optimize=True)
        across = np.einsum("pqkfj,pqj->pqkf", flux, normals, optimize=True)
        across = 0.5 * (across + np.swapaxes(across, 2, 3))
        constant = np.einsum("pqj,pj->pq", np.abs(normals), self.functions.penalty[cells], optimize=True)
        penalty = self.layer.settings.coercivity * constant[:, :, None, None] * across
        advection = coefficients.advection.reshape(*shape, *coefficients.advection.shape[1:])
        drift = np.einsum("pqkkj,pqj->pqk", advection, normals, optimize=True)
        return flux, penalty, drift

    def matrices(self, batch: CellBatch) -> tuple[Array, Array, Array, Array, Array]:
        """Matrices of the cells of a batch: cell–cell (B, n, n), cell–trace (B, n, T), trace–cell, trace–trace, and
        loads (B, n)."""
        coefficients = self.volume.coefficients(batch.cells)
        return *self._matrices(batch, self.volume.matrices(coefficients, np.arange(len(batch.cells)))), self._loads(
            batch, coefficients
        )

    def mass(self, other: LocalMatrices, batch: CellBatch) -> Array:
        """The mass (B, n, n): the difference of another form and this one in reaction and Robin's coefficients."""
        coefficients = self.volume.more_reaction(batch.cells, other.form)
        matrix = self.volume.matrices(coefficients, np.arange(len(batch.cells)))
        flat = batch.pairs[:, batch.faces :].ravel()
        more = other.robin[flat - self.interior] - self.robin[flat - self.interior]
        if more.any():
            values, _ = self.tables(self.cell[flat], self.points[flat])
            shape = (len(batch.cells), -1, values.shape[2])
            for f, g in np.argwhere(more.any(axis=(0, 1))):
                heavy = (self.weights[flat] * more[:, :, f, g])[:, :, None] * values
                matrix[:, f, :, g, :] += np.matmul(values.reshape(shape).transpose(0, 2, 1), heavy.reshape(shape))
        n = self.fields * self.size
        return matrix.reshape(len(batch.cells), n, n)

    def condensed(self, batch: CellBatch) -> DistinctMatrices:
        """The matrices of a batch, those of cells that are alike only once."""
        coefficients = self.volume.coefficients(batch.cells)
        first, same = self._alike(batch, coefficients)
        some = CellBatch(batch.cells[first], batch.pairs[first], batch.faces)
        return DistinctMatrices(
            first,
            same,
            *self._matrices(some, self.volume.matrices(coefficients, first)),
            self._loads(batch, coefficients),
        )

    def kinds(self, batch: CellBatch) -> tuple[Array, Array]:
        """A row (U,) of the batch of each kind of cell, and the kind (B,) of each."""
        return self._alike(batch, self.volume.coefficients(batch.cells))

    def loads(self, batch: CellBatch) -> Array:
        """Loads (B, n) of the cells of a batch."""
        return self._loads(batch, self.volume.coefficients(batch.cells))

    def _alike(self, batch: CellBatch, coefficients: VolumeCoefficients) -> tuple[Array, Array]:
        """The first row (U,) of each kind of cell, and the kind (B,) of each cell.

        Cells are alike if faces and patches lie alike in their own coordinates, with the same coefficients in these.
        """
        cells, b = batch.cells, len(batch.cells)
        keys = [self.volume.kinds(coefficients)]
        for column in batch.pairs.T:
            scaled = self.mesh.scaled(cells, self.points[column][:, [0, -1]])
            keys.append(scaled.reshape(b, -1))
        for column in batch.pairs.T[batch.faces :] - self.interior:
            held = self.robin[column] * self.weights[self.interior :][column][:, :, None, None]
            keys += [self.projection[column].reshape(b, -1), held.reshape(b, -1)]
        whole = np.concatenate(keys, axis=1)
        size = np.maximum(np.abs(whole).max(axis=0), 1e-300)
        _, first, same = np.unique(
            np.round(whole / size, FACE_DIGITS) + 0.0, axis=0, return_index=True, return_inverse=True
        )
        return first, same.ravel()

    def _matrices(self, batch: CellBatch, matrix: Array) -> tuple[Array, Array, Array, Array]:
        """The matrices without the loads; matrix (B, F, k, F, k) : the volume integrals, to which those over faces are
        added."""
        cells, pairs, t = batch.cells, batch.pairs, batch.faces
        b, s, fields = len(cells), pairs.shape[1], self.fields
        flat = pairs.ravel()
        flux, penalty, drift = self.pair_coefficients(flat)
        outer = np.flatnonzero(np.tile(np.arange(s) >= t, b))
        patch = flat[outer] - self.interior
        prescribed = np.broadcast_to(np.eye(fields), (*penalty.shape[:2], fields, fields)).copy()
        prescribed[outer] = self.projection[patch]
        total = penalty.copy()
        total[outer] = np.einsum(
            "pqlk,pqlm,pqmf->pqkf", prescribed[outer], penalty[outer], prescribed[outer], optimize=True
        )
        if drift.any():
            total += np.einsum("pqk,pqkf->pqkf", np.maximum(-drift, 0.0), prescribed)
        total[outer] += self.robin[patch]
        own = PairCoefficients(flux, penalty, drift, prescribed, total)
        # in the plane tables at the points of faces are small
        solid = self.layer.dim > 2 and not any(int(cell) in self.mesh.parts for cell in cells)
        add = self._by_kinds_of_faces if solid and own.constant else self._by_points
        upper, lower, corner = add(batch, matrix, own)
        return flat_blocks((matrix, upper, lower, corner), self.functions.used[cells])

    def _by_kinds_of_faces(self, batch: CellBatch, matrix: Array, own: PairCoefficients) -> tuple[Array, Array, Array]:
        """Add integrals over faces to the matrices of whole boxes, and those beside traces, where the coefficients of
        faces are constant."""
        flat = batch.pairs.ravel()
        cells = self.cell[flat]
        first, same, scaled = self._distinct_faces(cells, self.points[flat])
        area = self.weights[flat].sum(axis=1) / self.layer.face_grid[1].sum()
        slopes = own.flux[:, 0] * (area[:, None] / self.mesh.halfwidths[cells])[:, None, None]
        pushed = own.drift[:, 0] * area[:, None]
        coefficients = FaceCoefficients(
            np.einsum("pkl,plfj->pkfj", own.prescribed[:, 0], slopes), own.total[:, 0] * area[:, None, None], slopes,
            own.penalty[:, 0] * area[:, None, None], np.maximum(-pushed, 0.0), np.maximum(pushed, 0.0),
        )  # fmt: skip
        products = FaceProducts.of(self.layer, scaled[first], same)
        products.add_to_cells(matrix, coefficients)
        return products.beside_traces(len(batch.cells), batch.faces, coefficients)

    def _by_points(self, batch: CellBatch, matrix: Array, own: PairCoefficients) -> tuple[Array, Array, Array]:
        """Add integrals over faces for any coefficients and cells, by quadrature at all points of all faces."""
        pairs, t, fields = batch.pairs, batch.faces, self.fields
        b, s = pairs.shape
        flat = pairs.ravel()
        values, slopes = self.tables(self.cell[flat], self.points[flat])
        weights = self.weights[flat]
        count = weights.shape[1]
        penalty, drift, total = own.penalty, own.drift, own.total
        normal = np.einsum("pqkfj,jpqa->pqkfa", own.flux, slopes, optimize=True)  # (P, q, K, F, k): n·A∇ of functions
        held = np.einsum("pqkl,pqlfa->pqkfa", own.prescribed, normal, optimize=True) if s > t else normal
        inflow, outflow = np.maximum(-drift, 0.0), np.maximum(drift, 0.0)
        # cell–cell: all points of a cell are summed in one product
        k = values.shape[2]
        tall = (values * weights[:, :, None]).reshape(b, s * count, k)
        for f in range(fields):
            for g in range(fields):
                flow = np.matmul(tall.transpose(0, 2, 1), held[:, :, f, g].reshape(b, s * count, k))
                matrix[:, f, :, g, :] -= flow
                matrix[:, g, :, f, :] -= flow.transpose(0, 2, 1)
                if total[:, :, f, g].any():
                    heavy = tall * total[:, :, f, g].reshape(b, s * count, 1)
                    matrix[:, f, :, g, :] += np.matmul(heavy.transpose(0, 2, 1), values.reshape(b, s * count, k))
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
        return upper, lower, corner

    def _loads(self, batch: CellBatch, coefficients: VolumeCoefficients) -> Array:
        """Loads (B, n) of the volume and of boundary data."""
        load = self.volume.loads(coefficients)
        outer = batch.pairs[:, batch.faces :]
        flat = outer.ravel()
        patch = flat - self.interior
        if self.values[patch].any() or self.natural[patch].any():
            values, slopes = self.tables(self.cell[flat], self.points[flat])
            flux, penalty, drift = self.pair_coefficients(flat)
            given, prescribed, w = self.values[patch], self.projection[patch], self.weights[flat]
            pushed = np.einsum("pqkl,pqlm,pqm->pqk", prescribed, penalty, given, optimize=True)
            pushed += np.maximum(-drift, 0.0) * given + self.natural[patch]
            right = np.matmul((w[:, :, None] * pushed).transpose(0, 2, 1), values)
            across = np.einsum("pq,pqk,pqkfj->jpqf", w, given, flux, optimize=True)
            right -= sum(np.matmul(one.transpose(0, 2, 1), slope) for one, slope in zip(across, slopes, strict=True))
            load += right.reshape(len(batch.cells), outer.shape[1], *load.shape[1:]).sum(axis=1)
        return load.reshape(len(batch.cells), -1)


def flat_blocks(blocks: tuple[Array, Array, Array, Array], used: Array) -> tuple[Array, Array, Array, Array]:
    """Cell–cell (B, n, n), cell–trace (B, n, T), trace–cell and trace–trace from blocks by fields, and by faces.

    blocks : (B, F, k, F, k), (B, F, k, t, F, m), (B, t, F, m, F, k) and, of each face, (B, t, F, m, F, m); used (B,) :
    functions of each cell, beside which others are padding with ones on the diagonal
    """
    square, upper, lower, corner = blocks
    b, fields, k = square.shape[:3]
    t, n, around = corner.shape[1], fields * k, fields * corner.shape[3]
    square = square.reshape(b, n, n)
    missing = np.arange(k) >= used[:, None]
    if missing.any():
        row, column = np.nonzero(np.tile(missing, (1, fields)))
        square[row, column, column] = 1.0
    traces = face_diagonal(corner.reshape(b, t, around, around))
    return square, upper.reshape(b, n, t * around), lower.reshape(b, t * around, n), traces


def face_diagonal(blocks: Array) -> Array:
    """Blocks (B, t, m, m) of t faces as matrices (B, T, T) of all unknowns of these faces."""
    b, t, m, _ = blocks.shape
    index = np.arange(t)
    whole = np.zeros((b, t, m, t, m))
    whole[:, index, :, index, :] = blocks.swapaxes(0, 1)
    return whole.reshape(b, t * m, t * m)


def by_kind(matrices: Array, same: Array, vectors: Array) -> Array:
    """matrices[same[b]] @ vectors[b] for all b, without copies of the matrices of each kind."""
    if len(matrices) == len(same):
        return np.asarray(np.matmul(matrices[same], vectors[:, :, None])[:, :, 0])
    products = np.empty((len(same), matrices.shape[1]), dtype=np.result_type(matrices, vectors))
    for kind, matrix in enumerate(matrices):
        mine = np.flatnonzero(same == kind)
        products[mine] = vectors[mine] @ matrix.T
    return products
