"""Laws of one coordinate: what sampling and quadrature share.

The uniform law of a box, a ball, a sphere and of their products is a product of such laws in suitable coordinates
(Cartesian, polar, spherical). An axis therefore gives both its inverse distribution function, which carries uniform
and Sobol points of the unit interval over exactly, and a Gauss rule for its density, which keeps spectral accuracy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import pi

import numpy as np
from scipy.special import betaincinv, roots_jacobi, roots_legendre

Array = np.ndarray


class Axis(ABC):
    """The law of one coordinate."""

    @abstractmethod
    def quantile(self, unit: Array) -> Array:
        """The inverse distribution function at numbers in [0, 1]."""

    @abstractmethod
    def gauss(self, count: int, panels: int) -> tuple[Array, Array]:
        """Nodes and weights (sum 1), count × panels of each, of a rule that is exact for the law's own polynomials."""


@dataclass(frozen=True)
class Linear(Axis):
    """Uniform on [lower, upper]; Gauss–Legendre on each of the panels."""

    lower: float
    upper: float

    def quantile(self, unit: Array) -> Array:
        # Rounding may step over the upper end by one unit in the last place.
        return np.clip(self.lower + (self.upper - self.lower) * unit, self.lower, self.upper)

    def gauss(self, count: int, panels: int) -> tuple[Array, Array]:
        nodes, weights = roots_legendre(count)
        unit = (np.arange(panels)[:, None] + 0.5 * (1 + nodes)) / panels
        return self.quantile(unit.ravel()), np.tile(weights / (2 * panels), panels)


@dataclass(frozen=True)
class Angle(Axis):
    """Uniform on [0, 2π); the trapezoidal rule, which is Gauss's rule of trigonometric polynomials."""

    def quantile(self, unit: Array) -> Array:
        return 2 * pi * unit

    def gauss(self, count: int, panels: int) -> tuple[Array, Array]:
        total = count * panels
        return self.quantile((np.arange(total) + 0.5) / total), np.full(total, 1 / total)


@dataclass(frozen=True)
class Radius(Axis):
    """Density dim·r^(dim-1) on [0, 1], the radius of a uniform point of the unit ball.

    The mean of a smooth function over a sphere is smooth in s = r², so the rule is Gauss–Jacobi in s.
    """

    dim: int

    def quantile(self, unit: Array) -> Array:
        return unit ** (1 / self.dim)

    def gauss(self, count: int, panels: int) -> tuple[Array, Array]:
        nodes, weights = roots_jacobi(count * panels, 0.0, self.dim / 2 - 1)
        return np.sqrt(0.5 * (1 + nodes)), weights / weights.sum()


@dataclass(frozen=True)
class Latitude(Axis):
    """Density ∝ (1 - z²)^((dim-3)/2) on [-1, 1]: one coordinate of a uniform point of the unit sphere, dim ≥ 3."""

    dim: int

    def quantile(self, unit: Array) -> Array:
        if self.dim == 3:  # Archimedes: uniform
            return 2 * unit - 1
        shape = (self.dim - 1) / 2
        return 2 * betaincinv(shape, shape, unit) - 1

    def gauss(self, count: int, panels: int) -> tuple[Array, Array]:
        shape = (self.dim - 3) / 2
        nodes, weights = roots_jacobi(count * panels, shape, shape)
        return nodes, weights / weights.sum()


def sphere_axes(dim: int) -> tuple[Axis, ...]:
    """The dim - 1 axes of the unit sphere of R^dim, dim ≥ 2."""
    return (*(Latitude(k) for k in range(dim, 2, -1)), Angle())


def sphere_points(coordinates: Array) -> Array:
    """Unit vectors (M, dim) of the coordinates (M, dim - 1) of ``sphere_axes``."""
    dim = coordinates.shape[1] + 1
    points = np.empty((len(coordinates), dim))
    rest = np.ones(len(coordinates))
    for column in range(dim - 2):
        latitude = coordinates[:, column]
        points[:, column] = rest * latitude
        rest = rest * np.sqrt((1 - latitude) * (1 + latitude))
    points[:, -2] = rest * np.cos(coordinates[:, -1])
    points[:, -1] = rest * np.sin(coordinates[:, -1])
    return points
