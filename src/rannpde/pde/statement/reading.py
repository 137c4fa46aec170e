"""Statements, text or SymPy, as compiled expressions; their fields; manufactured right-hand sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import sympy
from sympy.core.function import AppliedUndef

from rannpde.errors import InputError
from rannpde.grammar import Call, Name, Node, StatementError, children, fail, parse
from rannpde.grammar import names as tree_names
from rannpde.pde.statement.arithmetic import MAGNITUDE_LIMIT, WORK_LIMIT
from rannpde.pde.statement.build import build
from rannpde.pde.statement.expansion import compile_expression, expand, size
from rannpde.pde.statement.expression import Expression
from rannpde.pde.statement.hints import unknown_function, unknown_name
from rannpde.pde.statement.kinks import own_kinks
from rannpde.pde.statement.vocabulary import (
    CONSTANTS,
    FUNCTIONS,
    INTEGRALS,
    OPERATORS,
    Vocabulary,
    coordinate_symbol,
)

Statement: TypeAlias = "str | sympy.Basic"


def read(statement: Statement, vocabulary: Vocabulary) -> Expression:
    """Text or SymPy (an expression, or Eq) as a compiled expression that must vanish."""
    try:
        source = build(statement, vocabulary) if isinstance(statement, str) else adopt(statement, vocabulary)
        return compile_expression(source, vocabulary)
    except RecursionError:
        raise StatementError("a statement is nested too deeply to be read; write it as a system") from None


def adopt(statement: Statement, vocabulary: Vocabulary) -> sympy.Expr:
    """A user's own SymPy expression, its symbols and functions matched to ours by name."""
    if isinstance(statement, sympy.Equality):
        statement = statement.lhs - statement.rhs
    if not isinstance(statement, sympy.Expr):
        kind = type(statement).__name__
        raise InputError(f"an equation must be text, a SymPy expression or sympy.Eq, not {statement!r} ({kind})")
    _check_numbers(statement)
    table: dict[sympy.Basic, sympy.Basic] = {}
    for node in statement.atoms(AppliedUndef):
        name = node.func.__name__
        if name in vocabulary.fields or name in vocabulary.bare:
            table[node] = vocabulary.bare.get(name) or _at_arguments(node, vocabulary)
        elif name not in vocabulary.functions:
            raise StatementError(unknown_function(name, vocabulary))
    for symbol in statement.free_symbols - set(vocabulary.normals):  # those stand in statements of our own making
        if symbol.name in vocabulary.coordinates:
            table[symbol] = coordinate_symbol(symbol.name)
        elif symbol.name in vocabulary.unknown:
            table[symbol] = vocabulary.bare[symbol.name]
        elif symbol.name in vocabulary.parameters:
            table[symbol] = sympy.sympify(vocabulary.parameters[symbol.name])  # a number, never text
        else:
            raise StatementError(unknown_name(symbol.name, vocabulary))
    symbols = {key: value for key, value in table.items() if key.is_Symbol}
    functions = {key.xreplace(symbols): value.xreplace(symbols) for key, value in table.items() if not key.is_Symbol}
    return own_kinks(statement.xreplace(symbols).xreplace(functions))


def _at_arguments(node: AppliedUndef, vocabulary: Vocabulary) -> sympy.Expr:
    """A user's u(x) as our field; u(x - 1), or u(s) in an integral, is that field at other arguments."""
    own = [symbol.name for symbol in node.args if symbol.is_Symbol]
    here = own == list(vocabulary.coordinates) or len(node.args) != len(vocabulary.coordinates)
    function = vocabulary.field_function(node.func.__name__)
    return function if here else function.func(*node.args)


def forced(equation: str, exact: Mapping[str, str], vocabulary: Vocabulary) -> sympy.Expr:
    """Return the equation with a source term such that the formulas of ``exact`` (field → text) solve it.

    >>> words = Vocabulary(("x",), None, ("u",))
    >>> forced("u_xx + u", {"u": "x**2"}, words)
    -x**2 + u(x) + Derivative(u(x), (x, 2)) - 2
    """
    statement = build(equation, vocabulary)
    plain = replace(vocabulary, fields=())
    table = {vocabulary.field_function(name): build(text, plain) for name, text in exact.items()}
    return statement - expand(statement.subs(table).doit())


