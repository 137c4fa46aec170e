"""Bounds from the maximum principle: the boundary error bounds the error everywhere.

For A : ∇∇u + b·∇u + c u = f with A positive, c ≤ 0 and u given on the boundary, an approximation that satisfies the
equation is nowhere farther from u than on the boundary. The boundary is sampled adaptively: between two samples an
error exceeds both by at most h²/8 max |e''|, with second derivatives by divided differences, and gaps where that
matters are halved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term, term_residual
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


@dataclass(frozen=True, eq=False)
class BoundaryErrors:
    """The errors of a network on the whole boundary, from one adaptive sample of it.

    bound : of the error everywhere, by the maximum principle
    errors, residuals : condition → root mean square of the error of the value, and mean square of the residual
    """

    bound: float
    errors: Mapping[Term, float]
    residuals: Mapping[Term, float]


def boundary_errors(
    problem: Problem,
    network: TrefftzNetwork,
    boundary: PlaneBoundary,
    form: CanonicalForm,
    particular: Particular,
    count: int,
) -> BoundaryErrors:
    """The bound of |error| on the whole domain; ``count`` is the number of samples to begin with."""
    worst, sums = 0.0, {segment.term: np.zeros(3) for segment in boundary.segments}
    for segment in boundary.segments:
        checkpoint()
        share = max(24, int(count * segment.length / boundary.length))
        units = clustered(share, 80, (segment.corners[0] >= 0, segment.corners[1] >= 0), segment, (5**0.5 - 1) / 2)
        largest, units, values = _largest(_error_along(problem, network, segment), units)
        worst = max(worst, largest)
        residual = values * _value_factor(problem, segment, segment.points(units))
        speeds = np.linalg.norm(segment.slopes(units), axis=1)
        every = speeds * np.stack([np.ones(len(units)), np.square(values), np.square(residual)])
        sums[segment.term] += 0.5 * (every[:, 1:] + every[:, :-1]) @ np.diff(units)
    errors = {term: float(np.sqrt(error / length)) for term, (length, error, _) in sums.items()}
    residuals = {term: float(square / length) for term, (length, _, square) in sums.items()}
    return BoundaryErrors(worst + particular.defect * _source_factor(boundary, form), errors, residuals)


def _value_factor(problem: Problem, segment: BoundarySegment, points: Array) -> Array:
    """The factor (M,) of the value in a condition."""
    term = segment.term
    return np.broadcast_to(
        evaluate([term.expression.partials[0]], term.known(points, problem.vocabulary), term.expression.functions)[0],
        (len(points),),
    )


def _error_along(problem: Problem, network: TrefftzNetwork, segment: BoundarySegment) -> Callable[[Array], Array]:
    def error(units: Array) -> Array:
        points = segment.points(units)
        residual = term_residual(segment.term, network, problem.vocabulary, points)
        return np.asarray(residual / _value_factor(problem, segment, points))

    return error


def _largest(error: Callable[[Array], Array], units: Array) -> tuple[float, Array, Array]:
    """A bound of the error on a segment, with the units (M,) at which it was evaluated, and its values (M,)."""
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
            return largest + float(between.max(initial=0.0)), units, values
        more = 0.5 * (units[coarse] + units[coarse + 1])
        values = np.concatenate([values, error(more)])
        units = np.concatenate([units, more])
        order = np.argsort(units)
        units, values = units[order], values[order]
    return largest + float(between.max(initial=0.0)), units, values


def _source_factor(boundary: PlaneBoundary, form: CanonicalForm) -> float:
    """A bound of the error inside for a unit error of the source, by the comparison functions |y|²/4 and b·y/|b|²."""
    speed = 2 * float(np.linalg.norm(form.drift))
    return 2 * boundary.radius / speed if speed else boundary.radius**2 / 4
