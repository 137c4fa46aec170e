"""The solution of an evolution as a function of space-time points, with exact derivatives in space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rannpde.pde.lines.basis import Basis
from rannpde.pde.lines.fourier import Spectral
from rannpde.pde.lines.galerkin import Galerkin
from rannpde.pde.lines.march import Path
from rannpde.pde.problem.evolution import Component, Evolution

Array = np.ndarray
MultiIndex = tuple[int, ...]

BLOCK_ENTRIES = 2**21
"""Entries of the largest temporary matrix: 16 MiB."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """One dynamics on one interval of time."""

    system: Galerkin | Spectral
    path: Path

    def states(self, times: Array, rate: bool) -> Array:
        """The state (n, M), or its rate of change, at M times."""
        states = self.path(times)
        return self.system.rates(times, states) if rate else states


def component_at(
    system: Galerkin | Spectral,
    component: Component,
    times: Array,
    states: Array,
    points: Array,
    index: MultiIndex,
    order: int,
) -> Array:
    """(M,): a space derivative of a component from states (n, M); ``order`` is the time derivative of boundary data."""
    if isinstance(system, Spectral):
        place = system.evolution.components.index(component)
        block = states.reshape(-1, system.count, len(times))[place]
        return np.einsum("mk,km->m", system.modes.at(points, index), block).real
    basis: Basis = system.bases[component.field]
    values, lifting = basis.at(points, index)
    data = basis.data(times, order)
    result = np.einsum("mr,rm->m", values, basis.coefficients(states[system.slices[component]], data))
    return result + np.einsum("mk,km->m", lifting, data) if len(data) else result


class StateFunction(Protocol):
    """Functions of space-time points: (M, n) → (M, fields)."""

    def __call__(self, points: Array) -> Array: ...

    def derivative(self, points: Array, derivative: MultiIndex) -> Array: ...


@dataclass(frozen=True, eq=False)
class Evolved:
    """All fields on the part of the time interval that was reached; NaN beyond it.

    Derivatives in space are exact. A first time derivative beyond the state's own is the projected right-hand side of
    the equation, so that the residual shows what the features leave; higher ones are central differences of it.
    """

    evolution: Evolution
    stretches: tuple[Stretch, ...]

    @property
    def end(self) -> float:
        """The last time reached."""
        return self.stretches[-1].path.end

    @property
    def dim(self) -> int:
        return self.evolution.domain.dim

    @property
    def widths(self) -> tuple[int, ...]:
        """Features (or modes) of each stretch of time."""
        return tuple(columns_of(stretch.system) for stretch in self.stretches)

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * self.dim)

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """∂^α of every field at points (M, n): (M, fields)."""
        result = np.full((len(points), len(self.evolution.orders)), np.nan)
        for stretch, rows in self._blocks(points):
            for k, (name, order) in enumerate(self.evolution.orders.items()):
                result[rows, k] = self._field(stretch, name, order, points[rows], derivative)
        return result

    def _blocks(self, points: Array) -> Iterator[tuple[Stretch, Array]]:
        """Rows of the points on each stretch, in blocks of bounded memory."""
        start = -np.inf
        for stretch in self.stretches:
            rows = np.flatnonzero((points[:, 0] > start) & (points[:, 0] <= stretch.path.end))
            rows = rows[np.argsort(points[rows, 0], kind="stable")]
            size = max(1, BLOCK_ENTRIES // _width(stretch.system))
            for first in range(0, len(rows), size):
                yield stretch, rows[first : first + size]
            start = stretch.path.end

    def _field(self, stretch: Stretch, name: str, order: int, points: Array, derivative: MultiIndex) -> Array:
        in_time, in_space = derivative[0], derivative[1:]
        if in_time > order:
            return self._difference(stretch, name, order, points, derivative)
        times, rate = points[:, 0], in_time == order
        states = stretch.states(times, rate)
        component = Component(name, order - 1 if rate else in_time)
        return component_at(stretch.system, component, times, states, points[:, 1:], in_space, in_time)

    def _difference(self, stretch: Stretch, name: str, order: int, points: Array, derivative: MultiIndex) -> Array:
        """Second-order difference in time of one derivative less, within the stretch."""
        first, last = stretch.path.times[0], stretch.path.end
        step = 1e-4 * (last - first)
        lower, upper = (np.clip(points[:, 0] + sign * step, first, last) for sign in (-1, 1))
        less = (derivative[0] - 1, *derivative[1:])
        ends = [np.column_stack([t, points[:, 1:]]) for t in (lower, upper)]
        before, after = (self._field(stretch, name, order, p, less) for p in ends)
        return (after - before) / (upper - lower)


def columns_of(system: Galerkin | Spectral) -> int:
    """Features behind a system: random ones, or Fourier modes."""
    if isinstance(system, Spectral):
        return system.count
    return max(basis.features.columns for basis in system.bases.values())


def _width(system: Galerkin | Spectral) -> int:
    """Columns of the widest temporary of an evaluation."""
    if isinstance(system, Spectral):
        return 2 * max(system.count, len(system.modes.points))
    return max(max(b.features.columns, len(b.rule.nodes)) for b in system.bases.values())


def fields_at(system: Galerkin | Spectral, time: float, state: Array, points: Array) -> Array:
    """(M, fields): the fields at points (M, d) of space for one state (n,) at one time."""
    evolution = system.evolution
    times, states = np.full(len(points), time), np.repeat(state[:, None], len(points), axis=1)
    still = (0,) * evolution.domain.space.dim
    parts = [component_at(system, Component(name, 0), times, states, points, still, 0) for name in evolution.orders]
    return np.stack(parts, axis=1)


def difference(one: StateFunction, other: StateFunction, points: Array) -> dict[int, float]:
    """Field number → relative l² distance of two solutions at points (M, n)."""
    first, second = one(points), other(points)
    norms = np.linalg.norm(second, axis=0)
    return dict(enumerate(np.linalg.norm(first - second, axis=0) / np.where(norms > 0, norms, 1.0)))
