"""Random features for the method of lines: how fine a solution is, place by place, and the basis that follows.

    1/ℓ(x) = max over time and fields of  √( (2/L)² + |∇u|²/U² ) + √( |∇²u|/U ),

with L the size of the domain and U half the range of the field. A layer of thickness δ has 1/ℓ ≈ 1/δ; a smooth function
on the domain has 1/ℓ of a few over L. Features and quadrature cells are placed by ℓ; the first iteration takes it
from the data of the problem, later ones from the solution of the iteration before, at every time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from scipy.interpolate import griddata
from scipy.ndimage import gaussian_filter, maximum_filter

from rannpde.arrays import Array, MultiIndex, combinations
from rannpde.domains.domain import Ball, Domain
from rannpde.domains.quadrature import gauss_rule
from rannpde.domains.region import composite_gauss
from rannpde.network.adapted import Adapted, inverse_length
from rannpde.network.features import RandomFeatures
from rannpde.pde.lines.evolved import Evolved, Stretch
from rannpde.pde.lines.galerkin import DEPENDENT, Basis, Galerkin, Rule, build_basis
from rannpde.pde.lines.iterations import Grown, Setting, check_points, first_scales
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.problem.data import space_fields
from rannpde.pde.problem.evolution import Component, Evolution, evolution_form, space_side_rule

NEAR = 1e-2
"""A field within this share of its range of a declared bound touches it; half and twice as much do the same."""

FINER = {1: 16, 2: 8}
"""How many times finer than the places of 1/ℓ the grid is on which the data of a problem are looked at."""


@dataclass(frozen=True, eq=False)
class Resolution:
    """1/ℓ (G,) on a regular grid of places (G, d) in the bounding box of a domain in space.

    limit : the largest 1/ℓ worth following; data with jumps and kinks have none of their own
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
        """Places per axis."""
        return self.tuning.grid[self.dim - 1]

    @cached_property
    def places(self) -> Array:
        return grid_places(self.space, self.grid)

    @cached_property
    def lengths_across(self) -> float:
        """∫ ℓ^-d dx: how many lengths the domain holds."""
        inside = self.space.contains(self.places)
        box = float(np.prod(np.ptp(self.space.bounds, axis=1)))
        return float(np.mean(np.where(inside, self.inverse, 0.0) ** self.dim) * box)

    def wanted_width(self, tol: float) -> float:
        """Features that resolve these lengths, were there no limit."""
        place = self.dim - 1
        count = self.tuning.features_first[place] - self.tuning.features_digit[place] * float(np.log10(tol))
        return (count if self.dim == 1 else count**2 / 12.0) * self.lengths_across

    def law(self) -> Adapted:
        """The weight law of this resolution."""
        inside = self.space.contains(self.places)
        lengths = 1.0 / self.inverse[inside]
        return Adapted.to_lengths(self.places[inside], lengths, uniform=self.tuning.uniform_share)

    def finer(self, factor: float) -> Resolution:
        """Every length divided by that factor."""
        return replace(self, inverse=factor * self.inverse)

    def limited(self, limit: float) -> Resolution:
        """No length shorter than the limit allows."""
        return replace(self, inverse=np.minimum(self.inverse, limit), limit=limit)

    def rule(self, boundary: bool, density: float = 1.0) -> Rule:
        """Quadrature on cells of equal ∫ 1/ℓ, ``density`` times the usual number; with boundary nodes if wanted."""
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
        """The product of one rule per axis, each for the finest that the other axes hold."""
        shape = (self.grid,) * self.dim
        rules = []
        for axis, (lower, upper) in enumerate(self.space.bounds):
            others = tuple(k for k in range(self.dim) if k != axis)
            inverse = density * self.inverse.reshape(shape).max(axis=others)
            ends = self._cells(np.linspace(lower, upper, self.grid), inverse)
            rules.append(composite_gauss(ends, self.tuning.gauss_points[self.dim - 1]))
        return combinations(x for x, _ in rules), combinations(w for _, w in rules).prod(axis=1)

    def _cells(self, places: Array, inverse: Array) -> Array:
        """Ends of cells of equal shares of 1/ℓ, mixed with a uniform part."""
        uniform = self.tuning.uniform_share
        total = float(np.trapezoid(inverse, places))
        density = (1 - uniform) * inverse / total + uniform / (places[-1] - places[0])
        share = np.append(0.0, np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(places)))
        cells = max(4, int(np.ceil(self.tuning.cells_per_length[self.dim - 1] * total)))
        ends = np.interp(np.linspace(0.0, 1.0, cells + 1), share / share[-1], places)
        ends[0], ends[-1] = places[0], places[-1]
        return ends


