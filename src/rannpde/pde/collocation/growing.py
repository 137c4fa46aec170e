"""Placed features on a time window that grows: for fronts, corners and free boundaries.

A whole-time Gauss–Newton fails where the solution at late times is far from any first guess. Here the problem
is solved on a short window first, from initial values moved by the equations; the network found is evaluated on a
longer window, where ridges that follow a front extrapolate it; it guides the placement of new features and is the
guess of the next solve. The last window is the whole time interval, so the result is one network without seams.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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

HOPELESS = 0.5
"""A window solved with a larger relative residual is shortened; three in a row end the growth."""


@dataclass(frozen=True)
class GrowingWindow:
    """Solves with placed features, of a given width."""

    problem: Problem
    width: int
    rng: np.random.Generator
    recipe: Recipe

    def start(self) -> State:
        """A state good for the whole time: the last of the windows, or the first guess where there is no time."""
        if not isinstance(self.problem.domain, SpaceTime):
            return first_guess(self.problem)
        growing = self.recipe.tuning.growing
        begin, end = self.problem.domain.time
        early = min(growing.early_width, self.width)
        window, failures = growing.first * (end - begin), 0
        state: State = first_guess(self.problem, moving=True)
        while window < end - begin and not self.recipe.over(early):
            part = restrict_time(self.problem, (begin, begin + window))
            found = placed_attempt(part, early, state, self.rng, self._recipe, "")
            if not np.isfinite(found.score) or found.score > HOPELESS:
                failures += 1
                if failures > 3:
                    reached = f"t = {begin + window:.3g}"
                    raise InputError(f"the solution could not be followed beyond {reached}; try more width or slabs")
                window *= 0.7
                continue
            state, window = found.network, window * growing.factor
        return state

    def solve(self, state: State, number: int) -> Attempt:
        """One solve on the whole interval with features placed for that state."""
        label = f"width {self.width}, placed, pass {number}"
        return placed_attempt(self.problem, self.width, state, self.rng, self._recipe, label)

    @property
    def _recipe(self) -> Recipe:
        growing = self.recipe.tuning.growing
        newton = replace(
            self.recipe.newton,
            cutoff=max(growing.cutoff, self.recipe.newton.cutoff),
            iterations=min(self.recipe.newton.iterations, 10),
        )
        return replace(self.recipe, newton=newton, points_per_column=growing.points_per_column)


def placed_attempt(
    problem: Problem, width: int, state: State, rng: np.random.Generator, recipe: Recipe, label: str
) -> Attempt:
    """One solve with features and points placed for a state."""
    placement = Placement(recipe.tuning.placement)
    features = placement.features(state, problem.domain, width, rng)
    density = partial(placement.density, state, problem.domain)
    return attempt(problem, (Piece(problem.domain.bounds, features),), state, rng, recipe, density, label)
