"""Eigenfunctions of Laplace's operator on boxes and discs: features in space of linear evolutions.

On a box they are products of cos(w(x - a) - δ) with the frequencies w and phases δ that satisfy the conditions at both
ends, w L = nπ + δ_a + δ_b with δ = π/2 for values, 0 for slopes and atan(h/w) for u_n + h u = 0. On a disc they are
J_m(αr) cos mθ and J_m(αr) sin mθ with the zeros α of J_m or of its derivative.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import ceil
from typing import Any, ClassVar

import numpy as np
from scipy.special import jn_zeros, jnp_zeros, jv, jvp

from rannpde.arrays import Array, MultiIndex, block_rows, combinations, row_blocks
from rannpde.checkpoints import checkpoint, reserve
from rannpde.errors import choose
from rannpde.pde.trefftz.families import ladder

LONGEST_RULE = 100
"""Functions for which one Gauss rule is used; nodes of longer rules take longer to find than panels of them."""


class SpatialModes(ABC):
    """Orthonormal functions of space φ_j, j < N, that satisfy homogeneous conditions and diagonalise an operator."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def count(self) -> int:
        """N."""

    @abstractmethod
    def multiplier(self, index: MultiIndex) -> Array | None:
        """μ (N,) with ∂^index φ = μ φ; None where it is no multiple."""

    @property
    @abstractmethod
    def negative_laplacian(self) -> Array:
        """|w|² (N,), the eigenvalues of -Δ."""

    @property
    @abstractmethod
    def edge(self) -> float:
        """A frequency |w| that all functions that were left out exceed."""

    @abstractmethod
    def nodes(self) -> Array:
        """Points (Q, d) at which a function is asked for in order to be projected."""

    @abstractmethod
    def projected(self, values: Array) -> Array:
        """Coefficients (N,) of the function that has these values (Q,) at the nodes."""

    @abstractmethod
    def columns(self, points: Array, index: MultiIndex, chosen: Array | None = None) -> Array:
        """∂^index φ (M, N) at points (M, d), of all or of the chosen ones (N,)."""

    @abstractmethod
    def trimmed(self, keep: Array) -> tuple[SpatialModes, Array]:
        """Fewer modes, among them all of ``keep`` (N,), and their numbers."""

    def plain(self, points: Array, index: MultiIndex, weights: Array) -> Array:
        """Σ_j weights_j ∂^index φ_j (M, fields)."""
        found = np.empty((len(points), weights.shape[1]))
        for rows in self.blocks(len(points), self.count):
            found[rows] = self.columns(points[rows], index) @ weights
        return found

    @staticmethod
    def blocks(rows: int, columns: int) -> Iterator[slice]:
        """Rows at once of a table with so many columns."""
        for block in row_blocks(rows, block_rows(2 * columns)):
            checkpoint()
            yield block

    @abstractmethod
    def pack(self) -> dict[str, Array]:
        """As arrays for a file."""


