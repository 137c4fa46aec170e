"""Sides that are cut out of curves and surfaces: their measure, points, normals, and what a box holds of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array, Rng
from rannpde.domains.boundary.arcs import Arcs, split, spread, within_box
from rannpde.domains.boundary.charts import Chart
from rannpde.domains.boundary.sides import Side, checked_bounds
from rannpde.domains.coordinates import Pair
from rannpde.domains.region import Linear, composite_gauss, tensor_rule
from rannpde.domains.roots import bisected
from rannpde.domains.streams import PointStream, unit_stream
from rannpde.errors import finite_points, positive_integer

if TYPE_CHECKING:
    from rannpde.domains.shapes.base import Domain

BOUNDARY_SLACK = 1e-11
"""Distance, relative to the size of the domain, up to which a point counts as on its boundary."""
ENDS = 1e-9
"""Slack of parameters at the ends of arcs."""
PointCondition = Callable[[Array], Array]


class Border(ABC):
    """A part of the boundary of a set in the plane or in space, as pieces of charts."""

    columns: int
    """Coordinates of the unit cube behind one point."""

    @property
    @abstractmethod
    def measure(self) -> float:
        """Length or area."""

    @property
    @abstractmethod
    def charts(self) -> list[tuple[Chart, float]]:
        """The charts, with +1 where the set lies on the inner side of their shape, -1 where on the outer."""

    @abstractmethod
    def draw(self, count: int, stream: PointStream, carried: int) -> Array:
        """Uniform points (count, carried + n), as ``Region.draw``; none where it has no measure."""

    @abstractmethod
    def rule(self, count: int, panels: int) -> tuple[Array, Array]:
        """Points (M, n) and weights (M,)."""

    @abstractmethod
    def within(self, bounds: Array) -> Border:
        """The part of it that lies in a box."""

    @abstractmethod
    def where(self, condition: PointCondition) -> Border:
        """The part of it where a condition on points holds."""

    def offset(self, points: Array) -> Array:
        """How far points (M, n) are from its charts, (M,)."""
        return np.min([chart.offset(points) for chart, _ in self.charts], axis=0)

    def holds(self, points: Array, slack: float) -> Array:
        """Which points (M, n) of the closed set lie on its charts."""
        return self.offset(points) <= slack

    def outward(self, points: Array) -> Array:
        """Outward unit normals (M, n) at points on it, by the nearest chart."""
        charts = self.charts
        nearest = np.argmin([chart.offset(points) for chart, _ in charts], axis=0) if len(charts) > 1 else None
        if nearest is None:
            chart, sign = charts[0]
            return sign * chart.outward(points)
        normals = np.empty(points.shape)
        for number, (chart, sign) in enumerate(charts):
            mine = nearest == number
            if mine.any():
                normals[mine] = sign * chart.outward(points[mine])
        return normals


@dataclass(frozen=True, eq=False)
class Curves(Border):
    """Arcs in the plane."""

    families: tuple[Arcs, ...]
    columns: int = 1

    @cached_property
    def measure(self) -> float:
        return float(sum(arcs.lengths.sum() for arcs in self.families))

    @property
    def charts(self) -> list[tuple[Chart, float]]:
        return [(arcs.chart, float(arcs.sign[0])) for arcs in self.families]

    def draw(self, count: int, stream: PointStream, carried: int) -> Array:
        if not self.measure > 0:
            return np.empty((0, carried + 2))
        unit = stream(count)
        return np.concatenate([unit[:, :carried], spread(self.families, unit[:, carried])[0]], axis=1)

    def rule(self, count: int, panels: int) -> tuple[Array, Array]:
        nodes, weights = composite_gauss(np.linspace(0.0, 1.0, panels + 1), count)
        points, shares = [np.empty((0, 2))], [np.empty(0)]
        for arcs in self.families:
            number, share = np.repeat(np.arange(len(arcs)), len(nodes)), np.tile(nodes, len(arcs))
            points.append(arcs.place(number, share))
            shares.append(np.linalg.norm(arcs.slopes(number, share), axis=1) * np.tile(weights, len(arcs)))
        return np.concatenate(points), np.concatenate(shares)

    def holds(self, points: Array, slack: float) -> Array:
        """Points near the curves, where these were not cut away: parts of a face that another shape took with it."""
        on_curve = np.zeros(len(points), dtype=bool)
        for arcs in self.families:
            near = np.flatnonzero(arcs.chart.offset(points) <= slack)
            piece, unit = arcs.chart.locate(points[near])
            own = (
                (piece[:, None] == arcs.piece)
                & (unit[:, None] >= arcs.lower - ENDS)
                & (unit[:, None] <= arcs.upper + ENDS)
            )
            on_curve[near] |= own.any(axis=1)
        return on_curve

    def within(self, bounds: Array) -> Curves:
        inside = (within_box(arcs, bounds) for arcs in self.families)
        return Curves(tuple(arcs for arcs in inside if len(arcs)))

    def where(self, condition: PointCondition) -> Curves:
        parts = (_holding(arcs, condition) for arcs in self.families)
        return Curves(tuple(arcs for arcs in parts if len(arcs)))


def _holding(arcs: Arcs, condition: PointCondition, samples: int = 129) -> Arcs:
    """The parts of arcs where a condition holds: its changes between many points are located by bisection."""
    share = (np.arange(samples) + 0.5) / samples  # not the ends: a corner belongs to two sides
    number = np.repeat(np.arange(len(arcs)), samples)
    holds = condition(arcs.place(number, np.tile(share, len(arcs)))).reshape(len(arcs), samples)
    row, column = np.nonzero(holds[:, 1:] != holds[:, :-1])
    first = holds[row, column]
    a, b = bisected(lambda at: condition(arcs.place(row, at)) == first, share[column], share[column + 1])
    parts = split(arcs, row, arcs.lower[row] + 0.5 * (a + b) * (arcs.upper - arcs.lower)[row])
    middle = parts.place(np.arange(len(parts)), np.full(len(parts), 0.5))
    return parts.take(condition(middle))


@dataclass(frozen=True)
class CutSide(Side):
    """A side made of pieces of curves or surfaces, over the time interval if the domain is a space-time.

    >>> from rannpde.domains import Ball, Box
    >>> hole = (Box(x=(0, 2), y=(0, 2)) - Ball((1, 1), 0.5, name="hole")).side("hole")
    >>> round(hole.measure, 12), (hole.normals([[1.5, 1.0]]) + 0.0).tolist()
    (3.14159265359, [[-1.0, 0.0]])
    """

    name: str
    domain: Domain = field(repr=False)
    border: Border = field(repr=False, compare=False)
    time: tuple[Pair, ...] = ()
    condition: PointCondition | None = field(default=None, repr=False)

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return self.border.columns == self.dim - 1 - len(self.time)

    @property
    def extent(self) -> int:
        return self.dim - 1

    @property
    def columns(self) -> int:
        return len(self.time) + self.border.columns

    @property
    def measure(self) -> float:
        return float(prod(upper - lower for lower, upper in self.time)) * self.border.measure

    def draw(self, count: int, stream: PointStream, carried: int = 0) -> Array:
        points = self.border.draw(count, stream, carried + len(self.time))
        for number, interval in enumerate(self.time):
            points[:, carried + number] = Linear(*interval).quantile(points[:, carried + number])
        return points

    def rule(self, count: int, panels: int) -> tuple[Array, Array]:
        points, weights = self.border.rule(count, panels)
        if not self.time:
            return points, weights
        times, shares = Linear(*self.time[0]).gauss(count, panels)
        duration = self.time[0][1] - self.time[0][0]
        chosen, products = tensor_rule([(times, shares), (np.arange(len(points)), weights)], duration)
        return np.column_stack([chosen[:, 0], points[chosen[:, 1].astype(int)]]), products

    def _in_space(self, points: Array) -> Array:
        return finite_points("points", points, self.dim)[:, len(self.time) :]

    def contains(self, points: Array) -> Array:
        points = finite_points("points", points, self.dim)
        contained = self.holds(points)
        near = np.flatnonzero(contained)
        if len(near):  # the level of a domain asks all of its shapes: only where it matters
            whole, domain = self.domain, self.domain.space if self.time else self.domain  # type: ignore[attr-defined]
            level = domain.level(self._in_space(points[near]))
            contained[near] = whole.contains(points[near]) & (np.abs(level) <= 4 * self._slack)
        return contained

    def holds(self, points: Array) -> Array:
        """Which points of the boundary of the domain belong to this part of it."""
        space = self._in_space(points)
        contained: Array = self.border.holds(space, self._slack)
        near = np.flatnonzero(contained)
        if len(near) and self.condition is not None:
            contained[near] = self.condition(space[near])
        return contained

    @property
    def _slack(self) -> float:
        return BOUNDARY_SLACK * float(np.abs(self.domain.bounds[len(self.time) :]).max())

    def normals(self, points: Array) -> Array:
        normals = self.border.outward(self._in_space(points))
        return np.pad(normals, ((0, 0), (len(self.time), 0)))

    def within(self, bounds: Any, count: int, rng: Rng = None) -> Array:
        box, first = checked_bounds(bounds, self.dim), len(self.time)
        met = [(max(lower, a), min(upper, b)) for (lower, upper), (a, b) in zip(self.time, box, strict=False)]
        border = self.border.within(box[first:])
        count = positive_integer("count", count)
        if any(lower >= upper for lower, upper in met):
            return np.empty((0, self.dim))
        if self.columns == 1:  # one point in each of ``count`` equal sub-arcs
            generator = np.random.default_rng(rng)
            stream: PointStream = lambda n: ((np.arange(n) + generator.random(n)) / n)[:, None]  # noqa: E731
        else:
            stream = unit_stream(self.columns, rng, "sobol")
        points = border.draw(count, stream, first)
        for number, interval in enumerate(met):
            points[:, number] = Linear(*interval).quantile(points[:, number])
        return points
