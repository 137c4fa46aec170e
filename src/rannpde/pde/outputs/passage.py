"""First times: when an expression in values at points changes its sign."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from rannpde.arrays import Array
from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError
from rannpde.pde.outputs.comparison import SolutionPair
from rannpde.pde.outputs.quantity import Quantity
from rannpde.pde.problem.output_expression import OutputExpression
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.rounding import EPS


def first_passage(
    comparison: SolutionPair,
    expression: OutputExpression,
    difference: Callable[[SolutionPair, OutputExpression, Array], float],
) -> Quantity:
    """The first time at which the expression is zero.

    The bound is the error of the expression at that time over its speed, |δg| / |g'|. InputError where there is none.
    """
    domain = comparison.solution.stated.domain
    if not isinstance(domain, SpaceTime):
        raise InputError(f"a first time of {expression.text!r} needs a problem in time")
    if not expression.fixed:
        raise InputError(f"{expression.text!r} has no value of its own at a time; name points, such as u(0.5, 0.5) = 1")
    start, end = domain.time
    duration = end - start
    row = domain.bounds[:, 0].copy()

    def value(time: float) -> float:
        return float(expression.values(comparison.solution.function, _at(row, time))[0])

    # times close together at the beginning too, where solutions may change fast
    even = np.linspace(0.0, 1.0, comparison.settings.times + 1)
    times = start + duration * np.unique(np.concatenate([even, np.geomspace(1e-8, 1.0, comparison.settings.times)]))
    rows = np.tile(row, (len(times), 1))
    rows[:, 0] = times
    values = expression.values(comparison.solution.function, rows)
    known = np.isfinite(values)
    times, values = times[known], np.asarray(values)[known]
    if not len(times):
        raise InputError(f"{expression.text!r} has no finite value at any time; the solution may have ended early")
    crossing = _crossing(times, values, value)
    if crossing is None:
        raise InputError(
            f"{expression.text!r} does not happen from t = {start:g} to {times[-1]:g}: left minus right is between "
            f"{values.min():.6g} and {values.max():.6g}; solve for a longer time"
        )
    time = crossing[0] if crossing[0] == crossing[1] else float(brentq(value, *crossing, xtol=1e-15 * duration))
    step = EPS ** (1 / 3) * duration  # the best of a central difference
    low, high = max(start, time - step), min(end, time + step)
    speed = abs(value(high) - value(low)) / (high - low)
    error = comparison.safety * difference(comparison, expression, _at(row, time)[0])
    rounding = comparison.settings.rounding * float(np.abs(values).max())
    bound = (error + rounding) / speed if speed > 0 else np.inf
    good = comparison.converged and np.isfinite(bound) and bound < MUCH_SMALLER * duration
    return Quantity(time, bound, bool(good), f"{comparison.basis}, error over speed")


def _at(row: Array, time: float) -> Array:
    point = row[None, :].copy()
    point[0, 0] = time
    return point


def _crossing(times: Array, values: Array, value: Callable[[float], float]) -> tuple[float, float] | None:
    """Two times around the first change of sign, also where it happens twice between two of the times."""
    if values[0] == 0:
        return float(times[0]), float(times[0])
    sign = np.sign(values[0])
    for k in range(1, len(times)):
        if sign * values[k] <= 0:
            return float(times[k - 1]), float(times[k])
        dip = (
            2 <= k < len(times) - 1
            and sign * values[k] < sign * values[k - 1]
            and values[k] * sign < sign * values[k + 1]
        )
        if dip and sign * values[k] < MUCH_SMALLER * abs(values).max():
            minimum = minimize_scalar(lambda t: sign * value(t), bounds=(times[k - 1], times[k + 1]), method="bounded")
            if minimum.fun <= 0:
                return float(times[k - 1]), float(minimum.x)
    return None
