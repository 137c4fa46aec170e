"""Where an output is taken: the domain, sides, slices, shapes inside, lines, each over time or at one time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import FlatSide, Side
from rannpde.domains.domain import Domain, SpaceTime
from rannpde.domains.operations.regions import line_patches, patches_of
from rannpde.domains.quadrature.patches import RegionPatches, TimedPatches, joined_patches
from rannpde.domains.region import Region
from rannpde.errors import InputError, finite_array, is_real, require
from rannpde.pde.problem.conditions import named_sides
from rannpde.pde.problem.output_expression import OutputExpression
from rannpde.rounding import COMPUTED

if TYPE_CHECKING:
    from rannpde.pde.problem.problem import Problem

PLACE_SAMPLES = 257
"""Points of a shape or line that are looked at before it is said to lie within the domain."""


@dataclass(frozen=True, eq=False)
class OutputRegion:
    """A region of an output.

    regions : domains or sides, in space where ``time`` is given; empty for a line
    patches : the same as images of unit cubes, time included; None for solids and their surfaces
    sided : whether it has outward normals; time : at which it is taken, None for all times
    """

    regions: tuple[Region, ...]
    patches: RegionPatches | None
    sided: bool
    time: float | None
    name: str

    @property
    def extent(self) -> int:
        if self.patches is not None:
            return self.patches.extent
        return self.regions[0].extent

    def timed(self, points: Array) -> Array:
        """Points of the regions as points of the problem."""
        return points if self.time is None else np.insert(points, 0, self.time, axis=1)


def times_of(t: Any, problem: Problem) -> Array:
    """The times (N,) that are asked for, refused unless they lie in the interval of the problem."""
    domain = problem.domain
    if not isinstance(domain, SpaceTime):
        raise InputError(f"t is {t!r}, but the problem has no time; leave it out")
    times = finite_array("t", np.atleast_1d(t), 1)
    start, end = domain.time
    slack = 1e-12 * max(abs(start), abs(end))
    require(len(times) > 0, "t", t, "one time or more")
    inside = bool(((times >= start - slack) & (times <= end + slack)).all())
    require(inside, "t", t, f"between {start:g} and {end:g}")
    return np.clip(times, start, end)


def output_region(on: Any, time: float | None, problem: Problem) -> OutputRegion:
    """The region that ``on`` names, at a time or over all times; an InputError where it is no part of the domain."""
    domain = problem.domain
    space = domain.space if isinstance(domain, SpaceTime) and time is not None else domain
    name = "the domain" if on is None else str(on)
    if on is None:
        return _of_regions([space], False, time, name)
    if isinstance(on, Domain):
        return _inside(_shape(on, time, problem), problem)
    if _is_line(on):
        return _inside(_line(on, time, problem), problem)
    if isinstance(on, Side):
        return _of_regions([on], _has_normals(on), time, name)
    named = (
        isinstance(on, str) or callable(on) or (isinstance(on, (tuple, list)) and all(isinstance(p, str) for p in on))
    )
    require(named, "on", on, "None, the name of a side or several, a shape, or the two ends of a line")
    sides = named_sides(on, space, problem.parameters)
    return _of_regions(list(sides), all(map(_has_normals, sides)), time, name)


def check_output_region(expression: OutputExpression, region: OutputRegion) -> None:
    """Refuse normals where there are none."""
    if expression.uses_normals and not region.sided:
        raise InputError(
            f"{expression.text!r} has dn(…) or components of the normal, which {region.name} has not; name a side: on=…"
        )


def _has_normals(side: Side) -> bool:
    timeslice = isinstance(side, FlatSide) and isinstance(side.domain, SpaceTime) and side.axis == 0
    return not timeslice and not (isinstance(side, FlatSide) and side.outward == 0)


def _of_regions(regions: list[Any], sided: bool, time: float | None, name: str) -> OutputRegion:
    parts = [patches_of(region) for region in regions]
    known = [part for part in parts if part is not None]
    patches = joined_patches(known) if len(known) == len(parts) else None
    if patches is not None and time is not None:
        patches = TimedPatches(patches, time)
    return OutputRegion(tuple(regions), patches, sided, time, name)


def _shape(shape: Domain, time: float | None, problem: Problem) -> OutputRegion:
    domain = problem.domain
    if isinstance(domain, SpaceTime) and shape.dim == domain.space.dim and not isinstance(shape, SpaceTime):
        if time is not None:
            return _of_regions([shape], False, time, repr(shape))
        shape = SpaceTime(domain.time, x=shape)
    require(time is None, "on", shape, "a shape in space where t is given")
    require(shape.dim == domain.dim, "on", shape, f"of {domain.dim} coordinates")
    return _of_regions([shape], False, None, repr(shape))


def _line(ends: Any, time: float | None, problem: Problem) -> OutputRegion:
    domain = problem.domain
    start, end = (finite_array("on", np.array(point, dtype=float), 1) for point in ends)
    whole, inner = domain.dim, domain.dim - isinstance(domain, SpaceTime)
    require(len(start) == len(end) and len(start) in (whole, inner), "on", ends, f"two points of {inner} coordinates")
    require(bool((start != end).any()), "on", ends, "two different points")
    patches: RegionPatches = line_patches(start, end)
    if isinstance(domain, SpaceTime) and len(start) == inner:
        patches = TimedPatches(patches, *((time, None) if time is not None else domain.time))
    else:
        require(time is None, "on", ends, "two points in space where t is given")
    return OutputRegion((), patches, False, time, f"the line from {start.tolist()} to {end.tolist()}")


def _inside(region: OutputRegion, problem: Problem) -> OutputRegion:
    domain = problem.domain
    if region.patches is not None:
        patches = region.patches
        rng = np.random.default_rng(11)
        unit = rng.random((PLACE_SAMPLES, patches.extent))
        unit[: len(unit) // 2] = np.round(unit[: len(unit) // 2])  # corners too
        points = patches.place(rng.integers(patches.count, size=len(unit)), unit).points
    else:
        points = region.timed(np.concatenate([one.sample(PLACE_SAMPLES, rng=11) for one in region.regions]))
    size = float(np.diff(domain.bounds, axis=1).max())
    outside = domain.level(points) > COMPUTED * size
    if outside.any():
        raise InputError(
            f"on is {region.name}, which reaches outside of the domain, at {points[outside][0].tolist()}; "
            "use a smaller one, or the part inside, shape & domain"
        )
    return region


def _is_line(on: Any) -> bool:
    pair = isinstance(on, (tuple, list, np.ndarray)) and len(on) == 2
    return pair and all(
        isinstance(end, (tuple, list, np.ndarray)) and len(end) > 0 and all(is_real(z) for z in end) for end in on
    )


def check_points_inside(points: Array, domain: Domain, what: str) -> None:
    """Refuse points (M, n) outside of a domain, up to rounding."""
    size = float(np.diff(domain.bounds, axis=1).max())
    outside = domain.level(points) > COMPUTED * size
    if outside.any():
        raise InputError(f"{what} {points[outside][0].tolist()} lies outside of the domain {domain!r}; move it inside")


def check_anchors(expression: OutputExpression, problem: Problem) -> None:
    """Refuse values at points outside of the domain."""
    domain = problem.domain
    for anchor in expression.anchors:
        whole = len(anchor.point) == domain.dim
        inner = domain if whole or not isinstance(domain, SpaceTime) else domain.space
        check_points_inside(np.array([anchor.point]), inner, f"{expression.text!r}: the point")
