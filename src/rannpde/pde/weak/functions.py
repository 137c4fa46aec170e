"""The functions of all cells of a mesh: those of a whole box, or combinations of them on cut cells.

On a cut cell the functions of the whole box are nearly dependent. Combinations that are orthonormal in H¹ on the part
take their place.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import FLOAT_BYTES, reserve
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.mesh import WeakMesh
from rannpde.rounding import COMPUTED

KEPT = 2**30
"""Bytes of tables on cut cells that are stored; what is beyond is computed again when it is asked for."""

FACE_DIGITS = 11
"""Digits to which faces agree, each in the coordinates of its cell, that have the same tables; and coefficients of
cells that have the same matrices."""


class CellFunctions:
    """Functions of the cells of a mesh, whatever the equation.

    size : functions of a whole box, k; used (C,) : of each cell, of which the others are zero
    combinations : cut cell → (k, k), the functions of the whole box combined
    penalty (C, d) : trace constants by the axis of a face, in the unit 1/length
    """

    def __init__(self, mesh: WeakMesh, layer: HiddenLayer, check_budget: Callable[[], None]) -> None:
        self.mesh, self.layer = mesh, layer
        self.size = layer.size
        self.penalty = 2 * mesh.boxes.shape[1] * layer.side_constant / mesh.halfwidths
        self.combinations: dict[int, Array] = {}
        self.used = np.full(mesh.count, self.size)
        self._tables: dict[int, Array] = {}
        self._bytes = 0
        points = sum(len(part.points) for part in mesh.parts.values())
        numbers = float(points) * (1 + mesh.boxes.shape[1]) * self.size
        reserve(min(FLOAT_BYTES * numbers, float(KEPT)), "the tables of functions on cut cells")
        borders = self._borders() if mesh.parts else {}
        for cell in mesh.parts:
            self._prepare(cell, *borders[cell])
            check_budget()

    def _prepare(self, cell: int, border: Array, lengths: Array) -> None:
        """Combinations and trace constant of a cut cell; border (M, d), lengths (M,) : rule on all its sides."""
        layer, part = self.layer, self.mesh.parts[cell]
        jet, slopes = layer.cut_tables(self._scaled(cell, part.points))
        own = layer.orthonormal(jet, part.weights)
        padded = np.zeros((self.size, self.size))
        padded[:, : own.shape[1]] = own
        self.combinations[cell], self.used[cell] = padded, own.shape[1]
        self._keep(cell, _combined(jet, padded) if layer.dim < 3 else jet)
        beside = layer.legendre(self._scaled(cell, border)) @ layer.derivative_span
        self.penalty[cell] = layer.trace_constant(slopes, part.weights, beside, lengths)

    def _scaled(self, cell: int, points: Array) -> Array:
        return self.mesh.scaled(np.array([cell]), points[None])[0]

    def _keep(self, cell: int, reference: Array) -> Array:
        table = reference * np.concatenate([[1.0], 1 / self.mesh.halfwidths[cell]])[None, :, None]
        if self._bytes + table.nbytes <= KEPT:
            self._bytes += table.nbytes
            self._tables[cell] = table
        return table

    def part_table(self, cell: int) -> Array:
        """Values and derivatives (Q, 1 + d, k) of the functions of a cut cell at the points of its rule."""
        known = self.integrand_table(cell)
        return known if self.layer.dim < 3 else np.asarray(known @ self.combinations[cell])

    def integrand_table(self, cell: int) -> Array:
        """Values and derivatives (Q, 1 + d, k) for integrals over a cut cell: in space those of the functions of the
        whole box, since there the few integrals are ``combined``, and not the values at many points."""
        known = self._tables.get(cell)
        if known is not None:
            return known
        jet, _ = self.layer.cut_tables(self._scaled(cell, self.mesh.parts[cell].points))
        return self._keep(cell, _combined(jet, self.combinations[cell]) if self.layer.dim < 3 else jet)

    def combined(self, cell: int, integrals: Array, axes: tuple[int, ...]) -> Array:
        """Integrals of the functions in ``integrand_table``, along these axes, as those of the functions of a cell."""
        if self.layer.dim == 3:
            for axis in axes:
                integrals = np.moveaxis(np.tensordot(integrals, self.combinations[cell], axes=(axis, 0)), -1, axis)
        return integrals

    def cell_table(self, cell: int) -> tuple[Array, Array, Array]:
        """Values (Q, k) of the functions of a cell, weights (Q,) and points (Q, d) of its rule."""
        part, (grid, shares) = self.mesh.parts.get(cell), self.layer.grid
        if part is not None:
            return self.part_table(cell)[:, 0], part.weights, part.points
        half = self.mesh.halfwidths[cell]
        points = self.mesh.boxes[cell].mean(axis=1) + half * grid
        return self.layer.reference[0], float(half.prod()) * shares, points

    def whole_weights(self, weights: Array) -> Array:
        """Weights (C, F, k) of the functions of cells as weights of those of their whole boxes."""
        whole = weights.copy()
        for cell, combination in self.combinations.items():
            whole[cell] = whole[cell] @ combination.T
        return whole

    def jets(self, weights: Array) -> Array:
        """Legendre coefficients (C, R, F, 1 + d) of fields of weights (C, F, k) and of their slopes in [-1, 1]^d."""
        count, fields = weights.shape[:2]
        whole = self.whole_weights(weights).reshape(-1, self.size)
        slices = [self.layer.jet[:, n * self.size : (n + 1) * self.size] for n in range(1 + self.layer.dim)]
        coefficients = np.stack([(whole @ one.T).reshape(count, fields, -1) for one in slices], axis=-1)
        return np.ascontiguousarray(coefficients.transpose(0, 2, 1, 3))

    def scaled_face_points(self, cells: Array, points: Array) -> Array:
        """Points (P, q, d) of faces and patches of cells (P,) in their own [-1, 1]^d.

        In small cells coordinates are rounded by far more than in [-1, 1]. On flat faces of whole boxes the ends are
        rounded to ``FACE_DIGITS``, and the nodes between are placed anew: the same function of the same face, whichever
        faces it is evaluated with, since a load and a matrix must belong together.
        """
        scaled = self.mesh.scaled(cells, points)
        whole = np.array([cell not in self.mesh.parts for cell in cells.tolist()], dtype=bool)
        nodes = self.layer.face_grid[0]
        if not whole.any() or scaled.shape[1] != len(nodes) or not nodes.shape[1]:
            return scaled
        shares = (nodes - nodes[0]) / (nodes[-1] - nodes[0])
        low, high = (np.round(scaled[:, end], FACE_DIGITS) for end in (0, -1))
        across, flat = np.abs(high - low).argmin(axis=1), np.abs(high - low).min(axis=1) <= COMPUTED
        for axis in range(scaled.shape[2]):
            mine = np.flatnonzero(whole & flat & (across == axis))
            scaled[mine, :, axis] = low[mine, None, axis]
            for column, other in enumerate(a for a in range(scaled.shape[2]) if a != axis):
                step = (high - low)[mine, None, other]
                scaled[mine, :, other] = low[mine, None, other] + step * shares[:, column]
        return scaled

    def at(self, jets: Array, cells: Array, points: Array) -> tuple[Array, Array]:
        """Values (P, q, F) and gradients (P, q, F, d) of fields with these jets at points (P, q, d) of cells (P,)."""
        scaled = self.scaled_face_points(cells, points)
        ends = np.round(scaled[:, [0, scaled.shape[1] // 2, -1]].reshape(len(scaled), -1), FACE_DIGITS) + 0.0
        _, first, same = np.unique(ends, axis=0, return_index=True, return_inverse=True)
        counts = np.bincount(same.ravel())
        order = np.argsort(same.ravel(), kind="stable")
        groups = np.split(order, np.cumsum(counts)[:-1])
        fields, dim, count = jets.shape[2], points.shape[2], points.shape[1]
        derivatives = np.empty((len(cells), count, fields, 1 + dim))
        flat = jets.reshape(len(jets), jets.shape[1], -1)
        alone = first[counts == 1]
        derivatives[alone] = self.layer.fields_at(scaled[alone], flat, cells[alone]).reshape(
            len(alone), *derivatives.shape[1:]
        )
        for kind in np.flatnonzero(counts > 1):
            mine = groups[kind]
            table = self.layer.legendre(scaled[first[kind]])
            derivatives[mine] = np.matmul(table, flat[cells[mine]]).reshape(len(mine), count, fields, 1 + dim)
        return derivatives[..., 0], derivatives[..., 1:] / self.mesh.halfwidths[cells][:, None, None]

    def _borders(self) -> dict[int, tuple[Array, Array]]:
        """Points and weights of faces and patches around each cut cell."""
        mesh = self.mesh
        points, weights = mesh.face_points(self.layer.nodes)
        dim = points.shape[2]
        borders = {}
        for cell in mesh.parts:
            faces = np.flatnonzero((mesh.beside == cell).any(axis=1))
            own = np.flatnonzero(mesh.patches.cell == cell)
            around = [points[faces].reshape(-1, dim), mesh.patches.points[own].reshape(-1, dim)]
            lengths = [weights[faces].ravel(), mesh.patches.weights[own].ravel()]
            borders[cell] = np.concatenate(around), np.concatenate(lengths)
        return borders


def _combined(jet: Array, combinations: Array) -> Array:
    """Combinations (k, r) of functions with their derivatives (Q, 1 + d, k) as one product: (Q, 1 + d, r)."""
    return np.asarray((jet.reshape(-1, jet.shape[2]) @ combinations).reshape(*jet.shape[:2], -1))
