"""Cells, faces between them and patches of the boundary, as arrays.

A cell is a leaf of a tree of boxes that lies in the domain, or the part of a leaf that lies in the domain. Every face
has one space of traces; a cell beside smaller ones has several faces on a side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.pieces import CutSide
from rannpde.domains.boundary.sides import FlatSide, Side
from rannpde.domains.boundary.slits import Lip
from rannpde.domains.domain import Domain, is_box
from rannpde.pde.cells.interfaces.level_set import Interface
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.residual import Term
from rannpde.pde.statement.divergence import NoDivergenceForm
from rannpde.pde.weak.legendre import gauss_cube
from rannpde.pde.weak.regions import RegionLookup

BLOCK = 2000
"""Cells that are compared with all others at once, to bound memory."""
INSIDE, COORDINATE_ROUNDING = 1e-12, 1e-13
"""How far points of sides are moved into a cell, at least, over its size; how far coordinates are rounded, and with
them the computed coordinates of interfaces, over the largest."""
ALONG = 0.99
"""Cosine of the angle between the normal of a patch and that of a side it lies on, at least."""


@dataclass(frozen=True, eq=False)
class BoundaryPatches:
    """Pieces of the boundary: cell (B,), points (B, q, d), weights (B, q), outward normals (B, q, d), and the number
    (B,) of the set of conditions that holds there."""

    cell: Array
    points: Array
    weights: Array
    normals: Array
    group: Array

    def __len__(self) -> int:
        return len(self.cell)


@dataclass(frozen=True, eq=False)
class CutPart:
    """The part of a box that lies in the domain: points (Q, d) and weights (Q,) of its quadrature rule."""

    points: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class CurvedFaces:
    """Pieces of curved interfaces between cells: points (I, q, d), weights (I, q), and normals (I, q, d) out of the
    first cell of each."""

    points: Array
    weights: Array
    normals: Array

    def __len__(self) -> int:
        return len(self.points)


@dataclass(frozen=True, eq=False)
class WeakMesh:
    """The cells of a solve.

    leaves (C,) : number of the leaf of each cell; boxes (C, d, 2) : mapped to [-1, 1]^d, of a cut cell the least box
    around its part; parts : cut cell → its part; cells beside faces (N + I, 2), lower and upper, flat faces first; axis
    (N,) across; spans (N, d, 2) : flat boxes of the faces; conditions : sets of numbers of conditions, to which patches
    refer; curves : pieces of curved interfaces, the last I faces; materials (C,) : region of each cell; lookup : of
    these regions, where interfaces are curved
    """

    tree: CellNode
    leaves: Array
    boxes: Array
    parts: dict[int, CutPart]
    beside: Array
    axis: Array
    spans: Array
    patches: BoundaryPatches
    conditions: tuple[tuple[int, ...], ...]
    curves: CurvedFaces | None = None
    materials: Array | None = None
    lookup: RegionLookup | None = None

    @cached_property
    def located(self) -> tuple[CellNode, Array, tuple[Interface, ...]]:
        """A tree that finds the cell of a point, the cell of each of its leaves, and the interfaces that divide
        leaves."""
        if self.lookup is not None and self.materials is not None:
            return *self.lookup.divided(self.tree, self.leaves, self.materials), self.lookup.interfaces
        homes = np.zeros(len(self.tree.leaves), dtype=int)
        homes[self.leaves] = np.arange(self.count)
        return self.tree, homes, ()

    @property
    def count(self) -> int:
        return len(self.leaves)

    @property
    def faces(self) -> int:
        """Faces between cells, each with a space of traces."""
        return len(self.beside)

    @property
    def halfwidths(self) -> Array:
        """Half of the lengths of the boxes of cells, (C, d)."""
        return np.asarray(0.5 * (self.boxes[:, :, 1] - self.boxes[:, :, 0]))

    @cached_property
    def whole(self) -> Array:
        """Numbers of the cells that are whole boxes."""
        return np.array([cell for cell in range(self.count) if cell not in self.parts], dtype=int)

    def mapped(self, cells: Array, grid: Array) -> Array:
        """Points (P, Q, d) of [-1, 1]^d in the boxes of cells (P,)."""
        return np.asarray(self.boxes[cells].mean(axis=2)[:, None] + self.halfwidths[cells][:, None] * grid)

    def scaled(self, cells: Array, points: Array) -> Array:
        """Points (P, q, d) of cells (P,) in their own [-1, 1]^d."""
        middle = self.boxes[cells].mean(axis=2)[:, None]
        return np.asarray((points - middle) / self.halfwidths[cells][:, None])

    def moved_inside(self, cells: Array, points: Array, normals: Array) -> Array:
        """Points (P, q, d) of the sides of cells (P,), moved against outward normals (P, q, d) by a multiple of the
        rounding of coordinates, so that they see the cell's side of a jump."""
        step = np.maximum(COORDINATE_ROUNDING * np.abs(self.boxes).max(), INSIDE * self.halfwidths[cells].min(axis=1))
        return np.asarray(points - step[:, None, None] * normals)

    def face_points(self, count: int) -> tuple[Array, Array]:
        """Points (N + I, q, d) and weights (N + I, q) on all faces, ``count`` Gauss nodes along each axis of them."""
        points, weights = flat_points(self.axis, self.spans, count)
        if self.curves is None:
            return points, weights
        return np.concatenate([points, self.curves.points]), np.concatenate([weights, self.curves.weights])

    def face_normals(self, count: int) -> Array:
        """Unit normals (N + I, q, d) at these points, from the first cell of each face to the second."""
        nodes = len(gauss_cube(count, self.boxes.shape[1] - 1)[0])
        normals = np.zeros((len(self.axis), nodes, self.boxes.shape[1]))
        normals[np.arange(len(self.axis)), :, self.axis] = 1.0
        return normals if self.curves is None else np.concatenate([normals, self.curves.normals])


