"""Vectors, tensors, complex fields and named expressions: a statement becomes scalar statements, one per component.

    fields={"u": 2}, definitions={"eps": "sym(grad(u))", "sigma": "lam*tr(eps)*I + 2*mu*eps"}, "div(sigma) = [0, 1]"

stands for two equations for ``u1`` and ``u2``. With ``complex`` fields, ``u`` stands for ``u_re + i*u_im``, and an
equation for its real and its imaginary part. What comes out is text of the scalar language, with its derivatives as
they were stated, so that divergence forms stay divergence forms, files hold it, and every method reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import sympy

from rannpde.grammar import Binary, Call, Comparison, Index, List, Name, Negative, Node, Number, fail, parse
from rannpde.pde.statement.build import build
from rannpde.pde.statement.hints import unknown_function, unknown_name
from rannpde.pde.statement.tensor_values import (
    NULL_NUMBER,
    UNIT,
    UNIT_NUMBER,
    ComplexEntry,
    Entry,
    MatrixValue,
    TensorValue,
    VectorValue,
    contracted,
    determinant,
    entries,
    half_sum,
    mapped,
    paired,
    rank_of,
    shape_of,
    tensor_kind,
    total,
)
from rannpde.pde.statement.vocabulary import CONSTANTS, FUNCTIONS, Vocabulary

TENSOR_WORDS = (
    "sym", "skew", "transpose", "tr", "det", "inner", "outer", "cross", "curl", "norm", "conj", "re", "im",
)  # fmt: skip
"""Functions of tensor notation beside grad, div, laplace, dot, d and dn, which the scalar language has too."""
IDENTITY, IMAGINARY, NORMAL = "I", "i", "n"
"""The identity matrix, the imaginary unit where fields are complex, the outward normal, unless the names are taken."""


@dataclass(frozen=True)
class TensorNotation:
    """What the names of tensor notation stand for.

    words : the scalar vocabulary, with the components as fields
    vectors : name → names of the components; complexes : names of fields → names of real and imaginary part
    definitions : name → text, in which earlier definitions may occur
    """

    words: Vocabulary
    vectors: Mapping[str, tuple[str, ...]]
    complexes: Mapping[str, tuple[str, str]]
    definitions: Mapping[str, str]
    _known: dict[str, TensorValue] = field(default_factory=dict, repr=False)

    def statements(self, text: str) -> list[str]:
        """The scalar statements of an equation: one for each component, real part and imaginary part.

        A scalar zero on one side stands for zeros everywhere.
        """
        left, right = parse(text)
        reader = _TensorReader(text, self)
        first = reader.value(left)
        if right is None:
            return [part.text for one in entries(first) for part in self._parts([one])[0]]
        second = reader.value(right)
        if shape_of(first) != shape_of(second):
            if isinstance(second, ComplexEntry) and second.zero:
                second = mapped(first, lambda _: NULL_NUMBER)
            elif isinstance(first, ComplexEntry) and first.zero:
                first = mapped(second, lambda _: NULL_NUMBER)
            else:
                shapes = f"{tensor_kind(first)} on the left and {tensor_kind(second)} on the right"
                fail(text, right.column, f"{shapes} of the equation; both sides must have the same shape")
        statements = []
        for one, other in zip(entries(first), entries(second), strict=True):
            sides = self._parts([one, other])
            statements += [f"{a.text} = {b.text}" for a, b in zip(*sides, strict=True) if not self._trivial(a, b)]
        if not statements:
            fail(text, 0, "the two sides are the same, so that the equation says nothing")
        return statements

    def _trivial(self, left: Entry, right: Entry) -> bool:
        """Whether both are the same, as the imaginary part of conj(u)*u and zero are."""
        if left.zero and right.zero:
            return True
        return bool(sympy.expand(build(f"{left.text} = {right.text}", self.words)) == 0)

    def formulas(self, text: str) -> list[str]:
        """The scalar formulas of an expression: one for each component, real part and imaginary part of each."""
        both = bool(self.complexes)
        parsed, right = parse(text)
        if right is not None:
            fail(text, 0, "a formula is needed, not an equation")
        components = entries(_TensorReader(text, self).value(parsed))
        return [part.text for one in components for part in ((one.real, one.imaginary) if both else (one.real,))]

    def _parts(self, scalars: list[ComplexEntry]) -> list[list[Entry]]:
        """Real parts, and imaginary parts where one of the scalars has one, of each."""
        both = any(not one.is_real for one in scalars)
        return [[one.real, one.imaginary] if both else [one.real] for one in scalars]

    def defined(self, name: str) -> TensorValue:
        """The value of a definition."""
        if name not in self._known:
            earlier = dict(list(self.definitions.items())[: list(self.definitions).index(name)])
            inner = TensorNotation(self.words, self.vectors, self.complexes, earlier, self._known)
            text = self.definitions[name]
            parsed, right = parse(text)
            if right is not None:
                fail(text, 0, f"the definition of {name} is an expression, not an equation")
            self._known[name] = _TensorReader(text, inner).value(parsed)
        return self._known[name]


class _TensorReader:
    """One walk over the syntax tree of ``text``."""

    def __init__(self, text: str, notation: TensorNotation) -> None:
        self.text, self.notation, self.words = text, notation, notation.words

    def value(self, node: Node) -> TensorValue:
        match node:
            case Number(text=text):
                return ComplexEntry(Entry(text))
            case Name():
                return self.name(node)
            case Negative(operand=operand):
                return mapped(self.value(operand), lambda one: -one)
            case List(items=items):
                parts = [self.value(item) for item in items]
                if len({shape_of(part) for part in parts}) != 1 or rank_of(parts[0]) > 1:
                    fail(self.text, node.column, "a list holds numbers, or rows of one length")
                return tuple(parts)  # type: ignore[return-value]
            case Index(operand=operand, number=number):
                whole = self.value(operand)
                if isinstance(whole, ComplexEntry) or not 1 <= number <= len(whole):
                    fail(self.text, node.column, f"[{number}] is no component of {tensor_kind(whole)}")
                return whole[number - 1]
            case Binary():
                return self.binary(node)
            case Call():
                return self.call(node)
        return fail(self.text, node.column, "a comparison stands in where(a < b, then, else) only")

    def scalar(self, node: Node) -> ComplexEntry:
        value = self.value(node)
        if not isinstance(value, ComplexEntry):
            fail(self.text, node.column, f"{tensor_kind(value)} where a number is needed")
        return value

    def real(self, node: Node) -> Entry:
        value = self.scalar(node)
        if not value.is_real:
            fail(self.text, node.column, "a complex number where a real one is needed; write re(…), im(…) or abs(…)")
        return value.real

    def name(self, node: Name) -> TensorValue:
        word, notation, words = node.text, self.notation, self.words
        split = words.subscript(word)
        stem, letters = (word, "") if split is None else (split[0], "_" + "".join(split[1]))
        for name, suffix in ((word, ""), (stem, letters)):
            if name in notation.vectors:
                return tuple(self.field(part, suffix) for part in notation.vectors[name])
            if name in notation.complexes or name in words.fields or name in words.bare:
                return self.field(name, suffix)
        if word in notation.definitions:
            return notation.defined(word)
        if word in words.coordinates or word in words.parameters or word in CONSTANTS:
            return ComplexEntry(Entry(word))
        size = len(words.space)
        if word == IDENTITY:
            return tuple(tuple(UNIT_NUMBER if i == j else NULL_NUMBER for j in range(size)) for i in range(size))
        if word == IMAGINARY and notation.complexes:
            return ComplexEntry(Entry("0"), UNIT)
        if word == NORMAL:
            return tuple(ComplexEntry(Entry(f"{NORMAL}_{name}")) for name in words.space)
        if split is not None and stem in notation.definitions:
            return self.derivative(notation.defined(stem), split[1])
        known = (*notation.vectors, *notation.complexes, *notation.definitions, *TENSOR_WORDS)
        return fail(self.text, node.column, unknown_name(word, words, known))

    def field(self, name: str, suffix: str) -> ComplexEntry:
        if name in self.notation.complexes:
            real, imaginary = self.notation.complexes[name]
            return ComplexEntry(Entry(real + suffix), Entry(imaginary + suffix))
        return ComplexEntry(Entry(name + suffix))

    def binary(self, node: Binary) -> TensorValue:
        left, right = self.value(node.left), self.value(node.right)
        if node.operator in "+-":
            if shape_of(left) != shape_of(right):
                shapes = f"{tensor_kind(left)} {node.operator} {tensor_kind(right)}"
                fail(self.text, node.column, f"{shapes}: only values of one shape are added; write I for the identity")
            sign: Callable[[ComplexEntry], ComplexEntry] = (
                (lambda one: one) if node.operator == "+" else (lambda one: -one)
            )
            return paired(left, right, lambda a, b: a + sign(b))
        if node.operator == "*":
            if isinstance(left, ComplexEntry):
                return mapped(right, lambda one: left * one)
            if isinstance(right, ComplexEntry):
                return mapped(left, lambda one: one * right)
            fail(self.text, node.column, "vectors and matrices are not multiplied by *; use dot, inner, outer or cross")
        if not isinstance(right, ComplexEntry):
            fail(self.text, node.column, f"{tensor_kind(right)} after {node.operator}")
        if node.operator == "/":
            return mapped(left, lambda one: one.over(right))
        return self.power(node, left, right)

    def power(self, node: Binary, base: TensorValue, exponent: ComplexEntry) -> ComplexEntry:
        if not isinstance(base, ComplexEntry) or not exponent.is_real:
            fail(self.text, node.column, "a power of real exponent of a number is needed; of a vector write dot(v, v)")
        if base.is_real:
            return ComplexEntry(base.real.power(exponent.real.text))
        count = int(exponent.real.text) if re.fullmatch(r"\d{1,2}", exponent.real.text) else 0
        if count < 1:
            fail(self.text, node.column, "a complex number has whole positive powers here; write abs(u) for its size")
        product = base
        for _ in range(count - 1):
            product = product * base
        return product

    # ------------------------------------------------------------------------------------------------- calls

    def call(self, node: Call) -> TensorValue:
        own = getattr(self, f"call_{node.name}", None)
        if own is not None:
            if node.name not in ("d", "div", "where") and len(node.arguments) != 1 + (node.name in _OF_TWO):
                fail(self.text, node.column, f"{node.name} takes {'two arguments' if node.name in _OF_TWO else 'one'}")
            return own(node)
        if node.name not in FUNCTIONS and node.name not in self.words.functions:
            fail(self.text, node.column, unknown_function(node.name, self.words, tuple(TENSOR_WORDS)))
        inside = ", ".join(self.real(argument).text for argument in node.arguments)
        return ComplexEntry(Entry(f"{node.name}({inside})"))

    def derivative(self, value: TensorValue, names: tuple[str, ...]) -> TensorValue:
        return mapped(value, lambda one: one.linear(lambda part: part.call("d", *names)))

    def gradient(self, value: TensorValue) -> TensorValue:
        """A further last axis of derivatives: of a vector the matrix ∂_j u_i."""
        if isinstance(value, ComplexEntry):
            return tuple(self.derivative(value, (name,)) for name in self.words.space)  # type: ignore[return-value]
        return tuple(self.gradient(part) for part in value)  # type: ignore[return-value]

    def call_grad(self, node: Call) -> TensorValue:
        value = self.value(node.arguments[0])
        if rank_of(value) > 1:
            fail(self.text, node.column, "the gradient of a matrix")
        return self.gradient(value)

    def call_div(self, node: Call) -> TensorValue:
        inner = node.arguments[0] if len(node.arguments) == 1 else List(node.column, node.arguments)
        return self.divergence(node, self.value(inner))

    def divergence(self, node: Call, value: TensorValue) -> TensorValue:
        """Σ_j ∂_j of the last axis: of a matrix the vector of the divergences of its rows."""
        if isinstance(value, ComplexEntry):
            value = (value,)
        if rank_of(value) == 2:
            return tuple(self.divergence(node, row) for row in value)  # type: ignore[return-value]
        if len(value) != len(self.words.space):
            fail(self.text, node.column, f"div of {tensor_kind(value)} in {len(self.words.space)} space dimensions")
        return total([self.slope(one, name) for one, name in zip(entries(value), self.words.space, strict=True)])

    def call_laplace(self, node: Call) -> TensorValue:
        return mapped(self.value(node.arguments[0]), lambda one: one.linear(lambda part: part.call("laplace")))

    def call_dn(self, node: Call) -> TensorValue:
        return mapped(self.value(node.arguments[0]), lambda one: one.linear(lambda part: part.call("dn")))

    def call_d(self, node: Call) -> TensorValue:
        value, names = self.value(node.arguments[0]), []
        for argument in node.arguments[1:]:
            if not isinstance(argument, Name | Number):
                fail(self.text, argument.column, "d(expression, x, …) differentiates in coordinates")
            names.append(argument.text)
        return self.derivative(value, tuple(names))

    def slope(self, one: ComplexEntry, name: str) -> ComplexEntry:
        return one.linear(lambda part: part.call("d", name))

    def call_curl(self, node: Call) -> TensorValue:
        value, space = self.value(node.arguments[0]), self.words.space
        if len(space) == 2 and isinstance(value, ComplexEntry):
            return (self.slope(value, space[1]), -self.slope(value, space[0]))
        if rank_of(value) != 1 or len(entries(value)) != len(space) or len(space) not in (2, 3):
            fail(self.text, node.column, f"curl of {tensor_kind(value)} in {len(space)} space dimensions")
        u = entries(value)

        def difference(i: int, j: int) -> ComplexEntry:
            return self.slope(u[i], space[j]) + -self.slope(u[j], space[i])

        return difference(1, 0) if len(space) == 2 else (difference(2, 1), difference(0, 2), difference(1, 0))

    def call_dot(self, node: Call) -> TensorValue:
        """Contraction of the last axis of the first with the first axis of the second."""
        left, right = (self.value(argument) for argument in node.arguments)
        if (
            isinstance(left, ComplexEntry)
            or isinstance(right, ComplexEntry)
            or shape_of(left)[-1] != shape_of(right)[0]
        ):
            fail(self.text, node.column, f"dot of {tensor_kind(left)} and {tensor_kind(right)}")
        return contracted(left, right)

    def call_inner(self, node: Call) -> ComplexEntry:
        left, right = self.alike(node)
        return total([a * b for a, b in zip(entries(left), entries(right), strict=True)])

    def call_outer(self, node: Call) -> MatrixValue:
        left, right = (self.vector(argument) for argument in node.arguments)
        return tuple(tuple(a * b for b in right) for a in left)

    def call_cross(self, node: Call) -> VectorValue:
        (a, b, c), (p, q, r) = (self.vector(argument, 3) for argument in node.arguments)
        return (b * r + -(c * q), c * p + -(a * r), a * q + -(b * p))

    def call_tr(self, node: Call) -> ComplexEntry:
        matrix = self.matrix(node)
        return total([row[k] for k, row in enumerate(matrix)])

    def call_det(self, node: Call) -> ComplexEntry:
        return determinant(self.matrix(node))

    def call_transpose(self, node: Call) -> MatrixValue:
        return tuple(zip(*self.matrix(node), strict=True))

    def call_sym(self, node: Call) -> MatrixValue:
        return half_sum(self.matrix(node), 1)

    def call_skew(self, node: Call) -> MatrixValue:
        return half_sum(self.matrix(node), -1)

    def call_norm(self, node: Call) -> ComplexEntry:
        parts = entries(self.value(node.arguments[0]))
        return ComplexEntry(total([ComplexEntry(one.square) for one in parts]).real.call("sqrt"))

    def call_conj(self, node: Call) -> TensorValue:
        return mapped(self.value(node.arguments[0]), lambda one: one.conjugate)

    def call_re(self, node: Call) -> TensorValue:
        return mapped(self.value(node.arguments[0]), lambda one: ComplexEntry(one.real))

    def call_im(self, node: Call) -> TensorValue:
        return mapped(self.value(node.arguments[0]), lambda one: ComplexEntry(one.imaginary))

    def call_abs(self, node: Call) -> ComplexEntry:
        value = self.scalar(node.arguments[0])
        return ComplexEntry(value.real.call("abs") if value.is_real else value.square.call("sqrt"))

    def call_exp(self, node: Call) -> ComplexEntry:
        return self.scalar(node.arguments[0]).exponential()

    def call_where(self, node: Call) -> TensorValue:
        condition, *branches = node.arguments
        assert isinstance(condition, Comparison)  # the grammar sees to it
        stated = f"{self.real(condition.left).text} {condition.operator} {self.real(condition.right).text}"
        then, other = (self.value(branch) for branch in branches)
        if shape_of(then) != shape_of(other):
            fail(self.text, node.column, "the two values of where differ in shape")

        def chosen(a: Entry, b: Entry) -> Entry:
            return a if a == b else Entry(f"where({stated}, {a.text}, {b.text})")

        return paired(then, other, lambda a, b: ComplexEntry(chosen(a.real, b.real), chosen(a.imaginary, b.imaginary)))

    def alike(self, node: Call) -> tuple[TensorValue, TensorValue]:
        left, right = (self.value(argument) for argument in node.arguments)
        if shape_of(left) != shape_of(right):
            fail(self.text, node.column, f"{node.name} of {tensor_kind(left)} and {tensor_kind(right)}")
        return left, right

    def vector(self, node: Node, size: int | None = None) -> VectorValue:
        value = self.value(node)
        if rank_of(value) != 1 or (size is not None and shape_of(value) != (size,)):
            wanted = "a vector" if size is None else f"a vector of {size}"
            fail(self.text, node.column, f"{tensor_kind(value)} where {wanted} is needed")
        return tuple(entries(value))

    def matrix(self, node: Call) -> MatrixValue:
        value = self.value(node.arguments[0])
        if rank_of(value) != 2 or len(set(shape_of(value))) != 1:
            fail(self.text, node.column, f"{node.name} of {tensor_kind(value)}; a square matrix is needed")
        return value  # type: ignore[return-value]


_OF_TWO = ("dot", "inner", "outer", "cross")
