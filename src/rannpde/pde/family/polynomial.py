"""Quantities as polynomials in the parameters: values at the nodes of a sparse grid, interpolated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError, choose, finite_array, require
from rannpde.pde.family.nodes import SparseGrid, backward_neighbours
from rannpde.pde.problem.ranges import Range, parameter_values


@dataclass(frozen=True, eq=False)
class ParameterPolynomial:
    """A quantity for every value of the parameters: a number, or an array of them, such as a field at points.

    ranges : parameter → its Range; grid : nodes in reduced coordinates
    values : (n, …), the quantity at the nodes
    error : estimated absolute error, the largest over the range (and over the entries of the quantity)

    >>> grid = SparseGrid(tuple((k,) for k in range(4)))
    >>> cube = ParameterPolynomial({"a": Range(0, 2)}, grid, (grid.nodes[:, 0] + 1) ** 3, 0.0)
    >>> round(cube(a=0.5), 12), round(cube.derivative("a", a=0.5), 12)
    (0.125, 0.75)
    """

    ranges: Mapping[str, Range]
    grid: SparseGrid
    values: Array
    error: float

    def __call__(self, **values: float) -> Any:
        """The quantity at one value of every parameter: a number, or an array of its shape."""
        return self._plain(self._at(self.reduced(values)))

    def derivative(self, name: str, **values: float) -> Any:
        """The first derivative by one parameter."""
        choose("the parameter", name, self.ranges)
        stated = parameter_values(self.ranges, values)
        orders = tuple(int(one == name) for one in self.ranges)
        slope = float(self.ranges[name].slope(stated[name]))
        return self._plain(slope * self._at(self.reduced(values), orders))

    def gradient(self, **values: float) -> dict[str, Any]:
        """Parameter → first derivative."""
        return {name: self.derivative(name, **values) for name in self.ranges}

    def many(self, values: Mapping[str, Array]) -> Array:
        """The quantity at K values of every parameter, each (K,): (K, …)."""
        return np.asarray(np.tensordot(self.grid.weights(self.columns(values)), self.values, axes=1))

    def reduced(self, values: Mapping[str, Any]) -> Array:
        """Reduced coordinates (d,) of values."""
        stated = parameter_values(self.ranges, values)
        return np.array([float(one.reduced(stated[name])) for name, one in self.ranges.items()])

    def columns(self, values: Mapping[str, Any]) -> Array:
        """Reduced coordinates (K, d) of arrays (K,) of values."""
        for name in values:
            choose("the parameter", name, self.ranges)
        columns = []
        for name, one in self.ranges.items():
            if name not in values:
                raise InputError(f"the parameter {name!r} has no values; give an array of them")
            column = finite_array(name, np.atleast_1d(values[name]), 1)
            require(one.contains(column), name, column, f"from {one.lower:g} to {one.upper:g}")
            columns.append(one.reduced(column))
        return np.stack(np.broadcast_arrays(*columns), axis=1)

    def _at(self, reduced: Array, orders: tuple[int, ...] | None = None) -> Array:
        return np.asarray(np.tensordot(self.grid.weights(reduced[None], orders)[0], self.values, axes=1))

    def _plain(self, value: Array) -> Any:
        return float(value) if value.ndim == 0 else value


def active_error(grid: SparseGrid, values: Array) -> float:
    """Largest surplus at the nodes that have none above them in the grid, summed: the error that decay promises.

    values (n, …): the absolute error is that of the entry for which it is largest.
    """
    below = {one for index in grid.indices for one in backward_neighbours(index)}
    active = [k for k, index in enumerate(grid.indices) if index not in below]
    surpluses = np.tensordot(grid.surplus_matrix, values, axes=1)
    return float(np.max(np.sum(np.abs(surpluses[active]), axis=0)))
