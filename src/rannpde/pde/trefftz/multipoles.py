"""Functions about one point of the plane: C_n(r) cos nθ and C_n(r) sin nθ, regular or singular there, and the angle."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import ceil, comb, factorial
from typing import ClassVar

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.trefftz.cylinder import bessel_i, bessel_j, bessel_k, bessel_y
from rannpde.pde.trefftz.families import REGULAR_LABEL, SINGULAR_LABEL, CanonicalFamily
from rannpde.pde.trefftz.operator import CanonicalForm


@dataclass(frozen=True, eq=False)
class MultipoleFamily(CanonicalFamily):
    """C_n(r) cos nθ and C_n(r) sin nθ about one centre of the plane, n ≤ degree: rⁿ, J_n(kr), I_n(mr) where
    ``regular``, and log r, r⁻ⁿ, Y_n(kr), K_n(mr) in a hole. They are the means of exp(λ·y) exp(inφ) over the
    characteristic variety.

    radius : at which the features have the size one
    """

    kind: ClassVar[str] = "multipoles"
    form: CanonicalForm
    centre: Array
    radius: float
    degree: int
    regular: bool
    offset: float

    @property
    def label(self) -> str:
        return REGULAR_LABEL if self.regular else SINGULAR_LABEL

    @property
    def columns(self) -> int:
        return 2 * int(self.degree) + 1

    def canonical(self, points: Array, index: MultiIndex) -> Array:
        z = (points - self.centre) @ np.array([1.0, 1j])
        orders = np.arange(int(self.degree) + 1)
        complex_ones = self._powers(z, index, orders) if self.form.kappa == 0 else self._waves(z, index, orders)
        if self.form.moves and not (self.form.kappa < 0):
            complex_ones *= np.exp(-((points - self.centre) @ self.form.drift) - self.offset)[:, None]
        return np.concatenate([complex_ones.real, complex_ones.imag[:, 1:]], axis=1)

    def _powers(self, z: Array, index: MultiIndex, orders: Array) -> Array:
        total = sum(index)
        turn = 1j ** index[1]
        if self.regular:
            falling = (
                np.prod([np.maximum(orders - j, 0) for j in range(total)], axis=0) if total else np.ones(len(orders))
            )
            powers = np.maximum(orders - total, 0)
            return np.asarray(turn * (z[:, None] / self.radius) ** powers * falling / self.radius**total)
        inverse = self.radius / z
        rising = np.prod([-(orders + j) for j in range(total)], axis=0) if total else np.ones(len(orders))
        values = turn * inverse[:, None] ** (orders + total) * rising / self.radius**total
        if total:
            values[:, 0] = turn * (-1) ** (total - 1) * factorial(total - 1) / z**total
        else:
            values[:, 0] = np.log(np.abs(z) / self.radius)
        return np.asarray(values)

    def _waves(self, z: Array, index: MultiIndex, orders: Array) -> Array:
        k, r, turn = self.form.wave_number, np.abs(z), z / np.maximum(np.abs(z), 1e-300)
        screened = self.form.kappa < 0
        raise_sign, lower_sign = (1.0, 1.0) if screened else (-1.0, 1.0)
        if screened and not self.regular:
            raise_sign = lower_sign = -1.0
        steps = ladder(index)
        top = int(self.degree) + sum(index)
        known = self._orders(top, k * r)
        odd = -1.0 if not screened else 1.0  # C_{-n} is (-1)^n C_n of J and Y, and C_n of I and K
        total = np.zeros((len(z), len(orders)), dtype=complex)
        for up, down, weight in steps:
            shifted = orders + up - down
            values = known[np.abs(shifted)] * (odd ** np.where(shifted < 0, shifted, 0))[:, None]
            factor = weight * k ** (up + down) * raise_sign**up * lower_sign**down
            total += factor * values.T * turn[:, None] ** shifted
        if screened:
            grow = k * r if self.regular else -k * r
            if self.form.moves:
                centred = np.stack([z.real, z.imag], axis=1)
                grow = grow - centred @ self.form.drift
            total *= np.exp(grow - self.offset)[:, None]
        return total / self._sizes(orders)

    def _orders(self, top: int, x: Array) -> Array:
        """C_0 … C_top (top + 1, M) of the family's cylinder function."""
        if self.form.kappa < 0:
            return bessel_i(top, x) if self.regular else bessel_k(top, x)
        return bessel_j(top, x) if self.regular else bessel_y(top, x)

    def _sizes(self, orders: Array) -> Array:
        x, top = self.form.wave_number * self.radius, int(self.degree)
        here = np.array([x])
        if self.form.kappa < 0:
            return np.maximum(self._orders(top, here)[:, 0], 1e-290)
        if not self.regular:
            return np.hypot(bessel_j(top, here)[:, 0], bessel_y(top, here)[:, 0])
        turning = ceil(x)  # below this order they oscillate, and no value is typical
        values = np.abs(bessel_j(max(top, turning), here)[:, 0])
        return np.maximum(np.where(orders > x, values[: top + 1], values[turning]), 1e-290)


