"""Shapes from files of meshes: closed surfaces of triangles (.stl, .obj, .ply, .off), and gmsh's .msh.

The mesh is the shape: flat triangles and straight edges, taken exactly as they are. Physical groups of a .msh file give
the sides their names.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.charts import Chart
from rannpde.domains.boundary.tracing import Wall
from rannpde.domains.coordinates import checked_shape_name, coordinate_names
from rannpde.domains.shapes.base import Domain
from rannpde.domains.shapes.boxes import named
from rannpde.domains.shapes.distance import Facets
from rannpde.domains.shapes.polygon import Polygon, VertexLoop
from rannpde.domains.shapes.quadrics import Shape
from rannpde.errors import FileError, InputError, require

SURFACES = (".stl", ".obj", ".ply", ".off")
CELL_KINDS = {"vertex", "line", "triangle", "quad", "tetra"}
FACES_OF_TETRA = np.array([(1, 2, 3), (0, 3, 2), (0, 1, 3), (0, 2, 1)])


def mesh(path: str | Path, names: Sequence[str] | None = None, name: str | None = None) -> Domain:
    """The shape in a file: .stl, .obj, .ply, .off for closed surfaces, .msh for plates and solids made with gmsh.

    A plate of triangles or quadrangles in the plane z = 0 becomes a Polygon, a solid of tetrahedra or a closed surface
    a SurfaceMesh. The names of physical groups become those of sides. Needs the extra ``rannpde[geometry]``.
    """
    file = Path(path)
    if not file.is_file():
        raise FileError(f"{file} does not exist, or is no file")
    if file.suffix.lower() == ".msh":
        return _from_groups(file, names, name)
    known = (*SURFACES, ".msh")
    require(file.suffix.lower() in SURFACES, "path", str(path), f"a file of one of the kinds {', '.join(known)}")
    trimesh = library("trimesh")
    try:
        read = trimesh.load(file, force="mesh", process=True)
    except Exception as error:
        raise FileError(f"{file} cannot be read as a mesh: {error}") from None
    return surface_mesh(read.vertices, read.faces, None, names, name)


def library(module: str, purpose: str = "reading meshes") -> Any:
    """A module of the extra ``rannpde[geometry]``, or an InputError that names the extra."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(f"{purpose} needs {module}; pip install 'rannpde[geometry]'") from None


@dataclass(frozen=True, repr=False)
class SurfaceMesh(Shape):
    """The solid inside a closed surface of triangles: vertices (V, 3), faces (F, 3), one label for each face."""

    digest: str
    names: tuple[str, ...]
    name: str | None
    vertices: Array = field(compare=False)
    faces: Array = field(compare=False)
    labels: tuple[str, ...] | None = field(compare=False)
    kind: ClassVar[str] = "mesh"

    def __repr__(self) -> str:
        return f"SurfaceMesh({len(self.faces)} triangles, {self.digest[:16]}, names={self.names}{named(self.name)})"

    @cached_property
    def triangles(self) -> Array:
        """Corners (F, 3, 3)."""
        return np.ascontiguousarray(self.vertices[self.faces])

    @cached_property
    def facets(self) -> Facets:
        return Facets.of(self.triangles)

    @property
    def bounds(self) -> Array:
        return np.stack([self.vertices.min(axis=0), self.vertices.max(axis=0)], axis=1)

    @property
    def walls(self) -> tuple[Wall, ...]:
        return ()

    def _level(self, points: Array) -> Array:
        distance = self.facets.nearest(points)[0]
        return np.where(self.facets.winding(points) > 0.5, -distance, distance)

    def charts(self, clip: Array) -> tuple[Chart, ...]:
        labels = self.labels or ("",) * len(self.faces)
        groups: dict[str, list[int]] = {}
        for number, label in enumerate(labels):
            groups.setdefault(label, []).append(number)
        return tuple(Triangles(label, np.ascontiguousarray(self.triangles[rows])) for label, rows in groups.items())

    def with_names(self, names: Sequence[str]) -> SurfaceMesh:
        return SurfaceMesh(self.digest, tuple(names), self.name, self.vertices, self.faces, self.labels)


