"""Exponentials for layers that are thin against the domain: across sides, and from corners."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from rannpde.arrays import Array

if TYPE_CHECKING:
    from rannpde.pde.trefftz.basis import PlaneLaw, PlaneResolution


def layer_directions(law: PlaneLaw, count: int, rng: np.random.Generator) -> Array:
    """Stratified random angles (N,) of directions d of exponentials exp(k d·y - drift·y).

    Each exponential is largest at one corner, which changes where k d - drift is along the normal of a side. Between
    two such angles all exponentials belong to one corner; they are distributed like Chebyshev points, so that they can
    be interpolated up to both ends.
    """
    k, drift = law.form.wave_number, law.form.drift
    turns = []
    for segment in law.boundary.segments:
        if segment.loop == 0 and segment.straight:
            slope = segment.slopes(np.array([0.5]))[0]
            normal = np.array([slope[1], -slope[0]]) / np.linalg.norm(slope)
            along = drift @ normal
            length = -along + np.sqrt(max(along**2 + k**2 - drift @ drift, 0.0))
            turns.append(float(np.arctan2(*(drift + length * normal)[::-1])))
    ends = np.unique(np.round(np.array(turns), 12))  # sides that are parallel have one normal
    if len(ends) < 2:
        return (np.arange(count) + rng.uniform(0, 1, count)) * 2 * np.pi / count
    angles = []
    for low, high in zip(ends, [*ends[1:], ends[0] + 2 * np.pi], strict=True):
        number = ceil(count / len(ends))
        phases = np.pi * (np.arange(number) + rng.uniform(0, 1, number)) / number
        angles.append(0.5 * (low + high) - 0.5 * (high - low) * np.cos(phases))
    return np.concatenate(angles)


def side_frequencies(law: PlaneLaw, resolution: PlaneResolution) -> list[Array]:
    """λ (K, 2), canonical, of the exponentials of all straight sides; parallel sides of equal length share theirs."""
    sides: dict[tuple[float, float], tuple[Array, int]] = {}
    for segment, count in zip(law.boundary.segments, resolution.sources, strict=True):
        if count and segment.straight:
            slope = segment.slopes(np.array([0.5]))[0]
            along = slope / np.linalg.norm(slope)
            same = next((k for k, (other, _) in sides.items() if _parallel(k[1], segment.length, along, other)), None)
            key = same or (float(len(sides)), segment.length)
            sides[key] = (along, max(count, sides[key][1] if key in sides else 0))
    return [_across(law, along, length, count) for (_, length), (along, count) in sides.items()]


def _parallel(length: float, other: float, one: Array, two: Array) -> bool:
    return bool(np.isclose(length, other, rtol=1e-9) and abs(one[0] * two[1] - one[1] * two[0]) < 1e-9)


def _across(law: PlaneLaw, along: Array, length: float, count: int) -> Array:
    """Imaginary frequencies along a straight side, and both roots across it."""
    across = np.array([-along[1], along[0]])
    omega = np.pi / length * np.arange(count)
    tangential = 1j * omega + law.form.drift @ along
    normal = np.sqrt(-law.form.kappa - tangential**2 + 0j)
    both = [tangential[:, None] * along + sign * normal[:, None] * across for sign in (1, -1)]
    return np.concatenate(both)
