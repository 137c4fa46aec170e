"""A flow as the adaptive loop needs it: one solve on cells, its error estimator, and its refinement.

As for the weak form of other equations, every iteration solves in a richer space with new random functions, and the
error of the later of two solutions is about their difference times the factor by which the indicators fell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log10

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import Side
from rannpde.errors import InputError
from rannpde.pde.adaptivity.loop import OutOfBudget
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.cells.network import CellNetwork
from rannpde.pde.cells.time.trajectory import CellTrajectory
from rannpde.pde.flow.assembly import FlowSystem
from rannpde.pde.flow.corners import flow_corners
from rannpde.pde.flow.difference import flow_difference
from rannpde.pde.flow.forces import ForceSeries
from rannpde.pde.flow.form import FlowForm
from rannpde.pde.flow.local import FlowCells
from rannpde.pde.flow.matrices import FlowState
from rannpde.pde.flow.newton import FlowNewton
from rannpde.pde.flow.pressure import PressureRecovery, RecoveredFlow, flow_network, residual_indicators
from rannpde.pde.flow.scalar_estimates import scalar_indicators
from rannpde.pde.flow.scalar_fluxes import scalar_fluxes
from rannpde.pde.flow.tractions import FaceTractions, patch_forces, tractions
from rannpde.pde.newton import NewtonFailure
from rannpde.pde.residual import Term, root_mean_square
from rannpde.pde.tolerance import ALGEBRA_SHARE
from rannpde.pde.weak.basis import HiddenLayer, columns_of
from rannpde.pde.weak.evaluation import decay, volume_points
from rannpde.pde.weak.grading import SingularPoint, following_data, touches, towards_points
from rannpde.pde.weak.mesh import ConditionFinder
from rannpde.pde.weak.meshing import ShapeMesher
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.state import CHECK_POINTS, WeakResolution
from rannpde.rounding import COMPUTED


@dataclass(frozen=True, eq=False)
class FlowIterate:
    """One solution: the network, its cells, values (M, 3) at the check points, squared indicators (C,), what they are
    relative to, the size of the viscous stress, forces on sides, how many unknowns it took, forces in time, and fluxes
    of scalars through sides."""

    network: CellNetwork | CellTrajectory
    local: FlowCells
    solution: RecoveredFlow
    values: Array
    indicators: Array
    energy: float
    stress: float
    forces: Mapping[str, Array]
    unknowns: int
    series: ForceSeries | None = None
    fluxes: Mapping[str, Array] = field(default_factory=dict)

    @property
    def relative_indicator(self) -> float:
        return float(np.sqrt(self.indicators.sum() / max(self.energy, 1e-300)))


class FlowDiscretisation:
    """A flow on cells, for the adaptive loop."""

    def __init__(
        self,
        form: FlowForm,
        tol: float,
        settings: WeakSettings,
        rng: np.random.Generator,
        check_budget: Callable[[], None],
        degree: int | None = None,
        like: CellNetwork | None = None,
    ) -> None:
        """like : a flow of the same domain at other numbers, from whose cells and velocity to begin."""
        self.form, self.tol, self.settings, self.rng, self.check_budget = form, tol, settings, rng, check_budget
        self.like = like
        self.problem = form.problem
        self.corners = flow_corners(form)
        finder = ConditionFinder((*form.terms, *form.scalar_terms), 2 + len(form.scalars))
        self.mesher = ShapeMesher(self.problem.domain, finder, settings)
        self.first_degree = degree or self._degree()
        self.last: FlowIterate | None = None
        self.known = np.inf
        self.newton_steps = 0
        self.failure: NewtonFailure | None = None
        self.gap = 0.0
        self.vanishing = self.still = False

    @property
    def most_degree(self) -> int:
        """The highest degree: beyond it, derivatives of the functions of cut cells are rounding errors."""
        most = self.settings.most_degree[1]
        return most - 2 if self.mesher.clippers else most

    @cached_property
    def check_points(self) -> Array:
        """Points (M, d) at which two solutions are compared."""
        return self.problem.domain.sample(CHECK_POINTS, rng=20_071)

    def _degree(self) -> int:
        start, per_digit = self.settings.degree
        return min(round(start - per_digit * log10(self.tol)), self.most_degree)

    def first(self) -> WeakResolution:
        """The first resolution; where a similar flow is known, the one before the last refinement of that flow."""
        if self.like is not None:
            columns = self.like.features.width
            fits = [n for n in range(3, self.most_degree + 1) if columns_of(2, n, self.settings) <= columns]
            return WeakResolution(self.like.tree, max([3, *(n - 2 for n in fits)]))
        settings, degree = self.settings, self.first_degree
        most = settings.most_cells[1] // 4
        return WeakResolution(
            following_data(self.tree(self.tol), self.problem, settings.per_cell * degree, most), degree
        )

    def tree(self, tol: float) -> CellNode:
        """Cells that follow curves and singular points as far as a tolerance needs."""
        return self.mesher.tree(self.corners.points, tol, self.settings.first_cells[1])

    def cells(self, tree: CellNode, degree: int, rng: np.random.Generator) -> FlowCells:
        layer = HiddenLayer.sample(2, degree, self.settings, rng, self.mesher.curved)
        return FlowCells(self.form, self.mesher.mesh(tree, layer), layer, self.check_budget)

    def solve(self, resolution: WeakResolution) -> FlowIterate:
        """One solve with newly drawn functions, by Newton's method where there is inertia."""
        local = self.cells(resolution.tree, resolution.degree, self.rng)
        system = FlowSystem(local)
        if self.last is None:
            self.check_balance(system)
        newton = FlowNewton(ALGEBRA_SHARE * self.tol, self.settings)
        try:
            start = self.like if self.last is None else self.last.network
            known = self._coarse(newton, resolution) if start is None else self._velocity(start)
            state, self.newton_steps = newton.solve(system, known)
        except NewtonFailure as failure:
            self.failure = failure.with_traceback(None)  # its frames hold factorisations
            if self.last is not None:
                raise OutOfBudget from None
            state, self.newton_steps = failure.state, failure.steps
        solution = PressureRecovery(system).recovered(state)
        residual, energy, kinetic = residual_indicators(local, solution)
        indicators = solution.jumps + residual
        stress = float(np.sqrt(self.form.viscosity * energy / self.problem.domain.measure))
        carried = scalar_indicators(system, state) if self.form.scalars else 0.0
        if self.corners.jumps:  # the energy is infinite: by duality, an L² error is smaller by the size of its cell
            indicators, energy = indicators * (2 * local.mesh.halfwidths.max(axis=1)) ** 2, kinetic
        if self.form.scalars:
            indicators, energy = indicators / max(energy, 1e-300) + carried, 1.0
        network, level = self._gauged(system, flow_network(resolution.tree, local, solution.weights))
        self.last = FlowIterate(
            network, local, solution, network(self.check_points), indicators, energy,
            stress, self.forces(system, state, level), system.unknowns, fluxes=scalar_fluxes(system, state),
        )  # fmt: skip
        return self.last

    def _velocity(self, network: CellNetwork | CellTrajectory) -> Callable[[Array], Array]:
        columns = [*self.form.columns[:2], *self.form.scalar_columns]
        return lambda points: network(points)[:, columns]

    def _coarse(self, newton: FlowNewton, resolution: WeakResolution) -> Callable[[Array], Array] | None:
        """A start for the first mesh: the flow with functions of a low degree on the same cells."""
        degree = self.settings.coarse_degree
        if self.form.linear or resolution.degree <= degree + 1:
            return None
        local = self.cells(resolution.tree, degree, np.random.default_rng(0))
        try:
            state, _ = replace(newton, tol=self.settings.coarse_step).solve(FlowSystem(local), None)
        except NewtonFailure:
            return None
        weights = np.stack([state.stream, np.zeros_like(state.stream), *state.scalars.swapaxes(0, 1)], axis=1)
        return self._velocity(flow_network(resolution.tree, local, weights))

    def check_balance(self, system: FlowSystem) -> None:
        """Raise an InputError where the velocity is prescribed on the whole boundary and its fluxes do not balance."""
        if not system.enclosed:
            return
        local, boundary = system.local, system.local.boundary
        flux = (local.normals[local.interior :] * boundary.values).sum(axis=2) * local.weights[local.interior :]
        size = float(np.abs(flux).sum())
        if abs(float(flux.sum())) > COMPUTED * size:
            raise InputError(
                f"the velocity is prescribed on the whole boundary, and {abs(float(flux.sum())) / size:.1e} of what "
                "crosses it is left over: an incompressible flow has none; let some side be an outflow, or balance them"
            )

    def _gauged(self, system: FlowSystem, network: CellNetwork) -> tuple[CellNetwork, float]:
        """The pressure with the stated constant, or with the mean zero, where the flow does not determine it; and the
        number that was added to it."""
        column = self.form.columns[2]
        shift = 0.0
        if system.enclosed and not self.form.gauges:
            points, weights, _ = volume_points(system.local)
            shift = -float(np.average(network(points)[:, column], weights=weights))
        elif self.form.gauges:
            gaps = np.concatenate([self._gauge(term, network) for term in self.form.gauges])
            shift = float(gaps.mean()) if system.enclosed else 0.0
            size = float(np.abs(network(self.check_points)[:, column] + shift).max())
            self.gap = float(np.sqrt(np.mean((gaps - shift) ** 2))) / max(size, 1e-300)
        coefficients = network.coefficients.copy()
        coefficients[:, -1, column] += shift
        return replace(network, coefficients=coefficients), shift

    def _gauge(self, term: Term, network: CellNetwork) -> Array:
        """The differences (M,) of the pressure that a condition states and the computed one, at points."""
        points = term.points if term.points is not None else None
        if points is None:
            assert term.region is not None
            points = term.region.sample(CHECK_POINTS // 20, rng=1)
        known = term.known(points, self.problem.vocabulary, term.data)
        pressure = network(points)[:, self.form.columns[2]]
        value, (slope,) = term.expression.linearised(known, {term.expression.jets[0]: pressure})
        return np.asarray(-np.broadcast_to(value / slope, (len(points),)))

    def forces(self, system: FlowSystem, state: FlowState, level: float) -> dict[str, Array]:
        """Force (2,) of the flow on each side on which conditions were stated; level : added to the pressure."""
        acting = tractions(system, state.alone)
        raised = replace(acting, normal=acting.normal + level)
        return {name: rows[0] for name, rows in self.side_forces(system, raised).items()}

    def side_forces(self, system: FlowSystem, acting_tractions: FaceTractions) -> dict[str, Array]:
        """Forces (s, 2) of several states on each side, from their tractions."""
        patches = system.mesh.patches
        acting = patch_forces(system, acting_tractions)
        middle = patches.points.shape[1] // 2
        holds = self.mesher.finder.holds(patches.points[:, middle], patches.normals[:, middle])
        forces: dict[str, Array] = {}
        for number, term in enumerate(self.form.terms):
            assert isinstance(term.region, Side)
            forces[term.region.name] = acting[:, holds[:, number]].sum(axis=1)
        return forces

    # ------------------------------------------------------------------------------------------ estimate and refine

    def estimate(self, before: FlowIterate | None, now: FlowIterate) -> float:
        """The estimate of the relative L² error, from the difference of two solutions and the factor by which their
        indicators fell."""
        return max(self.compared(before, now), self.gap)

    def compared(self, before: FlowIterate | None, now: FlowIterate, pressed: bool = True) -> float:
        """The estimate without the error of the level of the pressure; pressed : whether its errors count."""
        if before is None:
            return np.inf
        length = float(np.ptp(np.asarray(self.problem.domain.bounds, dtype=float), axis=1).max())
        difference = flow_difference(
            before.values, now.values, self.form.columns, now.stress, length / self.form.viscosity, self.tol
        )
        pressed = pressed and not self.corners.jumps  # where the velocity jumps, the pressure is not in L²
        self.vanishing, self.still = difference.vanishing and pressed, difference.still
        change = max(difference.velocity, difference.pressure) if pressed else difference.velocity
        for column in self.form.scalar_columns:
            gap, size = (root_mean_square(one[:, column]) for one in (now.values - before.values, now.values))
            change = max(change, gap / max(size, 1e-300))
        gain = now.relative_indicator / max(before.relative_indicator, 1e-300)
        settings = self.settings
        self.known = change * float(np.clip(settings.trust * gain, settings.least_gain, 1.0))
        return self.known

    def indicators(self, now: FlowIterate) -> Array:
        return now.indicators

    def refine(self, resolution: WeakResolution, now: FlowIterate, marked: Array) -> WeakResolution | None:
        """A higher degree, and smaller cells where marked ones are not smooth."""
        tree, settings = resolution.tree, self.settings
        smooth = decay(now.local, now.solution) > settings.smooth_decay
        slack, leaves = 1e-9 * tree.lengths, tree.leaves
        levels: dict[SingularPoint, int] = {}
        cut: dict[CellNode, tuple[int, ...]] = {}
        top = resolution.degree >= self.most_degree
        for cell in np.flatnonzero(marked):
            leaf = leaves[now.local.mesh.leaves[cell]]
            own = [one for one in self.corners.points if touches(leaf, np.array(one.point), slack)]
            if own:
                levels[own[0]] = own[0].more_levels(self.known / self.tol, *settings.more_levels)
            elif top or not smooth[cell]:
                cut[leaf] = (0, 1)
        tree = towards_points(tree.refined(cut), [(one.point, count) for one, count in levels.items()])
        in_smooth = now.indicators[marked & smooth].sum() >= 0.5 * now.indicators[marked].sum()
        degree = min(resolution.degree + (2 if in_smooth else 1), self.most_degree)
        if len(tree.leaves) > settings.most_cells[1]:
            return None
        return WeakResolution(tree, degree)
