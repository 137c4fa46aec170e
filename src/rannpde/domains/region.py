"""A region is a set of points with a uniform law: a domain or one side of it. It gives points and Gauss rules.

The uniform law of a box, a ball, a sphere and of their products is a product of laws of one coordinate in suitable
coordinates (Cartesian, polar, spherical). Such an axis gives both its inverse distribution function, which carries
uniform and Sobol points of the unit interval over exactly, and a Gauss rule for its density, which keeps spectral
accuracy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import pi

import numpy as np
from scipy.special import betaincinv, roots_jacobi, roots_legendre

from rannpde.arrays import Array, Rng
from rannpde.domains.streams import PointStream, SamplingMethod, unit_stream
from rannpde.errors import positive_integer, require

CONTAINS_SLACK = 8 * np.finfo(float).eps
"""Relative slack of ``contains`` for points that were computed to lie on a curved or flat boundary."""
TRIES = 10**7
"""Points of the bounds that are tried before a domain is called too thin to be sampled."""


class Region(ABC):
    """A set of points of R^n with a uniform law and Gauss rules.

    exact : whether the law is the image of the uniform law of a unit cube, so that ``from_cube`` works; domains that
        are cut out of others draw more points than they keep
    has_rule : whether ``rule`` works; solids of meshes have none
    """

    exact: bool = True
    has_rule: bool = True

    @property
    @abstractmethod
    def dim(self) -> int:
        """Number of coordinates n of a point."""

    @property
    @abstractmethod
    def extent(self) -> int:
        """Number of independent coordinates: n for a domain, n - 1 for a side, 0 for a point."""

    @property
    @abstractmethod
    def columns(self) -> int:
        """Number of coordinates of the unit cube that ``draw`` takes for one point."""

    @property
    @abstractmethod
    def measure(self) -> float:
        """Volume of a domain, (n-1)-dimensional measure of a side (1 for a point)."""

    @abstractmethod
    def contains(self, points: Array) -> Array:
        """Boolean mask (M,) of the points (M, n) that lie in the closed region."""

    @abstractmethod
    def draw(self, count: int, stream: PointStream, carried: int = 0) -> Array:
        """Uniform points (count, carried + n) from a stream of points of the unit cube.

        The first ``carried`` columns of the stream go with the points as they are: the time of a space-time.
        """

    @abstractmethod
    def rule(self, count: int, panels: int) -> tuple[Array, Array]:
        """Points (M, n) and weights (M,) of a Gauss rule with count × panels nodes along each coordinate."""

    @property
    def is_point(self) -> bool:
        """Whether it is a single point, such as the end of an interval."""
        return self.extent == 0

    def from_cube(self, unit: Array) -> Array:
        """Points (M, n) of points (M, columns) of the unit cube; equal volumes go to equal measures."""
        remedy = "use sample, or a Box, a Ball or a SpaceTime of them"
        require(self.exact, "region", type(self).__name__, "an image of the unit cube", remedy)
        return self.draw(len(unit), lambda count: unit)

    def sample(self, count: int, *, rng: Rng = None, method: SamplingMethod = "uniform") -> Array:
        """Points (count, n), uniformly distributed: independent, or one scrambled Sobol sequence."""
        stream = unit_stream(self.columns, rng, method)
        return self.draw(positive_integer("count", count), stream)


class ProductRegion(Region):
    """A region described by axes (laws of independent coordinates) and the map ``place`` from these to points."""

    @property
    @abstractmethod
    def axes(self) -> tuple[CoordinateLaw, ...]:
        """The laws of the k independent coordinates; k = n for a domain, n - 1 for a side."""

    @abstractmethod
    def place(self, coordinates: Array) -> Array:
        """Points (M, n) of the coordinates (M, k) of the axes."""

    @property
    def extent(self) -> int:
        return len(self.axes)

    @property
    def columns(self) -> int:
        return len(self.axes)

    def draw(self, count: int, stream: PointStream, carried: int = 0) -> Array:
        unit = stream(count)
        coordinates = np.empty((len(unit), len(self.axes)))
        for column, axis in enumerate(self.axes):
            coordinates[:, column] = axis.quantile(unit[:, carried + column])
        return np.concatenate([unit[:, :carried], self.place(coordinates)], axis=1)

    def rule(self, count: int, panels: int) -> tuple[Array, Array]:
        coordinates, weights = tensor_rule([axis.gauss(count, panels) for axis in self.axes], self.measure)
        return self.place(coordinates), weights


def tensor_rule(rules: Sequence[tuple[Array, Array]], scale: float = 1.0) -> tuple[Array, Array]:
    """The product of one-dimensional rules: coordinates (M, k) and weights (M,), times a scale."""
    grids = np.meshgrid(*(nodes for nodes, _ in rules), indexing="ij")
    coordinates = np.stack([grid.ravel() for grid in grids], axis=1) if rules else np.empty((1, 0))
    weights = reduce(np.multiply.outer, (weights for _, weights in rules), np.array(scale))
    return coordinates, weights.ravel()


def rejected(count: int, stream: PointStream, trial: Callable[[Array], tuple[Array, Array]], what: str) -> Array:
    """The first ``count`` of the rows that trial(unit points) → (rows, mask) keeps, however many it takes."""
    accepted: list[Array] = []
    have, tried, batch = 0, 0, max(64, 2 * count)
    while have < count:
        rows, mask = trial(stream(batch))
        accepted.append(rows[mask])
        have, tried = have + int(mask.sum()), tried + batch
        require(tried < TRIES or have > 0, what, "too thin", f"more than one part in {TRIES} of its bounds")
        share = max(have, 1) / tried
        batch = int(min(max(64, 1.1 * (count - have) / share), 2**18))
    return np.concatenate(accepted)[:count]


# ------------------------------------------------------------------------------------------- laws of one coordinate


@lru_cache(maxsize=64)
def _unit_gauss(count: int) -> tuple[Array, Array]:
    """Nodes and weights of Gauss–Legendre on (-1, 1): an eigenvalue problem, which is solved once for every count."""
    nodes, weights = roots_legendre(count)
    nodes.setflags(write=False)
    weights.setflags(write=False)
    return nodes, weights


def composite_gauss(ends: Array, count: int) -> tuple[Array, Array]:
    """Nodes and weights (cells · count,) of Gauss–Legendre with ``count`` nodes on each cell between consecutive ends.

    ends (cells + 1,), rising. Exact for polynomials of degree 2·count - 1 on every cell.

    >>> nodes, weights = composite_gauss(np.array([0.0, 1.0, 3.0]), 2)
    >>> nodes.shape, round(float(weights @ nodes**3), 12)
    ((4,), 20.25)
    """
    unit, unit_weights = _unit_gauss(count)
    half = 0.5 * np.diff(ends)[:, None]
    nodes = ends[:-1, None] + half + half * unit
    return nodes.ravel(), (half * unit_weights).ravel()


class CoordinateLaw(ABC):
    """The law of one coordinate."""

    @abstractmethod
    def quantile(self, unit: Array) -> Array:
        """The inverse distribution function at numbers in [0, 1]."""

    @abstractmethod
    def gauss(self, count: int, panels: int) -> tuple[Array, Array]:
        """Nodes and weights (sum 1), count × panels of each, of a rule that is exact for the law's own polynomials."""


