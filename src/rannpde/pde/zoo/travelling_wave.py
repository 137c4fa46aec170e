"""The travelling shock wave of the compressible Navier–Stokes equations with singular pressure (eqs. lagrangian, ODE).

In Lagrangian mass coordinates, with the pressure p(v) = ε (v - 1)^-γ,

    ∂_t v - ∂_x u = 0,        ∂_t u + ∂_x p(v) - μ ∂_x( ∂_x u / v ) = 0,

the ansatz (v, u)(ξ), ξ = x - x₀ - s t, gives u = u₋ - s (v - v₋) and v' = v/(μs) (s²(v₋ - v) + p(v₋) - p(v)).

The profile leaves v₋ like e^(43 ξ) and reaches v₊ like e^(-2 ξ) for the paper's numbers. Both rates, and all
cancellation, disappear in the variable y = log (v - v₋)/(v₊ - v): since s² = -p[v₋, v₊] (Rankine–Hugoniot), divided
differences turn the equation into

    dy/dξ = g(y) = v/(μs) (p[v, v₊] - p[v₋, v]),

which tends to constants at both ends and varies on scale 1 in y. So ξ(y) = ∫ dy/g(y) is a quadrature of a smooth
function, and its inverse is interpolated by quintic Hermite polynomials whose data y, y', y'' are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, prod, sqrt
from typing import Any

import numpy as np
from scipy.interpolate import BPoly, PPoly
from scipy.special import expit

from rannpde.arrays import Array
from rannpde.domains.region import composite_gauss
from rannpde.errors import finite_array, finite_points, reject, require
from rannpde.network.features import multi_index

_REACH = 42.0
"""Beyond |y| = 42 the rate g is constant to rounding (e^-42 = 6e-19), and y(ξ) is continued by straight lines."""
_CELLS = 4200
"""Cells of the table: spacing 0.02 in y leaves a quintic Hermite error below 1e-14 (tested)."""
_GAUSS_POINTS = 8
"""Per cell; g varies on scale 1, so that 8 points integrate a cell of 0.02 to rounding."""


@dataclass(frozen=True)
class TravellingWave:
    """(v, u)(x - position - speed·t): specific volume and velocity, columns 0 and 1 of the values.

    viscosity μ, stiffness ε and pressure_exponent γ of p(v) = ε (v-1)^-γ; right_volume v₊;
    left_volume v₋ ∈ (1, v₊), by default 1 + ε^(1/γ), where p(v₋) = 1; left_velocity u₋;
    position x₀: at t = 0 the profile has there the mean (v₋ + v₊)/2.

    >>> wave = TravellingWave()
    >>> round(wave.speed, 3), round(wave.left_state, 3)
    (1.458, 1.032)
    >>> wave([[0.0, 0.0], [1.0, -5.0]]).round(4)
    array([[ 1.2658, -0.3415],
           [ 1.0316,  0.    ]])
    """

    viscosity: float = 1.0
    stiffness: float = 1e-3
    pressure_exponent: float = 2.0
    right_volume: float = 1.5
    left_volume: float | None = None
    left_velocity: float = 0.0
    position: float = 0.0

    def __post_init__(self) -> None:
        for name in ("viscosity", "stiffness", "pressure_exponent"):
            require(0 < getattr(self, name) < inf, name, getattr(self, name), "a finite number > 0")
        for name in ("left_velocity", "position"):
            require(bool(np.isfinite(getattr(self, name))), name, getattr(self, name), "finite")
        require(1 < self.left_state < inf, "left_volume", self.left_state, "> 1, where the pressure is singular")
        above = self.left_state < self.right_volume < inf
        require(above, "right_volume", self.right_volume, f"greater than left_volume = {self.left_state:g}")

    # ------------------------------------------------------------------------------------------ end states and speed

    @property
    def dim(self) -> int:
        """Points are (t, x)."""
        return 2

    @property
    def left_state(self) -> float:
        """v₋."""
        if self.left_volume is None:
            return 1.0 + self.stiffness ** (1.0 / self.pressure_exponent)
        return self.left_volume

    @property
    def speed(self) -> float:
        """s = √( (p(v₋) - p(v₊)) / (v₊ - v₋) ) > 0, the Rankine–Hugoniot condition."""
        drop = self.pressure(self.left_state) - self.pressure(self.right_volume)
        return sqrt(drop / (self.right_volume - self.left_state))

    @property
    def right_velocity(self) -> float:
        """u₊ = u₋ - s (v₊ - v₋)."""
        return self.left_velocity - self.speed * (self.right_volume - self.left_state)

    def pressure(self, volume: Any, order: int = 0) -> Any:
        """p^(order)(v), p(v) = ε (v - 1)^-γ."""
        factor = prod(-(self.pressure_exponent + k) for k in range(order))
        return self.stiffness * factor * (volume - 1.0) ** -(self.pressure_exponent + order)

    # ------------------------------------------------------------------------------------------------------- the wave

    def __call__(self, points: Array) -> Array:
        """(M, 2): v and u at the points (t, x)."""
        return self.derivative(points, None)

    def derivative(self, points: Array, derivative: Sequence[int] | None) -> Array:
        """(M, 2): that partial derivative of v and u, of total order ≤ 4: (-s)^i times the profile's derivative."""
        in_time, in_space = multi_index(derivative, 2)
        points = finite_points("points", points, 2)
        order = in_time + in_space
        profile = (-self.speed) ** in_time * self.profile(
            points[:, 1] - self.position - self.speed * points[:, 0], order
        )
        velocity, volume = (self.left_velocity, self.left_state) if order == 0 else (0.0, 0.0)
        return np.column_stack([profile, velocity - self.speed * (profile - volume)])

    def profile(self, xi: Array, order: int = 0) -> Array:
        """v^(order)(ξ), order ≤ 4, the shape of ξ; derivatives come from the differential equation itself."""
        if order > 4:
            reject("order", order, "at most 4")
        log_ratio = self.log_ratio(xi)
        if order == 0:
            return self.left_state + (self.right_volume - self.left_state) * expit(log_ratio)
        above, below = self._distances(log_ratio)
        volume = self.left_state + above
        rates = [self._rate(volume, above, below, k) for k in range(order)]
        f, f1, f2, f3 = rates + [np.zeros_like(above)] * (4 - order)
        return (f, f1 * f, (f2 * f + f1**2) * f, ((f3 * f + 4 * f2 * f1) * f + f1**3) * f)[order - 1]

    def log_ratio(self, xi: Array) -> Array:
        """y(ξ) = log (v - v₋)/(v₊ - v): full relative accuracy of v - v₋ and of v₊ - v, however small."""
        xi = finite_array("xi", xi, (0, 1, 2))
        table = self._table
        left, right = table.x[0], table.x[-1]
        inner = table(np.clip(xi, left, right))
        slopes = self._growth(np.array([-_REACH, _REACH]))
        return inner + slopes[0] * np.minimum(xi - left, 0.0) + slopes[1] * np.maximum(xi - right, 0.0)

    def _distances(self, log_ratio: Array) -> tuple[Array, Array]:
        """v - v₋ and v₊ - v, neither by subtraction."""
        span = self.right_volume - self.left_state
        return span * expit(log_ratio), span * expit(-log_ratio)

    def _chords(self, above: Array, below: Array) -> tuple[Array, Array]:
        """p[v₋, v] and p[v, v₊] to full relative accuracy: expm1 and log1p avoid the differences."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._chord(self.left_state, above), self._chord(self.right_volume, -below)

    def _chord(self, base: float, step: Array) -> Array:
        change = np.expm1(-self.pressure_exponent * np.log1p(step / (base - 1.0)))
        return np.where(step == 0.0, self.pressure(base, 1), self.pressure(base) * change / step)

    def _growth(self, log_ratio: Array) -> Array:
        """g(y) = dy/dξ."""
        above, below = self._distances(log_ratio)
        left, right = self._chords(above, below)
        return (self.left_state + above) / (self.viscosity * self.speed) * (right - left)

    def _rate(self, volume: Array, above: Array, below: Array, order: int) -> Array:
        """F^(order)(v) where v' = F(v) = v h(v)/(μs), h(v) = s²(v₋ - v) + p(v₋) - p(v) = (v-v₋)(v₊-v) p[v₋, v, v₊]."""

        def balance(k: int) -> Array:
            if k == 0:
                left, right = self._chords(above, below)
                return above * below * (right - left) / (self.right_volume - self.left_state)
            return -(self.speed**2) * (k == 1) - self.pressure(volume, k)

        value = volume * balance(order) + (order * balance(order - 1) if order else 0.0)
        return value / (self.viscosity * self.speed)

    @cached_property
    def _table(self) -> PPoly:
        """y(ξ) for |y| ≤ 42: quintic Hermite on cells whose ends ξ(y) come from Gauss quadrature of 1/g."""
        ends = np.linspace(-_REACH, _REACH, _CELLS + 1)
        inner, weights = composite_gauss(ends, _GAUSS_POINTS)
        lengths = (weights / self._growth(inner)).reshape(_CELLS, _GAUSS_POINTS).sum(axis=1)
        middle = _CELLS // 2  # y = 0 there, which is ξ = 0
        xi = np.concatenate([-np.cumsum(lengths[:middle][::-1])[::-1], [0.0], np.cumsum(lengths[middle:])])
        above, below = self._distances(ends)
        growth = self._growth(ends)
        # y = log(v-v₋) - log(v₊-v), so y'' = d/dξ (v'/(v-v₋) + v'/(v₊-v)), with v' = y' (v-v₋)(v₊-v)/(v₊-v₋)
        span = self.right_volume - self.left_state
        slope = self._rate(self.left_state + above, above, below, 1)
        second = growth * (slope - growth * (below - above) / span)
        return PPoly.from_bernstein_basis(BPoly.from_derivatives(xi, np.column_stack([ends, growth, second])))