@dataclass(frozen=True, eq=False)
class Triangles(Chart):
    """Flat triangles (K, 3, 3) with parameters u, v at corner₀ (1-u) + corner₁ u(1-v) + corner₂ uv."""

    label: str
    corners: Array

    @cached_property
    def facets(self) -> Facets:
        return Facets.of(self.corners)

    @property
    def count(self) -> int:
        return len(self.corners)

    def place(self, piece: Array, unit: Array) -> Array:
        u, v = unit[:, :1], unit[:, 1:]
        a, b, c = (self.corners[piece, k] for k in range(3))
        return (1 - u) * a + u * (1 - v) * b + u * v * c

    def tangents(self, piece: Array, unit: Array) -> Array:
        u, v = unit[:, :1], unit[:, 1:]
        a, b, c = (self.corners[piece, k] for k in range(3))
        return np.stack([(1 - v) * b + v * c - a, u * (c - b)], axis=2)

    def offset(self, points: Array) -> Array:
        return self.facets.nearest(points)[0]

    def outward(self, points: Array) -> Array:
        nearest = self.facets.nearest(points)[1]
        a, b, c = (self.corners[nearest, k] for k in range(3))
        normals = np.cross(b - a, c - a)
        return normals / np.linalg.norm(normals, axis=1, keepdims=True)


def surface_mesh(
    vertices: Any, faces: Any, labels: Sequence[str] | None, names: Sequence[str] | None, name: str | None
) -> SurfaceMesh:
    """The solid inside triangles, refused unless every edge has two of them, which agree about outside."""
    points, corners = np.asarray(vertices, dtype=float), np.asarray(faces, dtype=np.int64)
    require(
        len(corners) >= 4 and bool(np.isfinite(points).all()), "the mesh", f"of {len(corners)} triangles", "a solid"
    )
    directed = Counter(
        map(tuple, np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]]).tolist())
    )
    open_ones = [edge for edge in directed if directed[edge[1], edge[0]] == 0]
    if open_ones:
        position = ", ".join(f"{value:.4g}" for value in points[list(open_ones[0])].mean(axis=0))
        raise InputError(
            f"the mesh is not closed: {len(open_ones)} edges have one triangle only, one near ({position})"
        )
    require(max(directed.values()) == 1, "the mesh", "a surface that meets itself along an edge", "a closed surface")
    a, b, c = (points[corners[:, k]] for k in range(3))
    volume = float((a * np.cross(b, c)).sum()) / 6
    require(volume != 0, "the mesh", "of volume 0", "a solid")
    if volume < 0:
        corners = corners[:, ::-1]
    digest = hashlib.sha256(points.tobytes() + corners.tobytes() + repr(labels).encode()).hexdigest()
    own = None if labels is None else tuple(labels)
    return SurfaceMesh(digest, coordinate_names(names, 3), checked_shape_name(name), points, corners.copy(), own)


# ------------------------------------------------------------------------------------------------------ .msh files


def _from_groups(file: Path, names: Sequence[str] | None, name: str | None) -> Domain:
    meshio = library("meshio")
    try:
        read = meshio.read(file)
    except (Exception, SystemExit) as error:  # meshio ends the program on formats that it does not know
        raise FileError(f"{file} cannot be read as a mesh: {error}") from None
    kinds = {block.type for block in read.cells}
    strange = kinds - CELL_KINDS
    require(
        not strange,
        "cells of the mesh",
        sorted(strange),
        f"of the kinds {', '.join(sorted(CELL_KINDS))}",
        "use order 1",
    )
    points = np.asarray(read.points, dtype=float)
    if "tetra" in kinds:
        cells = np.concatenate([block.data for block in read.cells if block.type == "tetra"])
        return _surface(points, _boundary_faces(cells), _groups(read, "triangle"), names, name)
    if not kinds & {"triangle", "quad"}:
        raise FileError(f"{file} holds no triangles, quadrangles or tetrahedra")
    if np.ptp(points[:, 2]) > 0 if points.shape[1] == 3 else False:
        faces = np.concatenate([block.data for block in read.cells if block.type == "triangle"])
        return _surface(points, faces, _groups(read, "triangle"), names, name)
    blocks = [block.data for block in read.cells if block.type in ("triangle", "quad")]
    return _plate(points[:, :2], blocks, _groups(read, "line"), names, name)


