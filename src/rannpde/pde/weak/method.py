"""WeakCells: the weak form on cells with local random networks, as a choice of settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

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
from rannpde.pde.weak.bounds import EnergyBound, energy_bound
from rannpde.pde.weak.evolution import weak_evolution
from rannpde.pde.weak.evolution_solver import EvolutionDiscretisation
from rannpde.pde.weak.fluxes import FluxRecord, SideFluxes, bounded_fluxes, side_fluxes
from rannpde.pde.weak.form import WeakForm, weak_formulation
from rannpde.pde.weak.plate import PlateDiscretisation, PlateState, plate_obstacle
from rannpde.pde.weak.plate_form import PlateForm, plate_form
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation, WeakState, shape_obstacle
from rannpde.threads import one_thread

LOSS_POINTS = 2000
"""Points for the mean squares of residuals, which are only told."""
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
        found = []
        timed = isinstance(problem.domain, SpaceTime)
        space = problem.domain.space if isinstance(problem.domain, SpaceTime) else problem.domain
        if timed and space.dim != 2:
            found.append("the problem is one in time, and space is not a plane")
        if space.dim not in (2, 3):
            found.append(f"the domain has {space.dim} coordinates, not two or three")
        if problem.bounds:
            found.append("fields have bounds")
        if problem.periodic or problem.pairings:
            found.append("fields are periodic")
        if problem.inequalities and len(problem.fields) > 1:
            found.append("a field of a system is bounded by an inequality")
        if not problem.linear and problem.free_constants:
            found.append(f"nothing holds a constant in {', '.join(problem.free_constants)}")
        if found:
            return tuple(found)
        try:
            if not timed and _fourth_order(problem):
                shape = plate_obstacle(plate_form(problem))
                return (shape,) if shape else ()
            form = weak_evolution(problem).still if timed else weak_formulation(problem)
            shape = shape_obstacle(form.problem)
            if shape:
                return (shape,)
            WeakDiscretisation(form, 0.1, self.settings, np.random.default_rng(0), lambda: None)
        except NoDivergenceForm as reason:
            return (str(reason),)
        return ()

    def drawbacks(self, problem: Problem) -> tuple[str, ...]:
        """Reasons to prefer another method that can solve the problem too."""
        timed = isinstance(problem.domain, SpaceTime)
        if not timed and _fourth_order(problem):
            return ()
        form = weak_evolution(problem).still if timed else weak_formulation(problem)
        if problem.jumping or problem.inequalities:
            return ()
        rough = WeakDiscretisation(form, 0.1, self.settings, np.random.default_rng(0), lambda: None)
        if rough.edges or any(one.exponent < 1 for one in rough.points):
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

        def pause() -> None:
            checkpoint()
            if monitor.exhausted and iterations:
                raise OutOfBudget

        iterations: list[WeakIteration] = []
        fluxes: list[tuple[Any, FluxRecord]] = []
        discretisation: AnyDiscretisation
        form: WeakForm | PlateForm
        if _fourth_order(problem) and not isinstance(problem.domain, SpaceTime):
            form = plate_form(problem)
            discretisation = PlateDiscretisation(form, tol, self.settings, rng, pause, self.degree)
        elif isinstance(problem.domain, SpaceTime):
            evolution = weak_evolution(problem)
            form = evolution.still
            discretisation = EvolutionDiscretisation(
                evolution, tol, self.settings, rng, pause, lambda: monitor.exhausted, self.degree
            )
        else:
            form = weak_formulation(problem)
            discretisation = WeakDiscretisation(form, tol, self.settings, rng, pause, self.degree)

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
                return self._solution(
                    problem, form, discretisation, outcome, iterations, fluxes, monitor, why, Status.INTERRUPTED
                )
        return self._solution(problem, form, discretisation, outcome, iterations, fluxes, monitor, why)

    def _solution(
        self,
        problem: Problem,
        form: WeakForm | PlateForm,
        discretisation: AnyDiscretisation,
        outcome: AdaptiveResult[WeakState, WeakIteration] | AdaptiveResult[PlateState, WeakIteration],
        iterations: list[WeakIteration],
        fluxes: list[tuple[Any, FluxRecord]],
        monitor: Monitor,
        why: str,
        ended: Status | None = None,
    ) -> Solution:
        state = outcome.best
        bound = None
        if isinstance(state, WeakState) and problem is form.problem:
            bound = energy_bound(state.local, state.solution)
        ends = [number for number, (one, _) in enumerate(fluxes, start=1) if one is state]
        known = [record for _, record in fluxes[: max(ends, default=0)]]
        status, detail = self._verdict(discretisation, outcome, bound)
        status = ended or status
        network = state.function
        few = LOSS_POINTS // 5 if state.trajectory else LOSS_POINTS  # each is a step and a cell
        sample = problem.domain.sample(few, rng=11)
        losses = mean_squares(problem, network, sample)
        measures = dict.fromkeys(losses, problem.domain.measure)
        for term in problem.constraints:
            assert term.region is not None
            points = term.region.sample(few // 10, rng=11)
            square = root_mean_square(term_residual(term, network, problem.vocabulary, points)) ** 2
            losses[term.name] = max(square, losses.get(term.name, 0.0))
            measures[term.name] = measures.get(term.name, 0.0) + term.measure
        label = f"{state.mesh.count} cells of degree {state.degree} in weak form"
        if state.trajectory:
            label += f", {state.steps} steps in time"
        return Solution(
            problem=problem, fields=problem.fields, function=network, status=status, detail=detail,
            estimate=outcome.estimate, held_out=held_out_residual(problem, network), losses=losses,
            integrals={name: loss * measures[name] for name, loss in losses.items()},
            history=WeakHistory(
                tuple(iterations), tuple(form.described()), bound.relative if bound else None,
                bounded_fluxes(known, self.settings.trust),
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
                return Status.VETOED, f"solutions agree, but leave {left:.1e} of the energy unresolved"
            agreed = "two solutions of different resolution agree to the tolerance"
            told = ""
            if bound:
                told = f", and the energy norm of the error is at most {bound.relative:.1e} of that of the solution"
            return Status.CONVERGED, agreed + told
        if outcome.status.by_caller:
            return outcome.status, ""
        return Status.STALLED, f"{outcome.detail}; it is {outcome.estimate:.1e}"


def _fluxes(discretisation: AnyDiscretisation, state: WeakState | PlateState) -> dict[str, Array]:
    """Side → fluxes of a stationary linear problem by the weak residual."""
    if not isinstance(discretisation, WeakDiscretisation) or not isinstance(state, WeakState):
        return {}
    linear = discretisation.form.quasilinear is None and not len(discretisation.motions) and state.trajectory is None
    return side_fluxes(state.local, state.solution, discretisation.finder) if linear else {}


def _fourth_order(problem: Problem) -> bool:
    return max(jet.order for term in problem.interior for jet in term.expression.jets) == 4


@dataclass(frozen=True)
class WeakIteration:
    """One iteration of the adaptive loop: cells, degree, unknowns, relative indicator, estimate, seconds so far, and
    steps of Newton's method, 0 for a linear problem."""

    cells: int
    degree: int
    unknowns: int
    indicator: float
    estimate: float
    seconds: float
    steps: int = 0

    def __str__(self) -> str:
        known = f", estimate {self.estimate:.1e}" if np.isfinite(self.estimate) else ""
        known = f", {self.steps} steps of Newton's method{known}" if self.steps else known
        return (
            f"{self.cells} cells of degree {self.degree}, {self.unknowns} unknowns, "
            f"indicator {self.indicator:.1e}, {self.seconds:.2f} s{known}"
        )


