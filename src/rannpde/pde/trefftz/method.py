"""Trefftz: random features that satisfy a linear equation exactly, fitted to the conditions, as a choice of
settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from rannpde.domains.domain import SpaceTime
from rannpde.errors import positive_integer
from rannpde.pde.adaptivity.loop import Inadmissible
from rannpde.pde.forward_model import ForwardModel, ModelRequest
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import Solution
from rannpde.pde.start import as_state
from rannpde.pde.trefftz.adaptive import (
    INSIDE_POINTS,
    AdaptiveTrefftz,
    TrefftzDiscretisation,
    TrefftzIteration,
    TrefftzResult,
)
from rannpde.pde.trefftz.bounds import boundary_errors, has_maximum_principle
from rannpde.pde.trefftz.cells.setting import CellsSetting, cells_setting
from rannpde.pde.trefftz.cells.slab_setting import SlabSetting
from rannpde.pde.trefftz.constant_walls import stationary_walls
from rannpde.pde.trefftz.evolution import modal_problem
from rannpde.pde.trefftz.geometry import PlaneBoundary
from rannpde.pde.trefftz.measures import WallMeasures
from rannpde.pde.trefftz.modal_solution import modal_solution
from rannpde.pde.trefftz.network import TrefftzNetwork
from rannpde.pde.trefftz.operator import CanonicalForm, canonical_form, linear_equations
from rannpde.pde.trefftz.particular import NoParticular, Particular
from rannpde.pde.trefftz.parts import NoPart
from rannpde.pde.trefftz.result import DENSE, described, judged_solution
from rannpde.pde.trefftz.setting import TrefftzSetting, feature_law, outside_the_method, pinned, trefftz_setting
from rannpde.pde.trefftz.single import OneNetwork
from rannpde.pde.trefftz.tuning import TrefftzTuning
from rannpde.pde.trefftz.varying.equation import VaryingEquation, varying_equation
from rannpde.pde.trefftz.varying.solver import VaryingSolver
from rannpde.rounding import COMPUTED, ROOT_ROUNDED
from rannpde.threads import one_thread

TYPICAL_TOLERANCE = 1e-8
"""At which features are counted before the tolerance is known."""

VARYING_REASON = "the equation is linear, and its solutions vary faster than its coefficients"
"""Why it is taken where coefficients vary."""
NEWTON_REASON = "the solutions of the linearised equation vary faster than cells resolve"
"""Why it is taken where the equation is not linear."""


@dataclass(frozen=True)
class Trefftz:
    """Solve by features that satisfy the equation exactly, so that only boundary conditions are left to fit.

    For linear equations of order two with constant coefficients in the plane and in space: Laplace, Poisson, Helmholtz,
    screened problems, diffusion with advection, isotropic or not; Stokes flow, plane elasticity and plates; heat, waves
    and Schrödinger's equation on boxes and discs; scalar equations with smooth coefficients that vary, and semilinear
    ones, on shapes in the plane made of boxes. See docs/trefftz.md for the features and for the bounds.

    features : their largest number; None for the number of the tuning
    guess : where Newton's method starts: field → formula, a Solution, or an object with derivatives; zero unless given
    tuning : the empirical numbers behind all this

    >>> from rannpde.domains import Ball, Box
    >>> from rannpde.pde.solve import solve
    >>> square = Box(x=(0, 1), y=(0, 1)) - Ball((0.4, 0.5), 0.2, name="hole")
    >>> problem = Problem("laplace(u) = 0", square, {"hole": "u = 1", "boundary except hole": "u = 0"})
    >>> solution = solve(problem, tol=1e-8, method=Trefftz())
    >>> solution.converged, solution.history.bound < 1e-7
    (True, True)
    """

    features: int | None = None
    guess: Any = None
    tuning: TrefftzTuning = field(default_factory=TrefftzTuning)

    name = "trefftz"
    reason: ClassVar[str] = "the equation is linear with constant coefficients"
    share: ClassVar[float] = 0.25
    """Of the time allowed, that it may take before another method is tried."""
    hands_over: ClassVar[frozenset[Status]] = frozenset(
        {Status.STALLED, Status.BUDGET, Status.RESIDUAL_TOO_LARGE, Status.NEWTON}
    )
    """Statuss after which another method is tried; a resonance is one for every method."""

    def __post_init__(self) -> None:
        if self.features is not None:
            positive_integer("features", self.features)

    def obstacles(self, problem: Problem) -> tuple[str, ...]:
        """Reasons why this method cannot solve the problem."""
        reasons = outside_the_method(problem)
        if self.guess is not None and problem.linear:
            reasons.append("it is linear and takes no guess")
        if reasons:
            return tuple(reasons)
        if isinstance(problem.domain, SpaceTime):
            modal = modal_problem(problem)
            return (modal,) if isinstance(modal, str) else ()
        if stationary_walls(problem) is not None:
            return ()
        setting = self._setting(problem)
        return (setting,) if isinstance(setting, str) else ()

    def drawbacks(self, problem: Problem) -> tuple[str, ...]:
        """Reasons to prefer another method that can solve the problem too."""
        if any(term.expression.kinked for term in problem.constraints):
            return ("conditions have kinks or jumps within a side, at which no feature is singular",)
        if isinstance(problem.domain, SpaceTime):
            return _drawbacks_in_time(problem)
        if stationary_walls(problem) is not None:
            return ()
        setting = self._setting(problem)
        assert not isinstance(setting, str)
        if isinstance(setting, VaryingEquation):
            what = "its coefficients vary" if setting.linear else "it is not linear"
            if setting.singular:
                return (f"{what}, and it has no features for what is singular at corners or where conditions change",)
            return () if setting.oscillates else (f"{what}, and solutions vary no faster than cells resolve",)
        for boundary in setting.feature_boundaries:
            if _asks_at_corners(problem, boundary):
                return ("an output is a derivative at a corner, next to which it has poles",)
        if isinstance(setting, TrefftzSetting) and setting.boundary is None:
            return _drawbacks_in_space(problem, [setting.form])
        if isinstance(setting, SlabSetting):
            if setting.singular:
                return ("fluxes jump at planes that meet the boundary at an angle, and no feature is singular there",)
            return _drawbacks_in_space(problem, setting.forms)
        for boundary in setting.feature_boundaries:
            form = boundary.segments[0].form
            bent = any(not segment.straight for segment in boundary.segments)
            if form.kappa < 0 and bent and form.wave_number * boundary.radius > 10 * self.tuning.layers:
                return ("layers along curved sides are thinner than its features resolve",)
        if isinstance(setting, CellsSetting) and setting.crossings:
            return ("interfaces meet inside of the domain, where the weak form resolves what is singular",)
        if isinstance(setting, TrefftzSetting) and not _suffices(problem, setting, self.tuning):
            columns = _first_columns(problem, setting, self.tuning)
            return (f"its holes and corners take more than {columns} features, and dense factorisations",)
        return ()

    def _setting(self, problem: Problem) -> TrefftzSetting | CellsSetting | SlabSetting | VaryingEquation | str:
        if self.guess is not None:
            return varying_equation(problem, as_state(self.guess, problem))
        return _problem_setting(problem, self.tuning)

    def model(self, request: ModelRequest) -> ForwardModel | None:
        """None: there are no sensitivities, and identification takes other methods."""
        return None

    def solve(self, problem: Problem, tol: float, rng: np.random.Generator, monitor: Monitor, why: str) -> Solution:
        """The solution to a relative L² error of about ``tol``, or the best that was found, with its estimate."""
        if isinstance(problem.domain, SpaceTime):
            with one_thread():
                return _evolved(problem, tol, rng, monitor, why, self.name)
        measured = stationary_walls(problem)
        if measured is not None:
            return _measured(problem, measured, tol, rng, monitor, why, self.name)
        setting = self._setting(problem)
        assert not isinstance(setting, str)
        if isinstance(setting, VaryingEquation):
            reason = VARYING_REASON if setting.linear else NEWTON_REASON
            return _varying(problem, setting, tol, monitor, reason if why == self.reason else why, self.name)
        tuning = self.tuning if self.features is None else replace(self.tuning, columns=self.features)
        try:
            parts = setting.particulars(problem, tol)
        except NoParticular as reason:
            form = setting.form if isinstance(setting, TrefftzSetting) else setting.forms[0]
            return judged_solution(problem, _failed(problem, form, str(reason)), None, tol, "", monitor, why, self.name)
        discretisation = _discretisation(problem, setting, tol, tuning, parts)
        defect = sum(part.defect * part.gain for cell in parts for part in cell)
        with one_thread():
            result = AdaptiveTrefftz(problem, discretisation, defect, tol, monitor, tuning).run(rng)
            network, missed = result.network, None
            if isinstance(setting, TrefftzSetting) and _bounded(problem, setting):
                assert isinstance(network, TrefftzNetwork)
                assert setting.boundary is not None
                count = max(2 * result.best.rows, DENSE)
                missed = boundary_errors(problem, network, setting.boundary, setting.form, parts[0][0], count)
        return judged_solution(problem, result, missed, tol, described(network), monitor, why, self.name)


@lru_cache(maxsize=1)
def _problem_setting(
    problem: Problem, tuning: TrefftzTuning
) -> TrefftzSetting | CellsSetting | SlabSetting | VaryingEquation | str:
    """One network where that suffices, cells of networks where coefficients jump or there are many holes, and cells of
    local solutions where coefficients vary.

    The last one is kept, since obstacles, drawbacks and the solve of a problem ask for it in turn.
    """
    if not problem.linear:
        return varying_equation(problem)
    one = trefftz_setting(problem)
    if isinstance(one, TrefftzSetting) and _suffices(problem, one, tuning):
        return one
    several = cells_setting(problem, one)
    if not isinstance(several, str) or not isinstance(one, str):
        return one if isinstance(several, str) else several
    varying = varying_equation(problem)
    return several if isinstance(varying, str) else varying


def _suffices(problem: Problem, one: TrefftzSetting, tuning: TrefftzTuning) -> bool:
    """Whether one network has room for more features than it begins with."""
    return one.boundary is None or 2 * _first_columns(problem, one, tuning) <= tuning.columns


def _bounded(problem: Problem, setting: TrefftzSetting) -> bool:
    """Whether the maximum principle bounds the error."""
    return setting.boundary is not None and setting.model is None and has_maximum_principle(problem, setting.form)


def _first_columns(problem: Problem, setting: TrefftzSetting, tuning: TrefftzTuning) -> int:
    """How many features one network begins with."""
    law = feature_law(problem, setting, TYPICAL_TOLERANCE, tuning)
    return sum(family.columns for family in law.families(law.first(), np.random.default_rng(0)))


def _discretisation(
    problem: Problem, setting: TrefftzSetting | CellsSetting | SlabSetting, tol: float, tuning: TrefftzTuning,
    parts: Sequence[Sequence[Particular]],
) -> TrefftzDiscretisation:  # fmt: skip
    if isinstance(setting, CellsSetting | SlabSetting):
        return setting.discretisation(problem, tol, tuning, parts)
    law, own = feature_law(problem, setting, tol, tuning), tuple(one.part for one in parts[0])
    return OneNetwork(law, setting.form, own, problem.vocabulary, pinned(setting.pins))


def _failed(problem: Problem, form: CanonicalForm, reason: str) -> TrefftzResult:
    """What comes back where no particular solution is known: zero, and the reason."""
    zero = TrefftzNetwork((), np.empty(0), (NoPart(),) * len(problem.fields), form)
    nothing = TrefftzIteration(0, 0, 0, np.inf, np.inf, np.inf, np.inf, 0.0)
    return TrefftzResult(zero, nothing, (nothing,), Status.STALLED, reason, 1.0)


def _asks_at_corners(problem: Problem, boundary: PlaneBoundary) -> bool:
    """Whether an output of the problem is the value of a derivative at a corner."""
    corners = [boundary.segments[0].form.back(corner.point[None, :])[0] for corner in boundary.corners]
    asked = [
        np.asarray(output.at, dtype=float)
        for name, output in problem.outputs.items()
        if output.at is not None and problem.output_expressions[name].order
    ]
    size = float(np.ptp(problem.domain.bounds, axis=1).max())
    return any(np.linalg.norm(point - corner) < ROOT_ROUNDED * size for point in asked for corner in corners)


def _drawbacks_in_space(problem: Problem, forms: Sequence[CanonicalForm]) -> tuple[str, ...]:
    reasons = []
    for form in forms:
        reach = form.wave_number * float(np.abs(problem.domain.bounds - form.origin[:, None]).max())
        if form.kappa < 0 and reach > 20:
            reasons.append("layers are thinner than its features in space resolve")
            break
    edges = np.abs(problem.domain.creases.directions) > 1 - COMPUTED
    if edges.any(axis=1).all() and edges.any(axis=0).sum() > 1:
        reasons.append("re-entrant edges along different axes meet, and no feature is singular as solutions are there")
    return tuple(reasons)


def _drawbacks_in_time(problem: Problem) -> tuple[str, ...]:
    modal = modal_problem(problem)
    assert not isinstance(modal, str)
    if modal.measured is not None or modal.jumps:
        return ()
    if modal.domain.space.dim == 1:
        return ("in one dimension of space lines are as fast",)
    if modal.evolution.parities is not None:
        return ("lines have the same sines and cosines",)
    if not modal.resolved(TYPICAL_TOLERANCE, np.random.default_rng(0)):
        return ("initial values and walls do not suit each other, and eigenfunctions converge slowly",)
    return ()


def _evolved(problem: Problem, tol: float, rng: np.random.Generator, monitor: Monitor, why: str, name: str) -> Solution:
    """By eigenfunctions in space, each with its rates in time."""
    modal = modal_problem(problem)
    assert not isinstance(modal, str)
    done: list[TrefftzIteration] = []
    best: TrefftzResult | None = None
    bound: float | None = None

    def result(end: Status, detail: str) -> Solution:
        assert best is not None
        outcome = replace(best, iterations=tuple(done), status=end, detail=detail)
        return judged_solution(problem, outcome, bound, tol, described(outcome.network), monitor, why, name)

    for number, now in enumerate(modal_solution(modal, tol, rng), start=1):
        columns = sum(now.network.widths)
        record = TrefftzIteration(
            columns, columns, columns, now.initial, now.largest, now.amplification, now.estimate, monitor.elapsed
        )
        done.append(record)
        if best is None or now.estimate < best.best.estimate:
            best, bound = TrefftzResult(now.network, record, (), Status.STALLED, "", now.scale), now.bound
        monitor.keep(result)
        monitor.tell(number, 1, width=columns, estimate=now.estimate)
        if now.estimate <= tol:
            return result(Status.CONVERGED, "the error of the initial values is below the tolerance")
        if monitor.exhausted:
            return result(Status.BUDGET, "")
    # from a jump no other method gets farther: it is not handed over
    end = Status.DISAGREE if modal.jumps else Status.STALLED
    return result(end, "initial values do not suit the walls, and eigenfunctions converge slowly")


def _varying(
    problem: Problem, equation: VaryingEquation, tol: float, monitor: Monitor, why: str, name: str
) -> Solution:
    """By the solutions of the equation in cells, joined by least squares."""

    def made(result: TrefftzResult) -> Solution:
        return judged_solution(problem, result, None, tol, described(result.network), monitor, why, name)

    with one_thread():
        try:
            return made(VaryingSolver(equation, tol, monitor, made).run())
        except Inadmissible as stop:  # already on the first mesh
            plain = CanonicalForm(np.eye(2), equation.bounds.mean(axis=1), np.zeros(2), 0.0, 1.0, 0.0)
            return made(replace(_failed(problem, plain, stop.detail), status=stop.status))


def _measured(
    problem: Problem, part: WallMeasures, tol: float, rng: np.random.Generator, monitor: Monitor, why: str, name: str
) -> Solution:
    """By the harmonic measures of the walls of a box: conditions hold exactly, and integrals have the error."""
    inside = problem.domain.sample(INSIDE_POINTS, rng=rng, method="sobol")
    finer, error = part.refined(inside, tol)
    equations = linear_equations(problem)
    assert not isinstance(equations, str)
    form = canonical_form(equations[0].symbols[problem.fields[0]], problem.domain.bounds.mean(axis=1))
    assert form is not None
    network = TrefftzNetwork((), np.empty(0), (finer,), form)
    scale = float(np.sqrt(np.mean(np.square(network(inside))))) or 1.0
    record = TrefftzIteration(0, 0, 0, 0.0, error / scale, 1.0, error / scale, monitor.elapsed)
    status, detail = Status.STALLED, "integrals of the measures of the walls converge slowly"
    if error <= tol * scale:
        status, detail = Status.CONVERGED, "integrals of the measures of the walls are exact to the tolerance"
    result = TrefftzResult(network, record, (record,), status, detail, scale)
    return judged_solution(problem, result, error, tol, "harmonic measures of the walls", monitor, why, name)
