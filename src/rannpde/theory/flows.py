"""True solutions of the compressible Navier–Stokes equations in Eulerian form, for Corollary NS: a wave and a
computed flow.

Travelling wave. With ξ = x - s t, mass gives ρ (s - u) = j, and momentum integrates once to

    μ(ρ) u' = p(ρ) - j u + C =: μ(ρ) F(u),        ρ = j/(s - u),

an equation of first order whose right-hand side has closed derivatives, so that those of u and ρ are exact once u is
known.
Without pressure and with constant viscosity u is a constant plus an exponential.

Periodic flow. A Fourier method in x and an integrator of high order in t on the circle, kept as Chebyshev series in t
whose coefficients are trigonometric polynomials in x: every derivative is at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb, pi

import numpy as np
from numpy.polynomial import chebyshev
from scipy.integrate import solve_ivp

from rannpde.arrays import Array
from rannpde.errors import finite_points, is_real, reject, require
from rannpde.network.features import multi_index
from rannpde.theory.losses import Gas, power_derivative

WAVE_DEGREE = 60
"""Degree of the Chebyshev series of u(ξ): waves of a bounded interval reach rounding before it."""
INTEGRATION = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13}


@dataclass(frozen=True)
class EulerianWave:
    """(ρ, u)(x - speed · t) with p = ρ^γ, μ = viscosity · ρ^α, on |ξ| ≤ reach; columns 0 and 1 of the values.

    density, velocity, slope : ρ, u and u' at ξ = 0; the slope is < 0 in a compressive wave

    >>> wave = EulerianWave()
    >>> wave(np.array([[0.0, 0.0]])).round(9).tolist()
    [[1.0, 0.25]]
    """

    viscosity: float = 1.0
    gamma: float = 0.0
    alpha: float = 0.0
    density: float = 1.0
    velocity: float = 0.25
    slope: float = -0.05
    speed: float = 1.0
    reach: float = 2.6

    def __post_init__(self) -> None:
        Gas(self.viscosity, self.gamma, self.alpha)
        for name in ("density", "reach"):
            require(is_real(getattr(self, name)) and getattr(self, name) > 0, name, getattr(self, name), "a number > 0")
        remedy = "mass flows through the wave, ρ(s - u) = j > 0"
        require(self.velocity < self.speed, "velocity", self.velocity, f"below the speed {self.speed:g}", remedy)

    @property
    def gas(self) -> Gas:
        return Gas(self.viscosity, self.gamma, self.alpha)

    @property
    def flux(self) -> float:
        """j = ρ (s - u)."""
        return self.density * (self.speed - self.velocity)

    @property
    def _constant(self) -> float:
        """C, from the slope at ξ = 0."""
        pressure = self.density**self.gamma if self.gamma else 0.0
        return self.viscosity * self.density**self.alpha * self.slope - pressure + self.flux * self.velocity

    def rate(self, u: Array, order: int = 0) -> Array:
        """F^(order)(u) with F = (ρ^(γ-α) + (C - j u) ρ^-α)/viscosity; ρ^c has the derivative c ρ^(c+1)/j in u."""
        rho = self.flux / (self.speed - np.asarray(u, dtype=float))

        def power(c: float, n: int) -> Array:
            return np.asarray(np.prod([c + k for k in range(n)]) * rho ** (c + n) / self.flux**n)

        total = power(self.gamma - self.alpha, order) if self.gamma else np.zeros_like(rho)
        total = total + (self._constant - self.flux * u) * power(-self.alpha, order)
        if order:
            total = total - order * self.flux * power(-self.alpha, order - 1)
        return np.asarray(total / self.viscosity)

    @cached_property
    def _series(self) -> Array:
        """Chebyshev coefficients of u(ξ) on [-reach, reach]."""
        nodes = self.reach * np.cos(pi * (np.arange(2 * WAVE_DEGREE) + 0.5) / (2 * WAVE_DEGREE))
        values = np.empty_like(nodes)
        for sign in (-1.0, 1.0):
            half = np.sign(nodes) == sign
            order = np.argsort(np.abs(nodes[half]))
            times = np.abs(nodes[half])[order]
            run = solve_ivp(
                lambda _, u, s=sign: s * self.rate(u), (0, self.reach), [self.velocity], t_eval=times, **INTEGRATION
            )
            whole = run.success and bool((run.y[0] < self.speed).all())
            require(whole, "reach", self.reach, "within the life of the wave", "take a smaller reach or slope")
            integrated = np.empty(len(times))
            integrated[order] = run.y[0]
            values[half] = integrated
        series = chebyshev.chebfit(nodes / self.reach, values, WAVE_DEGREE)
        tail = float(np.abs(series[-4:]).max() / np.abs(series).max())
        require(tail < 1e-9, "reach", self.reach, f"smaller: the wave is steeper than its series (ends at {tail:.0e})")
        return series

    def __call__(self, points: Array) -> Array:
        """(M, 2): ρ and u at the points (t, x)."""
        return self.derivative(points, None)

    def derivative(self, points: Array, derivative: Sequence[int] | None) -> Array:
        """(M, 2): that partial derivative of ρ and u, of total order ≤ 4."""
        in_time, in_space = multi_index(derivative, 2)
        points = finite_points("points", points, 2)
        order = in_time + in_space
        if order > 4:
            reject("derivative", derivative, "of total order at most 4")
        xi = points[:, 1] - self.speed * points[:, 0]
        inside = np.abs(xi).max(initial=0.0) <= self.reach * (1 + 1e-12)
        require(bool(inside), "largest |x - s t|", float(np.abs(xi).max(initial=0.0)), f"≤ reach = {self.reach:g}")
        u = chebyshev.chebval(xi / self.reach, self._series)
        f = [self.rate(u, k) for k in range(max(order, 1))] + [np.zeros_like(u)] * 4
        chain = [u, f[0], f[1] * f[0], (f[2] * f[0] + f[1] ** 2) * f[0]]
        chain.append(((f[3] * f[0] + 4 * f[2] * f[1]) * f[0] + f[1] ** 3) * f[0])
        rho = self._densities(chain, order)
        return (-self.speed) ** in_time * np.column_stack([rho[order], chain[order]])

    def _densities(self, chain: list[Array], order: int) -> list[Array]:
        """ρ and its derivatives in ξ from ρ (s - u) = j, by Leibniz's rule."""
        gap = [self.speed - chain[0], *(-one for one in chain[1:])]
        rho = [self.flux / gap[0]]
        for n in range(1, order + 1):
            rho.append(
                -sum((comb(n, k) * gap[k] * rho[n - k] for k in range(1, n + 1)), np.zeros_like(gap[0])) / gap[0]
            )
        return rho


