"""Tracing where a smooth function vanishes: curves in the plane, surfaces in space, as analytic charts.

The zero set is first located on a grid that is refined where the function is small, cut into simplices (Kuhn's division
of a cube). Each piece of a line or triangle between points of the zero set is then a chart: the flat piece, moved along
directions interpolated between the gradients at its corners until the function vanishes. Neighbours share corners and
directions, so nothing gapes, and every point lies on the true curve: no polygon replaces it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.charts import Chart
from rannpde.domains.roots import bracketed_roots
from rannpde.errors import InputError
from rannpde.rounding import EPS

FINEST_TRACING_CELLS = {2: 128, 3: 24}
"""Cells, of equal sides, along the longest axis at the finest: what is smaller than one can be missed."""
COARSEST = {2: 16, 3: 6}
MOST_TURNING = 0.5
"""Most turning of the normal along one piece of a curve, in radians: Gauss rules converge fast on such pieces."""
NEWTON = 12
"""Steps at most: they begin at a chord, and double their digits each time."""
WARP = 0.25
"""Share of a cell within which a node of the grid is moved onto the zero set."""
CAUTION = 1.5
"""Factor by which a function may vary faster in a cell than it does at the cell's centre and corners."""


class Wall(ABC):
    """A smooth function, negative inside, whose zero set bounds a shape."""

    @abstractmethod
    def both(self, points: Array) -> tuple[Array, Array]:
        """Value (M,) and gradient (M, n)."""


def regularised(value: Array, gradient: Array, size: float) -> Array:
    """f / (|∇f|² + (f/size)²)^½: the distance to first order near the zero set, at most ``size`` elsewhere."""
    return value / np.maximum(np.sqrt((gradient**2).sum(axis=1) + (value / size) ** 2), 1e-300)


@dataclass(frozen=True, eq=False)
class Traced(Chart):
    """Simplices (K, n, n) with corners on the zero set of a wall, and unit directions (K, n, n) at the corners."""

    label: str
    wall: Wall
    corners: Array
    directions: Array

    @property
    def count(self) -> int:
        return len(self.corners)

    def place(self, piece: Array, unit: Array) -> Array:
        return self._solved(piece, unit)[0]

    def tangents(self, piece: Array, unit: Array) -> Array:
        points, height, direction = self._solved(piece, unit)
        gradient = self.wall.both(points)[1]
        facing = (gradient * direction).sum(axis=1)
        columns = []
        for slopes in _slopes(unit):
            flat = np.einsum("mc,mcn->mn", slopes, self.corners[piece])
            flat += height[:, None] * np.einsum("mc,mcn->mn", slopes, self.directions[piece])
            columns.append(flat - ((gradient * flat).sum(axis=1) / facing)[:, None] * direction)
        return np.stack(columns, axis=2)

    def _solved(self, piece: Array, unit: Array) -> tuple[Array, Array, Array]:
        """Points (M, n), how far they were moved (M,), and the directions (M, n)."""
        shares = _shares(unit)
        flat = np.einsum("mc,mcn->mn", shares, self.corners[piece])
        direction = np.einsum("mc,mcn->mn", shares, self.directions[piece])
        reach = np.linalg.norm(self.corners[piece, 0] - self.corners[piece, 1], axis=1) + 1e-300
        height = np.zeros(len(flat))
        for _ in range(NEWTON):
            value, gradient = self.wall.both(flat + height[:, None] * direction)
            step = value / (gradient * direction).sum(axis=1)
            step = np.clip(np.where(np.isfinite(step), step, 0.0), -reach, reach)
            height = height - step
            # what is left is about the square of the last step over the radius of curvature, no less than reach
            if (np.abs(step) <= 1e-9 * reach).all():
                break
        return flat + height[:, None] * direction, height, direction

    def offset(self, points: Array) -> Array:
        value, gradient = self.wall.both(points)
        return np.abs(value) / np.maximum(np.linalg.norm(gradient, axis=1), 1e-300)

    def outward(self, points: Array) -> Array:
        gradient = self.wall.both(points)[1]
        return gradient / np.maximum(np.linalg.norm(gradient, axis=1, keepdims=True), 1e-300)


def _shares(unit: Array) -> Array:
    """Barycentric coordinates: 1-u, u of a line; 1-u, u(1-v), uv of a triangle."""
    if unit.shape[1] == 1:
        return np.concatenate([1 - unit, unit], axis=1)
    u, v = unit.T
    return np.stack([1 - u, u * (1 - v), u * v], axis=1)


