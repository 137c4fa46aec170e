"""Lines: the method of lines as a choice of settings, and its entry."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import log
from typing import Any, ClassVar

import numpy as np

from rannpde.domains.domain import Ball, Box, SpaceTime
from rannpde.errors import InputError, choose, positive_integer, require
from rannpde.pde.adaptivity.result import Iteration, iteration_lines, iteration_table, iterations_from
from rannpde.pde.capability import Capability
from rannpde.pde.discontinuities import corner_jumps
from rannpde.pde.forward_model import ForwardModel, ModelRequest
from rannpde.pde.lines.adaptive import Discretisation, better, keeping, solve_in_time
from rannpde.pde.lines.comparison import check_points, fourier_applies
from rannpde.pde.lines.features.discretisation import FeatureDiscretisation
from rannpde.pde.lines.fourier.discretisation import FourierDiscretisation
from rannpde.pde.lines.fourier.equations import Equations
from rannpde.pde.lines.sensitivities.model import LinesModel
from rannpde.pde.lines.settings import FieldEvent, IterationSettings, LinesResult, data_step_limit
from rannpde.pde.lines.solution import SpaceTimeSolution
from rannpde.pde.lines.tensor.discretisation import TensorDiscretisation
from rannpde.pde.lines.tensor.incompressible import flow_of
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.evolution import Evolution, evolution_form, wall_rows
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import HELD_OUT, held_out_residuals, jets_of, loss_integrals, mean_squares
from rannpde.pde.solution import Choice, Solution
from rannpde.pde.time.integrator import INTEGRATORS
from rannpde.rounding import ROUNDED
from rannpde.threads import one_thread

HURRIED = HELD_OUT // 10
"""Points at which residuals are evaluated after a limit or Ctrl-C has ended a solve: its time is used up."""
MOST_DIMENSIONS = 3
"""Most dimensions of boxes: a tensor-product basis in 4-D would have too many unknowns. Ridge functions reach too few
digits in 3-D, so that balls have two dimensions at most."""
DiscretisationType = type[FourierDiscretisation] | type[FeatureDiscretisation] | type[TensorDiscretisation]
BASIS_KINDS: dict[DiscretisationType, str] = {
    FourierDiscretisation: "fourier",
    FeatureDiscretisation: "features",
    TensorDiscretisation: "tensor",
}
UNRESOLVED = (Status.DISAGREE, Status.STALLED, Status.INTEGRATOR)
"""Statuses after which another basis may do better than sines and cosines between walls."""
ALARMING_GROWTH = -log(ROUNDED)
"""Exponent of a growth that makes rounding as large as the solution: worth a warning when iterations do not agree."""


class GrowthWarning(UserWarning):
    """The semi-discrete system has modes that grow faster than the solution itself can explain."""


@dataclass(frozen=True)
class Lines:
    """The method of lines: a basis in space that adapts itself to the solution, time integration of high order.

    Periodic problems use Fourier modes, boxes with reflection symmetry sines and cosines, other boxes in two and three
    dimensions products of random features of each coordinate, all else random features of all coordinates. A blow-up,
    an interruption or a terminal event ends the integration; what was computed until then is the result, with the
    reason.

    width : features of every iteration (of every axis, for tensor products) instead of the choice from ``tol``; not for
        periodic problems
    windows : intervals of time with a basis of their own; None takes one unless the solution travels too far for it;
        not for periodic problems
    integrator : "RadauIIA" (collocation of an order chosen from ``tol``), "ETDRK4" (the linear part exactly, for
        periodic problems), or SciPy's "Radau", "BDF" or "DOP853"; None takes one of the first two
    events : name → function of (t, u), u being a function of points (M, d) of space; the times of its zeros are in
        ``solution.events``, and one with an attribute ``terminal`` ends the integration
    tuning : the empirical numbers behind it

    >>> from rannpde.pde.solve import solve
    >>> from rannpde.pde.zoo import zoo
    >>> solve(zoo("heat"), tol=1e-6, method=Lines(integrator="Radau", windows=2)).method.name
    'lines'
    """

    width: int | None = None
    windows: int | None = None
    integrator: str | None = None
    events: Mapping[str, FieldEvent] = field(default_factory=dict)
    tuning: LinesTuning = field(default_factory=LinesTuning)

    name = "lines"
    reason: ClassVar[str] = "the problem evolves in time"
    share: ClassVar[float] = 1.0
    hands_over: ClassVar[frozenset[Status]] = frozenset({Status.INTEGRATOR, Status.DISAGREE})
    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    def __post_init__(self) -> None:
        for key in ("width", "windows"):
            if getattr(self, key) is not None:
                object.__setattr__(self, key, positive_integer(key, getattr(self, key)))
        if self.integrator is not None:
            choose("integrator", self.integrator, dict.fromkeys(INTEGRATORS))
        require(isinstance(self.events, Mapping), "events", self.events, "a mapping of names to functions of (t, u)")
        for name, event in self.events.items():
            require(callable(event), f"events[{name!r}]", event, "a function of (t, u)")

    def obstacles(self, problem: Problem) -> tuple[str, ...]:
        """Every reason why this method cannot solve the problem; none if it can."""
        reasons = list(problem.obstacles)
        if isinstance(problem.domain, SpaceTime):
            if reasons and flow_of(problem) is not None:
                return ()
            space, periodic = problem.domain.space, problem.periodic
            if not isinstance(space, Box | Ball):
                reasons.append("space is neither a box nor a ball")
            most = MOST_DIMENSIONS if isinstance(space, Box) else 2
            if space.dim > most:
                reasons.append(f"space has {space.dim} dimensions, more than {most}")
            elif not reasons and (0 < len(periodic) < space.dim or space.dim > 2) and not self._fits(problem):
                reasons.append("a boundary condition holds other derivatives than along its normal, or varies")
            elif not reasons:
                reasons += self._constraint_obstacles(problem)
        return tuple(reasons)

    @staticmethod
    def _fits(problem: Problem) -> bool:
        """Whether a Fourier or tensor-product basis fits, the only ones in 3-D and with some coordinates periodic."""
        whole = set(problem.periodic) == set(problem.domain.names[1:])
        return whole or tensor_fits(evolution_form(problem))

    @staticmethod
    def _constraint_obstacles(problem: Problem) -> tuple[str, ...]:
        """Why fields without a time derivative cannot be eliminated."""
        evolution = evolution_form(problem)
        return Equations.of(evolution).reasons() if evolution.constraints else ()

    def drawbacks(self, problem: Problem) -> tuple[str, ...]:
        """Reasons to prefer another method that can solve the problem too.

        Ridge functions in two dimensions converge slowly, but they are the only basis for fields with bounds, and for
        fields that are periodic while others are not.
        """
        stated = problem.domain.dim > 2 and not problem.obstacles
        ridges = stated and discretisation(evolution_form(problem)) is FeatureDiscretisation
        if ridges and not problem.bounds and not problem.pairings:
            return ("space cannot be split along its axes, where cells are better",)
        if corner_jumps(problem):
            return ("prescribed values jump at a corner, where one basis for all of space converges slowly",)
        return ()

    def solve(
        self,
        problem: Problem,
        tol: float,
        rng: np.random.Generator,
        monitor: Monitor,
        why: str,
        like: SpaceTimeSolution | None = None,
    ) -> Solution:
        """The solution to a relative L² error of about ``tol``, or the best that was found, with its estimate.

        like : the solution of a similar problem, whose length scales replace the first iterations
        """
        flow = flow_of(problem) if problem.obstacles else None
        evolution = evolution_form(problem) if flow is None else flow.evolution
        step_limit = data_step_limit(evolution, tol)
        settings = IterationSettings(tol, self.tuning, monitor, step_limit, self.integrator, self.events, self.width)
        settings = replace(
            settings, keep=lambda make: monitor.keep(lambda *end: self._solution(problem, make(*end), monitor, why))
        )
        # the matrices of one space dimension are too small for threads: two were measured to take twice as long as one
        with one_thread(evolution.domain.space.dim == 1):
            kind = self._kind(evolution)
            self._refuse_unused(kind)
            if flow is not None and self.windows is not None:
                raise InputError(f"windows is {self.windows}, but an incompressible flow has one basis; leave it out")
            windows = self.windows if kind is FeatureDiscretisation else self.windows or 1

            def make(form: Evolution, own: IterationSettings) -> Discretisation:
                return (
                    _prepared(kind, form, own, rng, like)
                    if flow is None
                    else TensorDiscretisation(form, own, rng, flow)
                )

            result = solve_in_time(evolution, settings, make, windows)
            in_modes = result.best.segments[0].system.basis_kind == "fourier"
            if evolution.parities is not None and in_modes and result.status in UNRESOLVED:
                kind = between_walls(evolution)
                result = better(result, solve_in_time(evolution, keeping(result, settings), make, 1))
        return self._solution(problem, result, monitor, why)

    def model(self, request: ModelRequest) -> ForwardModel | None:
        """The model of a solution by this method, with its tuning and integrator; None where an unknown changes the
        basis in space."""
        return LinesModel.of(request, self.tuning, self.integrator or "RadauIIA")

    def _kind(self, evolution: Evolution) -> DiscretisationType:
        """The discretisation; settings that only random features have ask for these."""
        wished = self.width is not None or self.windows is not None or self.integrator in ("Radau", "BDF")
        return between_walls(evolution) if wished and not evolution.problem.periodic else discretisation(evolution)

    def _refuse_unused(self, kind: DiscretisationType) -> None:
        for key in ("width", "windows") if kind is FourierDiscretisation else ():
            if getattr(self, key) is not None:
                raise InputError(
                    f"{key} is {getattr(self, key)}, but a periodic problem has Fourier modes; leave it out"
                )
        if kind is not FourierDiscretisation and self.integrator == "ETDRK4":
            raise InputError("integrator is 'ETDRK4', which is for periodic problems; take 'RadauIIA' or leave it out")
        if kind is not FeatureDiscretisation and self.integrator in ("Radau", "BDF"):
            raise InputError(
                f"integrator is {self.integrator!r}, which needs the Jacobian as a matrix; for this problem take "
                "'RadauIIA' or 'DOP853'"
            )

    def _solution(self, problem: Problem, result: LinesResult, monitor: Monitor, why: str) -> Solution:
        solution = result.best
        system, trajectory = solution.segments[0].system, solution.segments[0].trajectory
        first = trajectory.times[0]
        growth = float(system.fastest_growth(first, trajectory(np.array([first]))[:, 0]))
        history = LinesHistory(result.iterations, growth, solution.events, None if solution.whole else solution.end)
        _warn_of_growth(result, growth)
        losses, held_out = _residuals(problem, solution, HURRIED if result.status.by_caller else HELD_OUT)
        status, detail = _judged(result, held_out, self.tuning)
        kind = f"method of lines, {system.label}"
        return Solution(
            problem=problem, fields=problem.fields, function=solution, status=status, detail=detail,
            estimate=result.estimate, held_out=held_out, losses=losses,
            integrals=loss_integrals(problem, losses),
            history=history, method=Choice(self.name, kind, why), seconds=monitor.elapsed,
        )  # fmt: skip


def _prepared(
    kind: DiscretisationType,
    evolution: Evolution,
    settings: IterationSettings,
    rng: np.random.Generator,
    like: SpaceTimeSolution | None,
) -> Discretisation:
    """A discretisation that is ready for its first iteration."""
    made = kind(evolution, settings, rng)
    if (
        isinstance(made, FourierDiscretisation)
        and evolution.parities is not None
        and (made.rough or made.equations.stiff)
    ):
        # modes do not resolve kinks; varying diffusion is stiff, and the tensor-product basis has a Jacobian for it
        made = between_walls(evolution)(evolution, settings, rng)
    alike = like is not None and len(like.segments) == 1 and like.evolution.domain.time == evolution.domain.time
    same = like is not None and BASIS_KINDS[type(made)] == like.segments[0].system.basis_kind
    if like is not None and alike and same and not isinstance(made, FourierDiscretisation):
        made.adapt(like, False)
        made.tolerances = tuple(tol for tol in made.tolerances if tol <= settings.tol)
    return made


def _judged(result: LinesResult, held_out: Mapping[str, float], tuning: LinesTuning) -> tuple[Status, str]:
    """The status after the residual check, in which agreement fails where an equation or condition is violated."""
    worst = max(held_out, key=lambda name: held_out[name], default="")
    if result.status.converged and worst and held_out[worst] > tuning.residual_tolerance:
        return (
            Status.RESIDUAL_TOO_LARGE,
            f"the iterations agree, but leave a relative residual of {held_out[worst]:.1e} in {worst!r}",
        )
    return result.status, result.detail


def discretisation(evolution: Evolution) -> DiscretisationType:
    """A Fourier basis where all of space is periodic, or has an odd or even periodic extension."""
    fourier = evolution.walls is None and fourier_applies(evolution)
    return FourierDiscretisation if fourier else between_walls(evolution)


def between_walls(evolution: Evolution) -> DiscretisationType:
    """A tensor-product basis on boxes whose conditions fit, ridge functions elsewhere.

    Ridge functions keep the weak form, which a field that may touch a declared bound needs.
    """
    problem, space = evolution.problem, evolution.domain.space
    if evolution.walls is not None:
        return TensorDiscretisation
    forced = bool(problem.periodic) or space.dim > 2
    return TensorDiscretisation if tensor_fits(evolution) and (forced or not problem.bounds) else FeatureDiscretisation


def tensor_fits(evolution: Evolution) -> bool:
    """Whether space is a box of two or three dimensions whose sides each have conditions along their normals."""
    space = evolution.domain.space
    box = isinstance(space, Box) and 2 <= space.dim <= MOST_DIMENSIONS
    return box and all(wall_rows(evolution, name) is not None for name in evolution.orders)


def _residuals(problem: Problem, solution: SpaceTimeSolution, count: int) -> tuple[dict[str, float], dict[str, float]]:
    """Equation → mean square of its residual at fresh points; name → relative held-out residual of every term."""
    if solution.whole:
        return held_out_residuals(problem, solution, count=count)
    points = check_points(solution.evolution, solution.trajectory.reliable, count)
    losses = mean_squares(problem, solution, points)
    sizes = {}  # nothing is known beyond the last time: residuals are compared with the rates up to there
    for term in problem.interior:
        rates = jets_of(solution, problem.fields, points, [jet for jet in term.expression.jets if jet.index[0]])
        sizes[term.name] = sum(float(np.mean(rate**2)) for rate in rates.values())
    return losses, {name: (loss / max(sizes[name], 1e-300)) ** 0.5 for name, loss in losses.items()}


def _warn_of_growth(result: LinesResult, growth: float) -> None:
    """Warn of growing modes where iterations do not agree or end early; the solution itself may well grow."""
    duration = result.best.end - result.best.start  # which a blow-up has shortened
    disagree = (Status.DISAGREE, Status.STALLED, Status.UNDETERMINED)
    suspect = result.status in (*disagree, Status.BLOW_UP, Status.INTEGRATOR)
    if suspect and growth * duration > ALARMING_GROWTH:
        message = (
            f"modes of the semi-discrete system grow like exp({growth:.3g} t) and may spoil the result; if they grow "
            "faster with more features, the problem is ill-posed, like diffusion backwards in time"
        )
        warnings.warn(message, GrowthWarning, stacklevel=5)


@dataclass(frozen=True)
class LinesHistory:
    """The history of the method of lines.

    iterations : what each used, and its difference to the one before
    fastest_growth : of a mode at the start, per unit of time
    events : name → times; known_until : the last time reached, None where that is the end
    """

    iterations: tuple[Iteration, ...]
    fastest_growth: float
    events: Mapping[str, tuple[float, ...]]
    known_until: float | None = None

    advice = "a larger tol, Lines(windows=…), or method=rp.Collocation() may help"

    def lines(self) -> list[str]:
        """The lines of the report."""
        rows = iteration_lines(self.iterations)
        rows.append(f"fastest growth of a mode at the start: exp({self.fastest_growth:.2g} t)")
        for name, times in self.events.items():
            rows.append(f"event {name!r} at t = " + (", ".join(f"{t:.8g}" for t in times) or "never"))
        if self.known_until is not None:
            rows.append(f"known up to t = {self.known_until:.6g} only")
        return rows

    def to_table(self) -> dict[str, Any]:
        """The history as JSON-able data."""
        return {
            "iterations": iteration_table(self.iterations),
            "fastest_growth": self.fastest_growth,
            "events": {name: list(times) for name, times in self.events.items()},
            "known_until": self.known_until,
        }

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> LinesHistory:
        iterations = iterations_from(Iteration, table["iterations"])
        events = {str(name): tuple(map(float, times)) for name, times in table["events"].items()}
        return cls(iterations, float(table["fastest_growth"]), events, table["known_until"])
