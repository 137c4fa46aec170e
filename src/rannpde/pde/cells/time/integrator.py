"""Radau IIA time integration on a mesh of space, with stages from simplified Newton steps and cached factorisations.

Steps are dyadic fractions of the time interval or of a third of it, so that few lengths occur and a factorisation
serves many steps. The error of a step is estimated from the decay of the Legendre coefficients of its polynomial.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.cells.time.space import SpaceSystem, StageFactor
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.monitor import Status, status_of
from rannpde.pde.time.control import DEEPEST_LEVEL, DyadicController, FactorCache, TrialStep
from rannpde.pde.time.tableau import (
    FIRST_RATIO,
    LEAST_RATIO,
    RadauTableau,
    lagrange_matrix,
    legendre_transform,
    truncation_estimate,
)
from rannpde.pde.time.trajectory import StageTrajectory
from rannpde.pde.tolerance import ALGEBRA_SHARE

StepData = tuple[Array, list[list[Array]]]
"""The stages of a step, and the partial derivatives that its factorisations were made from."""


@dataclass(frozen=True, eq=False)
class IntegrationResult:
    """A path, its status, and its residuals by leaf, dimensionless and averaged over time.

    equation_residuals (C,), condition_residuals (C, d) : the latter by axis of the normal
    worst (C,) : the number of the vector at which the residual of each cell was largest; losses : by name
    level, excess : the level of the first step, and its error divided by the allowed error
    """

    path: StageTrajectory
    status: Status
    equation_residuals: Array
    condition_residuals: Array
    worst: Array
    losses: dict[str, float]
    rank_deficient: bool
    level: int
    excess: float


@dataclass
class CachedFactors:
    """The factorisations for one step length, the partial derivatives they were made from, and their contraction
    rate."""

    partials: list[list[Array]]
    factors: list[StageFactor]
    rate: float | None = None


class CellIntegrator:
    """Integrates a system in time from its initial values.

    tol : tolerance for the error of a step, relative to the sizes of the fields
    on_step : called with (step, time) after each; stop : whether to end there
    segments : the interval is divided into this many, each bisected as often as needed; integrations with different
        numbers of segments have no step in common
    """

    def __init__(
        self,
        system: SpaceSystem,
        tableau: RadauTableau,
        tol: float,
        tuning: CellsTuning,
        on_step: Callable[[int, float], None] = lambda step, time: None,
        stop: Callable[[], bool] = lambda: False,
        segments: int = 1,
    ) -> None:
        self.system, self.tableau, self.tol, self.tuning = system, tableau, tol, tuning
        self.on_step, self.stop, self.segments = on_step, stop, segments
        self.span = system.end - system.start
        self.linear = all(term.expression.linear for term in system.terms)
        self.cached_factors = FactorCache[CachedFactors](self.tuning.max_cached_factors)
        self.lengths: list[float] = []
        clocks = {f: max(t.expression.order(f, 0) for t in system.terms) for f in system.problem.fields}
        self.differential = np.array([clocks[name] > 0 for name in system.problem.fields])
        cells = len(system.mesh.cells)
        self.equation_residuals, self.condition_residuals = np.zeros(cells), np.zeros((cells, system.space.dim))
        self.worst, self.largest = np.zeros(cells, dtype=int), np.zeros(cells)
        self.missed = np.zeros(cells)
        self.squares = {rows.term.name: 0.0 for rows in system.rows}
        self.rank_deficient = False

    # ---------------------------------------------------------------------------------------------------------- loop

    def run(
        self, start: Array, rates: Array, level: int, fixed: bool = False, max_steps: int = 10**6
    ) -> IntegrationResult:
        """Integrate from vectors of the initial values and, for fields of second order in time, of the initial rates.

        level : the first step is 2^-level of the whole time; fixed : whether all steps are; max_steps : limit on their
            number
        """
        states = [start, rates][: max(1, self.system.order)]
        self.times, self.vectors, self.rates = [self.system.start], [start[None]], rates
        # non-linear problems need new factorisations in any case
        patience = self.tuning.steps_per_factor if self.linear else 1
        control = DyadicController[StepData](
            self.span, self.segments, level, self.tol, len(self.tableau) + 1,
            wait=self.tuning.steps_per_factor, futile=self.tuning.spatial_error_ratio, fixed=fixed, patience=patience,
        )  # fmt: skip
        first: tuple[int, float] | None = None
        status = Status.CONVERGED
        try:
            while control.left and len(self.times) <= max_steps:
                if control.too_short:
                    status = Status.INTEGRATOR
                    break
                time, h = self.system.start + control.time, control.length
                stages = self._stages(h, time, states)
                if stages is None:
                    control.corrections_failed()
                    continue
                error = self._error(states[0], stages, control.position == 0)
                data = stages, self.cached_factors[h].partials
                trial = control.decide(TrialStep(control.level, control.position, error, data))
                if trial is None:
                    continue
                allowed = control.allowed(trial.level, trial.position)
                if trial.error > allowed and not fixed:
                    tails = self._last_coefficients(states[0], trial.payload[0]) * (self.tol / allowed)
                    self.missed = np.maximum(self.missed, tails)
                first = (trial.level, trial.error / allowed) if first is None else first
                control.level = trial.level
                states = self._accept(*trial.payload, states, time, control.length)
                control.advance(trial)
                self.on_step(len(self.times) - 1, self.times[-1])
                if self.stop() and control.left:
                    status = Status.BUDGET
                    break
        except KeyboardInterrupt as stop:
            if len(self.times) == 1 or fixed:
                raise
            status = status_of(stop)[0]
        return self._result(rates, status, *((level, 1.0) if first is None else first))

    def _extrapolated(self, h: float) -> Array:
        """Return the stages of the next step, extrapolated from the last one.

        Fields without ∂_t (algebraic variables) are extrapolated from the stages alone.
        """
        if len(self.vectors) == 1:
            return np.tile(self.vectors[0], (len(self.tableau), 1))
        at = 1 + self.tableau.nodes * h / (self.times[-1] - self.times[-2])
        new = lagrange_matrix(self.tableau.nodes, at, 0) @ self.vectors[-1]
        nodes = np.append(0.0, self.tableau.nodes)
        every = np.concatenate([self.vectors[-2][-1:], self.vectors[-1]])
        differential = np.append(
            self.differential[self.system.field], np.zeros(self.system.total - self.system.inner, dtype=bool)
        )
        new[:, differential] = lagrange_matrix(nodes, at, 0) @ every[:, differential]
        return new

    def _result(self, rates: Array, status: Status, first: int, excess: float) -> IntegrationResult:
        passed = max(self.times[-1] - self.system.start, 1e-300)
        if len(self.times) == 1:  # no step was accepted: return the initial values
            self.times.append(self.system.start + self.span / 2**DEEPEST_LEVEL)
            self.vectors.append(np.tile(self.vectors[0], (len(self.tableau), 1)))
        path = StageTrajectory(self.tableau, np.array(self.times), np.concatenate(self.vectors), rates)
        losses: dict[str, float] = {}
        sizes: dict[str, int] = {}
        for rows in self.system.rows:
            sizes[rows.term.name] = sizes.get(rows.term.name, 0) + len(rows.weights)
        for name, total in self.squares.items():
            losses[name] = total / passed / max(1, sizes[name])
        equation_residuals, condition_residuals = (
            np.hypot(self.equation_residuals / passed, self.missed),
            self.condition_residuals / passed,
        )
        return IntegrationResult(
            path,
            status,
            equation_residuals,
            condition_residuals,
            self.worst,
            losses,
            self.rank_deficient,
            first,
            excess,
        )

    # ------------------------------------------------------------------------------------------------------ one step

    def _orders(self, stages: Array, states: list[Array], h: float) -> list[Array]:
        """Return ∂_t^k of the fields at the stages for k = 0, …, the order of the problem in time."""
        derivatives = [stages]
        for state in states[: self.system.order]:
            derivatives.append(self.tableau.derivative @ (derivatives[-1] - state) / h)
        return derivatives

    def _stages(self, h: float, time: float, states: list[Array]) -> Array | None:
        """Return the stages (s, total) of a step; None where corrections do not converge."""
        guess = self._extrapolated(h)
        cached = self.cached_factors.get(h)
        if cached is not None:
            stages = self._simplified_newton(cached, time, h, states, guess)
            if stages is not None:
                return stages
            self.cached_factors.drop(h)
        self.cached_factors.make_room()
        # steps before may have left noise in cells with large residuals, which grows where it is extrapolated
        for start in (guess, np.tile(states[0], (len(self.tableau), 1))):
            cached = self.cached_factors[h] = self._factorised(time, h, states, start)
            stages = self._simplified_newton(cached, time, h, states, start)
            if stages is not None:
                return stages
            self.cached_factors.drop(h)
            if self.linear:
                break
        return None

    def _factorised(self, time: float, h: float, states: list[Array], guess: Array) -> CachedFactors:
        middle = len(self.tableau) // 2
        orders = [part[middle : middle + 1] for part in self._orders(guess, states, h)]
        partials = self.system.linearised(time + h * self.tableau.nodes[middle], orders)
        if not all(np.isfinite(part).all() for own in partials for part in own):
            return CachedFactors([], [])
        shifts = [self.tableau.shift(k) / h for k in range(self.tableau.distinct)]
        factors = [self.system.factor(partials, shift) for shift in shifts]
        self.rank_deficient = self.rank_deficient or any(factor.factor.rank_deficient for factor in factors)
        return CachedFactors(partials, factors)

    def _simplified_newton(
        self, cached: CachedFactors, time: float, h: float, states: list[Array], guess: Array
    ) -> Array | None:
        times, stages, before = time + h * self.tableau.nodes, guess, np.inf
        if not cached.factors:
            return None
        goal, tuning = ALGEBRA_SHARE * self.tol, self.tuning
        for step in range(tuning.max_corrections):
            checkpoint()
            equation_residuals, face_residuals = self.system.residuals(times, self._orders(stages, states, h))
            if not all(np.isfinite(part).all() for part in equation_residuals):
                return None
            change = self._correction(self.system, cached, equation_residuals, face_residuals)
            size = float(self.system.norms(change).max())
            if not np.isfinite(size) or size > tuning.max_correction:
                return None
            stages = stages + change
            rate = size / before if step else cached.rate
            if step and self.linear:  # the contraction rate is then the same in every step
                cached.rate = rate
            if size <= CORRECTION_FLOOR or (rate is not None and rate < 1 and size * rate / (1 - rate) < goal):
                return stages
            ahead = tuning.max_corrections - 1 - step
            if step and (rate is None or rate >= 1 or size * rate**ahead / (1 - rate) > goal):
                return stages if size < goal else None
            before = size
        return None

    def _correction(
        self,
        system: SpaceSystem,
        cached: CachedFactors,
        equation_residuals: list[Array],
        face_residuals: list[list[Array]],
    ) -> Array:
        """Return the correction (s, total) of the stages for these residuals."""
        change = np.zeros((len(self.tableau), system.total))
        for k, factor in enumerate(cached.factors):
            own = [self.tableau.to_eigenbasis(k, part) for part in equation_residuals]
            gaps = [[self.tableau.to_eigenbasis(k, part) for part in segments] for segments in face_residuals]
            change += self.tableau.from_eigenbasis(k, system.correction(factor, own, gaps))
        return change

    def along_steps(self, system: SpaceSystem, start: Array, rates: Array) -> Array:
        """Return the vectors (1 + K s, total) of a slightly different system along the steps of this integration.

        Its stages start from those of this integration and are corrected once with the same factorisations. The error
        that remains is of second order in the difference of the systems.
        """
        states, vectors = [start, rates][: max(1, system.order)], [start[None]]
        before = [self.vectors[0][-1], self.rates][: len(states)]
        for time, h, own in zip(self.times, self.lengths, self.vectors[1:], strict=False):
            cached = self.cached_factors.get(h)
            if cached is None:
                cached = self.cached_factors[h] = self._factorised(time, h, before, own)
            stages = own + (states[0] - before[0])
            residuals = system.residuals(time + h * self.tableau.nodes, self._orders(stages, states, h))
            stages = stages + self._correction(system, cached, *residuals)
            orders, old = self._orders(stages, states, h), self._orders(own, before, h)
            states, before = ([part[k][-1] for k in range(len(states))] for part in (orders, old))
            vectors.append(stages)
        return np.concatenate(vectors)

    def _error(self, state: Array, stages: Array, first: bool) -> float:
        """Estimate the first neglected Legendre coefficient of the step from the decay of the last ones.

        The decay is not relied on in the first step: where initial and boundary values are incompatible, a field may
        behave like √t, whose neglected coefficients amount to a quarter of the last one.
        """
        nodes = np.append(0.0, self.tableau.nodes)
        worst = 0.0
        every = np.concatenate([state[None], stages])
        for differential in (True, False):
            chosen = self.differential == differential
            if not chosen.any() or (not differential and len(nodes) < 3):
                continue
            series = legendre_transform(nodes if differential else nodes[1:]) @ (every if differential else stages)
            sizes = self.system.norms(series)[:, chosen]
            earlier = sizes[-3:-1].max(axis=0) if len(sizes) > 3 else sizes[-2]
            next_coefficient = truncation_estimate(sizes[-1], earlier, FIRST_RATIO if first else LEAST_RATIO)
            worst = max(worst, float(next_coefficient.max()))
        return worst

    def _last_coefficients(self, state: Array, stages: Array) -> Array:
        """Return the last Legendre coefficient of a step, by leaf."""
        series = legendre_transform(np.append(0.0, self.tableau.nodes))[-1] @ np.concatenate([state[None], stages])
        return self.system.sizes_by_cell(series)

    def _accept(
        self, stages: Array, partials: list[list[Array]], states: list[Array], time: float, h: float
    ) -> list[Array]:
        orders = self._orders(stages, states, h)
        left = self.system.residuals(time + h * self.tableau.nodes, orders)[0]
        self._record(time + h - self.system.start, h, left, partials)
        self.times.append(time + h)
        self.lengths.append(h)
        self.vectors.append(stages)
        return [orders[k][-1] for k in range(len(states))]

    def _record(self, passed: float, h: float, equation_residuals: list[Array], partials: list[list[Array]]) -> None:
        """Add the residuals of a step to the averages by leaf and by name.

        They are scaled as for fields that vary on the scale of the time ``passed`` since the start, which is the
        fastest variation left once initial transients have decayed.
        """
        system = self.system
        now = np.zeros(len(system.mesh.cells))
        mean, aside = np.zeros(len(now)), np.zeros_like(self.condition_residuals)
        for rows, own, values in zip(system.rows, partials, equation_residuals, strict=True):
            scale = system.weight(rows) / system.natural(rows, own, 1 / passed)
            squares = np.square(values).mean(axis=0)
            self.squares[rows.term.name] += h * float(squares.sum())
            scaled_squares = rows.weights * squares * scale**2
            for cell_rows in rows.by_cell:
                part = scaled_squares[cell_rows.rows]
                now[cell_rows.cell] += part.sum()
                if rows.normals[cell_rows.rows].any():
                    aside[cell_rows.cell] += part @ rows.normals[cell_rows.rows]
                else:
                    mean[cell_rows.cell] += part.sum()
        self.equation_residuals += h * np.sqrt(mean)
        self.condition_residuals += h * np.sqrt(aside)
        larger = now > self.largest
        self.largest[larger] = now[larger]
        self.worst[larger] = 1 + (len(self.times) - 1) * len(self.tableau)


CORRECTION_FLOOR = 1e-14
"""Corrections below this, relative to the fields, are rounding."""
