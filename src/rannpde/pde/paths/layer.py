"""The hidden layer of one time, and the network that a regression makes of it.

Columns at a state y with z = (y - centre)/scale and inner coordinates ζ, standardised:

    1,   ζ_r,   z_i (while d is small beside the number of paths),   tanh(ζ·a_j + w_j·z + b_j)

Every column φ comes with a martingale increment over the next step, ∇φ·noise plus what the increments of ζ hold beyond
their slope. A regression on φ + increment fits the value and the gradient together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.paths.inner import InnerCoordinate, InnerValues, inner_values
from rannpde.pde.paths.processes import PathProcess, PathStep
from rannpde.pde.problem.parabolic import Parabolic


@dataclass(frozen=True, eq=False)
class PathLayer:
    """The frozen hidden layer at s.

    centre, scale (d,) : of the standardised state; inner_mean, inner_scale (R,) : of the inner coordinates
    directions (d, N) : w; mix (R, J + N) : a, of J neurons without and N with a ridge; bias (J + N,) : b
    linear : whether the components of z are columns; noise_to_come : root mean square, per component, of what states
        and points will still move
    """

    form: Parabolic
    process: PathProcess
    s: float
    centre: Array
    scale: Array
    inner: tuple[InnerCoordinate, ...]
    inner_mean: Array
    inner_scale: Array
    directions: Array
    mix: Array
    bias: Array
    linear: bool
    noise_to_come: tuple[float, float]

    @property
    def columns(self) -> int:
        return 1 + len(self.inner) + (len(self.centre) if self.linear else 0) + len(self.bias)

    def _inner(self, state: Array, point: Array, move: PathStep | None, h: float) -> InnerValues:
        return inner_values(
            self.inner, self.form, self.process, self.s, state, point, (self.centre, self.scale), self.noise_to_come,
            move, h,
        )  # fmt: skip

    def _neurons(self, z: Array, zeta: Array) -> Array:
        argument = zeta @ self.mix + self.bias
        if self.directions.shape[1]:
            argument[:, len(self.bias) - self.directions.shape[1] :] += z @ self.directions
        return np.tanh(argument, out=argument)

    def values(self, state: Array) -> Array:
        """Columns (M, C) at states."""
        inner = self._inner(state, self.process.point(state), None, 0.0)
        z = (state - self.centre) / self.scale
        zeta = (inner.values - self.inner_mean) / self.inner_scale
        linear = [z] if self.linear else []
        return np.concatenate([np.ones((len(state), 1)), zeta, *linear, self._neurons(z, zeta)], axis=1)

    @cached_property
    def _ridged(self) -> Array:
        """The neurons of a ridge alone, as a mask (N,)."""
        return np.asarray((self.mix[:, len(self.bias) - self.directions.shape[1] :] == 0).all(axis=0))

    def _second_order(self, inner: InnerValues, move: PathStep, variance: Array | None) -> Array | None:
        """½ (Δα² - E[Δα² | X]) (M, J + N) of the arguments α of neurons, Δα = ∇α·noise: Itô's next term but for φ''.

        Of neurons that mix ridge and inner coordinates it is left out; None where the noise depends on the state.
        """
        if variance is None:
            return None
        alone, size = len(self.bias) - self.directions.shape[1], len(self.inner)
        found = np.zeros((len(move.noise), len(self.bias)))
        deviation = np.sqrt(variance)
        turned = [slope * deviation for slope in inner.slopes]
        correlated = [t if self.process.correlation is None else t @ self.process.correlation for t in turned]
        moved = np.stack([np.einsum("ij,ij->i", slope, move.noise) for slope in inner.slopes], axis=1)
        mixing = self.mix[:, :alone] / self.inner_scale[:, None]
        found[:, :alone] = (moved @ mixing) ** 2
        for r in range(size):
            for q in range(r + 1):
                covariance = np.einsum("ij,ij->i", correlated[r], turned[q]) * (1.0 if q == r else 2.0)
                found[:, :alone] -= covariance[:, None] * (mixing[r] * mixing[q])
        if self._ridged.any():
            own = self.directions[:, self._ridged] / self.scale[:, None]
            weighted = own * deviation[:, None]
            along = weighted if self.process.correlation is None else self.process.correlation @ weighted
            expected = (along * weighted).sum(axis=0)
            found[:, alone:][:, self._ridged] = (move.noise @ own) ** 2 - expected
        return 0.5 * found

    def design(self, state: Array, move: PathStep, h: float) -> tuple[Array, Array]:
        """Columns (M, C) and their martingale increments (M, C)."""
        point = self.process.point(state)
        inner = self._inner(state, point, move, h)
        z, noise = (state - self.centre) / self.scale, move.noise / self.scale
        zeta = (inner.values - self.inner_mean) / self.inner_scale
        assert inner.beyond is not None
        moved = inner.beyond + np.stack([(slope * move.noise).sum(axis=1) for slope in inner.slopes], axis=1)
        moved /= self.inner_scale
        neurons = self._neurons(z, zeta)
        change = moved @ self.mix
        change[:, len(self.bias) - self.directions.shape[1] :] += noise @ self.directions
        second = self._second_order(inner, move, self.process.noise_variance(h))
        if second is not None:
            change -= 2 * neurons * second
        change *= 1 - neurons * neurons
        ones, none = np.ones((len(state), 1)), np.zeros((len(state), 1))
        linear = ([z], [noise]) if self.linear else ([], [])
        values = np.concatenate([ones, zeta, *linear[0], neurons], axis=1)
        return values, np.concatenate([none, moved, *linear[1], change], axis=1)


@dataclass(frozen=True)
class NetworkReading:
    """A network along paths: value (M,), gradient in states and in points (M, d), martingale increment (M,)."""

    value: Array
    state_gradient: Array
    gradient: Array
    increment: Array


@dataclass(frozen=True, eq=False)
class PathNetwork:
    """A hidden layer with output weights (C,): u(s, ·) near the law of the paths."""

    layer: PathLayer
    weights: Array

    def read(self, state: Array, move: PathStep | None = None, h: float = 0.0) -> NetworkReading:
        """Value and gradient at states, and the increment over a move."""
        layer = self.layer
        point = layer.process.point(state)
        inner = layer._inner(state, point, move, h)
        z = (state - layer.centre) / layer.scale
        zeta = (inner.values - layer.inner_mean) / layer.inner_scale
        neurons = layer._neurons(z, zeta)
        size, dim = len(layer.inner), layer.process.dim
        own = self.weights[1 : 1 + size]
        last = self.weights[len(self.weights) - len(layer.bias) :]
        value = self.weights[0] + zeta @ own + neurons @ last
        slopes = (1 - neurons * neurons) * last
        by_inner = (own + slopes @ layer.mix.T) / layer.inner_scale
        gradient = slopes[:, len(layer.bias) - layer.directions.shape[1] :] @ layer.directions.T
        if layer.linear:
            straight = self.weights[1 + size : 1 + size + dim]
            value += z @ straight
            gradient += straight
        gradient /= layer.scale
        for k, slope in enumerate(inner.slopes):
            gradient += by_inner[:, k : k + 1] * slope
        if move is None:
            increment = np.zeros(len(state))
        else:
            assert inner.beyond is not None
            increment = np.einsum("ij,ij->i", gradient, move.noise) + (by_inner * inner.beyond).sum(axis=1)
            second = layer._second_order(inner, move, layer.process.noise_variance(h))
            if second is not None:
                increment -= 2 * np.einsum("ij,ij,ij->i", slopes, neurons, second)
        return NetworkReading(value, gradient, layer.process.to_point(point, gradient), increment)


@dataclass(frozen=True)
class LayerLaw:
    """How hidden layers are sampled: ``width`` neurons with a ridge, a share ``sparse`` of them along single
    coordinates and a share ``mixed`` with inner coordinates in their argument, and as many neurons of inner
    coordinates alone.
    """

    width: int
    linear: bool
    sparse: float
    mixed: float = 0.3

    def sample(
        self,
        form: Parabolic,
        process: PathProcess,
        inner: tuple[InnerCoordinate, ...],
        s: float,
        state: Array,
        spread: Array,
        noise_to_come: tuple[float, float],
        rng: np.random.Generator,
    ) -> PathLayer:
        """A layer standardised on states (M, d); spread (d,): their scale, also where they are one point."""
        dim, count, alone = state.shape[1], self.width, inner_width(self.width)
        centre = state.mean(axis=0)
        values = inner_values(inner, form, process, s, state, process.point(state), (centre, spread), noise_to_come)
        mean, deviation = values.values.mean(axis=0), values.values.std(axis=0)
        floor = 1e-6 * np.maximum(np.abs(mean), 1e-300) + 1e-12
        slope = np.array([np.sqrt(((one * spread) ** 2).sum(axis=1).mean()) for one in values.slopes])
        deviation = np.where(deviation > floor, deviation, np.where(slope > floor, slope, 1.0))
        directions = _unit(rng, dim, count, self.sparse)
        mix = np.concatenate([_unit(rng, len(inner), alone, 0.5), _unit(rng, len(inner), count, 0.5)], axis=1)
        mix[:, alone:] *= rng.uniform(0, 1, count) < self.mixed
        # tanh(gain·(argument - place)) with places all over the law of the argument, which has about unit variance
        gain = np.exp(rng.uniform(np.log(0.4), np.log(2.5), alone + count))
        mix, directions = mix * gain, directions * gain[alone:]
        bias = -gain * rng.normal(0.0, 1.5, alone + count)
        return PathLayer(
            form, process, s, centre, spread, inner, mean, deviation, directions, mix, bias, self.linear, noise_to_come
        )


def inner_width(width: int) -> int:
    """Neurons of inner coordinates alone, beside so many with a ridge."""
    return max(16, width)


def _unit(rng: np.random.Generator, dim: int, count: int, sparse: float) -> Array:
    """Random directions (dim, count) of about unit length, a share of them along single coordinates."""
    found = rng.standard_normal((dim, count)) / np.sqrt(dim)
    chosen = np.flatnonzero(rng.uniform(size=count) < sparse) if dim > 1 else np.arange(count)
    found[:, chosen] = 0.0
    found[rng.integers(dim, size=len(chosen)), chosen] = rng.choice([-1.0, 1.0], len(chosen))
    return found
