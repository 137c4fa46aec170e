"""Names of a problem and what they mean: syntax trees → SymPy expressions that we build ourselves, node by node.

A field u is the SymPy function u(t, x, …), a derivative by subscript is ``Derivative(u, x)``, and the operators
``d``, ``grad``, ``div``, ``laplace`` leave unevaluated derivatives of expressions, so that the divergence form of a
statement is kept. No text ever reaches SymPy's parser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite, log
from typing import Any

import sympy

from rannpde.errors import InputError, require, suggestion
from rannpde.pde.statement.grammar import Binary, Call, List, Name, Negative, Node, Number, StatementError, fail, parse

_SMOOTH = "sin cos tan asin acos atan sinh cosh tanh asinh exp log sqrt sign erf"
FUNCTIONS: dict[str, Any] = {name: getattr(sympy, name) for name in _SMOOTH.split()}
FUNCTIONS |= {"abs": sympy.Abs, "max": sympy.Max, "min": sympy.Min}
OPERATORS = ("d", "grad", "div", "laplace", "dot", "dn")
CONSTANTS = {"pi": sympy.pi}
ORDER_LIMIT = 8
EXPONENT_LIMIT = 64
MAGNITUDE_LIMIT = 1e200

Vector = tuple[Any, ...]
Value = Any
"""A SymPy expression, or a Vector of them."""


@dataclass(frozen=True)
class Vocabulary:
    """What the names of a problem stand for.

    coordinates : names of the coordinates, in the order of the columns of points
    time : the coordinate that is time, or None; the others are space, on which grad, div and laplace act
    fields : names of the unknown functions
    parameters : name → number
    functions : name → callable of arrays, the user's own functions of the coordinates
    """

    coordinates: tuple[str, ...]
    time: str | None = None
    fields: tuple[str, ...] = ()
    parameters: Mapping[str, float] = field(default_factory=dict)
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        taken: dict[str, str] = dict.fromkeys([*FUNCTIONS, *OPERATORS], "a function of the language")
        taken |= dict.fromkeys(CONSTANTS, "a constant")
        groups = {"a coordinate": self.coordinates, "a field": self.fields}
        groups |= {"a parameter": tuple(self.parameters), "a function": tuple(self.functions)}
        for meaning, group in groups.items():
            for name in group:
                _require_word(name, meaning)
                if name in taken:
                    raise InputError(
                        f"the name {name!r} stands for {taken[name]} and for {meaning}; rename one of them"
                    )
                taken[name] = meaning
        for name, value in self.parameters.items():
            number = isinstance(value, (int, float)) and isfinite(value)
            require(number, f"parameters[{name!r}]", value, "a finite number", "functions go into functions={…}")
        for name, function in self.functions.items():
            require(callable(function), f"functions[{name!r}]", function, "callable")

    @property
    def space(self) -> tuple[str, ...]:
        return tuple(name for name in self.coordinates if name != self.time)

    @property
    def symbols(self) -> tuple[sympy.Symbol, ...]:
        """The coordinates as SymPy symbols."""
        return tuple(coordinate_symbol(name) for name in self.coordinates)

    def field_function(self, name: str) -> sympy.Expr:
        """u(t, x, …) for the field of that name."""
        return sympy.Function(name, real=True)(*self.symbols)

    def known(self) -> list[str]:
        """Every name an equation may use, for suggestions."""
        words = [*self.coordinates, *self.fields, *self.parameters, *self.functions, *FUNCTIONS, *OPERATORS, *CONSTANTS]
        return sorted(words)

    def subscript(self, text: str) -> tuple[str, tuple[str, ...]] | None:
        """("u", ("x", "x")) for "u_xx"; None when the part after the last underscore is not made of coordinates."""
        stem, underscore, letters = text.rpartition("_")
        if not (stem and underscore and letters) or len(letters) > 64:
            return None
        ways: list[tuple[str, ...] | None] = [()] + [None] * len(letters)
        for start in range(len(letters)):
            for name in self.coordinates:
                if ways[start] is not None and letters.startswith(name, start):
                    ways[start + len(name)] = (*ways[start], name)  # type: ignore[misc]
        return None if ways[-1] is None else (stem, ways[-1])


def coordinate_symbol(name: str) -> sympy.Symbol:
    """The SymPy symbol of a coordinate."""
    return sympy.Symbol(name, real=True)


def normal_symbol(name: str) -> sympy.Symbol:
    """Component of the outward normal along that coordinate, known on boundaries only (``dn``)."""
    return sympy.Symbol(f"normal_{name}", real=True)


def build(text: str, vocabulary: Vocabulary) -> sympy.Expr:
    """left - right of an equation (or the bare expression) as SymPy, every name given its meaning.

    >>> build("u_t = laplace(u**2)", Vocabulary(("t", "x"), "t", ("u",)))
    Derivative(u(t, x), t) - Derivative(u(t, x)**2, (x, 2))
    """
    left, right = parse(text)
    builder = _Builder(text, vocabulary)
    value = builder.scalar(left)
    return value if right is None else value - builder.scalar(right)


def _require_word(name: Any, meaning: str) -> None:
    word = isinstance(name, str) and name.isidentifier() and len(name) <= 40
    require(word, f"the name of {meaning}", name, "a short word of letters, digits and underscores")


@dataclass(frozen=True)
class _Builder:
    """One walk over the syntax tree of ``text``."""

    text: str
    words: Vocabulary

    def scalar(self, node: Node) -> sympy.Expr:
        value = self.value(node)
        if isinstance(value, tuple):
            fail(self.text, node.column, "a vector where a number is needed; write one equation a component")
        return value

    def vector(self, node: Node) -> Vector:
        value = self.value(node)
        if not isinstance(value, tuple):
            fail(self.text, node.column, "a number where a vector is needed, such as grad(u) or [a, b]")
        if len(value) != len(self.words.space):
            fail(
                self.text,
                node.column,
                f"a vector of {len(value)} components in {len(self.words.space)} space dimensions",
            )
        return value

    def value(self, node: Node) -> Value:
        match node:
            case Number(text=text):
                return self.bounded(node, sympy.Integer(text) if text.isdigit() else sympy.Float(text))
            case Name():
                return self.name(node)
            case Negative(operand=operand):
                return _scale(sympy.Integer(-1), self.value(operand))
            case List(items=items):
                return tuple(self.scalar(item) for item in items)
            case Call():
                return self.call(node)
            case Binary(operator="**", left=left, right=right):
                return self.power(node, self.scalar(left), self.scalar(right))
        return self.chain(node)

    def chain(self, node: Node) -> Value:
        """a + b - c * d …: left-leaning chains are unwound, so that long sums do not nest calls."""
        links: list[Binary] = []
        first: Node = node
        while isinstance(first, Binary) and first.operator != "**":
            links.append(first)
            first = first.left
        parts, summing = [self.value(first)], False
        for link in reversed(links):  # SymPy sorts a sum or product each time it is built: build it once
            right = self.value(link.right)
            if (link.operator in "+-") != summing:
                parts, summing = [self.join(link, parts, summing)], not summing
            parts.append(self.operand(link, right))
        return self.join(node, parts, summing)

    def operand(self, link: Binary, right: Value) -> Value:
        """The right operand as a summand or factor: -b for a - b, 1/b for a / b."""
        if link.operator == "-":
            return _scale(sympy.Integer(-1), right)
        if link.operator == "/":
            if isinstance(right, tuple):
                fail(self.text, link.column, "division by a vector")
            if right == 0:
                fail(self.text, link.column, "division by zero")
            return 1 / right
        return right

    def join(self, node: Node, parts: list[Value], summing: bool) -> Value:
        return self.add(node, parts) if summing else self.multiply(node, parts)

    def add(self, node: Node, terms: list[Value]) -> Value:
        if len(terms) == 1:
            return terms[0]
        vectors = [term for term in terms if isinstance(term, tuple)]
        if not vectors:
            return self.bounded(node, sympy.Add(*terms))
        if len({len(term) if isinstance(term, tuple) else 0 for term in terms}) > 1:
            fail(self.text, node.column, "vectors are added to vectors of the same length only")
        return tuple(sympy.Add(*parts) for parts in zip(*vectors, strict=True))

    def multiply(self, node: Node, factors: list[Value]) -> Value:
        vectors = [factor for factor in factors if isinstance(factor, tuple)]
        if len(vectors) > 1:
            fail(self.text, node.column, "vectors are not multiplied; use dot(a, b)")
        product = self.bounded(node, sympy.Mul(*[factor for factor in factors if not isinstance(factor, tuple)]))
        return _scale(product, vectors[0]) if vectors else product

    def power(self, node: Node, base: sympy.Expr, exponent: sympy.Expr) -> sympy.Expr:
        if exponent.is_number and not abs(complex(exponent)) <= EXPONENT_LIMIT:
            fail(self.text, node.column, f"an exponent beyond ±{EXPONENT_LIMIT}; refused")
        if base.is_number and exponent.is_number:
            size = abs(complex(base))
            if size == 0 and complex(exponent).real <= 0:
                fail(self.text, node.column, "zero to a power that is not positive")
            if size and abs(log(size) * complex(exponent).real) > log(MAGNITUDE_LIMIT):
                fail(self.text, node.column, f"a number beyond {MAGNITUDE_LIMIT:g}; refused")
        return self.bounded(node, base**exponent)

    def bounded(self, node: Node, value: sympy.Expr) -> sympy.Expr:
        """value, refused where SymPy found a number that is complex, infinite or absurdly large."""
        if value.is_Number or value.has(sympy.zoo, sympy.nan, sympy.oo):
            if not (value.is_real and value.is_finite and abs(value) < MAGNITUDE_LIMIT):
                fail(self.text, node.column, f"a number beyond {MAGNITUDE_LIMIT:g} or undefined; refused")
        elif value.is_number and value.is_real is False:
            fail(self.text, node.column, "a complex number; write two real fields instead")
        return value

    def name(self, node: Name) -> sympy.Expr:
        word, words = node.text, self.words
        if word in words.fields:
            return words.field_function(word)
        if word in words.coordinates:
            return coordinate_symbol(word)
        if word in words.parameters:
            number = words.parameters[word]
            return sympy.Integer(number) if float(number).is_integer() and abs(number) < 1e15 else sympy.Float(number)
        if word in CONSTANTS:
            return CONSTANTS[word]
        split = words.subscript(word)
        if split is not None and split[0] in words.fields:
            return self.differentiate(node, words.field_function(split[0]), split[1])
        if word in words.functions or word in FUNCTIONS or word in OPERATORS:
            fail(self.text, node.column, f"{word} is a function; write {word}(…)")
        return fail(self.text, node.column, f"the name {word!r} is unknown; {suggestion(word, words.known())}")

    def differentiate(self, node: Node, value: sympy.Expr, names: tuple[str, ...]) -> sympy.Expr:
        order = len(names) + _order(value)
        if order > ORDER_LIMIT:
            fail(self.text, node.column, f"a derivative of order {order}, more than {ORDER_LIMIT}; refused")
        if not names:
            return value
        return sympy.Derivative(value, *[coordinate_symbol(name) for name in names], evaluate=False)

    # ------------------------------------------------------------------------------------------------- calls

    def call(self, node: Call) -> Value:
        if node.name in OPERATORS:
            return getattr(self, f"operator_{node.name}")(node)
        if node.name in FUNCTIONS:
            return self.function(node)
        if node.name in self.words.functions:
            arguments = [self.scalar(argument) for argument in node.arguments]
            for argument, below in zip(arguments, node.arguments, strict=True):
                if argument.atoms(sympy.core.function.AppliedUndef):
                    fail(
                        self.text, below.column, f"{node.name} is your own function, of coordinates only, not of fields"
                    )
            return sympy.Function(node.name, real=True)(*arguments)
        if node.name in self.words.fields:
            fail(
                self.text, node.column, f"{node.name} is a field; write {node.name} alone, it is a function everywhere"
            )
        return fail(
            self.text,
            node.column,
            f"the function {node.name!r} is unknown; {suggestion(node.name, self.words.known())}",
        )

    def function(self, node: Call) -> sympy.Expr:
        several = node.name in ("max", "min")
        if several != (len(node.arguments) > 1):
            fail(self.text, node.column, f"{node.name} takes {'two or more arguments' if several else 'one argument'}")
        arguments = [self.scalar(argument) for argument in node.arguments]
        if node.name == "exp" and arguments[0].is_number and not abs(complex(arguments[0])) < log(MAGNITUDE_LIMIT):
            fail(self.text, node.column, f"a number beyond {MAGNITUDE_LIMIT:g}; refused")
        return self.bounded(node, FUNCTIONS[node.name](*arguments))

    def operator_d(self, node: Call) -> sympy.Expr:
        """d(expression, x), d(expression, x, x, t), d(expression, x, 2)."""
        names: list[str] = []
        for argument in node.arguments[1:]:
            if isinstance(argument, Name) and argument.text in self.words.coordinates:
                names.append(argument.text)
            elif (
                isinstance(argument, Number)
                and argument.text.isdigit()
                and names
                and 1 <= int(argument.text) <= ORDER_LIMIT
            ):
                names.extend([names[-1]] * (int(argument.text) - 1))
            else:
                known = ", ".join(self.words.coordinates)
                fail(
                    self.text, argument.column, f"d(expression, coordinate, …) differentiates in a coordinate: {known}"
                )
        if not names:
            fail(self.text, node.column, "d needs a coordinate, as in d(u, x)")
        return self.differentiate(node, self.scalar(node.arguments[0]), tuple(names))

    def operator_grad(self, node: Call) -> Vector:
        value = self.scalar(self.single(node))
        return tuple(self.differentiate(node, value, (name,)) for name in self.words.space)

    def operator_div(self, node: Call) -> sympy.Expr:
        """div(vector), or div(a, b) of the components."""
        inner = node.arguments[0] if len(node.arguments) == 1 else List(node.column, node.arguments)
        value = self.value(inner)
        if not isinstance(value, tuple) and len(self.words.space) == 1:
            value = (value,)
        parts = self.vector(inner) if not isinstance(value, tuple) or len(value) != len(self.words.space) else value
        pairs = zip(parts, self.words.space, strict=True)
        return sympy.Add(*[self.differentiate(node, part, (name,)) for part, name in pairs])

    def operator_laplace(self, node: Call) -> sympy.Expr:
        value = self.scalar(self.single(node))
        return sympy.Add(*[self.differentiate(node, value, (name, name)) for name in self.words.space])

    def operator_dot(self, node: Call) -> sympy.Expr:
        if len(node.arguments) != 2:
            fail(self.text, node.column, "dot takes two vectors")
        left, right = (self.vector(argument) for argument in node.arguments)
        return sympy.Add(*[a * b for a, b in zip(left, right, strict=True)])

    def operator_dn(self, node: Call) -> sympy.Expr:
        """The derivative along the outward normal, for conditions on sides."""
        value = self.scalar(self.single(node))
        return sympy.Add(*[normal_symbol(name) * self.differentiate(node, value, (name,)) for name in self.words.space])

    def single(self, node: Call) -> Node:
        if len(node.arguments) != 1:
            fail(self.text, node.column, f"{node.name} takes one argument")
        return node.arguments[0]


def _scale(factor: sympy.Expr, value: Value) -> Value:
    return tuple(factor * part for part in value) if isinstance(value, tuple) else factor * value


def _order(value: sympy.Expr) -> int:
    """The highest order of nested derivatives."""
    if isinstance(value, sympy.Derivative):
        return value.derivative_count + _order(value.expr)
    return max((_order(part) for part in value.args), default=0) if value.has(sympy.Derivative) else 0


def number(text: str | float, parameters: Mapping[str, float]) -> float:
    """A constant expression such as ``-1``, ``2*pi`` or ``L/2`` as a float."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return float(text)
    value = build(str(text), Vocabulary((), parameters=parameters))
    if not value.is_number:
        raise StatementError(f"{text!r} is not a number")
    return float(value)
