"""Functions u on R × R^d whose ridgelet transform the theory can evaluate: the protocol, and the closed-form kind.

Three kinds exist: ``GaussianMixture`` (here: Gaussians, mixtures, products with polynomials, all in closed form),
``FourierTarget`` (û is known: one oscillatory integral along each ray) and ``box_target`` (values on a box).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, factorial, inf, pi, sqrt
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.polynomial import hermite_e

from rannpde.arrays import Array
from rannpde.errors import finite_array, finite_points, positive_integer, require
from rannpde.network.features import multi_index
from rannpde.theory.ridgelet_function import RidgeletFunction, hermite_functions


@runtime_checkable
class RidgeletTarget(Protocol):
    """A function u on R^dim, coordinate 0 being time, with its transforms and norms on the whole space."""

    @property
    def dim(self) -> int: ...

    @property
    def centre(self) -> Array:
        """The centre (dim,) of the region in which u is supported."""
        ...

    @property
    def radius(self) -> float:
        """The distance from the centre within which u has most of its mass: it scales the integrals over weights."""
        ...

    @property
    def smoothness(self) -> tuple[float, float]:
        """The largest Sobolev orders in time and in space that u has; infinite for smooth functions."""
        ...

    def __call__(self, points: Array) -> Array:
        """u at the points (M, dim): shape (M,)."""
        ...

    def derivative(self, points: Array, derivative: Sequence[int] | None) -> Array:
        """The partial derivative of that multi-index at the points, shape (M,)."""
        ...

    def ridgelet(self, psi: RidgeletFunction, weights: Array, biases: Array) -> Array:
        """R_ψ u(w, b) = ∫ u(z) ψ(w·z - b) dz at the columns of weights (dim, N) and the biases (N,): shape (N,)."""
        ...

    def squared_norm(self, p: float, q: float) -> float:
        """‖u‖² in H^p(R; H^q(R^d)): (2π)^(-n) ∫ |û(s,ξ)|² (1+s²)^p (1+|ξ|²)^q ds dξ, so that p = q = 0 is L²."""
        ...

    def times_coordinate(self, axis: int) -> RidgeletTarget:
        """The function z ↦ z_axis u(z), as the Parseval-type lemma needs it."""
        ...


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    """u(z) = Σ_i c_i Π_l y_il^(α_il) e^(-y_il²/2) with y_il = (z_l - centre_il) / width_il: everything in closed form.

    coefficients (m,), centres, widths (m, n) and powers (m, n), the integers α ≥ 0.

    >>> u = GaussianMixture.gaussian(dim=2)
    >>> float(u(np.zeros((1, 2)))[0]), round(u.squared_norm(0, 0) / np.pi, 12)
    (1.0, 1.0)
    """

    coefficients: Array
    centres: Array
    widths: Array
    powers: Array

    def __post_init__(self) -> None:
        terms = len(finite_array("coefficients", self.coefficients, 1))
        for name in ("centres", "widths", "powers"):
            array = finite_array(name, getattr(self, name), 2)
            shape = (terms, np.shape(self.centres)[1])
            require(array.shape == shape, f"{name} with shape", array.shape, f"of shape {shape}, one row per term")
        require(bool((np.asarray(self.widths) > 0).all()), "widths", self.widths, "positive")
        whole = np.issubdtype(np.asarray(self.powers).dtype, np.integer) and (np.asarray(self.powers) >= 0).all()
        require(bool(whole), "powers", self.powers, "whole numbers ≥ 0")

    @classmethod
    def gaussian(
        cls, dim: int, *, width: float = 1.0, centre: float = 0.0, powers: Sequence[int] | None = None
    ) -> GaussianMixture:
        """One term, Π_l y_l^(powers_l) e^(-|y|²/2) with y = (z - centre) / width."""
        dim = positive_integer("dim", dim)
        alpha = np.array([multi_index(powers, dim)])
        return cls(np.ones(1), np.full((1, dim), float(centre)), np.full((1, dim), float(width)), alpha)

    def __add__(self, other: GaussianMixture) -> GaussianMixture:
        pairs = [
            (getattr(self, name), getattr(other, name)) for name in ("coefficients", "centres", "widths", "powers")
        ]
        return GaussianMixture(*(np.concatenate(pair) for pair in pairs))

    def __rmul__(self, factor: float) -> GaussianMixture:
        return GaussianMixture(factor * self.coefficients, self.centres, self.widths, self.powers)

    @property
    def dim(self) -> int:
        return int(self.centres.shape[1])

    @property
    def centre(self) -> Array:
        return np.asarray(self.centres.mean(axis=0))

    @property
    def radius(self) -> float:
        spread = np.linalg.norm(self.centres - self.centre, axis=1).max()
        return float(spread + (self.widths * np.sqrt(1.0 + self.powers)).max())

    @property
    def smoothness(self) -> tuple[float, float]:
        return inf, inf

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, None)

    def derivative(self, points: Array, derivative: Sequence[int] | None) -> Array:
        points, index = finite_points("points", points, self.dim), multi_index(derivative, self.dim)
        total = np.zeros(len(points))
        for c, centre, width, powers in self._terms():
            y = (points - centre) / width
            term = np.full(len(points), c)
            for axis in range(self.dim):
                term *= _power_gaussian(y[:, axis], powers[axis], index[axis]) / width[axis] ** index[axis]
            total += term
        return total

    def fourier(self, frequencies: Array) -> Array:
        """û(ξ) = ∫ e^(-iξ·z) u(z) dz at the frequencies (M, n): complex, shape (M,)."""
        frequencies = finite_points("frequencies", frequencies, self.dim)
        total = np.zeros(len(frequencies), dtype=complex)
        for c, centre, width, powers in self._terms():
            eta = frequencies * width
            hermite = np.prod([_hermite(eta[:, axis], powers[axis]) for axis in range(self.dim)], axis=0)
            scale = c * np.prod(width) * (2 * pi) ** (0.5 * self.dim) * (-1j) ** powers.sum()
            total += scale * hermite * np.exp(-0.5 * np.square(eta).sum(axis=1) - 1j * (frequencies @ centre))
        return total

    def ridgelet(self, psi: RidgeletFunction, weights: Array, biases: Array) -> Array:
        """Along the ray ωw, û is a polynomial times e^(-ω²|sw|²/2), so R_ψ u is a sum of Hermite functions of b."""
        weights, biases = np.asarray(weights, float), np.asarray(biases, float)
        total = np.zeros(weights.shape[1])
        for c, centre, width, powers in self._terms():
            scaled = width[:, None] * weights
            spread = np.sqrt(1.0 + np.square(scaled).sum(axis=0))
            degree = int(powers.sum())
            hermite = hermite_functions((biases - centre @ weights) / spread, psi.order + degree)
            ray = _ray_polynomial(scaled, powers)
            value = np.zeros_like(total)
            for j in range(degree, -1, -2):  # the other parity is absent
                sign = (-1) ** ((degree - j) // 2)
                value += sign * ray[j] * hermite[psi.order + j] * spread ** -(psi.order + j + 1.0)
            total += c * psi.amplitude * np.prod(width) * (2 * pi) ** (0.5 * (self.dim - 1)) * value
        return total

    def squared_norm(self, p: float, q: float) -> float:
        """Exact for integer p and q; between them an upper bound by Hölder's inequality, a few percent larger."""
        require(p >= 0 and q >= 0, "p, q", (p, q), "≥ 0")
        (p0, p1, s), (q0, q1, t) = _bracket(p), _bracket(q)
        corners = [((1 - s) * (1 - t), p0, q0), (s * (1 - t), p1, q0), ((1 - s) * t, p0, q1), (s * t, p1, q1)]
        return float(np.prod([self._whole_norm(i, j) ** share for share, i, j in corners if share > 0]))

    def times_coordinate(self, axis: int) -> GaussianMixture:
        shifted = self.powers.copy()
        shifted[:, axis] += 1
        raised = GaussianMixture(self.coefficients * self.widths[:, axis], self.centres, self.widths, shifted)
        if not self.centres[:, axis].any():
            return raised
        return raised + GaussianMixture(
            self.coefficients * self.centres[:, axis], self.centres, self.widths, self.powers
        )

    def _terms(self) -> list[tuple[float, Array, Array, Array]]:
        return list(zip(self.coefficients, self.centres, self.widths, self.powers, strict=True))

    def _whole_norm(self, p: int, q: int) -> float:
        """Σ over pairs of terms; (1+|ξ|²)^q = q! [y^q] e^(y(1+|ξ|²)) makes the space integral a product of series."""
        total = 0.0
        for i, first in enumerate(self._terms()):
            for j, second in enumerate(self._terms()[: i + 1]):
                time = _frequency_moments(first, second, 0, p)
                value = sum(comb(p, m) * time[m] for m in range(p + 1))
                series = np.array([1.0 / factorial(m) for m in range(q + 1)], dtype=complex)
                for axis in range(1, self.dim):
                    moments = _frequency_moments(first, second, axis, q)
                    factors = [moments[m] / factorial(m) for m in range(q + 1)]
                    series = np.convolve(series, factors)[: q + 1]
                total += (1 if i == j else 2) * first[0] * second[0] * (value * series[q]).real * factorial(q)
        return total


