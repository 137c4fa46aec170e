"""Random features as a basis in space: one static basis for an iteration, adapted to the solution of the last one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.network.adapted import inverse_length
from rannpde.network.features import RandomFeatures
from rannpde.pde.lines.comparison import check_points
from rannpde.pde.lines.features.basis import FeatureBasis, affordable_width, build_basis
from rannpde.pde.lines.features.galerkin import Galerkin
from rannpde.pde.lines.features.resolution import Resolution, extent, from_data, from_nodes
from rannpde.pde.lines.settings import IterationSettings, RunningAmplitude, first_scales
from rannpde.pde.lines.solution import SpaceTimeSolution, TimeSegment
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.problem.evolution import Component, Evolution, evolution_form
from rannpde.pde.tolerance import GAIN, SAME_SOLUTION
from rannpde.rounding import ROUNDED


class FeatureDiscretisation:
    """Iterations with random features that are adapted to the solution.

    One static basis, which resolves the solution at all times, serves a whole iteration: every projection on a new one
    would cost an error.
    """

    def __init__(self, evolution: Evolution, settings: IterationSettings, rng: np.random.Generator) -> None:
        self.settings, self.rng, self.tolerances = settings, rng, settings.tolerance_schedule()
        self.weak, self.strong = evolution, evolution_form(evolution.problem, weak=False)
        self.space = evolution.domain.space
        self.resolution = from_data(evolution, settings.tuning)
        self.scales: Mapping[Component, float] = first_scales(evolution)
        self.touching, self.refinement = bool(evolution.problem.bounds), 1.0
        self.amplitude: RunningAmplitude | None = None

    def run(self, number: int, tol: float) -> SpaceTimeSolution:
        """The solution of one iteration over the whole time."""
        weak = self.touching or (self._weak_form_suffices(tol) and self.space.dim == 1)
        system = self._system(self.weak if weak else self.strong, max(tol, self.settings.tol), tol)
        integrator = self.settings.time_integrator(tol, number, system, self.amplitude)
        trajectory = integrator.run(system, system.evolution.domain.time, system.initial_state())
        return SpaceTimeSolution(self.weak, (TimeSegment(system, trajectory),))

    def adapt(self, solution: SpaceTimeSolution, failed: bool) -> bool:
        """Adapt the basis to the solution; False where even the widest one would be too narrow."""
        tuning = self.settings.tuning
        self.refinement *= tuning.growth if failed else 1.0
        observed, self.scales = estimate_length_scales(solution, tuning)
        self.resolution = observed.limited(self.resolution.limit)
        self.amplitude = RunningAmplitude.of(solution, tuning)
        self.touching = _touches_bounds(solution)
        room = tuning.width_excess * tuning.most_width[self.space.dim - 1]
        return self.settings.width is not None or self.resolution.wanted_width(self.settings.tol) <= room

    def _weak_form_suffices(self, tol: float) -> bool:
        """Whether the rounding of the weak form is below that tolerance."""
        return float(np.finfo(float).eps) / self.settings.tuning.weak_cutoff < tol

    def _system(self, form: Evolution, tol: float, own: float) -> Galerkin:
        """The semi-discrete system of an iteration.

        tol : for the number of features
        own : the tolerance of the iteration, by which functions are cut off; smaller in every iteration, as an error
            that all of them share would not show in their differences
        """
        settings, tuning, dim = self.settings, self.settings.tuning, self.space.dim
        resolution = self.resolution.refined(self.refinement)
        coarse = form.weak and dim == 1 and self._weak_form_suffices(tol / 5)  # its rounding is far below the tolerance
        rule = resolution.rule(boundary=form.weak, density=tuning.weak_node_share if coarse else 1.0)
        wanted = max(resolution.wanted_width(tol), tuning.least_width[dim - 1])
        width = settings.width or int(min(wanted, tuning.most_width[dim - 1], 0.7 * len(rule.points)))
        if settings.width is None:  # a basis that takes all the time allowed leaves none for a step
            width = min(width, max(tuning.least_width[dim - 1], affordable_width(len(rule.points), tuning.basis_share)))
        features = RandomFeatures.sample(
            width=width, dim=dim, law=resolution.law(), activation="tanh", rng=self.rng, constant=True
        )
        cutoff = max(tuning.weak_cutoff, 1e-5 * own) if form.weak else max(tuning.strong_cutoff, 1e-3 * own)
        boundary = ROUNDED if dim == 1 else max(ROUNDED, 1e-3 * own)
        points = tuning.boundary_points
        bases = {
            name: build_basis(
                features, rule, form, name, cutoff=cutoff, boundary_cutoff=boundary, boundary_points=points
            )
            for name in form.orders
        }
        # the truncated basis needs fewer nodes than all features do
        enough = tuning.nodes_per_function * max(one.rank for one in bases.values()) / len(rule.points)
        if dim == 1 and not form.weak and enough < GAIN:
            fewer = resolution.rule(boundary=False, density=enough)
            bases = {name: one.on(fewer) for name, one in bases.items()}
        return Galerkin(form, bases, self.scales)


def estimate_length_scales(
    solution: SpaceTimeSolution, tuning: LinesTuning
) -> tuple[Resolution, Mapping[Component, float]]:
    """The resolution that the solution needs over all times, by sampling it, and the sizes of its components."""
    segment = solution.segments[0]
    system, trajectory = segment.system, segment.trajectory
    assert isinstance(system, Galerkin)
    space = system.evolution.domain.space
    times = np.append(
        np.linspace(trajectory.times[0], trajectory.reliable, tuning.length_scale_times),
        trajectory.times[:: max(1, len(trajectory.steps) // 200)],
    )
    times = np.unique(times[times <= trajectory.reliable])
    states, inside = trajectory(times), len(system.nodes)
    total, scales = np.zeros(inside), {}
    for component, block in system.slices.items():
        basis = system.bases[component.field]
        data = basis.data(times, component.level)
        values = partial(_node_values, basis, basis.coefficients(states[block], data), data, inside)
        value = values((0,) * space.dim)
        weights = basis.rule.weights / basis.rule.weights.sum()
        scales[component] = float(np.sqrt(weights @ value**2).max()) or 1.0
        if component.level == 0:
            slope, curvature = (
                np.sqrt(sum(values(index) ** 2 for index in _indices(space.dim, order))) for order in (1, 2)
            )
            total = np.maximum(total, inverse_length(value, slope, curvature, extent(space)))
    return from_nodes(space, system.nodes, total, tuning), scales


def _node_values(basis: FeatureBasis, own: Array, data: Array, inside: int, index: MultiIndex) -> Array:
    """(Q, s): a space derivative at the nodes inside, from coefficients (rank, s) and boundary values (m, s)."""
    functions, lifting = basis.values(index)
    return functions[:inside] @ own + lifting[:inside] @ data


def _touches_bounds(solution: SpaceTimeSolution) -> bool:
    """Whether a field comes close to a declared bound, where its equation may degenerate."""
    problem = solution.evolution.problem
    if not problem.bounds:
        return False
    values = solution(check_points(solution.evolution, solution.end))
    for name, bounds in problem.bounds.items():
        own = values[:, problem.fields.index(name)]
        margin = SAME_SOLUTION * np.ptp(own)
        if any(bound is not None and np.abs(own - bound).min() <= margin for bound in bounds):
            return True
    return False


def _indices(dim: int, order: int) -> list[MultiIndex]:
    """Multi-indices of order 1 or 2, each as often as it occurs in the gradient or the Hessian."""
    units = np.eye(dim, dtype=int)
    rows = units if order == 1 else (units[:, None] + units[None]).reshape(-1, dim)
    return [tuple(int(k) for k in row) for row in rows]
