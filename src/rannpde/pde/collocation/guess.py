"""First guesses from what a problem prescribes: initial values, kept in time or moved by the equations themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy

from rannpde.domains.domain import SpaceTime
from rannpde.pde.functions import ExactSolution, Formula, State
from rannpde.pde.problem.checks import prescribed
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import Expression, Jet, expand
from rannpde.pde.statement.vocabulary import coordinate_symbol

Array = np.ndarray
_STEP = 1e-4


def first_guess(problem: Problem, moving: bool = False) -> State:
    """The initial values for all times, or with ``moving`` their Taylor polynomial of degree 1 in time.

    The time derivative comes from the equations: they are solved for it with the initial values inserted. Fields
    without initial values start at 0, or at the nearest number inside their bounds.
    """
    values: dict[str, sympy.Expr] = {}
    rates: dict[str, sympy.Expr] = {}
    for term in problem.constraints:
        given = prescribed(term) if term.kind == "initial" else None
        if given is not None and sum(given[0].index[1:]) == 0:
            {0: values, 1: rates}.get(given[0].index[0], {})[given[0].field] = given[1]
    start = problem.domain.time[0] if isinstance(problem.domain, SpaceTime) else 0.0
    clock = coordinate_symbol("t")
    values = {name: values.get(name, _inside(problem, name)).subs(clock, start) for name in problem.fields}
    if moving:
        rates = _time_derivatives(problem, values, start) | {k: v.subs(clock, start) for k, v in rates.items()}
        values = {name: value + (clock - start) * rates.get(name, 0) for name, value in values.items()}
    smooth = {name: _with_derivative(function) for name, function in problem.functions.items()}
    words = replace(problem.vocabulary, fields=(), functions=smooth)
    return _Finite(ExactSolution({n: Formula(Expression(v, v, {}, smooth), words) for n, v in values.items()}))


@dataclass(frozen=True)
class _Finite:
    """A state whose derivatives are 0 where they do not exist: at the edge of a support, say."""

    state: State

    def derivative(self, points: Array, derivative: tuple[int, ...]) -> Array:
        return np.nan_to_num(self.state.derivative(points, derivative), nan=0.0, posinf=0.0, neginf=0.0)


def _inside(problem: Problem, name: str) -> sympy.Expr:
    lower, upper = problem.bounds.get(name, (None, None))
    if lower is not None and upper is not None:
        return sympy.Float((lower + upper) / 2)
    if lower is not None and lower >= 0:
        return sympy.Float(lower + 1)
    return sympy.Float(upper - 1) if upper is not None and upper <= 0 else sympy.Integer(0)


def _time_derivatives(problem: Problem, values: dict[str, sympy.Expr], start: float) -> dict[str, sympy.Expr]:
    """∂_t of the fields at the start from equations of first order in time; empty where that cannot be done."""
    zero = (0,) * (problem.domain.dim - 1)
    tops = {name: Jet(name, (1, *zero)) for name in problem.fields if problem.order(name, 0) == 1}
    unknowns = {jet: sympy.Symbol(f"rate of {jet.field}", real=True) for jet in tops.values()}
    rows = []
    for expression in problem.expressions.values():
        table = {}
        for symbol, jet in expression.symbols.items():
            if jet in unknowns:
                table[symbol] = unknowns[jet]
            elif jet.index[0]:
                return {}
            else:
                orders = [(c, k) for c, k in zip(problem.vocabulary.symbols, jet.index, strict=True) if k]
                table[symbol] = expand(sympy.diff(values[jet.field], *orders)) if orders else values[jet.field]
        row = expression.formula.xreplace(table).subs(coordinate_symbol("t"), start)
        if row.free_symbols & set(unknowns.values()):
            rows.append(row)
    if len(rows) != len(unknowns):
        return {}
    matrix = sympy.Matrix([[sympy.diff(row, symbol) for symbol in unknowns.values()] for row in rows])
    if matrix.free_symbols & set(unknowns.values()) or matrix.det() == 0:
        return {}
    right = sympy.Matrix([-row.subs(dict.fromkeys(unknowns.values(), 0)) for row in rows])
    return dict(zip(tops, matrix.LUsolve(right), strict=True))


def _with_derivative(function: Callable[..., Any]) -> Any:
    return function if hasattr(function, "derivative") else Differenced(function)


@dataclass(frozen=True)
class Differenced:
    """A user's function with derivatives by central differences: good enough for a guess, never in a residual."""

    function: Callable[..., Any]

    def __call__(self, *arguments: Array) -> Any:
        return self.function(*arguments)

    def derivative(self, orders: tuple[int, ...], *arguments: Array) -> Any:
        if not any(orders):
            return self.function(*arguments)
        place = next(k for k, order in enumerate(orders) if order)
        lower = tuple(order - (k == place) for k, order in enumerate(orders))
        step = _STEP * max(1.0, float(np.abs(arguments[place]).max()))
        sides = [
            self.derivative(lower, *[a + sign * step if k == place else a for k, a in enumerate(arguments)])
            for sign in (1, -1)
        ]
        return (np.asarray(sides[0], dtype=float) - sides[1]) / (2 * step)
