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
from rannpde.pde.cells.constraints.points import BoundaryPoints
from rannpde.pde.cells.mesh.mesh import Mesh
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import DATA_SYMBOL, Term


@dataclass(frozen=True, eq=False)
class CellRows:
    """The rows of a term in one cell: a slice of all its points, and tables (A P, functions) of all ∂^α of the basis.

    The tables of the A derivatives at P points are stacked, so that one product evaluates all of them.
    """

    cell: int
    rows: slice
    tables: Array

    def table(self, number: int) -> Array:
        """Return the table (P, functions) of derivative number ``number``."""
        count = self.rows.stop - self.rows.start
        return self.tables[number * count : (number + 1) * count]


@dataclass(frozen=True, eq=False)
class SpaceRows:
    """A term at all its points in space: weights (N,), sum 1 in each cell; squared normals (N, d), zero for equations.

    indices, columns : the spatial derivatives in the term, and the numbers of its fields
    steady : known values that do not change with time; series : measured values as functions of time, if any
    """

    term: Term
    indices: tuple[MultiIndex, ...]
    columns: tuple[int, ...]
    by_cell: tuple[CellRows, ...]
    weights: Array
    normals: Array
    steady: Mapping[sympy.Symbol, Array]
    clock: sympy.Symbol
    series: Callable[[Array], Array] | None

    def known(self, times: Array) -> dict[sympy.Symbol, Array]:
        """Return all known values at all points, time by time, each (times · N,)."""
        values = {symbol: np.tile(value, len(times)) for symbol, value in self.steady.items()}
        values[self.clock] = np.repeat(times, len(self.weights))
        if self.series is not None:
            values[DATA_SYMBOL] = np.ravel(self.series(times))
        return values


class RowsBuilder:
    """Builds the rows of the terms of a problem on a mesh of its space; seed : for points on curved sides."""

    def __init__(self, problem: Problem, mesh: Mesh, seed: int) -> None:
        assert isinstance(problem.domain, SpaceTime)
        self.problem, self.mesh, self.space, self.start = problem, mesh, problem.domain.space, problem.domain.time[0]
        nodes = next(cell.basis.nodes for _, cell in mesh.present)
        self.boundary = BoundaryPoints(mesh.tree, nodes, np.random.default_rng(seed))

    def build(self, term: Term) -> SpaceRows:
        """Return the rows of a term."""
        indices = tuple(dict.fromkeys(jet.index[1:] for jet in term.expression.jets))
        columns = tuple(n for n, name in enumerate(self.problem.fields) if name in term.expression.fields)
        sites, series = self._measured(term) if term.points is not None else (None, None)
        by_cell, points, weights, count = [], [], [], 0
        chosen = []
        side = None if term.points is not None or term.kind == "interior" else self._side(term)
        for number, cell in self.mesh.present:
            if sites is not None:
                here = self.mesh.tree.locate(sites) == number
                cell_points, cell_weights = sites[here], np.ones(int(here.sum()))
                chosen.append(np.flatnonzero(here))
            elif side is None:
                cell_points, cell_weights = cell.points, cell.weights
            else:
                cell_points, cell_weights = self.boundary.points(side, number, term.kind == "boundary")
            if not len(cell_points):
                continue
            tables = cell.tables(indices) if term.kind == "interior" else cell.at(cell_points, indices)
            stack = np.concatenate([tables[index] for index in indices])
            by_cell.append(CellRows(number, slice(count, count + len(cell_points)), stack))
            points.append(cell_points)
            weights.append(cell_weights / cell_weights.sum())
            count += len(cell_points)
        all_points = np.concatenate(points) if points else np.empty((0, self.space.dim))
        moment = np.column_stack([np.full(len(all_points), self.start), all_points])
        words = self.problem.vocabulary
        normals = np.zeros(all_points.shape)
        if term.kind == "boundary" and isinstance(term.region, Side) and len(all_points):
            normals = term.region.normals(moment)[:, 1:] ** 2
        known = term.known(moment, words) if len(all_points) else {}
        ordered = None
        if series is not None:
            rows, curve = np.concatenate(chosen), series
            ordered = lambda times: curve(times)[:, rows]  # noqa: E731
        all_weights = np.concatenate(weights) if weights else np.empty(0)
        return SpaceRows(term, indices, columns, tuple(by_cell), all_weights, normals, known, words.symbols[0], ordered)

    def _side(self, term: Term) -> Side:
        """Return the side of the spatial domain that belongs to a side of the space-time domain."""
        region = term.region
        if isinstance(region, FlatSide) and isinstance(self.space, Box):
            axis = region.axis - 1
            return FlatSide(
                region.name, self.space, axis, region.value, region.outward, self.space.without(self.space.names[axis])
            )
        assert isinstance(region, Side)
        return self.space.sides[region.name]

    def _measured(self, term: Term) -> tuple[Array, Callable[[Array], Array]]:
        """Return the positions (K, d) of measurements, and a function times → values (times, K), by splines."""
        sites, curves = [], []
        for site, times, values in measured_series(term):
            sites.append(site)
            curves.append(make_interp_spline(times, values, k=min(5, len(times) - 1)))
        return np.array(sites), lambda moments: np.stack([np.asarray(curve(moments)) for curve in curves], axis=1)


def measured_series(term: Term) -> list[tuple[Array, Array, Array]]:
    """Return measured values as series in time: position (d,), ascending times (K,), values (K,)."""
    assert term.points is not None
    assert term.data is not None
    sites, number = np.unique(term.points[:, 1:], axis=0, return_inverse=True)
    series = []
    for k, site in enumerate(sites):
        rows = np.flatnonzero(number.ravel() == k)
        rows = rows[np.argsort(term.points[rows, 0], kind="stable")]
        series.append((site, term.points[rows, 0], term.data[rows]))
    return series
