"""The solution of a Trefftz network: checked at many new points, with losses and a description of its features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term, held_out_residuals, term_residuals
from rannpde.pde.solution import Choice, Solution
from rannpde.pde.statement.expression import evaluate
from rannpde.pde.trefftz.adaptive import INSIDE_POINTS, TrefftzIteration, TrefftzResult
from rannpde.pde.trefftz.bounds import BoundaryErrors
from rannpde.pde.trefftz.history import TrefftzHistory
from rannpde.pde.trefftz.network import TrefftzNetwork
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.pde.trefftz.parts import NoPart
from rannpde.pde.trefftz.tuning import TrefftzTuning

DENSE = 2048
"""Points of a side at which given values are checked again; where there are many conditions, fewer of each."""


@dataclass(frozen=True, eq=False)
class TrefftzTask:
    """The task of one solve: a problem, a tolerance, limits, the name of the method and why it was chosen."""

    problem: Problem
    tol: float
    tuning: TrefftzTuning
    rng: np.random.Generator
    monitor: Monitor
    why: str
    name: str

    def solution(
        self,
        result: TrefftzResult,
        features: str | None = None,
        boundary: BoundaryErrors | None = None,
        bound: float | None = None,
        checked: bool = False,
    ) -> Solution:
        """The result of the iteration as a Solution, whose conditions are checked between the points of the fit.

        features : their description, that of the network by default
        boundary : errors of the conditions on a sampled boundary, for the maximum principle
        bound : of the error everywhere, where another principle gives it
        checked : whether conditions hold exactly, or were checked at new points already
        """
        problem, monitor, network = self.problem, self.monitor, result.network
        features = network.contents if features is None else features
        status, detail = result.status, result.detail
        known = boundary or BoundaryErrors(np.inf, {}, {})
        values = _given_values(problem) if status is Status.CONVERGED and not checked else []
        fresh = [term for term in values if term not in known.errors]
        count = _count_per_term(INSIDE_POINTS, len(problem.terms))  # means of squares to 1/√200
        inside, held_out = held_out_residuals(problem, network, count=count) if monitor.residuals else ({}, {})
        squares = {term: inside[term.name] for term in problem.interior if term.name in inside} | dict(known.residuals)
        others = [term for term in problem.terms if term not in fresh and term not in squares]
        others = others if monitor.residuals else []
        points = _sampled(fresh, _count_per_term(DENSE, len(fresh)), rng=19, method="sobol")
        points += _sampled(others, count, rng=5)
        residuals = term_residuals([*fresh, *others], network, problem.vocabulary, points)
        largest = _missed(problem, fresh, points, residuals)
        largest = max([largest, *(known.errors[term] for term in values if term in known.errors)])
        amplified = result.best.estimate / max(result.best.boundary, 1e-300)  # of boundary errors, inside
        if largest * amplified > 10 * self.tol * result.scale:
            status = Status.RESIDUAL_TOO_LARGE
            detail = f"the conditions are missed by {largest:.1e} between the points at which they were fitted"
        losses: dict[str, float] = {}
        measures: dict[str, float] = {}
        pairs = zip([*fresh, *others], residuals, strict=True)
        squares |= {term: float(np.mean(np.square(residual))) for term, residual in pairs}
        for term in problem.terms if monitor.residuals else ():
            share, before = term.measure, measures.get(term.name, 0.0)
            losses[term.name] = (losses.get(term.name, 0.0) * before + squares[term] * share) / (before + share)
            measures[term.name] = before + share
        return Solution(
            problem=problem, fields=problem.fields, function=network, status=status, detail=detail,
            estimate=np.inf if status is Status.UNDETERMINED else result.best.estimate,
            held_out=held_out, losses=losses,
            integrals={key: loss * measures[key] for key, loss in losses.items()},
            history=TrefftzHistory(result.iterations, features, bound if boundary is None else boundary.bound),
            method=Choice(self.name, f"features that satisfy the equation: {features}", self.why),
            seconds=monitor.elapsed,
        )  # fmt: skip


def no_result(problem: Problem, form: CanonicalForm, reason: str, status: Status = Status.STALLED) -> TrefftzResult:
    """The result zero, with the reason why no solution was found."""
    zero = TrefftzNetwork((), np.empty(0), (NoPart(),) * len(problem.fields), form)
    nothing = TrefftzIteration(0, 0, 0, np.inf, np.inf, np.inf, np.inf, 0.0)
    return TrefftzResult(zero, nothing, (nothing,), status, reason, 1.0)


def _count_per_term(count: int, terms: int) -> int:
    """The number of points for each term: ``count`` for up to eight terms, and in all no more than for eight."""
    return ceil(count * min(1.0, 8 / max(terms, 1)))


def _sampled(terms: Sequence[Term], count: int, **how: Any) -> list[Array]:
    """``count`` points of the region of each term, shared by all terms on the region; or the points that a term has."""
    known: dict[int, Array] = {}
    for term in terms:
        region: Any = term.region
        if term.points is None and id(region) not in known:
            known[id(region)] = region.sample(count, **how)
    return [known[id(term.region)] if term.points is None else term.points for term in terms]


def _given_values(problem: Problem) -> list[Term]:
    """The conditions that give values of fields, not of derivatives, on parts of the boundary."""
    terms = []
    for term in problem.constraints:
        given = term.prescribed
        if term.region is not None and term.points is None and given is not None and not given[0].order:
            terms.append(term)
    return terms


def _missed(problem: Problem, terms: Sequence[Term], points: Sequence[Array], residuals: Sequence[Array]) -> float:
    """The largest root mean square error of given values, at points dense enough to show spikes of the data."""
    worst = 0.0
    for term, term_points, residual in zip(terms, points, residuals, strict=False):
        known = term.known(term_points, problem.vocabulary)
        slope = np.asarray(evaluate([term.expression.partials[0]], known, term.expression.functions)[0])
        worst = max(worst, float(np.sqrt(np.mean(np.square(residual / slope)))))
    return worst
