"""A plane domain in cells: the boundary of each, and which corners of it are singular."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.arcs import Arcs
from rannpde.domains.boundary.pieces import Curves
from rannpde.domains.shapes.base import Domain
from rannpde.pde.residual import Term
from rannpde.pde.tolerance import MUCH_SMALLER, NEARBY
from rannpde.pde.trefftz.cells.arrangement import Arrangement
from rannpde.pde.trefftz.geometry import JOINED_ENDS, PlaneBoundary, assembled_boundary, stated_sides
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.pde.trefftz.segments import BoundarySegment

AROUND = 64
"""Points of a small circle around a corner at which the cells that meet there are sought."""


@dataclass(frozen=True, eq=False)
class PlaneCell:
    """One cell as a set of points; share : of the area of the domain."""

    domain: Domain
    arrangement: Arrangement
    number: int
    share: float

    @property
    def measure(self) -> float:
        return self.share * self.domain.measure

    def contains(self, points: Array) -> Array:
        inside = self.arrangement.holds(self.number)(points)
        inside[inside] = self.domain.contains(points[inside])
        return inside


@dataclass(frozen=True, eq=False)
class CellBoundary:
    """A cell with its boundary; faces (segments,) : the dividing curve of each segment, -1 on the outer boundary."""

    cell: PlaneCell
    boundary: PlaneBoundary
    faces: tuple[int, ...]


def cell_boundaries(
    domain: Domain,
    arrangement: Arrangement,
    terms: Sequence[Term],
    forms: Sequence[CanonicalForm],
    kinds: Sequence[object],
    conditions: int,
) -> list[CellBoundary] | str:
    """The boundaries of all cells; a reason where they are not simple curves.

    kinds : equal for cells of the same material, between which the solution is smooth
    """
    sides = stated_sides(domain, terms, conditions)
    if isinstance(sides, str):
        return sides
    shares = np.bincount(arrangement.locate(domain.sample(2**12, rng=3, method="sobol")), minlength=len(forms)) / 2**12
    boundaries = []
    for number, form in enumerate(forms):
        cell = PlaneCell(domain, arrangement, number, float(shares[number]))
        segments, faces = _segments(cell, sides, form)
        boundary = assembled_boundary(cell, segments, form)
        if isinstance(boundary, str):
            return f"cell {number + 1}: {boundary}"
        for curve in set(faces) - {-1}:
            if arrangement.neighbour(number, curve) is None:
                return "a cell is too small to be seen"
        boundaries.append(CellBoundary(cell, boundary, tuple(faces)))
    turns = _turns(domain, sides, forms[0])
    return [replace(one, boundary=_judged(one, turns, kinds)) for one in boundaries]


def _segments(
    cell: PlaneCell, sides: list[tuple[list[Arcs], tuple[Term, ...]]], form: CanonicalForm
) -> tuple[list[BoundarySegment], list[int]]:
    """The arcs of the outer boundary in a cell, then its faces."""
    segments: list[BoundarySegment] = []
    inside = cell.arrangement.holds(cell.number)
    for arcs, terms in sides:
        for family in Curves(tuple(arcs)).where(inside).families:
            segments += [BoundarySegment(terms, family, k, form) for k in range(len(family))]
    faces = [-1] * len(segments)
    for curve, sign in enumerate(cell.arrangement.signs[cell.number]):
        beside = cell.arrangement.holds(cell.number, curve)
        whole = cell.arrangement.arcs(curve, cell.domain.bounds)
        turned = replace(whole, sign=sign * whole.sign)
        for family in Curves((turned,)).where(_both(beside, cell.domain)).families:
            segments += [BoundarySegment((), family, k, form) for k in range(len(family))]
            faces += [curve] * len(family)
    return segments, faces


def _both(beside: Callable[[Array], Array], domain: Domain) -> Callable[[Array], Array]:
    """A test whether points are beside the other curves and inside the domain."""

    def holds(points: Array) -> Array:
        return np.asarray(beside(points) & (domain.level(points) < 0))

    return holds


def _turns(domain: Domain, sides: list[tuple[list[Arcs], tuple[Term, ...]]], form: CanonicalForm) -> Array:
    """Points (M, 2) where the outer boundary has a corner, or its condition changes."""
    segments = [
        BoundarySegment(own, family, k, form) for arcs, own in sides for family in arcs for k in range(len(family))
    ]
    whole = assembled_boundary(domain, segments, form)
    if isinstance(whole, str) or not whole.corners:
        return np.empty((0, 2))
    return form.back(np.array([corner.point for corner in whole.corners]))


def _judged(one: CellBoundary, turns: Array, kinds: Sequence[object]) -> PlaneBoundary:
    """The boundary of a cell, with corners singular only where materials change or the outer boundary turns."""
    boundary, cell = one.boundary, one.cell
    form = boundary.segments[0].form
    angles = 2 * np.pi * (np.arange(AROUND) + 0.5) / AROUND
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    corners = []
    for corner in boundary.corners:
        point = form.back(corner.point[None, :])[0]
        size = boundary.size * float(np.abs(np.linalg.inv(form.matrix)).max())
        turning = bool((np.linalg.norm(turns - point, axis=1) <= JOINED_ENDS * size).any())
        near = point + MUCH_SMALLER * NEARBY * size * circle
        near = near[cell.domain.contains(near)]
        met = {kinds[k] for k in cell.arrangement.locate(near).tolist()}
        corners.append(replace(corner, singular=turning or len(met) > 1))
    return replace(boundary, corners=tuple(corners))
