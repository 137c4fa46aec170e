"""Re-integration on a frozen basis: the basis in space of a solution, other numbers and functions in the equations."""

from __future__ import annotations

from rannpde.pde.lines.sensitivities.dependence import weak_form
from rannpde.pde.lines.settings import data_step_limit
from rannpde.pde.lines.solution import SpaceTimeSolution, TimeSegment
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.problem.evolution import evolution_form
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.step_limit import StepLimit
from rannpde.pde.time.integrator import TimeIntegrator, unlimited
from rannpde.pde.tolerance import TIME_SHARE
from rannpde.threads import one_thread


def reintegrate(
    solution: SpaceTimeSolution,
    problem: Problem,
    tol: float,
    tuning: LinesTuning,
    integrator: str = "RadauIIA",
    step_limit: StepLimit | None = None,
) -> SpaceTimeSolution:
    """The solution of a problem that differs in its numbers and functions only, on the basis in space of a solution.

    tuning, integrator : those of the method that the solution comes from
    step_limit : for the data, where it is known already
    """
    evolution = evolution_form(problem, weak=weak_form(solution))
    with one_thread(evolution.domain.space.dim == 1):
        system = solution.segments[-1].system.with_evolution(evolution)
        limit = step_limit or data_step_limit(evolution, tol)
        method = TimeIntegrator(
            TIME_SHARE * tol, tuning.steps, unlimited if limit is None else limit.longest_step, integrator
        )
        trajectory = method.run(system, evolution.domain.time, system.initial_state())
    return SpaceTimeSolution(evolution, (TimeSegment(system, trajectory),))
