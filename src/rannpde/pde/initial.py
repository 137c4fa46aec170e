"""Initial value problems in one coordinate by an ODE solver of SciPy: initial guesses for Newton's method, and checks.

A step-by-step integration shares nothing with a least-squares solution over the whole interval. Where errors grow along
the way, as before the ignition of a flame, two least-squares solutions may agree on what no integration finds.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import OptimizeResult

from rannpde.arrays import Array, MultiIndex
from rannpde.checkpoints import checkpoint
from rannpde.domains.boundary.sides import FlatSide
from rannpde.grammar import StatementError
from rannpde.pde.problem.evolution import Component
from rannpde.pde.problem.forms import rates
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import Expression, evaluate
from rannpde.pde.time.integrator import blows_up
from rannpde.pde.tolerance import COMPARABLE, MUCH_SMALLER
from rannpde.rounding import EPS, ROUNDED

TOLERANCE = EPS**0.5
"""Relative tolerance of the guess: one step of Newton's method, which squares errors, leaves rounding."""
EVALUATIONS = 100_000
"""Limit on evaluations, after which there is no guess: the solution blows up, or needs too small steps."""
STANDSTILL = 2**13
"""Evaluations from which on it is asked, each time that they have doubled, whether the second half of them led so far
that the rest of the interval takes no more of them than there may be."""
BLOW_UP = 10**6
"""Growth, relative to the initial values, at which it is asked whether a solution grows faster than exponentially."""
PERTURBATION = EPS ** (3 / 4)
"""Relative tolerance below which rounding decides which steps are taken, and size of the perturbations whose growth is
measured: those that grow to the size of the solution are amplified by more than any residual in floating-point numbers
allows."""


def integrated(problem: Problem, tolerance: float = TOLERANCE) -> Integrated | None:
    """Return an approximate solution of an initial value problem; None for other problems, or without a solution.

    tolerance : relative error of a step

    >>> from rannpde.domains import Interval
    >>> from rannpde.pde.problem.conditions import On
    >>> problem = Problem("u_xx = -u", Interval(0, 9), {"a": On("x=0", "u = 0"), "b": On("x=0", "u_x = 1")})
    >>> bool(abs(integrated(problem).derivative(np.array([[9.0]]), (0,))[0, 0] - np.sin(9)) < 1e-6)
    True
    """
    integration = _integration(problem, tolerance)
    if integration is None or not integration[1].success:
        return None
    guess, path = integration
    with np.errstate(all="ignore"):
        first = guess.rate(np.array([[path.t[0]]]), path.y[:, :1])
    return replace(guess, path=path.sol, regular=bool(np.isfinite(first).all() and np.isfinite(path.y).all()))


def blow_up_point(problem: Problem) -> float | None:
    """Return where the solution of an initial value problem becomes infinite; None where no integration shows that.

    >>> from rannpde.domains import Interval
    >>> problem = Problem("u_x = u**2", Interval(0, 3), {"x=0": "u = 0.5"})
    >>> round(blow_up_point(problem), 4)
    2.0
    """
    start = None if problem.periodic or problem.domain.dim > 1 else _start(problem)
    if start is None:
        return None
    scale = max(map(abs, start[1].values())) or 1.0

    def grown(time: float, state: Array) -> float:
        return float(BLOW_UP - np.abs(state).max() / scale)

    grown.terminal = True  # type: ignore[attr-defined]
    integration = _integration(problem, TOLERANCE, grown)
    if integration is not None and integration[1].status >= 0 and not np.isfinite(integration[1].y).all():
        # LSODA walks on where a root or a logarithm has left its domain; an explicit method takes the step back
        integration = _integration(problem, TOLERANCE, grown, "RK45")
    if integration is None:
        return None
    path = integration[1]
    if path.status < 0:  # no step leads on: a logarithm, or a slope, becomes infinite
        return float(path.t[-1])
    if path.status == 0:
        return None
    sizes = np.abs(path.y).max(axis=0) / scale
    # the size at the event is the limit, up to the accuracy of its root
    return float(path.t[-1]) if blows_up(path.t - path.t[0], sizes, 0.5 * BLOW_UP) else None


