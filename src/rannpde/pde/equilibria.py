"""Equilibria that a solution of an initial value problem reaches, and after which it is not unique.

A solution of u' = f(t, u) with a Lipschitz continuous f never reaches an equilibrium. If f behaves like |u - u*|^p with
p < 1, it does so in finite time (Osgood's criterion), and where f also leads away from u*, it may stay there or leave
at any moment: u' = -√|u| from u = 1 is zero at t = 2 and undetermined from then on. Every discretisation decides for
one of these solutions, and its iterations agree.

A system has no one rate of a distance. A perturbation of the equilibrium is integrated instead until it has grown to a
given distance. The time that it takes grows without bounds as the perturbation becomes small where f is Lipschitz
continuous, each digit taking as long as the one before; it has a limit where solutions leave in finite time. The same
backwards in time tells whether solutions arrive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.integrate import solve_ivp

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.initial import Integrated
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.rounding import EPS, ROOT_ROUNDED

HALF_OF_THE_BITS = np.finfo(float).nmant // 2
"""Halvings of a distance from an equilibrium over which its exponent is measured."""


@dataclass(frozen=True)
class Equilibrium:
    """A state that a solution reaches at a time, and from which it may depart at any later one.

    values : of the component, or of all that are at rest together, by their names
    exponent : p of the rate |u - u*|^p, less than 1; of systems, that of one component with the same times of departure
    """

    time: float
    values: dict[str, float]
    exponent: float

    def described(self, coordinate: str) -> str:
        """Return a sentence for users."""
        state = ", ".join(f"{name} = {value:.4g}" for name, value in self.values.items())
        return (
            f"the solution is not unique: it reaches {state} at {coordinate} = {self.time:.4g}, where its rate "
            f"vanishes like a distance to the power {self.exponent:.2f}, and may stay there or leave at any time; end "
            "the interval before it, or begin beside it"
        )


def reached_equilibrium(path: Integrated) -> Equilibrium | None:
    """Return the equilibrium through which a solution passes, or in which it begins; None where there is none.

    >>> from rannpde.domains import Interval
    >>> from rannpde.pde.initial import integrated
    >>> from rannpde.pde.problem.problem import Problem
    >>> problem = Problem("u_t = -sqrt(abs(u))", Interval(0, 3, name="t"), {"t=0": "u = 1"})
    >>> reached = reached_equilibrium(integrated(problem))
    >>> round(reached.time, 2), round(reached.exponent, 3), reached.values
    (2.0, 0.5, {'u': 0.0})
    >>> problem = Problem("u_t = -u", Interval(0, 3, name="t"), {"t=0": "u = 1"})
    >>> reached_equilibrium(integrated(problem)) is None
    True
    """
    if np.any(path.rate(path.steps[:1], np.atleast_2d(path.path(path.steps[:1, 0])))):
        for row in range(len(path.components)):
            reached = _reached_by_component(path, row)
            if reached is not None:
                return reached
        if len(path.components) == 1:
            return None
    return _reached_by_system(path)


def _reached_by_component(path: Integrated, row: int) -> Equilibrium | None:
    """The same for one component, where the others are what they are on the path."""
    times = path.steps[:, 0]
    if len(times) < 3:
        return None
    forward = np.sign(times[-1] - times[0])

    def rate(time: float, values: Array) -> Array:
        """The rates (M,) of values (M,) at one time, in the direction of the integration."""
        every = np.repeat(np.atleast_2d(path.path(np.array([time]))), len(values), axis=1)
        every[row] = values
        return np.asarray(forward * _rates(path, np.full(len(values), time), every)[row])

    states = np.atleast_2d(path.path(times))[row]
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
    if 2 * later > min(abs(sides[side][-1]) for side in singular):  # the rate does not vanish there, or not for long
        return None
    arrived = int(np.argmax(away <= max(EPS**0.5 * size, away.min())))
    return Equilibrium(float(times[arrived]), {_name(path, row): _rounded(value, size)}, min(departures))


def _name(path: Integrated, row: int) -> str:
    """Name of a component, such as u_t for a first derivative."""
    component = path.components[row]
    return component.field + "_" * bool(component.level) + path.problem.domain.names[0] * component.level


def _rounded(value: float, size: float) -> float:
    """Return a value, or 0 where it is rounding of a size."""
    return float(value) if abs(value) > ROOT_ROUNDED * size else 0.0


def _reached_by_system(path: Integrated) -> Equilibrium | None:
    """The same for several components, or for a solution that begins in the equilibrium."""
    times = path.steps[:, 0]
    states = np.atleast_2d(path.path(times))
    sizes = np.abs(states).max(axis=1)
    sizes = np.where(sizes > 0, sizes, sizes.max() or 1.0)
    still = np.flatnonzero(np.abs(_rates(path, times, states)).max(axis=0) == 0)
    if len(still):
        begins, value, width = int(still[0]), states[:, still[0]], EPS ** (1 / 4) * sizes
    else:
        speeds = (np.abs(_rates(path, times, states)) / sizes[:, None]).max(axis=0)
        if len(times) < 3:
            return None
        begins = 1 + int(np.argmin(speeds[1:-1]))
        width = np.maximum(np.ptp(states[:, begins - 1 : begins + 2], axis=1), EPS ** (1 / 4) * sizes)
        value = _rest(path, times[begins], states[:, begins], width, sizes)
        between = np.linspace(times[begins - 1], times[begins + 1], HALF_OF_THE_BITS**2)
        gaps = (np.abs(np.atleast_2d(path.path(between)) - value[:, None]) / sizes[:, None]).max(axis=0)
        if gaps.min() > EPS ** (1 / 4):  # half of the digits of an energy, which has the square root of its error
            return None
    end = times[-1]
    least = 0.5**HALF_OF_THE_BITS
    later = np.abs(_rates(path, times[begins:], np.repeat(value[:, None], len(times) - begins, axis=1)))
    beside = np.abs(_rates(path, times[begins : begins + 1], (value + least * width)[:, None]))
    if not 2 * later.max() <= beside.max() or not np.isfinite(beside).all():
        return None
    if not len(still) and _departure(path, value, times[begins], times[0], width) is None:  # no solution arrives
        return None
    exponent = _departure(path, value, times[begins], end, width)
    values = {_name(path, row): _rounded(*one) for row, one in enumerate(zip(value, sizes, strict=True))}
    return None if exponent is None else Equilibrium(float(times[begins]), values, exponent)


def _rates(path: Integrated, times: Array, states: Array) -> Array:
    """Rates (c, M) of states (c, M) at times (M,), in silence where they are not finite."""
    with np.errstate(all="ignore"):
        return path.rate(np.asarray(times)[:, None], states)


def _rest(path: Integrated, time: float, near: Array, width: Array, sizes: Array) -> Array:
    """Return the state near one at which the largest rate, relative to the sizes, is least, one component at a time."""
    value = near.copy()
    for _ in range(2):
        for row in range(len(value)):

            def speed(own: Array, row: int = row) -> Array:
                states = np.repeat(value[:, None], len(own), axis=1)
                states[row] = own
                with np.errstate(all="ignore"):
                    rates = np.linalg.norm(_rates(path, np.full(len(own), time), states) / sizes[:, None], axis=0)
                return np.where(np.isfinite(rates), rates, np.inf)

            value[row] = _least(speed, near[row] - width[row], near[row] + width[row], EPS * sizes[row])
    return value


def _departure(path: Integrated, value: Array, begin: float, end: float, width: Array) -> float | None:
    """Return the exponent with which perturbations of a state leave it between two times; None where they do not.

    width (c,) : the distance to which they grow
    """
    distances = 0.5 ** (HALF_OF_THE_BITS * np.array([1 / 3, 2 / 3, 1.0]))
    exponents = []
    for direction in np.concatenate([np.diag(width), -np.diag(width)]):
        durations: list[float] = []
        for one in distances:
            if np.isfinite(durations).all():
                durations.append(_duration(path, value, one * direction, begin, end, width))
        if np.isfinite(durations).all():
            slower = np.diff(durations)  # by which smaller perturbations take longer
            rate = np.log(slower[0] / slower[1]) / np.log(distances[0] / distances[1]) if (slower > 0).all() else 1.0
            exponents.append(1 - float(np.clip(rate, 0, 1)))
    finite = [one for one in exponents if one < 1 - 1 / 8]  # below 1 by more than a logarithm is
    return max(finite, default=None)


def _duration(path: Integrated, value: Array, shift: Array, begin: float, end: float, width: Array) -> float:
    """Return how long a perturbation of a state takes until it is as large as ``width``; infinite where it does not."""
    count = 0

    def rate(time: float, gap: Array) -> Array:
        nonlocal count
        checkpoint()
        count += 1
        if count > HALF_OF_THE_BITS**2:  # as many for each halving as there are of them
            raise _Stays
        return _rates(path, np.array([time]), (value + gap)[:, None])[:, 0]

    def grown(time: float, gap: Array) -> float:
        return float((np.abs(gap) / width).max() - 1)

    grown.terminal = True  # type: ignore[attr-defined]
    try:
        with np.errstate(all="ignore"):
            run = solve_ivp(
                rate, (begin, end), shift, rtol=ROOT_ROUNDED,
                atol=MUCH_SMALLER * ROOT_ROUNDED * float(np.abs(shift).max()), events=grown,
            )  # fmt: skip
    except (_Stays, ValueError, FloatingPointError):
        return np.inf
    return abs(float(run.t_events[0][0]) - begin) if run.status == 1 else np.inf


class _Stays(Exception):
    """A perturbation took too many evaluations of its rate."""


def _least(rate: Callable[[Array], Array], low: float, high: float, accuracy: float) -> float:
    """Return where the size of a rate is least, to all digits: a root of it has only half of an error's digits."""
    values = np.linspace(low, high, HALF_OF_THE_BITS)
    while True:
        checkpoint()
        least, before = int(np.argmin(np.abs(rate(values)))), high - low
        low, high = values[max(least - 1, 0)], values[min(least + 1, len(values) - 1)]
        if high - low <= accuracy or high - low >= before:  # there are no numbers in between
            return float(values[least])
        values = np.linspace(low, high, HALF_OF_THE_BITS)


def _exponent(distances: Array, rates: Array) -> float:
    """Return p of rates that behave like a distance to the power p; 1, that of smooth ones, where p is not below it."""
    if np.any(rates == 0) or not np.all(np.isfinite(rates)):
        return 1.0
    exponent = float(np.polyfit(np.log(distances), np.log(np.abs(rates)), 1)[0])
    return exponent if exponent < 1 - 1 / len(distances) else 1.0
