"""Lines: the method of lines as a choice of settings, and its entry."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rannpde.domains.domain import Ball, Box, SpaceTime
from rannpde.errors import InputError, choose, positive_integer, require
from rannpde.pde.lines.evolved import Evolved, ProjectedSystem
from rannpde.pde.lines.features import AdaptedFeatures
from rannpde.pde.lines.iterations import (
    Discretisation,
    FieldEvent,
    LinesIteration,
    Outcome,
    Setting,
    check_points,
    solve_in_time,
)
from rannpde.pde.lines.march import INTEGRATORS
from rannpde.pde.lines.periodic.equations import Equations
from rannpde.pde.lines.periodic.iterations import FourierModes
from rannpde.pde.lines.periodic.spectral import Spectral
from rannpde.pde.lines.products.incompressible import flow_of
from rannpde.pde.lines.products.iterations import AdaptedProducts
from rannpde.pde.lines.products.tensor import Products
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.data import Clock
from rannpde.pde.problem.evolution import Evolution, evolution_form, faces_of
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import held_out_residual, jets_of, mean_squares
from rannpde.pde.solution import Choice, Solution
from rannpde.threads import one_thread

MOST_DIMENSIONS = 3
"""Of boxes: products in 4-D would hold too many unknowns. Ridges, for balls, carry too few digits in 3-D."""
Kind = type[FourierModes] | type[AdaptedFeatures] | type[AdaptedProducts]
KINDS: dict[Kind, str] = {
    FourierModes: "Fourier modes",
    AdaptedFeatures: "adapted random features",
    AdaptedProducts: "products of adapted random features",
}
UNRESOLVED = (Status.DISAGREE, Status.STALLED, Status.INTEGRATOR)
"""Endings after which other functions of space may do better than modes between mirrors."""
ALARMING = 30.0
"""exp(30) is twelve digits lost: growth by this much within the time needs a word when iterations do not agree."""


class GrowthWarning(UserWarning):
    """The semi-discrete system has modes that grow faster than the solution itself can explain."""


@dataclass(frozen=True)
class Lines:
    """The method of lines: features in space that adapt themselves to the solution, a march of high order in time.

    Periodic problems use Fourier modes, boxes between mirrors sines and cosines, other boxes in two and three
    dimensions products of random features of each coordinate, all else random features of all coordinates. A blow-up,
    an interruption or a terminal event ends the march; what was computed until then is the result, with the reason.

    width : features of every iteration (of every axis, for products) instead of the choice from ``tol``; not for
        periodic problems
    windows : intervals of time with a basis of their own; None takes one unless the solution travels too far for it;
        not for periodic problems
    integrator : "RadauIIA" (collocation of an order chosen from ``tol``), "ETDRK4" (the linear part exactly, for
        periodic problems), or SciPy's "Radau", "BDF" or "DOP853"; None takes one of the first two
    events : name → function of (t, u), u being a function of points (M, d) of space; the times of its zeros are in
        ``solution.events``, and one with an attribute ``terminal`` ends the march
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
        found = list(problem.obstacles)
        if isinstance(problem.domain, SpaceTime):
            if found and flow_of(problem) is not None:
                return ()
            space, periodic = problem.domain.space, problem.periodic
            if not isinstance(space, Box | Ball):
                found.append("space is neither a box nor a ball")
            most = MOST_DIMENSIONS if isinstance(space, Box) else 2
            if space.dim > most:
                found.append(f"space has {space.dim} dimensions, more than {most}")
            elif not found and (0 < len(periodic) < space.dim or space.dim > 2) and not self._fits(problem):
                found.append("a boundary condition holds other derivatives than along its normal, or varies")
            elif not found:
                found += self._kept_constraints(problem)
        return tuple(found)

    @staticmethod
    def _fits(problem: Problem) -> bool:
        """Whether Fourier modes or products can carry it, the only ways in 3-D and with some coordinates periodic."""
        whole = set(problem.periodic) == set(problem.domain.names[1:])
        return whole or products_fit(evolution_form(problem))

    @staticmethod
    def _kept_constraints(problem: Problem) -> tuple[str, ...]:
        """Why fields without a time derivative cannot be eliminated."""
        evolution = evolution_form(problem)
        return Equations.of(evolution).reasons() if evolution.constraints else ()

    def drawbacks(self, problem: Problem) -> tuple[str, ...]:
        """Reasons to prefer another method that can solve the problem too.

        Ridges across a space of two dimensions converge slowly; a field with bounds, or one that is periodic beside
        others that are not, has only them.
        """
        stated = problem.domain.dim > 2 and not problem.obstacles
        ridges = stated and discretisation(evolution_form(problem)) is AdaptedFeatures
        if ridges and not problem.bounds and not problem.pairings:
            return ("space cannot be split along its axes, where cells are better",)
        return ()

    def solve(
        self,
        problem: Problem,
        tol: float,
        rng: np.random.Generator,
        monitor: Monitor,
        why: str,
        like: Evolved | None = None,
    ) -> Solution:
        """The solution to a relative L² error of about ``tol``, or the best that was found, with its estimate.

        like : a solution of a problem near by, which tells how fine this one is, so that no early iterations are needed
        """
        flow = flow_of(problem) if problem.obstacles else None
        evolution = evolution_form(problem) if flow is None else flow.evolution
        clock = Clock.of(evolution, self.tuning.steps.lengths_per_step)
        setting = Setting(tol, self.tuning, monitor, clock, self.integrator, self.events, self.width)
        # the matrices of one space dimension are too small for threads: two were measured to take twice as long as one
        with one_thread(evolution.domain.space.dim == 1):
            kind = self._kind(evolution)
            self._refuse_unused(kind)
            if flow is not None and self.windows is not None:
                raise InputError(f"windows is {self.windows}, but an incompressible flow has one basis; leave it out")
            windows = self.windows if kind is AdaptedFeatures else self.windows or 1

            def make(form: Evolution, own: Setting) -> Discretisation:
                return _made(kind, form, own, rng, like) if flow is None else AdaptedProducts(form, own, rng, flow)

            outcome = solve_in_time(evolution, setting, make, windows)
            in_modes = _kind_of(outcome.solution.stretches[0].system) is FourierModes
            if evolution.mirrors is not None and in_modes and outcome.status in UNRESOLVED:
                kind = between_walls(evolution)
                outcome = min(outcome, solve_in_time(evolution, setting, make, 1), key=lambda one: one.estimate)
        return self._solution(problem, outcome, monitor, why)

    def _kind(self, evolution: Evolution) -> Kind:
        """Settings that only features have are a wish for them."""
        wished = self.width is not None or self.windows is not None or self.integrator in ("Radau", "BDF")
        return between_walls(evolution) if wished and not evolution.problem.periodic else discretisation(evolution)

    def _refuse_unused(self, kind: Kind) -> None:
        for key in ("width", "windows") if kind is FourierModes else ():
            if getattr(self, key) is not None:
                raise InputError(
                    f"{key} is {getattr(self, key)}, but a periodic problem has Fourier modes; leave it out"
                )
        if kind is not FourierModes and self.integrator == "ETDRK4":
            raise InputError("integrator is 'ETDRK4', which is for periodic problems; take 'RadauIIA' or leave it out")
        if kind is not AdaptedFeatures and self.integrator in ("Radau", "BDF"):
            raise InputError(
                f"integrator is {self.integrator!r}, which needs the Jacobian as a matrix; {KINDS[kind]} have "
                "'RadauIIA' or 'DOP853'"
            )

    def _solution(self, problem: Problem, outcome: Outcome, monitor: Monitor, why: str) -> Solution:
        found = outcome.solution
        system, path = found.stretches[0].system, found.stretches[0].path
        growth = float(system.fastest_growth(path.times[0], system.initial_state()))
        history = LinesHistory(outcome.iterations, growth, found.events, None if found.whole else found.end)
        _warn_of_growth(outcome, growth)
        losses, held_out = _residuals(problem, found)
        status, detail = _judged(outcome, held_out, self.tuning)
        kind = f"method of lines, {_told(system)}"
        measures = {term.name: term.measure for term in problem.interior}
        return Solution(
            problem=problem, fields=problem.fields, function=found, status=status, detail=detail,
            estimate=outcome.estimate, held_out=held_out, losses=losses,
            integrals={name: loss * measures[name] for name, loss in losses.items()},
            history=history, method=Choice(self.name, kind, why), seconds=monitor.elapsed,
        )  # fmt: skip