def _integration(
    problem: Problem, tolerance: float, event: Any = None, method: str = "LSODA"
) -> tuple[Integrated, Any] | None:
    """The rates of an initial value problem and its integration up to the end or an event; None for other problems.

    Where steps have become as small as rounding, the integration ends there without success.
    """
    posed = initial_values(problem)
    if posed is None:
        return None
    guess, begin, end = posed.solution, posed.begin, posed.end
    steps = _Steps(begin, end)

    def rate(time: float, state: Array) -> Array:
        steps.check(time)
        return guess.rate(np.array([[time]]), state[:, None])[:, 0]

    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # LSODA warns where it fails, and says so in its result too
            path = solve_ivp(
                rate, (begin, end), posed.values, method=method, rtol=tolerance, dense_output=True, events=event,
                atol=MUCH_SMALLER * tolerance * posed.scales,
            )  # fmt: skip
    except _TooLong:
        stuck = steps.progress() <= ROUNDED
        return (guess, OptimizeResult(success=False, status=-1, t=steps.times[-1:])) if stuck else None
    except (ValueError, FloatingPointError):
        return None
    return guess, path


@dataclass(frozen=True, eq=False)
class InitialValueProblem:
    """An initial value problem between two ends of its interval, from ``begin`` to ``end``.

    solution : its rates, without a path; values (c,) : of its components at the beginning; scales (c,) : of errors. A
    solution may begin small and grow, and errors grow with it: scales are those of the initial values.
    """

    solution: Integrated
    begin: float
    end: float
    values: Array
    scales: Array


def initial_values(problem: Problem) -> InitialValueProblem | None:
    """Return an initial value problem of one coordinate; None for other problems."""
    start = None if problem.periodic or problem.domain.dim > 1 else _start(problem)
    if start is None:
        return None
    begin, values = start
    try:
        solved = rates(problem)
    except (StatementError, RecursionError):
        return None
    if solved is None:
        return None
    lower, upper = problem.domain.bounds[0]
    initial = np.array(list(values.values()))
    sizes = np.abs(initial)
    scales = np.where(sizes > 0, sizes, sizes.max() or 1.0)
    solution = Integrated(problem, solved, tuple(values), None)
    return InitialValueProblem(solution, begin, upper if begin == lower else lower, initial, scales)


def departure(problem: Problem) -> float | None:
    """Return where perturbations that are nearly rounding have grown to the size of a solution; None where they do not.

    Two solutions of an initial value problem whose initial values differ by PERTURBATION are integrated together, by an
    explicit method, up to where they are as far apart as they are large, or up to the end. A stiff problem, for which
    an explicit method needs too many steps, is not answered for.

    >>> from rannpde.domains import Interval
    >>> from rannpde.pde.problem.conditions import On
    >>> start = {"a": On("x=0", "u = 0"), "b": On("x=0", "v = 2")}
    >>> equations = {"first": "u_x = v*u", "second": "v_x = 30 - u**2"}
    >>> departure(Problem(equations, Interval(0, 3), start)) is not None
    True
    >>> departure(Problem(equations, Interval(0, 0.5), start)) is None
    True
    """
    posed = initial_values(problem)
    if posed is None:
        return None
    scales, steps = posed.scales, _Steps(posed.begin, posed.end)

    def rate(time: float, states: Array) -> Array:
        steps.check(time)
        return posed.solution.rate(np.full((2, 1), time), states.reshape(-1, 2)).ravel()

    def together(time: float, states: Array) -> float:
        pair = states.reshape(-1, 2)
        sizes = np.maximum(np.abs(pair).max(axis=1), scales)
        return float(COMPARABLE - (np.abs(np.diff(pair)[:, 0]) / sizes).max())

    together.terminal = True  # type: ignore[attr-defined]
    pair = posed.values[:, None] + PERTURBATION * scales[:, None] * np.array([1.0, -1.0])
    try:
        with np.errstate(all="ignore"):
            path = solve_ivp(
                rate, (posed.begin, posed.end), pair.ravel(), method="DOP853", events=together, rtol=PERTURBATION,
                atol=MUCH_SMALLER * PERTURBATION * np.repeat(scales, 2),
            )  # fmt: skip
    except (_TooLong, ValueError, FloatingPointError):
        return None
    return float(path.t[-1]) if path.status == 1 else None


