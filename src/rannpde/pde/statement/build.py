"""Syntax tree → SymPy expressions that we build ourselves, node by node, every name given its meaning.

A field u is the SymPy function u(t, x, …), a derivative by subscript is ``Derivative(u, x)``, and the operators
``d``, ``grad``, ``div``, ``laplace`` leave unevaluated derivatives of expressions, so that the divergence form of a
statement is kept. No text ever reaches SymPy's parser.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf, isfinite

import numpy as np
import sympy
from sympy.core.function import AppliedUndef

from rannpde.grammar import (
    Binary,
    Call,
    Comparison,
    Index,
    List,
    Name,
    Negative,
    Node,
    Number,
    StatementError,
    fail,
    parse,
)
from rannpde.pde.statement.arithmetic import (
    EXACT_LIMIT,
    MAGNITUDE_LIMIT,
    Arithmetic,
    Value,
    Vector,
    is_short,
    scale,
)
from rannpde.pde.statement.expansion import size
from rannpde.pde.statement.expression import constant, evaluate
from rannpde.pde.statement.hints import unknown_function, unknown_name
from rannpde.pde.statement.kinks import choose_where
from rannpde.pde.statement.special import OF_AN_ORDER
from rannpde.pde.statement.vocabulary import (
    CONSTANTS,
    FUNCTIONS,
    INTEGRALS,
    OPERATORS,
    Vocabulary,
    coordinate_symbol,
    normal_symbol,
)

ORDER_LIMIT = 8
"""Order of a derivative: twice that of the plate; products of anything longer explode when they are expanded."""


def build(text: str, vocabulary: Vocabulary) -> sympy.Expr:
    """left - right of an equation (or the bare expression) as SymPy, every name given its meaning.

    >>> build("u_t = laplace(u**2)", Vocabulary(("t", "x"), "t", ("u",)))
    Derivative(u(t, x), t) - Derivative(u(t, x)**2, (x, 2))
    """
    return build_tree(text, *parse(text), vocabulary)


def build_tree(text: str, left: Node, right: Node | None, vocabulary: Vocabulary) -> sympy.Expr:
    """left - right as SymPy, of a syntax tree of the text in which some nodes may have been replaced."""
    builder = _Builder(text, vocabulary)
    value = builder.scalar(left)
    return value if right is None else value - builder.scalar(right)


class _Builder(Arithmetic):
    """One walk over the syntax tree of ``text``."""

    def __init__(self, text: str, words: Vocabulary) -> None:
        super().__init__(text)
        self.words = words

    def scalar(self, node: Node) -> sympy.Expr:
        value = self.value(node)
        if isinstance(value, tuple):
            fail(self.text, node.column, "a vector where a number is needed; write one equation per component")
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
                return self.bounded(node, sympy.Integer(text) if text.isdecimal() else sympy.Float(text))
            case Name():
                return self.name(node)
            case Negative(operand=operand):
                return scale(sympy.Integer(-1), self.value(operand))
            case List(items=items):
                return tuple(self.scalar(item) for item in items)
            case Call():
                return self.call(node)
            case Index(operand=operand, number=component):
                parts = self.value(operand)
                if not isinstance(parts, tuple) or not 1 <= component <= len(parts):
                    length = f"a vector has components 1 to {len(parts)}" if isinstance(parts, tuple) else "no vector"
                    fail(self.text, node.column, f"[{component}] is no component of this: {length}")
                return parts[component - 1]
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

    def name(self, node: Name) -> sympy.Expr:
        word, words = node.text, self.words
        if word in words.variables:
            return coordinate_symbol(word)
        if word in words.fields:
            return words.field_function(word)
        if word in words.bare:
            return words.bare[word]
        if word in words.coordinates:
            return coordinate_symbol(word)
        if word in words.parameters:
            number = words.parameters[word]
            whole = float(number).is_integer() and abs(number) < EXACT_LIMIT  # 3.0 as a power is a product of three
            return sympy.Integer(number) if whole else sympy.Float(number)
        if word in CONSTANTS:
            return CONSTANTS[word]
        split = words.subscript(word)
        if split is not None and split[0] in words.fields:
            return self.differentiate(node, words.field_function(split[0]), split[1])
        if split is not None and split[0] in words.bare:
            return self.differentiate(node, words.bare[split[0]], split[1])
        if word[:1] == "n" and word[1:] in words.space:  # unless it is a name of the user's
            return normal_symbol(word[1:])
        if split is not None and split[0] == "n" and len(split[1]) == 1 and split[1][0] in words.space:
            return normal_symbol(split[1][0])  # a component of the outward normal, on boundaries
        stem, _, letters = word.rpartition("_")
        if stem in words.jet_names and letters:
            known = ", ".join(words.coordinates)
            fail(self.text, node.column, f"{letters!r} in {word} is no coordinate; the coordinates are {known}")
        if word in {*words.functions, *FUNCTIONS, *OPERATORS, *INTEGRALS}:
            fail(self.text, node.column, f"{word} is a function; write {word}(…)")
        return fail(self.text, node.column, unknown_name(word, words))

    def differentiate(self, node: Node, value: sympy.Expr, names: tuple[str, ...]) -> sympy.Expr:
        order = len(names) + _order(value)
        if order > ORDER_LIMIT:
            fail(self.text, node.column, f"a derivative of order {order}, more than {ORDER_LIMIT}; refused")
        if not names:
            return value
        symbols = [coordinate_symbol(name) for name in names]
        return self.bounded(node, sympy.Derivative(value, *symbols, evaluate=False))

    # ------------------------------------------------------------------------------------------------- calls

    def call(self, node: Call) -> Value:
        if node.name in OPERATORS:
            return getattr(self, f"operator_{node.name}")(node)
        if node.name in FUNCTIONS:
            return self.function(node)
        if node.name in self.words.functions and node.name not in self.words.bare:
            arguments = [self.scalar(argument) for argument in node.arguments]
            for argument, below in zip(arguments, node.arguments, strict=True):
                if argument.atoms(AppliedUndef) & {self.words.field_function(name) for name in self.words.fields}:
                    fail(
                        self.text, below.column, f"{node.name} is your own function, of coordinates only, not of fields"
                    )
            return sympy.Function(node.name, real=True)(*arguments)
        if node.name in INTEGRALS:
            return self.integral(node)
        stem, names = self.words.subscript(node.name) or (node.name, ())
        if stem in self.words.fields:
            return self.elsewhere(node, stem, names)
        if node.name in self.words.unknown:
            fail(self.text, node.column, f"{node.name} is an unknown; write {node.name} alone")
        return fail(self.text, node.column, unknown_function(node.name, self.words))

    def elsewhere(self, node: Call, name: str, names: tuple[str, ...]) -> sympy.Expr:
        """u(t - 1/2), or u_x(s): a field or a derivative of it at another point."""
        arguments = tuple(self.scalar(argument) for argument in node.arguments)
        own = self.words.symbols
        if len(arguments) != len(own):
            given = ", ".join(self.words.coordinates)
            fail(
                self.text,
                node.column,
                f"{name} is a function of {given}; write {name} alone, or {node.name}(…) with {len(own)} argument(s)",
            )
        here = self.differentiate(node, self.words.field_function(name), names)
        if arguments == own:
            return here
        if not names:
            return self.bounded(node, sympy.Function(name, real=True)(*arguments))
        return self.bounded(node, sympy.Subs(here, own, arguments))

    def integral(self, node: Call) -> sympy.Expr:
        """integral(k*u(s), s, a, b), and mean of the same; over all of space without the variable and its limits."""
        if len(node.arguments) not in (1, 4):
            fail(self.text, node.column, f"write {node.name}(expression, variable, from, to), or {node.name}(u)")
        integrand, *rest = node.arguments
        if rest:
            variable, lower, upper = rest
            if not isinstance(variable, Name) or variable.text in {*self.words.fields, *self.words.parameters}:
                fail(self.text, variable.column, "the variable of an integral must be a name that is free, such as s")
            limits = [(variable.text, self.scalar(lower), self.scalar(upper))]
        else:
            known = self.words.extent
            if not known:
                fail(
                    self.text,
                    node.column,
                    f"{node.name} needs its variable and limits here, as in {node.name}(u, x, 0, 1)",
                )
            limits = [(name, *map(sympy.Float, known[name])) for name in self.words.space]
        outside = self.words
        self.words = replace(outside, variables=(*outside.variables, *(name for name, _, _ in limits)))
        value = self.scalar(integrand)
        self.words = outside
        self.work += size(value)
        for name, lower, upper in limits:
            value = sympy.Integral(value, (coordinate_symbol(name), lower, upper))
            if node.name == "mean":
                value = value / (upper - lower)
        return value

    def function(self, node: Call) -> sympy.Expr:
        several, ordered = node.name in ("max", "min"), node.name in OF_AN_ORDER
        if ordered and len(node.arguments) != 2:
            fail(self.text, node.column, f"{node.name} takes its order and its argument, as in {node.name}(0, x)")
        if not ordered and several != (len(node.arguments) > 1):
            fail(self.text, node.column, f"{node.name} takes {'two or more arguments' if several else 'one argument'}")
        arguments = [self.scalar(argument) for argument in node.arguments]
        numbers = [constant(argument) for argument in arguments]
        if ordered and numbers[0] is None:
            fail(self.text, node.arguments[0].column, f"the order of {node.name} must be a number")
        function = FUNCTIONS[node.name]
        if None in numbers:
            return self.bounded(node, function(*arguments))
        mark = [sympy.Dummy(real=True) for _ in arguments]
        value = float(evaluate([function(*mark)], dict(zip(mark, map(np.asarray, numbers), strict=True)))[0])
        if np.isnan(value):
            fail(self.text, node.column, f"{node.name} has no real value here; write two real fields for a complex one")
        if not abs(value) < MAGNITUDE_LIMIT:
            fail(self.text, node.column, f"a number beyond {MAGNITUDE_LIMIT:g} or undefined; refused")
        return self.bounded(node, function(*arguments) if all(map(is_short, arguments)) else sympy.Float(value))

    def operator_where(self, node: Call) -> sympy.Expr:
        """where(a < b, then, else)."""
        condition, *branches = node.arguments
        assert isinstance(condition, Comparison)  # the grammar sees to it
        sides = (self.scalar(condition.left), self.scalar(condition.right))
        values = [self.scalar(branch) for branch in branches]
        return self.bounded(node, choose_where(condition.operator, *sides, *values))

    def operator_d(self, node: Call) -> sympy.Expr:
        """d(expression, x), d(expression, x, x, t), d(expression, x, 2)."""
        names: list[str] = []
        for argument in node.arguments[1:]:
            if isinstance(argument, Name) and argument.text in self.words.coordinates:
                names.append(argument.text)
            elif (
                isinstance(argument, Number)
                and argument.text.isdecimal()
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
        return self.bounded(node, sympy.Add(*[a * b for a, b in zip(left, right, strict=True)]))

    def operator_dn(self, node: Call) -> sympy.Expr:
        """The derivative along the outward normal, for conditions on sides."""
        value = self.scalar(self.single(node))
        return sympy.Add(*[normal_symbol(name) * self.differentiate(node, value, (name,)) for name in self.words.space])

    def single(self, node: Call) -> Node:
        if len(node.arguments) != 1:
            fail(self.text, node.column, f"{node.name} takes one argument")
        return node.arguments[0]


def _order(value: sympy.Expr) -> int:
    """The highest order of nested derivatives."""
    if isinstance(value, sympy.Derivative):
        return int(value.derivative_count) + _order(value.expr)
    return max((_order(part) for part in value.args), default=0) if value.has(sympy.Derivative) else 0


def number(text: str | float, parameters: Mapping[str, float]) -> float:
    """A constant expression such as ``-1``, ``2*pi`` or ``L/2`` as a float."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        value: float | None = float(text) if abs(text) <= MAGNITUDE_LIMIT else inf
    elif isinstance(text, str):
        value = constant(build(text, Vocabulary((), parameters=parameters)))
    else:
        value = None
    if value is None or not isfinite(value):
        raise StatementError(f"{text!r} is not a finite number")
    return value
