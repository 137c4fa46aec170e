"""Cells, faces between them and patches of the boundary, as arrays.

A cell is a leaf of a tree of boxes that lies in the domain, or what the domain leaves of it. Every face has one space
of traces; a cell beside smaller ones has several faces on a side.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import FlatSide, Side
from rannpde.domains.boundary.slits import Lip
from rannpde.domains.domain import Domain, is_box
from rannpde.domains.operations.cutcells import BoxClipper
from rannpde.domains.operations.cutrules import THIN
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.residual import Term
from rannpde.pde.statement.divergence import NoDivergenceForm
from rannpde.pde.weak.basis import gauss_cube

BLOCK = 2000
"""Cells that are compared with all others at once, to bound memory."""
CUT_BOX_MARGIN = 0.02
"""Of the box around the nodes of a cut cell, over its lengths: nodes do not reach to its ends."""
INSIDE, COORDINATE_ROUNDING = 1e-12, 1e-13
"""How far points of sides are moved into a cell, at least, over its size; how far coordinates are rounded, and found
places of interfaces with them, over the largest."""
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
    """What the domain leaves of a cell: points (Q, d) and weights (Q,) of a rule."""

    points: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class WeakMesh:
    """The cells of a solve.

    leaves (C,) : number of the leaf of each cell; boxes (C, d, 2) : mapped to [-1, 1]^d, of a cut cell the least box
    around its part; parts : cut cell → its part; cells beside faces (N, 2), lower and upper; axis (N,) across; spans
    (N, d, 2) : flat boxes of the faces; conditions : sets of numbers of conditions, to which patches refer
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

    @property
    def count(self) -> int:
        return len(self.leaves)

    @property
    def halfwidths(self) -> Array:
        """(C, d)."""
        return np.asarray(0.5 * (self.boxes[:, :, 1] - self.boxes[:, :, 0]))

    def scaled(self, cells: Array, points: Array) -> Array:
        """Points (P, q, d) of cells (P,) in their own [-1, 1]^d."""
        middle = self.boxes[cells].mean(axis=2)[:, None]
        return np.asarray((points - middle) / self.halfwidths[cells][:, None])

    def moved_inside(self, cells: Array, points: Array) -> Array:
        """Points (P, q, d) of the sides of cells (P,), moved into them by a multiple of the rounding of coordinates, so
        that they see the cell's side of a jump."""
        least = COORDINATE_ROUNDING * np.abs(self.boxes).max() / self.halfwidths[cells].min(axis=1)
        share = np.maximum(least, INSIDE)[:, None, None]
        return np.asarray(points + share * (self.boxes[cells].mean(axis=2)[:, None] - points))

    def face_points(self, count: int) -> tuple[Array, Array]:
        """Points (N, q, d) and weights (N, q) on all faces, ``count`` Gauss nodes along each axis of them."""
        return flat_points(self.axis, self.spans, count)


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
        found = np.empty(len(points), dtype=int)
        for row, held in enumerate(holds):
            numbers = tuple(np.flatnonzero(held).tolist())
            if numbers not in self._known:
                self._require_enough(numbers, points[row])
                self._known[numbers] = len(self._known)
            found[row] = self._known[numbers]
        return found

    def holds(self, points: Array, normals: Array) -> Array:
        """Which conditions hold at which points, (B, terms)."""
        return np.stack([_on(region, points, normals) for region in self._regions], axis=1)

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


def _on(region: Side, points: Array, normals: Array) -> Array:
    """Which points (B, d) of the boundary lie on a region of it; normals tell apart the sides of a corner."""
    if isinstance(region, FlatSide):  # up to rounding, in the middle of patches: no need of the face's own ends
        slack = 1e-9 * float(np.diff(region.domain.bounds[region.axis])[0])
        close = np.abs(points[:, region.axis] - region.value) <= slack
        return np.asarray(close & (normals[:, region.axis] * region.outward > ALONG))
    found = region.contains(points)
    near = np.flatnonzero(found)
    if len(near):
        found[near] = (region.normals(points[near]) * normals[near]).sum(axis=1) > ALONG
    return np.asarray(found)


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


