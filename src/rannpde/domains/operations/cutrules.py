"""Rules for integrals over cut cells, the parts of boxes in a domain of the plane, by strips.

A cell is cut into strips at the heights of the ends of the pieces of the boundary in it. Within a strip every line
across meets the same pieces, so that its intervals inside have smooth ends, but for roots at and near horizontal
tangents: heights are those of Gauss nodes in the parameter of the piece that turns most, in which nothing is singular.

Strips and intervals that are a share s of the cell need fewer nodes: a polynomial of degree 2p on the cell grows, on
ellipses about the interval, like one of degree 2p √s.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from math import ceil, pi, sqrt
from typing import Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.arcs import Arcs
from rannpde.domains.boundary.solids import Tree
from rannpde.domains.quadrature.plane import endpoint_grading
from rannpde.domains.region import composite_gauss
from rannpde.rounding import HALF_DIGITS

THIN = 1e-12
"""Lengths below this multiple of the size of a domain are rounding of its boundary."""
STRAIGHT = 1e-9
"""Angle by which a piece turns, in radians, that is rounding: it is straight."""
LEAST_NODES, NODE_GROWTH = 7, 1.25
"""Gauss nodes for all digits of a polynomial on a share s of its interval: 7 + 1.25 n √s, where n do for the whole. The
first summand is what digits beyond those of the whole interval take, in proportion to their number."""
ALL_DIGITS = 13
"""Correct digits of a rule unless fewer are wanted."""


class PlanarSet(Protocol):
    """A set in the plane, made of solids, with a level that is negative inside."""

    @property
    def tree(self) -> Tree: ...

    def level(self, points: Array) -> Array: ...


@dataclass(frozen=True, eq=False)
class CutRule:
    """A rule on what a domain leaves of a box: points (M, 2) and weights (M,) ≥ 0."""

    points: Array
    weights: Array


@dataclass(frozen=True)
class _Strip:
    """A strip of a box between two heights, and the pieces (family, number) that run through all of it."""

    box: int
    bottom: float
    top: float
    covering: tuple[tuple[int, int], ...]


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
    """Shares (M,) at which monotone arcs (M,) have a coordinate of given values (M,): Newton's method in brackets.

    It ends where steps are rounding of the shares, or where they are below half of the digits and do not halve what the
    coordinate lacks any more, or would leave the bracket: that is rounding of the coordinate, beside flat ends of arcs.
    """
    ends = [arcs.place(number, np.full(len(number), float(end)))[:, axis] for end in (0, 1)]
    rising = ends[1] > ends[0]
    low, high = np.zeros(len(number)), np.ones(len(number))
    span = np.where(ends[1] == ends[0], 1.0, ends[1] - ends[0])
    share = np.clip((value - ends[0]) / span, 0.0, 1.0)
    best, least = share.copy(), np.full(len(number), np.inf)
    live = np.arange(len(number))
    for _ in range(80):
        now, home = share[live], number[live]
        gap = arcs.place(home, now)[:, axis] - value[live]
        size = np.abs(gap)
        halved = size <= 0.5 * least[live]
        better = size < least[live]
        best[live[better]], least[live[better]] = now[better], size[better]
        above = (gap > 0) == rising[live]
        low[live], high[live] = np.where(above, low[live], now), np.where(above, now, high[live])
        slope = arcs.slopes(home, now)[:, axis]
        step = np.divide(gap, slope, out=np.full_like(gap, np.inf), where=slope != 0)
        newton = now - step
        inside = (newton >= low[live]) & (newton <= high[live])
        share[live] = np.where(inside, newton, 0.5 * (low[live] + high[live]))
        live = live[
            (np.abs(share[live] - now) > 1e-15) & (gap != 0) & ((inside & halved) | (np.abs(step) > HALF_DIGITS))
        ]
        if not len(live):
            break
    return best


class StripRules:
    """Rules on cut boxes.

    parts, homes : families of pieces of the boundary, each in one box, and these boxes; digits : that are correct
    """

    def __init__(
        self, domain: PlanarSet, size: float, parts: list[Arcs], homes: list[Array], digits: int = ALL_DIGITS
    ) -> None:
        self.domain, self.slack, self.parts, self.homes = domain, THIN * size, parts, homes
        self.digits = digits
        self.spans = [_heights(arcs) for arcs in parts]
        self.turns = [turning(arcs) for arcs in parts]

    def rules(self, boxes: Array, cut: Array, count: int, across: int) -> dict[int, CutRule]:
        """Rules on the boxes (L, 2, 2) of numbers ``cut``.

        count : Gauss nodes of heights along pieces that turn by a right angle; across : Gauss nodes of other heights,
            and of lines
        """
        strips = self._strips(boxes, cut)
        ends = np.array([0.0, 0.5, 1.0])
        sketch = [strip.bottom + (strip.top - strip.bottom) * ends for strip in strips]
        spans = self._intervals(boxes, strips, sketch)  # strip, left, width at three heights
        if not spans:
            return {}
        probes = np.array([(left[1] + 0.5 * width[1], sketch[number][1]) for number, left, width in spans])
        inside = self.domain.level(probes) < 0
        extents: dict[int, Array] = {}
        for (number, left, width), good in zip(spans, inside, strict=True):
            if good:
                strip = strips[number]
                own = np.array([left.min(), strip.bottom, (left + width).max(), strip.top])
                known = extents.get(strip.box, own)
                extents[strip.box] = np.concatenate([np.minimum(known[:2], own[:2]), np.maximum(known[2:], own[2:])])
        occupied = {number for (number, _, _), good in zip(spans, inside, strict=True) if good}
        strips = [strip for number, strip in enumerate(strips) if number in occupied]
        heights = self._heights(strips, extents, count, across)
        intervals = self._intervals(boxes, strips, [y for y, _ in heights])
        middles = [len(heights[number][0]) // 2 for number, _, _ in intervals]
        probes = np.array(
            [(left[m] + 0.5 * width[m], heights[number][0][m])
             for m, (number, left, width) in zip(middles, intervals, strict=True)]
        )  # fmt: skip
        inside = self.domain.level(probes) < 0
        gathered: dict[int, list[tuple[Array, Array]]] = {}
        for (number, left, width), good in zip(intervals, inside, strict=True):
            if good:
                (y, shares), box = heights[number], strips[number].box
                extent = extents[box]
                nodes, lengths = _gauss(self._fewer(across, float(width.max()) / (extent[2] - extent[0])))
                x = left[:, None] + width[:, None] * nodes
                weights = (shares * width)[:, None] * lengths
                points = np.stack([x.ravel(), np.broadcast_to(y[:, None], x.shape).ravel()], axis=1)
                gathered.setdefault(box, []).append((points, weights.ravel()))
        return {
            box: CutRule(np.concatenate([p for p, _ in own]), np.concatenate([w for _, w in own]))
            for box, own in gathered.items()
        }

    def _strips(self, boxes: Array, cut: Array) -> list[_Strip]:
        """All strips of the boxes."""
        spans, slack = self.spans, self.slack
        inside: dict[int, list[tuple[int, int]]] = {int(box): [] for box in cut}
        for f, home in enumerate(self.homes):
            for k, box in enumerate(home.tolist()):
                if box in inside:
                    inside[box].append((f, k))
        strips_of_boxes = []
        for box, own in inside.items():
            low, high = boxes[box, 1]
            ends = np.array([low, high, *(spans[f][e][k] for f, k in own for e in (0, 1))])
            levels = np.unique(np.clip(ends, low, high))
            levels = levels[np.concatenate([[True], np.diff(levels) > slack])]
            for bottom, top in itertools.pairwise(levels.tolist()):
                covering = tuple(
                    (f, k) for f, k in own if spans[f][0][k] <= bottom + slack and spans[f][1][k] >= top - slack
                    and spans[f][1][k] - spans[f][0][k] > slack
                )  # fmt: skip
                strips_of_boxes.append(_Strip(box, bottom, top, covering))
        return strips_of_boxes

    def _heights(
        self, strips: list[_Strip], extents: dict[int, Array], count: int, across: int
    ) -> list[tuple[Array, Array]]:
        """Heights and their weights in strips of parts that reach over ``extents`` (left, bottom, right, top).

        Those of Gauss nodes in the parameter of the piece that turns most; what pieces say is asked for at once.
        """
        turning_most = [
            max(((self.turns[f][k], f, k) for f, k in strip.covering if self.turns[f][k] > STRAIGHT), default=None)
            for strip in strips
        ]
        shares: dict[int, Array] = {}
        wide = np.zeros(len(strips))
        for family, arcs in enumerate(self.parts):
            mine = [n for n, best in enumerate(turning_most) if best is not None and best[1] == family]
            if not mine:
                continue
            which = np.array([best[2] for best in (turning_most[n] for n in mine) if best is not None])
            both = np.array([(strips[n].bottom, strips[n].top) for n in mine])
            pairs_of_shares = arc_shares(arcs, np.repeat(which, 2), 1, both.ravel()).reshape(-1, 2)
            ends = [arcs.place(which, np.full(len(which), end))[:, 0] for end in (0.0, 1.0)]
            wide[mine] = np.abs(ends[1] - ends[0])
            shares |= dict(zip(mine, pairs_of_shares, strict=True))
        heights: list[tuple[Array, Array]] = []
        asked: dict[int, list[tuple[int, Array, Array]]] = {}
        for n, (strip, best) in enumerate(zip(strips, turning_most, strict=True)):
            extent, length = extents[strip.box], strip.top - strip.bottom
            share = length / (extent[3] - extent[1])
            if best is None:
                nodes, weights = _gauss(self._fewer(across, share))
                heights.append((strip.bottom + length * nodes, length * weights))
                continue
            share = max(share, float(wide[n]) / (extent[2] - extent[0]))
            wanted = self._fewer(across + ceil((count - across) * min(best[0] / (pi / 2), 1.0)), share)
            # a second piece may be nearly level where the first is not: more nodes, in two panels
            alone = sum(self.turns[f][k] > STRAIGHT for f, k in strip.covering) == 1
            nodes, weights = _gauss(wanted) if alone else endpoint_grading(wanted, 2)
            first, last = shares[n]
            heights.append((first + (last - first) * nodes, np.abs(last - first) * weights))
            asked.setdefault(best[1], []).append((n, np.full(len(nodes), best[2]), heights[-1][0]))
        for family, rows in asked.items():
            arcs = self.parts[family]
            number, share = (np.concatenate([row[k] for row in rows]) for k in (1, 2))
            high, speed = arcs.place(number, share)[:, 1], np.abs(arcs.slopes(number, share)[:, 1])
            cuts = np.cumsum([len(row[1]) for row in rows])[:-1]
            for (n, _, _), y, rate in zip(rows, np.split(high, cuts), np.split(speed, cuts), strict=True):
                heights[n] = np.clip(y, strips[n].bottom, strips[n].top), heights[n][1] * rate
        return heights

    def _fewer(self, count: int, share: float) -> int:
        """Nodes on a share of an interval, on all of which ``count`` are needed."""
        least = ceil(LEAST_NODES * self.digits / ALL_DIGITS)
        return min(count, least + ceil(NODE_GROWTH * count * sqrt(min(max(share, 0.0), 1.0))))

    def _intervals(self, boxes: Array, strips: list[_Strip], heights: list[Array]) -> list[tuple[int, Array, Array]]:
        """Strip, left end and width at each of its heights, of all intervals between pieces and sides of the box."""
        requests = [_Requests(arcs) for arcs in self.parts]
        asked = [
            [(f, requests[f].ask(k, y)) for f, k in strip.covering] for strip, y in zip(strips, heights, strict=True)
        ]
        answers = [one.answers() for one in requests]
        intervals = []
        for number, (strip, y) in enumerate(zip(strips, heights, strict=True)):
            left, right = boxes[strip.box, 0]
            crossings = [answers[f][position] for f, position in asked[number]]
            crossings.sort(key=lambda one: float(one.mean()))
            edges = [np.full(len(y), left), *(np.clip(one, left, right) for one in crossings), np.full(len(y), right)]
            for one, other in itertools.pairwise(edges):
                if (other - one).max() > self.slack:
                    intervals.append((number, one, np.maximum(other - one, 0.0)))
        return intervals


def _gauss(count: int) -> tuple[Array, Array]:
    return composite_gauss(np.array([0.0, 1.0]), count)


def _heights(arcs: Arcs) -> tuple[Array, Array]:
    """Least and largest second coordinate of monotone arcs, each (K,)."""
    every = np.arange(len(arcs))
    ends = np.stack([arcs.place(every, np.full(len(arcs), float(end)))[:, 1] for end in (0, 1)])
    return ends.min(axis=0), ends.max(axis=0)


def turning(arcs: Arcs) -> Array:
    """The angle (K,) between the normals at both ends of arcs."""
    every = np.arange(len(arcs))
    ends = [arcs.normals(every, np.full(len(arcs), float(end))) for end in (0, 1)]
    cross = ends[0][:, 0] * ends[1][:, 1] - ends[0][:, 1] * ends[1][:, 0]
    return np.abs(np.arctan2(cross, (ends[0] * ends[1]).sum(axis=1)))