def _slopes(unit: Array) -> list[Array]:
    if unit.shape[1] == 1:
        return [np.concatenate([-np.ones_like(unit), np.ones_like(unit)], axis=1)]
    u, v = unit.T
    return [np.stack([-np.ones_like(u), 1 - v, v], axis=1), np.stack([np.zeros_like(u), -u, u], axis=1)]


def trace(wall: Wall, bounds: Array, label: str = "") -> Traced | None:
    """The zero set of a wall within bounds (n, 2), or None where there is none.

    The grid reaches a little beyond the bounds, by uneven amounts, so that no corner of it lies on a round number.
    """
    dim, widths = len(bounds), bounds[:, 1] - bounds[:, 0]
    lower = bounds[:, 0] - widths * (0.0137 + 0.0011 * np.arange(dim))
    upper = bounds[:, 1] + widths * (0.0171 + 0.0013 * np.arange(dim))
    cells, step = _near(wall, lower, upper)
    if not len(cells):
        return None
    simplices = _simplices(cells)
    nodes, inverse = np.unique(simplices.reshape(-1, dim), axis=0, return_inverse=True)
    vertices, values, moved = _warped(wall, lower + nodes * step, float(step.min()))
    if not np.isfinite(values).all():
        raise InputError(
            "the formula of an implicit shape is not finite near its boundary; correct it or choose within=…"
        )
    pieces = _pieces(inverse.reshape(-1, dim + 1), (values < 0) & ~moved)
    if not len(pieces):
        return None
    edges, number = np.unique(np.sort(pieces.reshape(-1, 2), axis=1), axis=0, return_inverse=True)
    # an edge with a moved node is cut in that node, so that all its edges share one corner
    known = np.where(moved[edges[:, 0]], edges[:, 0], np.where(moved[edges[:, 1]], edges[:, 1], -1))
    key = np.where(known >= 0, known, len(vertices) + np.arange(len(edges)))
    points = _crossings(wall, vertices[edges[:, 0]], vertices[edges[:, 1]])
    points[known >= 0] = vertices[known[known >= 0]]
    _, first, same = np.unique(key, return_index=True, return_inverse=True)
    points, number = points[first], same[number]
    gradient = wall.both(points)[1]
    length = np.linalg.norm(gradient, axis=1, keepdims=True)
    if not (length > 0).all():
        raise InputError(
            "the formula of an implicit shape has no slope somewhere on its boundary; a smooth one is needed"
        )
    normals = gradient / length
    corner = number.reshape(-1, dim)
    corner = corner[[len(set(row)) == dim for row in corner.tolist()]]
    if dim == 2:
        corner = _chained(corner, points, normals)
    corner = _oriented(corner, points, normals)
    return Traced(label, wall, points[corner], normals[corner])


def _warped(wall: Wall, vertices: Array, step: float) -> tuple[Array, Array, Array]:
    """Nodes (N, n), those close to the zero set moved onto it; values (N,) before, and which were moved.

    Without it there would be slivers, whose planes have nothing to do with the surface.
    """
    value, gradient = wall.both(vertices)
    slope = np.linalg.norm(gradient, axis=1)
    moved = np.abs(value) < WARP * step * slope
    target = vertices[moved]
    for _ in range(NEWTON):
        level, steep = wall.both(target)
        target = target - (level / np.maximum((steep**2).sum(axis=1), 1e-300))[:, None] * steep
    stayed = np.linalg.norm(target - vertices[moved], axis=1) < 2 * WARP * step
    rows = np.flatnonzero(moved)
    moved[rows[~stayed]] = False
    warped = vertices.copy()
    warped[rows[stayed]] = target[stayed]
    return warped, value, moved


