"""A table of values that makes queries quick: piecewise polynomials in the coordinates of a box, for all solutions.

The coordinates of a box are divided into panels with Chebyshev points, finer where some solution varies faster. A query
combines the tables of all solutions with the weights of the parameter, and interpolates in the panel of every point: it
costs nothing of what an evaluation of a network costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rannpde.arrays import Array, combinations
from rannpde.domains import SpaceTime
from rannpde.domains.domain import Domain
from rannpde.domains.shapes.boxes import Box
from rannpde.errors import FileError
from rannpde.network.storage import floats

MOST_COORDINATES = 3
"""Coordinates of a table: with four it would have too many points for any solution that is worth one."""
MOST_PANELS = 256
"""Panels of one coordinate: where a solution is not smooth, bisection would go on for ever."""


@dataclass(frozen=True, eq=False)
class ValueTable:
    """Values of n solutions with some fields at Chebyshev points of panels of a box.

    edges : for every coordinate the ends of its panels; degree : degree of the polynomials on a panel
    values : (n, fields, points of the first coordinate, points of the second, …)
    """

    edges: tuple[Array, ...]
    degree: int
    values: Array

    @cached_property
    def _local(self) -> tuple[Array, Array]:
        """Chebyshev points on [-1, 1] with their barycentric weights."""
        k = np.arange(self.degree + 1)
        weights = (-1.0) ** k
        weights[[0, -1]] *= 0.5
        return -np.cos(np.pi * k / self.degree), weights

    def axes(self) -> list[Array]:
        """The points of every coordinate, panel by panel; ends of panels stand twice."""
        nodes = (self._local[0] + 1) / 2
        return [(e[:-1, None] + np.diff(e)[:, None] * nodes).ravel() for e in self.edges]

    def filled(self, functions: Sequence[Callable[[Array], Array]]) -> ValueTable:
        """The same table with the values of these functions of points, (G, fields) each."""
        axes = self.axes()
        shape = [len(axis) for axis in axes]
        rows = []
        for function in functions:
            whole = getattr(function, "on_grid", None)  # of solutions in time: a basis in space serves all times
            values = function(combinations(axes)) if whole is None else whole(axes[0], combinations(axes[1:]))
            rows.append(np.moveaxis(values.reshape(*shape, -1), -1, 0))
        return replace(self, values=np.stack(rows))

    def __call__(self, weights: Array, points: Array) -> Array:
        """The combination with weights (n,) at points (M, dim): (M, fields)."""
        size = self.degree + 1
        parts, panels = zip(*(self._panel(k, points[:, k]) for k in range(len(self.edges))), strict=True)
        gathered = len(points) * size ** len(self.edges)
        if gathered < self.values[0, 0].size:
            block = np.tensordot(weights, self._gathered(self.values, panels), axes=1)
        else:
            block = self._gathered(np.tensordot(weights, self.values, axes=1), panels)
        for part in reversed(parts):  # one coordinate after the other: block is (fields, M, …, degree + 1)
            weight = part.reshape(len(points), *(1,) * (block.ndim - 3), size, 1)
            block = (block[..., None, :] @ weight)[..., 0, 0]
        return np.asarray(block.T)

    def _gathered(self, values: Array, panels: Sequence[Array]) -> Array:
        """Values at the points of the panels of each point: (…, M, degree + 1, …)."""
        index: list[Any] = []
        for k, panel in enumerate(panels):
            shape = [len(panel)] + [1] * len(panels)
            shape[k + 1] = self.degree + 1
            index.append((panel[:, None] * (self.degree + 1) + np.arange(self.degree + 1)).reshape(shape))
        return np.asarray(values[(slice(None),) * (values.ndim - len(panels)) + tuple(index)])

    def _panel(self, axis: int, column: Array) -> tuple[Array, Array]:
        """Interpolation weights (M, degree + 1) within panels, and the numbers of the panels (M,)."""
        edges = self.edges[axis]
        panel = np.clip(np.searchsorted(edges, column, side="right") - 1, 0, len(edges) - 2)
        local = 2 * (column - edges[panel]) / (edges[panel + 1] - edges[panel]) - 1
        nodes, weights = self._local
        distance = local[:, None] - nodes
        hit = distance == 0
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = weights / distance
            shares = ratio / ratio.sum(axis=1, keepdims=True)
        rows = hit.any(axis=1)
        shares[rows] = hit[rows]
        return shares, panel

    def tails(self, axis: int) -> Array:
        """For every panel of a coordinate the size of the last Chebyshev coefficients, over the largest value."""
        values = np.moveaxis(self.values, axis + 2, -1)
        panels = values.reshape(*values.shape[:-1], -1, self.degree + 1)
        nodes = self._local[0]
        inverse = np.linalg.inv(np.polynomial.chebyshev.chebvander(nodes, self.degree))
        last = np.abs(panels @ inverse[-2:].T).sum(axis=-1)
        fields = tuple(range(1, last.ndim - 1))
        size = np.abs(self.values).reshape(*self.values.shape[:2], -1).max(axis=-1)
        size = np.where(size > 0, size, 1.0).reshape(size.shape + (1,) * (last.ndim - 2))
        return np.asarray((last / size).max(axis=(0, *fields)))


def unpack_table(degree: Any, arrays: Mapping[str, Array], dim: int, count: int) -> ValueTable:
    """The table that a file of a family holds."""
    if not isinstance(degree, int) or not 2 <= degree <= 64:
        raise FileError("the table of the family has a degree that is none")
    edges = tuple(floats(arrays, f"table.edges.{k}", (None,)) for k in range(dim))
    shape = [(len(e) - 1) * (degree + 1) for e in edges]
    if any(len(e) < 2 or (np.diff(e) <= 0).any() for e in edges):
        raise FileError("the panels of the family's table do not increase")
    return ValueTable(edges, degree, floats(arrays, "table.values", (count, None, *shape)))


def box_of(domain: Domain) -> bool:
    """Whether a domain is an interval or a box, in space or space-time, of at most three coordinates."""
    space = domain.space if isinstance(domain, SpaceTime) else domain
    return isinstance(space, Box) and domain.dim <= MOST_COORDINATES


def value_table(
    domain: Domain,
    functions: Sequence[Callable[[Array], Array]],
    guides: Sequence[Callable[[Array], Array]],
    tol: float,
    degree: int,
    most: int,
) -> ValueTable | None:
    """The table of these functions with that relative error by the decay of its coefficients; None where it would have
    more than ``most`` points. ``guides`` are the functions by which panels are chosen."""
    edges = tuple(np.array([lower, upper], dtype=float) for lower, upper in np.asarray(domain.bounds, dtype=float))
    while True:
        table = ValueTable(edges, degree, np.zeros((1, 1)))
        if np.prod([float(len(axis)) for axis in table.axes()]) > most:
            return None
        table = table.filled(guides)
        if not np.isfinite(table.values).all():
            return None
        coarse = [table.tails(axis) > tol for axis in range(domain.dim)]
        if not any(wide.any() for wide in coarse):
            return table.filled(functions)
        edges = tuple(_bisected(e, wide) for e, wide in zip(edges, coarse, strict=True))
        if max(map(len, edges)) > MOST_PANELS:
            return None


def _bisected(edges: Array, wide: Array) -> Array:
    middles = (edges[:-1] + edges[1:])[wide] / 2
    return np.sort(np.concatenate([edges, middles]))
