"""The boundary of a set in the plane, cut exactly out of the boundaries of the shapes that it is made of.

Every curve of every shape is split where it crosses another shape, by roots along its parameter; what is left between
two cuts belongs to the boundary when one side of it is inside and the other is not. Curves stay what they are: circles,
ellipses, formulas.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import atan2, pi

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.arcs import Arcs, crossings, split
from rannpde.domains.boundary.charts import Chart
from rannpde.domains.boundary.solids import Clipped, tree_level
from rannpde.domains.region import composite_gauss
from rannpde.domains.roots import bisected
from rannpde.errors import InputError

PROBE = 1e-7
"""Distance from a curve, relative to the size of the set, at which both sides are tested: gaps must be wider."""
JOINED = 1e-9
"""Distance, relative to the size, up to which two ends of arcs are one corner: roots are known to about 1e-15."""
SMOOTH_JOIN_ANGLE = 1e-6
"""Angle, in radians, up to which two arcs continue each other."""


@dataclass(frozen=True)
class Corner:
    """A re-entrant corner of a domain in the plane.

    point : where
    angle : the opening inside the domain, > π
    direction : unit vector along the first side; the domain lies counter-clockwise from it, by ``angle``
    sides : names of the first and of the second side
    """

    point: tuple[float, float]
    angle: float
    direction: tuple[float, float]
    sides: tuple[str, str]


@dataclass(frozen=True, eq=False)
class LabelledArcs:
    """The arcs of one label of one solid (its number in the tree) that bound the set."""

    leaf: int
    label: str
    arcs: Arcs


@dataclass(frozen=True, eq=False)
class Vertex:
    """A point where one arc ends and the next begins; directions of both, the domain on their left."""

    point: Array
    arriving: Array
    leaving: Array
    labels: tuple[tuple[int, str], tuple[int, str]]
    """(leaf, label) of the leaving and of the arriving arc."""

    @property
    def angle(self) -> float:
        """The opening inside the domain, in (0, 2π)."""
        (ax, ay), (bx, by) = self.arriving, self.leaving
        return pi - atan2(ax * by - ay * bx, ax * bx + ay * by)


@dataclass(frozen=True, eq=False)
class Planar(Clipped):
    """The boundary of a tree of solids in the plane, looked for within clip (2, 2)."""

    @cached_property
    def _charts(self) -> list[tuple[Chart, ...]]:
        return [leaf.solid.charts(self.clip) for leaf in self.leaves]

    @cached_property
    def _cut(self) -> tuple[list[LabelledArcs], Array]:
        """The arcs that bound the set, and the points where two curves touch."""
        ends = [np.concatenate([np.empty((0, 2)), *map(_ends, charts)]) for charts in self._charts]
        bounding, touching = [], [np.empty((0, 2))]
        for number, charts in enumerate(self._charts):
            for chart in charts:
                arcs, points = self._trimmed(number, chart, ends)
                touching.append(points)
                if len(arcs):
                    bounding.append(LabelledArcs(number, chart.label, arcs))
        return bounding, np.concatenate(touching)

    @property
    def labelled_arcs(self) -> list[LabelledArcs]:
        """All arcs of the boundary."""
        return self._cut[0]

    def _trimmed(self, number: int, chart: Chart, ends: list[Array]) -> tuple[Arcs, Array]:
        pieces, one = np.arange(chart.count), np.ones(chart.count)
        whole = Arcs(chart, pieces, 0 * one, one, one)
        where, unit, touching = [np.empty(0, dtype=int)], [np.empty(0)], [np.empty((0, 2))]
        span = _span(chart, self.size)
        for other, leaf in enumerate(self.leaves):
            solid = leaf.solid
            if other == number or not _meet(span, solid.bounds):
                continue
            cut = crossings(chart, pieces, 0 * one, one, solid.level, solid.rate, self.size)
            near = ends[other][chart.offset(ends[other]) <= JOINED * self.size] if len(ends[other]) else ends[other]
            located = chart.locate(near) if len(near) else (np.empty(0, dtype=int), np.empty(0))
            where += [cut[0], located[0]]
            unit += [cut[1], located[1]]
            touching.append(cut[2])
        parts = split(whole, np.concatenate(where), np.concatenate(unit))
        number_of = np.arange(len(parts))
        share = np.full(len(parts), 0.4637)
        points, normals = parts.place(number_of, share), parts.normals(number_of, share)
        step = PROBE * self.size * normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
        below, above = (tree_level(self.tree, points + sign * step) < 0 for sign in (-1, 1))
        bounding = below != above
        for earlier in self.leaves[:number]:  # where two boundaries coincide, the first shape has it
            if not _meet(span, earlier.solid.bounds):
                continue
            bounding &= np.abs(earlier.solid.level(points)) > JOINED * self.size
        signed = Arcs(chart, parts.piece, parts.lower, parts.upper, np.where(below, 1.0, -1.0)).take(bounding)
        return _joined(signed), np.concatenate(touching)

    # ------------------------------------------------------------------------------------------ what it encloses

    def _sums(self, panels: int) -> tuple[float, float]:
        """½ ∮ (x dy - y dx), and ½ ∮ |x dy - y dx|, around the middle of the clip."""
        nodes, weights = composite_gauss(np.linspace(0.0, 1.0, panels + 1), 16)
        area, scale = 0.0, 0.0
        for labelled in self.labelled_arcs:
            arcs = labelled.arcs
            number, share = np.repeat(np.arange(len(arcs)), len(nodes)), np.tile(nodes, len(arcs))
            points, slopes = arcs.place(number, share) - self.clip.mean(axis=1), arcs.slopes(number, share)
            cross = points[:, 0] * slopes[:, 1] - points[:, 1] * slopes[:, 0]
            terms = 0.5 * np.tile(weights, len(arcs)) * arcs.sign[number] * cross
            area, scale = area + float(terms.sum()), scale + float(np.abs(terms).sum())
        return area, scale

    @cached_property
    def area(self) -> float:
        """The area, by Green's theorem with Gauss rules along the arcs, which are doubled until they agree."""
        before, panels = self._sums(1)[0], 2
        while True:
            value, scale = self._sums(panels)
            if abs(value - before) <= 1e-14 * scale or panels >= 32:
                return value
            before, panels = value, 2 * panels

    @cached_property
    def bounds(self) -> Array:
        """The least box (2, 2) around the boundary."""
        points = [piece.place(k, s) for piece in self.monotone(0) + self.monotone(1) for k, s in _both_ends(piece)]
        every = np.concatenate(points)
        return np.stack([every.min(axis=0), every.max(axis=0)], axis=1)

    def monotone(self, axis: int) -> list[Arcs]:
        """The boundary in arcs along which that coordinate only rises or only falls."""
        return [_monotone(labelled.arcs, axis) for labelled in self.labelled_arcs]

    def monotone_in_both(self) -> list[Arcs]:
        """The boundary in arcs along which each coordinate only rises or only falls."""
        return [_monotone(_monotone(labelled.arcs, 0), 1) for labelled in self.labelled_arcs]

    # -------------------------------------------------------------------------------------------------- corners

    @cached_property
    def vertices(self) -> list[Vertex]:
        """Every point where arcs meet; an InputError where the set touches itself or its boundary does not close."""
        points, directions, labels, leaving = self._ends_of_arcs()
        unmatched, vertices = np.ones(len(points), dtype=bool), []
        for k in range(len(points)):
            if not unmatched[k]:
                continue
            here = np.flatnonzero(np.linalg.norm(points - points[k], axis=1) <= JOINED * 10 * self.size)
            unmatched[here] = False
            outs, ins = here[leaving[here]], here[~leaving[here]]
            if len(outs) > 1 or len(ins) > 1:
                raise InputError(touching_message(points[k]))
            if len(outs) != 1 or len(ins) != 1:
                raise InputError(
                    f"the boundary does not close at {_shown(points[k])}; two curves come closer there than "
                    f"{PROBE * self.size:.1g}: move them apart, or let them overlap"
                )
            out, into = int(outs[0]), int(ins[0])
            vertices.append(Vertex(points[k], directions[into], directions[out], (labels[out], labels[into])))
        return vertices

    def refuse_touching(self) -> None:
        """An InputError where curves touch in a point of the boundary, or ends of arcs do not meet in pairs."""
        # curves that meet or part in a corner touch there too; where two charts of one smooth curve meet is no corner
        corners = [
            v.point for v in self.vertices if v.labels[0] != v.labels[1] or abs(v.angle - pi) > SMOOTH_JOIN_ANGLE
        ]
        for point in self._cut[1]:
            on = abs(float(tree_level(self.tree, point[None, :])[0])) <= 1e-8 * self.size
            if on and not any(np.linalg.norm(corner - point) <= 1e-5 * self.size for corner in corners):
                raise InputError(touching_message(point))

    def _ends_of_arcs(self) -> tuple[Array, Array, list[tuple[int, str]], Array]:
        """Ends of all arcs: points (E, 2), unit directions, the set on their left, labels, whether one leaves."""
        points, directions, labels, leaving = [np.empty((0, 2))], [np.empty((0, 2))], [], [np.empty(0, dtype=bool)]
        for labelled in self.labelled_arcs:
            arcs = labelled.arcs
            for end, (number, share) in enumerate(_both_ends(arcs)):
                slope = arcs.slopes(number, share) * arcs.sign[:, None]
                points.append(arcs.place(number, share))
                directions.append(slope / np.linalg.norm(slope, axis=1, keepdims=True))
                leaving.append((arcs.sign > 0) == (end == 0))
                labels += [(labelled.leaf, labelled.label)] * len(arcs)
        return np.concatenate(points), np.concatenate(directions), labels, np.concatenate(leaving)


