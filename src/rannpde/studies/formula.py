"""A function of (t, x1, …, xd) given as text, for studies that a user writes as a file.

The text is read by the grammar of equations and its tree is walked: numbers, the coordinates, + - * / **, and the
functions below. Nothing else is understood, and nothing is ever passed to an interpreter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import e, pi
from typing import Any

import numpy as np

from rannpde.errors import finite_array, positive_integer, require, suggestion
from rannpde.pde.statement.grammar import Binary, Call, Name, Negative, Node, Number, fail, parse
from rannpde.studies.problems import uniform_points

Array = np.ndarray

FUNCTIONS: dict[str, np.ufunc] = {
    name: getattr(np, name)
    for name in ("sin", "cos", "tan", "exp", "log", "sqrt", "tanh", "sinh", "cosh", "arctan", "abs", "sign", "maximum")
}
CONSTANTS = {"pi": pi, "e": e}
_OPERATORS: dict[str, np.ufunc] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "**": np.power,
}


@dataclass(frozen=True)
class Formula:
    """expression in t, x1, …, xd on the box ``low`` ≤ (t, x1, …, xd) ≤ ``high`` (the unit cube by default).

    >>> Formula("exp(-t) * sin(pi * x1)").values(np.array([[0.0, 0.5]]))
    array([1.])
    """

    expression: str
    space_dim: int = 1
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        dim = 1 + positive_integer("space_dim", self.space_dim)
        for name, default in (("low", 0.0), ("high", 1.0)):
            corner = tuple(float(c) for c in finite_array(name, getattr(self, name), 1)) or (default,) * dim
            require(len(corner) == dim, name, corner, f"{dim} numbers, time first")
            object.__setattr__(self, name, corner)
        ordered = all(a < b for a, b in zip(self.low, self.high, strict=True))
        require(ordered, "low", self.low, f"below high = {self.high} in every coordinate")
        with np.errstate(all="ignore"):
            finite = np.isfinite(self.values(self.bounds.mean(axis=1)[None, :])).all()
        require(bool(finite), "expression", self.expression, "finite on its box, but at the centre it is not")

    @property
    def fields(self) -> tuple[str, ...]:
        return ("u",)

    @property
    def bounds(self) -> Array:
        return np.column_stack([self.low, self.high])

    def uniform(self, count: int, rng: np.random.Generator) -> Array:
        return uniform_points(self.bounds, count, rng)

    def focused(self, count: int, rng: np.random.Generator) -> Array:
        return self.uniform(count, rng)

    def values(self, points: Array) -> Array:
        coordinates = {"t": points[:, 0]} | {f"x{i}": points[:, i] for i in range(1, points.shape[1])}
        return np.broadcast_to(evaluate(self.expression, coordinates), len(points)).astype(float)


def evaluate(text: str, names: Mapping[str, Array]) -> Any:
    """The text's value, element by element; InputError with a mark under the piece that is not understood."""
    tree, right = parse(text)
    require(right is None, "expression", text, "one side only", "leave out the '='")
    return _walk(tree, {**CONSTANTS, **names}, text)


def _walk(node: Node, names: Mapping[str, Any], text: str) -> Any:
    match node:
        case Number(text=digits):
            return float(digits)
        case Name(text=name, column=column):
            if name not in names:
                fail(text, column, f"{name!r} is unknown; {suggestion(name, [*names, *FUNCTIONS])}")
            return names[name]
        case Negative(operand=operand):
            return -_walk(operand, names, text)
        case Binary(operator=operator, left=left, right=right):
            return _OPERATORS[operator](_walk(left, names, text), _walk(right, names, text))
        case Call(name=name, arguments=arguments, column=column):
            if name not in FUNCTIONS:
                fail(text, column, f"{name!r} is no function; {suggestion(name, FUNCTIONS)}")
            function = FUNCTIONS[name]
            if len(arguments) != function.nin:
                fail(text, column, f"{name} takes {function.nin}, but has {len(arguments)} arguments")
            return function(*(_walk(argument, names, text) for argument in arguments))
    return fail(text, node.column, "a list has no value")
