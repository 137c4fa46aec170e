"""The base of all domains: bounded sets with named coordinates and named sides, which can be combined and moved."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rannpde.arrays import Array, Rng
from rannpde.domains.boundary.creases import NONE, Creases
from rannpde.domains.boundary.sides import Side, checked_bounds, find_side
from rannpde.domains.region import Region
from rannpde.domains.streams import unit_stream
from rannpde.errors import positive_integer, reject

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from rannpde.domains.boundary.planar import Corner
    from rannpde.domains.boundary.solids import Tree

TRIED_POINTS = 2**14
"""Points of a box that are tried before a domain is taken not to meet it."""


SPACE_ONLY = ("domain", "a SpaceTime", "a shape in space", "combine or move the space, then SpaceTime(t=…, x=shape)")
"""Arguments of the error for a space-time where a shape in space is expected."""


class Domain(Region):
    """A bounded set with interior in R^n, with named coordinates and named sides.

    In two and three dimensions ``a | b``, ``a & b`` and ``a - b`` are union, intersection and difference.
    """

    names: tuple[str, ...]
    timed: ClassVar[bool] = False
    """Whether the first coordinate is time."""

    def require_space(self) -> None:
        """Refuse a space-time, which can be neither combined nor moved."""
        if self.timed:
            reject(*SPACE_ONLY)

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

    @property
    @abstractmethod
    def tree(self) -> Tree:
        """The tree of set operations on solids that makes the domain."""

    @property
    @abstractmethod
    def corners(self) -> tuple[Corner, ...]:
        """Re-entrant corners, where the domain opens by more than π; known in the plane."""

    @property
    def creases(self) -> Creases:
        """Re-entrant edges of a solid."""
        return NONE

    @abstractmethod
    def level(self, points: Array) -> Array:
        """A continuous function (M,) of points (M, n): < 0 inside, > 0 outside, near the boundary like the distance."""

    @abstractmethod
    def with_names(self, names: Sequence[str]) -> Domain:
        """A copy with other names of the coordinates."""

    def side(self, name: str) -> Side:
        """The side of that name, spaces and the way of writing the number ignored: ``x = 1.0`` is ``x=1``."""
        return find_side(name, self.sides)

    def part(self, where: Callable[[Array], Any], name: str = "part") -> Side:
        """The part of the boundary where a condition on points holds: where(points (M, n)) → (M,) true or false.

        >>> from rannpde.domains import Ball
        >>> upper = Ball((0, 0), 1).part(lambda points: points[:, 1] > 0)
        >>> round(upper.measure, 12)
        3.14159265359
        """
        from rannpde.domains.operations.parts import part_of

        return part_of(self, where, name)

    def within(self, bounds: Any, count: int, rng: Rng = None) -> Array:
        """``count`` points (count, n) of the domain, evenly spread over what lies in the box with bounds (n, 2).

        An empty array (0, n) where the domain does not meet the box.

        >>> from rannpde.domains import Box
        >>> Box(x=(0, 1), y=(0, 1)).within([(0.5, 2), (-1, 1)], 10, rng=0).shape
        (10, 2)
        """
        count, box = positive_integer("count", count), checked_bounds(bounds, self.dim)
        if self.dim == 0:
            return np.empty((1, 0))
        lower, upper = np.maximum(box[:, 0], self.bounds[:, 0]), np.minimum(box[:, 1], self.bounds[:, 1])
        if not (lower < upper).all():
            return np.empty((0, self.dim))
        stream = unit_stream(self.dim, rng, "sobol")
        inside: list[Array] = []
        have, tried = 0, 0
        while have < count and not (tried >= TRIED_POINTS and have == 0):
            points = lower + (upper - lower) * stream(count)
            inside.append(points[self.contains(points)])
            have, tried = have + len(inside[-1]), tried + count
        return np.concatenate(inside)[:count]

    # ---------------------------------------------------------------------------------------- combined and moved

    def __or__(self, other: Domain) -> Domain:
        from rannpde.domains.operations.combined import combined

        return combined("union", self, other)

    def __and__(self, other: Domain) -> Domain:
        from rannpde.domains.operations.combined import combined

        return combined("intersection", self, other)

    def __sub__(self, other: Domain) -> Domain:
        from rannpde.domains.operations.combined import combined

        return combined("difference", self, other)

    def translated(self, *shift: float) -> Domain:
        """The domain moved by a vector: ``translated(1, 0)``."""
        from rannpde.domains.operations.moved import translated

        return translated(self, shift)

    def rotated(self, angle: float, *, axis: Any = None, centre: Any = None) -> Domain:
        """The domain turned by an angle in radians, about a centre (the origin) and, in space, about an axis vector."""
        from rannpde.domains.operations.moved import rotated

        return rotated(self, angle, axis, centre)

    def scaled(self, factor: float, *, centre: Any = None) -> Domain:
        """The domain enlarged by a factor about a centre (the origin)."""
        from rannpde.domains.operations.moved import scaled

        return scaled(self, factor, centre)

    def plot(self, path: str | Path | None = None) -> Figure:
        """A picture of the boundary with the names of its sides, in the plane or in space, written to a path."""
        from rannpde.domains.export.picture import plot_domain

        return plot_domain(self, path)


def box_level(points: Array, bounds: Array) -> Array:
    """The signed distance (M,) to a box with bounds (n, 2)."""
    beyond = np.maximum(bounds[:, 0] - points, points - bounds[:, 1])
    distance: Array = np.linalg.norm(np.maximum(beyond, 0.0), axis=1) + np.minimum(beyond.max(axis=1), 0.0)
    return distance
