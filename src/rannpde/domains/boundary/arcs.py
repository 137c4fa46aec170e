"""Arcs: sub-arcs of curves in the plane, their lengths, points evenly spread along them, and what a box cuts out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rannpde.arrays import Array, ArrayMap
from rannpde.domains.boundary.charts import Chart, density, normals_of
from rannpde.domains.region import composite_gauss

ZERO = 1e-11
"""Level, relative to the size of the domain, below which a point counts as on a boundary."""
STARTS = 16
"""Sub-arcs of every piece that are looked at first."""
CROSSING_CHECKS = 4
"""Halvings of a sub-arc with a change of sign before it is taken to hold one crossing."""
CROSSING_HALVINGS = 30
"""Halvings at most of a sub-arc that may hold two crossings close together."""
CLOSEST = 1e-7
"""Sub-arcs shorter than this multiple of the size are not halved any more: two boundaries that close touch."""
LONG = 1e-4
"""Sub-arcs must be longer than this multiple of the size to be called coincident: tangents look so on shorter ones."""
ARC_PANELS = 8
"""Panels of an arc, of GAUSS nodes each, behind its table of lengths."""
GAUSS = 12


@dataclass(frozen=True, eq=False)
class Arcs:
    """Sub-arcs lower ≤ s ≤ upper of pieces of one chart, each (K,); sign is +1 where the domain is inside, else -1."""

    chart: Chart
    piece: Array
    lower: Array
    upper: Array
    sign: Array

    def __len__(self) -> int:
        return len(self.piece)

    def place(self, number: Array, share: Array) -> Array:
        """Points (M, 2) of arcs (M,) at shares (M,) of their parameter."""
        return self.chart.place(self.piece[number], self._unit(number, share))

    def slopes(self, number: Array, share: Array) -> Array:
        """The derivatives (M, 2) of points of arcs by the share of the arc."""
        tangents = self.chart.tangents(self.piece[number], self._unit(number, share))[:, :, 0]
        return tangents * (self.upper - self.lower)[number, None]

    def normals(self, number: Array, share: Array) -> Array:
        """Outward normals (M, 2) of the domain, not scaled."""
        tangents = self.chart.tangents(self.piece[number], self._unit(number, share))
        return normals_of(tangents) * self.sign[number, None]

    def _unit(self, number: Array, share: Array) -> Array:
        # exact at both ends, where arcs meet
        return ((1 - share) * self.lower[number] + share * self.upper[number])[:, None]

    def take(self, chosen: Array) -> Arcs:
        """The arcs that are chosen."""
        return Arcs(self.chart, self.piece[chosen], self.lower[chosen], self.upper[chosen], self.sign[chosen])

    @cached_property
    def table(self) -> Array:
        """Length (K, ARC_PANELS + 1) from the start of each arc to the ends of its panels."""
        ends = np.linspace(0.0, 1.0, ARC_PANELS + 1)
        nodes, weights = composite_gauss(ends, GAUSS)
        number = np.repeat(np.arange(len(self)), len(nodes))
        share = np.tile(nodes, len(self))
        speed = density(self.chart, self.piece[number], self._unit(number, share)).reshape(len(self), ARC_PANELS, GAUSS)
        cells = (speed * weights.reshape(ARC_PANELS, GAUSS)).sum(axis=2) * (self.upper - self.lower)[:, None]
        return np.concatenate([np.zeros((len(self), 1)), np.cumsum(cells, axis=1)], axis=1)

    @property
    def lengths(self) -> Array:
        """The lengths (K,) of the arcs."""
        return self.table[:, -1]

    def along(self, number: Array, distance: Array) -> Array:
        """Shares (M,) at distances (M,) from the start, measured along the arc: Newton's method in one panel."""
        table = self.table[number]
        cell = np.clip((table[:, 1:-1] <= distance[:, None]).sum(axis=1), 0, ARC_PANELS - 1)
        rows = np.arange(len(number))
        start, size = table[rows, cell], table[rows, cell + 1] - table[rows, cell]
        wanted = np.clip(distance - start, 0.0, size)
        nodes, weights = composite_gauss(np.array([0.0, 1.0]), GAUSS)
        share = np.divide(wanted, size, out=np.full(len(wanted), 0.5), where=size > 0)
        width = (self.upper - self.lower)[number] / ARC_PANELS
        for _ in range(6):
            inner = (cell[:, None] + share[:, None] * nodes) / ARC_PANELS
            repeated = np.repeat(number, GAUSS)
            speed = density(self.chart, self.piece[repeated], self._unit(repeated, inner.ravel())).reshape(-1, GAUSS)
            covered = (speed @ weights) * share * width
            here = density(self.chart, self.piece[number], self._unit(number, (cell + share) / ARC_PANELS)) * width
            step = np.divide(wanted - covered, here, out=np.zeros_like(share), where=here > 0)
            share = np.clip(share + step, 0.0, 1.0)
            if (np.abs(step) < 1e-14).all():
                break
        return (cell + share) / ARC_PANELS


