"""Points of the boundary at which particular solutions must satisfy the conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import first_derivatives
from rannpde.pde.spectrum.shapes.solid_boundary import SolidBoundary
from rannpde.pde.trefftz.geometry import PlaneBoundary
from rannpde.pde.trefftz.rows import ConditionPoints

CanonicalBoundary = PlaneBoundary | SolidBoundary
"""The boundary of a plane shape or of a solid."""


def condition_kind(term: Any) -> int | None:
    """0 for u = 0, 1 for a condition with the normal derivative, None for others."""
    orders = {jet.order for jet in term.expression.jets}
    if orders == {0}:
        return 0
    return 1 if orders <= {0, 1} else None


class BoundarySamples:
    """Collocation points of all conditions, with canonical normals, lengths and the kinds of the conditions.

    dirichlet (M,) : where the condition is u = 0; ratios (M,) : b/a of a ∂ₙu + b u = 0 at the others
    """

    def __init__(self, problem: Problem, boundary: CanonicalBoundary, conditions: Sequence[ConditionPoints]) -> None:
        form = boundary.segments[0].form
        scale = float(form.matrix[0, 0])
        self.points = np.concatenate([condition.points for condition in conditions])
        self.starts = np.cumsum([len(condition.points) for condition in conditions])[:-1]
        self.roots = np.concatenate([condition.weights for condition in conditions])
        self.groups = np.concatenate([condition.groups for condition in conditions])
        self.lengths = self.roots**2 * boundary.length
        regions: list[Any] = [condition.term.region for condition in conditions]
        self.normals = np.concatenate([r.normals(p.points) for r, p in zip(regions, conditions, strict=True)])
        self.outwards = (form.to(self.points) * self.normals).sum(axis=1)
        self.dirichlet = np.concatenate([np.full(len(p.points), condition_kind(p.term) == 0) for p in conditions])
        self.ratios = np.concatenate([_ratio(problem, condition, scale) for condition in conditions])
        self.unit, self.scale = boundary.radius, scale

    def across(self, table: Callable[[MultiIndex], Array]) -> Array:
        """Normal derivatives, canonical, of functions whose derivatives ``table`` gives at the points."""
        dim = self.points.shape[1]
        indices = first_derivatives(dim)
        parts = [self.normals[:, a, None] * table(index) for a, index in enumerate(indices)]
        return np.asarray(sum(parts[1:], parts[0]) / self.scale)

    def between(self, values: Array) -> float:
        """How much a function (M,) may exceed its samples between them: h²/8 max |u''|, by divided differences.

        It is 0 on surfaces, where points have no order.
        """
        worst = 0.0
        if self.points.shape[1] > 2:
            return worst
        for rows in np.split(np.arange(len(values)), self.starts):
            gaps = np.linalg.norm(np.diff(self.points[rows], axis=0), axis=1)
            curvatures = np.abs(np.diff(np.diff(values[rows]) / gaps)) / (0.5 * (gaps[1:] + gaps[:-1]))
            around = np.maximum(
                np.concatenate([curvatures[:1], curvatures]), np.concatenate([curvatures, curvatures[-1:]])
            )
            worst = max(worst, float((gaps**2 / 8 * around).max(initial=0.0)))
        return worst

    def residuals(self, values: Array, across: Array) -> Array:
        """The residuals (M, m) of conditions for values and normal derivatives: u, or radius times ∂ₙu + (b/a) u."""
        robin = self.unit * (across + self.ratios[:, None] * values)
        return np.asarray(np.where(self.dirichlet[:, None], values, robin))


def _ratio(problem: Problem, condition: ConditionPoints, scale: float) -> Array:
    """b/a (M,) of a condition a ∂ₙu + b u = 0, in canonical coordinates; zero where there is no derivative."""
    known = condition.term.known(condition.points, problem.vocabulary)
    expression = condition.term.expression
    _, partials = expression.linearised(known, {jet: np.zeros(len(condition.points)) for jet in expression.jets})
    slope, plain = np.zeros(len(condition.points)), np.zeros(len(condition.points))
    region: Any = condition.term.region
    normals = region.normals(condition.points)
    for jet, partial in zip(expression.jets, partials, strict=True):
        if jet.order:
            slope = slope + partial * normals[:, jet.index.index(1)]
        else:
            plain = plain + partial
    return np.asarray(plain / np.where(slope == 0, np.inf, slope) / scale)
