"""Planes and quadrics: the walls of boxes, half-spaces, balls, ellipses and cylinders, and the sets behind them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.charts import Chart, Conic, Parallelograms, Segments, Sphere
from rannpde.domains.boundary.solids import AllOrNothing, Branch, Leaf, Solid, Tree
from rannpde.domains.boundary.tracing import Wall, regularised


@dataclass(frozen=True, eq=False)
class Plane(Wall):
    """normal · x - offset, for a unit normal (n,)."""

    normal: Array
    offset: float

    def both(self, points: Array) -> tuple[Array, Array]:
        return points @ self.normal - self.offset, np.broadcast_to(self.normal, points.shape)

    def section(self, origin: Array, edges: Array, margin: float) -> Tree | None:
        """The set behind it on the plane origin + edges · u, edges (3, 2); None where the plane lies in the wall."""
        slope, offset = self.normal @ edges, self.offset - float(self.normal @ origin)
        length = float(np.linalg.norm(slope))
        if length <= 1e-12 * float(np.abs(edges).max()):
            return None if abs(offset) <= margin else Leaf(AllOrNothing(offset > 0))
        return Leaf(HalfPlane(slope / length, offset / length))


@dataclass(frozen=True, eq=False)
class Quadric(Wall):
    """½ (|A⁺(x - centre)|² - 1) for a matrix A (n, k) of semi-axes: an ellipsoid, k = n, or a tube in space, k = 2."""

    centre: Array
    matrix: Array

    @cached_property
    def pulled(self) -> Array:
        """A⁺ (k, n)."""
        return np.linalg.pinv(self.matrix)

    def both(self, points: Array) -> tuple[Array, Array]:
        inner = (points - self.centre) @ self.pulled.T
        return 0.5 * ((inner**2).sum(axis=1) - 1), inner @ self.pulled

    def section(self, origin: Array, edges: Array, margin: float) -> Tree | None:
        """The set inside it on the plane origin + edges · u: an ellipse, a strip, everything or nothing."""
        turned, start = self.pulled @ edges, self.pulled @ (origin - self.centre)
        left, sizes, right = np.linalg.svd(turned)
        rank = int((sizes > 1e-12 * sizes[0]).sum()) if sizes[0] > 0 else 0
        inner = left.T @ start
        rest = 1 - float((inner[rank:] ** 2).sum())
        if rest <= 1e-14 or rank == 0:
            return Leaf(AllOrNothing(rest > 0))
        middle = -inner[:rank] / sizes[:rank]
        reach = np.sqrt(rest) / sizes[:rank]
        if rank == 2:
            matrix = right.T * reach
            matrix = matrix if np.linalg.det(matrix) > 0 else matrix[:, ::-1]
            return Leaf(Inside(right.T @ middle, matrix))
        direction = right[0]
        sides = [HalfPlane(sign * direction, float(sign * middle[0] + reach[0])) for sign in (1.0, -1.0)]
        return Branch("intersection", tuple(Leaf(side) for side in sides))


@dataclass(frozen=True, eq=False)
class HalfPlane(Solid):
    """normal · x ≤ offset in the plane or in space, for a unit normal."""

    normal: Array
    offset: float

    @property
    def bounds(self) -> Array:
        bounds = np.tile([-np.inf, np.inf], (len(self.normal), 1))
        for axis, value in enumerate(self.normal):  # a wall along a coordinate bounds that coordinate
            if abs(value) == 1.0:
                bounds[axis, int(value > 0)] = value * self.offset
        return bounds

    @property
    def walls(self) -> tuple[Wall, ...]:
        return (Plane(self.normal, self.offset),)

    def level(self, points: Array) -> Array:
        distance: Array = points @ self.normal - self.offset
        return distance

    def charts(self, clip: Array) -> tuple[Chart, ...]:
        middle = clip.mean(axis=1)
        foot = middle - (middle @ self.normal - self.offset) * self.normal
        reach = float(np.linalg.norm(clip[:, 1] - clip[:, 0]))
        if np.linalg.norm(foot - middle) > reach:
            return ()
        if len(self.normal) == 2:
            along = reach * np.array([-self.normal[1], self.normal[0]])
            return (Segments("", (foot - along)[None, :], (foot + along)[None, :]),)
        first, second = (reach * vector for vector in frame(self.normal))
        return (Parallelograms("", *((v[None, :]) for v in (foot - first - second, 2 * first, 2 * second))),)


@dataclass(frozen=True, eq=False)
class Inside(Solid):
    """centre + matrix · w, |w| ≤ 1: an ellipse or ellipsoid."""

    centre: Array
    matrix: Array

    @property
    def rate(self) -> float:
        return 3.0

    @cached_property
    def wall(self) -> Quadric:
        return Quadric(self.centre, self.matrix)

    @cached_property
    def least(self) -> float:
        """The shortest semi-axis."""
        return float(np.linalg.svd(self.matrix, compute_uv=False)[-1])

    @property
    def bounds(self) -> Array:
        reach = np.linalg.norm(self.matrix, axis=1)
        return np.stack([self.centre - reach, self.centre + reach], axis=1)

    @property
    def walls(self) -> tuple[Wall, ...]:
        return (self.wall,)

    def level(self, points: Array) -> Array:
        # of this size it is minus the shortest semi-axis at the centre, as the distance is
        return regularised(*self.wall.both(points), self.least)

    def charts(self, clip: Array) -> tuple[Chart, ...]:
        kind = Conic if len(self.centre) == 2 else Sphere
        return (kind("", self.centre, self.matrix),)


def frame(normal: Array) -> tuple[Array, Array]:
    """Two unit vectors that with a unit normal (3,) are a right-handed frame: first × second = normal."""
    helper = np.eye(3)[int(np.argmin(np.abs(normal)))]
    first = np.cross(normal, helper)
    first /= np.linalg.norm(first)
    return first, np.cross(normal, first)


def box_charts(bounds: Array, labels: tuple[str, ...]) -> tuple[Chart, ...]:
    """The faces of a box in the plane or in space, labelled lower, upper of each coordinate in turn."""
    a, b = bounds.T
    if len(bounds) == 2:
        ends = [((a[0], b[1]), (a[0], a[1])), ((b[0], a[1]), (b[0], b[1])),
                ((a[0], a[1]), (b[0], a[1])), ((b[0], b[1]), (a[0], b[1]))]  # fmt: skip
        return tuple(
            Segments(label, np.array([start]), np.array([end]))
            for label, (start, end) in zip(labels, ends, strict=True)
        )
    charts: list[Chart] = []
    widths = np.diag(b - a)
    for number, label in enumerate(labels):
        axis, end = divmod(number, 2)
        origin = np.where(np.arange(3) == axis, bounds[axis, end], a)
        first, second = widths[(axis + 1) % 3], widths[(axis + 2) % 3]
        if end == 0:
            first, second = second, first
        charts.append(Parallelograms(label, origin[None, :], first[None, :], second[None, :]))
    return tuple(charts)
