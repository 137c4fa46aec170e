"""Regions as smooth images of unit cubes, on which integrals are refined where the integrand needs it.

A *patch* is the image of [0, 1]^k under a smooth map. Boxes are one patch; lines and arcs of a boundary are one each;
a set in the plane is cut into strips at the heights of its corners and horizontal tangents, each interval of a strip
being a patch whose corners are those of the set. Products with a time interval have one parameter more. Corners of a
region are corners of patches, so that halved panels grow towards singular points of a solution geometrically.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.arcs import Arcs
from rannpde.domains.boundary.planar import Planar
from rannpde.domains.quadrature.plane import arc_heights, shares_at_height, strip_levels
from rannpde.errors import InputError


@dataclass(frozen=True, eq=False)
class PlacedPoints:
    """Points (M, n) of patches, the density (M,) of the measure there, and outward normals (M, n) on sides."""

    points: Array
    density: Array
    normals: Array | None = None


class RegionPatches(ABC):
    """A region as the union of images of unit cubes."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of patches."""

    @property
    @abstractmethod
    def extent(self) -> int:
        """Number of parameters k."""

    @abstractmethod
    def place(self, patch: Array, unit: Array) -> PlacedPoints:
        """The points with parameters (M, k) in the patches of these numbers (M,)."""


@dataclass(frozen=True, eq=False)
class BoxPatches(RegionPatches):
    """The parallelepiped origin + Σ s_i edges_i: origin (n,), edges (k, n); a line where k is 1, a point where 0.

    normal : outward normal (n,) of a flat side
    """

    origin: Array
    edges: Array
    normal: Array | None = None

    @property
    def count(self) -> int:
        return 1

    @property
    def extent(self) -> int:
        return len(self.edges)

    def place(self, patch: Array, unit: Array) -> PlacedPoints:
        points = self.origin + unit @ self.edges
        if len(self.edges):  # exact at the far end, where sides are
            far = unit == 1.0
            for axis in np.flatnonzero(np.count_nonzero(self.edges, axis=0) == 1):
                row = int(np.flatnonzero(self.edges[:, axis])[0])
                points[far[:, row], axis] = self.origin[axis] + self.edges[row, axis]
        volume = np.sqrt(max(float(np.linalg.det(self.edges @ self.edges.T)), 0.0)) if len(self.edges) else 1.0
        normals = None if self.normal is None else np.broadcast_to(self.normal, points.shape)
        return PlacedPoints(points, np.full(len(points), volume), normals)


@dataclass(frozen=True, eq=False)
class ArcPatches(RegionPatches):
    """Arcs of a boundary in the plane, one patch each."""

    families: tuple[Arcs, ...]

    @property
    def count(self) -> int:
        return sum(len(arcs) for arcs in self.families)

    @property
    def extent(self) -> int:
        return 1

    def place(self, patch: Array, unit: Array) -> PlacedPoints:
        points, normals, density = np.empty((len(patch), 2)), np.empty((len(patch), 2)), np.empty(len(patch))
        first = 0
        for arcs in self.families:
            mine = np.flatnonzero((patch >= first) & (patch < first + len(arcs)))
            number, share = patch[mine] - first, unit[mine, 0]
            points[mine] = arcs.place(number, share)
            density[mine] = np.linalg.norm(arcs.slopes(number, share), axis=1)
            outward = arcs.normals(number, share)
            normals[mine] = outward / np.maximum(np.linalg.norm(outward, axis=1, keepdims=True), 1e-300)
            first += len(arcs)
        return PlacedPoints(points, density, normals)


