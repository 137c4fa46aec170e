"""Features for corners: powers of the distance with the exponents that its conditions allow, poles that crowd there,
angles where given values jump."""

from __future__ import annotations

from math import ceil, log
from typing import TYPE_CHECKING

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import evaluate
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.tolerance import NEARBY
from rannpde.pde.trefftz.analytic import PoleFamily, PowerFamily
from rannpde.pde.trefftz.exponents import RayCondition, corner_exponents, turned_conditions, without_rounding
from rannpde.pde.trefftz.families import FeatureFamily
from rannpde.pde.trefftz.geometry import SingularCorner
from rannpde.pde.trefftz.multipoles import AngleFamily
from rannpde.pde.trefftz.rows import condition_coefficients
from rannpde.pde.trefftz.sources import SourceFamily
from rannpde.rounding import ROOT_ROUNDED, ROUNDED

if TYPE_CHECKING:
    from rannpde.pde.trefftz.basis import PlaneLaw, PlaneResolution


def poles_at_first(tol: float, crowding: float) -> int:
    """Poles at a corner at first, beside a few for what is smooth: as many as let the nearest one crowd up to the
    tolerance, exp(-σ √n), if they crowded evenly; with distances that taper off it takes half of them (Trefethen,
    Nakatsukasa and Weideman, 2021).
    """
    return ceil(10 + 0.5 * (np.log(tol) / crowding) ** 2)


def surely_singular(law: PlaneLaw, number: int) -> bool:
    """Re-entrant, or a change of the kind of condition."""
    corner = law.boundary.corners[number]
    if not corner.singular:
        return False
    return corner.angle > np.pi + ROOT_ROUNDED or law.boundary.kind_changes(number)


def value_jumps(law: PlaneLaw) -> tuple[bool, ...]:
    """For every corner, whether the values that are given on its two sides differ there."""
    jumps = []
    for number, corner in enumerate(law.boundary.corners):
        point = law.form.back(corner.point[None, :])
        sides = [
            {field: value for term in segment.terms for field, value in _given(term, point, law.words).items()}
            for segment in law.boundary.segments
            if number in segment.corners
        ]
        both = set.intersection(*map(set, sides)) if len(sides) > 1 else set()
        size = max((abs(value) for side in sides for value in side.values()), default=0.0)
        spread = [max(side[field] for side in sides) - min(side[field] for side in sides) for field in both]
        jumps.append(not max(spread, default=0.0) <= ROUNDED * size)
    return tuple(jumps)


def _given(term: Term, point: Array, words: Vocabulary) -> dict[str, float]:
    """Field → its value at a point (1, 2), where a condition gives one."""
    prescribed = term.prescribed
    if prescribed is None or prescribed[0].order:
        return {}
    value = evaluate([prescribed[1]], term.known(point, words), term.expression.functions)[0]
    return {prescribed[0].field: float(np.ravel(value)[0])}


def powers_at_corners(law: PlaneLaw) -> tuple[Array, ...]:
    """For every corner the exponents of the solution there, up to that which polynomials resolve; none where they are
    not known: off Laplace's equation and its systems, between curved sides, where values jump, or where the cut would
    enter the domain again.

    Polynomials of degree n approximate r^λ at a corner that opens by ω to n^-((2 - ω/π) λ), since the level curves of
    the exterior map are n^-(2 - ω/π) away from it.
    """
    digits = log(1 / law.tol)
    regular = law.regular_at_first
    powers = []
    for number, corner in enumerate(law.boundary.corners):
        conditions = _ray_conditions(law, number)
        if conditions is None:
            powers.append(np.empty(0, dtype=complex))
            continue
        rate = max(2 - corner.angle / np.pi, NEARBY) * log(regular)
        top = min(digits / rate + 2, regular)  # two more for what is derived from the solution
        middle = float(np.arctan2(-corner.outward[1], -corner.outward[0]))
        own = turned_conditions(conditions, middle, law.model)
        exponents = corner_exponents(own, 0.0, float(without_rounding(np.asarray(corner.angle))), law.model, top)
        plate = law.model is not None and law.model.system == "plate"
        powers.append(np.unique(np.concatenate([exponents, exponents + 1])) if plate else exponents)
    return tuple(powers)


