"""Largest and smallest values of an expression: sought on many points, zoomed in, refined by Newton's method.

Interior extrema are zeros of the gradient, which Newton's method finds with the exact derivatives of the network. On
sides, edges and corners, points of the region in ever smaller boxes around the best one are compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array, combinations
from rannpde.domains.boundary.sides import Side
from rannpde.domains.domain import Domain, SpaceTime
from rannpde.domains.quadrature.patches import PlacedPoints, RegionPatches
from rannpde.errors import InputError
from rannpde.pde.outputs.comparison import SolutionPair
from rannpde.pde.outputs.settings import OutputSettings
from rannpde.pde.problem.output_expression import OutputExpression
from rannpde.pde.problem.output_region import OutputRegion, output_region
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import SolvedFunction
from rannpde.pde.statement.expansion import compile_expression
from rannpde.pde.statement.expression import Expression
from rannpde.pde.tolerance import MUCH_SMALLER, NEARBY
from rannpde.rounding import ROOT_ROUNDED

ZOOM_POINTS = 24
"""Points of each box among which a better one is looked for."""
ZOOMS = 80
"""Most boxes, each within or beside the one before."""
SMALLEST = 1e-11
"""Half-width of the last box in parameters of a patch: at a corner an error of this share of the slope is left."""
NEWTON_STEPS = 8
"""Quadratic convergence from the best of a grid doubles the digits each time: four would be enough from two digits."""


@dataclass(frozen=True, eq=False)
class Extremum:
    """The value, the point (n,), and the outward normal (n,) of a point on a side."""

    value: float
    point: Array
    normal: Array | None


@dataclass(frozen=True, eq=False)
class Search:
    """The objective of a search: sign · expression of one of two solutions, at points where both agree on it.

    resolved : relative difference of both up to which they agree on derivatives; scale : typical size of the expression
    """

    resolved: float
    function: SolvedFunction
    expression: OutputExpression
    other: SolvedFunction | None
    sign: float
    scale: float

    def values(self, points: Array, normals: Array | None) -> Array:
        """sign · expression (M,), minus infinity where it is not known."""
        values = self.expression.values(self.function, points, normals)
        known = np.isfinite(values)
        if self.expression.order and self.other is not None:
            gap = np.abs(values - self.expression.values(self.other, points, normals))
            known &= gap <= self.resolved * (np.abs(values) + self.scale)
        return np.where(known, self.sign * values, -np.inf)


def find_maximum(
    comparison: SolutionPair, function: SolvedFunction, expression: OutputExpression, region: OutputRegion, sign: float
) -> Extremum:
    """The largest value of sign · expression in the closure of a region; ``value`` is that of the expression.

    function : that of one of the two solutions; points at which they do not agree on derivatives are left out
    """
    problem, settings = comparison.solution.stated, comparison.settings
    sample = problem.domain.sample(settings.scan // 16, rng=23)
    plain = None if not expression.uses_normals else np.full(sample.shape, problem.domain.dim**-0.5)
    scale = float(np.median(np.abs(expression.values(function, sample, plain))))
    both = [comparison.solution.function, *([comparison.companion.function] if comparison.companion else [])]
    other = next((candidate for candidate in both if candidate is not function), None)
    scale = scale if np.isfinite(scale) else 0.0
    search = Search(settings.resolved, function, expression, other, sign, scale)
    best: Extremum | None = None
    for part in [region, *_boundary(region, problem, expression)]:
        if part.patches is None:
            candidate = _by_points(search, part, settings)
        else:
            candidate = _by_patches(search, part.patches, settings, -np.inf if best is None else sign * best.value)
        if candidate is not None and (best is None or sign * candidate.value > sign * best.value):
            best = candidate
    if best is None:
        raise InputError(
            f"{expression.text!r} is known nowhere on {region.name}: two solutions do not agree on it, or it is not "
            "finite; ask for a smaller tol"
        )
    return _refined(function, expression, best, problem, sign)


def _boundary(region: OutputRegion, problem: Problem, expression: OutputExpression) -> list[OutputRegion]:
    """Sides of a domain, and its first and last time, on which an extremum may lie; corners are ends of these."""
    regions: list[OutputRegion] = []
    for part in region.regions:
        if not isinstance(part, Domain) or expression.uses_normals:
            continue
        sides: list[Side] = list(part.sides.values())
        if isinstance(part, SpaceTime):
            sides += [part.initial, part.final]
        regions += [output_region(side, region.time, problem) for side in sides]
    return regions


def _by_patches(search: Search, patches: RegionPatches, settings: OutputSettings, known: float) -> Extremum | None:
    """The largest value on patches, or None where nothing there can be larger than what is known."""
    k, rng = patches.extent, np.random.default_rng(17)

    def values_at(patch: Array, unit: Array) -> tuple[Array, PlacedPoints]:
        samples = patches.place(patch, unit)
        return search.values(samples.points, samples.normals), samples

    points_per_patch = max(settings.scan // patches.count, 8**k if k else 1)
    side = max(2, int(np.ceil(points_per_patch ** (1 / k)))) if k else 1
    grid = combinations([np.linspace(0.0, 1.0, side)] * k) if k else np.zeros((1, 0))
    patch, unit = np.repeat(np.arange(patches.count), len(grid)), np.tile(grid, (patches.count, 1))
    values, at_points = values_at(patch, unit)
    chosen = _separate(values, at_points.points, settings.candidates, settings.cloud_radius)
    if not len(chosen) or not np.isfinite(values[chosen[0]]):
        return None
    patch, centre, best = patch[chosen], unit[chosen], values[chosen]
    half = np.full(len(chosen), 1 / max(side - 1, 1))  # to the next points of the grid
    for _ in range(ZOOMS if k else 0):
        offsets = rng.uniform(-1, 1, (len(patch), ZOOM_POINTS, k))
        trial = np.clip(centre[:, None] + half[:, None, None] * offsets, 0.0, 1.0)
        trial_values = values_at(np.repeat(patch, ZOOM_POINTS), trial.reshape(-1, k))[0].reshape(
            len(patch), ZOOM_POINTS
        )
        at = trial_values.argmax(axis=1)
        rows = np.arange(len(patch))
        better = trial_values[rows, at] > best
        moved = np.abs(trial[rows, at] - centre).max(axis=1) > 0.5 * half
        centre[better], best[better] = trial[rows, at][better], trial_values[rows, at][better]
        half = np.where(better & moved, half, 0.5 * half)  # a box that leaves the one before is as large
        # only boxes that may still hold the largest value are followed; equal values in all of them end the search
        spread = np.where(np.isfinite(trial_values), best[:, None] - trial_values, 0.0).max(axis=1)
        promising = best + 2 * spread >= max(best.max(), known)
        if not promising.any():
            return None
        flat = spread[promising].max() <= settings.rounding * max(abs(best.max()), search.scale)
        patch, centre, best, half = patch[promising], centre[promising], best[promising], half[promising]
        if flat or half.max() <= SMALLEST:
            break
    winner = int(best.argmax())
    values, at_points = values_at(patch[[winner]], centre[[winner]])
    normal = None if at_points.normals is None else at_points.normals[0]
    return Extremum(float(search.sign * values[0]), at_points.points[0], normal)


def _by_points(search: Search, part: OutputRegion, settings: OutputSettings) -> Extremum | None:
    """The largest value on a region without patches, such as a solid or its surface, from points in shrinking boxes."""
    best: Extremum | None = None
    for region in part.regions:
        assert isinstance(region, (Domain, Side))

        def values_at(points: Array, region: Domain | Side = region) -> tuple[Array, Array | None]:
            normals = region.normals(points) if part.sided and isinstance(region, Side) else None
            if normals is not None and part.time is not None:
                normals = np.insert(normals, 0, 0.0, axis=1)
            return search.values(part.timed(points), normals), normals

        points = region.sample(1 if region.is_point else settings.scan, rng=17)
        values, _ = values_at(points)
        lengths = np.ptp(points, axis=0) + 1e-300
        for start in _separate(values, points, 4, settings.cloud_radius):
            centre, top, half = points[start], values[start], MUCH_SMALLER
            while half > SMALLEST and np.isfinite(top):
                box = np.stack([centre - half * lengths, centre + half * lengths], axis=1)
                near = region.within(box, ZOOM_POINTS, rng=int(1 / half) % 1000)
                near_values = values_at(near)[0] if len(near) else np.array([-np.inf])
                at = int(near_values.argmax())
                if near_values[at] > top:
                    moved = float((np.abs(near[at] - centre) / lengths).max()) > 0.5 * half
                    centre, top = near[at], near_values[at]
                    half *= 1.0 if moved else 0.5
                else:
                    half *= 0.5
            if np.isfinite(top) and (best is None or top > search.sign * best.value):
                normals = values_at(centre[None, :])[1]
                normal = None if normals is None else normals[0]
                best = Extremum(float(search.sign * top), part.timed(centre[None, :])[0], normal)
    return best


def _separate(values: Array, points: Array, count: int, distance: float) -> Array:
    """Indices of the largest values at points (M, n) with a least distance, relative to the extent of all points."""
    order = np.argsort(-values, kind="stable")
    lengths = np.ptp(points, axis=0) + 1e-300
    chosen: list[int] = []
    for k in order[: 50 * count]:
        near = any((np.abs(points[k] - points[j]) < distance * lengths).all() for j in chosen)
        if not near:
            chosen.append(int(k))
        if len(chosen) == count:
            break
    return np.array(chosen, dtype=int)


def _refined(
    function: SolvedFunction, expression: OutputExpression, extremum: Extremum, problem: Problem, sign: float
) -> Extremum:
    """The extremum after Newton's method on the gradient, where the point is inside and the expression smooth there."""
    domain = problem.domain
    size = float(np.diff(domain.bounds, axis=1).max())
    if extremum.normal is not None or expression.anchors or expression.expression.kinked:
        return extremum
    if domain.level(extremum.point[None, :])[0] > -ROOT_ROUNDED * size:
        return extremum
    first, second = derivative_expressions(expression)
    point = extremum.point
    for _ in range(NEWTON_STEPS):
        gradient = np.array([float(entry.values(function, point[None, :])[0]) for entry in first])
        hessian = np.array([[float(entry.values(function, point[None, :])[0]) for entry in row] for row in second])
        if not (np.isfinite(gradient).all() and np.isfinite(hessian).all()):
            return extremum
        try:
            step = np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError:
            return extremum
        if not (np.abs(step) < NEARBY * size).all():
            return extremum
        point = point - step
        if (np.abs(step) <= 1e-15 * size).all():
            break
    if not domain.contains(point[None, :])[0]:
        return extremum
    value = float(expression.values(function, point[None, :])[0])
    near = abs(value - extremum.value) <= ROOT_ROUNDED * abs(extremum.value) + 1e-300
    return Extremum(value, point, None) if near and sign * (value - extremum.value) >= -1e-12 * abs(value) else extremum


def derivative_expressions(
    expression: OutputExpression,
) -> tuple[list[OutputExpression], list[list[OutputExpression]]]:
    """First and second derivatives of an expression by the coordinates, as expressions of the fields."""
    words = expression.vocabulary
    first = [_derived(expression, expression.expression.source.diff(symbol)) for symbol in words.symbols]
    sources = [slope.expression.source for slope in first]
    second = [[_derived(expression, source.diff(symbol)) for symbol in words.symbols] for source in sources]
    return first, second


def _derived(expression: OutputExpression, source: object) -> OutputExpression:
    compiled: Expression = compile_expression(source, expression.vocabulary)
    return OutputExpression(expression.text, compiled, expression.anchors, expression.vocabulary, expression.fields)
