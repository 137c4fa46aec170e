"""The Fourier modes of a periodic box: tables of coefficients, their grids, and their values anywhere.

A real function with modes |k_l| ≤ K_l is a table of complex coefficients in the layout of ``rfftn``: wave numbers
0, …, K, -K, …, -1 along every axis but the last, 0, …, K along the last. Padding and truncation of tables copy blocks,
and a derivative or a value at a point is a product of factors of the axes.

With reflection symmetry (``problem.reflections``), functions are even or odd along every axis: c_{-k} = ± c_k. Their
tables hold 0, …, K along all axes, and stand for products of cosines and sines on a grid of half the period: with n odd
axes, i^n c is real. Derivatives are the same factors (i k)^α.
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
from rannpde.pde.problem.evolution import Evolution, Parity

AxisBounds = tuple[tuple[float, float], ...]
EXACT = 3
"""Points over highest modes that make the projection of quadratic terms exact."""


def whole_period(evolution: Evolution) -> AxisBounds:
    """The box, or twice the box where its walls are reflection symmetries."""
    pairs = ((float(lower), float(upper)) for lower, upper in evolution.domain.space.bounds)
    return tuple((a, a + 2.0 * (b - a)) if evolution.parities is not None else (a, b) for a, b in pairs)


def periodic_grid(bounds: AxisBounds, shape: Sequence[int]) -> Array:
    """(points, d): equidistant points, the last end of every axis left out."""
    pairs = zip(bounds, shape, strict=True)
    return combinations(lower + (upper - lower) * np.arange(count) / count for (lower, upper), count in pairs)


def blocks(
    smaller: Sequence[int], larger: Sequence[int], mirrored: bool = False
) -> list[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """The blocks of a table with highest modes ``smaller``: their slices in it, and in a table of ``larger``.

    >>> blocks((1, 2), (3, 3))[1]
    ((slice(2, 3, None), slice(0, 3, None)), (slice(6, 7, None), slice(0, 3, None)))
    """
    if mirrored:
        whole = tuple(slice(0, low + 1) for low in smaller)
        return [(whole, whole)]
    axes: list[list[tuple[slice, slice]]] = []
    for low, high in zip(smaller[:-1], larger[:-1], strict=True):
        ends = (slice(low + 1, 2 * low + 1), slice(2 * high + 1 - low, 2 * high + 1))
        axes.append([(slice(0, low + 1), slice(0, low + 1)), ends])
    axes.append([(slice(0, smaller[-1] + 1),) * 2])
    return [(tuple(one for one, _ in chosen), tuple(other for _, other in chosen)) for chosen in product(*axes)]


@dataclass(frozen=True)
class FourierBasis:
    """The Fourier modes |k_l| ≤ highest_l on a periodic box.

    padding : ratio of grid points to highest modes
    parities : of every part of a state, with reflection symmetry; else none

    >>> modes = FourierBasis(((0.0, 1.0), (0.0, 2.0)), (3, 2))
    >>> modes.shape, modes.grid_shape
    ((7, 3), (10, 8))
    """

    bounds: AxisBounds
    highest: tuple[int, ...]
    padding: float = EXACT
    parities: tuple[Parity, ...] = ()

    @property
    def dim(self) -> int:
        return len(self.bounds)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a table."""
        if self.parities:
            return tuple(high + 1 for high in self.highest)
        return (*(2 * high + 1 for high in self.highest[:-1]), self.highest[-1] + 1)

    @cached_property
    def count(self) -> int:
        """The number of entries of a table."""
        return int(np.prod(self.shape))

    @cached_property
    def grid_shape(self) -> tuple[int, ...]:
        """Grid points per axis, numbers whose FFT is fast; of half the period with reflection symmetry."""
        padding = 0.5 * self.padding if self.parities else self.padding
        return tuple(int(fft.next_fast_len(ceil(padding * high) + 1, real=True)) for high in self.highest)

    @cached_property
    def grid(self) -> tuple[Array, ...]:
        """The coordinates of the grid along every axis; with reflection symmetry, none is on a wall."""
        pairs = list(zip(self.bounds, self.grid_shape, strict=True))
        if self.parities:
            return tuple(a + (b - a) * (np.arange(count) + 0.5) / (2 * count) for (a, b), count in pairs)
        return tuple(a + (b - a) * np.arange(count) / count for (a, b), count in pairs)

    @property
    def points(self) -> Array:
        """(grid points, d)."""
        return combinations(self.grid)

    def broadcast_along(self, values: Array, axis: int) -> Array:
        """Numbers along one axis, in a shape that broadcasts against tables."""
        return values.reshape(tuple(-1 if k == axis else 1 for k in range(self.dim)))

    @cached_property
    def numbers(self) -> tuple[Array, ...]:
        """The integer wave numbers of every axis, (2K + 1,) and (K + 1,)."""
        if self.parities:
            return tuple(np.arange(high + 1) for high in self.highest)
        around = [np.append(np.arange(high + 1), np.arange(-high, 0)) for high in self.highest[:-1]]
        return (*around, np.arange(self.highest[-1] + 1))

    @cached_property
    def frequencies(self) -> tuple[Array, ...]:
        """2π k / length of every axis."""
        pairs = zip(self.numbers, self.bounds, strict=True)
        return tuple(2 * np.pi * numbers / (upper - lower) for numbers, (lower, upper) in pairs)

    @cached_property
    def multiplicities(self) -> tuple[Array, ...]:
        """For every axis, the number of modes of an entry: 2 with its conjugate or reflection, else 1."""
        first = 0 if self.parities else self.dim - 1
        return tuple(np.where((n > 0) & (axis >= first), 2.0, 1.0) for axis, n in enumerate(self.numbers))

    def parity_of(self, part: int, index: MultiIndex) -> Parity:
        """The parity of a derivative of a part, with reflection symmetry; else none."""
        if not self.parities:
            return ()
        return tuple((sign + order) % 2 for sign, order in zip(self.parities[part], index, strict=True))

    def factor(self, index: MultiIndex) -> Array:
        """Π (i k_l)^α_l, by which a derivative multiplies a table; real where its order is even."""
        total: Array = np.ones((1,) * self.dim)
        for axis, order in enumerate(index):
            if order:
                total = total * self.broadcast_along(self.frequencies[axis] ** order, axis)
        return np.broadcast_to(
            total * 1j ** sum(index) if sum(index) % 2 else total * (-1.0) ** (sum(index) // 2), self.shape
        )

    def norms(self, tables: Array) -> Array:
        """Root mean squares over space of tables (…, *shape)."""
        squares = tables.real**2 + tables.imag**2
        for weights in reversed(self.multiplicities):
            squares = squares @ weights
        return np.sqrt(squares)

    def to_grid(self, tables: Array, parity: Parity = ()) -> Array:
        """Real values (s, *grid) of tables (s, *shape), all of one parity."""
        if self.parities:
            return self._to_half(tables, parity)
        last = self.dim
        for axis, (high, size) in enumerate(zip(self.highest[:-1], self.grid_shape[:-1], strict=True), start=1):
            wide = np.zeros((*tables.shape[:axis], size, *tables.shape[axis + 1 :]), dtype=complex)
            before = (slice(None),) * axis
            wide[(*before, slice(0, high + 1))] = tables[(*before, slice(0, high + 1))]
            wide[(*before, slice(size - high, size))] = tables[(*before, slice(high + 1, None))]
            tables = fft.ifft(wide, axis=axis, norm="forward", overwrite_x=True)
        return np.asarray(fft.irfft(tables, self.grid_shape[-1], axis=last, norm="forward"))

    def to_tables(self, values: Array, parity: Parity = ()) -> Array:
        """Tables (s, *shape) of real values (s, *grid), all of one parity."""
        if self.parities:
            return self._from_half(values, parity)
        tables: Array = fft.rfft(values, axis=self.dim, norm="forward")[..., : self.highest[-1] + 1]
        for axis, high in reversed(list(enumerate(self.highest[:-1], start=1))):
            tables = fft.fft(tables, axis=axis, norm="forward")
            before, size = (slice(None),) * axis, tables.shape[axis]
            parts = tables[(*before, slice(0, high + 1))], tables[(*before, slice(size - high, size))]
            tables = np.concatenate(parts, axis=axis)
        return tables

    def _to_half(self, tables: Array, parity: Parity) -> Array:
        values = _real_part(tables, parity)
        for axis, odd in enumerate(parity, start=1):
            before, size = (slice(None),) * axis, self.grid_shape[axis - 1]
            wide = np.zeros((*values.shape[:axis], size, *values.shape[axis + 1 :]))
            own = values[(*before, slice(1, None))] if odd else values
            wide[(*before, slice(0, own.shape[axis]))] = own
            values = (fft.dst if odd else fft.dct)(wide, type=3, axis=axis, overwrite_x=True)
        return values

    def _from_half(self, values: Array, parity: Parity) -> Array:
        for axis, odd in reversed(list(enumerate(parity, start=1))):
            before, high = (slice(None),) * axis, self.highest[axis - 1]
            sums = (fft.dst if odd else fft.dct)(values, type=2, axis=axis)
            if odd:
                values = np.zeros((*sums.shape[:axis], high + 1, *sums.shape[axis + 1 :]))
                values[(*before, slice(1, None))] = sums[(*before, slice(0, high))]
            else:
                values = sums[(*before, slice(0, high + 1))]
        scale = float(np.prod([0.5 / size for size in self.grid_shape]))
        return values * (scale * (-1j) ** sum(parity))

    def real(self, tables: Array) -> Array:
        """Tables (…, *shape) without what belongs to no real function: of the modes with k_d = 0, one half is the
        conjugate of the other.

        Transforms ignore the remainder, so that only the linear part would ever act on it, and it could grow. With
        reflection symmetry the linear part treats it like the function itself, and it stays rounding.
        """
        if self.parities:
            return tables
        plane = tables[..., 0]
        turned = plane
        for axis in range(plane.ndim - self.dim + 1, plane.ndim):
            turned = np.roll(np.flip(turned, axis), 1, axis)
        clean = tables.copy()
        clean[..., 0] = 0.5 * (plane + turned.conj())
        return clean

    def resized(self, tables: Array, highest: Sequence[int]) -> Array:
        """Tables (…, *other shape) with other highest modes as tables of these modes: padded with zeros or
        truncated."""
        if tuple(highest) == self.highest:
            return tables
        common = tuple(map(min, highest, self.highest))
        result = np.zeros((*tables.shape[: -self.dim], *self.shape), dtype=tables.dtype)
        mirrored = bool(self.parities)
        pairs = zip(blocks(common, highest, mirrored), blocks(common, self.highest, mirrored), strict=True)
        for (_, source), (_, target) in pairs:
            here: Any = (Ellipsis, *target)
            there: Any = (Ellipsis, *source)
            result[here] = tables[there]
        return result

    def exponentials(self, points: Array) -> tuple[Array, ...]:
        """e^(ik(x - lower)) of every axis, (M, 2K + 1) and (M, K + 1), with their multiplicities."""
        factors = []
        for axis, (frequency, weights) in enumerate(zip(self.frequencies, self.multiplicities, strict=True)):
            phase = np.multiply.outer(points[:, axis] - self.bounds[axis][0], frequency)
            factors.append(np.exp(1j * phase) * weights)
        return tuple(factors)

    def restricted(self, waves: tuple[Array, ...], highest: Sequence[int]) -> tuple[Array, ...]:
        """The exponentials of the modes up to ``highest``, out of those of these modes."""
        if self.parities:
            return tuple(one[:, : k + 1] for one, k in zip(waves, highest, strict=True))
        around = [
            np.concatenate([one[:, : k + 1], one[:, one.shape[1] - k :]], axis=1)
            for one, k in zip(waves[:-1], highest[:-1], strict=True)
        ]
        return (*around, waves[-1][:, : highest[-1] + 1])

    def at(self, tables: Array, waves: tuple[Array, ...], indices: Sequence[MultiIndex], first: int = 0) -> Array:
        """(s, indices, M): derivatives of the functions of tables (s, *shape) at the points of ``waves``.

        first : the part of a state whose table is the first one, where parities matter
        """
        if not self.parities:
            factors = [self._derived(wave, axis, indices) for axis, wave in enumerate(waves)]
            return np.asarray(self._sums(tables, factors).real)
        values = []
        for part, table in enumerate(tables, start=first):
            factors = []
            for axis, (wave, odd) in enumerate(zip(waves, self.parities[part], strict=True)):
                own = self._derived(wave, axis, indices)
                factors.append(own.imag if odd else own.real)
            values.append(self._sums(_real_part(table, self.parities[part])[None], factors)[0])
        return np.stack(values)

    def _derived(self, wave: Array, axis: int, indices: Sequence[MultiIndex]) -> Array:
        """Derivatives of the exponentials of an axis, (indices, M, modes), or (1, M, modes) where all orders are 0."""
        orders = np.array([index[axis] for index in indices])
        return wave * ((1j * self.frequencies[axis]) ** orders[:, None])[:, None] if orders.any() else wave[None]

    def _sums(self, tables: Array, factors: list[Array]) -> Array:
        """Sums (s, indices, M) of tables (s, *shape) times the factors of each axis."""
        shape = (max(map(len, factors)), factors[0].shape[1])
        first = np.broadcast_to(factors[0], (*shape, self.shape[0])).reshape(-1, self.shape[0])
        if self.dim == 1:
            return (tables @ first.T).reshape(-1, *shape)
        sums = first @ tables.reshape(len(tables), self.shape[0], -1)  # one product reads the tables once for all
        for axis, one in enumerate(factors[1:], start=1):
            own = sums.reshape(len(tables), *shape, self.shape[axis], -1)
            sums = np.einsum("simkr,imk->simr", own, np.broadcast_to(one, (*shape, self.shape[axis])))
        return sums.reshape(-1, *shape)


def _real_part(table: Array, parity: Parity) -> Array:
    """i^n c, which is real for a function that is odd along n axes."""
    turns = sum(parity) % 4
    part: Array = table.imag if turns % 2 else table.real
    return -part if turns in (1, 2) else part