@dataclass(frozen=True, eq=False)
class PlanarPatches(RegionPatches):
    """A set in the plane: its intervals in strips between the heights of corners and horizontal tangents.

    The first parameter is t of the height y = bottom + height t² (3 - 2t), which makes square roots at horizontal
    tangents smooth; the second runs from the left end of an interval to its right end.
    """

    planar: Planar

    @cached_property
    def _families(self) -> list[Arcs]:
        return self.planar.monotone(1)

    @cached_property
    def _table(self) -> Array:
        """Bottom, height, and family and number of the left and of the right arc, of every interval (P, 6)."""
        ends = [arc_heights(arcs) for arcs in self._families]
        levels = strip_levels(np.concatenate([heights for pair in ends for heights in pair]), self.planar.size)
        rows: list[tuple[float, ...]] = []
        for bottom, top in pairwise(levels.tolist()):
            middle = 0.5 * (bottom + top)
            meeting: list[tuple[float, int, int]] = []
            for family, (arcs, (low, high)) in enumerate(zip(self._families, ends, strict=True)):
                number = np.flatnonzero((low < middle) & (middle < high))
                if len(number):
                    share = shares_at_height(arcs, number, np.full(len(number), middle))
                    crossings = arcs.place(number, share)[:, 0]
                    meeting += [(x, family, int(k)) for x, k in zip(crossings.tolist(), number, strict=True)]
            meeting.sort()
            if len(meeting) % 2:
                raise InputError(f"the boundary does not close near the height {middle:.6g}; move the shapes apart")
            pairs = zip(meeting[::2], meeting[1::2], strict=True)
            rows += [(bottom, top - bottom, *left[1:], *right[1:]) for left, right in pairs]
        return np.array(rows)

    @property
    def count(self) -> int:
        return len(self._table)

    @property
    def extent(self) -> int:
        return 2

    def place(self, patch: Array, unit: Array) -> PlacedPoints:
        # nodes on one horizontal line follow each other: its crossings with the arcs are computed once
        t = unit[:, 0]
        new = np.concatenate([[True], (patch[1:] != patch[:-1]) | (t[1:] != t[:-1])])
        line = np.cumsum(new) - 1
        rows, s = self._table[patch[new]], t[new]
        heights = rows[:, 0] + rows[:, 1] * s**2 * (3 - 2 * s)
        left, right = (self._meet(rows[:, k], rows[:, k + 1], heights) for k in (2, 4))
        wide = np.maximum(right - left, 0.0)
        x = left[line] + wide[line] * unit[:, 1]
        density = (6 * rows[:, 1] * s * (1 - s) * wide)[line]
        return PlacedPoints(np.stack([x, heights[line]], axis=1), density)

    def _meet(self, family: Array, number: Array, heights: Array) -> Array:
        positions = np.empty(len(heights))
        for k, arcs in enumerate(self._families):
            mine = np.flatnonzero(family == k)
            if len(mine):
                which = number[mine].astype(int)
                positions[mine] = arcs.place(which, shares_at_height(arcs, which, heights[mine]))[:, 0]
        return positions


@dataclass(frozen=True, eq=False)
class TimedPatches(RegionPatches):
    """The patches of a region in space at one time, or times an interval of time, which is then the first parameter."""

    space: RegionPatches
    start: float
    end: float | None = None

    @property
    def count(self) -> int:
        return self.space.count

    @property
    def extent(self) -> int:
        return self.space.extent + (self.end is not None)

    def place(self, patch: Array, unit: Array) -> PlacedPoints:
        if self.end is None:
            samples, times, factor = self.space.place(patch, unit), np.full(len(unit), self.start), 1.0
        else:
            samples, factor = self.space.place(patch, unit[:, 1:]), self.end - self.start
            times = np.where(unit[:, 0] == 1.0, self.end, self.start + factor * unit[:, 0])
        points = np.column_stack([times, samples.points])
        normals = None if samples.normals is None else np.column_stack([0 * times, samples.normals])
        return PlacedPoints(points, factor * samples.density, normals)


@dataclass(frozen=True, eq=False)
class JoinedPatches(RegionPatches):
    """The patches of several regions with the same number of parameters, as one region."""

    parts: tuple[RegionPatches, ...]

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts)

    @property
    def extent(self) -> int:
        return self.parts[0].extent

    def place(self, patch: Array, unit: Array) -> PlacedPoints:
        parts: list[tuple[Array, PlacedPoints]] = []
        first = 0
        for part in self.parts:
            mine = np.flatnonzero((patch >= first) & (patch < first + part.count))
            if len(mine):
                parts.append((mine, part.place(patch[mine] - first, unit[mine])))
            first += part.count
        order = np.argsort(np.concatenate([mine for mine, _ in parts]), kind="stable")
        placed = [samples for _, samples in parts]
        normals = [samples.normals for samples in placed if samples.normals is not None]
        whole = np.concatenate(normals)[order] if len(normals) == len(placed) else None
        return PlacedPoints(
            np.concatenate([samples.points for samples in placed])[order],
            np.concatenate([samples.density for samples in placed])[order],
            whole,
        )


def joined_patches(parts: Sequence[RegionPatches]) -> RegionPatches:
    """The union of regions; a single one as it is."""
    return parts[0] if len(parts) == 1 else JoinedPatches(tuple(parts))