@dataclass(frozen=True, eq=False)
class AxisModes:
    """cos(w(x - start) - phase)/size for frequencies w (K,), phases (K,), of norm one on [start, start + length]."""

    frequencies: Array
    phases: Array
    start: float
    length: float

    @classmethod
    def between(cls, ends: tuple[float, float], conditions: Sequence[float], count: int) -> AxisModes:
        """conditions : h ≥ 0 of u_n + h u = 0 at both ends, infinite where the value vanishes."""
        length, number = ends[1] - ends[0], np.arange(count)
        low, high = number * np.pi / length, (number + 1) * np.pi / length
        for _ in range(2 * np.finfo(float).nmant):  # every halving is a digit
            middle = 0.5 * (low + high)
            under = middle * length < number * np.pi + sum(_phase(h, middle) for h in conditions)
            low, high = np.where(under, middle, low), np.where(under, high, middle)
        plain = all(h in (0.0, np.inf) for h in conditions)  # in closed form: no rounding of bisections
        whole = (number + 0.5 * sum(h == np.inf for h in conditions)) * np.pi / length
        frequencies = whole if plain else 0.5 * (low + high)
        return cls(frequencies, _phase(conditions[0], frequencies), ends[0], length)

    @cached_property
    def sizes(self) -> Array:
        """Norms in L² of the cosines."""
        w, delta, length = self.frequencies, self.phases, self.length
        turn = np.where(w > 0, w, 1.0)
        square = 0.5 * length + (np.sin(2 * (w * length - delta)) + np.sin(2 * delta)) / (4 * turn)
        return np.sqrt(np.where(w > 0, square, length))

    def values(self, x: Array, order: int) -> Array:
        """The derivative of that order (M, K)."""
        w = self.frequencies
        return np.cos((x - self.start)[:, None] * w - self.phases + order * np.pi / 2) * (w**order / self.sizes)

    @cached_property
    def rule(self) -> tuple[Array, Array]:
        """Gauss nodes and weights that integrate products of two of the functions."""
        panels = ceil(len(self.frequencies) / LONGEST_RULE)
        nodes, weights = np.polynomial.legendre.leggauss(2 * ceil(len(self.frequencies) / panels) + 16)
        half = 0.5 * self.length / panels
        every = self.start + half * (nodes + 1 + 2 * np.arange(panels)[:, None])
        return every.ravel(), np.tile(half * weights, panels)

    def first(self, count: int) -> AxisModes:
        return AxisModes(self.frequencies[:count], self.phases[:count], self.start, self.length)


def _phase(condition: float, frequencies: Array) -> Array:
    if condition == np.inf:
        return np.full(len(frequencies), np.pi / 2)
    return np.arctan2(condition, frequencies) if condition else np.zeros(len(frequencies))


