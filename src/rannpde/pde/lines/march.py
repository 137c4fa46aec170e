"""Marching in time, step by step, so that what was computed is never lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.integrate import BDF, DOP853, OdeSolver, Radau
from scipy.optimize import brentq

from rannpde.arrays import Array
from rannpde.pde.lines.periodic.exponential import ExponentialRungeKutta
from rannpde.pde.lines.periodic.kept import KeptStep
from rannpde.pde.lines.radau import Dense, Dynamics, Operator, Polynomial, RadauCollocation, TimeUp
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.monitor import Status
from rannpde.pde.problem.data import Clock

SCIPY = {"Radau": Radau, "BDF": BDF, "DOP853": DOP853}
INTEGRATORS = ("RadauIIA", "ETDRK4", *SCIPY)

MarchStep = Polynomial | KeptStep
Event = Callable[[float, Array], float]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The state as a function of time, piecewise polynomial: ``trajectory(times)`` is (n, M).

    status : why it ended before the last time, or None when it did not; detail : the same with its time
    found : event → times at which it vanished
    """

    times: tuple[float, ...]
    steps: tuple[MarchStep, ...]
    status: Status | None = None
    detail: str = ""
    found: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def end(self) -> float:
        return self.times[-1]

    @property
    def reliable(self) -> float:
        """The time up to which iterations are compared: the end, or a tenth before it where a singularity ended it."""
        return self.end if not self.broken else self.times[0] + 0.9 * (self.end - self.times[0])

    @property
    def broken(self) -> bool:
        """Whether a singularity, not the caller, ended the march."""
        return self.status in (Status.INTEGRATOR, Status.BLOW_UP)

    @property
    def last(self) -> Array:
        """The state at the end."""
        return self(np.array([self.end]))[:, 0]

    def __call__(self, times: Array, order: int = 0) -> Array:
        """The state, or its time derivative of that order, of the polynomials themselves: (n, M)."""
        times = np.asarray(times, dtype=float)
        values: Array | None = None
        for step, rows in self.by_step(times):
            part = step.derivative(times[rows], order)
            if values is None:
                values = np.empty((len(part), len(times)), dtype=part.dtype)
            values[:, rows] = part
        return np.empty((0, 0)) if values is None else values

    def by_step(self, times: Array) -> Iterator[tuple[MarchStep, Any]]:
        """Each step that some of the times (M,) fall in, and which of them."""
        place = np.clip(np.searchsorted(self.times, times, side="left") - 1, 0, len(self.steps) - 1)
        ordered = bool((np.diff(place) >= 0).all())
        for number in np.unique(place):
            rows: Any = np.flatnonzero(place == number)
            if ordered:  # as they are mostly: a slice is written much faster
                rows = slice(rows[0], rows[-1] + 1)
            yield self.steps[number], rows


