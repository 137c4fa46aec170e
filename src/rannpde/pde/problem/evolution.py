"""Does a problem evolve in time? If so, the form ∂_t u = F(t, x, u, ∂u, …) that can be integrated; if not, why not.

Every field must have a highest time derivative that its equations determine, of first or second order. A field of
second order is two *components*, u and u_t. Where an equation was stated with derivatives in space of an expression,
that divergence form is kept,

    ∂_t u = source - Σ_x ∂_x flux_x ,

and integrated by parts later: a Galerkin method then inherits the sign of diffusion and the conservation of mass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.evaluate import evaluate
from rannpde.pde.statement.expression import Expression, Jet, jet_name
from rannpde.pde.statement.grammar import StatementError
from rannpde.pde.statement.kinks import largest, smallest
from rannpde.pde.statement.linear import solve_linear
from rannpde.pde.statement.vocabulary import coordinate_symbol


class NotAnEvolution(InputError):
    """The problem cannot be integrated in time; the message gives every reason."""


@dataclass(frozen=True)
class Component:
    """The level-th time derivative of a field: one unknown function of space that moves in time."""

    field: str
    level: int


@dataclass(frozen=True)
class Rate:
    """∂_t of the last component of a field: source - Σ ∂_axis flux[axis]; axis counts the space coordinates from 0."""

    source: Expression
    flux: Mapping[int, Expression] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.source, *self.flux.values())


@dataclass(frozen=True, eq=False)
class Evolution:
    """components in the order of the state vector; rates: field → what moves its last component."""

    problem: Problem
    orders: Mapping[str, int]
    rates: Mapping[str, Rate]

    @cached_property
    def components(self) -> tuple[Component, ...]:
        return tuple(Component(name, level) for name, order in self.orders.items() for level in range(order))

    @property
    def weak(self) -> bool:
        """Whether a rate is in divergence form."""
        return any(rate.flux for rate in self.rates.values())

    @property
    def domain(self) -> SpaceTime:
        domain = self.problem.domain
        assert isinstance(domain, SpaceTime)
        return domain

    @cached_property
    def symbols(self) -> dict[sympy.Symbol, Jet]:
        """The jet symbols of all rates."""
        return {s: jet for rate in self.rates.values() for part in rate.parts for s, jet in part.symbols.items()}

    @cached_property
    def jets(self) -> tuple[Jet, ...]:
        """Every derivative that the rates need."""
        return tuple(dict.fromkeys(self.symbols.values()))

    @cached_property
    def initial(self) -> dict[Component, sympy.Expr]:
        """Component → formula of its initial value."""
        return _initial_values(self.problem)

    def initial_values(self, component: Component, points: Array) -> Array:
        """The initial value (M,) at points (M, d) of space."""
        names = self.problem.vocabulary.space
        known = {coordinate_symbol(name): points[:, axis] for axis, name in enumerate(names)}
        known[coordinate_symbol("t")] = np.asarray(self.domain.time[0])
        value = evaluate([self.initial[component]], known, self.problem.functions)[0]
        return np.broadcast_to(value, (len(points),)).astype(float)

    def boundary(self, name: str) -> list[Term]:
        """The boundary conditions of a field."""
        return [t for t in self.problem.constraints if t.kind == "boundary" and name in t.expression.fields]


def evolution_form(problem: Problem, *, weak: bool = True) -> Evolution:
    """The problem as an evolution; NotAnEvolution with every reason where it is none.

    weak : keep the divergence form where the statement has it
    """
    reasons = obstacles(problem)
    if reasons:
        raise NotAnEvolution("; ".join(reasons))
    orders = {name: problem.order(name, 0) for name in problem.fields}
    rates = {name: _bounded(rate, problem) for name, rate in _solved_rates(problem, weak).items()}
    return Evolution(problem, orders, rates)


def obstacles(problem: Problem) -> tuple[str, ...]:
    """Every reason why the problem cannot be integrated in time; none if it can."""
    if not isinstance(problem.domain, SpaceTime):
        return ("the domain has no time",)
    found = [*_of_conditions(problem), *_of_orders(problem)]
    found += [] if found else _of_rates(problem)
    return tuple(dict.fromkeys(found))


# ------------------------------------------------------------------------------------------------ reasons why not


def _of_conditions(problem: Problem) -> Iterator[str]:
    if "t" in problem.periodic:
        yield "the problem is periodic in time"
    for pairing in problem.pairings:
        yield f"condition {pairing.name!r} makes some fields periodic and others not"
    given = set()
    for term in problem.constraints:
        if term.kind in ("slice", "data"):
            yield f"condition {term.name!r} is inside the domain, not on its boundary or at its first time"
        elif term.kind == "initial":
            if term.prescribed is None or any(term.prescribed[0].index[1:]):
                yield f"the initial condition {term.name!r} does not give one field, or its time derivative, a value"
            else:
                given.add(Component(term.prescribed[0].field, term.prescribed[0].index[0]))
        else:
            yield from _of_boundary(term)
    for name in problem.fields:
        for level in range(max(problem.order(name, 0), 0)):
            if Component(name, level) not in given:
                yield "there is no initial value of " + "the time derivative of " * level + repr(name)


def _of_boundary(term: Term) -> Iterator[str]:
    expression = term.expression
    if len(expression.fields) != 1 or not expression.linear:
        yield f"the boundary condition {term.name!r} is not linear, or holds several fields"
    if any(jet.index[0] for jet in expression.jets):
        yield f"the boundary condition {term.name!r} holds a time derivative"
    if any(coordinate_symbol("t") in partial.free_symbols for partial in expression.partials):
        yield f"the boundary condition {term.name!r} has a coefficient that changes in time"


def _of_orders(problem: Problem) -> Iterator[str]:
    for name in problem.fields:
        order = problem.order(name, 0)
        if order < 1:
            yield f"no equation holds a time derivative of the field {name!r}"
        elif order > 2:
            yield f"the field {name!r} is of order {order} in time, more than 2; write it as a system"
        for jet in {jet for e in problem.expressions.values() for jet in e.jets}:
            if jet.field == name and jet.index[0] == order and any(jet.index[1:]):
                shown = jet_name(jet, problem.vocabulary.coordinates)
                yield f"{shown} mixes the highest time derivative of {name!r} with space"


def _of_rates(problem: Problem) -> Iterator[str]:
    top, rows = _top_symbols(problem), _top_matrix(problem)
    for name, row in zip(problem.expressions, rows, strict=True):
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
    if [*_of_orders(problem)] or [*_of_rates(problem)]:
        return None
    return {name: rate.source for name, rate in _solved_rates(problem, weak=False).items()}


def _top_symbols(problem: Problem) -> dict[str, sympy.Symbol]:
    """The symbol of the highest time derivative of every field."""
    found = {}
    for name in problem.fields:
        jet = Jet(name, (problem.order(name, 0),) + (0,) * (problem.domain.dim - 1))
        found[name] = sympy.Symbol(jet_name(jet, problem.vocabulary.coordinates), real=True)
    return found


def _top_matrix(problem: Problem) -> list[list[sympy.Expr]]:
    """∂(equation)/∂(highest time derivative)."""
    top = _top_symbols(problem).values()
    return [[sympy.diff(expression.formula, symbol) for symbol in top] for expression in problem.expressions.values()]


def _alone(rows: list[list[sympy.Expr]]) -> bool:
    """Whether every equation holds the top derivative of one field only."""
    return all(sum(entry != 0 for entry in row) == 1 for row in rows)


def _solved_rates(problem: Problem, weak: bool) -> dict[str, Rate]:
    """Top derivatives from the equations, which are linear in them."""
    top, rows, symbols = _top_symbols(problem), _top_matrix(problem), _symbols(problem)
    zero = dict.fromkeys(top.values(), 0)
    rest = [expression.formula.subs(zero) for expression in problem.expressions.values()]
    if not _alone(rows):
        solved = solve_linear(rows, [-part for part in rest])
        assert solved is not None  # obstacles() has looked
        return {name: Rate(_expression(solved[k], symbols, problem)) for k, name in enumerate(top)}
    found: dict[str, Rate] = {}
    for column, name in enumerate(top):
        place = next(k for k, entries in enumerate(rows) if entries[column] != 0)
        equation = list(problem.expressions)[place]
        kept = _weak_rate(problem, equation, top[name], symbols) if weak and rows[place][column].is_number else None
        found[name] = kept or Rate(_expression(-rest[place] / rows[place][column], symbols, problem))
    return found


def _weak_rate(problem: Problem, equation: str, top: sympy.Symbol, symbols: Mapping[sympy.Symbol, Jet]) -> Rate | None:
    """The rate in divergence form, where the statement has it and the flux holds no highest time derivative."""
    form = problem.divergence(equation)
    if not form.flux or any(top in part.symbols for part in form.flux.values()):
        return None
    constant = sympy.diff(form.source.formula, top)
    source = _expression(-form.source.formula.subs(top, 0) / constant, symbols, problem)
    space = problem.vocabulary.space
    flux = {space.index(n): _expression(part.formula / constant, symbols, problem) for n, part in form.flux.items()}
    return Rate(source, flux)


def _symbols(problem: Problem) -> dict[sympy.Symbol, Jet]:
    """Every jet symbol of the equations, also those of their fluxes."""
    found: dict[sympy.Symbol, Jet] = {}
    for name, expression in problem.expressions.items():
        form = problem.divergence(name)
        for part in (expression, form.source, *form.flux.values()):
            found |= part.symbols
    return found


def _expression(formula: sympy.Expr, symbols: Mapping[sympy.Symbol, Jet], problem: Problem) -> Expression:
    used = {symbol: jet for symbol, jet in symbols.items() if symbol in formula.free_symbols}
    return Expression(formula, formula, used, problem.functions)


def _initial_values(problem: Problem) -> dict[Component, sympy.Expr]:
    given = [term.prescribed for term in problem.constraints if term.kind == "initial"]
    return {Component(jet.field, jet.index[0]): value for jet, value in filter(None, given)}


# ----------------------------------------------------------------------------------------------------- bounds


def _bounded(rate: Rate, problem: Problem) -> Rate:
    """Fields replaced by their values within the declared bounds.

    An error of the sign of a porous medium's density turns its diffusion backwards; the coefficient never sees it.
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
