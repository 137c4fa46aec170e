"""Whether an expression is infinite at a point: near corners derivatives grow like r^-α, whatever a network says."""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.outputs.comparison import SolutionPair
from rannpde.pde.problem.output_expression import OutputExpression
from rannpde.pde.tolerance import GAIN

OCTAVES = range(4, 14)
"""Halvings of the size of the domain, at whose distances from a point an expression is compared."""
RING_POINTS = 64
KNOWN_RINGS = 4
"""Rings at least on which two solutions must agree before their growth is taken for a singularity."""
LEAST_GROWTH = 0.04
"""The least exponent α: corners that open by 10° beyond π have 0.05. Logarithms look smaller at small radii."""


def singular_growth(pair: SolutionPair, expression: OutputExpression, point: Array, sign: float | None = None) -> float:
    """The exponent α > 0 of r^-α by which an expression grows towards a point (n,); 0 where it is bounded.

    sign : sign of the growth that counts, for the largest (1) or smallest (-1) value; None for the absolute value
    """
    domain = pair.solution.stated.domain
    if pair.companion is None or not expression.order or expression.anchors or expression.uses_normals:
        return 0.0
    lengths = np.diff(domain.bounds, axis=1)[:, 0]
    if domain.timed:
        lengths[0] = 0.0
    size = float(lengths.max())
    known: list[float] = []
    for octave in OCTAVES:
        radius = size * 2.0**-octave
        reach = np.where(lengths > 0, radius, 0.0)
        cloud = _ring(pair, point, reach, radius)
        if len(cloud) < RING_POINTS // 8:
            continue
        both = [expression.values(s.function, cloud) for s in (pair.solution, pair.companion)]
        one, other = (float(np.max(np.abs(v) if sign is None else sign * v)) for v in both)
        if not abs(one - other) <= pair.settings.resolved * abs(one) or one <= 0:
            break
        known.append(one)
    if len(known) < KNOWN_RINGS:
        return 0.0
    growth = np.diff(np.log2(known))
    inner, outer = float(growth[-2:].mean()), float(growth[:2].mean())
    # that of smooth functions falls by a factor of 2 to 4 from one ring to the next
    steady = (growth[1:] > LEAST_GROWTH).all() and inner >= GAIN * outer
    return inner if steady else 0.0


def _ring(pair: SolutionPair, point: Array, reach: Array, radius: float) -> Array:
    """Points of the domain at one distance from a point, in many directions."""
    domain = pair.solution.stated.domain
    space = np.flatnonzero(reach > 0)
    rng = np.random.default_rng(41)
    arrows = rng.normal(size=(4 * RING_POINTS, len(space)))
    arrows /= np.linalg.norm(arrows, axis=1, keepdims=True)
    points = np.tile(point, (len(arrows), 1))
    points[:, space] += radius * arrows
    return points[domain.contains(points)]
