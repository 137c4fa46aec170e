"""Tensor products of piecewise polynomials on a box: the functions, and the rows that evaluate them.

Along each coordinate the interval is cut into cells, and functions are Legendre series on every cell. They need not be
continuous: rows of the system ask for continuity where the order of the equations requires it, so that solutions of
integral equations may jump where their data do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander
from scipy.sparse import csr_array

from rannpde.arrays import Array, ArrayMap, MultiIndex, block_rows, combinations, row_blocks
from rannpde.network.storage import floats
from rannpde.pde.polynomials.cell_maps import Roots, cell_powers, cell_values, nodes_and_weights
from rannpde.pde.statement.functionals import common_power


@dataclass(frozen=True, eq=False)
class PolynomialSpace:
    """Legendre series of a degree along each coordinate on the cells of a tensor grid.

    edges : for each coordinate, the ends (C + 1,) of its cells; degrees : for each coordinate, the degree
    roots : for each coordinate, the edges beside which functions are polynomials in a root of the distance
    """

    edges: tuple[Array, ...]
    degrees: tuple[int, ...]
    roots: tuple[Roots, ...] = ()

    @cached_property
    def _powers(self) -> list[Array]:
        return [cell_powers(edges, self.roots[axis] if self.roots else ()) for axis, edges in enumerate(self.edges)]

    @property
    def dim(self) -> int:
        return len(self.edges)

    @property
    def all_roots(self) -> tuple[tuple[float, ...], int]:
        """The positions of all roots, and the power of z that serves them all (``cell_maps``)."""
        known = [root for roots in self.roots for root in roots]
        return tuple(position for position, _ in known), common_power(power for _, power in known)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Functions along each coordinate."""
        return tuple((len(edges) - 1) * (degree + 1) for edges, degree in zip(self.edges, self.degrees, strict=True))

    @property
    def size(self) -> int:
        """Functions of one field."""
        return prod(self.shape)

    @property
    def width(self) -> int:
        """Functions that do not vanish at a point."""
        return prod(degree + 1 for degree in self.degrees)

    def rows(self, points: Array, index: MultiIndex, before: int | None = None) -> csr_array:
        """∂^index of all functions at points (K, n): (K, size), with ``width`` entries in each row.

        before : the coordinate for which points on an edge belong to the cell before it
        """
        columns = np.zeros((len(points), 1), dtype=np.int64)
        values = np.ones((len(points), 1))
        for axis, (edges, degree) in enumerate(zip(self.edges, self.degrees, strict=True)):
            position = points[:, axis]
            side = "left" if axis == before else "right"
            following = np.searchsorted(edges, position, side=side)  # type: ignore[call-overload]
            cell = np.clip(following - 1, 0, len(edges) - 2)
            local = cell_values(position, edges, self._powers[axis], cell, degree, index[axis])
            first = cell[:, None] * (degree + 1) + np.arange(degree + 1)
            columns = (columns[:, :, None] * self.shape[axis] + first[:, None, :]).reshape(len(points), -1)
            values = (values[:, :, None] * local[:, None, :]).reshape(len(points), -1)
        starts = np.arange(len(points) + 1) * self.width
        return csr_array((values.ravel(), columns.ravel(), starts), shape=(len(points), self.size))

    def axis_nodes(self, axis: int, more: int = 0) -> Array:
        """Gauss nodes of all cells along a coordinate; in each, ``more`` than there are functions."""
        return nodes_and_weights(self.edges[axis], self._powers[axis], self.degrees[axis] + 1 + more)[0].ravel()

    def nodes(self, fixed: Mapping[int, float] | None = None, more: int = 0) -> Array:
        """Gauss nodes (K, n) of all cells, with some coordinates fixed."""
        given = fixed or {}
        return combinations([np.array([given[k]]) if k in given else self.axis_nodes(k, more) for k in range(self.dim)])

    def weights(self, more: int = 0) -> Array:
        """Gauss weights (K,) of the nodes."""
        total = np.ones(1)
        for edges, powers, degree in zip(self.edges, self._powers, self.degrees, strict=True):
            along = nodes_and_weights(edges, powers, degree + 1 + more)[1].ravel()
            total = np.multiply.outer(total, along).ravel()
        return total

    def constant(self, values: Array) -> Array:
        """The coefficients (fields, size) of fields with these values (fields,) everywhere."""
        total = np.ones(1)
        for edges, degree in zip(self.edges, self.degrees, strict=True):
            first = np.zeros((len(edges) - 1, degree + 1))
            first[:, 0] = 1.0
            total = np.multiply.outer(total, first.ravel()).ravel()
        return np.multiply.outer(values, total)

    def tails(self, coefficients: Array) -> list[Array]:
        """For each coordinate and cell, the norm of the upper third of the degrees of fields (fields, size).

        It is relative to the norm of the whole field, and the largest over the fields.
        """
        by_axis = []
        table = coefficients.reshape(len(coefficients), *self.shape)
        scales = self._norms()
        sizes = np.sqrt(np.square(table * scales).sum(axis=tuple(range(1, table.ndim)), keepdims=True))
        table = np.square(table * scales / np.maximum(sizes, 1e-300))
        for axis, degree in enumerate(self.degrees):
            along = np.moveaxis(table, axis + 1, 1).reshape(len(table), -1, degree + 1, self.size // self.shape[axis])
            upper = along[:, :, degree - degree // 3 + 1 :].sum(axis=(2, 3))
            by_axis.append(np.sqrt(upper.max(axis=0)))
        return by_axis

    def _norms(self) -> Array:
        """L² norms of the functions in the local coordinates of cells, shape ``shape``."""
        total = np.ones(())
        for edges, degree in zip(self.edges, self.degrees, strict=True):
            norms = np.sqrt(np.diff(edges)[:, None] / (2 * np.arange(degree + 1) + 1)).ravel()
            total = np.multiply.outer(total, norms)
        return total

    def interpolate(self, function: ArrayMap) -> Array:
        """The coefficients (fields, size) of a function, by values at the Gauss nodes."""
        values = function(self.nodes()).T.reshape(-1, *self.shape)
        for axis, degree in enumerate(self.degrees):
            nodes, weights = leggauss(degree + 1)
            transform = (legvander(nodes, degree) * weights[:, None]).T * (np.arange(degree + 1)[:, None] + 0.5)
            along = np.moveaxis(values, axis + 1, -1)
            along = (along.reshape(*along.shape[:-1], -1, degree + 1) @ transform.T).reshape(along.shape)
            values = np.moveaxis(along, -1, axis + 1)
        return np.ascontiguousarray(values).reshape(len(values), -1)

    def norm(self, coefficients: Array) -> float:
        """The L² norm of all fields (fields, size) together."""
        return float(np.linalg.norm(coefficients.reshape(-1, *self.shape) * self._norms()))


@dataclass(frozen=True, eq=False)
class PiecewiseTensor:
    """Fields (fields, size) in a polynomial space."""

    space: PolynomialSpace
    coefficients: Array

    @property
    def dim(self) -> int:
        return self.space.dim

    @property
    def roots(self) -> tuple[tuple[float, ...], int]:
        """The edges at which fields are smooth in a root of the distance, and the power of z that makes them so."""
        return self.space.all_roots

    @property
    def widths(self) -> tuple[int, ...]:
        """Functions of each cell."""
        return (self.space.width,) * (self.space.size // self.space.width)

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * self.dim)

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """∂^derivative of the fields at points (M, n): (M, fields)."""
        points = np.asarray(points, dtype=float)
        values = np.empty((len(points), len(self.coefficients)))
        for rows in row_blocks(len(points), block_rows(2 * self.space.width)):
            values[rows] = self.space.rows(points[rows], derivative) @ self.coefficients.T
        return values

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays for a file."""
        arrays = {f"edges{axis}": edges for axis, edges in enumerate(self.space.edges)}
        roots = {"roots": self.space.roots} if any(self.space.roots) else {}
        header = {"function": "tensor", "degrees": list(self.space.degrees), **roots}
        return header, {"coefficients": self.coefficients, **arrays}


def unpack_tensor(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> PiecewiseTensor:
    """The inverse of ``PiecewiseTensor.pack``."""
    degrees = tuple(int(degree) for degree in header["degrees"])
    edges = tuple(floats(arrays, f"edges{axis}", (None,)) for axis in range(len(degrees)))
    roots = tuple(
        tuple((float(position), int(power)) for position, power in of_axis) for of_axis in header.get("roots", ())
    )
    space = PolynomialSpace(edges, degrees, roots)
    return PiecewiseTensor(space, floats(arrays, "coefficients", (None, space.size)))
