"""identify(): outer iterations of solve and fit until two discretisations agree on the unknowns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from math import inf
from typing import Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import guarded
from rannpde.errors import InputError
from rannpde.pde.cells.method import Cells
from rannpde.pde.forward_model import ForwardModel, ModelRequest
from rannpde.pde.functions import State
from rannpde.pde.inverse.design import Sensitivity
from rannpde.pde.inverse.estimates import FunctionEstimate, Parameter, factor_of
from rannpde.pde.inverse.evidence import Prior
from rannpde.pde.inverse.identified import Identified
from rannpde.pde.inverse.models import MemoisedModel, RepeatedSolveModel
from rannpde.pde.inverse.regression import (
    DAMPING,
    LEAST_DAMPING,
    NoEvaluation,
    Regression,
    RegressionResult,
    replace_values,
)
from rannpde.pde.inverse.rows import Noise, predicted
from rannpde.pde.inverse.settings import IdentificationSettings
from rannpde.pde.inverse.uncertainty import Uncertainty, bootstrap, profile
from rannpde.pde.inverse.unknowns import Unknowns
from rannpde.pde.inverse.verdict import Verdict
from rannpde.pde.monitor import Monitor, Status, status_of
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import Solution
from rannpde.pde.tolerance import ALGEBRA_SHARE, COMPARABLE, MUCH_SMALLER
from rannpde.rounding import ROUNDED


class Forward(Protocol):
    """Solves a problem without unknowns to a tolerance; like : the solution of a similar one."""

    def __call__(
        self, problem: Problem, tol: float, rng: np.random.Generator, like: State | None = None, /
    ) -> Solution: ...

    def model(self, request: ModelRequest, /) -> ForwardModel | None:
        """The model of a solution by the method that gave it, with its settings; None where it has none."""
        ...


def identify(
    problems: Sequence[Problem],
    tol: float,
    forward: Forward,
    uncertainty: Uncertainty,
    rng: np.random.Generator,
    monitor: Monitor,
) -> Identified:
    """The unknowns of one problem, or of several that share them."""
    search = OuterIterations(problems, tol, forward, rng, monitor)
    try:
        search.run()
    except KeyboardInterrupt as stop:
        if not search.fits:
            if status_of(stop)[0] is Status.INTERRUPTED:
                raise
            raise InputError(f"{stop} before the unknowns were fitted once; allow more by memory=…") from None
    with guarded(None):
        return search.result(uncertainty)


def response_at_guess(problem: Problem, tol: float, forward: Forward, rng: np.random.Generator) -> Sensitivity:
    """The solution at the guesses with its derivatives by the unknowns."""
    search = OuterIterations([problem], tol, forward, rng, Monitor())
    solution = forward(problem.at({}), tol, rng)
    response = search.model(problem, solution, tol).respond(search.vector)
    values = {n: float(search.unknowns.guess[search.unknowns.slices[n].start]) for n in search.unknowns.numbers}
    return Sensitivity(problem, search.unknowns, values, response)


class OuterIterations:
    """Solve, fit, solve again: the outer iterations, and the estimates so far."""

    def __init__(
        self,
        problems: Sequence[Problem],
        tol: float,
        forward: Forward,
        rng: np.random.Generator,
        monitor: Monitor,
        settings: IdentificationSettings | None = None,
    ) -> None:
        self.problems, self.tol, self.forward, self.rng, self.monitor = problems, tol, forward, rng, monitor
        self.settings = settings or IdentificationSettings()
        self.unknowns = Unknowns(problems[0], rng)
        self.measured = [one for problem in problems for one in problem.measurements]
        self.vector, self.noise = self.unknowns.guess, Noise.of(self.measured)
        self.priors: dict[str, Prior] | None = None
        self.discretisation_error, self.agreed = np.full(self.unknowns.count, np.inf), False
        self.fits: list[RegressionResult] = []
        self.models: list[ForwardModel] = []
        self.regression = self._regression(self.models)
        self.first_estimate: Array | None = None
        """The estimate from the measured values, once other values are fitted."""
        self.space_time_works = True
        """Whether cells in space and time have not failed yet."""

    def _regression(self, models: Sequence[ForwardModel]) -> Regression:
        tolerance = self.settings.constraint_tolerance
        return Regression(
            self.problems, self.unknowns, models,
            exhausted=lambda: self.monitor.exhausted, constraint_tolerance=tolerance,
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------------------- iterations

    def run(self) -> None:
        """First iterations with a loose tolerance until the unknowns hardly change; then fits on one discretisation
        that another one checks."""
        for _ in range(self.settings.first_iterations):
            before, loose = self.vector, max(self.tol, self.settings.first_tolerance)
            self._solve(loose)
            self._fit(loose)
            moved = self.discretisation_error = np.abs(self.vector - before)
            spread = np.sqrt(np.diag(self.fits[-1].covariance))
            near = moved <= np.maximum(self.settings.first_change * np.abs(self.vector), spread)
            if self.monitor.exhausted or near[[self.unknowns.slices[n].start for n in self.unknowns.numbers]].all():
                break
        tol = self._tolerance()
        for number in range(1 + self.settings.final_iterations):
            if self.monitor.exhausted:
                break
            self._solve(tol)
            if number > 0:
                self.discretisation_error = np.abs(self._shift())
                self.agreed = self._agree(tol)
                if self.agreed:
                    break
            if self.monitor.exhausted or number == self.settings.final_iterations:
                break
            self._fit(tol)

    def again(self, values: Sequence[Array], uncertainty: Uncertainty) -> Identified:
        """Fit other measured values, set by set, on the last discretisation.

        The search begins at the estimate from the measured values, whose discretisation error is used again.
        """
        if self.first_estimate is None:
            self.first_estimate = self.vector
            self.models = [MemoisedModel(model) for model in self.models]
            self.regression = self._regression(self.models)
        self.regression = replace_values(self.regression, values)
        fit = self.regression.fit(
            self.first_estimate, Noise.of(self.measured), None, tol=ALGEBRA_SHARE * self._tolerance()
        )
        self.fits.append(fit)
        self.vector, self.noise, self.priors = fit.vector, fit.noise, fit.priors
        return self.result(uncertainty)

    def _solve(self, tol: float) -> None:
        """Solutions at the current values, each with a discretisation of its own."""
        values = self.unknowns.values(self.vector)
        near = [model.latest for model in self.models] or [None] * len(self.problems)
        self.solutions = [
            self.forward(problem.at(values), tol, self.rng, like)
            for problem, like in zip(self.problems, near, strict=True)
        ]
        for solution, problem in zip(self.solutions, self.problems, strict=True):
            _require_known(solution, problem)

    def _fit(self, tol: float) -> None:
        """Fit the unknowns on the discretisations of the last solutions."""
        before: Sequence[ForwardModel | None] = self.models or [None] * len(self.problems)
        groups = zip(self.problems, self.solutions, before, strict=True)
        self.models = [self.model(problem, solution, tol, last) for problem, solution, last in groups]
        self.regression = self._regression(self.models)
        damping = DAMPING if not self.fits else LEAST_DAMPING
        try:
            fit = self.regression.fit(
                self.vector, self.noise, self.priors, tol=max(1e-12, ALGEBRA_SHARE * tol), damping=damping
            )
        except NoEvaluation:
            if not self.fits:
                raise
            return  # the estimate of the iteration before is the last one
        self.fits.append(fit)
        self.vector, self.noise, self.priors = fit.vector, fit.noise, fit.priors
        self.monitor.tell(len(self.fits), fit.steps, estimate=self.solutions[0].estimate)

    def _shift(self) -> Array:
        """The change of the unknowns (p,) that the last solutions, at those of the last fit, would cause."""
        fit, noise = self.fits[-1], self.fits[-1].noise
        known = lambda jet, points: self.unknowns.value(jet, points, fit.vector)  # noqa: E731
        residuals = []
        for (k, one), scale, shape in zip(self.regression.sets, noise.scales, noise.shapes, strict=True):
            prediction = predicted(self.problems[k], one, self.solutions[k].function, known)
            residuals.append((one.values - prediction) / (scale * shape))
        return self.regression.shift(fit, residuals)

    def model(
        self, problem: Problem, solution: Solution, tol: float, previous: ForwardModel | None = None
    ) -> ForwardModel:
        """The model of a solution: that of its method, or by cells in space and time, or by repeated solves."""
        request = self._request(problem, solution, tol, previous)
        model = self.forward.model(request) or self._space_time_model(request)
        if model is not None:
            return model
        if self.unknowns.bases:
            raise InputError(
                "unknown functions need method=rp.Cells(time_stepping=False) and at most three coordinates, or the "
                f"method of lines where the equations alone contain them, but the method is {solution.method.name}"
            )
        return RepeatedSolveModel(problem, self.unknowns, lambda both: self._solved(both, tol))

    def _request(
        self, problem: Problem, solution: Solution, tol: float, previous: ForwardModel | None = None
    ) -> ModelRequest:
        return ModelRequest(problem, solution, self.unknowns, self.vector, tol, self.rng, self.monitor, previous)

    def _space_time_model(self, request: ModelRequest) -> ForwardModel | None:
        """The model by cells in space and time, whose sensitivities are further right-hand sides; None if they fail.

        It is for evolutions along a line by the method of lines without sensitivities, as with an unknown number in a
        boundary condition: the alternative, fields and sensitivities together, would be solved anew for every value.
        """
        method, problem = Cells(time_stepping=False), request.problem
        by_lines = request.solution.method.name == "lines"
        if not (by_lines and self.space_time_works) or problem.domain.dim > 2 or method.obstacles(problem):
            return None
        own = problem.at(self.unknowns.values(self.vector))
        solution = method.solve(own, request.tol, self.rng, self.monitor.rest(), "sensitivities by cells")
        self.space_time_works = solution.converged
        return method.model(self._request(problem, solution, request.tol)) if solution.converged else None

    def _solved(self, problem: Problem, tol: float) -> State:
        return self.forward(problem, tol, np.random.default_rng(0)).function

    def _tolerance(self) -> float:
        """The tolerance of the solutions: the one asked for, or well below the noise where that is larger."""
        allowed = []
        for one, scale, shape in zip(self.measured, self.noise.scales, self.noise.shapes, strict=True):
            size = float(np.sqrt(np.mean(one.values**2))) or 1.0
            exact = one.noise is not None and not one.noise.any()
            allowed.append(
                0.0 if exact else self.settings.error_share * scale * float(shape.min()) / size / len(one.values) ** 0.5
            )
        return float(np.clip(min(allowed), self.tol, self.settings.first_tolerance))

    def _agree(self, tol: float) -> bool:
        spread = np.sqrt(np.diag(self.fits[-1].covariance))
        allowed = np.maximum(self.settings.error_share * spread, 10 * tol * np.abs(self.vector))
        functions = np.zeros(self.unknowns.count, dtype=bool)
        for name in self.unknowns.bases:
            functions[self.unknowns.slices[name]] = True
        numbers = bool((self.discretisation_error <= allowed)[~functions].all())
        difference, deviation, size = (
            float(np.linalg.norm(v[functions])) for v in (self.discretisation_error, spread, self.vector)
        )
        return numbers and difference <= max(COMPARABLE * deviation, 100 * tol * (size + 1))

    # ------------------------------------------------------------------------------------------------------- result

    def result(self, uncertainty: Uncertainty) -> Identified:
        """The last solution with the estimates of the unknowns."""
        fit, first = self.fits[-1], self.solutions[0]
        freedom = fit.freedom if any(fit.noise.estimated) else inf
        factor = factor_of(uncertainty.confidence, freedom)
        difference = np.where(np.isfinite(self.discretisation_error), self.discretisation_error, 0.0)
        spread = fit.covariance + np.diag(difference**2)
        verdict = Verdict(
            fit, self.unknowns, self.measured, self.solutions, self.settings, self.tol, self.agreed,
            self.monitor,
        )  # fmt: skip
        parameters = self._parameters(verdict, spread, factor, uncertainty)
        status, detail = verdict.status(parameters)
        chosen = [self.unknowns.slices[name].start for name in self.unknowns.numbers]
        problem = self.problems[0]
        own = {f.name: getattr(first, f.name) for f in fields(Solution)}
        own |= {"problem": problem, "status": status, "detail": detail, "seconds": self.monitor.elapsed}
        every = [(k, one.name) for k, p in enumerate(self.problems, start=1) for one in p.measurements]
        names = [f"{name} {k}" if len(self.problems) > 1 else name for k, name in every]
        sizes = [float(np.sqrt(np.mean(shape**2))) for shape in fit.noise.shapes]
        scales = [scale * size for scale, size in zip(fit.noise.scales, sizes, strict=True)]
        return Identified(
            **own, parameters=parameters, functions=self._functions(fit, factor, difference),
            covariance=spread[np.ix_(chosen, chosen)],
            noise=dict(zip(names, scales, strict=True)),
            misfit={name: fit.misfit(k) for k, name in enumerate(names)},
            response=fit.rows.responses[0], spread=spread, factor=factor, notes=verdict.notes(self.fits),
            experiments=tuple(self.solutions) if len(self.solutions) > 1 else (),
        )  # fmt: skip

    def _parameters(
        self, verdict: Verdict, spread: Array, factor: float, uncertainty: Uncertainty
    ) -> dict[str, Parameter]:
        fit, parameters = verdict.fit, {}
        lower, upper = self.unknowns.limits
        resampled = bootstrap(self.regression, fit, uncertainty, self.rng) if uncertainty.kind == "bootstrap" else None
        for name in self.unknowns.numbers:
            k = self.unknowns.slices[name].start
            value, std, note = float(fit.vector[k]), float(np.sqrt(spread[k, k])), ""
            ends = (value - factor * std, value + factor * std)
            if len(fit.free) and np.abs(fit.free[:, k]).max() > MUCH_SMALLER * np.abs(fit.free).max():
                std, ends, note = inf, (-inf, inf), "not determined by the data"
            elif not verdict.noise_left:
                std, ends, note = inf, (-inf, inf), "nothing is left to find the noise"
            elif not fit.converged:
                std, ends, note = inf, (-inf, inf), "the search for it did not end"
            elif value in (lower[k], upper[k]):
                note = f"held by its {'lower' if value == lower[k] else 'upper'} bound"
            elif resampled is not None:
                std, ends = (
                    float(np.std(resampled[:, k], ddof=1)),
                    tuple(np.quantile(resampled[:, k], _tails(uncertainty))),
                )
                note = f"{len(resampled)} bootstrap draws"
            else:
                better = profile(self.regression, fit, k, factor, always=uncertainty.kind == "profile")
                if better is not None:
                    ends, note = better, "by its profile"
            rounding = ROUNDED * abs(value)  # exact data leave less, but the model is not computed better
            ends = min(ends[0], value - rounding), max(ends[1], value + rounding)
            ends = (max(ends[0], float(lower[k])), min(ends[1], float(upper[k]))) if np.isfinite(std) else ends
            parameters[name] = Parameter(name, value, std, ends, uncertainty.confidence, note)
        return parameters

    def _functions(self, fit: RegressionResult, factor: float, difference: Array) -> dict[str, FunctionEstimate]:
        estimates = {}
        for name, basis in self.unknowns.bases.items():
            part = self.unknowns.slices[name]
            free = len(fit.free) > 0 and bool(np.abs(fit.free[:, part]).max() > MUCH_SMALLER * np.abs(fit.free).max())
            note = "not determined by the data everywhere" if free else ""
            estimates[name] = FunctionEstimate(
                name, basis.unknown.of, basis.function(fit.vector[part]), fit.covariance[part, part], difference[part],
                factor, fit.priors[name].regularisation, fit.priors[name].order, note,
            )  # fmt: skip
        return estimates


def _tails(uncertainty: Uncertainty) -> tuple[float, float]:
    rest = 0.5 * (1 - uncertainty.confidence)
    return rest, 1 - rest


def _require_known(solution: Solution, problem: Problem) -> None:
    for one in problem.measurements:
        if not np.isfinite(solution.function(one.points)).all():
            raise InputError(
                f"with the present values of the unknowns the problem has no solution where {one.name!r} was measured "
                f"({solution.reason}); give better guesses or bounds"
            )
