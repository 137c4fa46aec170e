"""One solve with given features: assemble, balance, first Newton step, Gauss–Newton, held-out residual.

Trial solves choose the scales of features by their residual, without an exact solution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.domain import SpaceTime
from rannpde.errors import MethodError
from rannpde.fitting.orthogonal import Factor
from rannpde.pde.collocation.subdomains import BoxFeatures, Density, PointSampler, Scales, Subdomain, SubdomainNetwork
from rannpde.pde.collocation.system import CollocationSystem, ContinuityRows, Rows, assemble
from rannpde.pde.collocation.tuning import CollocationTuning
from rannpde.pde.functions import State, Zero
from rannpde.pde.gauss_newton import Descent, GaussNewton, GaussNewtonStep
from rannpde.pde.monitor import Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import held_out_residual, jets_of

PROJECTION_CUTOFF = 1e-10
"""Rank tolerance of a projection: an initial guess should have small coefficients rather than all digits."""


@dataclass(frozen=True, eq=False)
class Trial:
    """The result of one solve.

    losses : name → (sum of squares, rows) on the collocation points: the sums of the PINN loss
    held_out : name → relative residual on held-out points
    """

    network: SubdomainNetwork
    descent: Descent
    losses: Mapping[str, tuple[float, int]]
    held_out: Mapping[str, float]
    seconds: float
    label: str = ""

    @property
    def score(self) -> float:
        """The largest relative held-out residual, by which settings are chosen."""
        worst = max(self.held_out.values())
        return worst if np.isfinite(worst) else np.inf


@dataclass(frozen=True)
class SolverSettings:
    """Settings of a solve other than the features: Gauss–Newton, weights of terms, points, tuning.

    points_per_column : collocation points per feature; below 2 least squares may oscillate between the points
    """

    newton: GaussNewton = field(default_factory=GaussNewton)
    weights: Mapping[str, float] = field(default_factory=dict)
    points_per_column: float = 3
    tuning: CollocationTuning = field(default_factory=CollocationTuning)
    on_step: Callable[[int, int], Status | None] | None = None
    """Called with (columns, steps) at every step; a Status that it returns ends the solve."""
    on_trial: Callable[[Trial], None] = lambda trial: None
    """Called with every trial."""

    def over(self, columns: int) -> bool:
        """Return whether the time limit is reached."""
        return self.on_step is not None and self.on_step(columns, 0) is not None


def solve_trial(
    problem: Problem,
    subdomains: tuple[Subdomain, ...],
    state: State,
    rng: np.random.Generator,
    settings: SolverSettings,
    density: Density | None = None,
    label: str = "",
) -> Trial:
    """Solve from a state, which need not lie in the span of the features."""
    begin = perf_counter()
    columns = max(subdomain.features.columns for subdomain in subdomains) * len(subdomains)
    sampler = PointSampler(columns, rng, settings.tuning, density, settings.points_per_column)
    with np.errstate(all="ignore"):  # iterates may leave the domain of a root: the loop checks for finite values
        system, descent = _iterate(assemble(problem, subdomains, sampler), state, settings)
    parts = system.split(descent.vector)
    coefficients = tuple(np.stack([part[name] for name in system.fields], axis=1) for part in parts)
    network = SubdomainNetwork(subdomains, coefficients)
    held_out = held_out_residual(problem, network)
    trial = Trial(network, descent, system.sums(descent.vector), held_out, perf_counter() - begin, label)
    settings.on_trial(trial)
    return trial


def _iterate(system: CollocationSystem, state: State, settings: SolverSettings) -> tuple[CollocationSystem, Descent]:
    """Return the balanced system and its solution: a full Newton step, then Gauss–Newton unless the system is
    linear."""
    newton = settings.newton
    if system.linear:
        state = Zero(len(system.fields))  # the step does not depend on the state: avoid its evaluation
    system, jacobian, right = system.first_step(state, settings.weights, settings.tuning.condition_weight)
    if not (np.isfinite(jacobian).all() and np.isfinite(right).all()):
        raise MethodError(
            "the equations are not finite at the first guess (a logarithm or root leaves its domain); pass guess=…"
        )
    start = perf_counter()
    step = Factor.of(jacobian, right).solve(newton.cutoff)
    seconds = perf_counter() - start
    norm = float(np.linalg.norm(system.residual(step.solution)))
    first = GaussNewtonStep(norm, 1.0, 0.0, step.rank, step.condition)
    if system.linear or newton.linear_model_holds(norm, float(np.linalg.norm(jacobian @ step.solution - right))):
        return system, Descent(step.solution, (first,), Status.CONVERGED, "", seconds)
    on_step = None if settings.on_step is None else lambda number: settings.on_step(system.size, number)  # type: ignore[misc]
    if not np.isfinite(norm) or norm > 10 * _state_norm(system, state):
        start = perf_counter()
        vector = _project(system, state, newton.cutoff)
        seconds += perf_counter() - start
        rest = newton.run(system, vector, on_step)
    else:
        rest = newton.run(system, step.solution, on_step)
        rest = replace(rest, steps=(first, *rest.steps))
    return system, replace(rest, solve_seconds=seconds + rest.solve_seconds)


def _state_norm(system: CollocationSystem, state: State) -> float:
    """Return the weighted residual norm of the state itself."""
    total = 0.0
    for rows in system.rows:
        if isinstance(rows, Rows):
            jets = jets_of(state, system.fields, rows.jets.points, rows.term.expression.jets)
            total += float(np.square(rows.scale * rows.term.expression.value(rows.known, jets)).sum())
    return total**0.5


def _project(system: CollocationSystem, state: State, cutoff: float) -> Array:
    """Return the coefficients whose values are nearest to the state's at the interior points, field by field."""
    vector = np.zeros(system.size)
    starts = system.starts()
    seen: set[int] = set()
    for rows in system.rows:
        if isinstance(rows, ContinuityRows) or not rows.inside or rows.subdomain in seen:
            continue
        seen.add(rows.subdomain)
        points, design = rows.jets.points, rows.jets.values
        values = state.derivative(points, (0,) * points.shape[1])
        for number, name in enumerate(system.fields):
            left = starts[rows.subdomain, name]
            fitted = Factor.of(design, values[:, number]).solve(max(cutoff, PROJECTION_CUTOFF))
            vector[left : left + design.shape[1]] = fitted.solution
    return vector


