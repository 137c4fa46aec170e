"""Functions about one point of space: solid harmonics and spherical waves f_l(r) Y_l^m.

About the middle of a domain f_l is r^l for Laplace's equation, j_l(kr) for Helmholtz' and i_l(mr) for screened ones; in
spherical holes it is r^(-l-1), y_l(kr) and k_l(mr). Derivatives are such functions again: for f = j or y and
orthonormal Y,

    ∂_z f_l Y_l^m = k (a_l^m f_{l-1} Y_{l-1}^m - a_{l+1}^m f_{l+1} Y_{l+1}^m),      a_l^m = √((l² - m²)/(4l² - 1)),
    D₊ f_l Y_l^m = k (b_l^{-m} f_{l-1} Y_{l-1}^{m+1} + b_{l+1}^{m+1} f_{l+1} Y_{l+1}^{m+1}),

with b_l^m = √((l + m - 1)(l + m)/(4l² - 1)), D₊ = ∂_x + i∂_y, and D₋ its mirror image; for i_l and k_l signs differ.
Where k → 0, j_l is (kr)^l/(2l + 1)!! and keeps the terms f_{l-1} alone, y_l is -(2l - 1)!!/(kr)^(l+1) and keeps
f_{l+1}.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_matrix, identity

from rannpde.arrays import Array, MultiIndex, block_rows
from rannpde.pde.trefftz.cylinder import spherical_i, spherical_j, spherical_k, spherical_y
from rannpde.pde.trefftz.families import REGULAR_LABEL, SINGULAR_LABEL, CanonicalFamily
from rannpde.pde.trefftz.multipoles import ladder
from rannpde.pde.trefftz.operator import CanonicalForm


def spherical_harmonics(directions: Array, degree: int) -> Array:
    """Orthonormal Y_l^m ((degree + 1)², M), l² + l + m the number of (l, m), at unit vectors (M, 3)."""
    plane, height = directions @ np.array([1, 1j, 0]), directions[:, 2]
    harmonics = np.zeros(((degree + 1) ** 2, len(directions)), dtype=complex)
    harmonics[0] = np.sqrt(1 / (4 * np.pi))
    for l in range(1, degree + 1):  # noqa: E741 - the names of the degree and the order everywhere
        here = l * l + l
        harmonics[here + l] = -np.sqrt((2 * l + 1) / (2 * l)) * plane * harmonics[(l - 1) ** 2 + 2 * (l - 1)]
        m = np.arange(l)
        ratio = np.sqrt((4 * l * l - 1) / (l * l - m * m))[:, None]
        before = harmonics[(l - 1) ** 2 + (l - 1) + m]
        earlier = np.zeros_like(before)
        if l > 1:
            inner = m[:-1]
            share = np.sqrt(((l - 1) ** 2 - inner**2) / (4 * (l - 1) ** 2 - 1))[:, None]
            earlier[:-1] = share * harmonics[(l - 2) ** 2 + (l - 2) + inner]
        harmonics[here + m] = ratio * (height * before - earlier)
        positive = np.arange(1, l + 1)
        harmonics[here - positive] = ((-1.0) ** positive)[:, None] * harmonics[here + positive].conj()
    return harmonics


@lru_cache(maxsize=64)
def _step(degree: int, turn: int, signs: tuple[float, float]) -> csr_matrix:
    """∂_z (turn 0), D₊ (1) or D₋ (-1) over k as a matrix from degrees up to ``degree`` to one more.

    signs : of the terms f_{l-1} and f_{l+1} relative to those of j_l
    """
    every = np.arange((degree + 1) ** 2)
    l = np.sqrt(every + 0.5).astype(int)  # noqa: E741
    m = every - l * l - l
    total = csr_matrix(((degree + 2) ** 2, (degree + 1) ** 2))
    for below, sign in ((True, signs[0]), (False, signs[1])):
        other, order = l - 1 if below else l + 1, m + turn
        inside = np.abs(order) <= other
        high = np.maximum(l, other)
        if turn == 0:
            values = np.sqrt(np.maximum(high**2 - m**2, 0) / (4 * high**2 - 1)) * (1 if below else -1)
        else:
            lean = high + (-turn * m if below else turn * m + 1)
            values = np.sqrt(np.maximum((lean - 1) * lean, 0) / (4 * high**2 - 1)) * turn
        where = (other * other + other + order)[inside], every[inside]
        total = total + csr_matrix((sign * values[inside], where), shape=total.shape)
    return csr_matrix(total)


@dataclass(frozen=True, eq=False)
class SphericalFamily(CanonicalFamily):
    """Re and Im of f_l(r) Y_l^m, m ≥ 0, up to a degree: (degree + 1)² features of size about one at the radius.

    regular : smooth everywhere, or singular at the centre
    """

    kind: ClassVar[str] = "spherical"
    form: CanonicalForm
    centre: Array
    radius: float
    degree: int
    regular: bool

    @property
    def label(self) -> str:
        return REGULAR_LABEL if self.regular else SINGULAR_LABEL

    @property
    def columns(self) -> int:
        return (int(self.degree) + 1) ** 2

    @cached_property
    def _pairs(self) -> tuple[Array, Array]:
        """The degree l and the order m ≤ l (K,) of every function."""
        return np.tril_indices(int(self.degree) + 1)

    @property
    def orders(self) -> Array:
        """The degree l (N,) of every feature."""
        l, m = self._pairs  # noqa: E741
        return np.concatenate([l, l[m > 0]])

    def signs(self, flip: Array) -> Array:
        """The signs (N,) that features get where those of coordinates about the centre change by a flip (3,) of ±1.

        Re Y_l^m is even in y, Im Y_l^m odd; both have the parity of l + m in z, and that of m and m + 1 in x.
        """
        l, m = self._pairs  # noqa: E741
        real = np.where(flip[0] < 0, (-1.0) ** m, 1.0) * np.where(flip[2] < 0, (-1.0) ** (l + m), 1.0)
        return np.asarray(np.concatenate([real, flip[0] * flip[1] * real[m > 0]]))

    @property
    def _harmonic(self) -> bool:
        return self.form.kappa == 0

    @property
    def _screened(self) -> bool:
        return self.form.kappa < 0

    @property
    def _unit(self) -> float:
        """The unit of 1/length: k, or the inverse of the radius for harmonic functions."""
        return 1 / self.radius if self._harmonic else self.form.wave_number

    @property
    def _signs(self) -> tuple[float, float]:
        """The signs of the terms f_{l-1} and f_{l+1} of derivatives, relative to those of j_l."""
        if self._harmonic:
            return (1.0, 0.0) if self.regular else (0.0, 1.0)
        if self._screened:
            return (1.0, -1.0) if self.regular else (-1.0, 1.0)
        return (1.0, 1.0)

    def _radial(self, top: int, x: Array) -> Array:
        """f_0 … f_top (top + 1, M)."""
        if self._harmonic:
            odd = np.concatenate([[1.0], np.cumprod(2.0 * np.arange(1, top + 1) + 1)])[:, None]  # (2l + 1)!!
            l = np.arange(top + 1)[:, None]  # noqa: E741
            return x**l / odd if self.regular else odd / (2 * l + 1) / x ** (l + 1)
        if self._screened:
            return spherical_i(top, x) if self.regular else spherical_k(top, x)
        return spherical_j(top, x) if self.regular else spherical_y(top, x)

    @cached_property
    def _factors(self) -> Array:
        """The factors (K,) of the functions, with which their size at the radius is about one."""
        top, x = int(self.degree), self._unit * self.radius
        l, m = self._pairs  # noqa: E741
        here = np.array([x])
        if self._harmonic:
            # functions in files of earlier releases have this sign and size
            return (-1.0) ** m * np.sqrt(4 * np.pi / (2 * l + 1)) / self._radial(top, here)[l, 0]
        if self._screened:
            return 1 / np.maximum(np.abs(self._radial(top, here)[:, 0]), 1e-290)[l]
        if not self.regular:
            return 1 / np.hypot(spherical_j(top, here)[:, 0], spherical_y(top, here)[:, 0])[l]
        turning = int(np.ceil(x))  # below this degree they oscillate, and no value is typical
        values = np.abs(spherical_j(max(top, turning), here)[:, 0])
        return 1 / np.maximum(np.where(np.arange(top + 1) > x, values[: top + 1], values[turning]), 1e-290)[l]

    def canonical(self, points: Array, index: MultiIndex) -> Array:
        away = points - self.centre
        radius = np.maximum(np.linalg.norm(away, axis=1), 1e-300)
        values = self._derivatives(away, radius, index) if any(index) else self._undifferentiated(away, radius)
        if self.form.moves or self._screened:
            values = values * np.exp(self._exponent(away, radius))[:, None]
        return values

    def _undifferentiated(self, away: Array, radius: Array) -> Array:
        """The functions themselves (M, N), one after the other, so that all intermediate arrays stay in the cache."""
        degree = int(self.degree)
        plane, height = (away @ np.array([1, 1j, 0])) / radius, away[:, 2] / radius
        radial = self._radial(degree, self._unit * radius)
        factors = self._factors
        values = np.empty((self.columns, len(away)))
        real = (degree + 1) * (degree + 2) // 2  # columns; then follow imaginary parts of m > 0
        power, diagonal = np.ones(len(away), dtype=complex), np.sqrt(1 / (4 * np.pi))
        for m in range(degree + 1):
            if m:
                power = power * plane
                diagonal *= -np.sqrt((2 * m + 1) / (2 * m))
            before, now = np.zeros(len(away)), np.full(len(away), diagonal)
            for l in range(m, degree + 1):  # noqa: E741
                if l > m:
                    ratio = np.sqrt((4 * l * l - 1) / (l * l - m * m))
                    share = np.sqrt(((l - 1) ** 2 - m * m) / (4 * (l - 1) ** 2 - 1)) if l > m + 1 else 0.0
                    before, now = now, ratio * (height * now - share * before)
                here = l * (l + 1) // 2 + m
                size = (factors[here] * now) * radial[l]
                np.multiply(size, power.real, out=values[here])
                if m:
                    np.multiply(size, power.imag, out=values[real + l * (l - 1) // 2 + m - 1])
        return values.T

    @property
    def rows_at_once(self) -> int:
        """Tables hold the functions of one order m alone."""
        return block_rows(8 * (int(self.degree) + 1))

    def several(self, points: Array, indices: Sequence[MultiIndex], weights: Array) -> list[Array]:
        """Derivatives of a sum are sums of the same functions with other weights: none is evaluated on its own."""
        parts = [self.form.expanded(index) for index in indices]
        distinct = list(dict.fromkeys(beta for part in parts for beta in part))
        away = self.form.to(points) - self.centre
        radius = np.maximum(np.linalg.norm(away, axis=1), 1e-300)
        top = int(self.degree) + max(map(sum, distinct))
        sums = self._summed(away, radius, np.stack([self._weights(weights, beta, top) for beta in distinct]))
        if self.form.moves or self._screened:
            sums *= np.exp(self._exponent(away, radius))
        known = dict(zip(distinct, sums, strict=True))
        return [np.sum([value * known[beta] for beta, value in part.items()], axis=0)[:, None] for part in parts]

    def _weights(self, weights: Array, index: MultiIndex, top: int) -> Array:
        """Complex weights h_lm (top + 1, top + 1), for which ∂^index of the sum is Re Σ h_lm f_l Y_l^m, m ≥ 0."""
        l, m = self._pairs  # noqa: E741
        complex_weights = weights[: len(l)].astype(complex)
        complex_weights[m > 0] -= 1j * weights[len(l) :]
        order = sum(index)
        complex_weights = complex_weights * self._factors * self._unit**order
        weights_by_order = self._derivative(index)[:, l * l + l + m] @ complex_weights
        folded = np.zeros((top + 1, top + 1), dtype=complex)
        l, m = np.tril_indices(int(self.degree) + order + 1)  # noqa: E741
        folded[l, m] = weights_by_order[l * l + l + m]
        negative = m > 0  # Y_l^{-m} is (-1)^m times the conjugate of Y_l^m
        l, m = l[negative], m[negative]  # noqa: E741
        folded[l, m] += (-1.0) ** m * weights_by_order[l * l + l - m].conj()
        return folded

    def _summed(self, away: Array, radius: Array, weights: Array) -> Array:
        """Re Σ h_lm f_l Y_l^m (K, M) for weights h (K, top + 1, top + 1), by the recurrence of each order m."""
        top = weights.shape[1] - 1
        plane, height = (away @ np.array([1, 1j, 0])) / radius, away[:, 2] / radius
        radial = self._radial(top, self._unit * radius)
        sums, table = np.zeros((len(weights), len(away))), np.empty((top + 1, len(away)))
        power, diagonal = np.ones(len(away), dtype=complex), np.sqrt(1 / (4 * np.pi))
        for m in range(top + 1):
            if m:
                power = power * plane
                diagonal *= -np.sqrt((2 * m + 1) / (2 * m))
            table[m] = diagonal
            for l in range(m + 1, top + 1):  # noqa: E741
                ratio = np.sqrt((4 * l * l - 1) / (l * l - m * m))
                np.multiply(ratio * height, table[l - 1], out=table[l])
                if l > m + 1:
                    share = np.sqrt(((l - 1) ** 2 - m * m) / (4 * (l - 1) ** 2 - 1))
                    table[l] -= (ratio * share) * table[l - 2]
            scaled, of_order = table[m:] * radial[m:], weights[:, m:, m]
            sums += (of_order.real @ scaled) * power.real - (of_order.imag @ scaled) * power.imag
        return sums

    def _derivatives(self, away: Array, radius: Array, index: MultiIndex) -> Array:
        """∂^index of the functions (M, N)."""
        degree, order = int(self.degree), sum(index)
        harmonics = spherical_harmonics(away / radius[:, None], degree + order)
        levels = np.repeat(np.arange(degree + order + 1), 2 * np.arange(degree + order + 1) + 1)
        table = harmonics * self._radial(degree + order, self._unit * radius)[levels]
        l, m = self._pairs  # noqa: E741
        columns = l * l + l + m
        values = (self._derivative(index)[:, columns].T @ table).T * (self._unit**order * self._factors)
        return np.concatenate([values.real, values.imag[:, m > 0]], axis=1)

    def _derivative(self, index: MultiIndex) -> csr_matrix:
        """∂^index as a matrix on functions of all (l, m), over the unit to the order."""
        degree, order = int(self.degree), sum(index)
        matrix = csr_matrix(((degree + order + 1) ** 2, (degree + 1) ** 2), dtype=complex)
        for up, down, weight in ladder((index[0], index[1])):
            product = identity((degree + 1) ** 2, format="csr")
            for number, turn in enumerate([1] * up + [-1] * down + [0] * index[2]):
                product = _step(degree + number, turn, self._signs) @ product
            matrix = matrix + weight * product
        return matrix

    def _exponent(self, away: Array, radius: Array) -> Array:
        """The exponent that scaled functions leave out: growth of i_l, decay of k_l (one at the radius), and drift."""
        total = -(away @ self.form.drift)
        if self._screened:
            grown = self.form.wave_number * (radius - self.radius)
            total = total + (grown if self.regular else -grown)
        return np.asarray(total)
