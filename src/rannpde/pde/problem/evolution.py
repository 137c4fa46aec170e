"""From the statement of a problem to ∂_t u = F(t, x, u, ∂u, …): what the method of lines integrates.

Every field must have a highest time derivative that its equations determine, of first or second order. A field of
second order is two *components*, u and u_t. Where an equation was stated with derivatives in space of an expression,
that divergence form is kept,

    ∂_t u = source - Σ_x ∂_x flux_x ,

and integrated by parts later: a Galerkin method then inherits the sign of diffusion and the conservation of mass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import sympy

from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError
from rannpde.pde.problem.conditions import Term
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.evaluate import evaluate
from rannpde.pde.statement.expression import Expression, Jet, jet_name
from rannpde.pde.statement.vocabulary import coordinate_symbol

Array = np.ndarray


class NotAnEvolution(InputError):
    """The equations do not give the time derivative of every field; the message says of which."""


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

    @property
    def components(self) -> tuple[Component, ...]:
        return tuple(Component(name, level) for name, order in self.orders.items() for level in range(order))

    @property
    def domain(self) -> SpaceTime:
        domain = self.problem.domain
        assert isinstance(domain, SpaceTime)
        return domain

    @cached_property
    def functions(self) -> dict[str, Callable[..., Array]]:
        """The user's functions, which expect one-dimensional arrays, for arrays of any shape."""
        return {name: _any_shape(function) for name, function in self.problem.functions.items()}

    @cached_property
    def jets(self) -> tuple[Jet, ...]:
        """Every derivative that the rates need."""
        return tuple({jet: None for rate in self.rates.values() for part in rate.parts for jet in part.jets})

    @cached_property
    def initial(self) -> dict[Component, sympy.Expr]:
        """Component → formula of its initial value."""
        found: dict[Component, sympy.Expr] = {}
        for term in self.problem.constraints:
            if term.kind == "initial":
                component, formula = _prescribed_initial(term)
                found[component] = formula
        for component in self.components:
            if component not in found:
                jet = "the time derivative of " * component.level + repr(component.field)
                raise NotAnEvolution(
                    f"there is no initial value of {jet}; give one condition for each field and time order"
                )
        return found

    def initial_values(self, component: Component, points: Array) -> Array:
        """The initial value (M,) at points (M, d) of space."""
        names = self.problem.vocabulary.space
        known = {coordinate_symbol(name): points[:, axis] for axis, name in enumerate(names)}
        known[coordinate_symbol("t")] = np.asarray(self.domain.time[0])
        value = evaluate([self.initial[component]], known, self.functions)[0]
        return np.broadcast_to(value, (len(points),)).astype(float)


def _any_shape(function: Callable[..., Any]) -> Callable[..., Array]:
    def wrapped(*arguments: Array) -> Array:
        shape = np.broadcast_shapes(*(a.shape for a in arguments))
        flat = [np.broadcast_to(a, shape).ravel() for a in arguments]
        return np.broadcast_to(np.asarray(function(*flat), dtype=float), (int(np.prod(shape)),)).reshape(shape)

    return wrapped


def evolution_form(problem: Problem, *, weak: bool = True) -> Evolution:
    """The problem as an evolution; refused with the name of the field that has no time derivative to integrate.

    weak : keep the divergence form where the statement has it
    """
    if not isinstance(problem.domain, SpaceTime):
        raise NotAnEvolution("the domain has no time, so that there is nothing to integrate; use SpaceTime(t=…, x=…)")
    if "t" in problem.periodic or problem.pairings:
        raise NotAnEvolution("periodic in time, or periodic in space for some fields only: not by the method of lines")
    other = next((term for term in problem.constraints if term.kind in ("slice", "data")), None)
    if other is not None:
        raise NotAnEvolution(
            f"condition {other.name!r} is inside the domain; the method of lines needs initial and boundary values only"
        )
    orders = {name: problem.order(name, 0) for name in problem.fields}
    for name, order in orders.items():
        if order < 1:
            raise NotAnEvolution(f"no equation holds a time derivative of the field {name!r}: it does not evolve")
        if order > 2:
            raise NotAnEvolution(f"the field {name!r} is of order {order} in time; at most 2, write it as a system")
    top = {name: _top_symbol(problem, name, order) for name, order in orders.items()}
    rates = {name: _bounded(rate, problem) for name, rate in _solve_rates(problem, top, weak).items()}
    result = Evolution(problem, orders, rates)
    assert set(result.initial) >= set(result.components)
    return result


