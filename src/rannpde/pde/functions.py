"""Functions with exact derivatives, which can be put into equations: networks, formulas, exact solutions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from rannpde.arrays import Array, MultiIndex
from rannpde.domains.norms import Differentiable
from rannpde.errors import InputError
from rannpde.pde.statement.expansion import expand
from rannpde.pde.statement.expression import Expression, evaluate

State = Differentiable
"""Functions of the coordinates with derivatives, whose values are always (M, fields)."""


@dataclass(frozen=True)
class Zero:
    """The zero state with that many fields."""

    fields: int

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        return np.zeros((len(points), self.fields))


@dataclass(frozen=True, eq=False)
class Negated:
    """The negative of a state."""

    state: State

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        return -self.state.derivative(points, derivative)


@dataclass(frozen=True)
class Formula:
    """A function of the coordinates (``symbols``) as an expression without fields; derivatives are exact."""

    expression: Expression
    symbols: tuple[sympy.Symbol, ...]

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * len(self.symbols))

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        formula = self.expression.formula
        for symbol, order in zip(self.symbols, derivative, strict=True):
            for _ in range(order):
                formula = expand(formula).diff(symbol) if formula.has(symbol) else sympy.Integer(0)
        known = dict(zip(self.symbols, points.T, strict=True))
        value = evaluate([formula], known, self.expression.functions)[0]
        return np.broadcast_to(value, (len(points),)).copy()


@dataclass(frozen=True)
class ExactSolution:
    """Exact (or reference) solutions of the fields: functions of points (M, n), some with ``derivative(points, α)``."""

    functions: Mapping[str, Callable[[Array], Array]]

    def __call__(self, points: Array) -> Array:
        """The values (M, fields) at points."""
        return np.stack([np.asarray(function(points), dtype=float) for function in self.functions.values()], axis=1)

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        return np.stack([_derivative(n, f, points, derivative) for n, f in self.functions.items()], axis=1)


def _derivative(name: str, function: Any, points: Array, derivative: MultiIndex) -> Array:
    if not any(derivative):
        return np.asarray(function(points), dtype=float)
    if not hasattr(function, "derivative"):
        raise InputError(f"exact[{name!r}] has no derivative(points, index); give a formula or an object that has")
    return np.asarray(function.derivative(points, derivative), dtype=float)


@dataclass(frozen=True)
class OneField:
    """One field of a function with several, or a derivative of it: values (M,) of column ``number`` of ∂^index."""

    function: State
    number: int
    index: MultiIndex

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * len(self.index))

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        together = tuple(a + b for a, b in zip(self.index, derivative, strict=True))
        return self.function.derivative(points, together)[:, self.number]


@dataclass(frozen=True)
class PointFunction:
    """A function of points (M, n) as a function of coordinate arrays, for ``functions={…}`` of a problem.

    The equations may differentiate it when the function has ``derivative(points, index)``.
    """

    function: Any

    def __call__(self, *coordinates: Array) -> Array:
        return self.function(np.stack(np.broadcast_arrays(*coordinates), axis=1))

    def derivative(self, orders: MultiIndex, *coordinates: Array) -> Array:
        return self.function.derivative(np.stack(np.broadcast_arrays(*coordinates), axis=1), orders)
