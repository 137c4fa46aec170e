"""Slits: cuts of no width inside a domain in the plane, cracks. Each of their two lips is a side of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array, Rng
from rannpde.domains.boundary.sides import Side, checked_bounds
from rannpde.domains.region import composite_gauss
from rannpde.domains.streams import PointStream
from rannpde.errors import InputError, finite_points, positive_integer

if TYPE_CHECKING:
    from rannpde.domains.shapes.base import Domain

HAIR = 1e-10
"""How far inside points of a lip lie, over the length of the slit, so that functions are seen from this lip."""
LIP_DISTANCE = 1e-8
"""Distance from a lip, over the length of the slit, within which a point lies on it."""


@dataclass(frozen=True)
class Lip(Side):
    """One lip of a slit from ``start`` to ``end``: the one that the domain lies to the left of, or to the right.

    Points of it lie a hair inside of the domain, so that functions that jump across the slit are seen from this lip.

    >>> from rannpde.domains import Box
    >>> left, right = slit_lips("slit (0, 0) to (1, 0)", Box(x=(-1, 1), y=(-1, 1)), float)
    >>> left.name, left.measure, left.normals([[0.5, 0.0]]).tolist()
    ('slit (0, 0) to (1, 0), left', 1.0, [[0.0, -1.0]])
    """

    name: str
    domain: Domain = field(repr=False)
    start: tuple[float, float]
    end: tuple[float, float]
    left: bool

    @property
    def extent(self) -> int:
        return 1

    @property
    def columns(self) -> int:
        return 1

    @property
    def measure(self) -> float:
        return float(np.linalg.norm(self._way))

    @property
    def axis(self) -> int | None:
        """The axis that the slit runs across, 0 or 1; None if it is inclined."""
        level = np.flatnonzero(self._way == 0)
        return int(level[0]) if len(level) else None

    @property
    def _way(self) -> Array:
        return np.subtract(self.end, self.start)

    @property
    def normal(self) -> Array:
        """The outward unit normal (2,)."""
        x, y = self._way / self.measure
        return np.array([y, -x]) * (1.0 if self.left else -1.0) + 0.0

    def at(self, shares: Array) -> Array:
        """Points (M, 2) at shares (M,) of the way."""
        return np.asarray(self.start + shares[:, None] * self._way - HAIR * self.measure * self.normal)

    def draw(self, count: int, stream: PointStream, carried: int = 0) -> Array:
        unit = stream(count)
        return np.concatenate([unit[:, :carried], self.at(unit[:, carried])], axis=1)

    def rule(self, count: int, panels: int) -> tuple[Array, Array]:
        nodes, weights = composite_gauss(np.linspace(0.0, 1.0, panels + 1), count)
        return self.at(nodes), weights * self.measure

    def shares(self, points: Array) -> tuple[Array, Array]:
        """Where points (M, 2) are along the way, 0 at its start and 1 at its end, and how far beside it, over it."""
        away, length = points - np.array(self.start), self.measure
        return away @ self._way / length**2, np.abs(away @ self.normal) / length

    def contains(self, points: Array) -> Array:
        share, beside = self.shares(finite_points("points", points, self.dim))
        return np.asarray((share >= -LIP_DISTANCE) & (share <= 1 + LIP_DISTANCE) & (beside <= LIP_DISTANCE))

    def normals(self, points: Array) -> Array:
        return np.broadcast_to(self.normal, finite_points("points", points, self.dim).shape).copy()

    def within(self, bounds: Any, count: int, rng: Rng = None) -> Array:
        box = checked_bounds(bounds, self.dim)
        generator = np.random.default_rng(rng)
        count = positive_integer("count", count)
        low, high = 0.0, 1.0
        for axis, (lower, upper) in enumerate(box):
            start, way = self.start[axis], self._way[axis]
            if way:
                ends = sorted(((lower - start) / way, (upper - start) / way))
                low, high = max(low, ends[0]), min(high, ends[1])
            elif not lower <= start <= upper:
                return np.empty((0, self.dim))
        if low >= high:
            return np.empty((0, self.dim))
        return self.at(low + (high - low) * (np.arange(count) + generator.random(count)) / count)


def slit_lips(text: str, domain: Domain, number: Callable[[str], float]) -> list[Lip]:
    """The lips that a text names: ``slit (0, 0) to (1, 0)``, both, or one of them with ``, left`` or ``, right``.

    number : reads a coordinate
    """
    point = r"\(\s*([^,()]+?)\s*,\s*([^,()]+?)\s*\)"
    match = re.fullmatch(rf"\s*slit\s*{point}\s*to\s*{point}\s*(?:,\s*(left|right))?\s*", text)
    if match is None:
        raise InputError(f"the slit {text!r} must read 'slit (0, 0) to (1, 0)', with ', left' or ', right' for one lip")
    if domain.dim != 2 or domain.timed:
        raise InputError(f"{text!r}: slits are cuts in a domain of two coordinates without time")
    ax, ay, bx, by = (float(number(word)) for word in match.groups()[:4])
    start, end = (ax, ay), (bx, by)
    if start == end:
        raise InputError(f"{text!r}: both ends are the same point; give two")
    slack = LIP_DISTANCE * float(np.abs(domain.bounds).max())
    shares = np.array([0.0, 0.02, 0.25, 0.5, 0.75, 0.98, 1.0])
    points = np.array(start) + shares[:, None] * np.subtract(end, start)
    levels = domain.level(points)
    if not (levels[1:-1] < 0).all() or not (levels <= slack).all():
        raise InputError(f"{text!r}: the slit must lie inside the domain; move its ends")
    plain = f"slit ({ax:g}, {ay:g}) to ({bx:g}, {by:g})"
    wanted = ("left", "right") if match[5] is None else (match[5],)
    return [Lip(f"{plain}, {one}", domain, start, end, one == "left") for one in wanted]
