"""Boxes, intervals and balls: domains whose uniform law is a product of laws of one coordinate.

Coordinates are named by keywords. One interval is one coordinate; a list of intervals makes a numbered group:
``x=(0, 1)`` is the coordinate ``x``, ``x=[(0, 1)] * 3`` are ``x1``, ``x2``, ``x3``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import gamma, pi, prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.charts import Chart, Conic, Sphere
from rannpde.domains.boundary.sides import FlatSide, RoundSide, Side, side_name
from rannpde.domains.boundary.solids import Leaf, Solid
from rannpde.domains.boundary.tracing import Wall
from rannpde.domains.boundary.walls import Plane, Quadric, box_charts
from rannpde.domains.coordinates import (
    Pair,
    checked_shape_name,
    coordinate_names,
    expanded_coordinates,
    named_intervals,
)
from rannpde.domains.region import (
    CONTAINS_SLACK,
    CoordinateLaw,
    Linear,
    ProductRegion,
    Radius,
    sphere_axes,
    sphere_points,
)
from rannpde.domains.shapes.base import Domain, box_level
from rannpde.errors import finite_array, finite_points, reject, require

if TYPE_CHECKING:
    from rannpde.domains.boundary.pieces import Border
    from rannpde.domains.boundary.planar import Corner
    from rannpde.domains.boundary.solids import Tree


@dataclass(frozen=True, init=False, repr=False)
class Box(Domain, ProductRegion, Solid):
    """A product of intervals. ``name="step"`` names its sides ``step.x=0``, …, where the box is a part of a shape.

    >>> Box(x=(0, 1), y=(-1, 1)).volume
    2.0
    >>> Box([(0, 1)] * 3).names
    ('x1', 'x2', 'x3')
    """

    names: tuple[str, ...]
    intervals: tuple[Pair, ...]
    name: str | None = None
    kind: ClassVar[str] = "box"

    def __init__(self, bounds: Any = None, /, **coordinates: Any) -> None:
        # a coordinate may be called "name": it has an interval then, and no text
        given = coordinates.pop("name") if isinstance(coordinates.get("name"), str) else None
        object.__setattr__(self, "name", checked_shape_name(given))
        if bounds is not None:
            require(not coordinates, "coordinates", sorted(coordinates), "left out when bounds are given by position")
            coordinates = {"x": bounds}
        elif not coordinates:
            reject("box", "without coordinates", "given at least one", "e.g. Box(x=(0, 1))")
        named = named_intervals(coordinates)
        object.__setattr__(self, "names", tuple(named))
        object.__setattr__(self, "intervals", tuple(named.values()))

    def __repr__(self) -> str:
        return f"Box({listing(self)}{named(self.name)})"

    @property
    def bounds(self) -> Array:
        return np.array(self.intervals, dtype=float).reshape(-1, 2)

    @property
    def axes(self) -> tuple[CoordinateLaw, ...]:
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

    @property
    def tree(self) -> Tree:
        return Leaf(self)

    @property
    def corners(self) -> tuple[Corner, ...]:
        return ()

    def level(self, points: Array) -> Array:
        return box_level(finite_points("points", points, self.dim), self.bounds)

    @property
    def walls(self) -> tuple[Wall, ...]:
        unit = np.eye(self.dim)
        ends = [(k, end) for k in range(self.dim) for end in (0, 1)]
        return tuple(Plane((2 * end - 1) * unit[k], (2 * end - 1) * self.intervals[k][end]) for k, end in ends)

    def charts(self, clip: Array) -> tuple[Chart, ...]:
        return box_charts(self.bounds, tuple(self.sides))

    def with_names(self, names: Sequence[str]) -> Box:
        named: dict[str, Any] = dict(zip(names, self.intervals, strict=True))
        return Box(**named) if self.name is None else Box(**named, name=self.name)

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
        new = old | dict(
            chain.from_iterable(expanded_coordinates(key, value, self.names) for key, value in intervals.items())
        )
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


@dataclass(frozen=True, init=False, repr=False)
class Ball(Domain, ProductRegion, Solid):
    """The closed ball of that centre and radius in R^n, n ≥ 2; its one side is called ``boundary``, or as it is named.

    >>> round(Ball((0, 0), 1).volume, 10)
    3.1415926536
    """

    centre: tuple[float, ...]
    radius: float
    names: tuple[str, ...]
    name: str | None = None
    kind: ClassVar[str] = "ball"

    def __init__(self, centre: Any, radius: float, names: Sequence[str] | None = None, name: str | None = None) -> None:
        middle = tuple(finite_array("centre", centre, 1).tolist())
        require(len(middle) >= 2, "centre", middle, "of two coordinates or more", "use Interval(lower, upper) in 1-D")
        size = float(finite_array("radius", radius, 0))
        require(size > 0, "radius", radius, "> 0")
        object.__setattr__(self, "centre", middle)
        object.__setattr__(self, "radius", size)
        object.__setattr__(self, "names", coordinate_names(names, len(middle)))
        object.__setattr__(self, "name", checked_shape_name(name))

    def __repr__(self) -> str:
        return f"Ball(centre={self.centre}, radius={self.radius}, names={self.names}{named(self.name)})"

    @property
    def slack(self) -> float:
        """The distance from the ball up to which a point counts as inside, because of rounding."""
        return CONTAINS_SLACK * self.dim * (self.radius + max(abs(value) for value in self.centre))

    @property
    def bounds(self) -> Array:
        return np.array([(value - self.radius, value + self.radius) for value in self.centre])

    @property
    def axes(self) -> tuple[CoordinateLaw, ...]:
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
        name = self.name or "boundary"
        return {name: RoundSide(name, self, self)}

    @property
    def tree(self) -> Tree:
        return Leaf(self)

    @property
    def corners(self) -> tuple[Corner, ...]:
        return ()

    def level(self, points: Array) -> Array:
        distance: Array = np.linalg.norm(finite_points("points", points, self.dim) - self.centre, axis=1)
        return distance - self.radius

    @property
    def walls(self) -> tuple[Wall, ...]:
        return (Quadric(np.array(self.centre), self.radius * np.eye(self.dim)),)

    def charts(self, clip: Array) -> tuple[Chart, ...]:
        chart = Conic if self.dim == 2 else Sphere
        return (chart("", np.array(self.centre), self.radius * np.eye(self.dim)),)

    @cached_property
    def border(self) -> Border:
        """The sphere as pieces, which ``within`` cuts."""
        from rannpde.domains.operations.parts import border_of

        return border_of(self.tree)

    def with_names(self, names: Sequence[str]) -> Ball:
        return Ball(self.centre, self.radius, tuple(names), self.name)


def listing(box: Box) -> str:
    return ", ".join(f"{name}={interval}" for name, interval in zip(box.names, box.intervals, strict=True))


def named(name: str | None) -> str:
    return "" if name is None else f", name={name!r}"
