"""Cells and joints of a domain: the leaves of a tree that meet it, and the parts of their common faces inside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq

from rannpde.arrays import Array
from rannpde.domains.domain import Box, Domain, SpaceTime
from rannpde.pde.cells.basis import Cell, Draw, gauss_grid, polynomials
from rannpde.pde.cells.tree import Face, Node, faces_of, touching

FINE = {1: 65, 2: 33, 3: 17}
"""Points per axis of the grid on which a box is looked at, by the number of its axes."""
BESIDE = 1e-7
"""A face lies inside a domain where points at this share of a cell's length to both sides of it do."""
FEWEST = 3
"""A leaf that holds fewer points of the domain has no cell of its own."""


@dataclass(frozen=True, eq=False)
class Joint:
    """What two cells share: points on a face, and polynomials on it that stand for the traces.

    sides : points (P, n) as the lower and as the upper cell sees them (they differ on periodic faces only)
    weights : (P,), sum 1; columns (P, t): orthonormal with these weights; length : of the cells across the face
    """

    cells: tuple[int, int]
    axis: int
    sides: tuple[Array, Array]
    weights: Array
    columns: Array
    length: float


@dataclass(frozen=True, eq=False)
class Mesh:
    """cells : by leaf, None where the leaf holds nothing of the domain; owners : node → the joints in its plane."""

    tree: Node
    cells: tuple[Cell | None, ...]
    joints: tuple[Joint, ...]
    owners: dict[Node, list[int]]

    @property
    def present(self) -> Iterator[tuple[int, Cell]]:
        """Number and cell of the leaves that have one."""
        return ((number, cell) for number, cell in enumerate(self.cells) if cell is not None)


class MeshBuilder:
    """Cells and joints of the leaves of a tree for one draw of functions."""

    def __init__(self, domain: Domain, draw: Draw) -> None:
        self.domain, self.draw = domain, draw
        self.plain = is_box(domain)
        self.thin = BESIDE * float(np.diff(domain.bounds, axis=1).min()) * 1e-3
        self.rims = [] if self.plain else [side.sample(RIM_POINTS, rng=0) for side in domain.sides.values()]

    def build(self, tree: Node, periodic: tuple[int, ...] = ()) -> Mesh:
        """periodic : axes whose two ends are joined."""
        cells = tuple(self._cell(leaf) for leaf in tree.leaves)
        joints: list[Joint] = []
        owners: dict[Node, list[int]] = {}
        for node, face, shift in _all_faces(tree, periodic):
            if all(cells[k] is not None for k in face.cells):
                inner = self.plain or all(cell is not None and cell.whole for cell in (cells[k] for k in face.cells))
                found = self._joints(face, shift, [tree.leaves[k] for k in face.cells], inner)
                owners.setdefault(node, []).extend(range(len(joints), len(joints) + len(found)))
                joints += found
        return Mesh(tree, cells, tuple(joints), owners)

    # ------------------------------------------------------------------------------------------------------ cells

    def _cell(self, leaf: Node) -> Cell | None:
        draw = self.draw
        if self.plain or self._whole(leaf.bounds):
            points = leaf.bounds.mean(axis=1) + 0.5 * leaf.lengths * draw.grid[0]
            return Cell(draw, leaf.bounds, points, draw.grid[1], draw.transform, True)
        bounds = self._shrunk(leaf.bounds)
        if bounds is None:
            return None
        wanted, count = draw.tuning.fill * draw.transform.shape[1], draw.nodes
        for _ in range(4):
            points, weights = gauss_grid(bounds, count)
            inside = self._holds(points)
            if (found := int(inside.sum())) >= wanted:
                break
            count = int(count * np.clip((wanted / max(1, found)) ** (1 / draw.dim), 1.2, 3.0))
        if found < FEWEST:
            return None
        points, weights = points[inside], weights[inside] / weights[inside].sum()
        scaled = (points - bounds.mean(axis=1)) / (0.5 * (bounds[:, 1] - bounds[:, 0]))
        return Cell(draw, bounds, points, weights, draw.orthonormal(scaled, weights), False)

    def _cut(self, bounds: Array) -> bool:
        """Whether a side of the domain runs through the inside of a box."""
        slack = 1e-9 * (bounds[:, 1] - bounds[:, 0])
        lower, upper = bounds[:, 0] + slack, bounds[:, 1] - slack
        return any(bool(((rim > lower) & (rim < upper)).all(axis=1).any()) for rim in self.rims)

    def _whole(self, bounds: Array) -> bool:
        """Whether a box lies in the closed domain."""
        return not self._cut(bounds) and bool(self.domain.contains(_fine_grid(bounds)).all())

    def _holds(self, points: Array) -> Array:
        """Which points lie inside the domain, not on its boundary."""
        return self.domain.level(points) < -self.thin

    def _shrunk(self, bounds: Array) -> Array | None:
        """The smallest box around what a box holds of the domain, to a step of a fine grid; None for nothing."""
        points = _fine_grid(bounds)
        found = [points[self._holds(points)], *(rim[_within(rim, bounds)] for rim in self.rims)]
        inside = np.concatenate(found)
        if not len(found[0]):
            return None
        step = (bounds[:, 1] - bounds[:, 0]) / (FINE[len(bounds)] - 1)
        lower, upper = inside.min(axis=0) - step, inside.max(axis=0) + step
        return np.stack([np.maximum(bounds[:, 0], lower), np.minimum(bounds[:, 1], upper)], axis=1)

    # ----------------------------------------------------------------------------------------------------- joints

    def _joints(self, face: Face, shift: float, leaves: list[Node], inner: bool) -> list[Joint]:
        """Usually one; where the boundary crosses a face in two dimensions, one for each part inside."""
        length = float(min(leaf.lengths[face.axis] for leaf in leaves))
        found = []
        for bounds in [face.bounds] if inner else self._parts(face, length):
            points, weights = gauss_grid(bounds, self.draw.nodes)
            if not inner:
                inside = self._between(points, face.axis, length)
                if not inside.any():
                    continue
                points, weights = points[inside], weights[inside] / weights[inside].sum()
            root = np.sqrt(weights)[:, None]
            columns, sizes, _ = np.linalg.svd(polynomials(points, bounds, self.draw.degree) * root, full_matrices=False)
            kept = sizes > self.draw.tuning.trace_cutoff * sizes[0]
            other = points.copy()
            other[:, face.axis] += shift
            found.append(Joint(face.cells, face.axis, (points, other), weights, columns[:, kept] / root, length))
        return found

    def _between(self, points: Array, axis: int, length: float) -> Array:
        """Which points of a face have the domain on both sides."""
        aside = np.zeros(points.shape[1])
        aside[axis] = BESIDE * length
        return self.domain.contains(points - aside) & self.domain.contains(points + aside)

    def _parts(self, face: Face, length: float) -> list[Array]:
        """Boxes of a face that hold what of it is inside the domain."""
        bounds = face.bounds
        free = np.flatnonzero(bounds[:, 0] < bounds[:, 1])
        if not len(free):
            return [bounds]
        points = _fine_grid(bounds)
        inside = self._between(points, face.axis, length)
        if len(free) > 1:
            if not inside.any():
                return []
            step = (bounds[:, 1] - bounds[:, 0]) / (FINE[len(free)] - 1)
            lower, upper = points[inside].min(axis=0) - step, points[inside].max(axis=0) + step
            return [np.stack([np.maximum(bounds[:, 0], lower), np.minimum(bounds[:, 1], upper)], axis=1)]
        axis = int(free[0])
        edges = np.flatnonzero(inside[1:] != inside[:-1])
        ends = [points[0, axis], *(self._edge(points[k], points[k + 1], face.axis, length)[axis] for k in edges)]
        ends.append(points[-1, axis])
        found = []
        for lower, upper in list(pairwise(ends))[0 if inside[0] else 1 :: 2]:
            part = bounds.copy()
            part[axis] = lower, upper
            found += [part] if upper > lower else []
        return found

    def _edge(self, one: Array, other: Array, axis: int, length: float) -> Array:
        """Where a segment leaves the domain: a root of the level, or by bisection where it runs along the boundary."""

        def level(share: float) -> float:
            return float(self.domain.level((one + share * (other - one))[None])[0])

        if level(0.0) * level(1.0) < 0:
            return one + brentq(level, 0.0, 1.0, xtol=1e-14) * (other - one)
        first = bool(self._between(one[None], axis, length)[0])
        for _ in range(50):
            middle = 0.5 * (one + other)
            if bool(self._between(middle[None], axis, length)[0]) == first:
                one = middle
            else:
                other = middle
        return one if first else other


