"""The solution that a Trefftz network gives: judged once more at many points, with its losses and its features in
words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term, held_out_residuals, term_residuals
from rannpde.pde.solution import Choice, Solution
from rannpde.pde.statement.expression import evaluate
from rannpde.pde.trefftz.adaptive import INSIDE_POINTS, TrefftzResult
from rannpde.pde.trefftz.analytic import LaurentFamily, LogarithmFamily, PoleFamily, PolynomialFamily, PowerFamily
from rannpde.pde.trefftz.bounds import BoundaryErrors
from rannpde.pde.trefftz.cells.network import CellsNetwork
from rannpde.pde.trefftz.families import ExponentialFamily, FeatureFamily
from rannpde.pde.trefftz.history import TrefftzHistory
from rannpde.pde.trefftz.modal import ModalNetwork
from rannpde.pde.trefftz.multipoles import AngleFamily, MultipoleFamily
from rannpde.pde.trefftz.network import TrefftzNetwork
from rannpde.pde.trefftz.potentials import GoursatFamily, PotentialFamily
from rannpde.pde.trefftz.sources import SourceFamily
from rannpde.pde.trefftz.spherical import SphericalFamily
from rannpde.pde.trefftz.symmetry import SymmetricFamily
from rannpde.pde.trefftz.varying.network import VaryingNetwork

DENSE = 2048
"""Points of a side at which given values are checked again; where there are many conditions, fewer of each."""

FEATURE_NAMES: dict[type[FeatureFamily], str] = {
    ExponentialFamily: "exponentials",
    SourceFamily: "sources outside",
    LogarithmFamily: "logarithms",
    AngleFamily: "angles at corners",
    LaurentFamily: "multipoles in holes",
    PolynomialFamily: "polynomials",
    PoleFamily: "poles at corners",
    PowerFamily: "powers at corners",
}
"""What reports call the families."""


def described(network: TrefftzNetwork | CellsNetwork | ModalNetwork | VaryingNetwork) -> str:
    """The features of a network in words."""
    if isinstance(network, ModalNetwork):
        return f"{sum(network.widths)} eigenfunctions of space with their rates in time"
    if isinstance(network, VaryingNetwork):
        return (
            f"{sum(network.widths)} local solutions with the coefficients that vary, among polynomials of degree "
            f"{network.degree} in {len(network.mesh)} cells"
        )
    if isinstance(network, TrefftzNetwork):
        return _counted(network.families)
    families = [family for one in network.networks for family in one.families]
    return f"{_counted(families)}, in {len(network.networks)} cells"


def _counted(families: Iterable[FeatureFamily]) -> str:
    counts: dict[str, int] = {}
    for one in families:
        family = one.base if isinstance(one, SymmetricFamily) else one
        family = family.base if isinstance(family, (PotentialFamily, GoursatFamily)) else family
        name = FEATURE_NAMES.get(type(family), "features")
        if isinstance(family, MultipoleFamily | SphericalFamily):
            name = "regular functions" if family.regular else "multipoles in holes"
        if isinstance(family, SourceFamily) and len(family.moments) > 1:
            name = "poles at corners"
        counts[name] = counts.get(name, 0) + one.columns
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def judged_solution(
    problem: Problem,
    result: TrefftzResult,
    missed: BoundaryErrors | float | None,
    tol: float,
    features: str,
    monitor: Monitor,
    why: str,
    name: str,
) -> Solution:
    """The result of the iteration, unless conditions are missed between the points at which they were fitted.

    missed : the bound of the maximum principle, and what is known of the conditions where it sampled the boundary
    """
    network = result.network
    status, detail = result.status, result.detail
    judged = isinstance(network, ModalNetwork)  # walls hold exactly, and initial values were judged at fresh points
    known = missed if isinstance(missed, BoundaryErrors) else BoundaryErrors(np.inf, {}, {})
    values = _given_values(problem) if status is Status.CONVERGED and not judged else []
    checked = [term for term in values if term not in known.errors]
    count = _each(INSIDE_POINTS, len(problem.terms))  # means of squares to 1/√200
    inside, held_out = held_out_residuals(problem, network, count=count) if monitor.residuals else ({}, {})
    squares = {term: inside[term.name] for term in problem.interior if term.name in inside} | dict(known.residuals)
    others = [term for term in problem.terms if term not in checked and term not in squares]
    others = others if monitor.residuals else []
    points = _sampled(checked, _each(DENSE, len(checked)), rng=19, method="sobol")
    points += _sampled(others, count, rng=5)
    residuals = term_residuals([*checked, *others], network, problem.vocabulary, points)
    largest = _missed(problem, checked, points, residuals)
    largest = max([largest, *(known.errors[term] for term in values if term in known.errors)])
    amplified = result.best.estimate / max(result.best.boundary, 1e-300)  # of boundary errors, inside
    if largest * amplified > 10 * tol * result.scale:
        status = Status.RESIDUAL_TOO_LARGE
        detail = f"the conditions are missed by {largest:.1e} between the points at which they were fitted"
    losses: dict[str, float] = {}
    measures: dict[str, float] = {}
    every = zip([*checked, *others], residuals, strict=True)
    squares |= {term: float(np.mean(np.square(own))) for term, own in every}
    for term in problem.terms if monitor.residuals else ():
        share, before = term.measure, measures.get(term.name, 0.0)
        losses[term.name] = (losses.get(term.name, 0.0) * before + squares[term] * share) / (before + share)
        measures[term.name] = before + share
    bound = missed.bound if isinstance(missed, BoundaryErrors) else missed
    return Solution(
        problem=problem, fields=problem.fields, function=network, status=status, detail=detail,
        estimate=result.best.estimate, held_out=held_out, losses=losses,
        integrals={key: loss * measures[key] for key, loss in losses.items()},
        history=TrefftzHistory(result.iterations, features, bound),
        method=Choice(name, f"features that satisfy the equation: {features}", why), seconds=monitor.elapsed,
    )  # fmt: skip


def _each(count: int, terms: int) -> int:
    """Points of each of ``terms`` terms: where there are more than eight, as many in all as for eight."""
    return ceil(count * min(1.0, 8 / max(terms, 1)))


def _sampled(terms: Sequence[Term], count: int, **how: Any) -> list[Array]:
    """So many points of the region of each term, the same for all terms of one region; or the term's own points."""
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
    """The root mean square error of given values at many evenly spread points: spikes of the data are seen."""
    worst = 0.0
    for term, own, residual in zip(terms, points, residuals, strict=False):
        known = term.known(own, problem.vocabulary)
        slope = np.asarray(evaluate([term.expression.partials[0]], known, term.expression.functions)[0])
        worst = max(worst, float(np.sqrt(np.mean(np.square(residual / slope)))))
    return worst
