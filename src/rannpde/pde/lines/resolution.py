"""How fine a solution is, place by place: 1/ℓ(x), and the features and quadrature that follow from it.

    1/ℓ(x) = max over time and fields of  √( (2/L)² + |∇u|²/U² ) + √( |∇²u|/U ),

with L the size of the domain and U half the range of the field. A layer of thickness δ has 1/ℓ ≈ 1/δ; a smooth function
on the domain has 1/ℓ of a few over L.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.interpolate import griddata
from scipy.ndimage import gaussian_filter, maximum_filter

from rannpde.domains.domain import Ball, Box
from rannpde.domains.quadrature import gauss_rule
from rannpde.network.adapted import Adapted
from rannpde.pde.lines.basis import Rule
from rannpde.pde.lines.boundary import space_side_rule

Array = np.ndarray
Space = Box | Ball

GRID = {1: 4001, 2: 65}
"""Places along an axis at which 1/ℓ is kept."""
UNIFORM_SHARE = 0.2
"""Share of features and of quadrature cells that ignores ℓ: what the last pass did not see is still found."""
CELLS_PER_LENGTH = {1: 3.0, 2: 0.6}
GAUSS_POINTS = {1: 10, 2: 8}
"""Ten Gauss points on a third of ℓ integrate products of features with slopes up to 1.25/ℓ to rounding: their nearest
pole lies at 1.26 ℓ, a Bernstein ellipse of 15, and 15^-20 is below 1e-23."""


BOUNDARY_NODES = 64
"""Quadrature nodes along each side in 2-D."""
BALL_POINTS = 5.0
"""Points along a radius for each of the shortest lengths on it; a disc has one rule, without cells."""


@dataclass(frozen=True, eq=False)
class Resolution:
    """1/ℓ (G,) on a regular grid of places (G, d) in the bounding box of a domain in space."""

    space: Space
    inverse: Array

    @property
    def dim(self) -> int:
        return self.space.dim

    @cached_property
    def axes(self) -> list[Array]:
        return [np.linspace(lower, upper, GRID[self.dim]) for lower, upper in self.space.bounds]

    @cached_property
    def places(self) -> Array:
        return grid_places(self.space)

    @cached_property
    def lengths_across(self) -> float:
        """∫ ℓ^-d dx: how many lengths the domain holds."""
        inside = self.space.contains(self.places)
        box = float(np.prod(np.ptp(self.space.bounds, axis=1)))
        return float(np.mean(np.where(inside, self.inverse, 0.0) ** self.dim) * box)

    def law(self) -> Adapted:
        """The weight law of this resolution."""
        inside = self.space.contains(self.places)
        return Adapted.to_lengths(self.places[inside], 1.0 / self.inverse[inside], uniform=UNIFORM_SHARE)

    def rule(self, boundary: bool, density: float = 1.0) -> Rule:
        """Quadrature on cells of equal ∫ 1/ℓ, ``density`` times the usual number; with boundary nodes if wanted."""
        if isinstance(self.space, Ball):
            count = int(np.ceil(BALL_POINTS * self.inverse.max() * self.space.radius))
            points, weights = gauss_rule(self.space, min(max(count, 40), 64))
        else:
            points, weights = self._tensor_rule(density)
        dim, sides = self.dim, []
        if boundary:
            sides = [space_side_rule(side, BOUNDARY_NODES) for side in self.space.sides.values()]
        empty = np.zeros((0, dim))
        nodes = np.concatenate([points for points, _, _ in sides]) if sides else empty
        outward = np.concatenate([w[:, None] * normals for _, normals, w in sides]) if sides else empty
        return Rule(points, weights, nodes, outward)

    def _tensor_rule(self, density: float) -> tuple[Array, Array]:
        shape = (GRID[self.dim],) * self.dim
        rules = []
        for axis, places in enumerate(self.axes):
            others = tuple(k for k in range(self.dim) if k != axis)
            rules.append(_line_rule(places, density * self.inverse.reshape(shape).max(axis=others), self.dim))
        mesh = np.meshgrid(*[x for x, _ in rules], indexing="ij")
        weights = np.meshgrid(*[w for _, w in rules], indexing="ij")
        return np.stack([m.ravel() for m in mesh], axis=1), np.prod([w.ravel() for w in weights], axis=0)

    def finer(self, factor: float) -> Resolution:
        """Every length divided by that factor."""
        return self if factor == 1.0 else replace(self, inverse=factor * self.inverse)


def _line_rule(places: Array, inverse: Array, dim: int) -> tuple[Array, Array]:
    """Gauss points on cells between equal shares of 1/ℓ, mixed with a uniform part."""
    length = places[-1] - places[0]
    total = float(np.trapezoid(inverse, places))
    density = (1 - UNIFORM_SHARE) * inverse / total + UNIFORM_SHARE / length
    share = np.append(0.0, np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(places)))
    cells = max(4, int(np.ceil(CELLS_PER_LENGTH[dim] * total)))
    ends = np.interp(np.linspace(0.0, 1.0, cells + 1), share / share[-1], places)
    ends[0], ends[-1] = places[0], places[-1]
    nodes, weights = np.polynomial.legendre.leggauss(GAUSS_POINTS[dim])
    half = 0.5 * np.diff(ends)
    points = (ends[:-1] + half)[:, None] + half[:, None] * nodes
    return points.ravel(), (half[:, None] * weights).ravel()


def grid_places(space: Space) -> Array:
    """The places (G, d) at which 1/ℓ is kept."""
    axes = [np.linspace(lower, upper, GRID[space.dim]) for lower, upper in space.bounds]
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def inverse_length(space: Space, value: Array, gradient: Array, hessian: Array) -> Array:
    """1/ℓ (M,) of one field from u (M, s), |∇u| (M, s) and |∇²u| (M, s) at s times, the largest over time."""
    span = 0.5 * float(np.ptp(value))
    size = max(float(np.ptp(space.bounds, axis=1).max()), 1e-300)
    if span <= 1e-12 * max(float(np.abs(value).max()), 1e-300):
        return np.full(len(value), 4.0 / size)
    slope, bend = gradient / span, hessian / span
    return (np.sqrt((2.0 / size) ** 2 + slope**2) + np.sqrt(np.abs(bend))).max(axis=1)


def from_initial(space: Space, values: Iterable[Array]) -> Resolution:
    """From the initial values (G,) of the fields at ``grid_places``, by differences."""
    found = np.full(GRID[space.dim] ** space.dim, 4.0 / float(np.ptp(space.bounds, axis=1).max()))
    shape = (GRID[space.dim],) * space.dim
    steps = [(upper - lower) / (GRID[space.dim] - 1) for lower, upper in space.bounds]
    for value in values:
        slopes = _gradient(value.reshape(shape), steps)
        bends = [second for slope in slopes for second in _gradient(slope, steps)]
        sizes = [np.sqrt(sum(np.square(part) for part in parts)).reshape(-1, 1) for parts in (slopes, bends)]
        found = np.maximum(found, inverse_length(space, value.reshape(-1, 1), *sizes))
    return smoothed(space, found)


def _gradient(values: Array, steps: list[float]) -> list[Array]:
    result = np.gradient(values, *steps)
    return list(result) if values.ndim > 1 else [result]


def from_nodes(space: Space, points: Array, inverse: Array) -> Resolution:
    """From 1/ℓ (M,) at scattered points (M, d)."""
    places = grid_places(space)
    if space.dim == 1:
        order = np.argsort(points[:, 0])
        return smoothed(space, np.interp(places[:, 0], points[order, 0], inverse[order]))
    return smoothed(space, griddata(points, inverse, places, method="nearest"))


def smoothed(space: Space, inverse: Array) -> Resolution:
    """An envelope without dents: the largest of the neighbourhood, then a moving mean of the same width."""
    shape = (GRID[space.dim],) * space.dim
    reach = max(1, GRID[space.dim] // 200)
    field = maximum_filter(inverse.reshape(shape), size=2 * reach + 1, mode="nearest")
    return Resolution(space, gaussian_filter(field, 0.6 * reach, mode="nearest").ravel())
