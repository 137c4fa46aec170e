"""A domain filled with triangles or tetrahedra, for files and pictures; no solver works on them.

In the plane: a grid inside, points along the boundary with its corners, and their Delaunay triangles, the boundary
halved where they do not follow it. In space: a grid of cubes of six tetrahedra each; its points near the boundary are
moved on to it, tetrahedra that cross it are cut there, so that round shapes are smooth to O(h²). Neither meshio (which
reads and writes) nor trimesh (surfaces) fills a domain; mesh generators that do have licences that we cannot ship.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from scipy.spatial import Delaunay, cKDTree

from rannpde.arrays import Array, ArrayMap, combinations
from rannpde.domains.export.outline import outlines
from rannpde.domains.roots import bisected
from rannpde.domains.shapes.base import Domain
from rannpde.errors import require

BOUNDARY_HALVINGS = 8
"""Times at most that sub-arcs of the boundary are halved until triangles follow it."""
SNAP = 0.25
"""Points of a grid in space closer to the boundary than this share of a cell are moved on to it."""
FLAT_SIMPLEX = 1e-9
"""Size of a simplex, relative to that of a cell, below which it is left out."""


def filled(domain: Domain, resolution: int) -> tuple[Array, Array]:
    """Points (P, d) and simplices (S, d + 1), rows of points, of a domain in the plane or in space.

    resolution : cells along the longest side

    >>> from rannpde.domains import Ball, Box
    >>> points, triangles = filled(Box(x=(0, 1), y=(0, 1)) - Ball((0.5, 0.5), 0.2), 20)
    >>> round(float(volumes(points, triangles).sum()), 2)  # 1 - 0.04 π
    0.87
    """
    require(domain.dim in (2, 3), "the dimension of the domain", domain.dim, "2 or 3 to be filled with simplices")
    spacing = float((domain.bounds[:, 1] - domain.bounds[:, 0]).max()) / resolution
    return _triangles(domain, spacing) if domain.dim == 2 else _tetrahedra(domain, spacing)


def volumes(points: Array, simplices: Array) -> Array:
    """Areas or volumes (S,), positive for positively oriented simplices."""
    corners = points[simplices]
    edges = corners[:, 1:] - corners[:, :1]
    return np.linalg.det(edges) / (2 if points.shape[1] == 2 else 6)


# --------------------------------------------------------------------------------------------------- in the plane


def _triangles(domain: Domain, spacing: float) -> tuple[Array, Array]:
    loops = outlines(domain, spacing)
    grid = combinations([_ticks(lower, upper, spacing) for lower, upper in domain.bounds])
    rim = np.concatenate(loops)
    inner = grid[domain.level(grid) < 0]
    inner = inner[cKDTree(rim).query(inner)[0] > 0.6 * spacing]
    for _ in range(BOUNDARY_HALVINGS):
        rim = np.concatenate(loops)
        points = np.concatenate([rim, inner])
        triangles = Delaunay(points).simplices
        followed = _edges(triangles, len(points))
        halved = [
            _halved(loop, first, followed, len(points)) for loop, first in zip(loops, _firsts(loops), strict=True)
        ]
        if all(len(new) == len(old) for new, old in zip(halved, loops, strict=True)):
            break
        loops = halved
        crowded = cKDTree(np.concatenate(loops)).query(inner)[0] < 0.3 * spacing
        inner = inner[~crowded]
    triangles = _oriented(points, triangles)
    # where parts of a union meet, the level vanishes inside too
    inside = domain.level(points[triangles].mean(axis=1)) <= 1e-9 * spacing
    return _used(points, triangles[inside & (volumes(points, triangles) > FLAT_SIMPLEX * spacing**2)])


def _ticks(lower: float, upper: float, spacing: float) -> Array:
    return np.linspace(lower, upper, max(2, round((upper - lower) / spacing) + 1))


def _firsts(loops: list[Array]) -> Array:
    """The number of the first point of every loop, in the list of the points of all loops."""
    return np.cumsum([0, *(len(loop) for loop in loops[:-1])])


def _edges(triangles: Array, count: int) -> Array:
    """Every edge (a, b) with a < b as the number a · count + b, sorted."""
    pairs = np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1)
    return np.unique(pairs[:, 0].astype(np.int64) * count + pairs[:, 1])


def _halved(loop: Array, first: int, followed: Array, count: int) -> Array:
    """The loop with a point more in the middle of every sub-arc that is no edge of a triangle."""
    start = first + np.arange(len(loop))
    end = first + (np.arange(len(loop)) + 1) % len(loop)
    missing = ~np.isin(np.minimum(start, end).astype(np.int64) * count + np.maximum(start, end), followed)
    middle = 0.5 * (loop + np.roll(loop, -1, axis=0))
    return np.insert(loop, np.flatnonzero(missing) + 1, middle[missing], axis=0)


def _oriented(points: Array, simplices: Array) -> Array:
    """The simplices with two corners exchanged where their orientation is negative."""
    negative = volumes(points, simplices) < 0
    oriented = simplices.copy()
    oriented[negative, -2:] = simplices[negative, :-3:-1]
    return oriented


def _used(points: Array, simplices: Array) -> tuple[Array, Array]:
    """The points that simplices use, and these with the new numbers."""
    used, numbers = np.unique(simplices, return_inverse=True)
    return points[used], numbers.reshape(simplices.shape)


# ------------------------------------------------------------------------------------------------------- in space


def _tetrahedra(domain: Domain, spacing: float) -> tuple[Array, Array]:
    axes = [_ticks(lower, upper, spacing) for lower, upper in domain.bounds]
    cell = min(float(axis[1] - axis[0]) for axis in axes)
    points = combinations(axes)
    level = np.nan_to_num(domain.level(points), nan=np.inf)  # a formula may have no value far from its boundary
    points, level = _snapped(points, level, domain, cell)
    tetrahedra = _kuhn(tuple(len(axis) for axis in axes))
    signs = np.where(np.abs(level) <= 1e-9 * cell, 0, np.sign(level)).astype(int)
    least, most = signs[tetrahedra].min(axis=1), signs[tetrahedra].max(axis=1)
    flat = tetrahedra[(least == 0) & (most == 0)]  # all four on the boundary: inside or out is decided in the middle
    flat = flat[domain.level(points[flat].mean(axis=1)) < 0]
    points, cut = _cut(points, signs, tetrahedra[(least < 0) & (most > 0)], domain.level)
    every = _oriented(points, np.concatenate([tetrahedra[(least < 0) & (most <= 0)], flat, cut]))
    return _used(points, every[volumes(points, every) > FLAT_SIMPLEX * cell**3])


def _kuhn(shape: tuple[int, ...]) -> Array:
    """Kuhn's triangulation: six tetrahedra for each cube of a grid, which match on the faces of neighbouring cubes."""
    corner = combinations([np.arange(n - 1, dtype=float) for n in shape]).astype(np.int64)
    strides = np.array([shape[1] * shape[2], shape[2], 1])
    start = corner @ strides
    paths = [np.cumsum([0, *(strides[axis] for axis in order)]) for order in permutations(range(3))]
    return np.concatenate([start[:, None] + path for path in paths])


