"""Targets that are sums of products of functions of one coordinate: transforms, values and norms in any dimension.

u(z) = Σ_i Π_l f_il(z_l), each factor smooth and cut off smoothly beyond an interval, as in Step 1 of the proof of
Theorem 1. Then û(ξ) = Σ_i Π_l f̂_il(ξ_l), so that no grid over R^n is needed. The Barenblatt profile with m = 2
inside its
support is of this kind, b t^-α - k t^(-α-2β) Σ_l (x_l - c_l)², in every dimension: ``barenblatt_target``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import factorial, inf, pi

import finufft
import numpy as np

from rannpde.arrays import Array
from rannpde.domains import Domain, SpaceTime
from rannpde.errors import finite_points, positive_integer, require
from rannpde.network.features import multi_index
from rannpde.pde.zoo.barenblatt import Barenblatt
from rannpde.theory.extension import smooth_step
from rannpde.theory.fourier_target import FourierTarget
from rannpde.theory.ridgelet_function import RidgeletFunction

CoordinateFunction = Callable[[Array], Array]
"""A function of one coordinate, (M,) → (M,)."""


@dataclass(frozen=True, eq=False)
class SeparableTarget:
    """Σ_i Π_l f_il(z_l) from samples of the factors; build it with ``separable_target``.

    samples (terms, n, count) at the centres of equal cells of the intervals (n, 2), where every factor has died out
    """

    samples: Array
    intervals: Array
    smoothness: tuple[float, float] = (inf, inf)
    _inner: FourierTarget = field(init=False, repr=False)

    def __post_init__(self) -> None:
        half = 0.5 * np.diff(self.intervals, axis=1)[:, 0]
        object.__setattr__(
            self,
            "_inner",
            FourierTarget(
                self.dim,
                self.fourier,
                float(self._nyquist.min()),
                float(np.linalg.norm(half)),
                self.centre,
                self.smoothness,
            ),
        )

    @property
    def dim(self) -> int:
        return int(self.samples.shape[1])

    @property
    def centre(self) -> Array:
        return np.asarray(self.intervals.mean(axis=1))

    @property
    def radius(self) -> float:
        return self._inner.radius

    @property
    def _spacing(self) -> Array:
        return np.asarray(np.diff(self.intervals, axis=1)[:, 0] / self.samples.shape[2])

    @property
    def _nyquist(self) -> Array:
        return pi / self._spacing

    def fourier(self, frequencies: Array) -> Array:
        """û at the frequencies (M, n), complex: one transform of one coordinate for each factor."""
        frequencies = np.asarray(frequencies, dtype=float)
        product = np.ones((len(self.samples), len(frequencies)), dtype=complex)
        for axis in range(self.dim):
            product *= self._transform(axis, np.ascontiguousarray(frequencies[:, axis]))
        return np.asarray(product.sum(axis=0))

    def _transform(self, axis: int, frequency: Array) -> Array:
        """f̂_i,axis (terms, M), zero beyond the Nyquist frequency."""
        count, spacing = self.samples.shape[2], self._spacing[axis]
        inside = np.abs(frequency) <= self._nyquist[axis]
        modes = np.ascontiguousarray(self.samples[:, axis], dtype=complex) * spacing
        middle = self.centre[axis] + 0.5 * spacing * (1 - count % 2)
        result = np.zeros((len(modes), len(frequency)), dtype=complex)
        if inside.any():
            resolved = frequency[inside]
            sums = finufft.nufft1d2(resolved * spacing, modes, eps=1e-13, isign=-1)
            result[:, inside] = np.reshape(sums, (len(modes), -1)) * np.exp(-1j * resolved * middle)
        return result

    def ridgelet(self, psi: RidgeletFunction, weights: Array, biases: Array) -> Array:
        return self._inner.ridgelet(psi, weights, biases)

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, None)

    def derivative(self, points: Array, derivative: Sequence[int] | None) -> Array:
        """Each factor by its Fourier series on its interval, at whose ends it has died out."""
        points, index = finite_points("points", points, self.dim), multi_index(derivative, self.dim)
        product = np.ones((len(self.samples), len(points)))
        for axis in range(self.dim):
            product *= self._factor(axis, points[:, axis], index[axis])
        return np.asarray(product.sum(axis=0))

    def _factor(self, axis: int, x: Array, order: int) -> Array:
        count, spacing = self.samples.shape[2], self._spacing[axis]
        low, high = self.intervals[axis]
        wave = 2 * pi * np.fft.fftfreq(count, spacing)
        series = np.fft.fft(self.samples[:, axis], axis=1) / count * (1j * wave) ** order
        series *= np.exp(-1j * wave * (low + 0.5 * spacing))
        ordered = np.ascontiguousarray(np.fft.fftshift(series, axes=1))
        step = 2 * pi / (high - low)
        values = finufft.nufft1d2(np.ascontiguousarray(x * step), ordered, eps=1e-13, isign=1).real
        return np.asarray(np.reshape(values, (len(self.samples), -1))) * ((x > low) & (x < high))

    def squared_norm(self, p: float, q: float) -> float:
        """Exact in p, and in whole q; between whole q by Hölder's inequality, some percent above."""
        require(p >= 0 and q >= 0, "p, q", (p, q), "≥ 0")
        low = int(np.floor(q))
        share = float(q) - low
        return float(self._whole(p, low) ** (1 - share) * (self._whole(p, low + 1) ** share if share else 1.0))

    def _whole(self, p: float, q: int) -> float:
        """(1+|ξ|²)^q = q! [y^q] e^(y(1+|ξ|²)) makes the integral over space a product of series."""
        time = self._moments(0, [lambda xi: (1 + xi**2) ** p])[0]
        series = [np.full_like(time, 1 / factorial(m)) for m in range(q + 1)]
        for axis in range(1, self.dim):
            moments = self._moments(axis, [_even_power(m) for m in range(q + 1)])
            series = [np.sum([series[m - j] * moments[j] for j in range(m + 1)], axis=0) for m in range(q + 1)]
        return float((time * series[q]).sum().real * factorial(q))

    def _moments(self, axis: int, weights: Sequence[CoordinateFunction]) -> list[Array]:
        """(1/2π) ∫ weight(ξ) f̂_i conj f̂_j dξ for all pairs of terms: matrices (terms, terms)."""
        low, high = self.intervals[axis]
        step = pi / (high - low)  # half of what the support needs, so that the trapezoidal rule is exact
        half = int(self._nyquist[axis] / step)
        xi = step * np.arange(-half, half + 1)
        transform = self._transform(axis, xi)
        return [(transform * weight(xi)) @ transform.conj().T * step / (2 * pi) for weight in weights]

    def times_coordinate(self, axis: int) -> SeparableTarget:
        samples = self.samples.copy()
        low, high = self.intervals[axis]
        samples[:, axis] *= low + (high - low) * (np.arange(samples.shape[2]) + 0.5) / samples.shape[2]
        return SeparableTarget(samples, self.intervals, self.smoothness)


