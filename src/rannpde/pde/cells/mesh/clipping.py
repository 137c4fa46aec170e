"""Clipped cells: the parts of boxes and faces that lie in a domain and on one side of interfaces (cut-cell method)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq

from rannpde.arrays import Array
from rannpde.domains.domain import Domain, SpaceTime, is_box
from rannpde.domains.operations.combined import nearby
from rannpde.pde.cells.interfaces.level_set import Interface
from rannpde.pde.cells.mesh.tree import BoxFace
from rannpde.pde.tolerance import NEARBY
from rannpde.rounding import HALF_DIGITS

GRID_POINTS = {1: 65, 2: 33, 3: 17}
"""Points per axis of the grid on which a box is sampled, by the number of its axes."""
OFFSET = HALF_DIGITS
"""A point of a face lies inside the domain if the points at this fraction of a cell's length on both sides of it do."""
BOUNDARY_SAMPLES = 2000
"""Samples of every side of a domain that is not a box, which show the cells that it cuts."""

InterfaceSides = Sequence[tuple[Interface, int]]
"""Interfaces, and the side of each on which a set lies: -1 where its level is negative, 1 where it is positive."""


class CellClipper:
    """Geometric queries about boxes and faces in a domain; ``sides`` restricts each query to one side of interfaces."""

    def __init__(self, domain: Domain) -> None:
        self.domain, self.plain = domain, is_box(domain)
        self.slack = NEARBY * OFFSET * float(np.diff(domain.bounds, axis=1).min())
        self.boundary = [] if self.plain else [side.sample(BOUNDARY_SAMPLES, rng=0) for side in domain.sides.values()]
        boundary_bounds = [(points.min(axis=0), points.max(axis=0)) for points in self.boundary]
        self.boundary_bounds = np.array(boundary_bounds).reshape(-1, 2, domain.dim)

    def _boundary_near(self, bounds: Array) -> list[Array]:
        """Return samples of the sides of the domain whose bounding box meets a box."""
        met = ((self.boundary_bounds[:, 0] <= bounds[:, 1]) & (bounds[:, 0] <= self.boundary_bounds[:, 1])).all(axis=1)
        return [self.boundary[k] for k in np.flatnonzero(met)]

    def _domain(self, points: Array) -> Domain:
        """Return the domain without the parts that are far from all points, such as most of many holes."""
        if not len(points):
            return self.domain
        around = np.stack([points.min(axis=0), points.max(axis=0)], axis=1)
        if not isinstance(self.domain, SpaceTime):
            return nearby(self.domain, around)
        space = nearby(self.domain.space, around[1:])
        return self.domain if space is self.domain.space else SpaceTime(self.domain.time, x=space)

    def _is_cut(self, bounds: Array) -> bool:
        """Return whether a side of the domain crosses the interior of a box."""
        slack = 1e-9 * (bounds[:, 1] - bounds[:, 0])
        lower, upper = bounds[:, 0] + slack, bounds[:, 1] - slack
        return any(
            bool(((points > lower) & (points < upper)).all(axis=1).any()) for points in self._boundary_near(bounds)
        )

    def contains_box(self, bounds: Array, sides: InterfaceSides = ()) -> bool:
        """Return whether a box lies in the closed domain."""
        if self.plain or sides:
            return not sides
        if self._is_cut(bounds):
            return False
        points = fine_grid(bounds)
        return bool(self._domain(points).contains(points).all())

    def contains_points(self, points: Array, sides: InterfaceSides = ()) -> Array:
        """Return which points lie in the open domain."""
        inside = np.ones(len(points), dtype=bool) if self.plain else self._domain(points).level(points) < -self.slack
        return inside & _on_sides(points, sides)

    def crossed_by(self, bounds: Array, interface: Interface, sides: InterfaceSides, points: Array) -> bool:
        """Return whether an interface crosses the clipped cell of a box, on a grid and at ``points``."""
        samples = np.concatenate([fine_grid(bounds), points])
        positive = interface.value(samples[self.contains_points(samples, sides)]) > 0
        return bool(positive.any() and not positive.all())

    def clipped_bounds(self, bounds: Array, sides: InterfaceSides = ()) -> Array | None:
        """Return the bounding box of a clipped cell, enlarged by one step of a fine grid; None where the cell is
        empty."""
        points = fine_grid(bounds)
        inside_points = [
            points[self.contains_points(points, sides)],
            *(samples[_within(samples, bounds)] for samples in self._boundary_near(bounds)),
        ]
        inside = np.concatenate(inside_points)
        if not len(inside_points[0]):
            return None
        step = (bounds[:, 1] - bounds[:, 0]) / (GRID_POINTS[len(bounds)] - 1)
        lower, upper = inside.min(axis=0) - step, inside.max(axis=0) + step
        return np.stack([np.maximum(bounds[:, 0], lower), np.minimum(bounds[:, 1], upper)], axis=1)

    # ------------------------------------------------------------------------------------------------------ faces

    def inside_both(self, points: Array, axis: int, length: float, sides: InterfaceSides = ()) -> Array:
        """Return which points of a face have the domain on both sides; ``length`` : of the cells across it."""
        if self.plain:
            return _on_sides(points, sides)
        aside = np.zeros(points.shape[1])
        aside[axis] = OFFSET * length
        domain = self._domain(points)
        return domain.contains(points - aside) & domain.contains(points + aside) & _on_sides(points, sides)

    def face_parts(self, box_face: BoxFace, length: float, sides: InterfaceSides = ()) -> list[Array]:
        """Return boxes that contain the parts of a face inside the domain."""
        bounds = box_face.bounds
        varying = np.flatnonzero(bounds[:, 0] < bounds[:, 1])
        if not len(varying):
            return [bounds]
        points = fine_grid(bounds)
        inside = self.inside_both(points, box_face.axis, length, sides)
        if len(varying) > 1:
            if not inside.any():
                return []
            step = (bounds[:, 1] - bounds[:, 0]) / (GRID_POINTS[len(varying)] - 1)
            lower, upper = points[inside].min(axis=0) - step, points[inside].max(axis=0) + step
            return [np.stack([np.maximum(bounds[:, 0], lower), np.minimum(bounds[:, 1], upper)], axis=1)]
        axis = int(varying[0])
        edges = np.flatnonzero(inside[1:] != inside[:-1])
        ends = [
            points[0, axis],
            *(self._edge(points[k], points[k + 1], box_face.axis, length, sides)[axis] for k in edges),
        ]
        ends.append(points[-1, axis])
        boxes = []
        for lower, upper in list(pairwise(ends))[0 if inside[0] else 1 :: 2]:
            part = bounds.copy()
            part[axis] = lower, upper
            boxes += [part] if upper > lower else []
        return boxes

    def _edge(self, one: Array, other: Array, axis: int, length: float, sides: InterfaceSides) -> Array:
        """Return where a segment leaves the domain: a root of its level, or by bisection where it runs along the
        boundary."""

        domain = self._domain(np.stack([one, other]))

        def level(fraction: float) -> float:
            point = (one + fraction * (other - one))[None]
            levels = [] if self.plain else [float(domain.level(point)[0])]
            return max(levels + [-sign * float(interface.value(point)[0]) for interface, sign in sides])

        if level(0.0) * level(1.0) < 0:
            return one + brentq(level, 0.0, 1.0, xtol=1e-14) * (other - one)
        first = bool(self.inside_both(one[None], axis, length, sides)[0])
        for _ in range(50):
            middle = 0.5 * (one + other)
            if bool(self.inside_both(middle[None], axis, length, sides)[0]) == first:
                one = middle
            else:
                other = middle
        return one if first else other


def fine_grid(bounds: Array) -> Array:
    """Return the points (M, n) of a grid on a closed box, which may be flat."""
    count = GRID_POINTS[int((bounds[:, 0] < bounds[:, 1]).sum()) or 1]
    axes = [np.linspace(lower, upper, count if lower < upper else 1) for lower, upper in bounds]
    return np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")], axis=1)


def _within(points: Array, bounds: Array) -> Array:
    return np.asarray(((points >= bounds[:, 0]) & (points <= bounds[:, 1])).all(axis=1))


def _on_sides(points: Array, sides: InterfaceSides) -> Array:
    """Return which points lie on these sides of interfaces."""
    chosen = np.ones(len(points), dtype=bool)
    for interface, sign in sides:
        chosen &= sign * interface.value(points) > 0
    return chosen
