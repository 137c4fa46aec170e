"""The local length scale ℓ of functions of space, and the features and quadrature nodes that resolve it.

    1/ℓ(x) = max over time and fields of  √( (2/L)² + |∇u|²/U² ) + √( |∇²u|/U ),

with L the size of the domain and U half the range of the field. A layer of thickness δ has 1/ℓ ≈ 1/δ; a smooth function
on the domain has 1/ℓ of a few over L.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from rannpde.arrays import Array, combinations
from rannpde.domains.domain import Ball, Domain
from rannpde.domains.quadrature.integrals import gauss_rule
from rannpde.domains.region import composite_gauss
from rannpde.network.adapted import Adapted, inverse_length
from rannpde.pde.lines.features.basis import Rule
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.problem.data import space_fields
from rannpde.pde.problem.evolution import Evolution, space_side_rule
from rannpde.rounding import EPS

DATA_REFINEMENT = {1: 16, 2: 8}
"""The grid on which the data of a problem are sampled is this many times finer than that of 1/ℓ, by dimension."""


def resolving_cells(points: int) -> float:
    """Cells per length scale ℓ on which Gauss rules of that many points integrate features and their products to eps.

    The poles of tanh(s x), s ≤ s₁/ℓ, lie at a distance of π ℓ/(2 s₁) from the axis; on a cell of length h this is the
    minor half-axis (ρ - 1/ρ)/2 · h/2 of a Bernstein ellipse, and n points have the error ρ^(-2n).

    >>> round(resolving_cells(10), 2)
    1.17
    """
    rho, steepest = EPS ** (-1 / (2 * points)), Adapted.slopes[1]
    return float((rho - 1 / rho) * steepest / (2 * np.pi))


@dataclass(frozen=True, eq=False)
class Resolution:
    """1/ℓ (G,) on a regular grid of points (G, d) in the bounding box of a domain in space.

    limit : the largest 1/ℓ that is resolved; data with jumps and kinks have no length scale of their own
    """

    space: Domain
    inverse: Array
    tuning: LinesTuning = field(default_factory=LinesTuning)
    limit: float = np.inf

    @property
    def dim(self) -> int:
        return self.space.dim

    @property
    def grid(self) -> int:
        """Grid points per axis."""
        return self.tuning.grid[self.dim - 1]

    @cached_property
    def points(self) -> Array:
        return grid_points(self.space, self.grid)

    @cached_property
    def lengths_across(self) -> float:
        """∫ ℓ^-d dx: the size of the domain in length scales."""
        inside = self.space.contains(self.points)
        box = float(np.prod(np.ptp(self.space.bounds, axis=1)))
        return float(np.mean(np.where(inside, self.inverse, 0.0) ** self.dim) * box)

    def wanted_width(self, tol: float) -> float:
        """The number of features that resolves these length scales, without the limits of the tuning."""
        row = self.dim - 1
        count = self.tuning.features_per_length[row] - self.tuning.features_per_digit[row] * float(np.log10(tol))
        return (count if self.dim == 1 else count**2 / 12) * self.lengths_across

    def law(self) -> Adapted:
        """The sampling law of the hidden weights for this resolution."""
        inside = self.space.contains(self.points)
        lengths = 1.0 / self.inverse[inside]
        return Adapted.to_lengths(self.points[inside], lengths, uniform=self.tuning.uniform_share)

    def refined(self, factor: float) -> Resolution:
        """This resolution with every length scale divided by that factor."""
        return replace(self, inverse=factor * self.inverse)

    def limited(self, limit: float) -> Resolution:
        """This resolution with 1/ℓ bounded by a limit."""
        return replace(self, inverse=np.minimum(self.inverse, limit), limit=limit)

    def rule(self, boundary: bool, density: float = 1.0) -> Rule:
        """Quadrature on cells of equal ∫ 1/ℓ; ``density`` scales their number; with boundary nodes if asked for."""
        if isinstance(self.space, Ball):
            count = int(np.ceil(self.tuning.ball_points * self.inverse.max() * self.space.radius))
            points, weights = gauss_rule(self.space, min(max(count, 40), 64))
        else:
            points, weights = self._tensor_rule(density)
        sides = []
        if boundary:
            sides = [space_side_rule(side, self.tuning.boundary_nodes) for side in self.space.sides.values()]
        empty = np.zeros((0, self.dim))
        nodes = np.concatenate([points for points, _, _ in sides]) if sides else empty
        outward = np.concatenate([w[:, None] * normals for _, normals, w in sides]) if sides else empty
        return Rule(points, weights, nodes, outward)

    def _tensor_rule(self, density: float) -> tuple[Array, Array]:
        """The product of one rule per axis, each for the largest 1/ℓ over the other axes."""
        shape = (self.grid,) * self.dim
        rules = []
        for axis, (lower, upper) in enumerate(self.space.bounds):
            others = tuple(k for k in range(self.dim) if k != axis)
            inverse = density * self.inverse.reshape(shape).max(axis=others)
            ends = self._cells(np.linspace(lower, upper, self.grid), inverse)
            rules.append(composite_gauss(ends, self.tuning.gauss_points[self.dim - 1]))
        return combinations(x for x, _ in rules), combinations(w for _, w in rules).prod(axis=1)

    def _cells(self, points: Array, inverse: Array) -> Array:
        """Ends of cells with equal shares of ∫ 1/ℓ, mixed with a uniform density."""
        uniform = self.tuning.uniform_share
        total = float(np.trapezoid(inverse, points))
        density = (1 - uniform) * inverse / total + uniform / (points[-1] - points[0])
        share = np.append(0.0, np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(points)))
        cells = max(4, int(np.ceil(self.tuning.cells_per_length[self.dim - 1] * total)))
        ends = np.interp(np.linspace(0.0, 1.0, cells + 1), share / share[-1], points)
        ends[0], ends[-1] = points[0], points[-1]
        return ends


def grid_points(space: Domain, grid: int) -> Array:
    """The points (G, d) of a regular grid over the bounding box."""
    return combinations(np.linspace(lower, upper, grid) for lower, upper in space.bounds)


def from_data(evolution: Evolution, tuning: LinesTuning) -> Resolution:
    """The resolution of initial values, sources and coefficients, by differences on a fine grid."""
    space = evolution.domain.space
    return from_grid(space, space_fields(evolution, grid_points(space, _fine(space, tuning))), tuning)


def from_grid(space: Domain, fields: Iterable[Array], tuning: LinesTuning) -> Resolution:
    """The resolution of fields (F,) on the fine grid of ``from_data``: the shortest length scale near each point."""
    size, grid, fine = extent(space), tuning.grid[space.dim - 1], _fine(space, tuning)
    inverse, limit = np.full(grid**space.dim, 4 / size), np.inf
    steps = [(upper - lower) / (fine - 1) for lower, upper in space.bounds]
    for value in fields:
        shaped = value.reshape((fine,) * space.dim)
        near = [_largest_near(_inverse_on_grid(shaped, steps, size, every), space.dim, every) for every in (1, 2)]
        least = tuning.rough_lengths[space.dim - 1] / size
        rough = (near[0] > tuning.rough_ratio * near[1]) & (near[0] > least)
        if rough.any():
            near[0][rough] = least
            limit = max(least, float(near[0].max()))
        inverse = np.maximum(inverse, near[0])
    return replace(smoothed(space, inverse, tuning), limit=limit)


def _inverse_on_grid(values: Array, steps: list[float], size: float, every: int) -> Array:
    """1/ℓ by differences of the values at every n-th point of a regular grid, n = ``every``."""
    values, steps = values[(slice(None, None, every),) * values.ndim], [every * step for step in steps]
    slopes = _gradient(values, steps)
    seconds = [second for slope in slopes for second in _gradient(slope, steps)]
    slope, curvature = (np.sqrt(sum(np.square(part) for part in parts)).reshape(-1, 1) for parts in (slopes, seconds))
    return inverse_length(values.reshape(-1, 1), slope, curvature, size).reshape(values.shape)


def _largest_near(inverse: Array, dim: int, every: int) -> Array:
    """The largest value around each point of the grid of 1/ℓ."""
    from scipy.ndimage import maximum_filter  # heavy, and only this method needs it

    finer = DATA_REFINEMENT[dim] // every
    return maximum_filter(inverse, size=finer + 1, mode="nearest")[(slice(None, None, finer),) * dim].ravel()


def _fine(space: Domain, tuning: LinesTuning) -> int:
    return DATA_REFINEMENT[space.dim] * (tuning.grid[space.dim - 1] - 1) + 1


def extent(space: Domain) -> float:
    """The longest side of the bounding box."""
    return float(np.ptp(space.bounds, axis=1).max())


def _gradient(values: Array, steps: list[float]) -> list[Array]:
    result = np.gradient(values, *steps)
    return list(result) if values.ndim > 1 else [result]


def from_nodes(space: Domain, points: Array, inverse: Array, tuning: LinesTuning) -> Resolution:
    """The resolution from 1/ℓ (M,) at scattered points (M, d)."""
    grid = grid_points(space, tuning.grid[space.dim - 1])
    if space.dim == 1:
        order = np.argsort(points[:, 0])
        return smoothed(space, np.interp(grid[:, 0], points[order, 0], inverse[order]), tuning)
    from scipy.interpolate import griddata

    return smoothed(space, griddata(points, inverse, grid, method="nearest"), tuning)


def smoothed(space: Domain, inverse: Array, tuning: LinesTuning) -> Resolution:
    """A smooth upper envelope: the maximum over a neighbourhood, then a moving mean of the same width."""
    from scipy.ndimage import gaussian_filter, maximum_filter

    grid = tuning.grid[space.dim - 1]
    reach = max(1, grid // 200)
    shaped = maximum_filter(inverse.reshape((grid,) * space.dim), size=2 * reach + 1, mode="nearest")
    return Resolution(space, gaussian_filter(shaped, 0.6 * reach, mode="nearest").ravel(), tuning)