def _check_numbers(statement: sympy.Expr) -> None:
    """Refuse what text could not state either: formulas beyond the budget, complex numbers and absurdly large ones."""
    if size(statement, WORK_LIMIT) > WORK_LIMIT:
        raise StatementError(f"a SymPy statement has more than {WORK_LIMIT} nodes; refused")
    if statement.has(sympy.I, sympy.zoo, sympy.nan, sympy.oo, -sympy.oo):
        raise StatementError("a SymPy statement holds a complex or undefined number; write real fields")
    for number in statement.atoms(sympy.Number):
        if not abs(number) < MAGNITUDE_LIMIT:
            raise StatementError(f"a SymPy statement holds a number beyond {MAGNITUDE_LIMIT:g}; refused")


def infer_fields(statements: Iterable[Any], vocabulary: Vocabulary, others: Iterable[Any] = ()) -> tuple[str, ...]:
    """The unknown functions: names that occur with a subscript derivative, or under d, grad, div, laplace, or that are
    called in an integral, as u(s), or both called and not, as in u = u(x/2), also in ``others``.

    >>> infer_fields(["u_t = nu*u_xx"], Vocabulary(("t", "x"), "t", parameters={"nu": 1.0}))
    ('u',)
    """
    fields: list[str] = []
    statements = list(statements)
    texts = [parse(one) for one in (*statements, *others) if isinstance(one, str)]
    every = [side for sides in texts for side in sides if side is not None]
    alone = {_stem(name.text, vocabulary) for side in every for name in tree_names(side)}
    for statement in statements:
        if isinstance(statement, str):
            sides = [side for side in parse(statement) if side is not None]
            for side in sides:
                fields += _fields_in(side, alone, vocabulary, statement)
        elif isinstance(statement, sympy.Basic):
            applied = sorted(node.func.__name__ for node in statement.atoms(AppliedUndef))
            fields += [name for name in applied if name not in vocabulary.functions and name not in vocabulary.unknown]
    return tuple(dict.fromkeys(fields))


def _stem(word: str, vocabulary: Vocabulary) -> str:
    """u for u_xx."""
    split = vocabulary.subscript(word)
    return word if split is None else split[0]


def _variables(tree: Node) -> Iterator[Name]:
    """The variables of the integrals in a tree."""
    if isinstance(tree, Call) and tree.name in INTEGRALS:
        yield from (one for one in tree.arguments[1:2] if isinstance(one, Name))
    for below in children(tree):
        yield from _variables(below)


def _fields_in(tree: Node, alone: set[str], vocabulary: Vocabulary, text: str) -> list[str]:
    taken = {*vocabulary.coordinates, *vocabulary.parameters, *CONSTANTS, *vocabulary.bare}
    positions: list[tuple[int, str]] = []
    for name in tree_names(tree):
        split = vocabulary.subscript(name.text)
        if name.text not in taken and split is not None and split[0] not in vocabulary.bare:
            if split[0] in {*taken, *FUNCTIONS, *OPERATORS, *vocabulary.functions}:
                fail(text, name.column, f"{name.text} is a derivative of {split[0]}, which is not a field")
            positions.append((name.column, split[0]))
    known = [*FUNCTIONS, *OPERATORS, *INTEGRALS, *vocabulary.functions]
    bound = {name.text for name in _variables(tree)}
    stack: list[tuple[Node, bool]] = [(tree, False)]
    while stack:
        node, inside = stack.pop()
        if isinstance(node, Call) and node.name not in known:
            stem = _stem(node.name, vocabulary)
            called = inside and len(node.arguments) == len(vocabulary.coordinates)
            if stem in taken or not (called or stem in alone):
                fail(text, node.column, unknown_function(node.name, vocabulary))
            positions.append((node.column, stem))
        if isinstance(node, Call) and node.name in ("d", "grad", "div", "laplace"):
            inner = node.arguments[:1] if node.name == "d" else node.arguments
            below = [name for part in inner for name in tree_names(part) if isinstance(name, Name)]
            positions += [
                (n.column, n.text)
                for n in below
                if n.text not in taken | bound and vocabulary.subscript(n.text) is None
            ]
        inside = inside or (isinstance(node, Call) and node.name in INTEGRALS)
        stack.extend((below, inside) for below in children(node))
    return [name for _, name in sorted(positions)]
