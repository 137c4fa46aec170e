"""Solving until outputs are as accurate as wanted.

Where the weak form has adjoints of the outputs, it refines for them and bounds them by dual-weighted residuals. Else
solves of ever smaller tolerance follow each other. The outputs of each are compared with those of the one before, so
that a bound is that of the coarser of the two, and the loop ends when every output is within its tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from rannpde.errors import InputError, positive_number, require, suggestion
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.outputs.companion import FAILED
from rannpde.pde.outputs.comparison import SolutionPair
from rannpde.pde.outputs.evaluate import stated_output, weighted_quantity
from rannpde.pde.outputs.quantity import Quantity
from rannpde.pde.outputs.settings import OutputSettings
from rannpde.pde.problem.problem import Problem
from rannpde.pde.selection import guarded_solution
from rannpde.pde.solution import Solution
from rannpde.pde.tolerance import PILOT_TOLERANCE
from rannpde.pde.weak.dual_weighted import NoAdjoint
from rannpde.pde.weak.functionals import weightable_outputs
from rannpde.pde.weak.goal_oriented import solve_outputs
from rannpde.pde.weak.history import WeakHistory
from rannpde.pde.weak.method import WeakCells

Solver = Callable[[Problem, float, np.random.Generator, Monitor], Solution]


def goal_tolerances(given: Mapping[str, Any], problem: Problem) -> dict[str, float]:
    """Output → relative error wanted, refused unless these are outputs of the problem."""
    require(bool(given), "tol", given, "a number, or name of an output → number")
    for name in given:
        if name not in problem.outputs:
            known = suggestion(str(name), problem.outputs) if problem.outputs else "the problem states no outputs"
            raise InputError(f"tol names {name!r}, which is no output of the problem; {known}")
    tolerances = {name: positive_number(f"tol[{name!r}]", value) for name, value in given.items()}
    for name, value in tolerances.items():
        require(value < 1, f"tol[{name!r}]", value, "below 1")
    return tolerances


@dataclass(frozen=True)
class GoalVerdict:
    """The largest bound of an output over its tolerance, and the name of that output."""

    excess: float
    name: str
    quantity: Quantity


def solve_by_adjoints(
    problem: Problem,
    tolerances: Mapping[str, float],
    method: WeakCells,
    rng: np.random.Generator,
    monitor: Monitor,
    why: str,
) -> Solution | None:
    """Solve with cells where the outputs need them; None where an output has no adjoint, or too little came of it."""
    if not set(tolerances) <= set(weightable_outputs(problem)):
        return None
    try:
        solution = guarded_solution(
            lambda own: solve_outputs(method, problem, tolerances, rng, own, why), monitor.rest()
        )
    except NoAdjoint:
        return None
    if solution is None or not isinstance(solution.history, WeakHistory):
        return None
    outputs = {name: weighted_quantity(solution, pair) for name, pair in solution.history.weighted.items()}
    verdict = _worst(outputs, tolerances)
    if verdict.excess > 1 and not (monitor.exhausted or solution.status.by_caller):
        return None
    rest = [name for name in problem.outputs if name not in outputs]
    if rest:
        pair = SolutionPair(solution, solution.companion, OutputSettings())
        outputs |= {name: stated_output(pair, problem.outputs[name], problem.output_expressions[name]) for name in rest}
    with_outputs = replace(solution, stored={name: outputs[name] for name in problem.outputs}, seconds=monitor.elapsed)
    return _judged(with_outputs, verdict, monitor, "dual-weighted residuals bound the outputs to their tolerances")


def solve_for_outputs(
    problem: Problem,
    tolerances: Mapping[str, float],
    solver: Solver,
    rng: np.random.Generator,
    monitor: Monitor,
    smallest: float,
) -> Solution:
    """Solve until every named output has a bound below its tolerance times its size, or nothing more can be gained."""
    settings = OutputSettings()
    least, most = settings.step
    tol = max(min(PILOT_TOLERANCE, *map(sqrt, tolerances.values())), smallest)  # functionals converge twice as fast
    before: Solution | None = None
    best: tuple[GoalVerdict, Solution] | None = None
    for _ in range(settings.most_solves):
        now = solver(problem, tol, rng, monitor.rest())
        next_tol = most * tol
        if before is not None and now.status not in FAILED:
            pair = replace(now, second=replace(before, problem=now.problem))
            verdict, outputs = _verdict(pair, tolerances, settings)
            if best is None or verdict.excess < best[0].excess:
                best = verdict, replace(pair, stored=outputs, seconds=monitor.elapsed)
            if best[0].excess <= 1:
                break
            next_tol = tol * float(np.clip(0.5 / max(verdict.excess, 1e-300), least, most))
        if monitor.exhausted or now.status.by_caller or tol <= smallest:
            before = now if before is None else before
            break
        before, tol = now, max(next_tol, smallest)
    if best is None:
        assert before is not None
        return before if before.status.by_caller or not before.converged else _open(before, "no second solution")
    verdict, solution = best
    return _judged(solution, verdict, monitor)


def _verdict(
    solution: Solution, tolerances: Mapping[str, float], settings: OutputSettings
) -> tuple[GoalVerdict, dict[str, Quantity]]:
    problem = solution.stated
    pair = SolutionPair(solution, solution.second, settings)
    outputs = {
        name: stated_output(pair, output, problem.output_expressions[name]) for name, output in problem.outputs.items()
    }
    return _worst(outputs, tolerances), outputs


def _worst(outputs: Mapping[str, Quantity], tolerances: Mapping[str, float]) -> GoalVerdict:
    """The output that is farthest from what is wanted of it."""
    worst: GoalVerdict | None = None
    for name, tol in tolerances.items():
        excess = float(np.max(outputs[name].relative_bound)) / tol
        if worst is None or not excess <= worst.excess:
            worst = GoalVerdict(excess if np.isfinite(excess) else np.inf, name, outputs[name])
    assert worst is not None
    return worst


def _judged(
    solution: Solution,
    verdict: GoalVerdict,
    monitor: Monitor,
    agreed: str = "two solutions agree on the outputs to their tolerances",
) -> Solution:
    """The status is that of the outputs, which were asked for, not that of the fields."""
    reached = verdict.excess <= 1 and solution.status is not Status.UNDETERMINED
    if reached:
        stored = {name: replace(one, converged=True) for name, one in (solution.stored or {}).items()}
        return replace(solution, status=Status.CONVERGED, detail=agreed, stored=stored)
    shortfall = f"{verdict.name} = {verdict.quantity}, whose bound is {verdict.excess:.1e} times what is wanted"
    status = Status.BUDGET if monitor.exhausted else Status.STALLED
    return replace(solution, status=status, detail=f"{status}; {shortfall}")


def _open(solution: Solution, reason: str) -> Solution:
    return replace(solution, status=Status.BUDGET, detail=f"the outputs have no bounds yet: {reason}")
