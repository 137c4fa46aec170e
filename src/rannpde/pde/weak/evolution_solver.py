"""An evolution in weak form as the adaptive loop needs it: one integration on one mesh, its error estimate, refinement.

Meshes, singular points and refinement are those of the problem in space. The second of two iterations has more
functions, which are drawn anew, and a smaller tolerance in time, so that their difference at points of space and time
shows both errors of the first one: of space and of time. Linear systems are solved directly, to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.cells.time.trajectory import CellTrajectory
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.weak.assembly import HybridSolution, HybridSystem, TracedState
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.displacement import judged_difference
from rannpde.pde.weak.evaluation import sampled, weak_network
from rannpde.pde.weak.evolution import WeakEvolution
from rannpde.pde.weak.integration import WeakIntegrator, WeakTrajectory
from rannpde.pde.weak.mesh import WeakMesh
from rannpde.pde.weak.residual_indicators import residual_indices, solution_indicators
from rannpde.pde.weak.semidiscrete import SemiDiscreteForm
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation
from rannpde.pde.weak.state import CHECK_POINTS, WeakResolution, WeakState

INDICATOR_TIMES = 3
"""Times, each a quarter of the one after it, at which indicators are evaluated."""


class EvolutionDiscretisation:
    """An evolution in weak form on cells, for the adaptive loop."""

    failure = None
    newton_steps = 0

    def __init__(
        self,
        evolution: WeakEvolution,
        tol: float,
        settings: WeakSettings,
        rng: np.random.Generator,
        check_budget: Callable[[], None],
        stop: Callable[[], bool],
        degree: int | None = None,
    ) -> None:
        self.evolution, self.tol, self.check_budget, self.stop = evolution, tol, check_budget, stop
        self.space = WeakDiscretisation(evolution.still, tol, settings, rng, check_budget, degree)
        self.iterations = 0
        self.changes: list[float] = []
        self.first_step = np.inf  # length of the first step of the last iteration
        self.sizes = np.zeros(evolution.still.fields)  # largest norms of the fields in it
        self.last: WeakState | None = None

    @cached_property
    def check_points(self) -> Array:
        """Points (M, 1 + d) of space and time at which two solutions are compared."""
        return self.evolution.problem.domain.sample(CHECK_POINTS, rng=20_071)

    def first(self) -> WeakResolution:
        """The first cells: those of the problem in space, refined until they resolve the initial values too."""
        resolution = self.space.first()
        settings, dim = self.space.settings, self.space.dim
        layer = HiddenLayer.sample(dim, resolution.degree, settings, np.random.default_rng(0), self.space.curved)
        tree, most = resolution.tree, settings.most_cells[dim - 1] // 4
        starts = self.evolution.start
        orders = sorted({order for (_, order), (formula, _) in starts.formulas.items() if formula.free_symbols})
        while orders and len(tree.leaves) < most:  # constants are functions of every cell
            mesh = self.space.mesh(tree, layer)
            coarse = set()
            for order in orders:
                missed, size = _projection_misses(mesh, layer, partial(starts.values, order=order))
                coarse |= set(np.flatnonzero(missed > self.tol * max(size, 1e-300)).tolist())
            if not coarse:
                break
            leaves = tree.leaves
            tree = tree.refined({leaves[mesh.leaves[cell]]: tuple(range(dim)) for cell in coarse})
        return WeakResolution(tree, resolution.degree)

    def solve(self, resolution: WeakResolution) -> WeakState:
        """One integration in time, with newly drawn functions."""
        space = self.space
        layer = HiddenLayer.sample(space.dim, resolution.degree, space.settings, space.rng, space.curved)
        mesh = space.mesh(resolution.tree, layer)
        system = SemiDiscreteForm(self.evolution, mesh, layer, self.check_budget)
        starts = self.evolution.start
        begin = system.projected(lambda points: starts.values(points, 0))[0]
        rate = np.zeros_like(begin)
        if max(self.evolution.orders) > 1:
            rate = system.projected(lambda points: starts.values(points, 1))[0]
        tuning = CellsTuning()
        tol = tuning.step_tolerance(self.tol, self.iterations)
        tableau = tuning.tableau(tol)
        segments = 1 if self.iterations % 2 else 3  # no step has the length of one of the iteration before
        integrator = WeakIntegrator(system, tableau, tol, segments, self.stop, self.first_step)
        path = integrator.run(begin, rate, self.sizes)
        self.iterations += 1
        self.first_step = float(path.times[1] - path.times[0])
        self.sizes = system.norms(path.vectors[:: len(tableau)]).max(axis=0)
        network = self._network(system, path, len(tableau))
        indicators, energy, shown = self._indicators(system, path, tableau.derivative)
        unknowns = system.traces + begin.size
        self.last = WeakState(
            network.cells, mesh, system.local, shown, network(self.check_points), indicators, energy, unknowns,
            network, len(path.times) - 1,
        )  # fmt: skip
        return self.last

    def _network(self, system: SemiDiscreteForm, path: WeakTrajectory, stages: int) -> CellTrajectory:
        orders = self.evolution.orders
        vectors = np.concatenate([path.vectors, path.rates]) if max(orders) > 1 else path.vectors
        count, fields = system.mesh.count, system.fields
        weights = vectors.reshape(len(vectors), count, fields, system.size).transpose(1, 0, 2, 3)
        flat = HybridSolution(weights.reshape(count, -1, system.size), path.traces, np.zeros(count))
        return CellTrajectory(weak_network(system.local, flat), path.times, stages, orders, self.evolution.interval[1])

    def _indicators(
        self, system: SemiDiscreteForm, path: WeakTrajectory, derivative: Array
    ) -> tuple[Array, float, HybridSolution]:
        """Squared indicators (C,) and the energy, both as integrals over time, and the solution when they were largest.

        They are evaluated at the ends of a few steps: of incompatible data only the L² part remains there.
        """
        stages, space, fields = len(derivative), self.space, system.fields
        ends = path.times[1:] - path.times[0]
        picked = sorted(
            {int(np.searchsorted(ends, ends[-1] / 4**k - 1e-12 * ends[-1])) for k in range(INDICATOR_TIMES)}
        )
        shape = (system.mesh.count, fields, system.size)
        states = [path.vectors[(step + 1) * stages].reshape(shape) for step in picked]
        speeds = [one.reshape(shape) for step in picked for one in self._speeds(path, step, derivative)]
        order = max(self.evolution.orders)
        together = HybridSolution(np.concatenate(states + speeds, axis=1), path.traces, np.zeros(shape[0]))
        points, weights, owners, tables = sampled(system.local, together, residual_indices(space.problem))
        still = (0,) * space.dim
        residuals, sizes, traced = [], [], []
        for number, step in enumerate(picked):
            self.evolution.moment.value = path.times[step + 1]
            first = fields * (len(picked) + order * number)
            for k, row in enumerate(self.evolution.rates[:order]):
                for f, held in enumerate(row):
                    held.value = tables[still][:, first + k * fields + f]
            own = {index: table[:, number * fields : (number + 1) * fields] for index, table in tables.items()}
            residual, size = solution_indicators(space.form, None, system.local, (points, weights, owners, own))
            residuals.append(residual)
            sizes.append(size + self._moving_energy(states[number], speeds[order * number], system, ends[step]))
            system.local.read_conditions()
            traces = path.traces[(step + 1) * stages].reshape(system.mesh.faces, fields, -1)
            traced.append(TracedState(states[number], traces, system.local.values, system.local.natural))
        spans = np.diff(ends[picked], prepend=0.0)
        squares = spans[:, None] * (np.stack(residuals) + HybridSystem(system.local).jumps_of_states(traced))
        worst = traced[int(squares.sum(axis=1).argmax())]
        for held in (one for row in self.evolution.rates for one in row):
            held.value = 0.0
        shown = HybridSolution(worst.weights, worst.traces, np.zeros(shape[0]))
        return squares.sum(axis=0), float(spans @ sizes), shown

    def _moving_energy(self, state: Array, speed: Array, system: SemiDiscreteForm, time: float) -> float:
        """u·M₁u over the time so far, and ∂_t u·M₂ ∂_t u: what the energy balance contains besides the gradients.

        A solution that does not vary in space has no other energy that its error could be compared with.
        """
        state, speed = state.reshape(len(state), -1), speed.reshape(len(speed), -1)
        held = abs(float((state * system.weighted(1, state)).sum())) / time
        return held + abs(float((speed * system.weighted(2, speed)).sum()))

    def _speeds(self, path: WeakTrajectory, step: int, derivative: Array) -> list[Array]:
        """∂_t and, of fields of second order, ∂_t² at the end of a step."""
        stages, length = len(derivative), path.times[step + 1] - path.times[step]
        own = path.vectors[step * stages + 1 : (step + 1) * stages + 1] - path.vectors[step * stages]
        rates = np.tensordot(derivative, own, axes=1) / length
        if max(self.evolution.orders) < 2:
            return [rates[-1]]
        return [rates[-1], np.tensordot(derivative[-1], rates - path.rates[step], axes=1) / length]

    @property
    def displacement(self) -> bool:
        """Whether the fields are components of one vector, whose error is measured as that of a vector."""
        return self.space.displacement

    def estimate(self, before: WeakState | None, now: WeakState) -> float:
        """The estimate of the relative L² error in space and time, from the difference of two integrations."""
        if before is None or not np.isfinite(now.values).all() or not np.isfinite(before.values).all():
            return np.inf
        change = judged_difference(self.displacement, before.values, now.values)
        settings = self.space.settings
        gain = now.relative_indicator / max(before.relative_indicator, 1e-300)
        factor = float(np.clip(settings.trust * gain, settings.least_gain, 1.0))
        if self.changes:  # two differences give the ratio of a geometric series, whose rest is the error
            ratio = min(change / self.changes[-1], 0.5)
            factor = min(factor, max(ratio / (1 - ratio), gain))
        self.changes.append(change)
        self.space.known = change * factor
        return self.space.known

    def indicators(self, now: WeakState) -> Array:
        return now.indicators

    def refine(self, resolution: WeakResolution, now: WeakState, marked: Array) -> WeakResolution | None:
        return self.space.refine(resolution, now, marked)


def _projection_misses(mesh: WeakMesh, layer: HiddenLayer, values: Callable[[Array], Array]) -> tuple[Array, float]:
    """L² distances (C,) of values (M, F) from the functions of a layer, by cells, and the L² norm of all."""
    missed, size = np.zeros(mesh.count), 0.0
    for cell in range(mesh.count):
        part, (grid, shares) = mesh.parts.get(cell), layer.grid
        half = mesh.halfwidths[cell]
        middle = mesh.boxes[cell].mean(axis=1)
        points = middle + half * grid if part is None else part.points
        weights = float(half.prod()) * shares if part is None else part.weights
        root = np.sqrt(weights)[:, None]
        target = root * values(points)
        size += float(np.square(target).sum())
        if np.ptp(target / np.where(root > 0, root, 1.0), axis=0).max() == 0.0:
            continue
        table = root * layer.tables((points - middle) / half)[:, 0]
        solved = np.linalg.lstsq(table, target, rcond=1e-12)[0]
        missed[cell] = np.linalg.norm(table @ solved - target)
    return missed, float(np.sqrt(size))
