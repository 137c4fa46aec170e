"""Placed features on a time window that grows: for fronts, corners and free boundaries.

A whole-time Gauss–Newton fails where the solution at late times is far from any first guess. Here the problem
is solved on a short window first, from initial values moved by the equations; the network found is evaluated on a
longer window, where ridges that follow a front extrapolate it; it guides the placement of new features and is the
guess of the next solve. The last window is the whole time interval, so the result is one network without seams.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError
from rannpde.pde.collocation.attempt import Attempt, Recipe, attempt
from rannpde.pde.collocation.guess import first_guess
from rannpde.pde.collocation.pieces import Piece
from rannpde.pde.collocation.placement import Placement
from rannpde.pde.functions import State
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.restrict import restrict_time


@dataclass(frozen=True)
class Growth:
    """Settings of the growing window. Empirical; see benchmarks/solve.py.

    first : first window as a share of the time interval
    factor : growth of the window from one solve to the next
    early_width : most neurons before the last window; more would resolve a kink of the guess too sharply
    passes : solves on the last window, each with features placed for the one before; the best is kept
    cutoff : rank cut; larger than elsewhere, since small coefficients extrapolate better
    """

    first: float = 0.02
    factor: float = 1.4
    early_width: int = 200
    passes: int = 4
    cutoff: float = 1e-10
    points_per_column: float = 6.0
    placement: Placement = field(default_factory=Placement)

    def run(
        self,
        problem: Problem,
        width: int,
        rng: np.random.Generator,
        recipe: Recipe,
        state: State | None = None,
        progress: Callable[[Attempt], None] | None = None,
    ) -> list[Attempt]:
        """All attempts on the whole interval, the best by held-out residual first."""
        newton = replace(recipe.newton, cutoff=self.cutoff, iterations=min(recipe.newton.iterations, 10))
        recipe = replace(recipe, newton=newton, points_per_column=self.points_per_column)
        early: list[Attempt] = []
        if state is None and isinstance(problem.domain, SpaceTime):
            early = self._march(problem, width, rng, recipe, progress)
        if state is None:
            state = early[-1].network if early else first_guess(problem)
        found: list[Attempt] = []
        for number in range(self.passes):
            found.append(self._solve(problem, width, state, rng, recipe, f"width {width}, placed, pass {number + 1}"))
            if progress is not None:
                progress(found[-1])
            state = min(found, key=lambda one: one.score).network
        spent = sum(one.outcome.solve_seconds for one in early)  # the windows count where the time is accounted for
        last = replace(found[-1].outcome, solve_seconds=found[-1].outcome.solve_seconds + spent)
        return sorted([*found[:-1], replace(found[-1], outcome=last)], key=lambda one: one.score)

    def _march(
        self,
        problem: Problem,
        width: int,
        rng: np.random.Generator,
        recipe: Recipe,
        progress: Callable[[Attempt], None] | None,
    ) -> list[Attempt]:
        """The solves on windows shorter than the whole interval, one after the other; the last one reaches furthest."""
        domain = problem.domain
        assert isinstance(domain, SpaceTime)
        start, end = domain.time
        early = min(self.early_width, width)
        window = self.first * (end - start)
        state: State = first_guess(problem, moving=True)
        good: list[Attempt] = []
        failures = 0
        while window < end - start:
            part = restrict_time(problem, (start, start + window))
            label = f"width {early}, placed, up to t = {start + window:.3g}"
            found = self._solve(part, early, state, rng, recipe, label)
            if progress is not None:
                progress(found)
            if not np.isfinite(found.score) or found.score > 0.5:
                failures += 1
                if failures > 3:
                    raise InputError(
                        f"the solution could not be followed beyond t = {start + window:.3g}; try more width or slabs"
                    )
                window *= 0.7
                continue
            good.append(found)
            state, window = found.network, window * self.factor
        return good

    def _solve(
        self, problem: Problem, width: int, state: State, rng: np.random.Generator, recipe: Recipe, label: str
    ) -> Attempt:
        features = self.placement.features(state, problem.domain, width, rng)
        density = partial(self.placement.density, state, problem.domain)
        return attempt(problem, (Piece(problem.domain.bounds, features),), state, rng, recipe, density, label)
