"""The adaptive iteration of collocation: sample, solve, compare, widen.

Each width is sampled twice. The difference of the two realisations is the error estimate; what differs between
realisations although both satisfy the equations is not determined by them. Widths double until two realisations agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError
from rannpde.network.features import FourierFeatures, RandomFeatures
from rannpde.pde.collocation.feature_learning import FeatureLearner, LearnedLaw
from rannpde.pde.collocation.guess import GrowingWindow
from rannpde.pde.collocation.loop import CollocationLoop, CollocationResult, IterationPlan, IterationStep, Schedule
from rannpde.pde.collocation.subdomains import BoxFeatures, Scales, Subdomain, SubdomainNetwork, scales_of
from rannpde.pde.collocation.trial import ScaleSearch, SolverSettings, Trial, first_scales, first_width, solve_trial
from rannpde.pde.functions import State
from rannpde.pde.gauss_newton import GaussNewton
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.restrict import restrict_time
from rannpde.pde.start import as_state, first_guess

if TYPE_CHECKING:
    from rannpde.pde.collocation.method import Collocation

CHECK_POINTS = 2000
"""Held-out points at which two realisations are compared."""


class AdaptiveCollocation:
    """Sample, solve, compare, widen."""

    def __init__(
        self, problem: Problem, method: Collocation, tol: float, monitor: Monitor, rng: np.random.Generator
    ) -> None:
        self.problem, self.method, self.tol, self.monitor, self.rng = problem, method, tol, monitor, rng
        self.tuning = method.tuning
        self.number, self.estimate = 1, np.inf
        newton, per_column = method.newton or GaussNewton(), method.points_per_column or self.tuning.points_per_column
        self.settings = SolverSettings(
            newton, dict(method.weights), per_column, self.tuning, self._on_step, self._on_trial
        )
        source = BoxFeatures(problem, self.tuning, dict(method.subdomains), method.activation or "tanh", method.law)
        self.search = ScaleSearch(problem, source, self.settings)
        self.scales: Scales | None = None
        self.learner = FeatureLearner(problem.domain, self.tuning.learning)
        self.learned_law: LearnedLaw | None = None
        self.points = problem.domain.sample(CHECK_POINTS, rng=20_071)
        self.kept: Trial | None = None
        self.on_result: Callable[[Callable[[Status, str], CollocationResult]], None] = lambda make: None

    def _on_step(self, columns: int, step: int) -> Status | None:
        self.monitor.tell(self.number, step, width=columns, estimate=self.estimate)
        return self.monitor.ending if self.monitor.exhausted else None

    def _on_trial(self, trial: Trial) -> None:
        """Keep the best trial of the first iteration, which has no other result yet."""
        if self.kept is None or trial.score < self.kept.score:
            self.kept = trial
            self.on_result(lambda status, detail: CollocationResult(trial, (), np.inf, status, detail))

    def keep(self, loop: CollocationLoop) -> None:
        """Keep the result of the iterations so far."""
        self.on_result(loop.ended)

    def run(self) -> CollocationResult:
        method = self.method
        state = as_state(method.guess, self.problem) or first_guess(self.problem)
        if method.features is not None:
            columns = method.features.columns
            return self._run(lambda loop: self._repeat(loop, self._given_features, state, columns))
        if method.placement == "placed":
            return self._placed(None if method.guess is None else state)
        widen = self._learn if self._may_learn() else self._widen
        result = self._run(partial(self._pair if method.width else widen, state=state))
        sharp = result.best.score > self.tuning.placement_residual and self._may_place()
        if sharp and not result.status.by_caller:
            with suppress(InputError):  # the window could not grow: keep the result so far
                placed = self._placed(None)
                better, worse = (placed, result) if placed.best.score < result.best.score else (result, placed)
                return replace(better, others=(*better.others, worse.best, *worse.others))
        return result

    @property
    def _free(self) -> bool:
        """Whether the user has left the kind of neurons open."""
        method = self.method
        given = method.subdomains or method.scale or method.law or method.activation or self.problem.periodic
        return method.placement is None and not given

    def _may_place(self) -> bool:
        domain = self.problem.domain
        return self._free and isinstance(domain, SpaceTime) and domain.dim <= 3

    def _may_learn(self) -> bool:
        return self._free and self.problem.domain.dim >= self.tuning.learning.dimensions

    def _first_frequency(self) -> float:
        variation, tuning = self.problem.variation, self.tuning
        fast = 0.0 if variation is None else tuning.lengths_to_scale * float(variation.rates.max())
        return max(1.0, fast)  # frequencies of the size of the domain, or those of the data

    # ---------------------------------------------------------------------------------------------- kinds of iterations

    def _uniform(self, width: int, state: State, number: int) -> list[Trial]:
        """Sample neurons by the law at the best scales so far; each iteration samples anew."""
        seed, method, dim = int(self.rng.integers(2**31)), self.method, self.problem.domain.dim
        if method.law is not None or method.scale is not None:
            given = scales_of(1.0 if method.scale is None else method.scale, dim)
            return [self.search.solve(width, given, state, seed)]
        if self.scales is not None and width > self.search.width:
            return [self.search.solve(width, self.scales, state, seed)]
        start = self.scales or first_scales(self.problem, width, self.tuning)
        first = self.tuning.learning.search_solves if self._may_learn() else self.tuning.search_solves
        solves = first if self.scales is None else self.tuning.later_search_solves
        self.scales, tried = self.search.run(width, state, start, seed, solves)
        if self.settings.over(width):
            return tried
        final = self.search.solve(width, self.scales, tried[0].network, seed)
        # trials of the search stop after two steps: prefer the full solve unless it is clearly worse
        if final.score <= 2 * tried[0].score or not tried[0].descent.status.converged:
            return [final, *tried]
        return [*tried, final]

    def _resample(self, width: int, state: State, number: int) -> list[Trial]:
        """Return another realisation of the same law."""
        scales = self.scales or scales_of(self.method.scale or 1.0, self.problem.domain.dim)
        return [self.search.solve(width, scales, state, int(self.rng.integers(2**31)))]

    def _learned_features(self, before: float, width: int, state: State, number: int) -> list[Trial]:
        """Sample neurons from laws fitted to the state, whose residual is ``before``; all kinds are tried until one is
        best."""
        learning, seed = self.tuning.learning, int(self.rng.integers(2**31))

        def learned(law: LearnedLaw) -> tuple[Trial, LearnedLaw]:
            rng = np.random.default_rng(seed)
            subdomains = (Subdomain(self.problem.domain.bounds, self.learner.layer(law, state, width, rng)),)
            return solve_trial(self.problem, subdomains, state, rng, self.settings, label=f"width {width}, {law}"), law

        candidate_laws = (
            (self.learned_law,) if self.learned_law else self.learner.candidate_laws(self._first_frequency())
        )
        tried = [learned(law) for law in candidate_laws]
        if self.learned_law and tried[0][0].score > learning.min_reduction * before and not self.settings.over(width):
            tried += [learned(law) for law in self.learned_law.variants(learning)]
        best, law = min(tried, key=lambda one: one[0].score)
        if self.learned_law or best.score < before:
            self.learned_law = law
        return [best, *(one for one, _ in tried if one is not best)]

    def _given_features(self, width: int, state: State, number: int) -> list[Trial]:
        """Use the features of the user; the first iteration, for comparison, uses three quarters of them."""
        features = self.method.features
        assert features is not None
        if number == 1:
            features = _thinned(features, self.rng)
        subdomains = (Subdomain(self.problem.domain.bounds, features),)
        return [solve_trial(self.problem, subdomains, state, self.rng, self.settings, label="given features")]

    # ---------------------------------------------------------------------------------------------------- schedules

    def _run(self, plan: Schedule) -> CollocationResult:
        """The result of the iterations of a schedule."""
        return CollocationLoop(self).run(plan)

    def _placed(self, state: State | None) -> CollocationResult:
        """Use neurons placed for the previous state, on a growing time window first."""
        growing = self.tuning.growing
        width = self.method.width or growing.width
        window = GrowingWindow(self.problem, width, self.rng, self.settings)
        first = state or window.start()
        return self._run(
            lambda loop: self._repeat(loop, lambda w, s, k: [window.solve(s, k)], first, width, growing.iterations)
        )

    def _pair(self, loop: CollocationLoop, state: State) -> Iterator[IterationPlan]:
        """Sample two realisations of one width."""
        width = self.method.width
        assert width is not None
        yield IterationPlan(self._uniform, width, state)
        yield IterationPlan(self._resample, width, loop.best.network)
        if loop.unequal:
            yield IterationPlan(self._resample, width, loop.best.network)

    def _repeat(
        self, loop: CollocationLoop, iterate: IterationStep, state: State, width: int, iterations: int = 2
    ) -> Iterator[IterationPlan]:
        """Iterate from the best solution so far until two iterations agree."""
        for number in range(iterations):
            yield IterationPlan(iterate, width, loop.best.network if number else state)
            if loop.agreed:
                return

    def _widen(self, loop: CollocationLoop, state: State) -> Iterator[IterationPlan]:
        """Sample pairs of doubling width until a pair agrees, or neither agreement nor residual improves."""
        tuning, most = self.tuning, self._max_width
        width = min(first_width(self.problem, tuning), most)
        while True:
            yield IterationPlan(self._uniform, width, state)
            if loop.best.score < tuning.unsolved_residual:
                yield IterationPlan(self._resample, width, loop.best.network)
            if loop.unequal:
                yield IterationPlan(self._resample, width, loop.best.network)
            stalled = loop.stalled and loop.best.score < tuning.placement_residual
            if loop.agreed or width >= most or stalled or loop.undetermined_twice:
                return
            state, width = loop.best.network, min(2 * width, most)

    def _learn(self, loop: CollocationLoop, state: State) -> Iterator[IterationPlan]:
        """Do the same as ``_widen``, but after each sample of ridges fit laws to the best solution so far."""
        tuning, most, before = self.tuning, self._max_width, np.inf
        width = min(max(first_width(self.problem, tuning), tuning.learning.first_width), most)
        while True:
            if not self.learned_law:
                yield IterationPlan(self._uniform, width, state)
            small = width <= max(self.search.width, tuning.learning.first_width)
            if (self.learned_law or small) and loop.best.score < 1:  # better than zero
                yield from self._learn_at_width(loop, width)
            if not self.learned_law and loop.best.score < tuning.unsolved_residual:
                yield IterationPlan(self._resample, width, loop.best.network)
            stalled = tuning.placement_residual > loop.best.score > tuning.min_reduction * before
            if loop.agreed or width >= most or stalled or loop.undetermined_twice:
                return
            before, state, width = loop.best.score, loop.best.network, min(2 * width, most)
            if width <= self.search.width:
                self.learned_law = None  # with more neurons another kind may be the best

    def _learn_at_width(self, loop: CollocationLoop, width: int) -> Iterator[IterationPlan]:
        """Iterate at one width, each time with laws fitted to the best solution so far."""
        learning, idle = self.tuning.learning, 0
        for _ in range(learning.iterations):
            before = loop.best.score
            yield IterationPlan(partial(self._learned_features, before), width, loop.best.network)
            if loop.agreed and not loop.unequal:
                return
            idle = 0 if loop.best.score < learning.min_reduction * before else idle + 1
            if idle >= learning.max_idle or not self.learned_law:
                return

    @property
    def _max_width(self) -> int:
        """Number of neurons of the widest iteration."""
        tuning = self.tuning
        return min(tuning.last_width, max(tuning.first_width, tuning.max_columns // len(self.problem.fields)))


def by_slabs(
    problem: Problem, method: Collocation, tol: float, monitor: Monitor, rng: np.random.Generator
) -> CollocationResult:
    """Solve time slabs one after the other; their subdomains form one solution, whose estimate is the sum of theirs."""
    assert isinstance(problem.domain, SpaceTime)
    times, one = np.linspace(*problem.domain.time, method.slabs + 1).tolist(), replace(method, slabs=1)
    results: list[CollocationResult] = []
    for start, end in pairwise(times):
        before = results[-1].best.network if results else None
        part = restrict_time(problem, (start, end), before)
        results.append(AdaptiveCollocation(part, one, tol / method.slabs, monitor, rng).run())
        if results[-1].status.by_caller:
            break
    return _joined(results, method.slabs, tol)


def _joined(results: Sequence[CollocationResult], slabs: int, tol: float) -> CollocationResult:
    """One result of those of successive slabs."""
    worst = max(results, key=lambda one: (not one.status.converged, one.best.score))
    network = SubdomainNetwork(
        tuple(subdomain for one in results for subdomain in one.best.network.subdomains),
        tuple(c for one in results for c in one.best.network.coefficients),
    )
    best = replace(worst.best, network=network, label=f"{slabs} slabs, worst is {worst.best.label}")
    estimate = sum(one.estimate for one in results)
    others = tuple(trial for one in results for trial in one.others)
    iterations = tuple(row for one in results for row in one.iterations)
    status = worst.status if not worst.status.converged and estimate > tol else Status.CONVERGED
    return CollocationResult(best, iterations, estimate, status, "" if status.converged else worst.detail, others)


def _thinned(features: RandomFeatures | FourierFeatures, rng: np.random.Generator) -> RandomFeatures | FourierFeatures:
    """Return a random three quarters of the neurons."""
    chosen = np.sort(rng.permutation(features.width)[: max(1, 3 * features.width // 4)])
    if isinstance(features, RandomFeatures):
        return replace(features, weights=features.weights[:, chosen], biases=features.biases[chosen])
    return replace(features, weights=features.weights[:, chosen], phases=features.phases[chosen])
