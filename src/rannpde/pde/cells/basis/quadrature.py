"""Gauss–Legendre points on boxes and their faces, and Legendre polynomials on them."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander

from rannpde.arrays import Array


def gauss_grid(bounds: Array, count: int) -> tuple[Array, Array]:
    """Return nodes (count^k, n) and weights, sum 1, of the product Gauss–Legendre rule on a box.

    k is the number of sides of positive length: the box may be flat.

    >>> points, weights = gauss_grid(np.array([(0.0, 2.0), (1.0, 1.0)]), 3)
    >>> points.shape, round(float(weights @ points[:, 0] ** 4), 12)
    ((3, 2), 3.2)
    """
    nodes, weights = _gauss(count)
    axes, axis_weights = [], []
    for lower, upper in bounds:
        flat = lower == upper
        axes.append(np.array([lower]) if flat else lower + 0.5 * (upper - lower) * (1 + nodes))
        axis_weights.append(np.ones(1) if flat else 0.5 * weights)
    grid = np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")], axis=1)
    return grid, np.prod([part.ravel() for part in np.meshgrid(*axis_weights, indexing="ij")], axis=0)


@lru_cache(maxsize=64)
def _gauss(count: int) -> tuple[Array, Array]:
    """Nodes and weights on [-1, 1], cached because every cell and face needs them."""
    return leggauss(count)


def polynomials(points: Array, bounds: Array, degree: int) -> Array:
    """Return products of Legendre polynomials of total degree at most ``degree`` on a flat box, (P, columns)."""
    free = [axis for axis, (lower, upper) in enumerate(bounds) if lower < upper]
    tables = [legvander((2 * points[:, a] - bounds[a].sum()) / (bounds[a, 1] - bounds[a, 0]), degree) for a in free]
    powers = [index for index in product(range(degree + 1), repeat=len(free)) if sum(index) <= degree]
    columns = [
        np.prod([table[:, k] for table, k in zip(tables, index, strict=True)], axis=0, initial=1.0) for index in powers
    ]
    return np.stack([np.broadcast_to(column, len(points)) for column in columns], axis=1)
