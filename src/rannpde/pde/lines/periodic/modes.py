"""The Fourier modes of a periodic box: tables of coefficients, their grids, and their values anywhere.

A real function with modes |k_l| ≤ K_l is a table of complex coefficients in the layout of ``rfftn``: wave numbers
0, …, K, -K, …, -1 along every axis but the last, 0, …, K along that. Tables, not lists of modes: to fill up with zeros
or to cut is to copy blocks, and a derivative or a value at a point is a product of factors of the axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import ceil
from typing import Any

import numpy as np
from scipy import fft

from rannpde.arrays import Array, MultiIndex, combinations

Bounds = tuple[tuple[float, float], ...]
EXACT = 3.0
"""Points over highest modes that make the projection of quadratic terms exact."""


def periodic_grid(bounds: Bounds, shape: Sequence[int]) -> Array:
    """(points, d): equidistant points, the last end of every axis left out."""
    pairs = zip(bounds, shape, strict=True)
    return combinations(lower + (upper - lower) * np.arange(count) / count for (lower, upper), count in pairs)


def blocks(smaller: Sequence[int], larger: Sequence[int]) -> list[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Where the blocks of a table of highest modes ``smaller`` lie in it, and in one of ``larger``.

    >>> blocks((1, 2), (3, 3))[1]
    ((slice(2, 3, None), slice(0, 3, None)), (slice(6, 7, None), slice(0, 3, None)))
    """
    axes: list[list[tuple[slice, slice]]] = []
    for low, high in zip(smaller[:-1], larger[:-1], strict=True):
        ends = (slice(low + 1, 2 * low + 1), slice(2 * high + 1 - low, 2 * high + 1))
        axes.append([(slice(0, low + 1), slice(0, low + 1)), ends])
    axes.append([(slice(0, smaller[-1] + 1),) * 2])
    return [(tuple(one for one, _ in chosen), tuple(other for _, other in chosen)) for chosen in product(*axes)]


