"""What an equation says: exact expansion, the derivatives it needs, its linearisation, its divergence form.

An expression in fields becomes a formula in *jets*, symbols for the derivatives ∂^α u of the fields. Its partial
derivatives by the jets are the exact linearisation that Gauss–Newton needs,

    F'(u) w = Σ_jets ∂F/∂(∂^α u) · ∂^α w .
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import sympy
from sympy.core.function import AppliedUndef

from rannpde.errors import InputError, suggestion
from rannpde.pde.statement.evaluate import evaluate
from rannpde.pde.statement.grammar import Call, Name, Node, StatementError, children, fail, names, parse
from rannpde.pde.statement.vocabulary import CONSTANTS, FUNCTIONS, OPERATORS, Vocabulary, build, coordinate_symbol

Array = np.ndarray
MultiIndex = tuple[int, ...]
SIZE_LIMIT = 2000
"""Nodes that one differentiation may produce: a page of formula; more is a mistake or an attack."""


@dataclass(frozen=True)
class Jet:
    """The derivative ∂^index of a field."""

    field: str
    index: MultiIndex

    @property
    def order(self) -> int:
        return sum(self.index)


@dataclass(frozen=True)
class Expression:
    """A scalar expression of coordinates and jets, with its exact partial derivatives by the jets.

    source : the SymPy expression as stated, derivatives of products and powers unevaluated
    formula : the same, expanded, in jet symbols
    """

    source: sympy.Expr
    formula: sympy.Expr
    symbols: Mapping[sympy.Symbol, Jet]
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict, repr=False)

    @property
    def jets(self) -> tuple[Jet, ...]:
        return tuple(self.symbols.values())

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(sorted({jet.field for jet in self.jets}))

    @cached_property
    def partials(self) -> tuple[sympy.Expr, ...]:
        """∂formula/∂jet, in the order of ``jets``."""
        return tuple(sympy.diff(self.formula, symbol) for symbol in self.symbols)

    @cached_property
    def linear(self) -> bool:
        """Whether the expression is affine in the fields, so that one solve suffices."""
        return not any(partial.free_symbols & set(self.symbols) for partial in self.partials)

    def order(self, name: str, axis: int | None = None) -> int:
        """The highest derivative of that field, in all coordinates or in one; -1 when the field does not occur."""
        orders = [jet.order if axis is None else jet.index[axis] for jet in self.jets if jet.field == name]
        return max(orders, default=-1)

    def value(self, known: Mapping[sympy.Symbol, Array], jets: Mapping[Jet, Array]) -> Array:
        """The residual (M,) at coordinate values and jet values (M,)."""
        return evaluate([self.formula], self._values(known, jets), self.functions)[0]

    def linearised(self, known: Mapping[sympy.Symbol, Array], jets: Mapping[Jet, Array]) -> tuple[Array, list[Array]]:
        """The residual and its coefficients ∂F/∂jet, each (M,) or a scalar where it is constant."""
        value, *partials = evaluate([self.formula, *self.partials], self._values(known, jets), self.functions)
        return value, partials

    def _values(self, known: Mapping[sympy.Symbol, Array], jets: Mapping[Jet, Array]) -> dict[sympy.Symbol, Array]:
        return dict(known) | {symbol: jets[jet] for symbol, jet in self.symbols.items()}


def compile_expression(source: sympy.Expr, vocabulary: Vocabulary) -> Expression:
    """Expand derivatives and name the jets."""
    expanded = expand(source)
    jets: dict[sympy.Expr, sympy.Symbol] = {}
    symbols: dict[sympy.Symbol, Jet] = {}
    for node in sorted(_field_nodes(expanded, vocabulary), key=str):
        jet = _jet(node, vocabulary)
        symbol = sympy.Symbol(jet_name(jet, vocabulary.coordinates), real=True)
        jets[node], symbols[symbol] = symbol, jet
    formula = _replace(expanded, jets)
    for left in formula.atoms(sympy.Derivative, sympy.Subs):
        function = vocabulary.functions.get(getattr(left.expr, "func", type(left)).__name__)
        if hasattr(function, "derivative") and isinstance(left, sympy.Derivative):
            continue
        raise StatementError(
            f"{left} cannot be computed: your function needs derivative(orders, *arrays), see PointFunction"
        )
    used = {symbol: jet for symbol, jet in symbols.items() if symbol in formula.free_symbols}
    return Expression(source, formula, used, vocabulary.functions)


def jet_name(jet: Jet, coordinates: Iterable[str]) -> str:
    """``u_xx`` for Jet("u", (0, 2))."""
    letters = "".join(name * order for name, order in zip(coordinates, jet.index, strict=True))
    return jet.field + ("_" + letters if letters else "")


def expand(source: sympy.Expr) -> sympy.Expr:
    """Carry out every derivative of an expression, inside first, refusing formulas that would explode."""
    if not source.has(sympy.Derivative):
        return source
    if isinstance(source, sympy.Derivative):
        inner = expand(source.expr)
        for variable in source.variables:
            if _derivative_size(inner) > SIZE_LIMIT:
                raise StatementError(
                    f"the derivative of an expression in {variable} has more than {SIZE_LIMIT} terms; refused"
                )
            inner = sympy.diff(inner, variable)
        return inner
    return source.func(*[expand(below) for below in source.args])


def _derivative_size(node: sympy.Expr) -> int:
    """About the number of nodes of the derivative, before it is computed: a product of n factors gives n products."""
    if not node.args or isinstance(node, (AppliedUndef, sympy.Derivative)):
        return 1
    below = sum(_derivative_size(part) for part in node.args)
    return below + (len(node.args) * _size(node) if not node.is_Add else 0)


def _size(node: sympy.Expr) -> int:
    return 1 + sum(_size(part) for part in node.args)


def _field_nodes(expression: sympy.Expr, vocabulary: Vocabulary) -> set[sympy.Expr]:
    known = {vocabulary.field_function(name) for name in vocabulary.fields}
    found = {node for node in expression.atoms(AppliedUndef) if node in known}
    return found | {node for node in expression.atoms(sympy.Derivative) if node.expr in known}


def _jet(node: sympy.Expr, vocabulary: Vocabulary) -> Jet:
    orders = dict.fromkeys(vocabulary.symbols, 0)
    if isinstance(node, sympy.Derivative):
        for variable, count in node.variable_count:
            orders[variable] += int(count)
        node = node.expr
    return Jet(node.func.__name__, tuple(orders.values()))


def _replace(expression: sympy.Expr, table: Mapping[sympy.Expr, sympy.Symbol]) -> sympy.Expr:
    """Derivatives as whole nodes first: xreplace would otherwise reach the function inside them."""
    derivatives = {node: symbol for node, symbol in table.items() if isinstance(node, sympy.Derivative)}
    plain = {node: symbol for node, symbol in table.items() if node not in derivatives}
    return expression.xreplace(derivatives).xreplace(plain)


# ------------------------------------------------------------------------------------------ reading statements


def read(statement: str | sympy.Expr, vocabulary: Vocabulary) -> Expression:
    """Text or SymPy (an expression, or Eq) as a compiled expression that must vanish."""
    source = build(statement, vocabulary) if isinstance(statement, str) else adopt(statement, vocabulary)
    return compile_expression(source, vocabulary)


def adopt(statement: Any, vocabulary: Vocabulary) -> sympy.Expr:
    """A user's own SymPy expression, its symbols and functions matched to ours by name."""
    if isinstance(statement, sympy.Equality):
        statement = statement.lhs - statement.rhs
    if not isinstance(statement, sympy.Expr):
        raise InputError(
            f"an equation is a {type(statement).__name__}, but must be text, a SymPy expression or sympy.Eq"
        )
    table: dict[sympy.Basic, sympy.Basic] = {}
    for node in statement.atoms(AppliedUndef):
        name = node.func.__name__
        if name in vocabulary.fields:
            table[node] = vocabulary.field_function(name)
        elif name not in vocabulary.functions:
            raise StatementError(f"the function {name!r} is unknown; {suggestion(name, vocabulary.known())}")
    for symbol in statement.free_symbols:
        if symbol.name in vocabulary.coordinates:
            table[symbol] = coordinate_symbol(symbol.name)
        elif symbol.name in vocabulary.parameters:
            table[symbol] = sympy.sympify(vocabulary.parameters[symbol.name])  # a number, never text
        else:
            raise StatementError(
                f"the symbol {symbol.name!r} is unknown; {suggestion(symbol.name, vocabulary.known())}"
            )
    return statement.xreplace({k: v for k, v in table.items() if k.is_Symbol}).xreplace(
        {k.xreplace({s: r for s, r in table.items() if s.is_Symbol}): v for k, v in table.items() if not k.is_Symbol}
    )


