"""Statements about a field u(t, x) of a vector x: text → a formula of operations, and its linear parts.

The grammar is that of all other statements. The words are ``x``, ``x[1]``, ``sum``, ``norm``, ``dot``, ``min``,
``max`` of a vector, ``grad(u)``, ``laplace(u)``, ``trace(A*hessian(u))`` with ``diag(v)``; functions of a vector act
on every component.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError, finite_array, require, suggestion
from rannpde.grammar import Binary, Call, Comparison, Index, List, Name, Negative, Node, Number, fail, parse
from rannpde.pde.statement.vector import ELEMENTWISE, MATRIX, SCALAR, VECTOR, Operation, combine, scalar_constant

WORDS = ("sum", "norm", "dot", "min", "max", "grad", "laplace", "trace", "hessian", "diag", "where", "d")
ZERO_SCALAR, MINUS = scalar_constant(0.0), scalar_constant(-1.0)


@dataclass(frozen=True)
class DiffusionFactors:
    """The diffusion matrix of an equation, c·diag(v)·C·diag(v) or c·diag(w).

    scale : c; left : v; middle : C, a constant (d, d) array; diagonal : w
    """

    scale: Operation
    diagonal: Operation | None = None
    left: Operation | None = None
    middle: Array | None = None


@dataclass(frozen=True)
class VectorVocabulary:
    """What the names of a problem in R^d stand for.

    dim : d; vector, time, field : the names of x, t and u
    parameters : name → number, vector (d,) or matrix (d, d); functions : name → callable of arrays (M,) and (M, d)
    """

    dim: int
    vector: str = "x"
    time: str = "t"
    field: str = "u"
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    functions: Mapping[str, Callable[..., Any]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        own = (self.vector, self.time, self.field, "pi")
        for group in (self.parameters, self.functions):
            for name in group:
                plain = isinstance(name, str) and name.isidentifier()
                require(plain, "the name of a parameter or function", name, "a word of letters, digits and underscores")
                if name in (*own, *WORDS, *ELEMENTWISE):
                    raise InputError(f"the name {name!r} is a word of the language or a coordinate; rename it")
        for name, function in self.functions.items():
            require(callable(function), f"functions[{name!r}]", function, "callable")
        object.__setattr__(self, "parameters", {n: self._array(n, v) for n, v in self.parameters.items()})

    def _array(self, name: str, value: Any) -> Array:
        array = finite_array(f"parameters[{name!r}]", value, (0, 1, 2))
        shapes = ((), (self.dim,), (self.dim, self.dim))
        expected = f"a number, a vector of {self.dim} or a matrix of {self.dim} by {self.dim} numbers"
        require(array.shape in shapes, f"parameters[{name!r}] with shape", array.shape, expected)
        return array

    def known(self) -> list[str]:
        """Every name that a statement may use."""
        return [self.vector, self.time, self.field, "pi", *self.parameters, *self.functions, *WORDS, *ELEMENTWISE]


def read_vector(text: str, words: VectorVocabulary) -> Operation:
    """An equation, as left side minus right side, or an expression.

    >>> from rannpde.pde.statement.vector import evaluate_vector
    >>> node = read_vector("norm(x)**2 + x[1]", VectorVocabulary(3))
    >>> evaluate_vector(node, {"point": np.array([[1.0, 2.0, 2.0]])}).tolist()
    [[10.0]]
    """
    left, right = parse(text)
    reader = _Reader(text, words)
    result = reader.scalar(left)
    return result if right is None else combine("add", result, combine("multiply", MINUS, reader.scalar(right)))


def read_sides(text: str, left: Node, right: Node, words: VectorVocabulary) -> tuple[Operation, Operation]:
    """Two sides of an equation or inequality that was parsed already, both scalars."""
    reader = _Reader(text, words)
    return reader.scalar(left), reader.scalar(right)


class _Reader:
    """Syntax tree → operations, with the kind of every part checked."""

    def __init__(self, text: str, words: VectorVocabulary) -> None:
        self.text, self.words = text, words

    def fail(self, node: Node, reason: str) -> Any:
        return fail(self.text, node.column, reason)

    def scalar(self, node: Node) -> Operation:
        value = self.read(node)
        if value.kind != SCALAR:
            self.fail(node, f"a {value.kind} where a scalar is needed; use dot(a, b), sum, norm or a component x[1]")
        return value

    def vector(self, node: Node) -> Operation:
        value = self.read(node)
        if value.kind != VECTOR:
            self.fail(
                node,
                f"a {value.kind} where a vector is needed, such as {self.words.vector} or grad({self.words.field})",
            )
        return value

    def read(self, node: Node) -> Operation:
        match node:
            case Number():
                return scalar_constant(float(node.text))
            case Name():
                return self.name(node)
            case Negative():
                return self.product(node, MINUS, self.read(node.operand))
            case Binary():
                return self.binary(node)
            case Index():
                return self.component(node)
            case List():
                parts = tuple(self.scalar(item) for item in node.items)
                if len(parts) != self.words.dim:
                    self.fail(node, f"a vector of {len(parts)} components in {self.words.dim} dimensions")
                return Operation("join", parts, VECTOR)
            case Call():
                return self.call(node)
            case Comparison():
                self.fail(node, "a comparison stands as the first argument of where(a < b, then, else) only")
        raise AssertionError(node)

    def name(self, node: Name) -> Operation:
        words = self.words
        if node.text == words.vector:
            return Operation("point", (), VECTOR)
        leaves = {words.time: "time", words.field: "field", f"{words.field}_{words.time}": "rate"}
        if node.text in leaves:
            return Operation(leaves[node.text])
        if node.text == "pi":
            return scalar_constant(np.pi)
        if node.text in words.parameters:
            value = words.parameters[node.text]
            kind = (SCALAR, VECTOR, MATRIX)[value.ndim]
            return Operation("constant", (), kind, value if kind == MATRIX else np.reshape(value, (1, -1)))
        if node.text.startswith(f"{words.field}_"):
            self.fail(
                node,
                f"{node.text} has no meaning for a vector; write grad({words.field}) or laplace({words.field})",
            )
        self.fail(node, f"the name {node.text!r} is unknown; {suggestion(node.text, words.known())}")
        raise AssertionError

    def binary(self, node: Binary) -> Operation:
        left, right = self.read(node.left), self.read(node.right)
        if node.operator == "*":
            return self.product(node, left, right)
        if MATRIX in (left.kind, right.kind):
            self.fail(node, "a matrix stands in trace(A*hessian(u)) or before a vector, A*x, only")
        if node.operator in "+-":
            if node.operator == "-":
                right = self.product(node, MINUS, right)
            return combine("add", left, right)
        if right.kind == VECTOR:
            self.fail(node, "division by a vector" if node.operator == "/" else "a vector as an exponent")
        return combine("divide" if node.operator == "/" else "power", left, right)

    def product(self, node: Node, left: Operation, right: Operation) -> Operation:
        if left.kind == VECTOR and right.kind == VECTOR:
            self.fail(
                node, "vectors are not multiplied; use dot(a, b), or diag(a)*b for the products of their components"
            )
        if MATRIX not in (left.kind, right.kind):
            return combine("multiply", left, right)
        if left.kind == MATRIX and right.kind == VECTOR:
            if left.name == "constant":
                return Operation("matrix", (right,), VECTOR, left.value)
            if left.name == "diagonal":
                return combine("multiply", left.operands[0], right)
            if left.name == "matrices":  # from the right: A*B*v is A*(B*v)
                return self.product(node, left.operands[0], self.product(node, left.operands[1], right))
        if right.kind == VECTOR or left.kind == VECTOR:
            self.fail(node, "a vector stands on the right of a matrix: A*x")
        return Operation("matrices", (left, right), MATRIX)

    def component(self, node: Index) -> Operation:
        vector = self.read(node.operand)
        if vector.kind != VECTOR:
            self.fail(node, f"[{node.number}] of what is no vector")
        if not 1 <= node.number <= self.words.dim:
            self.fail(node, f"components count from 1 to {self.words.dim}")
        return Operation("component", (vector,), SCALAR, node.number - 1)

    def call(self, node: Call) -> Operation:
        arguments = node.arguments
        if node.name in ELEMENTWISE:
            self.count(node, 1)
            return combine(node.name, self.plain(arguments[0]))
        if node.name in self.words.functions:
            return self.user_function(node)
        if node.name == "where":
            condition = arguments[0]
            assert isinstance(condition, Comparison)
            parts = [self.plain(part) for part in (condition.left, condition.right, *arguments[1:])]
            return combine("where", *parts, value=condition.operator)
        if node.name in ("min", "max"):
            return self.extreme(node)
        rules = {"sum": self.total, "norm": self.norm, "dot": self.dot, "grad": self.gradient, "laplace": self.laplace,
                 "trace": self.trace, "hessian": self.hessian, "diag": self.diagonal, "d": self.derivative}  # fmt: skip
        if node.name not in rules:
            self.fail(node, f"the function {node.name!r} is unknown; {suggestion(node.name, self.words.known())}")
        return rules[node.name](node)

    def plain(self, node: Node) -> Operation:
        value = self.read(node)
        if value.kind == MATRIX:
            self.fail(node, "a matrix where a number or a vector is needed")
        return value

    def count(self, node: Call, expected: int) -> None:
        if len(node.arguments) != expected:
            self.fail(node, f"{node.name} takes {expected} argument{'s' * (expected > 1)}, not {len(node.arguments)}")

    def extreme(self, node: Call) -> Operation:
        parts = [self.plain(part) for part in node.arguments]
        if len(parts) == 1:
            if parts[0].kind != VECTOR:
                self.fail(node, f"{node.name} of one number; give a vector, or two numbers")
            return Operation({"min": "smallest", "max": "largest"}[node.name], (parts[0],))
        result = parts[0]
        for part in parts[1:]:
            result = combine(node.name, result, part)
        return result

    def total(self, node: Call) -> Operation:
        self.count(node, 1)
        return Operation("sum", (self.vector(node.arguments[0]),))

    def norm(self, node: Call) -> Operation:
        self.count(node, 1)
        return Operation("norm", (self.vector(node.arguments[0]),))

    def dot(self, node: Call) -> Operation:
        self.count(node, 2)
        return Operation("dot", (self.vector(node.arguments[0]), self.vector(node.arguments[1])))

    def of_field(self, node: Call) -> None:
        self.count(node, 1)
        inner = node.arguments[0]
        if not (isinstance(inner, Name) and inner.text == self.words.field):
            self.fail(node, f"{node.name} takes the field: {node.name}({self.words.field})")

    def gradient(self, node: Call) -> Operation:
        self.of_field(node)
        return Operation("gradient", (), VECTOR)

    def laplace(self, node: Call) -> Operation:
        self.of_field(node)
        return Operation("second", (), SCALAR, DiffusionFactors(scalar_constant(1.0)))

    def hessian(self, node: Call) -> Operation:
        self.of_field(node)
        return Operation("hessian", (), MATRIX)

    def diagonal(self, node: Call) -> Operation:
        self.count(node, 1)
        return Operation("diagonal", (self.vector(node.arguments[0]),), MATRIX)

    def derivative(self, node: Call) -> Operation:
        names = [part.text if isinstance(part, Name) else "" for part in node.arguments]
        if names != [self.words.field, self.words.time]:
            self.fail(
                node,
                f"d({self.words.field}, {self.words.time}) is the only derivative of this form; write grad or laplace",
            )
        return Operation("rate")

    def trace(self, node: Call) -> Operation:
        self.count(node, 1)
        inner = self.read(node.arguments[0])
        scale, factors = _flattened(inner)
        if sum(part.name == "hessian" for part in factors) != 1:
            self.fail(node, f"trace(A*hessian({self.words.field})) is the only trace")
        where = next(k for k, part in enumerate(factors) if part.name == "hessian")
        factors = factors[where + 1 :] + factors[:where]  # a trace does not change under cyclic permutation
        names = [part.name for part in factors]
        if not names:
            factors_of_diffusion = DiffusionFactors(scale)
        elif names == ["diagonal"]:
            factors_of_diffusion = DiffusionFactors(scale, diagonal=factors[0].operands[0])
        elif names == ["constant"]:
            factors_of_diffusion = DiffusionFactors(scale, middle=np.asarray(factors[0].value))
        elif names == ["diagonal", "constant", "diagonal"]:
            factors_of_diffusion = DiffusionFactors(
                scale, left=factors[0].operands[0], middle=np.asarray(factors[1].value)
            )
        else:
            self.fail(node, "A must be diag(v), a constant matrix C, or diag(v)*C*diag(v)")
        return Operation("second", (), SCALAR, factors_of_diffusion)

    def user_function(self, node: Call) -> Operation:
        """A user's function; one evaluation at two points shows whether it returns numbers or vectors."""
        function, parts = self.words.functions[node.name], tuple(self.plain(part) for part in node.arguments)
        probe = [np.full(2, 0.5) if part.kind == SCALAR else np.full((2, self.words.dim), 0.5) for part in parts]
        try:
            shape = np.shape(function(*probe))
        except Exception as error:  # any error of a user's function is reported with its name
            raise InputError(
                f"functions[{node.name!r}] fails at two points: {error}; it takes arrays (M,) and (M, d)"
            ) from None
        shapes = {(2,): SCALAR, (): SCALAR, (2, self.words.dim): VECTOR}
        expected = f"of shape (M,) or (M, {self.words.dim})"
        require(shape in shapes, f"the result of functions[{node.name!r}] with shape", shape, expected)
        return Operation("call", parts, shapes[shape], function)


