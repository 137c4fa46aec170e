"""The rates and constraints of an evolution on a periodic box, read once for all numbers of modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy
from scipy.interpolate import BSpline, make_interp_spline

from rannpde.arrays import Array
from rannpde.pde.lines.periodic.elimination import Parted, eliminate, parted_rates
from rannpde.pde.lines.periodic.modes import Modes
from rannpde.pde.problem.evolution import Component, Evolution
from rannpde.pde.residual import DATA_SYMBOL
from rannpde.pde.statement.expression import Jet, differentiate

SMOOTHEST = 5
"""Degree of the spline through the values that a level is measured to have."""


@dataclass(frozen=True, eq=False)
class Level:
    """The value, as it goes in time, that a field of which a constant is left free is measured to have at one place."""

    place: Array
    times: Array
    values: Array

    def __call__(self, time: float) -> float:
        return float(self._spline(np.clip(time, self.times[0], self.times[-1])))

    @cached_property
    def _spline(self) -> Callable[[float], float] | BSpline:
        if len(self.times) == 1:
            return lambda _: self.values[0]
        degree = min(SMOOTHEST, len(self.times) - 1)
        return make_interp_spline(self.times, self.values, k=degree - (degree % 2 == 0))


@dataclass(frozen=True, eq=False)
class Equations:
    """The rates and constraints of an evolution, parted once for all numbers of modes."""

    evolution: Evolution
    rates: Mapping[Component, tuple[Parted, ...]]
    constraints: tuple[Parted, ...]

    @classmethod
    def of(cls, evolution: Evolution) -> Equations:
        return cls(evolution, parted_rates(evolution), tuple(map(Parted.of, evolution.constraints.values())))

    @cached_property
    def moving(self) -> tuple[sympy.Expr, ...]:
        """∂_t of what the constraints hold beside fields, in order; of one that holds fields it is not needed."""
        clock = self.evolution.clock
        return tuple(sympy.Integer(0) if part.symbols else differentiate(part.rest, clock) for part in self.constraints)

    @cached_property
    def stiff(self) -> bool:
        """Whether something that is not linear holds derivatives of second or higher order."""
        parts = [part for parts in self.rates.values() for part in parts]
        return any(sum(j.index[1:]) + (part.axis is not None) > 1 for part in parts for j in part.symbols.values())

    @cached_property
    def early(self) -> tuple[Component, ...]:
        """The algebraic fields that the grid needs: those in what is not linear."""
        needed = {jet.field for parts in self.rates.values() for part in parts for jet in part.symbols.values()}
        return tuple(component for component in self.evolution.algebraic if component.field in needed)

    @cached_property
    def levels(self) -> dict[str, Level]:
        """Field → where a condition measures it, if one does."""
        found = {}
        for term in self.evolution.problem.constraints:
            if term.kind == "data" and term.points is not None and term.data is not None:
                order = np.argsort(term.points[:, 0], kind="stable")
                slope, symbol = term.expression.partials[0], next(iter(term.expression.symbols))
                formula = -term.expression.formula.subs(symbol, 0) / slope
                values = self.evolution.values([formula], {DATA_SYMBOL: term.data[order]})[0]
                times, first = np.unique(term.points[order, 0], return_index=True)
                level = np.broadcast_to(values, (len(order),))[first]
                found[term.expression.jets[0].field] = Level(term.points[0, 1:], times, level)
        return found

    def reasons(self) -> tuple[str, ...]:
        """Why the fields without a time derivative cannot be eliminated; none if they can, or if there are none."""
        if not self.constraints:
            return ()
        domain = self.evolution.domain.space
        bounds = tuple((float(lower), float(upper)) for lower, upper in domain.bounds)
        algebraic = {component.field for component in self.evolution.algebraic}
        held = [{jet.field for jet in part.symbols.values()} & algebraic for part in self.constraints]
        known = list(self.evolution.constraints)
        found = [
            f"the constraint {known[k]!r} is not linear in {min(names)!r}" for k, names in enumerate(held) if names
        ]
        if found:
            return tuple(found)
        matrices = eliminate(self.evolution, self.rates, list(self.constraints), Modes(bounds, (3,) * domain.dim))
        found += matrices.reasons
        for k, component in enumerate(self.evolution.algebraic):
            late = any(row == k for row, _ in (*matrices.of_N.entries, *matrices.of_Q_dot.entries))
            plain = any(
                jet == Jet(component.field, (0,) * (domain.dim + 1))
                for parts in self.rates.values() for part in parts for jet in part.symbols.values()
            )  # fmt: skip
            if component in self.early and (late or (matrices.free[k] and plain)):
                found.append(f"the field {component.field!r} has no time derivative and stands in a product")
            if component.field in self.levels and not matrices.free[k]:
                found.append(f"the field {component.field!r} is measured, but the equations determine it")
        return tuple(found)
