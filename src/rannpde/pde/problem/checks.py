"""Checks of a problem before it is solved: missing equations, too few or too many conditions, contradictions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import sympy
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import FlatSide, Side
from rannpde.domains.domain import Ball, Box, Domain, SpaceTime
from rannpde.errors import InputError, require, suggestion
from rannpde.pde.problem.conditions import Data, Periodic
from rannpde.pde.problem.unknown import check_limits
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import Jet, evaluate
from rannpde.pde.statement.kinks import Where, shown

if TYPE_CHECKING:
    from rannpde.pde.problem.problem import Problem

SAMPLE = 64
"""Points at which formulas are tried: they meet a part of a tenth of a region almost surely, and cost microseconds."""
CORNER_TOLERANCE = 1e-8
"""Relative gap of two conditions in a corner that is rounding of their formulas rather than a contradiction."""


class ConditionWarning(UserWarning):
    """Conditions that cannot all hold, such as initial and boundary values that differ in a corner."""


def check_problem(problem: Problem) -> None:
    """Raise an InputError, or warn, about every mistake that can be found without solving."""
    _check_domain(problem.domain)
    _check_names(problem)
    _check_determined(problem)
    _check_inequalities(problem)
    for term in problem.terms:
        _check_finite(term, problem)
    _check_start(problem)
    counted = not (problem.incomplete or any(isinstance(c, Data) for c in problem.conditions.values()))
    if counted:
        _check_initial(problem)
        _check_boundary(problem)
        _check_covered(problem)
        _check_parts(problem)
    _check_clashes(problem)
    if counted:
        _check_surplus(problem)


def _check_domain(domain: Domain) -> None:
    """Measure the domain and name its sides, which refuses shapes that are empty, touch, or change nothing."""
    require(domain.measure > 0, "the measure of the domain", domain.measure, "> 0")
    require(bool(domain.sides), "the sides of the domain", "none", "one or more")


def _check_names(problem: Problem) -> None:
    for name in set(problem.equations) & set(problem.conditions):
        raise InputError(f"{name!r} names an equation and a condition; rename one of them")
    for argument, table in (("bounds", problem.bounds), ("exact", problem.exact)):
        for key in table:
            if key not in problem.fields:
                raise InputError(f"{argument} names {key!r}, which is no field; {suggestion(key, problem.fields)}")
    for key in problem.fields:
        require(
            not problem.exact or key in problem.exact,
            "exact",
            sorted(problem.exact),
            f"given for every field, also {key!r}",
        )
    for key, given in problem.exact.items():
        known = callable(given) or isinstance(given, (str, int, float, sympy.Expr))
        require(known, f"exact[{key!r}]", given, "a formula or a callable of points")
    for key, pair in problem.bounds.items():
        check_limits(f"bounds[{key!r}]", pair)
    for name, condition in problem.conditions.items():
        if isinstance(condition, Periodic):
            _check_periodic(name, condition, problem)
    known = problem.exact_solution is not None  # formulas are read now, not after the work
    require(known or not problem.exact, "exact", sorted(problem.exact), "formulas or callables")


def _check_periodic(name: str, condition: Periodic, problem: Problem) -> None:
    domain = problem.domain
    if condition.coordinate not in domain.names:
        raise InputError(
            f"condition {name!r}: no coordinate {condition.coordinate!r}; "
            f"{suggestion(condition.coordinate, domain.names)}"
        )
    space = domain.space if isinstance(domain, SpaceTime) else domain
    if not isinstance(space, Box):
        kind = "a ball" if isinstance(space, Ball) else "a shape that is no box"
        raise InputError(f"condition {name!r}: {kind} has no periodic coordinate")
    if condition.weight != 1.0 and (condition.fields is None or set(condition.fields) == set(problem.fields)):
        raise InputError(
            f"condition {name!r}: weight is {condition.weight}, but fields that are all periodic are so exactly; "
            "leave it out"
        )
    for key in condition.fields or ():
        if key not in problem.fields:
            raise InputError(f"condition {name!r}: no field {key!r}; {suggestion(key, problem.fields)}")
    for term in problem.constraints:
        side = term.region
        if not isinstance(side, FlatSide) or not side.outward or domain.names[side.axis] != condition.coordinate:
            continue
        if condition.fields is None or set(condition.fields) & set(term.expression.fields):
            raise InputError(
                f"condition {term.name!r} is on {side.name}, where {name!r} makes the field periodic; drop one"
            )


def _check_determined(problem: Problem) -> None:
    expressions = list(problem.expressions.values())
    for name, expression in problem.expressions.items():
        if not expression.jets:
            raise InputError(f"equation {name!r} holds no field; fields: {', '.join(problem.fields)}")
    if len(expressions) > len(problem.fields):
        raise InputError(
            f"{len(expressions)} equations for {len(problem.fields)} fields ({', '.join(problem.fields)}); "
            "drop an equation, make it a condition, or declare the missing field with fields=(…)"
        )
    incidence = np.array([[name in e.fields for e in expressions] for name in problem.fields])
    matched = maximum_bipartite_matching(csr_array(incidence.astype(int)), perm_type="column")
    free = [name for name, partner in zip(problem.fields, matched, strict=True) if partner < 0]
    if free:
        raise InputError(
            f"the equations do not determine the field {free[0]!r}; every field needs an equation of its own"
        )


def _check_inequalities(problem: Problem) -> None:
    """Refuse bounds that are not finite, or a lower one above an upper one."""
    if not problem.inequalities:
        return
    points = problem.domain.sample(SAMPLE, rng=0)
    for bound in problem.inequalities:
        if not np.isfinite(bound.at(points)).all():
            raise InputError(f"condition {bound.name!r}: the bound of {bound.field!r} is not finite inside the domain")
    for first, second in combinations(problem.inequalities, 2):
        if first.field == second.field:
            low, high = (first, second) if first.lower else (second, first)
            if low.lower == high.lower:
                raise InputError(
                    f"conditions {first.name!r} and {second.name!r} bound {first.field!r} from the same side; "
                    "state one of them, with max or min"
                )
            if (low.at(points) > high.at(points)).any():
                raise InputError(f"conditions {low.name!r} and {high.name!r} leave no room for {first.field!r}")


def _check_start(problem: Problem) -> None:
    """Refuse coefficients that are not finite at the initial values, such as the logarithm of a negative field."""
    if not isinstance(problem.domain, SpaceTime):
        return
    side = problem.domain.initial
    values: dict[Jet, sympy.Expr] = {}
    for term in problem.constraints:
        stated = term.prescribed if term.kind == "initial" else None
        if stated is not None and not any(stated[0].index) and stated[0].field not in problem.bounds:
            values[stated[0]] = stated[1]
    points = side.sample(SAMPLE, rng=0)
    known = problem.vocabulary.at(points)
    for term in problem.interior:
        expression = term.expression
        given = [(symbol, jet) for symbol, jet in expression.symbols.items() if jet in values]
        # numbers, not formulas, are put in: SymPy computes exp(exp(1e12)) with as many bits as it has
        here = evaluate([values[jet] for _, jet in given], known, problem.functions)
        initial = dict(zip((symbol for symbol, _ in given), here, strict=True))
        for part in _parts_of(expression.formula, {*known, *initial}):
            if part.free_symbols & set(initial):
                value = evaluate([part], known | initial, problem.functions)[0]
                _require_finite(value, points, part, f"in {term.name!r}, at the initial values,", problem)


def _parts_of(formula: sympy.Expr, symbols: set[sympy.Symbol]) -> Iterator[sympy.Expr]:
    """The largest parts that hold these symbols alone, without branches of ``where``: the other one may be taken."""
    if formula.free_symbols <= symbols:
        if formula.args and formula.free_symbols:
            yield formula
        return
    for part in formula.args[:1] if isinstance(formula, Where) else formula.args:
        if isinstance(part, sympy.Expr):
            yield from _parts_of(part, symbols)


def _require_finite(value: Array, points: Array, part: sympy.Expr, what: str, problem: Problem) -> None:
    if not np.isfinite(value).all():
        row = int(np.flatnonzero(~np.isfinite(np.broadcast_to(value, len(points))))[0])
        where = ", ".join(f"{n}={v:.4g}" for n, v in zip(problem.domain.names, points[row], strict=True))
        raise InputError(
            f"{shown(part)} {what} is not finite at {where}; correct the formula, the function or the domain"
        )


def _check_finite(term: Term, problem: Problem) -> None:
    """Refuse coefficients that are not finite whatever the fields are, such as the logarithm of a coordinate < 0."""
    if term.points is not None:
        return
    points = term.region.sample(SAMPLE, rng=0)  # type: ignore[union-attr]
    known = term.known(points, problem.vocabulary)
    parts = list(_parts_of(term.expression.formula, set(known)))
    for part, value in zip(parts, evaluate(parts, known, problem.functions), strict=True):
        _require_finite(value, points, part, f"in {term.name!r}", problem)


def _check_initial(problem: Problem) -> None:
    if not isinstance(problem.domain, SpaceTime) or "t" in problem.periodic:
        return
    for key in problem.fields:
        order = problem.order(key, 0)
        given = sum(key in term.expression.fields for term in problem.constraints if term.kind == "initial")
        if given < order:
            example = f"On({problem.domain.initial.name!r}, {'u_t = 0' if given else 'u = …'!r})".replace("u", key, 1)
            remedy = f"add one such as {example}, or pass incomplete=True"
            if _given_at_end(problem, key):
                remedy = (
                    f"it is given at the end of time, as prices of options are: let t run backwards from there, with "
                    f"-{key}_t for {key}_t, T - t for t in coefficients, and {example}; or pass incomplete=True"
                )
            raise InputError(
                f"the field {key!r} is of order {order} in time but has {given} initial condition(s); {remedy}"
            )


def _given_at_end(problem: Problem, name: str) -> bool:
    """Whether a condition on a field holds at the end of time."""
    assert isinstance(problem.domain, SpaceTime)
    end = (0, problem.domain.time[1])
    regions = (term.region for term in problem.constraints if name in term.expression.fields)
    return any(isinstance(side, FlatSide) and (side.axis, side.value) == end for side in regions)


def _check_boundary(problem: Problem) -> None:
    """A field of order k along a coordinate needs k conditions on its two sides together.

    In systems, first-order fields may need none (a density that does not flow in), so they are not counted; and one
    field may have the conditions that another lacks (a clamped plate as two fields).
    """
    boundary = [term for term in problem.constraints if term.kind != "initial"]
    for axis, name in enumerate(problem.domain.names):
        if name == problem.vocabulary.time or name in problem.periodic:
            continue
        paired = {key for pairing in problem.pairings if pairing.coordinate == name for key in pairing.orders}
        least = 1 if len(problem.fields) == 1 else 2
        orders = {key: problem.order(key, axis) for key in problem.fields if key not in paired}
        orders = {key: order for key, order in orders.items() if order >= least}
        on_axis = [t for t in boundary if not isinstance(t.region, FlatSide) or t.region.axis == axis]
        for key, order in orders.items():
            on_sides = [term for term in on_axis if key in term.expression.fields]
            enough = len(on_sides) >= order or (len(orders) > 1 and len(on_axis) >= sum(orders.values()))
            if not enough and all(isinstance(term.region, FlatSide) for term in on_sides):
                count = len(on_sides)
                raise InputError(
                    f"the field {key!r} is of order {order} in {name} but has {count} condition(s) on its sides; "
                    f"add them, or Periodic({name!r}), or pass incomplete=True"
                )


def _check_covered(problem: Problem) -> None:
    """Equations of second order need a condition on every side of a shape with holes or curved sides."""
    space = problem.domain.space if isinstance(problem.domain, SpaceTime) else problem.domain
    if isinstance(space, Box | Ball) or any(callable(getattr(c, "where", "")) for c in problem.conditions.values()):
        return
    axes = range(problem.domain.dim - space.dim, problem.domain.dim)
    if all(problem.order(key, axis) < 2 for key in problem.fields for axis in axes):
        return
    given = {term.region.name for term in problem.constraints if isinstance(term.region, Side)}
    for name in problem.domain.sides:
        if name not in given:
            raise InputError(
                f"the side {name!r} has no condition; add one such as On({name!r}, …), or pass incomplete=True"
            )


def _check_parts(problem: Problem) -> None:
    """Where conditions hold on parts of sides (``y=0 where x < 0``), the other parts need conditions as well."""
    parts = [t for t in problem.constraints if isinstance(t.region, Side) and " where " in t.region.name]
    if not parts:
        return
    regions = [t.region for t in problem.constraints if isinstance(t.region, Side)]
    for name, side in problem.domain.sides.items():
        points = side.sample(4 * SAMPLE, rng=0)
        bare = np.flatnonzero(~np.any([region.contains(points) for region in regions], axis=0))
        if len(bare):
            shown = ", ".join(f"{value:.4g}" for value in points[bare[0]])
            raise InputError(
                f"no condition holds at ({shown}) on the side {name!r}; add one for that part, or pass incomplete=True"
            )


def _check_clashes(problem: Problem) -> None:
    """Dirichlet values that differ where two sides meet; the same side given twice is an error."""
    flat = [(t, t.region, p) for t in problem.constraints if isinstance(t.region, FlatSide) and (p := t.prescribed)]
    for (first, side, (jet, value)), (second, other, (same, other_value)) in combinations(flat, 2):
        if jet != same or (side.axis == other.axis and side.value != other.value):
            continue
        points = problem.domain.sample(SAMPLE, rng=0)
        points[:, side.axis], points[:, other.axis] = side.value, other.value
        known = problem.vocabulary.at(points)
        values = evaluate([value, other_value], known, problem.functions)
        gap = float(np.abs(values[0] - values[1]).max())
        size = max(1.0, float(np.abs(values[0]).max()))
        where = side.name if side.axis == other.axis else f"{side.name}, {other.name}"
        if side.axis == other.axis:
            raise InputError(
                f"conditions {first.name!r} and {second.name!r} both prescribe {jet.field} on {where}; drop one"
            )
        if gap > CORNER_TOLERANCE * size:
            names = f"{first.name!r} and {second.name!r}"
            message = f"conditions {names} differ by {gap:.3g} in the corner {where}: no smooth solution exists there"
            warnings.warn(message, ConditionWarning, stacklevel=5)


def _check_surplus(problem: Problem) -> None:
    """More conditions than the order of the equations can take: they contradict each other, or repeat themselves.

    Of one field, a coordinate of order k takes k conditions, and a side of it k/2 (rounded up) unless that coordinate
    is the only one (an initial value problem has all at one end). Fields of a system may take each other's conditions
    (a clamped plate as two fields), so that these are counted together, and first-order ones may take two.
    """
    terms = [term for term in problem.constraints if isinstance(term.region, Side) and term.kind != "slice"]
    for axis, name in enumerate(problem.domain.names):
        order = _capacity(problem, axis)
        on_axis = [term for term in terms if isinstance(term.region, FlatSide) and term.region.axis == axis]
        if order is None or name in problem.periodic:
            continue
        sides: dict[str, list[Term]] = {}
        for term in on_axis:
            sides.setdefault(term.region.name, []).append(term)  # type: ignore[union-attr]
        is_time = name == problem.vocabulary.time
        most = order if is_time or problem.domain.dim == 1 else (order + 1) // 2
        for side, conditions in sides.items():
            _require_few(problem, conditions, most, f"on {side}", f"{most} there", name)
        _require_few(problem, on_axis, order, f"on the sides of {name}", f"{order} on both sides together", name)
    curved: dict[str, list[Term]] = {}
    for term in terms:
        if not isinstance(term.region, FlatSide):
            curved.setdefault(term.region.name, []).append(term)  # type: ignore[union-attr]
    orders = [_capacity(problem, k) for k, n in enumerate(problem.domain.names) if n != problem.vocabulary.time]
    if None not in orders:
        most = (max(orders) + 1) // 2  # type: ignore[type-var, operator]
        for side, conditions in curved.items():
            _require_few(problem, conditions, most, f"on {side}", f"{most} there", "space")


def _capacity(problem: Problem, axis: int) -> int | None:
    """How many conditions the equations take along an axis; None where that cannot be said."""
    is_time = problem.domain.names[axis] == problem.vocabulary.time
    if len(problem.fields) > 1:
        return sum(max(problem.order(key, axis), 1 if is_time else 2) for key in problem.fields)
    order = problem.order(problem.fields[0], axis)
    if order > 1 or is_time:
        return order if order > 0 else None
    (expression,) = problem.expressions.values()
    slopes = [p for jet, p in zip(expression.jets, expression.partials, strict=True) if jet.index[axis]]
    return 1 if slopes and all(slope.is_number for slope in slopes) else None  # inflow may change from point to point


def _require_few(problem: Problem, terms: list[Term], most: int, where: str, allowed: str, coordinate: str) -> None:
    if len(terms) <= most:
        return
    names = ", ".join(repr(name) for name in dict.fromkeys(term.name for term in terms))
    fields = " and ".join(repr(key) for key in problem.fields)
    raise InputError(
        f"{len(terms)} conditions {where} ({names}), but the equations for {fields} take {allowed}, by their order in "
        f"{coordinate}; drop those that are too many, or pass incomplete=True to meet all in the mean"
    )
