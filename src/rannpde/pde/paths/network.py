"""A hidden layer with output weights: u at one time near the law of the paths, with gradient and increments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.paths.layer import LayerAtStates, PathLayer
from rannpde.pde.paths.processes import PathStep


@dataclass(frozen=True)
class NetworkReading:
    """A network at states: value (M,), its gradient in points (M, d) or None where nobody asked for it, and over a step
    the martingale increment and its first-order part ∇û·noise (M,).
    """

    value: Array
    gradient: Array | None
    increment: Array
    along: Array


@dataclass(frozen=True, eq=False)
class NetworkAtStates:
    """A network at states, before a step is known: what increments and gradients are made of."""

    network: PathNetwork
    features: LayerAtStates

    @cached_property
    def value(self) -> Array:
        """The values (M,) of the network."""
        layer, own = self.network.layer, self.features
        inner, straight, curved, last = self.network.parts
        value: Array = self.network.weights[0] + own.zeta @ inner + own.neurons @ last
        if layer.linear:
            value += own.z @ straight
        if layer.squares:
            value += (own.z * own.z) @ curved
        return value

    def moved(self, move: PathStep, h: float) -> tuple[Array, Array]:
        """The martingale increment over a step, and its first-order part (M,)."""
        layer, features = self.network.layer, self.features
        own, straight, curved, last = self.network.martingale_parts
        rates = (1 - features.neurons * features.neurons) * last
        by_inner = (own + rates @ layer.mix.T) / layer.inner_scale
        moves = layer.inner_map.moves(features.inner, features.state, features.point, move, h)
        noise = move.noise / layer.scale
        ridges = noise @ layer.directions
        outer = np.einsum("ij,ij->i", rates[:, layer.alone :], ridges)
        if layer.linear:
            outer += noise @ straight
        if layer.squares:
            outer += 2 * (features.z * noise) @ curved
        along = outer + np.einsum("ij,ij->i", by_inner, moves.along)
        increment = outer + np.einsum("ij,ij->i", by_inner, moves.increments)
        variance = layer.process.noise_variance(h)
        if layer.squares and variance is not None:
            increment += (noise * noise - variance / layer.scale**2) @ curved
        second = layer.second_order(moves, ridges, variance)
        if second is not None:
            increment -= 2 * np.einsum("ij,ij,ij->i", rates, features.neurons, second)
        return increment, along

    @cached_property
    def gradient(self) -> Array:
        """The gradients (M, d) by the coordinates of points."""
        layer, features = self.network.layer, self.features
        own, straight, curved, last = self.network.parts
        rates = (1 - features.neurons * features.neurons) * last
        by_inner = (own + rates @ layer.mix.T) / layer.inner_scale
        gradient = rates[:, layer.alone :] @ layer.directions.T
        if layer.linear:
            gradient += straight
        if layer.squares:
            gradient += 2 * features.z * curved
        gradient /= layer.scale
        gradient += (by_inner[:, None, :] @ features.inner.slopes)[:, 0]
        return layer.process.to_point(features.point, gradient)


@dataclass(frozen=True, eq=False)
class PathNetwork:
    """A hidden layer with output weights (C,): u(s, ·) near the law of the paths.

    martingale (C,) : weights of w = u - ½h f, whose increments are the martingale part of a step
    """

    layer: PathLayer
    weights: Array
    martingale: Array

    @cached_property
    def parts(self) -> tuple[Array, Array, Array, Array]:
        """The weights of inner coordinates, of z, of z², of neurons."""
        return self._cut(self.weights)

    @cached_property
    def martingale_parts(self) -> tuple[Array, Array, Array, Array]:
        """The weights of the martingale: of inner coordinates, of z, of z², of neurons."""
        return self._cut(self.martingale)

    @cached_property
    def as_martingale(self) -> PathNetwork:
        """The network of the martingale w."""
        return PathNetwork(self.layer, self.martingale, self.martingale)

    def _cut(self, weights: Array) -> tuple[Array, Array, Array, Array]:
        layer = self.layer
        first = 1 + len(layer.inner)
        second = first + (layer.process.dim if layer.linear else 0)
        third = second + (layer.process.dim if layer.squares else 0)
        return weights[1:first], weights[first:second], weights[second:third], weights[third:]

    def at(self, state: Array) -> NetworkAtStates:
        """The network at states (M, d)."""
        return NetworkAtStates(self, self.layer.at(state))

    def value(self, state: Array) -> Array:
        """The values (M,) of the network."""
        return np.concatenate([self.at(state[rows]).value for rows in self.layer.blocks(len(state))])

    def gradient(self, state: Array) -> Array:
        """The gradients (M, d) by the coordinates of points."""
        return np.concatenate([self.at(state[rows]).gradient for rows in self.layer.blocks(len(state))])
