"""The choice of a method for a problem: the first that fits, and where it fails the next one in the remaining time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from rannpde.checkpoints import Ended, guarded
from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError, MethodError, choose, require
from rannpde.pde.budget import watched
from rannpde.pde.capability import Capability
from rannpde.pde.cells.method import Cells
from rannpde.pde.collocation.method import Collocation
from rannpde.pde.flow.method import Flow
from rannpde.pde.free_corners import free_corner
from rannpde.pde.lines.method import Lines
from rannpde.pde.monitor import Kept, Monitor, Status, status_of
from rannpde.pde.paths.method import Paths
from rannpde.pde.polynomials.method import Polynomials
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import relative_difference
from rannpde.pde.solution import Choice, Solution
from rannpde.pde.tolerance import ESTIMATOR_FACTOR
from rannpde.pde.trefftz.method import Trefftz
from rannpde.pde.uniqueness import with_uniqueness
from rannpde.pde.unsolved import unsolved
from rannpde.pde.weak.method import WeakCells

Method = Trefftz | Lines | Flow | WeakCells | Cells | Collocation | Paths | Polynomials
_KINDS: tuple[type[Method], ...] = (Trefftz, Lines, Flow, WeakCells, Cells, Collocation, Paths, Polynomials)
METHODS: dict[str, type[Method]] = {kind.name: kind for kind in _KINDS}
"""Methods in the order in which they are tried."""

WITHOUT_MODEL = ("trefftz", "flow", "weak")
"""Methods that have no model of a solution on a fixed discretisation, which identification needs."""
AGREEMENT_POINTS = 2000
"""Points at which two methods are compared. The solution of the later one is taken only where it differs from that of
the earlier one by at most ESTIMATOR_FACTOR times the estimate: least squares of the strong form alone may converge to a
wrong function."""


def solve_by_methods(
    problem: Problem, tol: float, method: Method | str | None, rng: np.random.Generator, monitor: Monitor
) -> Solution:
    """Solve by the given method, or by those that fit, one after the other until one reaches ``tol`` or time is over.

    ``solution.method.why`` says what was tried before. A method that was asked for is not replaced by another.
    """

    def probe(loaded: Problem, coarse: float) -> Solution:
        return _by_methods(loaded, coarse, method, rng, replace(monitor.rest(), progress=None, residuals=False))

    return with_uniqueness(_by_methods(problem, tol, method, rng, monitor), tol, probe)


def _by_methods(
    problem: Problem, tol: float, method: Method | str | None, rng: np.random.Generator, monitor: Monitor
) -> Solution:
    if method is not None:
        chosen, why = chosen_method(problem, method)
        solution = guarded_solution(lambda own: chosen.solve(problem, tol, rng, own, why), monitor)
        return solution or unsolved(problem, monitor.ending, why, monitor.elapsed)
    reasons: list[str] = []
    best: Solution | None = None
    failure: MethodError | None = None
    for one, refusals in _fitting(problem):
        reasons += refusals if best is None else []
        why = "; ".join(reasons) or one.reason
        try:
            solution = guarded_solution(partial(_run, one, problem, tol, rng, why), monitor.within(one.share))
        except MethodError as error:
            failure = failure or error
            reasons.append(f"tried by {one.name}, without any solution: {error}")
            continue
        if solution is not None and (best is None or _better(solution, best, problem)):
            best = solution
        if monitor.exhausted or (solution is not None and solution.status not in one.hands_over):
            break
        known = solution is not None and np.isfinite(solution.estimate)
        reached = f"an estimate of {solution.estimate:.1e}" if solution is not None and known else "no estimate"
        reason = "its share of the time was used up" if solution is None else solution.reason
        reasons.append(f"tried by {one.name}, which ended with {reached}: {reason}")
    why_others = "; ".join(reasons)
    if best is None and failure is not None and not monitor.exhausted:
        raise failure
    if best is None:
        return unsolved(problem, monitor.ending, why_others, monitor.elapsed)
    return best if why_others in best.method.why else replace(best, method=_with_why(best.method, why_others))


def _run(
    method: Method, problem: Problem, tol: float, rng: np.random.Generator, why: str, monitor: Monitor
) -> Solution:
    return method.solve(problem, tol, rng, monitor, why)


def guarded_solution(run: Callable[[Monitor], Solution], monitor: Monitor) -> Solution | None:
    """The solution of one method, or what it kept when a limit or Ctrl-C ended it; None where it had nothing yet.

    This alone guards a solve. Whatever a method keeps (``Monitor.keep``) is not lost at any time.
    """
    own = replace(monitor, kept=Kept())
    with watched(own.budget) as watch:
        try:
            solution = run(own)
        except KeyboardInterrupt as stop:
            status, detail = status_of(stop)
            with guarded(None):
                kept = None if own.kept.make is None else own.kept.make(status, detail)
            if kept is None and watch.shortage:
                raise InputError(
                    f"memory is too small: {watch.shortage}; allow more by memory=…, or ask for a larger tol"
                ) from None
            if kept is None and status is Status.INTERRUPTED:
                raise KeyboardInterrupt from None
            return kept
        except (np.linalg.LinAlgError, ArithmeticError, MemoryError) as error:
            with guarded(None):
                kept = None if own.kept.make is None else own.kept.make(Status.NEWTON, f"a computation failed: {error}")
            if kept is None:
                raise MethodError(
                    f"a computation failed: {error}; are all coefficients and data finite and of moderate size?"
                ) from error
            return kept
    if solution.status is Status.INTERRUPTED and watch.raised and not own.budget.interrupted:
        status, detail = status_of(Ended(watch.cause, watch.shortage))  # a method that calls every end an interrupt
        return replace(solution, status=status, detail=detail)
    if solution.status is Status.BUDGET and own.budget.interrupted:
        return replace(solution, status=Status.INTERRUPTED, detail="")
    return solution


def _better(later: Solution, earlier: Solution, problem: Problem) -> bool:
    """Whether the solution of a method that was tried later replaces an earlier one.

    Two methods share no bias: where they differ by far more than the first one's estimate, neither is called right.
    """
    if not later.converged:
        return not earlier.estimate < later.estimate
    if not earlier.estimate < 1:
        return True
    points = problem.domain.sample(AGREEMENT_POINTS, rng=20_072)
    difference = relative_difference(earlier.function(points), later.function(points))
    return difference <= ESTIMATOR_FACTOR * max(earlier.estimate, later.estimate)


def _with_why(choice: Choice, why: str) -> Choice:
    return Choice(choice.name, choice.label, why)


def _obstacles(method: Method, problem: Problem) -> tuple[str, ...]:
    """Why a method cannot solve the problem."""
    for capability, what in _needed(problem):
        if capability not in method.capabilities:
            return (capability.value.format(what),)
    return method.obstacles(problem)


def _needed(problem: Problem) -> Iterator[tuple[Capability, object]]:
    """The capabilities that a problem needs, each with its reason; terms of a vector in R^d are not looked at."""
    if problem.parabolic is not None:
        yield Capability.UNBOUNDED_SPACE, ""
        return
    if problem.functionals:
        yield Capability.FUNCTIONALS, problem.functionals[0]
    if problem.slits:
        yield Capability.SLITS, ""
    if problem.inequalities:
        yield Capability.INEQUALITIES, ""
    corner = free_corner(problem) if _is_plate(problem) else None
    if corner is not None:
        yield Capability.FREE_CORNERS, corner


def _is_plate(problem: Problem) -> bool:
    """Whether the problem is one stationary equation of order four in the plane."""
    plane = problem.domain.dim == 2 and not isinstance(problem.domain, SpaceTime)
    return plane and len(problem.interior) == 1 and max(jet.order for jet in problem.interior[0].expression.jets) == 4


def chosen_method(problem: Problem, method: Method | str | None, without: tuple[str, ...] = ()) -> tuple[Method, str]:
    """The method and why it was taken; ``without`` names those that are not looked at unless they are asked for."""
    if isinstance(method, str):
        method = choose("method", method, METHODS)()
    if method is not None:
        require(
            isinstance(method, Method),
            "method",
            method,
            "rp.Trefftz(…), rp.Lines(…), rp.Flow(…), rp.WeakCells(…), rp.Cells(…), rp.Collocation(…), rp.Paths(…) or "
            "rp.Polynomials(…)",
        )
        reasons = _obstacles(method, problem)
        if reasons:
            others = [kind.__name__ for kind in METHODS.values() if not _obstacles(kind(), problem)]
            remedy = f"use method=rp.{others[0]}()" if others else "no other method can solve it either"
            raise InputError(f"not by {method.name}: {'; '.join(reasons)}; {remedy}")
        return method, "asked for"
    one, refusals = next(_fitting(problem, without))
    return one, "; ".join(refusals) or one.reason


def _fitting(problem: Problem, without: tuple[str, ...] = ()) -> Iterator[tuple[Method, list[str]]]:
    """The methods that fit, in the order in which they are tried, each with why those before it do not."""
    if problem.functionals:  # one reason holds for all the others
        reasons = Polynomials().obstacles(problem)
        if reasons:
            raise InputError(f"no method can solve the problem: {'; '.join(reasons)}")
        yield Polynomials(), []
        return
    refusals: list[str] = []
    fits = False
    for name, kind in METHODS.items():
        if name in without:
            continue
        one = kind()
        reasons = _obstacles(one, problem) or one.drawbacks(problem)
        if reasons:
            refusals.append(f"not by {one.name}: " + "; ".join(reasons))
        else:
            fits = True
            yield one, refusals
    if not fits:
        raise InputError(f"no method can solve the problem: {'; '.join(refusals)}; state it without what is named")
