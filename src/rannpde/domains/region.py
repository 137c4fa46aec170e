"""A region is a set of points with a uniform law: a domain or one side of it."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from rannpde.domains.axes import Axis
from rannpde.domains.sampling import Method, Rng, unit_points

Array = np.ndarray

ROUNDING = 8 * np.finfo(float).eps
"""Relative slack of ``contains`` for points that were computed to lie on a curved or flat boundary."""


class Region(ABC):
    """Points of R^n, described by axes (laws of independent coordinates) and the map ``place`` from these to points."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Number of coordinates n of a point."""

    @property
    @abstractmethod
    def axes(self) -> tuple[Axis, ...]:
        """The laws of the k independent coordinates; k = n for a domain, n - 1 for a side."""

    @property
    @abstractmethod
    def measure(self) -> float:
        """Volume of a domain, (n-1)-dimensional measure of a side (1 for a point)."""

    @abstractmethod
    def place(self, coordinates: Array) -> Array:
        """Points (M, n) of the coordinates (M, k) of the axes."""

    @abstractmethod
    def contains(self, points: Array) -> Array:
        """Boolean mask (M,) of the points (M, n) that lie in the closed region."""

    def from_cube(self, unit: Array) -> Array:
        """Points (M, n) of points (M, k) of the unit cube; equal volumes go to equal measures."""
        coordinates = np.empty_like(unit)
        for column, axis in enumerate(self.axes):
            coordinates[:, column] = axis.quantile(unit[:, column])
        return self.place(coordinates)

    def sample(self, count: int, *, rng: Rng = None, method: Method = "uniform") -> Array:
        """Points (count, n), uniformly distributed: independent, or one scrambled Sobol sequence."""
        return self.from_cube(unit_points(count, len(self.axes), rng, method))
