"""A solve of the weak form: the adaptive loop over a formulation, its records, and its solution."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rannpde.checkpoints import checkpoint
from rannpde.pde.adaptivity.loop import AdaptiveLoop, OutOfBudget
from rannpde.pde.adaptivity.result import AdaptiveResult
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import held_out_residual, sampled_losses
from rannpde.pde.solution import Choice, Solution
from rannpde.pde.weak.bounds import EnergyBound
from rannpde.pde.weak.dual_weighted import bounded_outputs
from rannpde.pde.weak.fluxes import bounded_fluxes
from rannpde.pde.weak.formulations import StateRecord, WeakFormulation
from rannpde.pde.weak.history import WeakHistory, WeakIteration
from rannpde.pde.weak.settings import WeakSettings
from rannpde.threads import one_thread

LOSS_POINTS = 2000
"""Points for the mean squares of residuals, which are only reported."""
CALIBRATED = 3
"""Solutions from which on the constant of dual-weighted residuals is known well enough to do without a second solve."""


@dataclass(eq=False)
class WeakRun:
    """One solve of a problem, by a method of that name.

    records : each state with its record
    goal_oriented : whether meshes were refined for the outputs of the problem
    """

    problem: Problem
    settings: WeakSettings
    monitor: Monitor
    name: str
    why: str
    goal_oriented: bool = False
    iterations: list[WeakIteration] = field(default_factory=list)
    records: list[tuple[Any, StateRecord]] = field(default_factory=list)

    def check_budget(self) -> None:
        """Raise OutOfBudget where the time is used up and there is a solution."""
        checkpoint()
        if self.monitor.exhausted and self.iterations:
            raise OutOfBudget

    @property
    def loop(self) -> AdaptiveLoop:
        return AdaptiveLoop(theta=self.settings.theta, patience=self.settings.patience)

    def solve(self, formulation: WeakFormulation, tol: float) -> Solution:
        """The solution to a relative L² error of about ``tol``, or the best that was found."""
        discretisation = formulation.discretisation

        def over() -> Status | None:
            return Status.NEWTON if formulation.failure is not None else self.monitor.ended

        def record_state(state: Any, estimate: float, seconds: float) -> WeakIteration:
            self.add_iteration(state, float(estimate), discretisation.newton_steps)
            self.records.append((state, formulation.record(state)))
            self.monitor.tell(len(self.iterations), 1, width=state.unknowns, estimate=estimate, counted="unknowns")
            return self.iterations[-1]

        outcome: AdaptiveResult[Any, WeakIteration]
        with one_thread(self.problem.domain.dim < 3):
            try:
                outcome = self.loop.run(discretisation, discretisation.first(), tol, over, record_state)
            except KeyboardInterrupt:
                if discretisation.last is None:
                    raise
                known = self.iterations[-1].estimate if self.iterations else np.inf
                outcome = AdaptiveResult(discretisation.last, tuple(self.iterations), known, Status.INTERRUPTED)
                return self.solution(formulation, outcome, Status.INTERRUPTED)
        return self.solution(formulation, outcome)

    def add_iteration(self, state: Any, estimate: float, newton_steps: int = 0) -> None:
        """Record an iteration."""
        self.iterations.append(
            WeakIteration(
                state.mesh.count, state.degree, state.unknowns, state.relative_indicator, estimate,
                self.monitor.elapsed, newton_steps,
            )
        )  # fmt: skip

    def solution(
        self, formulation: WeakFormulation, outcome: AdaptiveResult[Any, WeakIteration], ended: Status | None = None
    ) -> Solution:
        """The solution of the problem: the best state of a loop, how the loop ended, and the residuals."""
        problem, state = self.problem, outcome.best
        bound = formulation.bound(state)
        fluxes, weighted = self._until(state, "fluxes"), self._until(state, "weighted")
        if formulation.failure is not None or (len(weighted) < CALIBRATED and not self.goal_oriented):
            weighted = []
        status, detail = self._verdict(formulation, outcome, bound)
        network = state.function
        few = LOSS_POINTS // 5 if state.trajectory else LOSS_POINTS  # each is a step and a cell
        with_residuals = self.monitor.residuals
        losses, measures = sampled_losses(problem, network, few) if with_residuals else ({}, {})
        label = f"{state.mesh.count} cells of degree {state.degree} in weak form"
        if state.trajectory:
            label += f", {state.steps} steps in time"
        return Solution(
            problem=problem, fields=problem.fields, function=network, status=ended or status, detail=detail,
            estimate=outcome.estimate, losses=losses,
            held_out=held_out_residual(problem, network) if with_residuals else {},
            integrals={name: loss * measures[name] for name, loss in losses.items()},
            history=WeakHistory(
                tuple(self.iterations), formulation.sentences, bound.relative if bound else None,
                bounded_fluxes(fluxes, self.settings.trust), bounded_outputs(weighted, self.settings.trust),
            ),
            method=Choice(self.name, label, self.why),
            seconds=self.monitor.elapsed,
        )  # fmt: skip

    def _until(self, state: Any, part: str) -> list[Any]:
        """One part of the records of all states up to this one, where they have it."""
        having = [(one, getattr(record, part)) for one, record in self.records if getattr(record, part) is not None]
        ends = [number for number, (one, _) in enumerate(having, start=1) if one is state]
        return [value for _, value in having[: max(ends, default=0)]]

    def _verdict(
        self, formulation: WeakFormulation, outcome: AdaptiveResult[Any, WeakIteration], bound: EnergyBound | None
    ) -> tuple[Status, str]:
        """How the loop ended, and a sentence where that needs an explanation."""
        left = outcome.best.relative_indicator
        left = min(left, bound.relative) if bound else left
        if formulation.failure is not None:
            return Status.NEWTON, formulation.failure
        if formulation.free is not None:
            return Status.UNDETERMINED, (
                f"the equations and conditions leave {formulation.free} free; add a condition that fixes it "
                "(what comes back has the mean zero there)"
            )
        energy = ""
        if bound:
            energy = f", and the energy norm of the error is at most {bound.relative:.1e} of that of the solution"
        return verdict_of(outcome, left, self.settings, energy, formulation.rounding)


def verdict_of(
    outcome: AdaptiveResult[Any, WeakIteration],
    left: float,
    settings: WeakSettings,
    energy: str = "",
    rounding: str = "",
) -> tuple[Status, str]:
    """How a loop ended, and a sentence that explains it.

    left : energy of the indicators over that of the solution
    energy : what is known of the energy norm; rounding : why rounding counts
    """
    if outcome.status is Status.CONVERGED:
        if left > settings.residual_limit:
            return Status.RESIDUAL_TOO_LARGE, f"solutions agree, but leave {left:.1e} of the energy unresolved"
        return Status.CONVERGED, f"two solutions of different resolution agree to the tolerance{energy}"
    if outcome.status.by_caller:
        return outcome.status, ""
    return Status.STALLED, f"{outcome.detail}; it is {outcome.estimate:.1e}{rounding}"
