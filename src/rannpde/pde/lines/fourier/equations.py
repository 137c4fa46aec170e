"""An evolution on a periodic box as equations for every wave vector, with the algebraic variables eliminated.

With u the components that have a time derivative, p the fields that have none (the algebraic variables), and N, Q all
terms that are not linear with constant coefficients, an evolution with constraints is for each wave vector k

    u' = L u + B p + N ,      0 = C u + D p + Q ,

a differential-algebraic system of small matrices. Where D has an inverse (a stream function), p = -D⁻¹(C u + Q). Where
it has none (a pressure), the part of the constraint that does not contain p, with Π = 1 - D D⁺ the projection on it, is
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
from rannpde.pde.lines.fourier.modes import FourierBasis
from rannpde.pde.lines.fourier.symbol import FourierSymbol
from rannpde.pde.problem.evolution import Component, Evolution, Parity
from rannpde.pde.residual import DATA_SYMBOL
from rannpde.pde.statement.expression import Expression, Jet, constant, differentiate
from rannpde.rounding import COMPUTED

EXPANDABLE = 200
"""Most operations of a summand that is expanded to find its linear part."""


@dataclass(frozen=True)
class SplitTerm:
    """An expression as Σ linear[jet] · jet + rest, its linear and non-linear parts.

    axis : of a flux, whose negative derivative along this axis is what counts; None for a source
    """

    linear: Mapping[Jet, float]
    rest: sympy.Expr
    symbols: Mapping[sympy.Symbol, Jet]
    axis: int | None = None

    @classmethod
    def of(cls, expression: Expression, axis: int | None = None) -> SplitTerm:
        """The part of an expression that is linear in the jets with constant coefficients, and the rest."""
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
        """Whether the rest vanishes."""
        return bool(self.rest == 0)

    @cached_property
    def slopes(self) -> tuple[sympy.Expr, ...]:
        """∂rest/∂jet, in the order of ``symbols``."""
        return Expression(self.rest, self.rest, self.symbols).partials


def split_rates(evolution: Evolution) -> dict[Component, tuple[SplitTerm, ...]]:
    """Component → the parts of its rate; none for a component whose rate is the next component."""
    rates: dict[Component, tuple[SplitTerm, ...]] = {}
    for component in evolution.components:
        if evolution.above(component) is not None:
            rates[component] = ()
            continue
        rate = evolution.rates[component.field]
        fluxes = [SplitTerm.of(part, axis) for axis, part in rate.flux.items()]
        rates[component] = (SplitTerm.of(rate.source), *fluxes)
    return rates


@dataclass(frozen=True, eq=False)
class EliminatedSystem:
    """The matrices of the module for some modes: A, G, E, E' give the rates; ``of_…`` give p from u, N, Q, Q'.

    start : two matrices that map (u, Q) to the nearest u that satisfies the constraints on u alone
    free : for each field p, whether the equations leave it a free constant (the wave vector 0)
    reasons : why the algebraic variables cannot be eliminated; none where they can
    """

    A: FourierSymbol
    G: FourierSymbol
    E: FourierSymbol
    E_dot: FourierSymbol
    of_u: FourierSymbol
    of_N: FourierSymbol
    of_Q: FourierSymbol
    of_Q_dot: FourierSymbol
    start: tuple[FourierSymbol, FourierSymbol]
    free: tuple[bool, ...]
    reasons: tuple[str, ...] = ()


def linear_symbols(linear: Mapping[Jet, float], modes: FourierBasis, columns: list[Component]) -> dict[int, Array]:
    """Column → Fourier symbol Σ coefficient · (i k)^α over the jets of its component."""
    entries: dict[int, Array] = {}
    for jet, coefficient in linear.items():
        column = columns.index(Component.of(jet))
        entry = coefficient * modes.factor(jet.index[1:])
        entries[column] = entries[column] + entry if column in entries else entry
    return entries


def linear_rates(
    evolution: Evolution, rates: Mapping[Component, Iterable[SplitTerm]], modes: FourierBasis
) -> FourierSymbol:
    """The symbol (L, B): rows of the components, columns of the components and of the algebraic fields."""
    columns = [*evolution.components, *evolution.algebraic]
    entries: dict[tuple[int, int], Array] = {}
    for row, component in enumerate(evolution.components):
        if evolution.above(component) is not None:
            entries[row, row + 1] = np.ones(modes.shape)
            continue
        for part in rates[component]:
            outer = 1.0 if part.axis is None else -modes.factor(_unit(part.axis, modes.dim))
            for column, entry in linear_symbols(part.linear, modes, columns).items():
                entries[row, column] = entries.get((row, column), 0.0) + outer * entry
    return FourierSymbol(len(evolution.components), len(columns), entries, modes.dim)


def _unit(axis: int, dim: int) -> tuple[int, ...]:
    return tuple(int(k == axis) for k in range(dim))


def eliminate(
    evolution: Evolution,
    rates: Mapping[Component, Iterable[SplitTerm]],
    constraints: list[SplitTerm],
    modes: FourierBasis,
) -> EliminatedSystem:
    """The matrices of the eliminated system, and every reason why the algebraic variables cannot be eliminated."""
    whole = linear_rates(evolution, rates, modes)
    number, fields, shape = len(evolution.components), len(constraints), modes.shape
    if not constraints:
        nothing, square = FourierSymbol(0, 0, {}), FourierSymbol.identity(number, shape)
        return EliminatedSystem(
            whole, square, nothing, nothing, nothing, nothing, nothing, nothing, (square, nothing), ()
        )
    both = whole.dense(modes.count)
    L, B = both[:, :, :number], both[:, :, number:]
    columns = [*evolution.components, *evolution.algebraic]
    entries = {
        (row, column): entry
        for row, part in enumerate(constraints)
        for column, entry in linear_symbols(part.linear, modes, columns).items()
    }
    stated = FourierSymbol(fields, number + fields, entries).dense(modes.count)
    C, D = stated[:, :, :number], stated[:, :, number:]
    projection = np.eye(fields) - D @ np.linalg.pinv(D, rcond=COMPUTED)
    hidden = projection @ C
    S = np.concatenate([D, hidden @ B], axis=1)
    inverse = np.linalg.pinv(S, rcond=COMPUTED)
    upper, lower = inverse[:, :, :fields], inverse[:, :, fields:]
    parts = {"u": -(upper @ C + lower @ hidden @ L), "N": -(lower @ hidden), "Q": -upper, "dot": -(lower @ projection)}
    nearest = np.linalg.pinv(hidden, rcond=COMPUTED)
    missing = np.eye(fields) - inverse @ S

    def symbol(matrices: Array) -> FourierSymbol:
        return FourierSymbol.of(_clean(matrices), shape)

    return EliminatedSystem(
        A=symbol(L + B @ parts["u"]), G=symbol(np.eye(number) + B @ parts["N"]),
        E=symbol(B @ parts["Q"]), E_dot=symbol(B @ parts["dot"]),
        of_u=symbol(parts["u"]), of_N=symbol(parts["N"]), of_Q=symbol(parts["Q"]), of_Q_dot=symbol(parts["dot"]),
        start=(symbol(np.eye(number) - nearest @ hidden), symbol(-nearest @ projection)),
        free=tuple(bool(missing[0, k, k].real > 0.5) for k in range(fields)),
        reasons=tuple(_reasons(evolution, constraints, missing, B, projection)),
    )  # fmt: skip


def _clean(matrices: Array) -> Array:
    """Matrices without rounding, which would make real entries complex and vanishing ones non-zero."""
    least = 1e-14 * np.abs(matrices).max(axis=(1, 2), keepdims=True, initial=0.0)
    real, imaginary = (np.where(np.abs(part) > least, part, 0.0) for part in (matrices.real, matrices.imag))
    return np.asarray(real + 1j * imaginary)


def _reasons(
    evolution: Evolution, constraints: list[SplitTerm], missing: Array, B: Array, projection: Array
) -> list[str]:
    names = [component.field for component in evolution.algebraic]
    reasons = []
    visible = np.abs(B @ missing).max(axis=1) > COMPUTED * (1.0 + np.abs(B).max())
    for k, name in enumerate(names):
        lost = np.abs(missing[:, k]).max(axis=1) > COMPUTED
        if lost[1:].any() or visible[:, k].any():
            reasons.append(f"the equations do not determine the field {name!r}, which has no time derivative")
    equations = list(evolution.constraints)
    for k, part in enumerate(constraints):
        if part.symbols and np.abs(projection[1:, :, k]).max(initial=0.0) > COMPUTED:
            reasons.append(f"the constraint {equations[k]!r} is not linear, and holds no field that it determines")
    return reasons


# ------------------------------------------------------------------------------ the same for all numbers of modes

LEVEL_SPLINE_DEGREE = 5
"""Largest degree of the spline through the measured values of a level."""


@dataclass(frozen=True, eq=False)
class MeasuredLevel:
    """The measured value at one point, as a function of time, of a field whose constant the equations leave free."""

    point: Array
    times: Array
    values: Array

    def __call__(self, time: float) -> float:
        return float(self._spline(np.clip(time, self.times[0], self.times[-1])))

    @cached_property
    def _spline(self) -> Callable[[float], float] | BSpline:
        if len(self.times) == 1:
            return lambda _: self.values[0]
        degree = min(LEVEL_SPLINE_DEGREE, len(self.times) - 1)
        return make_interp_spline(self.times, self.values, k=degree - (degree % 2 == 0))


@dataclass(frozen=True, eq=False)
class Equations:
    """The rates and constraints of an evolution, split once for all numbers of modes."""

    evolution: Evolution
    rates: Mapping[Component, tuple[SplitTerm, ...]]
    constraints: tuple[SplitTerm, ...]

    @classmethod
    def of(cls, evolution: Evolution) -> Equations:
        return cls(evolution, split_rates(evolution), tuple(map(SplitTerm.of, evolution.constraints.values())))

    @cached_property
    def moving(self) -> tuple[sympy.Expr, ...]:
        """∂_t of the data in each constraint; 0 for a constraint with non-linear terms in the fields, which does not
        need it."""
        clock = self.evolution.clock
        return tuple(sympy.Integer(0) if part.symbols else differentiate(part.rest, clock) for part in self.constraints)

    @cached_property
    def stiff(self) -> bool:
        """Whether a non-linear term contains derivatives of second or higher order."""
        parts = [part for parts in self.rates.values() for part in parts]
        return any(sum(j.index[1:]) + (part.axis is not None) > 1 for part in parts for j in part.symbols.values())

    @cached_property
    def parities(self) -> tuple[Parity, ...]:
        """The parities of the components, with reflection symmetry; else none."""
        parities = self.evolution.parities
        return () if parities is None else tuple(parities[component.field] for component in self.evolution.components)

    @cached_property
    def linear(self) -> bool:
        """Whether all terms in the fields are linear with constant coefficients."""
        return not any(part.symbols for parts in self.rates.values() for part in parts)

    @cached_property
    def algebraic_on_grid(self) -> tuple[Component, ...]:
        """The algebraic fields that non-linear terms contain, so that their values on the grid are needed."""
        needed = {jet.field for parts in self.rates.values() for part in parts for jet in part.symbols.values()}
        return tuple(component for component in self.evolution.algebraic if component.field in needed)

    @cached_property
    def levels(self) -> dict[str, MeasuredLevel]:
        """Field → its measured level, where a condition gives one."""
        levels = {}
        for term in self.evolution.problem.constraints:
            if term.kind == "data" and term.points is not None and term.data is not None:
                order = np.argsort(term.points[:, 0], kind="stable")
                slope, symbol = term.expression.partials[0], next(iter(term.expression.symbols))
                formula = -term.expression.formula.subs(symbol, 0) / slope
                values = self.evolution.values([formula], {DATA_SYMBOL: term.data[order]})[0]
                times, first = np.unique(term.points[order, 0], return_index=True)
                level = np.broadcast_to(values, (len(order),))[first]
                levels[term.expression.jets[0].field] = MeasuredLevel(term.points[0, 1:], times, level)
        return levels

    def reasons(self) -> tuple[str, ...]:
        """Why the fields without a time derivative cannot be eliminated; none if they can, or if there are none."""
        if not self.constraints:
            return ()
        domain = self.evolution.domain.space
        bounds = tuple((float(lower), float(upper)) for lower, upper in domain.bounds)
        algebraic = {component.field for component in self.evolution.algebraic}
        held = [{jet.field for jet in part.symbols.values()} & algebraic for part in self.constraints]
        known = list(self.evolution.constraints)
        reasons = [
            f"the constraint {known[k]!r} is not linear in {min(names)!r}" for k, names in enumerate(held) if names
        ]
        if reasons:
            return tuple(reasons)
        matrices = eliminate(
            self.evolution, self.rates, list(self.constraints), FourierBasis(bounds, (3,) * domain.dim)
        )
        reasons += matrices.reasons
        for k, component in enumerate(self.evolution.algebraic):
            late = any(row == k for row, _ in (*matrices.of_N.entries, *matrices.of_Q_dot.entries))
            plain = any(
                jet == Jet(component.field, (0,) * (domain.dim + 1))
                for parts in self.rates.values() for part in parts for jet in part.symbols.values()
            )  # fmt: skip
            if component in self.algebraic_on_grid and (late or (matrices.free[k] and plain)):
                reasons.append(f"the field {component.field!r} has no time derivative and stands in a product")
            if component.field in self.levels and not matrices.free[k]:
                reasons.append(f"the field {component.field!r} is measured, but the equations determine it")
        return tuple(reasons)
