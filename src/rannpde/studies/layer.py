"""The hidden layer as data: which activation, drawn from which law, at which scale."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

import numpy as np

from rannpde.arrays import Array
from rannpde.domains import Box
from rannpde.errors import choose, positive_number, require
from rannpde.network.activations import ACTIVATIONS, as_activation
from rannpde.network.features import FourierFeatures, RandomFeatures
from rannpde.network.laws import Gaussian, HeavyTailed, Uniform, WeightLaw


@dataclass(frozen=True)
class Layer:
    """A recipe for features.

    activation : "fourier" (cos and sin with random phases, 2N columns) or an activation's name (N columns); a constant
        column is always added, and has no penalty
    law : "gaussian", "uniform" or "heavy-tailed" (π of Theorem 1)
    scale : standard deviation of the Gaussian, half-width of the uniform law, factor on the draws of π
    decay : π has λ_τ = 1/2 + decay and λ_a = d/2 + decay; 1/2 is a Cauchy law in time and in space
    scaled : map the target's box to [-1, 1]^dim before the weights act; the paper does not
    """

    activation: str = "fourier"
    law: str = "gaussian"
    scale: float = 10.0
    decay: float = 0.5
    scaled: bool = False

    def __post_init__(self) -> None:
        choose("activation", self.activation, {"fourier": None, **ACTIVATIONS})
        positive_number("scale", self.scale)
        positive_number("decay", self.decay)
        require(isinstance(self.scaled, bool), "scaled", self.scaled, "true or false")
        self._law(1)

    def columns(self, width: int) -> int:
        """Number of output weights of a field, with the constant."""
        return (2 if self.activation == "fourier" else 1) * width + 1

    def sample(self, width: int, bounds: Array, rng: np.random.Generator) -> FourierFeatures | RandomFeatures:
        """Draw the layer for a target on that box (dim, 2)."""
        dim, domain = len(bounds), Box(bounds) if self.scaled else None
        if self.activation == "fourier" and self.law == "gaussian":
            return FourierFeatures.sample(width=width, dim=dim, scale=self.scale, rng=rng, domain=domain)
        weights, biases = self._law(dim - 1).sample(width, dim, rng=rng)
        if self.law == "heavy-tailed":
            weights, biases = self.scale * weights, self.scale * biases
        centre, halfwidth = np.zeros(dim), np.ones(dim)
        if self.scaled:
            centre, halfwidth = bounds.mean(axis=1), 0.5 * np.diff(bounds, axis=1)[:, 0]
        if self.activation == "fourier":
            return FourierFeatures(weights, rng.uniform(0.0, 2 * pi, width), centre, halfwidth)
        return RandomFeatures(weights, biases, as_activation(self.activation), centre, halfwidth, constant=True)

    def _law(self, space_dim: int) -> WeightLaw:
        laws: dict[str, WeightLaw] = {
            "gaussian": Gaussian(self.scale),
            "uniform": Uniform(self.scale),
            "heavy-tailed": HeavyTailed(time_decay=0.5 + self.decay, space_decay=0.5 * space_dim + self.decay),
        }
        return choose("law", self.law, laws)
