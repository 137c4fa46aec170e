"""Laws of the hidden weights: how (τ_i, a_i, b_i) are drawn, and with which density.

A law gives ``sample(width, dim, rng=…)`` → weights (dim, width) and biases (width,), the columns being the hidden
neurons σ(w·z + b) of a network on R^dim, and ``log_density(weights, biases)`` → (width,), the logarithm of the
joint density of one neuron's (w, b). Row 0 of the weights belongs to time when there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, lgamma, log, pi
from typing import Protocol, runtime_checkable

import numpy as np

from rannpde.arrays import Array, Rng
from rannpde.errors import positive_integer, positive_number, require


@runtime_checkable
class WeightLaw(Protocol):
    """The protocol of laws. They are frozen: a law holds parameters, never random state."""

    def sample(self, width: int, dim: int, *, rng: Rng = None) -> tuple[Array, Array]:
        """width draws of (weights, biases), of shapes (dim, width) and (width,)."""
        ...

    def log_density(self, weights: Array, biases: Array) -> Array:
        """log of the joint density of each column, shape (width,); -inf outside the support."""
        ...


@dataclass(frozen=True)
class HeavyTailed:
    """π of Theorem 1 (eq. pi): (1+τ²)^-λ_τ (1+|a|²)^-λ_a (1+b²)^-1 / C_π.

    A Student t with 2λ_τ - 1 degrees of freedom in time, a multivariate t with 2λ_a - d in space, a Cauchy bias.

    time_decay : λ_τ > 1/2, or None when there is no time coordinate and all n coordinates are space
    space_decay : λ_a > d/2

    >>> law = HeavyTailed(time_decay=1.0, space_decay=1.0)
    >>> weights, biases = law.sample(width=5, dim=2, rng=0)
    >>> weights.shape, biases.shape
    ((2, 5), (5,))
    """

    time_decay: float | None
    space_decay: float

    def __post_init__(self) -> None:
        if self.time_decay is not None:
            bounded = 0.5 < self.time_decay < np.inf
            require(bounded, "time_decay", self.time_decay, "a number > 1/2", "else the density cannot be normalised")
        bounded = 0 < self.space_decay < np.inf
        require(bounded, "space_decay", self.space_decay, "a number > d/2", "else the density cannot be normalised")

    def space_dim(self, dim: int) -> int:
        """d, refused where the density cannot be normalised on R^dim."""
        dim = positive_integer("dim", dim)
        d = dim if self.time_decay is None else dim - 1
        require(d >= 1, "dim", dim, "at least 2 with time", "use time_decay=None for functions of space alone")
        remedy = f"e.g. space_decay={d / 2 + 0.5:g}; at or below d/2 the density cannot be normalised"
        require(self.space_decay > d / 2, "space_decay", self.space_decay, f"> d/2 = {d / 2:g} on R^{dim}", remedy)
        return d

    def log_normaliser(self, dim: int) -> float:
        """log C_π on R^dim × R, in closed form (C_π of Theorem 1)."""
        d = self.space_dim(dim)
        time = 0.0 if self.time_decay is None else _log_student_integral(self.time_decay, 1)
        return time + _log_student_integral(self.space_decay, d) + log(pi)

    def sample(self, width: int, dim: int, *, rng: Rng = None) -> tuple[Array, Array]:
        rng, d = np.random.default_rng(rng), self.space_dim(dim)
        width = positive_integer("width", width)
        blocks = [] if self.time_decay is None else [_student(rng, self.time_decay, 1, width)]
        blocks.append(_student(rng, self.space_decay, d, width))
        return np.concatenate(blocks), rng.standard_cauchy(width)

    def log_density(self, weights: Array, biases: Array) -> Array:
        time_rows = 0 if self.time_decay is None else 1
        value: Array = -self.space_decay * np.log1p(np.square(weights[time_rows:]).sum(axis=0))
        value -= np.log1p(np.square(biases))
        if self.time_decay is not None:
            value -= self.time_decay * np.log1p(np.square(weights[0]))
        return value - self.log_normaliser(len(weights))


@dataclass(frozen=True)
class Gaussian:
    """Independent normal weights N(0, scale²) and biases N(0, bias_scale²); bias_scale is scale unless given."""

    scale: float
    bias_scale: float | None = None

    def __post_init__(self) -> None:
        positive_number("scale", self.scale)
        if self.bias_scale is not None:
            positive_number("bias_scale", self.bias_scale)

    @property
    def _bias_scale(self) -> float:
        return self.scale if self.bias_scale is None else self.bias_scale

    def sample(self, width: int, dim: int, *, rng: Rng = None) -> tuple[Array, Array]:
        rng = np.random.default_rng(rng)
        width, dim = positive_integer("width", width), positive_integer("dim", dim)
        weights = self.scale * rng.standard_normal((dim, width))
        return weights, self._bias_scale * rng.standard_normal(width)

    def log_density(self, weights: Array, biases: Array) -> Array:
        squares: Array = np.square(weights / self.scale).sum(axis=0) + np.square(biases / self._bias_scale)
        dim = len(weights)
        return -0.5 * squares - 0.5 * (dim + 1) * log(2 * pi) - dim * log(self.scale) - log(self._bias_scale)


@dataclass(frozen=True)
class Uniform:
    """Weights uniform on [-scale, scale]^dim; the bias such that the ridge w·z + b = 0 crosses the box [-1, 1]^dim.

    The values of w·z on that box fill [-‖w‖₁, ‖w‖₁], and b is uniform there: no neuron has its transition outside.
    Use it with features that know their domain, which is then mapped to [-1, 1]^dim.
    """

    scale: float

    def __post_init__(self) -> None:
        positive_number("scale", self.scale)

    def sample(self, width: int, dim: int, *, rng: Rng = None) -> tuple[Array, Array]:
        rng = np.random.default_rng(rng)
        width, dim = positive_integer("width", width), positive_integer("dim", dim)
        weights = rng.uniform(-self.scale, self.scale, (dim, width))
        return weights, rng.uniform(-1.0, 1.0, width) * np.abs(weights).sum(axis=0)

    def log_density(self, weights: Array, biases: Array) -> Array:
        reach = np.abs(weights).sum(axis=0)
        inside = (np.abs(weights) <= self.scale).all(axis=0) & (np.abs(biases) <= reach)
        with np.errstate(divide="ignore"):
            value = -len(weights) * log(2 * self.scale) - np.log(2 * reach)
        return np.where(inside, value, -np.inf)


@dataclass(frozen=True)
class BoxUniform:
    """Weight l uniform on [-scales_l, scales_l]; the ridge crosses the box [-1, 1]^dim, as for ``Uniform``.

    Solutions often vary faster in one coordinate than in another. With scales (2, 0.2) instead of (1, 1), the
    smooth porous-medium problem of docs/solving.md gains a factor of 50.
    """

    scales: tuple[float, ...]

    def __post_init__(self) -> None:
        _check_scales(self.scales)

    def sample(self, width: int, dim: int, *, rng: Rng = None) -> tuple[Array, Array]:
        rng, width = np.random.default_rng(rng), positive_integer("width", width)
        _check_dim(self.scales, dim)
        weights = rng.uniform(-1.0, 1.0, (dim, width)) * np.array(self.scales)[:, None]
        return weights, rng.uniform(-1.0, 1.0, width) * np.abs(weights).sum(axis=0)

    def log_density(self, weights: Array, biases: Array) -> Array:
        _check_dim(self.scales, len(weights))
        reach = np.abs(weights).sum(axis=0)
        inside = (np.abs(weights) <= np.array(self.scales)[:, None]).all(axis=0) & (np.abs(biases) <= reach)
        with np.errstate(divide="ignore"):
            value = -sum(log(2 * scale) for scale in self.scales) - np.log(2 * reach)
        return np.where(inside, value, -np.inf)


@dataclass(frozen=True)
class FewCoordinates:
    """As ``BoxUniform``, but a neuron depends on k random coordinates only; k = 1, …, n has a probability ∝ 1/k.

    In many dimensions solutions are often sums of functions of few coordinates, which dense ridges find hard: Poisson
    in 5-D with such a solution goes from 5e-6 to 1e-14 at width 1000. A solution that couples all coordinates (the
    porous medium in 5-D) neither gains nor loses. Small k are more likely; otherwise few neurons in ten dimensions
    would be functions of one coordinate.

    >>> weights, _ = FewCoordinates((1.0,) * 10).sample(width=1000, dim=10, rng=0)
    >>> bool(0.25 < ((weights != 0).sum(axis=0) == 1).mean() < 0.45)
    True
    """

    scales: tuple[float, ...]

    def __post_init__(self) -> None:
        _check_scales(self.scales)

    def sample(self, width: int, dim: int, *, rng: Rng = None) -> tuple[Array, Array]:
        rng = np.random.default_rng(rng)
        weights, _ = BoxUniform(self.scales).sample(width, dim, rng=rng)
        ranks = rng.permuted(np.tile(np.arange(dim)[:, None], width), axis=0)
        weights[ranks >= rng.choice(np.arange(1, dim + 1), width, p=_inverse_probabilities(dim))] = 0.0
        return weights, rng.uniform(-1.0, 1.0, width) * np.abs(weights).sum(axis=0)

    def log_density(self, weights: Array, biases: Array) -> Array:
        """The log density with respect to Lebesgue's measure on the coordinates that are not zero."""
        dim, scales = len(weights), np.array(self.scales)[:, None]
        active = weights != 0
        count = active.sum(axis=0)
        reach = np.abs(weights).sum(axis=0)
        inside = (np.abs(weights) <= scales).all(axis=0) & (np.abs(biases) <= reach) & (count > 0)
        probabilities = [1.0, *_inverse_probabilities(dim).tolist()]  # the first, for k = 0, is outside the support
        choices = np.array([log(comb(dim, k) / probability) for k, probability in enumerate(probabilities)])[count]
        with np.errstate(divide="ignore"):
            value = -choices - np.where(active, np.log(2 * scales), 0.0).sum(axis=0) - np.log(2 * reach)
        return np.where(inside, value, -np.inf)


