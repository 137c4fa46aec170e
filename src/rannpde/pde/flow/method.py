"""Flow: incompressible flow in the plane by divergence-free local random networks, as a choice of settings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from rannpde.domains.domain import SpaceTime, is_box
from rannpde.errors import positive_integer, require
from rannpde.pde.adaptivity.loop import AdaptiveLoop, OutOfBudget
from rannpde.pde.adaptivity.result import AdaptiveResult
from rannpde.pde.capability import Capability
from rannpde.pde.cells.network import CellNetwork
from rannpde.pde.flow.evolution import flow_evolution
from rannpde.pde.flow.evolution_solver import FlowEvolutionDiscretisation
from rannpde.pde.flow.forces import ForceRecord, bounded_forces
from rannpde.pde.flow.form import FlowForm, NoFlow
from rannpde.pde.flow.history import FlowHistory
from rannpde.pde.flow.pressure import entering
from rannpde.pde.flow.recognition import flow_formulation
from rannpde.pde.flow.scalar_fluxes import bounded_scalar_fluxes
from rannpde.pde.flow.solver import FlowDiscretisation, FlowIterate
from rannpde.pde.forward_model import ForwardModel, ModelRequest
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import held_out_residual, sampled_losses
from rannpde.pde.solution import Choice, Solution
from rannpde.pde.statement.divergence import NoDivergenceForm
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.pde.weak.fluxes import FluxRecord
from rannpde.pde.weak.history import WeakIteration
from rannpde.pde.weak.run import LOSS_POINTS, verdict_of
from rannpde.pde.weak.settings import WeakSettings
from rannpde.threads import one_thread


@dataclass(frozen=True)
class Flow:
    """Solve Stokes' and Navier and Stokes' equations in the plane with velocities that are curls of random networks.

    For two momentum equations with a constant viscosity and ∇·u = 0, with velocities, tractions (outflow) or slip on
    the sides, and any number of scalars that the flow carries, as temperature with buoyancy (docs/flow.md). The
    velocity is exactly divergence-free, fluxes across faces are equal from both sides, and forces on sides
    (``solution.history.forces``) rest on the weak residual.

    degree : of the first solve; the functions of a cell are as good as polynomials of it; None follows ``tol``
    settings : the numbers behind all this

    >>> import rannpde as rp
    >>> equations = ["-laplace(u) + p_x = 0", "-laplace(v) + p_y = 0", "u_x + v_y = 0"]
    >>> sides = {"walls": rp.On(("y=0", "y=1"), ["u = 0", "v = 0"]), "in": rp.On("x=0", ["u = y*(1 - y)", "v = 0"])}
    >>> sides["out"] = rp.On("x=2", ["dn(u) - p*nx = 0", "dn(v) = 0"])
    >>> channel = rp.Problem(equations, rp.Box(x=(0, 2), y=(0, 1)), sides, fields=("u", "v", "p"))
    >>> solution = rp.solve(channel, tol=1e-4, method=rp.Flow())
    >>> solution.converged, np.allclose(solution([[0.5, 0.5]]), [[0.25, 0.0, 3.0]], atol=1e-3)
    (True, True)
    """

    degree: int | None = None
    settings: WeakSettings = field(default_factory=WeakSettings)

    name = "flow"
    reason: ClassVar[str] = "it is an incompressible flow in the plane, for which velocities are curls"
    share: ClassVar[float] = 1.0
    hands_over: ClassVar[frozenset[Status]] = frozenset({Status.STALLED, Status.NEWTON})
    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    def __post_init__(self) -> None:
        if self.degree is not None:
            most = self.settings.most_degree[1]
            require(3 <= positive_integer("degree", self.degree) <= most, "degree", self.degree, f"from 3 to {most}")

    def obstacles(self, problem: Problem) -> tuple[str, ...]:
        """Reasons why this method cannot solve the problem."""
        if problem.bounds or problem.inequalities:
            return ("fields have bounds",)
        if problem.periodic or problem.pairings:
            return ("fields are periodic",)
        try:
            form = _form(problem)
            discretisation = FlowDiscretisation(
                form, MUCH_SMALLER, self.settings, np.random.default_rng(0), lambda: None, 3
            )
            discretisation.cells(discretisation.tree(1.0), 3, np.random.default_rng(0))
        except (NoFlow, NoDivergenceForm) as reason:
            return (str(reason),)
        return ()

    def drawbacks(self, problem: Problem) -> tuple[str, ...]:
        """Reasons to prefer another method that can solve the problem too."""
        form = _form(problem)
        rough = FlowDiscretisation(form, MUCH_SMALLER, self.settings, np.random.default_rng(0), lambda: None)
        tractions = any(jet.order for term in form.terms for jet in term.expression.jets)
        shaped = rough.corners.points or not is_box(form.problem.domain)
        if shaped or tractions or form.scalars or problem.free_constants:
            return ()  # a pressure without a level gets the mean zero here, where least squares would refuse it
        return ("its solution is smooth, where least squares of the strong form give more digits",)

    def model(self, request: ModelRequest) -> ForwardModel | None:
        """None: identification stands on the strong form, whose models have the linearisation that it needs."""
        return None

    def solve(
        self,
        problem: Problem,
        tol: float,
        rng: np.random.Generator,
        monitor: Monitor,
        why: str,
        like: CellNetwork | None = None,
    ) -> Solution:
        """The solution to a relative L² error of about ``tol``, or the best iterate, with its estimate.

        like : a stationary flow in the same domain at other parameters, from which to begin
        """

        def check_budget() -> None:
            if monitor.exhausted and iterations:
                raise OutOfBudget

        iterations: list[WeakIteration] = []
        records: list[ForceRecord] = []
        discretisation: FlowDiscretisation | FlowEvolutionDiscretisation
        if isinstance(problem.domain, SpaceTime):
            evolution = flow_evolution(problem)
            form = evolution.form

            def on_step(time: float, steps: int) -> None:
                monitor.tell(len(iterations) + 1, steps, time=time)

            discretisation = FlowEvolutionDiscretisation(
                evolution, tol, self.settings, rng, check_budget, lambda: monitor.exhausted, on_step, self.degree
            )
        else:
            form = flow_formulation(problem)
            discretisation = FlowDiscretisation(form, tol, self.settings, rng, check_budget, self.degree, like)

        def finished(
            outcome: AdaptiveResult[FlowIterate, WeakIteration], status: Status | None = None, detail: str = ""
        ) -> Solution:
            here = next(k for k, one in enumerate(records) if one.forces is outcome.best.forces)
            last = records[: here + 1]
            series = tuple(one.series for one in last[:-3:-1] if one.series is not None)
            fluxes = bounded_scalar_fluxes(
                form, [FluxRecord(one.fluxes, one.indicator) for one in last], self.settings.trust
            )
            history = FlowHistory(tuple(iterations), (), bounded_forces(last, self.settings.trust), series, fluxes)
            return self._solution(problem, form, discretisation, outcome, history, monitor, why, status, detail)

        def record_state(state: FlowIterate, estimate: float, seconds: float) -> WeakIteration:
            iterations.append(
                WeakIteration(
                    state.local.mesh.count, state.local.layer.degree, state.unknowns, state.relative_indicator,
                    float(estimate), monitor.elapsed, 0 if state.series else discretisation.newton_steps,
                )
            )  # fmt: skip
            records.append(ForceRecord(state.forces, state.relative_indicator, state.series, state.fluxes))
            result = AdaptiveResult(state, tuple(iterations), estimate, Status.BUDGET)
            monitor.keep(lambda status, detail: finished(result, status, detail))
            monitor.tell(len(iterations), 1, width=state.unknowns, estimate=estimate, counted="unknowns")
            return iterations[-1]

        def over() -> Status | None:
            return Status.NEWTON if discretisation.failure is not None else monitor.ended

        loop = AdaptiveLoop(theta=self.settings.theta, patience=self.settings.patience)
        with one_thread(True):
            return finished(loop.run(discretisation, discretisation.first(), tol, over, record_state))

    def _solution(
        self,
        problem: Problem,
        form: FlowForm,
        discretisation: FlowDiscretisation | FlowEvolutionDiscretisation,
        outcome: AdaptiveResult[FlowIterate, WeakIteration],
        history: FlowHistory,
        monitor: Monitor,
        why: str,
        ended: Status | None,
        reason: str,
    ) -> Solution:
        state = outcome.best
        status, detail = verdict_of(outcome, state.relative_indicator, self.settings)
        if discretisation.failure is not None:
            status, detail = Status.NEWTON, str(discretisation.failure)
        if ended is not None:
            status, detail = ended, reason
        network = state.network
        few = LOSS_POINTS // 5 if state.series else LOSS_POINTS  # each is a step and a cell
        losses, measures = sampled_losses(problem, network, few)
        label = f"{state.local.mesh.count} cells of degree {state.local.layer.degree} with divergence-free velocities"
        if state.series:
            label += f", {discretisation.newton_steps} steps in time"
        sentences = list(form.described())
        if isinstance(discretisation, FlowEvolutionDiscretisation) and discretisation.impulsive:
            sentences.append(
                "the boundary moves at once at the start, where the pressure is infinite: errors are the velocity's"
            )
        if discretisation.corners.jumps:
            sentences.append("the prescribed velocity jumps, where the pressure is like 1/r: errors are the velocity's")
        if discretisation.vanishing:
            sentences.append(
                "the pressure cannot be distinguished from zero: its error is relative to the viscous stress"
            )
        if discretisation.still and form.scalars:
            sentences.append("the fluid is at rest; where that is unstable, other flows satisfy all this too")
        if not form.gauges and bool(state.local.boundary.normal.all()):
            sentences.append("the pressure has the mean zero")
        if (
            not state.series
            and not form.linear
            and entering(state.local, state.solution.state, min(outcome.estimate, MUCH_SMALLER))
        ):
            sentences.append("fluid enters where a traction is given: other flows may satisfy all this too")
        return Solution(
            problem=problem, fields=problem.fields, function=network, status=status, detail=detail,
            estimate=outcome.estimate, held_out=held_out_residual(problem, network), losses=losses,
            integrals={name: loss * measures[name] for name, loss in losses.items()},
            history=replace(history, form=tuple(sentences)),
            method=Choice(self.name, label, why), seconds=monitor.elapsed,
        )  # fmt: skip


def _form(problem: Problem) -> FlowForm:
    """The flow in space of a problem, at a moment if it is one in time."""
    return flow_evolution(problem).form if isinstance(problem.domain, SpaceTime) else flow_formulation(problem)
