"""What moves in a picture: the fields along one coordinate, time where there is time, else across slices of a solid.

It only chooses the frames; files are written by Pillow through matplotlib (``animation``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rannpde.arrays import Array, combinations
from rannpde.domains import Domain, SpaceTime
from rannpde.plotting.view import View, informative_cut, last_time, span

if TYPE_CHECKING:
    from rannpde.pde.solution import Solution

PROFILE_POINTS = 240
"""Points of a profile."""


@dataclass(frozen=True, eq=False)
class Film:
    """Pictures of a domain along the coordinate ``axis`` at ``positions`` (K,); a still has no axis and K = 1.

    line : the coordinate of the profiles, where space has one dimension; plane : those of the maps, where it has more
    fixed : values of further coordinates that are not in the middle
    """

    domain: Domain
    axis: int | None
    positions: Array
    line: int | None = None
    plane: tuple[int, int] | None = None
    fixed: tuple[tuple[int, float], ...] = ()

    @property
    def coordinate(self) -> str:
        """The name of the coordinate along which the pictures go; empty for a still."""
        return "" if self.axis is None else self.domain.names[self.axis]

    @property
    def across(self) -> Array:
        """Points (L,) of a profile."""
        assert self.line is not None
        return span(self.domain, self.line, PROFILE_POINTS)

    def profiles(self, function: Callable[[Array], Array]) -> Array:
        """Values (K, L, fields) of a function of points (M, n) with values (M, fields)."""
        if self.axis is None:
            points = self.across[:, None]
        else:
            points = combinations([self.positions, self.across])
        values = np.reshape(function(points), (len(points), -1))
        return values.reshape(len(self.positions), PROFILE_POINTS, -1)

    def views(self, grid: int) -> list[View]:
        """The plane of each picture: its grid, and the boundary in it."""
        assert self.plane is not None
        given = dict(self.fixed)
        if self.axis is None:
            return [View.of(self.domain, self.plane, given, grid)]
        if self.axis == 0 and isinstance(self.domain, SpaceTime):  # space is the same at all times
            first = View.of(self.domain, self.plane, {**given, 0: float(self.positions[0])}, grid)
            return [first.at(float(time)) for time in self.positions]
        return [View.of(self.domain, self.plane, {**given, self.axis: float(at)}, grid) for at in self.positions]


def films(solution: Solution, count: int) -> list[Film]:
    """The films of a solution with that many pictures; none where nothing can move (no time, two coordinates or less).

    A time integration that ended early is shown up to its end. Solids in time have two films: over time, and across.
    """
    domain = solution.stated.domain
    if isinstance(domain, SpaceTime):
        start, end = domain.time
        known = last_time(solution)
        end = end if known is None else max(float(known), start + 1e-9 * (end - start))
        times = np.linspace(start, end, count)
        if domain.dim == 2:
            return [Film(domain, 0, times, line=1)]
        rest = range(3, domain.dim)
        fixed = tuple(informative_cut(domain, solution.function, rest).items()) if rest else ()
        over_time = Film(domain, 0, times, plane=(1, 2), fixed=fixed)
        if domain.dim == 3:
            return [over_time]
        return [over_time, Film(domain, 3, _inner(domain, 3, count), plane=(1, 2), fixed=((0, float(end)),))]
    return [Film(domain, 2, _inner(domain, 2, count), plane=(0, 1))] if domain.dim > 2 else []


def still(domain: Domain, last: float | None = None) -> Film:
    """One picture of the whole: a profile, the plane of space and time, or the first two coordinates (at a time)."""
    nowhere = np.zeros(1)
    if domain.dim == 1:
        return Film(domain, None, nowhere, line=0)
    if not isinstance(domain, SpaceTime):
        return Film(domain, None, nowhere, plane=(0, 1))
    if domain.dim == 2:
        return Film(domain, None, nowhere, plane=(1, 0))
    return Film(domain, None, nowhere, plane=(1, 2), fixed=((0, domain.time[1] if last is None else last),))


def _inner(domain: Domain, axis: int, count: int) -> Array:
    """Positions between the ends of a coordinate: the first and last slice of a solid may be a point."""
    lower, upper = domain.bounds[axis]
    margin = 0.02 * (upper - lower)
    return np.linspace(lower + margin, upper - margin, count)
