"""The data of an evolution (sources, coefficients, initial and boundary values) on fine grids, before any work.

A march that looks at a problem at its own times cannot know what lies between them: a pulse shorter than a step. Every
part of a statement that depends on coordinates alone is evaluated here, and tells where the data vary and how fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import sympy
from scipy.optimize import brentq

from rannpde.arrays import Array
from rannpde.pde.problem.evolution import Evolution
from rannpde.pde.problem.variation import data_parts
from rannpde.pde.statement.evaluate import evaluate
from rannpde.pde.statement.kinks import kink_places
from rannpde.pde.statement.vocabulary import coordinate_symbol

TIMES, PLACES = 2**15, 12
"""Times of the fine grid, and places at which it is looked at: a pulse of 1e-3 of the duration spans thirty of them."""
JUST_BEFORE = 1e-13
"""A march stops this share of the duration before a break in time: no stage of a step may sit on the break itself."""


# --------------------------------------------------------------------------------------------------------- in time


@dataclass(frozen=True, eq=False)
class Clock:
    """How fast the data change in time.

    times (K,) and passed (K,): how many lengths of the data have gone by; breaks: times at which they jump or kink
    """

    times: Array = field(default_factory=lambda: np.zeros(0))
    passed: Array = field(default_factory=lambda: np.zeros(0))
    breaks: tuple[float, ...] = ()
    lengths_per_step: float = np.inf

    @classmethod
    def of(cls, evolution: Evolution, lengths_per_step: float) -> Clock:
        """The clock of everything in the equations and boundary conditions that depends on time explicitly."""
        problem, time = evolution.problem, coordinate_symbol("t")
        expressions = [part for rate in evolution.rates.values() for part in rate.parts]
        expressions += [term.expression for term in problem.constraints if term.kind == "boundary"]
        parts = [part for part in data_parts(expressions, set(problem.vocabulary.symbols)) if time in part.free_symbols]
        if not parts:
            return cls()
        start, end = evolution.domain.time
        times = np.linspace(start, end, TIMES + 1)
        known = {time: times[:, None]}
        places = evolution.domain.space.sample(PLACES, rng=0)
        known |= {coordinate_symbol(n): places[None, :, k] for k, n in enumerate(problem.vocabulary.space)}
        inverse = np.zeros(len(times))
        for value in evaluate(parts, known, evolution.problem.functions):
            values = np.broadcast_to(value, (len(times), len(places)))
            inverse = np.maximum(inverse, _inverse_lengths(np.nan_to_num(values), times[1] - times[0]))
        passed = np.append(0.0, np.cumsum(0.5 * (inverse[1:] + inverse[:-1]) * np.diff(times)))
        return cls(times, passed, tuple(_breaks(parts, evolution, times)), lengths_per_step)

    def longest_step(self, now: float) -> float:
        """The longest step from that time that passes no more lengths than allowed, and no break."""
        if not len(self.times):
            return np.inf
        margin = JUST_BEFORE * (self.times[-1] - self.times[0])
        ahead = [when - margin for when in self.breaks if when - 2 * margin > now]
        allowed = np.interp(now, self.times, self.passed) + self.lengths_per_step
        if allowed < self.passed[-1]:
            ahead.append(float(np.interp(allowed, self.passed, self.times)))
        return max(min(ahead) - now, margin) if ahead else np.inf


def _inverse_lengths(values: Array, step: float) -> Array:
    """1/ℓ in time (K,), the largest over the columns of values (K, P): |g'|/U + √(|g''|/U), U half the range."""
    span = 0.5 * float(np.ptp(values))
    if not span > 1e-12 * float(np.abs(values).max()):
        return np.zeros(len(values))
    slope = np.abs(np.gradient(values, step, axis=0)) / span
    bend = np.abs(np.gradient(np.gradient(values, step, axis=0), step, axis=0)) / span
    return (slope + np.sqrt(bend)).max(axis=1)


def _breaks(parts: list[sympy.Expr], evolution: Evolution, times: Array) -> Iterator[float]:
    """Zeros of what stands inside sign, abs, max, … and depends on time alone."""
    time = coordinate_symbol("t")
    found: set[float] = set()
    for part in parts:
        for inner in kink_places(part):
            if inner.free_symbols != {time}:
                continue

            def value(t: float, inner: sympy.Expr = inner) -> float:
                return float(evaluate([inner], {time: np.array([t])}, evolution.problem.functions)[0][0])

            values = np.broadcast_to(evaluate([inner], {time: times}, evolution.problem.functions)[0], times.shape)
            for place in np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0):
                found.add(float(brentq(value, times[place], times[place + 1], xtol=1e-15 * abs(times[-1]) + 1e-300)))
            found |= {float(t) for t in times[values == 0.0]} if (values == 0.0).sum() < 100 else set()
    yield from sorted(when for when in found if times[0] < when < times[-1])


# -------------------------------------------------------------------------------------------------------- in space


def space_fields(evolution: Evolution, points: Array, looks: int = 5) -> Iterator[Array]:
    """Initial values, and at a few times every part of the equations that varies in space, at points (M, d): (M,)."""
    problem = evolution.problem
    for component in evolution.components:
        yield evolution.initial_values(component, points)
    space = {coordinate_symbol(name) for name in problem.vocabulary.space}
    expressions = [part for rate in evolution.rates.values() for part in rate.parts]
    parts = [part for part in data_parts(expressions, set(problem.vocabulary.symbols)) if part.free_symbols & space]
    known = {coordinate_symbol(name): points[:, k] for k, name in enumerate(problem.vocabulary.space)}
    for time in np.linspace(*evolution.domain.time, looks) if parts else ():
        now = known | {coordinate_symbol("t"): np.asarray(time)}
        for value in evaluate(parts, now, evolution.problem.functions):
            yield np.nan_to_num(np.broadcast_to(value, (len(points),)).astype(float))


def source_size(evolution: Evolution, name: str, points: Array, looks: int = 2**12 + 1, places: int = 64) -> float:
    """The mean over time of the root mean square over space of what moves a field where all fields vanish.

    Many times and few of the points: a pulse that no look falls on would make the scale nothing, and u a blow-up.
    """
    rate, problem, points = evolution.rates[name], evolution.problem, points[:places]
    known = {coordinate_symbol(n): points[None, :, k] for k, n in enumerate(problem.vocabulary.space)}
    known[coordinate_symbol("t")] = np.linspace(*evolution.domain.time, looks)[:, None]
    known |= {symbol: np.zeros(()) for symbol in rate.source.symbols}
    values = np.nan_to_num(evaluate([rate.source.formula], known, problem.functions)[0])
    return float(np.sqrt(np.mean(np.broadcast_to(values, (looks, len(points))) ** 2, axis=1)).mean())
