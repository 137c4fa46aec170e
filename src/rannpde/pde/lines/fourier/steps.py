"""What is kept of a step in Fourier modes: a polynomial in time whose coefficients hold only the modes that matter.

A square of a thousand modes a side, some hundred steps and five coefficients for each are gigabytes. The higher
coefficients of a step are small, and of each only a box of low modes is above the tolerance; single precision will do
for what is small enough.
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

Completed = Callable[[Array, Array], Array]
"""(times (s,), states (n, s)) → states with further fields behind."""
EACH = 50_000
"""To sum the tables for one moment costs as much as so many entries, before any is read."""
SINGLE = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class DerivativeRequest:
    """A derivative: part of the state, order in time, orders in space."""

    part: int
    rise: int
    index: MultiIndex


@dataclass(frozen=True, eq=False)
class TruncatedStep:
    """Σ_d tables[d] P_d on [t_old, t]; tables[d] (parts, *shape) holds the modes up to highest[d], rising boxes within
    those of ``modes``."""

    t_old: float
    t: float
    modes: FourierBasis
    highest: tuple[tuple[int, ...], ...]
    tables: tuple[Array, ...]

    @property
    def parts(self) -> int:
        return len(self.tables[0])

    def weights(self, times: Array, order: int) -> Array:
        """(M, degree + 1): what each table counts in the derivative of that order in time."""
        scale = 2.0 / (self.t - self.t_old)
        count = len(self.tables)
        series = legendre.legder(np.eye(count), order, scl=scale, axis=0) if order else np.eye(count)
        return legendre.legvander(scale * (np.asarray(times) - self.t_old) - 1.0, len(series) - 1) @ series

    def summed(self, weights: Array, largest: Sequence[int] | None = None) -> tuple[FourierBasis, Array]:
        """The modes that a combination of the tables needs, and its tables (parts, *shape)."""
        wanted = [d for d, weight in enumerate(weights) if weight != 0.0]
        highest = tuple(
            largest or (max(self.highest[d][axis] for d in wanted or [0]) for axis in range(self.modes.dim))
        )
        modes = replace(self.modes, highest=highest)
        total = np.zeros((self.parts, *modes.shape), dtype=complex)
        for d in wanted:
            for source, target in blocks(self.highest[d], highest, bool(modes.parities)):
                total[(slice(None), *target)] += weights[d] * self.tables[d][(slice(None), *source)]
        return modes, total

    def at(self, points: Array, wanted: Sequence[DerivativeRequest]) -> Array:
        """(wanted, M): derivatives at points (M, 1 + d), of time and space."""
        moments, which = np.unique(points[:, 0], return_inverse=True)
        indices = list(dict.fromkeys(one.index for one in wanted))
        rises = sorted({one.rise for one in wanted})
        sizes = [table[0].size for table in self.tables]
        together = len(points) * len(indices) * (sum(sizes) - max(sizes))
        alone = len(moments) * len(rises) * (EACH + sum(sizes))
        found = np.empty((len(wanted), len(points)))
        if together <= alone:
            values = self._each(points[:, 1:], indices)
            weights = {rise: self.weights(points[:, 0], rise).T for rise in rises}
            for row, one in zip(found, wanted, strict=True):
                row[:] = np.einsum("dm,dm->m", weights[one.rise], values[:, one.part, indices.index(one.index)])
            return found
        rows_of = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
        for moment, rows in zip(moments, rows_of, strict=True):
            for rise in rises:
                modes, tables = self.summed(self.weights(np.array([moment]), rise)[0])
                values = modes.at(tables, modes.waves(points[rows, 1:]), indices)
                for row, one in zip(found, wanted, strict=True):
                    if one.rise == rise:
                        row[rows] = values[one.part, indices.index(one.index)]
        return found

    def _each(self, places: Array, indices: Sequence[MultiIndex]) -> Array:
        """(degree + 1, parts, indices, M): of every table by itself."""
        waves = self.modes.waves(places)
        found = np.empty((len(self.tables), self.parts, len(indices), len(places)))
        for d, (highest, table) in enumerate(zip(self.highest, self.tables, strict=True)):
            own = self.modes.narrowed(waves, highest)
            found[d] = replace(self.modes, highest=highest).at(table, own, indices)
        return found

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
        """The step with what ``completed`` adds to its states, without what is below ``tol`` of the scales.

        scales (components,); for what is added, the size of it counts
        """
        series = np.array(step.series.T)
        series[0] += step.y_old
        count = len(series)
        if completed is not None:
            places = np.cos(np.pi * np.arange(count - 1, -1, -1) / (count - 1))
            times = step.t_old + 0.5 * (places + 1.0) * (step.t - step.t_old)
            values = legendre.legvander(places, count - 1)
            whole = completed(times, (values @ series).T)
            series = np.linalg.solve(values, whole.T)
        tables = series.reshape(count, -1, *modes.shape)
        sizes = modes.norms(tables)
        added = np.maximum(sizes[:, len(scales) :].max(axis=0), 1e-300)
        allowed = tol * np.concatenate([scales, added])
        highest, kept = [], []
        for table, size in zip(tables, sizes, strict=True):
            box = _needed(table, modes, allowed)
            cut = replace(modes, highest=box).fitted(table, modes.highest)
            single = bool((SINGLE * size < 0.1 * allowed).all())
            highest.append(box)
            kept.append(cut.astype(np.complex64) if single else cut)
        return cls(float(step.t_old), float(step.t), modes, tuple(highest), tuple(kept))


def _needed(table: Array, modes: FourierBasis, allowed: Array) -> tuple[int, ...]:
    """The smallest highest modes of each axis that leave less than ``allowed`` (parts,) of tables (parts, *shape)."""
    squares = (table.real**2 + table.imag**2) * reduce(np.multiply.outer, modes.multiplicities)
    found = []
    for axis, (numbers, high) in enumerate(zip(modes.numbers, modes.highest, strict=True)):
        others = tuple(1 + k for k in range(modes.dim) if k != axis)
        along = squares.sum(axis=others) if others else squares
        power = np.zeros((len(table), high + 2))
        for sign in (1, -1):
            chosen = (np.sign(numbers) == sign) | (sign == 1) & (numbers == 0)
            power[:, np.abs(numbers[chosen])] += along[:, chosen]
        above = np.cumsum(power[:, ::-1], axis=1)[:, ::-1][:, 1:]  # of the modes beyond 0, 1, …, high
        found.append(int(np.argmax((above * modes.dim <= (allowed**2)[:, None]).all(axis=0))))
    return tuple(found)
