"""The adaptive loop: solve, compare with the solution before, raise the degree or cut the cells that are not resolved.

The estimate is the difference of two solutions, with the rate at which the differences fall, or the correction that the
equations at fresh nodes with a finer rule for the integrals would make, where that is larger.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import MethodError
from rannpde.fitting.orthogonal import Factor
from rannpde.pde.functional_values import FunctionalRule
from rannpde.pde.functions import ExactSolution
from rannpde.pde.gauss_newton import Descent, GaussNewton
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.polynomials.mesh import field_roots, first_edges
from rannpde.pde.polynomials.method_of_steps import is_causal, solve_by_steps
from rannpde.pde.polynomials.settings import PolynomialSettings
from rannpde.pde.polynomials.space import PiecewiseTensor, PolynomialSpace
from rannpde.pde.polynomials.system import PolynomialSystem, relative_size, row_lengths
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import relative_difference
from rannpde.pde.tolerance import MUCH_SMALLER

HALF_THE_DIGITS = float(np.sqrt(np.finfo(float).eps))


@dataclass(frozen=True)
class PolynomialIteration:
    """One row of the history: cells and degree along the coordinates, unknowns, estimate, seconds since the start."""

    cells: tuple[int, ...]
    degrees: tuple[int, ...]
    unknowns: int
    panels: int
    estimate: float
    seconds: float

    def __str__(self) -> str:
        cells, degrees = (" × ".join(map(str, own)) for own in (self.cells, self.degrees))
        known = f"estimate {self.estimate:.1e}" if np.isfinite(self.estimate) else "no estimate yet"
        return f"{cells} cell(s) of degree {degrees}, {self.unknowns} unknowns, {known}, {self.seconds:.1f} s"


@dataclass(frozen=True, eq=False)
class PolynomialResult:
    """The result of the loop."""

    system: PolynomialSystem
    coefficients: Array
    status: Status
    detail: str
    estimate: float
    iterations: tuple[PolynomialIteration, ...]

    @property
    def function(self) -> PiecewiseTensor:
        return PiecewiseTensor(self.system.space, self.coefficients)


@dataclass(frozen=True, eq=False)
class _Scaled:
    """The system for Gauss–Newton, its rows divided by their lengths at the first guess."""

    system: PolynomialSystem
    lengths: Array

    @property
    def linear(self) -> bool:
        return self.system.problem.linear

    def residual(self, vector: Array) -> Array:
        return self.system.residual(self._table(vector)) / self.lengths

    def linearise(self, vector: Array) -> tuple[Array, Array]:
        residual, jacobian = self.system.linearise(self._table(vector))
        return residual / self.lengths, jacobian / self.lengths[:, None]

    def _table(self, vector: Array) -> Array:
        return vector.reshape(len(self.system.fields), -1)


class AdaptivePolynomials:
    """The adaptive loop for one problem; ``on_result`` is given a function from status and reason to a result."""

    def __init__(
        self,
        problem: Problem,
        tol: float,
        monitor: Monitor,
        settings: PolynomialSettings,
        guess: ExactSolution | None = None,
    ) -> None:
        self.problem, self.tol, self.monitor, self.settings, self.guess = problem, tol, monitor, settings, guess
        self.iterations: list[PolynomialIteration] = []
        self.on_result: Callable[[Callable[[Status, str], PolynomialResult]], None] = lambda make: None

    def run(self) -> PolynomialResult:
        """Solve until the estimate reaches the tolerance, or refinement ends."""
        self.causal = is_causal(self.problem)
        roots = field_roots(self.problem)
        edges = first_edges(self.problem, self.settings, roots)
        space = PolynomialSpace(edges, (self.settings.degree,) * len(edges), roots)
        panels, before, gap = 1, None, np.inf
        coarser, noise = np.inf, 0
        while True:
            system = self._system(space, panels)
            descent = self._solve(system, before)
            coefficients = descent.vector.reshape(len(self.problem.fields), -1)
            function = PiecewiseTensor(space, coefficients)
            estimate, last = np.inf, gap
            if before is not None:
                nodes, weights = space.nodes(more=1), np.sqrt(space.weights(more=1))[:, None]
                gap = relative_difference(weights * before(nodes), weights * function(nodes))
                rate = min(gap / last, 1 - MUCH_SMALLER) if np.isfinite(last) and last > 0 else 0.5
                estimate = gap * max(1.0, rate / (1 - rate))
            quadrature = self._quadrature_error(system, coefficients)
            estimate = max(estimate, quadrature)
            self._record(space, panels, estimate)
            self.on_result(self._maker(system, coefficients, estimate))
            undetermined = descent.steps and descent.steps[-1].rank < coefficients.size
            if estimate <= self.tol or undetermined:
                judged = self._judged(system, coefficients, descent, estimate, bool(undetermined))
                if judged.status is not Status.RESIDUAL_TOO_LARGE:
                    return judged
            if quadrature > MUCH_SMALLER * self.tol:
                noise = noise + 1 if quadrature > 0.5 * coarser else 0
                if noise == 2 and quadrature > self.tol:  # twice as many panels helped neither now nor before
                    detail = "rounding errors of the integrals are above the tolerance"
                    return self._result(system, coefficients, Status.STALLED, detail, estimate)
                panels, coarser = 2 * panels, quadrature
            finer = self._refined(space, coefficients)
            most = self.settings.most_unknowns * (self.settings.most_degree if self.causal else 1)
            if len(self.problem.fields) * finer.size > most:
                status, detail = Status.STALLED, f"more than {most} unknowns would be needed"
                if descent.status is not Status.CONVERGED:
                    status, detail = descent.status, descent.reason
                return self._result(system, coefficients, status, detail, estimate)
            space, before = finer, function

    def _system(self, space: PolynomialSpace, panels: int, more: int = 0) -> PolynomialSystem:
        edges = tuple(tuple(map(float, own)) for own in space.edges)
        around, nodes = self.problem.surroundings, 2 * max(space.degrees) + more
        rule = FunctionalRule(around, edges, nodes, self.problem.functions, panels, *space.all_roots)
        return PolynomialSystem(self.problem, space, rule, more)

    def _solve(self, system: PolynomialSystem, before: PiecewiseTensor | None) -> Descent:
        if self.causal:
            return solve_by_steps(system)
        constants = [system.space.constant(np.full(len(self.problem.fields), value)) for value in (0.0, 1.0)]
        start = before if before is not None else self.guess
        guesses = constants if start is None else [system.space.interpolate(start)]
        for guess in guesses:
            residual, jacobian = system.linearise(guess)
            if np.isfinite(residual).all() and np.isfinite(jacobian).all():
                return GaussNewton().run(_Scaled(system, row_lengths(jacobian)), guess.ravel())
        raise MethodError(
            "the residual is not finite at the first guess (a logarithm, a root or a quotient leaves its domain); pass "
            "method=rp.Polynomials(guess={field: formula})"
        )

    def _quadrature_error(self, system: PolynomialSystem, coefficients: Array) -> float:
        """The change of the equations with twice as many panels, relative to the size of their summands."""
        finer = replace(system, rule=replace(system.rule, panels=2 * system.rule.panels))
        worst = 0.0
        for (value, size), (other, _) in zip(
            system.residuals(coefficients).values(), finer.residuals(coefficients).values(), strict=True
        ):
            worst = max(worst, relative_size(value - other, size))
        return worst

    def _refined(self, space: PolynomialSpace, coefficients: Array) -> PolynomialSpace:
        """Higher degrees along coordinates that are not resolved; from the highest degree on, smaller cells."""
        tails = space.tails(coefficients)
        wanted = [bool((tail > MUCH_SMALLER * self.tol).any()) for tail in tails]
        if not any(wanted):
            wanted = [True] * space.dim
        edges, degrees = list(space.edges), list(space.degrees)
        for axis, tail in enumerate(tails):
            if wanted[axis] and degrees[axis] < self.settings.most_degree:
                degrees[axis] = min(degrees[axis] + degrees[axis] // 2, self.settings.most_degree)
            elif wanted[axis]:
                marked = (
                    tail > MUCH_SMALLER * self.tol
                    if (tail > MUCH_SMALLER * self.tol).any()
                    else np.full(len(tail), True)
                )
                own = edges[axis]
                edges[axis] = np.sort(np.concatenate([own, 0.5 * (own[:-1] + own[1:])[marked]]))
        return replace(space, edges=tuple(edges), degrees=tuple(degrees))

    def _judged(
        self, system: PolynomialSystem, coefficients: Array, descent: Descent, estimate: float, undetermined: bool
    ) -> PolynomialResult:
        """The result that two solutions agree on, after a look at fresh nodes and at what rounding does to it."""
        if undetermined:
            return self._result(system, coefficients, Status.UNDETERMINED, "", np.inf)
        if self.causal:  # what comes first determines what follows: the residual between the nodes is left to look at
            for value, parts in system.with_more_nodes().residuals(coefficients).values():
                estimate = max(estimate, relative_size(value, parts))
            return self._ended(system, coefficients, descent, estimate)
        fresh = self._system(system.space, 2 * system.rule.panels, more=1)
        residual, jacobian = fresh.linearise(coefficients)
        lengths = row_lengths(jacobian)
        residual, jacobian = residual / lengths, jacobian / lengths[:, None]
        size = system.space.norm(coefficients) or 1.0
        noise = np.abs(jacobian) @ np.abs(coefficients.ravel()) * np.finfo(float).eps
        noise *= np.random.default_rng(0).choice([-1.0, 1.0], len(noise))
        steps = [Factor.of(jacobian, right).solve(1e-14).solution for right in (-residual, noise)]
        moved, perturbed = (system.space.norm(step) / size for step in steps)
        if coefficients.any() and perturbed > HALF_THE_DIGITS:
            detail = "rounding errors change the solution by more than half its digits: it is not determined"
            return self._result(system, coefficients, Status.UNDETERMINED, detail, np.inf)
        estimate = max(estimate, moved if coefficients.any() else 0.0)
        return self._ended(system, coefficients, descent, estimate)

    def _ended(
        self, system: PolynomialSystem, coefficients: Array, descent: Descent, estimate: float
    ) -> PolynomialResult:
        if not descent.status.converged:
            return self._result(system, coefficients, descent.status, descent.reason, estimate)
        agreed = Status.CONVERGED if estimate <= self.tol else Status.RESIDUAL_TOO_LARGE
        return self._result(system, coefficients, agreed, "", estimate)

    def _maker(
        self, system: PolynomialSystem, coefficients: Array, estimate: float
    ) -> Callable[[Status, str], PolynomialResult]:
        return lambda status, detail: self._result(system, coefficients, status, detail, estimate)

    def _record(self, space: PolynomialSpace, panels: int, estimate: float) -> None:
        unknowns = len(self.problem.fields) * space.size
        cells = tuple(len(own) - 1 for own in space.edges)
        row = PolynomialIteration(cells, space.degrees, unknowns, panels, estimate, self.monitor.elapsed)
        self.iterations.append(row)
        self.monitor.tell(len(self.iterations), 1, width=unknowns, estimate=estimate, counted="polynomials")

    def _result(
        self, system: PolynomialSystem, coefficients: Array, status: Status, detail: str, estimate: float
    ) -> PolynomialResult:
        return PolynomialResult(system, coefficients, status, detail, estimate, tuple(self.iterations))
