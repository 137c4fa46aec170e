"""Whether a problem evolves in time: the form ∂_t u = F(t, x, u, ∂u, …) that can be integrated, or the reasons why not.

Every field must have a highest time derivative that its equations determine, of first or second order. Only where all
of space is periodic, fields without one are allowed, if as many equations contain no highest time derivative.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import sympy

from rannpde.domains.domain import SpaceTime
from rannpde.grammar import StatementError
from rannpde.pde.problem.evolution import Component, Evolution, Rate
from rannpde.pde.problem.reflections import reflection_parities
from rannpde.pde.residual import Term
from rannpde.pde.statement.expansion import DivergenceForm, solve_linear
from rannpde.pde.statement.expression import Expression, Jet, jet_name
from rannpde.pde.statement.kinks import largest, smallest
from rannpde.pde.statement.vocabulary import coordinate_symbol

if TYPE_CHECKING:
    from rannpde.pde.problem.problem import Problem


def in_time(problem: Problem) -> tuple[tuple[str, ...], dict[bool, Evolution]]:
    """Return every reason why the problem cannot be integrated in time, or its forms: with divergence form (True) or
    without.

    Formulas that explode or nest too deeply when they are solved for ∂_t are reasons too: no other method needs that.
    """
    try:
        reasons = _obstacles(problem)
        return reasons, {} if reasons else _forms(problem)
    except StatementError as error:
        return (str(error),), {}
    except RecursionError:
        return ("the equations are nested too deeply to be solved for time derivatives",), {}


def _obstacles(problem: Problem) -> tuple[str, ...]:
    if not isinstance(problem.domain, SpaceTime):
        return ("the domain has no time",)
    jumping = [f"the flux of equation {name!r} jumps" for name in problem.jumping]
    reasons = [*jumping, *_obstacles_in_conditions(problem), *_obstacles_in_orders(problem)]
    reasons += [] if reasons else _obstacles_in_rates(problem)
    return tuple(dict.fromkeys(reasons))


def _forms(problem: Problem) -> dict[bool, Evolution]:
    orders = {name: problem.order(name, 0) for name in problem.fields}
    constraints = {name: problem.expressions[name] for name in _constraints(problem)}
    split = {name: problem.divergence(name) for name in problem.expressions}
    forms = {}
    for weak in (True, False):
        rates = {name: _bounded(rate, problem) for name, rate in _solved_rates(problem, split, weak).items()}
        form = Evolution(problem, orders, rates, constraints)
        forms[weak] = replace(form, parities=reflection_parities(form))
    return forms


# ------------------------------------------------------------------------------------------------ reasons why not


def _obstacles_in_conditions(problem: Problem) -> Iterator[str]:
    if "t" in problem.periodic:
        yield "the problem is periodic in time"
    for pairing in problem.pairings:
        yield f"condition {pairing.name!r} makes some fields periodic and others not"
    given = set()
    for term in problem.constraints:
        if _fixes_constant(term, problem):
            continue
        if term.kind in ("slice", "data"):
            yield f"condition {term.name!r} is inside the domain, not on its boundary or at its first time"
        elif term.kind == "initial":
            if term.prescribed is None or any(term.prescribed[0].index[1:]):
                yield f"the initial condition {term.name!r} does not give one field, or its time derivative, a value"
            else:
                given.add(Component(term.prescribed[0].field, term.prescribed[0].index[0]))
        else:
            yield from _obstacles_in_boundary(term)
    for name in problem.fields:
        for level in range(max(problem.order(name, 0), 0)):
            if Component(name, level) not in given:
                yield "there is no initial value of " + "the time derivative of " * level + repr(name)


def _fully_periodic(problem: Problem) -> bool:
    """Whether all of space is periodic."""
    return set(problem.domain.names[1:]) <= set(problem.periodic)


def _fixes_constant(term: Term, problem: Problem) -> bool:
    """Return whether a condition gives a field without a time derivative its value at one point of space, and thereby
    determines its free constant."""
    jets = term.expression.jets
    plain = term.kind == "data" and len(jets) == 1 and jets[0].order == 0 and term.expression.linear
    if not plain or term.points is None or not _fully_periodic(problem) or problem.order(jets[0].field, 0) != 0:
        return False
    return bool((term.points[:, 1:] == term.points[0, 1:]).all())


def _constraints(problem: Problem) -> list[str]:
    """Equations without a highest time derivative."""
    top = set(_top_symbols(problem).values())
    return [name for name, expression in problem.expressions.items() if not top & set(expression.symbols)]


def _obstacles_in_boundary(term: Term) -> Iterator[str]:
    expression = term.expression
    if len(expression.fields) != 1 or not expression.linear:
        yield f"the boundary condition {term.name!r} is not linear, or holds several fields"
    if any(jet.index[0] for jet in expression.jets):
        yield f"the boundary condition {term.name!r} holds a time derivative"
    if any(coordinate_symbol("t") in partial.free_symbols for partial in expression.partials):
        yield f"the boundary condition {term.name!r} has a coefficient that changes in time"


def _obstacles_in_orders(problem: Problem) -> Iterator[str]:
    top = _top_symbols(problem)
    balanced = bool(top) and len(_constraints(problem)) == len(problem.fields) - len(top)
    for name in problem.fields:
        order = problem.order(name, 0)
        if order == 0 and balanced and _fully_periodic(problem):
            for term in problem.constraints:
                if term.kind == "initial" and name in term.expression.fields:
                    yield f"the initial condition {term.name!r} gives {name!r} a value, which the equations determine"
            continue
        if order < 1:
            yield f"no equation holds a time derivative of the field {name!r}"
        elif order > 2:
            yield f"the field {name!r} is of order {order} in time, more than 2; write it as a system"
        for jet in {jet for e in problem.expressions.values() for jet in e.jets}:
            if jet.field == name and jet.index[0] == order and any(jet.index[1:]):
                shown = jet_name(jet, problem.vocabulary.coordinates)
                yield f"{shown} mixes the highest time derivative of {name!r} with space"


def _obstacles_in_rates(problem: Problem) -> Iterator[str]:
    top, rows = _top_symbols(problem), _top_matrix(problem)
    evolving = [name for name in problem.expressions if name not in _constraints(problem)]
    for name, row in zip(evolving, rows, strict=True):
        if any(entry.free_symbols & set(top.values()) for entry in row):
            yield f"equation {name!r} is not linear in the highest time derivatives"
            return
    if len(rows) != len(top) or not all(any(entry != 0 for entry in row) for row in rows):
        solved = None
    else:
        try:
            solved = solve_linear(rows, [sympy.Integer(0)] * len(rows))
        except StatementError as error:
            yield str(error)
            return
    if solved is None:
        fields = ", ".join(repr(name) for name in top)
        yield f"the equations do not determine the time derivatives of all of {fields}"


# -------------------------------------------------------------------------------------------- solving for ∂_t


def rates(problem: Problem) -> dict[str, Expression] | None:
    """Field → its highest time derivative as an expression of the other jets; None where that cannot be had."""
    if (
        any(problem.order(name, 0) < 1 for name in problem.fields)
        or [*_obstacles_in_orders(problem)]
        or [*_obstacles_in_rates(problem)]
    ):
        return None
    split = {name: problem.divergence(name) for name in problem.expressions}
    return {name: rate.source for name, rate in _solved_rates(problem, split, weak=False).items()}


def _top_symbols(problem: Problem) -> dict[str, sympy.Symbol]:
    """The symbol of the highest time derivative of every field that has one."""
    symbols = {}
    for name in problem.fields:
        if problem.order(name, 0) < 1:
            continue
        jet = Jet(name, (problem.order(name, 0),) + (0,) * (problem.domain.dim - 1))
        symbols[name] = sympy.Symbol(jet_name(jet, problem.vocabulary.coordinates), real=True)
    return symbols


def _top_matrix(problem: Problem) -> list[list[sympy.Expr]]:
    """∂(equation)/∂(highest time derivative) of the equations that hold one."""
    top, algebraic = _top_symbols(problem).values(), set(_constraints(problem))
    evolving = [expression for name, expression in problem.expressions.items() if name not in algebraic]
    return [[sympy.diff(expression.formula, symbol) for symbol in top] for expression in evolving]


def _decoupled(rows: list[list[sympy.Expr]]) -> bool:
    """Whether every equation holds the top derivative of one field only."""
    return all(sum(entry != 0 for entry in row) == 1 for row in rows)


def _solved_rates(problem: Problem, split: Mapping[str, DivergenceForm], weak: bool) -> dict[str, Rate]:
    """Top derivatives from the equations, which are linear in them; ``split`` is their divergence form."""
    top, rows, symbols = _top_symbols(problem), _top_matrix(problem), _symbols(problem, split)
    zero, algebraic = dict.fromkeys(top.values(), 0), set(_constraints(problem))
    evolving = [name for name in problem.expressions if name not in algebraic]
    rest = [problem.expressions[name].formula.subs(zero) for name in evolving]
    if not _decoupled(rows):
        solved = solve_linear(rows, [-part for part in rest])
        assert solved is not None  # _obstacles_in_rates has checked that
        return {name: Rate(_expression(solved[k], symbols, problem)) for k, name in enumerate(top)}
    rates_of: dict[str, Rate] = {}
    for column, name in enumerate(top):
        row = next(k for k, entries in enumerate(rows) if entries[column] != 0)
        form = split[evolving[row]]
        weak_rate = _weak_rate(problem, form, top[name], symbols) if weak and rows[row][column].is_number else None
        rates_of[name] = weak_rate or Rate(_expression(-rest[row] / rows[row][column], symbols, problem))
    return rates_of


def _weak_rate(
    problem: Problem, form: DivergenceForm, top: sympy.Symbol, symbols: Mapping[sympy.Symbol, Jet]
) -> Rate | None:
    """The rate in divergence form, where the statement has it and the flux holds no highest time derivative."""
    if not form.flux or any(top in part.symbols for part in form.flux.values()):
        return None
    constant = sympy.diff(form.source.formula, top)
    source = _expression(-form.source.formula.subs(top, 0) / constant, symbols, problem)
    space = problem.vocabulary.space
    flux = {space.index(n): _expression(part.formula / constant, symbols, problem) for n, part in form.flux.items()}
    return Rate(source, flux)


def _symbols(problem: Problem, split: Mapping[str, DivergenceForm]) -> dict[sympy.Symbol, Jet]:
    """Every jet symbol of the equations, also those of their fluxes."""
    symbols: dict[sympy.Symbol, Jet] = {}
    for name, expression in problem.expressions.items():
        form = split[name]
        for part in (expression, form.source, *form.flux.values()):
            symbols |= part.symbols
    return symbols


def _expression(formula: sympy.Expr, symbols: Mapping[sympy.Symbol, Jet], problem: Problem) -> Expression:
    used = {symbol: jet for symbol, jet in symbols.items() if symbol in formula.free_symbols}
    return Expression(formula, formula, used, problem.functions)


# ----------------------------------------------------------------------------------------------------- bounds


def _bounded(rate: Rate, problem: Problem) -> Rate:
    """Clip the fields in a rate to their declared bounds.

    A density of a porous medium with the wrong sign would reverse its diffusion; coefficients get the clipped value.
    """
    if not problem.bounds:
        return rate
    source, *flux = (_clipped(part, problem) for part in rate.parts)
    return Rate(source, dict(zip(rate.flux, flux, strict=True)))


def _clipped(part: Expression, problem: Problem) -> Expression:
    table = {}
    for symbol, jet in part.symbols.items():
        if jet.field in problem.bounds and not any(jet.index):
            lower, upper = problem.bounds[jet.field]
            inside = symbol if lower is None else largest(symbol, sympy.sympify(lower))
            table[symbol] = inside if upper is None else smallest(inside, sympy.sympify(upper))
    return _expression(part.formula.xreplace(table), part.symbols, problem)
