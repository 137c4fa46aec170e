"""The matrices of the cells of a plate: functions with their Laplacians inside, on faces and on boundary patches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.spectrum.shapes.plate_form import ShapePlate
from rannpde.pde.spectrum.shapes.protocol import BudgetCheck
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.functions import FACE_DIGITS, CellFunctions
from rannpde.pde.weak.legendre import legendre_products, product_degrees
from rannpde.pde.weak.mesh import WeakMesh

UP_TO_THIRD: tuple[MultiIndex, ...] = tuple((order - j, j) for order in range(4) for j in range(order + 1))
"""Derivatives up to the third."""


@dataclass(frozen=True, eq=False)
class EdgeValues:
    """At nodes of one side of a cell, with weights (q,): functions, normal derivatives, Laplacians, normal derivatives
    of these, each (q, k); face : its number, -1 on the boundary; held, clamped : what is prescribed, or a trace."""

    weights: Array
    values: Array
    slopes: Array
    bending: Array
    shear: Array
    face: int
    outward: float
    held: bool
    clamped: bool


class PlateCells:
    """Functions, faces and edges of the cells of a mesh; block : traces of a face, deflections, then slopes."""

    fields = 1

    def __init__(self, form: ShapePlate, mesh: WeakMesh, layer: HiddenLayer, check_budget: BudgetCheck) -> None:
        self.form, self.mesh, self.layer = form, mesh, layer
        self.functions = CellFunctions(mesh, layer, check_budget)
        self.size = layer.size
        nodes = layer.face_grid[0]
        self.deflections = legendre_products(nodes, product_degrees(1, layer.degree))
        self.turns = legendre_products(nodes, product_degrees(1, layer.degree - 1))
        self.block = self.deflections.shape[1] + self.turns.shape[1]
        self._columns = np.concatenate([layer._derived(layer._whole[0], index) for index in UP_TO_THIRD], axis=1)
        self._reference = self._tables(layer.grid[0])
        self._known: dict[tuple[float, ...], Array] = {}
        self.points, self.lengths = mesh.face_points(layer.nodes)
        self.around: list[list[tuple[int, int]]] = [[] for _ in range(mesh.count)]
        for face, pair in enumerate(mesh.beside):
            for side, cell in enumerate(pair):
                self.around[int(cell)].append((face, side))
        for patch, cell in enumerate(mesh.patches.cell):
            self.around[int(cell)].append((patch, -1))
        self._edges: dict[int, list[EdgeValues]] = {}
        self._penalties: dict[int, tuple[float, float]] = {}

    def _tables(self, scaled: Array) -> Array:
        """Derivatives (M, 10, k) of the functions of a whole box at points of [-1, 1]²."""
        return np.asarray((self.layer.legendre(scaled) @ self._columns).reshape(len(scaled), len(UP_TO_THIRD), -1))

    def tables(self, cell: int, points: Array | None = None) -> dict[MultiIndex, Array]:
        """Derivatives (M, k) of the functions of a cell at points (M, 2), or at those of its rule."""
        part = self.mesh.parts.get(cell)
        if points is None and part is None:
            derivatives = self._reference
        else:
            given = part.points if points is None and part is not None else points
            assert given is not None
            scaled = self.mesh.scaled(np.array([cell]), given[None])[0]
            key = tuple(np.round(scaled[[0, -1]].ravel(), FACE_DIGITS) + 0.0)
            if part is not None:
                derivatives = self._tables(scaled) @ self.functions.combinations[cell]
            else:
                if key not in self._known:
                    self._known[key] = self._tables(scaled)
                derivatives = self._known[key]
        half = self.mesh.halfwidths[cell]
        return {
            index: derivatives[:, k] / np.prod(half ** np.array(index, dtype=float))
            for k, index in enumerate(UP_TO_THIRD)
        }

    def edges(self, cell: int) -> list[EdgeValues]:
        """All sides of a cell, faces and patches."""
        if cell in self._edges:
            return self._edges[cell]
        edges = []
        mesh, patches = self.mesh, self.mesh.patches
        for number, side in self.around[cell]:
            if side >= 0:
                points, weights = self.points[number], self.lengths[number]
                normals = np.zeros(points.shape)
                outward = 1.0 if side == 0 else -1.0
                normals[:, mesh.axis[number]] = outward
                face, held, clamped = number, True, True
            else:
                points, weights, normals = patches.points[number], patches.weights[number], patches.normals[number]
                kinds = {self.form.kinds[k] for k in mesh.conditions[int(patches.group[number])]}
                face, held, clamped, outward = -1, 0 in kinds, 1 in kinds, 1.0
            table = self.tables(cell, points)
            nx, ny = normals.T[:, :, None]
            edges.append(EdgeValues(
                weights, table[0, 0], nx * table[1, 0] + ny * table[0, 1], table[2, 0] + table[0, 2],
                nx * (table[3, 0] + table[1, 2]) + ny * (table[2, 1] + table[0, 3]), face, outward, held, clamped,
            ))  # fmt: skip
        self._edges[cell] = edges
        return edges

    def penalties(self, cell: int, gram: Array) -> tuple[float, float]:
        """η₀ and η₁ of a cell: twice ``coercivity`` times its trace constants, two terms sharing the energy."""
        if cell not in self._penalties:
            values, vectors = np.linalg.eigh(gram)
            regular = values > self.layer.settings.derivative_cutoff**2 * values[-1]
            root = vectors[:, regular] / np.sqrt(values[regular])
            constants = []
            for name in ("shear", "bending"):
                rows = [np.sqrt(edge.weights)[:, None] * getattr(edge, name) for edge in self.edges(cell)]
                constants.append(float(np.linalg.norm(np.concatenate(rows) @ root, 2) ** 2))
            factor = 2 * self.layer.settings.coercivity
            self._penalties[cell] = factor * constants[0], factor * constants[1]
        return self._penalties[cell]

    def matrices(self, cell: int) -> tuple[Array, Array, Array, Array]:
        """Cell–cell (k, k), cell–trace (k, T), trace–trace (T, T), and the numbers (T,) of the traces."""
        table, part = self.tables(cell), self.mesh.parts.get(cell)
        half = self.mesh.halfwidths[cell]
        weights = float(half.prod()) * self.layer.grid[1] if part is None else part.weights
        bending = table[2, 0] + table[0, 2]
        gram = bending.T @ (weights[:, None] * bending)
        eta, turn = (self.form.stiffness * one for one in self.penalties(cell, gram))
        c, t = self.form.stiffness, self.form.tension
        square = c * gram
        if t:
            square -= t * sum(table[i].T @ (weights[:, None] * table[i]) for i in ((1, 0), (0, 1)))
        faces = [edge for edge in self.edges(cell) if edge.face >= 0]
        m = self.deflections.shape[1]
        upper = np.zeros((self.size, len(faces) * self.block))
        corner = np.zeros((len(faces) * self.block,) * 2)
        for edge in self.edges(cell):
            w = edge.weights[:, None]
            pushed = c * edge.shear + t * edge.slopes  # the force that works on the deflection
            if edge.held:
                own = pushed.T @ (w * edge.values)
                square += own + own.T + eta * edge.values.T @ (w * edge.values)
            if edge.clamped:
                own = c * edge.bending.T @ (w * edge.slopes)
                square += turn * edge.slopes.T @ (w * edge.slopes) - own - own.T
        traces = []
        for number, edge in enumerate(faces):
            w, at = edge.weights[:, None], number * self.block
            pushed = c * edge.shear + t * edge.slopes
            upper[:, at : at + m] = -(pushed + eta * edge.values).T @ (w * self.deflections)
            upper[:, at + m : at + self.block] = (
                edge.outward * (c * edge.bending - turn * edge.slopes).T @ (w * self.turns)
            )
            corner[at : at + m, at : at + m] = eta * self.deflections.T @ (w * self.deflections)
            rest = slice(at + m, at + self.block)
            corner[rest, rest] = turn * self.turns.T @ (w * self.turns)
            traces.append(edge.face * self.block + np.arange(self.block))
        missing = np.arange(self.size) >= self.functions.used[cell]
        square[missing, missing] = 1.0
        numbers = np.concatenate(traces) if traces else np.zeros(0, dtype=int)
        return square, upper, corner, numbers

    def quotient(
        self, weights: Array, traces: Array, foundation: Callable[[Array], Array], density: Callable[[Array], Array]
    ) -> tuple[float, float, float]:
        """Energy and mass of a function, from its values at points, and the sum of the sizes of the terms of the first.

        A rounded value of Δu is wrong by eps times the sum of its own terms; the energy by that times 2 |Δu|.
        """
        energy, sums, mass = 0.0, 0.0, 0.0
        c, t = self.form.stiffness, self.form.tension
        on_faces, m = traces.reshape(-1, self.block), self.deflections.shape[1]
        for cell in range(self.mesh.count):
            own, table = weights[cell], self.tables(cell)
            values, shares, points = self.functions.cell_table(cell)
            ground, heavy, here = foundation(points), density(points), values @ own
            bent, slopes = table[2, 0] + table[0, 2], [table[1, 0] @ own, table[0, 1] @ own]
            bending = bent @ own
            energy += float(shares @ (c * bending**2 - t * sum(one**2 for one in slopes) + ground * here**2))
            sums += 2 * c * float(shares @ (np.abs(bending) * (np.abs(bent) @ np.abs(own))))
            mass += float(shares @ (heavy * here**2))
            eta, turn = (c * one for one in self._penalties[cell])
            for edge in self.edges(cell):
                w, gap, slope = edge.weights, edge.values @ own, edge.slopes @ own
                pushed, moment = c * (edge.shear @ own) + t * slope, c * (edge.bending @ own)
                if edge.face >= 0:
                    gap = gap - self.deflections @ on_faces[edge.face, :m]
                    slope = slope - edge.outward * (self.turns @ on_faces[edge.face, m:])
                if edge.held:
                    energy += float(w @ (2 * pushed * gap + eta * gap**2))
                    sums += 2 * float(w @ (np.abs(pushed) * (np.abs(edge.values) @ np.abs(own))))
                if edge.clamped:
                    energy += float(w @ (turn * slope**2 - 2 * moment * slope))
                    sums += 2 * float(w @ (np.abs(moment) * (np.abs(edge.slopes) @ np.abs(own))))
        return energy, sums, mass

    def jumps(self, weights: Array, traces: Array) -> Array:
        """∫_∂K η₀ |u - û|² + η₁ |∂ₙu - θ|², and what natural conditions lack, of each cell (C,)."""
        jumps, m = np.zeros(self.mesh.count), self.deflections.shape[1]
        on_faces = traces.reshape(-1, self.block)
        for cell in range(self.mesh.count):
            own = weights[cell]
            eta, turn = self._penalties[cell]
            for edge in self.edges(cell):
                gap, slope = edge.values @ own, edge.slopes @ own
                if edge.face >= 0:
                    gap = gap - self.deflections @ on_faces[edge.face, :m]
                    slope = slope - edge.outward * (self.turns @ on_faces[edge.face, m:])
                lost = eta * gap**2 if edge.held else (edge.shear @ own) ** 2 / eta
                lost = lost + (turn * slope**2 if edge.clamped else (edge.bending @ own) ** 2 / turn)
                jumps[cell] += self.form.stiffness * float(edge.weights @ lost)
        return jumps
