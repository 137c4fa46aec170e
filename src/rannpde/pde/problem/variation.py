"""Where the data of a problem (sources, coefficients) vary, looked at on a grid far finer than a solver's points.

A solver that samples a problem at its own points cannot know what lies between them: a load narrower than their
distance. Every part of a statement that depends on coordinates alone is evaluated here, and tells where points belong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.domains.domain import Domain
from rannpde.pde.statement.evaluate import evaluate
from rannpde.pde.statement.expression import Expression
from rannpde.pde.statement.vocabulary import coordinate_symbol

if TYPE_CHECKING:
    from rannpde.pde.problem.problem import Problem

FINE = {1: 2**16, 2: 2**9, 3: 2**6}
"""Cells per axis of the fine grid; in more dimensions nothing is known."""
CONCENTRATED = 0.1
"""Data are concentrated when half of their variation lies in this share of the domain."""


def data_parts(expressions: Iterable[Expression], coordinates: set[sympy.Symbol]) -> list[sympy.Expr]:
    """The largest parts of these expressions that hold coordinates but no field, each once."""
    found: dict[sympy.Expr, None] = {}
    stack = [expression.formula for expression in expressions]
    while stack:
        node = stack.pop()
        if node.free_symbols and node.free_symbols <= coordinates:
            found[node] = None
        elif node.is_Add or node.is_Mul:  # what of a sum or product holds no field is one part
            own = [arg for arg in node.args if arg.free_symbols and arg.free_symbols <= coordinates]
            if own:
                found[node.func(*own)] = None
            stack.extend(arg for arg in node.args if arg not in own)
        else:
            stack.extend(node.args)
    return list(found)


@dataclass(frozen=True, eq=False)
class Variation:
    """Where and how fast the data of a problem vary.

    rates (n,): root mean square slope along each axis, of coordinates scaled to [-1, 1] and data to half their range,
        the largest over all data: π k for sin(π k s)
    chances (G,): of the cells of the fine grid, by how much the data change there; None unless they are concentrated
    slopes (n, G): the largest slope along each axis in each cell, scaled likewise
    """

    domain: Domain
    rates: Array
    chances: Array | None
    slopes: Array

    @classmethod
    def of(cls, problem: Problem) -> Variation | None:
        """None where no data depend on coordinates, or in more than three dimensions."""
        domain, dim = problem.domain, problem.domain.dim
        symbols = set(problem.vocabulary.symbols)
        parts = data_parts([term.expression for term in problem.interior], symbols)
        sides = data_parts([term.expression for term in problem.constraints if term.points is None], symbols)
        if dim not in FINE or not (parts or sides):
            return None
        cells = FINE[dim]
        known = {}
        for axis, (name, (lower, upper)) in enumerate(zip(domain.names, domain.bounds, strict=True)):
            centres = lower + (upper - lower) * (np.arange(cells) + 0.5) / cells
            known[coordinate_symbol(name)] = centres.reshape(tuple(cells if k == axis else 1 for k in range(dim)))
        rates, total = np.zeros(dim), np.zeros((cells,) * dim)
        steep = np.zeros((dim, *total.shape))
        for number, value in enumerate(evaluate([*parts, *sides], known, problem.functions)):
            slopes = _slopes(
                np.nan_to_num(np.broadcast_to(value, (1,) * dim if value.ndim == 0 else value.shape)), cells
            )
            for axis, slope in slopes.items():
                rates[axis] = max(rates[axis], float(np.sqrt(np.mean(slope**2))))
                if number < len(parts):
                    total = total + slope / max(float(slope.sum()) * (total.size / slope.size), 1e-300)
                    steep[axis] = np.maximum(steep[axis], slope)
        whole = float(total.sum())
        chances = total.ravel() / whole if whole > 0 and _concentrated(total.ravel()) else None
        return cls(domain, rates, chances, steep.reshape(dim, -1))

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """At most ``count`` points (M, n) of the domain, where the data vary; none unless they are concentrated."""
        if self.chances is None or count == 0:
            return np.empty((0, self.domain.dim))
        points = self._points(self._cells(count, rng), rng)
        return points[self.domain.contains(points)]

    def neurons(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Hidden weights (n, count) and biases (count,) of ridges where the data vary, in coordinates on [-1, 1].

        As steep as the data there or, by factors spread evenly over two decades, less: a solution of a narrow load is
        a kink that its surroundings must meet.
        """
        chosen = self._cells(count, rng)
        sizes = 10.0 ** -rng.uniform(0.0, 2.0, count) * rng.choice((-1.0, 1.0), (self.domain.dim, count))
        weights = sizes * np.maximum(self.slopes[:, chosen], 1.0)
        lower, upper = self.domain.bounds.T
        centres = (2.0 * self._points(chosen, rng) - lower - upper) / (upper - lower)
        return weights, -np.einsum("nw,wn->w", weights, centres)

    def _cells(self, count: int, rng: np.random.Generator) -> Array:
        assert self.chances is not None
        chosen = np.searchsorted(np.cumsum(self.chances), rng.uniform(size=count))
        return np.minimum(chosen, len(self.chances) - 1)

    def _points(self, chosen: Array, rng: np.random.Generator) -> Array:
        """A point in or beside each of these cells, (M, n)."""
        dim = self.domain.dim
        place = np.stack(np.unravel_index(chosen, (FINE[dim],) * dim), axis=1)
        lower, upper = self.domain.bounds.T
        points = lower + (upper - lower) * (place + rng.uniform(-0.5, 1.5, place.shape)) / FINE[dim]
        return np.clip(points, lower, upper)


def _slopes(values: Array, cells: int) -> dict[int, Array]:
    """Axis → |∂ value| in coordinates scaled to [-1, 1] and values to half their range, along axes that matter."""
    span = 0.5 * float(np.ptp(values))
    if not span > 1e-12 * float(np.abs(values).max(initial=0.0)):
        return {}
    found = {}
    for axis in range(values.ndim):
        if values.shape[axis] > 1:
            change = np.abs(np.diff(values, axis=axis, append=np.take(values, [-1], axis=axis)))
            found[axis] = 0.5 * cells * change / span
    return found


def _concentrated(total: Array) -> bool:
    ordered = np.sort(total)[::-1]
    half = int(np.searchsorted(np.cumsum(ordered), 0.5 * ordered.sum()))
    return half < CONCENTRATED * len(total)
