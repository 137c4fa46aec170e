"""The solution that a Trefftz network gives: judged once more at many points, with its losses and its features in
words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import held_out_residual, term_residual
from rannpde.pde.solution import Choice, Solution
from rannpde.pde.statement.expression import evaluate
from rannpde.pde.trefftz.adaptive import TrefftzResult
from rannpde.pde.trefftz.analytic import LaurentFamily, LogarithmFamily, PoleFamily, PolynomialFamily
from rannpde.pde.trefftz.cells.network import CellsNetwork
from rannpde.pde.trefftz.families import (
    AngleFamily,
    ExponentialFamily,
    FeatureFamily,
    MultipoleFamily,
    SourceFamily,
)
from rannpde.pde.trefftz.history import TrefftzHistory
from rannpde.pde.trefftz.modal import ModalNetwork
from rannpde.pde.trefftz.network import TrefftzNetwork
from rannpde.pde.trefftz.potentials import GoursatFamily, PotentialFamily
from rannpde.pde.trefftz.solid import SolidFamily
from rannpde.pde.trefftz.spherical import SphericalFamily
from rannpde.pde.trefftz.symmetry import SymmetricFamily

DENSE = 2048
"""Points of every side at which the conditions are looked at again."""

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


def described(network: TrefftzNetwork | CellsNetwork | ModalNetwork) -> str:
    """The features of a network in words."""
    if isinstance(network, ModalNetwork):
        return f"{sum(network.widths)} eigenfunctions of space with their rates in time"
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
        if isinstance(family, MultipoleFamily | SolidFamily | SphericalFamily):
            name = "regular functions" if family.regular else "multipoles in holes"
        if isinstance(family, SourceFamily) and len(family.moments) > 1:
            name = "poles at corners"
        counts[name] = counts.get(name, 0) + one.columns
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def judged_solution(
    problem: Problem,
    found: TrefftzResult,
    bound: float | None,
    tol: float,
    features: str,
    monitor: Monitor,
    why: str,
    name: str,
) -> Solution:
    """What the iteration found, unless conditions are missed between the points at which they were fitted."""
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


def _missed(problem: Problem, network: TrefftzNetwork | CellsNetwork | ModalNetwork) -> float:
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
