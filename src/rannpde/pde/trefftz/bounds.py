"""Bounds from the maximum principle: the boundary error bounds the error everywhere.

For A : ∇∇u + b·∇u + c u = f with A positive, c ≤ 0 and u given on the boundary, an approximation that satisfies the
equation is nowhere farther from u than on the boundary. The boundary is sampled adaptively: between two samples an
error exceeds both by at most h²/8 max |e''|, with second derivatives by divided differences, and gaps where that
matters are halved.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import term_residual
from rannpde.pde.statement.expression import evaluate
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.pde.trefftz.geometry import PlaneBoundary
from rannpde.pde.trefftz.network import TrefftzNetwork
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.pde.trefftz.particular import Particular
from rannpde.pde.trefftz.segments import BoundarySegment, clustered

HALVINGS = 6
"""Rounds in which gaps between samples are halved at most."""


def has_maximum_principle(problem: Problem, form: CanonicalForm) -> bool:
    """Whether c ≤ 0 and every condition gives the value of the field."""
    values = [term.prescribed for term in problem.constraints]
    return form.zeroth <= 0 and all(given is not None and given[0].order == 0 for given in values)


def maximum_bound(
    problem: Problem,
    network: TrefftzNetwork,
    boundary: PlaneBoundary,
    form: CanonicalForm,
    particular: Particular,
    count: int,
) -> float:
    """A bound of |error| on the whole domain; ``count`` is the number of samples to begin with."""
    worst = 0.0
    for segment in boundary.segments:
        checkpoint()
        share = max(24, int(count * segment.length / boundary.length))
        units = clustered(share, 80, (segment.corners[0] >= 0, segment.corners[1] >= 0), segment, (5**0.5 - 1) / 2)
        worst = max(worst, _largest(_error_along(problem, network, segment), units))
    return worst + particular.defect * _source_factor(boundary, form)


def _error_along(problem: Problem, network: TrefftzNetwork, segment: BoundarySegment) -> Callable[[Array], Array]:
    slope = segment.term.expression.partials[0]

    def error(units: Array) -> Array:
        points = segment.points(units)
        residual = term_residual(segment.term, network, problem.vocabulary, points)
        factor = evaluate([slope], segment.term.known(points, problem.vocabulary), segment.term.expression.functions)[0]
        return np.asarray(residual / factor)

    return error


def _largest(error: Callable[[Array], Array], units: Array) -> float:
    values = error(units)
    for _ in range(HALVINGS):
        gaps = np.diff(units)
        slopes = np.diff(values) / gaps
        bends = np.abs(np.diff(slopes)) / (0.5 * (gaps[1:] + gaps[:-1]))
        around = np.maximum(np.concatenate([bends[:1], bends]), np.concatenate([bends, bends[-1:]]))
        between = gaps**2 / 8 * around
        largest = float(np.abs(values).max())
        coarse = np.flatnonzero(between > MUCH_SMALLER * largest)
        if not len(coarse):
            return largest + float(between.max(initial=0.0))
        more = 0.5 * (units[coarse] + units[coarse + 1])
        values = np.concatenate([values, error(more)])
        units = np.concatenate([units, more])
        order = np.argsort(units)
        units, values = units[order], values[order]
    return largest + float(between.max(initial=0.0))


def _source_factor(boundary: PlaneBoundary, form: CanonicalForm) -> float:
    """What a unit of error of the source may be inside: by the comparison functions |y|²/4 and b·y/|b|²."""
    speed = 2 * float(np.linalg.norm(form.drift))
    return 2 * boundary.radius / speed if speed else boundary.radius**2 / 4