def _made(
    kind: Kind, evolution: Evolution, setting: Setting, rng: np.random.Generator, like: Evolved | None
) -> Discretisation:
    """Ready for its first iteration."""
    made = kind(evolution, setting, rng)
    if isinstance(made, FourierModes) and evolution.mirrors is not None and (made.rough or made.equations.stiff):
        # what kinks is no matter of modes; diffusion that varies is stiff, which products have a Jacobian for
        made = between_walls(evolution)(evolution, setting, rng)
    alike = like is not None and len(like.stretches) == 1 and like.evolution.domain.time == evolution.domain.time
    same = like is not None and _kind_of(like.stretches[0].system) is type(made)
    if like is not None and alike and same and not isinstance(made, FourierModes):
        made.learn(like, False)
        made.tolerances = tuple(tol for tol in made.tolerances if tol <= setting.tol)
    return made


def _kind_of(system: ProjectedSystem) -> Kind:
    if isinstance(system, Spectral):
        return FourierModes
    return AdaptedProducts if isinstance(system, Products) else AdaptedFeatures


def _told(system: ProjectedSystem) -> str:
    """The functions of space in words."""
    if isinstance(system, Spectral) and system.modes.parities:
        return "sines and cosines, whose mirrors the walls are"
    return KINDS[_kind_of(system)]


