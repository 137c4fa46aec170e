"""solve() and ensemble(): choose a method, run it, and warn where it did not reach the tolerance."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

import numpy as np

from rannpde.arrays import Rng
from rannpde.cluster import call_all, current_client, new_topic, one_core, tell
from rannpde.errors import InputError, choose, positive_integer, positive_number, reject, require, suggestion
from rannpde.pde.budget import Budget
from rannpde.pde.cells.method import Cells
from rannpde.pde.ensembles import Ensemble
from rannpde.pde.family.solver import MemberTask, solve_family
from rannpde.pde.forward_model import ForwardModel, ModelRequest
from rannpde.pde.functions import State
from rannpde.pde.inverse.design import Sensitivity
from rannpde.pde.inverse.identified import Identified
from rannpde.pde.inverse.identify import Forward, identify, response_at_guess
from rannpde.pde.inverse.uncertainty import Uncertainty
from rannpde.pde.lines.method import Lines
from rannpde.pde.lines.sensitivities.dependence import functions_identifiable
from rannpde.pde.lines.solution import SpaceTimeSolution
from rannpde.pde.monitor import Monitor, Progress, Status
from rannpde.pde.paths.method import PATHS_TOLERANCE, Paths
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.unknown import UnknownFunction, check_shared
from rannpde.pde.selection import METHODS, WITHOUT_MODEL, Method, chosen_method, solve_by_methods
from rannpde.pde.solution import ConvergenceWarning, Solution

SMALLEST_TOLERANCE = 1e-13
"""With a smaller tolerance float64 and the conditioning of random features allow no further accuracy."""


def solve(
    problem: Problem | Sequence[Problem],
    *,
    tol: float | None = None,
    method: Method | Identify | str | None = None,
    seconds: float | None = None,
    rng: Rng = 0,
    progress: Callable[[Progress], None] | None = None,
    at: Any = None,
) -> Solution:
    """Solve a problem from its equations and conditions.

    problem : what to solve; several problems that share unknowns are identified together (docs/inverse.md)
    tol : the relative L² error wanted, whatever the method; below 1e-13 float64 allows no more. 1e-8 unless given, 1e-3
        for the intervals of ``Paths``
    method : ``Trefftz(…)`` for linear equations with constant coefficients (docs/trefftz.md), ``Lines(…)`` for
        evolution equations (docs/evolution.md), ``WeakCells(…)`` for mechanics, mixed conditions and jumping
        coefficients (docs/weak.md), ``Cells(…)`` for everything in up to three coordinates, ``Collocation(…)`` for
        everything (docs/solving.md), ``Paths(…)`` in all of R^d (docs/many_dimensions.md), each with settings of its
        own, or their names, such as "cells"; None takes the first that fits, and the next one where it fails.
        ``solution.method`` says which it was, and why
    seconds : time allowed; the best found by then comes back with its estimate. Ctrl-C does the same
    rng : seed or generator of the random features; the same seed gives the same solution
    progress : called with a ``Progress`` (iteration, step, time reached, present estimate) after every step
    at : in all of R^d (``rp.Euclidean``): the points, or the Box or Ball, where the solution is wanted, with intervals
        (docs/many_dimensions.md)

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
    return _judged(_solution(problem, tol, method, seconds, rng, progress, at))


def _solution(
    problem: Problem | Sequence[Problem],
    tol: float | None,
    method: Method | Identify | str | None,
    seconds: float | None,
    rng: Rng,
    progress: Callable[[Progress], None] | None,
    at: Any = None,
) -> Solution:
    listed = isinstance(problem, (list, tuple)) and len(problem) > 0 and all(isinstance(p, Problem) for p in problem)
    require(
        listed or isinstance(problem, Problem),
        "problem",
        problem,
        "a Problem, or a list of problems that share unknowns",
    )
    problems = [problem] if isinstance(problem, Problem) else list(problem)
    if tol is None:
        tol = 1e-8 if problems[0].parabolic is None else PATHS_TOLERANCE
    tol = max(positive_number("tol", tol), SMALLEST_TOLERANCE)
    require(tol < 1, "tol", tol, "below 1")
    require(progress is None or callable(progress), "progress", progress, "a function of a Progress, or None")
    monitor = Monitor(progress, Budget(None if seconds is None else positive_number("seconds", seconds)))
    if any(one.ranges for one in problems):
        require(len(problems) == 1, "problem", f"a list of {len(problems)}", "one Problem where parameters have ranges")
        require(at is None, "at", at, "left out where parameters have ranges")
        if isinstance(method, Identify):
            reject("method", "identify", "a method of solution", "identify through the family: family.posterior(…)")
        chosen_method(problems[0], method)  # one that cannot be used is refused before any work
        return solve_family(problems[0], tol, MemberSolves(method), _generator(rng), monitor)
    if len(problems) > 1 or problems[0].unknown or isinstance(method, Identify):
        way = method if isinstance(method, Identify) else Identify(method)
        return way.solve(problems, tol, _generator(rng), monitor)
    if at is not None:
        chosen, why = chosen_method(problems[0], method)
        require(isinstance(chosen, Paths), "at", at, "left out", "the solution is a function: call it at points")
        return replace(chosen, at=at).solve(problems[0], tol, _generator(rng), monitor, why)
    return solve_by_methods(problems[0], tol, method, _generator(rng), monitor)


