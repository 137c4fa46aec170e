"""Boundary conditions as rows: linear combinations of a field's space derivatives that take given values in time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import sympy
from sympy.core.function import AppliedUndef

from rannpde.domains.quadrature import gauss_rule
from rannpde.domains.sides import FlatSide, RoundSide, Side
from rannpde.pde.problem.conditions import Term
from rannpde.pde.problem.evolution import Evolution, NotAnEvolution
from rannpde.pde.statement.evaluate import evaluate
from rannpde.pde.statement.expression import Jet
from rannpde.pde.statement.vocabulary import coordinate_symbol, normal_symbol

Array = np.ndarray
SpaceIndex = tuple[int, ...]

DIFFERENCE = np.array([-1 / 60, 3 / 20, -3 / 4, 0.0, 3 / 4, -3 / 20, 1 / 60])
"""Central difference of sixth order, for boundary values that cannot be differentiated in closed form."""


@dataclass(frozen=True, eq=False)
class Constraint:
    """Σ_α coefficient_α(x) ∂^α u(t, x) = value(t, x) at m points of one side.

    points (m, d) and normals (m, d) in space; coefficients: space multi-index → (m,).
    """

    field: str
    points: Array
    normals: Array
    coefficients: dict[SpaceIndex, Array]
    value: sympy.Expr
    evolution: Evolution

    def values(self, times: Array, order: int = 0) -> Array:
        """(m, s): the prescribed value, or its time derivative, at s times."""
        if order == 0:
            return self._evaluate(self.value, times)
        time = coordinate_symbol("t")
        if not any(time in call.free_symbols for call in self.value.atoms(AppliedUndef)):
            return self._evaluate(sympy.diff(self.value, time, order), times)
        step = 2e-3 * (self.evolution.domain.bounds[0, 1] - self.evolution.domain.bounds[0, 0])
        shifted = [self.values(times + k * step, order - 1) for k in range(-3, 4)]
        return sum(c * v for c, v in zip(DIFFERENCE, shifted, strict=True)) / step

    def _evaluate(self, formula: sympy.Expr, times: Array) -> Array:
        known = _coordinates(self.evolution, self.points[:, :, None], self.normals[:, :, None])
        known[coordinate_symbol("t")] = times[None, :]
        value = evaluate([formula], known, self.evolution.functions)[0]
        return np.broadcast_to(value, (len(self.points), len(times)))


def constraints_of(evolution: Evolution, name: str, count: int) -> tuple[Constraint, ...]:
    """The boundary conditions of a field, each side as ``count`` points along every axis (one point in 1-D)."""
    terms = [t for t in evolution.problem.constraints if t.kind == "boundary" and name in t.expression.fields]
    return tuple(_constraint(evolution, name, term, count) for term in terms)


def _constraint(evolution: Evolution, name: str, term: Term, count: int) -> Constraint:
    expression = term.expression
    if expression.fields != (name,) or not expression.linear:
        raise NotAnEvolution(
            f"the boundary condition {term.name!r} must be linear, and of one field, for the method of lines"
        )
    if any(jet.index[0] for jet in expression.jets):
        raise NotAnEvolution(
            f"the boundary condition {term.name!r} holds a time derivative: not by the method of lines"
        )
    assert isinstance(term.region, Side)
    points, normals, _ = side_rule(term.region, count)
    known = _coordinates(evolution, points, normals)
    time = coordinate_symbol("t")
    coefficients = {}
    for jet, partial in zip(expression.jets, expression.partials, strict=True):
        if time in partial.free_symbols:
            raise NotAnEvolution(f"the boundary condition {term.name!r} has a coefficient that changes in time")
        value = evaluate([partial], known, evolution.functions)[0]
        coefficients[jet.index[1:]] = np.broadcast_to(value, (len(points),))
    value = -expression.formula.subs(dict.fromkeys(expression.symbols, 0))
    return Constraint(name, points, normals, coefficients, value, evolution)


def side_rule(side: Side, count: int) -> tuple[Array, Array, Array]:
    """Points (m, d), outward normals (m, d) and quadrature weights (m,) of a space-time side, without time."""
    space = side.domain.space  # type: ignore[attr-defined]
    if isinstance(side, RoundSide):
        return space_side_rule(space.sides["boundary"], count)
    assert isinstance(side, FlatSide)
    same = [s for s in space.sides.values() if s.axis == side.axis - 1 and s.outward == side.outward]
    return space_side_rule(same[0], count)


def space_side_rule(side: Side, count: int) -> tuple[Array, Array, Array]:
    """The same of a side of a domain in space: ``count`` Gauss points along each axis, one point for a line's end."""
    if isinstance(side, FlatSide) and side.domain.dim == 1:
        return np.array([[side.value]]), np.array([[float(side.outward)]]), np.ones(1)
    round_trip = 3 if isinstance(side, RoundSide) else 1  # a circle is about three times as long as it is wide
    points, weights = gauss_rule(side, round_trip * count)
    return points, side.normals(points), weights


def _coordinates(evolution: Evolution, points: Array, normals: Array) -> dict[sympy.Symbol, Array]:
    """Values of x and of the normal, one array a coordinate."""
    names = evolution.problem.vocabulary.space
    known = {coordinate_symbol(name): points[:, axis] for axis, name in enumerate(names)}
    return known | {normal_symbol(name): normals[:, axis] for axis, name in enumerate(names)}


def space_jet(jet: Jet) -> SpaceIndex:
    """The space part of a multi-index."""
    return jet.index[1:]
