"""Features placed for a state, and windows in time that grow with it.

The length ℓ of ``network.adapted``, in coordinates scaled to [-1, 1]; the second derivative in it is the change of the
gradient along itself, by differences, so that kinks count too. Neurons are centred where 1/ℓ is large, lie along the
direction in which u bends or varies, and have slopes of a few 1/ℓ: fronts that move get ridges that move with them.

For fronts, corners and free boundaries placed features come with a time window that grows: a whole-time Gauss–Newton
fails where the solution at late times is far from any first guess. Here the problem is solved on a short window first,
from initial values moved by the equations; the network found is evaluated on a longer window, where ridges that follow
a front extrapolate it; it guides the placement of new features and is the guess of the next solve. The last window is
the whole time interval, so the result is one network without seams.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.domain import Domain, SpaceTime
from rannpde.errors import InputError
from rannpde.network.activations import as_activation
from rannpde.network.adapted import length_rate
from rannpde.network.features import RandomFeatures
from rannpde.pde.collocation.attempt import Attempt, Recipe, attempt
from rannpde.pde.collocation.pieces import Piece
from rannpde.pde.collocation.tuning import PlacementTuning
from rannpde.pde.functions import State
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.restrict import restrict_time
from rannpde.pde.residual import gradient
from rannpde.pde.start import first_guess

HOPELESS = 0.5
"""A window solved with a larger relative residual is shortened; three in a row end the growth."""


# ----------------------------------------------------------------------------------------------- placed features


@dataclass(frozen=True)
class Placement:
    """Neurons and points placed for a state."""

    tuning: PlacementTuning = field(default_factory=PlacementTuning)

    def features(
        self, state: State, domain: Domain, width: int, rng: np.random.Generator, activation: str = "tanh"
    ) -> RandomFeatures:
        """``width`` neurons and a constant, placed for that state."""
        tuning = self.tuning
        centre, halfwidth = domain.bounds.mean(axis=1), 0.5 * np.diff(domain.bounds, axis=1)[:, 0]
        points = domain.sample(tuning.candidates, rng=rng)
        rate, normal = steepness(state, points, domain, tuning)
        chance = rate**tuning.sharpness
        shares = (1 - tuning.uniform) * chance / chance.sum() + tuning.uniform / len(points)
        chosen = rng.choice(len(points), width, p=shares)
        direction, slope = normal[chosen], rng.uniform(*tuning.slopes, width) * rate[chosen]
        free = rng.uniform(size=width) < tuning.free
        direction[free] = rng.standard_normal((int(free.sum()), domain.dim))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        slope[free] = tuning.free_slope * rng.uniform(0.25, 1.5, int(free.sum()))
        weights = (direction * slope[:, None]).T
        biases = -np.einsum("lj,jl->j", weights, (points[chosen] - centre) / halfwidth)
        return RandomFeatures(weights, biases, as_activation(activation), centre, halfwidth, constant=True)

    def density(self, state: State, domain: Domain, points: Array) -> Array:
        """Where collocation points are needed, (M,), not normalised."""
        return steepness(state, points, domain, self.tuning)[0] ** self.tuning.sharpness


def steepness(state: State, points: Array, domain: Domain, tuning: PlacementTuning) -> tuple[Array, Array]:
    """1/ℓ (M,) and the direction of variation (M, n), in scaled coordinates, of the field that needs most."""
    halfwidth = 0.5 * np.diff(domain.bounds, axis=1)[:, 0]
    lower, upper = domain.bounds.T
    values = state.derivative(points, (0,) * domain.dim)
    span = 0.5 * np.ptp(values, axis=0)
    span[span == 0] = 1.0

    def slopes(at: Array) -> Array:
        return gradient(state, at) * halfwidth / span[:, None]

    here = slopes(points)  # (M, fields, n)
    field = np.linalg.norm(here, axis=2).argmax(axis=1)
    rows = np.arange(len(points))
    own = here[rows, field]
    steep = np.linalg.norm(own, axis=1)
    normal = own / np.maximum(steep, np.finfo(float).tiny)[:, None]
    flat = steep < tuning.flat
    # where nothing varies any direction will do: a fixed one per point, so that the answer is reproducible
    normal[flat] = _directions(len(points), domain.dim)[flat]
    bend = np.zeros(len(points))
    for probe in tuning.probes:
        ends = [
            slopes(np.clip(points + sign * probe * normal * halfwidth, lower, upper))[rows, field] for sign in (1, -1)
        ]
        change = (ends[0] - ends[1]) / (2 * probe)
        strength = np.linalg.norm(change, axis=1)
        stronger = (strength > bend) & (strength > 1.0)
        normal[stronger] = change[stronger] / strength[stronger, None]
        bend = np.maximum(bend, strength)
    return length_rate(steep, bend, 2.0), normal


def _directions(count: int, dim: int) -> Array:
    directions = np.random.default_rng(0).standard_normal((count, dim))
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


# ---------------------------------------------------------------------------------------------- growing windows


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
        label = f"width {self.width}, placed, iteration {number}"
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
