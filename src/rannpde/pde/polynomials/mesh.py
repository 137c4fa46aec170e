"""Where solutions of equations with integrals and delays are not smooth, as far as that is known beforehand.

A jump of a derivative at t = b comes back at all t whose delayed argument is b, one order smoother each time: with
u(t - 1) the solution is smooth between whole numbers only.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import FlatSide
from rannpde.pde.polynomials.cell_maps import Roots
from rannpde.pde.polynomials.settings import PolynomialSettings
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.functionals import DefiniteIntegral, FieldValue, common_power, root_levels
from rannpde.pde.statement.kinks import kink_levels


def first_edges(problem: Problem, settings: PolynomialSettings, roots: tuple[Roots, ...] = ()) -> tuple[Array, ...]:
    """For each coordinate, the ends of the domain and the positions between them at which solutions are not smooth.

    roots : ``field_roots``; no cell has one at both ends

    >>> from rannpde.domains import Box
    >>> problem = Problem("u_t = -u(t - 1)", Box(t=(0, 2.5)), {"t <= 0": "u = 1"})
    >>> first_edges(problem, PolynomialSettings())[0].tolist()
    [0.0, 1.0, 2.0, 2.5]
    """
    all_edges = []
    for axis, symbol in enumerate(problem.vocabulary.symbols):
        lower, upper = map(float, problem.domain.bounds[axis])
        kinks = [position for position in _kinks(problem, symbol, axis) if lower < position < upper]
        maps = list(dict.fromkeys(_arguments(problem, symbol, axis)))
        most = settings.most_unknowns // (4 * (settings.degree + 1))
        own = [position for position, _ in roots[axis]] if roots else []
        edges = _propagated((lower, upper), own + kinks, maps, settings.most_degree, most)
        both = np.isin(edges[:-1], own) & np.isin(edges[1:], own)
        all_edges.append(np.sort(np.concatenate([edges, 0.5 * (edges[:-1] + edges[1:])[both]])))
    return tuple(all_edges)


def field_roots(problem: Problem) -> tuple[Roots, ...]:
    """For each coordinate, where solutions are smooth functions of a root of the distance: (position, power).

    At the ends of integrals with a kernel such as 1/√(x - s), and where roots of the coordinate vanish. Equations of
    higher order than one have conditions on derivatives, which such functions need not have there.

    >>> from rannpde.domains import Box
    >>> field_roots(Problem("u = 1 - integral(u(s)/sqrt(t - s), s, 0, t)", Box(t=(0, 3))))
    (((0.0, 2),),)
    """
    roots = []
    for axis, symbol in enumerate(problem.vocabulary.symbols):
        powers: dict[float, int] = {}
        if max(problem.order(name, axis) for name in problem.fields) <= 1:
            lower, upper = map(float, problem.domain.bounds[axis])
            for position, power in _root_candidates(problem, symbol, axis):
                if power > 1 and lower <= position <= upper:
                    powers[position] = common_power((power, powers.get(position, 1)))
        roots.append(tuple(sorted(powers.items())))
    return tuple(roots)


def _root_candidates(problem: Problem, symbol: sympy.Symbol, axis: int) -> Iterable[tuple[float, int]]:
    for term in problem.interior:
        for formula, power, _ in root_levels(term.expression.formula, symbol):
            root = _affine(formula, symbol)
            if root is not None:
                yield -root[0] / root[1], power
        for one in term.expression.functionals.values():
            if isinstance(one, DefiniteIntegral):
                for inner in one.integrand.functionals.values():
                    if isinstance(inner, FieldValue):
                        ends = (inner.arguments[axis].xreplace({one.variable: end}) for end in (one.lower, one.upper))
                        yield from ((float(end), one.field_grading) for end in ends if end.is_number)


def _affine(formula: sympy.Expr, symbol: sympy.Symbol) -> tuple[float, float] | None:
    """(a, b) of a + b·symbol; None for other formulas."""
    slope = sympy.diff(formula, symbol)
    start = formula.xreplace({symbol: sympy.Integer(0)})
    return (float(start), float(slope)) if slope.is_number and start.is_number and slope != 0 else None


def _kinks(problem: Problem, symbol: sympy.Symbol, axis: int) -> Iterable[float]:
    """Kinks and jumps of coefficients, and slices on which conditions hold."""
    for term in problem.terms:
        if isinstance(term.region, FlatSide) and term.region.axis == axis:
            yield term.region.value
        for level in kink_levels(term.expression.formula):
            root = _affine(level, symbol)
            if root is not None:
                yield -root[0] / root[1]


def _arguments(problem: Problem, symbol: sympy.Symbol, axis: int) -> Iterable[tuple[float, float]]:
    """The affine functions of a coordinate at which fields are evaluated: delayed arguments, limits of integrals."""
    for term in problem.interior:
        for one in term.expression.functionals.values():
            formulas: tuple[sympy.Expr, ...] = ()
            if isinstance(one, FieldValue):
                formulas = (one.arguments[axis],)
            elif isinstance(one, DefiniteIntegral):
                formulas = (one.lower, one.upper)
            for formula in formulas:
                function = _affine(formula, symbol) if formula.has(symbol) else None
                if function is not None and function != (0.0, 1.0):
                    yield function


def _propagated(
    ends: tuple[float, float], kinks: list[float], maps: list[tuple[float, float]], generations: int, most: int
) -> Array:
    lower, upper = ends
    near = 1e-9 * (upper - lower)
    positions = [lower, upper]

    def add(candidates: Iterable[float]) -> list[float]:
        fresh = []
        for position in candidates:
            if (
                lower < position < upper
                and len(positions) < most
                and min(abs(position - known) for known in positions) > near
            ):
                positions.append(position)
                fresh.append(position)
        return fresh

    latest = [lower, upper, *add(kinks)]
    for _ in range(generations):
        latest = add((edge - start) / slope for edge in latest for start, slope in maps)
        if not latest:
            break
    return np.array(sorted(positions))
