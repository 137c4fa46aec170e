"""The solution of the method of lines: fields in space-time, from states at all times and a basis in space."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.polynomial import legendre

from rannpde.arrays import Array, MultiIndex, block_rows
from rannpde.errors import reject, require
from rannpde.network.plain import PlainFunction
from rannpde.pde.lines.quantised import LARGE_TABLE, quantise, rounding_step
from rannpde.pde.problem.evolution import Component, Evolution
from rannpde.pde.time.dynamics import Dynamics
from rannpde.pde.time.trajectory import Trajectory

PointEvaluation = Callable[[Component, Array, Array, Array, MultiIndex, int], Array]
"""The signature of ``SemiDiscreteSystem.at``."""
SERIES_DEGREE, SERIES_ROUNDING, SERIES_ERROR = 15, 2e-15, 1e-11
"""Degree of the polynomials that stand for a step in exported functions; relative size of coefficients left out, which
are rounding; largest relative difference from the function itself, which boundary values that vary fast would leave."""


class SemiDiscreteSystem(Dynamics, Protocol):
    """An evolution projected on a basis in space: a Dynamics whose states can be evaluated anywhere."""

    @property
    def evolution(self) -> Evolution: ...

    @property
    def basis_kind(self) -> str:
        """ "features", "tensor" or "fourier"."""
        ...

    @property
    def label(self) -> str:
        """The basis in words, for reports."""
        ...

    @property
    def scales(self) -> Mapping[Component, float]:
        """Size of each component (root mean square over space), to which errors are relative."""
        ...

    @property
    def columns(self) -> int:
        """Random features, or Fourier modes, of the basis."""
        ...

    @property
    def rank(self) -> int:
        """Dimension of the basis of a field."""
        ...

    @property
    def nodes(self) -> Array:
        """The points (Q, d) at which products of fields are formed."""
        ...

    @property
    def memory_per_point(self) -> int:
        """Numbers held for each point at which states are evaluated."""
        ...

    def initial_state(self) -> Array: ...

    def with_evolution(self, evolution: Evolution) -> SemiDiscreteSystem:
        """The system on this basis for an evolution that differs in numbers and functions only."""
        ...

    def fastest_growth(self, time: float, state: Array) -> float:
        """Largest real part of an eigenvalue of the Jacobian."""
        ...

    def at(
        self, component: Component, times: Array, states: Array, points: Array, index: MultiIndex, order: int
    ) -> Array:
        """(M,): a space derivative of a component from states (n, M); ``order`` is that of boundary data in time."""
        ...

    def derivatives(
        self, trajectory: Trajectory, points: Array, derivatives: Sequence[MultiIndex]
    ) -> dict[MultiIndex, Array]:
        """∂^α of every field along a trajectory at points (M, n), sorted by time: (M, fields) each."""
        ...

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays of the basis, for a file."""
        ...