def grid_places(space: Domain, grid: int) -> Array:
    """The places (G, d) of a regular grid over the bounding box."""
    return combinations(np.linspace(lower, upper, grid) for lower, upper in space.bounds)


def from_data(evolution: Evolution, tuning: LinesTuning) -> Resolution:
    """From initial values, sources and coefficients on a fine grid, by differences."""
    space = evolution.domain.space
    return from_grid(space, space_fields(evolution, grid_places(space, _fine(space, tuning))), tuning)


def from_grid(space: Domain, fields: Iterable[Array], tuning: LinesTuning) -> Resolution:
    """From fields (F,) on the fine grid of ``from_data``: the shortest length near each place."""
    size, grid, fine = _size(space), tuning.grid[space.dim - 1], _fine(space, tuning)
    found, limit = np.full(grid**space.dim, 4.0 / size), np.inf
    steps = [(upper - lower) / (fine - 1) for lower, upper in space.bounds]
    for value in fields:
        shaped = value.reshape((fine,) * space.dim)
        near = [_largest_near(_inverse_on_grid(shaped, steps, size, every), space.dim, every) for every in (1, 2)]
        least = tuning.rough_lengths[space.dim - 1] / size
        rough = (near[0] > tuning.rough_ratio * near[1]) & (near[0] > least)
        if rough.any():
            near[0][rough] = least
            limit = max(least, float(near[0].max()))
        found = np.maximum(found, near[0])
    return replace(smoothed(space, found, tuning), limit=limit)


def _inverse_on_grid(values: Array, steps: list[float], size: float, every: int) -> Array:
    """1/ℓ by differences of the values at every so manieth place of a regular grid."""
    values, steps = values[(slice(None, None, every),) * values.ndim], [every * step for step in steps]
    slopes = _gradient(values, steps)
    bends = [second for slope in slopes for second in _gradient(slope, steps)]
    slope, bend = (np.sqrt(sum(np.square(part) for part in parts)).reshape(-1, 1) for parts in (slopes, bends))
    return inverse_length(values.reshape(-1, 1), slope, bend, size).reshape(values.shape)


def _largest_near(inverse: Array, dim: int, every: int) -> Array:
    """The largest around each place of the grid that lengths are kept on."""
    finer = FINER[dim] // every
    return maximum_filter(inverse, size=finer + 1, mode="nearest")[(slice(None, None, finer),) * dim].ravel()


def _fine(space: Domain, tuning: LinesTuning) -> int:
    return FINER[space.dim] * (tuning.grid[space.dim - 1] - 1) + 1


def _size(space: Domain) -> float:
    return float(np.ptp(space.bounds, axis=1).max())


def _gradient(values: Array, steps: list[float]) -> list[Array]:
    result = np.gradient(values, *steps)
    return list(result) if values.ndim > 1 else [result]


def from_nodes(space: Domain, points: Array, inverse: Array, tuning: LinesTuning) -> Resolution:
    """From 1/ℓ (M,) at scattered points (M, d)."""
    places = grid_places(space, tuning.grid[space.dim - 1])
    if space.dim == 1:
        order = np.argsort(points[:, 0])
        return smoothed(space, np.interp(places[:, 0], points[order, 0], inverse[order]), tuning)
    return smoothed(space, griddata(points, inverse, places, method="nearest"), tuning)


