"""Meshes of shapes in the plane, whose cells are boxes, clipped by the boundary and by curved interfaces.

A domain is one region, or several of different materials. Cells of one region meet in what is inside of the sides of
their boxes; cells of two regions meet in pieces of interfaces, which are found by their parameters, the same from both
sides.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.arcs import Arcs
from rannpde.domains.boundary.charts import Chart
from rannpde.domains.operations.cutcells import BoxClipper, ClippedBoxes
from rannpde.domains.operations.cutrules import ALL_DIGITS, THIN
from rannpde.domains.region import composite_gauss
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.weak.mesh import BoundaryPatches, ConditionFinder, CurvedFaces, CutPart, WeakMesh, touching_pairs

CUT_BOX_MARGIN = 0.02
"""Of the box around the nodes of a cut cell, over its lengths: nodes do not reach to its ends."""


def shape_mesh(
    clippers: BoxClipper | Sequence[BoxClipper],
    tree: CellNode,
    finder: ConditionFinder,
    nodes: int,
    across: int,
    digits: int = ALL_DIGITS,
) -> WeakMesh:
    """The mesh of a shape in the plane, of one region or of several.

    nodes : Gauss nodes along pieces of the boundary and of the heights of lines; across : on such a line; digits : of
        integrals over cut cells that are correct
    """
    regions = [clippers] if isinstance(clippers, BoxClipper) else list(clippers)
    every = np.array([leaf.bounds for leaf in tree.leaves])
    clipped = [clipper.clip(every, tree.locate, nodes, across, digits=digits) for clipper in regions]
    number = np.full((len(regions), len(every)), -1)
    held = np.stack([one.whole | one.cut for one in clipped])
    materials, leaves = np.nonzero(held)
    number[materials, leaves] = np.arange(len(leaves))
    boxes = every[leaves].copy()
    parts = {}
    for region, one in enumerate(clipped):
        for leaf, rule in one.rules.items():
            cell = int(number[region, leaf])
            parts[cell] = CutPart(rule.points, rule.weights)
            lower, upper = rule.points.min(axis=0), rule.points.max(axis=0)
            margin = CUT_BOX_MARGIN * (upper - lower)
            boxes[cell, :, 0] = np.maximum(every[leaf, :, 0], lower - margin)
            boxes[cell, :, 1] = np.minimum(every[leaf, :, 1], upper + margin)
    pairs, axis, spans = touching_pairs(every)
    flat = [
        _flat_faces(*two, number[k], pairs, axis, spans) for k, two in enumerate(zip(regions, clipped, strict=True))
    ]
    beside, axes, flats = (np.concatenate([faces[k] for faces in flat]) for k in range(3))
    curves, around = interface_faces(clipped, number, nodes)
    return WeakMesh(
        tree, leaves, boxes, parts, np.concatenate([beside, around]), axes, flats,
        _patches(clipped, number, finder, nodes), finder.conditions, curves if len(curves) else None, materials,
    )  # fmt: skip


def _flat_faces(
    clipper: BoxClipper, clipped: ClippedBoxes, number: Array, pairs: Array, axis: Array, spans: Array
) -> tuple[Array, Array, Array]:
    """Cells (N, 2), axes (N,) and flat boxes (N, 2, 2) of the faces in one region; number (L,) : cells of leaves."""
    both = (number[pairs] >= 0).all(axis=1)
    pairs, axis, spans = pairs[both], axis[both], spans[both]
    plain = ~clipped.cut[pairs].any(axis=1)
    axes, broken, owner = _open_parts(clipper, spans[~plain], axis[~plain], clipped.breaks)
    beside = np.concatenate([number[pairs[plain]], number[pairs[~plain][owner]]])
    return beside, np.concatenate([axis[plain], axes]), np.concatenate([spans[plain], broken])


def _patches(clipped: Sequence[ClippedBoxes], number: Array, finder: ConditionFinder, nodes: int) -> BoundaryPatches:
    """Pieces of the boundary of the domain, of all regions."""
    owners = np.concatenate([number[k][one.pieces.box] for k, one in enumerate(clipped)])
    points, weights, normals = (
        np.concatenate([getattr(one.pieces, name) for one in clipped])[owners >= 0]
        for name in ("points", "weights", "normals")
    )
    middle = nodes // 2
    groups = finder.groups(points[:, middle], normals[:, middle])
    return BoundaryPatches(owners[owners >= 0], points, weights, normals, groups)


def _open_parts(clipper: BoxClipper, spans: Array, axes: Array, breaks: Array) -> tuple[Array, Array, Array]:
    """Parts of faces that lie inside a region: their axes, their flat boxes, and the faces they are parts of."""
    slack = THIN * clipper.size
    box_axes, boxes, owners = [], [], []
    for face, (span, axis) in enumerate(zip(spans, axes, strict=True)):
        along = 1 - int(axis)
        low, high = span[along]
        near = np.abs(breaks[:, axis] - span[axis, 0]) <= 10 * slack
        coordinates = breaks[near, along]
        ends = np.unique(np.concatenate([[low, high], coordinates[(coordinates > low) & (coordinates < high)]]))
        ends = ends[np.concatenate([[True], np.diff(ends) > slack])]
        for start, end in itertools.pairwise(ends):
            part = span.copy()
            part[along] = start, end
            box_axes.append(int(axis))
            boxes.append(part)
            owners.append(face)
    if not boxes:
        return np.empty(0, dtype=int), np.empty((0, 2, 2)), np.empty(0, dtype=int)
    parts = np.array(boxes)
    inside = clipper.domain.level(parts.mean(axis=2)) < -slack
    return np.array(box_axes)[inside], parts[inside], np.array(owners)[inside]


# -------------------------------------------------------------------------------------------------------- interfaces


@dataclass(frozen=True)
class _SubArc:
    """A sub-arc of a piece of a chart on one side of which a cell lies."""

    lower: float
    upper: float
    cell: int


def interface_faces(clipped: Sequence[ClippedBoxes], number: Array, nodes: int) -> tuple[CurvedFaces, Array]:
    """Pieces of interfaces between the cells ``number`` (R, L) of regions, and the cells (I, 2) beside them."""
    sides: dict[tuple[int, int], dict[float, list[_SubArc]]] = {}
    charts: dict[int, Chart] = {}
    for region, one in enumerate(clipped):
        for inner in one.inner:
            arcs = inner.arcs
            charts.setdefault(inner.solid, arcs.chart)
            cells = number[region][inner.box]
            for piece, lower, upper, sign, cell in zip(
                arcs.piece.tolist(), arcs.lower.tolist(), arcs.upper.tolist(), arcs.sign.tolist(), cells.tolist(),
                strict=True,
            ):  # fmt: skip
                own = sides.setdefault((inner.solid, piece), {1.0: [], -1.0: []})
                if cell >= 0:
                    own[sign].append(_SubArc(lower, upper, cell))
    points, weights, normals = [np.empty((0, nodes, 2))], [np.empty((0, nodes))], [np.empty((0, nodes, 2))]
    beside = [np.empty((0, 2), dtype=int)]
    unit, shares = composite_gauss(np.array([0.0, 1.0]), nodes)
    for (solid, piece), own in sides.items():
        common = _common(own[1.0], own[-1.0])
        if not common:
            continue
        ends = np.array([(lower, upper) for lower, upper, _, _ in common])
        count = len(common)
        arcs = Arcs(charts[solid], np.full(count, piece), ends[:, 0], ends[:, 1], np.ones(count))
        which, share = np.repeat(np.arange(count), nodes), np.tile(unit, count)
        outward = arcs.normals(which, share)
        outward /= np.linalg.norm(outward, axis=1, keepdims=True)
        speed = np.linalg.norm(arcs.slopes(which, share), axis=1)
        points.append(arcs.place(which, share).reshape(count, nodes, 2))
        weights.append((speed * np.tile(shares, count)).reshape(count, nodes))
        normals.append(outward.reshape(count, nodes, 2))
        beside.append(np.array([(inside, outside) for _, _, inside, outside in common]))
    return CurvedFaces(*(np.concatenate(one) for one in (points, weights, normals))), np.concatenate(beside)


def _common(one: list[_SubArc], other: list[_SubArc]) -> list[tuple[float, float, int, int]]:
    """Where sub-arcs of two sides overlap: ends and both cells; neighbours between the same cells are one."""
    overlaps: list[tuple[float, float, int, int]] = []
    one, other = (sorted(side, key=lambda subarc: subarc.lower) for side in (one, other))
    i = j = 0
    while i < len(one) and j < len(other):
        lower, upper = max(one[i].lower, other[j].lower), min(one[i].upper, other[j].upper)
        if upper - lower > THIN:
            pair = one[i].cell, other[j].cell
            if overlaps and overlaps[-1][2:] == pair and overlaps[-1][1] >= lower - THIN:
                overlaps[-1] = (overlaps[-1][0], upper, *pair)
            else:
                overlaps.append((lower, upper, *pair))
        if one[i].upper <= other[j].upper:
            i += 1
        else:
            j += 1
    return overlaps
