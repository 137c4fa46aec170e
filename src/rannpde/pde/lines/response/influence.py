"""How an evolution depends on its unknowns: its formulas with unknown numbers and functions as symbols.

Unknown numbers count as functions of the first coordinate of space that happen to be constant: one way for both, and a
statement is understood once, not at every value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import sympy
from sympy.core.function import AppliedUndef

from rannpde.arrays import Array
from rannpde.pde.lines.evolved import Evolved
from rannpde.pde.lines.galerkin import Galerkin
from rannpde.pde.lines.periodic.spectral import Spectral
from rannpde.pde.lines.products.tensor import Products
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.problem.data import Clock, timed_parts
from rannpde.pde.problem.evolution import Evolution, evolution_form
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.reflections import reflection_parities
from rannpde.pde.problem.unknown import AnyUnknown, UnknownFunction
from rannpde.pde.statement.expression import Jet, differentiate


class UnknownVector(Protocol):
    """What is asked of the unknowns, one vector (p,)."""

    count: int
    slices: dict[str, slice]

    def value(self, jet: Jet, points: Array, vector: Array) -> Array:
        """A derivative of an unknown at points (M, n) of all coordinates: (M,)."""
        ...

    def table(self, jet: Jet, points: Array) -> Array:
        """The same by its part of the vector: (M, size)."""
        ...


@dataclass(frozen=True, eq=False)
class Influence:
    """An evolution whose formulas hold its unknowns as symbols.

    jets : symbol → derivative of an unknown; table : what stood in its place → symbol
    """

    evolution: Evolution
    unknown: Mapping[str, AnyUnknown]
    jets: dict[sympy.Symbol, Jet]
    table: dict[sympy.Expr, sympy.Symbol]

    @classmethod
    def of(cls, problem: Problem, weak: bool) -> Influence:
        """``weak`` : with the divergence form kept, as in ``evolution_form``."""
        evolution = evolution_form(as_functions(problem).at({}), weak=weak)
        names, table, jets = problem.domain.names, {}, {}
        formulas = [part.formula for rate in evolution.rates.values() for part in rate.parts]
        formulas += [term.expression.formula for term in evolution.problem.constraints]
        for node in {n for f in formulas for n in f.atoms(AppliedUndef, sympy.Derivative)}:
            call = node.expr if isinstance(node, sympy.Derivative) else node
            if isinstance(call, AppliedUndef) and call.func.__name__ in problem.unknown:
                counts = {str(v): int(n) for v, n in node.variable_count} if call is not node else {}
                symbol = table[node] = sympy.Dummy(call.func.__name__, real=True)
                jets[symbol] = Jet(call.func.__name__, tuple(counts.get(name, 0) for name in names))
        return cls(evolution, problem.unknown, jets, table)

    def slopes(self, formula: sympy.Expr) -> dict[sympy.Symbol, sympy.Expr]:
        """Symbol of an unknown → ∂formula/∂symbol, those that are not 0."""
        plain = formula.xreplace(self.table)
        found = {symbol: differentiate(plain, symbol) for symbol in self.jets if symbol in plain.free_symbols}
        return {symbol: slope for symbol, slope in found.items() if slope != 0}

    @cached_property
    def bends_boundary(self) -> bool:
        """Whether an unknown is a coefficient of a boundary condition, so that the functions of space follow it."""
        terms = [term for name in self.evolution.orders for term in self.evolution.boundary(name)]
        return any(self.slopes(partial) for term in terms for partial in term.expression.partials)

    @cached_property
    def moves_boundary(self) -> bool:
        """Whether boundary values change with an unknown."""
        terms = [term for name in self.evolution.orders for term in self.evolution.boundary(name)]
        return any(self.slopes(term.expression.formula) for term in terms)

    @cached_property
    def timely(self) -> bool:
        """Whether an unknown is a function of time, which the tables at the nodes do not follow."""
        return any(isinstance(one, UnknownFunction) and "t" in one.of for one in self.unknown.values())

    @cached_property
    def clock(self) -> Clock | None:
        """Of the data that change in time, the same for all marches; None where an unknown changes them."""
        calls = {call for part in timed_parts(self.evolution) for call in part.atoms(AppliedUndef)}
        if any(call.func.__name__ in self.unknown for call in calls):
            return None
        return Clock.of(self.evolution, LinesTuning().steps.lengths_per_step)

    def fits(self, solution: Evolved) -> bool:
        """Whether the sensitivities of this march can be had: one set of functions of space, which stays."""
        system = solution.stretches[-1].system
        fixed = solution.evolution.constraints or solution.evolution.walls is not None  # fields without a rate
        if fixed or self.bends_boundary or self.timely or not solution.whole:
            return False
        if isinstance(system, Spectral):  # walls may be mirrors at some values of the unknowns and not at others
            parities = system.evolution.parities
            return not system.modes.parities or reflection_parities(self.evolution, self.table) == parities
        kind = isinstance(system, Galerkin) or (isinstance(system, Products) and not self.moves_boundary)
        return kind and len(solution.stretches) == 1


def as_functions(problem: Problem) -> Problem:
    """The same with every unknown number as a function of the first coordinate of space."""
    first = problem.domain.names[1]
    unknown = {
        name: one if isinstance(one, UnknownFunction) else UnknownFunction((first,), guess=repr(float(one.guess)))
        for name, one in problem.unknown.items()
    }
    return replace(problem, unknown=unknown)


def functions_march(problem: Problem) -> bool:
    """Whether a problem with unknown functions can be fitted by marches: it evolves, and only its equations and initial
    values hold them, at all times the same.
    """
    if problem.obstacles:
        return False
    influence = Influence.of(problem, weak=True)
    outside = influence.timely or influence.bends_boundary or influence.moves_boundary
    return not (outside or influence.evolution.constraints)


def weak_form(solution: Evolved) -> bool:
    """Whether a march kept the divergence form."""
    system = solution.stretches[-1].system
    return isinstance(system, Spectral) or system.evolution.weak
