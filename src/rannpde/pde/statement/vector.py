"""Formulas of a vector x in R^d: evaluated on arrays of points, with derivatives in reverse mode.

SymPy would expand ``norm(x)`` in d = 100 into a hundred symbols. Here a vector is one leaf, a formula is a small
graph of operations, and one sweep backwards gives the gradient with respect to all components at the price of a few
evaluations.

On M points a scalar is an array (M, 1) and a vector an array (M, d), so that NumPy's broadcasting is that of the
language: a number times a vector, a function of every component. Constants have one row.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import erf as error_function

from rannpde.arrays import Array
from rannpde.rounding import difference_step

SCALAR, VECTOR, MATRIX = "scalar", "vector", "matrix"
REDUCTIONS = ("sum", "norm", "dot", "smallest", "largest", "component")
"""Operations that make a scalar of vectors: what the data of a problem see of x."""
KINKS = ("abs", "sign", "min", "max", "smallest", "largest", "where", "call")
"""Operations after which a formula is no analytic function any more, or may be none."""


@dataclass(frozen=True, eq=False)
class Operation:
    """One node of a formula: the name of what is done, to what, of which kind the result is.

    value : the value of a constant, an array of one row, or a matrix (d, d); the number of a component; a user's
        function; the comparison of ``where``
    """

    name: str
    operands: tuple[Operation, ...] = ()
    kind: str = SCALAR
    value: Any = None

    @cached_property
    def nodes(self) -> tuple[Operation, ...]:
        """Every node once, operands before what is made of them."""
        nodes: dict[int, Operation] = {}
        stack = [(self, False)]
        while stack:
            node, ready = stack.pop()
            if id(node) in nodes:
                continue
            if ready:
                nodes[id(node)] = node
            else:
                stack.append((node, True))
                stack.extend((below, False) for below in node.operands)
        return tuple(nodes.values())

    def has(self, *names: str) -> bool:
        """Whether a node of one of these names stands in it."""
        return any(node.name in names for node in self.nodes)

    @property
    def constant(self) -> bool:
        """Whether it is the same at all points, times and states."""
        return not self.has("time", "point", "field", "gradient", "call")

    @property
    def known(self) -> bool:
        """Whether it depends on time and the point only."""
        return not self.has("field", "gradient", "rate", "second")


Environment = Mapping[str, Array]
"""Leaf → values: ``time`` (1 or M, 1), ``point`` (M, d), ``field`` (M, 1), ``gradient`` (M, d)."""


def scalar_constant(value: float) -> Operation:
    return Operation("constant", (), SCALAR, np.array([[float(value)]]))


def combine(name: str, *operands: Operation, value: Any = None) -> Operation:
    """An operation on components: its kind is that of its largest operand."""
    kind = VECTOR if any(operand.kind == VECTOR for operand in operands) else SCALAR
    return Operation(name, operands, kind, value)


def evaluate_vector(node: Operation, known: Environment, softness: float = 0.0) -> Array:
    """Values (M or 1, 1) of a scalar, (M or 1, d) of a vector.

    softness : smallest and largest components become -s log mean exp(-x/s), smooth at the scale s, where s > 0
    """
    return _forward(node, known, softness)[id(node)]


def value_and_gradients(
    node: Operation, known: Environment, leaves: tuple[str, ...], softness: float = 0.0
) -> tuple[Array, dict[str, Array]]:
    """Values of a scalar, and its derivatives with respect to leaves, each of the shape of the leaf's own values."""
    values = _forward(node, known, softness)
    result = values[id(node)]
    rows = max(len(known[leaf]) for leaf in known) if known else 1
    adjoint: dict[int, Array] = {id(node): np.ones((rows, 1))}
    gradients = {leaf: np.zeros((rows, known[leaf].shape[1])) for leaf in leaves}
    for one in reversed(node.nodes):
        above = adjoint.pop(id(one), None)
        if above is None:
            continue
        if one.name in gradients:
            gradients[one.name] = gradients[one.name] + above
        if not one.operands:
            continue
        below = [values[id(operand)] for operand in one.operands]
        for operand, share in zip(one.operands, _pullback(one, above, below, values[id(one)], softness), strict=True):
            if share is None or operand.name == "constant":
                continue
            share = _fitted(share, operand.kind)
            adjoint[id(operand)] = adjoint[id(operand)] + share if id(operand) in adjoint else share
    return np.broadcast_to(result, (rows, 1)), gradients


