"""Sensitivities as fields: how a solution changes with an unknown number is the solution of a linear problem.

With F(u, θ) = 0 for the equations and conditions, s = ∂u/∂θ satisfies F_u(u, θ) s + F_θ(u, θ) = 0. Both together are a
problem like any other, in the fields u and s; every method can solve it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace

import sympy

from rannpde.pde.problem.checks import ConditionWarning
from rannpde.pde.problem.conditions import Data, On, Periodic
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import differentiate
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.vocabulary import Vocabulary


def with_sensitivities(problem: Problem, values: Mapping[str, float]) -> Problem:
    """The problem at these values of its unknown numbers, with ∂u/∂θ of every field as further fields.

    Fields: those of the problem, then for each unknown number all of them again.
    """
    words, taken = problem.vocabulary, set(problem.vocabulary.known())
    slopes = {(name, field): _fresh(f"{field}by{name}", taken) for name in values for field in problem.fields}
    fields = (*problem.fields, *slopes.values())
    numbers = {sympy.Symbol(name, real=True): sympy.Float(value) for name, value in values.items()}
    all_words = Vocabulary(words.coordinates, words.time, fields, functions=words.functions)

    def with_tangents(statement: object) -> list[sympy.Expr]:
        source = read(statement, words).source
        tangents = []
        for name in values:
            table = {words.field_function(f): all_words.field_function(slopes[name, f]) for f in problem.fields}
            tangents.append(tangent(source, table | {sympy.Symbol(name, real=True): sympy.Integer(1)}))
        return [formula.xreplace(numbers) for formula in (source, *tangents)]

    equations: dict[str, sympy.Expr] = {}
    conditions: dict[str, object] = {}
    for label, statement in problem.equations.items():
        for name, formula in zip(("", *values), with_tangents(statement), strict=True):
            equations[f"{label} by {name}" if name else label] = formula
    for label, condition in problem.conditions.items():
        if isinstance(condition, On):
            for name, formula in zip(("", *values), with_tangents(condition.equation), strict=True):
                conditions[f"{label} by {name}" if name else label] = replace(condition, equation=formula)
        elif isinstance(condition, Periodic):
            periodic = None
            if condition.fields is not None:
                periodic = (*condition.fields, *(slopes[n, f] for n in values for f in condition.fields))
            conditions[label] = replace(condition, fields=periodic)
        else:
            assert isinstance(condition, Data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        return Problem(
            equations, problem.domain, conditions,
            functions=problem.functions, fields=fields, incomplete=problem.incomplete,
        )  # fmt: skip


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "0"
    taken.add(name)
    return name


def tangent(node: sympy.Expr, table: Mapping[sympy.Expr, sympy.Expr]) -> sympy.Expr:
    """The derivative of an expression along a change of the nodes in the table; derivatives in space stay as stated.

    >>> x, a = sympy.symbols("x a")
    >>> u, s = sympy.Function("u")(x), sympy.Function("s")(x)
    >>> tangent(a * sympy.Derivative(u**2, x), {u: s, a: sympy.Integer(1)})
    a*Derivative(2*s(x)*u(x), x) + Derivative(u(x)**2, x)
    """
    if node in table:
        return table[node]
    if not node.has(*table):
        return sympy.Integer(0)
    if isinstance(node, sympy.Derivative):
        inner = tangent(node.expr, table)
        return sympy.Derivative(inner, *node.variables, evaluate=False) if inner != 0 else inner
    arguments = [sympy.Dummy(real=True) for _ in node.args]
    shape = node.func(*arguments)
    whole = dict(zip(arguments, node.args, strict=True))
    total = sympy.Integer(0)
    for argument, part in whole.items():
        moved = tangent(part, table)
        if moved != 0:
            total += differentiate(shape, argument).xreplace(whole) * moved
    return total
