"""Length scales along each axis of a box, of data and of solutions, and the profiles that a basis must represent.

    1/ℓ(x) = max over the other coordinates, time and fields of  √( (2/L)² + |∂_x u|²/U² ) + √( |∂_xx u|/U ) ,

for each axis by itself: sin 20πx sin πy needs a fine basis along x only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.domain import Box
from rannpde.network.adapted import inverse_length
from rannpde.pde.lines.features.resolution import Resolution, grid_points, smoothed
from rannpde.pde.lines.settings import IterationSettings
from rannpde.pde.lines.solution import SpaceTimeSolution, TimeSegment
from rannpde.pde.lines.tensor.basis import AxisBasis
from rannpde.pde.lines.tensor.system import TensorSystem
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.problem.data import space_fields
from rannpde.pde.problem.evolution import Component, Evolution
from rannpde.pde.residual import field_sizes
from rannpde.pde.tolerance import ALGEBRA_SHARE

DATA_POINTS = {2: 513, 3: 97}
"""Points per axis of the grid on which the data of a problem are sampled, by dimension."""

PROFILE_TIMES = 7
"""Times at which a solution is sampled for its profiles: between them a front moves, but hardly changes its shape."""


@dataclass(frozen=True, eq=False)
class AxisResolution:
    """The resolution along one axis, and the highest Fourier mode if it is periodic, 0 if not."""

    resolution: Resolution
    highest: int = 0

    @property
    def bounds(self) -> tuple[float, float]:
        lower, upper = self.resolution.space.bounds[0]
        return float(lower), float(upper)


def resolutions_of_data(evolution: Evolution, settings: IterationSettings) -> list[AxisResolution]:
    """The resolution of initial values, sources and coefficients along each axis, by differences on a fine grid."""
    space, tuning = evolution.domain.space, settings.tuning
    fine, dim = DATA_POINTS[space.dim], space.dim
    fields = [v.reshape((fine,) * dim) for v in space_fields(evolution, grid_points(space, fine))]
    periodic = evolution.problem.periodic
    lines = []
    for axis, name in enumerate(space.names):
        lower, upper = space.bounds[axis]
        resolution = _of_grid(Box(**{name: (lower, upper)}), fields, axis, tuning)
        highest = 0
        if name in periodic:
            share = max(ALGEBRA_SHARE * settings.tol, 1e-14)
            highest = max(tuning.first_modes[dim - 1], *(_highest_mode(v, axis, share) for v in fields))
        lines.append(AxisResolution(resolution, highest))
    return lines


def _of_grid(interval: Box, fields: Iterable[Array], axis: int, tuning: LinesTuning) -> Resolution:
    """The shortest length scale near each point of an axis, of fields on the fine grid."""
    lower, upper = interval.bounds[0]
    size, grid = float(upper - lower), tuning.grid[0]
    largest: Array | None = None
    for value in fields:
        slope = np.gradient(value, size / (len(value) - 1), axis=axis)
        curvature = np.gradient(slope, size / (len(value) - 1), axis=axis)
        inverse = inverse_length(value.reshape(-1, 1), np.abs(slope).reshape(-1, 1), curvature.reshape(-1, 1), size)
        own = _largest(inverse.reshape(value.shape), axis)
        largest = own if largest is None else np.maximum(largest, own)
    assert largest is not None  # every evolution has initial values
    before, after = np.append(largest[0], largest[:-1]), np.append(largest[1:], largest[-1])
    largest = np.maximum.reduce([before, largest, after, np.full_like(largest, 4 / size)])
    points = np.linspace(lower, upper, len(largest))
    return smoothed(interval, np.interp(np.linspace(lower, upper, grid), points, largest), tuning)


def _largest(values: Array, axis: int) -> Array:
    """The maximum over all axes but that one."""
    return values.max(axis=tuple(k for k in range(values.ndim) if k != axis))


def _highest_mode(value: Array, axis: int, share: float) -> int:
    """The Fourier mode along an axis above which less than a share of the field lies, divided by 0.75 for a margin."""
    periodic = np.delete(value, -1, axis=axis)  # the last point is the first one again
    power = np.abs(np.fft.rfft(periodic, axis=axis)) ** 2
    power = power.sum(axis=tuple(k for k in range(value.ndim) if k != axis))
    if not power[1:].sum() > 0:
        return 1
    above = np.sqrt(np.append(np.cumsum(power[::-1])[::-1][1:], 0.0) / power.sum())
    return int(np.ceil(4 * np.argmax(above <= share) / 3))


def tensor_length_scales(
    solution: SpaceTimeSolution, axes: list[AxisResolution], settings: IterationSettings
) -> tuple[list[AxisResolution], Mapping[Component, float]]:
    """The resolution along each axis over all times, by sampling the solution, and the sizes of the components."""
    points = [np.linspace(*axis.bounds, settings.tuning.grid[0]) for axis in axes]
    inverse = [np.zeros(settings.tuning.grid[0]) for _ in axes]
    tails = [0.0] * len(axes)
    scales: dict[Component, float] = {}
    for segment in solution.segments:
        own, last, sizes = _segment_length_scales(segment, axes, settings)
        system = segment.system
        assert isinstance(system, TensorSystem)
        for k, one in enumerate(system.first):
            inverse[k] = np.maximum(inverse[k], np.interp(points[k], one.nodes, own[k]))
        tails = last  # the basis of the last segment is the finest
        scales = {component: max(size, scales.get(component, 0.0)) for component, size in sizes.items()}
    return [_observed(axis, inverse[k], tails[k], settings) for k, axis in enumerate(axes)], scales


def _segment_length_scales(
    segment: TimeSegment, axes: list[AxisResolution], settings: IterationSettings
) -> tuple[list[Array], list[float], dict[Component, float]]:
    """1/ℓ at the nodes of each axis, the spectral tails of periodic axes, the sizes of the components."""
    system, trajectory, tuning = segment.system, segment.trajectory, settings.tuning
    assert isinstance(system, TensorSystem)
    count = int(np.clip(tuning.tensor_samples // len(system.nodes), 4, tuning.length_scale_times))
    times = np.linspace(trajectory.times[0], trajectory.reliable, count)
    states, dim = trajectory(times), system.dim
    inverse = [np.zeros(len(axis.nodes)) for axis in system.first]
    tails = [0.0] * dim
    scales: dict[Component, float] = {}
    weights = (system.weights / system.weights.sum()).ravel()
    values_of: dict[Component, Array] = {}
    for component in system.slices:
        values_of[component] = system.grids(component, times, states, (0,) * dim).reshape(len(weights), -1)
        scales[component] = float(np.sqrt(weights @ values_of[component] ** 2).max())
    sizes = sizes_of(scales)
    for component, value in values_of.items():
        rounding = sizes[component] > scales[component]
        if rounding or component.level or component not in system.evolution.initial:
            continue  # rounding has no length scale, and a pressure has those of the velocities
        for k, axis in enumerate(axes):
            lower, upper = axis.bounds
            slope, curvature = (
                np.abs(system.grids(component, times, states, tuple(order * int(j == k) for j in range(dim))))
                for order in (1, 2)
            )
            own = inverse_length(value, slope.reshape(value.shape), curvature.reshape(value.shape), upper - lower)
            inverse[k] = np.maximum(inverse[k], _largest(own.reshape(system.weights.shape), k))
            if axis.highest:
                tails[k] = max(tails[k], tail(system.coefficients(component, times, states), k))
    return inverse, tails, sizes


def sizes_of(scales: Mapping[Component, float]) -> dict[Component, float]:
    """The sizes of components; a component that is rounding beside others of its level gets the largest of these."""
    sizes_by_component: dict[Component, float] = {}
    for level in {component.level for component in scales}:
        own = [component for component in scales if component.level == level]
        sizes = field_sizes(np.array([scales[component] for component in own]))
        sizes_by_component |= {
            component: float(size) if size > 1e-300 else 1.0 for component, size in zip(own, sizes, strict=True)
        }
    return {component: sizes_by_component[component] for component in scales}


def _observed(line: AxisResolution, inverse: Array, tail: float, settings: IterationSettings) -> AxisResolution:
    tuning = settings.tuning
    resolution = smoothed(line.resolution.space, inverse, tuning)
    if not line.highest:
        return AxisResolution(resolution)
    growth = tuning.growth if tail > ALGEBRA_SHARE * settings.tol else 1.0
    return AxisResolution(resolution, int(np.ceil(growth * line.highest)))


def tail(coefficients: Array, axis: int, least: float = 1e-150) -> float:
    """Share of the last quarter of the basis of an axis in the solution, the largest over time.

    least : the size to which it is relative at least
    """
    power = np.sum(coefficients**2, axis=tuple(k for k in range(coefficients.ndim - 1) if k != axis))
    high = power[3 * len(power) // 4 :].sum(axis=0)
    return float(np.sqrt(high.max() / max(power.sum(axis=0).max(), least**2)))


# ------------------------------------------------------------------------------------------------------ profiles


@dataclass(frozen=True, eq=False)
class Profile:
    """The principal profiles of a field along an axis over all points and times: Σ_j weights[j, k] E_j.

    parts : basis and weights of every segment of time
    """

    parts: tuple[tuple[AxisBasis, Array], ...]

    @classmethod
    def of(cls, number: int, segments: Iterable[tuple[AxisBasis, Array]]) -> Profile:
        """The profile from the basis and the coefficients (R_1, …, R_d, s) of each segment."""
        parts = []
        for axis, coefficients in segments:
            unfolded = np.moveaxis(coefficients, number, 0).reshape(coefficients.shape[number], -1)
            left, singular, _ = np.linalg.svd(unfolded, full_matrices=False)
            parts.append((axis, left * singular))
        return cls(tuple(parts))

    def projection_error(self, axis: AxisBasis) -> float:
        """The relative error of the best approximation of these profiles in another basis."""
        values = np.concatenate([own.at(axis.nodes)[:, : len(w)] @ w for own, w in self.parts], axis=1)
        left = values - axis.values() @ (axis.fit @ values)
        weights = axis.weights[:, None]
        return float(np.sqrt((weights * left**2).sum() / max((weights * values**2).sum(), 1e-300)))


def profiles(solution: SpaceTimeSolution) -> dict[str, list[Profile]]:
    """field → its profile along each axis, from a few times of every segment."""
    seen: dict[str, list[tuple[TensorSystem, Array]]] = {}
    for segment in solution.segments:
        system = segment.system
        assert isinstance(system, TensorSystem)
        times = np.linspace(segment.trajectory.times[0], segment.trajectory.reliable, PROFILE_TIMES)
        states = segment.trajectory(times)
        own = [Component(name, 0) for name in system.axes if Component(name, 0) in system.evolution.initial]
        coefficients = {component: system.coefficients(component, times, states) for component in own}
        norms = {component: float(np.linalg.norm(values)) for component, values in coefficients.items()}
        for component, size in sizes_of(norms).items():
            if size <= norms[component]:  # rounding has no profile
                seen.setdefault(component.field, []).append((system, coefficients[component]))
    dim = len(solution.evolution.domain.space.names)
    return {
        name: [Profile.of(k, [(system.axes[name][k], c) for system, c in parts]) for k in range(dim)]
        for name, parts in seen.items()
    }
