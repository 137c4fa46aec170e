"""One solve with given features: assemble, balance, first Newton step, Gauss–Newton; and its held-out residual."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError
from rannpde.fitting.orthogonal import Factor
from rannpde.pde.collocation.assemble import Density, Sampler, assemble
from rannpde.pde.collocation.newton import Descent, GaussNewton, Iteration
from rannpde.pde.collocation.pieces import Piece, PiecewiseNetwork
from rannpde.pde.collocation.system import Matching, Rows, System
from rannpde.pde.collocation.tuning import CollocationTuning
from rannpde.pde.functions import State, Zero
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import held_out_residual, jets_of
from rannpde.pde.watch import Ending

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
    notice: Callable[[int, int], Ending | None] | None = None
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
    sampler = Sampler(columns, rng, recipe.tuning, density, recipe.points_per_column)
    with np.errstate(all="ignore"):  # iterates may leave the domain of a root: the loop looks at what it gets
        system, descent = _iterate(assemble(problem, pieces, sampler), state, recipe)
    parts = system.split(descent.vector)
    coefficients = tuple(np.stack([part[name] for name in system.fields], axis=1) for part in parts)
    network = PiecewiseNetwork(pieces, coefficients)
    held_out = held_out_residual(problem, network)
    return Attempt(network, descent, system.sums(descent.vector), held_out, perf_counter() - begin, label)


def _iterate(system: System, state: State, recipe: Recipe) -> tuple[System, Descent]:
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
    first = Iteration(norm, 1.0, 0.0, step.rank, step.condition)
    if system.linear or newton.kept(norm, float(np.linalg.norm(jacobian @ step.solution - right))):
        return system, Descent(step.solution, (first,), Ending.CONVERGED, "", seconds)
    notice = None if recipe.notice is None else lambda number: recipe.notice(system.size, number)  # type: ignore[misc]
    if not np.isfinite(norm) or norm > 10 * _state_norm(system, state):
        start = perf_counter()
        vector = _project(system, state, newton.cutoff)
        seconds += perf_counter() - start
        rest = newton.run(system, vector, notice)
    else:
        rest = newton.run(system, step.solution, notice)
        rest = replace(rest, history=(first, *rest.history))
    return system, replace(rest, solve_seconds=seconds + rest.solve_seconds)


def _state_norm(system: System, state: State) -> float:
    """The weighted residual norm of the state itself."""
    total = 0.0
    for rows in system.rows:
        if isinstance(rows, Rows):
            jets = jets_of(state, system.fields, rows.jets.points, rows.term.expression.jets)
            total += float(np.square(rows.scale * rows.term.expression.value(rows.known, jets)).sum())
    return total**0.5


def _project(system: System, state: State, cutoff: float) -> Array:
    """The coefficients whose values are nearest to the state's at the interior points, field by field."""
    vector = np.zeros(system.size)
    starts = system.starts()
    seen: set[int] = set()
    for rows in system.rows:
        if isinstance(rows, Matching) or not rows.inside or rows.piece in seen:
            continue
        seen.add(rows.piece)
        points, design = rows.jets.points, rows.jets.ridge(0)
        values = state.derivative(points, (0,) * points.shape[1])
        for number, name in enumerate(system.fields):
            left = starts[rows.piece, name]
            fitted = Factor.of(design, values[:, number]).solve(max(cutoff, SMOOTH_CUTOFF))
            vector[left : left + design.shape[1]] = fitted.solution
    return vector
