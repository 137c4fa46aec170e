"""Cut cells in space, the parts of boxes in a solid: rules for integrals over them, their flat sides and surface.

A smooth wall is a graph over two of the coordinates wherever its slope along the third does not vanish, and so are the
curves in which it meets the sides of a box. Boxes are halved until this holds; then lines along the third coordinate
cross each wall at most once, and the region under the graph is divided by curves into pieces over which the number of
crossings is constant (Saye, 2015). Every piece is the image of a square or a cube, smooth up to its sides, and has as
many Gauss nodes along each direction: in order, so that one coordinate of them depends on the first index only, a
second one on the first two.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial.legendre import leggauss

from rannpde.arrays import Array
from rannpde.domains.boundary.solids import tree_bounds, tree_leaves
from rannpde.domains.boundary.tracing import Wall
from rannpde.domains.domain import Box, Domain
from rannpde.domains.roots import bracketed_roots

WALL_GRID = 5
"""Along each coordinate, points at which the slopes of walls are looked at in a box."""
STEEP = 0.2
"""Least slope of a wall along the third coordinate, over its largest one, for a piece without halving: a larger one
makes more pieces, a smaller one pieces that need more nodes."""
DEPTH = 12
"""How often boxes are halved in search of such a coordinate: where walls touch, there is none."""
TURN_STEPS = 12
"""Bisections towards a point where a wall turns back along a line, near which its value changes in second order."""
WALL_SAMPLES = 1000
"""Points of a wall at which it is asked whether another solid holds them."""
SLIVER = 1e-12
"""Length of a piece, over that of its box, below which it is rounding."""


@dataclass(frozen=True, eq=False)
class SurfacePieces:
    """Pieces of a surface: points (B, q, 3), weights (B, q), unit normals (B, q, 3) that point out of the domain."""

    points: Array
    weights: Array
    normals: Array


@dataclass(frozen=True, eq=False)
class ClippedBox:
    """The part of a box in a domain: points (Q, 3) and weights (Q,) of pieces with n³ nodes each, and its walls.

    whole : whether nothing was cut away
    """

    points: Array
    weights: Array
    surface: SurfacePieces
    whole: bool


def smooth_walls_obstacle(domain: Domain) -> str:
    """Why a domain in space cannot be clipped; empty where it is a box, cut by solids with one smooth wall each that
    meet neither each other nor the sides of the box."""
    solids = [leaf.solid for leaf in tree_leaves(domain.tree)]
    curved = [solid for solid in solids if not isinstance(solid, Box)]
    if len(solids) - len(curved) > 1:
        return "the domain in space has edges of several boxes and curved walls"
    if any(len(solid.walls) != 1 for solid in curved):
        return "the domain in space has walls that are neither flat nor smooth all round"
    around = tree_bounds(domain.tree)
    reach = np.diff(around, axis=1)
    rng = np.random.default_rng(0)
    for one in curved:
        points = []
        for chart in one.charts(around + reach * (-1.0, 1.0)):
            unit = rng.uniform(size=(WALL_SAMPLES, 2))
            points.append(chart.place(rng.integers(chart.count, size=WALL_SAMPLES), unit))
        if not points:
            return "the domain in space has a wall without a chart"
        on_wall = np.concatenate(points)
        for other in solids:
            if other is not one and len(np.unique(other.level(on_wall) > 0)) > 1:
                return "walls of the domain in space meet in edges that are not straight"
    return ""


class SolidClipper:
    """Clips boxes by a domain in space whose walls are planes across the axes, at which boxes end, or smooth."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        solids = [leaf.solid for leaf in tree_leaves(domain.tree)]
        self.walls: list[Wall] = [wall for solid in solids if not isinstance(solid, Box) for wall in solid.walls]
        self.size = float(np.diff(np.asarray(domain.bounds, dtype=float), axis=1).max())

    @cached_property
    def _unit(self) -> Array:
        """Points (S³, 3) of a grid of [0, 1]³."""
        nodes = np.linspace(0.0, 1.0, WALL_GRID)
        return np.stack([axis.ravel() for axis in np.meshgrid(nodes, nodes, nodes, indexing="ij")], axis=1)

    def inside(self, points: Array) -> Array:
        """Which points (M, 3) lie in the domain."""
        return np.asarray(self.domain.level(points) < 0)

    def _near(self, wall: Wall, box: Array) -> Array | None:
        """Slopes (M, 3) of a wall beside it in a box (3, 2), which may be flat; None where it does not meet the box."""
        lengths = box[:, 1] - box[:, 0]
        value, slope = wall.both(box[:, 0] + lengths * self._unit)
        reach = 0.5 * float(np.linalg.norm(lengths)) / (WALL_GRID - 1)
        steepest = float(np.linalg.norm(slope, axis=1).max())
        apart = (value > 0).all() or (value < 0).all()
        distance = np.abs(value) / max(steepest, 1e-300)
        if apart and float(distance.min()) > 1.5 * reach:
            return None
        return np.asarray(slope[distance <= max(2 * reach, float(distance.min()))])

    def meets(self, box: Array) -> list[Wall]:
        """The walls that may meet a box (3, 2)."""
        return [wall for wall in self.walls if self._near(wall, box) is not None]

    def turning(self, box: Array) -> float:
        """About the angle by which the normals of a wall turn in a box (3, 2), the largest of all walls."""
        angles = [0.0]
        for wall in self.walls:
            slopes = self._near(wall, box)
            if slopes is not None:
                normals = slopes / np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), 1e-300)
                angles.append(float(np.arccos(np.clip(normals @ normals.T, -1.0, 1.0)).max()))
        return max(angles)

    def clip(self, box: Array, count: int) -> ClippedBox:
        """The part of a box (3, 2) in the domain, with ``count`` Gauss nodes along each direction of its pieces."""
        pieces, surfaces, whole = [], [], True
        for part in self._monotone(box, (0, 1, 2)):
            for volume, surface, complete in self._columns(*part, count):
                pieces += volume
                surfaces += surface
                whole &= complete
        q = count**2
        return ClippedBox(
            np.concatenate([np.empty((0, 3)), *(points for points, _ in pieces)]),
            np.concatenate([np.empty(0), *(weights for _, weights in pieces)]),
            SurfacePieces(
                np.array([one[0] for one in surfaces]).reshape(-1, q, 3),
                np.array([one[1] for one in surfaces]).reshape(-1, q),
                np.array([one[2] for one in surfaces]).reshape(-1, q, 3),
            ),
            whole,
        )  # fmt: skip

    def face(self, box: Array, axis: int, count: int, inward: float = 0.0) -> tuple[Array, Array, bool]:
        """Points (I, q, 3) and weights (I, q) of what is inside of a flat box (3, 2), and whether that is all of it.

        inward : step along the axis towards the inside, where the flat box lies in the boundary
        """
        pieces = list(self._squares([(wall, axis, float(box[axis, 0])) for wall in self.meets(box)], box, axis, count))
        step = np.zeros(3)
        step[axis] = inward
        middles = np.array([points[len(points) // 2] for points, _ in pieces]).reshape(-1, 3)
        taken = self.inside(middles + step)
        points = np.array([points for (points, _), mine in zip(pieces, taken, strict=True) if mine])
        weights = np.array([weights for (_, weights), mine in zip(pieces, taken, strict=True) if mine])
        return points.reshape(-1, count**2, 3), weights.reshape(-1, count**2), bool(taken.all())

    # ----------------------------------------------------------------------------------------------------- recursion

    def _monotone(self, box: Array, axes: Sequence[int], depth: int = DEPTH) -> Iterator[tuple[Array, int, list[Wall]]]:
        """Parts of a box with an axis along which no wall turns back in them, and the walls that meet them."""
        near = [(wall, slopes) for wall in self.walls if (slopes := self._near(wall, box)) is not None]
        axis = _graph_axis([slope for _, slope in near], axes)
        if axis is None and depth:
            for half in _halves(box, axes):
                yield from self._monotone(half, axes, depth - 1)
        else:
            yield box, axes[0] if axis is None else axis, [wall for wall, _ in near]

    def _columns(
        self, box: Array, axis: int, walls: Sequence[Wall], count: int
    ) -> Iterator[tuple[list[tuple[Array, Array]], list[tuple[Array, Array, Array]], bool]]:
        """Volume and surface of a box that walls cross at most once along an axis, by pieces of its base."""
        low, high = box[axis]
        nodes, shares = leggauss(count)
        flat = box.copy()
        flat[axis] = low
        ends = [(wall, axis, float(end)) for wall in walls for end in (low, high)]
        for base, weights in self._squares(ends, flat, axis, count):
            heights, crossed = [], []
            for wall in walls:
                crossings = _crossings(wall, base, axis, low, high)
                if crossings is not None:
                    heights.append(crossings)
                    crossed.append(wall)
            order = sorted(range(len(heights)), key=lambda k: float(heights[k].mean()))
            levels = [np.full(len(base), low), *(heights[k] for k in order), np.full(len(base), high)]
            middles = np.stack([base[len(base) // 2]] * (len(levels) - 1))
            middles[:, axis] = [0.5 * (a + b)[len(base) // 2] for a, b in itertools.pairwise(levels)]
            taken = self.inside(middles)
            volume, surface = [], []
            for bottom, top, mine in zip(levels[:-1], levels[1:], taken, strict=True):
                if mine and float((top - bottom).max()) > SLIVER * (high - low):
                    points = np.repeat(base, count, axis=0)
                    half = 0.5 * (top - bottom)
                    points[:, axis] = (0.5 * (top + bottom)[:, None] + half[:, None] * nodes).ravel()
                    volume.append((points, ((weights * half)[:, None] * shares).ravel()))
            for number, k in enumerate(order):
                if taken[number] != taken[number + 1]:
                    points = base.copy()
                    points[:, axis] = heights[k]
                    slope = crossed[k].both(points)[1]
                    length = np.linalg.norm(slope, axis=1)
                    upward = np.sign(slope[:, axis]) * (1.0 if taken[number] else -1.0)
                    surface.append(
                        (points, weights * length / np.abs(slope[:, axis]), slope * (upward / length)[:, None])
                    )
            yield volume, surface, bool(taken.all())

    def _squares(
        self, curves: Sequence[tuple[Wall, int, float]], box: Array, across: int, count: int, depth: int = DEPTH
    ) -> Iterator[tuple[Array, Array]]:
        """Points (q, 3) and weights (q,) of pieces of a flat box (3, 2) that no curve runs through.

        curves : walls, each where the coordinate ``across`` has a value
        """
        axes = [a for a in range(3) if a != across]
        near = []
        for wall, _, value in curves:
            placed = box.copy()
            placed[across] = value
            slopes = self._near(wall, placed)
            if slopes is not None:
                near.append((wall, value, slopes))
        axis = _graph_axis([slope for _, _, slope in near], axes)
        if axis is None and depth:
            rest = [(wall, across, value) for wall, value, _ in near]
            for half in _halves(box, axes):
                yield from self._squares(rest, half, across, count, depth - 1)
            return
        second = axes[0] if axis is None else axis
        first = next(a for a in axes if a != second)
        yield from _strips([(wall, value) for wall, value, _ in near], box, (across, first, second), count)


def _halves(box: Array, axes: Sequence[int]) -> tuple[Array, Array]:
    """A box halved across the longest of some axes."""
    longest = max(axes, key=lambda a: box[a, 1] - box[a, 0])
    lower, upper = box.copy(), box.copy()
    lower[longest, 1] = upper[longest, 0] = box[longest].mean()
    return lower, upper


def _graph_axis(slopes: Sequence[Array], axes: Sequence[int]) -> int | None:
    """The axis along which all functions with these slopes (M, 3) are steepest, if none turns back along it."""
    least = np.full(len(axes), np.inf)
    for slope in slopes:
        own = slope[:, list(axes)]
        size = float(np.linalg.norm(own, axis=1).max())
        one_way = (own > 0).all(axis=0) | (own < 0).all(axis=0)
        least = np.minimum(least, np.where(one_way, np.abs(own).min(axis=0) / max(size, 1e-300), 0.0))
    best = int(least.argmax())
    return axes[best] if least[best] >= STEEP else None


def _strips(
    near: Sequence[tuple[Wall, float]], box: Array, axes: tuple[int, int, int], count: int
) -> Iterator[tuple[Array, Array]]:
    """Pieces of a flat box between curves that are graphs over the second of its axes (across, first, second)."""
    across, first, second = axes
    nodes, shares = leggauss(count)
    ends = [float(box[first, 0]), float(box[first, 1])]
    for wall, value in near:
        for side in box[second]:
            ends += _line_roots(wall, {across: value, second: float(side)}, first, box[first])
    ends.sort()
    length = float(box[first, 1] - box[first, 0])
    for start, stop in itertools.pairwise(ends):
        if stop - start <= SLIVER * length:
            continue
        line = np.empty((count, 3))
        line[:, first] = 0.5 * (start + stop) + 0.5 * (stop - start) * nodes
        levels = [np.full(count, box[second, 0]), np.full(count, box[second, 1])]
        for wall, value in near:
            line[:, across] = value
            crossings = _crossings(wall, line, second, box[second, 0], box[second, 1])
            if crossings is not None:
                levels.append(crossings)
        levels.sort(key=lambda level: float(level.mean()))
        for bottom, top in itertools.pairwise(levels):
            half = 0.5 * (top - bottom)
            if float(half.max()) <= SLIVER * (box[second, 1] - box[second, 0]):
                continue
            points = np.empty((count, count, 3))
            points[:, :, across] = box[across, 0]
            points[:, :, first] = line[:, first, None]
            points[:, :, second] = 0.5 * (top + bottom)[:, None] + half[:, None] * nodes
            weights = 0.5 * (stop - start) * (shares * half)[:, None] * shares
            yield points.reshape(-1, 3), weights.ravel()


def _line_roots(wall: Wall, fixed: dict[int, float], axis: int, ends: Array) -> list[float]:
    """Where a wall meets a segment along an axis, its other coordinates fixed: between samples and turning points."""

    def both(coordinates: Array) -> tuple[Array, Array]:
        points = np.empty((len(coordinates), 3))
        for a, coordinate in fixed.items():
            points[:, a] = coordinate
        points[:, axis] = coordinates
        value, slope = wall.both(points)
        return value, slope[:, axis]

    samples = np.linspace(ends[0], ends[1], 2 * WALL_GRID)
    slopes = both(samples)[1]
    turns = np.flatnonzero(np.sign(slopes[:-1]) * np.sign(slopes[1:]) < 0)
    low, high = samples[turns], samples[turns + 1]
    rising = slopes[turns + 1] > 0
    for _ in range(TURN_STEPS if len(turns) else 0):
        middle = 0.5 * (low + high)
        right = (both(middle)[1] > 0) == rising
        low, high = np.where(right, low, middle), np.where(right, middle, high)
    samples = np.sort(np.concatenate([samples, 0.5 * (low + high)]))
    values = both(samples)[0]
    roots = []
    for k in np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0):
        start = np.empty((1, 3))
        for a, coordinate in fixed.items():
            start[:, a] = coordinate
        root = _crossings(wall, start, axis, samples[k], samples[k + 1])
        if root is not None:
            roots.append(float(root[0]))
    return roots


def _crossings(wall: Wall, base: Array, axis: int, low: float, high: float) -> Array | None:
    """Where lines along an axis from points (M, 3) cross a wall between two coordinates; None where they do not.

    All lines cross, or none does; lines that do not, by rounding, end at the nearer end.
    """
    points = base.copy()

    def both(heights: Array) -> tuple[Array, Array]:
        points[:, axis] = heights
        value, slope = wall.both(points)
        return value, slope[:, axis]

    below, above = np.full(len(base), low), np.full(len(base), high)
    bottom, top = both(below)[0], both(above)[0]
    crossing = np.sign(bottom) * np.sign(top) < 0
    if 2 * crossing.sum() <= len(base):
        return None
    rising = top > bottom
    heights = below + (above - below) * np.clip(bottom / np.where(bottom == top, 1.0, bottom - top), 0.0, 1.0)
    heights = bracketed_roots(both, below, above, heights, rising, SLIVER * (high - low))
    return np.where(crossing, heights, np.where((bottom < 0) == rising, high, low))
