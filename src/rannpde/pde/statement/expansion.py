"""From SymPy to compiled expressions within a budget: expansion, jets, divergence form, small linear systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy
from sympy.core.function import AppliedUndef

from rannpde.grammar import StatementError
from rannpde.pde.statement.expression import INFINITE, Expression, Jet, differentiate, evaluate, jet_name
from rannpde.pde.statement.functionals import with_functionals
from rannpde.pde.statement.kinks import JUMPING, own_kinks, settle, shown
from rannpde.pde.statement.vocabulary import Vocabulary, coordinate_symbol, normal_symbol
from rannpde.rounding import ROUNDED

SIZE_LIMIT = 2000
"""Nodes that one differentiation may produce: a page of formula; more is a mistake or an attack."""
EXPANSION_LIMIT = 10_000
"""Nodes that all differentiations of one statement may produce, about half a second of SymPy's time."""


def compile_expression(source: sympy.Expr, vocabulary: Vocabulary) -> Expression:
    """Expand derivatives and name the jets; StatementError where that explodes, or a derivative does not exist."""
    with_integrals = with_functionals(source, vocabulary, compile_expression)
    if with_integrals is not None:
        return with_integrals
    expansion = _Expansion()
    expanded = expansion.statement(own_kinks(source), sympy.Integer(1))
    if expanded.has(*INFINITE):
        raise StatementError(f"{shown(source)} divides by zero once its derivatives are carried out")
    compiled = _compiled(source, expanded, vocabulary)
    if not expansion.jumps:
        return compiled
    flux = sympy.Add(*[normal_symbol(variable.name) * part for variable, part in expansion.flux.items()])
    jumps = tuple(dict.fromkeys(expansion.jumps))
    return replace(compiled, jumps=jumps, flux=_compiled(flux, flux, vocabulary))


def _compiled(source: sympy.Expr, expanded: sympy.Expr, vocabulary: Vocabulary) -> Expression:
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
    if _derivative_size(formula, set(used)) > EXPANSION_LIMIT:
        raise StatementError(
            f"the linearisation of {shown(source)} has more than {EXPANSION_LIMIT} terms; write it as a system"
        )
    return Expression(source, formula, used, vocabulary.functions)


def expand(source: sympy.Expr) -> sympy.Expr:
    """Carry out every derivative of an expression, inside first, refusing formulas that would explode."""
    return _Expansion().run(own_kinks(source))


class _Expansion:
    """One expansion, with a budget of work."""

    def __init__(self) -> None:
        self.work = 0
        self.jumps: list[sympy.Expr] = []
        self.flux: dict[sympy.Symbol, sympy.Expr] = {}

    def statement(self, source: sympy.Expr, factor: sympy.Expr) -> sympy.Expr:
        """Expand a source that occurs with ``factor`` in the statement: in Σ c ∂_x flux_x the flux may jump, c may
        not."""
        if source.is_Add:
            return sympy.Add(*[self.statement(part, factor) for part in source.args])
        if source.is_Mul:
            parts = [part for part in source.args if part.has(sympy.Derivative)]
            rest = sympy.Mul(*[part for part in source.args if part not in parts])
            if len(parts) == 1 and not rest.has(*JUMPING, AppliedUndef):
                return rest * self.statement(parts[0], factor * rest)
        if not isinstance(source, sympy.Derivative):
            return self.run(source)
        *others, last = source.variables
        inner = self.run(sympy.Derivative(source.expr, *others) if others else source.expr)
        self.flux[last] = self.flux.get(last, sympy.Integer(0)) + factor * inner
        return self.step(inner, last, self.jumps)

    def run(self, source: sympy.Expr) -> sympy.Expr:
        if not source.has(sympy.Derivative):
            return source
        if not isinstance(source, sympy.Derivative):
            return source.func(*[self.run(below) for below in source.args])
        inner = self.run(source.expr)
        for variable in source.variables:
            inner = self.step(inner, variable)
        return inner

    def step(self, inner: sympy.Expr, variable: sympy.Symbol, jumps: list[sympy.Expr] | None = None) -> sympy.Expr:
        more = _derivative_size(inner, {variable})
        self.work += more
        if more > SIZE_LIMIT or self.work > EXPANSION_LIMIT:
            limit = SIZE_LIMIT if more > SIZE_LIMIT else EXPANSION_LIMIT
            raise StatementError(
                f"the derivative of {shown(inner)} in {variable} takes the formula beyond {limit} terms; refused"
            )
        return settle(own_kinks(differentiate(inner, variable)), inner, variable, jumps)


def _derivative_size(node: sympy.Expr, variables: set[sympy.Symbol]) -> int:
    """Estimate the number of nodes of a derivative before it is computed: a product of n factors gives n products."""
    if not node.free_symbols & variables:
        return 0
    if not node.args or isinstance(node, (AppliedUndef, sympy.Derivative)):
        return 1
    moving = [_derivative_size(part, variables) for part in node.args]
    return sum(moving) + (0 if node.is_Add else sum(map(bool, moving)) * size(node))


def size(node: sympy.Basic, limit: int = 10**6) -> int:
    """Nodes of a formula, counted up to the limit."""
    count, stack = 0, [node]
    while stack and count <= limit:
        count += 1
        stack.extend(stack.pop().args)
    return count


