"""Products of Legendre polynomials on [-1, 1]^d, orthonormal there, and the Gauss rules that integrate them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander

from rannpde.arrays import Array


def orthonormal_legendre(points: Array, degree: int) -> Array:
    """Polynomials up to a degree at points (…): (…, 1 + degree)."""
    return np.asarray(legvander(points, degree) * np.sqrt(np.arange(degree + 1) + 0.5))


def product_degrees(dim: int, degree: int) -> Array:
    """Degrees (R, d) along each axis of the products of total degree at most ``degree``."""
    every = np.array(list(np.ndindex(*[degree + 1] * dim)), dtype=int).reshape(-1, dim)
    return every[every.sum(axis=1) <= degree]


def legendre_products(points: Array, degrees: Array) -> Array:
    """Products of these degrees (R, d) at points (M, d): (M, R).

    >>> points, weights = gauss_cube(5, 2)
    >>> table = legendre_products(points, product_degrees(2, 3))
    >>> bool(np.allclose((table.T * weights) @ table, np.eye(10)))
    True
    """
    product = np.ones((len(points), len(degrees)))
    for axis, own in enumerate(degrees.T):
        product *= orthonormal_legendre(points[:, axis], int(degrees.max()))[:, own]
    return product


@lru_cache(maxsize=64)
def gauss_cube(count: int, dim: int) -> tuple[Array, Array]:
    """Points (count^dim, dim) and weights of the Gauss–Legendre rule on [-1, 1]^dim; for dim 0 one point."""
    if dim == 0:
        return np.zeros((1, 0)), np.ones(1)
    nodes, shares = leggauss(count)
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*[nodes] * dim, indexing="ij")], axis=1)
    return grid, np.prod([axis.ravel() for axis in np.meshgrid(*[shares] * dim, indexing="ij")], axis=0)
