"""Windows in time, each with a basis of its own: for solutions that travel too far for one static basis.

A window starts from the solution of the one before, projected on its own features. Two passes draw different features
and start from different projections of the same values, so their difference holds the error of the transfer too: it is
controlled by the same comparison as everything else, with the tolerance shared out over the windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from rannpde.pde.lines.evolved import Evolved, Stretch
from rannpde.pde.lines.passes import WIDEST, Controls, Outcome, Pass, by_features
from rannpde.pde.problem.evolution import Evolution, evolution_form
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.restrict import restrict_time

COUNTS = (4, 16)
"""Numbers of windows that are tried where one basis for all times was too wide."""


def too_wide(outcome: Outcome, controls: Controls) -> bool:
    """Whether a pass filled the widest static basis, and the passes did not agree."""
    last = outcome.solution.stretches[-1]
    space = outcome.solution.evolution.domain.space
    full = any(one.width >= WIDEST[space.dim] for one in outcome.passes)
    return controls.width is None and full and not outcome.converged and not last.path.reason


def by_windows(
    problem: Problem, evolution: Evolution, controls: Controls, rng: np.random.Generator, count: int
) -> Outcome:
    """Passes on each of ``count`` equal windows, one after the other; ends early where one does not reach its end."""
    stretches: list[Stretch] = []
    passes: list[Pass] = []
    estimate, growth, reason, converged = 0.0, -np.inf, "", True
    before: Evolved | None = None
    shared = replace(controls, tol=controls.tol / count)
    for start, end in pairwise(np.linspace(*evolution.domain.time, count + 1).tolist()):
        part = restrict_time(problem, (start, end), before)
        found = by_features(evolution_form(part), evolution_form(part, weak=False), shared, rng)
        before = found.solution
        stretches += before.stretches
        passes += found.passes
        estimate, growth = estimate + found.estimate, max(growth, found.growth)
        reason, converged = found.reason or reason, converged and found.converged
        if before.stretches[-1].path.reason:
            break
    # disagreement within a window counts only if the sum of all estimates is too large
    reached = not stretches[-1].path.reason
    return Outcome(
        Evolved(evolution, tuple(stretches)), tuple(passes), estimate, growth,
        "" if reached and estimate <= controls.tol else reason, reached and (converged or estimate <= controls.tol),
    )  # fmt: skip


def refined(
    problem: Problem, evolution: Evolution, controls: Controls, rng: np.random.Generator, first: Callable[[], Outcome]
) -> Outcome:
    """The outcome of one basis for all times; where that is too narrow for the solution, more and more windows."""
    best = first()
    for count in COUNTS:
        if not too_wide(best, controls):
            break
        best = min(best, by_windows(problem, evolution, controls, rng, count), key=lambda one: one.estimate)
    return best
