"""Questions to a solution: integrals, means, extrema, values at points, first times, and the outputs of its problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError, finite_points, require
from rannpde.pde.outputs.comparison import (
    SolutionPair,
    compared_integral,
    difference_around,
    proven_bound,
    unresolved_derivative,
)
from rannpde.pde.outputs.extrema import find_maximum
from rannpde.pde.outputs.forces import has_forces, weak_force
from rannpde.pde.outputs.passage import first_passage
from rannpde.pde.outputs.quantity import Quantity
from rannpde.pde.outputs.settings import OutputSettings
from rannpde.pde.outputs.signals import force_at, force_in_time, quantity_in_time
from rannpde.pde.outputs.singular import singular_growth
from rannpde.pde.problem.output import IN_TIME, Output
from rannpde.pde.problem.output_expression import OutputExpression, read_output
from rannpde.pde.problem.output_region import (
    OutputRegion,
    check_anchors,
    check_output_region,
    check_points_inside,
    output_region,
    times_of,
)
from rannpde.pde.solution import Solution
from rannpde.pde.weak.history import WeakHistory


def compared(solution: Solution, settings: OutputSettings | None = None) -> SolutionPair:
    """The solution with its second one, which is solved when it is first needed."""
    return SolutionPair(solution, solution.companion, settings or OutputSettings())


def integral(comparison: SolutionPair, statement: Any, on: Any = None, t: Any = None, mean: bool = False) -> Quantity:
    """∫ of an expression over the domain, a side, a shape, a line; at a time, or at several."""
    expression = _read(comparison, statement)

    def at(time: float | None) -> Quantity:
        region = output_region(on, time, comparison.solution.stated)
        check_output_region(expression, region)
        force = None if mean else weak_force(comparison.solution, expression, region)
        if force is not None:
            return force
        compared = compared_integral(comparison, expression, region)
        factor = 1 / compared.measure if mean else 1.0
        how = f"{comparison.basis}, {compared.rule}"
        good = comparison.converged and compared.reached and np.isfinite(compared.bound)
        return Quantity(factor * compared.value, factor * compared.bound, bool(good), how)

    return _series(comparison, t, at)


def asked_integral(solution: Solution, statement: Any, on: Any = None, t: Any = None) -> Quantity:
    """∫ of an expression of a solution; a second solution is computed only where the bound needs it."""
    if t is None:
        force = _force(solution, statement, on)
    else:
        force = force_at(solution, _read(SolutionPair(solution, None, OutputSettings()), statement), on, t)
    return integral(compared(solution), statement, on, t) if force is None else force


def _force(solution: Solution, statement: Any, on: Any) -> Quantity | None:
    """An integral that is a force of a flow, which needs no second solution; None for others."""
    alone = SolutionPair(solution, None, OutputSettings())
    if not has_forces(solution):
        return None
    expression, region = _read(alone, statement), output_region(on, None, solution.stated)
    check_output_region(expression, region)
    return weak_force(solution, expression, region)


def extremum(comparison: SolutionPair, statement: Any, sign: float, on: Any = None, t: Any = None) -> Quantity:
    """The largest (sign 1) or smallest (sign -1) value of an expression, and where it is."""
    expression = _read(comparison, statement)
    solution = comparison.solution

    def at(time: float | None) -> Quantity:
        region = output_region(on, time, solution.stated)
        check_output_region(expression, region)
        extreme = find_maximum(comparison, solution.function, expression, region, sign)
        pole, growth = _infinite(comparison, expression, region, extreme.point, sign)
        if growth:
            return _unbounded(comparison, sign, growth, pole)
        bound = np.inf
        if comparison.companion is not None:
            # the maxima of two functions differ by no more than the functions, where these are largest
            other = find_maximum(comparison, comparison.companion.function, expression, region, sign)
            there = difference_around(comparison, expression, other.point, other.normal)
            here = difference_around(comparison, expression, extreme.point, extreme.normal)
            bound = comparison.safety * max(here, there, abs(extreme.value - other.value))
        normals = None if extreme.normal is None else extreme.normal[None, :]
        magnitude = float(expression.sized_values(solution.function, extreme.point[None, :], normals)[1][0])
        bound += comparison.settings.rounding * magnitude
        good = comparison.converged and bool(np.isfinite(bound))
        return Quantity(extreme.value, bound, good, comparison.basis, tuple(map(float, extreme.point)))

    return _series(comparison, t, at)


def probe(comparison: SolutionPair, points: Any, statement: Any = None, t: Any = None) -> Quantity:
    """The values of an expression at points (M, n), or (M, d) at a time: (M,); the only field unless it is given."""
    solution = comparison.solution
    problem = solution.stated
    if statement is None:
        remedy = f"name one of {', '.join(solution.fields)}"
        require(len(solution.fields) == 1, "expression", statement, "given for several fields", remedy)
        statement = solution.fields[0]
    expression = _read(comparison, statement)
    if expression.uses_normals:
        raise InputError(f"{expression.text!r} needs a normal, which points have not; write derivatives such as u_x")
    rows = finite_points("points", np.atleast_2d(np.asarray(points, dtype=float)), None)
    if t is not None:
        times = times_of(t, problem)
        require(len(times) == 1, "t", t, "one time; write rows (t, x, …) for several")
        rows = np.insert(rows, 0, times[0], axis=1)
    rows = finite_points("points", rows, problem.domain.dim)
    check_points_inside(rows, problem.domain, "the point")
    expressed, magnitudes = expression.sized_values(solution.function, rows)
    values = np.array(expressed)
    bounds = np.array([comparison.safety * difference_around(comparison, expression, row) for row in rows])
    proven = proven_bound(solution, expression)
    if proven is not None:
        bounds = np.minimum(bounds, proven * expression.slopes(solution.function, rows))
    bounds += comparison.settings.rounding * magnitudes
    bounds[~np.isfinite(values)] = np.inf
    good = comparison.converged and bool(np.isfinite(bounds).all())
    how = comparison.basis
    if any(unresolved_derivative(comparison, expression, *one) for one in zip(rows, values, bounds, strict=True)):
        good, how = False, f"{how}; derivatives are not resolved there: ask beside the corner"
    single = np.ndim(points) == 1 and problem.domain.dim - (t is not None) == len(np.atleast_1d(points))
    for k, row in enumerate(rows):
        growth = singular_growth(comparison, expression, row)
        if growth:
            values[k], bounds[k] = np.inf, np.nan
            if single:
                return _unbounded(comparison, 1.0, growth, row)
    if single:
        return Quantity(float(values[0]), float(bounds[0]), good, how)
    return Quantity(values, bounds, good, how)


def _infinite(
    comparison: SolutionPair, expression: OutputExpression, region: OutputRegion, candidate: Array, sign: float
) -> tuple[Array, float]:
    """Where an expression has no bound in a region, and its growth there; 0 where it is bounded."""
    domain = comparison.solution.stated.domain
    corners = [np.asarray(corner.point, dtype=float) for corner in domain.corners] if domain.dim == 2 else []
    inside = [one for one in corners if any(np.asarray(r.contains(one[None, :]))[0] for r in region.regions)]
    for point in [*inside, candidate]:
        growth = singular_growth(comparison, expression, point, sign)
        if growth:
            return point, growth
    return candidate, 0.0


def _unbounded(comparison: SolutionPair, sign: float, growth: float, point: Array) -> Quantity:
    how = f"it grows like r^-{growth:.2g} towards this point, in two solutions"
    return Quantity(sign * np.inf, np.nan, comparison.converged, how, tuple(map(float, point)))


def point_value(comparison: SolutionPair, expression: OutputExpression, t: Any = None) -> Quantity:
    """The value of an expression that consists of values at points, at a time or at several."""
    domain = comparison.solution.stated.domain
    inner = isinstance(domain, SpaceTime) and any(len(a.point) < domain.dim for a in expression.anchors)
    if inner and t is None:
        raise InputError(f"{expression.text!r} changes with time; give t=…, a time or several, or points (t, x, …)")

    def at(time: float | None) -> Quantity:
        row = domain.bounds[:, 0].copy()
        if time is not None:
            row[0] = time
        value, magnitude = (float(x[0]) for x in expression.sized_values(comparison.solution.function, row[None, :]))
        rounding = comparison.settings.rounding * magnitude
        bound = comparison.safety * anchored_difference(comparison, expression, row) + rounding
        return Quantity(value, bound, comparison.converged and bool(np.isfinite(bound)), comparison.basis)

    return _series(comparison, t, at)


def anchored_difference(comparison: SolutionPair, expression: OutputExpression, row: Array) -> float:
    """The difference of two solutions in an expression of values at points; each of them with its neighbourhood."""
    here = float(comparison.difference(expression, row[None, :])[0])
    if comparison.companion is None:
        return here
    words = comparison.solution.stated.vocabulary
    _, partials = expression.expression.linearised(*expression.inputs(comparison.solution.function, row[None, :], None))
    total = 0.0
    for anchor in expression.anchors:
        weight = sum(
            float(np.abs(np.broadcast_to(p, (1,)))[0])
            for jet, p in zip(expression.expression.jets, partials, strict=True)
            if jet.field == anchor.name and jet.order == 0
        )
        own = _jet_expression(anchor.jet, words)
        point = np.array(anchor.point if len(anchor.point) == len(row) else (row[0], *anchor.point))
        total += weight * difference_around(comparison, own, point)
    return max(here, total)


def first_time(comparison: SolutionPair, statement: Any) -> Quantity:
    """The first time at which an equation in values at points holds, such as ``u(0.5, 0.5) = 1``."""
    expression = _read(comparison, statement)
    return first_passage(comparison, expression, anchored_difference)


def stated_output(comparison: SolutionPair, output: Output, expression: OutputExpression) -> Quantity:
    """The value of one output of a problem."""
    statement = output.expression
    match output.kind:
        case "maximum" | "minimum":
            return extremum(comparison, statement, 1.0 if output.kind == "maximum" else -1.0, output.on, output.t)
        case "first time":
            return first_time(comparison, statement)
        case kind if kind in IN_TIME:
            return quantity_in_time(comparison, output, expression)
        case "value" if output.at is not None:
            return probe(comparison, output.at, statement, output.t)
    if expression.fixed:
        return point_value(comparison, expression, output.t)
    return integral(comparison, statement, output.on, output.t, output.kind == "mean")


def weighted_quantity(solution: Solution, bounded_value: tuple[float, float]) -> Quantity:
    """A value with a bound by dual-weighted residuals."""
    return Quantity(
        *bounded_value, solution.converged and bool(np.isfinite(bounded_value[1])), "dual-weighted residual"
    )


def all_outputs(solution: Solution) -> dict[str, Quantity]:
    """Name → value with its bound, of all outputs of the problem."""
    problem = solution.stated
    if not problem.outputs:
        return {}
    quantities: dict[str, Quantity] = {}
    comparison: SolutionPair | None = None
    for name, output in problem.outputs.items():
        expression = problem.output_expressions[name]
        plain = output.kind == "integral" and output.t is None and output.at is None and not expression.fixed
        weighted = solution.history.weighted.get(name) if isinstance(solution.history, WeakHistory) else None
        known = None if weighted is None else weighted_quantity(solution, weighted)
        if known is None and plain:
            known = _force(solution, output.expression, output.on)
        if output.kind in IN_TIME:
            known = force_in_time(solution, output, expression)
        if known is None:
            comparison = comparison or compared(solution)
            known = stated_output(comparison, output, expression)
        quantities[name] = known
    return quantities


def _read(comparison: SolutionPair, statement: Any) -> OutputExpression:
    problem = comparison.solution.stated
    if problem.parabolic is not None:
        raise InputError("outputs need a bounded domain; a solution in R^d is called at points")
    expression = read_output(statement, problem.vocabulary)
    check_anchors(expression, problem)
    return expression


def _jet_expression(jet: Any, words: Any) -> OutputExpression:
    return read_output(words.derivative(jet.field, jet.index), words)


def _series(comparison: SolutionPair, t: Any, at: Callable[[float | None], Quantity]) -> Quantity:
    """One quantity, or a time series of them."""
    if t is None:
        return at(None)
    times = times_of(t, comparison.solution.stated)
    quantities: Sequence[Quantity] = [at(float(time)) for time in times]
    if np.ndim(t) == 0:
        return quantities[0]
    values, bounds = (np.array([float(getattr(one, name)) for one in quantities]) for name in ("value", "bound"))
    return Quantity(values, bounds, all(one.converged for one in quantities), quantities[0].how, times=times)
