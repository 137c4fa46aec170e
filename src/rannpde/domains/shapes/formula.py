"""Formulas of shapes: text → a function with exact first derivatives.

They are written in the grammar of equations, with its functions of one argument. The gradient is carried along
with every value. Not by SymPy: reading and evaluating takes 0.8 ms here, diff and lambdify 27 ms, and
lambdify runs generated code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import pi

import numpy as np
from scipy.special import erf

from rannpde.arrays import Array
from rannpde.errors import require, suggestion
from rannpde.grammar import Binary, Call, Name, Negative, Node, Number, children, fail, parse, parse_inequality

TERMS_LIMIT = 300
"""Terms of one sum or product: they nest to the left, and Python ends at 1000 calls."""
SHAPE_CONSTANTS = {"pi": pi}
DerivativeRule = tuple[Callable[[Array], Array], Callable[[Array, Array], Array]]
SHAPE_FUNCTIONS: dict[str, DerivativeRule] = {
    "sin": (np.sin, lambda x, _: np.cos(x)),
    "cos": (np.cos, lambda x, _: -np.sin(x)),
    "tan": (np.tan, lambda _, y: 1 + y**2),
    "asin": (np.arcsin, lambda x, _: 1 / np.sqrt(1 - x**2)),
    "acos": (np.arccos, lambda x, _: -1 / np.sqrt(1 - x**2)),
    "atan": (np.arctan, lambda x, _: 1 / (1 + x**2)),
    "sinh": (np.sinh, lambda x, _: np.cosh(x)),
    "cosh": (np.cosh, lambda x, _: np.sinh(x)),
    "tanh": (np.tanh, lambda _, y: 1 - y**2),
    "asinh": (np.arcsinh, lambda x, _: 1 / np.sqrt(1 + x**2)),
    "exp": (np.exp, lambda _, y: y),
    "log": (np.log, lambda x, _: 1 / x),
    "sqrt": (np.sqrt, lambda _, y: 0.5 / y),
    "erf": (erf, lambda x, _: 2 / np.sqrt(pi) * np.exp(-(x**2))),
    "abs": (np.abs, lambda x, _: np.sign(x)),
}
"""Name → the function, and its derivative from argument and value."""

Dual = tuple[Array, Array]
"""A value (M,) and its gradient (M, n); those of a constant have no axes, so that x**2 is a product and no power."""


@dataclass(frozen=True)
class ShapeFormula:
    """A formula of named variables: values and gradients at points.

    >>> circle = ShapeFormula.negative_where("x**2 + y**2 < 1", ("x", "y"))
    >>> value, gradient = circle.both(np.array([[1.0, 2.0]]))
    >>> value.tolist(), gradient.tolist()
    ([4.0], [[2.0, 4.0]])
    """

    text: str
    variables: tuple[str, ...]
    tree: Node

    @classmethod
    def read(cls, text: str, variables: Sequence[str]) -> ShapeFormula:
        """An expression of the variables."""
        left, right = parse(text)
        if right is not None:
            fail(text, right.column, "a formula of a shape has no second side")
        return cls._checked(text, variables, left)

    @classmethod
    def negative_where(cls, text: str, variables: Sequence[str]) -> ShapeFormula:
        """left - right of ``left < right``, or right - left of ``left > right``."""
        inequality = parse_inequality(text)
        sides = (
            (inequality.left, inequality.right)
            if inequality.operator.startswith("<")
            else (inequality.right, inequality.left)
        )
        return cls._checked(text, variables, Binary(inequality.column, "-", *sides))

    @classmethod
    def _checked(cls, text: str, variables: Sequence[str], tree: Node) -> ShapeFormula:
        for name in variables:
            require(
                name not in SHAPE_FUNCTIONS and name not in SHAPE_CONSTANTS,
                "coordinate",
                name,
                "no word of the formulas",
            )
        _check(tree, text, variables, 0)
        return cls(text, tuple(variables), tree)

    def value(self, points: Array) -> Array:
        """(M,) at points (M, n)."""
        return self.both(points)[0]

    def both(self, points: Array) -> Dual:
        """Value (M,) and gradient (M, n) at points (M, n)."""
        with np.errstate(all="ignore"):  # what is not finite is judged by the shape that uses the formula
            value, gradient = self._evaluate(self.tree, points)
        return np.array(np.broadcast_to(value, len(points))), np.array(np.broadcast_to(gradient, points.shape))

    def _evaluate(self, node: Node, points: Array) -> Dual:
        match node:
            case Number(text=digits):
                return np.array(float(digits)), np.zeros(())
            case Name(text=name) if name in SHAPE_CONSTANTS:
                return np.array(SHAPE_CONSTANTS[name]), np.zeros(())
            case Name(text=name):
                column = self.variables.index(name)
                return points[:, column], np.eye(points.shape[1])[column]
            case Negative(operand=operand):
                value, gradient = self._evaluate(operand, points)
                return -value, -gradient
            case Call(name=name, arguments=(argument,)):
                function, slope = SHAPE_FUNCTIONS[name]
                inner, gradient = self._evaluate(argument, points)
                value = function(inner)
                return value, slope(inner, value)[..., None] * gradient
        assert isinstance(node, Binary)  # a formula was checked when it was read
        return _binary(node.operator, self._evaluate(node.left, points), self._evaluate(node.right, points))


def _check(node: Node, text: str, variables: Sequence[str], depth: int) -> None:
    """Refuse names that mean nothing to a shape, and what is more than arithmetic."""
    if depth > TERMS_LIMIT:
        fail(text, node.column, f"a formula of more than {TERMS_LIMIT} terms; refused")
    match node:
        case Name(text=name) if name not in variables and name not in SHAPE_CONSTANTS:
            fail(text, node.column, f"the name {name!r} is unknown; {suggestion(name, [*variables, *SHAPE_CONSTANTS])}")
        case Call(name=name) if name not in SHAPE_FUNCTIONS:
            fail(text, node.column, f"the function {name!r} is unknown in a shape; {suggestion(name, SHAPE_FUNCTIONS)}")
        case Call(name=name, arguments=arguments) if len(arguments) != 1:
            fail(text, node.column, f"{name} takes one argument, not {len(arguments)}")
        case Number() | Name() | Call() | Negative() | Binary():
            for part in children(node):
                _check(part, text, variables, depth + 1)
        case _:
            fail(text, node.column, "a formula of a shape holds numbers, coordinates and functions only")


def _binary(operator: str, left: Dual, right: Dual) -> Dual:
    (a, da), (b, db) = left, right
    match operator:
        case "+":
            return a + b, da + db
        case "-":
            return a - b, da - db
        case "*":
            return a * b, a[..., None] * db + b[..., None] * da
        case "/":
            return a / b, (da - (a / b)[..., None] * db) / b[..., None]
    power = a**b
    gradient = (b * a ** (b - 1))[..., None] * da
    if db.any():  # a logarithm of the base, which must then be positive
        gradient = gradient + (power * np.log(a))[..., None] * db
    return power, gradient