def crossings(
    chart: Chart, piece: Array, lower: Array, upper: Array, level: ArrayMap, rate: float, size: float
) -> tuple[Array, Array, Array]:
    """Where a level changes its sign along sub-arcs of a chart: sub-arc (R,), parameter (R,), and touching points.

    A sub-arc whose ends are farther from the zero set than it is long holds none (levels are distances, up to
    ``rate``). Others are halved until that holds or one change of sign is left, which bisection finds to rounding.
    """
    parts = np.linspace(0.0, 1.0, STARTS + 1)
    home = np.repeat(np.arange(len(piece)), STARTS)
    a = (lower[:, None] + (upper - lower)[:, None] * parts[:-1]).ravel()
    b = (lower[:, None] + (upper - lower)[:, None] * parts[1:]).ravel()

    def seen(where: Array, unit: Array) -> tuple[Array, Array]:
        points = chart.place(piece[where], unit[:, None])
        return points, level(points)

    (xa, ga), (xb, gb) = seen(home, a), seen(home, b)
    brackets: list[tuple[Array, Array, Array]] = []
    ends = [(home[ga == 0], a[ga == 0])]
    touching = np.empty((0, 2))
    for halving in range(CROSSING_HALVINGS):
        chord = np.linalg.norm(xb - xa, axis=1)
        change = ga * gb < 0
        near = np.abs(ga) + np.abs(gb) <= 1.3 * rate * chord
        done = change & (halving >= CROSSING_CHECKS)
        brackets.append((home[done], a[done], b[done]))
        keep = (change | near) & ~done
        if halving > CROSSING_CHECKS:
            tiny = keep & ~change & (chord < CLOSEST * size)
            zero = tiny & (np.minimum(np.abs(ga), np.abs(gb)) <= 1e-9 * size)
            if zero.any():
                touching = xa[[int(np.argmin(np.where(zero, np.abs(ga), np.inf)))]]
            keep &= ~tiny
        if not keep.any():
            break
        home, a, b, xa, xb, ga, gb, chord = (v[keep] for v in (home, a, b, xa, xb, ga, gb, chord))
        middle = 0.5 * (a + b)
        xm, gm = seen(home, middle)
        ends.append((home[gm == 0], middle[gm == 0]))
        # the two boundaries coincide here, and corners say where that ends; short sub-arcs may only touch
        same = (np.maximum.reduce(np.abs([ga, gb, gm])) <= ZERO * size) & (chord > LONG * size)
        halves = [
            (np.concatenate([u[~same], v[~same]]))
            for u, v in ((home, home), (a, middle), (middle, b), (xa, xm), (xm, xb), (ga, gm), (gm, gb))
        ]
        home, a, b, xa, xb, ga, gb = halves
    roots = [_bisected(seen, *bracket) for bracket in brackets if len(bracket[0])]
    roots += [pair for pair in ends if len(pair[0])]
    if not roots:
        return np.empty(0, dtype=int), np.empty(0), touching
    return np.concatenate([f[0] for f in roots]), np.concatenate([f[1] for f in roots]), touching


