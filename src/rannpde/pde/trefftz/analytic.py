"""Harmonic features of the plane as real and imaginary parts of analytic functions.

For Laplace's equation every feature is Re f or Im f of a function f(z) that is analytic in z = y₁ + i y₂, and
∂₁^a ∂₂^b f is i^b f^(a+b): one complex evaluation serves all partial derivatives of the same order. Polynomials are
given in a basis that is orthonormal on the boundary (Vandermonde with Arnoldi: Brubeck, Nakatsukasa and Trefethen,
2021), which keeps its digits on long domains and at high degrees, where powers of z do not.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial
from typing import ClassVar

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.trefftz.families import SINGULAR_LABEL, CanonicalFamily
from rannpde.pde.trefftz.least_squares import PANEL
from rannpde.pde.trefftz.operator import CanonicalForm


def complex_numbers(points: Array) -> Array:
    """z (M,) of points (M, 2)."""
    return np.asarray(points @ np.array([1.0, 1j]))


class AnalyticFamily(CanonicalFamily):
    """Features Re f_j and Im f_j of analytic functions f_j, j < functions."""

    @property
    @abstractmethod
    def functions(self) -> int:
        """The number K of complex functions."""

    @property
    @abstractmethod
    def origins(self) -> Array:
        """The point z (K,) near which each function is largest."""

    @abstractmethod
    def powers(self, z: Array, top: int) -> list[Array]:
        """f_j and its derivatives up to the order ``top``, each (M, K), at z (M,)."""

    @property
    def columns(self) -> int:
        return 2 * self.functions

    def canonical(self, points: Array, index: MultiIndex) -> Array:
        order = sum(index)
        derivatives = 1j ** index[1] * self.powers(complex_numbers(points), order)[order]
        return np.concatenate([derivatives.real, derivatives.imag], axis=1)

    def several(self, points: Array, indices: Sequence[MultiIndex], weights: Array) -> list[Array]:
        """Re Σ c_j f_j with c = w - iw': one complex sum instead of two real tables, one for each order."""
        here = complex_numbers(self.form.to(points))
        whole = weights[: self.functions] - 1j * weights[self.functions :]
        slopes = [power @ whole for power in self.powers(here, max(map(sum, indices)))]
        sums = []
        for index in indices:
            total = np.zeros((len(points), 1))
            for beta, value in self.form.expanded(index).items():
                total[:, 0] += value * (1j ** beta[1] * slopes[sum(index)]).real
            sums.append(total)
        return sums


@dataclass(frozen=True, eq=False)
class PolynomialFamily(AnalyticFamily):
    """Polynomials q_0, …, q_n of z that are orthonormal in the mean over points of the boundary.

    z q_k = Σ_{j ≤ k+1} hessenberg[j, k] q_j for the coordinate (z - centre)/radius; hessenberg (n+1, n), complex
    """

    kind: ClassVar[str] = "polynomials"
    label: ClassVar[str] = "polynomials"
    form: CanonicalForm
    centre: Array
    radius: float
    hessenberg: Array

    @classmethod
    def orthonormal(
        cls, form: CanonicalForm, centre: Array, radius: float, degree: int, points: Array
    ) -> PolynomialFamily:
        """Polynomials up to a degree, orthonormal over points (M, 2), M > degree, by Arnoldi's iteration."""
        z = complex_numbers(points - centre) / radius
        basis = np.zeros((degree + 1, len(z)), dtype=complex)
        basis[0] = 1.0
        hessenberg = np.zeros((degree + 1, degree), dtype=complex)
        for k in range(degree):
            rest = z * basis[k]
            for _ in range(2):  # once more, since one projection leaves rounding errors of its own
                share = basis[: k + 1].conj() @ rest / len(z)
                rest = rest - share @ basis[: k + 1]
                hessenberg[: k + 1, k] += share
            hessenberg[k + 1, k] = np.sqrt(np.mean(np.abs(rest) ** 2))
            basis[k + 1] = rest / hessenberg[k + 1, k]
        return cls(form, centre, radius, hessenberg)

    @property
    def functions(self) -> int:
        return len(self.hessenberg)

    @property
    def origins(self) -> Array:
        return np.full(self.functions, complex_numbers(self.centre))

    def powers(self, z: Array, top: int) -> list[Array]:
        scaled = (z - complex_numbers(self.centre)) / self.radius
        values = np.zeros((top + 1, self.functions, len(z)), dtype=complex)
        values[0, 0] = 1.0
        for start in range(0, self.functions - 1, PANEL):
            stop = min(start + PANEL, self.functions - 1)
            before = self.hessenberg[:start, start:stop].T @ values[:, :start]  # (orders, degrees, M), at once
            for k in range(start, stop):
                column = self.hessenberg[start : k + 1, k]
                for order in range(top + 1):
                    rest = scaled * values[order, k] - before[order, k - start] - column @ values[order, start : k + 1]
                    if order:
                        rest += order / self.radius * values[order - 1, k]
                    values[order, k + 1] = rest / self.hessenberg[k + 1, k]
        return [one.T for one in values]


