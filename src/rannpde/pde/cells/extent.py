"""What a domain and its interfaces leave of the boxes and faces of a tree."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq

from rannpde.arrays import Array
from rannpde.domains.domain import Domain, SpaceTime, is_box
from rannpde.domains.operations.combined import nearby
from rannpde.pde.cells.interfaces import Interface
from rannpde.pde.cells.tree import Face

FINE = {1: 65, 2: 33, 3: 17}
"""Points per axis of the grid on which a box is looked at, by the number of its axes."""
BESIDE = 1e-7
"""A face lies inside a domain where points at this share of a cell's length to both sides of it do."""
RIM_POINTS = 2000
"""On every side of a domain that is not a box, to see which cells it cuts."""

InterfaceSides = Sequence[tuple[Interface, int]]
"""Interfaces, and on which side of each a set lies: -1 where it is negative, 1 where it is positive."""


class Extent:
    """A domain as its boxes see it; ``sides`` of its methods restrict it to one side of interfaces."""

    def __init__(self, domain: Domain) -> None:
        self.domain, self.plain = domain, is_box(domain)
        self.thin = BESIDE * float(np.diff(domain.bounds, axis=1).min()) * 1e-3
        self.rims = [] if self.plain else [side.sample(RIM_POINTS, rng=0) for side in domain.sides.values()]
        ends = [(rim.min(axis=0), rim.max(axis=0)) for rim in self.rims]
        self.ends = np.array(ends).reshape(-1, 2, domain.dim)

    def _rims(self, bounds: Array) -> list[Array]:
        """Points of the sides that may meet a box."""
        met = ((self.ends[:, 0] <= bounds[:, 1]) & (bounds[:, 0] <= self.ends[:, 1])).all(axis=1)
        return [self.rims[k] for k in np.flatnonzero(met)]

    def _domain(self, points: Array) -> Domain:
        """The domain as points see it: without what is far from all of them, such as most of many holes."""
        if not len(points):
            return self.domain
        around = np.stack([points.min(axis=0), points.max(axis=0)], axis=1)
        if not isinstance(self.domain, SpaceTime):
            return nearby(self.domain, around)
        space = nearby(self.domain.space, around[1:])
        return self.domain if space is self.domain.space else SpaceTime(self.domain.time, x=space)

    def _cut(self, bounds: Array) -> bool:
        """Whether a side of the domain runs through the inside of a box."""
        slack = 1e-9 * (bounds[:, 1] - bounds[:, 0])
        lower, upper = bounds[:, 0] + slack, bounds[:, 1] - slack
        return any(bool(((rim > lower) & (rim < upper)).all(axis=1).any()) for rim in self._rims(bounds))

    def whole(self, bounds: Array, sides: InterfaceSides = ()) -> bool:
        """Whether a box lies in the closed domain."""
        if self.plain or sides:
            return not sides
        if self._cut(bounds):
            return False
        points = fine_grid(bounds)
        return bool(self._domain(points).contains(points).all())

    def holds(self, points: Array, sides: InterfaceSides = ()) -> Array:
        """Which points lie inside, not on the boundary."""
        inside = np.ones(len(points), dtype=bool) if self.plain else self._domain(points).level(points) < -self.thin
        return inside & _beside(points, sides)

    def crossed(self, bounds: Array, interface: Interface, sides: InterfaceSides, points: Array) -> bool:
        """Whether an interface runs through what a box holds; ``points`` : of it that must not miss that."""
        looked = np.concatenate([fine_grid(bounds), points])
        positive = interface.value(looked[self.holds(looked, sides)]) > 0
        return bool(positive.any() and not positive.all())

    def shrunk(self, bounds: Array, sides: InterfaceSides = ()) -> Array | None:
        """The smallest box around what a box holds, to a step of a fine grid; None for nothing."""
        points = fine_grid(bounds)
        found = [points[self.holds(points, sides)], *(rim[_within(rim, bounds)] for rim in self._rims(bounds))]
        inside = np.concatenate(found)
        if not len(found[0]):
            return None
        step = (bounds[:, 1] - bounds[:, 0]) / (FINE[len(bounds)] - 1)
        lower, upper = inside.min(axis=0) - step, inside.max(axis=0) + step
        return np.stack([np.maximum(bounds[:, 0], lower), np.minimum(bounds[:, 1], upper)], axis=1)

    # ------------------------------------------------------------------------------------------------------ faces

    def between(self, points: Array, axis: int, length: float, sides: InterfaceSides = ()) -> Array:
        """Which points of a face have the domain on both sides; ``length`` : of the cells across it."""
        if self.plain:
            return _beside(points, sides)
        aside = np.zeros(points.shape[1])
        aside[axis] = BESIDE * length
        domain = self._domain(points)
        return domain.contains(points - aside) & domain.contains(points + aside) & _beside(points, sides)

    def parts(self, face: Face, length: float, sides: InterfaceSides = ()) -> list[Array]:
        """Boxes of a face that hold what of it is inside."""
        bounds = face.bounds
        free = np.flatnonzero(bounds[:, 0] < bounds[:, 1])
        if not len(free):
            return [bounds]
        points = fine_grid(bounds)
        inside = self.between(points, face.axis, length, sides)
        if len(free) > 1:
            if not inside.any():
                return []
            step = (bounds[:, 1] - bounds[:, 0]) / (FINE[len(free)] - 1)
            lower, upper = points[inside].min(axis=0) - step, points[inside].max(axis=0) + step
            return [np.stack([np.maximum(bounds[:, 0], lower), np.minimum(bounds[:, 1], upper)], axis=1)]
        axis = int(free[0])
        edges = np.flatnonzero(inside[1:] != inside[:-1])
        ends = [points[0, axis], *(self._edge(points[k], points[k + 1], face.axis, length, sides)[axis] for k in edges)]
        ends.append(points[-1, axis])
        found = []
        for lower, upper in list(pairwise(ends))[0 if inside[0] else 1 :: 2]:
            part = bounds.copy()
            part[axis] = lower, upper
            found += [part] if upper > lower else []
        return found

    def _edge(self, one: Array, other: Array, axis: int, length: float, sides: InterfaceSides) -> Array:
        """Where a segment leaves the domain: a root of the level, or by bisection where it runs along the boundary."""

        domain = self._domain(np.stack([one, other]))

        def level(share: float) -> float:
            point = (one + share * (other - one))[None]
            levels = [] if self.plain else [float(domain.level(point)[0])]
            return max(levels + [-sign * float(interface.value(point)[0]) for interface, sign in sides])

        if level(0.0) * level(1.0) < 0:
            return one + brentq(level, 0.0, 1.0, xtol=1e-14) * (other - one)
        first = bool(self.between(one[None], axis, length, sides)[0])
        for _ in range(50):
            middle = 0.5 * (one + other)
            if bool(self.between(middle[None], axis, length, sides)[0]) == first:
                one = middle
            else:
                other = middle
        return one if first else other


def fine_grid(bounds: Array) -> Array:
    """Points (M, n) of a grid that reaches to the ends of a box, which may be flat."""
    count = FINE[int((bounds[:, 0] < bounds[:, 1]).sum()) or 1]
    axes = [np.linspace(lower, upper, count if lower < upper else 1) for lower, upper in bounds]
    return np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")], axis=1)


def _within(points: Array, bounds: Array) -> Array:
    return np.asarray(((points >= bounds[:, 0]) & (points <= bounds[:, 1])).all(axis=1))


def _beside(points: Array, sides: InterfaceSides) -> Array:
    """Which points lie on these sides of interfaces."""
    found = np.ones(len(points), dtype=bool)
    for interface, sign in sides:
        found &= sign * interface.value(points) > 0
    return found
