"""solve() and ensemble(): choose a method, run it, and warn where it did not reach the tolerance."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rannpde.arrays import Rng
from rannpde.cluster import call_all, current_client, new_topic, tell
from rannpde.domains import SpaceTime
from rannpde.errors import (
    is_real,
    positive_integer,
    positive_number,
    random_generator,
    reject,
    require,
)
from rannpde.pde.budget import Budget, deferred_interrupts, watched
from rannpde.pde.cells.network import CellNetwork
from rannpde.pde.discontinuities import shock_advice
from rannpde.pde.ensembles import Ensemble
from rannpde.pde.family.solver import MemberTask, solve_family
from rannpde.pde.flow.method import Flow
from rannpde.pde.identification import Identify
from rannpde.pde.inverse.identified import Identified
from rannpde.pde.lines.method import Lines
from rannpde.pde.lines.solution import SpaceTimeSolution
from rannpde.pde.memory import default_memory
from rannpde.pde.monitor import Monitor, Progress, Status
from rannpde.pde.outputs.goal import goal_tolerances, solve_by_adjoints, solve_for_outputs
from rannpde.pde.paths.method import PATHS_TOLERANCE, Paths
from rannpde.pde.problem.problem import Problem
from rannpde.pde.selection import Method, chosen_method, guarded_solution, solve_by_methods
from rannpde.pde.solution import ConvergenceWarning, Solution
from rannpde.pde.weak.method import WeakCells
from rannpde.progress import Asked, Course, bar_shown
from rannpde.threads import one_core

SMALLEST_TOLERANCE = 1e-13
"""With a smaller tolerance float64 and the conditioning of random features allow no further accuracy."""


def solve(
    problem: Problem | Sequence[Problem],
    *,
    tol: float | Mapping[str, float] | None = None,
    method: Method | Identify | str | None = None,
    seconds: float | None = None,
    rng: Rng = 0,
    progress: Asked = None,
    at: Any = None,
    memory: float | None = None,
) -> Solution:
    """Solve a problem from its equations and conditions.

    problem : what to solve; several problems that share unknowns are identified together (docs/inverse.md)
    tol : the relative L² error wanted, whatever the method; below 1e-13 float64 allows no more. 1e-8 unless given, 1e-3
        for the intervals of ``Paths``. ``{"drag": 1e-5}`` asks for the relative error of outputs of the problem instead
        (docs/answers.md)
    method : ``Trefftz(…)`` for linear equations with constant coefficients (docs/trefftz.md), ``Lines(…)`` for
        evolution equations (docs/evolution.md), ``Flow(…)`` for incompressible flow in the plane (docs/flow.md),
        ``WeakCells(…)`` for mechanics, mixed conditions and jumping coefficients (docs/weak.md), ``Cells(…)`` for
        everything in up to three coordinates, ``Collocation(…)`` for everything (docs/solving.md), ``Paths(…)`` in all
        of R^d (docs/many_dimensions.md), each with settings of its own, or their names, such as "cells"; None takes
        the first that fits, and the next one where it fails.
        ``solution.method`` says which it was, and why
    seconds : time allowed; the best solution by then comes back with its estimate. Ctrl-C does the same
    rng : seed or generator of the random features; the same seed gives the same solution
    progress : True shows a bar, with the time left where it is known; False shows nothing; None, the default, shows it
        in a notebook after two seconds. A function is called with a ``Progress`` (iteration, step, time reached,
        present estimate) after every step
    at : in all of R^d (``rp.Euclidean``): the points, or the Box or Ball, where the solution is wanted, with intervals
        (docs/many_dimensions.md)
    memory : bytes that the solve may take; half of what is free unless given. What would exceed it is not begun: the
        best solution before comes back, or an InputError says how much would be needed

    Of a problem with ranges, parameters={"nu": rp.Range(0.01, 0.1)}, a ``Family`` comes back: the solution for every
    value of these parameters, each to the error ``tol`` (docs/families.md).

    A result that did not reach the wanted error warns (ConvergenceWarning) and says so in ``report()``.

    >>> from rannpde.domains import Interval
    >>> from rannpde.pde.problem.conditions import On
    >>> ends = On(("x=0", "x=1"), "u = sin(x)")
    >>> problem = Problem("u_xx = -u", Interval(0, 1), {"ends": ends}, exact={"u": "sin(x)"})
    >>> solution = solve(problem, tol=1e-9)
    >>> solution.converged, solution.errors()["u"] < 1e-9, solution.method.name
    (True, True, 'cells')
    """
    with deferred_interrupts():
        # what is not finite on the way is found where results are checked: NumPy's warnings about it would only alarm
        with np.errstate(all="ignore"), bar_shown(progress, _course(problem, tol, seconds)) as listener:
            solution = _solution(problem, tol, method, seconds, rng, listener, at, memory)
        return _judged(solution)


def _course(problem: Any, tol: Any, seconds: Any) -> Course:
    """The data of a solve that a progress bar needs; wrong arguments are refused later."""
    first = problem[0] if isinstance(problem, list | tuple) and problem else problem
    domain = first.domain if isinstance(first, Problem) else None
    times = domain.time if isinstance(domain, SpaceTime) and first.parabolic is None else None
    return Course(times, tol if is_real(tol) and tol > 0 else 1e-8, seconds if is_real(seconds) else None)


def _solution(
    problem: Problem | Sequence[Problem],
    tol: float | Mapping[str, float] | None,
    method: Method | Identify | str | None,
    seconds: float | None,
    rng: Rng,
    progress: Callable[[Progress], None] | None,
    at: Any = None,
    memory: float | None = None,
) -> Solution:
    listed = isinstance(problem, (list, tuple)) and len(problem) > 0 and all(isinstance(p, Problem) for p in problem)
    require(
        listed or isinstance(problem, Problem),
        "problem",
        problem,
        "a Problem, or a list of problems that share unknowns",
    )
    problems = [problem] if isinstance(problem, Problem) else list(problem)
    for one in problems:
        require(not one.eigenvalue, "problem.eigenvalue", one.eigenvalue, "left out for solve", "rp.eigen finds it")
    require(progress is None or callable(progress), "progress", progress, "a function of a Progress, or None")
    limit = default_memory() if memory is None else positive_number("memory", memory)
    allowed = None if seconds is None else positive_number("seconds", seconds)
    monitor = Monitor(progress, Budget(allowed, memory=limit))
    if isinstance(tol, Mapping):
        remedy = "family.outputs tells the error that they have"
        require(
            not any(one.ranges for one in problems), "tol", dict(tol), "a number where parameters have ranges", remedy
        )
        return _for_outputs(problems, tol, method, random_generator("rng", rng), monitor, at)
    if tol is None:
        tol = 1e-8 if problems[0].parabolic is None else PATHS_TOLERANCE
    tol = max(positive_number("tol", tol), SMALLEST_TOLERANCE)
    require(tol < 1, "tol", tol, "below 1")
    if any(one.ranges for one in problems):
        require(len(problems) == 1, "problem", f"a list of {len(problems)}", "one Problem where parameters have ranges")
        require(at is None, "at", at, "left out where parameters have ranges")
        if isinstance(method, Identify):
            reject("method", "identify", "a method of solution", "identify through the family: family.posterior(…)")
        chosen_method(problems[0], method)  # one that cannot be used is refused before any work
        return solve_family(problems[0], tol, MemberSolves(method), random_generator("rng", rng), monitor)
    if len(problems) > 1 or problems[0].unknown or isinstance(method, Identify):
        way = method if isinstance(method, Identify) else Identify(method)
        with watched(replace(monitor.budget, seconds=None)):  # the time is asked between fits, and in each solve
            return way.solve(problems, tol, random_generator("rng", rng), monitor)
    if at is not None:
        chosen, _ = chosen_method(problems[0], method)
        require(isinstance(chosen, Paths), "at", at, "left out", "the solution is a function: call it at points")
        return solve_by_methods(problems[0], tol, replace(chosen, at=at), random_generator("rng", rng), monitor)
    return solve_by_methods(problems[0], tol, method, random_generator("rng", rng), monitor)


def _for_outputs(
    problems: Sequence[Problem],
    tol: Mapping[str, float],
    method: Method | Identify | str | None,
    rng: np.random.Generator,
    monitor: Monitor,
    at: Any,
) -> Solution:
    """Solve until the outputs that ``tol`` names are as accurate as it says."""
    plain = len(problems) == 1 and not problems[0].unknown and not isinstance(method, Identify) and at is None
    require(plain, "tol", tol, "a number where unknowns are identified, or a solution is wanted at points")
    tolerances = goal_tolerances(tol, problems[0])
    chosen, why = chosen_method(problems[0], method)  # type: ignore[arg-type]
    if isinstance(chosen, WeakCells):
        solution = solve_by_adjoints(problems[0], tolerances, chosen, rng, monitor, why)
        if solution is not None:
            return solution

    def solver(problem: Problem, field_tol: float, rng: np.random.Generator, rest: Monitor) -> Solution:
        return solve_by_methods(problem, field_tol, method, rng, rest)  # type: ignore[arg-type]

    return solve_for_outputs(problems[0], tolerances, solver, rng, monitor, SMALLEST_TOLERANCE)


@dataclass(frozen=True)
class MemberSolves:
    """Solves members of a family by a method, or by those that fit in turn; on Dask where a client is in use."""

    method: Method | str | None

    @property
    def workers(self) -> int:
        """How many members are solved at once: one for each thread of the workers."""
        client = current_client()
        return 1 if client is None else max(sum(client.nthreads().values()), 1)

    def __call__(self, tasks: Sequence[MemberTask], /) -> list[Solution]:
        if current_client() is None:
            return [_family_member(task, self.method) for task in tasks]
        return call_all(_remote_family_member, [(task, self.method) for task in tasks])


def _beside(chosen: Any, task: MemberTask, why: str, monitor: Monitor) -> Solution:
    """Solve one member by a method that can begin from the solution of its neighbour."""
    solution: Solution = chosen.solve(task.problem, task.tol, task.rng, monitor, why, task.like)
    return solution


def _family_member(task: MemberTask, method: Method | str | None) -> Solution:
    """Solve one member, from the discretisation of its neighbour where the method can."""
    monitor = Monitor(None, Budget(task.seconds, memory=task.memory))
    if task.of_outputs:
        goals = dict.fromkeys(task.problem.outputs, task.tol)
        return _for_outputs([task.problem], goals, method, task.rng, monitor, None)
    chosen, why = chosen_method(task.problem, method)
    along = isinstance(chosen, Lines) and isinstance(task.like, SpaceTimeSolution)
    if along or (isinstance(chosen, Flow) and isinstance(task.like, CellNetwork)):
        solution = guarded_solution(partial(_beside, chosen, task, why), monitor)
        if solution is not None and (
            method is not None or solution.status not in chosen.hands_over or monitor.exhausted
        ):
            return solution
    return solve_by_methods(task.problem, task.tol, method, task.rng, monitor)


def _remote_family_member(task: MemberTask, method: Method | str | None) -> Solution:
    with one_core():
        return _family_member(task, method)


def _judged(solution: Solution) -> Solution:
    """Return the same solution, with a warning where it did not reach the wanted error."""
    if solution.status not in (Status.CONVERGED, Status.EVENT):
        known = f"its error is estimated as {solution.estimate:.1e}" if np.isfinite(solution.estimate) else ""
        fits = isinstance(solution, Identified) and solution.status is Status.RESIDUAL_TOO_LARGE
        explained = fits or solution.status is Status.UNDETERMINED
        advice = (
            "" if explained else shock_advice(solution.problem) or solution.history.advice
        )  # the reason says what to do: no other method would help
        parts = [f"the solution did not converge: {solution.reason}", known, advice]
        warnings.warn("; ".join(filter(None, parts)), ConvergenceWarning, stacklevel=3)
    return solution


def ensemble(
    problem: Problem,
    count: int,
    *,
    tol: float = 1e-8,
    method: Method | str | None = None,
    seconds: float | None = None,
    rng: Rng = 0,
    progress: Asked = None,
) -> Ensemble:
    """Return solutions from ``count`` ≥ 2 independent realisations of the features, with mean and spread.

    The other arguments are those of ``solve``; seconds : time allowed for each of them

    Where a Dask client is in use, its workers solve (docs/scaling.md).

    >>> from rannpde.pde.zoo import zoo
    >>> ensemble(zoo("heat"), 2, tol=1e-4).spread(zoo("heat").domain.sample(5, rng=0)).shape
    (5,)
    """
    require(positive_integer("count", count) >= 2, "count", count, "2 or more")
    if isinstance(problem, Problem) and problem.ranges:
        reject("parameters", sorted(problem.ranges), "numbers in an ensemble", "solve(problem) gives the family")
    seeds = random_generator("rng", rng).spawn(count)
    settings: dict[str, Any] = {"tol": tol, "method": method, "seconds": seconds}
    if current_client() is None:
        return Ensemble(tuple(solve(problem, rng=seed, progress=progress, **settings) for seed in seeds))
    with bar_shown(progress, _course(problem, tol, seconds)) as listener:
        topic = new_topic() if listener is not None else ""
        listen = None if listener is None else lambda facts: listener(Progress(*facts))
        solutions = call_all(_member, [(problem, seed, topic, settings) for seed in seeds], topic, listen)
    return Ensemble(tuple(map(_judged, solutions)))


def _member(problem: Problem, rng: np.random.Generator, topic: str, settings: dict[str, Any]) -> Solution:
    """Solve on a worker; its progress is sent to the client if somebody listens."""
    progress = (lambda at: tell(topic, astuple(at))) if topic else None
    with one_core():
        return _solution(problem, rng=rng, progress=progress, **settings)
