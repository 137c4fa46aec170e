"""Linear stability of stationary solutions: the spectrum of the linearisation as an eigenvalue problem of its own.

A stationary problem F(u) = 0 does not say how fast what is out of balance grows: u_t = ±F(u). The sign is that for
which the evolution is well posed, so that short waves decay: a second derivative with a positive factor, a fourth with
a negative one. Perturbations w exp(σt) then satisfy ±F'(u) w = σ w, with w instead of the fields in conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import sympy
from scipy.optimize import linear_sum_assignment

from rannpde.arrays import Array, Rng
from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError, reject, require
from rannpde.pde.functions import State
from rannpde.pde.monitor import Progress
from rannpde.pde.problem.conditions import Data, On
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import jets_of
from rannpde.pde.spectrum.eigen import eigen
from rannpde.pde.spectrum.pencil import PENCIL_SAMPLES
from rannpde.pde.spectrum.result import Spectrum
from rannpde.pde.statement.expression import Expression, Jet, evaluate

GROWTH = "growth"
"""The name of the eigenvalue: the rate σ of w exp(σt)."""
SHORT_WAVES = 10**4
"""Radians of a short wave along the domain: those that decide whether an evolution is well posed."""


def stability(
    problem: Problem,
    state: State,
    count: int = 6,
    *,
    algebraic: tuple[str, ...] = (),
    near: complex | None = None,
    tol: float = 1e-6,
    seconds: float | None = None,
    rng: Rng = 0,
    progress: Callable[[Progress], None] | None = None,
) -> Spectrum:
    """Growth rates of perturbations of a stationary solution, the fastest first, with a bound for each.

    problem, state : the stationary problem and its solution; ``solution.stability(…)`` gives both
    algebraic : fields whose equation is a constraint, without a rate of change: that which defines the field, such as
        w = u + u_xx, if there is one; the pressure of a flow need not be named
    The other arguments are those of ``rp.eigen``.
    """
    linear = linearised_problem(problem, state, algebraic)
    return eigen(linear, count, near=near, which=None if near is not None else "highest", tol=tol, seconds=seconds,
                 rng=rng, progress=progress)  # fmt: skip


def linearised_problem(problem: Problem, state: State, algebraic: tuple[str, ...] = ()) -> Problem:
    """The eigenvalue problem ±F'(u) w = σ w of perturbations w, which have the names of the fields."""
    require(isinstance(problem, Problem), "problem", problem, "a Problem")
    if isinstance(problem.domain, SpaceTime):
        reject("problem", "one in time", "stationary", "state it without time, and solve for the state of rest")
    algebraic = named_fields(problem, algebraic)
    if any(isinstance(one, Data) for one in problem.conditions.values()):
        raise InputError("the problem holds measured values, whose perturbation is zero; leave them out")
    words = problem.vocabulary
    functions: dict[str, Callable[..., Any]] = dict(problem.functions)
    names: dict[Jet, sympy.Expr] = {}

    def base(jet: Jet) -> sympy.Expr:
        if jet not in names:
            label = f"base{len(names) + 1}"
            functions[label] = _BaseFunction(state, problem.fields, jet)
            names[jet] = sympy.Function(label)(*words.symbols)
        return names[jet]

    rates = _rates(problem, state, algebraic)
    equations = {}
    for name, expression in problem.expressions.items():
        total = _linear_part(expression, problem, base)
        if name in rates:
            field, sign = rates[name]
            total = sign * total - sympy.Symbol(GROWTH) * words.field_function(field)
        equations[name] = total
    conditions = dict(problem.conditions)
    for name, condition in problem.conditions.items():
        if isinstance(condition, On):
            term = next(term for term in problem.constraints if term.name == name)
            conditions[name] = replace(condition, equation=_linear_part(term.expression, problem, base))
    return Problem(
        equations, problem.domain, conditions, parameters=problem.parameters, functions=functions,
        fields=problem.fields, name=problem.name, incomplete=problem.incomplete, eigenvalue=GROWTH,
    )  # fmt: skip


def named_fields(problem: Problem, algebraic: str | tuple[str, ...]) -> tuple[str, ...]:
    """The fields that ``algebraic`` names; an InputError where the problem has none of that name."""
    names = (algebraic,) if isinstance(algebraic, str) else tuple(algebraic)
    for name in names:
        require(name in problem.fields, "algebraic", name, f"one of {', '.join(problem.fields)}")
    return names


class _BaseFunction:
    """A derivative of the solution as a function of coordinate arrays."""

    def __init__(self, state: State, fields: tuple[str, ...], jet: Jet) -> None:
        self.state, self.fields, self.jet = state, fields, jet

    def __call__(self, *coordinates: Array) -> Array:
        points = np.stack(coordinates, axis=1)
        return jets_of(self.state, self.fields, points, [self.jet])[self.jet]


def _linear_part(expression: Expression, problem: Problem, base: Callable[[Jet], sympy.Expr]) -> sympy.Expr:
    """Σ ∂F/∂jet · ∂^α w, with the solution in the factors."""
    words = problem.vocabulary
    used = set().union(*(partial.free_symbols for partial in expression.partials))
    table = {symbol: base(jet) for symbol, jet in expression.symbols.items() if symbol in used}
    total: sympy.Expr = sympy.Integer(0)
    for jet, partial in zip(expression.jets, expression.partials, strict=True):
        total += partial.xreplace(table) * words.derivative(jet.field, jet.index)
    return total