def touching_message(point: Array) -> str:
    """The error message for shapes that touch at a point."""
    return f"the shapes touch in a point, {_shown(point)}; move them apart, or let them overlap"


def _shown(point: Array) -> str:
    return "(" + ", ".join(f"{value:.6g}" for value in point) + ")"


def _both_ends(arcs: Arcs) -> list[tuple[Array, Array]]:
    number = np.arange(len(arcs))
    return [(number, np.zeros(len(arcs))), (number, np.ones(len(arcs)))]


def _ends(chart: Chart) -> Array:
    """First and last points of all pieces."""
    pieces = np.arange(chart.count)
    return np.concatenate([chart.place(pieces, np.full((chart.count, 1), float(end))) for end in (0, 1)])


def _span(chart: Chart, size: float, samples: int = 17) -> Array:
    """Bounds (2, 2) around a chart, by points on it and a margin wider than the curve bends between them."""
    piece = np.repeat(np.arange(chart.count), samples)
    points = chart.place(piece, np.tile(np.linspace(0.0, 1.0, samples), chart.count)[:, None])
    margin = 0.1 * float((points.max(axis=0) - points.min(axis=0)).max()) + 1e-6 * size
    return np.stack([points.min(axis=0) - margin, points.max(axis=0) + margin], axis=1)


