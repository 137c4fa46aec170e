"""What a domain in the plane leaves of boxes: rules for integrals over cut cells, their faces and their boundary.

The boundary stays what it is, arcs of circles, ellipses, segments, formulas. Arcs along which both coordinates are
monotone are split where they cross the sides of boxes; a cell that holds a piece of one is cut into strips at the
heights of the ends of its pieces. Within a strip every line across meets the same pieces, so that its stretches inside
have smooth ends, but for roots at and near horizontal tangents: heights are those of Gauss nodes in the parameter of
the piece that turns most, in which nothing is singular.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.arcs import Arcs, split
from rannpde.domains.boundary.planar import Planar
from rannpde.domains.quadrature.plane import endpoint_grading
from rannpde.domains.region import composite_gauss
from rannpde.domains.shapes.base import Domain

THIN = 1e-12
"""Lengths below this multiple of the size of a domain are rounding of its boundary."""
STRAIGHT = 1e-9
"""Angle by which a piece turns, in radians, that is rounding: it is straight."""
INWARD = 1e-3
"""Step off the middle of a piece into the domain, over the length of the piece, that tells its box."""


@dataclass(frozen=True, eq=False)
class BoundaryPieces:
    """Pieces of the boundary, each in one box (B,): points (B, q, 2), weights (B, q), outward normals (B, q, 2)."""

    box: Array
    points: Array
    weights: Array
    normals: Array


@dataclass(frozen=True, eq=False)
class CutRule:
    """A rule on what a domain leaves of a box: points (M, 2) and weights (M,) ≥ 0."""

    points: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class ClippedBoxes:
    """Boxes as a domain leaves them.

    whole (L,), cut (L,) : boxes that lie in the domain, and those that its boundary runs through; others are outside
    rules : cut box → rule
    pieces : of the boundary
    breaks : ends (E, 2) of all pieces, at which sides of boxes enter or leave the domain
    """

    whole: Array
    cut: Array
    rules: dict[int, CutRule]
    pieces: BoundaryPieces
    breaks: Array
    turning: Array
    """By how much curved pieces turn in each box, in radians, (L,)."""


@dataclass(eq=False)
class _Requests:
    """Lines at heights that cross arcs of one family, asked for one by one and answered together."""

    arcs: Arcs
    number: list[Array] = field(default_factory=list)
    height: list[Array] = field(default_factory=list)
    count: int = 0

    def ask(self, number: int, heights: Array) -> slice:
        self.number.append(np.full(len(heights), number))
        self.height.append(heights)
        self.count += len(heights)
        return slice(self.count - len(heights), self.count)

    def answers(self) -> Array:
        """The first coordinate where each line meets its arc."""
        if not self.count:
            return np.empty(0)
        number = np.concatenate(self.number)
        share = arc_shares(self.arcs, number, 1, np.concatenate(self.height))
        return self.arcs.place(number, share)[:, 0]


def arc_shares(arcs: Arcs, number: Array, axis: int, value: Array) -> Array:
    """Shares (M,) at which monotone arcs (M,) have a coordinate of given values (M,): Newton's method in brackets."""
    ends = [arcs.place(number, np.full(len(number), float(end)))[:, axis] for end in (0, 1)]
    rising = ends[1] > ends[0]
    low, high = np.zeros(len(number)), np.ones(len(number))
    span = np.where(ends[1] == ends[0], 1.0, ends[1] - ends[0])
    share = np.clip((value - ends[0]) / span, 0.0, 1.0)
    live = np.arange(len(number))
    for _ in range(80):
        now, home = share[live], number[live]
        gap = arcs.place(home, now)[:, axis] - value[live]
        above = (gap > 0) == rising[live]
        low[live], high[live] = np.where(above, low[live], now), np.where(above, now, high[live])
        slope = arcs.slopes(home, now)[:, axis]
        step = np.divide(gap, slope, out=np.full_like(gap, np.inf), where=slope != 0)
        better = now - step
        inside = (better >= low[live]) & (better <= high[live])
        share[live] = np.where(inside, better, 0.5 * (low[live] + high[live]))
        live = live[(np.abs(share[live] - now) > 1e-15) & (gap != 0)]
        if not len(live):
            break
    return share


def planar_outline(domain: Domain) -> Planar:
    """The boundary of a domain in the plane, which shapes have found already when they were stated."""
    known = getattr(domain, "engine", None)
    return known if isinstance(known, Planar) else Planar.of(domain.tree)


