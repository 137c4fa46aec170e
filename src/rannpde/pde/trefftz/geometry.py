"""The boundary of a domain in the plane: segments joined to closed curves, with their corners and holes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.arcs import Arcs
from rannpde.domains.boundary.planar import SMOOTH_JOIN_ANGLE
from rannpde.domains.shapes.base import Domain
from rannpde.pde.residual import Term
from rannpde.pde.tolerance import NEARBY
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.pde.trefftz.segments import BoundarySegment, arcs_of
from rannpde.rounding import ROOT_ROUNDED

JOINED_ENDS = 1e-8
"""Distance, relative to the size of the domain, at which two ends of segments are one point."""


class PlaneSet(Protocol):
    """A set of the plane that knows its points and its size: a domain, or a domain with its images."""

    @property
    def measure(self) -> float: ...

    def contains(self, points: Array) -> Array: ...


@dataclass(frozen=True, eq=False)
class SingularCorner:
    """A corner, or where the condition changes: the solution may be singular there.

    point, outward : in canonical coordinates; outward leads out of the domain, midway between its sides
    reach : how far it stays outside
    angle : the opening inside the domain
    singular : False where faces of cells meet and the solution is smooth all the same
    """

    point: Array
    outward: Array
    reach: float
    angle: float
    loop: int
    singular: bool = True


@dataclass(frozen=True, eq=False)
class PlaneBoundary:
    """All segments of a boundary with its singular points; holes as (centre, inner radius, outer radius), canonical."""

    segments: tuple[BoundarySegment, ...]
    corners: tuple[SingularCorner, ...]
    holes: tuple[tuple[Array, float, float], ...]
    size: float
    centre: Array
    radius: float

    @property
    def length(self) -> float:
        return float(sum(segment.length for segment in self.segments))

    def kind_changes(self, corner: int) -> bool:
        """Whether the sides that meet at a corner have conditions on different derivatives."""
        kinds = {
            frozenset((jet.field, jet.order) for term in segment.terms for jet in term.expression.jets)
            for segment in self.segments
            if corner >= 0 and corner in segment.corners
        }
        return len(kinds) > 1


def _key(arcs: list[Arcs]) -> tuple[float, ...]:
    """An identifier of a side: the positions of its arcs."""
    points = [family.place(np.arange(len(family)), np.full(len(family), 3 / 8)) for family in arcs]
    return tuple(np.round(np.concatenate(points).ravel(), 12).tolist())


def stated_sides(
    domain: Domain, terms: Sequence[Term], conditions: int
) -> list[tuple[list[Arcs], tuple[Term, ...]]] | str:
    """The sides of a boundary as arcs, each with its conditions; a reason where these do not cover it once."""
    sides: dict[tuple[float, ...], tuple[list[Arcs], list[Term]]] = {}
    for term in terms:
        arcs = None if term.region is None else arcs_of(term.region)
        if arcs is None:
            return f"{term.name} is no condition on a curve of the boundary"
        sides.setdefault(_key(arcs), (arcs, []))[1].append(term)
    for _, own in sides.values():
        if len(own) != conditions:
            return f"a side has {len(own)} condition(s), but {conditions} are needed"
    measure = sum(side.measure for side in domain.sides.values())
    given = sum(own[0].measure for _, own in sides.values())
    if abs(given - measure) > ROOT_ROUNDED * measure:
        return "the conditions do not cover the boundary exactly once"
    return [(arcs, tuple(own)) for arcs, own in sides.values()]


def plane_boundary(
    domain: Domain, terms: Sequence[Term], form: CanonicalForm, conditions: int = 1
) -> PlaneBoundary | str:
    """The boundary, each side with its conditions; a reason where it is not known, or these do not cover it."""
    sides = stated_sides(domain, terms, conditions)
    if isinstance(sides, str):
        return sides
    segments = [
        BoundarySegment(own, family, k, form) for arcs, own in sides for family in arcs for k in range(len(family))
    ]
    return assembled_boundary(domain, segments, form)


def assembled_boundary(domain: PlaneSet, segments: list[BoundarySegment], form: CanonicalForm) -> PlaneBoundary | str:
    """Segments that follow each other, joined to closed curves with their corners; a reason where they do not."""
    ends = np.array([form.to(segment.points(np.array([0.0, 1.0]))) for segment in segments])
    size = float(np.ptp(ends.reshape(-1, 2), axis=0).max() + max(p.length for p in segments))
    follower = []
    for k in range(len(segments)):
        away = np.linalg.norm(ends[:, 0] - ends[k, 1], axis=1)
        nearest = int(np.argmin(away))
        if away[nearest] > JOINED_ENDS * size:
            return "the boundary does not close"
        follower.append(nearest)
    if sorted(follower) != list(range(len(segments))):
        return "the boundary touches itself"
    return _assembled(domain, segments, follower, form)


def _assembled(
    domain: PlaneSet, segments: list[BoundarySegment], follower: list[int], form: CanonicalForm
) -> PlaneBoundary | str:
    loops: list[list[int]] = []
    left = set(range(len(segments)))
    while left:
        first = number = min(left)
        chain = []
        while number in left:
            left.remove(number)
            chain.append(number)
            number = follower[number]
        if number != first:
            return "the boundary does not close"
        loops.append(chain)
    unit = (np.arange(64) + 0.5) / 64
    outlines = [np.concatenate([form.to(segments[k].points(unit)) for k in chain]) for chain in loops]
    areas = [_area(outline) for outline in outlines]
    outer = int(np.argmax(areas))
    if sum(area > 0 for area in areas) != 1:
        return "the domain has several parts"
    order = [outer, *(k for k in range(len(loops)) if k != outer)]
    outlines = [outlines[k] for k in order]
    home = {segment: number for number, k in enumerate(order) for segment in loops[k]}
    size = float(np.linalg.norm(np.ptp(outlines[0], axis=0)))
    corners: list[SingularCorner] = []
    starts, stops = [-1] * len(segments), [-1] * len(segments)
    for k, then in enumerate(follower):
        corner = _singular(domain, segments[k], segments[then], form, size, home[k])
        if corner is not None:
            stops[k] = starts[then] = len(corners)
            corners.append(corner)
    made = tuple(replace(segment, corners=(starts[k], stops[k]), loop=home[k]) for k, segment in enumerate(segments))
    holes = []
    for outline in outlines[1:]:
        middle = _centroid(outline)
        away = np.linalg.norm(outline - middle, axis=1)
        holes.append((middle, float(away.min()), float(away.max())))
    centre = outlines[0].min(axis=0) / 2 + outlines[0].max(axis=0) / 2
    radius = float(np.linalg.norm(outlines[0] - centre, axis=1).max())
    return PlaneBoundary(made, tuple(corners), tuple(holes), size, centre, radius)


def _area(loop: Array) -> float:
    x, y = loop.T
    return 0.5 * float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))


def _centroid(loop: Array) -> Array:
    x, y = (loop - loop.mean(axis=0)).T
    cross = x * np.roll(y, -1) - y * np.roll(x, -1)
    area = 0.5 * cross.sum()
    middle = np.array([((x + np.roll(x, -1)) * cross).sum(), ((y + np.roll(y, -1)) * cross).sum()]) / (6 * area)
    return np.asarray(middle + loop.mean(axis=0))


def _singular(
    domain: PlaneSet, arriving: BoundarySegment, leaving: BoundarySegment, form: CanonicalForm, size: float, loop: int
) -> SingularCorner | None:
    into = arriving.slopes(np.array([1.0]))[0]
    out = leaving.slopes(np.array([0.0]))[0]
    into, out = into / np.linalg.norm(into), out / np.linalg.norm(out)
    turn = float(np.arctan2(into[0] * out[1] - into[1] * out[0], into @ out))
    before, after = ([term.expression.formula for term in segment.terms] for segment in (arriving, leaving))
    same = before == after
    if abs(turn) <= SMOOTH_JOIN_ANGLE and same:
        return None
    angle = np.pi - turn
    half = 0.5 * angle
    inward = np.array([out[0] * np.cos(half) - out[1] * np.sin(half), out[0] * np.sin(half) + out[1] * np.cos(half)])
    point = form.to(leaving.points(np.array([0.0])))[0]
    steps = size * np.geomspace(NEARBY, 1.0, 60)
    ray = form.back(point - steps[:, None] * inward)
    hit = np.flatnonzero(domain.contains(ray))
    reach = float(0.5 * steps[hit[0]]) if len(hit) else size  # no pole is nearer to the other side
    return SingularCorner(point, -inward, reach, float(angle), loop)
