"""Features placed where a state varies, and time windows that grow with it.

The local length scale ℓ is that of ``network.adapted``, in coordinates scaled to [-1, 1]. Its second derivative is the
difference quotient of the gradient along itself, so that kinks count too. Neurons are centred where 1/ℓ is large, point
in the direction in which u varies or is curved, and have slopes of a few 1/ℓ: a moving front gets ridges that move with
it.

For fronts, corners and free boundaries the placed features are combined with a growing time window. Gauss–Newton over
the whole time fails where the solution at late times is far from any initial guess. The problem is therefore solved on
a short window first, from the initial values advanced by the equations. The network is then evaluated on a longer
window, where ridges that follow a front extrapolate it; it guides the placement of new features and is the initial
guess of the next solve. The last window is the whole time interval, so that the result is one network without
interfaces.
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
from rannpde.pde.collocation.subdomains import Subdomain
from rannpde.pde.collocation.trial import SolverSettings, Trial, solve_trial
from rannpde.pde.collocation.tuning import PlacementTuning
from rannpde.pde.functions import State
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.restrict import restrict_time
from rannpde.pde.residual import gradient
from rannpde.pde.start import first_guess
from rannpde.pde.tolerance import UNSOLVED_RESIDUAL

# ----------------------------------------------------------------------------------------------- placed features


@dataclass(frozen=True)
class Placement:
    """Places neurons and points where a state varies."""

    tuning: PlacementTuning = field(default_factory=PlacementTuning)

    def features(
        self, state: State, domain: Domain, width: int, rng: np.random.Generator, activation: str = "tanh"
    ) -> RandomFeatures:
        """Return ``width`` neurons and a constant, placed for that state."""
        tuning = self.tuning
        centre, halfwidth = domain.bounds.mean(axis=1), 0.5 * np.diff(domain.bounds, axis=1)[:, 0]
        points = domain.sample(tuning.candidates, rng=rng)
        rate, normal = steepness(state, points, domain, tuning)
        chance = rate**tuning.sharpness
        probabilities = (1 - tuning.uniform_fraction) * chance / chance.sum() + tuning.uniform_fraction / len(points)
        chosen = rng.choice(len(points), width, p=probabilities)
        direction, slope = normal[chosen], rng.uniform(*tuning.slopes, width) * rate[chosen]
        free = rng.uniform(size=width) < tuning.isotropic_fraction
        direction[free] = rng.standard_normal((int(free.sum()), domain.dim))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        slope[free] = rng.uniform(*tuning.slopes, int(free.sum()))
        weights = (direction * slope[:, None]).T
        biases = -np.einsum("lj,jl->j", weights, (points[chosen] - centre) / halfwidth)
        return RandomFeatures(weights, biases, as_activation(activation), centre, halfwidth, constant=True)

    def density(self, state: State, domain: Domain, points: Array) -> Array:
        """Return the density (M,) of collocation points, not normalised."""
        return steepness(state, points, domain, self.tuning)[0] ** self.tuning.sharpness


def steepness(state: State, points: Array, domain: Domain, tuning: PlacementTuning) -> tuple[Array, Array]:
    """Return 1/ℓ (M,) and the direction of variation (M, n), in scaled coordinates, of the field that varies most."""
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
    flat = steep < tuning.min_gradient
    # where nothing varies any direction will do: a fixed one per point, so that the result is reproducible
    normal[flat] = _directions(len(points), domain.dim)[flat]
    curvature = np.zeros(len(points))
    for probe in tuning.probes:
        ends = [
            slopes(np.clip(points + sign * probe * normal * halfwidth, lower, upper))[rows, field] for sign in (1, -1)
        ]
        change = (ends[0] - ends[1]) / (2 * probe)
        size = np.linalg.norm(change, axis=1)
        larger = (size > curvature) & (size > 1.0)
        normal[larger] = change[larger] / size[larger, None]
        curvature = np.maximum(curvature, size)
    return length_rate(steep, curvature, 2.0), normal


def _directions(count: int, dim: int) -> Array:
    directions = np.random.default_rng(0).standard_normal((count, dim))
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


# ---------------------------------------------------------------------------------------------- growing windows


@dataclass(frozen=True)
class GrowingWindow:
    """Solves with placed features of a given width."""

    problem: Problem
    width: int
    rng: np.random.Generator
    settings: SolverSettings

    def start(self) -> State:
        """Return a state for the whole time: that of the last window, or the initial guess where the domain has no
        time."""
        if not isinstance(self.problem.domain, SpaceTime):
            return first_guess(self.problem)
        growing = self.settings.tuning.growing
        begin, end = self.problem.domain.time
        early = min(growing.early_width, self.width)
        window, failures = growing.first * (end - begin), 0
        state: State = first_guess(self.problem, moving=True)
        while window < end - begin and not self.settings.over(early):
            part = restrict_time(self.problem, (begin, begin + window))
            trial = placed_trial(part, early, state, self.rng, self._settings, "")
            if not trial.score <= UNSOLVED_RESIDUAL:  # also where it is NaN
                failures += 1
                if failures > 3:
                    reached = f"t = {begin + window:.3g}"
                    raise InputError(f"the solution could not be followed beyond {reached}; try more width or slabs")
                window /= growing.factor
                continue
            state, window = trial.network, window * growing.factor
        return state

    def solve(self, state: State, number: int) -> Trial:
        """Solve on the whole interval with features placed for a state."""
        label = f"width {self.width}, placed, iteration {number}"
        return placed_trial(self.problem, self.width, state, self.rng, self._settings, label)

    @property
    def _settings(self) -> SolverSettings:
        growing = self.settings.tuning.growing
        newton = replace(
            self.settings.newton,
            cutoff=max(growing.cutoff, self.settings.newton.cutoff),
            iterations=min(self.settings.newton.iterations, 10),
        )
        return replace(self.settings, newton=newton, points_per_column=growing.points_per_column)


def placed_trial(
    problem: Problem, width: int, state: State, rng: np.random.Generator, settings: SolverSettings, label: str
) -> Trial:
    """Solve with features and points placed for a state."""
    placement = Placement(settings.tuning.placement)
    features = placement.features(state, problem.domain, width, rng)
    density = partial(placement.density, state, problem.domain)
    return solve_trial(problem, (Subdomain(problem.domain.bounds, features),), state, rng, settings, density, label)