@dataclass(frozen=True)
class IntegerFrequencies:
    """For cos features: weight π k with k uniform among the integers |k| ≤ scale on periodic axes.

    On [-1, 1] every such column has period 2, so the network is periodic exactly, in value and all derivatives.
    The other weights are uniform on [-scale, scale], the phase uniform on [0, 2π).
    """

    scales: tuple[float, ...]
    periodic: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_scales(self.scales)
        known = set(self.periodic) <= set(range(len(self.scales)))
        require(known, "periodic", self.periodic, f"numbers of coordinates, 0 to {len(self.scales) - 1}")

    def sample(self, width: int, dim: int, *, rng: Rng = None) -> tuple[Array, Array]:
        rng, width = np.random.default_rng(rng), positive_integer("width", width)
        _check_dim(self.scales, dim)
        rows = []
        for axis in range(dim):
            if axis in self.periodic:
                top = max(1, round(self.scales[axis]))
                rows.append(pi * rng.integers(-top, top, width, endpoint=True))
            else:
                rows.append(rng.uniform(-self.scales[axis], self.scales[axis], width))
        return np.array(rows), rng.uniform(0.0, 2 * pi, width)

    def log_density(self, weights: Array, biases: Array) -> Array:
        """The log density with respect to the counting measure on periodic axes."""
        value = np.full(weights.shape[1], -log(2 * pi))
        for axis, row in enumerate(weights):
            if axis in self.periodic:
                top = max(1, round(self.scales[axis]))
                whole = np.isclose(row / pi, np.round(row / pi)) & (np.abs(row) <= pi * top + 1e-9)
                value += np.where(whole, -log(2 * top + 1), -np.inf)
            else:
                value += np.where(np.abs(row) <= self.scales[axis], -log(2 * self.scales[axis]), -np.inf)
        return np.where((biases >= 0) & (biases < 2 * pi), value, -np.inf)


