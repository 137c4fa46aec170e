"""What is continuous across an interface where fluxes jump: fields, and fluxes along the normal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.pde.cells.ties import Traces
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import Expression, evaluate
from rannpde.pde.statement.interfaces import on_side


class Fluxes:
    """The equations of a problem whose fluxes jump.

    >>> from rannpde.domains import Interval
    >>> from rannpde.pde.problem.conditions import On
    >>> ends = {"ends": On("boundary", "u = 0")}
    >>> problem = Problem("d(where(x < 0.3, 1, 5)*u_x, x) = 1", Interval(0, 1), ends)
    >>> found = Fluxes(problem)
    >>> found.beside, [found.term(0, np.array([[x]])).expression.formula for x in (0.2, 0.4)]
    ([(0, 0)], [normal x*u_x, 5*normal x*u_x])
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.expressions = {name: e.flux for name, e in problem.expressions.items() if e.flux is not None}
        self._known: dict[tuple[int, sympy.Expr], Term] = {}

    def __len__(self) -> int:
        return len(self.expressions)

    @cached_property
    def beside(self) -> Traces:
        """The fields and orders that are continuous beside the fluxes.

        A field whose derivatives are in such a flux is; one that is in it by its value alone, as a pressure, is not; of
        others all derivatives below the order of the equations are.
        """
        found: list[tuple[int, int]] = []
        jets = {jet for flux in self.expressions.values() for jet in flux.jets}
        for number, name in enumerate(self.problem.fields):
            orders = {jet.order for jet in jets if jet.field == name}
            order = self.problem.order(name)
            if 1 in orders:
                found.append((number, 0))
            elif not orders or order > 1:
                found += [(number, k) for k in range(max(1, order))]
        return found

    def term(self, number: int, points: Array) -> Term:
        """The flux of a jumping equation as it is on the side of interfaces on which points (M, n) lie."""
        name, flux = list(self.expressions.items())[number]
        formula = on_side(flux.formula, self._positive(flux, points))
        if (number, formula) not in self._known:
            used = {symbol: jet for symbol, jet in flux.symbols.items() if symbol in formula.free_symbols}
            expression = replace(flux, formula=formula, symbols=used)
            self._known[number, formula] = Term(f"flux of {name}", "flux", expression, None)
        return self._known[number, formula]

    def _positive(self, flux: Expression, points: Array) -> Callable[[sympy.Expr], bool | None]:
        symbols = self.problem.vocabulary.symbols
        known = dict(zip(symbols, points.T, strict=True))

        def positive(place: sympy.Expr) -> bool | None:
            if not place.free_symbols <= set(symbols):
                return None
            return bool(np.mean(evaluate([place], known, flux.functions)[0] > 0) > 0.5)

        return positive
