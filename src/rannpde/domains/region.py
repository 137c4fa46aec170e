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
from math import floor, pi
from typing import Literal, Protocol

import numpy as np
from scipy.special import betaincinv, roots_jacobi, roots_legendre

from rannpde.arrays import Array, Rng
from rannpde.errors import choose, finite_array, positive_integer, require

Method = Literal["uniform", "sobol"]
Stream = Callable[[int], Array]

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


# ------------------------------------------------------------------------------------------- laws of one coordinate


def composite_gauss(ends: Array, count: int) -> tuple[Array, Array]:
    """Nodes and weights (cells · count,) of Gauss–Legendre with ``count`` nodes on each cell between consecutive ends.

    ends (cells + 1,), rising. Exact for polynomials of degree 2·count - 1 on every cell.

    >>> nodes, weights = composite_gauss(np.array([0.0, 1.0, 3.0]), 2)
    >>> nodes.shape, round(float(weights @ nodes**3), 12)
    ((4,), 20.25)
    """
    unit, unit_weights = roots_legendre(count)
    half = 0.5 * np.diff(ends)[:, None]
    nodes = ends[:-1, None] + half + half * unit
    return nodes.ravel(), (half * unit_weights).ravel()


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
        unit, weights = composite_gauss(np.linspace(0.0, 1.0, panels + 1), count)
        return self.quantile(unit), weights


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
        return np.asarray(2 * betaincinv(shape, shape, unit) - 1)

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


# ------------------------------------------------------------------------------------------- points of the unit cube


def unit_stream(dim: int, rng: Rng, method: str) -> Stream:
    """A function that, called with a count, gives the next points (count, dim) of the unit cube.

    ``uniform`` points are independent. ``sobol`` points are one sequence, scrambled by the generator (so each point is
    uniform on the cube too), however it is cut into calls.
    """
    generator = np.random.default_rng(rng)
    streams = {"uniform": _uniform_stream, "sobol": _sobol_stream}
    return choose("method", method, streams)(dim, generator)


def _uniform_stream(dim: int, generator: np.random.Generator) -> Stream:
    return lambda count: generator.random((count, dim))


def _sobol_stream(dim: int, generator: np.random.Generator) -> Stream:
    if dim == 0:
        return lambda count: np.empty((count, 0))
    from scipy.stats import qmc  # loading it takes longer than the rest of the package

    engine = qmc.Sobol(dim, scramble=True, rng=generator)

    def draw(count: int) -> Array:
        # SciPy warns when the first draw is not a power of two; the sequence is the same in two draws.
        first = 1 << (count.bit_length() - 1)
        rest = count - first
        return np.concatenate([engine.random(first), engine.random(rest)]) if rest else engine.random(first)

    return draw


def unit_points(count: int, dim: int, rng: Rng, method: str) -> Array:
    """Points of the unit cube, shape (count, dim)."""
    return unit_stream(dim, rng, method)(positive_integer("count", count))


# ------------------------------------------------------------------------------------------------------------ mixtures


class Sampler(Protocol):
    """Anything that draws points: a domain, a side, or a law of one's own."""

    def sample(self, count: int, *, rng: Rng = None) -> Array:
        """Points, shape (count, n)."""
        ...


def mixture(components: Sequence[tuple[float, Sampler]], count: int, *, rng: Rng = None) -> Array:
    """Points (count, n) drawn from several samplers in exact shares, one component after the other.

    Component i gives ⌊share_i · count⌋ points; what is missing to ``count`` goes, one each, to the components with the
    largest fractional parts (the first of equals). One generator is passed through all components.

    >>> from rannpde.domains import SpaceTime
    >>> domain = SpaceTime(t=(0.1, 1.1), x=[(0, 1)] * 3)
    >>> mixture([(0.5, domain), (0.5, domain.restrict(x=[(0.2, 0.8)] * 3))], 100, rng=0).shape
    (100, 4)
    """
    count = positive_integer("count", count)
    counts = _exact_counts(components, count)
    generator = np.random.default_rng(rng)
    parts = [
        finite_array("a component's points", source.sample(part, rng=generator), 2)
        for part, (_, source) in zip(counts, components, strict=True)
        if part
    ]
    shapes = [part.shape for part in parts]
    expected = [(part, shapes[0][1]) for part in counts if part]
    require(shapes == expected, "shapes of the components' points", shapes, f"{expected}")
    return np.concatenate(parts)


def _exact_counts(components: Sequence[tuple[float, Sampler]], count: int) -> list[int]:
    pairs = all(
        isinstance(pair, (tuple, list)) and len(pair) == 2 and hasattr(pair[1], "sample") for pair in components
    )
    require(pairs, "components", components, "pairs (share, sampler)", "e.g. [(0.5, domain), (0.5, smaller)]")
    shares = finite_array("shares", [share for share, _ in components], 1)
    total = float(shares.sum())
    positive = len(shares) > 0 and bool((shares > 0).all())
    require(positive, "shares", shares.tolist(), "positive, at least one", "leave components without a share out")
    require(abs(total - 1) < 1e-9, "sum of the shares", total, "1", "divide each by their sum")
    wanted = shares * count
    counts = [floor(part) for part in wanted]
    order = np.argsort(-(wanted - counts), kind="stable")
    for index in order[: count - sum(counts)]:
        counts[index] += 1
    return counts
