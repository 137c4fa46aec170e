"""Cut cells in the plane, the parts of boxes in a domain: rules for integrals over them, their faces and boundary.

The boundary stays what it is, arcs of circles, ellipses, segments, formulas. Arcs along which both coordinates are
monotone are split where they cross the sides of boxes; rules are in ``cutrules``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.arcs import Arcs, split
from rannpde.domains.boundary.planar import Planar
from rannpde.domains.operations.cutrules import (
    ALL_DIGITS,
    STRAIGHT,
    THIN,
    CutRule,
    PlanarSet,
    StripRules,
    arc_shares,
    turning,
)
from rannpde.domains.region import composite_gauss

ALIGNED = 10 * THIN
"""Distance from a side of a box, over the size of the domain, within which a piece of the boundary runs along it."""


@dataclass(frozen=True, eq=False)
class BoundaryPieces:
    """Pieces of the boundary, each in one box (B,): points (B, q, 2), weights (B, q), outward normals (B, q, 2)."""

    box: Array
    points: Array
    weights: Array
    normals: Array


@dataclass(frozen=True, eq=False)
class InnerPieces:
    """Pieces of the wall of one solid that are no boundary of the domain, each in one box (K,)."""

    solid: int
    arcs: Arcs
    box: Array


@dataclass(frozen=True, eq=False)
class ClippedBoxes:
    """Boxes as a domain leaves them.

    whole (L,), cut (L,) : boxes that lie in the domain, and those that its boundary runs through; others are outside
    rules : cut box → rule
    pieces : pieces of the boundary; inner : pieces of walls between parts of a domain, where the set that clips is such
        a part
    breaks : ends (E, 2) of all pieces, at which sides of boxes enter or leave the domain
    """

    whole: Array
    cut: Array
    rules: dict[int, CutRule]
    pieces: BoundaryPieces
    breaks: Array
    turning: Array
    """By how much curved pieces turn in each box, in radians, (L,)."""
    inner: tuple[InnerPieces, ...] = ()


def planar_outline(domain: PlanarSet) -> Planar:
    """The boundary of a domain in the plane, which shapes have computed already when they were stated."""
    known = getattr(domain, "engine", None)
    return known if isinstance(known, Planar) else Planar.of(domain.tree)


class BoxClipper:
    """Clips boxes by one set in the plane, whose boundary is computed once.

    own : solids, counted from the first of the tree, whose walls bound the domain; the others bound parts of it
    """

    def __init__(self, domain: PlanarSet, own: int | None = None) -> None:
        self.domain, self.own = domain, own
        outline = planar_outline(domain)
        self.size = outline.size
        self.arcs = outline.monotone_in_both()
        self.solids = [labelled.leaf for labelled in outline.labelled_arcs]

    @property
    def curved(self) -> bool:
        """Whether any part of the boundary is no segment."""
        return any(bool((turning(arcs) > STRAIGHT).any()) for arcs in self.arcs)

    def flat_planes(self) -> list[tuple[int, float]]:
        """Axis and value of straight parts of the boundary across an axis, where boxes had better end."""
        planes: dict[tuple[int, float], None] = {}
        for arcs in self.arcs:
            every = np.arange(len(arcs))
            points = np.stack([arcs.place(every, np.full(len(arcs), share)) for share in (0.0, 0.3, 0.6, 1.0)])
            for axis in (0, 1):
                flat = np.ptp(points[:, :, axis], axis=0) <= THIN * self.size
                for value in points[0, flat, axis]:
                    if not any(a == axis and abs(v - value) <= ALIGNED * self.size for a, v in planes):
                        planes[axis, float(value)] = None
        return list(planes)

    def clip(
        self,
        boxes: Array,
        locate: Callable[[Array], Array],
        count: int,
        across: int = 0,
        rules: bool = True,
        digits: int = ALL_DIGITS,
    ) -> ClippedBoxes:
        """Boxes (L, 2, 2) that tile the bounding box; ``locate`` gives the box of points.

        count : Gauss nodes along pieces of the boundary and of the heights of strips; across : nodes of lines, or as
            many;
        digits : correct digits of the rules
        """
        lines = [np.unique(boxes[:, axis]) for axis in (0, 1)]
        parts = [self._split(arcs, lines) for arcs in self.arcs]
        homes = [self._homes(arcs, locate) for arcs in parts]
        aligned = [self._aligned(arcs, boxes[home]) for arcs, home in zip(parts, homes, strict=True)]
        cut = np.zeros(len(boxes), dtype=bool)
        touched = np.zeros(len(boxes), dtype=bool)
        turned = np.zeros(len(boxes))
        for arcs, home, flat in zip(parts, homes, aligned, strict=True):
            cut[home[~flat]] = True
            touched[home] = True
            np.add.at(turned, home, turning(arcs))
        inside = np.zeros(len(boxes), dtype=bool)
        free = np.flatnonzero(~touched)
        inside[free] = self.domain.level(boxes[free].mean(axis=2)) < 0
        whole = (inside | touched) & ~cut
        cut_rules = {}
        if rules:
            strips = StripRules(self.domain, self.size, parts, homes, digits)
            cut_rules = strips.rules(boxes, np.flatnonzero(cut), count, across or count)
        for box in np.flatnonzero(cut):
            if rules and int(box) not in cut_rules:
                cut[box] = False
        outer = [self.own is None or solid < self.own for solid in self.solids]
        rim = [(arcs, home) for arcs, home, on in zip(parts, homes, outer, strict=True) if on]
        pieces = self._pieces([arcs for arcs, _ in rim], [home for _, home in rim], count)
        inner = tuple(
            InnerPieces(solid - (self.own or 0), arcs, home)
            for solid, arcs, home, on in zip(self.solids, parts, homes, outer, strict=True)
            if not on
        )
        ends = [arcs.place(np.arange(len(arcs)), np.full(len(arcs), float(end))) for arcs in parts for end in (0, 1)]
        return ClippedBoxes(whole, cut, cut_rules, pieces, np.concatenate(ends), turned, inner)

    def _split(self, arcs: Arcs, lines: list[Array]) -> Arcs:
        """The arcs split at all lines across the axes."""
        every = np.arange(len(arcs))
        ends = [arcs.place(every, np.full(len(arcs), float(end))) for end in (0, 1)]
        where, unit = [np.empty(0, dtype=int)], [np.empty(0)]
        for axis in (0, 1):
            low, high = np.minimum(ends[0], ends[1])[:, axis], np.maximum(ends[0], ends[1])[:, axis]
            slack = THIN * self.size
            number, line = np.nonzero((lines[axis] > low[:, None] + slack) & (lines[axis] < high[:, None] - slack))
            if len(number):
                share = arc_shares(arcs, number, axis, lines[axis][line])
                where.append(number)
                unit.append(arcs.lower[number] + share * (arcs.upper - arcs.lower)[number])
        return split(arcs, np.concatenate(where), np.concatenate(unit))

    def _homes(self, arcs: Arcs, locate: Callable[[Array], Array]) -> Array:
        """The box (K,) on whose side each piece has the domain."""
        every, half = np.arange(len(arcs)), np.full(len(arcs), 0.5)
        normals = arcs.normals(every, half)
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
        # off a side that the piece runs along, and no farther: thin cells between a curve and a side are cells
        return locate(arcs.place(every, half) - 2 * ALIGNED * self.size * normals)

    def _aligned(self, arcs: Arcs, boxes: Array) -> Array:
        """Which pieces (K,) run along a side of their boxes (K, 2, 2)."""
        every = np.arange(len(arcs))
        points = np.stack([arcs.place(every, np.full(len(arcs), s)) for s in (0.0, 0.31, 0.5, 0.83, 1.0)])  # (5, K, 2)
        aligned = np.zeros(len(arcs), dtype=bool)
        for axis in (0, 1):
            for end in (0, 1):
                gap = np.abs(points[:, :, axis] - boxes[None, :, axis, end]).max(axis=0)
                aligned |= gap <= ALIGNED * self.size
        return aligned

    def _pieces(self, parts: list[Arcs], homes: list[Array], count: int) -> BoundaryPieces:
        """Boundary pieces, those that continue each other in one box as one, with Gauss nodes in their parameter."""
        nodes, shares = composite_gauss(np.array([0.0, 1.0]), count)
        owners, points = [np.empty(0, dtype=int)], [np.empty((0, count, 2))]
        weights, normals = [np.empty((0, count))], [np.empty((0, count, 2))]
        for arcs, home in zip(parts, homes, strict=True):
            same = (arcs.piece[1:] == arcs.piece[:-1]) & (home[1:] == home[:-1]) & (arcs.lower[1:] == arcs.upper[:-1])
            first, last = np.concatenate([[True], ~same]), np.concatenate([~same, [True]])
            joined = Arcs(arcs.chart, arcs.piece[first], arcs.lower[first], arcs.upper[last], arcs.sign[first])
            number, share = np.repeat(np.arange(len(joined)), count), np.tile(nodes, len(joined))
            speed = np.linalg.norm(joined.slopes(number, share), axis=1)
            outward = joined.normals(number, share)
            outward /= np.linalg.norm(outward, axis=1, keepdims=True)
            owners.append(home[first])
            points.append(joined.place(number, share).reshape(-1, count, 2))
            weights.append((speed * np.tile(shares, len(joined))).reshape(-1, count))
            normals.append(outward.reshape(-1, count, 2))
        return BoundaryPieces(*(np.concatenate(part) for part in (owners, points, weights, normals)))