def _inverse_probabilities(dim: int) -> Array:
    """Probabilities ∝ 1/k for k = 1, …, dim."""
    weights = 1.0 / np.arange(1, dim + 1)
    probabilities: Array = weights / weights.sum()
    return probabilities


def _check_scales(scales: tuple[float, ...]) -> None:
    for scale in scales:
        require(bool(0 < scale < np.inf), "scales", scales, "finite numbers > 0, one per coordinate")


def _check_dim(scales: tuple[float, ...], dim: int) -> None:
    require(dim == len(scales), "dim", dim, f"{len(scales)}, the number of scales", "give one scale per coordinate")


def _log_student_integral(decay: float, dim: int) -> float:
    """log ∫_{R^dim} (1 + |a|²)^-decay da = log( π^(dim/2) Γ(decay - dim/2) / Γ(decay) )."""
    return 0.5 * dim * log(pi) + lgamma(decay - 0.5 * dim) - lgamma(decay)


def _student(rng: np.random.Generator, decay: float, dim: int, width: int) -> Array:
    """Draws (dim, width) with density ∝ (1 + |a|²)^-decay: a normal vector over an independent chi."""
    normal = rng.standard_normal((dim, width))
    return normal / np.sqrt(rng.chisquare(2 * decay - dim, width))
