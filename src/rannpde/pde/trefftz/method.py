"""Trefftz: random features that satisfy a linear equation exactly, fitted to the conditions, as a choice of
settings.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from rannpde.domains.domain import SpaceTime
from rannpde.errors import positive_integer
from rannpde.pde.forward_model import ForwardModel, ModelRequest
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term, held_out_residual, term_residual
from rannpde.pde.solution import Choice, Solution
from rannpde.pde.statement.expression import evaluate
from rannpde.pde.trefftz.adaptive import INSIDE_POINTS, AdaptiveTrefftz, FeatureLaw, TrefftzIteration, TrefftzResult
from rannpde.pde.trefftz.analytic import LaurentFamily, LogarithmFamily, PoleFamily, PolynomialFamily
from rannpde.pde.trefftz.basis import PlaneLaw
from rannpde.pde.trefftz.bounds import has_maximum_principle, maximum_bound
from rannpde.pde.trefftz.constant_walls import stationary_walls
from rannpde.pde.trefftz.evolution import modal_problem
from rannpde.pde.trefftz.families import (
    AngleFamily,
    ExponentialFamily,
    FeatureFamily,
    MultipoleFamily,
    SourceFamily,
)
from rannpde.pde.trefftz.geometry import PlaneBoundary, plane_boundary
from rannpde.pde.trefftz.history import TrefftzHistory
from rannpde.pde.trefftz.measures import WallMeasures
from rannpde.pde.trefftz.modal import ModalNetwork
from rannpde.pde.trefftz.modal_solution import modal_solution
from rannpde.pde.trefftz.network import TrefftzNetwork
from rannpde.pde.trefftz.operator import CanonicalForm, LinearEquation, canonical_form, linear_equations
from rannpde.pde.trefftz.particular import NoPart, NoParticular, Particular, particulars
from rannpde.pde.trefftz.potentials import GoursatFamily, PotentialFamily, PotentialModel, potential_model
from rannpde.pde.trefftz.rows import ConditionPoints
from rannpde.pde.trefftz.solid import SolidFamily
from rannpde.pde.trefftz.space import space_law
from rannpde.pde.trefftz.spherical import SphericalFamily
from rannpde.pde.trefftz.symmetry import SymmetricFamily, Unfolding, unfolded
from rannpde.pde.trefftz.tuning import TrefftzTuning
from rannpde.threads import one_thread

DENSE = 2048
"""Points of every side at which the conditions are looked at again."""

TYPICAL_TOLERANCE = 1e-8
"""At which features are counted before the tolerance is known."""
FEATURE_NAMES: dict[type[FeatureFamily], str] = {
    ExponentialFamily: "exponentials",
    SourceFamily: "sources outside",
    LogarithmFamily: "logarithms",
    AngleFamily: "angles at corners",
    LaurentFamily: "multipoles in holes",
    PolynomialFamily: "polynomials",
    PoleFamily: "poles at corners",
}
"""What reports call the families."""


@dataclass(frozen=True, eq=False)
class TrefftzSetting:
    """What a problem is for this method: its equations, the canonical form, the boundary in the plane (None in space),
    conditions on the boundary, potentials of systems, values at single points; the domain unfolded at its mirrors.
    """

    equations: tuple[LinearEquation, ...]
    form: CanonicalForm
    boundary: PlaneBoundary | None
    terms: tuple[Term, ...]
    model: PotentialModel | None
    pins: tuple[Term, ...]
    unfolding: Unfolding | None = None

    @property
    def features_boundary(self) -> PlaneBoundary:
        """The boundary that features are chosen for: that of the unfolded domain where there are mirrors."""
        assert self.boundary is not None
        return self.boundary if self.unfolding is None else self.unfolding.boundary


@dataclass(frozen=True)
class Trefftz:
    """Solve by features that satisfy the equation exactly, so that only boundary conditions are left to fit.

    For linear equations of order two with constant coefficients in the plane and in space: Laplace, Poisson, Helmholtz,
    screened problems, diffusion with advection, isotropic or not; Stokes flow, plane elasticity and plates; heat, waves
    and Schrödinger's equation on boxes and discs. See docs/trefftz.md for the features and for the bounds.

    features : at most so many; None for the number of the tuning
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
    tuning: TrefftzTuning = field(default_factory=TrefftzTuning)

    name = "trefftz"
    reason: ClassVar[str] = "the equation is linear with constant coefficients"
    share: ClassVar[float] = 0.25
    """Of the time allowed, that it may take before another method is tried."""
    hands_over: ClassVar[frozenset[Status]] = frozenset({Status.STALLED, Status.BUDGET, Status.VETOED})
    """Statuss after which another method is tried; a resonance is one for every method."""

    def __post_init__(self) -> None:
        if self.features is not None:
            positive_integer("features", self.features)

    def obstacles(self, problem: Problem) -> tuple[str, ...]:
        """Reasons why this method cannot solve the problem."""
        found = _outside(problem)
        if found:
            return tuple(found)
        if isinstance(problem.domain, SpaceTime):
            modal = modal_problem(problem)
            return (modal,) if isinstance(modal, str) else ()
        if stationary_walls(problem) is not None:
            return ()
        setting = _setting(problem)
        return (setting,) if isinstance(setting, str) else ()

    def drawbacks(self, problem: Problem) -> tuple[str, ...]:
        """Reasons to prefer another method that can solve the problem too."""
        if any(term.expression.kinked for term in problem.constraints):
            return ("conditions have kinks or jumps within a side, at which no feature is singular",)
        if isinstance(problem.domain, SpaceTime):
            return _drawbacks_in_time(problem)
        if stationary_walls(problem) is not None:
            return ()
        setting = _setting(problem)
        assert not isinstance(setting, str)
        if setting.boundary is not None and _asks_at_corners(problem, setting.features_boundary):
            return ("an output is a derivative at a corner, next to which it has poles",)
        if setting.boundary is None:
            return _drawbacks_in_space(problem, setting.form)
        reach = setting.form.wave_number * setting.features_boundary.radius
        bent = any(not piece.straight for piece in setting.boundary.pieces)
        if setting.form.kappa < 0 and bent and reach > 10 * self.tuning.layers:
            return ("layers along curved sides are thinner than its features resolve",)
        law = _law(problem, setting, TYPICAL_TOLERANCE, self.tuning)
        columns = sum(family.columns for family in law.families(law.first(), np.random.default_rng(0)))
        if 2 * columns > self.tuning.columns:
            return (f"so many holes and corners take more than {columns} features, and dense factorisations",)
        return ()

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
        setting = _setting(problem)
        assert not isinstance(setting, str)
        tuning = self.tuning if self.features is None else replace(self.tuning, columns=self.features)
        missing = ""
        try:
            parts = particulars(problem, setting.equations, tol)
        except NoParticular as reason:
            parts, missing = [Particular(NoPart(), np.inf, np.inf) for _ in problem.fields], str(reason)
        law = _law(problem, setting, tol, tuning)
        with one_thread():
            adaptive = AdaptiveTrefftz(problem, law, setting.form, parts, tol, monitor, tuning, _pinned(setting.pins))
            found = adaptive.run(rng) if not missing else adaptive.failed(missing)
            network = found.network
            assert isinstance(network, TrefftzNetwork)
            bound = None
            if (
                not missing
                and setting.boundary
                and setting.model is None
                and has_maximum_principle(problem, setting.form)
            ):
                count = 2 * found.best.rows
                bound = maximum_bound(problem, network, setting.boundary, setting.form, parts[0], count)
        return _solution(problem, found, bound, tol, _described(network.families), monitor, why, self.name)


