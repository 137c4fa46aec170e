"""Families of features that satisfy an equation exactly: columns with any derivative, and as arrays for a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from itertools import product
from math import ceil, comb, factorial, log
from typing import Any, ClassVar

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.errors import choose
from rannpde.pde.trefftz.cylinder import bessel_i, bessel_j, bessel_k, bessel_y
from rannpde.pde.trefftz.operator import CanonicalForm


class FeatureFamily(ABC):
    """Columns of features, each a solution of the homogeneous equation."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def columns(self) -> int:
        """The number of features N."""

    @abstractmethod
    def values(self, points: Array, index: MultiIndex) -> Array:
        """∂^index of all fields (M, fields, N) at points (M, n)."""

    def applied(self, points: Array, index: MultiIndex, weights: Array) -> Array:
        """∂^index of Σ weights_j feature_j (M, fields), for weights (N,)."""
        return np.asarray(self.values(points, index) @ weights)

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays for a file."""
        arrays = {one.name: np.asarray(getattr(self, one.name)) for one in fields(self) if one.name != "form"}  # type: ignore[arg-type]
        return {"kind": self.kind}, {name: np.atleast_1d(a).astype(complex if a.dtype.kind == "c" else float)
                                     for name, a in arrays.items()}  # fmt: skip


class CanonicalFamily(FeatureFamily):
    """Features given in the coordinates of a canonical form, for one field."""

    form: CanonicalForm

    @abstractmethod
    def canonical(self, points: Array, index: MultiIndex) -> Array:
        """exp(-drift·y) ∂_y^index v (M, N) at points y (M, n)."""

    def values(self, points: Array, index: MultiIndex) -> Array:
        here = self.form.to(points)
        total: Array = np.zeros((len(points), self.columns))
        for beta, value in self.form.expanded(index).items():
            total += value * self.canonical(here, beta)
        return total[:, None, :]


@dataclass(frozen=True, eq=False)
class ExponentialFamily(FeatureFamily):
    """Re and Im of exp(λ·(x - x₀) - offset), for λ (K, n) on the characteristic variety of any operator.

    Plane waves, harmonic exponentials, layers; ``offset`` (K,) is the largest exponent on the domain, so that no
    feature exceeds one.
    """

    kind: ClassVar[str] = "exponentials"
    frequencies: Array
    offsets: Array
    origin: Array

    @cached_property
    def _real(self) -> bool:
        """Whether there are no oscillations, and the imaginary parts vanish."""
        return not np.any(np.imag(self.frequencies))

    @property
    def columns(self) -> int:
        return len(self.frequencies) if self._real else 2 * len(self.frequencies)

    def values(self, points: Array, index: MultiIndex) -> Array:
        frequencies = np.real(self.frequencies) if self._real else self.frequencies
        waves = np.exp((points - self.origin) @ frequencies.T - self.offsets)
        if any(index):
            waves = waves * np.prod(frequencies ** np.array(index), axis=1)
        return (waves if self._real else np.concatenate([waves.real, waves.imag], axis=1))[:, None, :]


@dataclass(frozen=True, eq=False)
class SourceFamily(CanonicalFamily):
    """Fundamental solutions G(|y - s|) with sources s (K, n) outside of the domain, and derivatives of them.

    moments (P, n) : which derivative of G is a feature, (0, 0) for a monopole, (1, 0) for a dipole, in units of
    ``lengths`` (K,). In the plane G is log r, Y₀(kr) or K₀(mr), in space 1/r, cos(kr)/r or exp(-mr)/r; with a drift it
    is multiplied by exp(-drift·(y - s)), which decays into all directions but one.
    """

    kind: ClassVar[str] = "sources"
    form: CanonicalForm
    sources: Array
    lengths: Array
    moments: Array

    @property
    def columns(self) -> int:
        return len(self.sources) * len(self.moments)

    def canonical(self, points: Array, index: MultiIndex) -> Array:
        gaps = points[:, None, :] - self.sources
        square = np.square(gaps).sum(axis=2)
        radius = np.sqrt(np.maximum(square, 1e-300))
        most = sum(index) + int(self.moments.sum(axis=1).max())
        radial = self._radial(radius, gaps, most)
        found = []
        for moment in self.moments.astype(int):
            together = tuple((np.array(index) + moment).tolist())
            sign = (-1.0) ** int(moment.sum())
            found.append(sign * self.lengths ** int(moment.sum()) * derived(gaps, radial, together))
        return np.stack(found, axis=2).reshape(len(points), self.columns)

    def _radial(self, radius: Array, gaps: Array, most: int) -> list[Array]:
        """(1/r d/dr)^j G, j = 0 … most, times exp(-drift·(y - s))."""
        m, plane = self.form.wave_number, self.form.dim == 2
        unit = self.lengths  # logarithms have no natural unit
        if self.form.kappa == 0:
            first = np.log(radius / unit) if plane else unit / radius
            steps = [first]
            for j in range(1, most + 1):
                if plane:
                    steps.append((-2.0) ** (j - 1) * factorial(j - 1) / radius ** (2 * j))
                else:
                    steps.append(steps[-1] * -(2 * j - 1) / radius**2)
        else:
            screened = self.form.kappa < 0
            orders = _cylinder(screened, plane, most, m * radius)
            steps = [(-m / radius) ** j * orders[j] for j in range(most + 1)]
            if screened:  # both exponents at once: neither overflows
                decay = np.exp(-m * radius - (gaps @ self.form.drift if self.form.moves else 0.0))
                return [step * decay for step in steps]
        if self.form.moves:
            decay = np.exp(-(gaps @ self.form.drift))
            steps = [step * decay for step in steps]
        return steps


def _cylinder(screened: bool, plane: bool, top: int, x: Array) -> Array:
    """Orders 0 … top of K(x) eˣ or Y(x) in the plane, of the spherical functions in space."""
    if plane:
        return bessel_k(top, x) if screened else bessel_y(top, x)
    found = [1 / x, (1 + 1 / x) / x] if screened else [-np.cos(x) / x, (-np.cos(x) / x - np.sin(x)) / x]
    for j in range(1, top):
        found.append((found[j - 1] if screened else -found[j - 1]) + (2 * j + 1) / x * found[j])
    return np.array(found)


@lru_cache(maxsize=256)
def _hermite(order: int) -> tuple[tuple[int, float], ...]:
    """∂^order of F(x²/2 + …) is Σ c_j x^(order - 2j) F^(order - j): the pairs (j, c_j)."""
    return tuple(
        (j, factorial(order) / (factorial(j) * factorial(order - 2 * j) * 2**j)) for j in range(order // 2 + 1)
    )


def derived(gaps: Array, radial: list[Array], index: MultiIndex) -> Array:
    """∂^index (M, K) of a function of the radius from its derivatives (1/r d/dr)^j."""
    total: Array = np.zeros(gaps.shape[:2], dtype=radial[0].dtype)
    parts: list[tuple[int, Array | float]] = [(0, 1.0)]
    for axis, order in enumerate(index):
        if order:
            grown = []
            for lost, factor in parts:
                for j, weight in _hermite(order):
                    power = order - 2 * j
                    grown.append((lost + j, factor * weight * (gaps[:, :, axis] ** power if power else 1.0)))
            parts = grown
    for lost, factor in parts:
        total += factor * radial[sum(index) - lost]
    return total


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
        found = turn * inverse[:, None] ** (orders + total) * rising / self.radius**total
        if total:
            found[:, 0] = turn * (-1) ** (total - 1) * factorial(total - 1) / z**total
        else:
            found[:, 0] = np.log(np.abs(z) / self.radius)
        return np.asarray(found)

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
    found: dict[tuple[int, int], complex] = {}
    for j in range(a + 1):
        for i in range(b + 1):
            key = (j + i, a - j + b - i)
            weight = comb(a, j) * comb(b, i) * (-1) ** (b - i) / (2**a * (2j) ** b)
            found[key] = found.get(key, 0.0) + weight
    return tuple((up, down, weight) for (up, down), weight in found.items())


@dataclass(frozen=True, eq=False)
class AngleFamily(CanonicalFamily):
    """θ C₀(r) about corners (K, 2): the polar angle times 1, J₀(kr) or I₀(mr), cut along the directions (K, 2) that
    lead out of the domain. ∇θ and ∇C₀ are orthogonal, so that Δ(θ C₀) = θ ΔC₀.

    It jumps from one side of the corner to the other: what u = 0 beside u = 1 needs.
    """

    kind: ClassVar[str] = "angles"
    form: CanonicalForm
    corners: Array
    directions: Array
    offsets: Array

    @property
    def columns(self) -> int:
        return len(self.corners)

    def canonical(self, points: Array, index: MultiIndex) -> Array:
        found = np.zeros((len(points), self.columns))
        for number, corner in enumerate(self.corners):
            radial = MultipoleFamily(self.form, corner, 1.0, 0, True, float(self.offsets[number]))
            z = (points - corner) @ np.array([1.0, 1j])
            out = self.directions[number] @ np.array([1.0, 1j])
            for first, second in product(range(index[0] + 1), range(index[1] + 1)):
                weight = comb(index[0], first) * comb(index[1], second)
                rest = (index[0] - first, index[1] - second)
                found[:, number] += weight * _angle(z, out, (first, second)) * radial.canonical(points, rest)[:, 0]
        return found


def _angle(z: Array, out: complex, index: MultiIndex) -> Array:
    total = sum(index)
    if not total:
        return np.asarray(np.angle(-z / out))
    rounding = np.finfo(float).eps * max(float(np.abs(z).max(initial=0.0)), np.finfo(float).eps)
    away = np.where(z == 0, -rounding * out, z)  # at the corner itself derivatives are infinite: those beside it
    return np.asarray((1j ** index[1] * (-1) ** (total - 1) * factorial(total - 1) / away**total).imag)


def degree_needed(sizes: Array, target: float) -> float:
    """The degree at which coefficients (N,) fall below the target, if they go on as from N/2 to N: chopping.

    >>> degree_needed(0.5 ** np.arange(1, 21), 2.0**-10), round(degree_needed(0.5 ** np.arange(1, 21), 2.0**-30), 9)
    (20, 30.0)
    """
    count = len(sizes)
    envelope = np.maximum.accumulate(sizes[::-1])[::-1]
    last = max(count - 3, count // 2)  # single coefficients may vanish by symmetry
    if envelope[last] <= target or count < 4:
        return count
    rate = log(max(envelope[last], 1e-300) / max(envelope[count // 2], 1e-300)) / max(last - count // 2, 1)
    return last + 1 + log(target / envelope[last]) / rate if rate < 0 else np.inf


FAMILIES: dict[str, type[Any]] = {
    one.kind: one for one in (ExponentialFamily, SourceFamily, MultipoleFamily, AngleFamily)
}


def unpack_family(
    header: Mapping[str, Any], arrays: Mapping[str, Array], form: CanonicalForm | None, kinds: Mapping[str, type[Any]]
) -> FeatureFamily:
    """The inverse of ``FeatureFamily.pack``; kinds : by their names."""
    kind = choose("family", header["kind"], kinds)
    scalars = {"radius": float, "degree": int, "regular": bool, "offset": float}
    given: dict[str, Any] = {}
    for one in fields(kind):
        if one.name == "form":
            given["form"] = form
        else:
            array = np.asarray(arrays[one.name])
            given[one.name] = scalars[one.name](array.ravel()[0]) if one.name in scalars else array
    family: FeatureFamily = kind(**given)
    return family
