"""Sides of a domain: flat ones, which are boxes of one dimension less, and spheres."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import gamma, pi, prod
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rannpde.arrays import Array, Rng
from rannpde.domains.region import (
    CONTAINS_SLACK,
    CoordinateLaw,
    Linear,
    ProductRegion,
    Region,
    sphere_axes,
    sphere_points,
)
from rannpde.domains.streams import PointStream
from rannpde.errors import choose, finite_array, finite_points, require

if TYPE_CHECKING:
    from rannpde.domains.domain import Ball
    from rannpde.domains.shapes.base import Domain

SideKind = TypeVar("SideKind", bound="Side")


class Side(Region):
    """One part of the boundary of a domain. In a space-time domain it spans the whole time interval."""

    name: str
    domain: Domain

    @property
    def dim(self) -> int:
        return self.domain.dim

    @abstractmethod
    def normals(self, points: Array) -> Array:
        """Outward unit normals (M, n) at points (M, n) of the side; no time component on sides in space."""

    @abstractmethod
    def within(self, bounds: Any, count: int, rng: Rng = None) -> Array:
        """``count`` points (count, n) of the side, evenly spread over what lies in the box with bounds (n, 2).

        An empty array (0, n) where the side does not meet the box.
        """


@dataclass(frozen=True)
class FlatSide(Side):
    """The points of a domain with coordinate number ``axis`` equal to ``value``, e.g. ``x=1`` or the initial slice.

    ``face`` is the side as a domain of its own, one dimension less; ``outward`` is +1 at an upper end, -1 at a lower.

    >>> from rannpde.domains import SpaceTime
    >>> side = SpaceTime(t=(0, 2), x=(-1, 1)).side("x = 1.0")
    >>> side.name, side.measure, side.normals([[0.5, 1.0]]).tolist()
    ('x=1', 2.0, [[0.0, 1.0]])
    """

    name: str
    domain: Domain = field(repr=False)
    axis: int
    value: float
    outward: int
    face: Domain = field(repr=False)

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return self.face.exact

    @property
    def has_rule(self) -> bool:  # type: ignore[override]
        return self.face.has_rule

    @property
    def extent(self) -> int:
        return self.face.extent

    @property
    def columns(self) -> int:
        return self.face.columns

    @property
    def measure(self) -> float:
        return self.face.measure

    def draw(self, count: int, stream: PointStream, carried: int = 0) -> Array:
        return np.insert(self.face.draw(count, stream, carried), carried + self.axis, self.value, axis=1)

    def rule(self, count: int, panels: int) -> tuple[Array, Array]:
        points, weights = self.face.rule(count, panels)
        return self.embed(points), weights

    def embed(self, points: Array) -> Array:
        """Points (M, n) on the side of points (M, n-1) of the face."""
        return np.insert(finite_points("points", points, self.face.dim), self.axis, self.value, axis=1)

    def contains(self, points: Array) -> Array:
        points = finite_points("points", points, self.dim)
        slack = CONTAINS_SLACK * np.abs(self.domain.bounds[self.axis]).max()
        near: Array = np.abs(points[:, self.axis] - self.value) <= slack
        return near & self.face.contains(np.delete(points, self.axis, axis=1))

    def normals(self, points: Array) -> Array:
        normals = np.zeros(finite_points("points", points, self.dim).shape)
        normals[:, self.axis] = self.outward
        return normals

    def within(self, bounds: Any, count: int, rng: Rng = None) -> Array:
        box = checked_bounds(bounds, self.dim)
        lower, upper = box[self.axis]
        if not lower <= self.value <= upper:
            return np.empty((0, self.dim))
        return self.embed(self.face.within(np.delete(box, self.axis, axis=0), count, rng))


@dataclass(frozen=True)
class RoundSide(Side, ProductRegion):
    """The sphere around a ball, or its product with the time interval when the domain is a space-time."""

    name: str
    domain: Domain = field(repr=False)
    ball: Ball
    before: tuple[Linear, ...] = ()
    """Axes of the coordinates before those of the ball: the time of a space-time, or nothing."""

    @property
    def axes(self) -> tuple[CoordinateLaw, ...]:
        return (*self.before, *sphere_axes(self.ball.dim))

    @property
    def measure(self) -> float:
        dim = self.ball.dim
        duration = prod(axis.upper - axis.lower for axis in self.before)
        return float(duration * 2 * pi ** (dim / 2) / gamma(dim / 2) * self.ball.radius ** (dim - 1))

    def place(self, coordinates: Array) -> Array:
        first = len(self.before)
        sphere = self.ball.centre + self.ball.radius * sphere_points(coordinates[:, first:])
        return np.concatenate([coordinates[:, :first], sphere], axis=1)

    def contains(self, points: Array) -> Array:
        near: Array = np.abs(np.linalg.norm(self._arrows(points), axis=1) - self.ball.radius) <= self.ball.slack
        return near & self.domain.contains(points)

    def normals(self, points: Array) -> Array:
        arrows = self._arrows(points)
        lengths = np.linalg.norm(arrows, axis=1, keepdims=True)
        require(bool((lengths > 0).all()), "points", "at the centre of the ball", "on its boundary")
        return np.pad(arrows / lengths, ((0, 0), (len(self.before), 0)))

    def within(self, bounds: Any, count: int, rng: Rng = None) -> Array:
        from rannpde.domains.boundary.pieces import CutSide

        time = tuple((axis.lower, axis.upper) for axis in self.before)
        return CutSide(self.name, self.domain, self.ball.border, time).within(bounds, count, rng)

    def _arrows(self, points: Array) -> Array:
        return finite_points("points", points, self.dim)[:, len(self.before) :] - self.ball.centre


def checked_bounds(bounds: Any, dim: int) -> Array:
    """bounds as an array (n, 2), refused unless lower ≤ upper."""
    box = finite_array("bounds", bounds, 2)
    require(box.shape == (dim, 2), "bounds with shape", box.shape, f"of shape ({dim}, 2)")
    require(bool((box[:, 0] <= box[:, 1]).all()), "bounds", box.tolist(), "pairs lower ≤ upper")
    return box


def side_name(coordinate: str, value: float, opposite: float) -> str:
    """``x=0.5``, with six digits unless the two ends of the interval need more to differ."""
    short = f"{value + 0.0:g}"
    return f"{coordinate}={short if short != f'{opposite + 0.0:g}' else repr(value)}"


def find_side(text: str, sides: Mapping[str, SideKind]) -> SideKind:
    """The side of that name; spaces and the way the number is written do not matter (``x = 1.0`` is ``x=1``)."""
    compact = re.sub(r"\s+", "", str(text))
    coordinate, _, number = compact.partition("=")
    if compact not in sides and number:
        with suppress(ValueError):  # when it is not a number, the answer below lists the names
            compact = f"{coordinate}={float(number) + 0.0:g}"
    return choose("side", compact if compact in sides else str(text), sides)