def flat_points(axes: Array, spans: Array, count: int) -> tuple[Array, Array]:
    """Points (N, q, d) and weights (N, q) on flat boxes (N, d, 2) across axes (N,), ``count`` Gauss nodes each way."""
    dim = spans.shape[1]
    nodes, weights = gauss_cube(count, dim - 1)
    points = np.empty((len(axes), len(nodes), dim))
    scale = np.ones(len(axes))
    for axis in range(dim):
        mine = np.flatnonzero(axes == axis)
        rest = [a for a in range(dim) if a != axis]
        points[mine, :, axis] = spans[mine, axis, :1]
        for column, a in enumerate(rest):
            half = 0.5 * (spans[mine, a, 1] - spans[mine, a, 0])
            points[mine, :, a] = spans[mine, a].mean(axis=1)[:, None] + half[:, None] * nodes[:, column]
            scale[mine] *= half
    return points, scale[:, None] * weights


def touching_pairs(boxes: Array) -> tuple[Array, Array, Array]:
    """All faces between boxes (C, d, 2) of a tree: cells (N, 2) lower and upper, axis (N,), flat boxes (N, d, 2).

    >>> boxes = np.array([[(0.0, 1.0), (0.0, 2.0)], [(1.0, 2.0), (0.0, 1.0)], [(1.0, 2.0), (1.0, 2.0)]])
    >>> cells, axis, spans = touching_pairs(boxes)
    >>> cells.tolist(), axis.tolist(), spans[0].tolist()
    ([[0, 1], [0, 2], [1, 2]], [0, 0, 1], [[1.0, 1.0], [0.0, 1.0]])
    """
    dim = boxes.shape[1]
    pairs, axes = [np.empty((0, 2), dtype=int)], [np.empty(0, dtype=int)]
    for axis in range(dim):
        for start in range(0, len(boxes), BLOCK):
            one = boxes[start : start + BLOCK]
            met = one[:, None, axis, 1] == boxes[None, :, axis, 0]
            for a in range(dim):
                if a != axis:
                    met &= np.maximum(one[:, None, a, 0], boxes[None, :, a, 0]) < np.minimum(
                        one[:, None, a, 1], boxes[None, :, a, 1]
                    )
            below, above = np.nonzero(met)
            pairs.append(np.stack([below + start, above], axis=1))
            axes.append(np.full(len(below), axis))
    cells, axis_of = np.concatenate(pairs), np.concatenate(axes)
    one, other = boxes[cells[:, 0]], boxes[cells[:, 1]]
    spans = np.stack([np.maximum(one[:, :, 0], other[:, :, 0]), np.minimum(one[:, :, 1], other[:, :, 1])], axis=2)
    rows = np.arange(len(cells))
    spans[rows, axis_of] = one[rows, axis_of, 1][:, None]
    return cells, axis_of, spans


class ConditionFinder:
    """Which conditions hold at a point of the boundary, and whether they are as many as the fields."""

    def __init__(self, terms: Sequence[Term], fields: int) -> None:
        self.terms, self.fields = terms, fields
        self._regions = [term.region for term in terms if isinstance(term.region, Side)]
        self._known: dict[tuple[int, ...], int] = {}

    def groups(self, points: Array, normals: Array) -> Array:
        """Number (B,) of the set of conditions at each of the points (B, d) of the boundary with outward normals."""
        holds = self.holds(points, normals)
        groups = np.empty(len(points), dtype=int)
        for row, held in enumerate(holds):
            numbers = tuple(np.flatnonzero(held).tolist())
            if numbers not in self._known:
                self._require_enough(numbers, points[row])
                self._known[numbers] = len(self._known)
            groups[row] = self._known[numbers]
        return groups

    def holds(self, points: Array, normals: Array) -> Array:
        """Which conditions hold at which points, (B, terms)."""
        known: dict[tuple[type, str | int], Array] = {}  # conditions of several fields hold on the same sides
        columns = []
        for region in self._regions:
            plain = getattr(region, "condition", None) is None
            key = (type(region), repr(region) if plain else id(region))
            if key not in known:
                known[key] = lies_on_side(region, points, normals)
            columns.append(known[key])
        return np.stack(columns, axis=1)

    def _require_enough(self, numbers: tuple[int, ...], point: Array) -> None:
        if len(numbers) != self.fields:
            shown = ", ".join(f"{value:.4g}" for value in point)
            named = ", ".join(repr(self.terms[k].name) for k in numbers) or "none"
            raise NoDivergenceForm(
                f"{len(numbers)} conditions hold at ({shown}), {named}, where {self.fields} are needed, one per field"
            )

    @property
    def conditions(self) -> tuple[tuple[int, ...], ...]:
        return tuple(self._known)