def shape_mesh(clipper: BoxClipper, tree: CellNode, finder: ConditionFinder, nodes: int, across: int) -> WeakMesh:
    """The mesh of a shape in the plane: boxes that its boundary cuts hold what is left of them.

    nodes : Gauss nodes along pieces of the boundary and of the heights of lines; across : on such a line
    """
    every = np.array([leaf.bounds for leaf in tree.leaves])
    clipped = clipper.clip(every, tree.locate, nodes, across)
    leaves = np.flatnonzero(clipped.whole | clipped.cut)
    number = np.full(len(every), -1)
    number[leaves] = np.arange(len(leaves))
    boxes = every[leaves].copy()
    parts = {}
    for leaf, rule in clipped.rules.items():
        cell = int(number[leaf])
        parts[cell] = CutPart(rule.points, rule.weights)
        lower, upper = rule.points.min(axis=0), rule.points.max(axis=0)
        margin = CUT_BOX_MARGIN * (upper - lower)
        boxes[cell, :, 0] = np.maximum(every[leaf, :, 0], lower - margin)
        boxes[cell, :, 1] = np.minimum(every[leaf, :, 1], upper + margin)
    pairs, axis, spans = touching_pairs(every[leaves])
    cut = clipped.cut[leaves]
    plain = ~cut[pairs].any(axis=1)
    kept, broken, owner = _open_parts(clipper, spans[~plain], axis[~plain], clipped.breaks)
    beside = np.concatenate([pairs[plain], pairs[~plain][owner]])
    pieces = clipped.pieces
    owners = number[pieces.box]
    good = owners >= 0
    middle = nodes // 2
    patches = BoundaryPatches(
        owners[good], pieces.points[good], pieces.weights[good], pieces.normals[good],
        finder.groups(pieces.points[good][:, middle], pieces.normals[good][:, middle]),
    )  # fmt: skip
    return WeakMesh(
        tree, leaves, boxes, parts, beside, np.concatenate([axis[plain], kept]), np.concatenate([spans[plain], broken]),
        patches, finder.conditions,
    )  # fmt: skip


def _open_parts(clipper: BoxClipper, spans: Array, axes: Array, breaks: Array) -> tuple[Array, Array, Array]:
    """Parts of faces that lie inside the domain: their axes, their flat boxes, and the faces they are parts of."""
    slack = THIN * clipper.size
    found_axes, found, owners = [], [], []
    for face, (span, axis) in enumerate(zip(spans, axes, strict=True)):
        along = 1 - int(axis)
        low, high = span[along]
        near = np.abs(breaks[:, axis] - span[axis, 0]) <= 10 * slack
        places = breaks[near, along]
        ends = np.unique(np.concatenate([[low, high], places[(places > low) & (places < high)]]))
        ends = ends[np.concatenate([[True], np.diff(ends) > slack])]
        for start, end in itertools.pairwise(ends):
            part = span.copy()
            part[along] = start, end
            found_axes.append(int(axis))
            found.append(part)
            owners.append(face)
    if not found:
        return np.empty(0, dtype=int), np.empty((0, 2, 2)), np.empty(0, dtype=int)
    parts = np.array(found)
    inside = clipper.domain.level(parts.mean(axis=2)) < -slack
    return np.array(found_axes)[inside], parts[inside], np.array(owners)[inside]


def open_slits(mesh: WeakMesh, lips: Sequence[Lip], finder: ConditionFinder, nodes: int) -> WeakMesh:
    """The mesh without the faces that lie on slits along the axes: each is a patch of both of its cells instead."""
    middles = mesh.spans.mean(axis=2)
    opened = np.zeros(len(mesh.axis), dtype=bool)
    for lip in lips:
        opened |= (mesh.axis == lip.axis) & lip.contains(middles)
    if not opened.any():
        return mesh
    points, weights = (array[opened] for array in mesh.face_points(nodes))
    normals = np.zeros(points.shape)
    normals[np.arange(len(points)), :, mesh.axis[opened]] = 1.0
    owners = mesh.beside[opened]
    middles = np.concatenate([middles[opened]] * 2)
    outward = np.concatenate([normals[:, 0], -normals[:, 0]])
    old = mesh.patches
    patches = BoundaryPatches(
        np.concatenate([old.cell, owners[:, 0], owners[:, 1]]), np.concatenate([old.points, points, points]),
        np.concatenate([old.weights, weights, weights]), np.concatenate([old.normals, normals, -normals]),
        np.concatenate([old.group, finder.groups(middles, outward)]),
    )  # fmt: skip
    return replace(
        mesh, beside=mesh.beside[~opened], axis=mesh.axis[~opened], spans=mesh.spans[~opened], patches=patches,
        conditions=finder.conditions,
    )  # fmt: skip