@lru_cache(maxsize=256)
def ladder(index: MultiIndex) -> tuple[tuple[int, int, complex], ...]:
    """∂_x^a ∂_y^b in powers of D± = ∂_x ± i ∂_y: (power of D+, power of D-, weight)."""
    a, b = index
    weights: dict[tuple[int, int], complex] = {}
    for j in range(a + 1):
        for i in range(b + 1):
            key = (j + i, a - j + b - i)
            weight = comb(a, j) * comb(b, i) * (-1) ** (b - i) / (2**a * (2j) ** b)
            weights[key] = weights.get(key, 0.0) + weight
    return tuple((up, down, weight) for (up, down), weight in weights.items())


@dataclass(frozen=True, eq=False)
class AngleFamily(CanonicalFamily):
    """θ C₀(r) about corners (K, 2): the polar angle times 1, J₀(kr) or I₀(mr), cut along the directions (K, 2) that
    lead out of the domain. ∇θ and ∇C₀ are orthogonal, so that Δ(θ C₀) = θ ΔC₀.

    It jumps from one side of the corner to the other: what u = 0 beside u = 1 needs. Of Laplace's equation, the cut may
    end after a length (K,), where it would enter the domain again: the angle about its end is subtracted.
    """

    kind: ClassVar[str] = "angles"
    label: ClassVar[str] = "angles at corners"
    form: CanonicalForm
    corners: Array
    directions: Array
    offsets: Array
    cuts: Array

    @property
    def columns(self) -> int:
        return len(self.corners)

    def canonical(self, points: Array, index: MultiIndex) -> Array:
        values = np.zeros((len(points), self.columns))
        for number, corner in enumerate(self.corners):
            radial = MultipoleFamily(self.form, corner, 1.0, 0, True, float(self.offsets[number]))
            z = (points - corner) @ np.array([1.0, 1j])
            out = self.directions[number] @ np.array([1.0, 1j])
            for first, second in product(range(index[0] + 1), range(index[1] + 1)):
                weight = comb(index[0], first) * comb(index[1], second)
                rest = (index[0] - first, index[1] - second)
                turn = _angle(z, out, (first, second), float(self.cuts[number]))
                values[:, number] += weight * turn * radial.canonical(points, rest)[:, 0]
        return values


def _angle(z: Array, out: complex, index: MultiIndex, cut: float) -> Array:
    """∂^index of the angle about 0, cut along a direction up to a length."""
    total = sum(index)
    end = z - cut * out if np.isfinite(cut) else None
    if not total:
        return np.asarray(np.angle(-z / out if end is None else z / end))
    rounding = np.finfo(float).eps * max(float(np.abs(z).max(initial=0.0)), np.finfo(float).eps)
    away = np.where(z == 0, -rounding * out, z)  # at the corner itself derivatives are infinite: those beside it
    slope = away**-total if end is None else away**-total - end**-total
    return np.asarray((1j ** index[1] * (-1) ** (total - 1) * factorial(total - 1) * slope).imag)
