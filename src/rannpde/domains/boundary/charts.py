"""Charts: pieces of curves in the plane and of surfaces in space, φ: [0, 1]^(n-1) → R^n, with exact tangents.

A chart is a family of ``count`` pieces that bear one label. Its orientation is outward: in the plane the normal is the
tangent turned by -90°, in space the cross product of the two tangents.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import pi

import numpy as np

from rannpde.arrays import Array


class Chart(ABC):
    """A family of smooth pieces of a boundary.

    label : what the side is called within its shape; empty for the shape's only side
    """

    label: str

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of pieces K."""

    @abstractmethod
    def place(self, piece: Array, unit: Array) -> Array:
        """Points (M, n) of pieces (M,) at parameters (M, n-1)."""

    @abstractmethod
    def tangents(self, piece: Array, unit: Array) -> Array:
        """∂φ (M, n, n-1) there."""

    @abstractmethod
    def offset(self, points: Array) -> Array:
        """How far points (M, n) are from the chart's own curve or surface, (M,) ≥ 0; exact to first order near it."""

    @abstractmethod
    def outward(self, points: Array) -> Array:
        """Unit normals (M, n), outward of the shape, at points (M, n) on the chart."""

    def locate(self, points: Array) -> tuple[Array, Array]:
        """Piece (M,) and parameter (M,) of points of a curve, by the nearest of many and Newton's method."""
        steps = 64
        piece = np.repeat(np.arange(self.count), steps)
        unit = np.tile((np.arange(steps) + 0.5) / steps, self.count)
        known = self.place(piece, unit[:, None])
        nearest = np.array([int(np.argmin(((known - point) ** 2).sum(axis=1))) for point in points], dtype=int)
        piece, unit = piece[nearest], unit[nearest]
        for _ in range(12):
            gap = points - self.place(piece, unit[:, None])
            slope = self.tangents(piece, unit[:, None])[:, :, 0]
            unit = np.clip(unit + (gap * slope).sum(axis=1) / (slope**2).sum(axis=1), 0.0, 1.0)
        return piece, unit


def normals_of(tangents: Array) -> Array:
    """Normals (M, n) of tangents (M, n, n-1); their length is the density of the measure, |∂φ| or |∂_u φ × ∂_v φ|."""
    if tangents.shape[1] == 2:
        return np.stack([tangents[:, 1, 0], -tangents[:, 0, 0]], axis=1)
    return np.cross(tangents[:, :, 0], tangents[:, :, 1])


def density(chart: Chart, piece: Array, unit: Array) -> Array:
    """Length or area (M,) of the image per unit of the parameters."""
    return np.linalg.norm(normals_of(chart.tangents(piece, unit)), axis=1)


@dataclass(frozen=True, eq=False)
class Segments(Chart):
    """Straight pieces from starts (K, 2) to ends (K, 2), the shape on their left."""

    label: str
    starts: Array
    ends: Array

    @property
    def count(self) -> int:
        return len(self.starts)

    def place(self, piece: Array, unit: Array) -> Array:
        # both ends are met exactly, which keeps neighbours watertight
        return (1 - unit) * self.starts[piece] + unit * self.ends[piece]

    def tangents(self, piece: Array, unit: Array) -> Array:
        return (self.ends - self.starts)[piece][:, :, None]

    def offset(self, points: Array) -> Array:
        return segment_distances(points, self.starts, self.ends).min(axis=1)

    def locate(self, points: Array) -> tuple[Array, Array]:
        piece = segment_distances(points, self.starts, self.ends).argmin(axis=1)
        arrows = (self.ends - self.starts)[piece]
        along = ((points - self.starts[piece]) * arrows).sum(axis=1) / (arrows**2).sum(axis=1)
        return piece, np.clip(along, 0.0, 1.0)

    def outward(self, points: Array) -> Array:
        nearest = segment_distances(points, self.starts, self.ends).argmin(axis=1)
        arrows = (self.ends - self.starts)[nearest]
        return np.stack([arrows[:, 1], -arrows[:, 0]], axis=1) / np.linalg.norm(arrows, axis=1)[:, None]


