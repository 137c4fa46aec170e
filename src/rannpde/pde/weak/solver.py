"""The weak form as the adaptive loop needs it: one solve on cells, its error estimator, and its refinement.

Every iteration solves in a richer space than the one before, with new random functions: the degree rises, and cells are
halved where the indicators are large and the solution is not smooth. The error of the earlier of two solutions is then
about their difference, and the later one is better by the factor by which the indicators fell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from math import ceil, log, log10

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.operations.cutrules import ALL_DIGITS
from rannpde.errors import InputError
from rannpde.pde.adaptivity.loop import OutOfBudget
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.cells.network import CellNetwork
from rannpde.pde.newton import NewtonFailure
from rannpde.pde.tolerance import ALGEBRA_SHARE
from rannpde.pde.weak.assembly import HybridSolution, HybridSystem
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.compatibility import incompatible_edges
from rannpde.pde.weak.displacement import is_displacement, judged_difference
from rannpde.pde.weak.edges import DEGREE_GAIN, SingularEdge, singular_edges, towards_edges, trace_degrees
from rannpde.pde.weak.evaluation import axis_decay, decay, sampled, volume_points, weak_network
from rannpde.pde.weak.form import WeakForm
from rannpde.pde.weak.grading import (
    LEVELS,
    RINGS,
    SingularPoint,
    following_data,
    form_interfaces,
    known_points,
    leaves_at,
    towards_points,
)
from rannpde.pde.weak.interface_points import interface_points, with_interfaces
from rannpde.pde.weak.kernel import UNBALANCED, FreeMotions, free_motions, imbalance
from rannpde.pde.weak.local import LocalMatrices
from rannpde.pde.weak.mesh import ConditionFinder, WeakMesh, open_slits
from rannpde.pde.weak.meshing import ShapeMesher
from rannpde.pde.weak.newton import WeakNewton
from rannpde.pde.weak.obstacle import ReactionForm, touching_state, with_reactions
from rannpde.pde.weak.quasilinear_form import QuasilinearForm
from rannpde.pde.weak.residual_indicators import residual_indices, solution_indicators
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.state import CHECK_POINTS, WeakResolution, WeakState
from rannpde.pde.weak.stiff_strains import IteratedPenalty, limited_ratio
from rannpde.pde.weak.tangent import TangentSystem
from rannpde.rounding import COMPUTED, EPS


class WeakDiscretisation:
    """A problem in weak form on cells, for the adaptive loop."""

    def __init__(
        self,
        form: WeakForm,
        tol: float,
        settings: WeakSettings,
        rng: np.random.Generator,
        check_budget: Callable[[], None],
        degree: int | None = None,
    ) -> None:
        self.form, self.tol, self.settings, self.rng, self.check_budget = form, tol, settings, rng, check_budget
        self.problem = form.problem
        self.dim = self.problem.domain.dim
        self.finder = ConditionFinder(form.terms, form.fields)
        self.interfaces = form_interfaces(form)
        digits = min(ceil(-log10(ALGEBRA_SHARE * tol)), ALL_DIGITS)
        self.mesher = ShapeMesher(self.problem.domain, self.finder, settings, self.interfaces, digits)
        if self.mesher.solid is not None:  # nodes of cut cells are many in space: one beyond, and one for two digits
            self.settings = replace(settings, more_nodes=min(settings.more_nodes, 1 + digits // 2))
        elif self.mesher.curved:  # nodes for all digits of curved sides, in proportion
            curved = ceil(settings.curved_nodes * digits / ALL_DIGITS)
            self.settings = replace(settings, curved_nodes=max(curved, settings.more_nodes))
        self.points: tuple[SingularPoint, ...] = known_points(form)
        self.points = with_interfaces(self.points, interface_points(form, self.finder, self.mesher.regions))
        self.edges: tuple[SingularEdge, ...] = (
            *singular_edges(form, self.finder), *incompatible_edges(form, self.finder),
        )  # fmt: skip
        self.first_degree = degree or self._degree()
        self.curved = self.mesher.curved
        self.motions: FreeMotions = FreeMotions(np.zeros((0, form.fields, 1 + self.dim)), np.zeros(self.dim), 1.0)
        self.last: WeakState | None = None
        self.known = np.inf
        self.newton_steps = 0
        self.algebraic = 0.0  # error that an iterative solution of the linear system leaves
        self.failure: NewtonFailure | None = None
        self.reaction: ReactionForm | None = None
        self.with_adjoints = False  # whether matrices are stored for them
        self.goal_oriented = False  # whether singular points are refined only where they are marked
        self.system: HybridSystem | None = None

    @cached_property
    def check_points(self) -> Array:
        """Points (M, d) at which two solutions are compared."""
        return self.problem.domain.sample(CHECK_POINTS, rng=20_071)

    @property
    def exponents(self) -> list[float]:
        """The exponents of the solution at its singular points and edges."""
        return [*(one.exponent for one in self.points), *(one.exponent for one in self.edges)]

    @property
    def endless(self) -> list[tuple[float, ...]]:
        """Crossings of interfaces round which the mesh is continued to infinity."""
        return [one.point for one in self.points if one.endless(self.tol)]

    def _degree(self) -> int:
        if self.problem.inequalities:
            return self.settings.obstacle_degree
        start, per_digit = self.settings.degree
        degree = min(round(start - per_digit * log10(self.tol)), self.settings.most_degree[self.dim - 1])
        if any(len(one.across) > 1 for one in self.edges):  # layers round edges are many cells: one degree too few
            degree = max(min(degree, int(-log(self.tol) / DEGREE_GAIN) - 1), round(start))
        return degree

    def first(self) -> WeakResolution:
        """The resolution with which the adaptive loop begins."""
        settings, degree = self.settings, self.first_degree
        most = settings.most_cells[self.dim - 1] // 4
        return WeakResolution(
            following_data(self._tree(self.tol), self.problem, settings.per_cell * degree, most), degree
        )

    def _tree(self, tol: float) -> CellNode:
        """Cells that follow interfaces, curves, singular points and edges as far as a tolerance needs."""
        planes = [(lip.axis, lip.start[lip.axis]) for lip in self.problem.slits if lip.axis is not None]
        tree = self.mesher.tree(self.points, tol, self._cells_across(), planes)
        return self._towards_edges(tree, [(edge, edge.levels(tol)) for edge in self.edges], 3)

    def _towards_edges(self, tree: CellNode, wanted: list[tuple[SingularEdge, int]], share: int = 1) -> CellNode:
        """Cells cut across edges, first across the singular ones, up to a share of the cells allowed."""
        most = self.settings.most_cells[self.dim - 1] // share
        rough = [(edge, levels) for edge, levels in wanted if edge.exponent < 1]
        rest = [(edge, levels) for edge, levels in wanted if edge.exponent >= 1]
        return towards_edges(towards_edges(tree, rough, most), rest, most)

    def _cells_across(self) -> int:
        """Cells along the shortest side of a first mesh."""
        return self.settings.obstacle_cells if self.problem.inequalities else self.settings.first_cells[self.dim - 1]

    def mesh(self, tree: CellNode, layer: HiddenLayer) -> WeakMesh:
        """The cells of a tree that the domain holds."""
        return open_slits(self.mesher.mesh(tree, layer), self.problem.slits, self.finder, layer.nodes)

    def solve(self, resolution: WeakResolution) -> WeakState:
        """One solve with newly drawn functions."""
        layer = HiddenLayer.sample(self.dim, resolution.degree, self.settings, self.rng, self.curved)
        mesh = self.mesh(resolution.tree, layer)
        local = LocalMatrices(self.form, mesh, layer, self.check_budget)
        if self.last is None:
            self.motions = self._free(local)
        linear = self.form.quasilinear is None
        degrees = self._trace_degrees(mesh, resolution.degree)
        self.system = HybridSystem(local, self.with_adjoints, degrees) if linear else None
        solution = self._newton(local) if self.system is None else self._linear(local, self.system)
        network = weak_network(local, solution)
        samples = sampled(local, solution, residual_indices(self.problem))
        residual, energy = solution_indicators(self.form, self.reaction, local, samples)
        unknowns = solution.traces.size + solution.weights.size
        values = network(self.check_points)
        indicators = solution.jumps + residual
        indicators[solution.inside] = 0.0  # they only show what infinitely many rings do
        self.last = WeakState(network, mesh, local, solution, values, indicators, energy, unknowns)
        return self.last

    def _trace_degrees(self, mesh: WeakMesh, degree: int) -> Array | None:
        """The degrees of traces on the faces beside re-entrant edges in space."""
        if self.dim < 3 or not self.edges:
            return None
        rough = [one for one in self.edges if one.exponent < 1]
        return trace_degrees(mesh.spans, rough, degree, float(mesh.tree.lengths.max()))

    def _linear(self, local: LocalMatrices, system: HybridSystem) -> HybridSolution:
        """Solve by one factorisation, in which the stiffness of stiff strains is limited; their remainder is
        iterated."""
        limit = limited_ratio(self.tol)
        if self.form.fields == 1 or self.stiffness_ratio <= limit**2 or self.with_adjoints or self.endless:
            solution = system.solve(self.motions, self.endless)
            self.algebraic = system.remaining
            return solution
        iterated = IteratedPenalty(local, limit, ALGEBRA_SHARE * self.tol)
        solution = iterated.solve(self.motions)
        self.algebraic = iterated.remaining
        return solution

    def _newton(self, local: LocalMatrices) -> HybridSolution:
        """Solve by Newton's method, from the solution on the mesh before.

        If it fails, that solution is the result; on a first mesh it is the last state of the iteration.
        """
        form: QuasilinearForm | ReactionForm | None = self.form.quasilinear
        assert isinstance(form, QuasilinearForm)
        tol = ALGEBRA_SHARE * self.tol
        known = None if self.last is None else self.last.network
        if self.problem.inequalities:
            form = self.reaction = with_reactions(form, local)
        try:
            if isinstance(form, ReactionForm):
                state, self.newton_steps = touching_state(form, local, known, tol, self.settings)
            else:
                newton = WeakNewton(form, tol, self.settings)
                state, self.newton_steps = newton.solve(local, known or self._coarse(newton, local))
        except NewtonFailure as failure:
            self.failure = failure.with_traceback(None)  # its frames hold factorisations
            if self.last is not None:
                raise OutOfBudget from None
            state, self.newton_steps = failure.state, failure.steps
        return HybridSolution(state.weights, state.traces, TangentSystem(local, form).jumps(state))

    def _coarse(self, newton: WeakNewton, local: LocalMatrices) -> CellNetwork | None:
        """A start for the first mesh, by meshes of few functions that approach singular points step by step."""
        degree = min(self.settings.coarse_degree, local.layer.degree)
        layer = HiddenLayer.sample(self.dim, degree, self.settings, np.random.default_rng(0), self.curved)
        rough = replace(newton, tol=max(newton.tol, self.settings.coarse_step))
        known: CellNetwork | None = None
        count, tol = 0, 1.0
        while tol >= self.tol:
            tree = self._tree(tol)
            tol *= self.settings.coarse_factor
            if len(tree.leaves) == count:
                continue
            count = len(tree.leaves)
            coarse = LocalMatrices(self.form, self.mesh(tree, layer), layer, self.check_budget)
            try:
                state, _ = rough.solve(coarse, known)
            except NewtonFailure:
                break
            known = weak_network(coarse, HybridSolution(state.weights, state.traces, np.zeros(coarse.mesh.count)))
        return known

    def _free(self, local: LocalMatrices) -> FreeMotions:
        """The motions that no condition fixes; an InputError where the load does work on them."""
        motions = free_motions(self.form, local.mesh)
        if len(motions):
            points, weights, _ = volume_points(local)
            left = imbalance(motions, self.form, local.mesh, points, weights)
            if left > UNBALANCED:
                free = motions.described(self.problem.fields)
                raise InputError(
                    f"nothing holds {free}, and the data do not balance there: a share of {left:.2g} of load and "
                    "boundary fluxes is left over, so there is no solution; fix the field, or balance the data"
                )
        return motions

    # ------------------------------------------------------------------------------------------ estimate and refine

    def estimate(self, before: WeakState | None, now: WeakState) -> float:
        """The estimated relative L² error: the difference of two solutions, reduced as their indicators have fallen."""
        if before is None:
            return np.inf
        change = judged_difference(self.displacement, before.values, now.values)
        gain = now.relative_indicator / max(before.relative_indicator, 1e-300)
        if self.rounded:  # changes by refinement may be rounding errors, of which two solutions share a part
            self.known = change * self.settings.trust
        else:
            self.known = change * float(np.clip(self.settings.trust * gain, self.settings.least_gain, 1.0))
        rounded = EPS * self.form.fields * self.dim * self.stiffness_ratio  # rounding of coefficients in soft strains
        self.known = max(self.known, self._unresolved(now), self.algebraic, rounded)
        if gain > 1 and self.rounded:
            self.known = max(self.known, now.relative_indicator)
        return self.known

    @cached_property
    def displacement(self) -> bool:
        """Whether the fields are components of one vector, whose error is measured as that of a vector."""
        return is_displacement(self.form)

    @cached_property
    def stiffness_ratio(self) -> float:
        """The largest ratio of the stiffnesses of two strains."""
        return self.form.stiffness_ratio(self.check_points)

    @cached_property
    def rounded(self) -> bool:
        """Whether rounding may count at the tolerance: some strains are far stiffer than others, as in materials that
        are nearly incompressible, and their rounding acts on the others."""
        return self.form.fields > 1 and self.tol < self.stiffness_ratio * COMPUTED

    def indicators(self, now: WeakState) -> Array:
        return now.indicators

    def refine(self, resolution: WeakResolution, now: WeakState, marked: Array) -> WeakResolution | None:
        """A higher degree, and smaller cells where marked ones are not smooth."""
        tree, settings = resolution.tree, self.settings
        most = settings.most_degree[self.dim - 1]
        smooth = self._smooth(now)
        slack = 1e-9 * tree.lengths
        levels: dict[SingularPoint, int] = {}
        cut: dict[CellNode, tuple[int, ...]] = {}
        marked_edges: set[SingularEdge] = set()
        slow = self._slow_axes(now)
        leaves = tree.leaves
        top = resolution.degree >= most or bool(self.problem.inequalities)
        held = self._continued_cells(now)
        at_points: dict[CellNode, list[SingularPoint]] = {}
        for one in self.points:
            for leaf in leaves_at(tree, np.array(one.point), slack):
                at_points.setdefault(leaf, []).append(one)
        finer = {one for leaf, one in self._leaves_at_points(tree)
                 if not self._at_rounding(leaf, tree) and not one.endless(self.tol)}  # fmt: skip
        if top or not self.goal_oriented:
            levels = {one: one.halvings for one in finer}  # the next solution shows what this one lacks at each of them
        for cell in np.flatnonzero(marked & ~held):
            leaf = leaves[now.mesh.leaves[cell]]
            own = at_points.get(leaf, ())
            if own:
                if own[0].exponent < 1 and own[0] not in finer:
                    continue  # coordinates of smaller cells are rounding
                levels[own[0]] = max(
                    own[0].more_levels(self.known / self.tol, *settings.more_levels), levels.get(own[0], 0)
                )
                continue
            at_edges = [one for one in self.edges if one.touched(leaf.bounds, slack)]
            marked_edges.update(at_edges)
            if not at_edges and (top or not smooth[cell]):
                cut[leaf] = tuple(np.flatnonzero(slow[cell]).tolist())
        finer_edges = [(one, 1) for one in self.edges if one.exponent < 1 or one in marked_edges]
        tree = self._towards_edges(tree.refined(cut), finer_edges)
        tree = towards_points(tree, [(one.point, count) for one, count in levels.items()])
        in_smooth = now.indicators[marked & smooth].sum() >= 0.5 * now.indicators[marked].sum()
        costly = bool(self.edges) or self.mesher.solid is not None
        degree = min(resolution.degree + (2 if in_smooth and not costly else 1), most)
        if self.problem.inequalities:
            degree = resolution.degree
        if len(tree.leaves) > settings.most_cells[self.dim - 1]:
            return None
        return WeakResolution(tree, degree)

    def _leaves_at_points(self, tree: CellNode) -> list[tuple[CellNode, SingularPoint]]:
        """Leaves at points where the solution is singular."""
        slack = 1e-9 * tree.lengths
        rough = [one for one in self.points if one.exponent < 1]
        return [(leaf, one) for one in rough for leaf in leaves_at(tree, np.array(one.point), slack)]

    @staticmethod
    def _at_rounding(leaf: CellNode, tree: CellNode) -> bool:
        """Whether a leaf was halved so often that coordinates within smaller ones are rounding."""
        return bool((leaf.lengths <= 2.0**-LEVELS * tree.lengths).any())

    def _unresolved(self, now: WeakState) -> float:
        """The error h^(2λ) that the last cells leave at points towards which cells cannot be halved any more."""
        leaves, tree = now.mesh.tree.leaves, now.mesh.tree
        continued = {leaves[k] for k in now.mesh.leaves[now.solution.inside]}
        left = [2.0 ** (-2 * one.exponent * LEVELS) for leaf, one in self._leaves_at_points(tree)
                if leaf not in continued and (one.endless(self.tol) or self._at_rounding(leaf, tree))]  # fmt: skip
        return max(left, default=0.0)

    @staticmethod
    def _continued_cells(now: WeakState) -> Array:
        """Cells (bool, (C,)) of the rings round crossings that are continued to infinity, and must stay alike."""
        held = np.zeros(now.mesh.count, dtype=bool)
        held[now.solution.inside] = True
        for _ in range(RINGS):
            held[now.mesh.beside[held[now.mesh.beside].any(axis=1)]] = True
        return held

    def _slow_axes(self, now: WeakState) -> Array:
        """Axes (bool, (C, d)) across which a cell would be halved: in the plane both, in space the less smooth ones."""
        if self.dim < 3:
            return np.ones((now.mesh.count, self.dim), dtype=bool)
        rates = axis_decay(now.local, now.solution)
        return np.asarray(rates <= np.maximum(rates.min(axis=1, keepdims=True) * 1.5, self.settings.smooth_decay))

    def _smooth(self, now: WeakState) -> Array:
        """Cells (bool) in which Legendre coefficients fall fast enough for a higher degree to pay."""
        return decay(now.local, now.solution) > self.settings.smooth_decay