def _asks_at_corners(problem: Problem, boundary: PlaneBoundary) -> bool:
    """Whether an output of the problem is the value of a derivative at a corner."""
    corners = [boundary.pieces[0].form.back(corner.point[None, :])[0] for corner in boundary.corners]
    asked = [
        np.asarray(output.at, dtype=float)
        for name, output in problem.outputs.items()
        if output.at is not None and problem.output_expressions[name].order
    ]
    size = float(np.ptp(problem.domain.bounds, axis=1).max())
    return any(np.linalg.norm(point - corner) < 1e-6 * size for point in asked for corner in corners)


def _drawbacks_in_space(problem: Problem, form: CanonicalForm) -> tuple[str, ...]:
    found = []
    if form.kappa < 0 and form.wave_number * float(np.abs(problem.domain.bounds - form.origin[:, None]).max()) > 20:
        found.append("layers are thinner than its features in space resolve")
    return tuple(found)


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


def _outside(problem: Problem) -> list[str]:
    """What the method does not know at all."""
    found = []
    if isinstance(problem.domain, SpaceTime):
        found += ["fields have bounds"] if problem.bounds else []
        return found if problem.linear else [*found, "it is not linear"]
    if problem.domain.dim not in (2, 3):
        found.append(f"the domain has {problem.domain.dim} coordinate(s), neither two nor three")
    if problem.bounds:
        found.append("fields have bounds")
    if problem.periodic or problem.pairings:
        found.append("it has periodic conditions")
    pinned = {term for term in problem.constraints if _is_pin(problem, term)}
    if any(term.kind != "boundary" and term not in pinned for term in problem.constraints):
        found.append("conditions hold inside the domain, or at single points")
    if not problem.linear:
        found.append("it is not linear")
    if problem.free_constants:
        found.append("a constant is left free")
    return found


