"""Cells whose local coordinate is a root of the distance from an end, where solutions are not smooth in the coordinate.

With a kernel like 1/√(x - s) solutions are smooth functions of √x: on a cell [a, a + h], x = a + h z^p and polynomials
in z converge exponentially, where polynomials in x do not. A cell has a power: p from its lower end, -p from its upper
end, 1 for a polynomial in x itself.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.polynomial.legendre import legder, leggauss, legvander

from rannpde.arrays import Array

Roots = tuple[tuple[float, int], ...]
"""Positions along a coordinate near which solutions are smooth in z, each with the power p of z."""


def cell_powers(edges: Array, roots: Roots) -> Array:
    """The power of each cell (C,) between edges (C + 1,); roots at both ends of a cell count at its lower end."""
    known = dict(roots)
    powers = [known.get(float(low), -known.get(float(high), -1)) for low, high in pairwise(edges)]
    return np.array(powers, dtype=int)


def nodes_and_weights(edges: Array, powers: Array, count: int) -> tuple[Array, Array]:
    """Gauss nodes (C, count) of all cells in their local coordinates, ascending, and weights of integrals in x."""
    z, weights = leggauss(count)
    z = 0.5 * (z + 1)
    widths, power = np.diff(edges)[:, None], np.abs(powers)[:, None]
    from_upper = (powers < 0)[:, None]
    y = np.where(from_upper, 1 - z, z)
    nodes = np.where(from_upper, edges[1:, None] - widths * y**power, edges[:-1, None] + widths * y**power)
    return nodes, 0.5 * weights * widths * power * y ** (power - 1.0)


def cell_values(positions: Array, edges: Array, powers: Array, cell: Array, degree: int, order: int) -> Array:
    """∂^order of the Legendre polynomials of each position's cell: (K, degree + 1)."""
    table = np.empty((len(positions), degree + 1))
    power_of = powers[cell]
    for power in np.unique(power_of):
        rows = power_of == power
        low, high = edges[cell[rows]], edges[cell[rows] + 1]
        y = (positions[rows] - low if power > 0 else high - positions[rows]) / (high - low)
        values = _graded_values(y, abs(int(power)), degree, order) / (high - low)[:, None] ** order
        if power < 0:  # P_k(1 - 2z) = (-1)^k P_k(2z - 1), and y falls where x grows
            values *= (-1.0) ** (np.arange(degree + 1) + order)
        table[rows] = values
    return table


def _graded_values(y: Array, power: int, degree: int, order: int) -> Array:
    """∂_y^order P_k(2z - 1) with y = z^power, for all k ≤ degree: (K, degree + 1)."""
    # at a root, derivatives are infinite or differences of infinite terms: they are evaluated at a distance of rounding
    z = y if power == 1 else np.maximum(y, np.finfo(float).eps if order else 0.0) ** (1 / power)
    base = legvander(2 * z - 1, degree)
    total = np.zeros_like(base)
    for j, factor in enumerate(_chain(power, order)):
        if factor:
            outer = factor * 2.0**j * z ** (j - order * power)
            total += outer[:, None] * (base @ _derivative(degree, j))
    return total / float(power) ** order


@lru_cache(maxsize=256)
def _chain(power: int, order: int) -> tuple[int, ...]:
    """c_j of (p ∂_y)^order = Σ_j c_j z^(j - order p) ∂_z^j, from p ∂_y = z^(1-p) ∂_z."""
    coefficients = [1]
    for m in range(order):
        scaled = [factor * (j - m * power) for j, factor in enumerate(coefficients)] + [0]
        coefficients = [scaled[j] + (coefficients[j - 1] if j else 0) for j in range(m + 2)]
    return tuple(coefficients)


@lru_cache(maxsize=256)
def _derivative(degree: int, order: int) -> Array:
    """(degree + 1, degree + 1): Legendre coefficients of the derivatives of Legendre polynomials, by columns."""
    matrix = np.zeros((degree + 1, degree + 1))
    if order <= degree:
        matrix[: degree + 1 - order] = legder(np.eye(degree + 1), m=order, axis=0) if order else np.eye(degree + 1)
    return matrix
