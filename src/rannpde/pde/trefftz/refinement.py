"""Which features of a plane domain become more: corner by corner and side by side, as the decay of errors and of output
weights tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, log
from typing import TYPE_CHECKING

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.tolerance import COMPARABLE, MUCH_SMALLER
from rannpde.pde.trefftz.families import FeatureFamily, degree_needed

if TYPE_CHECKING:
    from rannpde.pde.trefftz.basis import PlaneLaw, PlaneResolution


LEAST_INCREASE = 1 + MUCH_SMALLER
"""Factor of the features that become more, at least: with fewer, the next iteration is the same one again."""


def plane_refined(
    law: PlaneLaw,
    resolution: PlaneResolution,
    errors: Mapping[int, float],
    target: float,
    slow: bool,
    weights: Sequence[tuple[FeatureFamily, Array]],
) -> PlaneResolution:
    """More features for the groups whose error is above the target, as many as their decay so far asks for.

    errors : group → its part of the estimate; slow : whether more regular functions help little
    weights : the families with their output weights (N,) over the size of the solution, whose decay tells how many
        multipoles a hole needs
    """
    wanted = _degrees(law, weights, target)
    first = len(law.boundary.corners)
    corners, holes, sources = list(resolution.corners), list(resolution.holes), list(resolution.sources)
    smooth = 1.0
    along = max((error for group, error in errors.items() if group >= first), default=0.0)
    begun: list[int] = []
    for number in range(first):
        if errors.get(number, 0.0) > target and law.boundary.corners[number].singular:
            alone = errors[number] * COMPARABLE > along  # what smooth functions lack is missed along sides as well
            if len(law.powers[number]) and not (slow or alone or corners[number]):  # they are all that is singular
                smooth = max(smooth, _growth(law, errors[number], target, 1))
                continue
            begun += [] if corners[number] else [number]
            grow = _growth(law, errors[number], target, 2)
            corners[number] = max(law.poles, ceil(grow * corners[number]))
            smooth = max(smooth, law.tuning.growth**0.5) if law.layered else smooth  # exponentials serve corners too
    for number in begun:  # errors fall alike with the poles of all corners
        corners[number] = max(corners)
    for k, segment in enumerate(law.boundary.segments):
        error = errors.get(first + k, 0.0)
        if error <= target:
            continue
        grow = _growth(law, error, target, 1)
        grow = min(grow, law.tuning.growth**0.5) if law.layered else grow
        if segment.loop and law.round_hole(segment.loop - 1):
            most = min(wanted.get(segment.loop - 1, np.inf), grow * resolution.holes[segment.loop - 1])
            holes[segment.loop - 1] = max(holes[segment.loop - 1], ceil(most))
        else:
            smooth = max(smooth, grow)
        if sources[k] or slow:
            sources[k] = max(24, ceil(grow * sources[k]))
    if slow and errors:
        smooth = max(smooth, LEAST_INCREASE)
    waves = ceil(law.reach) if law.form.kappa > 0 else 0
    regular = waves + ceil((resolution.regular - waves) * smooth)
    regular = max(regular, law.image_degree) if smooth > 1 else regular
    return replace(resolution, regular=regular, holes=tuple(holes), corners=tuple(corners), sources=tuple(sources))


def _degrees(law: PlaneLaw, weights: Sequence[tuple[FeatureFamily, Array]], target: float) -> dict[int, float]:
    """Hole → the degree at which its multipoles have fallen below the target, where their decay is known."""
    degrees = {}
    for family, own in weights:
        multipoles = family.multipoles(own)
        if multipoles is not None:
            centre, sizes = multipoles
            distances = [np.linalg.norm(hole[0] - centre) for hole in law.boundary.holes]
            degrees[int(np.argmin(distances))] = degree_needed(sizes, target)
    return degrees


def _growth(law: PlaneLaw, error: float, target: float, power: int) -> float:
    """The factor by which n must grow for an error like exp(-c n^(1/power)) to fall to the target, within limits."""
    wanted = log(target) / min(log(max(error, 1e-300)), -MUCH_SMALLER) if error < 1 else law.tuning.growth
    return float(np.clip(wanted**power, LEAST_INCREASE, law.tuning.growth**power))
