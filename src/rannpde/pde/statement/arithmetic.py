"""Sums, products and powers of SymPy expressions within limits.

Numbers stay exact while they are short (1/3, sqrt(2), sin(pi/4)) and become floats otherwise, since SymPy computes with
as many digits as an exact number requires.
"""

from __future__ import annotations

from math import log
from typing import TypeAlias

import sympy

from rannpde.grammar import Binary, Node, fail
from rannpde.pde.statement.expansion import size
from rannpde.pde.statement.expression import INFINITE, constant

EXPONENT_LIMIT = 64
"""Largest constant exponent: beyond it float64 leaves its range for values of 1e5 already."""
MAGNITUDE_LIMIT = 1e200
"""Largest constant: its product with anything sensible is still a float64."""
EXACT_LIMIT = 10**6
"""Largest numerator and denominator under a root or a function that stays exact."""
WORK_LIMIT = 60_000
"""Nodes that reading one statement may visit, about a second; an equation of two lines visits some hundreds."""

Vector = tuple[sympy.Expr, ...]
Value: TypeAlias = "sympy.Expr | Vector"


class Arithmetic:
    """Arithmetic on values of the nodes of ``text``, with a budget of work."""

    def __init__(self, text: str) -> None:
        self.text, self.work = text, 0

    def operand(self, link: Binary, right: Value) -> Value:
        """The right operand as a summand or factor: -b for a - b, 1/b for a / b."""
        if link.operator == "-":
            return scale(sympy.Integer(-1), right)
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
        return tuple(self.bounded(node, sympy.Add(*parts)) for parts in zip(*vectors, strict=True))

    def multiply(self, node: Node, factors: list[Value]) -> Value:
        vectors = [factor for factor in factors if isinstance(factor, tuple)]
        if len(vectors) > 1:
            fail(self.text, node.column, "vectors are not multiplied; use dot(a, b)")
        product = self.bounded(node, sympy.Mul(*[factor for factor in factors if not isinstance(factor, tuple)]))
        return scale(product, vectors[0]) if vectors else product

    def power(self, node: Node, base: sympy.Expr, exponent: sympy.Expr) -> sympy.Expr:
        power = constant(exponent)
        if power is not None and not abs(power) <= EXPONENT_LIMIT:
            fail(self.text, node.column, f"an exponent beyond ±{EXPONENT_LIMIT}; refused")
        below = constant(base)
        if power is None or below is None:
            return self.bounded(node, base**exponent)
        if below == 0 and power <= 0:
            fail(self.text, node.column, "zero to a power that is not positive")
        if below and abs(log(abs(below)) * power) > log(MAGNITUDE_LIMIT):
            fail(self.text, node.column, f"a number beyond {MAGNITUDE_LIMIT:g}; refused")
        if below < 0 and not exponent.is_Integer:
            fail(self.text, node.column, "a root of a negative number is complex; write two real fields instead")
        exact = (exponent.is_Integer and base.is_Rational) or (is_short(base) and is_short(exponent))
        return self.bounded(node, base**exponent if exact else sympy.Float(below**power))

    def bounded(self, node: Node, value: sympy.Expr) -> sympy.Expr:
        """value, refused where it is a number that is complex, infinite or absurdly large, or took too much work."""
        self.work += size(value)
        if self.work > WORK_LIMIT:
            fail(self.text, node.column, f"reading the statement takes more than {WORK_LIMIT} steps; refused")
        if value.has(sympy.I):
            fail(self.text, node.column, "a complex number; write two real fields instead")
        if value.is_number and not abs(constant(value) or 0.0) < MAGNITUDE_LIMIT:
            fail(self.text, node.column, f"a number beyond {MAGNITUDE_LIMIT:g} or undefined; refused")
        if value.has(*INFINITE):
            fail(self.text, node.column, "an undefined number, such as a division by zero")
        return value


def scale(factor: sympy.Expr, value: Value) -> Value:
    return tuple(factor * part for part in value) if isinstance(value, tuple) else factor * value


def is_short(value: sympy.Expr) -> bool:
    """Whether a constant is p/q or π·p/q with few digits, of which SymPy may take roots and sines exactly."""
    ratio = value / sympy.pi if value.has(sympy.pi) else value
    return bool(ratio.is_Rational and abs(ratio.p) <= EXACT_LIMIT and ratio.q <= EXACT_LIMIT)
