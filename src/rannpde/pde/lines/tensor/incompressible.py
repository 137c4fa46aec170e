"""Incompressible flow in a box: recognising it in a statement, and the data that its time integration needs.

    ∂_t u_f = F_f(t, x, u, ∂u, …) + c_f ∂_f p ,        Σ_f b_f ∂_f u_f = s(t, x) ,        c_f / b_f = κ for all f,

one coordinate for each field. The pressure p has no time derivative; it is the Lagrange multiplier of the constraint, a
differential-algebraic system of index 2. With test functions for which Σ b_f ∂_f φ_f vanishes, p drops out, except for
the boundary fluxes

    σ_f = ν_f ∂_n u_f + c_f n_f p ,

where ν_f is the constant factor of ∂_nn u_f in F_f: a side that does not prescribe u_f must determine σ_f by its
conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import sympy
from scipy.interpolate import make_interp_spline

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import FlatSide
from rannpde.domains.domain import Box, SpaceTime
from rannpde.pde.problem.evolution import Component, Evolution, Rate
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import Expression, Jet, constant
from rannpde.rounding import ROUNDED


@dataclass(frozen=True, eq=False)
class Flux:
    """σ of a field on one side of the box, as a formula in t and x."""

    field: str
    side: FlatSide
    value: sympy.Expr

    @property
    def axis(self) -> int:
        """The axis of space, from 0."""
        return self.side.axis - 1


@dataclass(frozen=True, eq=False)
class IncompressibleFlow:
    """An incompressible flow in a box, in the notation of the docstring of the module.

    evolution : of all fields, in the order of the problem; no rate contains the pressure, and its own rate is 0
    axes : field → the coordinate of space whose derivative of p acts on it; divergence : field → b_f; source : s
    pressure_factor : κ; fluxes : on the sides where fields are not prescribed
    level : where data give p at one point of space: that point, and its value as a function of time
    """

    evolution: Evolution
    pressure: str
    axes: Mapping[str, int]
    divergence: Mapping[str, float]
    source: sympy.Expr
    pressure_factor: float
    fluxes: tuple[Flux, ...]
    level: tuple[Array, Callable[[Array], Array]] | None = None


PRESSURE_SPLINE_DEGREE = 5
"""Largest degree of the spline through a pressure that is given at some times."""


class _NotAFlow(Exception):
    """A part of the statement is not that of an incompressible flow."""


def flow_of(problem: Problem) -> IncompressibleFlow | None:
    """The problem as an incompressible flow in a box of two dimensions with walls; None where it is something else.

    >>> from rannpde.pde.problem.conditions import On, Periodic
    >>> equations = ["u_t + u*u_x + v*u_y + p_x = 0.1*laplace(u)", "v_t + u*v_x + v*v_y + p_y = 0.1*laplace(v)"]
    >>> equations.append("u_x + v_y = 0")
    >>> conditions = {"u": On("t=0", "u = sin(pi*y)"), "v": On("t=0", "v = 0"), "around": Periodic("x")}
    >>> conditions |= {f"walls, {f}": On(("y=0", "y=1"), f"{f} = 0") for f in ("u", "v")}
    >>> problem = Problem(equations, SpaceTime(t=(0, 1), x=(0, 1), y=(0, 1)), conditions, fields=("u", "v", "p"))
    >>> flow = flow_of(problem)
    >>> flow.pressure, dict(flow.axes), flow.pressure_factor
    ('p', {'u': 0, 'v': 1}, -1.0)
    """
    try:
        return _recognised(problem)
    except _NotAFlow:
        return None


def _recognised(problem: Problem) -> IncompressibleFlow:
    domain = problem.domain
    _need(isinstance(domain, SpaceTime) and isinstance(domain.space, Box) and domain.space.dim == 2)
    _need(not problem.pairings and not problem.bounds and not problem.jumping and "t" not in problem.periodic)
    _need(0 <= len(problem.periodic) < 2)
    orders = {name: problem.order(name, 0) for name in problem.fields}
    still = [name for name, order in orders.items() if order < 1]
    _need(len(still) == 1 and all(order == 1 for name, order in orders.items() if name not in still))
    pressure, moving = still[0], [name for name in problem.fields if name not in still]
    expressions = dict(problem.expressions)
    laws = [name for name, e in expressions.items() if not any(jet.index[0] for jet in e.jets)]
    _need(len(laws) == 1 and len(expressions) == len(problem.fields))
    law = expressions.pop(laws[0])
    axes, divergence, source = _divergence(law, moving)
    rates, pressure_terms = _rates(problem, expressions, moving, pressure)
    ratios = [pressure_terms.get((name, axes[name]), 0.0) / divergence[name] for name in moving]
    _need(
        ratios[0] != 0 and max(abs(r / ratios[0] - 1) for r in ratios) < ROUNDED and len(pressure_terms) == len(moving)
    )
    _need(all(_begins(problem, name) for name in moving))
    zero = Expression(sympy.Integer(0), sympy.Integer(0), {})
    rates_of_all = {name: Rate(rates.get(name, zero)) for name in problem.fields}
    walls, fluxes = _sides(problem, moving, pressure, rates, axes, ratios[0], divergence)
    evolution = Evolution(problem, dict.fromkeys(problem.fields, 1), rates_of_all, walls=walls)
    level = _level(problem, pressure)
    _need(level is None or not fluxes)
    return IncompressibleFlow(evolution, pressure, axes, divergence, source, ratios[0], fluxes, level)


def _need(fits: object) -> None:
    if not fits:
        raise _NotAFlow


def _number(expression: sympy.Expr) -> float:
    number = constant(expression)
    if number is None or not np.isfinite(number):
        raise _NotAFlow
    return number


def _divergence(law: Expression, moving: list[str]) -> tuple[dict[str, int], dict[str, float], sympy.Expr]:
    """field → axis, field → b_f, and s: every moving field by one first derivative, each along another coordinate."""
    axes, divergence = {}, {}
    for jet, partial in zip(law.jets, law.partials, strict=True):
        _need(jet.field in moving and jet.order == 1 and jet.field not in axes)
        axes[jet.field], divergence[jet.field] = jet.index.index(1) - 1, _number(partial)
    _need(len(axes) == len(moving) and len(set(axes.values())) == len(axes) and all(divergence.values()))
    return axes, divergence, -law.formula.subs(dict.fromkeys(law.symbols, 0))


def _rates(
    problem: Problem, expressions: Mapping[str, Expression], moving: list[str], pressure: str
) -> tuple[dict[str, Expression], dict[tuple[str, int], float]]:
    """field → ∂_t of it without the pressure; (field, axis) → c."""
    rates: dict[str, Expression] = {}
    pressure_terms: dict[tuple[str, int], float] = {}
    for expression in expressions.values():
        top = [(s, jet) for s, jet in expression.symbols.items() if jet.index[0]]
        _need(len(top) == 1 and top[0][1].order == 1 and top[0][1].field not in rates)
        symbol, name = top[0][0], top[0][1].field
        partials = dict(zip(expression.symbols, expression.partials, strict=True))
        scale = _number(partials[symbol])
        _need(scale)
        gone = [symbol]
        for other, jet in expression.symbols.items():
            if jet.field == pressure:
                _need(jet.order == 1)
                pressure_terms[name, jet.index.index(1) - 1] = -_number(partials[other]) / scale
                gone.append(other)
        formula = -expression.formula.subs(dict.fromkeys(gone, 0)) / scale
        used = {s: jet for s, jet in expression.symbols.items() if s in formula.free_symbols}
        rates[name] = Expression(formula, formula, used, problem.functions)
    _need(set(rates) == set(moving))
    return rates, pressure_terms


def _begins(problem: Problem, name: str) -> bool:
    given = [term.prescribed for term in problem.constraints if term.kind == "initial"]
    return any(one is not None and Component.of(one[0]) == Component(name, 0) for one in given)


def _level(problem: Problem, pressure: str) -> tuple[Array, Callable[[Array], Array]] | None:
    """The pressure that data give at one point, interpolated in time by a spline; None without data."""
    terms = [term for term in problem.constraints if term.kind == "data"]
    if not terms:
        return None
    points, data, expression = terms[0].points, terms[0].data, terms[0].expression
    _need(len(terms) == 1 and points is not None and data is not None)
    assert points is not None
    assert data is not None
    _need([(jet.field, jet.order) for jet in expression.jets] == [(pressure, 0)])
    _need(_number(expression.partials[0]) == 1 and np.ptp(points[:, 1:], axis=0).max() == 0)
    times, first = np.unique(points[:, 0], return_index=True)
    values = np.ravel(data)[first]
    spline = make_interp_spline(times, values, k=min(PRESSURE_SPLINE_DEGREE, len(times) - 1))
    return points[0, 1:], lambda moments: np.asarray(spline(np.clip(moments, times[0], times[-1])))


# --------------------------------------------------------------------------------------------------------- sides


def _sides(
    problem: Problem, moving: list[str], pressure: str, rates: Mapping[str, Expression], axes: Mapping[str, int],
    pressure_factor: float, divergence: Mapping[str, float],
) -> tuple[tuple[Term, ...], tuple[Flux, ...]]:  # fmt: skip
    """The conditions that prescribe a velocity, and the fluxes that all other conditions determine."""
    walls: list[Term] = []
    others: dict[tuple[int, int], list[Term]] = {}
    given: set[tuple[int, int, str]] = set()
    sides: dict[tuple[int, int], FlatSide] = {}
    for term in problem.constraints:
        if term.kind in ("initial", "data"):
            _need(term.kind == "data" or pressure not in term.expression.fields)
            continue
        side = term.region
        _need(term.kind == "boundary" and isinstance(side, FlatSide))
        assert isinstance(side, FlatSide)
        key = side.axis, int(side.outward)
        sides[key] = side
        value = term.prescribed
        if value is not None and value[0].field in moving and value[0].order == 0:
            _need((*key, value[0].field) not in given)
            given.add((*key, value[0].field))
            walls.append(term)
        else:
            others.setdefault(key, []).append(term)
    fluxes: list[Flux] = []
    for axis, name in enumerate(problem.domain.names[1:], start=1):
        for outward in () if name in problem.periodic else (-1, 1):
            free = [f for f in moving if (axis, outward, f) not in given]
            stated = others.get((axis, outward), [])
            _need(len(stated) == len(free))
            rows = [_row(problem, term, sides[axis, outward]) for term in stated]
            for f in free:
                wanted = _flux_row(
                    f,
                    axis,
                    outward,
                    rates[f],
                    {pressure: pressure_factor * divergence[f]} if axes[f] == axis - 1 else {},
                )
                fluxes.append(Flux(f, sides[axis, outward], _combined(wanted, rows)))
    return tuple(walls), tuple(fluxes)


ConditionRow = tuple[dict[Jet, float], sympy.Expr]


def _row(problem: Problem, term: Term, side: FlatSide) -> ConditionRow:
    """A linear condition with constant coefficients as (jet → coefficient, value)."""
    words, expression = problem.vocabulary, term.expression
    known = dict.fromkeys(words.normals, sympy.Integer(0)) | {words.normals[side.axis]: sympy.Integer(side.outward)}
    coefficients = {
        jet: _number(partial.subs(known)) for jet, partial in zip(expression.jets, expression.partials, strict=True)
    }
    value = -expression.formula.subs(dict.fromkeys(expression.symbols, 0)).subs(known)
    return {jet: number for jet, number in coefficients.items() if number}, value


def _flux_row(
    name: str, axis: int, outward: int, rate: Expression, pressure_terms: Mapping[str, float]
) -> dict[Jet, float]:
    """σ of a field on a side as jet → coefficient; the factors of its second derivatives must be constants."""
    size = len(rate.jets[0].index) if rate.jets else 3
    unit = tuple(int(k == axis) for k in range(size))
    coefficients: dict[Jet, float] = {}
    for jet, partial in zip(rate.jets, rate.partials, strict=True):
        if jet.index[axis] >= 2:
            _need(jet.field == name and jet.order == 2)
            coefficients[Jet(name, unit)] = outward * _number(partial)
    coefficients |= {Jet(p, (0,) * size): outward * number for p, number in pressure_terms.items()}
    return coefficients


def _combined(wanted: Mapping[Jet, float], rows: list[ConditionRow]) -> sympy.Expr:
    """The value of σ, as a linear combination of the stated conditions."""
    jets = list(dict.fromkeys([*wanted, *(jet for row, _ in rows for jet in row)]))
    matrix = np.array([[row.get(jet, 0.0) for row, _ in rows] for jet in jets])
    right = np.array([wanted.get(jet, 0.0) for jet in jets])
    factors = np.linalg.lstsq(matrix, right, rcond=None)[0]
    _need(np.abs(matrix @ factors - right).max() <= ROUNDED * max(1.0, float(np.abs(right).max())))
    return sum(
        (sympy.Float(factor) * value for factor, (_, value) in zip(factors, rows, strict=True)), sympy.Integer(0)
    )