def _judged(outcome: Outcome, held_out: Mapping[str, float], tuning: LinesTuning) -> tuple[Status, str]:
    """How it ended; agreement is not believed where something that was stated does not hold at all."""
    worst = max(held_out, key=lambda name: held_out[name], default="")
    if outcome.status.converged and worst and held_out[worst] > tuning.vetoed:
        return (
            Status.VETOED,
            f"the iterations agree, but leave a relative residual of {held_out[worst]:.1e} in {worst!r}",
        )
    return outcome.status, outcome.detail


def discretisation(evolution: Evolution) -> Kind:
    """Fourier modes where all is periodic, or half of what is."""
    return FourierModes if evolution.walls is None and evolution.waves else between_walls(evolution)


def between_walls(evolution: Evolution) -> Kind:
    """Products on boxes whose conditions fit, ridges elsewhere.

    Ridges keep the weak form, which a field that may touch a declared bound needs.
    """
    problem, space = evolution.problem, evolution.domain.space
    if evolution.walls is not None:
        return AdaptedProducts
    forced = bool(problem.periodic) or space.dim > 2
    return AdaptedProducts if products_fit(evolution) and (forced or not problem.bounds) else AdaptedFeatures


def products_fit(evolution: Evolution) -> bool:
    """Whether space is a box of two or three dimensions whose sides each have conditions along their normals."""
    space = evolution.domain.space
    box = isinstance(space, Box) and 2 <= space.dim <= MOST_DIMENSIONS
    return box and all(faces_of(evolution, name) is not None for name in evolution.orders)


def _residuals(problem: Problem, found: Evolved) -> tuple[dict[str, float], dict[str, float]]:
    """Equation → mean square of its residual on fresh points; name → relative held-out residual of everything."""
    points = check_points(found.evolution, found.path.reliable, 1000)
    losses = mean_squares(problem, found, points)
    if found.whole:
        return losses, held_out_residual(problem, found)
    sizes = {}  # beyond the last time nothing is known: the rates up to there are what residuals are compared with
    for term in problem.interior:
        rates = jets_of(found, problem.fields, points, [jet for jet in term.expression.jets if jet.index[0]])
        sizes[term.name] = sum(float(np.mean(rate**2)) for rate in rates.values())
    return losses, {name: (loss / max(sizes[name], 1e-300)) ** 0.5 for name, loss in losses.items()}


def _warn_of_growth(outcome: Outcome, growth: float) -> None:
    """Growth is honest where the solution itself grows; it is suspect where iterations do not agree, or end early."""
    duration = outcome.solution.end - outcome.solution.start  # up to a blow-up, which no mode explains by then
    suspect = outcome.status in (Status.DISAGREE, Status.STALLED, Status.BLOW_UP, Status.INTEGRATOR)
    if suspect and growth * duration > ALARMING:
        message = (
            f"modes of the semi-discrete system grow like exp({growth:.3g} t) and may spoil the result; if they grow "
            "faster with more features, the problem is ill-posed, like diffusion backwards in time"
        )
        warnings.warn(message, GrowthWarning, stacklevel=5)


@dataclass(frozen=True)
class LinesHistory:
    """What only the method of lines can tell.

    iterations : what each used and how far it lay from the one before; fastest_growth : of a mode at the start, per
        time
    events : name → times; known_until : the last time reached, None where that is the end
    """

    iterations: tuple[LinesIteration, ...]
    fastest_growth: float
    events: Mapping[str, tuple[float, ...]]
    known_until: float | None = None

    advice = "a larger tol, Lines(windows=…), or method=rp.Collocation() may help"

    def lines(self) -> list[str]:
        """For the report."""
        told = [f"iteration {number}: {one}" for number, one in enumerate(self.iterations, start=1)]
        told.append(f"fastest growth of a mode at the start: exp({self.fastest_growth:.2g} t)")
        for name, times in self.events.items():
            told.append(f"event {name!r} at t = " + (", ".join(f"{t:.8g}" for t in times) or "never"))
        if self.known_until is not None:
            told.append(f"known up to t = {self.known_until:.6g} only")
        return told

    def to_table(self) -> dict[str, Any]:
        """As JSON-able data."""
        return {
            "iterations": [list(vars(one).values()) for one in self.iterations],
            "fastest_growth": self.fastest_growth,
            "events": {name: list(times) for name, times in self.events.items()},
            "known_until": self.known_until,
        }

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> LinesHistory:
        iterations = tuple(LinesIteration(*row) for row in table["iterations"])
        events = {str(name): tuple(map(float, times)) for name, times in table["events"].items()}
        return cls(iterations, float(table["fastest_growth"]), events, table["known_until"])
