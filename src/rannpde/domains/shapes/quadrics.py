"""Ellipses, half-spaces and cylinders."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import cos, pi, sin
from typing import Any, ClassVar

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.charts import Chart, Disc, Tube
from rannpde.domains.boundary.solids import Leaf, Solid, Tree
from rannpde.domains.boundary.tracing import Wall
from rannpde.domains.boundary.walls import HalfPlane, Inside, Plane, Quadric, frame
from rannpde.domains.coordinates import checked_shape_name, coordinate_names
from rannpde.domains.shapes.boxes import named
from rannpde.domains.shapes.cutting import Cut
from rannpde.errors import finite_array, finite_points, require


class Shape(Cut, Solid):
    """A domain that is one solid: its tree is itself."""

    @property
    def tree(self) -> Tree:
        return Leaf(self)

    def level(self, points: Array) -> Array:
        return self._level(finite_points("points", points, self.dim))

    @abstractmethod
    def _level(self, points: Array) -> Array:
        """The level (M,) at points that were checked."""


class Delegated(Shape):
    """A shape that a solid in normal form stands for."""

    @property
    @abstractmethod
    def _solid(self) -> Solid:
        """The solid that the shape is."""

    @property
    def bounds(self) -> Array:
        return self._solid.bounds

    @property
    def walls(self) -> tuple[Wall, ...]:
        return self._solid.walls

    def _level(self, points: Array) -> Array:
        return self._solid.level(points)

    def charts(self, clip: Array) -> tuple[Chart, ...]:
        return self._solid.charts(clip)


def vector(argument: str, value: Any, sizes: tuple[int, ...]) -> tuple[float, ...]:
    """value as a tuple of numbers, refused unless it has one of the sizes."""
    numbers = tuple(finite_array(argument, value, 1).tolist())
    wanted = " or ".join(str(size) for size in sizes)
    require(len(numbers) in sizes, argument, numbers, f"of {wanted} coordinates")
    return numbers


@dataclass(frozen=True, init=False, repr=False)
class Ellipse(Delegated):
    """The ellipse of that centre and two semi-axes, turned by an angle, or with three semi-axes an ellipsoid.

    >>> round(Ellipse((0, 0), (2, 1)).volume, 10)
    6.2831853072
    """

    centre: tuple[float, ...]
    semi_axes: tuple[float, ...]
    angle: float
    names: tuple[str, ...]
    name: str | None
    kind: ClassVar[str] = "ellipse"

    def __init__(
        self,
        centre: Any,
        semi_axes: Any,
        angle: float = 0.0,
        names: Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        object.__setattr__(self, "centre", vector("centre", centre, (2, 3)))
        object.__setattr__(self, "semi_axes", vector("semi_axes", semi_axes, (len(self.centre),)))
        require(min(self.semi_axes) > 0, "semi_axes", self.semi_axes, "all > 0")
        object.__setattr__(self, "angle", float(finite_array("angle", angle, 0)))
        flat = len(self.centre) == 2 or self.angle == 0
        require(flat, "angle", angle, "left out in space", "use .rotated(angle, axis=…)")
        object.__setattr__(self, "names", coordinate_names(names, len(self.centre)))
        object.__setattr__(self, "name", checked_shape_name(name))

    def __repr__(self) -> str:
        turned = f", angle={self.angle}" if self.angle else ""
        return f"Ellipse({self.centre}, {self.semi_axes}{turned}, names={self.names}{named(self.name)})"

    @property
    def rate(self) -> float:
        return 3.0

    @cached_property
    def _solid(self) -> Inside:
        matrix = np.diag(self.semi_axes)
        if self.dim == 2:
            matrix = np.array([[cos(self.angle), -sin(self.angle)], [sin(self.angle), cos(self.angle)]]) @ matrix
        return Inside(np.array(self.centre), matrix)

    def with_names(self, names: Sequence[str]) -> Ellipse:
        return Ellipse(self.centre, self.semi_axes, self.angle, tuple(names), self.name)


@dataclass(frozen=True, init=False, repr=False)
class HalfSpace(Delegated):
    """The points with normal · x ≤ offset, in the plane or in space: not bounded, to be intersected with another shape.

    >>> from rannpde.domains import Box
    >>> corner = Box(x=(0, 1), y=(0, 1)) & HalfSpace((1, 1), 0.5)
    >>> round(corner.volume, 12), list(corner.sides)
    (0.125, ['x=0', 'y=0', 'halfspace1'])
    """

    normal: tuple[float, ...]
    offset: float
    names: tuple[str, ...]
    name: str | None
    kind: ClassVar[str] = "halfspace"

    def __init__(self, normal: Any, offset: float, names: Sequence[str] | None = None, name: str | None = None) -> None:
        object.__setattr__(self, "normal", vector("normal", normal, (2, 3)))
        require(any(self.normal), "normal", self.normal, "a vector that is not 0")
        object.__setattr__(self, "offset", float(finite_array("offset", offset, 0)))
        object.__setattr__(self, "names", coordinate_names(names, len(self.normal)))
        object.__setattr__(self, "name", checked_shape_name(name))

    def __repr__(self) -> str:
        return f"HalfSpace({self.normal}, {self.offset}, names={self.names}{named(self.name)})"

    @cached_property
    def _solid(self) -> HalfPlane:
        length = float(np.linalg.norm(self.normal))
        return HalfPlane(np.array(self.normal) / length, self.offset / length)

    def with_names(self, names: Sequence[str]) -> HalfSpace:
        return HalfSpace(self.normal, self.offset, tuple(names), self.name)


@dataclass(frozen=True, init=False, repr=False)
class Cylinder(Shape):
    """The round cylinder in space between the centres of its two flat ends; its sides are ``wall``, ``start``, ``end``.

    >>> round(Cylinder((0, 0, 0), (0, 0, 2), 1).volume, 10)
    6.2831853072
    """

    start: tuple[float, ...]
    end: tuple[float, ...]
    radius: float
    names: tuple[str, ...]
    name: str | None
    kind: ClassVar[str] = "cylinder"

    def __init__(
        self, start: Any, end: Any, radius: float, names: Sequence[str] | None = None, name: str | None = None
    ) -> None:
        object.__setattr__(self, "start", vector("start", start, (3,)))
        object.__setattr__(self, "end", vector("end", end, (3,)))
        require(self.start != self.end, "end", self.end, "different from start")
        object.__setattr__(self, "radius", float(finite_array("radius", radius, 0)))
        require(self.radius > 0, "radius", radius, "> 0")
        object.__setattr__(self, "names", coordinate_names(names, 3))
        object.__setattr__(self, "name", checked_shape_name(name))

    def __repr__(self) -> str:
        return f"Cylinder({self.start}, {self.end}, {self.radius}, names={self.names}{named(self.name)})"

    @cached_property
    def _frame(self) -> tuple[Array, Array, Array, Array]:
        """Start, two unit vectors across, and the axis from start to end."""
        start = np.array(self.start)
        axis = np.array(self.end) - start
        first, second = frame(axis / np.linalg.norm(axis))
        return start, first, second, axis

    @property
    def measure(self) -> float:
        return pi * self.radius**2 * float(np.linalg.norm(self._frame[3]))

    @property
    def bounds(self) -> Array:
        start, _, _, axis = self._frame
        reach = self.radius * np.sqrt(np.maximum(1 - (axis / np.linalg.norm(axis)) ** 2, 0.0))
        ends = np.stack([start, start + axis])
        return np.stack([ends.min(axis=0) - reach, ends.max(axis=0) + reach], axis=1)

    @property
    def walls(self) -> tuple[Wall, ...]:
        start, first, second, axis = self._frame
        unit = axis / np.linalg.norm(axis)
        tube = Quadric(start, self.radius * np.stack([first, second], axis=1))
        return tube, Plane(-unit, -float(unit @ start)), Plane(unit, float(unit @ (start + axis)))

    def _level(self, points: Array) -> Array:
        start, _, _, axis = self._frame
        height = float(np.linalg.norm(axis))
        along = (points - start) @ (axis / height)
        across = np.linalg.norm(points - start - along[:, None] * (axis / height), axis=1)
        beyond = np.stack([across - self.radius, np.abs(along - 0.5 * height) - 0.5 * height], axis=1)
        distance: Array = np.linalg.norm(np.maximum(beyond, 0.0), axis=1) + np.minimum(beyond.max(axis=1), 0.0)
        return distance

    def charts(self, clip: Array) -> tuple[Chart, ...]:
        start, first, second, axis = self._frame
        wall = Tube("wall", start, self.radius, first, second, axis)
        low = Disc("start", start, self.radius, second, first)
        return wall, low, Disc("end", start + axis, self.radius, first, second)

    def with_names(self, names: Sequence[str]) -> Cylinder:
        return Cylinder(self.start, self.end, self.radius, tuple(names), self.name)
