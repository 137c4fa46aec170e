"""Passes with products of one-dimensional bases: how fine a solution is along each axis, and the axes that follow.

    1/ℓ(x) = max over the other coordinates, time and fields of  √( (2/L)² + |∂_x u|²/U² ) + √( |∂_xx u|/U ) ,

for each axis by itself: sin 20πx sin πy needs features that are fine in x only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import maximum_filter1d

from rannpde.arrays import Array
from rannpde.domains.domain import Box
from rannpde.network.adapted import inverse_length
from rannpde.network.features import RandomFeatures
from rannpde.pde.lines.axis import Axis, Face, along, faces_of, periodic_axis, random_axis
from rannpde.pde.lines.features import Resolution, grid_places, smoothed
from rannpde.pde.lines.flow import StokesModes
from rannpde.pde.lines.galerkin import Rule
from rannpde.pde.lines.incompressible import IncompressibleFlow
from rannpde.pde.lines.march import Evolved, March, Stretch
from rannpde.pde.lines.passes import Grown, Setting, first_scales
from rannpde.pde.lines.tensor import Products
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.problem.data import space_fields
from rannpde.pde.problem.evolution import Component, Evolution, evolution_form
from rannpde.pde.watch import Ending

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


class AdaptedProducts:
    """Passes with products of bases that are adapted axis by axis; of an incompressible flow in Stokes modes."""

    def __init__(
        self,
        evolution: Evolution,
        setting: Setting,
        rng: np.random.Generator,
        flow: IncompressibleFlow | None = None,
    ) -> None:
        self.setting, self.rng, self.tolerances, self.flow = setting, rng, setting.staged(), flow
        self.form = evolution_form(evolution.problem, weak=False) if flow is None else flow.evolution
        self.faces: dict[str, list[Face]] = {name: faces_of(self.form, name) or [] for name in self.form.orders}
        self.lines = lines_of_data(self.form, setting)
        self.scales: Mapping[Component, float] = first_scales(evolution)
        self.boost, self.seen = 1.0, 1.0
        self.profiles: dict[str, list[Profile]] = {}
        self.grown: Grown | None = None
        self.least, self.used, self.met = ([start] * len(self.lines) for start in (0, 0, True))

    def run(self, number: int, tol: float) -> Evolved:
        """The march of one pass; where little is known yet, on axes that become finer where it needs them."""
        self.seen = tol
        left = self.setting.tuning.refinements if tol > self.setting.tol or number == 1 else 0
        stretches: list[Stretch] = []
        while True:
            system = self.system(max(tol, self.setting.tol))
            if number == 1 and not stretches:
                system = replace(system, scales=with_speeds(system))
            march = self.setting.march(tol, number, system, self.grown)
            stretches.append(self._marched(march, system, stretches, watched=left > 0))
            path, found = stretches[-1].path, Evolved(self.form, tuple(stretches))
            if path.ending is not None or found.whole or not path.steps:
                return found
            self.lines, self.scales = look(found, self.lines, self.setting)
            self.boost *= self.setting.tuning.much_finer
            left -= 1

    def _marched(self, march: March, system: Products, before: list[Stretch], watched: bool) -> Stretch:
        """The march with these products from the end of the last ones; ``watched``: until they resolve little."""
        state = handed_over(before[-1], system) if before else system.initial_state()
        time = before[-1].path.end if before else self.form.domain.time[0], self.form.domain.time[1]
        modes = None if self.flow is None else StokesModes(self.flow, system)
        now = [time[0]]

        def notice(steps: int, moment: float) -> Ending | None:
            now[0] = moment
            return march.notice(steps, moment) if march.notice is not None else None

        def strayed(own: Array) -> bool:
            times, states = np.array(now), own[:, None]
            return unresolved(system, times, states if modes is None else modes.whole(times, states))

        followed = replace(march, notice=notice)
        stop = strayed if watched else None
        if modes is None:
            return Stretch(system, followed.run(system, time, state, stop=stop))
        followed = replace(followed, events={name: modes.seen_by(event) for name, event in march.events.items()})
        return Stretch(system, modes.shown(followed.run(modes, time, modes.projected(state), stop=stop)))

    def learn(self, solution: Evolved, failed: bool) -> bool:
        """Look at the solution for the next pass; False where there is no room for a finer one."""
        tuning = self.setting.tuning
        system = solution.stretches[-1].system
        assert isinstance(system, Products)
        if len(solution.stretches) > 1:
            self.boost = 1.0  # what made them finer on the way is in their lengths now
        self.boost *= tuning.finer if failed else 1.0
        for k, met in enumerate(self.met):
            if failed and not met:  # a solution that lacks something cannot show what
                self.least[k] = min(self.used[k] + 1, len(tuning.stretches) - 1)
        self.lines, self.scales = look(solution, self.lines, self.setting)
        self.profiles, self.grown = profiles(solution), Grown.of(solution, tuning)
        full = system.rank >= 0.95 * self._most
        return not (failed and full)

    @property
    def _most(self) -> int:
        """Unknowns of a field."""
        tuning = self.setting.tuning
        return tuning.most_unknowns[len(self.lines) - 2] if self.flow is None else tuning.most_flow

    def system(self, tol: float) -> Products:
        """The products of a pass, their ranks cut where they would hold too many unknowns."""
        drawn = [self._axis(k, line, tol) for k, line in enumerate(self.lines)]
        axes = {name: tuple(one[name] for one in drawn) for name in self.form.orders}
        tuning, dim = self.setting.tuning, len(self.lines)
        for name, own in axes.items():
            excess = float(np.prod([one.rank for one in own])) / self._most
            if excess > 1:
                axes[name] = tuple(one.cut(max(8, int(one.rank / excess ** (1 / dim)))) for one in own)
        if self.flow is not None:  # more pressures than the fields have room for would leave no flow
            own = axes[self.flow.pressure]
            ranks = [min(axes[name][k].rank for name in self.flow.axes) for k in range(dim)]
            axes[self.flow.pressure] = tuple(one.cut(rank) for one, rank in zip(own, ranks, strict=True))
        return Products(self.form, axes, self.scales, tuning, weak=self.flow is not None)

    def _axis(self, number: int, line: Line, tol: float) -> dict[str, Axis]:
        """field → its axis, of the smoothest features that can carry what the last pass looked like along it."""
        tuning = self.setting.tuning
        if line.highest:
            highest = int(np.ceil(self.boost * line.highest))
            return dict.fromkeys(self.form.orders, periodic_axis(line.bounds, highest))
        if not self.profiles:
            return self._drawn(number, line, tol, tuning.first_stretch)
        share = tuning.profile_share
        goal = share * max(tol, self.seen)
        # digits cost functions in proportion: so many must do for those seen if all are to do for those wanted
        part = min(1.0, float(np.log(goal) / np.log(share * tol)))
        before: tuple[float, dict[str, Axis]] | None = None
        for place in range(self.least[number], len(tuning.stretches)):
            axes = self._drawn(number, line, tol, tuning.stretches[place])
            gap = max(
                self.profiles[name][number].gap(one.cut(int(part * one.rank)))
                for name, one in axes.items()
                if name in self.profiles
            )
            self.used[number], self.met[number] = place, gap <= goal
            if self.met[number]:
                return axes
            if before is not None and 0.5 * before[0] < gap <= max(tol, self.seen):  # noise of the last pass is left
                self.used[number] = place - 1
                return before[1]
            before = gap, axes
        return axes

    def _drawn(self, number: int, line: Line, tol: float, stretch: float) -> dict[str, Axis]:
        """field → its axis, of features whose slopes follow ℓ/stretch; all fields share features and nodes."""
        setting, tuning = self.setting, self.setting.tuning
        resolution = line.resolution.finer(stretch * self.boost)
        most = int(tuning.most_nodes ** (1 / len(self.lines)))
        density = min(tuning.product_density, most / (30.0 * resolution.lengths_across))
        rule = resolution.rule(boundary=False, density=density)
        wanted = max(resolution.wanted_width(tol), tuning.least_axis)
        width = setting.width or int(min(wanted, tuning.widest[0], len(rule.points)))
        features = RandomFeatures.sample(
            width=width, dim=1, law=resolution.law(), activation="tanh", rng=self.rng, constant=True
        )
        least = tuning.strong_cutoff if self.flow is None else tuning.weak_cutoff  # flows have differentiated tests
        cutoff = max(least, 1e-3 * tol)

        def on(rule: Rule) -> dict[str, Axis]:
            return {
                name: random_axis(
                    line.bounds, features, (rule.points[:, 0], rule.weights),
                    [face.row for face in faces if face.axis == number],
                    cutoff=cutoff, most=int(0.7 * len(rule.points)),
                )
                for name, faces in self.faces.items()
            }  # fmt: skip

        axes = on(rule)
        # the nodes that all features need are more than the few functions need that are left of them
        enough = tuning.nodes_per_function * max(one.functions for one in axes.values()) / len(rule.points)
        return on(resolution.rule(boundary=False, density=enough * density)) if enough < 0.8 else axes


def handed_over(before: Stretch, system: Products) -> Array:
    """The last state of a stretch in the functions of another system, (n,)."""
    old, state = before.system, before.path.last
    assert isinstance(old, Products)
    end, found = np.array([before.path.end]), np.zeros(system.unknowns)
    for component, block in system.slices.items():
        tensor = old.coefficients(component, end, state[:, None])
        for axis, one in enumerate(old.axes[component.field]):
            tensor = along(one.at(system.first[axis].nodes)[:, : tensor.shape[axis]], tensor, axis)
        found[block] = system.project(component.field, tensor).ravel()
    return found


def unresolved(system: Products, times: Array, states: Array) -> bool:
    """Whether the last functions of an axis hold so much of a state (n, 1) that these axes hardly carry it."""
    for component in system.slices:
        if component.level or component not in system.evolution.initial:
            continue
        tensor = system.coefficients(component, times, states)[tuple(map(slice, system.shapes[component.field]))]
        size = system.scales[component] * system.evolution.domain.space.volume**0.5
        if any(_tail(tensor, k, size) > system.tuning.unresolved for k in range(system.dim)):
            return True
    return False


def with_speeds(system: Products) -> dict[Component, float]:
    """Scales for the first pass: a field that begins at rest will move as fast as its acceleration and size allow."""
    state = system.initial_state()
    start = np.array([system.evolution.domain.time[0]])
    rate, scales = system.rates(start, state[:, None])[:, 0], dict(system.scales)
    for component, block in system.slices.items():
        if component.level:
            pull = np.linalg.norm(rate[block]) / np.sqrt(system.evolution.domain.space.volume)
            speed = float(np.sqrt(pull * scales[Component(component.field, 0)]))
            scales[component] = max(scales[component], speed if np.isfinite(speed) else 0.0)
    return scales


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


# ---------------------------------------------------------------------------------------------- lengths of an axis


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
    for component in system.slices:
        value = system.grids(component, times, states, (0,) * dim).reshape(len(weights), -1)
        scales[component] = float(np.sqrt(weights @ value**2).max()) or 1.0
        if component.level or component not in system.evolution.initial:  # a pressure is as fine as what it keeps
            continue
        for k, line in enumerate(lines):
            lower, upper = line.bounds
            slope, bend = (
                np.abs(system.grids(component, times, states, tuple(order * int(j == k) for j in range(dim))))
                for order in (1, 2)
            )
            own = inverse_length(value, slope.reshape(value.shape), bend.reshape(value.shape), upper - lower)
            inverse[k] = np.maximum(inverse[k], _largest(own.reshape(system.weights.shape), k))
            if line.highest:
                tails[k] = max(tails[k], _tail(system.coefficients(component, times, states), k))
    return inverse, tails, scales


def profiles(solution: Evolved) -> dict[str, list[Profile]]:
    """field → its profile along each axis, over a few times of every stretch."""
    seen: dict[str, list[tuple[Products, Array]]] = {}
    for stretch in solution.stretches:
        system = stretch.system
        assert isinstance(system, Products)
        times = np.linspace(stretch.path.times[0], stretch.path.reliable, PROFILE_TIMES)
        states = stretch.path(times)
        for name in system.axes:
            if Component(name, 0) in system.evolution.initial:
                coefficients = system.coefficients(Component(name, 0), times, states)
                seen.setdefault(name, []).append((system, coefficients))
    dim = len(solution.evolution.domain.space.names)
    return {
        name: [Profile.of(k, [(system.axes[name][k], c) for system, c in parts]) for k in range(dim)]
        for name, parts in seen.items()
    }


def _seen(line: Line, inverse: Array, tail: float, setting: Setting) -> Line:
    tuning = setting.tuning
    resolution = smoothed(line.resolution.space, inverse, tuning)
    if not line.highest:
        return Line(resolution)
    growth = tuning.mode_growth if tail > tuning.tail_share * setting.tol else 1.0
    return Line(resolution, int(np.ceil(growth * line.highest)))


def _tail(coefficients: Array, axis: int, least: float = 1e-150) -> float:
    """Share of the last quarter of the functions of an axis, the largest over time; of ``least`` where that is more."""
    power = np.sum(coefficients**2, axis=tuple(k for k in range(coefficients.ndim - 1) if k != axis))
    high = power[int(0.75 * len(power)) :].sum(axis=0)
    return float(np.sqrt(high.max() / max(power.sum(axis=0).max(), least**2)))
