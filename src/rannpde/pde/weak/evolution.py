"""Linear evolutions in weak form, as problems in space at every moment.

M₂ ∂_t² u + M₁ ∂_t u + A u = f(t) is stated as one problem in space whose coefficients have two more numbers, σ₁ in the
place of ∂_t and σ₂ in that of ∂_t². The matrices of the problem at σ = 0 are those of A, and their change with σ₁ and
σ₂ is that of M₁ and M₂, conditions that contain ∂_t u (absorbing walls) included. The time itself is a function that
returns the moment at which data are wanted.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy
from sympy.core.function import AppliedUndef

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import Side
from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError
from rannpde.pde.cells.time.integration import InitialValues, integration_obstacles, orders_in_time
from rannpde.pde.problem.checks import ConditionWarning
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term, root_mean_square
from rannpde.pde.statement.divergence import NoDivergenceForm
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.tolerance import SAME_SOLUTION
from rannpde.pde.weak.form import COEFFICIENT_SAMPLES, WeakForm, weak_formulation
from rannpde.rounding import difference_step

SHIFT_NAMES = ("shift_of_rate", "shift_of_acceleration")
"""Names of the numbers in the place of ∂_t and ∂_t²."""
MOMENT = "moment_of_data"
"""Name of the function that returns the time."""
RATE_NAMES = ("rate_of_", "acceleration_of_")
"""Names, before that of a field, of the functions that return ∂_t and ∂_t² of a known solution."""


@dataclass(eq=False)
class Held:
    """A function in a statement whose values are set from outside: a number, or an array at the points that follow."""

    value: Any = 0.0

    def __call__(self, *coordinates: Array) -> Array:
        held, count = np.asarray(self.value, dtype=float), np.size(coordinates[0])
        if held.size not in (1, count):  # values are held for other points than these
            return np.zeros(np.shape(coordinates[0]))
        return np.broadcast_to(held, np.shape(coordinates[0])).copy()

    def derivative(self, orders: tuple[int, ...], *coordinates: Array) -> Array:
        """Its derivatives in space: a number, such as the time, has none."""
        if np.size(self.value) > 1:
            raise InputError("derivatives in space of a rate in time are not known; use another method than 'weak'")
        return np.zeros(np.shape(coordinates[0])) if any(orders) else self(*coordinates)


@dataclass(frozen=True, eq=False)
class WeakEvolution:
    """A linear evolution ready for integration in time.

    problem : in space and time; forms : in space, of A and, where ∂_t and ∂_t² occur, of A with σ₁ or σ₂ at ``scales``
    moment : the time of the data; rates : field → ∂_t and ∂_t² of a known solution, for residuals
    moving : whether data change in time
    """

    problem: Problem
    still: WeakForm
    shifted: tuple[WeakForm | None, WeakForm | None]
    scales: tuple[float, float]
    moment: Held
    rates: tuple[tuple[Held, ...], tuple[Held, ...]]
    moving: bool

    @property
    def orders(self) -> tuple[int, ...]:
        """The orders of the fields in time."""
        return tuple(orders_in_time(self.problem).values())

    @property
    def interval(self) -> tuple[float, float]:
        assert isinstance(self.problem.domain, SpaceTime)
        start, end = self.problem.domain.time
        return float(start), float(end)

    @property
    def start(self) -> InitialValues:
        return InitialValues.of(self.problem)

    @property
    def starts_with_layer(self) -> bool:
        """Whether initial values contradict a condition of the boundary: the solution then begins with a layer there,
        in which its second derivatives are not square integrable over space and time."""
        self.moment.value = self.interval[0]
        return any(self._contradicted(term) for term in self.still.terms)

    def _contradicted(self, term: Term) -> bool:
        """Whether the initial values leave a condition, at points of its side, unsatisfied by more than a small share
        of its summands."""
        region = term.region
        assert isinstance(region, Side)
        points = region.sample(COEFFICIENT_SAMPLES, rng=0)
        value, plain, slopes = self.still.condition(term, points, region.normals(points))
        begin = self.start.values(points, 0)
        parts = [value, np.einsum("mf,mf->m", plain, begin)]
        if slopes is not None:
            step = difference_step() * float(np.ptp(np.asarray(self.still.problem.domain.bounds), axis=1).max())
            for axis, unit in enumerate(step * np.eye(points.shape[1])):
                change = self.start.values(points + unit, 0) - self.start.values(points - unit, 0)
                parts.append(np.einsum("mf,mf->m", slopes[:, :, axis], change / (2 * step)))
        left, size = root_mean_square(sum(parts, np.zeros(len(points)))), max(map(root_mean_square, parts))
        return left > SAME_SOLUTION * size


def weak_evolution(problem: Problem) -> WeakEvolution:
    """The evolution of a problem in time; NoDivergenceForm, with the reason, where the weak form does not apply."""
    if not isinstance(problem.domain, SpaceTime):
        raise NoDivergenceForm("the domain has no time")
    if not problem.linear:
        raise NoDivergenceForm("the problem is one in time and not linear")
    reasons = [one for one in integration_obstacles(problem) if "jumps" not in one]
    if reasons:
        raise NoDivergenceForm(reasons[0])
    time = problem.vocabulary.symbols[0]
    for term in problem.terms:
        if term.kind != "initial" and any(time in one.free_symbols for one in term.expression.partials):
            raise NoDivergenceForm(f"coefficients of {term.name!r} change in time")
    orders = orders_in_time(problem)
    if len(set(orders.values())) > 1:
        raise NoDivergenceForm("the fields are of different orders in time")
    if any(isinstance(one, On) is False for one in problem.conditions.values()):
        raise NoDivergenceForm("fields are periodic or measured")
    moment = Held(problem.domain.time[0])
    rates = tuple(tuple(Held() for _ in problem.fields) for _ in RATE_NAMES)
    states = SpatialStatements(problem, moment, (rates[0], rates[1]))
    size = float(np.diff(np.asarray(problem.domain.space.bounds, dtype=float), axis=1).max())
    still = weak_formulation(states.at((0.0, 0.0)))
    probe = problem.domain.space.sample(COEFFICIENT_SAMPLES, rng=0)
    stiff = float(np.abs(still.at(probe).diffusion).max()) / size**2
    scales = (max(stiff, 1e-300), max(stiff, 1e-300))
    order = max(orders.values())
    stated = {jet.index[0] for term in problem.terms if term.kind != "initial" for jet in term.expression.jets}
    shifted = [weak_formulation(states.at((scales[0] * (k == 0), scales[1] * (k == 1)))) if k + 1 in stated else None
               for k in (0, 1)]  # fmt: skip
    if order == 0:
        raise NoDivergenceForm("no field has a derivative in time")
    return WeakEvolution(problem, still, (shifted[0], shifted[1]), scales, moment, (rates[0], rates[1]), states.moving)


class SpatialStatements:
    """The statements of an evolution with numbers and functions in the place of time and its derivatives."""

    def __init__(self, problem: Problem, moment: Held, rates: tuple[tuple[Held, ...], tuple[Held, ...]]) -> None:
        assert isinstance(problem.domain, SpaceTime)
        self.problem, self.space, self.rates = problem, problem.domain.space, rates
        self.moment = moment
        self.words: Vocabulary = problem.vocabulary
        self.time = self.words.symbols[0]
        self.first = self.words.symbols[1]
        self.equations = {term.name: self._in_space(term.expression.source, True) for term in problem.interior}
        self.conditions: dict[str, On] = {}
        self.moving = any(self.time in term.expression.formula.free_symbols
                          for term in problem.terms if term.kind != "initial")  # fmt: skip
        initial = {term.name for term in problem.constraints if term.kind == "initial"}
        grouped: dict[str, list[Any]] = {}
        for term in problem.constraints:
            if term.kind != "initial":
                grouped.setdefault(term.name, []).append(term)
        self.conditions = {
            name: On(condition.where, [self._in_space(source, False) for source in self._sources(grouped[name])])
            for name, condition in problem.conditions.items()
            if name in grouped and name not in initial
        }
        if set(grouped) != set(self.conditions):
            raise NoDivergenceForm("a condition holds both at the start and on a side")

    def _sources(self, terms: list[Any]) -> list[sympy.Expr]:
        """The equations of one condition, each once: it has a term for every side."""
        return list(dict.fromkeys(term.expression.source for term in terms))

    def _in_space(self, source: sympy.Expr, interior: bool) -> sympy.Expr:
        table: dict[sympy.Basic, sympy.Basic] = {}
        space = self.words.symbols[1:]
        fields = {self.words.field_function(name): number for number, name in enumerate(self.words.fields)}
        plain = {one: sympy.Function(self.words.fields[number])(*space) for one, number in fields.items()}
        for node in source.atoms(sympy.Derivative):
            inner = node.expr
            if inner not in fields:
                if node.has(self.time) and self.time in [variable for variable, _ in node.variable_count]:
                    raise NoDivergenceForm("an expression is differentiated in time")
                continue
            count = dict(node.variable_count)
            order = int(count.pop(self.time, 0))
            if order == 0:
                continue
            name = self.words.fields[fields[inner]]
            rest = list(count)
            whole = sympy.Symbol(SHIFT_NAMES[order - 1]) * plain[inner]
            if interior and not rest:
                whole = whole + sympy.Function(RATE_NAMES[order - 1] + name)(*space)
            elif rest:
                raise NoDivergenceForm("derivatives in time and space are mixed")
            table[node] = whole
        formula = source.xreplace(table).xreplace(plain)
        return formula.xreplace({self.time: sympy.Function(MOMENT)(self.first)})

    def at(self, shifts: tuple[float, float]) -> Problem:
        """The problem in space with these numbers in the place of ∂_t and ∂_t²."""
        functions: dict[str, Callable[..., Any]] = {MOMENT: self.moment}
        for kind, row in zip(RATE_NAMES, self.rates, strict=True):
            functions |= {kind + name: held for name, held in zip(self.words.fields, row, strict=True)}
        used = {node.func.__name__ for source in self._every() for node in source.atoms(AppliedUndef)}
        numbers = {symbol.name for source in self._every() for symbol in source.free_symbols}
        own = {name: value for name, value in zip(SHIFT_NAMES, shifts, strict=True) if name in numbers}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConditionWarning)
            return replace(
                self.problem, domain=self.space, equations=self.equations, conditions=self.conditions, exact={},
                outputs={}, parameters={**self.problem.parameters, **own}, definitions={}, complex=False,
                functions={**self.problem.functions, **{n: f for n, f in functions.items() if n in used}},
            )  # fmt: skip

    def _every(self) -> list[sympy.Expr]:
        return [
            *self.equations.values(),
            *(one for condition in self.conditions.values() for one in condition.equation),
        ]