@dataclass(frozen=True, eq=False)
class BoxModes(SpatialModes):
    """Products of the functions of each axis; the last axis runs fastest."""

    kind: ClassVar[str] = "box"
    axes: tuple[AxisModes, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis.frequencies) for axis in self.axes)

    @property
    def count(self) -> int:
        return int(np.prod(self.shape))

    def multiplier(self, index: MultiIndex) -> Array | None:
        if any(order % 2 for order in index):
            return None
        powers = [(-(axis.frequencies**2)) ** (order // 2) for axis, order in zip(self.axes, index, strict=True)]
        return np.asarray(reduce(np.multiply.outer, powers)).ravel()

    @property
    def negative_laplacian(self) -> Array:
        return np.asarray(reduce(np.add.outer, [axis.frequencies**2 for axis in self.axes])).ravel()

    @property
    def edge(self) -> float:
        return min(float(axis.frequencies[-1]) for axis in self.axes)

    def nodes(self) -> Array:
        reserve(16.0 * len(self.axes) * np.prod([len(axis.rule[0]) for axis in self.axes]), "a grid of points")
        return combinations([axis.rule[0] for axis in self.axes])

    def projected(self, values: Array) -> Array:
        found = values.reshape([len(axis.rule[0]) for axis in self.axes])
        for number, axis in enumerate(self.axes):
            nodes, weights = axis.rule
            found = np.moveaxis(np.tensordot(axis.values(nodes, 0).T * weights, found, axes=(1, number)), 0, number)
        return found.ravel()

    def columns(self, points: Array, index: MultiIndex, chosen: Array | None = None) -> Array:
        numbers = np.unravel_index(np.arange(self.count) if chosen is None else chosen, self.shape)
        tables = [axis.values(x, order) for axis, x, order in zip(self.axes, points.T, index, strict=True)]
        found = np.take(tables[0], numbers[0], axis=1)
        for table, own in zip(tables[1:], numbers[1:], strict=True):
            found *= np.take(table, own, axis=1)
        return found

    def separated(self, points: Array, index: MultiIndex, factors: Sequence[Array], weights: Array) -> Array:
        """Re Σ_j factors_j weights_j ∂^index φ_j (M, fields) for factors that are products of factors of the axes, each
        (M, K): one axis after the other.
        """
        found = np.empty((len(points), weights.shape[1]))
        for rows in self.blocks(len(points), self.count // self.shape[0]):
            tables = [axis.values(points[rows, k], index[k]) * factors[k][rows] for k, axis in enumerate(self.axes)]
            for column in range(weights.shape[1]):
                total = tables[0] @ weights[:, column].reshape(self.shape[0], -1)
                for k, table in enumerate(tables[1:], start=1):
                    total = np.einsum("mk,mkl->ml", table, total.reshape(len(table), self.shape[k], -1))
                found[rows, column] = total[:, 0].real
        return found

    def plain(self, points: Array, index: MultiIndex, weights: Array) -> Array:
        return self.separated(points, index, [np.ones((len(points), 1))] * len(self.axes), weights)

    def trimmed(self, keep: Array) -> tuple[BoxModes, Array]:
        grid = keep.reshape(self.shape)
        most = [max(int(np.max(where, initial=0)) + 1, 1) for where in np.nonzero(grid)]
        numbers = np.arange(self.count).reshape(self.shape)[tuple(slice(m) for m in most)]
        return BoxModes(tuple(axis.first(m) for axis, m in zip(self.axes, most, strict=True))), numbers.ravel()

    def pack(self) -> dict[str, Array]:
        found = {"ends": np.array([[axis.start, axis.length] for axis in self.axes])}
        for number, axis in enumerate(self.axes):
            found |= {f"frequencies{number}": axis.frequencies, f"phases{number}": axis.phases}
        return found


@dataclass(frozen=True, eq=False)
class DiscModes(SpatialModes):
    """J_m(αr) cos mθ for all of orders (K,) and zeros α (K,), then J_m(αr) sin mθ for those with m > 0."""

    kind: ClassVar[str] = "disc"
    centre: Array
    radius: float
    orders: Array
    zeros: Array

    @classmethod
    def below(
        cls, centre: Array, radius: float, condition: float, most: float, turns: int | None = None
    ) -> DiscModes:
        """All with α radius ≤ most, and m ≤ turns; condition : infinite where values vanish, 0 where slopes do."""
        orders, zeros = [], []
        for m in range((ceil(most) if turns is None else min(turns, ceil(most))) + 1):
            checkpoint()
            guess = max(2, ceil((most - m) / np.pi) + 3)
            found = jn_zeros(m, guess) if condition == np.inf else jnp_zeros(m, guess)
            if condition == 0 and m == 0:
                found = np.concatenate([[0.0], found])
            found = found[found <= most]
            orders.append(np.full(len(found), m))
            zeros.append(found)
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
        found = np.einsum("rk,r,rk->k", radial, w * r, waves[:, self.orders])  # ∫ u exp(-imθ) J_m
        return np.concatenate([found.real, -found.imag[self.orders > 0]])

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
        found = np.concatenate([total.real, total.imag[:, self.orders > 0]], axis=1)
        return found if chosen is None else found[:, chosen]

    def trimmed(self, keep: Array) -> tuple[DiscModes, Array]:
        K, turning = len(self.orders), np.flatnonzero(self.orders > 0)
        kept = keep[:K].copy()
        kept[turning] |= keep[K:]
        kept[0] = True
        numbers = np.concatenate([np.flatnonzero(kept), K + np.flatnonzero(kept[turning])])
        return DiscModes(self.centre, self.radius, self.orders[kept], self.zeros[kept]), numbers

    def pack(self) -> dict[str, Array]:
        numbers = np.array([*self.centre, self.radius])
        return {"disc": numbers, "orders": self.orders.astype(float), "zeros": self.zeros}


def unpack_modes(kind: str, arrays: Mapping[str, Array]) -> SpatialModes:
    """The inverse of ``pack``."""

    def box() -> SpatialModes:
        ends = arrays["ends"]
        axes = [
            AxisModes(arrays[f"frequencies{k}"], arrays[f"phases{k}"], float(start), float(length))
            for k, (start, length) in enumerate(ends)
        ]
        return BoxModes(tuple(axes))

    def disc() -> SpatialModes:
        x, y, radius = map(float, arrays["disc"])
        return DiscModes(np.array([x, y]), radius, arrays["orders"].astype(int), arrays["zeros"])

    makers: dict[str, Any] = {"box": box, "disc": disc}
    found = choose("eigenfunctions", kind, makers)()
    assert isinstance(found, SpatialModes)
    return found