def _setting(problem: Problem) -> TrefftzSetting | str:
    equations = linear_equations(problem)
    if isinstance(equations, str):
        return equations
    model = potential_model(equations, problem.fields) if problem.domain.dim == 2 else None
    origin = problem.domain.bounds.mean(axis=1)
    if model is not None:
        form = CanonicalForm(np.eye(2), origin, np.zeros(2), 0.0, 1.0, 0.0)
    elif len(problem.fields) == 1:
        found = canonical_form(equations[0].symbols[problem.fields[0]], origin)
        if found is None:
            return "the equation is not elliptic of order two"
        form = found
    else:
        return "the system is neither Stokes flow nor plane elasticity"
    pins = tuple(term for term in problem.constraints if _is_pin(problem, term))
    terms = [term for term in problem.constraints if term not in pins]
    if problem.domain.dim == 3:
        law = space_law(problem.domain, terms, form, 1e-3, TrefftzTuning())
        return law if isinstance(law, str) else TrefftzSetting(equations, form, None, tuple(terms), None, pins)
    boundary = plane_boundary(problem.domain, terms, form, 1 if model is None else 2)
    if isinstance(boundary, str):
        return boundary
    sourceless = all(equation.load == 0 for equation in equations)
    words = problem.vocabulary
    mirrored = unfolded(problem.domain, boundary, form, problem.fields, words, model) if sourceless else None
    return TrefftzSetting(equations, form, boundary, tuple(terms), model, pins, mirrored)


def _law(problem: Problem, setting: TrefftzSetting, tol: float, tuning: TrefftzTuning) -> FeatureLaw:
    if setting.boundary is None:
        law = space_law(problem.domain, setting.terms, setting.form, tol, tuning)
        assert not isinstance(law, str)
        return law
    words, model, whole = problem.vocabulary, setting.model, setting.unfolding
    if whole is None:
        return PlaneLaw(problem.domain, setting.boundary, setting.form, tol, tuning, words, model)
    return PlaneLaw(whole.domain, whole.boundary, setting.form, tol, tuning, words, model, whole.group)


def _is_pin(problem: Problem, term: Term) -> bool:
    """Whether it is the value of a field at one point that its derivatives leave free: a pressure."""
    given = term.prescribed
    if term.kind != "data" or given is None or term.points is None or len(term.points) != 1 or given[0].order:
        return False
    others = [jet for other in problem.terms if other is not term for jet in other.expression.jets]
    return all(jet.order for jet in others if jet.field == given[0].field)


def _pinned(terms: tuple[Term, ...]) -> tuple[ConditionPoints, ...]:
    one = np.ones(1)
    return tuple(ConditionPoints(t, t.points, one, one, 0 * one) for t in terms if t.points is not None)


