"""Distances to triangles and winding numbers, by compiled walks through a tree of boxes around the triangles.

Not trimesh: its queries need the further package rtree, and it has no winding numbers, which close small gaps. 5,000
points to 20,480 triangles take 0.04 s.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import atan2, pi, sqrt

import numpy as np
from numba import njit

from rannpde.arrays import Array

LEAF_TRIANGLES = 4
"""Triangles in a leaf of the tree at most."""
FAR = 3.0
"""Radii beyond which triangles are seen as one dipole: winding numbers are then off by less than 0.05, of a half that
would matter."""
STACK_SIZE = 128
"""Boxes that may wait while a tree is walked through: twice the depth of the largest mesh that fits in memory."""


@dataclass(frozen=True, eq=False)
class Facets:
    """Triangles (F, 3, 3), sorted so that those of each node are consecutive, and the tree over them.

    numbers (F,) : numbers that the triangles had as they were given
    boxes (N, 6) : lower and upper corner of the nodes; spans (N, 2) : their first triangle and the one after the last
    ahead (N,) : the second child of a node (the first is the next node), 0 for a leaf
    dipoles (N, 7) : sum of area times normal, its middle, and the distance from that to the farthest corner

    >>> facets = Facets.of(np.array([[[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]]))
    >>> facets.nearest(np.array([[0.2, 0.2, 0.5], [2.0, 0, 0]]))[0].tolist()
    [0.5, 1.0]
    """

    triangles: Array
    numbers: Array
    boxes: Array
    spans: Array
    ahead: Array
    dipoles: Array

    @classmethod
    def of(cls, triangles: Array) -> Facets:
        middles = triangles.mean(axis=1)
        order = np.arange(len(triangles))
        spans: list[tuple[int, int]] = []
        ahead: list[int] = []
        stack = [(0, len(triangles), -1)]
        while stack:
            first, last, above = stack.pop()
            if above >= 0:
                ahead[above] = len(spans)
            number = len(spans)
            spans.append((first, last))
            ahead.append(0)
            if last - first > LEAF_TRIANGLES:
                mine = order[first:last]
                axis = int(np.argmax(np.ptp(middles[mine], axis=0)))
                half = (first + last) // 2
                order[first:last] = mine[np.argpartition(middles[mine, axis], half - first)]
                stack += [(half, last, number), (first, half, -1)]
        sorted_ones = np.ascontiguousarray(triangles[order], dtype=float)
        a, b, c = (sorted_ones[:, k] for k in range(3))
        normals = 0.5 * np.cross(b - a, c - a)
        areas = np.linalg.norm(normals, axis=1)
        boxes, dipoles = np.empty((len(spans), 6)), np.empty((len(spans), 7))
        for number, (first, last) in enumerate(spans):
            corners = sorted_ones[first:last].reshape(-1, 3)
            boxes[number] = np.concatenate([corners.min(axis=0), corners.max(axis=0)])
            weights = areas[first:last] + 1e-300
            middle = weights @ sorted_ones[first:last].mean(axis=1) / weights.sum()
            reach = float(np.sqrt(((corners - middle) ** 2).sum(axis=1).max()))
            dipoles[number] = np.concatenate([normals[first:last].sum(axis=0), middle, [reach]])
        return cls(sorted_ones, order, boxes, np.array(spans), np.array(ahead), dipoles)

    def nearest(self, points: Array) -> tuple[Array, Array]:
        """Distance (M,) of points (M, 3) to the nearest triangle, and its number (M,)."""
        rows = np.ascontiguousarray(points, dtype=float)
        square, row = _nearest(rows, self.triangles, self.boxes, self.spans, self.ahead)
        return np.sqrt(square), self.numbers[row]

    def winding(self, points: Array) -> Array:
        """How often a closed surface goes around points (M, 3), to a few hundredths: 1 inside, 0 outside."""
        rows = np.ascontiguousarray(points, dtype=float)
        return np.asarray(_winding(rows, self.triangles, self.spans, self.ahead, self.dipoles))


@njit(cache=True)
def _nearest(points, triangles, boxes, spans, ahead):  # type: ignore[no-untyped-def]
    best = np.empty(len(points))
    number = np.zeros(len(points), np.int64)
    stack, bound = np.empty(STACK_SIZE, np.int64), np.empty(STACK_SIZE)
    for m in range(len(points)):
        x, y, z = points[m, 0], points[m, 1], points[m, 2]
        least, size = np.inf, 1
        stack[0], bound[0] = 0, 0.0
        while size > 0:
            size -= 1
            if bound[size] >= least:
                continue
            node = stack[size]
            if ahead[node] == 0:
                for k in range(spans[node, 0], spans[node, 1]):
                    square = _square(x, y, z, triangles[k])
                    if square < least:
                        least = square
                        number[m] = k
                continue
            one, other = node + 1, ahead[node]
            near, far = _beyond(x, y, z, boxes[one]), _beyond(x, y, z, boxes[other])
            if near > far:
                one, other, near, far = other, one, far, near
            stack[size], bound[size] = other, far
            stack[size + 1], bound[size + 1] = one, near
            size += 2
        best[m] = least
    return best, number


@njit(cache=True)
def _beyond(x, y, z, box):  # type: ignore[no-untyped-def]
    """The squared distance of a point to a box."""
    a = max(box[0] - x, 0.0, x - box[3])
    b = max(box[1] - y, 0.0, y - box[4])
    c = max(box[2] - z, 0.0, z - box[5])
    return a * a + b * b + c * c


@njit(cache=True)
def _square(x, y, z, t):  # type: ignore[no-untyped-def]
    """The squared distance of a point to a triangle (Ericson, Real-Time Collision Detection, 5.1.5)."""
    px, py, pz = x - t[0, 0], y - t[0, 1], z - t[0, 2]  # from the first corner, like both edges
    bx, by, bz = t[1, 0] - t[0, 0], t[1, 1] - t[0, 1], t[1, 2] - t[0, 2]
    cx, cy, cz = t[2, 0] - t[0, 0], t[2, 1] - t[0, 1], t[2, 2] - t[0, 2]
    bb, bc, cc = bx * bx + by * by + bz * bz, bx * cx + by * cy + bz * cz, cx * cx + cy * cy + cz * cz
    d1, d2 = bx * px + by * py + bz * pz, cx * px + cy * py + cz * pz
    d3, d4, d5, d6 = d1 - bb, d2 - bc, d1 - bc, d2 - cc
    u, v = 0.0, 0.0  # the nearest point, along both edges
    vc, vb, va = d1 * d4 - d3 * d2, d5 * d2 - d1 * d6, d3 * d6 - d5 * d4
    if d1 <= 0 and d2 <= 0:
        pass
    elif d3 >= 0 and d4 <= d3:
        u = 1.0
    elif vc <= 0 and d1 >= 0 and d3 <= 0:
        u = d1 / (d1 - d3)
    elif d6 >= 0 and d5 <= d6:
        v = 1.0
    elif vb <= 0 and d2 >= 0 and d6 <= 0:
        v = d2 / (d2 - d6)
    elif va <= 0 and d4 - d3 >= 0 and d5 - d6 >= 0:
        v = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        u = 1.0 - v
    else:
        u, v = vb / (va + vb + vc), vc / (va + vb + vc)
    gx, gy, gz = px - u * bx - v * cx, py - u * by - v * cy, pz - u * bz - v * cz
    return gx * gx + gy * gy + gz * gz


@njit(cache=True)
def _winding(points, triangles, spans, ahead, dipoles):  # type: ignore[no-untyped-def]
    """Solid angles of near triangles, and dipoles for far ones (Barill et al., Fast winding numbers, 2018)."""
    numbers = np.empty(len(points))
    stack = np.empty(STACK_SIZE, np.int64)
    for m in range(len(points)):
        x, y, z = points[m, 0], points[m, 1], points[m, 2]
        total, size = 0.0, 1
        stack[0] = 0
        while size > 0:
            size -= 1
            node = stack[size]
            dipole = dipoles[node]
            dx, dy, dz = dipole[3] - x, dipole[4] - y, dipole[5] - z
            away = sqrt(dx * dx + dy * dy + dz * dz)
            if away > FAR * dipole[6]:
                total += (dipole[0] * dx + dipole[1] * dy + dipole[2] * dz) / away**3
            elif ahead[node] == 0:
                for k in range(spans[node, 0], spans[node, 1]):
                    total += _angle(x, y, z, triangles[k])
            else:
                stack[size], stack[size + 1] = ahead[node], node + 1
                size += 2
        numbers[m] = total / (4 * pi)
    return numbers


@njit(cache=True)
def _angle(x, y, z, t):  # type: ignore[no-untyped-def]
    """The solid angle under which a point sees a triangle, with its sign."""
    ax, ay, az = t[0, 0] - x, t[0, 1] - y, t[0, 2] - z
    bx, by, bz = t[1, 0] - x, t[1, 1] - y, t[1, 2] - z
    cx, cy, cz = t[2, 0] - x, t[2, 1] - y, t[2, 2] - z
    a, b, c = sqrt(ax * ax + ay * ay + az * az), sqrt(bx * bx + by * by + bz * bz), sqrt(cx * cx + cy * cy + cz * cz)
    volume = ax * (by * cz - bz * cy) - ay * (bx * cz - bz * cx) + az * (bx * cy - by * cx)
    ab, bc, ca = ax * bx + ay * by + az * bz, bx * cx + by * cy + bz * cz, cx * ax + cy * ay + cz * az
    return 2 * atan2(volume, a * b * c + ab * c + bc * a + ca * b)