def _near(wall: Wall, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Index (C, n) of the finest cells that may meet the zero set, and their size (n,)."""
    dim = len(lower)
    count = COARSEST[dim]
    along = np.maximum(np.ceil(count * (upper - lower) / (upper - lower).max()).astype(int), 2)
    grids = np.meshgrid(*(np.arange(number) for number in along), indexing="ij")
    cells = np.stack([grid.ravel() for grid in grids], axis=1)
    shifts = np.array(list(product((0, 1), repeat=dim)))
    while True:
        step = (upper - lower) / along
        value, gradient = wall.both(lower + (cells + 0.5) * step)
        steepest = np.linalg.norm(gradient, axis=1)
        for corner in shifts:
            steepest = np.maximum(steepest, np.linalg.norm(wall.both(lower + (cells + corner) * step)[1], axis=1))
        reach = CAUTION * 0.5 * float(np.linalg.norm(step))
        cells = cells[~(np.abs(value) > reach * steepest)]
        if count >= FINEST_TRACING_CELLS[dim] or not len(cells):
            return cells, step
        cells = (2 * cells[:, None, :] + shifts).reshape(-1, dim)
        count, along = 2 * count, 2 * along


def _simplices(cells: Array) -> Array:
    """Corners (S, n+1, n) of the n! simplices of each cell, by their position in the grid."""
    dim = cells.shape[1]
    paths = []
    for order in permutations(range(dim)):
        path = np.zeros((dim + 1, dim), dtype=int)
        for number, axis in enumerate(order, start=1):
            path[number:, axis] = 1
        paths.append(path)
    return (cells[:, None, None, :] + np.array(paths)).reshape(-1, dim + 1, dim)


def _pieces(simplices: Array, inside: Array) -> Array:
    """Lines (P, 2, 2) or triangles (P, 3, 2) of the zero set, each corner as the two nodes of the edge it lies on."""
    signs, dim = inside[simplices], simplices.shape[1] - 1
    pieces = []
    for pattern in product((False, True), repeat=dim + 1):
        low = [k for k, sign in enumerate(pattern) if sign]
        high = [k for k, sign in enumerate(pattern) if not sign]
        if not low or not high:
            continue
        chosen = simplices[(signs == pattern).all(axis=1)]
        if len(low) == 2 and dim == 3:  # a quadrilateral, as two triangles
            (a, b), (c, d) = low, high
            cuts = [[(a, c), (a, d), (b, d)], [(a, c), (b, d), (b, c)]]
        else:
            one, others = (low[0], high) if len(low) == 1 else (high[0], low)
            cuts = [[(one, other) for other in others]]
        pieces += [chosen[:, np.array(cut)] for cut in cuts]
    return np.concatenate(pieces)


def _crossings(wall: Wall, one: Array, other: Array) -> Array:
    """The zeros (E, n) on edges whose ends have different signs."""
    along = other - one

    def both(share: Array) -> tuple[Array, Array]:
        value, gradient = wall.both(one + share[:, None] * along)
        return value, (gradient * along).sum(axis=1)

    count, rising = len(one), wall.both(one)[0] < 0
    share = bracketed_roots(both, np.zeros(count), np.ones(count), np.full(count, 0.5), rising, EPS)
    return one + share[:, None] * along


def _oriented(corner: Array, points: Array, normals: Array) -> Array:
    """Pieces turned so that the gradient is outward of the chart."""
    if corner.shape[1] == 2:
        arrow = points[corner[:, 1]] - points[corner[:, 0]]
        facing = arrow[:, 1] * normals[corner[:, 0], 0] - arrow[:, 0] * normals[corner[:, 0], 1]
    else:
        first, second = (points[corner[:, k]] - points[corner[:, 0]] for k in (1, 2))
        facing = (np.cross(first, second) * normals[corner].sum(axis=1)).sum(axis=1)
    turned = corner.copy()
    turned[facing < 0, -2:] = corner[facing < 0][:, :-3:-1]
    return turned


def _chained(pieces: Array, points: Array, normals: Array) -> Array:
    """Lines joined end to end as long as the normal turns little: far fewer and longer pieces, (P, 2)."""
    neighbours: dict[int, list[int]] = {}
    for a, b in pieces.tolist():
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    chains: list[tuple[int, int]] = []
    ends = [node for node, other in neighbours.items() if len(other) != 2]
    seen: set[int] = set()
    for start in [*ends, *neighbours]:
        if start in seen:
            continue
        chain, before, node = [start], -1, start
        while True:
            seen.add(node)
            ahead = [other for other in neighbours[node] if other != before]
            if not ahead or (len(chain) > 1 and node == start):
                break
            before, node = node, ahead[0]
            chain.append(node)
            if node in seen:
                break
        chains += _merged(chain, points, normals)
    return np.array(chains).reshape(-1, 2)


def _merged(chain: list[int], points: Array, normals: Array) -> list[tuple[int, int]]:
    """(start, end) of sub-arcs of a chain over which all normals stay close to the first."""
    merged, first = [], 0
    for last in range(1, len(chain)):
        ahead = chain[min(last + 1, len(chain) - 1)]
        turned = float(normals[chain[first]] @ normals[ahead]) < np.cos(MOST_TURNING)
        if last == len(chain) - 1 or turned:
            # a sub-arc must not close on itself, which would have no direction
            if chain[first] != chain[last] and np.any(points[chain[first]] != points[chain[last]]):
                merged.append((chain[first], chain[last]))
            first = last
    return merged
