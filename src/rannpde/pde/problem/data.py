"""The data of a problem (sources, coefficients, initial and boundary values) on fine grids, before it is solved.

A solver that samples a problem at its own points and times cannot know what lies between them: a load narrower than
their distance, a pulse shorter than a step. Every part of a statement that depends on coordinates alone is evaluated
here, to find where the data vary and how fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.domains.domain import Domain
from rannpde.pde.problem.evolution import Evolution
from rannpde.pde.statement.expression import Expression, evaluate
from rannpde.pde.tolerance import COMPARABLE, MUCH_SMALLER

if TYPE_CHECKING:
    from rannpde.pde.problem.problem import Problem

GRID_CELLS = {1: 2**16, 2: 2**9, 3: 2**6}
"""Cells per axis of the fine grid in all coordinates; in more dimensions the data are not sampled."""
CONCENTRATED_FRACTION = MUCH_SMALLER
"""Data are concentrated when half of their variation lies in this fraction of the domain."""

JUMP_FRACTION = COMPARABLE
"""Data that change by this fraction of their range from one cell of the fine grid to the next have a jump there."""


def data_parts(expressions: Iterable[Expression], coordinates: set[sympy.Symbol]) -> list[sympy.Expr]:
    """Return the largest parts of these expressions that depend on coordinates but on no field, each once."""
    parts: dict[sympy.Expr, None] = {}
    stack = [expression.formula for expression in expressions]
    while stack:
        node = stack.pop()
        if node.free_symbols and node.free_symbols <= coordinates:
            parts[node] = None
        elif node.is_Add or node.is_Mul:  # the factors or summands without fields are one part
            own = [arg for arg in node.args if arg.free_symbols and arg.free_symbols <= coordinates]
            if own:
                parts[node.func(*own)] = None
            stack.extend(arg for arg in node.args if arg not in own)
        else:
            stack.extend(node.args)
    return list(parts)


def finite_samples(values: Array) -> Array:
    """Return samples of data with infinite ones at the largest finite size, and undefined ones at zero.

    A coefficient such as 1/r is infinite at an end of the domain; how fast it varies is seen from its other values.

    >>> finite_samples(np.array([-np.inf, -2.0, np.nan, 1.0])).tolist()
    [-2.0, -2.0, 0.0, 1.0]
    """
    known = np.isfinite(values)
    if known.all():
        return values
    largest = float(np.abs(values[known]).max(initial=0.0))
    return np.nan_to_num(values, nan=0.0, posinf=largest, neginf=-largest)


def bounded_samples(values: Array) -> Array:
    """Return samples v of data (M,), as v/(m + |v|) with the median size m where one of them is infinite.

    Solutions do not vary as fast as a coefficient near its poles: for 1/r they are smooth, and so is what it becomes.

    >>> bounded_samples(np.array([np.inf, 4.0, 2.0, 1.0])).round(2).tolist()
    [1.0, 0.67, 0.5, 0.33]
    """
    infinite = np.isinf(values)
    if not infinite.any():
        return finite_samples(values)
    sizes = np.abs(values)
    middle = float(np.median(sizes[np.isfinite(sizes)])) if np.isfinite(sizes).any() else 1.0
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.where(infinite, np.sign(values), values / (max(middle, np.finfo(float).tiny) + sizes)))


def timed_parts(evolution: Evolution) -> list[sympy.Expr]:
    """Return all parts of the equations and boundary conditions that depend on time explicitly."""
    problem, time = evolution.problem, evolution.clock
    expressions = [part for rate in evolution.rates.values() for part in rate.parts]
    expressions += [term.expression for term in problem.constraints if term.kind == "boundary"]
    return [part for part in data_parts(expressions, set(problem.vocabulary.symbols)) if time in part.free_symbols]


# -------------------------------------------------------------------------------------------------------- in space


def space_fields(evolution: Evolution, points: Array, samples: int = 5) -> Iterator[Array]:
    """Iterate over the initial values, and at ``samples`` times the parts of the equations that vary in space, (M,)
    each."""
    problem = evolution.problem
    for component in evolution.initial:
        yield evolution.initial_values(component, points)
    symbols = problem.vocabulary.symbols
    expressions = [part for rate in evolution.rates.values() for part in rate.parts]
    parts = [part for part in data_parts(expressions, set(symbols)) if part.free_symbols & set(symbols[1:])]
    for time in np.linspace(*evolution.domain.time, samples) if parts else ():
        for value in evolution.values(parts, evolution.known(time, points)):
            yield bounded_samples(np.broadcast_to(value, (len(points),)).astype(float))


def source_size(
    evolution: Evolution, name: str, points: Array, samples: int = 2**12 + 1, space_samples: int = 64
) -> float:
    """Return the mean over time of the root mean square over space of the rate of a field where all fields vanish.

    Many times and few points are sampled: a pulse that no sample hits would make the scale zero.
    """
    source, points = evolution.rates[name].source, points[:space_samples]
    known = evolution.known(np.linspace(*evolution.domain.time, samples)[:, None], points.T[None])
    known |= {symbol: np.zeros(()) for symbol in source.symbols}
    values = finite_samples(evolution.values([source.formula], known)[0])
    return float(np.sqrt(np.mean(np.broadcast_to(values, (samples, len(points))) ** 2, axis=1)).mean())


# ------------------------------------------------------------------------------------------- in all coordinates


@dataclass(frozen=True, eq=False)
class Variation:
    """Where and how fast the data of a problem vary: ``parts`` of its equations, ``sides`` of its conditions.

    Nothing is evaluated before it is needed.
    """

    problem: Problem
    parts: tuple[sympy.Expr, ...]
    sides: tuple[sympy.Expr, ...]

    @classmethod
    def of(cls, problem: Problem) -> Variation | None:
        """Return the variation; None where no data depend on coordinates, or in more than three dimensions."""
        symbols = set(problem.vocabulary.symbols)
        parts = data_parts([term.expression for term in problem.interior], symbols)
        sides = data_parts([term.expression for term in problem.constraints if term.points is None], symbols)
        return (
            cls(problem, tuple(parts), tuple(sides)) if problem.domain.dim in GRID_CELLS and (parts or sides) else None
        )

    def __getstate__(self) -> dict[str, object]:
        # the analysis is megabytes, and is made again where it is needed
        return {name: one for name, one in vars(self).items() if name != "_analysis"}

    @property
    def domain(self) -> Domain:
        return self.problem.domain

    @property
    def rates(self) -> Array:
        """Root mean square slope (n,) along each axis, the largest over all data: π k for sin(π k s).

        Coordinates are scaled to [-1, 1], and data to half their range.
        """
        return self._analysis[0]

    @property
    def probabilities(self) -> Array | None:
        """Probabilities (G,) of the cells of the fine grid, proportional to the variation; None unless it is
        concentrated."""
        return self._analysis[1]

    @property
    def slopes(self) -> Array:
        """The largest slope (n, G) along each axis in each cell, scaled in the same way."""
        return self._analysis[2]

    def changes(self, bounds: Array) -> Array:
        """Return the largest change (n,) of the data along each axis over half of a box (n, 2), without jumps.

        The unit is half the range of the data.
        """
        dim, cells = self.domain.dim, GRID_CELLS[self.domain.dim]
        lower, upper = self.domain.bounds.T
        first = np.clip(np.floor((bounds[:, 0] - lower) / (upper - lower) * cells), 0, cells - 1).astype(int)
        last = np.clip(np.ceil((bounds[:, 1] - lower) / (upper - lower) * cells), first + 1, cells).astype(int)
        box = tuple(slice(a, b) for a, b in zip(first, last, strict=True))
        slopes = self.slopes.reshape((dim,) + (cells,) * dim)[(slice(None), *box)]
        steep = np.where(slopes < JUMP_FRACTION * cells, slopes, 0.0).reshape(dim, -1).max(axis=1)
        return steep * (bounds[:, 1] - bounds[:, 0]) / (upper - lower)

    @cached_property
    def _analysis(self) -> tuple[Array, Array | None, Array]:
        """Rates, probabilities and slopes."""
        dim = self.domain.dim
        cells, known = GRID_CELLS[dim], {}
        axes = zip(self.problem.vocabulary.symbols, self.domain.bounds, strict=True)
        for axis, (symbol, (lower, upper)) in enumerate(axes):
            centres = lower + (upper - lower) * (np.arange(cells) + 0.5) / cells
            known[symbol] = centres.reshape(tuple(cells if k == axis else 1 for k in range(dim)))
        rates, total = np.zeros(dim), np.zeros((cells,) * dim)
        steep = np.zeros((dim, *total.shape))
        for number, value in enumerate(evaluate([*self.parts, *self.sides], known, self.problem.functions)):
            slopes = _slopes(
                finite_samples(np.broadcast_to(value, (1,) * dim if value.ndim == 0 else value.shape)), cells
            )
            for axis, slope in slopes.items():
                rates[axis] = max(rates[axis], float(np.sqrt(np.mean(slope**2))))
                if number < len(self.parts):
                    total = total + slope / max(float(slope.sum()) * (total.size / slope.size), 1e-300)
                    steep[axis] = np.maximum(steep[axis], slope)
        whole = float(total.sum())
        probabilities = total.ravel() / whole if whole > 0 and _concentrated(total.ravel()) else None
        return rates, probabilities, steep.reshape(dim, -1)

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """Return at most ``count`` points (M, n) of the domain where the data vary; none unless they are
        concentrated."""
        if self.probabilities is None or count == 0:
            return np.empty((0, self.domain.dim))
        points = self._points(self._cells(count, rng), rng)
        return points[self.domain.contains(points)]

    def neurons(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return weights (n, count) and biases (count,) of ridges where the data vary, in coordinates on [-1, 1].

        They are as steep as the data there, or less steep by factors spread evenly over two decades: the solution for a
        narrow load is a kink that its surroundings must match.
        """
        chosen = self._cells(count, rng)
        sizes = 10 ** -rng.uniform(0.0, 2.0, count) * rng.choice((-1.0, 1.0), (self.domain.dim, count))
        weights = sizes * np.maximum(self.slopes[:, chosen], 1.0)
        lower, upper = self.domain.bounds.T
        centres = (2.0 * self._points(chosen, rng) - lower - upper) / (upper - lower)
        return weights, -np.einsum("nw,wn->w", weights, centres)

    def _cells(self, count: int, rng: np.random.Generator) -> Array:
        assert self.probabilities is not None
        chosen = np.searchsorted(np.cumsum(self.probabilities), rng.uniform(size=count))
        return np.minimum(chosen, len(self.probabilities) - 1)

    def _points(self, chosen: Array, rng: np.random.Generator) -> Array:
        """Return a point (M, n) in or next to each of these cells."""
        dim = self.domain.dim
        indices = np.stack(np.unravel_index(chosen, (GRID_CELLS[dim],) * dim), axis=1)
        lower, upper = self.domain.bounds.T
        points = lower + (upper - lower) * (indices + rng.uniform(-0.5, 1.5, indices.shape)) / GRID_CELLS[dim]
        return np.clip(points, lower, upper)


def _slopes(values: Array, cells: int) -> dict[int, Array]:
    """Return axis → |∂ value| in coordinates scaled to [-1, 1] and values scaled to half their range."""
    span = 0.5 * float(np.ptp(values))
    if not span > 1e-12 * float(np.abs(values).max(initial=0.0)):
        return {}
    slopes = {}
    for axis in range(values.ndim):
        if values.shape[axis] > 1:
            change = np.abs(np.diff(values, axis=axis, append=np.take(values, [-1], axis=axis)))
            slopes[axis] = 0.5 * cells * change / span
    return slopes


def _concentrated(total: Array) -> bool:
    ordered = np.sort(total)[::-1]
    half = int(np.searchsorted(np.cumsum(ordered), 0.5 * ordered.sum()))
    return half < CONCENTRATED_FRACTION * len(total)