def segment_distances(points: Array, starts: Array, ends: Array) -> Array:
    """Distances (M, K) of points (M, n) to segments."""
    arrows = ends - starts
    gaps = points[:, None, :] - starts
    along = np.clip((gaps * arrows).sum(axis=2) / (arrows**2).sum(axis=1), 0.0, 1.0)
    return np.linalg.norm(gaps - along[:, :, None] * arrows, axis=2)


@dataclass(frozen=True, eq=False)
class Conic(Chart):
    """The ellipse centre + matrix · (cos θ, sin θ) in four quarters; the matrix (2, 2) has a positive determinant."""

    label: str
    centre: Array
    matrix: Array

    @property
    def count(self) -> int:
        return 4

    def place(self, piece: Array, unit: Array) -> Array:
        angle = 0.5 * pi * (piece + unit[:, 0])
        return self.centre + np.stack([np.cos(angle), np.sin(angle)], axis=1) @ self.matrix.T

    def tangents(self, piece: Array, unit: Array) -> Array:
        angle = 0.5 * pi * (piece + unit[:, 0])
        return (0.5 * pi * np.stack([-np.sin(angle), np.cos(angle)], axis=1) @ self.matrix.T)[:, :, None]

    def offset(self, points: Array) -> Array:
        return _quadric_offset(points, self.centre, self.matrix)

    def outward(self, points: Array) -> Array:
        return _quadric_normals(points, self.centre, self.matrix)

    def locate(self, points: Array) -> tuple[Array, Array]:
        round_one = np.linalg.solve(self.matrix, (points - self.centre).T)
        quarters = np.mod(np.arctan2(round_one[1], round_one[0]) / (0.5 * pi), 4.0)
        piece = np.minimum(np.floor(quarters).astype(int), 3)
        return piece, quarters - piece


def _quadric_offset(points: Array, centre: Array, matrix: Array) -> Array:
    pulled = np.linalg.pinv(matrix)
    inner = (points - centre) @ pulled.T
    square = (inner**2).sum(axis=1)
    slope = np.linalg.norm(inner @ pulled, axis=1)
    return np.abs(square - 1) / (2 * np.maximum(slope, 1e-300))


def _quadric_normals(points: Array, centre: Array, matrix: Array) -> Array:
    pulled = np.linalg.pinv(matrix)
    arrows = (points - centre) @ pulled.T @ pulled
    return arrows / np.maximum(np.linalg.norm(arrows, axis=1, keepdims=True), 1e-300)


# ------------------------------------------------------------------------------------------------------ surfaces


@dataclass(frozen=True, eq=False)
class Parallelograms(Chart):
    """Flat pieces origin + u · first + v · second, each (K, 3)."""

    label: str
    origins: Array
    first: Array
    second: Array

    @property
    def count(self) -> int:
        return len(self.origins)

    def place(self, piece: Array, unit: Array) -> Array:
        return self.origins[piece] + unit[:, :1] * self.first[piece] + unit[:, 1:] * self.second[piece]

    def tangents(self, piece: Array, unit: Array) -> Array:
        return np.stack([self.first[piece], self.second[piece]], axis=2)

    def offset(self, points: Array) -> Array:
        normal = np.cross(self.first, self.second)
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        return np.abs(np.einsum("mkn,kn->mk", points[:, None, :] - self.origins, normal)).min(axis=1)

    def outward(self, points: Array) -> Array:
        normal = np.cross(self.first[0], self.second[0])
        return np.broadcast_to(normal / np.linalg.norm(normal), points.shape).copy()


_FACES = np.array(
    [
        [[s, 0, 0], [0, 1, 0] if s > 0 else [0, 0, 1], [0, 0, 1] if s > 0 else [0, 1, 0]]
        for s in (1, -1)
    ]
    + [
        [[0, s, 0], [0, 0, 1] if s > 0 else [1, 0, 0], [1, 0, 0] if s > 0 else [0, 0, 1]]
        for s in (1, -1)
    ]
    + [
        [[0, 0, s], [1, 0, 0] if s > 0 else [0, 1, 0], [0, 1, 0] if s > 0 else [1, 0, 0]]
        for s in (1, -1)
    ],
    dtype=float,
)  # fmt: skip
"""The six faces of the cube [-1, 1]³: middle and two directions whose cross product points outward."""