def _fitted(share: Array, kind: str) -> Array:
    """Summed over the components where a scalar was used for all of them."""
    return share.sum(axis=1, keepdims=True) if kind == SCALAR and share.shape[1] > 1 else share


def _forward(node: Operation, known: Environment, softness: float) -> dict[int, Array]:
    values: dict[int, Array] = {}
    with np.errstate(all="ignore"):  # what is not finite is noticed where it is used
        for one in node.nodes:
            below = [values[id(operand)] for operand in one.operands]
            values[id(one)] = known[one.name] if one.name in known else _value(one, below, softness)
    return values


# ---------------------------------------------------------------------------------------------- single operations

ELEMENTWISE: dict[str, tuple[Callable[[Array], Array], Callable[[Array, Array], Array]]] = {
    "sin": (np.sin, lambda x, y: np.cos(x)),
    "cos": (np.cos, lambda x, y: -np.sin(x)),
    "tan": (np.tan, lambda x, y: 1 + y * y),
    "asin": (np.arcsin, lambda x, y: 1 / np.sqrt(1 - x * x)),
    "acos": (np.arccos, lambda x, y: -1 / np.sqrt(1 - x * x)),
    "atan": (np.arctan, lambda x, y: 1 / (1 + x * x)),
    "sinh": (np.sinh, lambda x, y: np.cosh(x)),
    "cosh": (np.cosh, lambda x, y: np.sinh(x)),
    "tanh": (np.tanh, lambda x, y: 1 - y * y),
    "asinh": (np.arcsinh, lambda x, y: 1 / np.sqrt(1 + x * x)),
    "exp": (np.exp, lambda x, y: y),
    "log": (np.log, lambda x, y: 1 / x),
    "sqrt": (np.sqrt, lambda x, y: 0.5 / np.where(y > 0, y, np.inf)),
    "erf": (error_function, lambda x, y: 2 / np.sqrt(np.pi) * np.exp(-x * x)),
    "abs": (np.abs, lambda x, y: np.sign(x)),
    "sign": (np.sign, lambda x, y: np.zeros_like(x)),
}
"""Function of every component and its derivative from argument and value."""
COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge
}  # fmt: skip


def _value(node: Operation, below: list[Array], softness: float) -> Array:
    if node.name in ELEMENTWISE:
        return ELEMENTWISE[node.name][0](below[0])
    match node.name:
        case "constant":
            return np.asarray(node.value)
        case "add":
            return below[0] + below[1]
        case "multiply":
            return below[0] * below[1]
        case "divide":
            return below[0] / below[1]
        case "power":
            return np.power(below[0], below[1])
        case "min":
            return np.minimum(*below)
        case "max":
            return np.maximum(*below)
        case "where":
            return np.where(COMPARE[node.value](below[0], below[1]), below[2], below[3])
        case "sum":
            return below[0].sum(axis=1, keepdims=True)
        case "dot":
            return (below[0] * below[1]).sum(axis=1, keepdims=True)
        case "norm":
            return np.sqrt((below[0] * below[0]).sum(axis=1, keepdims=True))
        case "smallest":
            return -_largest(-below[0], softness)
        case "largest":
            return _largest(below[0], softness)
        case "component":
            return below[0][:, node.value : node.value + 1]
        case "matrix":
            return below[0] @ np.asarray(node.value).T
        case "join":
            rows = max(len(part) for part in below)
            return np.concatenate([np.broadcast_to(part, (rows, 1)) for part in below], axis=1)
        case "call":
            return _called(node, below)
    raise AssertionError(f"no rule for {node.name}")


def _largest(x: Array, softness: float) -> Array:
    top = x.max(axis=1, keepdims=True)
    if not softness:
        return top
    return top + softness * np.log(np.exp((x - top) / softness).mean(axis=1, keepdims=True))