def _bisected(
    seen: Callable[[Array, Array], tuple[Array, Array]], home: Array, a: Array, b: Array
) -> tuple[Array, Array]:
    """The one change of sign of each sub-arc, by Ridders' method: safe as bisection, fast on smooth levels."""
    ends, values = np.stack([a, b]), np.stack([seen(home, a)[1], seen(home, b)[1]])
    live = np.arange(len(a))
    for _ in range(60):
        (a, b), (fa, fb), owner = ends[:, live], values[:, live], home[live]
        middle = 0.5 * (a + b)
        fm = seen(owner, middle)[1]
        root = np.sqrt(np.maximum(fm**2 - fa * fb, 0.0))
        shift = np.divide((middle - a) * np.sign(fa - fb) * fm, root, out=np.zeros_like(a), where=root > 0)
        new = np.clip(middle + shift, a, b)
        fn = seen(owner, new)[1]
        for x, f in ((middle, fm), (new, fn)):
            inner = (x > a) & (x < b)
            left = inner & (np.sign(f) == np.sign(fa))
            right = inner & ~left
            a, fa = np.where(left, x, a), np.where(left, f, fa)
            b, fb = np.where(right, x, b), np.where(right, f, fb)
        exact = fn == 0
        a, b = np.where(exact, new, a), np.where(exact, new, b)
        ends[:, live], values[:, live] = (a, b), (fa, fb)
        live = live[b - a > 2.3e-16 * np.maximum(np.abs(a), np.abs(b))]
        if not len(live):
            break
    # the better end of what is left
    return home, np.where(np.abs(values[0]) < np.abs(values[1]), *ends)


def within_box(arcs: Arcs, bounds: Array) -> Arcs:
    """The parts of arcs that lie in the box with bounds (2, 2)."""
    if not len(arcs):
        return arcs
    size = float(np.linalg.norm(bounds[:, 1] - bounds[:, 0]))
    rounding = 4 * np.finfo(float).eps * float(np.abs(bounds).max())

    def level(points: Array) -> Array:
        outside: Array = np.maximum(bounds[:, 0] - points, points - bounds[:, 1]).max(axis=1)
        return np.where(np.abs(outside) <= rounding, 0.0, outside)  # an arc along a face lies in the box

    where, unit, _ = crossings(arcs.chart, arcs.piece, arcs.lower, arcs.upper, level, 1.0, size)
    parts = split(arcs, where, unit)
    number = np.arange(len(parts))
    inside = level(parts.place(number, np.full(len(parts), 0.4871))) <= 0
    return parts.take(inside)


def split(arcs: Arcs, where: Array, unit: Array) -> Arcs:
    """The arcs cut at parameters (R,) of arcs number (R,); cuts closer than rounding to another are left out."""
    number = np.concatenate([np.arange(len(arcs)), np.arange(len(arcs)), where])
    position = np.concatenate([arcs.lower, arcs.upper, np.clip(unit, arcs.lower[where], arcs.upper[where])])
    order = np.lexsort((position, number))
    number, position = number[order], position[order]
    real = (number[1:] == number[:-1]) & (position[1:] - position[:-1] > 1e-12)
    home = number[:-1][real]
    # an end of an arc must stay exactly where it is, though a cut may lie within rounding of it
    low, high = position[:-1][real], position[1:][real]
    low = np.where(low - arcs.lower[home] <= 1e-12, arcs.lower[home], low)
    high = np.where(arcs.upper[home] - high <= 1e-12, arcs.upper[home], high)
    return Arcs(arcs.chart, arcs.piece[home], low, high, arcs.sign[home])


def spread(families: Sequence[Arcs], position: Array) -> tuple[Array, Array]:
    """Points (M, 2) and outward normals (M, 2), not scaled, at shares (M,) of the total length of all arcs."""
    lengths = np.concatenate([arcs.lengths for arcs in families])
    ends = np.cumsum(lengths)
    distance = position * ends[-1]
    index = np.clip(np.searchsorted(ends, distance, side="right"), 0, len(ends) - 1)
    rest = distance - (ends - lengths)[index]
    points, normals = np.empty((len(position), 2)), np.empty((len(position), 2))
    first = 0
    for arcs in families:
        mine = (index >= first) & (index < first + len(arcs))
        if mine.any():
            number = index[mine] - first
            share = arcs.along(number, rest[mine])
            points[mine], normals[mine] = arcs.place(number, share), arcs.normals(number, share)
        first += len(arcs)
    return points, normals
