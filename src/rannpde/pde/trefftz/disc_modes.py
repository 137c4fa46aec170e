"""Eigenfunctions of discs: J_m(αr) cos mθ and J_m(αr) sin mθ with the zeros α of J_m or of its derivative."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import ClassVar

import numpy as np
from scipy.special import jn_zeros, jnp_zeros, jv, jvp

from rannpde.arrays import Array, MultiIndex
from rannpde.checkpoints import checkpoint
from rannpde.pde.trefftz.modes import SpatialModes
from rannpde.pde.trefftz.multipoles import ladder


@dataclass(frozen=True, eq=False)
class DiscModes(SpatialModes):
    """J_m(αr) cos mθ for all of orders (K,) and zeros α (K,), then J_m(αr) sin mθ for those with m > 0."""

    kind: ClassVar[str] = "disc"
    centre: Array
    radius: float
    orders: Array
    zeros: Array

    @classmethod
    def below(cls, centre: Array, radius: float, condition: float, most: float, turns: int | None = None) -> DiscModes:
        """All with α radius ≤ most, and m ≤ turns; condition : infinite where values vanish, 0 where slopes do."""
        orders, zeros = [], []
        for m in range((ceil(most) if turns is None else min(turns, ceil(most))) + 1):
            checkpoint()
            guess = max(2, ceil((most - m) / np.pi) + 3)
            roots = jn_zeros(m, guess) if condition == np.inf else jnp_zeros(m, guess)
            if condition == 0 and m == 0:
                roots = np.concatenate([[0.0], roots])
            roots = roots[roots <= most]
            orders.append(np.full(len(roots), m))
            zeros.append(roots)
        order = np.argsort(np.concatenate(zeros), kind="stable")
        return cls(centre, radius, np.concatenate(orders)[order], np.concatenate(zeros)[order] / radius)

    @property
    def count(self) -> int:
        return len(self.orders) + int((self.orders > 0).sum())

    def _both(self, values: Array) -> Array:
        return np.concatenate([values, values[..., self.orders > 0]], axis=-1)

    def multiplier(self, index: MultiIndex) -> Array | None:
        return np.ones(self.count) if not any(index) else None

    @property
    def negative_laplacian(self) -> Array:
        return self._both(self.zeros**2)

    @property
    def edge(self) -> float:
        return float(self.zeros.max(initial=0.0))

    @cached_property
    def resolution(self) -> int:
        """Radial nodes that resolve every function of the radius, a half wave being π/α."""
        most = self.radius * float(self.zeros.max(initial=1.0))
        return ceil(0.5 * most + 8 * most ** (1 / 3)) + 24

    @cached_property
    def sizes(self) -> Array:
        """Norms in L² of J_m(αr) cos mθ (K,): ∫ r J_m(αr)² dr is R²/2 (J_m'² + (1 - m²/x²) J_m²) at x = αR."""
        m, x = self.orders, self.radius * self.zeros
        value, slope = jv(m, x), jvp(m, x)
        rest = np.where(x > 0, 1 - (m / np.where(x > 0, x, 1.0)) ** 2, 1.0)
        turn = np.where(m > 0, np.pi, 2 * np.pi)
        return self.radius * np.sqrt(0.5 * turn * (slope**2 + rest * value**2))

    @cached_property
    def _radial(self) -> tuple[Array, Array]:
        nodes, weights = np.polynomial.legendre.leggauss(2 * self.resolution)
        return 0.5 * self.radius * (nodes + 1), 0.5 * self.radius * weights

    @cached_property
    def _angles(self) -> Array:
        count = 4 * (int(self.orders.max(initial=0)) // 2) + 32
        return np.arange(count) * 2 * np.pi / count

    def nodes(self) -> Array:
        r, turn = self._radial[0], self._angles
        arrow = np.stack([np.cos(turn), np.sin(turn)], axis=1)
        return np.asarray(self.centre + (r[:, None, None] * arrow).reshape(-1, 2))

    def projected(self, values: Array) -> Array:
        r, w = self._radial
        waves = np.fft.rfft(values.reshape(len(r), -1), axis=1) * (2 * np.pi / len(self._angles))
        radial = self._interpolated(r) @ self._table(0)
        coefficients = np.einsum("rk,r,rk->k", radial, w * r, waves[:, self.orders])  # ∫ u exp(-imθ) J_m
        return np.concatenate([coefficients.real, -coefficients.imag[self.orders > 0]])

    @cached_property
    def _chebyshev(self) -> Array:
        """Nodes on [0, radius] from which functions of the radius are interpolated."""
        count = self.resolution
        return 0.5 * self.radius * (1 - np.cos(np.pi * np.arange(count + 1) / count))

    def _interpolated(self, radius: Array) -> Array:
        """Matrix (M, nodes) of the barycentric formula."""
        nodes = self._chebyshev
        signs = (-1.0) ** np.arange(len(nodes))
        signs[[0, -1]] *= 0.5
        gaps = radius[:, None] - nodes
        hit = gaps == 0
        shares = signs / np.where(hit, 1.0, gaps)
        shares = np.where(hit.any(axis=1)[:, None], hit, shares)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    @cached_property
    def _tables(self) -> dict[int, Array]:
        return {}

    def _table(self, shift: int) -> Array:
        """J_{m+shift}(αr)/size (nodes, K)."""
        if shift not in self._tables:
            checkpoint()
            self._tables[shift] = jv(self.orders + shift, self._chebyshev[:, None] * self.zeros) / self.sizes
        return self._tables[shift]

    def columns(self, points: Array, index: MultiIndex, chosen: Array | None = None) -> Array:
        z = (points - self.centre) @ np.array([1.0, 1j])
        r = np.abs(z)
        turn = np.where(r > 0, z / np.where(r > 0, r, 1.0), 1.0)
        matrix, total = self._interpolated(np.minimum(r, self.radius)), np.zeros((len(z), len(self.orders)), complex)
        most = int(self.orders.max(initial=0)) + sum(index)
        powers = turn[:, None] ** np.arange(most + 1)
        for up, down, weight in ladder(index):
            moved = self.orders + up - down
            wave = np.where(moved >= 0, powers[:, np.abs(moved)], powers[:, np.abs(moved)].conj())
            total += (weight * (-1.0) ** up) * self.zeros ** (up + down) * (matrix @ self._table(up - down)) * wave
        values = np.concatenate([total.real, total.imag[:, self.orders > 0]], axis=1)
        return values if chosen is None else values[:, chosen]

    def trimmed(self, keep: Array) -> tuple[DiscModes, Array]:
        K, turning = len(self.orders), np.flatnonzero(self.orders > 0)
        chosen = keep[:K].copy()
        chosen[turning] |= keep[K:]
        chosen[0] = True
        numbers = np.concatenate([np.flatnonzero(chosen), K + np.flatnonzero(chosen[turning])])
        return DiscModes(self.centre, self.radius, self.orders[chosen], self.zeros[chosen]), numbers

    def pack(self) -> dict[str, Array]:
        numbers = np.array([*self.centre, self.radius])
        return {"disc": numbers, "orders": self.orders.astype(float), "zeros": self.zeros}