def infer_fields(statements: Iterable[str | sympy.Expr], vocabulary: Vocabulary) -> tuple[str, ...]:
    """The unknown functions: names that occur with a subscript derivative, or under d, grad, div, laplace.

    >>> infer_fields(["u_t = nu*u_xx"], Vocabulary(("t", "x"), "t", parameters={"nu": 1.0}))
    ('u',)
    """
    found: list[str] = []
    for statement in statements:
        if isinstance(statement, str):
            for side in parse(statement):
                if side is not None:
                    found += _fields_in(side, vocabulary, statement)
        elif isinstance(statement, sympy.Basic):
            names = sorted(node.func.__name__ for node in statement.atoms(AppliedUndef))
            found += [name for name in names if name not in vocabulary.functions]
    return tuple(dict.fromkeys(found))


def _fields_in(tree: Node, vocabulary: Vocabulary, text: str) -> list[str]:
    taken = {*vocabulary.coordinates, *vocabulary.parameters, *CONSTANTS}
    found: list[tuple[int, str]] = []
    for name in names(tree):
        split = vocabulary.subscript(name.text)
        if name.text not in taken and split is not None:
            if split[0] in {*taken, *FUNCTIONS, *OPERATORS, *vocabulary.functions}:
                fail(text, name.column, f"{name.text} is a derivative of {split[0]}, which is not a field")
            found.append((name.column, split[0]))
    stack: list[Node] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, Call) and node.name in ("d", "grad", "div", "laplace"):
            inner = node.arguments[:1] if node.name == "d" else node.arguments
            below = [name for part in inner for name in names(part) if isinstance(name, Name)]
            found += [(n.column, n.text) for n in below if n.text not in taken and vocabulary.subscript(n.text) is None]
        stack.extend(children(node))
    return [name for _, name in sorted(found)]


