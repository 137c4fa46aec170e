"""Features and points where a solution needs them.

The length ℓ of ``network.adapted``, in coordinates scaled to [-1, 1]; the second derivative in it is the change of the
gradient along itself, by differences, so that kinks count too. Neurons are centred where 1/ℓ is large, lie along the
direction in which u bends or varies, and have slopes of a few 1/ℓ: fronts that move get ridges that move with them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.domain import Domain
from rannpde.network.activations import as_activation
from rannpde.network.adapted import length_rate
from rannpde.network.features import RandomFeatures
from rannpde.pde.collocation.tuning import PlacementTuning
from rannpde.pde.functions import State
from rannpde.pde.residual import gradient


@dataclass(frozen=True)
class Placement:
    """Neurons and points placed for a state."""

    tuning: PlacementTuning = field(default_factory=PlacementTuning)

    def features(
        self, state: State, domain: Domain, width: int, rng: np.random.Generator, activation: str = "tanh"
    ) -> RandomFeatures:
        """``width`` neurons and a constant, placed for that state."""
        tuning = self.tuning
        centre, halfwidth = domain.bounds.mean(axis=1), 0.5 * np.diff(domain.bounds, axis=1)[:, 0]
        points = domain.sample(tuning.candidates, rng=rng)
        rate, normal = steepness(state, points, domain, tuning)
        chance = rate**tuning.sharpness
        shares = (1 - tuning.uniform) * chance / chance.sum() + tuning.uniform / len(points)
        chosen = rng.choice(len(points), width, p=shares)
        direction, slope = normal[chosen], rng.uniform(*tuning.slopes, width) * rate[chosen]
        free = rng.uniform(size=width) < tuning.free
        direction[free] = rng.standard_normal((int(free.sum()), domain.dim))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        slope[free] = tuning.free_slope * rng.uniform(0.25, 1.5, int(free.sum()))
        weights = (direction * slope[:, None]).T
        biases = -np.einsum("lj,jl->j", weights, (points[chosen] - centre) / halfwidth)
        return RandomFeatures(weights, biases, as_activation(activation), centre, halfwidth, constant=True)

    def density(self, state: State, domain: Domain, points: Array) -> Array:
        """Where collocation points are needed, (M,), not normalised."""
        return steepness(state, points, domain, self.tuning)[0] ** self.tuning.sharpness


def steepness(state: State, points: Array, domain: Domain, tuning: PlacementTuning) -> tuple[Array, Array]:
    """1/ℓ (M,) and the direction of variation (M, n), in scaled coordinates, of the field that needs most."""
    halfwidth = 0.5 * np.diff(domain.bounds, axis=1)[:, 0]
    lower, upper = domain.bounds.T
    values = state.derivative(points, (0,) * domain.dim)
    span = 0.5 * np.ptp(values, axis=0)
    span[span == 0] = 1.0

    def slopes(at: Array) -> Array:
        return gradient(state, at) * halfwidth / span[:, None]

    here = slopes(points)  # (M, fields, n)
    field = np.linalg.norm(here, axis=2).argmax(axis=1)
    rows = np.arange(len(points))
    own = here[rows, field]
    steep = np.linalg.norm(own, axis=1)
    normal = own / np.maximum(steep, np.finfo(float).tiny)[:, None]
    flat = steep < tuning.flat
    # where nothing varies any direction will do: a fixed one per point, so that the answer is reproducible
    normal[flat] = _directions(len(points), domain.dim)[flat]
    bend = np.zeros(len(points))
    for probe in tuning.probes:
        ends = [
            slopes(np.clip(points + sign * probe * normal * halfwidth, lower, upper))[rows, field] for sign in (1, -1)
        ]
        change = (ends[0] - ends[1]) / (2 * probe)
        strength = np.linalg.norm(change, axis=1)
        stronger = (strength > bend) & (strength > 1.0)
        normal[stronger] = change[stronger] / strength[stronger, None]
        bend = np.maximum(bend, strength)
    return length_rate(steep, bend, 2.0), normal


def _directions(count: int, dim: int) -> Array:
    directions = np.random.default_rng(0).standard_normal((count, dim))
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)
