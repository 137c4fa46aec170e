"""Iterations with tensor products of one-dimensional bases, which are adapted to the last solution axis by axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rannpde.arrays import Array
from rannpde.network.features import RandomFeatures
from rannpde.pde.lines.features.basis import Rule
from rannpde.pde.lines.features.resolution import resolving_cells
from rannpde.pde.lines.settings import IterationSettings, RunningAmplitude, first_scales, with_initial_rates
from rannpde.pde.lines.solution import SpaceTimeSolution, TimeSegment
from rannpde.pde.lines.tensor.basis import AxisBasis, along, periodic_axis, random_axis
from rannpde.pde.lines.tensor.flow import StokesModes
from rannpde.pde.lines.tensor.incompressible import IncompressibleFlow
from rannpde.pde.lines.tensor.length_scales import (
    AxisResolution,
    Profile,
    profiles,
    resolutions_of_data,
    tail,
    tensor_length_scales,
)
from rannpde.pde.lines.tensor.system import TensorSystem
from rannpde.pde.monitor import Status, status_of
from rannpde.pde.problem.evolution import Component, Evolution, WallRow, evolution_form, wall_rows
from rannpde.pde.time.integrator import TimeIntegrator
from rannpde.pde.tolerance import ALGEBRA_SHARE, GAIN


class TensorDiscretisation:
    """Iterations with tensor-product bases; for an incompressible flow, in Stokes modes."""

    def __init__(
        self,
        evolution: Evolution,
        settings: IterationSettings,
        rng: np.random.Generator,
        flow: IncompressibleFlow | None = None,
    ) -> None:
        self.settings, self.rng, self.tolerances, self.flow = settings, rng, settings.tolerance_schedule(), flow
        self.form = evolution_form(evolution.problem, weak=False) if flow is None else flow.evolution
        self.faces: dict[str, list[WallRow]] = {name: wall_rows(self.form, name) or [] for name in self.form.orders}
        self.resolutions = resolutions_of_data(self.form, settings)
        self.scales: Mapping[Component, float] = first_scales(evolution)
        self.refinement, self.resolved = 1.0, 1.0
        self.profiles: dict[str, list[Profile]] = {}
        self.amplitude: RunningAmplitude | None = None
        self.first_factor, self.used_factor, self.goal_met = ([start] * len(self.resolutions) for start in (0, 0, True))

    def run(self, number: int, tol: float) -> SpaceTimeSolution:
        """The solution of one iteration; where little is known yet, bases are refined during the integration."""
        self.resolved = tol
        left = self.settings.tuning.refinements if tol > self.settings.tol or number == 1 else 0
        segments: list[TimeSegment] = []
        while True:
            system = self.system(max(tol, self.settings.tol))
            if number == 1 and not segments:
                system = replace(system, scales=with_initial_rates(system.scales, tensor_initial_rates(system)))
            integrator = self.settings.time_integrator(tol, number, system, self.amplitude)
            try:
                segments.append(self._integrated(integrator, system, segments, left > 0))
            except KeyboardInterrupt as stop:
                if not segments:
                    raise
                status, detail = status_of(stop)
                ended = replace(segments[-1].trajectory, status=status, detail=detail or str(status))
                return SpaceTimeSolution(self.form, (*segments[:-1], replace(segments[-1], trajectory=ended)))
            trajectory, solution = segments[-1].trajectory, SpaceTimeSolution(self.form, tuple(segments))
            if trajectory.status is not None or solution.whole or not trajectory.steps:
                return solution
            self.resolutions, self.scales = tensor_length_scales(solution, self.resolutions, self.settings)
            self.refinement *= self.settings.tuning.growth
            left -= 1

    def _integrated(
        self, integrator: TimeIntegrator, system: TensorSystem, before: list[TimeSegment], monitored: bool
    ) -> TimeSegment:
        """The integration with this basis from the end of the last segment.

        monitored : whether it ends where the basis does not resolve the solution
        """
        state = transferred(before[-1], system) if before else system.initial_state()
        time = before[-1].trajectory.end if before else self.form.domain.time[0], self.form.domain.time[1]
        modes = None if self.flow is None else StokesModes(self.flow, system)
        now = [time[0]]

        def notice(steps: int, moment: float) -> Status | None:
            now[0] = moment
            return integrator.notice(steps, moment) if integrator.notice is not None else None

        def under_resolved(own: Array) -> bool:
            times, states = np.array(now), own[:, None]
            return unresolved(system, times, states if modes is None else modes.whole(times, states))

        followed = replace(integrator, notice=notice)
        stop = under_resolved if monitored else None
        if modes is None:
            return TimeSegment(system, followed.run(system, time, state, stop=stop))
        followed = replace(
            followed, events={name: modes.event_of_modes(event) for name, event in integrator.events.items()}
        )
        return TimeSegment(system, modes.completed(followed.run(modes, time, modes.projected(state), stop=stop)))

    def adapt(self, solution: SpaceTimeSolution, failed: bool) -> bool:
        """Adapt the bases to the solution; False where there is no room for a finer one."""
        tuning = self.settings.tuning
        system = solution.segments[-1].system
        assert isinstance(system, TensorSystem)
        if len(solution.segments) > 1:
            self.refinement = 1.0  # refinements on the way are part of the observed length scales now
        self.refinement *= tuning.growth if failed else 1.0
        for k, met in enumerate(self.goal_met):
            if failed and not met:  # an unresolved solution does not show its length scales
                self.first_factor[k] = min(self.used_factor[k] + 1, len(tuning.length_factors) - 1)
        self.resolutions, self.scales = tensor_length_scales(solution, self.resolutions, self.settings)
        self.profiles, self.amplitude = profiles(solution), RunningAmplitude.of(solution, tuning)
        full = system.rank >= 0.95 * self._most
        return not (failed and full)

    @property
    def _most(self) -> int:
        """Most unknowns of a field."""
        tuning = self.settings.tuning
        return tuning.most_unknowns[len(self.resolutions) - 2] if self.flow is None else tuning.most_flow

    def system(self, tol: float) -> TensorSystem:
        """The system of an iteration, its bases truncated where they would have too many unknowns."""
        sampled = [self._bases(k, axis, tol) for k, axis in enumerate(self.resolutions)]
        axes = {name: tuple(one[name] for one in sampled) for name in self.form.orders}
        tuning, dim = self.settings.tuning, len(self.resolutions)
        for name, own in axes.items():
            excess = float(np.prod([one.rank for one in own])) / self._most
            if excess > 1:
                axes[name] = tuple(one.truncated(max(8, int(one.rank / excess ** (1 / dim)))) for one in own)
        if self.flow is not None:  # more pressures than velocities would leave no divergence-free flow
            own = axes[self.flow.pressure]
            ranks = [min(axes[name][k].rank for name in self.flow.axes) for k in range(dim)]
            axes[self.flow.pressure] = tuple(one.truncated(rank) for one, rank in zip(own, ranks, strict=True))
        return TensorSystem(self.form, axes, self.scales, tuning, weak=self.flow is not None)

    def _bases(self, number: int, axis: AxisResolution, tol: float) -> dict[str, AxisBasis]:
        """field → its basis along an axis, of the smoothest features that represent the profiles of the last
        solution."""
        tuning = self.settings.tuning
        if axis.highest:
            highest = int(np.ceil(self.refinement * axis.highest))
            return dict.fromkeys(self.form.orders, periodic_axis(axis.bounds, highest))
        if not self.profiles:
            return self._sampled(number, axis, tol, tuning.length_factors[len(tuning.length_factors) // 2])
        share = ALGEBRA_SHARE
        goal = share * max(tol, self.resolved)
        # the rank grows in proportion to the digits: this part of it must suffice for the digits seen so far
        part = min(1.0, float(np.log(goal) / np.log(share * tol)))
        before: tuple[float, dict[str, AxisBasis]] | None = None
        for index in range(self.first_factor[number], len(tuning.length_factors)):
            axes = self._sampled(number, axis, tol, tuning.length_factors[index])
            gap = max(
                self.profiles[name][number].projection_error(one.truncated(int(part * one.rank)))
                for name, one in axes.items()
                if name in self.profiles
            )
            self.used_factor[number], self.goal_met[number] = index, gap <= goal
            if self.goal_met[number]:
                return axes
            stagnant = before is not None and 0.5 * before[0] < gap <= max(tol, self.resolved)
            if before is not None and stagnant:  # what remains is noise of the last iteration
                self.used_factor[number] = index - 1
                return before[1]
            before = gap, axes
        return axes

    def _sampled(self, number: int, axis: AxisResolution, tol: float, length_factor: float) -> dict[str, AxisBasis]:
        """field → its basis along an axis, of features with length scale ℓ/length_factor; all fields share features and
        nodes."""
        settings, tuning = self.settings, self.settings.tuning
        resolution = axis.resolution.refined(length_factor * self.refinement)
        most = int(tuning.most_nodes ** (1 / len(self.resolutions)))
        each, points = tuning.cells_per_length[0], tuning.gauss_points[0]
        density = min(resolving_cells(points), most / (points * resolution.lengths_across)) / each
        rule = resolution.rule(boundary=False, density=density)
        width = settings.width or int(min(resolution.wanted_width(tol), tuning.most_width[0], len(rule.points)))
        features = RandomFeatures.sample(
            width=width, dim=1, law=resolution.law(), activation="tanh", rng=self.rng, constant=True
        )
        # test functions of flows are differentiated
        least = tuning.strong_cutoff if self.flow is None else tuning.weak_cutoff
        cutoff = max(least, 1e-3 * tol)

        def on(rule: Rule) -> dict[str, AxisBasis]:
            return {
                name: random_axis(
                    axis.bounds, features, (rule.points[:, 0], rule.weights),
                    [face.row for face in faces if face.axis == number],
                    cutoff=cutoff, most=int(0.7 * len(rule.points)),
                )
                for name, faces in self.faces.items()
            }  # fmt: skip

        axes = on(rule)
        # the truncated basis needs fewer nodes than all features do
        enough = tuning.nodes_per_function * max(one.functions for one in axes.values()) / len(rule.points)
        return on(resolution.rule(boundary=False, density=enough * density)) if enough < GAIN else axes


def transferred(before: TimeSegment, system: TensorSystem) -> Array:
    """The last state of a segment projected on the basis of another system, (n,)."""
    old, state = before.system, before.trajectory.last
    assert isinstance(old, TensorSystem)
    end, projected = np.array([before.trajectory.end]), np.zeros(system.unknowns)
    for component, block in system.slices.items():
        tensor = old.coefficients(component, end, state[:, None])
        for axis, one in enumerate(old.axes[component.field]):
            tensor = along(one.at(system.first[axis].nodes)[:, : tensor.shape[axis]], tensor, axis)
        projected[block] = system.project(component.field, tensor).ravel()
    return projected


def unresolved(system: TensorSystem, times: Array, states: Array) -> bool:
    """Whether the last functions of an axis hold so much of a state (n, 1) that the basis hardly resolves it."""
    for component in system.slices:
        if component.level or component not in system.evolution.initial:
            continue
        tensor = system.coefficients(component, times, states)[tuple(map(slice, system.shapes[component.field]))]
        size = system.scales[component] * system.evolution.domain.space.volume**0.5
        if any(tail(tensor, k, size) > system.tuning.unresolved_share for k in range(system.dim)):
            return True
    return False


def tensor_initial_rates(system: TensorSystem) -> dict[Component, float]:
    """The root mean square of the rate of each component at the start."""
    start = np.array([system.evolution.domain.time[0]])
    rate = system.rates(start, system.initial_state()[:, None])[:, 0]
    root = np.sqrt(system.evolution.domain.space.volume)
    return {component: float(np.linalg.norm(rate[block]) / root) for component, block in system.slices.items()}
