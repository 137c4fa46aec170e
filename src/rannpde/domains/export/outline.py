"""Outlines: the boundary of a domain in the plane, or of a plane section of one, as closed polygons for pictures."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import numpy as np
from scipy.spatial import cKDTree

from rannpde.arrays import Array
from rannpde.domains.boundary.arcs import Arcs
from rannpde.domains.boundary.planar import Planar
from rannpde.domains.shapes.base import Domain
from rannpde.errors import require

OUTLINE_POINTS = 400
"""Points along the diagonal of a domain, unless a spacing is given."""
ROUND = 12
"""Fewest sub-arcs of a curved arc, so that small holes look round too."""
SECTION = 300
"""Cells along each axis of a section on which its boundary is looked for."""


def outlines(domain: Domain, spacing: float | None = None) -> list[Array]:
    """Closed loops of points (M, 2) on the boundary of a domain in the plane, the domain on their left.

    Corners are points of a loop; the first point is not repeated at the end. ``spacing`` is the largest distance of
    neighbours along the boundary, a 400th of the diagonal unless given.

    >>> from rannpde.domains import Ball, Box
    >>> loops = outlines(Box(x=(0, 1), y=(0, 1)) - Ball((0.5, 0.5), 0.2))
    >>> sorted(round(enclosed(loop), 3) for loop in loops)
    [-0.126, 1.0]
    """
    require(domain.dim == 2, "the dimension of the domain", domain.dim, "2 for an outline")
    planar = Planar.of(domain.tree)
    step = planar.size / OUTLINE_POINTS if spacing is None else spacing
    pieces = []
    for labelled in planar.labelled_arcs:
        for number in range(len(labelled.arcs)):
            points = _polyline(labelled.arcs, number, step)
            pieces.append(points if labelled.arcs.sign[number] > 0 else points[::-1])
    return _joined(pieces)


def enclosed(loop: Array) -> float:
    """The area that a closed polygon (M, 2) encloses, > 0 counter-clockwise, < 0 clockwise."""
    x, y = loop.T
    return 0.5 * float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))


def _polyline(arcs: Arcs, number: int, step: float) -> Array:
    length = float(arcs.lengths[number])
    first, last = arcs.place(np.array([number, number]), np.array([0.0, 1.0]))
    bent = length > (1 + 1e-9) * float(np.linalg.norm(last - first))
    count = max(ceil(length / step), ROUND if bent else 1)
    share = arcs.along(np.full(count + 1, number), np.linspace(0.0, length, count + 1))
    share[[0, -1]] = 0.0, 1.0
    return arcs.place(np.full(count + 1, number), share)


def _joined(pieces: list[Array]) -> list[Array]:
    """Closed loops of polylines, each of which begins where the one before ends."""
    starts = cKDTree(np.array([piece[0] for piece in pieces]))
    follower = [int(starts.query(piece[-1])[1]) for piece in pieces]
    remaining, loops = set(range(len(pieces))), []
    while remaining:
        first = number = min(remaining)
        chain = []
        while number in remaining:
            remaining.remove(number)
            chain.append(pieces[number][:-1])
            number = follower[number]
        loops.append(np.concatenate(chain))
        require(number == first, "the boundary", "open", "closed")
    return loops


def section_outlines(domain: Domain, plane: tuple[int, int], point: Array) -> list[Array]:
    """Lines of points (M, 2) where the boundary meets the plane of two coordinates through a point (n,).

    Found on a grid and moved on to the boundary; they go around the section with it on their left.

    >>> from rannpde.domains import Ball
    >>> (line,) = section_outlines(Ball((0, 0, 0), 1), (0, 2), np.array([0.0, 0.6, 0.0]))
    >>> bool(np.allclose(np.linalg.norm(line, axis=1), 0.8))
    True
    """
    from contourpy import contour_generator

    bounds = domain.bounds[list(plane)]
    margin = 0.02 * (bounds[:, 1] - bounds[:, 0])
    across, up = (np.linspace(a - m, b + m, SECTION + 1) for (a, b), m in zip(bounds, margin, strict=True))

    def level(points: Array) -> Array:
        whole = np.tile(np.asarray(point, dtype=float), (len(points), 1))
        whole[:, list(plane)] = points
        return domain.level(whole)

    mesh = np.stack([grid.ravel() for grid in np.meshgrid(across, up)], axis=1)
    cell = float(min(across[1] - across[0], up[1] - up[0]))
    values = level(mesh).reshape(len(up), len(across))
    lines = contour_generator(across, up, -values).lines(0.0)
    return [_projected(np.asarray(line), level, cell) for line in lines]


def _projected(points: Array, level: Callable[[Array], Array], cell: float) -> Array:
    """Move points of a line on to the boundary by Newton's method; one that would move by more than a cell stays."""
    now, step = points, 1e-4 * cell
    for _ in range(4):
        value = level(now)
        slopes = [(level(now + step * unit) - level(now - step * unit)) / (2 * step) for unit in np.eye(2)]
        gradient = np.stack(slopes, axis=1)
        steep = np.maximum((gradient**2).sum(axis=1), 1e-2)
        now = now - (value / steep)[:, None] * gradient
    near = (np.linalg.norm(now - points, axis=1) <= cell) & (np.abs(level(now)) <= 1e-3 * cell)
    return np.where(near[:, None], now, points)
