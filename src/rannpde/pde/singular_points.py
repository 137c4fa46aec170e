"""Initial value problems whose solution reaches a point where the coefficient of its highest derivative vanishes.

In u u' = f(x) the coefficient u may reach zero where f does too. The solution may then go on with either sign of u, and
the problem does not determine which: no discretisation can know. Multiplied by the coefficient, the equation is a
smooth system along another parameter s, dx/ds = u, du/ds = f, of which such a point is an equilibrium. A solution that
passes it at a distance leaves it behind after a finite s, however close it comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy
from scipy.integrate import solve_ivp

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.domains.roots import bisected
from rannpde.pde.initial import EVALUATIONS, PERTURBATION, InitialValueProblem, Integrated, initial_values
from rannpde.pde.problem.evolution import Component
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import evaluate
from rannpde.pde.tolerance import MUCH_SMALLER

REACHED = PERTURBATION**0.5 / MUCH_SMALLER
"""Speed, relative to that at the start, below which an equilibrium counts as reached. An integration that is off by
PERTURBATION passes a saddle point at the square root of it."""
SIGN_SAMPLES = 101
"""Points at which changes of signs near an equilibrium are looked for."""


@dataclass(frozen=True)
class Branching:
    """Where a solution has several continuations; values : of its components, by their names."""

    at: float
    values: dict[str, float]

    def described(self, coordinate: str) -> str:
        """Return a sentence for users."""
        state = ", ".join(f"{name} = {value:.4g}" for name, value in self.values.items())
        return (
            f"the solution is not unique: it reaches {state} at {coordinate} = {self.at:.4g}, where the coefficient of "
            "the highest derivative vanishes and changes its sign, and may go on along several branches; end the "
            "interval before it, or state the branch that is meant, solved for its highest derivative"
        )


def reached_singular_point(problem: Problem) -> Branching | None:
    """Return the first point where a solution has several continuations; None where there is none, or none is known.

    >>> from rannpde.domains import Interval
    >>> def reached(right, end):
    ...     return reached_singular_point(Problem(f"u*u_x = {right}", Interval(0, end), {"x=0": "u = 1"}))
    >>> round(reached("-sin(2*x)/2", 2).at, 4)  # u = cos(x), or |cos(x)|
    1.5708
    >>> reached("-sin(2*x)/2", 1.5) is None, reached("-u**2", 2) is None
    (True, True)
    """
    posed = initial_values(problem)
    field = None if posed is None else _Desingularised(posed.solution)
    if posed is None or field is None or field.multiplier is None:
        return None
    sizes = np.array([abs(posed.end - posed.begin), *posed.scales])
    path = _path(field, posed, sizes)
    if path is None:
        return None
    sizes = np.maximum(sizes, np.abs(path - path[:, :1]).max(axis=1))
    point = field.several_rates(path[:, -1], float(np.copysign(sizes[0], posed.end - posed.begin)), sizes[1:])
    if point is None:
        return None
    names = [one.field + "_" * bool(one.level) + problem.domain.names[0] * one.level for one in field.components]
    rounded = np.where(np.abs(point[1:]) > REACHED * sizes[1:], point[1:], 0.0)
    at = min(max(float(point[0]), min(posed.begin, posed.end)), max(posed.begin, posed.end))
    return Branching(at, dict(zip(names, rounded.tolist(), strict=True)))


def _path(field: _Desingularised, posed: InitialValueProblem, sizes: Array) -> Array | None:
    """Return states (1 + c, M) from the beginning to an equilibrium; None where the solution does not come to one."""
    start = np.array([posed.begin, *posed.values])
    sign = np.sign(posed.end - posed.begin) * np.sign(field.multiplier_at(start[:, None])[0])
    if sign == 0:
        return start[:, None]
    first = float(np.abs(field.speeds(start) / sizes).max())
    if not 0 < first < np.inf:
        return None
    count = 0

    def speeds(_: float, state: Array) -> Array:
        nonlocal count
        checkpoint()
        count += 1
        if count > EVALUATIONS // 10:
            raise StopIteration
        return np.asarray(sign * field.speeds(state))

    def moving(_: float, state: Array) -> float:
        return float(np.abs(field.speeds(state) / sizes).max() - REACHED * first)

    def inside(_: float, state: Array) -> float:
        return float((posed.end - state[0]) / sizes[0])

    def ahead(_: float, state: Array) -> float:
        return float(field.multiplier_at(state[:, None])[0])

    moving.terminal = inside.terminal = ahead.terminal = True  # type: ignore[attr-defined]
    try:
        with np.errstate(all="ignore"):
            path = solve_ivp(
                speeds, (0.0, np.inf), start, method="DOP853", events=(moving, inside, ahead), rtol=PERTURBATION,
                atol=MUCH_SMALLER * PERTURBATION * sizes, first_step=MUCH_SMALLER**2 / first,
            )  # fmt: skip
    except (StopIteration, ValueError, FloatingPointError):
        return None
    return np.asarray(path.y) if path.status == 1 and len(path.t_events[0]) else None


class _Desingularised:
    """The rates of an initial value problem times a coefficient of its highest derivatives, with which they are finite.

    States (1 + c,) are the coordinate and all components.
    """

    def __init__(self, solution: Integrated) -> None:
        self.solution, self.components = solution, solution.components
        self.symbols: dict[sympy.Symbol, Component] = {}
        for one in solution.rates.values():
            self.symbols |= {symbol: Component.of(jet) for symbol, jet in one.symbols.items()}
        self.functions = {name: f for one in solution.rates.values() for name, f in one.functions.items()}

    @cached_property
    def fractions(self) -> dict[str, tuple[sympy.Expr, sympy.Expr]]:
        """Field → numerator and denominator of the rate of its highest component."""
        return {name: sympy.fraction(sympy.together(one.formula)) for name, one in self.solution.rates.items()}

    @cached_property
    def multiplier(self) -> sympy.Expr | None:
        """The product of the denominators that depend on the solution; None where none does."""
        below = {part for _, part in self.fractions.values() if part.free_symbols & set(self.symbols)}
        return sympy.Mul(*below) if below else None

    @cached_property
    def _fields(self) -> list[sympy.Expr]:
        """Speeds of the components, in their order, with those of derivatives that are components themselves."""
        speeds, numbers = [], {component: symbol for symbol, component in self.symbols.items()}
        for component in self.components:
            above = Component(component.field, component.level + 1)
            if above in self.components:
                symbol = numbers.setdefault(above, sympy.Symbol(f"{above.field}_{above.level}", real=True))
                speeds.append(self.multiplier * symbol)
            else:
                numerator, denominator = self.fractions[component.field]
                speeds.append(numerator * sympy.cancel(self.multiplier / denominator))
        self.symbols |= {symbol: component for component, symbol in numbers.items()}
        return speeds

    def _values(self, states: Array) -> dict[sympy.Symbol, Array]:
        known = {self.solution.problem.vocabulary.symbols[0]: states[0]}
        rows = {component: states[1 + row] for row, component in enumerate(self.components)}
        return known | {symbol: rows[component] for symbol, component in self.symbols.items()}

    def multiplier_at(self, states: Array) -> Array:
        """The coefficient (M,) at states (1 + c, M)."""
        (value,) = evaluate([self.multiplier], self._values(states), self.functions)
        return np.broadcast_to(value, states.shape[1])

    def speeds(self, state: Array) -> Array:
        """d/ds (1 + c,) of the coordinate and all components at a state (1 + c,)."""
        fields = self._fields
        values = evaluate([self.multiplier, *fields], self._values(state[:, None]), self.functions)
        return np.array([float(np.ravel(value)[0]) for value in values])

    def several_rates(self, state: Array, length: float, sizes: Array) -> Array | None:
        """The point (1 + c,) near an equilibrium where the coefficient and a numerator of the rates change their signs.

        None where there is none, or the rates have no pole there: -sin(u)²/u has none, and one continuation. A solution
        that decays without an end, u u' = -exp(-2x), changes the sign of no numerator.

        length : of the interval, negative where it is passed downwards; sizes (c,) : of the components
        """
        for row, size in enumerate(sizes, start=1):
            zero = self._sign_change([self.multiplier], state, row, MUCH_SMALLER * size * np.array([-1.0, 1.0]))
            if zero is None:
                continue
            # the end of an integration is a little before the point itself, or behind it
            ahead = self._sign_change(self._fields, zero, 0, MUCH_SMALLER * length * np.array([-REACHED, 1.0]))
            if ahead is not None and self._has_pole(ahead, REACHED * length, size, row):
                return ahead
        return None

    def _sign_change(self, expressions: list[sympy.Expr], state: Array, row: int, reach: Array) -> Array | None:
        """The state next to one at which an expression changes its sign as a function of one row of the states."""
        values = state[row] + np.linspace(reach[0], reach[1], SIGN_SAMPLES)
        states = np.repeat(state[:, None], SIGN_SAMPLES, axis=1)
        states[row] = values
        nearest = None
        for one in expressions:
            (known,) = evaluate([one], self._values(states), self.functions)
            signs = np.sign(np.broadcast_to(known, SIGN_SAMPLES))
            for k in np.flatnonzero(signs[:-1] * signs[1:] <= 0):
                zero = values[k] if signs[k] == 0 else values[k + 1]
                if signs[k] * signs[k + 1] < 0:
                    zero = self._bisected(one, states[:, k], row, values[k], values[k + 1], signs[k])
                if nearest is None or abs(zero - state[row]) < abs(nearest - state[row]):
                    nearest = zero
        if nearest is None:
            return None
        changed = state.copy()
        changed[row] = nearest
        return changed

    def _bisected(self, one: sympy.Expr, state: Array, row: int, low: float, high: float, sign: float) -> float:
        def unchanged(values: Array) -> Array:
            states = np.repeat(state[:, None], len(values), axis=1)
            states[row] = values
            return np.asarray(np.sign(evaluate([one], self._values(states), self.functions)[0]) == sign)

        return float(bisected(unchanged, np.array([low]), np.array([high]))[0][0])

    def _has_pole(self, state: Array, beside: float, size: float, row: int) -> bool:
        """Whether the coefficient changes its sign, and rates grow towards its zero, as functions of one component.

        beside : the step to points at which that is asked, as numerators vanish at the state itself
        """
        steps = REACHED * size * np.array([1.0, -1.0, MUCH_SMALLER, -MUCH_SMALLER])
        for step in (beside, -beside):
            states = np.repeat(state[:, None], len(steps), axis=1)
            states[0] += step
            states[row] += steps
            signs = np.sign(self.multiplier_at(states))
            with np.errstate(all="ignore"):
                rates = self.solution.rate(states[:1].T, states[1:])
                far, close = np.abs(rates[:, 0] - rates[:, 1]), np.abs(rates[:, 2] - rates[:, 3])
            if signs[0] * signs[1] < 0 and (close > far).any():
                return True
        return False
