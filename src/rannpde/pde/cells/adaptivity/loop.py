"""The adaptive loop over cells: SOLVE → ESTIMATE → MARK → REFINE, with a new basis sample in each iteration.

Every iteration samples its basis functions anew, so that two iterations share no sampling error; and it splits the
cells with the largest residuals, so that they share no discretisation error where it matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log2, log10
from typing import Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import Ended
from rannpde.errors import InputError
from rannpde.pde.adaptivity.result import AdaptiveResult
from rannpde.pde.cells.adaptivity.estimation import CellsEstimator, CellsIteration
from rannpde.pde.cells.adaptivity.integration_check import IntegrationCheck
from rannpde.pde.cells.adaptivity.marking import refine_marked
from rannpde.pde.cells.basis.basis import BasisSample
from rannpde.pde.cells.interfaces.detection import Interfaces, interfaces_of
from rannpde.pde.cells.mesh.initial import (
    first_tree,
    graded_at_corners,
    graded_towards,
    resolve_guess,
    resolve_holes_and_corners,
    resolve_layers,
    resolve_waves,
)
from rannpde.pde.cells.mesh.mesh import Mesh, MeshBuilder
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.cells.network import DiscreteSolution, cell_network
from rannpde.pde.cells.stationary.newton import Newton
from rannpde.pde.cells.stationary.system import CellsSystem
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.functions import State
from rannpde.pde.initial import starting_point
from rannpde.pde.intrinsic import turning_amplification
from rannpde.pde.monitor import Monitor, Status, status_of
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import field_sizes, held_out_residual, jets_of, relative_difference

WAVE_TOLERANCE = 1e-2
"""Waves are resolved at least to this relative accuracy: with less, the phase is lost, and residuals tell nothing."""
AMPLITUDE_POINTS = 5
"""Points of a cell at which the size of the last solution is taken."""
CHECK_POINTS = 4000
"""Held-out points at which two iterations are compared."""


CellsResult = AdaptiveResult[DiscreteSolution, CellsIteration]


class MeshSolver(Protocol):
    """Solves in place of ``CellsLoop.solve``, in coordinates of its own: time integration on a mesh of space."""

    @property
    def dim(self) -> int: ...

    @property
    def bounds(self) -> Array: ...

    def first_tree(self, basis: BasisSample) -> CellNode: ...

    def solve(
        self,
        tree: CellNode,
        basis: BasisSample,
        sizes: Array,
        last: DiscreteSolution | None,
        seed: int,
        number: int,
    ) -> DiscreteSolution: ...


class CellsLoop:
    """The adaptive loop."""

    def __init__(
        self,
        problem: Problem,
        tol: float,
        monitor: Monitor,
        rng: np.random.Generator,
        tuning: CellsTuning,
        degree: int | None = None,
        factors: Mapping[str, float] | None = None,
        solver: MeshSolver | None = None,
    ) -> None:
        self.problem, self.tol, self.monitor, self.rng, self.tuning = problem, tol, monitor, rng, tuning
        self.solver = solver
        self.dim = problem.domain.dim if solver is None else solver.dim
        self.degree = degree or self._degree()
        highest = self.degree if solver is not None else max(self.degree, tuning.max_degree[self.dim - 1])
        self.degrees = (self.degree, min(self.degree + 1, highest))
        self.factors = factors or {}
        self.points = problem.domain.sample(CHECK_POINTS, rng=20_071)
        self.newton = None if problem.linear else Newton(tol, monitor, tuning, self.points)
        self.interfaces = interfaces_of(problem, problem.domain.dim - self.dim) if problem.kinked else Interfaces()
        self.creases = problem.domain.creases
        corners = len(problem.fields) > 1 and bool(problem.domain.corners)
        cornered = corners or bool(self.interfaces.corners) or len(self.creases) > 0
        self.estimator = CellsEstimator(tol, tuning, solver is not None, self.dim == 1 and not problem.linear, cornered)
        self.sizes = np.ones(len(problem.fields))
        self.threshold = tuning.marking_factor * tol  # in three dimensions cells are expensive: mark only the worst
        if self.dim < 3:
            # unmarked cells must satisfy the stopping rule
            self.threshold = min(self.threshold, self.estimator.residual_tolerance)
        self.last: DiscreteSolution | None = None
        self.best: tuple[DiscreteSolution, float] | None = None
        self.grade_at_crossings = False
        self.phase = self.stability = self.defect = 0.0
        self.several_slopes = False
        self.origin = starting_point(problem) if self.dim == 1 and solver is None else None
        self.integration = None if self.origin is None or problem.linear else IntegrationCheck(problem, tol)
        self.turning = 1.0
        self.system: CellsSystem | None = None
        # the second derivatives of one field alone, as in Poisson's equation, are coercive whatever the domain, unless
        # conditions are missing, as with Cauchy data
        orders = {jet.order for term in problem.interior for jet in term.expression.jets}
        self.may_be_ill_conditioned = orders != {2} or len(problem.fields) > 1 or problem.incomplete

    def _degree(self) -> int:
        first, per_digit = self.tuning.degree
        wanted = round(first - per_digit * log10(self.tol))
        return min(wanted, self.tuning.max_degree[self.dim - 1] - (self.dim > 2))

    # ------------------------------------------------------------------------------------------------------- loop

    def run(self, state: State) -> CellsResult:
        """Iterate until two iterations agree, or a stopping rule applies."""
        graded = self.problem.linear or self.solver is not None  # Newton's first steps need no graded mesh
        tree: CellNode | None = None
        status: Status | None = None
        while status is None:
            try:
                tree = tree or self._first_tree(state, graded)
                status = self._iterate(tree, self.last.network if self.last is not None else state)
            except Ended as stop:
                if self.last is not None:
                    raise
                status = status_of(stop)[0]
                try:  # at least a solution on a single cell
                    self._iterate(CellNode((self.problem.domain if self.solver is None else self.solver).bounds), state)
                except np.linalg.LinAlgError:
                    raise stop from None
            except np.linalg.LinAlgError as error:
                if self.last is None:
                    raise InputError(
                        f"the equations cannot be linearised at the initial guess: {error}; pass rp.Cells(guess={{…}}) "
                        "with a formula for each field for which every term is finite"
                    ) from error
                status = Status.NEWTON
            if status is None:
                assert self.last is not None
                assert tree is not None
                before = tree
                tree = refine_marked(before, self.last, self.threshold, self.sizes, self.tuning, self.creases)
                if self.grade_at_crossings:
                    self.grade_at_crossings, tree = False, graded_towards(tree, self.interfaces.crossings)
                if (
                    len(tree.leaves) > self.tuning.max_cells[self.dim - 1]
                    or len(self.estimator.iterations) >= self.tuning.max_iterations
                ):
                    status = Status.STALLED
                elif not graded:
                    graded, tree = True, self._graded(tree)
                else:
                    tree = self._distinct(before, tree)
        return self.result(status)

    def _first_tree(self, state: State, graded: bool) -> CellNode:
        """The first mesh: it resolves the data, and the waves and layers of the equations."""
        if self.solver is not None:
            return self.solver.first_tree(self.sample_basis())
        tree = first_tree(self.problem, self.degree, self.tol if graded else 1.0, self.tuning, self.interfaces)
        if self.dim == 1 and not self.problem.linear:
            tree = resolve_guess(tree, state, self.degree, self.tuning.max_cells[0] // 4)
        tree, self.phase = self._resolve_waves(tree, state)
        if self.dim == 1 or self.may_be_ill_conditioned:
            self.turning = turning_amplification(self.problem, state)
            if self.dim == 1 or self.turning > 1:
                self.threshold = min(self.threshold, self.tol / self.turning)
        return tree

    def result(self, status: Status, detail: str = "") -> CellsResult:
        """The best solution so far, for iterations that end with a status and a reason."""
        assert self.last is not None
        best, estimate = self.best if self.best is not None else (self.last, np.inf)
        if status is Status.STALLED and best.status is Status.NEWTON:
            status = Status.NEWTON
        elif status is Status.STALLED and (self.estimator.undetermined() or self.turning > 1):
            status = Status.UNDETERMINED
        iterations = tuple(self.estimator.iterations)
        return CellsResult(best, iterations, estimate, status, detail or self._detail(status, estimate))

    def _iterate(self, tree: CellNode, state: State) -> Status | None:
        number, begin = len(self.estimator.iterations) + 1, self.monitor.elapsed
        solution = self.solve(tree, state, number)
        if solution.status.by_caller and self.last is not None:  # the one before is whole
            return solution.status
        values = solution.network(self.points)
        change = np.inf if self.last is None else self._difference(self.last, solution)
        residual = float(solution.indicators.max())
        cells = sum(cell is not None for cell in solution.mesh.cells)
        volumes = np.array([np.prod(leaf.lengths) for leaf in solution.mesh.tree.leaves])
        whole = float(np.sqrt(volumes @ solution.indicators**2 / volumes.sum()))
        seconds = self.monitor.elapsed - begin
        self.estimator.record(CellsIteration(cells, self.degree, solution.steps, residual, change, seconds), whole)
        short = solution.status.by_caller or solution.status is Status.INTEGRATOR
        again = self.last is not None and self.last.status is solution.status
        self.last = solution
        self.sizes = self._sizes_of(values)
        estimate = self.estimator.estimate()
        if self.turning > 1:  # defect times stability: what two iterations leave in the equations may be of one sign
            estimate = max(estimate, self.turning * max(whole, self._rounding))
        if self.best is None or residual > self.estimator.residual_tolerance or estimate <= self.best[1]:
            self.best = (solution, estimate)
        self.monitor.tell(number, solution.steps, width=cells, estimate=estimate, counted="cells")
        if short and (again or solution.status.by_caller):  # the integration did not reach the end
            return solution.status
        small = residual <= self.estimator.residual_tolerance
        if solution.rank_deficient and small and number > 1:
            return Status.UNDETERMINED
        # on a line one more iteration is cheap
        alike = self.dim > 1 or cells == self.estimator.iterations[-2 if number > 1 else -1].cells
        if self.turning > np.finfo(float).eps ** -0.5:  # no residual in floating-point numbers is small enough
            return Status.UNDETERMINED
        agree = estimate <= self.tol and small and alike and solution.status is Status.CONVERGED
        if agree and self._ill_conditioned(solution):
            return Status.UNDETERMINED
        if agree and self.problem.incomplete:  # without all conditions, what is left in the equations grows unchecked
            estimate = max(estimate, self.stability * max(whole, self._rounding))
            self.best, agree = (solution, estimate), estimate <= self.tol
        if agree and self.dim == 1 and self._several_slopes(solution):
            return Status.UNDETERMINED
        defect = max(self._defect_error(solution), self._integration_error(solution)) if agree else 0.0
        if defect > self.tol:  # cells with the largest residuals are split, even though two iterations agree
            self.defect = defect
            self.threshold = min(self.threshold, max(self.tol / defect, self.tuning.max_threshold_reduction) * residual)
            self.best = (solution, defect)
        elif agree and not self._fails_residual_check(solution):
            # the earlier ones failed the residual check, or were no better
            if len(self.estimator.checked_residuals) > 1:
                self.best = (solution, estimate)
            return Status.CONVERGED
        if self.monitor.exhausted:
            return self.monitor.ending
        if estimate <= self.tol:  # unmarked cells now prevent convergence
            self.threshold = min(self.threshold, self.estimator.residual_tolerance)
        return Status.STALLED if self.estimator.stagnated(self.best[1] <= self.tol) else None

    def _ill_conditioned(self, solution: DiscreteSolution) -> bool:
        """Return whether the linearised problem amplifies residuals by more than 1/√eps.

        Agreement of two iterations shows nothing then: both leave residuals, and often of one sign. Normal equations
        have lost all digits at such a stability constant.
        """
        if self.system is None or not self.may_be_ill_conditioned:
            return False
        response = cell_network(solution.mesh, self.system.perturbed(solution.weights, self.rng))
        sizes = np.sqrt(np.mean(response(self.points) ** 2, axis=0)) / self.sizes
        self.stability = float(sizes.max())
        return not self.stability <= np.finfo(float).eps ** -0.5

    def _difference(self, before: DiscreteSolution, now: DiscreteSolution) -> float:
        """Return the relative L² difference of two solutions.

        On a line it is integrated cell by cell: points spread evenly would miss a front of 1e-4 of the interval.
        """
        points, roots = self._rule(now) if self.dim == 1 and self.solver is None else (self.points, 1.0)
        return relative_difference(roots * before.network(points), roots * now.network(points))

    def _rule(self, solution: DiscreteSolution) -> tuple[Array, Array]:
        """Return Gauss points (M, 1) of all cells of an interval, and square roots of weights (M, 1) with sum 1."""
        nodes, weights = np.polynomial.legendre.leggauss(self.degree)
        bounds = np.concatenate([leaf.bounds for leaf in solution.mesh.tree.leaves])
        centres, halves = bounds.mean(axis=1), 0.5 * np.diff(bounds, axis=1)[:, 0]
        points = (centres[:, None] + halves[:, None] * nodes).reshape(-1, 1)
        shares = (halves[:, None] * weights).reshape(-1, 1)
        return points, np.sqrt(shares / shares.sum())

    def _defect_error(self, solution: DiscreteSolution) -> float:
        """Return the relative error that residuals of the present size can leave: defect times stability.

        Two iterations share the signs of their residuals where one cell is like the other, and agree on a wrong
        solution: a flame that ignites too early. Residuals at rounding tell nothing more.
        """
        if self.dim > 1 or self.system is None or not self.may_be_ill_conditioned:
            return 0.0
        if self.estimator.at_rounding(self.estimator.iterations[-1]):
            return 0.0
        response = self.system.perturbed(solution.weights, self.rng, solution.indicators)
        points, roots = self._rule(solution)
        values = roots * cell_network(solution.mesh, response)(points)
        return float((np.sqrt(np.sum(values**2, axis=0)) / self.sizes).max())

    def _integration_error(self, solution: DiscreteSolution) -> float:
        """Return the difference of an initial value problem's solution to a step-by-step integration."""
        return 0.0 if self.integration is None else self.integration.error(solution.network, *self._rule(solution))

    def _several_slopes(self, solution: DiscreteSolution) -> bool:
        """Return whether the highest derivative of a scalar equation jumps between several values that satisfy it.

        The coefficient of the highest derivative in the linearised equation then changes its sign, and it depends on
        that derivative, as in |u_x| = 1: every zigzag satisfies the equation.
        """
        if len(self.problem.fields) > 1 or self.problem.linear:
            return False
        (term,) = self.problem.interior
        highest = max(term.expression.jets, key=lambda jet: jet.order)
        slope = term.expression.partials[term.expression.jets.index(highest)]
        symbol = next(symbol for symbol, jet in term.expression.symbols.items() if jet == highest)
        if symbol not in slope.free_symbols:
            return False
        jets = jets_of(solution.network, self.problem.fields, self.points, term.expression.jets)
        _, partials = term.expression.linearised(term.known(self.points, self.problem.vocabulary), jets)
        values = np.broadcast_to(partials[term.expression.jets.index(highest)], len(self.points))
        self.several_slopes = bool(values.min() < 0 < values.max())
        return self.several_slopes

    @property
    def _rounding(self) -> float:
        """Rounding of the relative residual of second derivatives."""
        return float(np.finfo(float).eps) * self.degree**2

    def _fails_residual_check(self, solution: DiscreteSolution) -> bool:
        """Return whether iterations that agree fail the residual check; more cells are marked then."""
        if self.solver is not None:
            return False
        reduction = self.estimator.residual_reduction(max(held_out_residual(self.problem, solution.network).values()))
        self.threshold = min(self.threshold, reduction * float(solution.indicators.max()))
        self.grade_at_crossings = self.dim == 2 and reduction < 1
        return reduction < 1

    def _distinct(self, before: CellNode, tree: CellNode) -> CellNode:
        """Return the next mesh; where it is almost the previous one, change something else.

        Errors that two iterations have in common do not show in their difference. The degree is therefore changed, and
        the mesh is graded further towards corners, where the degree matters little. Where two iterations on similar
        meshes did not agree, more cells are marked.
        """
        assert self.last is not None
        residual = float(self.last.indicators.max())
        if self._similar(before, tree) and not self.estimator.at_rounding(self.estimator.iterations[-1]):
            differ = self.best is not None and self.tol < self.best[1] < np.inf
            # not where time steps may differ, cells are expensive (three dimensions), or grading helps (corners)
            more = differ and self.solver is None and self.dim < 3 and not self._has_corners
            if more or tree is before:
                self.threshold = min(self.threshold / 4, self._target_reduction() * residual)
            if more:
                tree = refine_marked(before, self.last, self.threshold, self.sizes, self.tuning)
        if self.solver is None and self._similar(before, tree):
            self.degree = sum(self.degrees) - self.degree
            tree = graded_at_corners(tree, self.problem.domain, self.interfaces)
        return tree

    @property
    def _has_corners(self) -> bool:
        """Whether there are corners, near which residuals decrease slowly."""
        return bool(self.problem.domain.corners or self.interfaces.corners)

    def _similar(self, before: CellNode, tree: CellNode) -> bool:
        """Return whether hardly any cells were split."""
        return len(tree.leaves) < self.tuning.similar_mesh_ratio * len(before.leaves)

    def _resolve_waves(self, tree: CellNode, state: State) -> tuple[CellNode, float]:
        """Split cells that do not resolve the waves and layers of the equations linearised at a state."""
        budget, tol = self.tuning.max_cells[self.dim - 1] // 2, min(self.tol, WAVE_TOLERANCE)
        if self.dim == 1:
            tree = resolve_layers(tree, self.problem, state, self.degree, tol)
        return resolve_waves(tree, self.problem, state, self.degree, tol, budget)

    def _graded(self, tree: CellNode) -> CellNode:
        """Grade the mesh towards corners for the wanted accuracy."""
        return resolve_holes_and_corners(tree, self.problem.domain, log2(1 / self.tol), self.interfaces)

    def _target_reduction(self) -> float:
        """Return the factor by which the largest residual should fall: errors are roughly proportional to it."""
        known = max(self.best[1], np.finfo(float).tiny) if self.best is not None else np.inf
        return float(np.clip(self.tol / known, self.tuning.max_threshold_reduction, 0.5))

    def _detail(self, status: Status, estimate: float) -> str:
        residual = self.estimator.iterations[-1].residual
        if status is Status.STALLED:
            known = f"two iterations differ by {estimate:.1e}, " if np.isfinite(estimate) else ""
            count = len(self.estimator.iterations)
            return f"{known}the largest residual of a cell is {residual:.1e} after {count} iterations"
        amplification = max(self.stability, self.turning)
        if status is Status.UNDETERMINED and self.several_slopes:
            return (
                "the equation has several solutions: its highest derivative jumps between values that all satisfy it; "
                "state it for the derivative itself, or add diffusion"
            )
        if status is Status.UNDETERMINED and amplification > 1:
            return (
                f"the problem is ill-conditioned: the solution may change by {amplification:.1e} times what is left in "
                "the equations; it is close to a problem with no or many solutions"
            )
        if status is Status.UNDETERMINED:
            named = self.problem.free_constants
            what = f"a constant in {', '.join(named)}" if named else "a mode of the homogeneous problem"
            return f"the equations and conditions leave {what} free; add a condition that fixes it"
        if status.by_caller and estimate <= self.tol and residual > self.estimator.residual_tolerance:
            return f"{status}; iterations agree to the tolerance, but a cell still leaves a residual of {residual:.1e}"
        return ""

    # ------------------------------------------------------------------------------------------------- one solve

    def solve(self, tree: CellNode, state: State, number: int) -> DiscreteSolution:
        """Solve the problem on the leaves of a tree, starting from a state."""
        tree = tree.jittered(self.tuning.jitter[len(tree.bounds) - 1], self.rng, aligned=len(tree.bounds) > 2)
        basis = self.sample_basis()
        if self.solver is not None:
            seed = int(self.rng.integers(2**31))
            return self.solver.solve(tree, basis, self.sizes, self.last, seed, number)
        names = self.problem.domain.names
        builder = MeshBuilder(self.problem.domain, basis, self.interfaces)
        mesh = builder.build(tree, tuple(map(names.index, self.problem.periodic)))
        weak_outflow = self._missed_conditions(mesh.tree)
        seed = int(self.rng.integers(2**31))
        system = CellsSystem(self.problem, mesh, self.sizes, weak_outflow, self.factors, seed)
        self.system = system
        if self.origin is not None:
            system.amplitudes = self._running_amplitudes(mesh, state)
        if self.newton is None:
            weights, rank_deficient = system.solve(state)
            steps, status = 1, Status.CONVERGED
        else:
            first = self.last is None
            weights, steps, status, rank_deficient = self.newton.solve(system, state, number, first)
        network = cell_network(mesh, weights)
        if self.last is None:  # residuals are relative to the sizes of the fields, which are known now
            system.sizes = self._sizes_of(network(self.points))
        equation_residuals, condition_residuals = system.residuals(weights)
        return DiscreteSolution(
            network,
            mesh,
            weights,
            equation_residuals,
            condition_residuals,
            system.losses(weights),
            steps,
            status,
            rank_deficient,
        )

    def _running_amplitudes(self, mesh: Mesh, state: State) -> dict[int, float]:
        """Return for each cell the largest size of an initial value problem up to there, relative to the whole.

        Where a solution grows, what is left in the equations while it is small grows with it: residuals are relative to
        the size that the solution has reached.
        """
        leaves = [(cell.bounds, id(cell)) for _, cell in mesh.present]
        points = np.concatenate(
            [np.linspace(bounds[0, 0], bounds[0, 1], AMPLITUDE_POINTS)[:, None] for bounds, _ in leaves]
        )
        values = np.abs(state.derivative(points, (0,))).reshape(len(leaves), AMPLITUDE_POINTS, -1)
        largest = values.max(axis=1)
        if not np.isfinite(largest).all() or not (largest.max(axis=0) > 0).all():
            return {}
        order = np.argsort([abs(bounds.mean() - self.origin) for bounds, _ in leaves])
        reached = np.maximum.accumulate(largest[order], axis=0)
        shares = np.clip((reached / reached[-1]).max(axis=1), np.finfo(float).eps ** 0.5, 1.0)
        return {leaves[k][1]: float(share) for k, share in zip(order, shares, strict=True)}

    def _sizes_of(self, values: Array) -> Array:
        """Return the sizes of the fields from values (M, fields); the previous ones where no value is finite."""
        reached = values[np.isfinite(values).all(axis=1)]
        return field_sizes(np.sqrt(np.mean(reached**2, axis=0))) if reached.any() else self.sizes

    def sample_basis(self) -> BasisSample:
        """Sample a new basis."""
        return BasisSample.sample(self.dim, self.degree, self.tuning, self.rng)

    def _missed_conditions(self, tree: CellNode) -> Array:
        """Return the leaves in which the previous iteration missed prescribed values; all in the first iteration."""
        if self.last is None:
            return np.ones(len(tree.leaves), dtype=bool)
        centres = np.array([leaf.bounds.mean(axis=1) for leaf in tree.leaves])
        home = self.last.mesh.tree.locate(centres)
        return np.linalg.norm(self.last.condition_residuals, axis=1)[home] > self.tuning.outflow_misfit
