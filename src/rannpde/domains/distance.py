"""Distances to triangles and winding numbers, by compiled loops over all pairs of points and triangles."""

from __future__ import annotations

from math import atan2, pi, sqrt

import numpy as np
from numba import njit

from rannpde.arrays import Array


def nearest_triangles(points: Array, triangles: Array) -> tuple[Array, Array]:
    """Distance (M,) to the nearest of triangles (F, 3, 3), and its number (M,).

    >>> triangle = np.array([[[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]])
    >>> nearest_triangles(np.array([[0.2, 0.2, 0.5], [2.0, 0, 0]]), triangle)[0].tolist()
    [0.5, 1.0]
    """
    distance, number = _nearest(np.asarray(points, dtype=float), triangles)
    return distance, number


def winding_numbers(points: Array, triangles: Array) -> Array:
    """How often a closed surface goes around points (M, 3): 1 inside, 0 outside, by solid angles."""
    return _winding(np.asarray(points, dtype=float), triangles)


@njit(cache=True)
def _nearest(points, triangles):  # type: ignore[no-untyped-def]
    best = np.empty(len(points))
    number = np.zeros(len(points), np.int64)
    for m in range(len(points)):
        least = np.inf
        for k in range(len(triangles)):
            square = _square(points[m], triangles[k, 0], triangles[k, 1], triangles[k, 2])
            if square < least:
                least = square
                number[m] = k
        best[m] = sqrt(least)
    return best, number


@njit(cache=True)
def _square(p, a, b, c):  # type: ignore[no-untyped-def]
    """The squared distance of a point to a triangle (Ericson, Real-Time Collision Detection, 5.1.5)."""
    ab, ac, ap = b - a, c - a, p - a
    d1, d2 = (ab * ap).sum(), (ac * ap).sum()
    if d1 <= 0 and d2 <= 0:
        return (ap * ap).sum()
    bp = p - b
    d3, d4 = (ab * bp).sum(), (ac * bp).sum()
    if d3 >= 0 and d4 <= d3:
        return (bp * bp).sum()
    vc = d1 * d4 - d3 * d2
    if vc <= 0 and d1 >= 0 and d3 <= 0:
        gap = ap - d1 / (d1 - d3) * ab
        return (gap * gap).sum()
    cp = p - c
    d5, d6 = (ab * cp).sum(), (ac * cp).sum()
    if d6 >= 0 and d5 <= d6:
        return (cp * cp).sum()
    vb = d5 * d2 - d1 * d6
    if vb <= 0 and d2 >= 0 and d6 <= 0:
        gap = ap - d2 / (d2 - d6) * ac
        return (gap * gap).sum()
    va = d3 * d6 - d5 * d4
    if va <= 0 and d4 - d3 >= 0 and d5 - d6 >= 0:
        gap = bp - (d4 - d3) / ((d4 - d3) + (d5 - d6)) * (c - b)
        return (gap * gap).sum()
    gap = ap - vb / (va + vb + vc) * ab - vc / (va + vb + vc) * ac
    return (gap * gap).sum()


@njit(cache=True)
def _winding(points, triangles):  # type: ignore[no-untyped-def]
    found = np.empty(len(points))
    for m in range(len(points)):
        total = 0.0
        for k in range(len(triangles)):
            a, b, c = triangles[k, 0] - points[m], triangles[k, 1] - points[m], triangles[k, 2] - points[m]
            la, lb, lc = sqrt((a * a).sum()), sqrt((b * b).sum()), sqrt((c * c).sum())
            volume = (
                a[0] * (b[1] * c[2] - b[2] * c[1])
                - a[1] * (b[0] * c[2] - b[2] * c[0])
                + a[2] * (b[0] * c[1] - b[1] * c[0])
            )
            below = la * lb * lc + (a * b).sum() * lc + (b * c).sum() * la + (c * a).sum() * lb
            total += 2 * atan2(volume, below)
        found[m] = total / (4 * pi)
    return found