@dataclass(frozen=True)
class March:
    """How to integrate.

    tol : of the dense output, relative to the size of the solution
    integrator : "RadauIIA" (collocation of an order chosen from tol), "ETDRK4" (for Fourier modes), or SciPy's
        "Radau", "BDF", "DOP853"
    events : name → function of (time, state) whose zeros are recorded; one with attribute ``terminal`` ends the march
    notice : called with (steps, time reached) after every step; an Status that it returns ends the march
    clock : the lengths of the data in time, which steps may not pass unseen
    caution : factor of the collocation's first step; another sequence of steps makes another error in time
    over : whether the time allowed is used up, asked in the middle of steps too
    grown : the share of its largest size that the solution has reached by a time, to which ``tol`` is relative there
    keep : what is kept of a step
    most_evaluations : of the rates; a march that would need more at its pace is given up
    """

    tol: float
    tuning: LinesTuning = field(default_factory=LinesTuning)
    clock: Clock = field(default_factory=Clock)
    integrator: str = "RadauIIA"
    events: Mapping[str, Event] = field(default_factory=dict)
    notice: Callable[[int, float], Status | None] | None = None
    caution: float = 1.0
    grown: Callable[[float], float] | None = None
    over: Callable[[], bool] = lambda: False
    keep: Callable[[Polynomial], MarchStep] = lambda step: step
    most_evaluations: float = np.inf

    def run(
        self,
        system: Dynamics,
        time: tuple[float, float],
        state: Array,
        *,
        stop: Callable[[Array], bool] | None = None,
        first_step: float | None = None,
    ) -> Trajectory:
        """From the state at time[0] to time[1], or until ``stop``, an event, a blow-up or the caller ends it."""
        times, steps = [time[0]], list[MarchStep]()
        found: dict[str, list[float]] = {name: [] for name in self.events}
        values = {name: event(time[0], state) for name, event in self.events.items()}
        status: Status | None = None
        detail = ""
        try:
            solver = self._solver(system, time, state, first_step)
            allowed = getattr(solver, "tol", self.tol)
            while solver.status == "running" and status is None:
                solver.max_step = self.clock.longest_step(solver.t)
                own = isinstance(solver, RadauCollocation | ExponentialRungeKutta)
                if self.grown is not None and own:
                    solver.tol = allowed * self.grown(solver.t)
                if steps and own:  # one step there must be, to give something back
                    solver.over = self.over
                message = solver.step()
                if solver.status == "failed":
                    status, detail = Status.INTEGRATOR, f"the integrator stopped at t = {solver.t:.6g}: {message}"
                    break
                times.append(float(solver.t))
                steps.append(self.keep(Polynomial.of(solver.dense_output())))
                status, detail = self._events(steps[-1], found, values)
                if status is Status.EVENT:
                    times[-1] = max(when[-1] for when in found.values() if when)
                if status is None:
                    status, detail = self._trouble(system, solver, len(steps))
                if status is None and solver.status == "running" and stop is not None and stop(solver.y):
                    break
        except TimeUp:
            status, detail = Status.BUDGET, f"{Status.BUDGET} at t = {times[-1]:.6g}"
        except KeyboardInterrupt:
            status, detail = Status.INTERRUPTED, f"interrupted at t = {times[-1]:.6g}"
        return Trajectory(tuple(times), tuple(steps), status, detail, {k: tuple(v) for k, v in found.items()})

    def _solver(self, system: Dynamics, time: tuple[float, float], state: Array, first_step: float | None) -> OdeSolver:
        def fun(t: float, y: Array) -> Array:
            return system.rates(np.array([t]), y[:, None])[:, 0]

        if self.integrator == "RadauIIA":
            solver = RadauCollocation(
                fun, time[0], state, time[1],
                dynamics=system, tol=self.tol, stages=stages_of(self.tol),
                control=self.tuning.steps, first_step=first_step,
            )  # fmt: skip
            solver.h *= self.caution
            return solver
        if self.integrator == "ETDRK4":
            exponential = ExponentialRungeKutta(
                fun, time[0], state, time[1],
                dynamics=system, tol=self.tol,  # type: ignore[arg-type]
                control=self.tuning.steps, first_step=first_step,
            )  # fmt: skip
            exponential.h *= self.caution
            return exponential
        # SciPy's integrators bound the error of a step, entry by entry, and errors add up over the steps
        tol = max(self.tuning.foreign_share * self.tol, 1e-13)
        options: dict[str, Any] = {"rtol": tol, "atol": tol * _per_entry(system, state)}
        if self.integrator != "DOP853":
            options["jac"] = lambda t, y: _matrix(system.jacobian(t, y))
        return SCIPY[self.integrator](fun, time[0], state, time[1], **options)

    def _events(
        self, step: MarchStep, found: dict[str, list[float]], values: dict[str, float]
    ) -> tuple[Status | None, str]:
        """Zeros of the events in the last step; the reason to end, if one of them is terminal."""
        ended: tuple[Status | None, str] = (None, "")
        for name, event in self.events.items():
            now = event(step.t, step(step.t))
            if values[name] * now < 0 or now == 0.0:
                root = brentq(lambda t, event=event: event(t, step(t)), step.t_old, step.t) if now else step.t
                found[name].append(float(root))
                if getattr(event, "terminal", False):
                    ended = Status.EVENT, f"event {name!r} at t = {root:.6g}"
            values[name] = now
        return ended

    def _trouble(self, system: Dynamics, solver: OdeSolver, steps: int) -> tuple[Status | None, str]:
        control = self.tuning.steps
        creeping = solver.step_size is not None and solver.step_size < control.creeping * abs(solver.t_bound - solver.t)
        if creeping and system.size(solver.y) > control.blow_up:
            grown = f"the solution grew {control.blow_up:.0e}-fold by t = {solver.t:.6g}: it seems to blow up there"
            return Status.BLOW_UP, grown
        ahead = abs(solver.t_bound - solver.t) / solver.step_size if solver.step_size else 0.0
        hopeless = steps >= control.sure_after and steps + ahead > control.most_steps
        share = solver.nfev / self.most_evaluations  # short steps at the start say nothing of later ones
        dear = share > 1.0 or (share > 0.3 and share * (1 + ahead / steps) > 3.0)
        if hopeless or dear or steps >= control.most_steps:
            return Status.INTEGRATOR, f"{steps} steps were not enough to go beyond t = {solver.t:.6g}"
        status = self.notice(steps, float(solver.t)) if self.notice is not None else None
        return status, f"{status} at t = {solver.t:.6g}" if status is not None else ""


def stages_of(tol: float) -> int:
    """Stages of the collocation: measured best for Burgers, KdV and the travelling wave."""
    return 3 if tol > 1e-5 else 5 if tol > 1e-6 else 7 if tol > 1e-9 else 9


def _per_entry(system: Dynamics, state: Array) -> float:
    """What a change of size 1 means for one entry of the state, for tolerances that count entries."""
    size = system.size(np.ones_like(state))
    return 1.0 / size if size > 0 else 1.0


def _matrix(operator: Operator) -> Array:
    if not isinstance(operator, Dense):
        raise TypeError("this integrator needs the Jacobian as a matrix; use 'RadauIIA' or 'DOP853'")
    return operator.matrix
