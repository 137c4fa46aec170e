"""How far a function goes before it changes its shape, and a weight law adapted to it: neurons where it varies.

The length ℓ of a field u at a point is

    1/ℓ = √( (2/L)² + |∇u|²/U² ) + √( |∇²u|/U ),

with L the size of the domain and U half the range of the field. A layer of thickness δ has 1/ℓ ≈ 1/δ; a smooth
function on the domain has 1/ℓ of a few over L.

By the adapted law a neuron σ(s d·(x - c)) has its
centre c drawn with density ∝ ℓ^-dim, mixed with a uniform part, a direction d, and a slope s = U(lowest, highest)/ℓ(c).
Slopes follow the length of the function, not the spacing of the centres: many smooth overlapping neurons per length
give a basis of few, well-resolved singular vectors, where narrow ones would give spikes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma, log, pi

import numpy as np

from rannpde.arrays import Array, Rng
from rannpde.errors import finite_array, positive_integer, reject, require

BLOCK_ENTRIES = 2**22
"""Distances that are computed at once: 32 MB."""


CONSTANT_RANGE = 1e-12
"""A field whose range is below this share of its size is constant: what varies is rounding."""


def inverse_length(values: Array, slopes: Array, curvatures: Array, size: float) -> Array:
    """1/ℓ (M,) of one field from u, |∇u| and |∇²u|, each (M, s) at M points and s times, the largest over the times.

    size : L, the longest side of the domain (2 in coordinates scaled to [-1, 1]). A constant field gets 4/L.

    >>> x = np.linspace(-1, 1, 401)[:, None]
    >>> rate = inverse_length(np.tanh(20 * x), 20 / np.cosh(20 * x) ** 2, 0 * x, 2.0)
    >>> float(rate.max().round(1)), float(rate.min().round(1))
    (20.0, 1.0)
    """
    span = 0.5 * float(np.ptp(values))
    tiny = np.finfo(float).tiny
    size = max(size, tiny)
    if span <= CONSTANT_RANGE * max(float(np.abs(values).max()), tiny):
        return np.full(len(values), 4.0 / size)
    largest: Array = length_rate(slopes / span, np.abs(curvatures) / span, size).max(axis=1)
    return largest


def length_rate(slopes: Array, curvatures: Array, size: float) -> Array:
    """1/ℓ from |∇u|/U and |∇²u|/U, U half the range of u: √( (2/L)² + slope² ) + √curvature."""
    rates: Array = np.sqrt((2.0 / size) ** 2 + slopes**2) + np.sqrt(curvatures)
    return rates


@dataclass(frozen=True, eq=False)
class Adapted:
    """Centres near ``points`` (G, dim), drawn with those probabilities (G,), slopes U(lowest, highest)/lengths (G,).

    A centre is one of them plus a normal of standard deviation ``spread``; about the spacing of the points, so that the
    density has no gaps. Directions are uniform on the sphere (±1 on the line). Coordinates are those of the network's
    inputs: use it without ``domain=`` for points in raw coordinates.

    >>> points = np.linspace(-1, 1, 201)[:, None]
    >>> law = Adapted.to_lengths(points, 0.05 + np.abs(points[:, 0]))
    >>> weights, biases = law.sample(width=1000, dim=1, rng=0)
    >>> centres = -biases / weights[0]
    >>> bool((np.abs(centres) < 0.25).mean() > 0.4)
    True
    """

    points: Array
    lengths: Array
    probabilities: Array
    spread: float
    slopes: tuple[float, float] = (0.25, 1.25)

    def __post_init__(self) -> None:
        points = finite_array("points", self.points, 2)
        for name in ("lengths", "probabilities"):
            array = finite_array(name, getattr(self, name), 1)
            require(len(array) == len(points), f"{name} with shape", array.shape, f"of shape ({len(points)},)")
        require(bool((np.asarray(self.lengths) > 0).all()), "lengths", self.lengths, "positive")
        total = float(np.sum(self.probabilities))
        summed = bool((np.asarray(self.probabilities) >= 0).all()) and abs(total - 1.0) < 1e-9
        require(summed, "probabilities", self.probabilities, "non-negative with sum 1")
        require(0 < self.spread < np.inf, "spread", self.spread, "a finite number > 0")
        require(
            0 < self.slopes[0] < self.slopes[1] < np.inf,
            "slopes",
            self.slopes,
            "(lowest, highest), 0 < lowest < highest",
        )

    @classmethod
    def to_lengths(
        cls,
        points: Array,
        lengths: Array,
        *,
        uniform: float = 0.2,
        slopes: tuple[float, float] = (0.25, 1.25),
        spread: float | None = None,
    ) -> Adapted:
        """Density ∝ ℓ^-dim at evenly spread points, and a share ``uniform`` of centres that ignores it."""
        points = finite_array("points", points, 2)
        lengths = finite_array("lengths", lengths, 1)
        require(len(lengths) == len(points) > 0, "lengths with shape", lengths.shape, f"of shape ({len(points)},)")
        require(0 <= uniform <= 1, "uniform", uniform, "a share between 0 and 1")
        dim = points.shape[1]
        density = (lengths.min() / lengths) ** dim
        probabilities = (1 - uniform) * density / density.sum() + uniform / len(points)
        if spread is None:
            extent = np.prod(np.ptp(points, axis=0) + 1e-300) ** (1 / dim)
            spread = 0.5 * float(extent) / len(points) ** (1 / dim)
        return cls(points, lengths, probabilities, spread, slopes)

    @property
    def dim(self) -> int:
        return int(self.points.shape[1])

    def sample(self, width: int, dim: int, *, rng: Rng = None) -> tuple[Array, Array]:
        """weights (dim, width) and biases (width,)."""
        width = positive_integer("width", width)
        if dim != self.dim:
            reject("dim", dim, f"{self.dim}, as the points of the law have")
        rng = np.random.default_rng(rng)
        chosen = rng.choice(len(self.points), size=width, p=self.probabilities)
        centres = self.points[chosen] + self.spread * rng.standard_normal((width, dim))
        directions = rng.standard_normal((width, dim))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        steepness = rng.uniform(*self.slopes, width) / self.lengths[chosen]
        weights = (directions * steepness[:, None]).T
        return weights, -np.einsum("nw,wn->w", weights, centres)

    def log_density(self, weights: Array, biases: Array) -> Array:
        """A mixture over the points: slope uniform, direction uniform, and b given w normal around -w·point."""
        width = weights.shape[1]
        steepness = np.linalg.norm(weights, axis=0)
        value = np.empty(width)
        rows = max(1, BLOCK_ENTRIES // len(self.points))
        for first in range(0, width, rows):
            block = slice(first, first + rows)
            value[block] = self._mixture(weights[:, block], biases[block], steepness[block])
        sphere = log(2.0) + 0.5 * self.dim * log(pi) - lgamma(0.5 * self.dim)  # log of the area of the unit sphere
        with np.errstate(divide="ignore"):
            value -= sphere + (self.dim - 1) * np.log(steepness)
        return value

    def _mixture(self, weights: Array, biases: Array, steepness: Array) -> Array:
        scaled = steepness[:, None] * self.lengths
        inside = (scaled >= self.slopes[0]) & (scaled <= self.slopes[1])
        deviation = self.spread * steepness[:, None]
        offset = (biases[:, None] + weights.T @ self.points.T) / deviation
        terms = (
            self.probabilities * self.lengths / (self.slopes[1] - self.slopes[0]) * np.exp(-0.5 * offset**2) / deviation
        )
        with np.errstate(divide="ignore"):
            value: Array = np.log(np.where(inside, terms, 0.0).sum(axis=1)) - 0.5 * log(2 * pi)
        return value