def _even_power(m: int) -> CoordinateFunction:
    return lambda xi: xi ** (2 * m) / factorial(m)


def separable_target(
    terms: Sequence[Sequence[CoordinateFunction]],
    domain: Domain,
    *,
    margin: float | Sequence[float] | Array,
    count: int = 256,
) -> SeparableTarget:
    """The target that equals Σ_i Π_l terms[i][l](z_l) on the domain's box, cut off smoothly within margins beyond it.

    margin : one, or one for each coordinate; the factors must be defined that far beyond the box

    >>> from rannpde.domains import Box
    >>> u = separable_target([[np.exp, np.cos], [np.sin, np.exp]], Box([(0, 1)] * 2), margin=1.0)
    >>> z = np.array([[0.25, 0.75]])
    >>> bool(abs(u(z)[0] - np.exp(0.25) * np.cos(0.75) - np.sin(0.25) * np.exp(0.75)) < 1e-9)
    True
    """
    bounds, count = np.asarray(domain.bounds, dtype=float), positive_integer("count", count)
    margins = np.broadcast_to(np.asarray(margin, dtype=float), len(bounds))
    require(bool((margins > 0).all()), "margin", margin, "> 0", "a cut-off without margin is a jump, and not smooth")
    for number, term in enumerate(terms):
        require(len(term) == len(bounds), f"factors of term {number}", len(term), f"{len(bounds)}, one a coordinate")
    intervals = np.column_stack([bounds[:, 0] - margins, bounds[:, 1] + margins])
    samples = np.empty((len(terms), len(bounds), count))
    for axis, (low, high) in enumerate(intervals):
        x = low + (high - low) * (np.arange(count) + 0.5) / count
        outside = np.maximum(np.maximum(bounds[axis, 0] - x, x - bounds[axis, 1]), 0.0) / margins[axis]
        for number, term in enumerate(terms):
            samples[number, axis] = term[axis](x) * smooth_step(outside)
        spectrum = np.abs(np.fft.fft(samples[:, axis], axis=1))
        tail = float(spectrum[:, count // 2 - 2 : count // 2 + 2].max() / max(float(spectrum.max()), 1e-300))
        remedy = "take more samples or a wider margin"
        require(tail < 1e-3, "count", count, f"large enough for axis {axis} (spectrum ends at {tail:.0e})", remedy)
    return SeparableTarget(samples, intervals)


def barenblatt_target(
    profile: Barenblatt, domain: SpaceTime, *, margin: float | Sequence[float] | Array, count: int = 256
) -> SeparableTarget:
    """A Barenblatt profile with m = 2 on a box inside its support, in any dimension."""
    require(profile.exponent == 2, "exponent", profile.exponent, "2, for which the profile is a sum of products")
    margins = np.broadcast_to(np.asarray(margin, dtype=float), domain.dim)
    first = float(domain.time[0] - margins[0])
    require(first > 0, "margin in time", float(margins[0]), f"< t₀ = {domain.time[0]:g}", "u(0) is a mass")
    far = np.abs(np.asarray(domain.space.bounds) - np.array(profile.centre)[:, None]).max(axis=1)
    reach = float(np.linalg.norm(far))
    inside = reach < profile.radius(domain.time[0])
    require(inside, "domain", domain, f"inside the support, whose radius is {profile.radius(domain.time[0]):.3g} at t₀")
    alpha, beta, ones = profile.decay_rate, profile.spreading_rate, np.ones_like

    def bowl(centre: float) -> CoordinateFunction:
        return lambda x: (x - centre) ** 2

    terms: list[list[CoordinateFunction]] = [
        [lambda t: profile.mass_parameter * t**-alpha, *[ones] * profile.space_dim]
    ]
    for axis, centre in enumerate(profile.centre):
        factors: list[CoordinateFunction] = [ones] * profile.space_dim
        factors[axis] = bowl(centre)
        terms.append([lambda t: -profile.curvature * t ** -(alpha + 2 * beta), *factors])
    return separable_target(terms, domain, margin=margins, count=count)
