"""WeakCells: the weak form on cells with local random networks, as a choice of settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.domains.domain import SpaceTime
from rannpde.errors import positive_integer, require
from rannpde.pde.adaptivity.loop import AdaptiveLoop, OutOfBudget
from rannpde.pde.adaptivity.result import AdaptiveResult
from rannpde.pde.forward_model import ForwardModel, ModelRequest
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import held_out_residual, mean_squares, root_mean_square, term_residual
from rannpde.pde.solution import Choice, Solution
from rannpde.pde.statement.divergence import NoDivergenceForm
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.pde.weak.bounds import EnergyBound, energy_bound
from rannpde.pde.weak.dual_weighted import WeightedOutput, bounded_outputs, weighted_outputs
from rannpde.pde.weak.evolution import WeakEvolution, weak_evolution
from rannpde.pde.weak.evolution_solver import EvolutionDiscretisation
from rannpde.pde.weak.fluxes import FluxRecord, bounded_fluxes, side_fluxes
from rannpde.pde.weak.form import WeakForm, weak_formulation
from rannpde.pde.weak.functionals import WeightableOutput, weightable_outputs
from rannpde.pde.weak.history import WeakHistory, WeakIteration
from rannpde.pde.weak.meshing import shape_obstacle
from rannpde.pde.weak.plate import PlateDiscretisation, PlateState, plate_obstacle
from rannpde.pde.weak.plate_form import PlateForm, plate_form
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation
from rannpde.pde.weak.state import WeakState
from rannpde.rounding import COMPUTED
from rannpde.threads import one_thread

LOSS_POINTS = 2000
"""Points for the mean squares of residuals, which are only reported."""
CALIBRATED = 3
"""Solutions from which on the constant of dual-weighted residuals is known well enough to do without a second solve."""
RecordT = TypeVar("RecordT")
AnyDiscretisation = WeakDiscretisation | EvolutionDiscretisation | PlateDiscretisation


@dataclass(frozen=True)
class WeakCells:
    """Solve the weak form on boxes, each with a random network of its own, coupled by traces on their faces.

    For stationary equations of second order in divergence form, Σ ∂_i F_i(x, u, ∇u) + f(x, u, ∇u) = 0, scalar or
    systems, in two and three coordinates, by Newton's method where they are not linear (docs/nonlinear.md), for linear
    evolutions on plane shapes, and for plates, laplace(laplace(u)) = f, on boxes.
    Right where solutions are not smooth: mixed conditions, corners, jumping coefficients, elasticity (docs/weak.md).

    degree : of the first solve; the functions of a cell are as good as polynomials of it; None follows ``tol``
    settings : the numbers behind all this

    >>> import rannpde as rp
    >>> sides = {"left": rp.On("x=0", "u = 0"), "rest": rp.On("boundary except x=0", "dn(u) = 0")}
    >>> plate = rp.Problem("laplace(u) = -1", rp.Box(x=(0, 1), y=(0, 1)), sides, exact={"u": "x - x**2/2"})
    >>> solution = rp.solve(plate, tol=1e-6, method=rp.WeakCells())
    >>> solution.converged, solution.errors()["u"] < 1e-6
    (True, True)
    """

    degree: int | None = None
    settings: WeakSettings = field(default_factory=WeakSettings)

    name = "weak"
    reason: ClassVar[str] = "the equations have a divergence form, and the solution need not be smooth"
    share: ClassVar[float] = 1.0
    hands_over: ClassVar[frozenset[Status]] = frozenset({Status.STALLED})

    def __post_init__(self) -> None:
        if self.degree is not None:
            most = max(self.settings.most_degree)
            require(2 <= positive_integer("degree", self.degree) <= most, "degree", self.degree, f"from 2 to {most}")

    def obstacles(self, problem: Problem) -> tuple[str, ...]:
        """Reasons why this method cannot solve the problem."""
        reasons = []
        timed = isinstance(problem.domain, SpaceTime)
        space = problem.domain.space if isinstance(problem.domain, SpaceTime) else problem.domain
        if timed and space.dim != 2:
            reasons.append("the problem is one in time, and space is not a plane")
        if space.dim not in (2, 3):
            reasons.append(f"the domain has {space.dim} coordinates, not two or three")
        if problem.bounds:
            reasons.append("fields have bounds")
        if problem.periodic or problem.pairings:
            reasons.append("fields are periodic")
        if problem.inequalities and len(problem.fields) > 1:
            reasons.append("a field of a system is bounded by an inequality")
        if not problem.linear and problem.free_constants:
            reasons.append(f"nothing holds a constant in {', '.join(problem.free_constants)}")
        if reasons:
            return tuple(reasons)
        try:
            if not timed and _fourth_order(problem):
                shape = plate_obstacle(plate_form(problem))
                return (shape,) if shape else ()
            form = _evolution(problem).still if timed else weak_formulation(problem)
            shape = shape_obstacle(form.problem, curved_solids=problem.linear and not problem.inequalities)
            if shape:
                return (shape,)
            WeakDiscretisation(form, MUCH_SMALLER, self.settings, np.random.default_rng(0), lambda: None)
        except NoDivergenceForm as reason:
            return (str(reason),)
        return ()

    def drawbacks(self, problem: Problem) -> tuple[str, ...]:
        """Reasons to prefer another method that can solve the problem too."""
        timed = isinstance(problem.domain, SpaceTime)
        if not timed and _fourth_order(problem):
            return ()
        evolution = _evolution(problem) if timed else None
        form = evolution.still if evolution is not None else weak_formulation(problem)
        if form.problem.domain.dim == 3 and shape_obstacle(form.problem):
            return ("cells that curved walls cut in space cost it many times what they cost least squares",)
        if problem.jumping or problem.inequalities or problem.free_constants:  # it tells whether the data balance
            return ()
        rough = WeakDiscretisation(form, MUCH_SMALLER, self.settings, np.random.default_rng(0), lambda: None)
        if any(exponent < 1 for exponent in rough.exponents):
            return ()
        if evolution is not None and rough.mesher.clippers and evolution.starts_with_layer:
            return ()
        natural = [term for term in form.terms if any(jet.order for jet in term.expression.jets)]
        if form.fields > 1 and natural:
            return ()
        return ("its solution is smooth, where least squares of the strong form give more digits",)

    def model(self, request: ModelRequest) -> ForwardModel | None:
        """None: identification stands on the strong form, whose models have the linearisation that it needs."""
        return None

    def solve(self, problem: Problem, tol: float, rng: np.random.Generator, monitor: Monitor, why: str) -> Solution:
        """The solution to a relative L² error of about ``tol``, or the best that was found, with its estimate."""

        def check_budget() -> None:
            checkpoint()
            if monitor.exhausted and iterations:
                raise OutOfBudget

        iterations: list[WeakIteration] = []
        fluxes: list[tuple[Any, FluxRecord]] = []
        weighted: list[tuple[WeakState, Mapping[str, WeightedOutput]]] = []
        outputs: tuple[WeightableOutput, ...] = ()
        discretisation: AnyDiscretisation
        form: WeakForm | PlateForm
        if _fourth_order(problem) and not isinstance(problem.domain, SpaceTime):
            form = plate_form(problem)
            discretisation = PlateDiscretisation(form, tol, self.settings, rng, check_budget, self.degree)
        elif isinstance(problem.domain, SpaceTime):
            evolution = weak_evolution(problem)
            form = evolution.still
            discretisation = EvolutionDiscretisation(
                evolution, tol, self.settings, rng, check_budget, lambda: monitor.exhausted, self.degree
            )
        else:
            form = weak_formulation(problem)
            discretisation = WeakDiscretisation(form, tol, self.settings, rng, check_budget, self.degree)
            outputs = tuple(weightable_outputs(problem).values())
            discretisation.with_adjoints = bool(outputs)

        def over() -> Status | None:
            return Status.NEWTON if discretisation.failure is not None else monitor.ended

        def tell(state: WeakState | PlateState, estimate: float, seconds: float) -> WeakIteration:
            iterations.append(
                WeakIteration(
                    state.mesh.count, state.degree, state.unknowns, state.relative_indicator,
                    float(estimate), monitor.elapsed, discretisation.newton_steps,
                )
            )  # fmt: skip
            through = _fluxes(discretisation, state)
            if through:
                fluxes.append((state, FluxRecord(through, state.relative_indicator)))
            if outputs and isinstance(discretisation, WeakDiscretisation) and isinstance(state, WeakState):
                weighted.append((state, weighted_outputs(discretisation, state, outputs)))
            monitor.tell(len(iterations), 1, width=state.unknowns, estimate=estimate, counted="unknowns")
            return iterations[-1]

        loop = AdaptiveLoop(theta=self.settings.theta, patience=self.settings.patience)
        outcome: AdaptiveResult[WeakState, WeakIteration] | AdaptiveResult[PlateState, WeakIteration]
        with one_thread(problem.domain.dim < 3):
            try:
                if isinstance(discretisation, PlateDiscretisation):
                    outcome = loop.run(discretisation, discretisation.first(), tol, over, tell)
                else:
                    outcome = loop.run(discretisation, discretisation.first(), tol, over, tell)
            except KeyboardInterrupt:
                if discretisation.last is None:
                    raise
                known = iterations[-1].estimate if iterations else np.inf
                last: Any = discretisation.last
                outcome = AdaptiveResult(last, tuple(iterations), known, Status.INTERRUPTED)
                return self.solution(
                    problem,
                    form,
                    discretisation,
                    outcome,
                    iterations,
                    fluxes,
                    weighted,
                    monitor,
                    why,
                    Status.INTERRUPTED,
                )
        return self.solution(problem, form, discretisation, outcome, iterations, fluxes, weighted, monitor, why)

    def solution(
        self,
        problem: Problem,
        form: WeakForm | PlateForm,
        discretisation: AnyDiscretisation,
        outcome: AdaptiveResult[WeakState, WeakIteration] | AdaptiveResult[PlateState, WeakIteration],
        iterations: list[WeakIteration],
        fluxes: list[tuple[Any, FluxRecord]],
        weighted: list[tuple[WeakState, Mapping[str, WeightedOutput]]],
        monitor: Monitor,
        why: str,
        ended: Status | None = None,
    ) -> Solution:
        """What comes back: the best state of a loop, how it ended, and what it left of the equations."""
        state = outcome.best
        bound = None
        if isinstance(state, WeakState) and problem is form.problem:
            bound = energy_bound(state.local, state.solution)
        known = _until(fluxes, state)
        weights = _until(weighted, state) if discretisation.failure is None else []
        if len(weights) < CALIBRATED and not getattr(discretisation, "goal_oriented", False):
            weights = []
        status, detail = self._verdict(discretisation, outcome, bound)
        status = ended or status
        network = state.function
        few = LOSS_POINTS // 5 if state.trajectory else LOSS_POINTS  # each is a step and a cell
        sample = problem.domain.sample(few, rng=11)
        losses = mean_squares(problem, network, sample) if monitor.residuals else {}
        measures = dict.fromkeys(losses, problem.domain.measure)
        for term in problem.constraints if monitor.residuals else ():
            assert term.region is not None
            points = term.region.sample(few // 10, rng=11)
            square = root_mean_square(term_residual(term, network, problem.vocabulary, points)) ** 2
            losses[term.name] = max(square, losses.get(term.name, 0.0))
            measures[term.name] = measures.get(term.name, 0.0) + term.measure
        sentences = tuple(form.described())
        if getattr(discretisation, "displacement", False):
            sentences += (f"errors of {', '.join(problem.fields)} are those of one vector, a displacement",)
        label = f"{state.mesh.count} cells of degree {state.degree} in weak form"
        if state.trajectory:
            label += f", {state.steps} steps in time"
        return Solution(
            problem=problem, fields=problem.fields, function=network, status=status, detail=detail,
            estimate=outcome.estimate, losses=losses,
            held_out=held_out_residual(problem, network) if monitor.residuals else {},
            integrals={name: loss * measures[name] for name, loss in losses.items()},
            history=WeakHistory(
                tuple(iterations), sentences, bound.relative if bound else None,
                bounded_fluxes(known, self.settings.trust), bounded_outputs(weights, self.settings.trust),
            ),
            method=Choice(self.name, label, why),
            seconds=monitor.elapsed,
        )  # fmt: skip

    def _verdict(
        self,
        discretisation: AnyDiscretisation,
        outcome: AdaptiveResult[WeakState, WeakIteration] | AdaptiveResult[PlateState, WeakIteration],
        bound: EnergyBound | None,
    ) -> tuple[Status, str]:
        """How it ended, and a sentence where that needs one."""
        left = outcome.best.relative_indicator
        left = min(left, bound.relative) if bound else left
        if discretisation.failure is not None:
            return Status.NEWTON, str(discretisation.failure)
        if isinstance(discretisation, WeakDiscretisation) and len(discretisation.motions):
            free = discretisation.motions.described(discretisation.problem.fields)
            return Status.UNDETERMINED, (
                f"the equations and conditions leave {free} free; add a condition that fixes it "
                "(what comes back has the mean zero there)"
            )
        if outcome.status is Status.CONVERGED:
            if left > self.settings.residual_limit:
                return Status.RESIDUAL_TOO_LARGE, f"solutions agree, but leave {left:.1e} of the energy unresolved"
            agreed = "two solutions of different resolution agree to the tolerance"
            energy = ""
            if bound:
                energy = f", and the energy norm of the error is at most {bound.relative:.1e} of that of the solution"
            return Status.CONVERGED, agreed + energy
        if outcome.status.by_caller:
            return outcome.status, ""
        detail = f"{outcome.detail}; it is {outcome.estimate:.1e}"
        coarse = discretisation.tol >= COMPUTED
        if isinstance(discretisation, WeakDiscretisation) and coarse and discretisation.rounded:
            ratio = discretisation.stiffness_ratio
            detail += (
                f"; a change of volume or another strain is {ratio:.0e} times as stiff as others, as in nearly "
                "incompressible materials, and rounding counts as many times"
            )
        return Status.STALLED, detail


def _until(records: Sequence[tuple[Any, RecordT]], state: Any) -> list[RecordT]:
    """The records of all states up to this one."""
    ends = [number for number, (one, _) in enumerate(records, start=1) if one is state]
    return [record for _, record in records[: max(ends, default=0)]]


def _fluxes(discretisation: AnyDiscretisation, state: WeakState | PlateState) -> dict[str, Array]:
    """Side → fluxes of a stationary linear problem by the weak residual."""
    if not isinstance(discretisation, WeakDiscretisation) or not isinstance(state, WeakState):
        return {}
    linear = discretisation.form.quasilinear is None and not len(discretisation.motions) and state.trajectory is None
    return side_fluxes(state.local, state.solution, discretisation.finder) if linear else {}


def _fourth_order(problem: Problem) -> bool:
    return max(jet.order for term in problem.interior for jet in term.expression.jets) == 4


@lru_cache(maxsize=1)
def _evolution(problem: Problem) -> WeakEvolution:
    """The evolution of a problem that obstacles and drawbacks examine; a solve moves the time in one of its own."""
    return weak_evolution(problem)
