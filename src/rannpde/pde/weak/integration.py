"""Integration in time of the weak form: Radau IIA on one mesh, with steps that are intervals of a binary tree.

All stages of a step are linear systems with the same few matrices A + σM₁ + σ²M₂, σ an eigenvalue of the method over
the length of the step. Lengths of steps are the whole time over powers of two, so that few factorisations serve all
steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, log2

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.time.control import DyadicController, FactorCache, TrialStep
from rannpde.pde.time.tableau import FIRST_RATIO, LEAST_RATIO, RadauTableau, truncation_estimate
from rannpde.pde.weak.semidiscrete import FactorisedStage, SemiDiscreteForm


@dataclass(frozen=True, eq=False)
class WeakTrajectory:
    """times (K + 1,) of the steps; vectors (1 + K s, C, n) and traces (1 + K s, T) at the start and at every stage, of
    which those at the start are zero; rates (K, C, n) : ∂_t at the start of every step; complete : whether the end was
    reached"""

    times: Array
    vectors: Array
    rates: Array
    traces: Array
    complete: bool


@dataclass(frozen=True, eq=False)
class WeakIntegrator:
    """tol : of the error of a step, relative to the largest size of the fields so far; segments : into which time is
    divided before these are halved; stop : whether to end early; longest_start : length that the first step does not
    exceed, as another integration of the same problem found it"""

    system: SemiDiscreteForm
    tableau: RadauTableau
    tol: float
    segments: int = 1
    stop: Callable[[], bool] = lambda: False
    longest_start: float = np.inf
    tuning: CellsTuning = field(default_factory=CellsTuning)
    factors: FactorCache[list[FactorisedStage]] = field(
        default_factory=lambda: FactorCache(CellsTuning().max_cached_factors), repr=False
    )

    def run(self, state: Array, rate: Array, sizes: Array) -> WeakTrajectory:
        """Integrate from a state and, where fields are of second order in time, a rate (C, n); sizes (F,) : of the
        fields."""
        tableau, system = self.tableau, self.system
        start, end = system.evolution.interval
        wait = self.tuning.steps_per_factor
        halvings = log2((end - start) / (self.segments * self.longest_start)) if self.longest_start < end - start else 0
        level = max(self.tuning.first_step_level - (self.segments > 1), ceil(halvings))
        control = DyadicController[tuple[Array, Array]](
            end - start, self.segments, level, self.tol, len(tableau) + 1, wait=wait,
            futile=self.tuning.spatial_error_ratio, patience=wait,
        )  # fmt: skip
        times, vectors, rates, traces = [start], [state[None]], [], []
        largest = np.maximum(sizes, system.norms(state[None])[0])
        while control.left and not control.too_short:
            checkpoint()
            length, time = control.length, start + control.time
            stages, around = self.stages(time, length, state, rate)
            largest = np.maximum(largest, system.norms(stages[-1:])[0])
            error = self._error(state, stages, largest, control.position == 0)
            trial = control.decide(TrialStep(control.level, control.position, error, (stages, around)))
            if trial is None:
                continue
            control.level = trial.level
            stages, around = trial.payload
            rates.append(rate)
            rate = np.tensordot(tableau.derivative[-1], stages - state, axes=1) / control.length
            if self._order > 1:
                rate = self._rates(stages, state, control.length)[-1]
            state = stages[-1]
            times.append(start + control.time + control.length)
            vectors.append(stages)
            traces.append(around)
            control.advance(trial)
            if self.stop() and control.left:
                break
        zero = np.zeros((1, system.traces))
        return WeakTrajectory(
            np.array(times), np.concatenate(vectors), np.array(rates), np.concatenate([zero, *traces]),
            control.left == 0,
        )  # fmt: skip

    @property
    def _order(self) -> int:
        return max(self.system.evolution.orders)

    def _rates(self, stages: Array, state: Array, length: float) -> Array:
        """∂_t at the stages of a step."""
        return np.asarray(np.tensordot(self.tableau.derivative, stages - state, axes=1) / length)

    def stages(self, time: float, length: float, state: Array, rate: Array) -> tuple[Array, Array]:
        """Stages (s, C, n) of a step from a state and a rate (C, n), and their traces (s, T)."""
        tableau, system = self.tableau, self.system
        solvers = self.factors.get(length)
        if solvers is None:
            self.factors.make_room()
            solvers = self.factors[length] = [
                system.factorised(tableau.shift(k) / length) for k in range(tableau.distinct)
            ]
        right = np.stack([system.loads(time + length * node) for node in tableau.nodes])
        ones = tableau.derivative.sum(axis=1) / length  # D·1/h
        if system.evolution.shifted[0] is not None:
            right += ones[:, None, None] * system.weighted(1, state)
        if self._order > 1:
            twice = tableau.derivative @ ones / length
            right += twice[:, None, None] * system.weighted(2, state) + ones[:, None, None] * system.weighted(2, rate)
        right = system.modal_loads(right)
        stages, traces = np.zeros_like(right), np.zeros((len(tableau), system.traces))
        for k, solver in enumerate(solvers):
            own, around = solver.solve(tableau.to_eigenbasis(k, right))
            stages += tableau.from_eigenbasis(k, own)
            traces += tableau.from_eigenbasis(k, around)
        return system.from_modes(stages), traces

    def _error(self, state: Array, stages: Array, sizes: Array, first: bool) -> float:
        """The error of a step relative to the fields: the size of the first Legendre coefficient in time that it
        lacks."""
        every = np.concatenate([state[None], stages])
        series = np.tensordot(self.tableau.legendre, every, axes=1)[-3:]
        norms = self.system.norms(series) / np.where(sizes > 0, sizes, 1.0)
        missing = truncation_estimate(norms[-1], norms[:-1].max(axis=0), FIRST_RATIO if first else LEAST_RATIO)
        return float(missing.max())
