"""What is continuous across an interface where fluxes jump: fields, and fluxes along the normal."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
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

ALIKE = 2.0
"""Diffusion of two cells that are joined differs by less unless it jumps between them."""


def strengths(
    diffusion: Mapping[int, float], pairs: Iterable[tuple[int, int]], held: Container[int]
) -> dict[int, float]:
    """Cell → its diffusion times the resistance between it and a cell where values are given, at least 1.

    What an equation lacks in a region of strong diffusion that only weak ones join to the boundary flows through these,
    and does there so many times the harm. The resistance of a way is that of the weakest region on it.

    diffusion : by cell; pairs : of cells that are joined; held : cells in which values are given

    >>> strengths({0: 1.0, 1: 1.0, 2: 500.0, 3: 0.1}, [(0, 1), (1, 2), (1, 3)], {0})
    {0: 1.0, 1: 1.0, 2: 500.0, 3: 1.0}
    """
    apart, home = [], {cell: cell for cell in diffusion}

    def root(cell: int) -> int:
        while home[cell] != cell:
            cell = home[cell]
        return cell

    for one, other in pairs:
        ratio = diffusion[one] / max(diffusion[other], 1e-300)
        if 1 / ALIKE < ratio < ALIKE:
            home[root(one)] = root(other)
        else:
            apart.append((one, other))
    regions: dict[int, list[int]] = {}
    for cell in diffusion:
        regions.setdefault(root(cell), []).append(cell)
    resistance = {key: 0.0 if any(cell in held for cell in cells) else np.inf for key, cells in regions.items()}
    if np.isinf(list(resistance.values())).all():
        resistance[max(regions, key=lambda key: len(regions[key]))] = 0.0
    own = {key: 1 / max(float(np.mean([diffusion[cell] for cell in cells])), 1e-300) for key, cells in regions.items()}
    for _ in regions:
        for one, other in [*apart, *(pair[::-1] for pair in apart)]:
            here, there = root(one), root(other)
            resistance[here] = min(resistance[here], max(resistance[there], own[there]))
    found = {cell: diffusion[cell] * resistance[root(cell)] for cell in diffusion}
    return {cell: max(1.0, value) if np.isfinite(value) else 1.0 for cell, value in found.items()}


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
