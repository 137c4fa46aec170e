"""Reasons to prefer another method to Trefftz networks on domains in the plane and in space."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rannpde.pde.problem.problem import Problem
from rannpde.pde.trefftz.geometry import PlaneBoundary
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.pde.trefftz.tuning import TrefftzTuning
from rannpde.rounding import COMPUTED, ROOT_ROUNDED


def plane_drawbacks(problem: Problem, boundaries: Sequence[PlaneBoundary], tuning: TrefftzTuning) -> tuple[str, ...]:
    """Drawbacks because of the boundaries of one or several networks in the plane."""
    if any(_asks_at_corners(problem, boundary) for boundary in boundaries):
        return ("an output is a derivative at a corner, next to which it has poles",)
    for boundary in boundaries:
        form = boundary.segments[0].form
        bent = any(not segment.straight for segment in boundary.segments)
        if form.kappa < 0 and bent and form.wave_number * boundary.radius > 10 * tuning.layers:
            return ("layers along curved sides are thinner than its features resolve",)
    return ()


def _asks_at_corners(problem: Problem, boundary: PlaneBoundary) -> bool:
    """Whether an output of the problem is the value of a derivative at a corner."""
    corners = [boundary.segments[0].form.back(corner.point[None, :])[0] for corner in boundary.corners]
    asked = [
        np.asarray(output.at, dtype=float)
        for name, output in problem.outputs.items()
        if output.at is not None and problem.output_expressions[name].order
    ]
    size = float(np.ptp(problem.domain.bounds, axis=1).max())
    return any(np.linalg.norm(point - corner) < ROOT_ROUNDED * size for point in asked for corner in corners)


def space_drawbacks(problem: Problem, forms: Sequence[CanonicalForm]) -> tuple[str, ...]:
    """Drawbacks because of the operators and the edges of a solid."""
    reasons = []
    for form in forms:
        reach = form.wave_number * float(np.abs(problem.domain.bounds - form.origin[:, None]).max())
        if form.kappa < 0 and reach > 20:
            reasons.append("layers are thinner than its features in space resolve")
            break
    edges = np.abs(problem.domain.creases.directions) > 1 - COMPUTED
    if edges.any(axis=1).all() and edges.any(axis=0).sum() > 1:
        reasons.append("re-entrant edges along different axes meet, and no feature is singular as solutions are there")
    return tuple(reasons)