@dataclass(frozen=True, eq=False)
class LaurentFamily(AnalyticFamily):
    """(radius/(z - centre))^n, n = 1, …, degree, about a point in a hole."""

    kind: ClassVar[str] = "laurent"
    label: ClassVar[str] = SINGULAR_LABEL
    form: CanonicalForm
    centre: Array
    radius: float
    degree: int

    @property
    def functions(self) -> int:
        return int(self.degree)

    @property
    def origins(self) -> Array:
        return np.full(self.functions, complex_numbers(self.centre))

    def multipoles(self, weights: Array) -> tuple[Array, Array] | None:
        return self.centre, np.abs(weights).reshape(-1, self.functions).max(axis=0)

    def powers(self, z: Array, top: int) -> list[Array]:
        inverse = self.radius / (z - complex_numbers(self.centre))
        first: Array = np.cumprod(np.broadcast_to(inverse[:, None], (len(z), self.functions)), axis=1)
        derivatives = [first]
        orders = np.arange(1, self.functions + 1)
        for order in range(top):
            derivatives.append(derivatives[-1] * (-(orders + order) / self.radius) * inverse[:, None])
        return derivatives


@dataclass(frozen=True, eq=False)
class PoleFamily(AnalyticFamily):
    """Simple poles length/(z - pole) outside of the domain: dipoles; poles (K, 2), lengths (K,)."""

    kind: ClassVar[str] = "poles"
    label: ClassVar[str] = "poles at corners"
    form: CanonicalForm
    poles: Array
    lengths: Array

    @property
    def functions(self) -> int:
        return len(self.poles)

    @property
    def origins(self) -> Array:
        return complex_numbers(self.poles)

    def powers(self, z: Array, top: int) -> list[Array]:
        inverse = 1 / (z[:, None] - self.origins)
        derivatives = [self.lengths * inverse]
        for order in range(top):
            derivatives.append(-(order + 1) * derivatives[-1] * inverse)
        return derivatives


@dataclass(frozen=True, eq=False)
class PowerFamily(AnalyticFamily):
    """((z - corner)/length)^exponent, cut along the directions (K, 2) that lead out of the domain.

    corners (K, 2), exponents (K,) complex, lengths (K,): one corner, direction and length for every exponent
    """

    kind: ClassVar[str] = "powers"
    label: ClassVar[str] = "powers at corners"
    form: CanonicalForm
    corners: Array
    directions: Array
    exponents: Array
    lengths: Array

    @property
    def functions(self) -> int:
        return len(self.exponents)

    @property
    def origins(self) -> Array:
        return complex_numbers(self.corners)

    def powers(self, z: Array, top: int) -> list[Array]:
        inward = -complex_numbers(self.directions)
        away = z[:, None] - self.origins
        at_corner, unit = away == 0, inward * self.lengths
        away = np.where(at_corner, np.finfo(float).tiny * inward, away)
        derivatives = [np.exp(self.exponents * np.log(away / unit))]
        # derivatives at the corner itself may be infinite: they are those a little beside it
        beside = np.where(at_corner, np.finfo(float).eps * unit, away)
        derivative = derivatives[0] if not at_corner.any() else np.exp(self.exponents * np.log(beside / unit))
        for order in range(top):
            derivative = derivative * (self.exponents - order) / beside
            derivatives.append(derivative)
        return derivatives


@dataclass(frozen=True, eq=False)
class LogarithmFamily(CanonicalFamily):
    """log(|y - c|/length) for centres c (K, 2) in holes or outside, and lengths (K,): the flux out of a hole."""

    kind: ClassVar[str] = "logarithms"
    label: ClassVar[str] = "logarithms"
    form: CanonicalForm
    centres: Array
    lengths: Array

    @property
    def columns(self) -> int:
        return len(self.centres)

    @property
    def origins(self) -> Array:
        """The centres as complex numbers (K,)."""
        return complex_numbers(self.centres)

    def canonical(self, points: Array, index: MultiIndex) -> Array:
        gaps = complex_numbers(points)[:, None] - self.origins
        order = sum(index)
        if not order:
            return np.asarray(np.log(np.abs(gaps) / self.lengths))
        return np.asarray((1j ** index[1] * (-1) ** (order - 1) * factorial(order - 1) / gaps**order).real)


ANALYTIC = {one.kind: one for one in (PolynomialFamily, LaurentFamily, PoleFamily, PowerFamily, LogarithmFamily)}
