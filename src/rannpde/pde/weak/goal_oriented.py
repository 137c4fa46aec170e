"""Goal-oriented refinement of the weak form: cells are refined until outputs have the wanted accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

import numpy as np

from rannpde.pde.adaptivity.loop import AdaptiveRecord
from rannpde.pde.adaptivity.result import AdaptiveResult
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import Solution
from rannpde.pde.weak.dual_weighted import GoalDiscretisation, GoalState
from rannpde.pde.weak.form import weak_formulation
from rannpde.pde.weak.formulations import StateRecord, StationaryFormulation
from rannpde.pde.weak.functionals import weightable_outputs
from rannpde.pde.weak.history import WeakIteration
from rannpde.pde.weak.method import WeakCells
from rannpde.pde.weak.run import WeakRun
from rannpde.pde.weak.solver import WeakDiscretisation
from rannpde.threads import one_thread


def solve_outputs(
    method: WeakCells,
    problem: Problem,
    goals: Mapping[str, float],
    rng: np.random.Generator,
    monitor: Monitor,
    why: str,
) -> Solution:
    """Solve until every goal, output → relative error, has a bound below it; NoAdjoint where there is none for an
    output.

    ``history.weighted`` has values and bounds of all outputs that have one.
    """
    outputs = weightable_outputs(problem)

    run = WeakRun(problem, method.settings, monitor, method.name, why, goal_oriented=True)
    form = weak_formulation(problem)
    field_tol = sqrt(min(goals.values()))  # functionals converge twice as fast as fields in the energy
    weak = WeakDiscretisation(form, field_tol, method.settings, rng, run.check_budget, method.degree)
    goal = GoalDiscretisation(weak, tuple(outputs.values()), goals)
    estimates: dict[int, float] = {}

    def record_state(now: GoalState, excess: float, seconds: float) -> WeakIteration:
        state = now.state
        estimates[id(state)] = goal.field_estimate
        run.add_iteration(state, float(goal.field_estimate))
        run.records.append((state, StateRecord(weighted=now.outputs)))
        monitor.tell(len(run.iterations), 1, width=state.unknowns, estimate=excess, counted="unknowns")
        return run.iterations[-1]

    record: AdaptiveRecord[GoalState, WeakIteration] = AdaptiveRecord()
    with one_thread(problem.domain.dim < 3):
        try:
            outcome = run.loop.run(goal, weak.first(), 1.0, lambda: monitor.ended, record_state, record=record)
        except KeyboardInterrupt:
            if record.best is None:
                raise
            outcome = record.result(Status.INTERRUPTED)
    state = outcome.best.state
    plain = AdaptiveResult(state, outcome.iterations, estimates[id(state)], outcome.status, outcome.detail)
    return run.solution(StationaryFormulation(weak), plain)