@dataclass(frozen=True)
class Linear(CoordinateLaw):
    """Uniform on [lower, upper]; Gauss–Legendre on each of the panels."""

    lower: float
    upper: float

    def quantile(self, unit: Array) -> Array:
        # Rounding may step over the upper end by one unit in the last place.
        return np.clip(self.lower + (self.upper - self.lower) * unit, self.lower, self.upper)

    def gauss(self, count: int, panels: int) -> tuple[Array, Array]:
        unit, weights = composite_gauss(np.linspace(0.0, 1.0, panels + 1), count)
        return self.quantile(unit), weights


@dataclass(frozen=True)
class Angle(CoordinateLaw):
    """Uniform on [0, 2π); the trapezoidal rule, which is Gauss's rule of trigonometric polynomials."""

    def quantile(self, unit: Array) -> Array:
        return 2 * pi * unit

    def gauss(self, count: int, panels: int) -> tuple[Array, Array]:
        total = count * panels
        return self.quantile((np.arange(total) + 0.5) / total), np.full(total, 1 / total)


@dataclass(frozen=True)
class Radius(CoordinateLaw):
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
class Latitude(CoordinateLaw):
    """Density ∝ (1 - z²)^((dim-3)/2) on [-1, 1]: one coordinate of a uniform point of the unit sphere, dim ≥ 3."""

    dim: int

    def quantile(self, unit: Array) -> Array:
        if self.dim == 3:  # Archimedes: uniform
            return 2 * unit - 1
        shape = (self.dim - 1) / 2
        return np.asarray(2 * betaincinv(shape, shape, unit) - 1)

    def gauss(self, count: int, panels: int) -> tuple[Array, Array]:
        shape = (self.dim - 3) / 2
        nodes, weights = roots_jacobi(count * panels, shape, shape)
        return nodes, weights / weights.sum()


def sphere_axes(dim: int) -> tuple[CoordinateLaw, ...]:
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
