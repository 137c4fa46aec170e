"""One solve with given features: assemble, balance, first Newton step, Gauss–Newton; and its held-out residual.

Such solves choose the scales of features: by the residual that they leave, with no exact solution at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError
from rannpde.fitting.orthogonal import Factor
from rannpde.pde.collocation.newton import Descent, GaussNewton, GaussNewtonStep
from rannpde.pde.collocation.pieces import BoxFeatures, Density, Piece, PiecewiseNetwork, PointDraw, Scales
from rannpde.pde.collocation.system import CollocationSystem, Matching, Rows, assemble
from rannpde.pde.collocation.tuning import CollocationTuning
from rannpde.pde.functions import State, Zero
from rannpde.pde.monitor import Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import held_out_residual, jets_of

SMOOTH_CUTOFF = 1e-10
"""Rank cut of a projection: a guess is wanted with small coefficients, not with its last digits."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """What one solve found.

    losses : name → (sum of squares, rows) on the collocation points: the sums of the PINN loss
    held_out : name → relative residual on fresh points
    """

    network: PiecewiseNetwork
    descent: Descent
    losses: Mapping[str, tuple[float, int]]
    held_out: Mapping[str, float]
    seconds: float
    label: str = ""

    @property
    def score(self) -> float:
        """The largest relative held-out residual: what settings are chosen by."""
        worst = max(self.held_out.values())
        return worst if np.isfinite(worst) else np.inf


@dataclass(frozen=True)
class Recipe:
    """Everything about a solve but the features: weights of terms, loop, points; ``notice`` is asked at every step."""

    newton: GaussNewton = field(default_factory=GaussNewton)
    weights: Mapping[str, float] = field(default_factory=dict)
    points_per_column: float = 3.0
    tuning: CollocationTuning = field(default_factory=CollocationTuning)
    notice: Callable[[int, int], Status | None] | None = None
    """Called with (columns, steps)."""

    def over(self, columns: int) -> bool:
        """Whether the time allowed is used up."""
        return self.notice is not None and self.notice(columns, 0) is not None


def attempt(
    problem: Problem,
    pieces: tuple[Piece, ...],
    state: State,
    rng: np.random.Generator,
    recipe: Recipe,
    density: Density | None = None,
    label: str = "",
) -> Attempt:
    """Solve from a state, which need not lie in the span of the features."""
    begin = perf_counter()
    columns = max(piece.features.columns for piece in pieces) * len(pieces)
    sampler = PointDraw(columns, rng, recipe.tuning, density, recipe.points_per_column)
    with np.errstate(all="ignore"):  # iterates may leave the domain of a root: the loop looks at what it gets
        system, descent = _iterate(assemble(problem, pieces, sampler), state, recipe)
    parts = system.split(descent.vector)
    coefficients = tuple(np.stack([part[name] for name in system.fields], axis=1) for part in parts)
    network = PiecewiseNetwork(pieces, coefficients)
    held_out = held_out_residual(problem, network)
    return Attempt(network, descent, system.sums(descent.vector), held_out, perf_counter() - begin, label)


def _iterate(system: CollocationSystem, state: State, recipe: Recipe) -> tuple[CollocationSystem, Descent]:
    """The balanced system; the full Newton step from the state, then Gauss–Newton unless the system is linear."""
    newton = recipe.newton
    if system.linear:
        state = Zero(len(system.fields))  # the step does not depend on where it starts: spare the evaluation
    system, jacobian, right = system.first_step(state, recipe.weights, recipe.tuning.condition_weight)
    if not (np.isfinite(jacobian).all() and np.isfinite(right).all()):
        raise InputError(
            "the equations are not finite at the first guess (a logarithm or root leaves its domain); pass guess=…"
        )
    start = perf_counter()
    step = Factor.of(jacobian, right).solve(newton.cutoff)
    seconds = perf_counter() - start
    norm = float(np.linalg.norm(system.residual(step.solution)))
    first = GaussNewtonStep(norm, 1.0, 0.0, step.rank, step.condition)
    if system.linear or newton.kept(norm, float(np.linalg.norm(jacobian @ step.solution - right))):
        return system, Descent(step.solution, (first,), Status.CONVERGED, "", seconds)
    notice = None if recipe.notice is None else lambda number: recipe.notice(system.size, number)  # type: ignore[misc]
    if not np.isfinite(norm) or norm > 10 * _state_norm(system, state):
        start = perf_counter()
        vector = _project(system, state, newton.cutoff)
        seconds += perf_counter() - start
        rest = newton.run(system, vector, notice)
    else:
        rest = newton.run(system, step.solution, notice)
        rest = replace(rest, steps=(first, *rest.steps))
    return system, replace(rest, solve_seconds=seconds + rest.solve_seconds)


def _state_norm(system: CollocationSystem, state: State) -> float:
    """The weighted residual norm of the state itself."""
    total = 0.0
    for rows in system.rows:
        if isinstance(rows, Rows):
            jets = jets_of(state, system.fields, rows.jets.points, rows.term.expression.jets)
            total += float(np.square(rows.scale * rows.term.expression.value(rows.known, jets)).sum())
    return total**0.5


def _project(system: CollocationSystem, state: State, cutoff: float) -> Array:
    """The coefficients whose values are nearest to the state's at the interior points, field by field."""
    vector = np.zeros(system.size)
    starts = system.starts()
    seen: set[int] = set()
    for rows in system.rows:
        if isinstance(rows, Matching) or not rows.inside or rows.piece in seen:
            continue
        seen.add(rows.piece)
        points, design = rows.jets.points, rows.jets.values
        values = state.derivative(points, (0,) * points.shape[1])
        for number, name in enumerate(system.fields):
            left = starts[rows.piece, name]
            fitted = Factor.of(design, values[:, number]).solve(max(cutoff, SMOOTH_CUTOFF))
            vector[left : left + design.shape[1]] = fitted.solution
    return vector