def _bracket(order: float) -> tuple[int, int, float]:
    lower = int(np.floor(order))
    return lower, lower + 1, float(order) - lower


def _hermite(x: Array, order: int) -> Array:
    """The polynomial He_order(x)."""
    return hermite_e.hermeval(x, [0.0] * int(order) + [1.0])


def _power_gaussian(y: Array, power: int, derivative: int) -> Array:
    """d^derivative/dy^derivative of y^power e^(-y²/2), by Leibniz' rule."""
    gaussian = hermite_functions(y, derivative)
    total = np.zeros_like(y)
    for j in range(min(power, derivative) + 1):
        falling = factorial(int(power)) / factorial(int(power) - j)
        total += comb(derivative, j) * falling * y ** (power - j) * (-1) ** (derivative - j) * gaussian[derivative - j]
    return total


def _ray_polynomial(scaled: Array, powers: Array) -> Array:
    """Coefficients (|α| + 1, N) in ω of Π_l He_{α_l}(ω η_l), where scaled holds the η_l as rows."""
    product = np.ones((1, scaled.shape[1]))
    for eta, power in zip(scaled, powers, strict=True):
        if power == 0:
            continue
        factor = hermite_e.herme2poly([0.0] * int(power) + [1.0])[:, None] * eta ** np.arange(power + 1)[:, None]
        longer = np.zeros((len(product) + power, scaled.shape[1]))
        for j, row in enumerate(factor):
            longer[j : j + len(product)] += row * product
        product = longer
    return product


