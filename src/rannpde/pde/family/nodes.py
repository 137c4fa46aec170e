"""Nodes in parameters: Leja points in each, sparse grids of them, and the interpolation of values at such nodes.

Leja points x_0, x_1, … are nested, one at a time: each maximises the product of the distances to those before it. The
hierarchical functions h_k(x) = Π_{i<k} (x - x_i) / (x_k - x_i) are therefore bounded by 1 on [-1, 1]. A sparse grid is
a set Λ of multi-indices that contains with ν all μ ≤ ν; every ν has the node (x_{ν_1}, …, x_{ν_d}) and the function
H_ν = Π_j h_{ν_j}. The interpolation is Σ_ν s_ν H_ν, where the surplus s_ν is what the interpolation at the nodes before
ν misses at the node of ν (Chkifa, Cohen and Schwab, High-dimensional adaptive sparse polynomial interpolation, 2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.linalg import solve_triangular

from rannpde.arrays import Array

Levels = tuple[int, ...]
FIRST_NODE = 0.51
"""The first point, half way between the middle of a range and its end. Axes through the middle, or through a corner,
may be where a function of several parameters happens not to vary, and no surplus along them shows that it varies
elsewhere: of 0.12, 0.5, 0.8, 0.95 and 1 the second alone gave no error above the tolerance for seven functions of two
and three parameters."""
LEJA_GRID = 20_001
"""Points among which a Leja point is sought: their spacing is 1e-4 of the range, and nodes need no more digits."""


@cache
def leja(count: int) -> tuple[float, ...]:
    """The first points of the Leja sequence on [-1, 1] that begins between the middle and an end.

    >>> leja(3)[1:]
    (-1.0, 1.0)
    """
    grid = -np.cos(np.linspace(0, np.pi, LEJA_GRID))
    chosen = [float(FIRST_NODE)]
    with np.errstate(divide="ignore"):
        product = np.log(np.abs(grid - chosen[0]))
        while len(chosen) < count:
            chosen.append(float(grid[int(np.argmax(product))]))
            product = product + np.log(np.abs(grid - chosen[-1]))
    return tuple(chosen)


@cache
def _normalisers(count: int) -> tuple[float, ...]:
    """Π_{i<k} (x_k - x_i) for the first Leja points."""
    nodes = leja(count)
    return tuple(float(np.prod([node - other for other in nodes[:k]])) for k, node in enumerate(nodes))


@cache
def _chebyshev_coefficients(levels: int) -> Array:
    """(levels + 1, levels + 1): coefficients of T_0, T_1, … in h_0, h_1, …, row by row."""
    nodes = np.cos(np.pi * (np.arange(levels + 1) + 0.5) / (levels + 1))
    values = hierarchical(levels, nodes)
    polynomials = np.polynomial.chebyshev.chebvander(nodes, levels)
    coefficients = 2 / (levels + 1) * values.T @ polynomials
    coefficients[:, 0] /= 2
    return np.asarray(np.tril(coefficients))


def hierarchical(levels: int, reduced: Array, order: int = 0) -> Array:
    """h_0 … h_levels, or their derivatives of an order up to 2, at reduced coordinates (K,): (K, levels + 1)."""
    nodes, sizes = leja(levels + 1), _normalisers(levels + 1)
    jets = np.zeros((order + 1, len(reduced)))  # derivatives of Π_{i<k} (x - x_i), by the rule for products
    jets[0] = 1.0
    table = np.empty((len(reduced), levels + 1))
    for k, node in enumerate(nodes):
        table[:, k] = jets[order] / sizes[k]
        for n in range(order, 0, -1):
            jets[n] = jets[n] * (reduced - node) + n * jets[n - 1]
        jets[0] = jets[0] * (reduced - node)
    return table


@dataclass(frozen=True)
class SparseGrid:
    """Nodes of the multi-indices Λ, in an order in which each comes after those below it.

    >>> grid = SparseGrid(((0, 0), (1, 0), (0, 1)))
    >>> grid.nodes.round(3).tolist()
    [[0.51, 0.51], [-1.0, 0.51], [0.51, -1.0]]
    >>> grid.weights(grid.nodes[:1] / 2 + grid.nodes[1:2] / 2).tolist()  # linear between the first two nodes
    [[0.5, 0.5, 0.0]]
    """

    indices: tuple[Levels, ...]

    @property
    def dim(self) -> int:
        return len(self.indices[0])

    @cached_property
    def levels(self) -> Array:
        """The multi-indices as whole numbers (n, d)."""
        return np.array(self.indices, dtype=int)

    @cached_property
    def nodes(self) -> Array:
        """Reduced coordinates (n, d)."""
        points = np.array(leja(int(self.levels.max()) + 1))
        return points[self.levels]

    @cached_property
    def surplus_matrix(self) -> Array:
        """(n, n): surpluses from values at the nodes; lower triangular with unit diagonal."""
        return np.asarray(
            solve_triangular(self.functions(self.nodes), np.eye(len(self.indices)), lower=True, unit_diagonal=True)
        )

    @cached_property
    def chebyshev_matrix(self) -> Array:
        """(n, n): coefficients of the products of Chebyshev polynomials T_ν, ν in Λ, from surpluses."""
        matrix = np.ones((len(self.indices), len(self.indices)))
        for axis in range(self.dim):
            levels = self.levels[:, axis]
            matrix *= _chebyshev_coefficients(int(levels.max()))[levels[None, :], levels[:, None]]
        return matrix

    def functions(self, reduced: Array, orders: Levels | None = None) -> Array:
        """H_ν, or a partial derivative, at reduced coordinates (K, d): (K, n)."""
        product = np.ones((len(reduced), len(self.indices)))
        for axis in range(self.dim):
            order = 0 if orders is None else orders[axis]
            table = hierarchical(int(self.levels[:, axis].max()), reduced[:, axis], order)
            product *= table[:, self.levels[:, axis]]
        return product

    def weights(self, reduced: Array, orders: Levels | None = None) -> Array:
        """Weights (K, n) of the values at the nodes, in the interpolation or a partial derivative of it."""
        return self.functions(reduced, orders) @ self.surplus_matrix


def forward_neighbours(index: Levels, finished: set[Levels], present: set[Levels]) -> list[Levels]:
    """The indices above one that may be added next: all those below them are finished, and they are not yet there."""
    neighbours = []
    for axis in range(len(index)):
        above = (*index[:axis], index[axis] + 1, *index[axis + 1 :])
        if above not in present and all(below in finished for below in backward_neighbours(above)):
            neighbours.append(above)
    return neighbours


def backward_neighbours(index: Levels) -> list[Levels]:
    """The indices directly below one."""
    return [(*index[:k], level - 1, *index[k + 1 :]) for k, level in enumerate(index) if level > 0]
