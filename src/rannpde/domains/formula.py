"""Formulas of shapes: text → a function with exact first derivatives.

Shapes stand below equations and have a small language of their own: numbers, coordinates, ``+ - * / ** ^``, parentheses
and the functions listed in ``FUNCTIONS``. Text may come from strangers: it is parsed, never run, and only the nodes
named here are accepted. Derivatives are found by carrying the gradient along with every value.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import pi

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError, require, suggestion

LENGTH_LIMIT = 2000
"""Characters of a formula: a page; the boundary of a real part is far shorter."""
DEPTH_LIMIT = 40
"""Levels of nesting, far from Python's limit of calls."""
CONSTANTS = {"pi": pi}
Rule = tuple[Callable[[Array], Array], Callable[[Array, Array], Array]]
FUNCTIONS: dict[str, Rule] = {
    "sin": (np.sin, lambda x, _: np.cos(x)),
    "cos": (np.cos, lambda x, _: -np.sin(x)),
    "tan": (np.tan, lambda _, y: 1 + y**2),
    "exp": (np.exp, lambda _, y: y),
    "log": (np.log, lambda x, _: 1 / x),
    "sqrt": (np.sqrt, lambda _, y: 0.5 / y),
    "sinh": (np.sinh, lambda x, _: np.cosh(x)),
    "cosh": (np.cosh, lambda x, _: np.sinh(x)),
    "tanh": (np.tanh, lambda _, y: 1 - y**2),
    "atan": (np.arctan, lambda x, _: 1 / (1 + x**2)),
    "abs": (np.abs, lambda x, _: np.sign(x)),
}
"""Name → the function, and its derivative from argument and value."""

Dual = tuple[Array, Array]
"""A value (M,) and its gradient (M, n)."""


@dataclass(frozen=True)
class Formula:
    """A formula of named variables: values and gradients at points.

    >>> circle = Formula("x**2 + y**2 - 1", ("x", "y"))
    >>> value, gradient = circle.both(np.array([[1.0, 2.0]]))
    >>> value.tolist(), gradient.tolist()
    ([4.0], [[2.0, 4.0]])
    """

    text: str
    variables: tuple[str, ...]
    _tree: ast.expr = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tree", _parsed(self.text))
        _check(self._tree, self.text, self.variables, 0)

    def value(self, points: Array) -> Array:
        """(M,) at points (M, n)."""
        return self.both(points)[0]

    def both(self, points: Array) -> Dual:
        """Value (M,) and gradient (M, n) at points (M, n)."""
        with np.errstate(all="ignore"):  # what is not finite is judged by the shape that uses the formula
            return _evaluate(self._tree, self._columns, points)

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.variables)}


def inequality(text: str) -> str:
    """The expression that is negative where ``left < right`` (or ``right > left``) holds.

    >>> inequality("x**2 + y**2 < 1")
    '(x**2 + y**2) - (1)'
    """
    require(isinstance(text, str), "formula", text, "text such as 'x**2 + y**2 < 1'")
    for sign in ("<=", ">=", "<", ">"):
        left, found, right = text.partition(sign)
        if found:
            left, right = (left, right) if sign.startswith("<") else (right, left)
            return f"({left.strip()}) - ({right.strip()})"
    raise InputError(f"formula is {text!r}, but must be an inequality; e.g. 'x**2 + y**2 < 1'")


def checked_variables(names: Sequence[str]) -> tuple[str, ...]:
    """The names, refused where one of them is a word of the language."""
    for name in names:
        require(name not in FUNCTIONS and name not in CONSTANTS, "coordinate", name, "no word of the formulas")
    return tuple(names)


def _parsed(text: str) -> ast.expr:
    require(isinstance(text, str), "formula", text, "text")
    require(len(text) <= LENGTH_LIMIT, "the length of a formula", len(text), f"at most {LENGTH_LIMIT} characters")
    try:
        return ast.parse(text.replace("^", "**").strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"the formula {text[:80]!r} cannot be read; e.g. 'x**2/4 + y**2'") from None


def _check(node: ast.expr, text: str, variables: tuple[str, ...], depth: int) -> None:
    require(depth <= DEPTH_LIMIT, "the nesting of a formula", depth, f"at most {DEPTH_LIMIT} levels")
    known = [*variables, *CONSTANTS, *FUNCTIONS]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.Pow):
        parts: list[ast.expr] = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        parts = [node.operand]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords and len(node.args) == 1:
        if node.func.id not in FUNCTIONS:
            raise InputError(f"{node.func.id!r} in the formula {text!r} is unknown; {suggestion(node.func.id, known)}")
        parts = node.args
    elif isinstance(node, ast.Name):
        if node.id not in (*variables, *CONSTANTS):
            raise InputError(f"{node.id!r} in the formula {text!r} is unknown; {suggestion(node.id, known)}")
        parts = []
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        require(abs(node.value) <= 1e300, "a number of the formula", text[:80], "at most 1e300")
        parts = []
    else:
        raise InputError(f"the formula {text[:80]!r} holds more than arithmetic; known: {', '.join(known)}")
    for part in parts:
        _check(part, text, variables, depth + 1)


def _evaluate(node: ast.expr, columns: dict[str, int], points: Array) -> Dual:
    if isinstance(node, ast.Constant):
        return np.full(len(points), float(node.value)), np.zeros(points.shape)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        if node.id not in columns:
            return np.full(len(points), CONSTANTS[node.id]), np.zeros(points.shape)
        gradient = np.zeros(points.shape)
        gradient[:, columns[node.id]] = 1.0
        return points[:, columns[node.id]].astype(float), gradient
    if isinstance(node, ast.UnaryOp):
        value, gradient = _evaluate(node.operand, columns, points)
        return (-value, -gradient) if isinstance(node.op, ast.USub) else (value, gradient)
    if isinstance(node, ast.Call):
        function, slope = FUNCTIONS[node.func.id]  # type: ignore[attr-defined]
        inner, gradient = _evaluate(node.args[0], columns, points)
        value = function(inner)
        return value, slope(inner, value)[:, None] * gradient
    assert isinstance(node, ast.BinOp)
    return _binary(node.op, _evaluate(node.left, columns, points), _evaluate(node.right, columns, points))


def _binary(operator: ast.operator, left: Dual, right: Dual) -> Dual:
    (a, da), (b, db) = left, right
    if isinstance(operator, ast.Add):
        return a + b, da + db
    if isinstance(operator, ast.Sub):
        return a - b, da - db
    if isinstance(operator, ast.Mult):
        return a * b, a[:, None] * db + b[:, None] * da
    if isinstance(operator, ast.Div):
        return a / b, (da - (a / b)[:, None] * db) / b[:, None]
    power = a**b
    gradient = (b * a ** (b - 1))[:, None] * da
    if db.any():  # a logarithm of the base, which must then be positive
        gradient = gradient + (power * np.log(a))[:, None] * db
    return power, gradient