def _top_symbol(problem: Problem, name: str, order: int) -> sympy.Symbol:
    """The symbol of the highest time derivative, refused when it is mixed with derivatives in space."""
    found = None
    for expression in problem.expressions.values():
        for symbol, jet in expression.symbols.items():
            if jet.field == name and jet.index[0] == order:
                if any(jet.index[1:]):
                    shown = jet_name(jet, problem.vocabulary.coordinates)
                    raise NotAnEvolution(
                        f"{shown} mixes the highest time derivative of {name!r} with space: not by the method of lines"
                    )
                found = symbol
    assert found is not None
    return found


def _solve_rates(problem: Problem, top: Mapping[str, sympy.Symbol], weak: bool) -> dict[str, Rate]:
    """Top derivatives from the equations, which must be linear in them."""
    rows, rest = [], []
    for name, expression in problem.expressions.items():
        row = [sympy.diff(expression.formula, symbol) for symbol in top.values()]
        if any(entry.free_symbols & set(top.values()) for entry in row):
            raise NotAnEvolution(f"equation {name!r} is not linear in the highest time derivatives")
        rows.append(row)
        rest.append(expression.formula.subs(dict.fromkeys(top.values(), 0)))
    matrix = sympy.Matrix(rows)
    if matrix.rows != matrix.cols or matrix.det() == 0:
        fields = ", ".join(repr(name) for name in top)
        raise NotAnEvolution(f"the equations do not determine the time derivatives of all of {fields}")
    rates: dict[str, Rate] = {}
    symbols = _symbols(problem)
    solved = matrix.LUsolve(-sympy.Matrix(rest)) if not _is_permutation(matrix) else None
    for column, name in enumerate(top):
        if solved is not None:
            rates[name] = Rate(_expression(solved[column], symbols, problem))
            continue
        place = next(k for k, entries in enumerate(rows) if entries[column] != 0)
        equation = list(problem.expressions)[place]
        kept = _weak_rate(problem, equation, top[name], symbols) if weak and rows[place][column].is_number else None
        rates[name] = kept or Rate(_expression(-rest[place] / rows[place][column], symbols, problem))
    return rates


def _is_permutation(matrix: sympy.Matrix) -> bool:
    """Whether every equation holds the top derivative of one field only."""
    return all(sum(matrix[i, j] != 0 for j in range(matrix.cols)) == 1 for i in range(matrix.rows))


def _weak_rate(problem: Problem, equation: str, top: sympy.Symbol, symbols: Mapping[sympy.Symbol, Jet]) -> Rate | None:
    """The rate in divergence form, where the statement has it and the flux holds no highest time derivative."""
    form = problem.divergence(equation)
    if not form.flux or any(top in part.symbols for part in form.flux.values()):
        return None
    constant = sympy.diff(form.source.formula, top)
    source = _expression(-form.source.formula.subs(top, 0) / constant, symbols, problem)
    space = problem.vocabulary.space
    flux = {
        space.index(name): _expression(part.formula / constant, symbols, problem) for name, part in form.flux.items()
    }
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
            inside = symbol if lower is None else sympy.Max(symbol, lower)
            table[symbol] = inside if upper is None else sympy.Min(inside, upper)
    formula = part.formula.xreplace(table)
    return _expression(formula, part.symbols, problem)


def _prescribed_initial(term: Term) -> tuple[Component, sympy.Expr]:
    """u = …, or u_t = …, at the first time."""
    expression = term.expression
    if len(expression.jets) == 1 and not any(expression.jets[0].index[1:]):
        symbol, jet = next(iter(expression.symbols.items()))
        slope = expression.partials[0]
        if symbol not in slope.free_symbols:
            return Component(jet.field, jet.index[0]), -expression.formula.subs(symbol, 0) / slope
    raise NotAnEvolution(
        f"the initial condition {term.name!r} must give one field, or its time derivative, a value: u = …"
    )