def smoothed(space: Domain, inverse: Array, tuning: LinesTuning) -> Resolution:
    """An envelope without dents: the largest of the neighbourhood, then a moving mean of the same width."""
    grid = tuning.grid[space.dim - 1]
    reach = max(1, grid // 200)
    shaped = maximum_filter(inverse.reshape((grid,) * space.dim), size=2 * reach + 1, mode="nearest")
    return Resolution(space, gaussian_filter(shaped, 0.6 * reach, mode="nearest").ravel(), tuning)


# ------------------------------------------------------------------------------------------------------- one iteration


class AdaptedFeatures:
    """Iterations with random features adapted to the solution.

    One static basis, good for all that the solution does, serves a whole iteration: rebuilding it on the way costs an
    error at every transfer.
    """

    def __init__(self, evolution: Evolution, setting: Setting, rng: np.random.Generator) -> None:
        self.setting, self.rng, self.tolerances = setting, rng, setting.staged()
        self.weak, self.strong = evolution, evolution_form(evolution.problem, weak=False)
        self.space = evolution.domain.space
        self.resolution = from_data(evolution, setting.tuning)
        self.scales: Mapping[Component, float] = first_scales(evolution)
        self.touching, self.boost = bool(evolution.problem.bounds), 1.0
        self.grown: Grown | None = None

    def run(self, number: int, tol: float) -> Evolved:
        """The march of one iteration over the whole time."""
        weak = self.touching or (self._carried(tol) and self.space.dim == 1)
        system = self._system(self.weak if weak else self.strong, max(tol, self.setting.tol))
        march = self.setting.march(tol, number, system, self.grown)
        path = march.run(system, system.evolution.domain.time, system.initial_state())
        return Evolved(self.weak, (Stretch(system, path),))

    def learn(self, solution: Evolved, failed: bool) -> bool:
        """Look at the solution for the next iteration; False where even the widest basis would be too narrow."""
        tuning = self.setting.tuning
        self.boost *= tuning.finer if failed else 1.0
        seen, self.scales = look(solution, tuning)
        self.resolution = seen.limited(self.resolution.limit)
        self.grown = Grown.of(solution, tuning)
        self.touching = _touches_bounds(solution)
        room = tuning.hopeless * tuning.widest[self.space.dim - 1]
        return self.setting.width is not None or self.resolution.wanted_width(self.setting.tol) <= room

    def _carried(self, tol: float) -> bool:
        """Whether the weak form carries that many digits."""
        return float(np.finfo(float).eps) / self.setting.tuning.weak_cutoff < tol

    def _system(self, form: Evolution, tol: float) -> Galerkin:
        setting, tuning, dim = self.setting, self.setting.tuning, self.space.dim
        resolution = self.resolution.finer(self.boost)
        loose = form.weak and dim == 1 and self._carried(tol / 5)  # where its rounding is far below
        rule = resolution.rule(boundary=form.weak, density=tuning.loose_nodes if loose else 1.0)
        wanted = max(resolution.wanted_width(tol), tuning.narrowest[dim - 1])
        width = setting.width or int(min(wanted, tuning.widest[dim - 1], 0.7 * len(rule.points)))
        features = RandomFeatures.sample(
            width=width, dim=dim, law=resolution.law(), activation="tanh", rng=self.rng, constant=True
        )
        cutoff = max(tuning.weak_cutoff, 1e-5 * tol) if form.weak else max(tuning.strong_cutoff, 1e-3 * tol)
        boundary = DEPENDENT if dim == 1 else max(DEPENDENT, 1e-3 * tol)
        points = tuning.boundary_points
        bases = {
            name: build_basis(
                features, rule, form, name, cutoff=cutoff, boundary_cutoff=boundary, boundary_points=points
            )
            for name in form.orders
        }
        return Galerkin(form, bases, self.scales)


def look(solution: Evolved, tuning: LinesTuning) -> tuple[Resolution, Mapping[Component, float]]:
    """The resolution that the solution needs over all times, and the sizes of its components."""
    stretch = solution.stretches[0]
    system, path = stretch.system, stretch.path
    assert isinstance(system, Galerkin)
    space = system.evolution.domain.space
    times = np.append(
        np.linspace(path.times[0], path.reliable, tuning.looks), path.times[:: max(1, len(path.steps) // 200)]
    )
    times = np.unique(times[times <= path.reliable])
    states, inside = path(times), len(system.nodes)
    total, scales = np.zeros(inside), {}
    for component, block in system.slices.items():
        basis = system.bases[component.field]
        data = basis.data(times, component.level)
        values = partial(_node_values, basis, basis.coefficients(states[block], data), data, inside)
        value = values((0,) * space.dim)
        weights = basis.rule.weights / basis.rule.weights.sum()
        scales[component] = float(np.sqrt(weights @ value**2).max()) or 1.0
        if component.level == 0:
            slope, bend = (np.sqrt(sum(values(index) ** 2 for index in _indices(space.dim, order))) for order in (1, 2))
            total = np.maximum(total, inverse_length(value, slope, bend, _size(space)))
    return from_nodes(space, system.nodes, total, tuning), scales


def _node_values(basis: Basis, own: Array, data: Array, inside: int, index: MultiIndex) -> Array:
    """(Q, s): a space derivative at the nodes inside, from coefficients (rank, s) and boundary values (m, s)."""
    functions, lifting = basis.values(index)
    return functions[:inside] @ own + lifting[:inside] @ data


def _touches_bounds(solution: Evolved) -> bool:
    """Whether a field comes near a declared bound, where its equation may degenerate."""
    problem = solution.evolution.problem
    values = solution(check_points(solution.evolution, solution.end))
    for name, bounds in problem.bounds.items():
        own = values[:, problem.fields.index(name)]
        near = NEAR * np.ptp(own)
        if any(bound is not None and np.abs(own - bound).min() <= near for bound in bounds):
            return True
    return False


def _indices(dim: int, order: int) -> list[MultiIndex]:
    """Multi-indices of order 1 or 2, each as often as it stands in the gradient or the Hessian."""
    units = np.eye(dim, dtype=int)
    rows = units if order == 1 else (units[:, None] + units[None]).reshape(-1, dim)
    return [tuple(int(k) for k in row) for row in rows]
