"""How fine a solution is along each axis of a box: 1/ℓ of data and of solutions, and the profiles that axes must carry.

    1/ℓ(x) = max over the other coordinates, time and fields of  √( (2/L)² + |∂_x u|²/U² ) + √( |∂_xx u|/U ) ,

for each axis by itself: sin 20πx sin πy needs features that are fine in x only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import maximum_filter1d

from rannpde.arrays import Array
from rannpde.domains.domain import Box
from rannpde.network.adapted import inverse_length
from rannpde.pde.lines.evolved import Evolved, Stretch
from rannpde.pde.lines.features import Resolution, grid_places, smoothed
from rannpde.pde.lines.iterations import Setting
from rannpde.pde.lines.products.axis import Axis
from rannpde.pde.lines.products.tensor import Products
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.problem.data import space_fields
from rannpde.pde.problem.evolution import Component, Evolution
from rannpde.pde.residual import field_sizes

FINE = {2: 513, 3: 97}
"""Places per axis of the grid on which the data of a problem are looked at."""

PROFILE_TIMES = 7
"""At which a solution is looked at for its profiles: a front passes every place between them, but not every shape."""


@dataclass(frozen=True, eq=False)
class Line:
    """One coordinate: its interval, 1/ℓ along it, and the highest Fourier mode if it is periodic, 0 if not."""

    resolution: Resolution
    highest: int = 0

    @property
    def bounds(self) -> tuple[float, float]:
        lower, upper = self.resolution.space.bounds[0]
        return float(lower), float(upper)


def lines_of_data(evolution: Evolution, setting: Setting) -> list[Line]:
    """From initial values, sources and coefficients on a fine grid, by differences."""
    space, tuning = evolution.domain.space, setting.tuning
    fine, dim = FINE[space.dim], space.dim
    fields = [v.reshape((fine,) * dim) for v in space_fields(evolution, grid_places(space, fine))]
    periodic = evolution.problem.periodic
    lines = []
    for axis, name in enumerate(space.names):
        lower, upper = space.bounds[axis]
        resolution = _of_grid(Box(**{name: (lower, upper)}), fields, axis, tuning)
        highest = 0
        if name in periodic:
            share = max(tuning.tail_share * setting.tol, 1e-14)
            highest = max(tuning.first_modes[dim - 1], *(_highest_mode(v, axis, share) for v in fields))
        lines.append(Line(resolution, highest))
    return lines


def _of_grid(interval: Box, fields: Iterable[Array], axis: int, tuning: LinesTuning) -> Resolution:
    """The shortest length near each place of an axis, of fields on the fine grid."""
    lower, upper = interval.bounds[0]
    size, grid = float(upper - lower), tuning.grid[0]
    found: Array | None = None
    for value in fields:
        slope = np.gradient(value, size / (len(value) - 1), axis=axis)
        bend = np.gradient(slope, size / (len(value) - 1), axis=axis)
        inverse = inverse_length(value.reshape(-1, 1), np.abs(slope).reshape(-1, 1), bend.reshape(-1, 1), size)
        own = _largest(inverse.reshape(value.shape), axis)
        found = own if found is None else np.maximum(found, own)
    assert found is not None  # there are initial values
    found = np.maximum(maximum_filter1d(found, 3), 4.0 / size)
    places = np.linspace(lower, upper, len(found))
    return smoothed(interval, np.interp(np.linspace(lower, upper, grid), places, found), tuning)


def _largest(values: Array, axis: int) -> Array:
    """The largest over all axes but that one."""
    return values.max(axis=tuple(k for k in range(values.ndim) if k != axis))


def _highest_mode(value: Array, axis: int, share: float) -> int:
    """The highest Fourier mode along an axis above which less than a share of the field lies, with room above."""
    periodic = np.delete(value, -1, axis=axis)  # the last place is the first one again
    power = np.abs(np.fft.rfft(periodic, axis=axis)) ** 2
    power = power.sum(axis=tuple(k for k in range(value.ndim) if k != axis))
    if not power[1:].sum() > 0:
        return 1
    above = np.sqrt(np.append(np.cumsum(power[::-1])[::-1][1:], 0.0) / power.sum())
    return int(np.ceil(np.argmax(above <= share) / 0.75))


def look(solution: Evolved, lines: list[Line], setting: Setting) -> tuple[list[Line], Mapping[Component, float]]:
    """The lengths along each axis over all times, and the sizes of the components."""
    places = [np.linspace(*line.bounds, setting.tuning.grid[0]) for line in lines]
    inverse = [np.zeros(setting.tuning.grid[0]) for _ in lines]
    tails = [0.0] * len(lines)
    scales: dict[Component, float] = {}
    for stretch in solution.stretches:
        own, last, sizes = _look_at(stretch, lines, setting)
        system = stretch.system
        assert isinstance(system, Products)
        for k, one in enumerate(system.first):
            inverse[k] = np.maximum(inverse[k], np.interp(places[k], one.nodes, own[k]))
        tails = last  # the last stretch has what the others lacked
        scales = {component: max(size, scales.get(component, 0.0)) for component, size in sizes.items()}
    return [_seen(line, inverse[k], tails[k], setting) for k, line in enumerate(lines)], scales


def _look_at(
    stretch: Stretch, lines: list[Line], setting: Setting
) -> tuple[list[Array], list[float], dict[Component, float]]:
    """1/ℓ at the nodes of each axis, the tails of periodic ones, the sizes of the components."""
    system, path, tuning = stretch.system, stretch.path, setting.tuning
    assert isinstance(system, Products)
    count = int(np.clip(tuning.product_looks // len(system.nodes), 4, tuning.looks))
    times = np.linspace(path.times[0], path.reliable, count)
    states, dim = path(times), system.dim
    inverse = [np.zeros(len(axis.nodes)) for axis in system.first]
    tails = [0.0] * dim
    scales: dict[Component, float] = {}
    weights = (system.weights / system.weights.sum()).ravel()
    seen: dict[Component, Array] = {}
    for component in system.slices:
        seen[component] = system.grids(component, times, states, (0,) * dim).reshape(len(weights), -1)
        scales[component] = float(np.sqrt(weights @ seen[component] ** 2).max())
    sizes = sizes_of(scales)
    for component, value in seen.items():
        rounding = sizes[component] > scales[component]
        if rounding or component.level or component not in system.evolution.initial:
            continue  # what is rounding has no lengths, and a pressure is as fine as what it keeps
        for k, line in enumerate(lines):
            lower, upper = line.bounds
            slope, bend = (
                np.abs(system.grids(component, times, states, tuple(order * int(j == k) for j in range(dim))))
                for order in (1, 2)
            )
            own = inverse_length(value, slope.reshape(value.shape), bend.reshape(value.shape), upper - lower)
            inverse[k] = np.maximum(inverse[k], _largest(own.reshape(system.weights.shape), k))
            if line.highest:
                tails[k] = max(tails[k], tail(system.coefficients(component, times, states), k))
    return inverse, tails, sizes


def sizes_of(scales: Mapping[Component, float]) -> dict[Component, float]:
    """The sizes of components; of one that is rounding beside others of its level, the largest of these."""
    found: dict[Component, float] = {}
    for level in {component.level for component in scales}:
        own = [component for component in scales if component.level == level]
        sizes = field_sizes(np.array([scales[component] for component in own]))
        found |= {component: float(size) if size > 1e-300 else 1.0 for component, size in zip(own, sizes, strict=True)}
    return {component: found[component] for component in scales}


def _seen(line: Line, inverse: Array, tail: float, setting: Setting) -> Line:
    tuning = setting.tuning
    resolution = smoothed(line.resolution.space, inverse, tuning)
    if not line.highest:
        return Line(resolution)
    growth = tuning.mode_growth if tail > tuning.tail_share * setting.tol else 1.0
    return Line(resolution, int(np.ceil(growth * line.highest)))


def tail(coefficients: Array, axis: int, least: float = 1e-150) -> float:
    """Share of the last quarter of the functions of an axis, the largest over time; of ``least`` where that is more."""
    power = np.sum(coefficients**2, axis=tuple(k for k in range(coefficients.ndim - 1) if k != axis))
    high = power[int(0.75 * len(power)) :].sum(axis=0)
    return float(np.sqrt(high.max() / max(power.sum(axis=0).max(), least**2)))


# ------------------------------------------------------------------------------------------------------ profiles


@dataclass(frozen=True, eq=False)
class Profile:
    """What a field looks like along an axis: Σ_j weights[j, k] E_j, the principal ones of all places and times.

    parts : axis and weights of every stretch of time
    """

    parts: tuple[tuple[Axis, Array], ...]

    @classmethod
    def of(cls, number: int, stretches: Iterable[tuple[Axis, Array]]) -> Profile:
        """From the axis and the coefficients (R_1, …, R_d, s) of each stretch."""
        parts = []
        for axis, coefficients in stretches:
            unfolded = np.moveaxis(coefficients, number, 0).reshape(coefficients.shape[number], -1)
            left, singular, _ = np.linalg.svd(unfolded, full_matrices=False)
            parts.append((axis, left * singular))
        return cls(tuple(parts))

    def gap(self, axis: Axis) -> float:
        """The relative error of these functions in another axis' span."""
        values = np.concatenate([own.at(axis.nodes)[:, : len(w)] @ w for own, w in self.parts], axis=1)
        left = values - axis.values() @ (axis.fit @ values)
        weights = axis.weights[:, None]
        return float(np.sqrt((weights * left**2).sum() / max((weights * values**2).sum(), 1e-300)))


def profiles(solution: Evolved) -> dict[str, list[Profile]]:
    """field → its profile along each axis, over a few times of every stretch."""
    seen: dict[str, list[tuple[Products, Array]]] = {}
    for stretch in solution.stretches:
        system = stretch.system
        assert isinstance(system, Products)
        times = np.linspace(stretch.path.times[0], stretch.path.reliable, PROFILE_TIMES)
        states = stretch.path(times)
        own = [Component(name, 0) for name in system.axes if Component(name, 0) in system.evolution.initial]
        found = {component: system.coefficients(component, times, states) for component in own}
        norms = {component: float(np.linalg.norm(values)) for component, values in found.items()}
        for component, size in sizes_of(norms).items():
            if size <= norms[component]:  # what is rounding looks like nothing
                seen.setdefault(component.field, []).append((system, found[component]))
    dim = len(solution.evolution.domain.space.names)
    return {
        name: [Profile.of(k, [(system.axes[name][k], c) for system, c in parts]) for k in range(dim)]
        for name, parts in seen.items()
    }
