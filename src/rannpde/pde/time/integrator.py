"""Time integration step by step, so that what was computed is never lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.integrate import BDF, DOP853, OdeSolver, Radau
from scipy.optimize import brentq

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.monitor import Status, status_of
from rannpde.pde.time.control import StepControl
from rannpde.pde.time.dense_output import DenseStep, LegendreStep
from rannpde.pde.time.dynamics import DenseJacobian, Dynamics, JacobianOperator
from rannpde.pde.time.exponential import ExponentialRungeKutta
from rannpde.pde.time.radau import RadauCollocation
from rannpde.pde.time.stability import PerturbationGrowth, PropagatedDefect
from rannpde.pde.time.tableau import stages_for
from rannpde.pde.time.trajectory import Event, Trajectory
from rannpde.pde.tolerance import COMPARABLE

SCIPY = {"Radau": Radau, "BDF": BDF, "DOP853": DOP853}
INTEGRATORS = ("RadauIIA", "ETDRK4", *SCIPY)


def unlimited(time: float) -> float:
    """No limit of steps."""
    return np.inf


@dataclass(frozen=True)
class TimeIntegrator:
    """The settings of a time integration, which ``run`` performs.

    tol : of the dense output, relative to the size of the solution
    control : the settings of step sizes and of Newton's method
    integrator : "RadauIIA" (collocation of an order chosen from tol), "ETDRK4" (for SplitDynamics), or SciPy's
        "Radau", "BDF", "DOP853"
    events : name → function of (time, state) whose zeros are recorded; one with attribute ``terminal`` ends it
    notice : called with (steps, time reached) after every step; a Status that it returns ends the integration
    longest_step : time → the longest step that may begin there, so that short features of the data are not passed over
    first_step_factor : factor of the first step, with which two integrations take different steps and make different
        errors in time
    amplitude : time, largest size so far → the share of its scale that the solution has by then, to which ``tol`` is
        relative
    store : a step → the form in which it is stored
    most_evaluations : evaluations of the rates at most; an integration that would need more at its pace is given up
    stages : number of stages of "RadauIIA"; the fastest one at ``tol`` unless given
    growth, defect : whether "RadauIIA" measures the growth of perturbations, and its error in time by the propagated
        defect
    """

    tol: float
    control: StepControl = field(default_factory=StepControl)
    longest_step: Callable[[float], float] = unlimited
    integrator: str = "RadauIIA"
    events: Mapping[str, Event] = field(default_factory=dict)
    notice: Callable[[int, float], Status | None] | None = None
    first_step_factor: float = 1.0
    amplitude: Callable[[float, float], float] | None = None
    store: Callable[[LegendreStep], DenseStep] = lambda step: step
    most_evaluations: float = np.inf
    stages: int | None = None
    growth: bool = False
    defect: bool = False

    def run(
        self,
        system: Dynamics,
        time: tuple[float, float],
        state: Array,
        *,
        stop: Callable[[Array], bool] | None = None,
        first_step: float | None = None,
    ) -> Trajectory:
        """Integrate from the state at time[0] to time[1], or until ``stop``, an event, a blow-up or the caller ends
        it."""
        times, steps = [time[0]], list[DenseStep]()
        roots: dict[str, list[float]] = {name: [] for name in self.events}
        values = {name: event(time[0], state) for name, event in self.events.items()}
        status: Status | None = None
        detail = ""
        sizes = [system.size(state)]
        largest = sizes[0]
        collocation = self.integrator == "RadauIIA"
        growth = PerturbationGrowth() if self.growth and collocation else None
        defect = PropagatedDefect() if self.defect and collocation else None
        try:
            solver = self._solver(system, time, state, first_step)
            if collocation:
                solver.observers = [one for one in (growth, defect) if one is not None]
            own, allowed = self.integrator not in SCIPY, getattr(solver, "tol", self.tol)
            while solver.status == "running" and status is None:
                solver.max_step = self.longest_step(solver.t)
                if own:  # relative to the size that a solution has reached: it may begin small and grow
                    known = self.amplitude
                    solver.tol = allowed * (max(largest, 1.0) if known is None else known(solver.t, largest))
                checkpoint()
                message = solver.step()
                if solver.status == "failed":
                    status, detail = Status.INTEGRATOR, f"the integrator stopped at t = {solver.t:.6g}: {message}"
                    if blows_up(times, sizes, self.control.blow_up**0.5):  # steps end before a pole of high order
                        status, detail = Status.BLOW_UP, f"the solution seems to blow up at t = {solver.t:.6g}"
                    break
                times.append(float(solver.t))
                steps.append(self.store(LegendreStep.of(solver.dense_output())))
                status, detail = self._events(steps[-1], roots, values)
                if status is Status.EVENT:
                    times[-1] = max(when[-1] for when in roots.values() if when)
                if status is None:
                    sizes.append(system.size(solver.y))
                    largest = max(largest, sizes[-1])
                    status, detail = self._trouble(solver, times, sizes)
                if status is None and solver.status == "running" and stop is not None and stop(solver.y):
                    break
        except KeyboardInterrupt as stop:
            if not steps:
                raise
            status, detail = status_of(stop)
            detail = detail or f"{status} at t = {times[-1]:.6g}"
        return Trajectory(
            tuple(times), tuple(steps), status, detail, {k: tuple(v) for k, v in roots.items()},
            growth=None if growth is None else growth.largest, error=None if defect is None else defect.error,
        )  # fmt: skip

    def _solver(self, system: Dynamics, time: tuple[float, float], state: Array, first_step: float | None) -> OdeSolver:
        def fun(t: float, y: Array) -> Array:
            return system.rates(np.array([t]), y[:, None])[:, 0]

        if self.integrator == "RadauIIA":
            solver = RadauCollocation(
                fun, time[0], state, time[1],
                dynamics=system, tol=self.tol, stages=self.stages or stages_for(self.tol),
                control=self.control, first_step=first_step,
            )  # fmt: skip
            solver.h *= self.first_step_factor
            return solver
        if self.integrator == "ETDRK4":
            exponential = ExponentialRungeKutta(
                fun, time[0], state, time[1],
                dynamics=system, tol=self.tol,  # type: ignore[arg-type]
                control=self.control, first_step=first_step,
            )  # fmt: skip
            exponential.h *= self.first_step_factor
            return exponential
        # SciPy's integrators bound the error of a step, entry by entry, and errors add up over the steps
        tol = max(self.control.scipy_share * self.tol, 1e-13)
        options: dict[str, Any] = {"rtol": tol, "atol": tol * _per_entry(system, state)}
        if self.integrator != "DOP853":
            options["jac"] = lambda t, y: _matrix(system.jacobian(t, y))
        return SCIPY[self.integrator](fun, time[0], state, time[1], **options)

    def _events(
        self, step: DenseStep, roots: dict[str, list[float]], values: dict[str, float]
    ) -> tuple[Status | None, str]:
        """Zeros of the events in the last step; the reason to end, if one of them is terminal."""
        ended: tuple[Status | None, str] = (None, "")
        for name, event in self.events.items():
            now = event(step.t, step(step.t))
            if values[name] * now < 0 or now == 0.0:
                root = brentq(lambda t, event=event: event(t, step(t)), step.t_old, step.t) if now else step.t
                roots[name].append(float(root))
                if getattr(event, "terminal", False):
                    ended = Status.EVENT, f"event {name!r} at t = {root:.6g}"
            values[name] = now
        return ended

    def _trouble(self, solver: OdeSolver, times: list[float], sizes: list[float]) -> tuple[Status | None, str]:
        control, steps = self.control, len(times) - 1
        small = solver.step_size is not None and solver.step_size < control.blow_up**-0.5 * abs(
            solver.t_bound - solver.t
        )
        vast = not sizes[-1] < control.blow_up**10  # whatever the steps, it soon leaves the range of numbers
        if vast or (small and blows_up(times, sizes, control.blow_up)):
            detail = f"the solution grew {sizes[-1]:.0e}-fold by t = {solver.t:.6g}: it seems to blow up there"
            return Status.BLOW_UP, detail
        ahead = abs(solver.t_bound - solver.t) / solver.step_size if solver.step_size else 0.0
        slow = steps >= control.judged_after and steps + ahead > control.most_steps
        share = solver.nfev / self.most_evaluations  # short steps at the start do not predict later ones
        costly = share > 1.0 or (share > COMPARABLE and share * (1 + ahead / steps) > 3)
        if slow or costly or steps >= control.most_steps:
            return Status.INTEGRATOR, f"{steps} steps were not enough to go beyond t = {solver.t:.6g}"
        status = self.notice(steps, float(solver.t)) if self.notice is not None else None
        return status, f"{status} at t = {solver.t:.6g}" if status is not None else ""


def blows_up(times: Sequence[float], sizes: Sequence[float], limit: float) -> bool:
    """Whether a solution has grown beyond a limit, relative to its scale, and faster than exponentially.

    The growth from 1 to S takes twice the time of that from √S to S where it is exponential, however large S is; a
    solution that becomes infinite at a finite time takes ever less time for the same factor. Growth beyond the tenth
    power of the limit, of whatever kind, soon leaves the range of floating-point numbers.

    >>> from math import exp
    >>> moments = [0.1 * k for k in range(200)]
    >>> exponential, singular = [exp(t) for t in moments], [1 / (19.9000001 - t) for t in moments]
    >>> blows_up(moments, exponential, 1e6), blows_up(moments, singular, 1e6)
    (False, True)
    """
    largest = sizes[-1]
    if not largest > limit:
        return False
    if not largest < limit**10:
        return True
    first, middle = (max(k for k, size in enumerate(sizes) if size <= level or k == 0) for level in (1.0, largest**0.5))
    return times[-1] - times[middle] < 0.5 * (times[middle] - times[first])


def _per_entry(system: Dynamics, state: Array) -> float:
    """The change of each entry of the state that has size 1, for integrators with tolerances for single entries."""
    size = system.size(np.ones_like(state))
    return 1.0 / size if size > 0 else 1.0


def _matrix(operator: JacobianOperator) -> Array:
    if not isinstance(operator, DenseJacobian):
        raise TypeError("this integrator needs the Jacobian as a matrix; use 'RadauIIA' or 'DOP853'")
    return operator.matrix
