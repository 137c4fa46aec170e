"""What a march leaves: fields as functions of space-time, from states at all times and functions of space."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rannpde.arrays import Array, MultiIndex, block_rows
from rannpde.pde.lines.march import Trajectory
from rannpde.pde.lines.periodic.kept import KeptStep, Wanted
from rannpde.pde.lines.radau import Dynamics
from rannpde.pde.problem.evolution import Component, Evolution


class ProjectedSystem(Dynamics, Protocol):
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

    @property
    def held(self) -> int:
        """Numbers held for each point at which states are evaluated."""
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

    system: ProjectedSystem
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
    def path(self) -> Trajectory:
        """The last stretch: how and when it ended."""
        return self.stretches[-1].path

    @property
    def end(self) -> float:
        """The last time reached."""
        return self.path.end

    @property
    def whole(self) -> bool:
        """Whether the last time of the problem was reached."""
        return self.end >= self.evolution.domain.time[1]

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
        return self.derivatives(points, [derivative])[derivative]

    def derivatives(self, points: Array, derivatives: Sequence[MultiIndex]) -> dict[MultiIndex, Array]:
        """Several of them."""
        found = {index: np.full((len(points), len(self.evolution.orders)), np.nan) for index in derivatives}
        for stretch, rows in self._blocks(points):
            if isinstance(stretch.path.steps[0], KeptStep):
                for index, values in values_of(stretch, points[rows], derivatives).items():
                    found[index][rows] = values
                continue
            states: dict[int, Array] = {}  # of each order in time, shared by the fields
            for index, result in found.items():
                for k, (name, order) in enumerate(self.evolution.orders.items()):
                    result[rows, k] = _field(stretch, name, order, points[rows], index, states)
        return found

    def _blocks(self, points: Array) -> Iterator[tuple[Stretch, Array]]:
        """Rows of the points on each stretch, sorted by time, in blocks of bounded memory."""
        start = -np.inf
        for stretch in self.stretches:
            rows = np.flatnonzero((points[:, 0] > start) & (points[:, 0] <= stretch.path.end))
            rows = rows[np.argsort(points[rows, 0], kind="stable")]
            size = block_rows(2 * stretch.system.held)
            for first in range(0, len(rows), size):
                yield stretch, rows[first : first + size]
            start = stretch.path.end

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays for a file; the problem itself travels as text."""
        from rannpde.pde.lines.files import pack_evolved  # files know every kind of system, which build on this

        return pack_evolved(self)


def _field(
    stretch: Stretch, name: str, order: int, points: Array, derivative: MultiIndex, states: dict[int, Array]
) -> Array:
    """One field's derivative: the component of the highest level that helps, differentiated in time for the rest."""
    level = min(derivative[0], order - 1)
    times, rest = points[:, 0], derivative[0] - level
    if rest not in states:
        states[rest] = stretch.path(times, rest)
    return stretch.system.at(Component(name, level), times, states[rest], points[:, 1:], derivative[1:], derivative[0])


def values_of(stretch: Stretch, points: Array, derivatives: Sequence[MultiIndex]) -> dict[MultiIndex, Array]:
    """∂^α of every field at points (M, n), from steps in Fourier modes: step by step, all derivatives together."""
    orders = stretch.system.evolution.orders
    parts = [Component(name, level) for name, order in orders.items() for level in range(order)]
    parts += [Component(name, 0) for name, order in orders.items() if order == 0]
    wanted = []
    for index in derivatives:
        for name, order in orders.items():
            level = min(index[0], max(order, 1) - 1)
            wanted.append(Wanted(parts.index(Component(name, level)), index[0] - level, index[1:]))
    found = np.empty((len(wanted), len(points)))
    for step, rows in stretch.path.by_step(points[:, 0]):
        assert isinstance(step, KeptStep)
        found[:, rows] = step.at(points[rows], wanted)
    each = found.reshape(len(derivatives), len(orders), len(points))
    return {index: values.T for index, values in zip(derivatives, each, strict=True)}


def fields_at(system: ProjectedSystem, time: float, state: Array, points: Array) -> Array:
    """(M, fields): the fields at points (M, d) of space for one state (n,) at one time."""
    evolution = system.evolution
    times, states = np.full(len(points), time), np.broadcast_to(state[:, None], (len(state), len(points)))
    still = (0,) * evolution.domain.space.dim
    parts = [system.at(Component(name, 0), times, states, points, still, 0) for name in evolution.orders]
    return np.stack(parts, axis=1)
