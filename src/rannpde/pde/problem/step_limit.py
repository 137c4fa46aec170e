"""The longest steps in time that resolve the data of an evolution.

An integrator sees sources, coefficients and boundary values at its stages only. A pulse between two stages leaves no
trace in its error estimate, and every integration with steps of that length misses it alike. The data are known before
anything is solved, so they are sampled here on a fine grid, and polynomials as an integrator uses them are fitted to
them on dyadic intervals: a step may be as long as the longest of these on which the polynomial is accurate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import sympy
from numpy.polynomial import legendre
from scipy.optimize import brentq

from rannpde.arrays import Array
from rannpde.pde.problem.data import finite_samples, timed_parts
from rannpde.pde.problem.evolution import Evolution
from rannpde.pde.statement.kinks import kink_levels
from rannpde.rounding import EPS, ROUNDED

GRID_TIMES, SAMPLE_POINTS = 2**15, 12
"""Times of the fine grid, and points at which it is sampled: a pulse of 1e-3 of the duration spans thirty of the times.
"""
LEAF_TIMES = 2**4
"""Times in the shortest interval: enough for polynomials of the degrees that integrators have."""
JUST_BEFORE = 2**4 * EPS
"""Time integration stops this fraction of the largest time before a break in time: no stage may lie on the break
itself, which is known up to rounding only."""


@dataclass(frozen=True, eq=False)
class StepLimit:
    """The longest step that resolves the data, at every time.

    edges (K + 1,), lengths (K,) : intervals of time, and the longest step that may lie in each
    breaks : times at which the data jump or have kinks, on which steps must end
    """

    edges: Array = field(default_factory=lambda: np.zeros(1))
    lengths: Array = field(default_factory=lambda: np.zeros(0))
    breaks: tuple[float, ...] = ()

    @classmethod
    def of(cls, evolution: Evolution, tol: float, degree: int) -> StepLimit:
        """Return the limit for everything in the equations and boundary conditions that depends on time explicitly.

        tol : share of their range that data may be wrong by in the mean square over the whole time
        degree : degree of the polynomial by which a step of the integrator represents the data
        """
        parts = timed_parts(evolution)
        if not parts:
            return cls()
        start, end = evolution.domain.time
        points = evolution.domain.space.sample(SAMPLE_POINTS, rng=0)
        breaks = tuple(_breaks(parts, evolution, np.linspace(start, end, GRID_TIMES + 1)))
        segments = list(pairwise((start, *breaks, end)))
        count = max(GRID_TIMES >> (len(segments) - 1).bit_length(), LEAF_TIMES)
        inner = (np.arange(count) + 0.5) / count
        times = np.concatenate([lower + (upper - lower) * inner for lower, upper in segments])
        shape = (len(segments), count, len(points))
        sampled = [
            finite_samples(np.broadcast_to(value, (len(times), len(points)))).reshape(shape)
            for value in evolution.values(parts, evolution.known(times[:, None], points.T[None]))
        ]
        edges, lengths = [np.array([start])], []
        for number, (lower, upper) in enumerate(segments):
            allowed = np.full(count // LEAF_TIMES, np.inf)
            for values in sampled:
                span = 0.5 * float(np.ptp(values))
                accuracy = max(tol, ROUNDED * float(np.abs(values).max()) / span) if span else np.inf
                if np.isfinite(accuracy):
                    bound = (accuracy * span) ** 2 * (end - start) / (upper - lower)
                    shares = resolved_shares(values[number], degree, bound)
                    allowed = np.minimum(allowed, np.where(shares < 1, shares * (upper - lower), np.inf))
            lengths.append(allowed)
            edges.append(np.linspace(lower, upper, len(allowed) + 1)[1:])
        return cls(np.concatenate(edges), np.concatenate(lengths), breaks)

    @property
    def margin(self) -> float:
        """The time by which steps end before a break."""
        return JUST_BEFORE * float(np.abs(self.edges).max())

    def longest_step(self, now: float) -> float:
        """Return the longest step from that time: over every interval that it reaches, it is short enough there."""
        if not len(self.lengths):
            return np.inf
        margin = self.margin
        first = int(np.clip(np.searchsorted(self.edges, now, side="right") - 1, 0, len(self.lengths) - 1))
        longest = float(np.maximum(self.lengths[first:], self.edges[first:-1] - now).min())
        ahead = [when - margin - now for when in self.breaks if when - 2 * margin > now]
        return max(min([longest, *ahead]), margin)


def resolved_shares(values: Array, degree: int, bound: float) -> Array:
    """Return for every leaf (M / LEAF_TIMES,) the share of the whole of the longest dyadic interval that is resolved.

    An interval is resolved where polynomials of the degree, fitted to each column of the values (M, P), leave a mean
    square of at most ``bound`` divided by the interval's share of the whole. Leaves that are not resolved have the
    share of a leaf.

    >>> values = np.where(np.arange(64) < 4, 0.0, 1.0)[:, None]
    >>> resolved_shares(values, 3, 1e-6).tolist()
    [0.25, 0.25, 0.5, 0.5]
    """
    count = len(values)
    leaves = count // LEAF_TIMES
    shares = np.full(leaves, 1.0 / leaves)
    for level in reversed(range(leaves.bit_length())):
        length = count >> level
        nodes = (2.0 * np.arange(length) + 1.0) / length - 1.0
        basis, _ = np.linalg.qr(legendre.legvander(nodes, min(degree, length - 1)))
        blocks = values.reshape(1 << level, length, -1)
        left = blocks - basis @ (basis.T @ blocks)
        resolved = np.mean(left**2, axis=1).max(axis=1) <= bound * (1 << level)
        shares = np.where(np.repeat(resolved, leaves >> level), 2.0**-level, shares)
    return shares


def _breaks(parts: list[sympy.Expr], evolution: Evolution, times: Array) -> Iterator[float]:
    """Iterate over the zeros of arguments of sign, abs, max, … that depend on time alone."""
    time = evolution.clock
    breaks: set[float] = set()
    for part in parts:
        for inner in kink_levels(part):
            if inner.free_symbols != {time}:
                continue

            def value(t: float, inner: sympy.Expr = inner) -> float:
                return float(evolution.values([inner], {time: np.array([t])})[0][0])

            values = np.broadcast_to(evolution.values([inner], {time: times})[0], times.shape)
            for number in np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0):
                breaks.add(float(brentq(value, times[number], times[number + 1], xtol=1e-15 * abs(times[-1]) + 1e-300)))
            breaks |= {float(t) for t in times[values == 0.0]} if (values == 0.0).sum() < 100 else set()
    yield from sorted(when for when in breaks if times[0] < when < times[-1])
