"""Quantities as functions of time: their largest and smallest values and their frequency.

The error is what two signals differ by: those of two solutions or, for forces of a flow, of the last two iterations,
which are two solutions as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from rannpde.arrays import Array
from rannpde.domains.domain import SpaceTime
from rannpde.pde.outputs.comparison import SolutionPair, compared_integral
from rannpde.pde.outputs.forces import force_signals
from rannpde.pde.outputs.quantity import Quantity
from rannpde.pde.outputs.settings import OutputSettings
from rannpde.pde.problem.output import Output
from rannpde.pde.problem.output_expression import OutputExpression
from rannpde.pde.problem.output_region import output_region, times_of
from rannpde.pde.solution import Solution

FORCE_BASIS = "the weak residual of momentum, two iterations"
"""What bounds of forces in time rest on."""


@dataclass(frozen=True, eq=False)
class Signal:
    """A function of time by a cubic spline through values (N,) at times (N,).

    >>> times = np.linspace(0, 10, 301)
    >>> signal = Signal(times, 2 + np.sin(3 * times))
    >>> round(signal.largest(1.0)[0], 6), round(signal.frequency()[0] * 2 * np.pi, 5)
    (3.0, 3.0)
    """

    times: Array
    values: Array

    @cached_property
    def curve(self) -> CubicSpline:
        return CubicSpline(self.times, self.values)

    def within(self, start: float, end: float) -> Signal | None:
        """Its part between two times; None where it has less than a few values there."""
        start, end = max(start, float(self.times[0])), min(end, float(self.times[-1]))
        inside = (self.times > start) & (self.times < end)
        if inside.sum() < 2:
            return None
        times = np.concatenate([[start], self.times[inside], [end]])
        return Signal(times, np.asarray(self.curve(times)))

    def largest(self, sign: float) -> tuple[float, float]:
        """The largest (sign 1) or smallest (sign -1) value, and its time."""
        turns = self.curve.derivative().roots(extrapolate=False)
        times = np.concatenate([self.times[[0, -1]], turns[np.isfinite(turns)]])
        values = sign * self.curve(times)
        best = int(np.argmax(values))
        return sign * float(values[best]), float(times[best])

    def frequency(self) -> tuple[float, float]:
        """Periods over their time, and by how much that of the last period differs from it; NaN without a period.

        A period lasts from one upward crossing of the mean to the next.
        """
        level = float(self.curve.integrate(self.times[0], self.times[-1])) / float(np.ptp(self.times))
        crossings = self.curve.solve(level, extrapolate=False)
        crossings = crossings[np.isfinite(crossings)]
        upward = np.sort(crossings[self.curve(crossings, 1) > 0])
        if len(upward) < 2:
            return np.nan, np.inf
        frequency = (len(upward) - 1) / float(upward[-1] - upward[0])
        return frequency, abs(1 / float(upward[-1] - upward[-2]) - frequency)


def quantity_in_time(comparison: SolutionPair, output: Output, expression: OutputExpression) -> Quantity:
    """A maximum, minimum or frequency in time of a stated output, with the second solution for its bound."""
    alone = force_in_time(comparison.solution, output, expression)
    if alone is not None:
        return alone
    both = [comparison.solution, *([] if comparison.companion is None else [comparison.companion])]
    signals = [_signal(one, output, expression, comparison.settings) for one in both]
    return _judged(comparison.solution, output, signals, comparison.safety, comparison.basis)


def force_in_time(solution: Solution, output: Output, expression: OutputExpression) -> Quantity | None:
    """A maximum, minimum or frequency of a force of a flow, which needs no second solution; None for other outputs."""
    series = force_signals(solution, expression, output.on)
    if series is None:
        return None
    signals = [Signal(times, values) for times, values in series]
    return _judged(solution, output, signals, OutputSettings().safety, FORCE_BASIS)


def force_at(solution: Solution, expression: OutputExpression, on: Any, t: Any) -> Quantity | None:
    """A force of a flow at a time, or at several, by the weak residual; None for anything else."""
    series = force_signals(solution, expression, on)
    times = times_of(t, solution.stated)
    if series is None or times.min() < series[0][0][0] or times.max() > series[0][0][-1]:
        return None  # between the start and the first stage no force is known
    now, *before = [Signal(*one) for one in series]
    values, bounds = np.asarray(now.curve(times)), np.full(len(times), np.inf)
    if before and times.max() <= before[0].times[-1] and times.min() >= before[0].times[0]:
        common = now.times[(now.times >= before[0].times[0]) & (now.times <= before[0].times[-1])]
        usual = np.sqrt(np.mean((now.curve(common) - before[0].curve(common)) ** 2))
        bounds = OutputSettings().safety * np.maximum(np.abs(values - before[0].curve(times)), usual)
    good = solution.converged and bool(np.isfinite(bounds).all())
    if np.ndim(t) == 0:
        return Quantity(float(values[0]), float(bounds[0]), good, FORCE_BASIS)
    return Quantity(values, bounds, good, FORCE_BASIS, times=times)


def _judged(solution: Solution, output: Output, signals: Sequence[Signal], safety: float, basis: str) -> Quantity:
    start, end = np.ravel(output.t).tolist() if output.t is not None else _interval(solution)
    parts = [part for part in (one.within(start, end) for one in signals) if part is not None]
    if not parts or len(parts) < len(signals):
        return Quantity(np.nan, np.inf, False, f"{basis}; the solution ends before these times")
    rounding = OutputSettings().rounding
    location: tuple[float, ...] = ()
    if output.kind == "frequency":
        value, spread = parts[0].frequency()
        other = parts[1].frequency()[0] if len(parts) > 1 else np.inf
        bound = safety * abs(value - other) + spread
        basis = f"{basis}; by upward crossings of its mean"
    else:
        sign = 1.0 if output.kind == "maximum in time" else -1.0
        value, when = parts[0].largest(sign)
        location = (when,)
        # the other extremum counts too: a difference that vanishes by chance in one makes no bound small
        ends = np.array([[one.largest(s)[0] for s in (1.0, -1.0)] for one in parts])
        bound = safety * float(np.abs(ends[0] - ends[1]).max()) if len(parts) > 1 else np.inf
    bound += rounding * float(np.abs(parts[0].values).max())
    whole = bool(parts[0].times[-1] >= end - rounding * abs(end))
    good = solution.converged and whole and bool(np.isfinite(value) and np.isfinite(bound))
    return Quantity(value, bound if np.isfinite(bound) else np.inf, good, basis, location)


def _interval(solution: Solution) -> tuple[float, float]:
    domain = solution.stated.domain
    assert isinstance(domain, SpaceTime)
    start, end = domain.time
    return float(start), float(end)


def _signal(solution: Solution, output: Output, expression: OutputExpression, settings: OutputSettings) -> Signal:
    """Values at even times: of an expression in values at points, or of the integral over a region."""
    start, end = np.ravel(output.t).tolist() if output.t is not None else _interval(solution)
    problem = solution.stated
    if expression.fixed:
        times = np.linspace(start, end, settings.times + 1)
        rows = np.tile(problem.domain.bounds[:, 0], (len(times), 1))
        rows[:, 0] = times
        values = np.asarray(expression.values(solution.function, rows))
    else:
        times = np.linspace(start, end, settings.times // 4 + 1)  # each is an integral
        alone = SolutionPair(solution, None, settings)
        values = np.array(
            [compared_integral(alone, expression, output_region(output.on, float(t), problem)).value for t in times]
        )
    known = np.isfinite(values)
    return Signal(times[known], values[known])
