"""Eigenfunctions of boxes: products of cos(w(x - a) - δ), whose frequencies w and phases δ satisfy the conditions at
both ends, w L = nπ + δ_a + δ_b with δ = π/2 for values, 0 for slopes and atan(h/w) for u_n + h u = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import ceil, prod
from typing import ClassVar

import numpy as np

from rannpde.arrays import Array, MultiIndex, combinations
from rannpde.checkpoints import reserve
from rannpde.pde.trefftz.modes import SpatialModes

LONGEST_RULE = 100
"""Functions for which one Gauss rule is used; nodes of longer rules take longer to find than panels of them."""


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
        if all(h in (0.0, np.inf) for h in conditions):
            frequencies = (number + 0.5 * sum(h == np.inf for h in conditions)) * np.pi / length
            return cls(frequencies, _phase(conditions[0], frequencies), ends[0], length)
        low, high = number * np.pi / length, (number + 1) * np.pi / length
        for _ in range(2 * np.finfo(float).nmant):  # every halving is a digit
            middle = 0.5 * (low + high)
            under = middle * length < number * np.pi + sum(_phase(h, middle) for h in conditions)
            low, high = np.where(under, middle, low), np.where(under, high, middle)
        frequencies = 0.5 * (low + high)
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
        reserve(16 * len(self.axes) * prod(len(axis.rule[0]) for axis in self.axes), "a grid of points")
        return combinations([axis.rule[0] for axis in self.axes])

    def projected(self, values: Array) -> Array:
        coefficients = values.reshape([len(axis.rule[0]) for axis in self.axes])
        for number, axis in enumerate(self.axes):
            nodes, weights = axis.rule
            coefficients = np.moveaxis(
                np.tensordot(axis.values(nodes, 0).T * weights, coefficients, axes=(1, number)), 0, number
            )
        return coefficients.ravel()

    def columns(self, points: Array, index: MultiIndex, chosen: Array | None = None) -> Array:
        numbers = np.unravel_index(np.arange(self.count) if chosen is None else chosen, self.shape)
        tables = [axis.values(x, order) for axis, x, order in zip(self.axes, points.T, index, strict=True)]
        products = np.take(tables[0], numbers[0], axis=1)
        for table, own in zip(tables[1:], numbers[1:], strict=True):
            products *= np.take(table, own, axis=1)
        return products

    def separated(self, points: Array, index: MultiIndex, factors: Sequence[Array], weights: Array) -> Array:
        """Re Σ_j factors_j weights_j ∂^index φ_j (M, fields) for factors that are products of factors of the axes, each
        (M, K): one axis after the other.
        """
        sums = np.empty((len(points), weights.shape[1]))
        for rows in self.blocks(len(points), self.count // self.shape[0]):
            tables = [axis.values(points[rows, k], index[k]) * factors[k][rows] for k, axis in enumerate(self.axes)]
            for column in range(weights.shape[1]):
                total = tables[0] @ weights[:, column].reshape(self.shape[0], -1)
                for k, table in enumerate(tables[1:], start=1):
                    total = np.einsum("mk,mkl->ml", table, total.reshape(len(table), self.shape[k], -1))
                sums[rows, column] = total[:, 0].real
        return sums

    def plain(self, points: Array, index: MultiIndex, weights: Array) -> Array:
        return self.separated(points, index, [np.ones((len(points), 1))] * len(self.axes), weights)

    def trimmed(self, keep: Array) -> tuple[BoxModes, Array]:
        grid = keep.reshape(self.shape)
        most = [max(int(np.max(where, initial=0)) + 1, 1) for where in np.nonzero(grid)]
        numbers = np.arange(self.count).reshape(self.shape)[tuple(slice(m) for m in most)]
        return BoxModes(tuple(axis.first(m) for axis, m in zip(self.axes, most, strict=True))), numbers.ravel()

    def pack(self) -> dict[str, Array]:
        arrays = {"ends": np.array([[axis.start, axis.length] for axis in self.axes])}
        for number, axis in enumerate(self.axes):
            arrays |= {f"frequencies{number}": axis.frequencies, f"phases{number}": axis.phases}
        return arrays
