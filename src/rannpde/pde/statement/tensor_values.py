"""Values of tensor notation: scalars, vectors and matrices whose entries are texts of the scalar language.

An entry is a complex number of two texts, real and imaginary part; that of a real entry is "0". Sums and products leave
out zeros and ones, so that the scalar statements stay short.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

_SUM, _PRODUCT, _ATOM = 1, 2, 3
"""Precedence of operators: brackets go around a text whose outermost operator has a lower one than its context."""


@dataclass(frozen=True)
class Entry:
    """A real scalar as text, with the precedence of its outermost operator."""

    text: str
    precedence: int = _ATOM

    @property
    def zero(self) -> bool:
        return self.text == "0"

    def within(self, precedence: int) -> str:
        """The text, in brackets where its precedence is lower than this."""
        return self.text if self.precedence >= precedence else f"({self.text})"

    def __add__(self, other: Entry) -> Entry:
        if self.zero or other.zero:
            return other if self.zero else self
        if other.text.startswith("-"):
            return Entry(f"{self.text} - {other.text[1:]}", _SUM) if other.precedence != _SUM else _added(self, other)
        return _added(self, other)

    def __neg__(self) -> Entry:
        if self.zero:
            return self
        if self.text.startswith("-") and self.precedence == _PRODUCT:
            return Entry(self.text[1:], _PRODUCT)
        return Entry(f"-{self.within(_PRODUCT)}", _PRODUCT)

    def __sub__(self, other: Entry) -> Entry:
        return self + (-other)

    def __mul__(self, other: Entry) -> Entry:
        if self.zero or other.zero:
            return EMPTY_ENTRY
        if "1" in (self.text, other.text):
            return other if self.text == "1" else self
        if other.text.startswith("-"):
            return (
                -(self * -other)
                if other.precedence == _PRODUCT
                else Entry(f"{self.within(_PRODUCT)}*({other.text})", _PRODUCT)
            )
        return Entry(f"{self.within(_PRODUCT)}*{other.within(_PRODUCT)}", _PRODUCT)

    def over(self, other: Entry) -> Entry:
        """The quotient."""
        if self.zero or other.text == "1":
            return self
        return Entry(f"{self.within(_PRODUCT)}/{other.within(_ATOM)}", _PRODUCT)

    def power(self, exponent: str) -> Entry:
        return Entry(f"{self.within(_ATOM)}**({exponent})", _PRODUCT)

    def call(self, name: str, *more: str) -> Entry:
        """The text name(self, …)."""
        return Entry(f"{name}({', '.join((self.text, *more))})")


def _added(left: Entry, right: Entry) -> Entry:
    return Entry(f"{left.text} + {right.text}", _SUM)


EMPTY_ENTRY, UNIT = Entry("0"), Entry("1")


@dataclass(frozen=True)
class ComplexEntry:
    """A complex scalar: real and imaginary part."""

    real: Entry
    imaginary: Entry = EMPTY_ENTRY

    @property
    def is_real(self) -> bool:
        return self.imaginary.zero

    @property
    def zero(self) -> bool:
        return self.real.zero and self.imaginary.zero

    def __add__(self, other: ComplexEntry) -> ComplexEntry:
        return ComplexEntry(self.real + other.real, self.imaginary + other.imaginary)

    def __neg__(self) -> ComplexEntry:
        return ComplexEntry(-self.real, -self.imaginary)

    def __mul__(self, other: ComplexEntry) -> ComplexEntry:
        real = self.real * other.real - self.imaginary * other.imaginary
        return ComplexEntry(real, self.real * other.imaginary + self.imaginary * other.real)

    @property
    def conjugate(self) -> ComplexEntry:
        return ComplexEntry(self.real, -self.imaginary)

    @property
    def square(self) -> Entry:
        """|z|²."""
        return _squared(self.real) + _squared(self.imaginary)

    def over(self, other: ComplexEntry) -> ComplexEntry:
        """The quotient."""
        if other.is_real:
            return ComplexEntry(self.real.over(other.real), self.imaginary.over(other.real))
        product, size = self * other.conjugate, other.square
        return ComplexEntry(product.real.over(size), product.imaginary.over(size))

    def exponential(self) -> ComplexEntry:
        """exp z."""
        if self.is_real:
            return ComplexEntry(self.real.call("exp"))
        size = UNIT if self.real.zero else self.real.call("exp")
        return ComplexEntry(size * self.imaginary.call("cos"), size * self.imaginary.call("sin"))

    def linear(self, operator: Callable[[Entry], Entry]) -> ComplexEntry:
        """A real linear operator on both parts."""
        return ComplexEntry(*(part if part.zero else operator(part) for part in (self.real, self.imaginary)))


def _squared(entry: Entry) -> Entry:
    return entry if entry.zero else entry.power("2")


NULL_NUMBER, UNIT_NUMBER = ComplexEntry(EMPTY_ENTRY), ComplexEntry(UNIT)

VectorValue = tuple[ComplexEntry, ...]
MatrixValue = tuple[VectorValue, ...]
TensorValue: TypeAlias = "ComplexEntry | VectorValue | MatrixValue"


def rank_of(value: TensorValue) -> int:
    """0 of a scalar, 1 of a vector, 2 of a matrix."""
    if isinstance(value, ComplexEntry):
        return 0
    return 1 if isinstance(value[0], ComplexEntry) else 2


def shape_of(value: TensorValue) -> tuple[int, ...]:
    if isinstance(value, ComplexEntry):
        return ()
    return (len(value), *shape_of(value[0]))


def tensor_kind(value: TensorValue) -> str:
    """For messages: a number, a vector of 2, a matrix of 2 × 3."""
    return ("a number", "a vector of {}", "a matrix of {} × {}")[rank_of(value)].format(*shape_of(value))


def entries(value: TensorValue) -> list[ComplexEntry]:
    """All scalars, row by row."""
    return [value] if isinstance(value, ComplexEntry) else [entry for part in value for entry in entries(part)]


def mapped(value: TensorValue, operator: Callable[[ComplexEntry], ComplexEntry]) -> TensorValue:
    """An operator on each scalar."""
    if isinstance(value, ComplexEntry):
        return operator(value)
    return tuple(mapped(part, operator) for part in value)  # type: ignore[return-value]


def paired(
    left: TensorValue, right: TensorValue, operator: Callable[[ComplexEntry, ComplexEntry], ComplexEntry]
) -> TensorValue:
    """An operator on pairs of scalars of two values of the same shape."""
    if isinstance(left, ComplexEntry):
        assert isinstance(right, ComplexEntry)
        return operator(left, right)
    assert not isinstance(right, ComplexEntry)
    pairs: list[tuple[Any, Any]] = list(zip(left, right, strict=True))
    return tuple(paired(a, b, operator) for a, b in pairs)  # type: ignore[return-value]


def total(parts: list[ComplexEntry]) -> ComplexEntry:
    """The sum of these values."""
    sum_so_far = NULL_NUMBER
    for part in parts:
        sum_so_far = sum_so_far + part
    return sum_so_far


def contracted(left: TensorValue, right: TensorValue) -> TensorValue:
    """Sums over the last index of one and the first of the other: a·b, A·b, A·B."""
    assert not isinstance(left, ComplexEntry)
    assert not isinstance(right, ComplexEntry)
    if rank_of(left) == 2:
        return tuple(contracted(row, right) for row in left)  # type: ignore[return-value]
    row = entries(left)
    if rank_of(right) == 1:
        return total([a * b for a, b in zip(row, entries(right), strict=True)])
    table = [entries(part) for part in right]
    return tuple(total([a * b for a, b in zip(row, column, strict=True)]) for column in zip(*table, strict=True))


def half_sum(matrix: MatrixValue, sign: int) -> MatrixValue:
    """(A ± Aᵀ) / 2."""
    half, size = ComplexEntry(Entry("2")), range(len(matrix))

    def entry(i: int, j: int) -> ComplexEntry:
        if i == j:
            return matrix[i][i] if sign > 0 else NULL_NUMBER
        other = matrix[j][i] if sign > 0 else -matrix[j][i]
        return (matrix[i][j] + other).over(half)

    return tuple(tuple(entry(i, j) for j in size) for i in size)


def determinant(matrix: MatrixValue) -> ComplexEntry:
    """The determinant, by expansion along the first row."""
    if len(matrix) == 1:
        return matrix[0][0]
    parts = []
    for k, entry in enumerate(matrix[0]):
        minor = tuple(row[:k] + row[k + 1 :] for row in matrix[1:])
        parts.append(entry * determinant(minor) if k % 2 == 0 else -(entry * determinant(minor)))
    return total(parts)