# ------------------------------------------------------------------------------------------- search for scales


@dataclass(frozen=True)
class ScaleSearch:
    """A descent on the logarithms of (scale in time, scale in space): factors 2 and 1/2, then √2."""

    problem: Problem
    source: BoxFeatures
    settings: SolverSettings

    @property
    def width(self) -> int:
        """Limit on the neurons of a solve that only compares scales."""
        tuning = self.settings.tuning
        return max(tuning.first_width, tuning.search_width // len(self.problem.fields))

    def solve(self, width: int, scales: Scales, state: State, seed: int, short: bool = False) -> Trial:
        """Make one trial; ``short`` allows two Gauss–Newton steps, enough to compare settings from a good state."""
        settings = (
            replace(self.settings, newton=replace(self.settings.newton, iterations=2)) if short else self.settings
        )
        rng = np.random.default_rng(seed)
        label = f"width {width}, scale {_text(scales)}"
        return solve_trial(self.problem, self.source.sample(width, scales, rng), state, rng, settings, label=label)

    def run(self, width: int, state: State, start: Scales, seed: int, solves: int) -> tuple[Scales, list[Trial]]:
        """Return the best scales and all trials, the best one first."""
        small = min(width, self.width)
        best = self.solve(small, start, state, seed)
        tried, scales = [best], start
        visited = {_text(start)}
        for factor in (2.0, 2.0**0.5):
            improved = True
            while improved and len(tried) < solves:
                improved = False
                for moved in self._neighbours(scales, factor):
                    if _text(moved) in visited or len(tried) >= solves or self.settings.over(small):
                        continue
                    visited.add(_text(moved))
                    new = self.solve(small, moved, best.network, seed, short=True)
                    tried.append(new)
                    if new.score < best.score:
                        best, scales, improved = new, moved, True
                        break
        tried.remove(best)
        return scales, [best, *tried]

    def _neighbours(self, scales: Scales, factor: float) -> list[Scales]:
        dim = self.problem.domain.dim
        directions: list[tuple[int, ...]] = [(1,) * dim]
        if isinstance(self.problem.domain, SpaceTime):
            directions = [(0,) + (1,) * (dim - 1), (1,) + (0,) * (dim - 1), (1,) * dim]
        return [
            tuple(s * factor ** (sign * d) for s, d in zip(scales, direction, strict=True))
            for direction in directions
            for sign in (1, -1)
        ]


def first_scales(problem: Problem, width: int, tuning: CollocationTuning) -> Scales:
    """Return the start of the search: (width/100)^(1/n), at most 3, lower where neurons depend on more than two
    coordinates, higher for fast data."""
    dim = problem.domain.dim
    together = min(dim, tuning.few_coordinates_from)
    base = min(3, (width / 100) ** (1 / dim) * (1 if dim <= 2 else 2 / together ** (3 / 2)))
    periodic = set(problem.periodic)
    top = max(2.0, (width / 8) ** (1 / dim))
    rates = np.zeros(dim) if problem.variation is None else tuning.lengths_to_scale * problem.variation.rates
    rates = np.minimum(rates, width / 2)  # the features could not resolve more
    return tuple(
        max(top, rate / np.pi) if name in periodic else max(base * (3 if periodic else 1), rate)
        for name, rate in zip(problem.domain.names, rates.tolist(), strict=True)
    )


def first_width(problem: Problem, tuning: CollocationTuning) -> int:
    """Return enough neurons to resolve the data, between the first and half of the last width."""
    if problem.variation is None:
        return tuning.first_width
    lengths = float(np.prod(np.maximum(problem.variation.rates, 1.0)))
    width = tuning.first_width
    while 2 * width < min(tuning.lengths_to_width * lengths, tuning.last_width):
        width *= 2
    return width


def _text(scales: Scales) -> str:
    return "×".join(f"{s:.3g}" for s in dict.fromkeys(scales)) if len(set(scales)) <= 2 else str(tuple(scales))
