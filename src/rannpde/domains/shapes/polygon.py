"""Polygons with holes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from rannpde.arrays import Array, row_blocks
from rannpde.domains.boundary.charts import Chart, Segments, segment_distances
from rannpde.domains.boundary.tracing import Wall
from rannpde.domains.coordinates import checked_shape_name, coordinate_names
from rannpde.domains.shapes.boxes import named
from rannpde.domains.shapes.quadrics import Shape
from rannpde.errors import InputError, finite_array, require

VertexLoop = tuple[tuple[float, float], ...]


@dataclass(frozen=True, init=False, repr=False)
class Polygon(Shape):
    """The polygon with these corners, in order, without the polygons ``holes``; its sides are ``edge1``, ``edge2``, …

    The first edge leads from the first corner to the second; edges of holes are numbered on. ``edges`` names them
    otherwise, one name for each; edges of the same name are one side.

    >>> triangle = Polygon([(0, 0), (1, 0), (1, 1)], names=("x", "y"))
    >>> triangle.volume, list(triangle.sides)
    (0.5, ['edge1', 'edge2', 'edge3'])
    """

    corner_points: VertexLoop
    holes: tuple[VertexLoop, ...]
    names: tuple[str, ...]
    name: str | None
    edges: tuple[str, ...] | None
    kind: ClassVar[str] = "polygon"

    def __init__(
        self,
        corners: Any,
        holes: Sequence[Any] = (),
        names: Sequence[str] | None = None,
        name: str | None = None,
        edges: Sequence[str] | None = None,
    ) -> None:
        require(isinstance(holes, (list, tuple)), "holes", holes, "a list of polygons' corners")
        object.__setattr__(self, "corner_points", _loop("corners", corners))
        object.__setattr__(self, "holes", tuple(_loop(f"holes[{k}]", hole) for k, hole in enumerate(holes)))
        object.__setattr__(self, "names", coordinate_names(names, 2))
        object.__setattr__(self, "name", checked_shape_name(name))
        count = len(self.corner_points) + sum(len(hole) for hole in self.holes)
        listed = edges is None or (isinstance(edges, (list, tuple)) and len(edges) == count)
        require(listed, "edges", edges, f"{count} names, one for each edge")
        object.__setattr__(self, "edges", None if edges is None else tuple(str(edge) for edge in edges))
        _check_loops(self)

    def __repr__(self) -> str:
        holes = f", holes={list(map(list, self.holes))}" if self.holes else ""
        edges = f", edges={self.edges}" if self.edges else ""
        return f"Polygon({list(self.corner_points)}{holes}, names={self.names}{named(self.name)}{edges})"

    @cached_property
    def segments(self) -> tuple[Array, Array]:
        """Starts and ends (K, 2) of all edges as they were given."""
        loops = [np.array(loop) for loop in (self.corner_points, *self.holes)]
        return np.concatenate(loops), np.concatenate([np.roll(loop, -1, axis=0) for loop in loops])

    @property
    def bounds(self) -> Array:
        points = np.array(self.corner_points)
        return np.stack([points.min(axis=0), points.max(axis=0)], axis=1)

    @property
    def walls(self) -> tuple[Wall, ...]:
        return ()

    def _level(self, points: Array) -> Array:
        starts, ends = self.segments
        blocks = row_blocks(len(points), max(1, 2**20 // len(starts)))
        return np.concatenate([np.empty(0), *(_signed_distance(points[rows], starts, ends) for rows in blocks)])

    def charts(self, clip: Array) -> tuple[Chart, ...]:
        starts, ends = self._turned
        labels = self.edges or tuple(f"edge{number}" for number in range(1, len(starts) + 1))
        chosen = {label: np.array([k for k, other in enumerate(labels) if other == label]) for label in labels}
        return tuple(Segments(label, starts[rows], ends[rows]) for label, rows in chosen.items())

    @cached_property
    def _turned(self) -> tuple[Array, Array]:
        """The edges with the polygon on their left."""
        starts, ends = (array.copy() for array in self.segments)
        first = 0
        for number, loop in enumerate((self.corner_points, *self.holes)):
            rows = slice(first, first + len(loop))
            if (_area(loop) > 0) != (number == 0):
                starts[rows], ends[rows] = ends[rows].copy(), starts[rows].copy()
            first += len(loop)
        return starts, ends

    def with_names(self, names: Sequence[str]) -> Polygon:
        return Polygon(self.corner_points, self.holes, tuple(names), self.name, self.edges)


def _loop(argument: str, value: Any) -> VertexLoop:
    points = finite_array(argument, value, 2)
    fits = points.shape[0] >= 3 and points.shape[1] == 2
    require(fits, f"the shape of {argument}", points.shape, "(K, 2) with K ≥ 3", "one row for each corner")
    if (points[0] == points[-1]).all():  # a ring that repeats its first corner
        points = points[:-1]
    require(len(points) >= 3, argument, points.tolist(), "three corners or more")
    return tuple((float(x), float(y)) for x, y in points)


def _area(loop: VertexLoop) -> float:
    x, y = np.array(loop).T
    return 0.5 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))


def _signed_distance(points: Array, starts: Array, ends: Array) -> Array:
    """The distance to edges (K, 2), negative where a ray to the right crosses an odd number of them."""
    x, y = points[:, :1], points[:, 1:]
    (ax, ay), (bx, by) = starts.T, ends.T
    spans = (ay > y) != (by > y)
    with np.errstate(divide="ignore", invalid="ignore"):  # level edges are no crossing
        crossing = spans & (x < ax + (y - ay) * (bx - ax) / (by - ay))
    inside = crossing.sum(axis=1) % 2 == 1
    distance = segment_distances(points, starts, ends).min(axis=1)
    return np.where(inside, -distance, distance)


def _check_loops(polygon: Polygon) -> None:
    """Refuse edges that cross or touch, and holes outside."""
    starts, ends = polygon.segments
    lengths = np.linalg.norm(ends - starts, axis=1)
    require(bool((lengths > 0).all()), "corners", "repeated one after the other", "different from their neighbours")
    crossed = crossing_edges(starts, ends)
    if crossed is not None:
        one, other = crossed
        raise InputError(
            f"the polygon crosses or touches itself: edge{one + 1} and edge{other + 1} meet; order its corners"
        )
    outer = np.array(polygon.corner_points)
    for number, hole in enumerate(polygon.holes):
        first = np.array(hole[:1])
        others = [np.array(other) for k, other in enumerate(polygon.holes) if k != number]
        inside = _signed_distance(first, outer, np.roll(outer, -1, axis=0))[0] < 0
        inside &= not any(_signed_distance(first, o, np.roll(o, -1, axis=0))[0] < 0 for o in others)
        require(bool(inside), f"holes[{number}]", list(hole), "inside the polygon and outside the other holes")


def crossing_edges(starts: Array, ends: Array) -> tuple[int, int] | None:
    """Two edges that meet other than as neighbours do, in a common end, or None."""
    scale = float(np.abs(np.concatenate([starts, ends])).max())
    for k in range(len(starts)):
        rest = np.arange(k + 1, len(starts))
        if not len(rest):
            break
        # neighbours share the end of one and the start of the other, which counts for no meeting
        before, after = (starts[rest] == ends[k]).all(axis=1), (ends[rest] == starts[k]).all(axis=1)
        own, others = (starts[k : k + 1], ends[k : k + 1]), (starts[rest], ends[rest])
        gaps = np.minimum.reduce([
            np.where(before, np.inf, segment_distances(starts[rest], *own)[:, 0]),
            np.where(after, np.inf, segment_distances(ends[rest], *own)[:, 0]),
            np.where(after, np.inf, segment_distances(own[0], *others)[0]),
            np.where(before, np.inf, segment_distances(own[1], *others)[0]),
        ])  # fmt: skip
        meet = (gaps <= 1e-12 * scale) | _proper(starts[k], ends[k], starts[rest], ends[rest])
        if meet.any():
            return k, int(rest[np.flatnonzero(meet)[0]])
    return None


def _proper(a: Array, b: Array, starts: Array, ends: Array) -> Array:
    """Whether the segment from a to b crosses segments in their inside."""

    def turn(p: Array, q: Array, r: Array) -> Array:
        one, other = q - p, r - p
        product: Array = one[..., 0] * other[..., 1] - one[..., 1] * other[..., 0]
        return product

    one = turn(a, b, starts) * turn(a, b, ends) < 0
    other = turn(starts, ends, a) * turn(starts, ends, b) < 0
    crossing: Array = one & other
    return crossing
