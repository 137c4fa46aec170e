"""Meshes of solids in space with curved walls, whose cells are boxes, clipped by the walls.

Faces between cut cells are divided into images of squares, each with a space of traces of its own, which are
polynomials on the square. Every piece of a face, of a flat side and of a curved surface has as many nodes.
"""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.operations.solidrules import ClippedBox, SolidClipper
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.weak.cut_mesh import CUT_BOX_MARGIN
from rannpde.pde.weak.mesh import (
    INSIDE,
    BoundaryPatches,
    ConditionFinder,
    CurvedFaces,
    CutPart,
    WeakMesh,
    flat_points,
    touching_pairs,
)


def solid_mesh(clipper: SolidClipper, tree: CellNode, finder: ConditionFinder, nodes: int) -> WeakMesh:
    """The mesh of a domain in space, with ``nodes`` Gauss nodes along each direction of pieces of cells and faces."""
    every = np.array([leaf.bounds for leaf in tree.leaves])
    inside = clipper.inside(every.mean(axis=2))
    clipped: dict[int, ClippedBox] = {}
    for leaf, box in enumerate(every):
        if clipper.meets(box):
            left = clipper.clip(box, nodes)
            inside[leaf] = len(left.weights) > 0
            if inside[leaf] and not left.whole:
                clipped[leaf] = left
    leaves = np.flatnonzero(inside)
    number = np.where(inside, np.cumsum(inside) - 1, -1)
    boxes, parts = every[leaves].copy(), {}
    for leaf, left in clipped.items():
        cell = int(number[leaf])
        parts[cell] = CutPart(left.points, left.weights)
        lower, upper = left.points.min(axis=0), left.points.max(axis=0)
        margin = CUT_BOX_MARGIN * (upper - lower)
        boxes[cell, :, 0] = np.maximum(every[leaf, :, 0], lower - margin)
        boxes[cell, :, 1] = np.minimum(every[leaf, :, 1], upper + margin)
    pairs, axes, spans = touching_pairs(every)
    cut = np.zeros(len(every), dtype=bool)
    cut[list(clipped)] = True
    both = inside[pairs].all(axis=1)
    flat = np.array(both & ~cut[pairs].all(axis=1))  # beside a whole cell a face is whole
    points, weights, normals, beside = [], [], [], []
    for row in np.flatnonzero(both & cut[pairs].all(axis=1)):
        own, shares, whole = clipper.face(spans[row], int(axes[row]), nodes)
        if whole:
            flat[row] = True
            continue
        points.append(own)
        weights.append(shares)
        normals.append(np.broadcast_to(np.eye(3)[axes[row]], own.shape))
        beside.append(np.repeat(number[pairs[row]][None], len(own), axis=0))
    q = nodes**2
    curves = CurvedFaces(
        np.concatenate([np.empty((0, q, 3)), *points]), np.concatenate([np.empty((0, q)), *weights]),
        np.concatenate([np.empty((0, q, 3)), *normals]),
    )  # fmt: skip
    patches = _patches(clipper, every, tree, clipped, (pairs, axes, spans), inside, nodes)
    middle = q // 2
    boundary = BoundaryPatches(
        number[patches.cell], patches.points, patches.weights, patches.normals,
        finder.groups(patches.points[:, middle], patches.normals[:, middle]),
    )  # fmt: skip
    return WeakMesh(
        tree, leaves, boxes, parts, np.concatenate([number[pairs[flat]], *beside]), axes[flat], spans[flat], boundary,
        finder.conditions, curves if len(curves) else None,
    )  # fmt: skip


def _patches(
    clipper: SolidClipper,
    every: Array,
    tree: CellNode,
    clipped: dict[int, ClippedBox],
    touching: tuple[Array, Array, Array],
    inside: Array,
    nodes: int,
) -> BoundaryPatches:
    """The boundary, its pieces with the leaves that they belong to: curved surfaces, then flat sides."""
    owners, points, weights, normals = [], [], [], []

    def add(leaf: int, own: Array, shares: Array, outward: Array) -> None:
        owners.append(np.full(len(own), leaf))
        points.append(own)
        weights.append(shares)
        normals.append(np.broadcast_to(outward, own.shape))

    for leaf, box in clipped.items():
        add(leaf, box.surface.points, box.surface.weights, box.surface.normals)
    for leaf, axis, sign, span in _flat_sides(every, tree, touching, inside):
        outward = sign * np.eye(3)[axis]
        if leaf in clipped:
            step = INSIDE * clipper.size
            own, shares, _ = clipper.face(span, axis, nodes, -sign * step)
        else:
            own, shares = flat_points(np.array([axis]), span[None], nodes)
        add(leaf, own, shares, outward)
    q = nodes**2
    return BoundaryPatches(
        np.concatenate([np.empty(0, dtype=int), *owners]), np.concatenate([np.empty((0, q, 3)), *points]),
        np.concatenate([np.empty((0, q)), *weights]), np.concatenate([np.empty((0, q, 3)), *normals]),
        np.empty(0, dtype=int),
    )  # fmt: skip


def _flat_sides(
    every: Array, tree: CellNode, touching: tuple[Array, Array, Array], inside: Array
) -> list[tuple[int, int, float, Array]]:
    """Sides of leaves beside leaves outside, and at the ends of the tree: leaf, axis, outward sign, flat box."""
    pairs, axes, spans = touching
    sides = []
    for column, sign in ((0, 1.0), (1, -1.0)):
        alone = np.flatnonzero(inside[pairs[:, column]] & ~inside[pairs[:, 1 - column]])
        sides += [(int(pairs[row, column]), int(axes[row]), sign, spans[row]) for row in alone]
    for axis in range(3):
        for end, sign in ((0, -1.0), (1, 1.0)):
            for leaf in np.flatnonzero(inside & (every[:, axis, end] == tree.bounds[axis, end])):
                flat = every[leaf].copy()
                flat[axis] = tree.bounds[axis, end]
                sides.append((int(leaf), axis, sign, flat))
    return sides
