"""An evolution ∂_t u = F(t, x, u, ∂u, …): its components, rates, initial values and boundary conditions.

A field of second order in time is two *components*, u and u_t. Where an equation was stated with derivatives in space
of an expression, that divergence form is kept,

    ∂_t u = source - Σ_x ∂_x flux_x ,

and integrated by parts later: a Galerkin method then inherits the sign of diffusion and the conservation of mass.

Where all of space is periodic, some fields may have no time derivative (a pressure, a stream function) if as many
equations, the *constraints*, hold none either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy
from sympy.core.function import AppliedUndef

from rannpde.arrays import Array, MultiIndex
from rannpde.domains.boundary.sides import FlatSide, RoundSide, Side
from rannpde.domains.domain import SpaceTime
from rannpde.domains.quadrature.integrals import gauss_rule
from rannpde.errors import InputError
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import Expression, Jet, evaluate
from rannpde.pde.tolerance import NEARBY
from rannpde.rounding import HALF_DIGITS

if TYPE_CHECKING:
    from rannpde.pde.problem.problem import Problem


Parity = tuple[int, ...]
"""For every axis of space: 1 if a function is odd about the ends of the axis, 0 if it is even."""


class NotAnEvolution(InputError):
    """The problem cannot be integrated in time; the message gives every reason."""


@dataclass(frozen=True)
class Component:
    """The level-th time derivative of a field: one unknown function of space that evolves in time."""

    field: str
    level: int

    @classmethod
    def of(cls, jet: Jet) -> Component:
        """Return the component of which that jet is a spatial derivative."""
        return cls(jet.field, jet.index[0])


@dataclass(frozen=True)
class Rate:
    """The time derivative of the last component of a field: source - Σ ∂_axis flux[axis]; axes count space only, from
    0."""

    source: Expression
    flux: Mapping[int, Expression] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.source, *self.flux.values())


@dataclass(frozen=True, eq=False)
class Evolution:
    """An evolution problem in the components of its fields.

    orders : field → its order in time, 0 for one without a time derivative
    rates : field → the time derivative of its last component
    constraints : equation → the expression that vanishes at all times, without the highest time derivatives
    walls : the boundary conditions that functions of space must satisfy; all those of the problem if None
    parities : field → its parity about both walls of every axis, if the whole problem has that reflection symmetry
    """

    problem: Problem
    orders: Mapping[str, int]
    rates: Mapping[str, Rate]
    constraints: Mapping[str, Expression] = field(default_factory=dict)
    walls: tuple[Term, ...] | None = None
    parities: Mapping[str, Parity] | None = None

    @cached_property
    def components(self) -> tuple[Component, ...]:
        return tuple(Component(name, level) for name, order in self.orders.items() for level in range(order))

    @cached_property
    def algebraic(self) -> tuple[Component, ...]:
        """The fields that have no time derivative."""
        return tuple(Component(name, 0) for name, order in self.orders.items() if order == 0)

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
        given = [term.prescribed for term in self.problem.constraints if term.kind == "initial"]
        return {Component.of(jet): value for jet, value in filter(None, given)}

    @property
    def clock(self) -> sympy.Symbol:
        """The symbol of time."""
        return self.problem.vocabulary.symbols[0]

    def known(self, times: Array | float, points: Array, normals: Array | None = None) -> dict[sympy.Symbol, Array]:
        """Return symbol → values: times as they are, points[:, k] for coordinate k of space, normals likewise."""
        words, axes = self.problem.vocabulary, range(points.shape[1])
        values = {self.clock: np.asarray(times)} | {words.symbols[1 + k]: points[:, k] for k in axes}
        return values if normals is None else values | {words.normals[1 + k]: normals[:, k] for k in axes}

    def values(self, formulas: Iterable[sympy.Expr], known: Mapping[sympy.Symbol, Array]) -> list[Array]:
        """Evaluate each formula at those values."""
        return evaluate(list(formulas), known, self.problem.functions)

    def initial_values(self, component: Component, points: Array) -> Array:
        """Return the initial value (M,) at points (M, d) of space; its limit where it is undefined (sin(r)/r at r = 0).

        The limit is the value at a point nearer to the centre of the bounding box by the root of rounding, where the
        largest power of cancellation that leaves half of the digits is defined.
        """

        def at(points: Array) -> Array:
            value = self.values([self.initial[component]], self.known(self.domain.time[0], points))[0]
            return np.broadcast_to(value, (len(points),)).astype(float)

        values = at(points)
        undefined = np.isnan(values)
        if undefined.any():
            centre = self.domain.space.bounds.mean(axis=1)
            step = centre - points[undefined]
            step[step == 0] = np.ptp(self.domain.space.bounds, axis=1).max()  # at the centre, along the diagonal
            values[undefined] = at(points[undefined] + HALF_DIGITS * step)
        return values

    def above(self, component: Component) -> Component | None:
        """Return the component that is its time derivative; None for the last one of a field, which has a rate
        instead."""
        last = component.level + 1 == self.orders[component.field]
        return None if last else Component(component.field, component.level + 1)

    def slices(self, ranks: Mapping[str, int]) -> dict[Component, slice]:
        """Return the slice of each component in a state vector with ranks[field] numbers for each."""
        ends = np.cumsum([0, *(ranks[component.field] for component in self.components)]).tolist()
        return {c: slice(*ends[k : k + 2]) for k, c in enumerate(self.components)}

    def size(self, change: Array, slices: Mapping[Component, slice], scales: Mapping[Component, float]) -> float:
        """Return the largest change of a component, of one (n,) or several (n, s): root mean square over space for
        orthonormal functions, over its scale."""
        with np.errstate(over="ignore"):  # a trial step of a solution that grows without bounds is rejected as infinite
            sizes = [float(np.square(change[b]).sum(axis=0).max()) ** 0.5 / scales[c] for c, b in slices.items()]
        return max(sizes) / self._root_volume

    @cached_property
    def _root_volume(self) -> float:
        return self.domain.space.volume**0.5

    def boundary(self, name: str) -> list[Term]:
        """Return the boundary conditions of a field."""
        stated = self.problem.constraints if self.walls is None else self.walls
        return [t for t in stated if t.kind == "boundary" and name in t.expression.fields]


def evolution_form(problem: Problem, *, weak: bool = True) -> Evolution:
    """Return the problem as an evolution; NotAnEvolution with every reason where it is none.

    weak : whether to keep the divergence form where the statement has it
    """
    if problem.obstacles:
        raise NotAnEvolution("; ".join(problem.obstacles))
    return problem.forms[weak]


# --------------------------------------------------------------------------------------------- boundary conditions

DIFFERENCE = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60
"""Central difference of sixth order, for boundary values that cannot be differentiated in closed form."""


@dataclass(frozen=True, eq=False)
class Constraint:
    """Σ_α coefficient_α(x) ∂^α u(t, x) = value(t, x) at m points of one side.

    points (m, d) and normals (m, d) in space; coefficients: space multi-index → (m,).
    """

    field: str
    points: Array
    normals: Array
    coefficients: dict[MultiIndex, Array]
    value: sympy.Expr
    evolution: Evolution

    def values(self, times: Array, order: int = 0) -> Array:
        """Return the prescribed value (m, s), or its time derivative, at s times."""
        if self._constant is not None:
            return np.broadcast_to(0.0 if order else self._constant, (len(self.points), len(times)))
        if order == 0:
            return self._evaluate(self.value, times)
        time = self.evolution.clock
        if not any(time in call.free_symbols for call in self.value.atoms(AppliedUndef)):
            return self._evaluate(sympy.diff(self.value, time, order), times)
        step = NEARBY * (self.evolution.domain.bounds[0, 1] - self.evolution.domain.bounds[0, 0])
        shifted = [self.values(times + k * step, order - 1) for k in range(-3, 4)]
        return sum(c * v for c, v in zip(DIFFERENCE, shifted, strict=True)) / step

    @cached_property
    def _constant(self) -> Array | None:
        """The prescribed value (m, 1) where it does not depend on time."""
        if self.evolution.clock in self.value.free_symbols:
            return None
        return np.array(self._evaluate(self.value, np.asarray(self.evolution.domain.time[:1])))

    def _evaluate(self, formula: sympy.Expr, times: Array) -> Array:
        known = self.evolution.known(times[None, :], self.points[:, :, None], self.normals[:, :, None])
        value = self.evolution.values([formula], known)[0]
        return np.broadcast_to(value, (len(self.points), len(times)))


def constraints_of(evolution: Evolution, name: str, count: int) -> tuple[Constraint, ...]:
    """Return the boundary conditions of a field, each side with ``count`` points along every axis (one point in
    1-D)."""
    return tuple(_constraint(evolution, name, term, count) for term in evolution.boundary(name))


def _constraint(evolution: Evolution, name: str, term: Term, count: int) -> Constraint:
    assert isinstance(term.region, Side)
    expression = term.expression
    points, normals, _ = side_rule(term.region, count)
    values = evolution.values(expression.partials, evolution.known(evolution.domain.time[0], points, normals))
    coefficients = {
        jet.index[1:]: np.broadcast_to(value, (len(points),))
        for jet, value in zip(expression.jets, values, strict=True)
    }
    value = -expression.formula.subs(dict.fromkeys(expression.symbols, 0))
    return Constraint(name, points, normals, coefficients, value, evolution)


def side_rule(side: Side, count: int) -> tuple[Array, Array, Array]:
    """Return points (m, d), outward normals (m, d) and quadrature weights (m,) of a space-time side, without time."""
    space = side.domain.space  # type: ignore[attr-defined]
    if isinstance(side, RoundSide):
        (whole,) = space.sides.values()  # a ball has one side, whatever its name
        return space_side_rule(whole, count)
    assert isinstance(side, FlatSide)
    same = [s for s in space.sides.values() if s.axis == side.axis - 1 and s.outward == side.outward]
    return space_side_rule(same[0], count)


def space_side_rule(side: Side, count: int) -> tuple[Array, Array, Array]:
    """Return the same for a side of a spatial domain: ``count`` Gauss points along each axis, one point on an
    interval."""
    if isinstance(side, FlatSide) and side.domain.dim == 1:
        return np.array([[side.value]]), np.array([[float(side.outward)]]), np.ones(1)
    round_trip = 3 if isinstance(side, RoundSide) else 1  # the perimeter of a circle is about three times its diameter
    points, weights = gauss_rule(side, round_trip * count)
    return points, side.normals(points), weights


# ------------------------------------------------------------------------------------- conditions of boxes


@dataclass(frozen=True)
class EndRow:
    """A linear functional of a function at one end of an axis: Σ_k coefficients[k] ∂^k u(position)."""

    position: float
    coefficients: Mapping[int, float]


@dataclass(frozen=True, eq=False)
class WallRow:
    """A condition on one side of a box, as a row of its axis: B u = value(t, other coordinates)."""

    axis: int
    row: EndRow
    normal: float
    value: sympy.Expr

    @classmethod
    def of(cls, evolution: Evolution, term: Term) -> WallRow | None:
        """Return the row; None where the condition has derivatives other than normal ones, or variable coefficients."""
        side, expression = term.region, term.expression
        if not isinstance(side, FlatSide):
            return None
        words = evolution.problem.vocabulary
        axis, normal = side.axis - 1, float(side.outward)
        known: dict[sympy.Symbol, Any] = dict.fromkeys(words.normals, 0.0)
        known |= {words.normals[side.axis]: normal, words.symbols[side.axis]: side.value}
        coefficients = {}
        for jet, partial in zip(expression.jets, expression.partials, strict=True):
            if partial.free_symbols - set(known) and not partial.is_zero:
                return None
            number = float(evolution.values([partial], known)[0])
            if number and any(order for k, order in enumerate(jet.index) if k != axis + 1):
                return None
            if number:
                coefficients[jet.index[axis + 1]] = number
        value = -expression.formula.subs(dict.fromkeys(expression.symbols, 0))
        return cls(axis, EndRow(side.value, coefficients), normal, value) if coefficients else None


def wall_rows(evolution: Evolution, name: str) -> list[WallRow] | None:
    """Return the boundary conditions of a field axis by axis, or None where one is not of this kind."""
    rows = [WallRow.of(evolution, term) for term in evolution.boundary(name)]
    if any(row is None for row in rows):
        return None
    return sorted((row for row in rows if row is not None), key=lambda row: row.axis)
