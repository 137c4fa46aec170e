"""Equilibria that a solution of an initial value problem reaches, and after which it is not unique.

A solution of u' = f(t, u) with a Lipschitz continuous f never reaches an equilibrium. If f behaves like |u - u*|^p with
p < 1, it does so in finite time (Osgood's criterion), and where f also leads away from u*, it may stay there or leave
at any moment: u' = -√|u| from u = 1 is zero at t = 2 and undetermined from then on. Every discretisation decides for
one of these solutions, and its iterations agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.initial import Integrated
from rannpde.rounding import EPS

HALF_OF_THE_BITS = np.finfo(float).nmant // 2
"""Halvings of a distance from an equilibrium over which its exponent is measured."""


@dataclass(frozen=True)
class Equilibrium:
    """A state that a solution reaches at a time, and from which it may depart at any later one.

    exponent : p of the rate |u - u*|^p, less than 1
    """

    time: float
    value: float
    exponent: float


def reached_equilibrium(path: Integrated) -> Equilibrium | None:
    """Return the equilibrium through which a solution of one component passes; None where there is none.

    >>> from rannpde.domains import Interval
    >>> from rannpde.pde.initial import integrated
    >>> from rannpde.pde.problem.problem import Problem
    >>> problem = Problem("u_t = -sqrt(abs(u))", Interval(0, 3, name="t"), {"t=0": "u = 1"})
    >>> reached = reached_equilibrium(integrated(problem))
    >>> round(reached.time, 2), round(reached.exponent, 3)
    (2.0, 0.5)
    >>> problem = Problem("u_t = -u", Interval(0, 3, name="t"), {"t=0": "u = 1"})
    >>> reached_equilibrium(integrated(problem)) is None
    True
    """
    times = path.steps[:, 0]
    if len(path.components) > 1 or len(times) < 3:
        return None
    forward = np.sign(times[-1] - times[0])

    def rate(time: float, values: Array) -> Array:
        """The rates (M,) of values (M,) at one time, in the direction of the integration."""
        with np.errstate(all="ignore"):
            return forward * path.rate(np.full((len(values), 1), time), values[None])[0]

    states = path.path(times)[0]
    size = float(np.abs(states).max())
    speeds = [abs(rate(time, states[k : k + 1])[0]) for k, time in enumerate(times)]
    slowest = 1 + int(np.argmin(speeds[1:-1]))
    # steps may stagger about an equilibrium before they depart, at a distance of their tolerance
    width = max(float(np.ptp(states[slowest - 1 : slowest + 2])), EPS ** (1 / 4) * size)
    now = partial(rate, times[slowest])
    value = _least(now, states[slowest] - width, states[slowest] + width, EPS * size)
    away = np.abs(states - value)
    if away.min() > EPS**0.5 * size and np.ptp(np.sign(states - value)) == 0:  # not reached
        return None
    distances = width * 0.5 ** np.arange(HALF_OF_THE_BITS)
    sides = {side: side * now(value + side * distances) for side in (-1.0, 1.0)}
    singular = {side: p for side, rates in sides.items() if (p := _exponent(distances, rates)) < 1}
    far = states[:slowest][away[:slowest] > width]
    arrival = float(np.sign((far[-1] if len(far) else states[0]) - value))
    departures = [p for side, p in singular.items() if np.all(sides[side] > 0)]
    if arrival not in singular or not np.all(sides[arrival] < 0) or not departures:
        return None
    later = max(abs(float(rate(time, np.array([value]))[0])) for time in times[slowest:])
    if later > min(abs(sides[side][-1]) for side in singular):  # the rate does not vanish there, or not for long
        return None
    arrived = int(np.argmax(away <= max(EPS**0.5 * size, away.min())))
    return Equilibrium(float(times[arrived]), value if abs(value) > EPS * size else 0.0, min(departures))


def _least(rate: Callable[[Array], Array], low: float, high: float, accuracy: float) -> float:
    """Return where the size of a rate is least, to all digits: a root of it has only half of an error's digits."""
    values = np.linspace(low, high, HALF_OF_THE_BITS)
    while True:
        least = int(np.argmin(np.abs(rate(values))))
        low, high = values[max(least - 1, 0)], values[min(least + 1, len(values) - 1)]
        if high - low <= accuracy:
            return float(values[least])
        values = np.linspace(low, high, HALF_OF_THE_BITS)


def _exponent(distances: Array, rates: Array) -> float:
    """Return p of rates that behave like a distance to the power p; 1, that of smooth ones, where p is not below it."""
    if np.any(rates == 0) or not np.all(np.isfinite(rates)):
        return 1.0
    exponent = float(np.polyfit(np.log(distances), np.log(np.abs(rates)), 1)[0])
    return exponent if exponent < 1 - 1 / len(distances) else 1.0
