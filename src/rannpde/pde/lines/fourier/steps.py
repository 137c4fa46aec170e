"""Truncated storage of a step in Fourier modes: a polynomial in time whose coefficients hold only significant modes.

A square of a thousand modes a side, some hundred steps and five coefficients for each step are gigabytes. The higher
coefficients of a step are small, and of each only a box of low modes is above the tolerance; coefficients that are
small enough are stored in single precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.polynomial import legendre

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.lines.fourier.modes import FourierBasis, blocks
from rannpde.pde.time.dense_output import LegendreStep
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.rounding import EPS

Completed = Callable[[Array, Array], Array]
"""(times (s,), states (n, s)) → states with further fields appended."""
SUM_OVERHEAD = 50_000
"""Entries: the overhead of summing the tables for one time, as the number of entries that costs as much."""
LARGEST_SINGLE = float(np.finfo(np.float32).max)
"""The largest number of four bytes."""
SINGLE = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class DerivativeRequest:
    """A derivative: part of the state, order in time, orders in space."""

    part: int
    time_order: int
    index: MultiIndex


@dataclass(frozen=True, eq=False)
class TruncatedStep:
    """Σ_d tables[d] P_d on [t_old, t]; tables[d] (parts, *shape) holds the modes up to highest[d], some of
    ``modes``.

    rounding : the error of tables in single precision, relative to the scales of the parts
    """

    t_old: float
    t: float
    modes: FourierBasis
    highest: tuple[tuple[int, ...], ...]
    tables: tuple[Array, ...]
    rounding: float = EPS

    @property
    def parts(self) -> int:
        return len(self.tables[0])

    def weights(self, times: Array, order: int) -> Array:
        """(M, degree + 1): the factor of each table in the derivative of that order in time."""
        scale = 2.0 / (self.t - self.t_old)
        count = len(self.tables)
        series = legendre.legder(np.eye(count), order, scl=scale, axis=0) if order else np.eye(count)
        return legendre.legvander(scale * (np.asarray(times) - self.t_old) - 1.0, len(series) - 1) @ series

    def summed(self, weights: Array, largest: Sequence[int] | None = None) -> tuple[FourierBasis, Array]:
        """A linear combination of the tables: the modes that it needs, and its table (parts, *shape)."""
        used = [d for d, weight in enumerate(weights) if weight != 0.0]
        highest = tuple(largest or (max(self.highest[d][axis] for d in used or [0]) for axis in range(self.modes.dim)))
        modes = replace(self.modes, highest=highest)
        total = np.zeros((self.parts, *modes.shape), dtype=complex)
        for d in used:
            for source, target in blocks(self.highest[d], highest, bool(modes.parities)):
                total[(slice(None), *target)] += weights[d] * self.tables[d][(slice(None), *source)]
        return modes, total

    def at(self, points: Array, requests: Sequence[DerivativeRequest]) -> Array:
        """(requests, M): derivatives at points (M, 1 + d), of time and space."""
        moments, which = np.unique(points[:, 0], return_inverse=True)
        indices = list(dict.fromkeys(one.index for one in requests))
        time_orders = sorted({one.time_order for one in requests})
        sizes = [table[0].size for table in self.tables]
        cost_at_once = len(points) * len(indices) * (sum(sizes) - max(sizes))
        cost_by_time = len(moments) * len(time_orders) * (SUM_OVERHEAD + sum(sizes))
        result = np.empty((len(requests), len(points)))
        if cost_at_once <= cost_by_time:
            values = self._each(points[:, 1:], indices)
            weights = {time_order: self.weights(points[:, 0], time_order).T for time_order in time_orders}
            for row, one in zip(result, requests, strict=True):
                row[:] = np.einsum("dm,dm->m", weights[one.time_order], values[:, one.part, indices.index(one.index)])
            return result
        rows_of = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
        for moment, rows in zip(moments, rows_of, strict=True):
            for time_order in time_orders:
                modes, tables = self.summed(self.weights(np.array([moment]), time_order)[0])
                values = modes.at(tables, modes.exponentials(points[rows, 1:]), indices)
                for row, one in zip(result, requests, strict=True):
                    if one.time_order == time_order:
                        row[rows] = values[one.part, indices.index(one.index)]
        return result

    def _each(self, points: Array, indices: Sequence[MultiIndex]) -> Array:
        """(degree + 1, parts, indices, M): space derivatives of the function of every table by itself."""
        waves = self.modes.exponentials(points)
        values = np.empty((len(self.tables), self.parts, len(indices), len(points)))
        for d, (highest, table) in enumerate(zip(self.highest, self.tables, strict=True)):
            own = self.modes.restricted(waves, highest)
            values[d] = replace(self.modes, highest=highest).at(table, own, indices)
        return values

    def stacked(self, steps: Sequence[TruncatedStep]) -> dict[str, Array]:
        """Ends (K + 1,), highest modes (K, degree + 1, d), and all tables one after the other."""
        return {
            "times": np.array([steps[0].t_old, *(step.t for step in steps)]),
            "highest": np.array([step.highest for step in steps], dtype=float),
            "tables": np.concatenate([table.ravel() for step in steps for table in step.tables], dtype=complex),
        }

    def derivative(self, times: Array, order: int) -> Array:
        """d^order/dt^order at M times: states (n, M)."""
        columns = [self.summed(row, self.modes.highest)[1].ravel() for row in self.weights(times, order)]
        return np.stack(columns, axis=1)

    def __call__(self, time: float) -> Array:
        return self.derivative(np.array([time]), 0)[:, 0]

    @classmethod
    def of(
        cls, step: LegendreStep, modes: FourierBasis, scales: Array, tol: float, completed: Completed | None = None
    ) -> TruncatedStep:
        """A step without the modes that are below ``tol`` of the scales.

        scales (components,) : sizes of the components; completed : appends further fields to states, whose scale is
            their own size
        """
        series = np.array(step.series.T)
        series[0] += step.y_old
        count = len(series)
        if completed is not None:
            nodes = np.cos(np.pi * np.arange(count - 1, -1, -1) / (count - 1))
            times = step.t_old + 0.5 * (nodes + 1.0) * (step.t - step.t_old)
            values = legendre.legvander(nodes, count - 1)
            whole = completed(times, (values @ series).T)
            series = np.linalg.solve(values, whole.T)
        tables = series.reshape(count, -1, *modes.shape)
        sizes = modes.norms(tables)
        added = np.maximum(sizes[:, len(scales) :].max(axis=0), 1e-300)
        relative = np.concatenate([scales, added])
        allowed = tol * relative
        highest, truncated, rounding = [], [], EPS
        for table, size in zip(tables, sizes, strict=True):
            box = _significant_modes(table, modes, allowed)
            cut = replace(modes, highest=box).resized(table, modes.highest)
            accurate = bool((SINGLE * size < MUCH_SMALLER * allowed).all())
            single = accurate and bool(np.abs(cut).max(initial=0.0) < LARGEST_SINGLE)
            highest.append(box)
            truncated.append(cut.astype(np.complex64) if single else cut)
            rounding += 0.5 * SINGLE * float((size / relative).max()) if single else 0.0
        return cls(float(step.t_old), float(step.t), modes, tuple(highest), tuple(truncated), rounding)


def _significant_modes(table: Array, modes: FourierBasis, allowed: Array) -> tuple[int, ...]:
    """The highest modes of each axis beyond which less than ``allowed`` (parts,) of a table (parts, *shape) lies."""
    squares = (table.real**2 + table.imag**2) * reduce(np.multiply.outer, modes.multiplicities)
    highest = []
    for axis, (numbers, high) in enumerate(zip(modes.numbers, modes.highest, strict=True)):
        others = tuple(1 + k for k in range(modes.dim) if k != axis)
        along = squares.sum(axis=others) if others else squares
        power = np.zeros((len(table), high + 2))
        for sign in (1, -1):
            chosen = (np.sign(numbers) == sign) | (sign == 1) & (numbers == 0)
            power[:, np.abs(numbers[chosen])] += along[:, chosen]
        above = np.cumsum(power[:, ::-1], axis=1)[:, ::-1][:, 1:]  # of the modes beyond 0, 1, …, high
        highest.append(int(np.argmax((above * modes.dim <= (allowed**2)[:, None]).all(axis=0))))
    return tuple(highest)
