"""An evolution on a periodic box as equations for every wave vector, fields without a rate of their own eliminated.

With u the components that have a rate, p the fields that have none, and N, Q all that is not linear with constant
coefficients, an evolution with constraints is for each wave vector k

    u' = L u + B p + N ,      0 = C u + D p + Q ,

a differential-algebraic system of small matrices. Where D has an inverse (a stream function), p = -D⁻¹(C u + Q). Where
it has none (a pressure), the part of the constraint that p does not enter, with Π = 1 - D D⁺ the projection on it, is
differentiated in time: Π C u' + Π Q' = 0. Both together are, in the sense of least squares,

    S p = -(C u + Q, Π (C (L u + N) + Q')) ,      S = (D, Π C B) ,

from which p, and with it u', are linear in u, N, Q and Q' (the index of the system is at most 2):

    u' = A u + G N + E Q + E' Q' .
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy
from scipy.interpolate import BSpline, make_interp_spline

from rannpde.arrays import Array
from rannpde.pde.lines.periodic.modes import Modes
from rannpde.pde.lines.periodic.wavematrix import WaveMatrix
from rannpde.pde.problem.evolution import Component, Evolution, Parity
from rannpde.pde.residual import DATA_SYMBOL
from rannpde.pde.statement.expression import Expression, Jet, constant, differentiate

EXPANDABLE = 200
"""Operations of a summand that is multiplied out to find what of it is linear."""
SINGULAR = 1e-9
"""Singular values below this share of the largest of a wave vector are zero: entries are powers of wave numbers."""


@dataclass(frozen=True)
class Parted:
    """An expression as Σ linear[jet] · jet + rest; with ``axis``, ∂ along it of that, with the sign of a flux."""

    linear: Mapping[Jet, float]
    rest: sympy.Expr
    symbols: Mapping[sympy.Symbol, Jet]
    axis: int | None = None

    @classmethod
    def of(cls, expression: Expression, axis: int | None = None) -> Parted:
        """What of an expression is linear in the jets with constant coefficients, and what is left."""
        linear: dict[Jet, float] = {}
        rest: list[sympy.Expr] = []

        def take(term: sympy.Expr, expand: bool) -> None:
            own = [symbol for symbol in expression.symbols if symbol in term.free_symbols]
            slopes = [constant(differentiate(term, symbol)) for symbol in own]
            if all(slope is not None and np.isfinite(slope) for slope in slopes):
                for symbol, slope in zip(own, slopes, strict=True):
                    jet = expression.symbols[symbol]
                    linear[jet] = linear.get(jet, 0.0) + float(slope or 0.0)
                rest.append(term.xreplace(dict.fromkeys(own, sympy.Integer(0))) if own else term)
                return
            wide = sympy.expand_mul(term) if expand and term.count_ops() <= EXPANDABLE else term
            if wide.is_Add:
                for part in wide.args:
                    take(part, False)
            else:
                rest.append(term)

        for term in sympy.Add.make_args(expression.formula):
            take(term, True)
        left = sympy.Add(*rest)
        used = {symbol: jet for symbol, jet in expression.symbols.items() if symbol in left.free_symbols}
        return cls(linear, left, used, axis)

    @property
    def trivial(self) -> bool:
        """Whether nothing is left."""
        return bool(self.rest == 0)

    @cached_property
    def slopes(self) -> tuple[sympy.Expr, ...]:
        """∂rest/∂jet, in the order of ``symbols``."""
        return Expression(self.rest, self.rest, self.symbols).partials


def parted_rates(evolution: Evolution) -> dict[Component, tuple[Parted, ...]]:
    """Component → the parts of its rate; none for a component whose rate is the next one."""
    found: dict[Component, tuple[Parted, ...]] = {}
    for component in evolution.components:
        if evolution.above(component) is not None:
            found[component] = ()
            continue
        rate = evolution.rates[component.field]
        fluxes = [Parted.of(part, axis) for axis, part in rate.flux.items()]
        found[component] = (Parted.of(rate.source), *fluxes)
    return found


@dataclass(frozen=True, eq=False)
class Eliminated:
    """The matrices of the module for some modes: A, G, E, E' of the rates; of p those with u, N, Q, Q'; of starts.

    start : (u, Q) → u that satisfies what the constraints demand of u alone, the nearest one
    free : of the fields p, whether the wave vector 0 leaves them a constant
    """

    A: WaveMatrix
    G: WaveMatrix
    E: WaveMatrix
    E_dot: WaveMatrix
    of_u: WaveMatrix
    of_N: WaveMatrix
    of_Q: WaveMatrix
    of_Q_dot: WaveMatrix
    start: tuple[WaveMatrix, WaveMatrix]
    free: tuple[bool, ...]
    reasons: tuple[str, ...] = ()


def acting(linear: Mapping[Jet, float], modes: Modes, columns: list[Component]) -> dict[int, Array]:
    """Column → Σ coefficient · (i k)^α over the jets of its component."""
    found: dict[int, Array] = {}
    for jet, coefficient in linear.items():
        column = columns.index(Component.of(jet))
        entry = coefficient * modes.factor(jet.index[1:])
        found[column] = found[column] + entry if column in found else entry
    return found


def linear_rates(evolution: Evolution, rates: Mapping[Component, Iterable[Parted]], modes: Modes) -> WaveMatrix:
    """(L, B) beside each other: rows of the components, columns of components and algebraic fields."""
    columns = [*evolution.components, *evolution.algebraic]
    entries: dict[tuple[int, int], Array] = {}
    for row, component in enumerate(evolution.components):
        if evolution.above(component) is not None:
            entries[row, row + 1] = np.ones(modes.shape)
            continue
        for part in rates[component]:
            outer = 1.0 if part.axis is None else -modes.factor(_unit(part.axis, modes.dim))
            for column, entry in acting(part.linear, modes, columns).items():
                entries[row, column] = entries.get((row, column), 0.0) + outer * entry
    return WaveMatrix(len(evolution.components), len(columns), entries, modes.dim)


def _unit(axis: int, dim: int) -> tuple[int, ...]:
    return tuple(int(k == axis) for k in range(dim))


def eliminate(
    evolution: Evolution, rates: Mapping[Component, Iterable[Parted]], constraints: list[Parted], modes: Modes
) -> Eliminated:
    """The matrices, and every reason why the constraints cannot be eliminated."""
    whole = linear_rates(evolution, rates, modes)
    number, fields, shape = len(evolution.components), len(constraints), modes.shape
    if not constraints:
        nothing, square = WaveMatrix(0, 0, {}), WaveMatrix.identity(number, shape)
        return Eliminated(whole, square, nothing, nothing, nothing, nothing, nothing, nothing, (square, nothing), ())
    both = whole.dense(modes.count)
    L, B = both[:, :, :number], both[:, :, number:]
    columns = [*evolution.components, *evolution.algebraic]
    entries = {
        (row, column): entry
        for row, part in enumerate(constraints)
        for column, entry in acting(part.linear, modes, columns).items()
    }
    stated = WaveMatrix(fields, number + fields, entries).dense(modes.count)
    C, D = stated[:, :, :number], stated[:, :, number:]
    apart = np.eye(fields) - D @ np.linalg.pinv(D, rcond=SINGULAR)
    hidden = apart @ C
    S = np.concatenate([D, hidden @ B], axis=1)
    inverse = np.linalg.pinv(S, rcond=SINGULAR)
    upper, lower = inverse[:, :, :fields], inverse[:, :, fields:]
    parts = {"u": -(upper @ C + lower @ hidden @ L), "N": -(lower @ hidden), "Q": -upper, "dot": -(lower @ apart)}
    nearest = np.linalg.pinv(hidden, rcond=SINGULAR)
    missing = np.eye(fields) - inverse @ S

    def kept(matrices: Array) -> WaveMatrix:
        return WaveMatrix.of(_clean(matrices), shape)

    return Eliminated(
        A=kept(L + B @ parts["u"]), G=kept(np.eye(number) + B @ parts["N"]),
        E=kept(B @ parts["Q"]), E_dot=kept(B @ parts["dot"]),
        of_u=kept(parts["u"]), of_N=kept(parts["N"]), of_Q=kept(parts["Q"]), of_Q_dot=kept(parts["dot"]),
        start=(kept(np.eye(number) - nearest @ hidden), kept(-nearest @ apart)),
        free=tuple(bool(missing[0, k, k].real > 0.5) for k in range(fields)),
        reasons=tuple(_reasons(evolution, constraints, missing, B, apart)),
    )  # fmt: skip


def _clean(matrices: Array) -> Array:
    """Without rounding, which would make real entries complex and empty ones full."""
    least = 1e-14 * np.abs(matrices).max(axis=(1, 2), keepdims=True, initial=0.0)
    real, imaginary = (np.where(np.abs(part) > least, part, 0.0) for part in (matrices.real, matrices.imag))
    return np.asarray(real + 1j * imaginary)


def _reasons(evolution: Evolution, constraints: list[Parted], missing: Array, B: Array, apart: Array) -> list[str]:
    names = [component.field for component in evolution.algebraic]
    found = []
    felt = np.abs(B @ missing).max(axis=1) > SINGULAR * (1.0 + np.abs(B).max())
    for k, name in enumerate(names):
        lost = np.abs(missing[:, k]).max(axis=1) > SINGULAR
        if lost[1:].any() or felt[:, k].any():
            found.append(f"the equations do not determine the field {name!r}, which has no time derivative")
    equations = list(evolution.constraints)
    for k, part in enumerate(constraints):
        if part.symbols and np.abs(apart[1:, :, k]).max(initial=0.0) > SINGULAR:
            found.append(f"the constraint {equations[k]!r} is not linear, and holds no field that it determines")
    return found


# ------------------------------------------------------------------------------ read once for all numbers of modes

SMOOTHEST = 5
"""Degree of the spline through the values that a level is measured to have."""


@dataclass(frozen=True, eq=False)
class MeasuredLevel:
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
    def parities(self) -> tuple[Parity, ...]:
        """Of the components, where walls are mirrors; else none."""
        mirrors = self.evolution.parities
        return () if mirrors is None else tuple(mirrors[component.field] for component in self.evolution.components)

    @cached_property
    def linear(self) -> bool:
        """Whether all that acts on the fields is linear with constant coefficients."""
        return not any(part.symbols for parts in self.rates.values() for part in parts)

    @cached_property
    def early(self) -> tuple[Component, ...]:
        """The algebraic fields that the grid needs: those in what is not linear."""
        needed = {jet.field for parts in self.rates.values() for part in parts for jet in part.symbols.values()}
        return tuple(component for component in self.evolution.algebraic if component.field in needed)

    @cached_property
    def levels(self) -> dict[str, MeasuredLevel]:
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
                found[term.expression.jets[0].field] = MeasuredLevel(term.points[0, 1:], times, level)
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
