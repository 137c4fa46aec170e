"""The solution of an evolution as a function of space-time points: dynamics on stretches of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rannpde.arrays import BLOCK_BYTES, Array, MultiIndex, block_rows
from rannpde.domains.norms import relative_errors
from rannpde.pde.functions import State
from rannpde.pde.lines.march import Trajectory
from rannpde.pde.lines.radau import Dynamics
from rannpde.pde.lines.tensor import Products
from rannpde.pde.problem.evolution import Component, Evolution
from rannpde.pde.watch import Ending


class System(Dynamics, Protocol):
    """An evolution projected on functions of space: a Dynamics whose states can be evaluated anywhere."""

    @property
    def evolution(self) -> Evolution: ...

    @property
    def scales(self) -> Mapping[Component, float]:
        """Size of each component (root mean square over space), to which errors are relative."""
        ...

    @property
    def columns(self) -> int:
        """Features, or modes, behind it."""
        ...

    @property
    def rank(self) -> int: ...

    @property
    def nodes(self) -> Array:
        """Where products are formed, (Q, d)."""
        ...

    def initial_state(self) -> Array: ...

    def fastest_growth(self, time: float, state: Array) -> float:
        """Largest real part of an eigenvalue of the Jacobian."""
        ...

    def at(
        self, component: Component, times: Array, states: Array, points: Array, index: MultiIndex, order: int
    ) -> Array:
        """(M,): a space derivative of a component from states (n, M); ``order`` is that of boundary data in time."""
        ...


@dataclass(frozen=True, eq=False)
class Stretch:
    """One system on one interval of time."""

    system: System
    path: Trajectory


@dataclass(frozen=True, eq=False)
class Evolved:
    """All fields on the part of the time interval that was reached; NaN beyond it.

    Derivatives are those of the function itself, in space exact, in time of its polynomials: the residual shows what
    the features leave and what the march leaves.
    """

    evolution: Evolution
    stretches: tuple[Stretch, ...]

    @property
    def start(self) -> float:
        return self.stretches[0].path.times[0]

    @property
    def end(self) -> float:
        """The last time reached."""
        return self.stretches[-1].path.end

    @property
    def reliable(self) -> float:
        """The time up to which passes are compared."""
        return self.stretches[-1].path.reliable

    @property
    def whole(self) -> bool:
        """Whether the last time of the problem was reached."""
        return self.end >= self.evolution.domain.time[1]

    @property
    def broken(self) -> bool:
        """Whether a singularity, not the caller, ended the march."""
        return self.stretches[-1].path.broken

    @property
    def ending(self) -> Ending | None:
        return self.stretches[-1].path.ending

    @property
    def detail(self) -> str:
        return self.stretches[-1].path.detail

    @property
    def events(self) -> dict[str, tuple[float, ...]]:
        """Event → the times at which it happened, on all stretches."""
        names = dict.fromkeys(name for stretch in self.stretches for name in stretch.path.found)
        return {name: tuple(t for s in self.stretches for t in s.path.found.get(name, ())) for name in names}

    @property
    def dim(self) -> int:
        return self.evolution.domain.dim

    @property
    def widths(self) -> tuple[int, ...]:
        """Features (or modes) of each stretch of time."""
        return tuple(stretch.system.columns for stretch in self.stretches)

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * self.dim)

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """∂^α of every field at points (M, n): (M, fields)."""
        result = np.full((len(points), len(self.evolution.orders)), np.nan)
        for stretch, rows in self._blocks(points):
            for k, (name, order) in enumerate(self.evolution.orders.items()):
                result[rows, k] = _field(stretch, name, order, points[rows], derivative)
        return result

    def _blocks(self, points: Array) -> Iterator[tuple[Stretch, Array]]:
        """Rows of the points on each stretch, sorted by time, in blocks of bounded memory."""
        start = -np.inf
        for stretch in self.stretches:
            rows = np.flatnonzero((points[:, 0] > start) & (points[:, 0] <= stretch.path.end))
            rows = rows[np.argsort(points[rows, 0], kind="stable")]
            system = stretch.system
            held = system.rank if isinstance(system, Products) else max(system.columns, len(system.nodes))
            size = block_rows(2 * held, BLOCK_BYTES)
            for first in range(0, len(rows), size):
                yield stretch, rows[first : first + size]
            start = stretch.path.end

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays for a file; the problem itself travels as text."""
        from rannpde.pde.lines.files import pack_evolved  # files know every kind of system, which build on this

        return pack_evolved(self)


def _field(stretch: Stretch, name: str, order: int, points: Array, derivative: MultiIndex) -> Array:
    """One field's derivative: the component of the highest level that helps, differentiated in time for the rest."""
    level = min(derivative[0], order - 1)
    times = points[:, 0]
    states = stretch.path(times, derivative[0] - level)
    return stretch.system.at(Component(name, level), times, states, points[:, 1:], derivative[1:], derivative[0])


def fields_at(system: System, time: float, state: Array, points: Array) -> Array:
    """(M, fields): the fields at points (M, d) of space for one state (n,) at one time."""
    evolution = system.evolution
    times, states = np.full(len(points), time), np.repeat(state[:, None], len(points), axis=1)
    still = (0,) * evolution.domain.space.dim
    parts = [system.at(Component(name, 0), times, states, points, still, 0) for name in evolution.orders]
    return np.stack(parts, axis=1)


def distance(one: State, other: State, points: Array) -> float:
    """The relative l² distance of two solutions at points (M, n), the largest over the fields."""
    still = (0,) * points.shape[1]
    return float(relative_errors(one.derivative(points, still), other.derivative(points, still)).max())