def rates_of_change(problem: Problem, state: State, algebraic: tuple[str, ...] = ()) -> tuple[Array, Array]:
    """For each equation the number of the field whose rate of change it gives, and the sign; see ``_rates``.

    Equations that are constraints have the sign 0 and the numbers of the algebraic fields.
    """
    rates = _rates(problem, state, algebraic)
    left = iter([field for field in problem.fields if field not in {own for own, _ in rates.values()}])
    pairs = [rates.get(name) or (next(left), 0.0) for name in problem.expressions]
    return np.array([problem.fields.index(field) for field, _ in pairs]), np.array([sign for _, sign in pairs])


def _constrained(problem: Problem) -> tuple[str, ...]:
    """Fields without a rate of change: those of first order, such as a pressure, where as many equations of first
    order, such as that of mass, are left to be constraints."""
    first = tuple(field for field in problem.fields if problem.order(field) == 1)
    plain = [one for one in problem.expressions.values() if max((jet.order for jet in one.jets), default=0) < 2]
    return first if len(first) == len(plain) < len(problem.fields) else ()


def _rates(problem: Problem, state: State, algebraic: tuple[str, ...]) -> dict[str, tuple[str, float]]:
    """Equation → the field whose rate of change it gives, and the sign for which the evolution is well posed."""
    algebraic = algebraic or _constrained(problem)
    points = problem.domain.sample(PENCIL_SAMPLES, rng=0)
    known = problem.vocabulary.at(points)
    linear = []
    for expression in problem.expressions.values():
        jets = jets_of(state, problem.fields, points, expression.jets)
        values = known | {symbol: jets[jet] for symbol, jet in expression.symbols.items()}
        partials = evaluate(expression.partials, values, expression.functions)
        linear.append(
            {jet: np.broadcast_to(p, (len(points),)) for jet, p in zip(expression.jets, partials, strict=True)}
        )
    definitions = _definitions(linear, algebraic)
    if definitions:
        factors = _symbols(problem, linear, definitions)
    else:
        factors = _leading_factors(problem, linear)
    names, fields = list(problem.expressions), problem.fields
    sizes = np.zeros((len(names), len(fields)))
    for pair, factor in factors.items():
        sizes[pair] = float(np.abs(factor).mean())
    moving = [f for f, field in enumerate(fields) if field not in algebraic]
    shares = sizes[:, moving] / np.maximum(sizes[:, moving].max(axis=0, keepdims=True), 1e-300)
    rows, columns = linear_sum_assignment(-shares)
    rates = {}
    for k, f in zip(rows, np.array(moving, dtype=int)[columns], strict=True):
        factor = factors.get((int(k), int(f)), np.zeros(1))
        if not ((factor > 0).all() or (factor < 0).all()):
            raise InputError(
                f"equation {names[k]!r} does not tell how {fields[f]} changes in time: its highest derivative is odd, "
                f"or its factor has no sign; name fields without a rate of change by algebraic=({fields[f]!r},)"
            )
        rates[names[k]] = (fields[f], 1.0 if factor[0] > 0 else -1.0)
    return rates


LinearFactors = dict[Jet, Array]
"""Derivatives of the fields → their factors (M,) at sampled points."""


def _leading_factors(problem: Problem, linear: Sequence[LinearFactors]) -> dict[tuple[int, int], Array]:
    """By numbers of equations and fields: the factor of the highest derivative, positive where short waves decay."""
    factors = {}
    for k, equation in enumerate(linear):
        for f, field in enumerate(problem.fields):
            order = problem.order(field)
            own = [p for jet, p in equation.items()
                   if jet.field == field and jet.order == order and max(jet.index) == order]  # fmt: skip
            if own and order and order % 2 == 0:
                factors[k, f] = np.asarray(sum(own)) * (-1.0) ** (order // 2 + 1)
    return factors


def _definitions(linear: Sequence[LinearFactors], algebraic: tuple[str, ...]) -> dict[int, str]:
    """Equation → the algebraic field that it defines: the equation contains it without derivatives, with a factor that
    vanishes nowhere, as w in w = u + u_xx."""
    definitions: dict[int, str] = {}
    for field in algebraic:
        for k, equation in enumerate(linear):
            own = [(jet, factor) for jet, factor in equation.items() if jet.field == field and np.abs(factor).any()]
            if k not in definitions and len(own) == 1 and own[0][0].order == 0 and np.abs(own[0][1]).min() > 0:
                definitions[k] = field
                break
    return definitions


def _symbols(
    problem: Problem, linear: Sequence[LinearFactors], definitions: dict[int, str]
) -> dict[tuple[int, int], Array]:
    """What the other equations do to short waves of the fields, without those that are defined, positive where they
    decay: minus the real part of the symbol at sampled points, along each axis."""
    fields, bounds = problem.fields, np.asarray(problem.domain.bounds, dtype=float)
    fixed = [fields.index(name) for name in definitions.values()]
    rest = [k for k in range(len(linear)) if k not in definitions]
    free = [f for f in range(len(fields)) if f not in fixed]
    symbols: dict[tuple[int, int], list[Array]] = {}
    for axis, (low, high) in enumerate(bounds):
        wave = SHORT_WAVES / (high - low)
        count = len(next(iter(linear[0].values())))
        symbol = np.zeros((count, len(linear), len(fields)), dtype=complex)
        for k, equation in enumerate(linear):
            for jet, factor in equation.items():
                if jet.order == jet.index[axis]:
                    symbol[:, k, fields.index(jet.field)] += factor * (1j * wave) ** jet.order
        own = symbol[:, list(definitions)]
        defined = np.linalg.solve(own[:, :, fixed], own[:, :, free])
        reduced = symbol[:, rest][:, :, free] - symbol[:, rest][:, :, fixed] @ defined
        for (i, k), (j, f) in product(enumerate(rest), enumerate(free)):
            symbols.setdefault((k, f), []).append(-reduced[:, i, j].real)
    return {pair: np.concatenate(parts) for pair, parts in symbols.items()}
