"""Domains with named coordinates: intervals, boxes, balls, and their products with time.

Coordinates are named by keywords. One interval is one coordinate; a list of intervals makes a numbered group:
``x=(0, 1)`` is the coordinate ``x``, ``x=[(0, 1)] * 3`` are ``x1``, ``x2``, ``x3``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import gamma, pi, prod
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.coordinates import Pair, checked_names, expand, named_intervals, pair
from rannpde.domains.region import ROUNDING, Axis, Linear, Radius, Region, sphere_axes, sphere_points
from rannpde.domains.sides import FlatSide, RoundSide, Side, find_side, side_name
from rannpde.errors import finite_array, finite_points, reject, require


class Domain(Region):
    """A bounded set with interior in R^n, with named coordinates and named sides."""

    names: tuple[str, ...]

    @property
    def dim(self) -> int:
        return len(self.names)

    @property
    def volume(self) -> float:
        """The n-dimensional measure."""
        return self.measure

    @property
    @abstractmethod
    def bounds(self) -> Array:
        """Lower and upper end of each coordinate, shape (n, 2)."""

    @property
    @abstractmethod
    def sides(self) -> dict[str, Side]:
        """The sides by name, e.g. ``x=0``, ``x=1``; of a space-time those in space, over the whole time interval."""

    @abstractmethod
    def side(self, name: str) -> Side:
        """The side of that name, spaces and the way of writing the number ignored: ``x = 1.0`` is ``x=1``."""


@dataclass(frozen=True, init=False, repr=False)
class Box(Domain):
    """A product of intervals.

    >>> Box(x=(0, 1), y=(-1, 1)).volume
    2.0
    >>> Box([(0, 1)] * 3).names
    ('x1', 'x2', 'x3')
    """

    names: tuple[str, ...]
    intervals: tuple[Pair, ...]

    def __init__(self, bounds: Any = None, /, **coordinates: Any) -> None:
        if bounds is not None:
            require(not coordinates, "coordinates", sorted(coordinates), "left out when bounds are given by position")
            coordinates = {"x": bounds}
        elif not coordinates:
            reject("box", "without coordinates", "given at least one", "e.g. Box(x=(0, 1))")
        named = named_intervals(coordinates)
        object.__setattr__(self, "names", tuple(named))
        object.__setattr__(self, "intervals", tuple(named.values()))

    def __repr__(self) -> str:
        return f"Box({_listing(self)})"

    @property
    def bounds(self) -> Array:
        return np.array(self.intervals, dtype=float).reshape(-1, 2)

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(Linear(*interval) for interval in self.intervals)

    @property
    def measure(self) -> float:
        return float(prod(upper - lower for lower, upper in self.intervals))

    def place(self, coordinates: Array) -> Array:
        return coordinates

    def contains(self, points: Array) -> Array:
        points = finite_points("points", points, self.dim)
        lower, upper = self.bounds.T
        inside: Array = ((points >= lower) & (points <= upper)).all(axis=1)
        return inside

    @cached_property
    def sides(self) -> dict[str, Side]:
        sides = [self._flat(axis, end) for axis in range(self.dim) for end in (0, 1)]
        return {side.name: side for side in sides}

    def side(self, name: str) -> Side:
        return find_side(name, self.sides)

    def _flat(self, axis: int, end: int) -> FlatSide:
        coordinate, interval = self.names[axis], self.intervals[axis]
        name = side_name(coordinate, interval[end], interval[1 - end])
        return FlatSide(name, self, axis, interval[end], 2 * end - 1, self.without(coordinate))

    def without(self, coordinate: str) -> Box:
        """The box of the other coordinates; a point, Box([]), when there is none."""
        rest = {name: ends for name, ends in zip(self.names, self.intervals, strict=True) if name != coordinate}
        return Box(**rest) if rest else Box([])

    def restrict(self, **intervals: Any) -> Box:
        """A copy with smaller intervals of some coordinates, or of a numbered group (a list, or one for all).

        >>> Box([(0, 1)] * 2).restrict(x=(0.2, 0.8), x2=(0.4, 0.6))
        Box(x1=(0.2, 0.8), x2=(0.4, 0.6))
        """
        old = dict(zip(self.names, self.intervals, strict=True))
        new = old | dict(chain.from_iterable(expand(key, value, self.names) for key, value in intervals.items()))
        for name, (lower, upper) in new.items():
            inside = old[name][0] <= lower and upper <= old[name][1]
            require(inside, name, (lower, upper), f"inside {old[name]}", "build a new domain to enlarge it")
        return Box(**new)


def Interval(lower: float, upper: float, name: str = "x") -> Box:
    """The box of one coordinate.

    >>> Interval(-1, 1).bounds.tolist()
    [[-1.0, 1.0]]
    """
    return Box(**{name: (lower, upper)})


@dataclass(frozen=True, init=False)
class Ball(Domain):
    """The closed ball of that centre and radius in R^n, n ≥ 2; its one side is called ``boundary``.

    >>> round(Ball((0, 0), 1).volume, 10)
    3.1415926536
    """

    centre: tuple[float, ...]
    radius: float
    names: tuple[str, ...]

    def __init__(self, centre: Any, radius: float, names: Sequence[str] | None = None) -> None:
        middle = tuple(finite_array("centre", centre, 1).tolist())
        require(len(middle) >= 2, "centre", middle, "of two coordinates or more", "use Interval(lower, upper) in 1-D")
        size = float(finite_array("radius", radius, 0))
        require(size > 0, "radius", radius, "> 0")
        chosen = [f"x{number}" for number in range(1, len(middle) + 1)] if names is None else names
        require(len(chosen) == len(middle), "names", chosen, f"{len(middle)} names, one per coordinate")
        object.__setattr__(self, "centre", middle)
        object.__setattr__(self, "radius", size)
        object.__setattr__(self, "names", checked_names(tuple(chosen)))

    @property
    def slack(self) -> float:
        """How far rounding may carry a point of the ball off it."""
        return ROUNDING * self.dim * (self.radius + max(abs(value) for value in self.centre))

    @property
    def bounds(self) -> Array:
        return np.array([(value - self.radius, value + self.radius) for value in self.centre])

    @property
    def axes(self) -> tuple[Axis, ...]:
        return (Radius(self.dim), *sphere_axes(self.dim))

    @property
    def measure(self) -> float:
        return float(pi ** (self.dim / 2) / gamma(self.dim / 2 + 1) * self.radius**self.dim)

    def place(self, coordinates: Array) -> Array:
        return self.centre + self.radius * coordinates[:, :1] * sphere_points(coordinates[:, 1:])

    def contains(self, points: Array) -> Array:
        points = finite_points("points", points, self.dim)
        inside: Array = np.linalg.norm(points - self.centre, axis=1) <= self.radius + self.slack
        return inside

    @property
    def sides(self) -> dict[str, Side]:
        return {"boundary": RoundSide("boundary", self, self)}

    def side(self, name: str) -> Side:
        return find_side(name, self.sides)


@dataclass(frozen=True, init=False, repr=False)
class SpaceTime(Domain):
    """The product of a time interval and a domain in space; points are rows (t, x_1, …, x_d).

    Space is given by coordinates as for a Box, or as one Box or Ball, which keeps its own names.

    >>> SpaceTime(t=(0.1, 1.1), x=[(0, 1)] * 5).names
    ('t', 'x1', 'x2', 'x3', 'x4', 'x5')
    >>> SpaceTime(t=(0, 1), x=(-1, 1)).initial.name
    't=0'
    >>> round(SpaceTime(t=(0, 2), x=Ball((0, 0, 0), 1)).side("boundary").measure, 10)
    25.1327412287
    """

    names: tuple[str, ...]
    time: Pair
    space: Box | Ball

    def __init__(self, t: Any, **space: Any) -> None:
        object.__setattr__(self, "time", pair("t", t))
        object.__setattr__(self, "space", _space(space))
        object.__setattr__(self, "names", checked_names(("t", *self.space.names)))

    def __repr__(self) -> str:
        space = _listing(self.space) if isinstance(self.space, Box) else f"x={self.space!r}"
        return f"SpaceTime(t={self.time}, {space})"

    @property
    def bounds(self) -> Array:
        return np.concatenate([[self.time], self.space.bounds])

    @property
    def axes(self) -> tuple[Axis, ...]:
        return (Linear(*self.time), *self.space.axes)

    @property
    def measure(self) -> float:
        return (self.time[1] - self.time[0]) * self.space.measure

    def place(self, coordinates: Array) -> Array:
        return np.concatenate([coordinates[:, :1], self.space.place(coordinates[:, 1:])], axis=1)

    def contains(self, points: Array) -> Array:
        points = finite_points("points", points, self.dim)
        now = (points[:, 0] >= self.time[0]) & (points[:, 0] <= self.time[1])
        return now & self.space.contains(points[:, 1:])

    @cached_property
    def sides(self) -> dict[str, Side]:
        if isinstance(self.space, Ball):
            return {"boundary": RoundSide("boundary", self, self.space, (Linear(*self.time),))}
        found: dict[str, Side] = {}
        for name, side in self.space.sides.items():
            assert isinstance(side, FlatSide)
            assert isinstance(side.face, Box)
            face = Box(t=self.time, **dict(zip(side.face.names, side.face.intervals, strict=True)))
            found[name] = FlatSide(name, self, side.axis + 1, side.value, side.outward, face)
        return found

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
        if isinstance(self.space, Ball):
            require(not intervals, "coordinates", sorted(intervals), "t, as space is a ball", "build a smaller Ball")
            return SpaceTime(time.intervals[0], x=self.space)
        return SpaceTime(time.intervals[0], x=self.space.restrict(**intervals))


# ------------------------------------------------------------------------------------------ reading arguments


def _space(coordinates: Mapping[str, Any]) -> Box | Ball:
    whole = [value for value in coordinates.values() if isinstance(value, Region)]
    if not whole:
        require(bool(coordinates), "space", "left out", "given", "e.g. SpaceTime(t=(0, 1), x=(-1, 1))")
        space: Region = Box(**coordinates)
    else:
        require(len(coordinates) == 1, "space", sorted(coordinates), "one Box or Ball, or intervals alone")
        space = whole[0]
    if not isinstance(space, Box | Ball):
        reject("space", type(space).__name__, "a Box, a Ball or intervals")
    require(space.dim >= 1, "space", space, "of one dimension or more")
    return space


def _listing(box: Box) -> str:
    return ", ".join(f"{name}={interval}" for name, interval in zip(box.names, box.intervals, strict=True))
