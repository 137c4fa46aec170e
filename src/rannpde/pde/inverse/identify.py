"""identify(): solve, fit, solve again where the fit leads, until two discretisations agree on the unknowns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from math import inf
from typing import Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError
from rannpde.pde.cells.method import Cells, CellsHistory
from rannpde.pde.cells.network import CellNetwork
from rannpde.pde.cells.time.trajectory import CellTrajectory
from rannpde.pde.functions import State
from rannpde.pde.inverse.design import Sensitivity
from rannpde.pde.inverse.estimates import FunctionEstimate, Parameter, factor_of
from rannpde.pde.inverse.evidence import Prior
from rannpde.pde.inverse.identified import Identified
from rannpde.pde.inverse.models import CellsModel, LinesModel, MarchedModel, Model, Remembered, SolvedModel
from rannpde.pde.inverse.regression import DAMPING, LEAST_DAMPING, OutOfTime, Regressed, Regression, replace_values
from rannpde.pde.inverse.rows import PIN, Noise, predicted
from rannpde.pde.inverse.uncertainty import Uncertainty, bootstrap, profile
from rannpde.pde.inverse.unknowns import Unknowns
from rannpde.pde.lines.evolved import Evolved
from rannpde.pde.lines.response.influence import Influence, weak_form
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import Solution


class Forward(Protocol):
    """Solves a problem without unknowns to a tolerance; like : the solution of one near by."""

    def __call__(
        self, problem: Problem, tol: float, rng: np.random.Generator, like: State | None = None, /
    ) -> Solution: ...


LOOSE = 1e-3
"""Tolerance of the first rounds, which only look for the unknowns."""
LOOSE_ROUNDS, FINAL_ROUNDS = 5, 4
CAREFUL = 0.1
"""Share of the tolerance of a discretisation to which the unknowns are fitted on it."""
SHARE = 0.03
"""Errors of the discretisation are to be below this share of what the noise leaves uncertain."""
UNMET = 1e3
"""How often its tolerance a condition on an unknown function may be missed: too small a basis cannot meet it."""
CONTRADICTED = 2.0
"""Residuals of so many times the noise given say that the model cannot be right: its intervals mean nothing."""
NEAR = 2.5
"""Relative change of the unknowns by a round up to which its discretisation was good enough to look for them."""


def identify(
    problems: Sequence[Problem],
    tol: float,
    forward: Forward,
    uncertainty: Uncertainty,
    rng: np.random.Generator,
    monitor: Monitor,
) -> Identified:
    """The unknowns of one problem, or of several that share them."""
    search = Rounds(problems, tol, forward, rng, monitor)
    search.run()
    return search.result(uncertainty)


def response_at_guess(problem: Problem, tol: float, forward: Forward, rng: np.random.Generator) -> Sensitivity:
    """The solution at the guesses with its derivatives by the unknowns."""
    search = Rounds([problem], tol, forward, rng, Monitor())
    solution = forward(problem.at({}), tol, rng)
    response = search.model(problem, solution, tol).respond(search.vector)
    values = {n: float(search.unknowns.guess[search.unknowns.slices[n].start]) for n in search.unknowns.numbers}
    return Sensitivity(problem, search.unknowns, values, response)


class Rounds:
    """The rounds, and what they have found so far."""

    def __init__(
        self, problems: Sequence[Problem], tol: float, forward: Forward, rng: np.random.Generator, monitor: Monitor
    ) -> None:
        self.problems, self.tol, self.forward, self.rng, self.monitor = problems, tol, forward, rng, monitor
        self.unknowns = Unknowns(problems[0], rng)
        self.measured = [one for problem in problems for one in problem.measurements]
        self.vector, self.noise = self.unknowns.guess, Noise.of(self.measured)
        self.priors: dict[str, Prior] | None = None
        self.between, self.agreed = np.full(self.unknowns.count, np.inf), False
        self.fits: list[Regressed] = []
        self.models: list[Model] = []
        self.regression = Regression(problems, self.unknowns, self.models)
        self.rounds: Array | None = None
        """Where they ended, once other values are fitted."""
        self.influences: dict[tuple[int, bool], Influence] = {}
        self.by_cells = True
        """Whether cells in space and time have not failed yet."""

    # ------------------------------------------------------------------------------------------------------- rounds

    def run(self) -> None:
        """Loose rounds until the unknowns stay; then a fit on one discretisation, which another one checks."""
        for _ in range(LOOSE_ROUNDS):
            before, loose = self.vector, max(self.tol, LOOSE)
            self._solve(loose)
            self._fit(loose)
            moved = self.between = np.abs(self.vector - before)
            spread = np.sqrt(np.diag(self.fits[-1].covariance))
            near = moved <= np.maximum(NEAR * np.abs(self.vector), spread)
            if self.monitor.exhausted or near[[self.unknowns.slices[n].start for n in self.unknowns.numbers]].all():
                break
        tol = self._tolerance()
        for number in range(1 + FINAL_ROUNDS):
            if self.monitor.exhausted:
                break
            self._solve(tol)
            if number > 0:
                self.between = np.abs(self._shift())
                self.agreed = self._agree(tol)
                if self.agreed:
                    break
            if self.monitor.exhausted or number == FINAL_ROUNDS:
                break
            self._fit(tol)

    def again(self, values: Sequence[Array], uncertainty: Uncertainty) -> Identified:
        """Other measured values, set by set, fitted on the discretisation that is there already.

        The search begins where the rounds ended. What the discretisation leaves uncertain is taken from these.
        """
        if self.rounds is None:
            self.rounds = self.vector
            self.models = [Remembered(model) for model in self.models]
            self.regression = Regression(self.problems, self.unknowns, self.models)
        self.regression = replace_values(self.regression, values)
        fit = self.regression.fit(self.rounds, Noise.of(self.measured), None, tol=CAREFUL * self._tolerance())
        self.fits.append(fit)
        self.vector, self.noise, self.priors = fit.vector, fit.noise, fit.priors
        return self.result(uncertainty)

    def _solve(self, tol: float) -> None:
        """Solutions at the present values, each with a discretisation of its own."""
        values = self.unknowns.values(self.vector)
        near = [one.start if isinstance(one, LinesModel) else None for one in self.models] or [None] * len(
            self.problems
        )
        self.solutions = [
            self.forward(problem.at(values), tol, self.rng, like)
            for problem, like in zip(self.problems, near, strict=True)
        ]
        for solution, problem in zip(self.solutions, self.problems, strict=True):
            _require_known(solution, problem)

    def _fit(self, tol: float) -> None:
        """The unknowns on the discretisations of the last solutions."""
        self.models = [self.model(p, s, tol) for p, s in zip(self.problems, self.solutions, strict=True)]
        self.regression = Regression(self.problems, self.unknowns, self.models, over=lambda: self.monitor.exhausted)
        damping = DAMPING if not self.fits else LEAST_DAMPING
        try:
            fit = self.regression.fit(
                self.vector, self.noise, self.priors, tol=max(1e-12, CAREFUL * tol), damping=damping
            )
        except OutOfTime:
            if not self.fits:
                raise
            return  # what the round before found is what there is
        self.fits.append(fit)
        self.vector, self.noise, self.priors = fit.vector, fit.noise, fit.priors
        self.monitor.tell(len(self.fits), fit.steps, estimate=self.solutions[0].estimate)

    def _shift(self) -> Array:
        """How far the last solutions, at the unknowns of the last fit, would move them (p,)."""
        fit, noise = self.fits[-1], self.fits[-1].noise
        known = lambda jet, points: self.unknowns.value(jet, points, fit.vector)  # noqa: E731
        residuals = []
        for (k, one), scale, shape in zip(self.regression.sets, noise.scales, noise.shapes, strict=True):
            found = predicted(self.problems[k], one, self.solutions[k].function, known)
            residuals.append((one.values - found) / (scale * shape))
        return self.regression.shift(fit, residuals)

    def model(self, problem: Problem, solution: Solution, tol: float) -> Model:
        function = solution.function
        if isinstance(function, CellNetwork):
            assert isinstance(solution.history, CellsHistory)
            degree = solution.history.iterations[-1].degree
            return CellsModel(problem, self.unknowns, function, degree, self.rng, lambda: self.monitor.exhausted)
        if isinstance(function, CellTrajectory) and not self.unknowns.bases:
            assert isinstance(solution.history, CellsHistory)
            degree = solution.history.iterations[-1].degree
            return MarchedModel(problem, self.unknowns, function, degree, tol, self.rng, self.monitor)
        if isinstance(function, Evolved):
            influence = self._influence(problem, function)
            if influence.fits(function):
                over = lambda: self.monitor.exhausted  # noqa: E731
                return LinesModel(problem, self.unknowns, function, self.vector, influence, tol, over)
            whole = self._at_once(problem, tol)
            if whole is not None:
                return self.model(problem, whole, tol)
        if self.unknowns.bases:
            raise InputError(
                "unknown functions need method=rp.Cells(time_stepping=False) and at most three coordinates, or a march "
                f"by lines whose equations alone hold them, but the method is {solution.method.name}"
            )
        return SolvedModel(problem, self.unknowns, lambda both: self._solved(both, tol))

    def _at_once(self, problem: Problem, tol: float) -> Solution | None:
        """The solution by cells in space and time, whose sensitivities are further right sides; None if they fail.

        For evolutions along a line whose marches have none, as with an unknown number in a boundary condition: the
        fields and their sensitivities together would go by cells too, anew for every value.
        """
        method = Cells(time_stepping=False)
        if not self.by_cells or problem.domain.dim > 2 or method.obstacles(problem):
            return None
        own = problem.at(self.unknowns.values(self.vector))
        found = method.solve(own, tol, self.rng, self.monitor.rest(), "sensitivities by cells")
        self.by_cells = found.converged
        return found if found.converged else None

    def _influence(self, problem: Problem, function: Evolved) -> Influence:
        """How the equations depend on the unknowns: understood once for each form."""
        key = id(problem), weak_form(function)
        if key not in self.influences:
            self.influences[key] = Influence.of(problem, weak=key[1])
        return self.influences[key]

    def _solved(self, problem: Problem, tol: float) -> State:
        return self.forward(problem, tol, np.random.default_rng(0)).function

    def _tolerance(self) -> float:
        """What the solutions must reach: what was asked for, or well below the noise where that is more."""
        allowed = []
        for one, scale, shape in zip(self.measured, self.noise.scales, self.noise.shapes, strict=True):
            size = float(np.sqrt(np.mean(one.values**2))) or 1.0
            exact = one.noise is not None and not one.noise.any()
            allowed.append(0.0 if exact else SHARE * scale * float(shape.min()) / size / len(one.values) ** 0.5)
        return float(np.clip(min(allowed), self.tol, LOOSE))

    def _agree(self, tol: float) -> bool:
        spread = np.sqrt(np.diag(self.fits[-1].covariance))
        allowed = np.maximum(SHARE * spread, 10 * tol * np.abs(self.vector))
        functions = np.zeros(self.unknowns.count, dtype=bool)
        for name in self.unknowns.bases:
            functions[self.unknowns.slices[name]] = True
        numbers = bool((self.between <= allowed)[~functions].all())
        apart, wide, size = (float(np.linalg.norm(v[functions])) for v in (self.between, spread, self.vector))
        return numbers and apart <= max(0.3 * wide, 100 * tol * (size + 1))

    # ------------------------------------------------------------------------------------------------------- result

    def result(self, uncertainty: Uncertainty) -> Identified:
        """The last solution, with what was identified."""
        fit, first = self.fits[-1], self.solutions[0]
        freedom = fit.freedom if any(fit.noise.estimated) else inf
        factor = factor_of(uncertainty.confidence, freedom)
        between = np.where(np.isfinite(self.between), self.between, 0.0)
        spread = fit.covariance + np.diag(between**2)
        parameters = self._parameters(fit, spread, factor, uncertainty)
        status, detail = self._status(fit, parameters)
        chosen = [self.unknowns.slices[name].start for name in self.unknowns.numbers]
        problem = self.problems[0]
        own = {f.name: getattr(first, f.name) for f in fields(Solution)}
        own |= {"problem": problem, "status": status, "detail": detail, "seconds": self.monitor.elapsed}
        every = [(k, one.name) for k, p in enumerate(self.problems, start=1) for one in p.measurements]
        names = [f"{name} {k}" if len(self.problems) > 1 else name for k, name in every]
        sizes = [float(np.sqrt(np.mean(shape**2))) for shape in fit.noise.shapes]
        scales = [scale * size for scale, size in zip(fit.noise.scales, sizes, strict=True)]
        return Identified(
            **own, parameters=parameters, functions=self._functions(fit, factor, between),
            covariance=spread[np.ix_(chosen, chosen)],
            noise=dict(zip(names, scales, strict=True)),
            misfit={name: fit.misfit(k) for k, name in enumerate(names)},
            response=fit.rows.responses[0], spread=spread, factor=factor, told=self._told(fit),
            experiments=tuple(self.solutions) if len(self.solutions) > 1 else (),
        )  # fmt: skip

    def _parameters(
        self, fit: Regressed, spread: Array, factor: float, uncertainty: Uncertainty
    ) -> dict[str, Parameter]:
        found = {}
        lower, upper = self.unknowns.limits
        drawn = bootstrap(self.regression, fit, uncertainty, self.rng) if uncertainty.kind == "bootstrap" else None
        for name in self.unknowns.numbers:
            k = self.unknowns.slices[name].start
            value, std, note = float(fit.vector[k]), float(np.sqrt(spread[k, k])), ""
            ends = (value - factor * std, value + factor * std)
            if len(fit.free) and np.abs(fit.free[:, k]).max() > 0.1 * np.abs(fit.free).max():
                std, ends, note = inf, (-inf, inf), "not determined by the data"
            elif not fit.settled:
                std, ends, note = inf, (-inf, inf), "the search for it did not end"
            elif value in (lower[k], upper[k]):
                note = f"held by its {'lower' if value == lower[k] else 'upper'} bound"
            elif drawn is not None:
                std, ends = float(np.std(drawn[:, k], ddof=1)), tuple(np.quantile(drawn[:, k], _tails(uncertainty)))
                note = f"{len(drawn)} bootstrap draws"
            else:
                better = profile(self.regression, fit, k, factor, always=uncertainty.kind == "profile")
                if better is not None:
                    ends, note = better, "by its profile"
            ends = (max(ends[0], float(lower[k])), min(ends[1], float(upper[k]))) if np.isfinite(std) else ends
            found[name] = Parameter(name, value, std, ends, uncertainty.confidence, note)
        return found

    def _functions(self, fit: Regressed, factor: float, between: Array) -> dict[str, FunctionEstimate]:
        found = {}
        for name, basis in self.unknowns.bases.items():
            part = self.unknowns.slices[name]
            free = len(fit.free) > 0 and bool(np.abs(fit.free[:, part]).max() > 0.1 * np.abs(fit.free).max())
            note = "not determined by the data everywhere" if free else ""
            found[name] = FunctionEstimate(
                name, basis.unknown.of, basis.function(fit.vector[part]), fit.covariance[part, part], between[part],
                factor, fit.priors[name].strength, fit.priors[name].order, note,
            )  # fmt: skip
        return found

    def _status(self, fit: Regressed, parameters: dict[str, Parameter]) -> tuple[Status, str]:
        worst = next((s for s in self.solutions if not s.converged), self.solutions[0])
        free = [name for name, one in parameters.items() if not np.isfinite(one.std)]
        if self.monitor.exhausted and not self.agreed:
            return Status.BUDGET, str(Status.BUDGET)
        if len(fit.free) and free:
            return Status.UNDETERMINED, _valley(fit, self.unknowns, free)
        if not fit.settled:
            return Status.NEWTON, f"the fit of the unknowns did not settle in {fit.steps} steps; give better guesses"
        if not worst.converged:
            return worst.status, worst.detail
        for one, scale in zip(self.measured, fit.noise.scales, strict=True):
            size = float(np.sqrt(np.mean(one.values**2))) or 1.0
            if one.noise is not None and not one.noise.any() and scale > 1e3 * max(self.tol, worst.estimate) * size:
                missed = f"the values of {one.name!r} are said to be exact but are missed by {scale:.1e}"
                return Status.VETOED, f"{missed}: give their noise, or mend the equations"
        for k, one in enumerate(self.measured):
            if one.noise is not None and one.noise.any() and one.loss == "squares" and fit.misfit(k) > CONTRADICTED:
                held = "".join(f"{n} is {p.note}, " for n, p in parameters.items() if p.note.startswith("held"))
                missed = f"{held}the residuals of {one.name!r} are {fit.misfit(k):.1f} times the noise given"
                mend = "mend the equations or bounds" if held else "mend the equations"
                degree = ", or a larger degree" if self.unknowns.bases else ""
                return Status.VETOED, f"{missed}: {mend}, give a larger noise{degree}"
        unmet = float(np.sqrt(np.mean(np.square(fit.rows.pinned)))) if len(fit.rows.pinned) else 0.0
        if unmet > UNMET:
            lacking = f"the conditions on unknown functions alone are missed by {unmet * PIN:.1e} of their size"
            return Status.VETOED, f"{lacking}; give a larger degree, or conditions that agree"
        if not self.agreed:
            return Status.DISAGREE, "discretisations do not agree on the unknowns as well as their intervals say"
        return Status.CONVERGED, f"two discretisations agree on the unknowns, {fit.count} measured values"

    def _told(self, fit: Regressed) -> tuple[str, ...]:
        known = f"the data determine {fit.effective:.1f} of {self.unknowns.count} numbers"
        told = [f"{len(self.fits)} rounds, {sum(f.steps for f in self.fits)} steps; {known}"]
        for k, one in enumerate(self.measured):
            given = one.noise is not None and one.noise.any()
            if given and abs(fit.misfit(k) - 1) > 4 / len(one.values) ** 0.5 + 0.05:
                size = f"{fit.misfit(k):.2f} times the noise given"
                told.append(f"the residuals of {one.name!r} are {size}: is it right, are the equations?")
        return tuple(told)


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


def _valley(fit: Regressed, unknowns: Unknowns, names: list[str]) -> str:
    """The direction that the data leave free, in words."""
    direction = fit.free[0]
    parts = []
    for name in names:
        k = unknowns.slices[name].start
        parts.append(f"{direction[k] / max(np.abs(direction).max(), 1e-300):+.2g} in {name}")
    if len(names) == 1:
        return f"the data do not determine {names[0]}: they do not change with it"
    return f"the data do not determine {', '.join(names)} one by one: they stay the same along {', '.join(parts)}"
