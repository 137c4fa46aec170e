"""The terms of an evolution problem at points of space, cell by cell, for any time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import sympy
from scipy.interpolate import make_interp_spline

from rannpde.arrays import Array, MultiIndex
from rannpde.domains.boundary.sides import FlatSide, Side
from rannpde.domains.domain import Box, SpaceTime
from rannpde.pde.cells.mesh import Mesh
from rannpde.pde.cells.places import Rims
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import DATA_SYMBOL, Term


@dataclass(frozen=True, eq=False)
class CellPoints:
    """P points of a term in one cell: rows of all its points; tables (A P, functions): all ∂^α of the functions there.

    One below the other, so that one product serves all derivatives.
    """

    cell: int
    rows: slice
    tables: Array

    def table(self, number: int) -> Array:
        """(P, functions): those of derivative number ``number``."""
        count = self.rows.stop - self.rows.start
        return self.tables[number * count : (number + 1) * count]


@dataclass(frozen=True, eq=False)
class SpaceRows:
    """A term at all its points in space: weights (N,), sum 1 in each cell; normals² (N, d), zero but for conditions.

    indices, columns : its derivatives in space, and the numbers of its fields
    still : everything known there that does not change with time; series : the measured values by time, if any
    """

    term: Term
    indices: tuple[MultiIndex, ...]
    columns: tuple[int, ...]
    stretches: tuple[CellPoints, ...]
    weights: Array
    normals: Array
    still: Mapping[sympy.Symbol, Array]
    clock: sympy.Symbol
    series: Callable[[Array], Array] | None

    def known(self, times: Array) -> dict[sympy.Symbol, Array]:
        """At all points for one time after the other, each (times · N,)."""
        found = {symbol: np.tile(value, len(times)) for symbol, value in self.still.items()}
        found[self.clock] = np.repeat(times, len(self.weights))
        if self.series is not None:
            found[DATA_SYMBOL] = np.ravel(self.series(times))
        return found


class RowsBuilder:
    """Points of the terms of a problem on a mesh of its space; seed : of points on curved sides."""

    def __init__(self, problem: Problem, mesh: Mesh, seed: int) -> None:
        assert isinstance(problem.domain, SpaceTime)
        self.problem, self.mesh, self.space, self.start = problem, mesh, problem.domain.space, problem.domain.time[0]
        nodes = next(cell.draw.nodes for _, cell in mesh.present)
        self.rims = Rims(mesh.tree, nodes, np.random.default_rng(seed))

    def build(self, term: Term) -> SpaceRows:
        """The rows of a term."""
        indices = tuple(dict.fromkeys(jet.index[1:] for jet in term.expression.jets))
        columns = tuple(n for n, name in enumerate(self.problem.fields) if name in term.expression.fields)
        places, series = self._series(term) if term.points is not None else (None, None)
        stretches, points, weights, found = [], [], [], 0
        chosen = []
        side = None if term.points is not None or term.kind == "interior" else self._side(term)
        for number, cell in self.mesh.present:
            if places is not None:
                mine = self.mesh.tree.locate(places) == number
                own, shares = places[mine], np.ones(int(mine.sum()))
                chosen.append(np.flatnonzero(mine))
            elif side is None:
                own, shares = cell.points, cell.weights
            else:
                own, shares = self.rims.points(side, number, term.kind == "boundary")
            if not len(own):
                continue
            tables = cell.tables(indices) if term.kind == "interior" else cell.at(own, indices)
            stack = np.concatenate([tables[index] for index in indices])
            stretches.append(CellPoints(number, slice(found, found + len(own)), stack))
            points.append(own)
            weights.append(shares / shares.sum())
            found += len(own)
        every = np.concatenate(points) if points else np.empty((0, self.space.dim))
        moment = np.column_stack([np.full(len(every), self.start), every])
        words = self.problem.vocabulary
        normals = np.zeros(every.shape)
        if term.kind == "boundary" and isinstance(term.region, Side) and len(every):
            normals = term.region.normals(moment)[:, 1:] ** 2
        known = term.known(moment, words) if len(every) else {}
        ordered = None
        if series is not None:
            rows, curve = np.concatenate(chosen), series
            ordered = lambda times: curve(times)[:, rows]  # noqa: E731
        together = np.concatenate(weights) if weights else np.empty(0)
        return SpaceRows(term, indices, columns, tuple(stretches), together, normals, known, words.symbols[0], ordered)

    def _side(self, term: Term) -> Side:
        """The side of the space that a condition of the space-time holds on."""
        region = term.region
        if isinstance(region, FlatSide) and isinstance(self.space, Box):
            axis = region.axis - 1
            return FlatSide(
                region.name, self.space, axis, region.value, region.outward, self.space.without(self.space.names[axis])
            )
        assert isinstance(region, Side)
        return self.space.sides[region.name]

    def _series(self, term: Term) -> tuple[Array, Callable[[Array], Array]]:
        """The places (K, d) of measured values, and times → their values (times, K), by splines."""
        places, curves = [], []
        for place, times, values in measured_series(term):
            places.append(place)
            curves.append(make_interp_spline(times, values, k=min(5, len(times) - 1)))
        return np.array(places), lambda moments: np.stack([np.asarray(curve(moments)) for curve in curves], axis=1)


def measured_series(term: Term) -> list[tuple[Array, Array, Array]]:
    """Measured values as series in time: place (d,), times (K,) in order, values (K,)."""
    assert term.points is not None
    assert term.data is not None
    places, number = np.unique(term.points[:, 1:], axis=0, return_inverse=True)
    found = []
    for k, place in enumerate(places):
        mine = np.flatnonzero(number.ravel() == k)
        mine = mine[np.argsort(term.points[mine, 0], kind="stable")]
        found.append((place, term.points[mine, 0], term.data[mine]))
    return found
