"""Iterations with products of one-dimensional bases: axes that follow what the last iteration looked like along
them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rannpde.arrays import Array
from rannpde.network.features import RandomFeatures
from rannpde.pde.lines.evolved import Evolved, Stretch
from rannpde.pde.lines.galerkin import Rule
from rannpde.pde.lines.iterations import Grown, Setting, first_scales, with_speeds
from rannpde.pde.lines.march import March, Trajectory
from rannpde.pde.lines.products.axis import Axis, along, periodic_axis, random_axis
from rannpde.pde.lines.products.flow import StokesModes
from rannpde.pde.lines.products.incompressible import IncompressibleFlow
from rannpde.pde.lines.products.lengths import Line, Profile, lines_of_data, look, profiles, tail
from rannpde.pde.lines.products.tensor import Products
from rannpde.pde.lines.radau import TimeUp
from rannpde.pde.monitor import Status
from rannpde.pde.problem.evolution import Component, Evolution, WallRow, evolution_form, faces_of


class AdaptedProducts:
    """Iterations with products of bases that are adapted axis by axis; of an incompressible flow in Stokes modes."""

    def __init__(
        self,
        evolution: Evolution,
        setting: Setting,
        rng: np.random.Generator,
        flow: IncompressibleFlow | None = None,
    ) -> None:
        self.setting, self.rng, self.tolerances, self.flow = setting, rng, setting.staged(), flow
        self.form = evolution_form(evolution.problem, weak=False) if flow is None else flow.evolution
        self.faces: dict[str, list[WallRow]] = {name: faces_of(self.form, name) or [] for name in self.form.orders}
        self.lines = lines_of_data(self.form, setting)
        self.scales: Mapping[Component, float] = first_scales(evolution)
        self.boost, self.seen = 1.0, 1.0
        self.profiles: dict[str, list[Profile]] = {}
        self.grown: Grown | None = None
        self.least, self.used, self.met = ([start] * len(self.lines) for start in (0, 0, True))

    def run(self, number: int, tol: float) -> Evolved:
        """The march of one iteration; where little is known yet, on axes that become finer where it needs them."""
        self.seen = tol
        left = self.setting.tuning.refinements if tol > self.setting.tol or number == 1 else 0
        stretches: list[Stretch] = []
        while True:
            system = self.system(max(tol, self.setting.tol))
            if number == 1 and not stretches:
                system = replace(system, scales=with_speeds(system.scales, pulls(system)))
            march = self.setting.march(tol, number, system, self.grown)
            try:
                stretches.append(self._marched(march, system, stretches, left > 0, number == 1 and not stretches))
            except TimeUp:
                ended = stretches[-1] if stretches else Stretch(system, Trajectory((self.form.domain.time[0],), ()))
                path = replace(ended.path, status=Status.BUDGET, detail=str(Status.BUDGET))
                return Evolved(self.form, (*stretches[:-1], replace(ended, path=path)))
            path, found = stretches[-1].path, Evolved(self.form, tuple(stretches))
            if path.status is not None or found.whole or not path.steps:
                return found
            self.lines, self.scales = look(found, self.lines, self.setting)
            self.boost *= self.setting.tuning.much_finer
            left -= 1

    def _marched(self, march: March, system: Products, before: list[Stretch], watched: bool, needed: bool) -> Stretch:
        """The march with these products from the end of the last ones; ``watched``: until they resolve little.

        needed : there is nothing yet that could be given back
        """
        state = handed_over(before[-1], system) if before else system.initial_state()
        time = before[-1].path.end if before else self.form.domain.time[0], self.form.domain.time[1]
        modes = None if self.flow is None else StokesModes(self.flow, system, (lambda: False) if needed else march.over)
        now = [time[0]]

        def notice(steps: int, moment: float) -> Status | None:
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
        """Look at the solution for the next iteration; False where there is no room for a finer one."""
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
        """The products of an iteration, their ranks cut where they would hold too many unknowns."""
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
        """field → its axis, of the smoothest features that can carry what the last iteration looked like along it."""
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
            if before is not None and 0.5 * before[0] < gap <= max(
                tol, self.seen
            ):  # noise of the last iteration is left
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
        width = setting.width or int(min(resolution.wanted_width(tol), tuning.widest[0], len(rule.points)))
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
        if any(tail(tensor, k, size) > system.tuning.unresolved for k in range(system.dim)):
            return True
    return False


def pulls(system: Products) -> dict[Component, float]:
    """The root mean square of each rate at the start."""
    start = np.array([system.evolution.domain.time[0]])
    rate = system.rates(start, system.initial_state()[:, None])[:, 0]
    root = np.sqrt(system.evolution.domain.space.volume)
    return {component: float(np.linalg.norm(rate[block]) / root) for component, block in system.slices.items()}
