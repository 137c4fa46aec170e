"""Steps in time on a mesh of space: Radau IIA collocation, its stages found by corrections with kept factors.

Steps are the intervals of a binary tree over the whole time or a third of it, so that only few lengths occur and a
factor serves many steps. The error of a step is read off the decay of the Legendre coefficients of its polynomial.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.cells.ladder import DEEPEST, Ladder, Tried
from rannpde.pde.cells.space import SpaceSystem, StageFactor
from rannpde.pde.cells.stages import Stages, decay, differentiation
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.monitor import Status


@dataclass(frozen=True, eq=False)
class SteppedPath:
    """What a march leaves: times (K + 1,) of its steps, vectors (1 + K s, total) at the start and at every stage.

    rates (total,) : ∂_t at the start, of the fields that are of second order in time
    """

    stages: Stages
    times: Array
    vectors: Array
    rates: Array


@dataclass(frozen=True, eq=False)
class Marched:
    """A path, how it ended, and what it left, by leaf: residuals of equations (C,) and of conditions by axis (C, d),
    dimensionless means over time; ``worst`` (C): the number of the vector at which that was largest; losses by name.

    level, margin : of the first step, and its error over what was allowed
    """

    path: SteppedPath
    status: Status
    inside: Array
    beside: Array
    worst: Array
    losses: dict[str, float]
    free: bool
    level: int
    margin: float


@dataclass
class Frozen:
    """The factors of one length of step, the partial derivatives they were made from, and how fast they converge."""

    partials: list[list[Array]]
    factors: list[StageFactor]
    rate: float | None = None


class CellMarch:
    """One march of a system from its initial values.

    tol : of the error of a step, relative to the sizes of the fields; told : called with (step, time) after each
    checkpoint : called within steps, may raise; over : whether to stop after this step
    parts : of the time, each halved as often as is needed; marches with other parts share no step
    """

    def __init__(
        self,
        system: SpaceSystem,
        stages: Stages,
        tol: float,
        tuning: CellsTuning,
        checkpoint: Callable[[], None] = lambda: None,
        told: Callable[[int, float], None] = lambda step, time: None,
        over: Callable[[], bool] = lambda: False,
        parts: int = 1,
    ) -> None:
        self.system, self.stages, self.tol, self.tuning = system, stages, tol, tuning
        self.checkpoint, self.told, self.over, self.parts = checkpoint, told, over, parts
        self.span = system.end - system.start
        self.linear = all(term.expression.linear for term in system.terms)
        self.known: dict[float, Frozen] = {}
        self.lengths: list[float] = []
        clocks = {f: max(t.expression.order(f, 0) for t in system.terms) for f in system.problem.fields}
        self.moving = np.array([clocks[name] > 0 for name in system.problem.fields])
        cells = len(system.mesh.cells)
        self.inside, self.beside = np.zeros(cells), np.zeros((cells, system.space.dim))
        self.worst, self.largest = np.zeros(cells, dtype=int), np.zeros(cells)
        self.missed = np.zeros(cells)
        self.squares = {rows.term.name: 0.0 for rows in system.rows}
        self.free = False

    # ---------------------------------------------------------------------------------------------------------- loop

    def run(self, start: Array, rates: Array, level: int, fixed: bool = False, most: int = 10**6) -> Marched:
        """From vectors of the initial values and, for fields of second order in time, rates.

        level : the first step is 2^-level of the whole time; fixed : all are; most : steps at most
        """
        states = [start, rates][: max(1, self.system.order)]
        self.times, self.vectors, self.rates = [self.system.start], [start[None]], rates
        patience = self.tuning.worth if self.linear else 1  # factors of other problems are new ever again
        ladder = Ladder(self.span, self.parts, level, self.tol, len(self.stages) + 1, self.tuning, fixed, patience)
        first: tuple[int, float] | None = None
        status = Status.CONVERGED
        try:
            while ladder.left and len(self.times) <= most:
                if ladder.lost:
                    status = Status.INTEGRATOR
                    break
                time, h = self.system.start + ladder.time, ladder.length
                stages = self._stages(h, time, states)
                if stages is None:
                    ladder.failed()
                    continue
                error = self._error(states[0], stages, ladder.position == 0)
                tried = ladder.judged(Tried(ladder.level, ladder.position, stages, error, self.known[h].partials))
                if tried is None:
                    continue
                allowed = ladder.allowed(tried.level, tried.position)
                if tried.error > allowed and not fixed:
                    tails = self._tails(states[0], tried.stages) * (self.tol / allowed)
                    self.missed = np.maximum(self.missed, tails)
                first = (tried.level, tried.error / allowed) if first is None else first
                ladder.level = tried.level
                states = self._accept(tried.stages, tried.partials, states, time, ladder.length)
                ladder.taken(tried)
                self.told(len(self.times) - 1, self.times[-1])
                if self.over() and ladder.left:
                    status = Status.BUDGET
                    break
        except KeyboardInterrupt:
            if len(self.times) == 1:
                raise
            status = Status.INTERRUPTED
        return self._marched(rates, status, *((level, 1.0) if first is None else first))

    def _ahead(self, h: float) -> Array:
        """The stages of the next step from the polynomial of the last one; of fields without ∂_t through its stages."""
        if len(self.vectors) == 1:
            return np.tile(self.vectors[0], (len(self.stages), 1))
        at = 1 + self.stages.nodes * h / (self.times[-1] - self.times[-2])
        new = differentiation(self.stages.nodes, at, 0) @ self.vectors[-1]
        nodes = np.append(0.0, self.stages.nodes)
        every = np.concatenate([self.vectors[-2][-1:], self.vectors[-1]])
        moving = np.append(self.moving[self.system.field], np.zeros(self.system.total - self.system.inner, dtype=bool))
        new[:, moving] = differentiation(nodes, at, 0) @ every[:, moving]
        return new

    def _marched(self, rates: Array, status: Status, first: int, margin: float) -> Marched:
        passed = max(self.times[-1] - self.system.start, 1e-300)
        if len(self.times) == 1:  # not a single step: the start alone
            self.times.append(self.system.start + self.span / 2**DEEPEST)
            self.vectors.append(np.tile(self.vectors[0], (len(self.stages), 1)))
        path = SteppedPath(self.stages, np.array(self.times), np.concatenate(self.vectors), rates)
        losses: dict[str, float] = {}
        sizes: dict[str, int] = {}
        for rows in self.system.rows:
            sizes[rows.term.name] = sizes.get(rows.term.name, 0) + len(rows.weights)
        for name, total in self.squares.items():
            losses[name] = total / passed / max(1, sizes[name])
        inside, beside = np.hypot(self.inside / passed, self.missed), self.beside / passed
        return Marched(path, status, inside, beside, self.worst, losses, self.free, first, margin)

    # ------------------------------------------------------------------------------------------------------ one step

    def _orders(self, stages: Array, states: list[Array], h: float) -> list[Array]:
        """∂_t^k of the fields at the stages, k = 0, …, the order of the problem in time."""
        found = [stages]
        for state in states[: self.system.order]:
            found.append(self.stages.derivative @ (found[-1] - state) / h)
        return found

    def _stages(self, h: float, time: float, states: list[Array]) -> Array | None:
        """The stages (s, total) of a step; None where corrections do not converge."""
        guess = self._ahead(h)
        frozen = self.known.get(h)
        if frozen is not None:
            found = self._corrected(frozen, time, h, states, guess)
            if found is not None:
                return found
            del self.known[h]
        while len(self.known) >= KEPT:  # the oldest go before a new one takes their memory
            del self.known[next(iter(self.known))]
        frozen = self.known[h] = self._freeze(time, h, states, guess)
        found = self._corrected(frozen, time, h, states, guess)
        if found is None:
            del self.known[h]
        return found

    def _freeze(self, time: float, h: float, states: list[Array], guess: Array) -> Frozen:
        middle = len(self.stages) // 2
        orders = [part[middle : middle + 1] for part in self._orders(guess, states, h)]
        partials = self.system.linearised(time + h * self.stages.nodes[middle], orders)
        if not all(np.isfinite(part).all() for own in partials for part in own):
            return Frozen([], [])
        shifts = [self.stages.shift(k) / h for k in range(len(self.stages.values))]
        factors = [self.system.factor(partials, shift, self.checkpoint) for shift in shifts]
        self.free = self.free or any(factor.triangles.free for factor in factors)
        return Frozen(partials, factors)

    def _corrected(self, frozen: Frozen, time: float, h: float, states: list[Array], guess: Array) -> Array | None:
        times, stages, before = time + h * self.stages.nodes, guess, np.inf
        if not frozen.factors:
            return None
        goal, tuning = self.tuning.correction * self.tol, self.tuning
        for step in range(tuning.corrections):
            self.checkpoint()
            inside, between = self.system.residuals(times, self._orders(stages, states, h))
            if not all(np.isfinite(part).all() for part in inside):
                return None
            change = self._correction(self.system, frozen, inside, between)
            size = float(self.system.norms(change).max())
            if not np.isfinite(size) or size > HUGE:
                return None
            stages = stages + change
            rate = size / before if step else frozen.rate
            if step and self.linear:  # how fast corrections converge is then the same in every step
                frozen.rate = rate
            if size <= ROUNDING or (rate is not None and rate < 1 and size * rate / (1 - rate) < goal):
                return stages
            if step and (size > tuning.slow * before or size * size / before > HUGE):
                return stages if size < goal else None
            before = size
        return None

    def _correction(
        self, system: SpaceSystem, frozen: Frozen, inside: list[Array], between: list[list[Array]]
    ) -> Array:
        """What takes away these residuals of the stages: (s, total)."""
        change = np.zeros((len(self.stages), system.total))
        for k, factor in enumerate(frozen.factors):
            own = [self.stages.apart(k, part) for part in inside]
            gaps = [[self.stages.apart(k, part) for part in parts] for parts in between]
            change += self.stages.together(k, system.correction(factor, own, gaps))
        return change

    def along(self, system: SpaceSystem, start: Array, rates: Array) -> Array:
        """Vectors (1 + K s, total) of a system that differs by little, along the steps that this march has taken.

        Its stages begin at those of this march, whose factors correct them: what is left of the difference is a share
        as small as the difference of the systems.
        """
        states, found = [start, rates][: max(1, system.order)], [start[None]]
        before = [self.vectors[0][-1], self.rates][: len(states)]
        for time, h, own in zip(self.times, self.lengths, self.vectors[1:], strict=False):
            frozen = self.known.get(h)
            if frozen is None:
                frozen = self.known[h] = self._freeze(time, h, before, own)
            stages = own + (states[0] - before[0])
            residuals = system.residuals(time + h * self.stages.nodes, self._orders(stages, states, h))
            stages = stages + self._correction(system, frozen, *residuals)
            orders, old = self._orders(stages, states, h), self._orders(own, before, h)
            states, before = ([part[k][-1] for k in range(len(states))] for part in (orders, old))
            found.append(stages)
        return np.concatenate(found)

    def _error(self, state: Array, stages: Array, first: bool) -> float:
        """The first Legendre coefficient that the polynomial of the step lacks, by the decay of the last ones.

        The decay in a first step is not relied on: where the start does not agree with the boundary, a field may be
        like √t, whose further coefficients amount to a quarter of the last.
        """
        nodes = np.append(0.0, self.stages.nodes)
        worst = 0.0
        every = np.concatenate([state[None], stages])
        for moving in (True, False):
            chosen = self.moving == moving
            if not chosen.any() or (not moving and len(nodes) < 3):
                continue
            series = decay(nodes if moving else nodes[1:]) @ (every if moving else stages)
            sizes = np.maximum(self.system.norms(series)[:, chosen], 1e-300)
            earlier = sizes[-3:-1].max(axis=0) if len(sizes) > 3 else sizes[-2]
            found = sizes[-1] * np.clip(sizes[-1] / earlier, 0.25 if first else 0.02, 1.0)
            worst = max(worst, float(found.max()))
        return worst

    def _tails(self, state: Array, stages: Array) -> Array:
        """By leaf the last Legendre coefficient of a step."""
        series = decay(np.append(0.0, self.stages.nodes))[-1] @ np.concatenate([state[None], stages])
        return self.system.sizes_by_cell(series)

    def _accept(
        self, stages: Array, partials: list[list[Array]], states: list[Array], time: float, h: float
    ) -> list[Array]:
        orders = self._orders(stages, states, h)
        left = self.system.residuals(time + h * self.stages.nodes, orders)[0]
        self._note(time + h - self.system.start, h, left, partials)
        self.times.append(time + h)
        self.lengths.append(h)
        self.vectors.append(stages)
        return [orders[k][-1] for k in range(len(states))]

    def _note(self, passed: float, h: float, inside: list[Array], partials: list[list[Array]]) -> None:
        """Residuals of the step, into the means by leaf and by name; they are compared with fields that vary over the
        time that has ``passed``, as fast as any can that has forgotten its start."""
        system = self.system
        now = np.zeros(len(system.mesh.cells))
        mean, aside = np.zeros(len(now)), np.zeros_like(self.beside)
        for rows, own, values in zip(system.rows, partials, inside, strict=True):
            scale = system.weight(rows) / system.natural(rows, own, 1 / passed)
            squares = np.square(values).mean(axis=0)
            self.squares[rows.term.name] += h * float(squares.sum())
            share = rows.weights * squares * scale**2
            for stretch in rows.stretches:
                part = share[stretch.rows]
                now[stretch.cell] += part.sum()
                if rows.normals[stretch.rows].any():
                    aside[stretch.cell] += part @ rows.normals[stretch.rows]
                else:
                    mean[stretch.cell] += part.sum()
        self.inside += h * np.sqrt(mean)
        self.beside += h * np.sqrt(aside)
        larger = now > self.largest
        self.largest[larger] = now[larger]
        self.worst[larger] = 1 + (len(self.times) - 1) * len(self.stages)


KEPT = 3
"""Lengths of steps whose factors are kept: those that alternate."""
ROUNDING = 1e-14
"""Corrections below this share of the fields are rounding."""
HUGE = 1e8
"""A correction of so many sizes of the fields is no correction."""