@dataclass(frozen=True)
class Identify:
    """How the unknowns of a problem are identified: the way to solve it, and the way to intervals.

    forward : method of the solutions, as in ``solve``; None takes the first that fits
    uncertainty : "covariance", which takes profiles by itself where the model bends; "profile"; "bootstrap"
    confidence : probability that an interval holds the true value; draws : of the bootstrap
    """

    forward: Method | str | None = None
    uncertainty: str = "covariance"
    confidence: float = 0.95
    draws: int = 100

    name = "identify"

    def __post_init__(self) -> None:
        self._intervals()

    def _intervals(self) -> Uncertainty:
        return Uncertainty(self.uncertainty, self.confidence, self.draws)

    def solve(self, problems: Sequence[Problem], tol: float, rng: np.random.Generator, monitor: Monitor) -> Identified:
        """Return the unknowns that the problems share, and the solution of the first."""
        check_shared(problems)
        return identify(problems, tol, self.solver(problems, monitor), self._intervals(), rng, monitor)

    def solver(self, problems: Sequence[Problem], monitor: Monitor) -> Forward:
        """Return the solver of the problems at given values of their unknowns."""
        functions = any(isinstance(one, UnknownFunction) for one in problems[0].unknown.values())
        wanted = self.forward
        if functions and wanted is None and not all(map(functions_identifiable, problems)):
            wanted = Cells(time_stepping=False)

        return ForwardSolver(wanted, monitor)


@dataclass(frozen=True)
class ForwardSolver:
    """Solves a problem at values of its unknowns by a method, or the first that fits, in the time that is left."""

    method: Method | str | None
    monitor: Monitor

    def __call__(
        self, problem: Problem, tol: float, rng: np.random.Generator, like: State | None = None, /
    ) -> Solution:
        chosen, why = chosen_method(problem, self.method, WITHOUT_MODEL)
        rest = self.monitor.rest()
        if isinstance(chosen, Lines) and isinstance(like, SpaceTimeSolution):
            return chosen.solve(problem, tol, rng, rest, why, like)
        return chosen.solve(problem, tol, rng, rest, why)

    def model(self, request: ModelRequest, /) -> ForwardModel | None:
        """The model of a solution by the method that gave it, with its settings."""
        chosen = chosen_method(request.solution.stated, self.method, WITHOUT_MODEL)[0]
        return None if isinstance(chosen, Paths) else chosen.model(request)  # no unknowns are identified in R^d


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


def _family_member(task: MemberTask, method: Method | str | None) -> Solution:
    """Solve one member, from the discretisation of its neighbour where the method can."""
    monitor = Monitor(None, Budget(task.seconds))
    chosen, why = chosen_method(task.problem, method)
    if isinstance(chosen, Lines) and isinstance(task.like, SpaceTimeSolution):
        solution = chosen.solve(task.problem, task.tol, task.rng, monitor, why, task.like)
        if method is not None or solution.status not in chosen.hands_over or monitor.exhausted:
            return solution
    return solve_by_methods(task.problem, task.tol, method, task.rng, monitor)


def _remote_family_member(task: MemberTask, method: Method | str | None) -> Solution:
    with one_core():
        return _family_member(task, method)


def _judged(solution: Solution) -> Solution:
    """Return the same solution, with a warning where it did not reach the wanted error."""
    if solution.status not in (Status.CONVERGED, Status.EVENT):
        known = f"its error is estimated as {solution.estimate:.1e}" if np.isfinite(solution.estimate) else ""
        told = isinstance(solution, Identified) and solution.status in (Status.UNDETERMINED, Status.VETOED)
        advice = "" if told else solution.history.advice  # the reason says what to do: no other method would help
        parts = [f"the solution did not converge: {solution.reason}", known, advice]
        warnings.warn("; ".join(filter(None, parts)), ConvergenceWarning, stacklevel=3)
    return solution


