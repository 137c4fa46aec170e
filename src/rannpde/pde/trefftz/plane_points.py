"""Where the conditions of a plane domain are asked: collocation points that follow the features, and points near
layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.tolerance import MUCH_SMALLER, SAME_SOLUTION
from rannpde.pde.trefftz.rows import ConditionPoints
from rannpde.pde.trefftz.segments import cell_lengths, clustered

if TYPE_CHECKING:
    from rannpde.pde.trefftz.basis import PlaneLaw, PlaneResolution


@dataclass(frozen=True, eq=False)
class SegmentPoints:
    """Collocation points x (M, 2) of one segment of the boundary; weights, scales and groups as ``ConditionPoints`` has
    them."""

    number: int
    units: Array
    points: Array
    weights: Array
    scales: Array
    groups: Array


def plane_conditions(
    law: PlaneLaw, resolution: PlaneResolution, shift: float, factor: float = 1.0
) -> list[ConditionPoints]:
    """Collocation points of all conditions; another ``shift`` in (0, 1) gives fresh ones, ``factor`` times as many."""
    return [
        ConditionPoints(term, one.points, one.weights, one.scales, one.groups)
        for one in segment_points(law, resolution, shift, factor)
        for term in law.boundary.segments[one.number].terms
    ]


def segment_points(
    law: PlaneLaw, resolution: PlaneResolution, shift: float, factor: float = 1.0
) -> Iterator[SegmentPoints]:
    """The collocation points of all segments that are no images of others."""
    total = law.boundary.length
    outer = sum(segment.length for segment in law.boundary.segments if segment.loop == 0)
    # the two roots across a layer are alike along its side, and take half as many rows again to be distinguished
    rows = law.tuning.oversampling * (3 / 2 if law.layered else 1.0)
    points_of_corners = np.array([corner.point for corner in law.boundary.corners]).reshape(-1, 2)
    for number, segment in enumerate(law.boundary.segments):
        if segment.image is not None:  # its conditions hold by symmetry
            continue
        loop = segment.loop
        around = outer if loop == 0 else sum(p.length for p in law.boundary.segments if p.loop == loop)
        degree = resolution.regular * around / outer  # what varies over the whole domain varies as much along a hole
        degree = degree if loop == 0 else max(resolution.holes[loop - 1], degree)
        share = segment.length / around
        wanted = rows * ((2 * degree + 1) * share + resolution.sources[number])
        wanted += 8 if max(segment.corners) >= 0 else 8 * share
        if law.layered and segment.straight:
            wanted += rows * resolution.sources[number]
        if law.form.kappa > 0:
            wanted = max(wanted, law.form.wave_number * segment.length)  # two points for π
        crowds = [resolution.corners[c] + len(law.powers[c]) if c >= 0 else 0 for c in segment.corners]
        layered = law.layered and max(segment.corners) >= 0
        levels = max(rows * max(crowds) + 6 if max(crowds) else 0, 40 if layered else 0)
        ends = (crowds[0] > 0 or layered, crowds[1] > 0 or layered)
        width = 1 / law.form.wave_number if layered else 0.0
        units = clustered(ceil(factor * wanted), ceil(factor * levels), ends, segment, shift, width)
        points = segment.points(units)
        weights = np.sqrt(cell_lengths(segment, units) / total)
        scales, groups = np.full(len(units), law.boundary.radius), np.full(len(units), number)
        groups = groups + len(law.boundary.corners)
        here = law.form.to(points)
        for corner in segment.corners:
            if corner >= 0 and law.boundary.corners[corner].singular:
                away = np.linalg.norm(here - points_of_corners[corner], axis=1)
                scales = np.minimum(scales, np.sqrt(law.boundary.radius * np.maximum(away, 1e-15 * law.boundary.size)))
                groups = np.where(away < segment.length / 4, corner, groups)
        if law.form.kappa:
            scales = np.minimum(scales, 1 / law.form.wave_number)
        scales = scales * float(np.abs(np.linalg.inv(law.form.matrix)).max())
        yield SegmentPoints(number, units, points, weights, scales, groups)


def boundary_tube(law: PlaneLaw) -> tuple[Array, Array]:
    """Points x (K, 2) near the boundary and their shares (K,) of the domain, where layers are too thin to be
    seen by points that are spread evenly; none where there are no layers.
    """
    if law.form.kappa >= 0 or law.reach * MUCH_SMALLER < 1:  # layers are not much thinner than the domain
        return np.empty((0, 2)), np.empty(0)
    levels = np.geomspace(SAME_SOLUTION / law.form.wave_number, law.boundary.radius / 4, 14)
    depth, thick = np.sqrt(levels[1:] * levels[:-1]), np.diff(levels)
    points, shares = [], []
    area = law.domain.measure * float(np.linalg.det(law.form.matrix))
    for segment in law.boundary.segments:
        count = max(4, ceil(30 * segment.length / law.boundary.length))
        ends = (segment.corners[0] >= 0, segment.corners[1] >= 0)
        unit = clustered(count, 9, ends, segment, 0.5, 1 / law.form.wave_number)
        slopes = segment.slopes(unit)
        speed = np.linalg.norm(slopes, axis=1)
        inward = np.stack([-slopes[:, 1], slopes[:, 0]], axis=1) / speed[:, None]
        here = law.form.to(segment.points(unit))[:, None] + depth[:, None] * inward[:, None]
        points.append(here.reshape(-1, 2))
        shares.append((cell_lengths(segment, unit)[:, None] * thick / area).ravel())
    candidates = law.form.back(np.concatenate(points))
    inside = law.domain.contains(candidates)
    return candidates[inside], np.concatenate(shares)[inside]