def _shares(x: Array, softness: float) -> Array:
    """The derivative of the largest component: one at it, or spread over those near it."""
    top = x.max(axis=1, keepdims=True)
    weights = np.exp((x - top) / softness) if softness else (x == top).astype(float)
    return weights / weights.sum(axis=1, keepdims=True)


def _pullback(
    node: Operation, above: Array, below: list[Array], result: Array, softness: float
) -> list[Array | None] | Iterator[Array | None]:
    """The derivatives by the operands of a node, from that by the node itself (reverse mode)."""
    with np.errstate(all="ignore"):
        if node.name in ELEMENTWISE:
            return [above * ELEMENTWISE[node.name][1](below[0], result)]
        match node.name:
            case "add":
                return [above, above]
            case "multiply":
                return [above * below[1], above * below[0]]
            case "divide":
                return [above / below[1], -above * result / below[1]]
            case "power":
                base, exponent = below
                first = above * exponent * np.where(exponent == 0, 0.0, np.power(base, exponent - 1))
                varies = node.operands[1].name != "constant"
                return [first, above * result * np.log(base) if varies else None]
            case "min":
                return [above * (below[0] <= below[1]), above * (below[0] > below[1])]
            case "max":
                return [above * (below[0] >= below[1]), above * (below[0] < below[1])]
            case "where":
                chosen = COMPARE[node.value](below[0], below[1])
                return [None, None, above * chosen, above * ~chosen]
            case "sum":
                return [np.broadcast_to(above, (len(above), below[0].shape[1]))]
            case "dot":
                return [above * below[1], above * below[0]]
            case "norm":
                return [above * below[0] / np.where(result > 0, result, np.inf)]
            case "smallest":
                return [above * _shares(-below[0], softness)]
            case "largest":
                return [above * _shares(below[0], softness)]
            case "component":
                spread = np.zeros((len(above), below[0].shape[1]))
                spread[:, node.value] = above[:, 0]
                return [spread]
            case "matrix":
                return [above @ np.asarray(node.value)]
            case "join":
                return [above[:, k : k + 1] for k in range(len(below))]
            case "call":
                return [_difference(node, above, below, k) for k in range(len(below))]
    raise AssertionError(f"no derivative of {node.name}")


# ------------------------------------------------------------------------------------------------ users' functions


def _called(node: Operation, below: list[Array]) -> Array:
    """A user's function: scalars go in as (M,), vectors as (M, d)."""
    rows = max((len(part) for part in below), default=1)
    given = [np.broadcast_to(part, (rows, part.shape[1])) for part in below]
    plain = [part[:, 0] if operand.kind == SCALAR else part for part, operand in zip(given, node.operands, strict=True)]
    result = np.asarray(node.value(*plain), dtype=float)
    return np.broadcast_to(
        result.reshape(-1, 1) if node.kind == SCALAR else result, (rows, result.shape[-1] if node.kind == VECTOR else 1)
    )


def _difference(node: Operation, above: Array, below: list[Array], which: int) -> Array | None:
    """above · ∂function/∂argument, by the function's own ``gradient`` where it has one, by central differences else."""
    if node.operands[which].constant:
        return None
    own = getattr(node.value, "gradient", None)
    if own is not None and len(below) == 1 and node.kind == SCALAR:
        slope = np.asarray(own(below[0][:, 0] if node.operands[0].kind == SCALAR else below[0]), dtype=float)
        return above * slope.reshape(len(above), -1)
    argument = below[which]
    derivative = np.zeros((len(above), argument.shape[1]))
    size = difference_step() * max(float(np.abs(argument).max()), 1.0)
    for k in range(argument.shape[1]):
        shifted = []
        for sign in (1.0, -1.0):
            moved = np.array(np.broadcast_to(argument, (len(above), argument.shape[1])))
            moved[:, k] += sign * size
            shifted.append(_called(node, [moved if j == which else part for j, part in enumerate(below)]))
        derivative[:, k] = (above * (shifted[0] - shifted[1])).sum(axis=1) / (2 * size)
    return derivative
