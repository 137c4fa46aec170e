"""The hidden layer of one time, and the law from which it is sampled.

Columns at a state y with z = (y - centre)/scale and inner coordinates ζ, standardised:

    1,   ζ_r,   z_i,   z_i² ,   tanh(ζ·a_j + w_j·z + b_j)

(z_i while d is small beside the number of paths; z_i² where the data are quadratic or additive). Every column φ comes
with a martingale increment over the next step: ∇φ·noise plus Itô's second-order term where it is known. A regression
on φ + increment fits the value and the gradient together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rannpde.arrays import Array, row_blocks
from rannpde.checkpoints import checkpoint
from rannpde.pde.paths.inner import GENERAL, QUADRATIC, InnerCoordinate, InnerMap, InnerMoves, InnerValues
from rannpde.pde.paths.processes import PathProcess, PathStep
from rannpde.pde.problem.parabolic import Parabolic
from rannpde.rounding import ROOT_ROUNDED

DESIGN_BLOCK = 2**22
"""Numbers (rows × inner coordinates × d) that a block of a design works on: about 32 MB for each array."""

MOMENT_ROWS = 512
"""Paths from which scales of inner coordinates and of the noise, and gradients of the data, are taken."""


@dataclass(frozen=True, eq=False)
class PathLayer:
    """The frozen hidden layer at s.

    centre, scale (d,) : of the standardised state; inner_mean, inner_scale (R,) : of the inner coordinates
    directions (d, N) : w; mix (R, J + N) : a, of J neurons without and N with a ridge; bias (J + N,) : b
    linear, squares : whether z_i and z_i² are columns; noise_to_come : root mean square, per component, of what states
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
    squares: bool = False

    @property
    def columns(self) -> int:
        return column_count(len(self.inner), len(self.centre), self.linear, self.squares, len(self.bias))

    @property
    def alone(self) -> int:
        """J, the neurons of inner coordinates alone."""
        return len(self.bias) - self.directions.shape[1]

    @cached_property
    def inner_map(self) -> InnerMap:
        return InnerMap(self.inner, self.form, self.process, self.s, (self.centre, self.scale), self.noise_to_come)

    def neurons(self, z: Array, zeta: Array) -> Array:
        argument = zeta @ self.mix + self.bias
        if self.directions.shape[1]:
            argument[:, self.alone :] += z @ self.directions
        return np.tanh(argument, out=argument)

    def at(self, state: Array) -> LayerAtStates:
        """The neurons at states (M, d)."""
        point = self.process.point(state)
        inner = self.inner_map.values(state, point)
        z = (state - self.centre) / self.scale
        zeta = (inner.values - self.inner_mean) / self.inner_scale
        return LayerAtStates(self, state, point, inner, z, zeta, self.neurons(z, zeta))

    def values(self, state: Array) -> Array:
        """Columns (M, C) at states."""
        return np.concatenate([self.at(state[rows]).columns for rows in self.blocks(len(state))])

    def blocks(self, count: int) -> list[slice]:
        return list(row_blocks(count, max(64, DESIGN_BLOCK // (len(self.inner) * len(self.centre)))))

    def joined(self, first: float, inner: Array, linear: Array, squares: Array | None, neurons: Array) -> Array:
        """The columns (M, C) of all kinds side by side."""
        parts = [np.full((len(inner), 1), first), inner, *([linear] if self.linear else [])]
        return np.concatenate([*parts, *([squares] if squares is not None else []), neurons], axis=1)

    @cached_property
    def _ridged(self) -> Array:
        """The neurons of a ridge alone, as a mask (N,)."""
        return np.asarray((self.mix[:, self.alone :] == 0).all(axis=0))

    def second_order(self, inner: InnerMoves, along: Array, variance: Array | None) -> Array | None:
        """½ (Δα² - E[Δα² | X]) (M, J + N) of the arguments α of neurons, Δα = ∇α·noise: Itô's next term but for φ''.

        along (M, N) : what ridges move. Of neurons that mix ridge and inner coordinates it is left out; None where the
        noise depends on the state.
        """
        if variance is None or inner.covariance is None:
            return None
        alone, size = self.alone, len(self.inner)
        second = np.zeros((len(along), len(self.bias)))
        mixing = self.mix[:, :alone] / self.inner_scale[:, None]
        products = (mixing[:, None, :] * mixing[None, :, :]).reshape(size * size, alone)
        second[:, :alone] = (inner.along @ mixing) ** 2 - inner.covariance.reshape(-1, size * size) @ products
        if self._ridged.any():
            weighted = self.directions[:, self._ridged] / self.scale[:, None] * np.sqrt(variance)[:, None]
            turned = weighted if self.process.correlation is None else self.process.correlation @ weighted
            second[:, alone:][:, self._ridged] = along[:, self._ridged] ** 2 - (turned * weighted).sum(axis=0)
        return 0.5 * second


@dataclass(frozen=True, eq=False)
class LayerAtStates:
    """A hidden layer at states (M, d), before weights are known: what values, gradients and increments are made of."""

    layer: PathLayer
    state: Array
    point: Array
    inner: InnerValues
    z: Array
    zeta: Array
    neurons: Array

    @property
    def columns(self) -> Array:
        """The columns (M, C) of the regression."""
        squares = self.z * self.z if self.layer.squares else None
        return self.layer.joined(1.0, self.zeta, self.z, squares, self.neurons)

    def increments(self, move: PathStep, h: float) -> Array:
        """Martingale increments (M, C) of the columns over a step."""
        layer, variance = self.layer, self.layer.process.noise_variance(h)
        moves = layer.inner_map.moves(self.inner, self.state, self.point, move, h)
        noise, moved = move.noise / layer.scale, moves.increments / layer.inner_scale
        along, change = noise @ layer.directions, moved @ layer.mix
        change[:, layer.alone :] += along
        second = layer.second_order(moves, along, variance)
        if second is not None:
            change -= 2 * self.neurons * second
        change *= 1 - self.neurons * self.neurons
        curves = None
        if layer.squares:
            curves = 2 * self.z * noise
            if variance is not None:
                curves += noise * noise - variance / layer.scale**2
        return layer.joined(0.0, moved, noise, curves, change)


@dataclass(frozen=True, eq=False)
class LayerAlongPaths:
    """A hidden layer at the states (M, d) of many paths, block by block; a single block is kept, more of them are
    computed again.
    """

    layer: PathLayer
    state: Array

    @cached_property
    def _kept(self) -> list[LayerAtStates] | None:
        rows = self.layer.blocks(len(self.state))
        return [self.layer.at(self.state[own]) for own in rows] if len(rows) == 1 else None

    @property
    def blocks(self) -> Iterable[LayerAtStates]:
        kept = self._kept
        return kept if kept is not None else (self.layer.at(self.state[own]) for own in self._rows)

    @property
    def _rows(self) -> list[slice]:
        return self.layer.blocks(len(self.state))

    def design(self, move: PathStep, h: float) -> tuple[Array, Array]:
        """Columns (M, C) and their martingale increments (M, C)."""
        size = len(self.state), self.layer.columns
        values, increments = np.empty(size), np.empty(size)
        for rows, own in zip(self._rows, self.blocks, strict=True):
            checkpoint()
            part = PathStep(move.state[rows], move.noise[rows], move.brownian[rows])
            values[rows], increments[rows] = own.columns, own.increments(part, h)
        return values, increments


def column_count(inner: int, dim: int, linear: bool, squares: bool, neurons: int) -> int:
    """Columns of a hidden layer."""
    return 1 + inner + (dim if linear else 0) + (dim if squares else 0) + neurons


@dataclass(frozen=True)
class LayerLaw:
    """How hidden layers are sampled: ``width`` neurons with a ridge, a share ``sparse`` of them along single
    coordinates, half of the others along random combinations of gradients of the data (their covariance spans the
    active subspace), a share ``mixed`` with inner coordinates in their argument; and as many neurons of inner
    coordinates alone.
    """

    width: int
    linear: bool
    sparse: float
    mixed: float = 0.3
    squares: bool = False

    def columns(self, inner: tuple[InnerCoordinate, ...], dim: int) -> int:
        """Columns of the layers."""
        return column_count(len(inner), dim, self.linear, self.squares, self.width + inner_width(self.width))

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
        gradients: Array | None = None,
    ) -> PathLayer:
        """A layer standardised on states (M, d); spread (d,): their scale, also where they are one point.

        gradients (K, d) : gradients of the data in states, from which ridges take directions
        """
        dim, count, alone = state.shape[1], self.width, inner_width(self.width)
        centre = state.mean(axis=0)
        some = state[:: max(1, len(state) // MOMENT_ROWS)]
        values = InnerMap(inner, form, process, s, (centre, spread), noise_to_come).values(some, process.point(some))
        mean, deviation = values.values.mean(axis=0), values.values.std(axis=0)
        floor = ROOT_ROUNDED * np.maximum(np.abs(mean), 1e-300) + 1e-12
        slope = np.sqrt(((values.slopes * spread) ** 2).sum(axis=2).mean(axis=0))
        deviation = np.where(deviation > floor, deviation, np.where(slope > floor, slope, 1.0))
        directions = _unit(rng, dim, count, self.sparse)
        if gradients is not None and dim > 1:
            _learn_directions(directions, gradients * spread, rng)
        mix = np.concatenate([_unit(rng, len(inner), alone, 0.5), _unit(rng, len(inner), count, 0.5)], axis=1)
        mix[:, alone:] *= rng.uniform(0, 1, count) < self.mixed
        # tanh(gain·(argument - centre)) with centres all over the law of the argument, which has about unit variance
        gain = np.exp(rng.uniform(np.log(0.4), np.log(2.5), alone + count))
        mix, directions = mix * gain, directions * gain[alone:]
        bias = -gain * rng.uniform(-2.0, 2.0, alone + count)
        return PathLayer(
            form, process, s, centre, spread, inner, mean, deviation, directions, mix, bias, self.linear, noise_to_come,
            self.squares,
        )  # fmt: skip


def layer_law(width: int, inner: tuple[InnerCoordinate, ...], dim: int, most_linear: int, sparse: float) -> LayerLaw:
    """The law for a problem: components are columns while there are at most ``most_linear``; their squares too where
    the data are sums over components, or quadratic forms, which evolve differently from component to component.
    """
    squares = (
        2 * dim <= most_linear
        and dim > 1
        and any(one.kind in (QUADRATIC, GENERAL) and not one.softness for one in inner)
    )
    return LayerLaw(width, dim <= most_linear, sparse, squares=squares)


def inner_width(width: int) -> int:
    """The number of neurons of inner coordinates alone, beside the given number with a ridge."""
    return max(16, width)


def _unit(rng: np.random.Generator, dim: int, count: int, sparse: float) -> Array:
    """Random directions (dim, count) of about unit length, a share of them along single coordinates."""
    directions = rng.standard_normal((dim, count)) / np.sqrt(dim)
    chosen = np.flatnonzero(rng.uniform(size=count) < sparse) if dim > 1 else np.arange(count)
    directions[:, chosen] = 0.0
    directions[rng.integers(dim, size=len(chosen)), chosen] = rng.choice([-1.0, 1.0], len(chosen))
    return directions


def _learn_directions(directions: Array, gradients: Array, rng: np.random.Generator) -> None:
    """Replace half of the dense directions (d, N) by random combinations of gradients (K, d): the active subspace."""
    if not np.isfinite(gradients).all():
        return
    dense = np.flatnonzero((directions != 0).sum(axis=0) > 1)
    chosen = dense[: len(dense) // 2]
    combinations = gradients.T @ rng.standard_normal((len(gradients), len(chosen)))
    size = np.sqrt((combinations**2).sum(axis=0))
    if np.isfinite(size).all() and (size > 0).all():
        directions[:, chosen] = combinations / size
