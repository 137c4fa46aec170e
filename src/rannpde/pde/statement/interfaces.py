"""Zeros of smooth expressions on which formulas of the coordinates jump or have kinks, and the formulas on their
sides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import sympy
from sympy.core.function import AppliedUndef

from rannpde.pde.statement.kinks import JUMPING, Kinked, Where, own_kinks

MOST_BRANCHES = 64
"""Smooth expressions that one condition may amount to; a condition of more is taken as it stands."""


def interface_levels(formulas: Iterable[sympy.Expr], symbols: Iterable[sympy.Symbol]) -> list[sympy.Expr]:
    """Expressions in these symbols alone, on whose zeros the formulas jump or have kinks; each once, whatever its sign.

    >>> from rannpde.pde.statement.kinks import Absolute, Larger
    >>> x, y = sympy.symbols("x y", real=True)
    >>> interface_levels([Where(Larger(Absolute(x), y) - 2, 1, 3) * y], [x, y])
    [x + 2, x - 2, y - 2]
    """
    return smooth_levels((level for formula in formulas for level in _kinks(own_kinks(formula))), symbols)


def smooth_levels(levels: Iterable[sympy.Expr], symbols: Iterable[sympy.Symbol]) -> list[sympy.Expr]:
    """Smooth expressions in these symbols alone that have the zeros of all levels; functions of the user's are none."""
    known = set(symbols)
    smooth_parts: dict[sympy.Expr, None] = {}
    for level in levels:
        for smooth in (factor for branch in branches(level) for factor in _factors(branch)):
            if smooth.free_symbols and smooth.free_symbols <= known and not smooth.has(AppliedUndef):
                smooth_parts[-smooth if smooth.could_extract_minus_sign() else smooth] = None
    return sorted(smooth_parts, key=str)


def _factors(smooth: sympy.Expr) -> Iterator[sympy.Expr]:
    """Expressions that together have the zeros of a product: its factors, of powers the bases.

    >>> x, y = sympy.symbols("x y", real=True)
    >>> list(_factors(3 * sympy.sin(x) ** 2 * y))
    [3, y, sin(x)]
    """
    for factor in sympy.Mul.make_args(smooth):
        positive = factor.is_Pow and factor.exp.is_number and factor.exp.is_positive
        yield factor.base if positive else factor


def _kinks(node: sympy.Expr) -> Iterator[sympy.Expr]:
    """Expressions with kinks of their own, perhaps, on whose zeros the formula is not smooth."""
    if not node.has(Kinked):
        return
    inner = node.args
    if isinstance(node, Kinked):
        yield node.level
        # kinks of a level do not matter where it is not zero
        inner = inner[1:] if isinstance(node, Where) else () if isinstance(node, JUMPING) else inner
    for part in inner:
        if isinstance(part, sympy.Expr):
            yield from _kinks(part)


def branches(expression: sympy.Expr) -> list[sympy.Expr]:
    """Smooth expressions whose zeros hold those of an expression with kinks, and where it jumps."""
    open_: list[sympy.Expr] = [expression]
    expressions: list[sympy.Expr] = []
    while open_ and len(open_) + len(expressions) <= MOST_BRANCHES:
        one = open_.pop()
        kinks = [node for node in sympy.postorder_traversal(one) if isinstance(node, Kinked)]
        if not kinks:
            expressions.append(one)
            continue
        node = kinks[0]  # the innermost: nothing in it has a kink
        if isinstance(node, JUMPING):
            expressions.append(node.level)
        open_ += [one.xreplace({node: choice}) for choice in node.sides]
    return [expression] if open_ else expressions


def on_side(formula: sympy.Expr, positive: Callable[[sympy.Expr], bool | None]) -> sympy.Expr:
    """The formula without those kinks whose level has a known sign; ``positive`` gives it, or None.

    >>> from rannpde.pde.statement.kinks import Absolute
    >>> x, u = sympy.symbols("x u", real=True)
    >>> on_side(Where(x - 1, 2, 3) * Absolute(u), lambda level: True if level.has(x) else None)
    2*abs(u)
    """
    if not formula.has(Kinked):
        return formula
    if isinstance(formula, Kinked):
        sign = positive(formula.level)
        if sign is not None:
            return on_side(formula.sides[0 if sign else 1], positive)
    return formula.func(*[on_side(part, positive) if isinstance(part, sympy.Expr) else part for part in formula.args])