def _frequency_moments(first: tuple[Any, ...], second: tuple[Any, ...], axis: int, count: int) -> Array:
    """(1/2π) ∫ ξ^(2m) û_1(ξ) conj(û_2(ξ)) dξ for m = 0, …, count, for the one-dimensional factors on that axis."""
    (_, c1, s1, a1), (_, c2, s2, a2) = first, second
    width, shift = s1[axis] ** 2 + s2[axis] ** 2, c1[axis] - c2[axis]
    left = hermite_e.herme2poly([0.0] * int(a1[axis]) + [1.0]) * s1[axis] ** np.arange(a1[axis] + 1)
    right = hermite_e.herme2poly([0.0] * int(a2[axis]) + [1.0]) * s2[axis] ** np.arange(a2[axis] + 1)
    polynomial = np.convolve(left, right)
    # ∫ ξ^m e^(-Aξ²/2 - iξδ) dξ = √(2π/A) (-i)^m A^(-m/2) He_m(δ/√A) e^(-δ²/2A)
    orders = np.arange(len(polynomial) + 2 * count)
    hermite = hermite_functions(np.array(shift / sqrt(width)), len(orders) - 1)
    integrals = sqrt(2 * pi / width) * (-1j) ** orders * width ** (-0.5 * orders) * hermite
    scale = s1[axis] * s2[axis] * (-1j) ** int(a1[axis]) * 1j ** int(a2[axis])
    return np.array([scale * polynomial @ integrals[2 * m : 2 * m + len(polynomial)] for m in range(count + 1)])