def _snapped(points: Array, level: Array, domain: Domain, cell: float) -> tuple[Array, Array]:
    """Points close to the boundary moved on to it: no sliver is cut off there. Those on faces of the box stay."""
    lower, upper = domain.bounds.T
    free = ((points > lower) & (points < upper)).all(axis=1)
    near = np.flatnonzero((np.abs(level) < SNAP * cell) & free)
    if not len(near):
        return points, level
    snapped, step = points[near], 1e-4 * cell
    for _ in range(4):
        units = np.eye(3)
        gradient = np.stack(
            [domain.level(snapped + step * e) - domain.level(snapped - step * e) for e in units], axis=1
        )
        gradient /= 2 * step
        square = np.maximum((gradient**2).sum(axis=1), 0.1)
        snapped = snapped - (domain.level(snapped) / square)[:, None] * gradient
    close = (np.linalg.norm(snapped - points[near], axis=1) <= 2 * SNAP * cell) & domain.contains(snapped)
    close &= np.abs(domain.level(snapped)) <= 1e-9 * cell
    moved, levels = points.copy(), level.copy()
    moved[near[close]], levels[near[close]] = snapped[close], 0.0
    return moved, levels


def _cut(points: Array, signs: Array, tetrahedra: Array, level: ArrayMap) -> tuple[Array, Array]:
    """The points with those where edges meet the boundary, and the inner parts of the tetrahedra that cross it."""
    pairs = np.array([(a, b) for a in range(4) for b in range(a + 1, 4)])
    edges = np.sort(tetrahedra[:, pairs].reshape(-1, 2), axis=1)
    edges = np.unique(edges[signs[edges[:, 0]] * signs[edges[:, 1]] < 0], axis=0)
    number = {(a, b): len(points) + k for k, (a, b) in enumerate(edges.tolist())}
    inner = np.where(signs[edges[:, 0]] < 0, edges[:, 0], edges[:, 1])
    outer = edges.sum(axis=1) - inner
    whole = np.concatenate([points, _roots(points[inner], points[outer], level)])
    pieces: list[tuple[int, ...]] = []
    for corners in tetrahedra.tolist():
        pieces += _inside(corners, signs, number)
    return whole, np.array(pieces, dtype=np.int64).reshape(-1, 4)


def _roots(inner: Array, outer: Array, level: ArrayMap) -> Array:
    """Where the boundary crosses segments from points inside to points outside, by bisection."""
    ends = np.zeros(len(inner)), np.ones(len(inner))
    low, _ = bisected(lambda share: level(inner + share[:, None] * (outer - inner)) <= 0, *ends)
    return inner + low[:, None] * (outer - inner)


def _inside(corners: list[int], signs: Array, number: dict[tuple[int, int], int]) -> list[tuple[int, ...]]:
    """The inner part of a tetrahedron, as tetrahedra. A face that two share is split alike, from the lower number."""
    inside = sorted(p for p in corners if signs[p] <= 0)
    strict = [p for p in inside if signs[p] < 0]
    on = [p for p in inside if signs[p] == 0]
    out = sorted(p for p in corners if signs[p] > 0)

    def at(a: int, b: int) -> int:
        return number[min(a, b), max(a, b)]

    if len(strict) == 1:
        return [(strict[0], *on, *(at(strict[0], p) for p in out))]
    if len(strict) == 2 and len(out) == 2:
        return _prism((strict[0], at(strict[0], out[0]), at(strict[0], out[1])),
                      (strict[1], at(strict[1], out[0]), at(strict[1], out[1])))  # fmt: skip
    if len(strict) == 3:
        return _prism(tuple(strict), tuple(at(p, out[0]) for p in strict))
    # two inside, one on the boundary, one outside: a pyramid over the face without the one on it
    (a, b), (c,), apex = strict, out, on[0]
    return [(apex, a, b, at(b, c)), (apex, a, at(b, c), at(a, c))]


def _prism(bottom: tuple[int, ...], top: tuple[int, ...]) -> list[tuple[int, ...]]:
    """A prism as three tetrahedra, diagonals from the lower corner of the earlier edge to the upper of the later."""
    (a, b, c), (d, e, f) = bottom, top
    return [(a, b, c, f), (a, b, e, f), (a, d, e, f)]
