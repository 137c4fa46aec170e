"""solve() and ensemble(): choose a method, run it, and warn where it did not reach the tolerance."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from rannpde.arrays import Rng
from rannpde.cluster import call_all, current_client, new_topic, one_core, tell
from rannpde.domains import SpaceTime
from rannpde.errors import (
    InputError,
    choose,
    is_real,
    positive_integer,
    positive_number,
    random_generator,
    reject,
    require,
    suggestion,
)
from rannpde.pde.budget import Budget, watched
from rannpde.pde.cells.method import Cells
from rannpde.pde.cells.network import CellNetwork
from rannpde.pde.discontinuities import shock_advice
from rannpde.pde.ensembles import Ensemble
from rannpde.pde.family.solver import MemberTask, solve_family
from rannpde.pde.flow.method import Flow
from rannpde.pde.forward_model import ForwardModel, ModelRequest
from rannpde.pde.functions import State
from rannpde.pde.inverse.design import Sensitivity
from rannpde.pde.inverse.identified import Identified
from rannpde.pde.inverse.identify import Forward, identify, response_at_guess
from rannpde.pde.inverse.uncertainty import Uncertainty
from rannpde.pde.lines.method import Lines
from rannpde.pde.lines.sensitivities.dependence import functions_identifiable
from rannpde.pde.lines.solution import SpaceTimeSolution
from rannpde.pde.memory import default_memory
from rannpde.pde.monitor import Monitor, Progress, Status
from rannpde.pde.outputs.goal import goal_tolerances, solve_by_adjoints, solve_for_outputs
from rannpde.pde.paths.method import PATHS_TOLERANCE, Paths
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.unknown import UnknownFunction, check_shared
from rannpde.pde.selection import METHODS, WITHOUT_MODEL, Method, chosen_method, guarded_solution, solve_by_methods
from rannpde.pde.solution import ConvergenceWarning, Solution
from rannpde.pde.weak.method import WeakCells
from rannpde.progress import Asked, Course, bar_shown

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
    seconds : time allowed; the best found by then comes back with its estimate. Ctrl-C does the same
    rng : seed or generator of the random features; the same seed gives the same solution
    progress : True shows a bar, with the time left where it is known; False shows nothing; None, the default, shows it
        in a notebook after two seconds. A function is called with a ``Progress`` (iteration, step, time reached,
        present estimate) after every step
    at : in all of R^d (``rp.Euclidean``): the points, or the Box or Ball, where the solution is wanted, with intervals
        (docs/many_dimensions.md)
    memory : bytes that the solve may take; half of what is free unless given. What would exceed it is not begun: the
        best found before comes back, or an InputError says how much would be needed

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
    with bar_shown(progress, _course(problem, tol, seconds)) as listener:
        solution = _solution(problem, tol, method, seconds, rng, listener, at, memory)
    return _judged(solution)


def _course(problem: Any, tol: Any, seconds: Any) -> Course:
    """What a bar must know of the solve; arguments that are wrong are refused later."""
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
        found = solve_by_adjoints(problems[0], tolerances, chosen, rng, monitor, why)
        if found is not None:
            return found

    def solver(problem: Problem, field_tol: float, rng: np.random.Generator, rest: Monitor) -> Solution:
        return solve_by_methods(problem, field_tol, method, rng, rest)  # type: ignore[arg-type]

    return solve_for_outputs(problems[0], tolerances, solver, rng, monitor, SMALLEST_TOLERANCE)


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

        def run(monitor: Monitor) -> Solution:
            if isinstance(chosen, Lines) and isinstance(like, SpaceTimeSolution):
                return chosen.solve(problem, tol, rng, monitor, why, like)
            return chosen.solve(problem, tol, rng, monitor, why)

        solution = guarded_solution(run, self.monitor.rest())
        if solution is None:
            raise InputError(
                f"seconds is {self.monitor.budget.seconds}, too short to solve the problem once; allow more"
            )
        return solution

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


def _beside(chosen: Any, task: MemberTask, why: str, monitor: Monitor) -> Solution:
    """Solve one member by a method that can begin from the solution of its neighbour."""
    found: Solution = chosen.solve(task.problem, task.tol, task.rng, monitor, why, task.like)
    return found


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
        told = isinstance(solution, Identified) and solution.status in (Status.UNDETERMINED, Status.RESIDUAL_TOO_LARGE)
        advice = (
            "" if told else shock_advice(solution.problem) or solution.history.advice
        )  # the reason says what to do: no other method would help
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
    return response_at_guess(problem, tol, way.solver([problem], Monitor()), random_generator("rng", rng))


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


def settings_from(table: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of ``solve`` that a file's table states: tol, seconds, rng, and a method with its settings.

    >>> settings_from({"tol": 1e-6, "method": "collocation", "width": 400})["method"].width
    400
    """
    shared = ("tol", "seconds", "rng", "at", "memory")
    arguments = {key: table[key] for key in shared if key in table}
    wanted = arguments.get("tol", 0.5)
    for key, value in (wanted if isinstance(wanted, Mapping) else {"tol": wanted}).items():  # of outputs, or of fields
        require(positive_number(key, value) < 1, key, value, "below 1")
    for key in ("seconds", "memory"):
        if key in arguments:
            positive_number(key, arguments[key])
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


def _plain_settings(kind: type[Any]) -> list[str]:
    """Return the settings that can be given as text."""
    objects = ("tuning", "settings", "events", "features", "law", "newton", "guess", "forward")
    return [f.name for f in fields(kind) if f.name not in objects]