def sensitivity(
    problem: Problem,
    *,
    tol: float = 1e-4,
    method: Method | str | None = None,
    rng: Rng = 0,
) -> Sensitivity:
    """Return the derivatives of the fields by the unknown numbers of a problem, at their guesses: where to put sensors.

    >>> from rannpde.domains import SpaceTime
    >>> from rannpde.pde.problem.conditions import On
    >>> from rannpde.pde.problem.unknown import Unknown
    >>> conditions = {"start": On("t=0", "u = sin(pi*x)"), "ends": On(("x=0", "x=1"), "u = 0")}
    >>> domain = SpaceTime(t=(0, 1), x=(0, 1))
    >>> problem = Problem("u_t = k*u_xx", domain, conditions, unknown={"k": Unknown(guess=0.1)})
    >>> place = sensitivity(problem).best(1)[0]  # k·∂u/∂k = -kπ²t exp(-kπ²t) sin(πx) is largest at kπ²t = 1, x = ½
    >>> bool(abs(place[1] - 0.5) < 0.05), bool(place[0] > 0.9)
    (True, True)
    """
    require(isinstance(problem, Problem) and bool(problem.unknown), "problem", problem, "a Problem with unknowns")
    way = Identify(method)
    return response_at_guess(problem, tol, way.solver([problem], Monitor()), _generator(rng))


def ensemble(
    problem: Problem,
    count: int,
    *,
    tol: float = 1e-8,
    method: Method | str | None = None,
    seconds: float | None = None,
    rng: Rng = 0,
    progress: Callable[[Progress], None] | None = None,
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
    seeds = _generator(rng).spawn(count)
    settings: dict[str, Any] = {"tol": tol, "method": method, "seconds": seconds}
    if current_client() is None:
        return Ensemble(tuple(solve(problem, rng=seed, progress=progress, **settings) for seed in seeds))
    topic = new_topic() if progress is not None else ""
    listen = None if progress is None else lambda facts: progress(Progress(*facts))
    solutions = call_all(_member, [(problem, seed, topic, settings) for seed in seeds], topic, listen)
    return Ensemble(tuple(map(_judged, solutions)))


def _member(problem: Problem, rng: np.random.Generator, topic: str, settings: dict[str, Any]) -> Solution:
    """Solve on a worker; its progress is sent to the client if somebody listens."""
    progress = (lambda at: tell(topic, astuple(at))) if topic else None
    with one_core():
        return _solution(problem, rng=rng, progress=progress, **settings)


def settings_from(table: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of ``solve`` that a file's table states: tol, seconds, rng, and a method with its settings.

    >>> settings_from({"tol": 1e-6, "method": "collocation", "width": 400})["method"].width
    400
    """
    shared = ("tol", "seconds", "rng", "at")
    arguments = {key: table[key] for key in shared if key in table}
    for key in ("tol", "seconds"):
        if key in arguments:
            positive_number(key, arguments[key])
    require(arguments.get("tol", 0.0) < 1, "tol", arguments.get("tol"), "below 1")
    if "rng" in arguments:
        whole = isinstance(arguments["rng"], int) and not isinstance(arguments["rng"], bool) and arguments["rng"] >= 0
        require(whole, "rng", arguments["rng"], "a whole number ≥ 0")
    own = {key: value for key, value in table.items() if key not in (*shared, "method")}
    if "method" not in table:
        if own:
            key, known = next(iter(own)), {name for kind in METHODS.values() for name in _plain_settings(kind)}
            hint = "name its method too, method = …" if key in known else suggestion(key, {*known, *shared, "method"})
            raise InputError(f"solve has the key {key!r}, which is unknown there; {hint}")
        return arguments
    name = table["method"]
    require(isinstance(name, str), "method", name, "text")
    kind = choose("method", name, METHODS | {"identify": Identify})
    settings: dict[str, Any] = {}
    for key, value in own.items():
        choose(f"setting of {name}", key, dict.fromkeys(_plain_settings(kind)))
        settings[key] = tuple(value) if isinstance(value, list) else value
    return arguments | {"method": kind(**settings)}


def _generator(rng: Rng) -> np.random.Generator:
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        reject("rng", rng, "a whole number ≥ 0 or a numpy.random.Generator")


def _plain_settings(kind: type[Any]) -> list[str]:
    """Return the settings that can be given as text."""
    objects = ("tuning", "settings", "events", "features", "law", "newton", "guess", "forward")
    return [f.name for f in fields(kind) if f.name not in objects]
