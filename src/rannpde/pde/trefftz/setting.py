"""The data of a problem for Trefftz networks, equations, canonical form and boundary, or why it is none for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rannpde.domains.domain import SpaceTime
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.tolerance import PILOT_TOLERANCE
from rannpde.pde.trefftz.adaptive import TrefftzResult
from rannpde.pde.trefftz.basis import PlaneLaw
from rannpde.pde.trefftz.bounds import BoundaryErrors, boundary_errors, has_maximum_principle
from rannpde.pde.trefftz.drawbacks import plane_drawbacks, space_drawbacks
from rannpde.pde.trefftz.geometry import PlaneBoundary, plane_boundary
from rannpde.pde.trefftz.network import TrefftzNetwork
from rannpde.pde.trefftz.operator import CanonicalForm, LinearEquation, canonical_form, linear_equations
from rannpde.pde.trefftz.particular import Particular, particulars
from rannpde.pde.trefftz.potentials import PotentialModel, potential_model
from rannpde.pde.trefftz.result import DENSE
from rannpde.pde.trefftz.rows import ConditionPoints
from rannpde.pde.trefftz.sign_group import sign_group
from rannpde.pde.trefftz.single import FeatureLaw, OneNetwork
from rannpde.pde.trefftz.space import space_law
from rannpde.pde.trefftz.symmetry import Unfolding, unfolded
from rannpde.pde.trefftz.tractions import condition_without_energy
from rannpde.pde.trefftz.tuning import TrefftzTuning

TYPICAL_TOLERANCE = 1e-8
"""At which features are counted before the tolerance is known."""


@dataclass(frozen=True, eq=False)
class TrefftzSetting:
    """The data of a problem for this method: equations, canonical form, boundary in the plane (None in space),
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

    def particulars(self, problem: Problem, tol: float) -> list[list[Particular]]:
        """Particular solutions of all fields, in the only cell that there is; NoParticular where there are none."""
        return [particulars(problem, self.equations, tol)]

    @property
    def forms(self) -> list[CanonicalForm]:
        """The canonical form of the only network."""
        return [self.form]

    def law(self, problem: Problem, tol: float, tuning: TrefftzTuning) -> FeatureLaw:
        """The sampling law of the features."""
        if self.boundary is None:
            law = space_law(problem.domain, self.terms, self.form, tol, tuning)
            assert not isinstance(law, str)
            return replace(law, symmetries=sign_group(self.terms, self.form, problem.vocabulary))
        words, whole = problem.vocabulary, self.unfolding
        if whole is None:
            return PlaneLaw(problem.domain, self.boundary, self.form, tol, tuning, words, self.model)
        return PlaneLaw(whole.domain, whole.boundary, self.form, tol, tuning, words, self.model, whole.group)

    def suffices(self, problem: Problem, tol: float, tuning: TrefftzTuning) -> bool:
        """Whether there is room for more features than the network begins with."""
        return self.boundary is None or 2 * self._first_columns(problem, tol, tuning) <= tuning.columns

    def _first_columns(self, problem: Problem, tol: float, tuning: TrefftzTuning) -> int:
        """The number of features of the first iteration."""
        law = self.law(problem, tol, tuning)
        return sum(family.columns for family in law.families(law.first(), np.random.default_rng(0)))

    def drawbacks(self, problem: Problem, tuning: TrefftzTuning) -> tuple[str, ...]:
        """Reasons to prefer another method."""
        if self.boundary is None:
            return space_drawbacks(problem, self.forms)
        reasons = plane_drawbacks(problem, [self.features_boundary], tuning)
        if reasons or self.suffices(problem, TYPICAL_TOLERANCE, tuning):
            return reasons
        columns = self._first_columns(problem, TYPICAL_TOLERANCE, tuning)
        return (f"its holes and corners take more than {columns} features, and dense factorisations",)

    def discretisation(
        self, problem: Problem, tol: float, tuning: TrefftzTuning, parts: Sequence[Sequence[Particular]]
    ) -> OneNetwork:
        """The law with the particular solutions."""
        own = tuple(one.part for one in parts[0])
        return OneNetwork(self.law(problem, tol, tuning), self.form, own, problem.vocabulary, pinned(self.pins))

    def boundary_errors(
        self, problem: Problem, result: TrefftzResult, parts: Sequence[Sequence[Particular]]
    ) -> BoundaryErrors | None:
        """The errors of a result on the boundary, where the maximum principle makes a bound of them; else None."""
        bounded = self.boundary is not None and self.model is None and has_maximum_principle(problem, self.form)
        if not bounded:
            return None
        network, count = result.network, max(2 * result.best.rows, DENSE)
        assert isinstance(network, TrefftzNetwork)
        assert self.boundary is not None
        return boundary_errors(problem, network, self.boundary, self.form, parts[0][0], count)