def _described(families: tuple[FeatureFamily, ...]) -> str:
    """The features in words."""
    counts: dict[str, int] = {}
    for one in families:
        family = one.base if isinstance(one, SymmetricFamily) else one
        family = family.base if isinstance(family, (PotentialFamily, GoursatFamily)) else family
        name = FEATURE_NAMES.get(type(family), "features")
        if isinstance(family, MultipoleFamily | SolidFamily | SphericalFamily):
            name = "regular functions" if family.regular else "multipoles in holes"
        if isinstance(family, SourceFamily) and len(family.moments) > 1:
            name = "poles at corners"
        counts[name] = counts.get(name, 0) + one.columns
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _evolved(problem: Problem, tol: float, rng: np.random.Generator, monitor: Monitor, why: str, name: str) -> Solution:
    """By eigenfunctions in space, each with its rates in time."""
    modal = modal_problem(problem)
    assert not isinstance(modal, str)
    done: list[TrefftzIteration] = []
    best: TrefftzResult | None = None
    bound: float | None = None

    def result(end: Status, detail: str) -> Solution:
        assert best is not None
        found = replace(best, iterations=tuple(done), status=end, detail=detail)
        words = f"{sum(found.network.widths)} eigenfunctions of space with their rates in time"
        return _solution(problem, found, bound, tol, words, monitor, why, name)

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


def _measured(
    problem: Problem, part: WallMeasures, tol: float, rng: np.random.Generator, monitor: Monitor, why: str, name: str
) -> Solution:
    """By the harmonic measures of the walls of a box: conditions hold exactly, and integrals have the error."""
    inside = problem.domain.sample(INSIDE_POINTS, rng=rng, method="sobol")
    finer, error = part.refined(inside, tol)
    form = canonical_form(linear_equations(problem)[0].symbols[problem.fields[0]], problem.domain.bounds.mean(axis=1))  # type: ignore[union-attr]
    assert form is not None
    network = TrefftzNetwork((), np.empty(0), (finer,), form)
    scale = float(np.sqrt(np.mean(np.square(network(inside))))) or 1.0
    record = TrefftzIteration(0, 0, 0, 0.0, error / scale, 1.0, error / scale, monitor.elapsed)
    reached = error <= tol * scale
    detail = (
        "integrals of the measures of the walls are exact to the tolerance" if reached else "integrals converge slowly"
    )
    found = TrefftzResult(network, record, (record,), Status.CONVERGED if reached else Status.STALLED, detail, scale)
    return _solution(problem, found, error, tol, "harmonic measures of the walls", monitor, why, name)


def _solution(
    problem: Problem,
    found: TrefftzResult,
    bound: float | None,
    tol: float,
    features: str,
    monitor: Monitor,
    why: str,
    name: str,
) -> Solution:
    network = found.network
    status, detail = found.status, found.detail
    judged = isinstance(network, ModalNetwork)  # walls hold exactly, and initial values were judged at fresh points
    missed = _missed(problem, network) if status is Status.CONVERGED and not judged else 0.0
    amplified = found.best.estimate / max(found.best.boundary, 1e-300)  # of boundary errors, inside
    if missed * amplified > 10 * tol * found.scale:
        status = Status.VETOED
        detail = f"the conditions are missed by {missed:.1e} between the points at which they were fitted"
    losses: dict[str, float] = {}
    measures: dict[str, float] = {}
    for term in problem.terms:
        region: Any = term.region
        points = region.sample(400, rng=5) if term.points is None else term.points
        residual = term_residual(term, network, problem.vocabulary, points, term.data)
        share, before = term.measure, measures.get(term.name, 0.0)
        mean = float(np.mean(np.square(residual)))
        losses[term.name] = (losses.get(term.name, 0.0) * before + mean * share) / (before + share)
        measures[term.name] = before + share
    return Solution(
        problem=problem, fields=problem.fields, function=network, status=status, detail=detail,
        estimate=found.best.estimate, held_out=held_out_residual(problem, network), losses=losses,
        integrals={key: loss * measures[key] for key, loss in losses.items()},
        history=TrefftzHistory(found.iterations, features, bound),
        method=Choice(name, f"features that satisfy the equation: {features}", why), seconds=monitor.elapsed,
    )  # fmt: skip


def _missed(problem: Problem, network: TrefftzNetwork | ModalNetwork) -> float:
    """The root mean square error of given values at many evenly spread points: spikes of the data are seen."""
    worst = 0.0
    for term in problem.constraints:
        given = term.prescribed
        if term.region is None or given is None or given[0].order:
            continue
        points = term.region.sample(DENSE, rng=19, method="sobol")
        residual = term_residual(term, network, problem.vocabulary, points)
        known = term.known(points, problem.vocabulary)
        slope = np.asarray(evaluate([term.expression.partials[0]], known, term.expression.functions)[0])
        worst = max(worst, float(np.sqrt(np.mean(np.square(residual / slope)))))
    return worst