class BoxClipper:
    """Clips boxes by one domain in the plane, whose boundary is found once."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        outline = planar_outline(domain)
        self.size = outline.size
        self.arcs = [arcs for arcs in outline.monotone_in_both() if len(arcs)]

    @property
    def curved(self) -> bool:
        """Whether any part of the boundary is no segment."""
        return any(bool((_turning(arcs) > STRAIGHT).any()) for arcs in self.arcs)

    def flat_places(self) -> list[tuple[int, float]]:
        """Axis and value of straight parts of the boundary across an axis, where boxes had better end."""
        found: dict[tuple[int, float], None] = {}
        for arcs in self.arcs:
            every = np.arange(len(arcs))
            points = np.stack([arcs.place(every, np.full(len(arcs), share)) for share in (0.0, 0.3, 0.6, 1.0)])
            for axis in (0, 1):
                flat = np.ptp(points[:, :, axis], axis=0) <= THIN * self.size
                for value in points[0, flat, axis]:
                    if not any(a == axis and abs(v - value) <= 10 * THIN * self.size for a, v in found):
                        found[axis, float(value)] = None
        return list(found)

    def clip(
        self, boxes: Array, locate: Callable[[Array], Array], count: int, across: int = 0, rules: bool = True
    ) -> ClippedBoxes:
        """Boxes (L, 2, 2) that tile the bounding box; ``locate`` tells the box of points.

        count : Gauss nodes along pieces of the boundary and of the heights of strips; across : of lines, or as many
        """
        lines = [np.unique(boxes[:, axis]) for axis in (0, 1)]
        parts = [self._split(arcs, lines) for arcs in self.arcs]
        homes = [self._homes(arcs, locate) for arcs in parts]
        aligned = [self._aligned(arcs, boxes[home]) for arcs, home in zip(parts, homes, strict=True)]
        cut = np.zeros(len(boxes), dtype=bool)
        touched = np.zeros(len(boxes), dtype=bool)
        turning = np.zeros(len(boxes))
        for arcs, home, flat in zip(parts, homes, aligned, strict=True):
            cut[home[~flat]] = True
            touched[home] = True
            np.add.at(turning, home, _turning(arcs))
        inside = np.zeros(len(boxes), dtype=bool)
        free = np.flatnonzero(~touched)
        inside[free] = self.domain.level(boxes[free].mean(axis=2)) < 0
        whole = (inside | touched) & ~cut
        found = self._rules(boxes, np.flatnonzero(cut), parts, homes, count, across or count) if rules else {}
        for box in np.flatnonzero(cut):
            if rules and int(box) not in found:
                cut[box] = False
        pieces = self._pieces(parts, homes, count)
        ends = [arcs.place(np.arange(len(arcs)), np.full(len(arcs), float(end))) for arcs in parts for end in (0, 1)]
        return ClippedBoxes(whole, cut, found, pieces, np.concatenate(ends), turning)

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
        chord = np.linalg.norm(arcs.place(every, half * 2) - arcs.place(every, half * 0), axis=1)
        return locate(arcs.place(every, half) - INWARD * chord[:, None] * normals)

    def _aligned(self, arcs: Arcs, boxes: Array) -> Array:
        """Which pieces (K,) run along a side of their boxes (K, 2, 2)."""
        every = np.arange(len(arcs))
        points = np.stack([arcs.place(every, np.full(len(arcs), s)) for s in (0.0, 0.31, 0.5, 0.83, 1.0)])  # (5, K, 2)
        found = np.zeros(len(arcs), dtype=bool)
        for axis in (0, 1):
            for end in (0, 1):
                gap = np.abs(points[:, :, axis] - boxes[None, :, axis, end]).max(axis=0)
                found |= gap <= 10 * THIN * self.size
        return found

    def _pieces(self, parts: list[Arcs], homes: list[Array], count: int) -> BoundaryPieces:
        """Boundary pieces, those that continue each other in one box as one, with Gauss nodes in their parameter."""
        nodes, shares = composite_gauss(np.array([0.0, 1.0]), count)
        owners, points, weights, normals = [], [], [], []
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

    def _rules(
        self, boxes: Array, cut: Array, parts: list[Arcs], homes: list[Array], count: int, across: int
    ) -> dict[int, CutRule]:
        """Rules on cut boxes, by strips between the heights of the ends of pieces."""
        nodes, weights = composite_gauss(np.array([0.0, 1.0]), count)
        places, lengths = composite_gauss(np.array([0.0, 1.0]), across)
        slack = THIN * self.size
        spans = [_heights(arcs) for arcs in parts]
        turns = [_turning(arcs) for arcs in parts]
        inside: dict[int, list[tuple[int, int]]] = {int(box): [] for box in cut}
        for f, home in enumerate(homes):
            for k, box in enumerate(home.tolist()):
                if box in inside:
                    inside[box].append((f, k))
        requests = [_Requests(arcs) for arcs in parts]
        strips: list[tuple[int, Array, Array, list[tuple[int, slice]]]] = []
        for box, own in inside.items():
            low, high = boxes[box, 1]
            ends = np.array([low, high, *(spans[f][e][k] for f, k in own for e in (0, 1))])
            levels = np.unique(np.clip(ends, low, high))
            levels = levels[np.concatenate([[True], np.diff(levels) > slack])]
            for bottom, top in itertools.pairwise(levels):
                covering = [(f, k) for f, k in own if spans[f][0][k] <= bottom + slack and spans[f][1][k] >= top - slack
                            and spans[f][1][k] - spans[f][0][k] > slack]  # fmt: skip
                heights, shares = bottom + (top - bottom) * nodes, (top - bottom) * weights
                curved = [(turns[f][k], f, k) for f, k in covering if turns[f][k] > STRAIGHT]
                if curved:
                    _, f, k = max(curved)
                    # a second piece may be nearly level where the first is not: more nodes, in two panels
                    rule = (nodes, weights) if len(curved) == 1 else endpoint_grading(count, 2)
                    heights, shares = _along(parts[f], k, bottom, top, *rule)
                strips.append((box, heights, shares, [(f, requests[f].ask(k, heights)) for f, k in covering]))
        answers = [one.answers() for one in requests]
        stretches: list[tuple[int, Array, Array, Array, Array]] = []
        for box, heights, shares, asked in strips:
            left, right = boxes[box, 0]
            crossings = [answers[f][place] for f, place in asked]
            crossings.sort(key=lambda one: float(one.mean()))
            inner = [np.clip(one, left, right) for one in crossings]
            edges = [np.full(len(heights), left), *inner, np.full(len(heights), right)]
            for one, other in itertools.pairwise(edges):
                if (other - one).max() > slack:
                    stretches.append((box, heights, one, np.maximum(other - one, 0.0), shares))
        if not stretches:
            return {}
        middles = [len(y) // 2 for _, y, _, _, _ in stretches]
        probes = np.array(
            [(one[m] + 0.5 * wide[m], y[m]) for m, (_, y, one, wide, _) in zip(middles, stretches, strict=True)]
        )
        kept = self.domain.level(probes) < 0
        gathered: dict[int, list[tuple[Array, Array]]] = {}
        for (box, heights, one, wide, shares), good in zip(stretches, kept, strict=True):
            if good:
                x = one[:, None] + wide[:, None] * places
                y = np.broadcast_to(heights[:, None], x.shape)
                weight = (shares * wide)[:, None] * lengths
                gathered.setdefault(box, []).append((np.stack([x.ravel(), y.ravel()], axis=1), weight.ravel()))
        return {
            box: CutRule(np.concatenate([p for p, _ in parts_]), np.concatenate([w for _, w in parts_]))
            for box, parts_ in gathered.items()
        }


def _heights(arcs: Arcs) -> tuple[Array, Array]:
    """Least and largest second coordinate of monotone arcs, each (K,)."""
    every = np.arange(len(arcs))
    ends = np.stack([arcs.place(every, np.full(len(arcs), float(end)))[:, 1] for end in (0, 1)])
    return ends.min(axis=0), ends.max(axis=0)


def _along(arcs: Arcs, number: int, bottom: float, top: float, nodes: Array, weights: Array) -> tuple[Array, Array]:
    """Heights (n,) between two, and their weights, at nodes of the parameter of an arc that runs through both."""
    which = np.array([number, number])
    first, last = arc_shares(arcs, which, 1, np.array([bottom, top]))
    share, every = first + (last - first) * nodes, np.full(len(nodes), number)
    heights = np.clip(arcs.place(every, share)[:, 1], bottom, top)
    return heights, np.abs(arcs.slopes(every, share)[:, 1] * (last - first)) * weights


def _turning(arcs: Arcs) -> Array:
    """The angle (K,) between the normals at both ends of arcs."""
    every = np.arange(len(arcs))
    ends = [arcs.normals(every, np.full(len(arcs), float(end))) for end in (0, 1)]
    cross = ends[0][:, 0] * ends[1][:, 1] - ends[0][:, 1] * ends[1][:, 0]
    return np.abs(np.arctan2(cross, (ends[0] * ends[1]).sum(axis=1)))