def starting_point(problem: Problem) -> float | None:
    """Return the end of an interval at which an initial value problem starts; None for other problems."""
    start = None if problem.periodic or problem.domain.dim > 1 else _start(problem)
    return None if start is None else start[0]


class _TooLong(Exception):
    """An integration takes too many evaluations."""


class _Steps:
    """The times at which an integration asks for rates, and whether it is given up."""

    def __init__(self, begin: float, end: float) -> None:
        self.end, self.length = end, abs(end - begin)
        self.times: list[float] = []

    def check(self, time: float) -> None:
        """Count an evaluation; _TooLong where as many as there may be do not lead to the end."""
        checkpoint()
        self.times.append(time)
        count = len(self.times)
        # steps as small as rounding lead to a singularity without an end, and small ones to no end in time
        if count >= STANDSTILL and count & (count - 1) == 0:
            left = abs(self.end - time) / self.length
            if 0.5 * count * left > EVALUATIONS * self.progress():
                raise _TooLong
        if count > EVALUATIONS:
            raise _TooLong

    def progress(self) -> float:
        """Return how far the last half of the evaluations led, relative to the interval."""
        return abs(self.times[-1] - self.times[len(self.times) // 2]) / self.length


def _start(problem: Problem) -> tuple[float, dict[Component, float]] | None:
    """Return the end where everything is prescribed, and the values there; None where some are prescribed elsewhere."""
    values: dict[Component, float] = {}
    ends = set()
    for term in problem.constraints:
        given = term.prescribed
        if given is None or not isinstance(term.region, FlatSide) or not term.region.outward:
            return None
        point = np.array([[term.region.value]])
        ends.add(float(term.region.value))
        (value,) = evaluate([given[1]], term.known(point, problem.vocabulary), problem.functions)
        values[Component.of(given[0])] = float(np.ravel(value)[0])
    wanted = [Component(name, level) for name in problem.fields for level in range(max(problem.order(name, 0), 0))]
    if len(ends) != 1 or set(wanted) != set(values) or any(problem.order(name, 0) < 1 for name in problem.fields):
        return None
    return ends.pop(), {component: values[component] for component in wanted}


@dataclass(frozen=True, eq=False)
class Integrated:
    """The dense output of an ODE solver as a state: derivatives up to the order of the equations, zero beyond.

    regular : whether the rates at the initial values and all states are finite; beyond a singular point nothing is
        integrated
    """

    problem: Problem
    rates: dict[str, Expression]
    components: tuple[Component, ...]
    path: Any
    regular: bool = True

    @property
    def steps(self) -> Array:
        """The points (M, 1) at which the ODE solver stood, in their order."""
        return np.asarray(self.path.ts)[:, None]

    def rate(self, points: Array, states: Array) -> Array:
        """Return d/dt of all components (c, M) at points (M, 1)."""
        known = self.problem.vocabulary.at(points)
        rates = np.empty_like(states)
        for row, component in enumerate(self.components):
            above = Component(component.field, component.level + 1)
            if above in self.components:
                rates[row] = states[self.components.index(above)]
                continue
            expression = self.rates[component.field]
            values = known | {s: states[self.components.index(Component.of(j))] for s, j in expression.symbols.items()}
            rates[row] = evaluate([expression.formula], values, expression.functions)[0]
        return rates

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """Return a derivative (M, fields)."""
        states = np.atleast_2d(self.path(points[:, 0]))
        moved = self.rate(points, states)
        result = np.zeros((len(points), len(self.problem.fields)))
        for row, component in enumerate(self.components):
            column = self.problem.fields.index(component.field)
            if component.level == derivative[0]:
                result[:, column] = states[row]
            elif component.level + 1 == derivative[0]:
                result[:, column] = moved[row]
        return np.nan_to_num(result, nan=0.0, posinf=0.0, neginf=0.0)
