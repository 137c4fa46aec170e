"""Anything with exact derivatives can stand in an equation: networks, pieces of them, exact solutions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rannpde.errors import InputError
from rannpde.pde.problem.conditions import Term
from rannpde.pde.statement.evaluate import evaluate
from rannpde.pde.statement.expression import Expression, Jet, expand
from rannpde.pde.statement.vocabulary import Vocabulary, coordinate_symbol

Array = np.ndarray
MultiIndex = tuple[int, ...]


class State(Protocol):
    """Functions of the coordinates with derivatives."""

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """∂^α of every field at points (M, n): shape (M, fields)."""
        ...


@dataclass(frozen=True)
class Zero:
    """The state that vanishes, of that many fields."""

    fields: int

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        return np.zeros((len(points), self.fields))


def jets_of(state: State, fields: tuple[str, ...], points: Array, jets: Iterable[Jet]) -> dict[Jet, Array]:
    """The values of these jets at the points, one derivative computed once for all fields."""
    jets = list(jets)
    indices = sorted({jet.index for jet in jets})
    several = getattr(state, "derivatives", None)  # networks evaluate their profile once an order
    found = several(points, indices) if several else {index: state.derivative(points, index) for index in indices}
    return {jet: found[jet.index][:, fields.index(jet.field)] for jet in jets}


def gradient(state: State, points: Array) -> Array:
    """∂_l of every field, (M, fields, n)."""
    axes = [tuple(int(a == b) for b in range(points.shape[1])) for a in range(points.shape[1])]
    several = getattr(state, "derivatives", None)
    found = several(points, axes) if several else {axis: state.derivative(points, axis) for axis in axes}
    return np.stack([found[axis] for axis in axes], axis=2)


def term_residual(term: Term, state: State, vocabulary: Vocabulary, points: Array, data: Array | None = None) -> Array:
    """The residual (M,) of a loss term for these functions at points of its region."""
    jets = jets_of(state, vocabulary.fields, points, term.expression.jets)
    value = term.expression.value(term.known(points, vocabulary.coordinates, data), jets)
    return np.broadcast_to(value, (len(points),))


@dataclass(frozen=True)
class Formula:
    """A function of the coordinates given as an expression without fields; derivatives are symbolic and exact."""

    expression: Expression
    vocabulary: Vocabulary

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * len(self.vocabulary.coordinates))

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        formula = self.expression.formula
        for symbol, order in zip(self.vocabulary.symbols, derivative, strict=True):
            for _ in range(order):
                formula = expand(formula).diff(symbol)
        known = {coordinate_symbol(name): points[:, axis] for axis, name in enumerate(self.vocabulary.coordinates)}
        value = evaluate([formula], known, self.vocabulary.functions)[0]
        return np.broadcast_to(value, (len(points),)).copy()


@dataclass(frozen=True)
class ExactSolution:
    """Exact (or reference) solutions of the fields: functions of points (M, n), some with ``derivative(points, α)``."""

    functions: Mapping[str, Callable[[Array], Array]]

    def __call__(self, points: Array) -> Array:
        """(M, fields)."""
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
class Component:
    """One field of a function with several: values (M,) of column ``number``."""

    function: Any
    number: int

    def __call__(self, points: Array) -> Array:
        return self.function(points)[:, self.number]

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        return self.function.derivative(points, derivative)[:, self.number]


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
