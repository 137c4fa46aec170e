"""Points where curved or inclined interfaces meet each other or the boundary, and the exponents of solutions there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import pi

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.planar import JOINED, SMOOTH_JOIN_ANGLE, Vertex
from rannpde.pde.weak.corner_exponents import corner_exponent, sector_diffusions
from rannpde.pde.weak.form import WeakForm
from rannpde.pde.weak.grading import BESIDE, SYSTEM_EXPONENT, SingularPoint
from rannpde.pde.weak.mesh import ConditionFinder
from rannpde.pde.weak.regions import MaterialRegion


def interface_points(
    form: WeakForm, finder: ConditionFinder, regions: Sequence[MaterialRegion]
) -> tuple[SingularPoint, ...]:
    """Corners of regions at which interfaces end or cross, with the exponent of solutions there."""
    if not regions:
        return ()
    size, own = regions[0].engine.size, regions[0].own
    corners: list[tuple[Array, list[Vertex]]] = []
    for region in regions:
        for vertex in region.engine.vertices:
            smooth = abs(vertex.angle - pi) <= SMOOTH_JOIN_ANGLE and vertex.labels[0] == vertex.labels[1]
            if smooth or max(leaf for leaf, _ in vertex.labels) < own:
                continue
            near = [met for point, met in corners if np.linalg.norm(point - vertex.point) <= JOINED * size]
            if near:
                near[0].append(vertex)
            else:
                corners.append((vertex.point, [vertex]))
    points = []
    for point, met in corners:
        exponent = _exponent(form, finder, point, met, size, own)
        points.append(SingularPoint((float(point[0]), float(point[1])), exponent, True))
    return tuple(points)


def with_interfaces(points: Sequence[SingularPoint], more: Sequence[SingularPoint]) -> tuple[SingularPoint, ...]:
    """All points of both lists; where coordinates agree, that of the interface, with the lower exponent."""
    merged = {one.point: one for one in points}
    for one in more:
        near = next((key for key in merged if np.allclose(key, one.point, rtol=JOINED, atol=JOINED)), None)
        if near is None:
            merged[one.point] = one
        else:
            merged[near] = replace(merged[near], exponent=min(merged[near].exponent, one.exponent), split=True)
    return tuple(merged.values())


def _exponent(
    form: WeakForm, finder: ConditionFinder, point: Array, met: Sequence[Vertex], size: float, own: int
) -> float:
    """λ at a point where the regions have these corners."""
    starts = np.array([np.arctan2(vertex.leaving[1], vertex.leaving[0]) for vertex in met])
    openings = np.array([vertex.angle for vertex in met])
    order = _chained(starts, openings)
    starts, openings, met = starts[order], openings[order], [met[k] for k in order]
    diffusions = sector_diffusions(form, point, BESIDE * size, starts, openings)
    if openings.sum() > 2 * pi - np.sqrt(SMOOTH_JOIN_ANGLE):
        return corner_exponent(diffusions, starts, openings)
    sides = [(met[0].leaving, 1.0, met[0].labels[0]), (-met[-1].arriving, -1.0, met[-1].labels[1])]
    held = []
    for direction, turn, label in sides:
        if label[0] >= own:
            return SYSTEM_EXPONENT  # the regions do not close: curves touch there
        normal = turn * np.array([direction[1], -direction[0]])
        probe = (point + BESIDE * size * direction)[None]
        (group,) = finder.groups(probe, normal[None])
        held.append(form.rows(finder.conditions[group], probe, normal[None]).projection[0])
    return corner_exponent(diffusions, starts, openings, (held[0], held[1]))


def _chained(starts: Array, openings: Array) -> Array:
    """Sectors in counter-clockwise order, from the first side of an opening that is no whole turn."""
    ends = np.mod(starts + openings, 2 * pi)
    gap = np.abs(np.exp(1j * starts)[:, None] - np.exp(1j * ends)[None, :])
    first = int(np.argmax(gap.min(axis=1)))  # the side at which no other sector ends
    return np.asarray(np.argsort(np.mod(starts - starts[first] + SMOOTH_JOIN_ANGLE, 2 * pi)))
