"""Manufactured problems: subtract from an equation what a chosen function leaves, and that function solves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import sympy

from rannpde.pde.statement.build import build
from rannpde.pde.statement.expansion import expand
from rannpde.pde.statement.vocabulary import Vocabulary


def forced(equation: str, exact: Mapping[str, str], vocabulary: Vocabulary) -> sympy.Expr:
    """The equation with a force such that the formulas of ``exact`` (field → text) solve it.

    >>> words = Vocabulary(("x",), None, ("u",))
    >>> forced("u_xx + u", {"u": "x**2"}, words)
    -x**2 + u(x) + Derivative(u(x), (x, 2)) - 2
    """
    statement = build(equation, vocabulary)
    plain = replace(vocabulary, fields=())
    table = {vocabulary.field_function(name): build(text, plain) for name, text in exact.items()}
    return statement - expand(statement.subs(table).doit())