@dataclass(frozen=True, eq=False)
class Sphere(Chart):
    """The ellipsoid centre + matrix · w, |w| = 1, in six pieces: the faces of a cube blown up, smooth everywhere.

    A face has the parameters tan(π/4 · (2u - 1)), which spreads them almost evenly.
    """

    label: str
    centre: Array
    matrix: Array

    @property
    def count(self) -> int:
        return 6

    def _cube(self, piece: Array, unit: Array) -> tuple[Array, Array, Array]:
        turned = np.tan(0.25 * pi * (2 * unit - 1))
        faces = _FACES[piece]
        flat = faces[:, 0] + turned[:, :1] * faces[:, 1] + turned[:, 1:] * faces[:, 2]
        slopes = faces[:, 1:] * (0.5 * pi * (1 + turned**2))[:, :, None]
        return flat, slopes[:, 0], slopes[:, 1]

    def place(self, piece: Array, unit: Array) -> Array:
        flat = self._cube(piece, unit)[0]
        return self.centre + flat / np.linalg.norm(flat, axis=1, keepdims=True) @ self.matrix.T

    def tangents(self, piece: Array, unit: Array) -> Array:
        flat, *slopes = self._cube(piece, unit)
        length = np.linalg.norm(flat, axis=1, keepdims=True)
        columns = [
            (slope / length - flat * (flat * slope).sum(axis=1, keepdims=True) / length**3) @ self.matrix.T
            for slope in slopes
        ]
        return np.stack(columns, axis=2)

    def offset(self, points: Array) -> Array:
        return _quadric_offset(points, self.centre, self.matrix)

    def outward(self, points: Array) -> Array:
        return _quadric_normals(points, self.centre, self.matrix)


@dataclass(frozen=True, eq=False)
class Tube(Chart):
    """The round side of a cylinder, centre + radius (cos θ · first + sin θ · second) + v · axis, in four quarters.

    ``first``, ``second`` are unit vectors, ``axis`` spans the height; first, second, axis are right-handed.
    """

    label: str
    centre: Array
    radius: float
    first: Array
    second: Array
    axis: Array

    @property
    def count(self) -> int:
        return 4

    def place(self, piece: Array, unit: Array) -> Array:
        angle = 0.5 * pi * (piece + unit[:, 0])[:, None]
        around = self.radius * (np.cos(angle) * self.first + np.sin(angle) * self.second)
        return self.centre + around + unit[:, 1:] * self.axis

    def tangents(self, piece: Array, unit: Array) -> Array:
        angle = 0.5 * pi * (piece + unit[:, 0])[:, None]
        around = 0.5 * pi * self.radius * (-np.sin(angle) * self.first + np.cos(angle) * self.second)
        return np.stack([around, np.broadcast_to(self.axis, around.shape)], axis=2)

    def offset(self, points: Array) -> Array:
        return np.abs(np.linalg.norm(self._across(points), axis=1) - self.radius)

    def outward(self, points: Array) -> Array:
        across = self._across(points)
        return across / np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300)

    def _across(self, points: Array) -> Array:
        arrows = points - self.centre
        unit = self.axis / np.linalg.norm(self.axis)
        return arrows - (arrows @ unit)[:, None] * unit


@dataclass(frozen=True, eq=False)
class Disc(Chart):
    """A flat disc centre + u · radius (cos θ · first + sin θ · second), in four quarters; outward is first × second."""

    label: str
    centre: Array
    radius: float
    first: Array
    second: Array

    @property
    def count(self) -> int:
        return 4

    def place(self, piece: Array, unit: Array) -> Array:
        return self.centre + unit[:, :1] * self._rim(piece, unit)

    def tangents(self, piece: Array, unit: Array) -> Array:
        angle = 0.5 * pi * (piece + unit[:, 1])[:, None]
        around = 0.5 * pi * self.radius * (-np.sin(angle) * self.first + np.cos(angle) * self.second)
        return np.stack([self._rim(piece, unit), unit[:, :1] * around], axis=2)

    def _rim(self, piece: Array, unit: Array) -> Array:
        angle = 0.5 * pi * (piece + unit[:, 1])[:, None]
        return self.radius * (np.cos(angle) * self.first + np.sin(angle) * self.second)

    def offset(self, points: Array) -> Array:
        return np.abs((points - self.centre) @ np.cross(self.first, self.second))

    def outward(self, points: Array) -> Array:
        return np.broadcast_to(np.cross(self.first, self.second), points.shape).copy()
