"""Residuals of conditions near a point, which show errors of derivatives that two solutions may share."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import Side
from rannpde.pde.problem.output_expression import OutputExpression
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term, gradient, jets_of, root_mean_square
from rannpde.pde.solution import SolvedFunction
from rannpde.pde.statement.expression import Expression, Jet
from rannpde.pde.tolerance import NEARBY

NEAR_POINTS = 16
"""Points of a side in that box at which a condition is looked at."""


def condition_defect(
    problem: Problem, function: SolvedFunction, expression: OutputExpression, point: Array, normal: Array | None
) -> float:
    """The error of an expression in derivatives that defects of conditions near a point (n,) speak of.

    A condition on derivatives, such as a traction, that is missed by a share of what the gradient would make of it
    says that derivatives have an error of that share there; the expression has it too.
    """
    worst = 0.0
    lengths = np.diff(problem.domain.bounds, axis=1)[:, 0]
    box = np.stack([point - NEARBY * lengths, point + NEARBY * lengths], axis=1)
    if not expression.order:
        return _value_defect(problem, function, expression, point, normal, box)
    for term in problem.constraints:
        if isinstance(term.region, Side) and any(jet.order for jet in term.expression.jets):
            points = term.region.within(box, NEAR_POINTS, rng=5)
            if len(points):
                worst = max(worst, _relative_residual(term, problem, function, points))
    normals = None if normal is None else normal[None, :]
    known, jets = expression.inputs(function, point[None, :], normals)
    size = _natural_size(expression.expression, known, jets, problem, function, point[None, :])
    return worst * size if np.isfinite(worst * size) else np.inf


def _value_defect(
    problem: Problem,
    function: SolvedFunction,
    expression: OutputExpression,
    point: Array,
    normal: Array | None,
    box: Array,
) -> float:
    """The error of an expression in values near a side on which they are given: how far they are from these."""
    worst = 0.0
    for term in problem.constraints:
        given = term.prescribed
        if not isinstance(term.region, Side) or given is None or given[0].order:
            continue
        points = term.region.within(box, NEAR_POINTS, rng=5)
        if len(points):
            jets = jets_of(function, problem.fields, points, term.expression.jets)
            residual, (slope,) = term.expression.linearised(term.known(points, problem.vocabulary), jets)
            worst = max(worst, float(np.median(np.abs(residual / slope))))
    if not worst or expression.anchors:
        return worst
    return worst * float(expression.slopes(function, point[None, :], None if normal is None else normal[None, :])[0])


def _relative_residual(term: Term, problem: Problem, function: SolvedFunction, points: Array) -> float:
    jets = jets_of(function, problem.fields, points, term.expression.jets)
    known = term.known(points, problem.vocabulary)
    residual = root_mean_square(np.asarray(term.expression.value(known, jets)))
    size = _natural_size(term.expression, known, jets, problem, function, points)
    return residual / max(size, 1e-300)


def _natural_size(
    expression: Expression,
    known: Mapping[sympy.Symbol, Array],
    jets: Mapping[Jet, Array],
    problem: Problem,
    function: SolvedFunction,
    points: Array,
) -> float:
    """Σ |∂F/∂jet| times the size of the whole gradient: a component of it may be zero by symmetry, its error not."""
    slopes = gradient(function, points)  # (M, fields, n)
    sizes = {name: root_mean_square(np.linalg.norm(slopes[:, k], axis=1)) for k, name in enumerate(problem.fields)}
    _, partials = expression.linearised(known, jets)
    total = 0.0
    for jet, partial in zip(expression.jets, partials, strict=True):
        if jet.order and jet.field in sizes:
            own = sizes[jet.field] if jet.order == 1 else root_mean_square(jets[jet])
            total += root_mean_square(np.asarray(partial)) * own
    return total
