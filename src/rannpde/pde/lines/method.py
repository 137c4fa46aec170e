"""solve_lines(): the entry of the method of lines."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from rannpde.domains.domain import Box
from rannpde.errors import positive_integer, positive_number, require
from rannpde.network.laws import Rng
from rannpde.pde.collocation.attempt import held_out_residual
from rannpde.pde.functions import jets_of, term_residual
from rannpde.pde.lines.evolved import Evolved
from rannpde.pde.lines.march import INTEGRATORS
from rannpde.pde.lines.passes import Controls, FieldEvent, Outcome, by_features, check_points
from rannpde.pde.lines.periodic import by_modes
from rannpde.pde.lines.windows import by_windows, refined
from rannpde.pde.problem.evolution import Evolution, NotAnEvolution, evolution_form
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import Solution

SMALLEST_TOLERANCE = 1e-13
"""Below this, float64 and the conditioning of the features leave nothing to ask for."""
RESIDUAL_POINTS = 1000
MOST_DIMENSIONS = 2
"""Of space: random features in 3-D carry too few digits to be worth a march."""


class GrowthWarning(UserWarning):
    """The semi-discrete system has modes that grow faster than the solution itself can explain."""


def solve_lines(
    problem: Problem,
    *,
    tol: float = 1e-8,
    rng: Rng = None,
    width: int | None = None,
    windows: int | str = "auto",
    integrator: str = "collocation",
    events: Mapping[str, FieldEvent] | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Solution:
    """Solve an evolution problem to a relative L² error of about ``tol``, everything else chosen from it.

    Periodic problems use Fourier modes, others random features adapted to the solution. A tolerance below 1e-13 is
    answered with what float64 allows. A blow-up, an interruption or a terminal event ends the march; what was computed
    until then is the result, with the reason.

    width : features of every pass, instead of the choice from tol
    windows : intervals of time with a basis of their own; "auto" takes one unless the solution travels too far for it
    integrator : "collocation" (Radau IIA of high order), or SciPy's "Radau", "BDF" or "DOP853"
    events : name → function of (t, u), u being a function of points (M, d) of space; zeros are in the report, and one
        with an attribute ``terminal`` ends the march
    progress : called with (pass, time reached) after every step

    >>> from rannpde.domains import SpaceTime
    >>> from rannpde.pde.problem.conditions import On
    >>> conditions = {"start": On("t=0", "u = sin(pi*x)"), "ends": On(("x=0", "x=1"), "u = 0")}
    >>> problem = Problem("u_t = u_xx", SpaceTime(t=(0, 0.1), x=(0, 1)), conditions)
    >>> solution = solve_lines(problem, tol=1e-8, rng=0)
    >>> bool(abs(solution([[0.1, 0.5]])[0] - np.exp(-0.1 * np.pi**2)) < 1e-8)
    True
    """
    begin = perf_counter()
    tol = max(positive_number("tol", tol), SMALLEST_TOLERANCE)
    require(tol < 1, "tol", tol, "below 1")
    require(integrator in INTEGRATORS, "integrator", integrator, f"one of {', '.join(INTEGRATORS)}")
    evolution = evolution_form(problem)
    _check_space(evolution)
    columns = None if width is None else positive_integer("width", width)
    controls = Controls(tol, integrator, dict(events or {}), progress, columns)
    # the matrices of one space dimension are too small for threads: two were measured to take twice as long as one
    with threadpool_limits(1 if evolution.domain.space.dim == 1 else None, user_api="blas"):
        outcome = _outcome(evolution, controls, windows, np.random.default_rng(rng))
    _warn_of_growth(evolution, outcome)
    return _solution(problem, outcome, perf_counter() - begin)


def _outcome(evolution: Evolution, controls: Controls, windows: int | str, rng: np.random.Generator) -> Outcome:
    problem = evolution.problem
    if problem.periodic:
        return by_modes(evolution, controls)
    if windows != "auto":
        return by_windows(problem, evolution, controls, rng, positive_integer("windows", windows))
    strong = evolution_form(problem, weak=False)
    return refined(problem, evolution, controls, rng, lambda: by_features(evolution, strong, controls, rng))


def _solution(problem: Problem, outcome: Outcome, seconds: float) -> Solution:
    """The outcome in the form that every method gives back."""
    network = outcome.solution
    reached = network.end >= network.evolution.domain.time[1]
    residuals = _residuals(problem, network)
    measures = {term.name: term.measure for term in problem.interior}
    losses = {name: residual for name, (residual, _) in residuals.items()}
    held_out = {name: (residual / max(size, 1e-300)) ** 0.5 for name, (residual, size) in residuals.items()}
    if reached:
        held_out = held_out_residual(problem, network)
    label = "method of lines, " + ("Fourier modes" if problem.periodic else "adapted random features")
    return Solution(
        problem, problem.fields, network, outcome.converged, outcome.reason or "two passes agree", (),
        losses, {name: loss * measures[name] for name, loss in losses.items()}, held_out, (), seconds, 0.0, label,
        estimate=outcome.estimate, notes=_notes(outcome, None if reached else network.end),
    )  # fmt: skip


def _residuals(problem: Problem, network: Evolved) -> dict[str, tuple[float, float]]:
    """Equation → mean squares of its residual and of the time derivatives in it, on fresh points."""
    points = check_points(network.evolution, network.stretches[-1].path.reliable, RESIDUAL_POINTS)
    found = {}
    for term in problem.interior:
        residual = term_residual(term, network, problem.vocabulary, points)
        rates = [jet for jet in term.expression.jets if jet.index[0]]
        sizes = jets_of(network, problem.fields, points, rates).values()
        found[term.name] = float(np.mean(residual**2)), float(sum(np.mean(size**2) for size in sizes))
    return found


def _notes(outcome: Outcome, end: float | None) -> tuple[str, ...]:
    """What a reader of the report wants to know of the passes."""
    notes = [
        f"pass {number}: tolerance {one.tolerance:.1e}, {one.width} features, rank {one.rank}, {one.nodes} nodes, "
        f"{one.steps} steps, {one.seconds:.2f} s"
        + (f", change {one.difference:.1e}" if np.isfinite(one.difference) else "")
        for number, one in enumerate(outcome.passes, start=1)
    ]
    notes.append(f"fastest growth of a mode at the start: exp({outcome.growth:.2g} t)")
    for name, times in outcome.solution.stretches[-1].path.found.items():
        notes.append(f"event {name!r} at t = " + (", ".join(f"{t:.8g}" for t in times) or "never"))
    if end is not None:
        notes.append(f"known up to t = {end:.6g} only")
    return tuple(notes)


def _check_space(evolution: Evolution) -> None:
    space, periodic = evolution.domain.space, evolution.problem.periodic
    if space.dim > MOST_DIMENSIONS:
        raise NotAnEvolution(f"space has {space.dim} dimensions; the method of lines takes at most {MOST_DIMENSIONS}")
    if periodic and (set(periodic) != set(space.names) or not isinstance(space, Box)):
        raise NotAnEvolution("periodic in some coordinates only: not by the method of lines")


def _warn_of_growth(evolution: Evolution, outcome: Outcome) -> None:
    """Growth is honest where the solution itself grows; it is suspect where passes do not agree."""
    duration = outcome.solution.end - evolution.domain.time[0]
    if not outcome.converged and outcome.growth * duration > 30.0:
        message = f"modes of the semi-discrete system grow like exp({outcome.growth:.3g} t) and may spoil the result"
        warnings.warn(message, GrowthWarning, stacklevel=3)
