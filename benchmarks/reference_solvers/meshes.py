"""Meshes of the cases for finite elements (NGSolve): curved along circles and spheres, refined to corners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.reference_solvers.extra import ng, occ, structured

BoxBounds = Sequence[Sequence[float]]
GRADING = 0.15
"""How much smaller elements get from one layer around a corner to the next; usual for functions of high order."""
SLOWER = 0.3
"""The same where layers, not only corners, are to be resolved."""


def plate(bounds: BoxBounds, discs: Sequence[Sequence[float]], spacing: float, order: int, near: float = 0.0) -> Any:
    """A rectangle without discs (x, y, radius), as a mesh with boundaries ``outside``, ``disc0``, ``disc1``, …

    near : spacing along discs over their radius; 0 leaves it to the mesher
    """
    (left, right), (low, high) = bounds
    shape = occ.MoveTo(left, low).Rectangle(right - left, high - low).Face()
    shape.edges.name = "outside"
    for number, (x, y, radius) in enumerate(discs):
        disc = occ.Circle((x, y), radius).Face()
        disc.edges.name = f"disc{number}"
        if near:
            disc.edges.maxh = near * radius
        shape = shape - disc
    shape.faces.name = "all"
    return plane(shape, spacing, order)


def cornered(bounds: BoxBounds, notch: BoxBounds, spacing: float, order: int, levels: int, outlet: bool = False) -> Any:
    """A rectangle without a smaller one, refined geometrically, so many times, to the corners of the latter.

    Boundaries are ``left``, ``right`` and ``wall``.
    outlet : also to those at the right end, where walls meet a side that prescribes no velocity
    """
    (left, right), (low, high) = bounds
    (a, b), (c, d) = notch
    shape = occ.MoveTo(left, low).Rectangle(right - left, high - low).Face()
    shape = shape - occ.MoveTo(a, c).Rectangle(b - a, d - c).Face()
    _name_ends(shape, left, right)
    for vertex in shape.vertices:
        if (left < vertex.p.x < right and low < vertex.p.y < high) or (outlet and vertex.p.x > right - 1e-9):
            vertex.hpref = 1
    return plane(shape, spacing, order, levels)


def channel(length: float, along: int, across: int, levels: int) -> Any:
    """(0, length) × (0, 1) in quadrilaterals, refined to the walls ``top`` and ``bottom``, to ``left`` and ``right``.

    Fluid that comes back through the right end makes a layer there, and its corners are singular.
    """
    x = _graded(length, along, (1, levels))
    y = _graded(1.0, across, (levels, levels))
    nodes = len(x) - 1, len(y) - 1
    return structured(
        quads=True, nx=nodes[0], ny=nodes[1], mapping=lambda s, t: (x[round(s * nodes[0])], y[round(t * nodes[1])])
    )


def _graded(length: float, count: int, levels: tuple[int, int]) -> list[float]:
    """0 to the length in equal parts; the first and the last are divided so many times towards the end."""
    part = length / count
    first, last = ([part * SLOWER**k for k in range(1, depth + 1)] for depth in levels)
    between = [part * k for k in range(1, count)]
    return [0.0, *reversed(first), *between, *(length - one for one in last), length]


def lidded(spacing: float, order: int, levels: int) -> Any:
    """The unit square, refined to all corners; boundaries are ``lid`` at the top and ``wall``."""
    shape = occ.MoveTo(0, 0).Rectangle(1, 1).Face()
    for edge in shape.edges:
        edge.name = "lid" if edge.center.y > 1 - 1e-9 else "wall"
    shape.vertices.hpref = 1
    return plane(shape, spacing, order, levels)


def chequered(half: float, count: int, spacing: float, order: int, levels: int) -> Any:
    """The square (-half, half)² in count × count blocks ``block00``, …, refined to their corners inside.

    Edges between blocks are boundaries to the mesher too: those of the square are called ``outside``.
    """
    side, faces = 2 * half / count, []
    for i in range(count):
        for j in range(count):
            face = occ.MoveTo(i * side - half, j * side - half).Rectangle(side, side).Face()
            face.faces.name = f"block{i}{j}"
            faces.append(face)
    shape = occ.Glue(faces)
    for edge in shape.edges:
        rim = max(abs(edge.center.x), abs(edge.center.y)) > half - 1e-9
        edge.name = "outside" if rim else "between"
    for vertex in shape.vertices:
        if max(abs(vertex.p.x), abs(vertex.p.y)) < half - 1e-9:
            vertex.hpref = 1
    return plane(shape, spacing, order, levels)


def cube(balls: Sequence[Sequence[float]], spacing: float, order: int) -> Any:
    """The unit cube without balls (x, y, z, radius), with a face at z = ½ between ``low`` and ``high``."""
    solids = []
    for lower, upper, name in ((0.0, 0.5, "low"), (0.5, 1.0, "high")):
        solid = occ.Box(occ.Pnt(0, 0, lower), occ.Pnt(1, 1, upper))
        for x, y, z, radius in balls:
            solid = solid - occ.Sphere(occ.Pnt(x, y, z), radius)
        solid.mat(name)
        solids.append(solid)
    mesh = ng.Mesh(occ.OCCGeometry(occ.Glue(solids)).GenerateMesh(maxh=spacing))
    mesh.Curve(order)
    return mesh


def _name_ends(shape: Any, left: float, right: float) -> None:
    for edge in shape.edges:
        at = edge.center.x
        edge.name = "left" if abs(at - left) < 1e-9 else "right" if abs(at - right) < 1e-9 else "wall"


def plane(shape: Any, spacing: float, order: int, levels: int = 0) -> Any:
    """The mesh of a shape in the plane, refined so many times to its marked corners."""
    mesh = ng.Mesh(occ.OCCGeometry(shape, dim=2).GenerateMesh(maxh=spacing))
    if levels:
        mesh.RefineHP(levels, factor=GRADING)
    mesh.Curve(order)
    return mesh
