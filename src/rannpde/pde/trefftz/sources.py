"""Fundamental solutions with sources outside of the domain, and their derivatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import factorial
from typing import ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from rannpde.arrays import Array, MultiIndex, block_rows, row_blocks
from rannpde.pde.trefftz.cylinder import bessel_k, bessel_y
from rannpde.pde.trefftz.families import CanonicalFamily
from rannpde.pde.trefftz.operator import CanonicalForm


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
    def label(self) -> str:
        return "poles at corners" if len(self.moments) > 1 else "sources outside"

    @property
    def columns(self) -> int:
        return len(self.sources) * len(self.moments)

    def canonical(self, points: Array, index: MultiIndex) -> Array:
        values = np.empty((len(points), self.columns))
        for rows in row_blocks(len(points), block_rows(8 * self.columns)):
            values[rows] = next(self._evaluated(points[rows], [index]))
        return values

    def several(self, points: Array, indices: Sequence[MultiIndex], weights: Array) -> list[Array]:
        """The same for sums: functions of the radius are evaluated once for all derivatives."""
        parts = [self.form.expanded(index) for index in indices]
        distinct = list(dict.fromkeys(beta for part in parts for beta in part))
        here, sums = self.form.to(points), np.empty((len(distinct), len(points)))
        for rows in row_blocks(len(points), block_rows(8 * self.columns)):
            for number, table in enumerate(self._evaluated(here[rows], distinct)):
                sums[number, rows] = table @ weights
        known = dict(zip(distinct, sums, strict=True))
        return [np.sum([value * known[beta] for beta, value in part.items()], axis=0)[:, None] for part in parts]

    def _evaluated(self, points: Array, indices: Sequence[MultiIndex]) -> Iterator[Array]:
        """∂^index (M, N) of all features, for every index."""
        radius = np.maximum(cdist(points, self.sources), 1e-150)
        most = max(map(sum, indices)) + int(self.moments.sum(axis=1).max())
        gaps: list[Array] = []
        if most or self.form.moves:
            gaps = [points[:, axis, None] - self.sources[:, axis] for axis in range(points.shape[1])]
        radial = self._radial(radius, gaps, most)
        for index in indices:
            tables = []
            for moment in self.moments.astype(int):
                together = tuple((np.array(index) + moment).tolist())
                order = int(moment.sum())
                tables.append(derived(gaps, radial, together))
                if order:
                    tables[-1] = (-self.lengths) ** order * tables[-1]
            yield tables[0] if len(tables) == 1 else np.stack(tables, axis=2).reshape(len(points), self.columns)

    def _radial(self, radius: Array, gaps: Sequence[Array], most: int) -> list[Array]:
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
                decay = np.exp(-m * radius - (self._drifted(gaps) if self.form.moves else 0.0))
                return [step * decay for step in steps]
        if self.form.moves:
            decay = np.exp(-self._drifted(gaps))
            steps = [step * decay for step in steps]
        return steps

    def _drifted(self, gaps: Sequence[Array]) -> Array:
        """drift·(y - s) (M, K)."""
        return np.sum([rate * gap for rate, gap in zip(self.form.drift, gaps, strict=True)], axis=0)


def _cylinder(screened: bool, plane: bool, top: int, x: Array) -> Array:
    """Orders 0 … top of K(x) eˣ or Y(x) in the plane, of the spherical functions in space."""
    if plane:
        return bessel_k(top, x) if screened else bessel_y(top, x)
    values = [1 / x, (1 + 1 / x) / x] if screened else [-np.cos(x) / x, (-np.cos(x) / x - np.sin(x)) / x]
    for j in range(1, top):
        values.append((values[j - 1] if screened else -values[j - 1]) + (2 * j + 1) / x * values[j])
    return np.array(values)


@lru_cache(maxsize=256)
def _hermite(order: int) -> tuple[tuple[int, float], ...]:
    """∂^order of F(x²/2 + …) is Σ c_j x^(order - 2j) F^(order - j): the pairs (j, c_j)."""
    return tuple(
        (j, factorial(order) / (factorial(j) * factorial(order - 2 * j) * 2**j)) for j in range(order // 2 + 1)
    )


def derived(gaps: Sequence[Array], radial: list[Array], index: MultiIndex) -> Array:
    """∂^index (M, K) of a function of the radius from its derivatives (1/r d/dr)^j; gaps : each coordinate (M, K)."""
    if not any(index):
        return radial[0]
    total: Array = np.zeros(radial[0].shape, dtype=radial[0].dtype)
    parts: list[tuple[int, Array | float]] = [(0, 1.0)]
    for axis, order in enumerate(index):
        if order:
            grown = []
            for lost, factor in parts:
                for j, weight in _hermite(order):
                    power = order - 2 * j
                    grown.append((lost + j, factor * weight * (gaps[axis] ** power if power else 1.0)))
            parts = grown
    for lost, factor in parts:
        total += factor * radial[sum(index) - lost]
    return total
