"""The method of cells in the adaptive loop, SOLVE → ESTIMATE → MARK → REFINE, with a new basis sample each time.

Every iteration samples its basis functions anew, so that two iterations share no sampling error; and it splits the
cells with the largest residuals, so that they share no discretisation error where it matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import log2, log10

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import Ended
from rannpde.errors import InputError, MethodError
from rannpde.pde.adaptivity.loop import AdaptiveLoop, AdaptiveRecord, Inadmissible, doerfler
from rannpde.pde.adaptivity.result import AdaptiveResult, Iteration
from rannpde.pde.cells.adaptivity.checks import quadrature
from rannpde.pde.cells.adaptivity.conditioning import MOST_AMPLIFICATION, Conditioning
from rannpde.pde.cells.adaptivity.ending import Ending, singularity
from rannpde.pde.cells.adaptivity.estimation import CellsEstimator
from rannpde.pde.cells.adaptivity.integration_check import IntegrationCheck
from rannpde.pde.cells.adaptivity.marking import refine_marked
from rannpde.pde.cells.adaptivity.solving import MeshSolver, StationarySolver, sampled_sizes
from rannpde.pde.cells.basis.basis import BasisSample
from rannpde.pde.cells.interfaces.detection import Interfaces, interfaces_of
from rannpde.pde.cells.mesh.initial import (
    distance_to_corners,
    first_tree,
    graded_at_corners,
    graded_towards,
    resolve_guess,
    resolve_holes_and_corners,
    resolve_layers,
    resolve_waves,
)
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.cells.network import DiscreteSolution
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.discontinuities import corner_jumps
from rannpde.pde.functions import State
from rannpde.pde.monitor import Monitor, Status, status_of
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import held_out_residual, relative_difference
from rannpde.pde.tolerance import SAME_SOLUTION

CHECK_POINTS = 4000
"""Held-out points at which two iterations are compared."""


CellsResult = AdaptiveResult[DiscreteSolution, Iteration]


class CellsLoop:
    """A problem in the adaptive loop; the resolution is a tree of cells, None for the first one.

    in_time : the solver that integrates in time on a mesh of space; None for a stationary problem
    """

    def __init__(
        self,
        problem: Problem,
        tol: float,
        monitor: Monitor,
        rng: np.random.Generator,
        tuning: CellsTuning,
        degree: int | None = None,
        factors: Mapping[str, float] | None = None,
        in_time: MeshSolver | None = None,
    ) -> None:
        self.problem, self.tol, self.monitor, self.rng, self.tuning = problem, tol, monitor, rng, tuning
        self.in_time = in_time
        self.dim = problem.domain.dim if in_time is None else in_time.dim
        self.degree = degree or self._degree()
        highest = self.degree if in_time is not None else max(self.degree, tuning.max_degree[self.dim - 1])
        # one degree more changes nothing where a solution is odd or even in a cell, as it may be in each of a few cells
        self.degrees = (self.degree, min(self.degree + (2 if self.dim == 1 else 1), highest))
        self.points = problem.domain.sample(CHECK_POINTS, rng=20_071)
        self.interfaces = interfaces_of(problem, problem.domain.dim - self.dim) if problem.kinked else Interfaces()
        self.stationary = StationarySolver(problem, tol, monitor, tuning, factors or {}, self.interfaces, self.points)
        self.creases = problem.domain.creases
        self.jumps = corner_jumps(problem)
        corners = len(problem.fields) > 1 and bool(problem.domain.corners)
        cornered = corners or bool(self.interfaces.corners) or len(self.creases) > 0
        timed = in_time is not None
        order = max(jet.order for term in problem.interior for jet in term.expression.jets)
        self.estimator = CellsEstimator(tol, tuning, timed, self.dim == 1 and not problem.linear, cornered, order)
        self.sizes = np.ones(len(problem.fields))
        self.threshold = tuning.marking_factor * tol  # in three dimensions cells are expensive: mark only the worst
        if self.dim < 3:
            # unmarked cells must satisfy the stopping rule
            self.threshold = min(self.threshold, self.estimator.residual_tolerance)
        self.record: AdaptiveRecord[DiscreteSolution, Iteration] = AdaptiveRecord()
        self.last: DiscreteSolution | None = None
        self.grade_at_crossings = self.graded = False
        self.phase = 0.0
        self.agree = self.broken = self.settled = False  # settled: linearised where iterations agree
        self.ended: Status | None = None
        begins = not timed and self.stationary.origin is not None and not problem.linear
        integration = IntegrationCheck(problem, tol) if begins else None
        self.conditioning = Conditioning(problem, tol, self.points, rng, timed, integration)

    def _degree(self) -> int:
        first, per_digit = self.tuning.degree
        wanted = round(first - per_digit * log10(self.tol))
        return min(wanted, self.tuning.max_degree[self.dim - 1] - (self.dim > 2))

    def run(self, state: State) -> CellsResult:
        """Iterate until two iterations agree, or a stopping rule applies."""
        self.start = state
        self.graded = self.problem.linear or self.in_time is not None  # Newton's first steps need no graded mesh
        loop = AdaptiveLoop(self.tuning.theta, self.tuning.max_iterations, patience=None)
        result = loop.run(
            self, None, self.tol, lambda: self.monitor.ended, self._described, self._verdict, self.record,
            self._better, self._report,
        )  # fmt: skip
        return self.result(result.status)

    def result(self, status: Status, detail: str = "") -> CellsResult:
        """Return the best solution so far, for iterations that end with a status and a reason."""
        best, estimate, conditioning = self.record.best, self.record.best_estimate, self.conditioning
        best = self.last if best is None else best
        assert best is not None
        if status is Status.STALLED and best.status is Status.NEWTON:
            status = Status.NEWTON
        elif status is Status.STALLED and (self.estimator.undetermined() or conditioning.turning > 1):
            status = Status.UNDETERMINED
        if status is Status.BLOW_UP or (status is Status.UNDETERMINED and conditioning.undetermined is not None):
            # agreement of two iterations on the whole interval shows nothing
            estimate = np.inf
        if not status.converged:
            estimate = np.inf if conditioning.turning > MOST_AMPLIFICATION else max(estimate, conditioning.irremovable)
        iterations = tuple(self.estimator.iterations)
        ending = Ending(
            status, estimate, self.tol, iterations[-1].residual, self.estimator.residual_tolerance, len(iterations),
            conditioning.amplification, conditioning.undetermined, conditioning.irremovable,
            conditioning.blow_up if status is Status.BLOW_UP else None,
        )  # fmt: skip
        return CellsResult(
            best, iterations, estimate, status, detail or ("" if status.converged else ending.detail(self.problem))
        )

    # -------------------------------------------------------------------------------------------------------- solve

    def solve(self, resolution: CellNode | None) -> DiscreteSolution:
        """SOLVE on a tree; where no time is left, at least on a single cell."""
        bounds = (self.problem.domain if self.in_time is None else self.in_time).bounds
        try:
            self.tree = self._first_tree() if resolution is None else resolution
            solution = self._solved(self.tree)
        except Ended as stop:
            if self.last is not None:
                raise
            self.ended = status_of(stop)[0]
            try:
                solution = self._solved(CellNode(bounds))
            except np.linalg.LinAlgError:
                raise stop from None
        except np.linalg.LinAlgError as error:
            if self.last is None:
                if self.conditioning.several is not None:
                    raise InputError(self.conditioning.several) from error
                reason = f"the equations cannot be linearised at the initial guess: {error}; "
                remedy = "pass rp.Cells(guess={…}) with a formula for each field for which every term is finite"
                blow_up = self.conditioning.blow_up
                if blow_up is not None:  # no method continues beyond it
                    raise InputError(f"{reason}{singularity(self.problem, blow_up)}, or {remedy}") from error
                raise MethodError(reason + remedy) from error
            raise Inadmissible(Status.NEWTON) from error
        if solution.status.by_caller and self.last is not None:  # the previous solution is complete
            raise Inadmissible(solution.status)
        return solution

    def _solved(self, tree: CellNode) -> DiscreteSolution:
        tree = tree.jittered(self.tuning.variation[len(tree.bounds) - 1], self.rng, aligned=len(tree.bounds) > 2)
        basis, seed = self.sample_basis(), int(self.rng.integers(2**31))
        number = len(self.estimator.iterations) + 1
        if self.in_time is not None:
            return self.in_time.solve(tree, basis, self.sizes, self.last, seed, number)
        state = self.start if self.last is None else self.last.network
        return self.stationary.solve(tree, basis, self.sizes, self.last, seed, number, state)

    def sample_basis(self) -> BasisSample:
        """Sample a new basis."""
        return BasisSample.sample(self.dim, self.degree, self.tuning, self.rng)

    def _first_tree(self) -> CellNode:
        """Return the first mesh: it resolves the data, and the waves and layers of the equations."""
        if self.in_time is not None:
            return self.in_time.first_tree(self.sample_basis())
        state, budget = self.start, self.tuning.max_cells[self.dim - 1]
        tree = first_tree(self.problem, self.degree, self.tol if self.graded else 1.0, self.tuning, self.interfaces)
        if self.dim == 1 and not self.problem.linear:
            tree = resolve_guess(tree, state, self.degree, budget // 4)
        tol = min(self.tol, SAME_SOLUTION)  # with a larger one, waves lose their phase: residuals show nothing
        if self.dim == 1:
            tree = resolve_layers(tree, self.problem, state, self.degree, tol)
        tree, self.phase = resolve_waves(tree, self.problem, state, self.degree, tol, budget // 2)
        if self.problem.linear:  # otherwise it may depend on the guess
            self.conditioning.linearise(state)
        if self.dim == 1 or self.conditioning.turning > 1:
            self.threshold = min(self.threshold, self.tol / self.conditioning.turning)
        return tree

    # ----------------------------------------------------------------------------------------------------- estimate

    def estimate(self, before: DiscreteSolution | None, now: DiscreteSolution) -> float:
        """ESTIMATE: the difference of two iterations; where they agree, also defect times stability."""
        values = now.network(self.points)
        change = np.inf if before is None else self._difference(before, now)
        indicators = self._indicators(now)
        residual = float(indicators.max())
        cells = sum(cell is not None for cell in now.mesh.cells)
        volumes = np.array([np.prod(leaf.lengths) for leaf in now.mesh.tree.leaves])
        whole = float(np.sqrt(volumes @ indicators**2 / volumes.sum()))
        one = Iteration(cells, now.steps, change, 0.0, residual, self.degree, counted="cells")
        self.estimator.record(one, whole)
        if before is not None and before is self.record.best:
            self.record.choose(before, self.estimator.corrected(self.record.best_estimate))
        short = now.status.by_caller or now.status is Status.INTEGRATOR  # the integration did not reach the end
        self.broken = short and (now.status.by_caller or (before is not None and before.status is now.status))
        self.last, self.sizes = now, sampled_sizes(values, self.sizes)
        estimate = self.estimator.estimate()
        conditioning, system = self.conditioning, self.stationary.system
        self.settled = self.problem.linear or estimate <= self.tol
        if not self.problem.linear and self.in_time is None and (self.settled or conditioning.flows):
            conditioning.linearise(now.network)
        if conditioning.turning > 1:
            error = conditioning.trapped_error(now.network, max(whole, self._rounding))
            if error > self.tol >= estimate:
                self._lower_threshold(now, error)
            estimate = max(estimate, error)
        # on a line one more iteration is cheap: where many cells were split, agreement may be by chance
        widths = [one.width for one in self.estimator.iterations[-2:]]
        alike = self.dim > 1 or widths[-1] < self.tuning.similar_mesh_ratio * widths[0]
        self.agree = estimate <= self.tol and self._small and alike and now.status is Status.CONVERGED
        rounded = self.estimator.at_rounding(self.estimator.iterations[-1])
        if before is not None:
            conditioning.compare_means(system, now, self.sizes, self.degree, change, rounded)
        if np.isfinite(estimate):
            estimate = max(estimate, conditioning.means.error + conditioning.means.remainder)
        if not self.agree:
            return estimate
        conditioning.measure(system, now, self.sizes, self.degree, estimate, rounded)
        self.agree = estimate <= self.tol or conditioning.irremovable > 0
        if conditioning.grows_unchecked:
            estimate = max(estimate, conditioning.stability * max(whole, self._rounding))
            self.agree = estimate <= self.tol or conditioning.irremovable > 0 or conditioning.limited_by_rounding
        return max(estimate, conditioning.defect if conditioning.defect > self.tol else 0.0)

    def _difference(self, before: DiscreteSolution, now: DiscreteSolution) -> float:
        """Return the relative L² difference of two solutions.

        On a line it is integrated cell by cell: points spread evenly would miss a front of 1e-4 of the interval.
        """
        points, roots = quadrature(now, self.degree) if self.dim == 1 and self.in_time is None else (self.points, 1.0)
        return relative_difference(roots * before.network(points), roots * now.network(points))

    @property
    def _small(self) -> bool:
        """Whether no residual of a cell exceeds its tolerance."""
        return self.estimator.iterations[-1].residual <= self.estimator.residual_tolerance

    @property
    def _rounding(self) -> float:
        """Rounding of the relative residual of second derivatives."""
        return float(np.finfo(float).eps) * self.degree**2

    def _better(self, now: DiscreteSolution, estimate: float) -> bool:
        """Whether the last solution replaces the best one: always with large residuals, or if it was checked."""
        return not self._small or self.agree or estimate <= self.record.best_estimate

    def _described(self, now: DiscreteSolution, estimate: float, seconds: float) -> Iteration:
        iterations = self.estimator.iterations
        iterations[-1] = replace(iterations[-1], seconds=seconds)
        return iterations[-1]

    def _report(self, now: DiscreteSolution, estimate: float) -> None:
        last, number = self.estimator.iterations[-1], len(self.estimator.iterations)
        self.monitor.tell(number, now.steps, width=last.width, estimate=estimate, counted=last.counted)

    def _verdict(self, now: DiscreteSolution, estimate: float) -> Status | None:
        """Return the status with which an iteration ends the loop; None where it goes on, perhaps with more marked."""
        if self.ended is not None or self.broken:
            return self.ended or now.status
        if now.rank_deficient and self._small and len(self.estimator.iterations) > 1:
            return Status.UNDETERMINED
        conditioning = self.conditioning
        if self.settled and conditioning.turning > MOST_AMPLIFICATION:
            return Status.UNDETERMINED
        if self.agree and (
            conditioning.irremovable or conditioning.undetermined is not None or conditioning.limited_by_rounding
        ):
            return Status.UNDETERMINED
        integration = conditioning.integration
        if not self.agree and len(self.estimator.iterations) > 1 and integration is not None:
            if integration.branches is None and integration.blow_up is not None:
                return Status.BLOW_UP
            conditioning.undetermined = integration.several or integration.departure
            if conditioning.undetermined is not None:
                return Status.UNDETERMINED
        if self.agree and conditioning.defect > self.tol:
            self._lower_threshold(now, conditioning.defect)
        elif self.agree and not self._fails_residual_check(now):
            return Status.CONVERGED
        if self.monitor.exhausted:
            return self.monitor.ending
        if estimate <= self.tol:  # unmarked cells now prevent convergence
            self.threshold = min(self.threshold, self.estimator.residual_tolerance)
        return Status.STALLED if self.estimator.stagnated(self.record.best_estimate <= self.tol) else None

    def _lower_threshold(self, now: DiscreteSolution, error: float) -> None:
        """Mark cells although two iterations agree, for residuals that leave an error above the tolerance."""
        reduction = max(self.tol / error, self.tuning.max_threshold_reduction)
        self.threshold = min(self.threshold, reduction * float(self._indicators(now).max()))

    def _fails_residual_check(self, solution: DiscreteSolution) -> bool:
        """Return whether iterations that agree fail the residual check; more cells are marked then."""
        if self.in_time is not None:
            return False
        reduction = self.estimator.residual_reduction(max(held_out_residual(self.problem, solution.network).values()))
        self.threshold = min(self.threshold, reduction * float(self._indicators(solution).max()))
        self.grade_at_crossings = self.dim == 2 and reduction < 1
        return reduction < 1

    # ---------------------------------------------------------------------------------------------- mark and refine

    def indicators(self, now: DiscreteSolution) -> Array:
        """MARK: squared residuals of the cells above the threshold, and above what rounding leaves."""
        indicators = self._indicators(now)
        least = self.threshold if self.in_time else max(self.threshold, self.estimator.rounding(self.degree))
        return np.where(indicators > least, indicators, 0.0) ** 2

    def _indicators(self, now: DiscreteSolution) -> Array:
        """Return the residuals of cells (C,), 0 near corners where prescribed values jump if the error that they cause
        is below the tolerance: at such a corner no residual is small, whatever the length of the cell, and cells beside
        it have a part of it; the values are wrong by this share of the jump, and in L² by this share of the distance
        from the corner."""
        if not self.jumps:
            return now.indicators
        tree = now.mesh.tree
        near = np.array([distance_to_corners(leaf, tree.lengths, self.jumps) for leaf in tree.leaves])
        return np.where(np.minimum(now.indicators, 1.0) * near <= self.tol, 0.0, now.indicators)

    def refine(self, resolution: CellNode | None, now: DiscreteSolution, marked: Array) -> CellNode | None:
        """REFINE: split marked cells; None beyond the most cells allowed."""
        before = self.tree
        tree = refine_marked(before, now, marked, self.sizes, self.tuning, self.creases)
        if self.grade_at_crossings:
            self.grade_at_crossings, tree = False, graded_towards(tree, self.interfaces.crossings)
        if len(tree.leaves) > self.tuning.max_cells[self.dim - 1]:
            return None
        if not self.graded:
            self.graded = True
            return resolve_holes_and_corners(tree, self.problem.domain, log2(1 / self.tol), self.interfaces)
        return self._distinct(before, tree)

    def _distinct(self, before: CellNode, tree: CellNode) -> CellNode:
        """Return the next mesh; where it is almost the previous one, change something else.

        Errors that two iterations have in common do not show in their difference. The degree is therefore changed, and
        the mesh is graded further towards corners, where the degree matters little. Where two iterations on similar
        meshes did not agree, more cells are marked.
        """
        assert self.last is not None
        residual = float(self._indicators(self.last).max())
        if self._similar(before, tree) and not self.estimator.at_rounding(self.estimator.iterations[-1]):
            differ = self.tol < self.record.best_estimate < np.inf
            has_corners = bool(self.problem.domain.corners or self.interfaces.corners)
            # not where time steps may differ, cells are expensive (three dimensions), or grading helps (corners)
            more = differ and self.in_time is None and self.dim < 3 and not has_corners
            if more or tree is before:
                self.threshold = min(self.threshold / 4, self._target_reduction() * residual)
            if more:
                marked = doerfler(self.indicators(self.last), self.tuning.theta)
                tree = refine_marked(before, self.last, marked, self.sizes, self.tuning)
        if self.in_time is None and self._similar(before, tree):
            self.degree = sum(self.degrees) - self.degree
            tree = graded_at_corners(tree, self.problem.domain, self.interfaces)
        return tree

    def _similar(self, before: CellNode, tree: CellNode) -> bool:
        """Return whether hardly any cells were split."""
        return len(tree.leaves) < self.tuning.similar_mesh_ratio * len(before.leaves)

    def _target_reduction(self) -> float:
        """Return the factor by which the largest residual should fall: errors are roughly proportional to it."""
        known = max(self.record.best_estimate, np.finfo(float).tiny)
        return float(np.clip(self.tol / known, self.tuning.max_threshold_reduction, 0.5))