@dataclass(frozen=True, eq=False)
class TimeSegment:
    """One semi-discrete system on one interval of time, with its trajectory."""

    system: SemiDiscreteSystem
    trajectory: Trajectory

    def pack(self, error: float | None = None) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays for a file; ``error`` is the relative one that large tables of modes may be rounded by."""
        about, arrays = self.system.pack()
        own = self.trajectory
        status = None if own.status is None else own.status.name
        events = {name: list(times) for name, times in own.events.items()}
        about |= {"status": status, "detail": own.detail, "end": own.end, "events": events}
        states = own.steps[0].stacked(own.steps)
        if error is not None and "tables" in states and states["tables"].nbytes > LARGE_TABLE:
            count = max(sum(table[0].size for table in step.tables) for step in own.steps)  # type: ignore[attr-defined]
            step = rounding_step(error, min(self.system.scales.values()), count)
            packed = quantise(states["tables"], step)
            if packed is not None:
                states["tables"] = packed
                about["rounding_step"] = step
        return about, arrays | states


@dataclass(frozen=True, eq=False)
class SpaceTimeSolution:
    """All fields on the part of the time interval that was reached; NaN beyond it.

    Derivatives are those of the function itself, exact in space and of its polynomials in time: the residual
    contains the errors of the basis and of the time integration.
    """

    evolution: Evolution
    segments: tuple[TimeSegment, ...]

    @property
    def start(self) -> float:
        return self.segments[0].trajectory.times[0]

    @property
    def trajectory(self) -> Trajectory:
        """The trajectory of the last segment, with the reason and the time at which the integration ended."""
        return self.segments[-1].trajectory

    @property
    def end(self) -> float:
        """The last time reached."""
        return self.trajectory.end

    @property
    def whole(self) -> bool:
        """Whether the last time of the problem was reached."""
        return self.end >= self.evolution.domain.time[1]

    @property
    def events(self) -> dict[str, tuple[float, ...]]:
        """Event → the times at which it happened, on all segments."""
        names = dict.fromkeys(name for segment in self.segments for name in segment.trajectory.events)
        return {name: tuple(t for s in self.segments for t in s.trajectory.events.get(name, ())) for name in names}

    @property
    def dim(self) -> int:
        return self.evolution.domain.dim

    @property
    def widths(self) -> tuple[int, ...]:
        """Features (or modes) of each segment of time."""
        return tuple(segment.system.columns for segment in self.segments)

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * self.dim)

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """∂^α of every field at points (M, n): (M, fields)."""
        return self.derivatives(points, [derivative])[derivative]

    def derivatives(self, points: Array, derivatives: Sequence[MultiIndex]) -> dict[MultiIndex, Array]:
        """Several derivatives of every field at points (M, n): (M, fields) each."""
        values = {index: np.full((len(points), len(self.evolution.orders)), np.nan) for index in derivatives}
        for segment, rows in self._blocks(points):
            for index, part in segment.system.derivatives(segment.trajectory, points[rows], derivatives).items():
                values[index][rows] = part
        return values

    def on_grid(self, times: Array, points: Array) -> Array:
        """(s, M, fields): the fields at all points (M, d) of space for all times (s,).

        A basis that can be evaluated once for all times has a method ``on_grid`` of its own.
        """
        count = len(points)
        values = np.full((len(times), count, len(self.evolution.orders)), np.nan)
        start = -np.inf
        for segment in self.segments:
            rows = np.flatnonzero((times > start) & (times <= segment.trajectory.end))
            start, whole = segment.trajectory.end, getattr(segment.system, "on_grid", None)
            if not len(rows):
                continue
            if whole is None:
                pairs = np.column_stack([np.repeat(times[rows], count), np.tile(points, (len(rows), 1))])
                values[rows] = self(pairs).reshape(len(rows), count, -1)
                continue
            states = segment.trajectory(times[rows])
            for k, name in enumerate(self.evolution.orders):
                values[rows, :, k] = whole(Component(name, 0), times[rows], states, points)
        return values

    def _blocks(self, points: Array) -> Iterator[tuple[TimeSegment, Array]]:
        """Rows of the points on each segment, sorted by time, in blocks of bounded memory."""
        start = -np.inf
        for segment in self.segments:
            rows = np.flatnonzero((points[:, 0] > start) & (points[:, 0] <= segment.trajectory.end))
            rows = rows[np.argsort(points[rows, 0], kind="stable")]
            size = block_rows(2 * segment.system.memory_per_point)
            for first in range(0, len(rows), size):
                yield segment, rows[first : first + size]
            start = segment.trajectory.end

    def plain(self, single: bool) -> PlainFunction:
        """This function in plain NumPy: features in space, a polynomial in time for each step.

        An InputError for bases that are not random features, and where boundary values are no polynomials in time.
        """
        layers, numbers, boxes, centres, halves, tables = [], [], [], [], [], []
        local, inverse = _time_nodes()
        for number, segment in enumerate(self.segments):
            layer = getattr(segment.system, "plain_layer", None)
            if layer is None:
                reject("solution", segment.system.label, "in random features", "solve with method='cells' to export it")
            layers.append(layer())
            _, _, _, centre, halfwidth = layers[-1]
            space = np.asarray(self.evolution.domain.space.bounds, dtype=float)
            for start, end in pairwise(segment.trajectory.times):
                times = 0.5 * (start + end) + 0.5 * (end - start) * local
                values = segment.system.feature_coefficients(times, segment.trajectory(times))  # type: ignore[attr-defined]
                tables.append(np.einsum("dm,jfm->djf", inverse, values))
                numbers.append(number)
                boxes.append(np.concatenate([[[start, end]], space]))
                centres.append(np.append(0.5 * (start + end), centre))
                halves.append(np.append(0.5 * (end - start), halfwidth))
        width = max(weights.shape[1] for _, weights, *_ in layers)
        sizes = np.array([np.abs(table).max(axis=(1, 2)) / np.abs(table).max() for table in tables]).max(axis=0)
        degree = max(int(np.flatnonzero(sizes > SERIES_ROUNDING).max()), 1)
        full = [np.pad(t[: degree + 1, :-1], ((0, 0), (0, width + 1 - t.shape[1]), (0, 0))) for t in tables]
        function = PlainFunction(
            layers[0][0], single, boxes=boxes, centre=centres, halfwidth=halves, layer=numbers,
            weights=[np.pad(w, ((1, 0), (0, width - w.shape[1]))) for _, w, *_ in layers],
            biases=[np.pad(b, (0, width - len(b))) for _, _, b, *_ in layers],
            coefficients=[np.concatenate([f, t[: degree + 1, -1:]], axis=1) for f, t in zip(full, tables, strict=True)],
        )  # fmt: skip
        times = np.array([one for segment in self.segments for one in segment.trajectory.times])
        inside = self.evolution.domain.space.sample(2 * len(times), rng=0)
        between = np.concatenate([times[:-1] + share * np.diff(times) for share in (1 / 3, 7 / 8)])
        points = np.column_stack([between, inside[2:]])
        exact = self(points)
        close = np.abs(np.reshape(function(points), exact.shape) - exact).max() <= SERIES_ERROR * np.abs(exact).max()
        require(
            bool(close), "solution", "one whose boundary values vary fast in time", "polynomial in time on its steps"
        )
        return function

    def pack(self, error: float | None = None) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays for a file, with that relative error at most; the problem itself is stored as text."""
        header: dict[str, Any] = {"function": "evolved", "segments": []}
        arrays: dict[str, Array] = {}
        for number, segment in enumerate(self.segments):
            about, own = segment.pack(error)
            header["segments"].append(about)
            arrays |= {f"{number}.{name}": array for name, array in own.items()}
        return header, arrays


