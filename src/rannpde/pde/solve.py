"""solve(): from a stated problem to a solution, with every setting optional."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np

from rannpde.errors import choose, positive_integer, reject, require
from rannpde.network.laws import Rng
from rannpde.pde.collocation.attempt import Attempt
from rannpde.pde.collocation.method import solve_space_time
from rannpde.pde.ensemble import Ensemble
from rannpde.pde.lines.method import solve_lines
from rannpde.pde.problem.evolution import NotAnEvolution
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import ConvergenceWarning, Solution

METHODS = ("auto", "lines", "space-time")
LOUD = 0.03
"""A relative held-out residual above this is called not solved, whatever the iteration says."""


def solve(
    problem: Problem,
    *,
    method: str = "auto",
    tol: float | None = None,
    width: int | str = "auto",
    rng: Rng = 0,
    ensemble: int = 1,
    progress: Callable[[str], None] | None = None,
    **settings: Any,
) -> Any:
    """Solve a problem from its equations and conditions; the result is a Solution (an Ensemble when asked for).

    method : "lines" for evolution equations: features in space that adapt themselves, a high-order march in time
        (docs/evolution.md); "space-time" for everything: Gauss–Newton on the output weights of a network in space and
        time (docs/solving.md); "auto" takes lines where they fit and no setting of the other method is given
    tol : by lines the relative L² error to reach, 1e-8 by default; in space-time the relative held-out residual, 1e-6
    width : number of neurons, chosen from ``tol`` by default
    ensemble : that many solutions from independent draws, with mean and spread
    progress : called with a line of text after every pass or attempt
    settings : those of ``solve_space_time``: scale, placement, slabs, pieces, guess, weights, features, law, …

    A result that did not converge warns (ConvergenceWarning) and says so in ``report()``.

    >>> from rannpde.domains import Interval
    >>> from rannpde.pde.problem.conditions import On
    >>> ends = On(("x=0", "x=1"), "u = sin(x)")
    >>> problem = Problem("u_xx = -u", Interval(0, 1), {"ends": ends}, exact={"u": "sin(x)"})
    >>> solve(problem, width=40, scale=1.0).errors()["u"] < 1e-10
    True
    """
    require(isinstance(problem, Problem), "problem", problem, "a Problem")
    choose("method", method, dict.fromkeys(METHODS))
    for name in settings:
        choose("setting", name, signature(solve_space_time).parameters)
    if positive_integer("ensemble", ensemble) > 1:
        shared = settings | {"method": method, "tol": tol, "width": width, "progress": progress}
        seeds = np.random.default_rng(rng).spawn(ensemble)
        return Ensemble(tuple(solve(problem, rng=seed, **shared) for seed in seeds))
    chosen: dict[str, Any] = {} if tol is None else {"tol": tol}
    if method == "lines" and settings:
        name = next(iter(settings))
        reject(name, settings[name], "left out with method 'lines'", "it belongs to method='space-time'")
    if method == "lines" or (method == "auto" and not settings):
        columns = None if width == "auto" else positive_integer("width", width)
        try:
            return _judged(solve_lines(problem, rng=rng, width=columns, progress=_by_pass(progress), **chosen))
        except NotAnEvolution:
            if method == "lines":
                raise
    told = None if progress is None else lambda found: progress(_line(found))
    return _judged(solve_space_time(problem, width=width, rng=rng, progress=told, **chosen, **settings))


def _by_pass(progress: Callable[[str], None] | None) -> Callable[[int, float], None] | None:
    """One line for each pass, at its first step."""
    if progress is None:
        return None
    seen: set[int] = set()

    def notice(number: int, time: float) -> None:
        if number not in seen:
            seen.add(number)
            progress(f"pass {number} marches from t = {time:.3g}")

    return notice


def _line(found: Attempt) -> str:
    return f"{found.label}: held-out residual {found.score:.1e} ({found.seconds:.1f} s)"


def _judged(solution: Solution) -> Solution:
    # by lines two passes are compared, which holds for solutions with kinks too, where a residual says little
    judged_by_residual = solution.estimate is None
    if judged_by_residual and not solution.score <= LOUD:
        why = f"the held-out residual is {solution.score:.1e} of the equation's own size"
        solution = replace(solution, converged=False, reason=f"{solution.reason}; but {why}")
    if not solution.converged:
        advice = "more width, another scale, slabs, placement='placed' or a better guess may help"
        warnings.warn(f"the solution did not converge: {solution.reason}; {advice}", ConvergenceWarning, stacklevel=3)
    return solution
