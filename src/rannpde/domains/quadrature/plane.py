"""Gauss rules on sets in the plane with curved boundaries.

The set is cut into strips at the heights where its boundary has a corner or a horizontal tangent. Within a strip every
line across meets the same arcs, and the ends of its intervals inside are smooth functions of the height, but for
square roots at horizontal tangents, which the substitution y = a + (b - a) t² (3 - 2t) makes smooth.
"""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.arcs import Arcs
from rannpde.domains.boundary.planar import Planar
from rannpde.domains.region import composite_gauss
from rannpde.errors import InputError

MERGED = 1e-11
"""Heights closer than this, relative to the size, are one: strips that thin hold no area worth a point."""


def endpoint_grading(count: int, panels: int) -> tuple[Array, Array]:
    """Nodes and weights on [0, 1] of Gauss's rule in t, y = t² (3 - 2t): square roots at both ends become smooth.

    >>> nodes, weights = endpoint_grading(12, 1)
    >>> bool(abs(weights @ np.sqrt(nodes * (1 - nodes)) - np.pi / 8) < 1e-14)
    True
    """
    nodes, weights = composite_gauss(np.linspace(0.0, 1.0, panels + 1), count)
    return nodes**2 * (3 - 2 * nodes), 6 * weights * nodes * (1 - nodes)


def planar_rule(planar: Planar, count: int, panels: int = 1) -> tuple[Array, Array]:
    """Points (M, 2) inside and weights (M,) > 0, count × panels nodes across each strip and along each interval."""
    families = planar.monotone(1)
    lows, highs = zip(*(arc_heights(arcs) for arcs in families), strict=True)
    levels = strip_levels(np.concatenate([*lows, *highs]), planar.size)
    unit, shares = endpoint_grading(count, panels)
    bottom, height = levels[:-1], np.diff(levels)
    lines = bottom[:, None] + height[:, None] * unit  # (strips, nodes)
    strip, crossing = _crossings(families, lows, highs, levels, lines)
    across, across_weights = composite_gauss(np.linspace(0.0, 1.0, panels + 1), count)
    points, weights = [np.empty((0, 2))], [np.empty(0)]
    for k in range(len(height)):
        ends = np.sort(crossing[strip == k], axis=0)
        if len(ends) % 2:
            raise InputError(
                f"the boundary does not close near the height {lines[k].mean():.6g}; move the shapes apart"
            )
        for left, right in zip(ends[::2], ends[1::2], strict=True):
            wide = right - left
            x = left[:, None] + wide[:, None] * across
            y = np.broadcast_to(lines[k][:, None], x.shape)
            points.append(np.stack([x.ravel(), y.ravel()], axis=1))
            weights.append(((height[k] * shares * wide)[:, None] * across_weights).ravel())
    return np.concatenate(points), np.concatenate(weights)


def arc_heights(arcs: Arcs) -> tuple[Array, Array]:
    number, one = np.arange(len(arcs)), np.ones(len(arcs))
    start, end = arcs.place(number, 0 * one)[:, 1], arcs.place(number, one)[:, 1]
    return np.minimum(start, end), np.maximum(start, end)


def strip_levels(heights: Array, size: float) -> Array:
    levels = np.sort(heights)
    return levels[np.concatenate([[True], np.diff(levels) > MERGED * size])]


def _crossings(
    families: list[Arcs], lows: tuple[Array, ...], highs: tuple[Array, ...], levels: Array, lines: Array
) -> tuple[Array, Array]:
    """Strip (C,) and position x (C, nodes) of every arc that runs through a strip, at the strip's lines."""
    middle = 0.5 * (levels[1:] + levels[:-1])
    strips, crossings = [np.empty(0, dtype=int)], [np.empty((0, lines.shape[1]))]
    for arcs, low, high in zip(families, lows, highs, strict=True):
        number, strip = np.nonzero((low[:, None] < middle) & (middle < high[:, None]))
        if not len(number):
            continue
        wanted = lines[strip]
        nodes = wanted.shape[1]
        share = shares_at_height(arcs, np.repeat(number, nodes), wanted.ravel())
        crossings.append(arcs.place(np.repeat(number, nodes), share)[:, 0].reshape(-1, nodes))
        strips.append(strip)
    return np.concatenate(strips), np.concatenate(crossings)


def shares_at_height(arcs: Arcs, number: Array, height: Array) -> Array:
    """Shares (M,) at which monotone arcs reach given heights: Newton's method, with bisection where it leaves."""
    a, b = np.zeros(len(number)), np.ones(len(number))
    rising = arcs.place(number, b)[:, 1] > arcs.place(number, a)[:, 1]
    share = np.full(len(number), 0.5)
    live = np.arange(len(number))  # a few, where arcs are level, take many steps: the others do not wait for them
    for _ in range(60):
        now, home = share[live], number[live]
        gap = arcs.place(home, now)[:, 1] - height[live]
        above = (gap > 0) == rising[live]
        a[live], b[live] = np.where(above, a[live], now), np.where(above, now, b[live])
        slope = arcs.slopes(home, now)[:, 1]
        step = np.divide(gap, slope, out=np.full_like(gap, np.inf), where=slope != 0)
        better = now - step
        inside = (better >= a[live]) & (better <= b[live])
        share[live] = np.where(inside, better, 0.5 * (a[live] + b[live]))
        live = live[np.abs(share[live] - now) > 1e-13]  # the last of Newton's steps leaves an error of its square
        if not len(live):
            break
    return share