def _ray_conditions(law: PlaneLaw, number: int) -> list[RayCondition] | None:
    """The conditions of both sides of a corner, each without what is of lower order."""
    corner = law.boundary.corners[number]
    segments = [
        (segment, end) for segment in law.boundary.segments for end, own in enumerate(segment.corners) if own == number
    ]
    if not law.harmonic or not _leaves(law, corner) or law.jumps[number] or not corner.singular or len(segments) != 2:
        return None
    if any(not segment.straight or not segment.terms for segment, _ in segments):
        return None
    middle = float(np.arctan2(-corner.outward[1], -corner.outward[0]))
    conditions = []
    for segment, end in segments:
        jets, table = condition_coefficients(segment.terms, segment.points(np.array([float(end)])), law.words)
        # the segment that leaves the corner has the domain on its left
        angle = middle + (0.5 if end else -0.5) * corner.angle
        for row in table[0]:
            fields = [_field(law, jet.field) for jet in jets]
            weights = [jet.order + (field == 2) for jet, field in zip(jets, fields, strict=True)]
            acting = [k for k in range(len(jets)) if row[k]]
            most = max((weights[k] for k in acting), default=0)
            principal = tuple(
                (float(row[k]) * value, fields[k], beta)
                for k in acting
                if weights[k] == most
                for beta, value in law.form.expanded(jets[k].index).items()
            )
            conditions.append(RayCondition(angle, principal))
    return conditions


def _field(law: PlaneLaw, name: str) -> int:
    """0 for the field of a scalar equation; 0, 1, 2 for u, v, p of systems."""
    number = law.words.fields.index(name)
    return law.model.fields.index(number) if law.model is not None else 0


def corner_families(law: PlaneLaw, resolution: PlaneResolution, rng: np.random.Generator) -> list[FeatureFamily]:
    """Powers, poles that crowd at corners, and angles."""
    poles, lengths, angles = [], [], []
    for corner, count, jumps in zip(law.boundary.corners, resolution.corners, law.jumps, strict=True):
        if count:
            angles += [corner] if jumps else []
            steps = np.sqrt(count) - np.sqrt(np.arange(1, count + 1) + rng.uniform(-0.3, 0.3, count))
            reach = corner.reach if not law.layered else min(corner.reach, 4 / law.form.wave_number)
            crowding = min(law.tuning.crowding, log(1 / law.tuning.closest) / max(np.sqrt(count) - 1, 1.0))
            away = reach * np.exp(-crowding * np.maximum(steps, 0.0))
            poles.append(corner.point + away[:, None] * corner.outward)
            lengths.append(away)
    families = _powers(law)
    if not poles:
        return families
    everywhere = law.form, np.concatenate(poles), np.concatenate(lengths)
    families.append(PoleFamily(*everywhere) if law.harmonic else SourceFamily(*everywhere, np.eye(2)))
    angles = [corner for corner in angles if law.harmonic or _leaves(law, corner)]
    if not law.layered and angles:
        points, outward = np.array([c.point for c in angles]), np.array([c.outward for c in angles])
        cuts = np.array([np.inf if _leaves(law, c) else 0.5 * c.reach for c in angles])
        growth = np.array([law.growth_about(c.point) for c in angles])
        families.append(AngleFamily(law.form, points, outward, growth, cuts))
    return families


def _leaves(law: PlaneLaw, corner: SingularCorner) -> bool:
    """Whether the ray that leads out of the domain never enters it again."""
    return bool(corner.reach >= law.boundary.size * (1 - ROUNDED))


def _powers(law: PlaneLaw) -> list[FeatureFamily]:
    """One family of the powers of all corners, none where there are no exponents."""
    own = [k for k, exponents in enumerate(law.powers) if len(exponents) and law.own_corner(k)]
    if not own:
        return []
    counts = [len(law.powers[k]) for k in own]
    corners = np.array([law.boundary.corners[k].point for k in own])
    outward = np.array([law.boundary.corners[k].outward for k in own])
    reach = np.array([np.linalg.norm(law.outline - corner, axis=1).max() for corner in corners])
    origins, directions = (np.repeat(one, counts, axis=0) for one in (corners, outward))
    exponents = np.concatenate([law.powers[k] for k in own])
    return [PowerFamily(law.form, origins, directions, exponents, np.repeat(reach, counts))]
