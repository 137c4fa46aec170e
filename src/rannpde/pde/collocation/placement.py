"""Features and points where a solution needs them.

Around a point a function varies on the length ℓ with 1/ℓ = √(1 + |∇u|²) + √|∂ₙ∇u|, in coordinates scaled to
[-1, 1] and u scaled to unit range; ∂ₙ∇u is the change of the gradient along itself, by differences, so that kinks
count too. Neurons are centred where 1/ℓ is large, lie along the direction in which u bends or varies, and have
slopes of a few 1/ℓ: fronts that move get ridges that move with them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.domains.domain import Domain
from rannpde.network.activations import as_activation
from rannpde.network.features import RandomFeatures
from rannpde.pde.functions import State, gradient

Array = np.ndarray

_PROBES = (1e-2, 2e-3)
"""Distances over which the change of the gradient is measured, as shares of the half-width. Empirical."""
_FLAT = 1e-3
_CANDIDATES = 8000


@dataclass(frozen=True)
class Placement:
    """Shares and slopes of placed neurons. Empirical; travelling waves and free boundaries set them.

    slopes : the slope of a neuron is uniform between these multiples of 1/ℓ
    free : share of neurons of random direction and slope up to ``free_slope``, for what is smooth
    sharpness : neurons are drawn with density ∝ ℓ^-sharpness, beside a fifth drawn uniformly
    """

    slopes: tuple[float, float] = (0.5, 6.0)
    free: float = 0.1
    free_slope: float = 2.0
    sharpness: float = 1.5

    def features(
        self, state: State, domain: Domain, width: int, rng: np.random.Generator, activation: str = "tanh"
    ) -> RandomFeatures:
        """``width`` neurons and a constant, placed for that state."""
        centre, halfwidth = domain.bounds.mean(axis=1), 0.5 * np.diff(domain.bounds, axis=1)[:, 0]
        points = domain.sample(_CANDIDATES, rng=rng)
        rate, normal = resolution(state, points, domain)
        chance = rate**self.sharpness
        chosen = rng.choice(len(points), width, p=0.8 * chance / chance.sum() + 0.2 / len(points))
        direction, slope = normal[chosen], rng.uniform(*self.slopes, width) * rate[chosen]
        free = rng.uniform(size=width) < self.free
        direction[free] = rng.standard_normal((int(free.sum()), domain.dim))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        slope[free] = self.free_slope * rng.uniform(0.25, 1.5, int(free.sum()))
        weights = (direction * slope[:, None]).T
        biases = -np.einsum("lj,jl->j", weights, (points[chosen] - centre) / halfwidth)
        return RandomFeatures(weights, biases, as_activation(activation), centre, halfwidth, constant=True)

    def density(self, state: State, domain: Domain, points: Array) -> Array:
        """Where collocation points are needed, (M,), not normalised."""
        return resolution(state, points, domain)[0] ** self.sharpness


def resolution(state: State, points: Array, domain: Domain) -> tuple[Array, Array]:
    """1/ℓ (M,) and the direction of variation (M, n), in scaled coordinates, of the field that needs most."""
    halfwidth = 0.5 * np.diff(domain.bounds, axis=1)[:, 0]
    lower, upper = domain.bounds.T
    values = state.derivative(points, (0,) * domain.dim)
    size = np.ptp(values, axis=0)
    size[size == 0] = 1.0

    def slopes(at: Array) -> Array:
        return gradient(state, at) * halfwidth / size[:, None]

    here = slopes(points)  # (M, fields, n)
    field = np.linalg.norm(here, axis=2).argmax(axis=1)
    rows = np.arange(len(points))
    own = here[rows, field]
    steep = np.linalg.norm(own, axis=1)
    normal = own / np.maximum(steep, np.finfo(float).tiny)[:, None]
    flat = steep < _FLAT
    # where nothing varies any direction will do: a fixed one a point, so that the answer is reproducible
    normal[flat] = _directions(len(points), domain.dim)[flat]
    bend = np.zeros(len(points))
    for probe in _PROBES:
        ends = [
            slopes(np.clip(points + sign * probe * normal * halfwidth, lower, upper))[rows, field] for sign in (1, -1)
        ]
        change = (ends[0] - ends[1]) / (2 * probe)
        strength = np.linalg.norm(change, axis=1)
        stronger = (strength > bend) & (strength > 1.0)
        normal[stronger] = change[stronger] / strength[stronger, None]
        bend = np.maximum(bend, strength)
    return np.sqrt(1 + steep**2) + np.sqrt(bend), normal


def _directions(count: int, dim: int) -> Array:
    directions = np.random.default_rng(0).standard_normal((count, dim))
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)