RIM_POINTS = 2000
"""On every side of a domain that is not a box, to see which cells it cuts."""


def is_box(domain: Domain) -> bool:
    """Whether the domain fills its bounding box."""
    return isinstance(domain, Box) or (isinstance(domain, SpaceTime) and isinstance(domain.space, Box))


def _all_faces(tree: Node, periodic: tuple[int, ...]) -> Iterator[tuple[Node, Face, float]]:
    """Every face with the node in whose plane it lies and the shift to its other side; periodic ones are the root's."""
    stack = [(tree, 0)]
    while stack:
        node, first = stack.pop()
        if node.children is not None:
            lower, upper = node.children
            stack += [(lower, first), (upper, first + len(lower.leaves))]
            yield from ((node, face, 0.0) for face in faces_of(node, first))
    for axis in periodic:
        lowest, highest = tree.bounds[axis]
        below = [(k, leaf) for k, leaf in enumerate(tree.leaves) if leaf.bounds[axis, 1] == highest]
        above = [(k, leaf) for k, leaf in enumerate(tree.leaves) if leaf.bounds[axis, 0] == lowest]
        yield from ((tree, face, lowest - highest) for face in touching(below, above, axis))


def _fine_grid(bounds: Array) -> Array:
    """Points (M, n) of a grid that reaches to the ends of a box, which may be flat."""
    count = FINE[int((bounds[:, 0] < bounds[:, 1]).sum()) or 1]
    axes = [np.linspace(lower, upper, count if lower < upper else 1) for lower, upper in bounds]
    return np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")], axis=1)


def _within(points: Array, bounds: Array) -> Array:
    return np.asarray(((points >= bounds[:, 0]) & (points <= bounds[:, 1])).all(axis=1))
