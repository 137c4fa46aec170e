"""Values of an output for a solution and for a second one, and the error bound that their difference gives.

    |Q(u) - Q(u₁)| ≤ c ∫ |q(u₁) - q(u₂)| + quadrature.

No cancellation of errors is assumed: the absolute difference is integrated, and at single points the differences in a
neighbourhood are taken into account.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.quadrature.adaptive import integrate_patches
from rannpde.domains.quadrature.integrals import integrate
from rannpde.domains.quadrature.patches import PlacedPoints
from rannpde.domains.region import Region
from rannpde.pde.outputs.local import condition_defect
from rannpde.pde.outputs.settings import OutputSettings
from rannpde.pde.problem.output_expression import OutputExpression
from rannpde.pde.problem.output_region import OutputRegion
from rannpde.pde.solution import Solution
from rannpde.pde.tolerance import ALGEBRA_SHARE, PILOT_TOLERANCE
from rannpde.pde.trefftz.history import TrefftzHistory

NOISE = 3
"""The column of the integrands that holds |q(u₁) - q(u₂)|: panels whose other errors are smaller are not halved."""


@dataclass(frozen=True, eq=False)
class SolutionPair:
    """A solution with the second one (None where there is none), and how outputs of both are compared."""

    solution: Solution
    companion: Solution | None
    settings: OutputSettings

    @property
    def converged(self) -> bool:
        """Whether the two solutions say anything about the error."""
        return self.solution.converged and self.companion is not None

    @property
    def safety(self) -> float:
        """Factor of the difference of both in bounds: twice as much where neither is known to be the better one."""
        if self.companion is None:
            return self.settings.safety
        first, second = self.solution.estimate, self.companion.estimate
        one_is_better = self.companion.converged and max(first, second) > 2 * min(first, second)
        return self.settings.safety * (1 if one_is_better else 2)

    @property
    def basis(self) -> str:
        """The basis of the bounds, in words."""
        if self.companion is None:
            return "no second solution"
        return f"two solutions by {self.solution.method.name}"

    def difference(self, expression: OutputExpression, points: Array, normals: Array | None = None) -> Array:
        """|q(u₁) - q(u₂)| (M,); infinite where there is no second solution."""
        if self.companion is None:
            return np.full(len(points), np.inf)
        first, second = (expression.values(s.function, points, normals) for s in (self.solution, self.companion))
        return np.abs(first - second)


@dataclass(frozen=True, eq=False)
class ComparedIntegral:
    """∫ q(u₁), its bound, ∫ |q(u₁)|, whether the quadrature converged, and the measure of the region."""

    value: float
    bound: float
    size: float
    reached: bool
    measure: float
    rule: str


def compared_integral(comparison: SolutionPair, expression: OutputExpression, region: OutputRegion) -> ComparedIntegral:
    """The integral of an expression over a region, with the bound by the second solution."""
    settings, function = comparison.settings, comparison.solution.function
    field_bound = proven_bound(comparison.solution, expression)

    def columns(points: Array, normals: Array | None) -> Array:
        values, magnitudes = expression.sized_values(function, points, normals)
        sized = [values, np.abs(values), np.ones(len(values))]
        sized.append(comparison.difference(expression, points, normals) if comparison.companion else 0 * values)
        sized.append(expression.slopes(function, points, normals) if field_bound is not None else 0 * values)
        sized.append(magnitudes)
        return np.stack(sized, axis=1)

    share = ALGEBRA_SHARE * min(comparison.solution.estimate, 1.0)
    relative = max(share, settings.rounding)
    if region.patches is not None:
        nodes = settings.nodes[min(region.patches.extent, len(settings.nodes)) - 1] if region.patches.extent else 1

        def at(samples: PlacedPoints) -> Array:
            return columns(samples.points, samples.normals)

        def allowed(sums: Array) -> float:
            return relative * float(sums[1])

        quadrature = integrate_patches(at, region.patches, allowed, nodes, settings.points, noise=NOISE)
        sums, error, reached = quadrature.values, float(quadrature.errors[0]), quadrature.reached
        rule = f"{quadrature.points} points"
    else:
        parts = [_by_rule(columns, region, part, relative) for part in region.regions]
        sums = np.sum([part[0] for part in parts], axis=0)
        error, reached = sum(part[1] for part in parts), all(part[2] for part in parts)
        rule = "Gauss or Sobol points"
    value, size, measure, difference, slope, magnitude = (float(x) for x in sums)
    spread = comparison.safety * difference if comparison.companion is not None else np.inf
    if field_bound is not None:
        spread = min(spread, field_bound * slope)
    bound = spread + error + settings.rounding * magnitude
    return ComparedIntegral(value, bound if np.isfinite(value) else np.inf, size, reached, measure, rule)


def _by_rule(columns: Any, region: OutputRegion, part: Region, relative: float) -> tuple[Array, float, bool]:
    """Sums (C,), error of the first, and whether it is small, for a region that has a rule but no patches."""

    def values(points: Array) -> Array:
        normals = part.normals(points) if region.sided else None  # type: ignore[attr-defined]
        if normals is not None and region.time is not None:
            normals = np.insert(normals, 0, 0.0, axis=1)
        return np.asarray(columns(region.timed(points), normals))

    quadrature = integrate(values, part, tolerance=max(relative, 1e-10), rng=5)
    sums, errors = np.asarray(quadrature.value), np.asarray(quadrature.error)
    factor = 1.0 if quadrature.rule.startswith("gauss") else 3  # of standard errors
    return sums, factor * float(errors[0]), bool(factor * errors[0] <= max(relative, PILOT_TOLERANCE) * sums[1])


def proven_bound(solution: Solution, expression: OutputExpression) -> float | None:
    """A proven bound of |error| everywhere, where the method has one and the expression is affine in values."""
    bound = solution.history.bound if isinstance(solution.history, TrefftzHistory) else None
    usable = expression.linear and expression.order == 0 and not expression.anchors
    return float(bound) if bound is not None and usable and np.isfinite(bound) else None


def difference_around(
    comparison: SolutionPair, expression: OutputExpression, point: Array, normal: Array | None = None
) -> float:
    """|q(u₁) - q(u₂)| at a point (n,), or its median in a cloud around, or the error that the residuals of conditions
    near the point show: the largest of them."""
    solution = comparison.solution
    normals = None if normal is None else normal[None, :]
    here = float(comparison.difference(expression, point[None, :], normals)[0])
    if comparison.companion is not None:
        here = max(here, condition_defect(solution.stated, solution.function, expression, point, normal))
    return max(here, cloud_difference(comparison, expression, point, normal))


def cloud_difference(
    comparison: SolutionPair, expression: OutputExpression, point: Array, normal: Array | None = None
) -> float:
    """The median of |q(u₁) - q(u₂)| in a cloud around a point (n,); 0 where the domain has no points there."""
    domain, settings = comparison.solution.stated.domain, comparison.settings
    reach = settings.cloud_radius * np.diff(domain.bounds, axis=1)[:, 0]
    cloud = domain.within(np.stack([point - reach, point + reach], axis=1), settings.cloud, rng=3)
    if not len(cloud):
        return 0.0
    around = None if normal is None else np.broadcast_to(normal, cloud.shape)
    return float(np.median(comparison.difference(expression, cloud, around)))


def unresolved_derivative(
    comparison: SolutionPair, expression: OutputExpression, point: Array, value: float, bound: float
) -> bool:
    """Whether the solutions do not determine a derivative at a point.

    Its bound is then a large share of its value, and far above the differences of the solutions around the point. The
    same is assumed next to poles of features, as at corners, where two solutions may agree by chance.
    """
    if not expression.order or not np.isfinite(bound):
        return False
    domain, poles = comparison.solution.stated.domain, getattr(comparison.solution.function, "pole_distances", None)
    if poles is not None and poles(point[None, :])[0] < comparison.settings.cloud_radius * np.ptp(domain.bounds):
        return True
    around = cloud_difference(comparison, expression, point)
    return bound > comparison.settings.resolved * abs(value) and bound > comparison.settings.beside * around