def lies_on_side(region: Side, points: Array, normals: Array) -> Array:
    """Which points (B, d) of the boundary lie on a region of it; normals distinguish the sides of a corner."""
    if isinstance(region, FlatSide):  # up to rounding, in the middle of patches: no need of the face's own ends
        slack = 1e-9 * float(np.diff(region.domain.bounds[region.axis])[0])
        close = np.abs(points[:, region.axis] - region.value) <= slack
        return np.asarray(close & (normals[:, region.axis] * region.outward > ALONG))
    on_side = region.holds(points) if isinstance(region, CutSide) else region.contains(points)
    near = np.flatnonzero(on_side)
    if len(near):
        on_side[near] = (region.normals(points[near]) * normals[near]).sum(axis=1) > ALONG
    return np.asarray(on_side)


def box_mesh(domain: Domain, tree: CellNode, finder: ConditionFinder, nodes: int) -> WeakMesh:
    """The mesh of a domain made of boxes, at the sides of which leaves end; ``nodes`` : Gauss nodes along an axis of a
    patch."""
    every = np.array([leaf.bounds for leaf in tree.leaves])
    dim = every.shape[1]
    inside = np.ones(len(every), dtype=bool) if is_box(domain) else domain.level(every.mean(axis=2)) < 0
    leaves = np.flatnonzero(inside)
    number = np.cumsum(inside) - 1
    pairs, axes, spans = touching_pairs(every)
    both = inside[pairs].all(axis=1)
    owners, sides, flats, signs = [], [], [], []
    for column, sign in ((0, 1.0), (1, -1.0)):  # leaves beside others that are outside
        alone = inside[pairs[:, column]] & ~inside[pairs[:, 1 - column]]
        owners.append(number[pairs[alone, column]])
        sides.append(axes[alone])
        flats.append(spans[alone])
        signs.append(np.full(int(alone.sum()), sign))
    for a in range(dim):  # leaves at the ends of the bounding box
        for end, sign in ((0, -1.0), (1, 1.0)):
            mine = np.flatnonzero(inside & (every[:, a, end] == tree.bounds[a, end]))
            flat = every[mine].copy()
            flat[:, a] = tree.bounds[a, end]
            owners.append(number[mine])
            sides.append(np.full(len(mine), a))
            flats.append(flat)
            signs.append(np.full(len(mine), sign))
    side, outward = np.concatenate(sides), np.concatenate(signs)
    points, weights = flat_points(side, np.concatenate(flats), nodes)
    normals = np.zeros(points.shape)
    normals[np.arange(len(side)), :, side] = outward[:, None]
    patches = BoundaryPatches(
        np.concatenate(owners), points, weights, normals, finder.groups(points.mean(axis=1), normals[:, 0])
    )
    beside = number[pairs[both]]
    return WeakMesh(tree, leaves, every[leaves], {}, beside, axes[both], spans[both], patches, finder.conditions)


def open_slits(mesh: WeakMesh, lips: Sequence[Lip], finder: ConditionFinder, nodes: int) -> WeakMesh:
    """The mesh without the faces that lie on slits along the axes: each is a patch of both of its cells instead."""
    middles = mesh.spans.mean(axis=2)
    opened = np.zeros(len(mesh.axis), dtype=bool)
    for lip in lips:
        opened |= (mesh.axis == lip.axis) & lip.contains(middles)
    if not opened.any():
        return mesh
    points, weights = flat_points(mesh.axis[opened], mesh.spans[opened], nodes)
    normals = np.zeros(points.shape)
    normals[np.arange(len(points)), :, mesh.axis[opened]] = 1.0
    owners = mesh.beside[: len(opened)][opened]
    middles = np.concatenate([middles[opened]] * 2)
    outward = np.concatenate([normals[:, 0], -normals[:, 0]])
    old = mesh.patches
    patches = BoundaryPatches(
        np.concatenate([old.cell, owners[:, 0], owners[:, 1]]), np.concatenate([old.points, points, points]),
        np.concatenate([old.weights, weights, weights]), np.concatenate([old.normals, normals, -normals]),
        np.concatenate([old.group, finder.groups(middles, outward)]),
    )  # fmt: skip
    beside = np.concatenate([mesh.beside[: len(opened)][~opened], mesh.beside[len(opened) :]])
    return replace(
        mesh, beside=beside, axis=mesh.axis[~opened], spans=mesh.spans[~opened], patches=patches,
        conditions=finder.conditions,
    )  # fmt: skip