# ------------------------------------------------------------------------------------------- search for scales


@dataclass(frozen=True)
class ScaleSearch:
    """A walk on the logarithms of (scale in time, scale in space): steps ×2 and ÷2, then ×√2, downhill only."""

    problem: Problem
    source: BoxFeatures
    recipe: Recipe

    @property
    def width(self) -> int:
        """Neurons at most of a solve that only compares scales."""
        tuning = self.recipe.tuning
        return max(tuning.first_width, tuning.search_width // len(self.problem.fields))

    def solve(self, width: int, scales: Scales, state: State, seed: int, short: bool = False) -> Attempt:
        """One attempt; ``short`` allows two Gauss–Newton steps, enough to compare settings from a good state."""
        recipe = replace(self.recipe, newton=replace(self.recipe.newton, iterations=2)) if short else self.recipe
        rng = np.random.default_rng(seed)
        label = f"width {width}, scale {_text(scales)}"
        return attempt(self.problem, self.source.draw(width, scales, rng), state, rng, recipe, label=label)

    def run(self, width: int, state: State, start: Scales, seed: int, rounds: int) -> tuple[Scales, list[Attempt]]:
        """The best scales found and all attempts, the best one first."""
        small = min(width, self.width)
        best = self.solve(small, start, state, seed)
        tried, scales = [best], start
        visited = {_text(start)}
        for factor in (2.0, 2.0**0.5):
            improved = True
            while improved and len(tried) < rounds:
                improved = False
                for moved in self._neighbours(scales, factor):
                    if _text(moved) in visited or len(tried) >= rounds or self.recipe.over(small):
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
    """Where the search begins: (width/100)^(1/n), at most 3, and lower in many dimensions; more for fast data."""
    dim = problem.domain.dim
    base = min(3.0, max(0.2, (width / 100) ** (1 / dim) * (1.0 if dim <= 2 else 2.0 / dim**1.5)))
    periodic = set(problem.periodic)
    top = max(2.0, (width / 8) ** (1 / dim))
    rates = np.zeros(dim) if problem.variation is None else tuning.lengths_to_scale * problem.variation.rates
    rates = np.minimum(rates, width / 2)  # more than the features could follow
    return tuple(
        max(top, rate / np.pi) if name in periodic else max(base * (3.0 if periodic else 1.0), rate)
        for name, rate in zip(problem.domain.names, rates.tolist(), strict=True)
    )


def first_width(problem: Problem, tuning: CollocationTuning) -> int:
    """Enough neurons to follow the data, between the first and half of the last width."""
    if problem.variation is None:
        return tuning.first_width
    lengths = float(np.prod(np.maximum(problem.variation.rates, 1.0)))
    width = tuning.first_width
    while 2 * width < min(tuning.lengths_to_width * lengths, tuning.last_width):
        width *= 2
    return width


def _text(scales: Scales) -> str:
    return "×".join(f"{s:.3g}" for s in dict.fromkeys(scales)) if len(set(scales)) <= 2 else str(tuple(scales))