def _flattened(node: Operation) -> tuple[Operation, list[Operation]]:
    """The scalar factor and the matrices of a product, from left to right."""
    if node.name != "matrices":
        return scalar_constant(1.0), [node]
    scale = scalar_constant(1.0)
    matrices: list[Operation] = []
    for part in node.operands:
        if part.kind == SCALAR:
            scale = combine("multiply", scale, part)
        else:
            inner_scale, inner = _flattened(part)
            scale, matrices = combine("multiply", scale, inner_scale), matrices + inner
    return scale, matrices


# ------------------------------------------------------------------------------------------------- linear parts


@dataclass(frozen=True)
class LinearParts:
    """c·u_t + Σ trace(A_k hessian(u)) + b·grad(u) + rest.

    rate : c; second : the A_k; drift : the summands of b, known vectors; rest : all that is left, of u and grad(u) too
    """

    rate: Operation = ZERO_SCALAR
    second: tuple[DiffusionFactors, ...] = ()
    drift: tuple[Operation, ...] = ()
    rest: Operation = ZERO_SCALAR


def linear_parts(node: Operation, fail_with: Callable[[str], Any]) -> LinearParts:
    """The parts of a statement; u_t and second derivatives must enter linearly, with known coefficients."""
    if node.name == "rate":
        return LinearParts(rate=scalar_constant(1.0))
    if node.name == "second":
        return LinearParts(second=(node.value,))
    if node.name == "add":
        left, right = (linear_parts(operand, fail_with) for operand in node.operands)
        return LinearParts(
            _total(left.rate, right.rate), left.second + right.second, left.drift + right.drift,
            _total(left.rest, right.rest),
        )  # fmt: skip
    if node.name in ("multiply", "divide") and node.has("rate", "second", "gradient"):
        first, second = node.operands
        whole, factor = (first, second) if not first.known or node.name == "divide" else (second, first)
        if factor.known and factor.kind == SCALAR and whole.kind == SCALAR:
            return _scaled(linear_parts(whole, fail_with), factor, node.name)
    if node.name == "dot":
        first, second = node.operands
        for gradient, drift in ((first, second), (second, first)):
            if gradient.name == "gradient" and drift.known:
                return LinearParts(drift=(drift,))
    if node.has("rate", "second"):
        fail_with("u_t, laplace(u) and trace(A*hessian(u)) must enter linearly, with coefficients that are known")
    return LinearParts(rest=node)


def _total(first: Operation, second: Operation) -> Operation:
    """The sum of two operations; one that is zero is left out."""
    if first is ZERO_SCALAR or second is ZERO_SCALAR:
        return second if first is ZERO_SCALAR else first
    return combine("add", first, second)


def _scaled(parts: LinearParts, factor: Operation, how: str) -> LinearParts:
    """The parts after the operation ``how``, "multiply" or "divide", with a factor."""

    def scaled(node: Operation) -> Operation:
        return ZERO_SCALAR if node is ZERO_SCALAR else combine(how, node, factor)

    second = tuple(DiffusionFactors(scaled(f.scale), f.diagonal, f.left, f.middle) for f in parts.second)
    return LinearParts(scaled(parts.rate), second, tuple(map(scaled, parts.drift)), scaled(parts.rest))
