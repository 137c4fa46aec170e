"""Re-entrant edges of solids, where a domain opens by more than π and solutions are like r^(π/ω), λ < 1.

Two pieces of the boundary that meet in such an edge lie in front of each other: seen from one, the other is on the side
that its outward normal points to. Pairs of points of the boundary show candidates; planes through both, laid ever
nearer to where they meet, find the edge itself, and a smooth hollow shows by normals that become one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi

import numpy as np

from rannpde.arrays import Array, ArrayMap

SHARP_EDGE_COSINE = cos(pi / 6)
"""Cosine of the least angle between normals: round flatter edges solutions are nearly smooth (λ > 6/7)."""
PAIR_SPACINGS = 3.0
"""Pairs are searched within this multiple of the spacing of the points."""
PLANE_UPDATES, NEARER = 2, 0.1
"""How often planes are laid anew, each time at this share of the distance before."""
ON, CREASE_STEP = 1e-5, 1e-8
"""An edge is on the boundary up to this share of the size; step of difference quotients, likewise."""


@dataclass(frozen=True, eq=False)
class Creases:
    """Points (K, 3) of re-entrant edges, the directions (K, 3) of the edges there, and the largest opening."""

    points: Array
    directions: Array
    angle: float

    def __len__(self) -> int:
        return len(self.points)


NONE = Creases(np.empty((0, 3)), np.empty((0, 3)), 0.0)


def reentrant_creases(level: ArrayMap, points: Array, normals: Array, size: float) -> Creases:
    """Creases of the solid level < 0 from points (M, 3) of its boundary and the outward normals there.

    size : size of the solid, to which rounding is relative
    """
    from scipy.spatial import cKDTree

    tree = cKDTree(points)
    reach = PAIR_SPACINGS * float(np.median(tree.query(points, 2)[0][:, 1]))
    first, second = tree.query_pairs(reach, output_type="ndarray").T
    gap = points[second] - points[first]
    cosine = (normals[first] * normals[second]).sum(axis=1)
    facing = ((gap * normals[first]).sum(axis=1) > ON * size) & ((gap * normals[second]).sum(axis=1) < -ON * size)
    chosen = (
        facing & (cosine < SHARP_EDGE_COSINE) & (cosine > -SHARP_EDGE_COSINE)
    )  # parallel walls of a slit meet nowhere
    if not chosen.any():
        return NONE
    first, second = first[chosen], second[chosen]
    sides = [(points[one], normals[one], (points[one] * normals[one]).sum(axis=1)) for one in (first, second)]
    edge = _meeting(0.5 * (points[first] + points[second]), sides)
    distance = 1.0
    for _ in range(PLANE_UPDATES):
        distance *= NEARER
        sides = [_plane(level, edge + distance * (points[one] - edge), size) for one in (first, second)]
        edge, last = _meeting(edge, sides), edge
    (_, one, _), (_, other, _) = sides
    cosine = (one * other).sum(axis=1)
    sharp = (cosine < SHARP_EDGE_COSINE) & (np.abs(level(edge)) < ON * size)
    sharp &= np.linalg.norm(edge - last, axis=1) < distance * reach  # the planes were laid beside it
    _, distinct = np.unique(np.round(edge[sharp] / (0.5 * reach)), axis=0, return_index=True)
    if not len(distinct):
        return NONE
    edge, directions = edge[sharp][distinct], np.cross(one[sharp][distinct], other[sharp][distinct])
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    steps = 0.5 * reach * np.array([-1.0, -0.5, 0.0, 0.5, 1.0])[:, None, None] * directions
    along = (edge + steps).reshape(-1, 3)
    on = np.abs(level(along)) < ON * size  # an edge may end here, or be curved
    ends, ways = _vertices(edge, directions, cKDTree(edge).query_pairs(2 * reach, output_type="ndarray"), ON * size)
    points_and_directions = np.concatenate([along[on], ends]), np.concatenate([np.tile(directions, (5, 1))[on], ways])
    return Creases(*points_and_directions, pi + float(np.arccos(cosine[sharp].min())))


def _vertices(points: Array, directions: Array, pairs: Array, slack: float) -> tuple[Array, Array]:
    """Where lines of two of these points meet, once with each direction."""
    one, other = pairs[np.abs((directions[pairs[:, 0]] * directions[pairs[:, 1]]).sum(axis=1)) < SHARP_EDGE_COSINE].T
    across = np.cross(directions[one], directions[other])
    lengths = np.linalg.norm(across, axis=1)
    gap = points[other] - points[one]
    meet = np.abs((gap * across).sum(axis=1)) < slack * lengths
    one, other, gap, across, lengths = one[meet], other[meet], gap[meet], across[meet], lengths[meet]
    ahead = (np.cross(gap, directions[other]) * across).sum(axis=1) / lengths**2
    crossings = points[one] + ahead[:, None] * directions[one]
    return np.concatenate([crossings, crossings]), np.concatenate([directions[one], directions[other]])


def _plane(level: ArrayMap, points: Array, size: float) -> tuple[Array, Array, Array]:
    """Planes level = 0 linearised at points (M, 3): the points, unit normals n and offsets c of n·x = c."""
    step = CREASE_STEP * size * np.eye(len(points[0]))
    slopes = np.stack([level(points + one) - level(points - one) for one in step], axis=1) / (2 * CREASE_STEP * size)
    lengths = np.maximum(np.linalg.norm(slopes, axis=1), 1e-300)
    normals = slopes / lengths[:, None]
    return points, normals, (normals * points).sum(axis=1) - level(points) / lengths


def _meeting(near: Array, sides: list[tuple[Array, Array, Array]]) -> Array:
    """The nearest points (M, 3) of the lines in which two planes meet; ``near`` itself where they are parallel."""
    normals = np.stack([side[1] for side in sides], axis=1)
    misses = np.stack([side[2] for side in sides], axis=1) - (normals @ near[:, :, None])[:, :, 0]
    gram = normals @ normals.transpose(0, 2, 1)
    parallel = np.abs(gram[:, 0, 1]) > 1 - 1e-9
    gram[parallel] = np.eye(2)
    shift = np.linalg.solve(gram, misses[:, :, None])
    nearest: Array = near + (normals.transpose(0, 2, 1) @ shift)[:, :, 0] * ~parallel[:, None]
    return nearest