@dataclass(frozen=True)
class PeriodicFlow:
    """(ρ, u) on the circle (0, 1) from ρ = 1 + 0.2 sin 2πx, u = amplitude · cos 2πx at the first time, computed.

    times : the interval of time that is computed; modes, degree : of the series in x and in t
    """

    viscosity: float = 0.1
    gamma: float = 1.4
    alpha: float = 0.0
    amplitude: float = 0.2
    times: tuple[float, float] = (-0.3, 0.8)
    modes: int = 48
    degree: int = 40

    def __post_init__(self) -> None:
        Gas(self.viscosity, self.gamma, self.alpha)
        require(self.times[0] < self.times[1], "times", self.times, "increasing")

    @property
    def gas(self) -> Gas:
        return Gas(self.viscosity, self.gamma, self.alpha)

    @cached_property
    def _table(self) -> Array:
        """Coefficients (2, degree + 1, K): Chebyshev in t, waves 0 to K - 1 in x, whose real part is the field."""
        x = np.arange(self.modes) / self.modes
        wave = 2j * pi * np.fft.fftfreq(self.modes, 1 / self.modes)
        dealiased = np.abs(np.fft.fftfreq(self.modes, 1 / self.modes)) < self.modes / 3

        def slope(values: Array) -> Array:
            return np.asarray(np.fft.ifft(wave * dealiased * np.fft.fft(values)).real)

        def change(_: float, state: Array) -> Array:
            rho, momentum = state[: self.modes], state[self.modes :]
            u = momentum / rho
            stress = self.viscosity * power_derivative(rho, self.alpha, 0) * slope(u)
            pressure = power_derivative(rho, self.gamma, 0) if self.gamma else 0.0
            return np.concatenate([-slope(momentum), -slope(momentum * u + pressure - stress)])

        low, high = self.times
        nodes = np.cos(pi * (np.arange(self.degree + 1) + 0.5) / (self.degree + 1))
        times = low + 0.5 * (high - low) * (1 + nodes[::-1])
        rho = 1 + 0.2 * np.sin(2 * pi * x)
        first = np.concatenate([rho, rho * self.amplitude * np.cos(2 * pi * x)])
        run = solve_ivp(change, self.times, first, t_eval=times, **INTEGRATION)
        require(run.success, "flow", self, "computable to the last time", "take more viscosity or less time")
        rho, momentum = run.y[: self.modes], run.y[self.modes :]
        table = []
        for values in (rho, momentum / rho):
            series = chebyshev.chebfit(nodes[::-1], values.T, self.degree)
            table.append(np.fft.fft(series, axis=1) / self.modes * dealiased)
        coefficients = np.array(table)
        beyond = max(np.abs(coefficients[:, -4:]).max(), np.abs(coefficients[:, :, ~dealiased]).max(initial=0.0))
        tail = beyond / np.abs(coefficients).max()
        require(bool(tail < 1e-7), "degree", self.degree, f"larger: the series in t ends at {tail:.0e}")
        real = np.count_nonzero(dealiased) // 2 + 1  # waves of a real function: the others are their conjugates
        half = coefficients[:, :, :real]
        half[:, :, 1:] *= 2
        return half

    def __call__(self, points: Array) -> Array:
        """(M, 2): ρ and u at the points (t, x)."""
        return self.derivative(points, None)

    def derivative(self, points: Array, derivative: Sequence[int] | None) -> Array:
        """(M, 2): that partial derivative of ρ and u, of any order."""
        in_time, in_space = multi_index(derivative, 2)
        points = finite_points("points", points, 2)
        low, high = self.times
        t = 2 * (points[:, 0] - low) / (high - low) - 1
        require(bool((np.abs(t) <= 1 + 1e-12).all()), "times of the points", points[:, 0], f"in {self.times}")
        table = self._table
        number, basis = np.arange(table.shape[2]), chebyshev.chebvander(t, self.degree)
        waves = np.exp(2j * pi * np.outer(points[:, 1], number)) * (2j * pi * number) ** in_space
        columns = []
        for part in table:
            series = chebyshev.chebder(part, in_time) if in_time else part
            columns.append(np.einsum("mk,mk->m", waves, basis[:, : len(series)] @ series).real)
        return np.asarray((2 / (high - low)) ** in_time * np.column_stack(columns))
