"""Points at which flows are singular.

At a re-entrant corner between walls the velocity is like r^λ with sin(λω) + λ sin ω = 0, ω the opening. Where the
prescribed velocity jumps, as at the ends of a moving lid, it has all directions at one point, and the pressure is like
1/r: not in L², so that an error of it has no meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import pi, sin

import numpy as np
from scipy.optimize import brentq

from rannpde.arrays import Array
from rannpde.domains.boundary.planar import SMOOTH_JOIN_ANGLE
from rannpde.domains.boundary.sides import Side
from rannpde.domains.operations.cutcells import planar_outline
from rannpde.pde.cells.interfaces.detection import Interfaces
from rannpde.pde.flow.form import FlowForm
from rannpde.pde.weak.form import COEFFICIENT_SAMPLES
from rannpde.pde.weak.grading import BESIDE, SYSTEM_EXPONENT, SingularPoint, ends_of_parts, singular_points
from rannpde.pde.weak.mesh import ConditionFinder


@dataclass(frozen=True, eq=False)
class FlowCorners:
    """Singular points, and whether the prescribed velocity jumps at any of them."""

    points: tuple[SingularPoint, ...]
    jumps: bool


def wall_exponent(angle: float) -> float:
    """The least λ of velocities r^λ in a corner of an opening between walls, 1 where it is not re-entrant.

    >>> round(wall_exponent(1.5 * pi), 6), wall_exponent(0.5 * pi)
    (0.544484, 1.0)
    """
    if angle <= pi + SMOOTH_JOIN_ANGLE:
        return 1.0
    return float(brentq(lambda power: sin(power * angle) + power * sin(angle), 0.5 - 1e-9, 1 - 1e-9))


def flow_corners(form: FlowForm) -> FlowCorners:
    """All points of the boundary near which a flow, or a scalar that it carries, is not smooth."""
    finder = ConditionFinder(form.terms, 2)
    outline = planar_outline(form.problem.domain)
    speed = _speed(form)
    singular: list[SingularPoint] = []
    jumps = False
    for vertex in outline.vertices:
        if abs(vertex.angle - pi) <= SMOOTH_JOIN_ANGLE and vertex.labels[0] == vertex.labels[1]:
            continue  # two arcs of one smooth side meet there
        directions = np.stack([vertex.arriving, vertex.leaving])
        beside = vertex.point + BESIDE * outline.size * directions * np.array([[-1.0], [1.0]])
        normals = np.stack([directions[:, 1], -directions[:, 0]], axis=1)
        jump, same = _compared(form, finder, beside, normals, speed)
        exponent = wall_exponent(vertex.angle)
        if exponent < 1 and not same:
            exponent = SYSTEM_EXPONENT
        if jump:
            exponent, jumps = SYSTEM_EXPONENT, True
        if exponent < 1:
            singular.append(SingularPoint((float(vertex.point[0]), float(vertex.point[1])), exponent))
    for point, along in ends_of_parts(form.terms):
        if any(np.allclose(point, one.point, atol=1e-9 * outline.size) for one in singular):
            continue
        if any(np.allclose(point, vertex.point, atol=1e-9 * outline.size) for vertex in outline.vertices):
            continue
        beside = np.stack([point - BESIDE * outline.size * along, point + BESIDE * outline.size * along])
        normals = np.array([[along[1], -along[0]]] * 2)
        if not finder.holds(beside, normals).any():
            normals = -normals
        jump, same = _compared(form, finder, beside, normals, speed)
        jumps = jumps or jump
        if jump or not same:
            singular.append(SingularPoint((float(point[0]), float(point[1])), SYSTEM_EXPONENT, True))
    if form.scalars:
        own = singular_points(form.diffusion, ConditionFinder(form.scalar_terms, len(form.scalars)), Interfaces())
        singular = _together(singular, [one for one in own if one.exponent < 1 or one.split], outline.size)
    return FlowCorners(tuple(singular), jumps)


def _together(one: Sequence[SingularPoint], other: Sequence[SingularPoint], size: float) -> list[SingularPoint]:
    """All points of either list; a point of both has the smaller exponent."""
    merged = list(one)
    for point in other:
        same = next((k for k, old in enumerate(merged) if np.allclose(old.point, point.point, atol=1e-9 * size)), None)
        if same is None:
            merged.append(point)
        elif point.exponent < merged[same].exponent:
            merged[same] = replace(merged[same], exponent=point.exponent)
    return merged


def _speed(form: FlowForm) -> float:
    """The largest prescribed velocity."""
    largest = 0.0
    for number, term in enumerate(form.terms):
        assert isinstance(term.region, Side)
        points = term.region.sample(COEFFICIENT_SAMPLES, rng=0)
        largest = max(largest, float(np.abs(form.rows([number], points, term.region.normals(points)).values).max()))
    return largest


def _compared(
    form: FlowForm, finder: ConditionFinder, points: Array, normals: Array, speed: float
) -> tuple[bool, bool]:
    """Whether the prescribed velocity jumps between two points, and whether the same components are prescribed."""
    groups = finder.groups(points, normals)
    one, other = (form.rows(finder.conditions[group], points[[k]], normals[[k]]) for k, group in enumerate(groups))
    same = bool(np.abs(one.essential - other.essential).max() <= SMOOTH_JOIN_ANGLE)
    whole = bool(np.abs(one.essential - np.eye(2)).max() <= SMOOTH_JOIN_ANGLE) and same
    # beside a corner, continuous values differ by about the share BESIDE of the largest, a jump by far more
    jump = whole and bool(np.abs(one.values - other.values).max() > np.sqrt(BESIDE) * speed)
    return jump, same
