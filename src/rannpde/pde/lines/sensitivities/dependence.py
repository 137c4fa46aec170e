"""Parametric dependence of an evolution: its formulas with unknown numbers and functions as symbols.

Unknown numbers are treated as functions of the first coordinate of space that happen to be constant, so that both have
the same code, and a statement is analysed once, not at every value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import sympy
from sympy.core.function import AppliedUndef

from rannpde.pde.lines.fourier.system import FourierSystem
from rannpde.pde.lines.settings import data_step_limit
from rannpde.pde.lines.solution import SpaceTimeSolution
from rannpde.pde.problem.data import timed_parts
from rannpde.pde.problem.evolution import Evolution, evolution_form
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.reflections import reflection_parities
from rannpde.pde.problem.step_limit import StepLimit
from rannpde.pde.problem.unknown import AnyUnknown, UnknownFunction
from rannpde.pde.statement.expression import Jet, differentiate


@dataclass(frozen=True, eq=False)
class ParametricDependence:
    """An evolution whose formulas hold its unknowns as symbols.

    weak : whether the divergence form is kept; jets : symbol → derivative of an unknown; table : the expression that
        it replaces → symbol
    """

    evolution: Evolution
    weak: bool
    unknown: Mapping[str, AnyUnknown]
    jets: dict[sympy.Symbol, Jet]
    table: dict[sympy.Expr, sympy.Symbol]

    @classmethod
    def of(cls, problem: Problem, weak: bool) -> ParametricDependence:
        """The dependence of a problem; weak : whether the divergence form is kept, as in ``evolution_form``."""
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
        return cls(evolution, weak, problem.unknown, jets, table)

    def slopes(self, formula: sympy.Expr) -> dict[sympy.Symbol, sympy.Expr]:
        """Symbol of an unknown → ∂formula/∂symbol, those that are not 0."""
        plain = formula.xreplace(self.table)
        slopes = {symbol: differentiate(plain, symbol) for symbol in self.jets if symbol in plain.free_symbols}
        return {symbol: slope for symbol, slope in slopes.items() if slope != 0}

    @cached_property
    def changes_boundary_operator(self) -> bool:
        """Whether an unknown is a coefficient of a boundary condition, so that the basis in space depends on it."""
        terms = [term for name in self.evolution.orders for term in self.evolution.boundary(name)]
        return any(self.slopes(partial) for term in terms for partial in term.expression.partials)

    @cached_property
    def changes_boundary_values(self) -> bool:
        """Whether boundary values change with an unknown."""
        terms = [term for name in self.evolution.orders for term in self.evolution.boundary(name)]
        return any(self.slopes(term.expression.formula) for term in terms)

    @cached_property
    def depends_on_time(self) -> bool:
        """Whether an unknown is a function of time, for which the tables at the nodes are not made."""
        return any(isinstance(one, UnknownFunction) and "t" in one.of for one in self.unknown.values())

    def step_limit(self, tol: float) -> StepLimit | None:
        """The longest steps for the data, the same for all values of the unknowns; None where they depend on them."""
        calls = {call for part in timed_parts(self.evolution) for call in part.atoms(AppliedUndef)}
        if any(call.func.__name__ in self.unknown for call in calls):
            return None
        return data_step_limit(self.evolution, tol)

    def fits(self, solution: SpaceTimeSolution) -> bool:
        """Whether sensitivities of this solution exist: it has one basis in space, which no unknown changes."""
        system = solution.segments[-1].system
        fixed = (
            solution.evolution.constraints or solution.evolution.walls is not None
        )  # fields without a time derivative
        if fixed or self.changes_boundary_operator or self.depends_on_time or not solution.whole:
            return False
        if isinstance(system, FourierSystem):  # the reflection symmetry must hold for all values of the unknowns
            parities = system.evolution.parities
            return not system.modes.parities or reflection_parities(self.evolution, self.table) == parities
        fixed_values = system.basis_kind == "features" or not self.changes_boundary_values
        return fixed_values and len(solution.segments) == 1


def as_functions(problem: Problem) -> Problem:
    """The problem with every unknown number as a function of the first coordinate of space."""
    first = problem.domain.names[1]
    unknown = {
        name: one if isinstance(one, UnknownFunction) else UnknownFunction((first,), guess=repr(float(one.guess)))
        for name, one in problem.unknown.items()
    }
    return replace(problem, unknown=unknown)


def functions_identifiable(problem: Problem) -> bool:
    """Whether unknown functions can be identified by the method of lines: only the equations and initial values of an
    evolution contain them, and they do not depend on time.
    """
    if problem.obstacles:
        return False
    dependence = ParametricDependence.of(problem, weak=True)
    outside = dependence.depends_on_time or dependence.changes_boundary_operator or dependence.changes_boundary_values
    return not (outside or dependence.evolution.constraints)


def weak_form(solution: SpaceTimeSolution) -> bool:
    """Whether a solution used the divergence form."""
    system = solution.segments[-1].system
    return system.basis_kind == "fourier" or system.evolution.weak
