"""Laws of hidden weights for problems on boxes: one scale a coordinate, whole frequencies where a field is periodic."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, log, pi

import numpy as np

from rannpde.errors import InputError, positive_integer, require
from rannpde.network.laws import Rng

Array = np.ndarray


@dataclass(frozen=True)
class BoxUniform:
    """Weight l uniform on [-scales_l, scales_l]; the ridge crosses the box [-1, 1]^dim, as for ``Uniform``.

    Solutions often vary faster in one coordinate than in another. With scales (2, 0.2) instead of (1, 1), the
    smooth porous-medium problem of docs/solving.md gains a factor of 50.
    """

    scales: tuple[float, ...]

    def __post_init__(self) -> None:
        for scale in self.scales:
            require(bool(0 < scale < np.inf), "scales", self.scales, "finite numbers > 0")

    def sample(self, rng: Rng, width: int, dim: int) -> tuple[Array, Array]:
        rng, width = np.random.default_rng(rng), positive_integer("width", width)
        self._require_dim(dim)
        weights = rng.uniform(-1.0, 1.0, (dim, width)) * np.array(self.scales)[:, None]
        return weights, rng.uniform(-1.0, 1.0, width) * np.abs(weights).sum(axis=0)

    def log_density(self, weights: Array, biases: Array) -> Array:
        self._require_dim(len(weights))
        reach = np.abs(weights).sum(axis=0)
        inside = (np.abs(weights) <= np.array(self.scales)[:, None]).all(axis=0) & (np.abs(biases) <= reach)
        with np.errstate(divide="ignore"):
            value = -sum(log(2 * scale) for scale in self.scales) - np.log(2 * reach)
        return np.where(inside, value, -np.inf)

    def _require_dim(self, dim: int) -> None:
        if dim != len(self.scales):
            raise InputError(f"scales has {len(self.scales)} entries, but the weights have {dim} coordinates")


@dataclass(frozen=True)
class FewCoordinates:
    """As ``BoxUniform``, but a neuron sees k coordinates only, k uniform on 1, …, n and the coordinates at random.

    In many dimensions solutions are often sums of functions of few coordinates, which dense ridges find hard: Poisson
    in 5-D with such a solution goes from 5e-6 to 1e-14 at width 1000. A solution that couples all coordinates (the
    porous medium in 5-D) neither gains nor loses.
    """

    scales: tuple[float, ...]

    def sample(self, rng: Rng, width: int, dim: int) -> tuple[Array, Array]:
        rng = np.random.default_rng(rng)
        weights, _ = BoxUniform(self.scales).sample(rng, width, dim)
        ranks = rng.permuted(np.tile(np.arange(dim)[:, None], width), axis=0)
        weights[ranks >= rng.integers(1, dim, width, endpoint=True)] = 0.0
        return weights, rng.uniform(-1.0, 1.0, width) * np.abs(weights).sum(axis=0)

    def log_density(self, weights: Array, biases: Array) -> Array:
        """With respect to Lebesgue's measure on the coordinates that are not zero."""
        dim, scales = len(weights), np.array(self.scales)[:, None]
        active = weights != 0
        count = active.sum(axis=0)
        reach = np.abs(weights).sum(axis=0)
        inside = (np.abs(weights) <= scales).all(axis=0) & (np.abs(biases) <= reach) & (count > 0)
        choices = np.array([log(dim * comb(dim, k)) for k in range(dim + 1)])[count]
        with np.errstate(divide="ignore"):
            value = -choices - np.where(active, np.log(2 * scales), 0.0).sum(axis=0) - np.log(2 * reach)
        return np.where(inside, value, -np.inf)


@dataclass(frozen=True)
class WholeFrequencies:
    """For cos features: weight π k with k uniform among the whole numbers |k| ≤ scale on periodic axes.

    On [-1, 1] every such column has period 2, so the network is periodic exactly, in value and all derivatives.
    The other weights are uniform on [-scale, scale], the phase uniform on [0, 2π).
    """

    scales: tuple[float, ...]
    periodic: tuple[int, ...]

    def sample(self, rng: Rng, width: int, dim: int) -> tuple[Array, Array]:
        rng, width = np.random.default_rng(rng), positive_integer("width", width)
        rows = []
        for axis in range(dim):
            if axis in self.periodic:
                top = max(1, round(self.scales[axis]))
                rows.append(pi * rng.integers(-top, top, width, endpoint=True))
            else:
                rows.append(rng.uniform(-self.scales[axis], self.scales[axis], width))
        return np.array(rows), rng.uniform(0.0, 2 * pi, width)

    def log_density(self, weights: Array, biases: Array) -> Array:
        """With respect to the counting measure on periodic axes."""
        value = np.full(weights.shape[1], -log(2 * pi))
        for axis, row in enumerate(weights):
            if axis in self.periodic:
                top = max(1, round(self.scales[axis]))
                whole = np.isclose(row / pi, np.round(row / pi)) & (np.abs(row) <= pi * top + 1e-9)
                value += np.where(whole, -log(2 * top + 1), -np.inf)
            else:
                value += np.where(np.abs(row) <= self.scales[axis], -log(2 * self.scales[axis]), -np.inf)
        return np.where((biases >= 0) & (biases < 2 * pi), value, -np.inf)
