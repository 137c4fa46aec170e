"""One equation of a flow: its constant coefficients, and its terms of lower order."""

from __future__ import annotations

import sympy

from rannpde.pde.flow.form import NoFlow
from rannpde.pde.flow.scalars import AXES
from rannpde.pde.statement.expression import Expression, Jet


def constant_coefficient(name: str, partial: sympy.Expr, what: str) -> float:
    """A coefficient that is a number."""
    if partial.free_symbols or partial.atoms(sympy.Function):
        raise NoFlow(f"{what} of equation {name!r} is not constant")
    return float(partial)


def lower_order(
    expression: Expression, factor: float, component: int, velocity: tuple[str, str], pressure: str
) -> Expression:
    """All but second derivatives and the pressure, times a factor, with one derivative of the divergence replaced."""
    gone = {s: sympy.Integer(0) for s, jet in expression.symbols.items() if jet.order == 2 or jet.field == pressure}
    symbols = {s: jet for s, jet in expression.symbols.items() if s not in gone}
    formula = factor * expression.formula.xreplace(gone)
    formula, symbols = _without_divergence(formula, symbols, component, velocity)
    return Expression(expression.source, sympy.expand(formula), symbols, expression.functions)


def _without_divergence(
    formula: sympy.Expr, symbols: dict[sympy.Symbol, Jet], component: int, velocity: tuple[str, str]
) -> tuple[sympy.Expr, dict[sympy.Symbol, Jet]]:
    """The formula in which ∇·u = 0 replaces the derivative of the other component by that of this one."""
    jets = {jet: symbol for symbol, jet in symbols.items()}
    mine = Jet(velocity[component], AXES[component])
    others = Jet(velocity[1 - component], AXES[1 - component])
    if others not in jets:
        return formula, symbols
    own = jets.get(mine, sympy.Dummy("slope", real=True))
    formula = formula.xreplace({jets[others]: -own})
    return formula, {s: jet for s, jet in symbols.items() if jet != others} | {own: mine}
