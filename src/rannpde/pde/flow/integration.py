"""Integration in time of a flow on one mesh: Radau IIA for the index-2 system of velocities, traces and multipliers.

Radau IIA solves the constraints exactly at every stage, and keeps its order for velocities. Simplified Newton
iterations in the eigenvectors of the method give the stages of a step (Hairer & Wanner, Solving ODEs II, IV.8, VII.4).
Factorisations are the costly part: the tangent and the length of a step are kept as long as iterations contract.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.flow.semidiscrete import FactorisedFlow, FlowVector, SemiDiscreteFlow
from rannpde.pde.time.control import DEEPEST_LEVEL, StepControl, step_factor
from rannpde.pde.time.radau import LAST_STEP, SAME_STEP
from rannpde.pde.time.tableau import RadauTableau, lagrange_matrix, legendre_transform, truncation_estimate
from rannpde.pde.tolerance import ALGEBRA_SHARE, GAIN


@dataclass(frozen=True, eq=False)
class FlowTrajectory:
    """times (K + 1,) of the steps; streams (1 + K s, C, k) at the start and at every stage, traces (K s, T) at every
    stage, rates (K s, C, k) : ∂_t there; complete : whether the end was reached"""

    times: Array
    streams: Array
    traces: Array
    rates: Array
    complete: bool


@dataclass(eq=False)
class FlowIntegrator:
    """tol : of the error of a step, relative to the largest velocity so far; pressed : whether that of the pressure
    counts too; stop : whether to end early; on_step : called with the time and the number of steps"""

    flow: SemiDiscreteFlow
    tableau: RadauTableau
    tol: float
    pressed: bool = True
    stop: Callable[[], bool] = lambda: False
    on_step: Callable[[float, int], None] = lambda time, steps: None
    control: StepControl = field(default_factory=StepControl)
    tuning: CellsTuning = field(default_factory=CellsTuning)

    def run(self, stream: Array) -> FlowTrajectory:
        """Integrate from weights (C, k) at the start of the time."""
        flow, tableau = self.flow, self.tableau
        start, end = flow.evolution.interval
        self._tangent, self._factors, self._length = None, None, 0.0
        self._largest, self._pressures, self._slow = flow.norm(stream), 0.0, False
        time, length, wait = start, (end - start) / 2**self.tuning.first_step_level, 0
        times, streams, traces, rates = [start], [stream[None]], [], []
        last: tuple[Array, Array, float] | None = None
        while time < end and length > (end - start) / 2**DEEPEST_LEVEL:
            checkpoint()
            length = end - time if end - time < LAST_STEP * length else length
            step = self._step(time, length, stream, self._guess(stream, last, length))
            if step is None:
                if self._fresh == time:
                    length *= 0.5
                    wait = self.tuning.steps_per_factor
                self._tangent = None
                continue
            stages, around = step
            self._largest = max(self._largest, flow.norm(stages[-1]))
            allowed = self.tol * np.sqrt((end - start) / (time + length - start))
            errors = (self._error(stream, stages), self._pressure_error(around) if self.pressed else 0.0)
            orders = (len(tableau) + 1, len(tableau))
            factor = min(step_factor(allowed, *one, self.control.safety) for one in zip(errors, orders, strict=True))
            if max(errors) > allowed:
                length *= min(max(factor, self.control.shrink), GAIN)
                continue
            rates.append(np.tensordot(tableau.derivative, stages - stream, axes=1) / length)
            last = (np.concatenate([stream[None], stages]), around, length)
            stream, time = stages[-1], end if length == end - time else time + length
            times.append(time)
            streams.append(stages)
            traces.append(around)
            self.on_step(float(time), len(times) - 1)
            if self.stop() and time < end:
                break
            wait -= 1
            if factor < SAME_STEP[0] or (factor > 2 and wait <= 0):  # new factors cost as much as several iterations
                length *= min(factor, self.control.growth)
        return FlowTrajectory(
            np.array(times), np.concatenate(streams), np.concatenate([*traces, np.empty((0, flow.system.total))]),
            np.concatenate([*rates, np.empty((0, *flow.shape))]), time >= end,
        )  # fmt: skip

    def _guess(self, stream: Array, last: tuple[Array, Array, float] | None, length: float) -> tuple[Array, Array]:
        """Stages (s, C, k) and their traces (s, T): the last step's polynomials, continued."""
        nodes = self.tableau.nodes
        if last is None:
            return np.repeat(stream[None], len(nodes), axis=0), np.zeros((len(nodes), self.flow.system.total))
        before, around, past = last
        ahead = 1 + nodes * length / past
        stages = np.tensordot(lagrange_matrix(np.append(0.0, nodes), ahead, 0), before, axes=1)
        return stages, np.tensordot(lagrange_matrix(nodes, ahead, 0), around, axes=1)

    def _solvers(self, time: float, length: float, stages: Array, traces: Array) -> list[FactorisedFlow]:
        """Factors of A' + σM for all σ of the step; the tangent is taken in the middle of the guess."""
        if self._tangent is None or self._slow:
            middle = len(self.tableau) // 2
            here = FlowVector(stages[middle], traces[middle])
            self._tangent = self.flow.tangent(here, time + length * self.tableau.nodes[middle])
            self._factors, self._fresh = None, time
        if self._factors is None or self._length != length:
            shifts = [self.tableau.shift(k) / length for k in range(self.tableau.distinct)]
            self._factors = [self.flow.factorised(self._tangent, shift) for shift in shifts]
            self._length = length
        return self._factors

    def _step(
        self, time: float, length: float, stream: Array, guess: tuple[Array, Array]
    ) -> tuple[Array, Array] | None:
        """Stages (s, C, k) and traces (s, T) of a step; None where Newton's method does not converge."""
        tableau, flow = self.tableau, self.flow
        stages, traces = guess
        solvers = self._solvers(time, length, stages, traces)
        goal, before, few = ALGEBRA_SHARE * self.tol, np.inf, self.control.newton_iterations // 2
        for iteration in range(self.control.newton_iterations):
            left = self._residuals(time, length, stream, stages, traces)
            if left is None:
                return None
            change, moved = np.zeros_like(stages), np.zeros_like(traces)
            for k, solver in enumerate(solvers):
                part = solver.solve(FlowVector(*(tableau.to_eigenbasis(k, one) for one in left)))
                change -= tableau.from_eigenbasis(k, part.stream)
                moved -= tableau.from_eigenbasis(k, part.traces)
            stages, traces = stages + change, traces + moved
            size = max(flow.norm(one) for one in change) / max(self._largest, flow.norm(stages[-1]), 1e-300)
            if not np.isfinite(size):
                return None
            rate = size / before if iteration else 0.0
            self._slow = iteration >= few
            if size <= self.control.rounding or flow.evolution.form.linear:
                return stages, traces
            if iteration and rate < 1 and rate / (1 - rate) * size < goal:
                return stages, traces
            if not iteration and size <= goal:
                return stages, traces
            if iteration and rate**few * size > goal:  # a new tangent, or a shorter step, is faster
                return None
            before = size
        return None

    def _residuals(
        self, time: float, length: float, stream: Array, stages: Array, traces: Array
    ) -> tuple[Array, Array] | None:
        """The residuals of the equations of the stages, (s, C, k) and (s, T)."""
        flow, tableau = self.flow, self.tableau
        rates = np.tensordot(tableau.derivative, stages - stream, axes=1) / length
        residuals = flow.residuals(time + length * tableau.nodes, FlowVector(stages, traces))
        own = residuals.stream + flow.weighted(rates)
        return (own, residuals.traces) if np.isfinite(own).all() else None

    def _error(self, stream: Array, stages: Array) -> float:
        """The error of a step relative to the velocity: the size of the first Legendre coefficient in time that it
        lacks."""
        series = np.tensordot(self.tableau.legendre, np.concatenate([stream[None], stages]), axes=1)[-3:]
        sizes = np.array([self.flow.norm(one) for one in series]) / max(self._largest, 1e-300)
        return float(truncation_estimate(sizes[-1], sizes[:-1].max()))

    def _pressure_error(self, traces: Array) -> float:
        """The error of a step by the multipliers (s, T), which are polynomials through the stages."""
        series = np.tensordot(legendre_transform(self.tableau.nodes), traces, axes=1)[-3:]
        sizes = np.linalg.norm(series[:, self.flow.system.faces * self.flow.system.m :], axis=1)
        self._pressures = max(
            self._pressures, float(np.linalg.norm(traces[-1, self.flow.system.faces * self.flow.system.m :]))
        )
        return float(truncation_estimate(sizes[-1], sizes[:-1].max())) / max(self._pressures, 1e-300)
