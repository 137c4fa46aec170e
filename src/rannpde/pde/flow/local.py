"""Velocities of cells: curls of the random functions of the cells, at points of volumes, faces and boundary patches.

u = (∂_y ψ, -∂_x ψ) is exactly divergence-free. On every face there are a tangential velocity û and the multiplier λ of
the normal flux, which is the normal traction p - ν ∂_n(u·n) (1 + κ) with its sign changed; on the boundary λ alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.flow.form import FlowForm, NoFlow
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.functions import FACE_DIGITS, CellFunctions
from rannpde.pde.weak.legendre import legendre_products, product_degrees
from rannpde.pde.weak.local import MEMORY, CellBatch, LocalMatrices
from rannpde.pde.weak.mesh import WeakMesh
from rannpde.rounding import COMPUTED

STREAM_DERIVATIVES = tuple((order - j, j) for order in range(3) for j in range(order + 1))


@dataclass(frozen=True, eq=False)
class FlowBoundary:
    """Boundary data of patches: whether the normal and the tangential velocity are prescribed (B,), their values (B, q,
    2), the traction natural (B, q, 2) - robin (B, q, 2, 2) · u of the components that are not."""

    normal: Array
    tangential: Array
    values: Array
    natural: Array
    robin: Array


class FlowCells:
    """Functions, faces and boundary data of the cells of a mesh."""

    def __init__(self, form: FlowForm, mesh: WeakMesh, layer: HiddenLayer, check_budget: Callable[[], None]) -> None:
        self.form, self.mesh, self.layer, self.check_budget = form, mesh, layer, check_budget
        self.fields = 2 + len(form.scalars)  # of functions of the cells: stream function, pressure, scalars
        self.functions = CellFunctions(mesh, layer, check_budget)
        self.size = layer.size
        self._pairs()
        self.read_conditions()
        nodes = layer.face_grid[0]
        self.tangential_functions = legendre_products(nodes, product_degrees(1, layer.degree - 1))
        self.normal_functions = legendre_products(nodes, product_degrees(1, layer.degree - 2))
        self._coefficients = np.concatenate(
            [layer._derived(layer._whole[0], index) for index in STREAM_DERIVATIVES], axis=1
        )
        self._face_tables()
        self._components()
        self._reference = self._stream(layer.grid[0])
        self._part_tables: dict[int, Array] = {}
        self.diffusion = self._diffusion() if form.scalars else None

    # ------------------------------------------------------------------------------------------------ preparation

    def _pairs(self) -> None:
        """Cells beside faces, then patches: cell, face, points, weights, outward normals, tangents of each pair.

        Both cells of a face have the same tangent.
        """
        mesh, layer = self.mesh, self.layer
        points, weights = mesh.face_points(layer.nodes)
        normals, tangents = np.zeros(points.shape), np.zeros(points.shape)
        rows = np.arange(len(mesh.axis))
        normals[rows, :, mesh.axis] = 1.0
        tangents[rows, :, 1 - mesh.axis] = 1.0
        patches = mesh.patches
        turned = np.stack([-patches.normals[..., 1], patches.normals[..., 0]], axis=-1)
        self.interior = 2 * len(rows)
        self.cell = np.concatenate([mesh.beside[:, 0], mesh.beside[:, 1], patches.cell])
        self.face = np.concatenate([rows, rows, len(rows) + np.arange(len(patches))])
        self.points = np.concatenate([points, points, patches.points])
        self.weights = np.concatenate([weights, weights, patches.weights])
        self.normals = np.concatenate([normals, -normals, patches.normals])
        self.tangents = np.concatenate([tangents, tangents, turned])

    def read_conditions(self) -> None:
        """Evaluate the boundary data of patches; to be repeated where data have changed."""
        self.boundary = self._boundary()

    def _diffusion(self) -> LocalMatrices:
        """The matrices of the diffusion of scalars in the same cells, with their own conditions."""
        first, mesh = len(self.form.terms), self.mesh
        groups = tuple(tuple(n - first for n in numbers if n >= first) for numbers in mesh.conditions)
        for numbers in groups:
            stated = [self.form.scalar_terms[n].expression.fields[0] for n in numbers]
            if sorted(stated) != sorted(self.form.scalar_names):
                raise NoFlow(f"conditions of {', '.join(sorted(stated))} hold on one side, where each scalar needs one")
        return LocalMatrices(
            self.form.diffusion, replace(mesh, conditions=groups), self.layer, self.check_budget, self.functions
        )

    def _boundary(self) -> FlowBoundary:
        patches = self.mesh.patches
        count, nodes = patches.points.shape[:2]
        normal, tangential = np.zeros((2, count), dtype=bool)
        values, natural = np.zeros((2, count, nodes, 2))
        robin = np.zeros((count, nodes, 2, 2))
        for group, numbers in enumerate(self.mesh.conditions):
            mine = np.flatnonzero(patches.group == group)
            if not len(mine):
                continue
            normals = patches.normals[mine].reshape(-1, 2)
            tangents = self.tangents[self.interior :][mine].reshape(-1, 2)
            own = [number for number in numbers if number < len(self.form.terms)]
            conditions = self.form.rows(own, patches.points[mine].reshape(-1, 2), normals)
            held = [np.einsum("mi,mij,mj->m", v, conditions.essential, v) for v in (normals, tangents)]
            mixed = np.einsum("mi,mij,mj->m", normals, conditions.essential, tangents)
            if np.abs(mixed).max() > COMPUTED or any(np.abs(h * (1 - h)).max() > COMPUTED for h in held):
                names = ", ".join(dict.fromkeys(self.form.terms[number].name for number in own))
                raise NoFlow(f"{names} prescribes a velocity that is neither along the normal nor the tangent")
            normal[mine] = held[0].reshape(len(mine), nodes).mean(axis=1) > 0.5
            tangential[mine] = held[1].reshape(len(mine), nodes).mean(axis=1) > 0.5
            shape = (len(mine), nodes)
            values[mine], natural[mine] = conditions.values.reshape(*shape, 2), conditions.natural.reshape(*shape, 2)
            robin[mine] = conditions.robin.reshape(*shape, 2, 2)
        return FlowBoundary(normal, tangential, values, natural, robin)

    def _stream(self, scaled: Array) -> Array:
        """Derivatives of the functions of a whole box at points (M, 2) of [-1, 1]²: (M, 6, k)."""
        return np.asarray((self.layer.legendre(scaled) @ self._coefficients).reshape(len(scaled), 6, self.size))

    def _face_tables(self) -> None:
        """Derivatives on faces and patches in the coordinates of their cells; faces that lie alike share one table."""
        scaled = self.mesh.scaled(self.cell, self.points)
        keys = np.round(scaled[:, [0, -1]].reshape(len(scaled), -1), FACE_DIGITS) + 0.0
        if self.mesh.parts:
            single = [k if cell in self.mesh.parts else -1 for k, cell in enumerate(self.cell.tolist())]
            keys = np.concatenate([keys, np.array(single, dtype=float)[:, None]], axis=1)
        _, first, same = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        table = self._stream(scaled[first].reshape(-1, 2)).reshape(len(first), -1, 6, self.size)
        for number, row in enumerate(first):
            combination = self.functions.combinations.get(int(self.cell[row]))
            if combination is not None:
                table[number] = table[number] @ combination
        self._tables, self._alike = table, same.ravel()
        self.check_budget()

    # ----------------------------------------------------------------------------------------------------- tables

    def stream_tables(self, cells: Array) -> tuple[Array, Array, Array]:
        """Points (B, Q, 2), weights (B, Q) and derivatives (Q, 6, k) in [-1, 1]² of whole cells, or of one cut cell."""
        if int(cells[0]) in self.mesh.parts:
            (cell,) = cells.tolist()
            part = self.mesh.parts[cell]
            return part.points[None], part.weights[None], self._part_table(cell)
        grid, shares = self.layer.grid
        half = self.mesh.halfwidths[cells]
        return self.mesh.mapped(cells, grid), half.prod(axis=1)[:, None] * shares, self._reference

    def _components(self) -> None:
        """Tangential and normal velocities, tangential tractions over ν, and n·∂_n u of all pairs, each (P, q, k)."""
        hx, hy = self.mesh.halfwidths[self.cell].T[:, :, None]
        (nx, ny), (tx, ty) = np.moveaxis(self.normals, 2, 0), np.moveaxis(self.tangents, 2, 0)
        zero, turned = np.zeros(nx.shape), self.form.transposed
        # u_x, u_y, v_x, v_y in the derivatives xx, xy, yy: t·G n + κ n·G t
        first = [tx * nx + turned * nx * tx, tx * ny + turned * nx * ty]
        last = [ty * nx + turned * ny * tx, ty * ny + turned * ny * ty]
        rows = [
            [-ty / hx, tx / hy, zero, zero, zero],
            [-ny / hx, nx / hy, zero, zero, zero],
            [zero, zero, -last[0] / hx**2, (first[0] - last[1]) / (hx * hy), first[1] / hy**2],
            [zero, zero, -ny * nx / hx**2, (nx * nx - ny * ny) / (hx * hy), nx * ny / hy**2],
        ]
        coefficients = np.stack([np.stack(row, axis=-1) for row in rows], axis=2)  # (P, q, 4, 5)
        parts = []
        for some in np.array_split(
            np.arange(len(self.cell)), len(self.cell) * coefficients.shape[1] * 64 * self.size // MEMORY + 1
        ):
            parts.append(np.matmul(coefficients[some], self._tables[self._alike[some], :, 1:]))
            self.check_budget()
        self.along, self.across, self.shear, self.stretch = (
            np.concatenate([part[:, :, n] for part in parts]) for n in range(4)
        )

    def values_on_pairs(self, pairs: Array) -> Array:
        """The functions themselves (P, q, k) on faces and patches."""
        return np.asarray(self._tables[self._alike[pairs], :, 0])

    def _part_table(self, cell: int) -> Array:
        table = self._part_tables.get(cell)
        if table is None:
            scaled = self.mesh.scaled(np.array([cell]), self.mesh.parts[cell].points[None])[0]
            table = self._part_tables[cell] = self._stream(scaled) @ self.functions.combinations[cell]
        return table

    def constants(self, cells: Array) -> Array:
        """The weights (B, k) of the constant stream function, whose velocity is zero, up to a factor."""
        constant = np.empty((len(cells), self.size))
        for row, cell in enumerate(cells.tolist()):
            part = self.mesh.parts.get(cell)
            if part is None:
                values, weights = self.layer.reference[0], self.layer.grid[1]
            else:
                values, weights = self.functions.part_table(cell)[:, 0], part.weights
            one = weights @ values
            constant[row] = one / np.linalg.norm(one)
        return constant

    def batches(self) -> Iterator[CellBatch]:
        """Whole cells grouped by how many faces and patches they have, a bounded number at once; cut cells alone."""
        count = self.mesh.count
        inner = np.bincount(self.cell[: self.interior], minlength=count)
        outer = np.bincount(self.cell[self.interior :], minlength=count)
        order = np.argsort(self.cell, kind="stable")
        starts = np.concatenate([[0], np.cumsum(inner + outer)])
        alone = np.zeros(count, dtype=int)
        alone[list(self.mesh.parts)] = 1 + np.arange(len(self.mesh.parts))
        kinds, which = np.unique(np.stack([inner, outer, alone], axis=1), axis=0, return_inverse=True)
        each = 8 * 2 * self.size * len(self.layer.grid[1])
        for kind, (t, b, _) in enumerate(kinds):
            cells = np.flatnonzero(which.ravel() == kind)
            for some in np.array_split(cells, len(cells) * each // MEMORY + 1):
                yield CellBatch(some, order[starts[some][:, None] + np.arange(t + b)], int(t))
