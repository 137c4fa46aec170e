"""Values of fields elsewhere: u(t - 1/2), and integrals of fields, ∫ k(x, s) u(s) ds.

Where an expression holds such a functional, compiling it replaces it by a function of the coordinates, whose jet is
a symbol of the formula like all others. The exact linearisation is therefore the chain rule: ∂F/∂functional times the
linearisation of the functional, which is linear in the values of fields for ``FieldValue``, and for
``DefiniteIntegral`` the integral of the linearised integrand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import lcm
from typing import Any

import sympy
from sympy.core.function import AppliedUndef

from rannpde.arrays import MultiIndex
from rannpde.grammar import StatementError
from rannpde.pde.statement.expression import Expression, Functional
from rannpde.pde.statement.kinks import Absolute, kink_levels, own_kinks, shown
from rannpde.pde.statement.vocabulary import Vocabulary

FUNCTIONAL = "functional_"
"""What the names of functionals begin with, inside compiled expressions."""
MOST_GRADED = 6
"""Largest power by which nodes crowd at the singular end of a kernel: beyond, the distance from it cancels."""

Compiler = Callable[[sympy.Expr, Vocabulary], Expression]


@dataclass(frozen=True)
class FieldValue:
    """∂^index of a field at the point with these coordinates, formulas in the coordinates and variables around it."""

    field: str
    index: MultiIndex
    arguments: tuple[sympy.Expr, ...]
    text: str

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.field,)


@dataclass(frozen=True)
class DefiniteIntegral:
    """∫ integrand d variable from lower to upper, which are formulas in the coordinates and variables around it."""

    variable: sympy.Symbol
    lower: sympy.Expr
    upper: sympy.Expr
    integrand: Expression
    text: str

    @property
    def fields(self) -> tuple[str, ...]:
        return self.integrand.fields

    @cached_property
    def depends(self) -> frozenset[sympy.Symbol]:
        """The coordinates, and variables of integrals around it, that the value depends on."""
        symbols = set(self.integrand.formula.free_symbols) - set(self.integrand.symbols)
        for one in self.integrand.functionals.values():
            if isinstance(one, FieldValue):
                symbols = symbols.union(*(argument.free_symbols for argument in one.arguments))
            elif isinstance(one, DefiniteIntegral):
                symbols |= one.depends
        return frozenset(symbols - {self.variable} | self.lower.free_symbols | self.upper.free_symbols)

    @cached_property
    def grading(self) -> int:
        """The power of a variable in which roots of a kernel such as 1/sqrt(x - s) are polynomials; 1 without any."""
        return common_power(power for _, power, _ in root_levels(self.integrand.formula, self.variable))

    @cached_property
    def exponent(self) -> float:
        """The lowest power of the distance from its singularities by which the kernel behaves there, 0 if bounded."""
        return min((power for _, _, power in root_levels(self.integrand.formula, self.variable)), default=0.0)

    @cached_property
    def field_grading(self) -> int:
        """The power of a variable in which fields are smooth, or nearly, at fixed limits of the integral.

        Where the kernel is singular at a limit (Abel), fields are sums of powers of that root. Where it is singular
        inside, what comes from elsewhere is a power series in x, and where powers meet there are logarithms: x log x.
        The highest power that contains the root makes these as smooth as can be.
        """
        if set(self.singularities) <= {self.lower, self.upper}:
            return self.grading
        return self.grading * (MOST_GRADED // self.grading)

    def breaks(self, edges: tuple[tuple[float, ...], ...]) -> Iterator[sympy.Expr]:
        """Formulas of values of the variable at which the integrand is not smooth, as far as they can be solved for.

        edges : for each coordinate, where fields are not smooth
        """
        levels = list(kink_levels(self.integrand.formula))
        for one in self.integrand.functionals.values():
            if isinstance(one, FieldValue):
                own = zip(one.arguments, edges, strict=True)
                levels += [argument - edge for argument, ends in own for edge in ends]
        yield from self._solved(levels)

    @cached_property
    def singularities(self) -> tuple[sympy.Expr, ...]:
        """Formulas of values of the variable at which a root or logarithm of the kernel vanishes."""
        return tuple(self._solved(level for level, _, _ in root_levels(self.integrand.formula, self.variable)))

    def _solved(self, levels: Iterable[sympy.Expr]) -> Iterator[sympy.Expr]:
        for level in levels:
            slope = sympy.diff(level, self.variable) if level.has(self.variable) else sympy.Integer(0)
            if slope != 0 and not slope.has(self.variable):  # for others, the difference of two rules gives the error
                yield -level.xreplace({self.variable: sympy.Integer(0)}) / slope


def root_levels(formula: sympy.Expr, variable: sympy.Symbol) -> Iterator[tuple[sympy.Expr, int, float]]:
    """Formulas that vanish where roots and logarithms are not smooth, the power of z that makes them so, the exponent.

    >>> x = sympy.Symbol("x", real=True)
    >>> list(root_levels((1 - x) ** sympy.Rational(2, 3), x))
    [(1 - x, 3, 0.6666666666666666)]
    """
    for node in sympy.preorder_traversal(formula):
        if not node.has(variable):
            continue
        if node.is_Pow and node.exp.is_number and not node.exp.is_integer:
            power = sympy.nsimplify(node.exp, rational=True).limit_denominator(MOST_GRADED).q
            yield _unsigned(node.base), power, float(node.exp)
        elif isinstance(node, sympy.log):
            yield _unsigned(node.args[0]), MOST_GRADED, 0.0


def _unsigned(formula: sympy.Expr) -> sympy.Expr:
    return formula.args[0] if isinstance(formula, Absolute) else formula


def common_power(powers: Iterable[int]) -> int:
    """The least power of z that serves all, as far as it is not too large."""
    return min(lcm(*powers), MOST_GRADED)


def with_functionals(source: sympy.Expr, vocabulary: Vocabulary, compiler: Compiler) -> Expression | None:
    """The compiled expression of a source that holds functionals; None where it holds none.

    >>> from rannpde.pde.statement.reading import read
    >>> words = Vocabulary(("x",), None, ("u",))
    >>> stated = read("u = 1 + integral(x*s*u(s), s, 0, 1)", words)
    >>> stated.formula, len(stated.functionals)
    (-functional_1 + u - 1, 1)
    """
    nodes = list(dict.fromkeys(_outermost(source, vocabulary)))
    if not nodes:
        return None
    return _compiled(source, nodes, vocabulary, vocabulary, compiler)


def _compiled(
    source: sympy.Expr, nodes: list[sympy.Expr], vocabulary: Vocabulary, words: Vocabulary, compiler: Compiler
) -> Expression:
    """Compile with functions of the coordinates instead of the nodes; ``words`` are those of the rest."""
    names = {node: f"{FUNCTIONAL}{number}" for number, node in enumerate(nodes, start=1)}
    own = replace(words, unknown={**words.unknown, **dict.fromkeys(names.values(), words.coordinates)})
    functions = {node: own.field_function(name) for node, name in names.items()}
    expression = compiler(source.xreplace(functions), own)
    for jet in expression.jets:
        if jet.order and jet.field in names.values():
            node = next(node for node, name in names.items() if name == jet.field)
            raise StatementError(f"the derivative of {shown(node)} cannot be computed; carry it out in the statement")
    functionals = {name: _functional(node, vocabulary, compiler) for node, name in names.items()}
    return replace(expression, source=source, functionals=functionals)


def _outermost(source: sympy.Expr, vocabulary: Vocabulary, everything: bool = False) -> Iterator[sympy.Expr]:
    """The functionals that are in no other one; ``everything`` counts fields at the point itself as well."""
    walk = sympy.preorder_traversal(source)
    for node in walk:
        if _is_functional(node, vocabulary, everything):
            yield node
            walk.skip()


def _is_functional(node: sympy.Basic, vocabulary: Vocabulary, everything: bool) -> bool:
    if isinstance(node, sympy.Integral):
        return True
    inner = node.expr if isinstance(node, (sympy.Derivative, sympy.Subs)) else node
    inner = inner.expr if isinstance(inner, sympy.Derivative) else inner
    if not isinstance(inner, AppliedUndef) or inner.func.__name__ not in vocabulary.fields:
        return False
    return everything or isinstance(node, sympy.Subs) or inner.args != vocabulary.symbols


def _functional(node: sympy.Expr, vocabulary: Vocabulary, compiler: Compiler) -> Functional:
    if isinstance(node, sympy.Integral):
        return _integral(node, vocabulary, compiler)
    moved: Mapping[sympy.Basic, sympy.Expr] = {}
    if isinstance(node, sympy.Subs):
        moved, node = dict(zip(node.variables, node.point, strict=True)), node.expr
    counts: dict[Any, int] = dict(node.variable_count) if isinstance(node, sympy.Derivative) else {}
    call = node.expr if isinstance(node, sympy.Derivative) else node
    name = call.func.__name__
    if len(call.args) != len(vocabulary.coordinates):
        given = ", ".join(vocabulary.coordinates)
        raise StatementError(f"{shown(call)} has {len(call.args)} argument(s), but {name} is a function of {given}")
    if set(counts) - set(call.args):
        raise StatementError(f"{shown(node)} is no derivative of {name} in one of its own coordinates")
    index = tuple(int(counts.get(argument, 0)) for argument in call.args)
    arguments = tuple(argument.xreplace(moved) for argument in call.args)
    for argument in arguments:
        _refuse_fields(argument, f"the argument {shown(argument)} of {name}", vocabulary)
    return FieldValue(name, index, arguments, str(call.xreplace(moved)))


def _integral(node: sympy.Integral, vocabulary: Vocabulary, compiler: Compiler) -> DefiniteIntegral:
    """One integral; of several at once, the last variable is the outermost, as SymPy has it."""
    integrand, (limits, *others) = node.function, list(reversed(node.limits))
    if others:
        integrand = sympy.Integral(integrand, *reversed(others))
    if len(limits) != 3:
        raise StatementError(f"{shown(node)} has no limits; write integral(expression, variable, from, to)")
    stated, lower, upper = limits
    variable = sympy.Symbol(stated.name, real=True)
    while variable in {*vocabulary.symbols, *lower.free_symbols, *upper.free_symbols, *node.free_symbols}:
        variable = sympy.Symbol(f"{variable.name}'", real=True)  # integrals in x of fields of x
    integrand = own_kinks(integrand.xreplace({stated: variable}))
    for limit in (lower, upper):
        _refuse_fields(limit, f"the limit {shown(limit)} of an integral", vocabulary)
    nodes = list(dict.fromkeys(_outermost(integrand, vocabulary, everything=True)))
    plain = replace(vocabulary, fields=())
    inner = _compiled(integrand, nodes, vocabulary, plain, compiler) if nodes else compiler(integrand, plain)
    text = f"integral({shown(node.function)}, {', '.join(map(str, limits))})"
    return DefiniteIntegral(variable, lower, upper, inner, text)


def _refuse_fields(formula: sympy.Expr, what: str, vocabulary: Vocabulary) -> None:
    fields = {node.func.__name__ for node in formula.atoms(AppliedUndef)} & set(vocabulary.fields)
    if fields or formula.has(sympy.Integral):
        raise StatementError(f"{what} depends on {', '.join(sorted(fields)) or 'an integral'}; state it by coordinates")