def outside_the_method(problem: Problem) -> list[str]:
    """Reasons that lie in the statement alone."""
    reasons = []
    if isinstance(problem.domain, SpaceTime):
        reasons += ["fields have bounds"] if problem.bounds else []
        return reasons if problem.linear else [*reasons, "it is not linear"]
    if problem.domain.dim not in (2, 3):
        reasons.append(f"the domain has {problem.domain.dim} coordinate(s), neither two nor three")
    if problem.bounds:
        reasons.append("fields have bounds")
    if problem.periodic or problem.pairings:
        reasons.append("it has periodic conditions")
    pinned = {term for term in problem.constraints if is_pin(problem, term)}
    if any(term.kind != "boundary" and term not in pinned for term in problem.constraints):
        reasons.append("conditions hold inside the domain, or at single points")
    if problem.free_constants:
        reasons.append("a constant is left free")
    return reasons


def trefftz_setting(problem: Problem) -> TrefftzSetting | str:
    """The setting of one network for the whole domain, or the reason why there is none."""
    equations = linear_equations(problem)
    if isinstance(equations, str):
        return equations
    model = potential_model(equations, problem.fields) if problem.domain.dim == 2 else None
    origin = problem.domain.bounds.mean(axis=1)
    if model is not None:
        form = CanonicalForm(np.eye(2), origin, np.zeros(2), 0.0, 1.0, 0.0)
    elif len(problem.fields) == 1:
        canonical = canonical_form(equations[0].symbols[problem.fields[0]], origin)
        if canonical is None:
            return "the equation is not elliptic of order two"
        form = canonical
    else:
        return "the system is neither Stokes flow nor plane elasticity"
    pins = tuple(term for term in problem.constraints if is_pin(problem, term))
    terms = [term for term in problem.constraints if term not in pins]
    if problem.domain.dim == 3:
        law = space_law(problem.domain, terms, form, PILOT_TOLERANCE, TrefftzTuning())
        return law if isinstance(law, str) else TrefftzSetting(equations, form, None, tuple(terms), None, pins)
    boundary = plane_boundary(problem.domain, terms, form, 1 if model is None else 2)
    if isinstance(boundary, str):
        return boundary
    if model is not None and model.system == "elastic" and boundary.corners:
        condition = condition_without_energy(boundary.segments, model, problem.vocabulary)
        if condition is not None:
            return f"condition {condition!r} is none on tractions, without which singular features at corners are free"
    sourceless = all(equation.load == 0 for equation in equations)
    words = problem.vocabulary
    mirrored = unfolded(problem.domain, boundary, form, problem.fields, words, model) if sourceless else None
    return TrefftzSetting(equations, form, boundary, tuple(terms), model, pins, mirrored)


def is_pin(problem: Problem, term: Term) -> bool:
    """Whether it is the value of a field at one point that its derivatives leave free: a pressure."""
    given = term.prescribed
    if term.kind != "data" or given is None or term.points is None or len(term.points) != 1 or given[0].order:
        return False
    others = [jet for other in problem.terms if other is not term for jet in other.expression.jets]
    return all(jet.order for jet in others if jet.field == given[0].field)


def pinned(terms: tuple[Term, ...]) -> tuple[ConditionPoints, ...]:
    """Values at single points as rows."""
    one = np.ones(1)
    return tuple(ConditionPoints(t, t.points, one, one, 0 * one) for t in terms if t.points is not None)
