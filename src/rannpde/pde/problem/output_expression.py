"""Expressions of outputs: those of equations, with normals on sides and with values of fields at given points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.errors import InputError
from rannpde.grammar import Binary, Call, Comparison, Index, List, Name, Negative, Node, fail, parse
from rannpde.pde.functions import State
from rannpde.pde.residual import jets_of
from rannpde.pde.statement.build import build_tree
from rannpde.pde.statement.expansion import compile_expression
from rannpde.pde.statement.expression import Expression, Jet, constant
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.vocabulary import Vocabulary

ANCHOR = "value_at_point_"
"""Names of the stand-ins for values at points within an expression."""


@dataclass(frozen=True)
class AnchoredValue:
    """The value of a jet at one point, which stands in an expression under the name of a field of its own.

    point : coordinates of space, or of time and space; in the first case time is that of the expression
    """

    name: str
    jet: Jet
    point: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class OutputExpression:
    """An expression in fields, derivatives, coordinates, normals, and values at points."""

    text: str
    expression: Expression
    anchors: tuple[AnchoredValue, ...]
    vocabulary: Vocabulary
    fields: tuple[str, ...]

    @cached_property
    def uses_normals(self) -> bool:
        return bool(self.expression.formula.free_symbols.intersection(self.vocabulary.normals))

    @cached_property
    def jets(self) -> tuple[Jet, ...]:
        """Derivatives of fields that vary from point to point."""
        return tuple(jet for jet in self.expression.jets if jet.field in self.fields)

    @property
    def fixed(self) -> bool:
        """Whether it consists of values at points alone, so that it has one value (at each time)."""
        symbols = self.expression.formula.free_symbols
        space = {s for s, n in zip(self.vocabulary.symbols, self.vocabulary.coordinates, strict=True) if n != "t"}
        return bool(self.anchors) and not self.jets and not symbols & space

    @property
    def order(self) -> int:
        """The highest derivative of a field."""
        return max((jet.order for jet in (*self.jets, *(a.jet for a in self.anchors))), default=0)

    @cached_property
    def linear(self) -> bool:
        """Whether it is affine in the fields."""
        return self.expression.linear

    def values(self, function: State, points: Array, normals: Array | None = None) -> Array:
        """The values (M,) at points (M, n), with outward normals (M, n) on sides."""
        value = self.expression.value(*self.inputs(function, points, normals))
        return np.broadcast_to(np.asarray(value, dtype=float), (len(points),))

    def sized_values(self, function: State, points: Array, normals: Array | None = None) -> tuple[Array, Array]:
        """The values (M,), and Σ over the jets of |∂expression/∂jet · jet| if that is larger: where summands cancel,
        rounding is a share of these and not of their sum."""
        known, jets = self.inputs(function, points, normals)
        value, partials = self.expression.linearised(known, jets)
        values = np.broadcast_to(np.asarray(value, dtype=float), (len(points),))
        summands = (np.abs(partial * jets[jet]) for jet, partial in zip(self.expression.jets, partials, strict=True))
        return values, np.maximum(np.abs(values), sum(summands, np.zeros(len(points))))

    def slopes(self, function: State, points: Array, normals: Array | None = None) -> Array:
        """Σ over the jets of |∂expression/∂jet| (M,): how errors of values act, where no derivatives occur."""
        _, partials = self.expression.linearised(*self.inputs(function, points, normals))
        total = np.zeros(len(points))
        for partial in partials:
            total = total + np.abs(partial)
        return total

    def inputs(
        self, function: State, points: Array, normals: Array | None
    ) -> tuple[dict[sympy.Symbol, Array], dict[Jet, Array]]:
        """Values (M,) of coordinates and normals, and of jets, at points (M, n)."""
        words = self.vocabulary
        known = words.at(points, normals)
        jets = jets_of(function, self.fields, points, self.jets) if self.jets else {}
        for anchor in self.anchors:
            own = self._anchored(anchor, function, points)
            for jet in self.expression.jets:
                if jet.field == anchor.name:
                    jets[jet] = own if jet.order == 0 else np.zeros(len(points))
        return known, jets

    def _anchored(self, anchor: AnchoredValue, function: State, points: Array) -> Array:
        point = np.asarray(anchor.point)
        if len(point) == points.shape[1]:
            one = jets_of(function, self.fields, point[None, :], [anchor.jet])[anchor.jet]
            return np.full(len(points), one[0])
        times, back = np.unique(points[:, 0], return_inverse=True)
        rows = np.column_stack([times, np.broadcast_to(point, (len(times), len(point)))])
        return jets_of(function, self.fields, rows, [anchor.jet])[anchor.jet][back]


def read_output(statement: Any, vocabulary: Vocabulary) -> OutputExpression:
    """Text or SymPy as the expression of an output; an equation is left minus right.

    >>> words = Vocabulary(("x", "y"), None, ("p",), {"a": 0.5})
    >>> output = read_output("p(0.15, 0.2) - p(a/2, 0.2)", words)
    >>> [anchor.point for anchor in output.anchors], output.fixed
    ([(0.15, 0.2), (0.25, 0.2)], True)
    """
    if not isinstance(statement, str):
        return OutputExpression(str(statement), read(statement, vocabulary), (), vocabulary, vocabulary.fields)
    left, right = parse(statement)
    anchors: list[AnchoredValue] = []
    left = _replaced(left, statement, vocabulary, anchors)
    right = None if right is None else _replaced(right, statement, vocabulary, anchors)
    words = replace(vocabulary, fields=(*vocabulary.fields, *(anchor.name for anchor in anchors)))
    try:
        expression = compile_expression(build_tree(statement, left, right, words), words)
    except RecursionError:
        raise InputError(f"the expression {statement[:60]!r}… is nested too deeply; write it as several") from None
    return OutputExpression(statement, expression, tuple(anchors), words, vocabulary.fields)


def _replaced(node: Node, text: str, words: Vocabulary, anchors: list[AnchoredValue]) -> Node:
    """The tree with a name in place of every value at a point, which is added to the anchors."""

    def again(part: Node) -> Node:
        return _replaced(part, text, words, anchors)

    match node:
        case Call(name=name, arguments=arguments):
            jet = _jet(name, words)
            if jet is None:
                return replace(node, arguments=tuple(map(again, arguments)))
            anchor = AnchoredValue(f"{ANCHOR}{len(anchors)}", jet, _point(node, text, words))
            anchors.append(anchor)
            return Name(node.column, anchor.name)
        case List(items=items):
            return replace(node, items=tuple(map(again, items)))
        case Negative(operand=operand) | Index(operand=operand):
            return replace(node, operand=again(operand))
        case Binary(left=left, right=right) | Comparison(left=left, right=right):
            return replace(node, left=again(left), right=again(right))
    return node


def _jet(name: str, words: Vocabulary) -> Jet | None:
    """The derivative that ``u`` or ``u_x`` names, if it is one of a field."""
    if name in words.fields:
        return Jet(name, (0,) * len(words.coordinates))
    split = words.subscript(name)
    if split is None or split[0] not in words.fields:
        return None
    return Jet(split[0], tuple(split[1].count(coordinate) for coordinate in words.coordinates))


def _point(node: Call, text: str, words: Vocabulary) -> tuple[float, ...]:
    lengths = {len(words.coordinates), len(words.space)}
    if len(node.arguments) not in lengths:
        wanted = " or ".join(str(n) for n in sorted(lengths))
        fail(text, node.column, f"{node.name}(…) at a point has {wanted} coordinates, not {len(node.arguments)}")
    plain = Vocabulary((), parameters=words.parameters)
    coordinates = []
    for argument in node.arguments:
        value = constant(build_tree(text, argument, None, plain))
        if value is None or not np.isfinite(value):
            fail(text, argument.column, "the coordinates of a point are numbers")
        coordinates.append(float(value))
    return tuple(coordinates)