def _field_nodes(expression: sympy.Expr, vocabulary: Vocabulary) -> set[sympy.Expr]:
    known = {vocabulary.field_function(name) for name in vocabulary.jet_names}
    nodes = {node for node in expression.atoms(AppliedUndef, sympy.Symbol) if node in known}
    return nodes | {node for node in expression.atoms(sympy.Derivative) if node.expr in known}


def _jet(node: sympy.Expr, vocabulary: Vocabulary) -> Jet:
    orders = dict.fromkeys(vocabulary.symbols, 0)
    if isinstance(node, sympy.Derivative):
        for variable, count in node.variable_count:
            orders[variable] += int(count)
        node = node.expr
    name = node.name if isinstance(node, sympy.Symbol) else node.func.__name__
    return Jet(name, tuple(orders.values()))


def _replace(expression: sympy.Expr, table: Mapping[sympy.Expr, sympy.Symbol]) -> sympy.Expr:
    """Derivatives as whole nodes first: xreplace would otherwise reach the function inside them."""
    derivatives = {node: symbol for node, symbol in table.items() if isinstance(node, sympy.Derivative)}
    plain = {node: symbol for node, symbol in table.items() if node not in derivatives}
    return expression.xreplace(derivatives).xreplace(plain)


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

    >>> from rannpde.pde.statement.reading import read
    >>> words = Vocabulary(("t", "x"), "t", ("u",))
    >>> form = divergence_form(read("u_t = laplace(u**2)", words), words)
    >>> form.source.formula, form.flux["x"].formula
    (u_t, -2*u*u_x)
    """
    space = {coordinate_symbol(name): name for name in vocabulary.space}
    source, flux = sympy.Integer(0), dict.fromkeys(vocabulary.space, sympy.Integer(0))
    for constant, rest in _summands(expression.source, sympy.Integer(1)):
        variable = next((v for v in reversed(getattr(rest, "variables", ())) if v in space), None)
        if variable is None:
            source += constant * rest
            continue
        left = list(rest.variables)
        left.remove(variable)
        flux[space[variable]] += constant * (sympy.Derivative(rest.expr, *left, evaluate=False) if left else rest.expr)
    parts = {name: compile_expression(part, vocabulary) for name, part in flux.items() if part != 0}
    return DivergenceForm(compile_expression(source, vocabulary), parts)


def _summands(node: sympy.Expr, constant: sympy.Expr) -> Iterator[tuple[sympy.Expr, sympy.Expr]]:
    """(c, rest) with Σ c · rest the node: only constants are multiplied into sums (products of sums explode)."""
    if node.is_Add:
        for term in node.args:
            yield from _summands(term, constant)
        return
    number, rest = node.as_independent(*node.free_symbols) if node.is_Mul else (sympy.Integer(1), node)
    if rest.is_Add:
        yield from _summands(rest, constant * number)
    else:
        yield constant * number, rest


# ----------------------------------------------------------------------------------------------- linear systems


def solve_linear(matrix: Sequence[Sequence[sympy.Expr]], right: Sequence[sympy.Expr]) -> list[sympy.Expr] | None:
    """The x with matrix · x = right; None where the matrix is singular, StatementError where the formulas explode.

    By elimination within a budget: SymPy's determinants simplify without an end.

    >>> a, b = sympy.symbols("a b")
    >>> solve_linear([[0, a], [2, 0]], [b, 1])
    [1/2, b/a]
    """
    rows = [[sympy.sympify(entry) for entry in (*row, value)] for row, value in zip(matrix, right, strict=True)]
    count = len(rows)
    for step in range(count):
        best = _pivot([row[step] for row in rows[step:]])
        if best is None:
            return None
        rows[step], rows[step + best] = rows[step + best], rows[step]
        pivot = rows[step]
        for row in rows[:step] + rows[step + 1 :]:
            if row[step] != 0:
                factor = row[step] / pivot[step]
                row[step:] = [
                    sympy.Integer(0),
                    *(a - factor * b for a, b in zip(row[step + 1 :], pivot[step + 1 :], strict=True)),
                ]
        if sum(size(entry, EXPANSION_LIMIT) for row in rows for entry in row) > EXPANSION_LIMIT:
            raise StatementError(
                f"the {count} equations are coupled so that their solution has more than {EXPANSION_LIMIT} terms; "
                "state them solved for one derivative each"
            )
    return [row[-1] / row[step] for step, row in enumerate(rows)]


def _pivot(column: list[sympy.Expr]) -> int | None:
    """Return the position of the pivot: a number if there is one, else the shortest entry that is not identically
    zero."""
    candidates = [(not entry.is_number, size(entry), row) for row, entry in enumerate(column) if not _vanishes(entry)]
    return min(candidates)[2] if candidates else None


def _vanishes(entry: sympy.Expr) -> bool:
    """Return whether an entry is zero, by its value at two random points relative to the size of its summands."""
    if entry == 0 or entry.is_Number:
        return bool(entry == 0)
    names = {node: sympy.Dummy(real=True) for node in entry.atoms(AppliedUndef, sympy.Derivative)}
    plain = entry.xreplace(names)
    rng = np.random.default_rng(0)
    values = {symbol: rng.uniform(0.5, 1.5, 2) for symbol in sorted(plain.free_symbols, key=str)}
    terms = [np.abs(part) for part in evaluate(sympy.Add.make_args(plain), values)]
    total = np.abs(evaluate([plain], values)[0])
    return bool(np.all(total <= ROUNDED * np.sum(np.broadcast_arrays(*terms), axis=0)))
