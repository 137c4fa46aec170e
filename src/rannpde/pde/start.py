"""Initial guesses, from what a problem prescribes or a user gives, and checks of row weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy

from rannpde.arrays import Array, MultiIndex
from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError, require, suggestion
from rannpde.pde.functions import ExactSolution, Formula, State
from rannpde.pde.problem.forms import rates
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import jets_of, term_residual
from rannpde.pde.solution import Solution
from rannpde.pde.statement.expansion import expand
from rannpde.pde.statement.expression import Expression
from rannpde.rounding import difference_step

PROBE_POINTS = 200
"""Points at which a linearisation is checked."""
GUESS_LAPLACIANS = (0, 1, -1, 4, -4)
"""Laplacians of the Poisson initial guesses, in units of the data over the square of half the domain."""


def first_guess(problem: Problem, moving: bool = False) -> State:
    """The initial values for all times, or with ``moving`` their Taylor polynomial of degree 1 in time.

    The time derivative comes from the equations: they are solved for it with the initial values inserted. Fields
    without initial values start at 0, or at the nearest number inside their bounds.
    """
    values: dict[str, sympy.Expr] = {}
    speeds: dict[str, sympy.Expr] = {}
    for term in problem.constraints:
        given = term.prescribed if term.kind == "initial" else None
        if given is not None and sum(given[0].index[1:]) == 0:
            {0: values, 1: speeds}.get(given[0].index[0], {})[given[0].field] = given[1]
    values = {name: values.get(name, _inside(problem, name)) for name in problem.fields}
    if isinstance(problem.domain, SpaceTime):
        clock, start = problem.vocabulary.symbols[0], problem.domain.time[0]
        values = {name: value.subs(clock, start) for name, value in values.items()}
        if moving:
            moved = _time_derivatives(problem, values, start) | {k: v.subs(clock, start) for k, v in speeds.items()}
            values = {name: value + (clock - start) * moved.get(name, 0) for name, value in values.items()}
    smooth = {name: _with_derivative(function) for name, function in problem.functions.items()}
    symbols = problem.vocabulary.symbols
    return _Finite(ExactSolution({n: Formula(Expression(v, v, {}, smooth), symbols) for n, v in values.items()}))


@dataclass(frozen=True)
class _Finite:
    """A state whose derivatives are set to 0 where they do not exist, for instance at the edge of a support."""

    state: State

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        return np.nan_to_num(self.state.derivative(points, derivative), nan=0.0, posinf=0.0, neginf=0.0)


def _inside(problem: Problem, name: str) -> sympy.Expr:
    lower, upper = problem.bounds.get(name, (None, None))
    if lower is not None and upper is not None:
        return sympy.Float((lower + upper) / 2)
    if lower is not None and lower >= 0:
        return sympy.Float(lower + 1)
    return sympy.Float(upper - 1) if upper is not None and upper <= 0 else sympy.Integer(0)


def _time_derivatives(problem: Problem, values: dict[str, sympy.Expr], start: float) -> dict[str, sympy.Expr]:
    """Return ∂_t of the fields at the start, where the equations are of first order in time and determine it."""
    solved = rates(problem) if all(problem.order(name, 0) == 1 for name in problem.fields) else None
    derivatives = {}
    for name, rate in (solved or {}).items():
        table = {}
        for symbol, jet in rate.symbols.items():
            orders = [(c, k) for c, k in zip(problem.vocabulary.symbols, jet.index, strict=True) if k]
            table[symbol] = expand(sympy.diff(values[jet.field], *orders)) if orders else values[jet.field]
        derivatives[name] = rate.formula.xreplace(table).subs(problem.vocabulary.symbols[0], start)
    return derivatives


def _with_derivative(function: Callable[..., Any]) -> Any:
    return function if hasattr(function, "derivative") else Differenced(function)


@dataclass(frozen=True)
class Differenced:
    """A user's function with derivatives by central differences, accurate enough for a guess but not for residuals."""

    function: Callable[..., Any]

    def __call__(self, *arguments: Array) -> Any:
        return self.function(*arguments)

    def derivative(self, orders: MultiIndex, *arguments: Array) -> Any:
        if not any(orders):
            return self.function(*arguments)
        axis = next(k for k, order in enumerate(orders) if order)
        lower = tuple(order - (k == axis) for k, order in enumerate(orders))
        step = difference_step(2) * max(1.0, float(np.abs(arguments[axis]).max()))
        sides = [
            self.derivative(lower, *[a + sign * step if k == axis else a for k, a in enumerate(arguments)])
            for sign in (1, -1)
        ]
        return (np.asarray(sides[0], dtype=float) - sides[1]) / (2 * step)


def linearises(problem: Problem, state: State) -> bool:
    """Return whether every equation has a linearisation at a state: finite, and not zero at most points.

    At u = 0 neither u_xx u_yy - u_xy² = f nor div(|∇u| ∇u) = f has one, and Newton's method cannot start there.
    """
    points = problem.domain.sample(PROBE_POINTS, rng=31)
    for term in problem.interior:
        jets = jets_of(state, problem.fields, points, term.expression.jets)
        value, partials = term.expression.linearised(term.known(points, problem.vocabulary), jets)
        slopes = np.array([np.broadcast_to(partial, len(points)) for partial in partials])
        if not (np.isfinite(value).all() and np.isfinite(slopes).all()) or np.mean(slopes.any(axis=0)) < 0.5:
            return False
    return True


def poisson_guesses(problem: Problem) -> list[Problem]:
    """Return linear problems Δu = c with the conditions of a stationary one, whose solutions can be initial guesses."""
    state, height = first_guess(problem), 0.0
    for term in problem.constraints:
        region: Any = term.region
        if region is not None:
            points = region.sample(1 if region.is_point else PROBE_POINTS, rng=31)
            residual = term_residual(term, state, problem.vocabulary, points)
            height = max(height, float(np.abs(residual[np.isfinite(residual)]).max(initial=0.0)))
    unit = (height or 1.0) / (0.5 * float(np.diff(problem.domain.bounds, axis=1).min())) ** 2
    return [
        replace(
            problem, equations={name: f"laplace({name}) = {laplacian * unit!r}" for name in problem.fields},
            exact={}, incomplete=True,
        )
        for laplacian in GUESS_LAPLACIANS
    ]  # fmt: skip


def as_state(guess: Any, problem: Problem) -> State | None:
    """Return the state of a guess given as formulas, as a Solution, or as any object with derivatives."""
    if guess is None:
        return None
    if isinstance(guess, Solution):
        return guess.function
    if isinstance(guess, Mapping):
        try:
            known = replace(problem, exact=guess).exact_solution
        except InputError as error:
            raise InputError(str(error).replace("exact", "guess", 1)) from None
        assert isinstance(known, ExactSolution)
        return known
    remedy = "a mapping of fields to formulas, a Solution, or an object with derivative"
    require(hasattr(guess, "derivative"), "guess", guess, remedy)
    return guess


def check_weights(problem: Problem, weights: Mapping[str, float]) -> None:
    """Refuse weights that do not name an equation or condition of a problem, or are not numbers."""
    known = {*problem.equations, *problem.conditions, "continuity", *(f"bounds of {n}" for n in problem.bounds)}
    for name, value in weights.items():
        if name not in known:
            raise InputError(f"weights names {name!r}, which is no equation or condition; {suggestion(name, known)}")
        positive = isinstance(value, (int, float, np.floating)) and 0 < value < np.inf
        require(bool(positive), f"weights[{name!r}]", value, "a finite number > 0")
