"""Iterations of collocation: draw, solve, compare, widen.

Every width is drawn twice; the difference of the two is the estimate of the error, and what differs from draw to draw
although the equations hold is what they do not determine. Widths double until two draws agree.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError
from rannpde.network.features import FourierFeatures, RandomFeatures
from rannpde.pde.collocation.attempt import Attempt, Recipe, ScaleSearch, attempt, first_scales, first_width
from rannpde.pde.collocation.guess import GrowingWindow
from rannpde.pde.collocation.learned import Lesson, Teacher
from rannpde.pde.collocation.loop import CollocationFound, Drawer, Loop
from rannpde.pde.collocation.newton import GaussNewton
from rannpde.pde.collocation.pieces import BoxFeatures, Piece, PiecewiseNetwork, Scales, scales_of
from rannpde.pde.functions import State
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.restrict import restrict_time
from rannpde.pde.start import as_state, first_guess

if TYPE_CHECKING:
    from rannpde.pde.collocation.method import Collocation

CHECK_POINTS = 2000
"""Fresh points at which two draws are compared."""


class CollocationIterations:
    """Draw, solve, compare, widen."""

    def __init__(
        self, problem: Problem, method: Collocation, tol: float, monitor: Monitor, rng: np.random.Generator
    ) -> None:
        self.problem, self.method, self.tol, self.monitor, self.rng = problem, method, tol, monitor, rng
        self.tuning = method.tuning
        self.number, self.estimate = 1, np.inf
        newton, per_column = method.newton or GaussNewton(), method.points_per_column or self.tuning.points_per_column
        self.recipe = Recipe(newton, dict(method.weights), per_column, self.tuning, self._notice)
        source = BoxFeatures(problem, self.tuning, dict(method.pieces), method.activation or "tanh", method.law)
        self.search = ScaleSearch(problem, source, self.recipe)
        self.scales: Scales | None = None
        self.teacher = Teacher(problem.domain, self.tuning.learning)
        self.lesson: Lesson | None = None
        self.points = problem.domain.sample(CHECK_POINTS, rng=20_071)

    def _notice(self, columns: int, step: int) -> Status | None:
        self.monitor.tell(self.number, step, width=columns, estimate=self.estimate)
        return Status.BUDGET if self.monitor.exhausted else None

    def run(self) -> CollocationFound:
        method = self.method
        state = as_state(method.guess, self.problem) or first_guess(self.problem)
        if method.features is not None:
            return self._repeat(self._of_given, state, method.features.columns)
        if method.placement == "placed":
            return self._placed(None if method.guess is None else state)
        widen = self._learn if self._may_learn() else self._widen
        found = self._pair(state, method.width) if method.width else widen(state)
        sharp = found.best.score > self.tuning.rough and self._may_place()
        if sharp and not found.status.by_caller:
            with suppress(InputError):  # the window could not grow: what there is stays the answer
                placed = self._placed(None)
                better, worse = (placed, found) if placed.best.score < found.best.score else (found, placed)
                return replace(better, tried=(*better.tried, worse.best, *worse.tried))
        return found

    @property
    def _free(self) -> bool:
        """Whether the kind of neurons is ours to choose."""
        method = self.method
        given = method.pieces or method.scale or method.law or method.activation or self.problem.periodic
        return method.placement is None and not given

    def _may_place(self) -> bool:
        domain = self.problem.domain
        return self._free and isinstance(domain, SpaceTime) and domain.dim <= 3

    def _may_learn(self) -> bool:
        return self._free and self.problem.domain.dim >= self.tuning.learning.dimensions

    def _first_frequency(self) -> float:
        variation, tuning = self.problem.variation, self.tuning
        fast = 0.0 if variation is None else tuning.lengths_to_scale * float(variation.rates.max())
        return max(tuning.learning.scale, fast)

    # ---------------------------------------------------------------------------------------------- kinds of iterations

    def _uniform(self, width: int, state: State, number: int) -> list[Attempt]:
        """Neurons drawn by the law, at the best scales found; each iteration draws anew."""
        seed, method, dim = int(self.rng.integers(2**31)), self.method, self.problem.domain.dim
        if method.law is not None or method.scale is not None:
            given = scales_of(1.0 if method.scale is None else method.scale, dim)
            return [self.search.solve(width, given, state, seed)]
        if self.scales is not None and width > self.search.width:
            return [self.search.solve(width, self.scales, state, seed)]
        start = self.scales or first_scales(self.problem, width, self.tuning)
        first = self.tuning.learning.rounds if self._may_learn() else self.tuning.rounds
        rounds = first if self.scales is None else self.tuning.later_rounds
        self.scales, tried = self.search.run(width, state, start, seed, rounds)
        if self.recipe.over(width):
            return tried
        final = self.search.solve(width, self.scales, tried[0].network, seed)
        # attempts of the search are cut short after two steps: prefer the full solve unless it is clearly worse
        if final.score <= 2 * tried[0].score or not tried[0].descent.status.converged:
            return [final, *tried]
        return [*tried, final]

    def _again(self, width: int, state: State, number: int) -> list[Attempt]:
        """Another draw of the same law."""
        scales = self.scales or scales_of(self.method.scale or 1.0, self.problem.domain.dim)
        return [self.search.solve(width, scales, state, int(self.rng.integers(2**31)))]

    def _taught(self, before: float, width: int, state: State, number: int) -> list[Attempt]:
        """Neurons of the laws learned from the state, which leaves ``before``; of all kinds until one is the best."""
        learning, seed = self.tuning.learning, int(self.rng.integers(2**31))

        def learned(lesson: Lesson) -> tuple[Attempt, Lesson]:
            rng = np.random.default_rng(seed)
            pieces = (Piece(self.problem.domain.bounds, self.teacher.layer(lesson, state, width, rng)),)
            return attempt(self.problem, pieces, state, rng, self.recipe, label=f"width {width}, {lesson}"), lesson

        lessons = (self.lesson,) if self.lesson else self.teacher.lessons(self._first_frequency())
        tried = [learned(lesson) for lesson in lessons]
        if self.lesson and tried[0][0].score > learning.gain * before and not self.recipe.over(width):
            tried += [learned(lesson) for lesson in self.lesson.variants(learning)]
        best, lesson = min(tried, key=lambda one: one[0].score)
        if self.lesson or best.score < before:
            self.lesson = lesson
        return [best, *(one for one, _ in tried if one is not best)]

    def _of_given(self, width: int, state: State, number: int) -> list[Attempt]:
        """The user's own layer; the iteration before it, for comparison, has three quarters of it."""
        features = self.method.features
        assert features is not None
        if number == 1:
            features = _thinned(features, self.rng)
        pieces = (Piece(self.problem.domain.bounds, features),)
        return [attempt(self.problem, pieces, state, self.rng, self.recipe, label="given features")]

    def _placed(self, state: State | None) -> CollocationFound:
        """Neurons placed for the state before, on a growing time window first."""
        growing = self.tuning.growing
        width = self.method.width or growing.width
        window = GrowingWindow(self.problem, width, self.rng, self.recipe)
        state = state or window.start()
        return self._repeat(lambda w, s, k: [window.solve(s, k)], state, width, growing.iterations)

    # ------------------------------------------------------------------------------------------------------- loops

    def _pair(self, state: State, width: int) -> CollocationFound:
        """Two draws of a given width."""
        loop = Loop(self)
        ended = loop.step(self._uniform, width, state) or loop.step(self._again, width, loop.best.network)
        if not ended and loop.uneven:
            loop.step(self._again, width, loop.best.network)
        return loop.found()

    def _repeat(self, draw: Drawer, state: State, width: int, most: int = 2) -> CollocationFound:
        """Iterations of one kind and width, at least two, until they agree."""
        loop = Loop(self)
        for _ in range(most):
            if loop.step(draw, width, state) or loop.agreed:
                break
            state = loop.best.network
        return loop.found()

    def _widen(self, state: State) -> CollocationFound:
        """Pairs of draws of doubling width until one agrees, or neither agreement nor residual gets better."""
        loop, tuning = Loop(self), self.tuning
        most = self._most
        width = min(first_width(self.problem, tuning), most)
        while True:
            if loop.step(self._uniform, width, state):
                break
            if loop.best.score < tuning.unsolved and loop.step(self._again, width, loop.best.network):
                break
            if loop.uneven and loop.step(self._again, width, loop.best.network):
                break
            if loop.agreed or width >= most or (loop.stalled and loop.best.score < tuning.rough) or loop.free_twice:
                break
            state, width = loop.best.network, min(2 * width, most)
        return loop.found()

    def _learn(self, state: State) -> CollocationFound:
        """As ``_widen``, but after each draw of ridges with laws learned from the best solution so far."""
        loop, tuning = Loop(self), self.tuning
        most = self._most
        width = min(max(first_width(self.problem, tuning), tuning.learning.first_width), most)
        before = np.inf
        while True:
            if not self.lesson and loop.step(self._uniform, width, state):
                break
            small = width <= max(self.search.width, tuning.learning.first_width)
            if (self.lesson or small) and loop.best.score < tuning.learning.hopeless and self._refine(loop, width):
                break
            if (
                not self.lesson
                and loop.best.score < tuning.unsolved
                and loop.step(self._again, width, loop.best.network)
            ):
                break
            stalled = tuning.rough > loop.best.score > tuning.stall * before
            if loop.agreed or width >= most or stalled or loop.free_twice:
                break
            before, state, width = loop.best.score, loop.best.network, min(2 * width, most)
            if width <= self.search.width:
                self.lesson = None  # with more neurons another kind may be the best
        return loop.found()

    def _refine(self, loop: Loop, width: int) -> bool:
        """Iterations of one width, each with laws learned from the best before; whether the clock says to end."""
        learning, idle = self.tuning.learning, 0
        for _ in range(learning.iterations):
            before = loop.best.score
            if loop.step(partial(self._taught, before), width, loop.best.network):
                return True
            if loop.agreed and not loop.uneven:
                return False
            idle = 0 if loop.best.score < learning.gain * before else idle + 1
            if idle >= learning.idle or not self.lesson:
                return False
        return False

    @property
    def _most(self) -> int:
        """Neurons of the widest iteration."""
        tuning = self.tuning
        return min(tuning.last_width, max(tuning.first_width, tuning.most_columns // len(self.problem.fields)))


def by_slabs(
    problem: Problem, method: Collocation, tol: float, monitor: Monitor, rng: np.random.Generator
) -> CollocationFound:
    """Slabs one after the other; the pieces of all of them make one solution, judged by the sum of the estimates."""
    assert isinstance(problem.domain, SpaceTime)
    cuts, one = np.linspace(*problem.domain.time, method.slabs + 1).tolist(), replace(method, slabs=1)
    found: list[CollocationFound] = []
    for start, end in pairwise(cuts):
        before = found[-1].best.network if found else None
        part = restrict_time(problem, (start, end), before)
        found.append(CollocationIterations(part, one, tol / method.slabs, monitor, rng).run())
        if found[-1].status.by_caller:
            break
    worst = max(found, key=lambda one: (not one.status.converged, one.best.score))
    network = PiecewiseNetwork(
        tuple(piece for one in found for piece in one.best.network.pieces),
        tuple(c for one in found for c in one.best.network.coefficients),
    )
    best = replace(worst.best, network=network, label=f"{method.slabs} slabs, worst is {worst.best.label}")
    estimate = sum(one.estimate for one in found)
    tried = tuple(attempt for one in found for attempt in one.tried)
    told = tuple(row for one in found for row in one.iterations)
    status = worst.status if not worst.status.converged and estimate > tol else Status.CONVERGED
    return CollocationFound(best, tried, told, estimate, status, "" if status.converged else worst.detail)


def _thinned(features: RandomFeatures | FourierFeatures, rng: np.random.Generator) -> RandomFeatures | FourierFeatures:
    """A random three quarters of the neurons."""
    kept = np.sort(rng.permutation(features.width)[: max(1, 3 * features.width // 4)])
    if isinstance(features, RandomFeatures):
        return replace(features, weights=features.weights[:, kept], biases=features.biases[kept])
    return replace(features, weights=features.weights[:, kept], phases=features.phases[kept])
