"""The process behind a parabolic equation, dX = b ds + √a dW, simulated exactly where its law is known.

    Gaussian    dX = (β - κX) ds + S dW        constant β, κ, S: Brownian motion and Ornstein–Uhlenbeck, exact
    Lognormal   dX = X (μ ds + S dW)           constant μ, S: geometric Brownian motion, exact in y = log x
    Euler       everything else                Euler–Maruyama with substeps

A process moves *states* y, in which its noise does not depend on where it is (if it is exact); ``point`` gives x.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import require


@dataclass(frozen=True)
class PathStep:
    """One step of all paths: new states (M, d), the martingale part of the move in states (M, d), Brownian increments.

    brownian (M, d) has variance h per component: that of the step for exact processes
    """

    state: Array
    noise: Array
    brownian: Array


class PathProcess(Protocol):
    """The protocol of processes: how paths start, move, and become points; see the module."""

    @property
    def dim(self) -> int: ...

    @property
    def exact(self) -> bool:
        """Whether steps of any length have the law of the process."""
        ...

    def start(self, points: Array) -> Array:
        """States of points (M, d)."""
        ...

    def point(self, state: Array) -> Array:
        """The points that belong to states."""
        ...

    def to_state(self, point: Array, gradient: Array) -> Array:
        """∂/∂y of a function whose gradient in x is given at points."""
        ...

    def to_point(self, point: Array, gradient: Array) -> Array:
        """∂/∂x of a function whose gradient in y is given at points."""
        ...

    def step(self, s: float, h: float, state: Array, normals: Array) -> PathStep:
        """A step from s to s + h with standard normal numbers (M, normal_count)."""
        ...

    def normal_count(self) -> int: ...

    @property
    def correlation(self) -> Array | None:
        """The correlation (d, d) of the components of the noise, None where they are independent."""
        ...

    def noise_variance(self, h: float) -> Array | None:
        """Variance (d,) of the components of the noise of a step, where it does not depend on the state."""
        ...

    def linear_noise(self, state: Array, move: PathStep, h: float) -> Array:
        """x' - E[x' | x], the martingale part of the move in points (M, d)."""
        ...

    def pull(self, s: float, point: Array, drift: Array) -> Array:
        """θ (M, d) with √a θ = drift (M, d): what a change of drift means for the Brownian motion (Girsanov)."""
        ...

    def push(self, s: float, h: float, point: Array, rows: Array) -> Array:
        """∇u (k, d) at one point (1, d) from rows E[V ΔW]/h (k, d) of the first step: the score of its law."""
        ...

    def shrink(self, h: float) -> Array | float:
        """∂E[y']/∂y (d,) of a step in states: how much of a gradient at its end the start sees."""
        ...


# ------------------------------------------------------------------------------------------------- exact processes


class StatesArePoints:
    """A mixin of processes whose states are the points themselves."""

    def start(self, points: Array) -> Array:
        return points

    def point(self, state: Array) -> Array:
        return state

    def to_state(self, point: Array, gradient: Array) -> Array:
        return gradient

    def to_point(self, point: Array, gradient: Array) -> Array:
        return gradient

    def linear_noise(self, state: Array, move: PathStep, h: float) -> Array:
        return move.noise


@dataclass(frozen=True, eq=False)
class GaussianProcess(StatesArePoints):
    """dX = (β - κX) ds + S dW with κ (d,), β (d,) and S a diagonal (d,) or a lower triangle (d, d)."""

    constant: Array
    decay: Array
    spread: Array

    exact = True

    @property
    def dim(self) -> int:
        return len(self.constant)

    def normal_count(self) -> int:
        return self.dim

    def _lengths(self, h: float) -> tuple[Array, Array, Array]:
        """e^{-κh}, (1 - e^{-κh})/κ and √((1 - e^{-2κh})/2κ), also where κ vanishes."""
        if not self.decay.any():
            ones = np.ones(self.dim)
            return ones, h * ones, np.sqrt(h) * ones
        k = np.where(np.abs(self.decay) * h < 1e-12, 1e-12 / h, self.decay)
        return np.exp(-k * h), -np.expm1(-k * h) / k, np.sqrt(-np.expm1(-2 * k * h) / (2 * k))

    def step(self, s: float, h: float, state: Array, normals: Array) -> PathStep:
        shrink, reach, spread = self._lengths(h)
        noise = _spread(self.spread, normals) * spread
        moved = state * shrink if self.decay.any() else state
        return PathStep(moved + (self.constant * reach + noise), noise, normals * np.sqrt(h))

    @cached_property
    def correlation(self) -> Array | None:
        return _correlation(self.spread)

    def noise_variance(self, h: float) -> Array | None:
        spread = self._lengths(h)[2]
        own = self.spread**2 if self.spread.ndim == 1 else (self.spread**2).sum(axis=1)
        return own * spread**2

    def pull(self, s: float, point: Array, drift: Array) -> Array:
        return solve_spread(self.spread, drift)

    def push(self, s: float, h: float, point: Array, rows: Array) -> Array:
        shrink, _, spread = self._lengths(h)
        return solve_spread(self.spread.T, rows) * (shrink * np.sqrt(h) / spread)

    def shrink(self, h: float) -> Array:
        return self._lengths(h)[0]


@dataclass(frozen=True, eq=False)
class LognormalProcess:
    """dX_i = X_i (μ_i ds + (S dW)_i) with S a diagonal (d,) or a lower triangle (d, d); states are logarithms."""

    growth: Array
    spread: Array

    exact = True

    @property
    def dim(self) -> int:
        return len(self.growth)

    def normal_count(self) -> int:
        return self.dim

    def start(self, points: Array) -> Array:
        require(bool((points > 0).all()), "at", points, "positive, as the process stays so")
        return np.log(points)

    def point(self, state: Array) -> Array:
        return np.exp(state)

    def to_state(self, point: Array, gradient: Array) -> Array:
        return gradient * point

    def to_point(self, point: Array, gradient: Array) -> Array:
        return gradient / point

    def step(self, s: float, h: float, state: Array, normals: Array) -> PathStep:
        noise = _spread(self.spread, normals) * np.sqrt(h)
        variance = self.noise_variance(1.0)
        return PathStep(state + (noise + (self.growth - 0.5 * variance) * h), noise, normals * np.sqrt(h))

    @cached_property
    def correlation(self) -> Array | None:
        return _correlation(self.spread)

    def noise_variance(self, h: float) -> Array:
        return h * (self.spread**2 if self.spread.ndim == 1 else (self.spread**2).sum(axis=1))

    def linear_noise(self, state: Array, move: PathStep, h: float) -> Array:
        return np.exp(move.state) - np.exp(state + self.growth * h)

    def pull(self, s: float, point: Array, drift: Array) -> Array:
        return solve_spread(self.spread, drift / point)

    def push(self, s: float, h: float, point: Array, rows: Array) -> Array:
        return solve_spread(self.spread.T, rows) / point

    def shrink(self, h: float) -> float:
        return 1.0


def _correlation(spread: Array) -> Array | None:
    if spread.ndim == 1:
        return None
    covariance = spread @ spread.T
    deviation = np.sqrt(np.diag(covariance))
    deviation[deviation == 0] = 1.0
    return covariance / deviation / deviation[:, None]


def _spread(spread: Array, normals: Array) -> Array:
    return normals * spread if spread.ndim == 1 else normals @ spread.T


def solve_spread(spread: Array, drift: Array) -> Array:
    if spread.ndim == 1:
        return np.divide(drift, spread, out=np.zeros_like(drift), where=spread > 0)
    return np.linalg.lstsq(spread, drift.T, rcond=None)[0].T