@dataclass(frozen=True)
class WeakHistory:
    """What only the weak form can tell: its iterations, and which form was used."""

    iterations: tuple[WeakIteration, ...]
    form: tuple[str, ...] = ()
    bound: float | None = None
    """Guaranteed bound of the energy norm of the error, over that of the solution; None where there is none."""
    fluxes: SideFluxes = field(default_factory=dict)
    """Side → ∫ n·A∇u by the weak residual for each equation, and a bound of their errors."""

    advice = "more time, or a weaker tolerance, may help"

    def lines(self) -> list[str]:
        """For the report."""
        told = [f"iteration {number}: {one}" for number, one in enumerate(self.iterations, start=1)]
        if self.bound is not None:
            told.append(
                f"energy norm of the error at most {self.bound:.1e} of that of the solution (equilibrated flux)"
            )
        return [*self.form, *told]

    def to_table(self) -> dict[str, Any]:
        """As JSON-able data."""
        rows = [[None if value == np.inf else value for value in vars(one).values()] for one in self.iterations]
        fluxes = {name: [list(values), error] for name, (values, error) in self.fluxes.items()}
        return {"iterations": rows, "form": list(self.form), "bound": self.bound, "fluxes": fluxes}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> WeakHistory:
        rows: list[list[Any]] = [[np.inf if value is None else value for value in row] for row in table["iterations"]]
        bound = table.get("bound")
        return cls(
            tuple(WeakIteration(*row) for row in rows), tuple(map(str, table["form"])),
            None if bound is None else float(bound),
            {name: (tuple(map(float, row[0])), float(row[1])) for name, row in table.get("fluxes", {}).items()},
        )  # fmt: skip