def _meet(one: Array, other: Array) -> bool:
    return bool(((one[:, 0] <= other[:, 1]) & (other[:, 0] <= one[:, 1])).all())


def _joined(arcs: Arcs) -> Arcs:
    """Neighbours on the same piece as one arc: cuts by shapes that do not matter there leave no trace."""
    if len(arcs) < 2:
        return arcs
    same = (arcs.piece[1:] == arcs.piece[:-1]) & (arcs.lower[1:] <= arcs.upper[:-1] + 1e-11)
    same &= arcs.sign[1:] == arcs.sign[:-1]
    first = np.concatenate([[True], ~same])
    last = np.concatenate([~same, [True]])
    return Arcs(arcs.chart, arcs.piece[first], arcs.lower[first], arcs.upper[last], arcs.sign[first])


def _monotone(arcs: Arcs, axis: int, samples: int = 33) -> Arcs:
    """Arcs split where the coordinate's slope changes its sign."""
    if not len(arcs):
        return arcs
    share = np.linspace(0.0, 1.0, samples)
    number = np.repeat(np.arange(len(arcs)), samples)
    slope = arcs.slopes(number, np.tile(share, len(arcs)))[:, axis].reshape(len(arcs), samples)
    sizes = np.abs(slope).max(axis=1, keepdims=True)
    sign = np.where(np.abs(slope) <= 1e-13 * sizes, 0.0, np.sign(slope))
    row, column = np.nonzero(sign[:, 1:] * sign[:, :-1] < 0)
    rising = slope[row, column] > 0
    a, b = bisected(lambda at: (arcs.slopes(row, at)[:, axis] > 0) == rising, share[column], share[column + 1])
    level_row, level_column = np.nonzero(sign[:, 1:-1] == 0)
    rows = np.concatenate([row, level_row])
    shares = np.concatenate([0.5 * (a + b), share[1:-1][level_column]])
    flat = sizes[rows, 0] <= 1e-13 * np.maximum(np.abs(arcs.place(rows, shares)).max(axis=1, initial=0.0), 1e-300)
    rows, shares = rows[~flat], shares[~flat]
    return split(arcs, rows, arcs.lower[rows] + shares * (arcs.upper - arcs.lower)[rows])
