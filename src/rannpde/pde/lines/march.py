"""Marching in time: any solver of SciPy's family, step by step, so that what was computed is never lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.integrate import BDF, DOP853, DenseOutput, OdeSolution, OdeSolver, Radau
from scipy.optimize import brentq

from rannpde.errors import choose
from rannpde.pde.lines.radau import Dense, Dynamics, Operator, RadauCollocation

Array = np.ndarray

BLOW_UP = 1e6
"""A solution this many times its scale is called a blow-up."""
MOST_STEPS = 100_000

CALLER = ("stopped", "interrupted", "event")
"""How a reason begins when the caller, not the equation, ended the march."""

SCIPY = {"Radau": Radau, "BDF": BDF, "DOP853": DOP853}
INTEGRATORS = {"collocation": RadauCollocation, **SCIPY}


@dataclass(frozen=True, eq=False)
class Path:
    """The state as a function of time, piecewise polynomial: ``path(times)`` is (n, M).

    reason : why it ended before the last time, or "" when it did not
    found : event → times at which it vanished
    """

    times: tuple[float, ...]
    outputs: tuple[DenseOutput, ...]
    reason: str
    evaluations: int
    found: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        return len(self.outputs)

    @property
    def end(self) -> float:
        return self.times[-1]

    @property
    def reliable(self) -> float:
        """The time up to which passes are compared: the end, or a tenth before it where a march broke off."""
        return self.end if not self.broken else self.times[0] + 0.9 * (self.end - self.times[0])

    @property
    def broken(self) -> bool:
        """Whether a singularity, not the caller, ended the march."""
        return bool(self.reason) and not self.reason.startswith(CALLER)

    @property
    def last(self) -> Array:
        """The state at the end."""
        return self(np.array([self.end]))[:, 0]

    def __call__(self, times: Array) -> Array:
        return OdeSolution(self.times, self.outputs)(times)


Event = Callable[[float, Array], float]


@dataclass(frozen=True)
class March:
    """How to integrate.

    tol : of the dense output, relative to the size of the solution
    integrator : "collocation" (Radau IIA of an order chosen from tol), or SciPy's "Radau", "BDF", "DOP853"
    events : name → function of (time, state) whose zeros are recorded; one with attribute ``terminal`` ends the march
    progress : called with the time reached after every step
    caution : factor of the collocation's first step; another sequence of steps makes another error in time
    """

    tol: float
    integrator: str = "collocation"
    events: Mapping[str, Event] = field(default_factory=dict)
    progress: Callable[[float], None] | None = None
    caution: float = 1.0

    def __post_init__(self) -> None:
        choose("integrator", self.integrator, INTEGRATORS)

    @property
    def stages(self) -> int:
        """Stages of the collocation: measured best for Burgers, KdV and the travelling wave."""
        return 3 if self.tol > 1e-5 else 5 if self.tol > 1e-6 else 7 if self.tol > 1e-9 else 9

    def run(
        self,
        system: Dynamics,
        time: tuple[float, float],
        state: Array,
        *,
        stop: Callable[[Array], bool] | None = None,
        first_step: float | None = None,
    ) -> Path:
        """From the state at time[0] to time[1], or until ``stop``, an event, a blow-up or an interruption ends it."""
        solver = self._solver(system, time, state, first_step)
        times, outputs, reason = [time[0]], [], ""
        found: dict[str, list[float]] = {name: [] for name in self.events}
        values = {name: event(time[0], state) for name, event in self.events.items()}
        try:
            while solver.status == "running" and not reason:
                message = solver.step()
                if solver.status == "failed":
                    reason = f"the integrator stopped at t = {solver.t:.6g}: {message}"
                    break
                times.append(float(solver.t))
                outputs.append(solver.dense_output())
                ended = self._note_events(outputs[-1], found, values)
                reason = ended or _trouble(system, solver, len(outputs), stop)
                if self.progress is not None:
                    self.progress(float(solver.t))
        except KeyboardInterrupt:
            reason = f"interrupted at t = {times[-1]:.6g}"
        return Path(tuple(times), tuple(outputs), reason, solver.nfev, {k: tuple(v) for k, v in found.items()})

    def _solver(self, system: Dynamics, time: tuple[float, float], state: Array, first_step: float | None) -> OdeSolver:
        def fun(t: float, y: Array) -> Array:
            return system.rates(np.array([t]), y[:, None])[:, 0]

        if self.integrator == "collocation":
            solver = RadauCollocation(
                fun, time[0], state, time[1], dynamics=system, tol=self.tol, stages=self.stages, first_step=first_step
            )
            solver.h *= self.caution
            return solver
        options: dict[str, Any] = {"rtol": max(self.tol, 1e-13), "atol": self.tol * _per_entry(system, state)}
        if self.integrator != "DOP853":
            options["jac"] = lambda t, y: _matrix(system.jacobian(t, y))
        return SCIPY[self.integrator](fun, time[0], state, time[1], **options)

    def _note_events(self, output: DenseOutput, found: dict[str, list[float]], values: dict[str, float]) -> str:
        """Zeros of the events in the last step; the reason to end, if one of them is terminal."""
        ended = ""
        for name, event in self.events.items():
            now = event(output.t, output(output.t))
            if values[name] * now < 0 or now == 0.0:
                root = brentq(lambda t, event=event: event(t, output(t)), output.t_old, output.t) if now else output.t
                found[name].append(float(root))
                if getattr(event, "terminal", False):
                    ended = f"event {name!r} at t = {root:.6g}"
            values[name] = now
        return ended


def _trouble(system: Dynamics, solver: OdeSolver, steps: int, stop: Callable[[Array], bool] | None) -> str:
    if system.size(solver.y) > BLOW_UP:
        return f"the solution grew {BLOW_UP:.0e}-fold by t = {solver.t:.6g}: it seems to blow up there"
    if steps >= MOST_STEPS:
        return f"{steps} steps were not enough to go beyond t = {solver.t:.6g}"
    return "stopped" if stop is not None and solver.status == "running" and stop(solver.y) else ""


def _per_entry(system: Dynamics, state: Array) -> float:
    """What a change of size 1 means for one entry of the state, for tolerances that count entries."""
    size = system.size(np.ones_like(state))
    return 1.0 / size if size > 0 else 1.0


def _matrix(operator: Operator) -> Array:
    if not isinstance(operator, Dense):
        raise TypeError("this integrator needs the Jacobian as a matrix; use 'collocation' or 'DOP853'")
    return operator.matrix