def _groups(read: Any, kind: str) -> dict[frozenset[int], str]:
    """The name of the physical group of lines or triangles, by their corners."""
    tags = {int(tag): label for label, (tag, _) in read.field_data.items()}
    names = {}
    for number, block in enumerate(read.cells):
        data = read.cell_data.get("gmsh:physical")
        if block.type == kind and data is not None:
            for cell, tag in zip(block.data.tolist(), np.asarray(data[number]).tolist(), strict=True):
                names[frozenset(cell)] = tags.get(int(tag), f"group{int(tag)}")
    return names


def _boundary_faces(cells: Array) -> Array:
    faces = cells[:, FACES_OF_TETRA].reshape(-1, 3)
    alone = Counter(frozenset(face) for face in faces.tolist())
    return np.array([face for face in faces.tolist() if alone[frozenset(face)] == 1])


def _surface(
    points: Array, faces: Array, groups: dict[frozenset[int], str], names: Sequence[str] | None, name: str | None
) -> SurfaceMesh:
    used, corners = np.unique(faces, return_inverse=True)
    labels = [groups.get(frozenset(face), "rest") for face in faces.tolist()] if groups else None
    return surface_mesh(points[used], corners.reshape(-1, 3), labels, names, name)


def _plate(
    points: Array,
    blocks: list[Array],
    groups: dict[frozenset[int], str],
    names: Sequence[str] | None,
    name: str | None,
) -> Polygon:
    """The outline of plane cells as a polygon, its edges named by groups of lines."""
    edges = np.concatenate([np.stack([block, np.roll(block, -1, axis=1)], axis=2).reshape(-1, 2) for block in blocks])
    alone = Counter(frozenset(edge) for edge in edges.tolist())
    ahead: dict[int, int] = {}
    for start, end in _counter_clockwise(points, blocks):
        if alone[frozenset((start, end))] == 1:
            require(start not in ahead, "the mesh", "a plate that touches itself in a point", "one connected plate")
            ahead[start] = end
    loops: list[list[int]] = []
    left = dict(ahead)
    while left:
        first, node = left.popitem()
        loop = [first]
        while node != first:
            loop.append(node)
            require(node in left, "the mesh", "a plate whose outline does not close", "one connected plate")
            node = left.pop(node)
        loops.append(loop)
    loops.sort(key=lambda loop: -abs(_signed_area(points[loop])))
    labels = [
        groups.get(frozenset(pair), "rest") for loop in loops for pair in zip(loop, [*loop[1:], loop[0]], strict=True)
    ]
    rings: list[VertexLoop] = [tuple((float(x), float(y)) for x, y in points[loop]) for loop in loops]
    return Polygon(rings[0], rings[1:], names=names, name=name, edges=labels if groups else None)


def _counter_clockwise(points: Array, blocks: list[Array]) -> list[tuple[int, int]]:
    """All edges of all cells, each cell on the left of its own."""
    edges = []
    for cell in (cell for block in blocks for cell in block.tolist()):
        turned = cell if _signed_area(points[cell]) > 0 else cell[::-1]
        edges += list(zip(turned, [*turned[1:], turned[0]], strict=True))
    return edges


def _signed_area(loop: Array) -> float:
    x, y = loop.T
    return 0.5 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))
