"""A flow in time as the adaptive loop needs it: one integration on one mesh, its error estimate, refinement.

Meshes, singular points and refinement are those of the flow in space. The second of two iterations has more functions,
which are drawn anew, and a smaller tolerance in time, so that their difference contains the errors of the first one in
space and in time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.adaptivity.loop import OutOfBudget
from rannpde.pde.cells.network import CellNetwork
from rannpde.pde.cells.time.trajectory import CellTrajectory
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.flow.evolution import FlowEvolution
from rannpde.pde.flow.forces import ForceSeries
from rannpde.pde.flow.integration import FlowIntegrator, FlowTrajectory
from rannpde.pde.flow.local import FlowCells
from rannpde.pde.flow.matrices import FlowState
from rannpde.pde.flow.pressure import PressureRecovery, RecoveredFlow, flow_network, residual_indicators
from rannpde.pde.flow.semidiscrete import FlowVector, SemiDiscreteFlow
from rannpde.pde.flow.solver import FlowDiscretisation, FlowIterate
from rannpde.pde.flow.tractions import tractions
from rannpde.pde.time.tableau import radau_tableau
from rannpde.pde.weak.evaluation import volume_points
from rannpde.pde.weak.evolution_solver import INDICATOR_TIMES
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.state import CHECK_POINTS, WeakResolution
from rannpde.rounding import COMPUTED

STAGES_AT_ONCE = 24
"""Stages whose pressures are computed together where data do not change in time: a few megabytes of tables."""


class FlowEvolutionDiscretisation:
    """A flow in time on cells, for the adaptive loop."""

    failure = None

    def __init__(
        self,
        evolution: FlowEvolution,
        tol: float,
        settings: WeakSettings,
        rng: np.random.Generator,
        check_budget: Callable[[], None],
        stop: Callable[[], bool],
        on_step: Callable[[float, int], None],
        degree: int | None = None,
    ) -> None:
        self.evolution, self.tol, self.check_budget, self.stop, self.on_step = (
            evolution,
            tol,
            check_budget,
            stop,
            on_step,
        )
        self.space = FlowDiscretisation(evolution.form, tol, settings, rng, check_budget, degree)
        self.corners = self.space.corners
        self.iterations = self.newton_steps = 0
        self.vanishing = self.still = self.impulsive = self.incomplete = False
        self.last: FlowIterate | None = None

    @cached_property
    def check_points(self) -> Array:
        """Points (M, 1 + d) of space and time at which two solutions are compared."""
        return self.evolution.problem.domain.sample(CHECK_POINTS, rng=20_071)

    def first(self) -> WeakResolution:
        """The first cells: those of the flow in space, refined until they resolve the initial velocity too."""
        resolution, settings = self.space.first(), self.space.settings
        tree = resolution.tree
        while len(tree.leaves) < settings.most_cells[1] // 4:
            local = self.space.cells(tree, resolution.degree, np.random.default_rng(0))
            missed, size = _missed(local, self._velocity_at_start)
            coarse = np.flatnonzero(missed > self.tol * max(size, 1e-300))
            if not len(coarse):
                break
            leaves = tree.leaves
            tree = tree.refined({leaves[local.mesh.leaves[cell]]: (0, 1) for cell in coarse.tolist()})
        return WeakResolution(tree, resolution.degree)

    def _velocity_at_start(self, points: Array) -> Array:
        """Velocities (M, 2) at points (M, 2) of space."""
        return self.evolution.start.values(points, 0)[:, list(self.evolution.form.columns[:2])]

    def solve(self, resolution: WeakResolution) -> FlowIterate:
        """One integration in time, with newly drawn functions."""
        space, tuning = self.space, CellsTuning()
        local = space.cells(resolution.tree, resolution.degree, space.rng)
        flow = SemiDiscreteFlow(self.evolution, local, self.check_budget)
        begin = flow.projected(self._velocity_at_start, self.evolution.interval[0])
        if self.last is None:
            for share in (0.0, *radau_tableau(3).nodes):
                flow.move(self._at(share))
                space.check_balance(flow.system)
            flow.move(self._at(0.0))
        self.impulsive = self._starts_with_a_jump(flow)
        tol = tuning.step_tolerance(self.tol, self.iterations)
        tableau = tuning.tableau(tol)
        path = FlowIntegrator(flow, tableau, tol, self._pressed, self._stopped, self.on_step).run(begin)
        self.iterations += 1
        self.newton_steps = len(path.times) - 1
        self.incomplete = not path.complete
        network, shown, series = self._recovered(resolution, flow, path, len(tableau))
        indicators, energy, stress = self._indicators(flow, path, shown)
        self.last = FlowIterate(
            network, local, shown[-1][1], network(self.check_points), indicators, energy, stress, {},
            flow.system.unknowns, series,
        )  # fmt: skip
        return self.last

    @property
    def _pressed(self) -> bool:
        """Whether errors of the pressure have a meaning."""
        return not (self.impulsive or self.corners.jumps)

    def _at(self, share: float) -> float:
        start, end = self.evolution.interval
        return start + share * (end - start)

    def _stopped(self) -> bool:
        if self.stop() and self.last is not None:
            raise OutOfBudget
        return self.stop()

    def _starts_with_a_jump(self, flow: SemiDiscreteFlow) -> bool:
        """Whether the initial velocity is not that of the boundary, so that the pressure is infinite at the start."""
        local, boundary = flow.local, flow.local.boundary
        pairs = np.arange(local.interior, len(local.cell))
        points = local.points[pairs]
        given = self._velocity_at_start(points.reshape(-1, 2)).reshape(points.shape)
        gap = (boundary.values - given)[..., :, None] * np.stack([local.normals[pairs], local.tangents[pairs]], axis=-1)
        gap = gap.sum(axis=-2) * np.stack([boundary.normal, boundary.tangential], axis=1)[:, None]
        size = max(float(np.abs(given).max()), float(np.abs(boundary.values).max()), 1e-300)
        return bool(np.abs(gap).max() > COMPUTED * size)

    def _recovered(
        self, resolution: WeakResolution, flow: SemiDiscreteFlow, path: FlowTrajectory, stages: int
    ) -> tuple[CellTrajectory, list[tuple[int, RecoveredFlow]], ForceSeries]:
        """The fields in space and time, the flows at a few stages with their numbers, and forces at all stages."""
        system, (start, end) = flow.system, self.evolution.interval
        recovery = PressureRecovery(system, self.evolution.density)
        count = len(path.traces)
        nodes = radau_tableau(stages).nodes
        times = (path.times[:-1, None] + np.diff(path.times)[:, None] * nodes).ravel()
        sampled = (
            {int(np.argmin(np.abs(times - start - (times[-1] - start) / 2**k))) for k in range(INDICATOR_TIMES)}
            if count
            else set()
        )
        pressures = np.zeros((1 + count, *flow.shape))
        mean = self._mean(flow) if system.enclosed else None
        forces: dict[str, list[Array]] = {}
        shown = [
            (stage, recovery.recovered(self._state(flow, path, stage, float(times[stage])), path.rates[stage]))
            for stage in sorted(sampled)
        ]
        at_once = 1 if self.evolution.moving else STAGES_AT_ONCE
        for first in range(0, count, at_once):
            some = slice(first, first + at_once)
            flow.move(float(times[first]))
            states = flow.states(FlowVector(path.streams[1:][some], path.traces[some]))
            acting = tractions(system, states)
            pressures[1:][some] = recovery.pressures(states, acting, path.rates[some])
            for name, rows in self.space.side_forces(system, acting).items():
                forces.setdefault(name, []).append(rows)
            self.check_budget()
        if not count:  # no step was completed: the flow at rest is returned
            shown = [(0, recovery.recovered(flow.state(FlowVector(path.streams[0], np.zeros(system.total)))))]
        weights = np.concatenate([path.streams, pressures]).swapaxes(0, 1)
        network = flow_network(resolution.tree, flow.local, weights)
        if mean is not None:
            network = _levelled(network, mean, self.evolution.form.columns[2])
        orders = [1, 1, 1]
        orders[self.evolution.form.columns[2]] = 0
        trajectory = CellTrajectory(network, path.times, stages, (orders[0], orders[1], orders[2]), end)
        return trajectory, shown, ForceSeries.of(times, {name: np.concatenate(rows) for name, rows in forces.items()})

    def _state(self, flow: SemiDiscreteFlow, path: FlowTrajectory, stage: int, time: float) -> FlowState:
        """The state of one stage as that of a stationary flow, with the data of its time."""
        flow.move(time)
        return flow.state(FlowVector(path.streams[1 + stage], path.traces[stage]))

    def _mean(self, flow: SemiDiscreteFlow) -> tuple[Array, Array]:
        """Points and weights that sum to 1 for the mean of the pressure."""
        points, weights, _ = volume_points(flow.local)
        return points, weights / weights.sum()

    def _indicators(
        self, flow: SemiDiscreteFlow, path: FlowTrajectory, shown: list[tuple[int, RecoveredFlow]]
    ) -> tuple[Array, float, float]:
        """Squared indicators (C,), the energy, and the viscous stress, as means over a few times."""
        local, form = flow.local, self.evolution.form
        total, energy, stress = np.zeros(local.mesh.count), 0.0, 0.0
        for stage, recovered in shown:
            rate = self.evolution.density * path.rates[stage] if len(path.rates) else None
            residual, own, kinetic = residual_indicators(local, recovered, rate)
            stress = max(stress, float(np.sqrt(form.viscosity * own / form.problem.domain.measure)))
            squares = recovered.jumps + residual
            if self.corners.jumps:
                squares, own = squares * (2 * local.mesh.halfwidths.max(axis=1)) ** 2, kinetic
            total += squares / len(shown)
            energy += own / len(shown)
        return total, energy, stress

    # ------------------------------------------------------------------------------------------ estimate and refine

    def estimate(self, before: FlowIterate | None, now: FlowIterate) -> float:
        """The estimate of the relative L² error in space and time, from the difference of two integrations."""
        difference = self.space.compared(before, now, self._pressed)
        self.vanishing = self.space.vanishing
        # where most is not resolved yet, two integrations may agree by chance
        unresolved = now.relative_indicator > self.space.settings.residual_limit
        return np.inf if self.incomplete or unresolved else difference

    def indicators(self, now: FlowIterate) -> Array:
        return now.indicators

    def refine(self, resolution: WeakResolution, now: FlowIterate, marked: Array) -> WeakResolution | None:
        return self.space.refine(resolution, now, marked)


def _levelled(network: CellNetwork, mean: tuple[Array, Array], column: int) -> CellNetwork:
    """The network whose pressures have the mean zero; column : of the pressure among three fields."""
    points, weights = mean
    coefficients = network.coefficients.copy()
    coefficients[:, -1, column::3] -= weights @ network(points)[:, column::3]
    return CellNetwork(network.tree, network.features, network.boxes, coefficients, network.homes)


def _missed(local: FlowCells, values: Callable[[Array], Array]) -> tuple[Array, float]:
    """L² distances (C,) of velocities (M, 2) at points from those of cells, and the L² norm of all."""
    missed, size = np.zeros(local.mesh.count), 0.0
    for batch in local.batches():
        points, weights, table = local.stream_tables(batch.cells)
        wanted = values(points.reshape(-1, 2)).reshape(points.shape)
        size += float((weights[..., None] * wanted**2).sum())
        for cell, own, given in zip(batch.cells.tolist(), weights, wanted, strict=True):
            if not given.any():
                continue
            root, (hx, hy) = np.sqrt(own)[:, None], local.mesh.halfwidths[cell]
            rows = np.concatenate([root * table[:, 2] / hy, -root * table[:, 1] / hx])
            right = (root * given).T.ravel()
            missed[cell] = np.linalg.norm(rows @ np.linalg.lstsq(rows, right, rcond=1e-12)[0] - right)
    return missed, float(np.sqrt(size))
