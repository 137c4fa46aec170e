"""What can be known to be wrong with a problem before any work: undetermined fields, missing or clashing conditions."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import sympy
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from rannpde.domains.domain import Ball, SpaceTime
from rannpde.domains.sides import FlatSide
from rannpde.errors import InputError, require, suggestion
from rannpde.pde.problem.conditions import Data, Periodic, Term
from rannpde.pde.statement.evaluate import evaluate
from rannpde.pde.statement.expression import Jet
from rannpde.pde.statement.vocabulary import coordinate_symbol

if TYPE_CHECKING:
    from rannpde.pde.problem.problem import Problem

CORNER_POINTS = 64
CORNER_TOLERANCE = 1e-8


class ConditionWarning(UserWarning):
    """Conditions that cannot all hold, such as initial and boundary values that differ in a corner."""


def check_problem(problem: Problem) -> None:
    """Raise an InputError, or warn, for everything wrong that can be seen without solving."""
    _check_names(problem)
    _check_determined(problem)
    for term in problem.terms:
        _check_finite(term, problem)
    if not (problem.incomplete or any(isinstance(c, Data) for c in problem.conditions.values())):
        _check_initial(problem)
        _check_boundary(problem)
    _check_clashes(problem)


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
    for key, (lower, upper) in problem.bounds.items():
        ordered = lower is None or upper is None or lower < upper
        require(ordered, f"bounds[{key!r}]", (lower, upper), "(lower, upper) with lower < upper")
    for name, condition in problem.conditions.items():
        if isinstance(condition, Periodic):
            _check_periodic(name, condition, problem)
    assert problem.exact_solution is not None or not problem.exact  # formulas are read now, not after the work


def _check_periodic(name: str, condition: Periodic, problem: Problem) -> None:
    domain = problem.domain
    if condition.coordinate not in domain.names:
        raise InputError(
            f"condition {name!r}: no coordinate {condition.coordinate!r}; "
            f"{suggestion(condition.coordinate, domain.names)}"
        )
    if isinstance(domain, Ball) or (isinstance(domain, SpaceTime) and isinstance(domain.space, Ball)):
        raise InputError(f"condition {name!r}: a ball has no periodic coordinate")
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


def _check_finite(term: Term, problem: Problem) -> None:
    """Coefficients that are NaN whatever the fields are (a logarithm of a negative coordinate, a user's function)."""
    if term.points is not None:
        return
    points = term.region.sample(CORNER_POINTS, rng=0)  # type: ignore[union-attr]
    known = term.known(points, problem.vocabulary.coordinates)
    free = [part for part in sympy.preorder_traversal(term.expression.formula) if part.free_symbols <= set(known)]
    largest = [part for part in free if isinstance(part, sympy.Expr) and part.args and not part.is_number]
    for part, value in zip(largest, evaluate(largest, known, problem.functions), strict=True):
        if not np.isfinite(value).all():
            row = int(np.flatnonzero(~np.isfinite(np.broadcast_to(value, len(points))))[0])
            where = ", ".join(f"{n}={v:.4g}" for n, v in zip(problem.domain.names, points[row], strict=True))
            raise InputError(
                f"{part} in {term.name!r} is not finite at {where}; mend the formula, the function or the domain"
            )


def _check_initial(problem: Problem) -> None:
    if not isinstance(problem.domain, SpaceTime) or "t" in problem.periodic:
        return
    for key in problem.fields:
        order = problem.order(key, 0)
        given = sum(key in term.expression.fields for term in problem.constraints if term.kind == "initial")
        if given < order:
            example = f"On({problem.domain.initial.name!r}, {'u_t = 0' if given else 'u = …'!r})".replace("u", key, 1)
            raise InputError(
                f"the field {key!r} is of order {order} in time but has {given} initial condition(s); add one such as "
                f"{example}, or pass incomplete=True"
            )


def _check_boundary(problem: Problem) -> None:
    """A field of order k along a coordinate needs k conditions on its two sides together.

    In systems, first-order fields may need none (a density that does not flow in), so they are not counted.
    """
    covered = set(problem.periodic)
    for key in problem.fields:
        paired = {pairing.coordinate for pairing in problem.pairings if key in pairing.orders}
        for axis, name in enumerate(problem.domain.names):
            order = problem.order(key, axis)
            if (
                name == problem.vocabulary.time
                or name in covered | paired
                or order < (1 if len(problem.fields) == 1 else 2)
            ):
                continue
            terms = [t for t in problem.constraints if t.kind != "initial" and key in t.expression.fields]
            given = sum(not isinstance(t.region, FlatSide) or t.region.axis == axis for t in terms)
            if any(not isinstance(t.region, FlatSide) for t in terms):
                continue
            if given < order:
                raise InputError(
                    f"the field {key!r} is of order {order} in {name} but has {given} condition(s) on its sides; "
                    f"add them, or Periodic({name!r}), or pass incomplete=True"
                )


def prescribed(term: Term) -> tuple[Jet, sympy.Expr] | None:
    """(jet, value) for a condition that gives one jet a value, such as u = sin(x)."""
    expression = term.expression
    if len(expression.jets) != 1 or not expression.partials[0].is_number or expression.partials[0] == 0:
        return None
    symbol = next(iter(expression.symbols))
    return expression.jets[0], -expression.formula.subs(symbol, 0) / expression.partials[0]


def _check_clashes(problem: Problem) -> None:
    """Dirichlet values that differ where two sides meet; the same side given twice is an error."""
    flat = [(t, t.region, p) for t in problem.constraints if isinstance(t.region, FlatSide) and (p := prescribed(t))]
    for (first, side, (jet, value)), (second, other, (same, wanted)) in combinations(flat, 2):
        if jet != same or (side.axis == other.axis and side.value != other.value):
            continue
        points = problem.domain.sample(CORNER_POINTS, rng=0)
        points[:, side.axis], points[:, other.axis] = side.value, other.value
        known = {coordinate_symbol(n): points[:, k] for k, n in enumerate(problem.domain.names)}
        values = evaluate([value, wanted], known, problem.functions)
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