@dataclass(frozen=True)
class Modes:
    """The Fourier modes |k_l| ≤ highest_l on a periodic box.

    padding : points of the grid over highest modes

    >>> modes = Modes(((0.0, 1.0), (0.0, 2.0)), (3, 2))
    >>> modes.shape, modes.grid_shape
    ((7, 3), (10, 8))
    """

    bounds: Bounds
    highest: tuple[int, ...]
    padding: float = EXACT

    @property
    def dim(self) -> int:
        return len(self.bounds)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a table."""
        return (*(2 * high + 1 for high in self.highest[:-1]), self.highest[-1] + 1)

    @cached_property
    def count(self) -> int:
        """Entries of a table."""
        return int(np.prod(self.shape))

    @cached_property
    def grid_shape(self) -> tuple[int, ...]:
        """Points of the grid, sizes that transform fast."""
        return tuple(int(fft.next_fast_len(ceil(self.padding * high) + 1, real=True)) for high in self.highest)

    @cached_property
    def points(self) -> Array:
        """(grid points, d)."""
        return periodic_grid(self.bounds, self.grid_shape)

    def _along(self, values: Array, axis: int) -> Array:
        """Numbers of one axis, in the shape that multiplies tables."""
        return values.reshape(tuple(-1 if k == axis else 1 for k in range(self.dim)))

    @cached_property
    def numbers(self) -> tuple[Array, ...]:
        """The integer wave numbers of every axis, (2K + 1,) and (K + 1,)."""
        around = [np.append(np.arange(high + 1), np.arange(-high, 0)) for high in self.highest[:-1]]
        return (*around, np.arange(self.highest[-1] + 1))

    @cached_property
    def frequencies(self) -> tuple[Array, ...]:
        """2π k / length of every axis."""
        pairs = zip(self.numbers, self.bounds, strict=True)
        return tuple(2 * np.pi * numbers / (upper - lower) for numbers, (lower, upper) in pairs)

    @cached_property
    def multiplicity(self) -> Array:
        """Of the last axis, (K + 1,): 2 for modes that stand for their conjugates as well."""
        return np.where(self.numbers[-1] > 0, 2.0, 1.0)

    def factor(self, index: MultiIndex) -> Array:
        """Π (i k_l)^α_l, which a derivative multiplies a table with; real where its order is even."""
        total: Array = np.ones((1,) * self.dim)
        for axis, order in enumerate(index):
            if order:
                total = total * self._along(self.frequencies[axis] ** order, axis)
        return np.broadcast_to(
            total * 1j ** sum(index) if sum(index) % 2 else total * (-1.0) ** (sum(index) // 2), self.shape
        )

    def norms(self, tables: Array) -> Array:
        """Root mean squares over space of tables (…, *shape)."""
        squares = (tables.real**2 + tables.imag**2) @ self.multiplicity
        return np.sqrt(squares.sum(axis=tuple(range(-self.dim + 1, 0))) if self.dim > 1 else squares)

    def to_grid(self, tables: Array) -> Array:
        """Real values (s, *grid) of tables (s, *shape)."""
        last = self.dim
        for axis, (high, size) in enumerate(zip(self.highest[:-1], self.grid_shape[:-1], strict=True), start=1):
            wide = np.zeros((*tables.shape[:axis], size, *tables.shape[axis + 1 :]), dtype=complex)
            before = (slice(None),) * axis
            wide[(*before, slice(0, high + 1))] = tables[(*before, slice(0, high + 1))]
            wide[(*before, slice(size - high, size))] = tables[(*before, slice(high + 1, None))]
            tables = fft.ifft(wide, axis=axis, norm="forward", overwrite_x=True)
        return np.asarray(fft.irfft(tables, self.grid_shape[-1], axis=last, norm="forward"))

    def to_tables(self, values: Array) -> Array:
        """Tables (s, *shape) of real values (s, *grid)."""
        tables: Array = fft.rfft(values, axis=self.dim, norm="forward")[..., : self.highest[-1] + 1]
        for axis, high in reversed(list(enumerate(self.highest[:-1], start=1))):
            tables = fft.fft(tables, axis=axis, norm="forward")
            before, size = (slice(None),) * axis, tables.shape[axis]
            parts = tables[(*before, slice(0, high + 1))], tables[(*before, slice(size - high, size))]
            tables = np.concatenate(parts, axis=axis)
        return tables

    def real(self, tables: Array) -> Array:
        """Tables (…, *shape) without what belongs to no real function: of modes k_d = 0, half is the conjugate of half.

        Transforms ignore the rest, so that nothing but the linear part would ever act on it.
        """
        plane = tables[..., 0]
        turned = plane
        for axis in range(plane.ndim - self.dim + 1, plane.ndim):
            turned = np.roll(np.flip(turned, axis), 1, axis)
        clean = tables.copy()
        clean[..., 0] = 0.5 * (plane + turned.conj())
        return clean

    def fitted(self, tables: Array, highest: Sequence[int]) -> Array:
        """Tables (…, *other shape) of other highest modes as tables of these: with zeros, or cut."""
        if tuple(highest) == self.highest:
            return tables
        common = tuple(map(min, highest, self.highest))
        result = np.zeros((*tables.shape[: -self.dim], *self.shape), dtype=tables.dtype)
        pairs = zip(blocks(common, highest), blocks(common, self.highest), strict=True)
        for (_, source), (_, target) in pairs:
            here: Any = (Ellipsis, *target)
            there: Any = (Ellipsis, *source)
            result[here] = tables[there]
        return result

    def waves(self, points: Array) -> tuple[Array, ...]:
        """e^(ik(x - lower)) of every axis, (M, 2K + 1) and (M, K + 1), the last with the multiplicity."""
        found = []
        for axis, frequency in enumerate(self.frequencies):
            phase = np.multiply.outer(points[:, axis] - self.bounds[axis][0], frequency)
            found.append(np.exp(1j * phase) * (self.multiplicity if axis == self.dim - 1 else 1.0))
        return tuple(found)

    def at(self, tables: Array, waves: tuple[Array, ...], indices: Sequence[MultiIndex]) -> Array:
        """(s, indices, M): derivatives of the functions of tables (s, *shape) at the points of ``waves``."""
        factors = []
        for axis, (wave, frequency) in enumerate(zip(waves, self.frequencies, strict=True)):
            orders = np.array([index[axis] for index in indices])
            factors.append(wave * ((1j * frequency) ** orders[:, None])[:, None] if orders.any() else wave[None])
        shape = (len(indices), len(waves[0]))
        first = np.broadcast_to(factors[0], (*shape, self.shape[0])).reshape(-1, self.shape[0])
        if self.dim == 1:
            return np.asarray((tables @ first.T).real).reshape(-1, *shape)
        found = first @ tables.reshape(len(tables), self.shape[0], -1)  # one product reads the tables once for all
        for axis, one in enumerate(factors[1:], start=1):
            own = found.reshape(len(tables), *shape, self.shape[axis], -1)
            found = np.einsum("simkr,imk->simr", own, np.broadcast_to(one, (*shape, self.shape[axis])))
        return np.asarray(found.real).reshape(-1, *shape)