def _time_nodes() -> tuple[Array, Array]:
    """Nodes (m,) in (-1, 1), and the matrix (m, m) from values there to coefficients of a Legendre series."""
    local = legendre.leggauss(SERIES_DEGREE + 1)[0]
    return local, np.linalg.inv(legendre.legvander(local, SERIES_DEGREE))


def by_component(
    system: SemiDiscreteSystem,
    trajectory: Trajectory,
    points: Array,
    derivatives: Sequence[MultiIndex],
    at: PointEvaluation | None = None,
) -> dict[MultiIndex, Array]:
    """``SemiDiscreteSystem.derivatives`` by its method ``at``, or by another like it, field by field.

    Derivatives that differ in time only follow one another.
    """
    states: dict[int, Array] = {}  # of each order in time, shared by the fields
    values = {index: np.empty((len(points), len(system.evolution.orders))) for index in derivatives}
    times, evaluate = points[:, 0], at or system.at
    moments, rows = np.unique(times, return_inverse=True)
    for index in sorted(values, key=lambda index: index[1:]):
        for k, (name, order) in enumerate(system.evolution.orders.items()):
            # the component of the highest level that helps, differentiated in time for the rest
            level = min(index[0], order - 1)
            rest = index[0] - level
            if rest not in states:
                own = trajectory(moments, rest)
                # one state for all points has no stride
                states[rest] = np.broadcast_to(own, (len(own), len(times))) if len(moments) == 1 else own[:, rows]
            component = Component(name, level)
            values[index][:, k] = evaluate(component, times, states[rest], points[:, 1:], index[1:], index[0])
    return values


def fields_at(system: SemiDiscreteSystem, time: float, state: Array, points: Array) -> Array:
    """(M, fields): the fields at points (M, d) of space for one state (n,) at one time."""
    evolution = system.evolution
    times, states = np.full(len(points), time), np.broadcast_to(state[:, None], (len(state), len(points)))
    value = (0,) * evolution.domain.space.dim
    parts = [system.at(Component(name, 0), times, states, points, value, 0) for name in evolution.orders]
    return np.stack(parts, axis=1)
