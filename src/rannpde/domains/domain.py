"""Domains with named coordinates: intervals, boxes, balls, and products of any domain with time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.creases import Creases
from rannpde.domains.boundary.sides import FlatSide, RoundSide, Side, find_side, side_name
from rannpde.domains.coordinates import Pair, checked_names, pair
from rannpde.domains.region import Linear, Region, tensor_rule
from rannpde.domains.shapes.base import SPACE_ONLY, Domain, box_level
from rannpde.domains.shapes.boxes import Ball, Box, Interval, listing
from rannpde.domains.shapes.euclidean import Euclidean
from rannpde.domains.streams import PointStream
from rannpde.errors import finite_points, reject, require

if TYPE_CHECKING:
    from rannpde.domains.boundary.planar import Corner
    from rannpde.domains.boundary.solids import Tree

__all__ = ["Ball", "Box", "Domain", "Interval", "SpaceTime"]


@dataclass(frozen=True, init=False, repr=False)
class SpaceTime(Domain):
    """The product of a time interval and a domain in space; points are rows (t, x_1, …, x_d).

    Space is given by coordinates as for a Box, or as one domain, which keeps its own names.

    >>> SpaceTime(t=(0.1, 1.1), x=[(0, 1)] * 5).names
    ('t', 'x1', 'x2', 'x3', 'x4', 'x5')
    >>> SpaceTime(t=(0, 1), x=(-1, 1)).initial.name
    't=0'
    >>> round(SpaceTime(t=(0, 2), x=Ball((0, 0, 0), 1)).side("boundary").measure, 10)
    25.1327412287
    >>> SpaceTime(Ball((0, 0), 1), t=(0, 2)).names
    ('t', 'x', 'y')
    """

    names: tuple[str, ...]
    time: Pair
    space: Domain
    timed: ClassVar[bool] = True

    def __init__(self, *parts: Any, **named: Any) -> None:
        """parts : the time or the shape of space, in any order, where they are not named."""
        for part in parts:
            name = "x" if isinstance(part, Region) else "t"
            remedy = "e.g. SpaceTime(t=(0, 1), x=(-1, 1)) or SpaceTime(shape, t=(0, 1))"
            require(name not in named, name, part, "given once", remedy)
            named[name] = part
        require("t" in named, "t", "left out", "the first and the last time", "e.g. SpaceTime(t=(0, 1), x=(-1, 1))")
        object.__setattr__(self, "time", pair("t", named.pop("t")))
        object.__setattr__(self, "space", _space(named))
        object.__setattr__(self, "names", checked_names(("t", *self.space.names)))

    def __repr__(self) -> str:
        space = listing(self.space) if isinstance(self.space, Box) else f"x={self.space!r}"
        return f"SpaceTime(t={self.time}, {space})"

    @property
    def bounds(self) -> Array:
        return np.concatenate([[self.time], self.space.bounds])

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return self.space.exact

    @property
    def has_rule(self) -> bool:  # type: ignore[override]
        return self.space.has_rule

    @property
    def extent(self) -> int:
        return 1 + self.space.extent

    @property
    def columns(self) -> int:
        return 1 + self.space.columns

    @property
    def measure(self) -> float:
        return (self.time[1] - self.time[0]) * self.space.measure

    def draw(self, count: int, stream: PointStream, carried: int = 0) -> Array:
        points = self.space.draw(count, stream, carried + 1)
        points[:, carried] = Linear(*self.time).quantile(points[:, carried])
        return points

    def rule(self, count: int, panels: int) -> tuple[Array, Array]:
        times, shares = Linear(*self.time).gauss(count, panels)
        points, weights = self.space.rule(count, panels)
        chosen, unit = tensor_rule([(times, shares), (np.arange(len(points)), weights)], self.time[1] - self.time[0])
        return np.column_stack([chosen[:, 0], points[chosen[:, 1].astype(int)]]), unit

    def contains(self, points: Array) -> Array:
        points = finite_points("points", points, self.dim)
        now = (points[:, 0] >= self.time[0]) & (points[:, 0] <= self.time[1])
        return now & self.space.contains(points[:, 1:])

    def level(self, points: Array) -> Array:
        points = finite_points("points", points, self.dim)
        return np.maximum(box_level(points[:, :1], np.array([self.time])), self.space.level(points[:, 1:]))

    @property
    def tree(self) -> Tree:
        reject(*SPACE_ONLY)

    @property
    def corners(self) -> tuple[Corner, ...]:
        return self.space.corners

    @property
    def creases(self) -> Creases:
        return self.space.creases

    def with_names(self, names: Sequence[str]) -> SpaceTime:
        return SpaceTime(self.time, x=self.space.with_names(names[1:]))

    @cached_property
    def sides(self) -> dict[str, Side]:
        return {name: self._over_time(side) for name, side in self.space.sides.items()}

    def _over_time(self, side: Side) -> Side:
        if isinstance(side, FlatSide):
            assert isinstance(side.face, Box)  # only boxes have flat sides; those of other shapes are ``CutSide``
            rest = dict(zip(side.face.names, side.face.intervals, strict=True))
            return FlatSide(side.name, self, side.axis + 1, side.value, side.outward, Box(t=self.time, **rest))
        if isinstance(side, RoundSide):
            return RoundSide(side.name, self, side.ball, (Linear(*self.time),))
        return replace(side, domain=self, time=(self.time,))  # type: ignore[type-var]

    @property
    def initial(self) -> FlatSide:
        """The slice at the first time."""
        return self._slice(0)

    @property
    def final(self) -> FlatSide:
        """The slice at the last time."""
        return self._slice(1)

    def _slice(self, end: int) -> FlatSide:
        name = side_name("t", self.time[end], self.time[1 - end])
        return FlatSide(name, self, 0, self.time[end], 2 * end - 1, self.space)

    def side(self, name: str) -> Side:
        """The side in space, or the initial or final slice, of that name."""
        return find_side(name, self.sides | {side.name: side for side in (self.initial, self.final)})

    def restrict(self, *, t: Any = None, **intervals: Any) -> SpaceTime:
        """A copy with smaller intervals of time or of coordinates of a box in space (as ``Box.restrict``)."""
        time = Box(t=self.time).restrict(**({} if t is None else {"t": t}))
        if not isinstance(self.space, Box):
            remedy = f"build a smaller {type(self.space).__name__}"
            require(not intervals, "coordinates", sorted(intervals), "t, as space is no box", remedy)
            return SpaceTime(time.intervals[0], x=self.space)
        return SpaceTime(time.intervals[0], x=self.space.restrict(**intervals))


# ------------------------------------------------------------------------------------------ reading arguments


def _space(coordinates: Mapping[str, Any]) -> Domain:
    whole = [value for value in coordinates.values() if isinstance(value, Region)]
    if not whole:
        require(bool(coordinates), "space", "left out", "given", "e.g. SpaceTime(t=(0, 1), x=(-1, 1))")
        space: Region = Box(**coordinates)
    else:
        require(
            len(coordinates) == 1, "space", sorted(coordinates), "one Box or Ball or other shape, or intervals alone"
        )
        space = whole[0]
        if isinstance(space, Euclidean):
            space = space.called(next(iter(coordinates)))
    if not isinstance(space, Domain) or isinstance(space, SpaceTime):
        reject("space", type(space).__name__, "a Box, a Ball, another shape or intervals")
    require(space.dim >= 1, "space", space, "of one dimension or more")
    return space


def is_box(domain: Domain) -> bool:
    """Whether the domain fills its bounding box."""
    return isinstance(domain, Box) or (isinstance(domain, SpaceTime) and isinstance(domain.space, Box))