# -------------------------------------------------------------------------------------------- divergence form


@dataclass(frozen=True)
class DivergenceForm:
    """residual = source + Σ_x ∂_x flux[x]: what a weak (Galerkin) formulation integrates by parts.

    source holds the terms that are no derivatives in space of an expression; flux is keyed by coordinate.
    """

    source: Expression
    flux: Mapping[str, Expression]


def divergence_form(expression: Expression, vocabulary: Vocabulary) -> DivergenceForm:
    """Split a statement where it has divergence form: c · ∂_x(…) with a constant c goes to the flux in x.

    >>> words = Vocabulary(("t", "x"), "t", ("u",))
    >>> form = divergence_form(read("u_t = laplace(u**2)", words), words)
    >>> form.source.formula, form.flux["x"].formula
    (u_t, -2*u*u_x)
    """
    space = {coordinate_symbol(name): name for name in vocabulary.space}
    source, flux = sympy.Integer(0), dict.fromkeys(vocabulary.space, sympy.Integer(0))
    for term in sympy.Add.make_args(sympy.expand_mul(expression.source, deep=False)):
        constant, rest = term.as_coeff_Mul()
        variable = next((v for v in reversed(getattr(rest, "variables", ())) if v in space), None)
        if variable is None:
            source += term
            continue
        left = list(rest.variables)
        left.remove(variable)
        flux[space[variable]] += constant * (sympy.Derivative(rest.expr, *left, evaluate=False) if left else rest.expr)
    parts = {name: compile_expression(part, vocabulary) for name, part in flux.items() if part != 0}
    return DivergenceForm(compile_expression(source, vocabulary), parts)
