"""One solve with given features: assemble, balance, first Newton step, Gauss–Newton; and its held-out residual."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
import sympy

from rannpde.errors import InputError
from rannpde.pde.collocation.assemble import Sampler, assemble, first_step
from rannpde.pde.collocation.linear import Factor
from rannpde.pde.collocation.newton import GaussNewton, Iteration, Outcome
from rannpde.pde.collocation.pieces import Piece, PiecewiseNetwork
from rannpde.pde.collocation.system import Matching, Rows, System
from rannpde.pde.functions import State, Zero, jets_of
from rannpde.pde.problem.conditions import Term
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.evaluate import evaluate
from rannpde.pde.statement.expression import Jet

Array = np.ndarray

HELD_OUT = 1000
"""Fresh points a term for the held-out residual."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """What one solve found."""

    network: PiecewiseNetwork
    outcome: Outcome
    losses: Mapping[str, tuple[float, int]]
    """Name → (sum of squares, rows) on the collocation points: the sums of the PINN loss."""
    held_out: Mapping[str, float]
    """Name → relative residual on fresh points."""
    seconds: float
    label: str = ""
    rows: int = 0
    columns: int = 0

    @property
    def score(self) -> float:
        """The largest relative held-out residual: what settings are chosen by."""
        worst = max(self.held_out.values())
        return worst if np.isfinite(worst) else np.inf


@dataclass(frozen=True)
class Recipe:
    """Everything about a solve but the features: weights of terms, loop, points, seed of the held-out points."""

    newton: GaussNewton = field(default_factory=GaussNewton)
    weights: Mapping[str, float] = field(default_factory=dict)
    points_per_column: float = 3.0


def attempt(
    problem: Problem,
    pieces: tuple[Piece, ...],
    state: State,
    rng: np.random.Generator,
    recipe: Recipe,
    density: Any = None,
    label: str = "",
) -> Attempt:
    """Solve from a state, which need not lie in the span of the features."""
    begin = perf_counter()
    columns = max(piece.features.columns for piece in pieces) * len(pieces)
    system = assemble(problem, pieces, Sampler(columns, rng, density, recipe.points_per_column))
    with np.errstate(all="ignore"):  # iterates may leave the domain of a root: the loop looks at what it gets
        system, outcome = _iterate(system, state, recipe)
    network = PiecewiseNetwork(pieces, tuple(_matrix(system, part) for part in system.split(outcome.vector)))
    losses = system.sums(outcome.vector)
    held_out = held_out_residual(problem, network)
    return Attempt(network, outcome, losses, held_out, perf_counter() - begin, label, system.height, system.size)


def _matrix(system: System, part: Mapping[str, Array]) -> Array:
    return np.stack([part[name] for name in system.fields], axis=1)


def _iterate(system: System, state: State, recipe: Recipe) -> tuple[System, Outcome]:
    """The balanced system; the full Newton step from the state, then Gauss–Newton unless the system is linear."""
    newton = recipe.newton
    if system.linear:
        state = Zero(len(system.fields))  # the step does not depend on where it starts: spare the evaluation
    system, jacobian, right = first_step(system, state, recipe.weights)
    if not (np.isfinite(jacobian).all() and np.isfinite(right).all()):
        raise InputError(
            "the equations are not finite at the first guess (a logarithm or root leaves its domain); pass guess=…"
        )
    start = perf_counter()
    step = Factor.of(jacobian, right).solve(newton.cutoff)
    seconds = perf_counter() - start
    norm = float(np.linalg.norm(system.residual(step.solution)))
    first = Iteration(norm, 1.0, 0.0, step.rank, step.condition)
    if system.linear:
        return system, Outcome(step.solution, (first,), True, "one solve, as the problem is linear", seconds)
    if not np.isfinite(norm) or norm > 10 * _state_norm(system, state):
        start = perf_counter()
        vector = _project(system, state, newton.cutoff)
        seconds += perf_counter() - start
        rest = newton.run(system, vector)
    else:
        rest = newton.run(system, step.solution)
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
        if isinstance(rows, Matching) or rows.term.kind != "interior" or rows.piece in seen:
            continue
        seen.add(rows.piece)
        points, design = rows.jets.points, rows.jets.ridge(0)
        values = state.derivative(points, (0,) * points.shape[1])
        for number, name in enumerate(system.fields):
            left = starts[rows.piece, name]
            vector[left : left + design.shape[1]] = (
                Factor.of(design, values[:, number]).solve(max(cutoff, 1e-10)).solution
            )
    return vector


# ----------------------------------------------------------------------------------------- held-out residual


def held_out_residual(problem: Problem, state: State, rng: int = 20231, count: int = HELD_OUT) -> dict[str, float]:
    """Name → root mean square residual on fresh points over the size of the term's own summands.

    A number that needs no exact solution and no units: 1 means nothing is solved, 1e-6 six digits of balance. The
    size is at least what the linearised term gives for fields that vary over the whole domain, |∂^α u| ~ |u|/h^α.
    """
    generator = np.random.default_rng(rng)
    interior = problem.domain.sample(count, rng=generator)
    plain = {Jet(name, (0,) * problem.domain.dim) for name in problem.fields}
    needed = plain.union(*(term.expression.jets for term in problem.terms))
    everywhere = jets_of(state, problem.fields, interior, needed)
    found: dict[str, tuple[float, float]] = {}
    for term in problem.terms:
        residual, size = _measured(term, state, problem, interior, everywhere, generator)
        before = found.get(term.name, (0.0, 0.0))
        found[term.name] = (before[0] + residual**2, before[1] + size**2)
    return {name: float(np.sqrt(residual / max(size, 1e-300))) for name, (residual, size) in found.items()}


def _measured(
    term: Term,
    state: State,
    problem: Problem,
    interior: Array,
    everywhere: Mapping[Jet, Array],
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Root mean squares of the residual and of Σ |summand|; of conditions at least the quantity's size inside."""
    expression, points = term.expression, interior
    jets: Mapping[Jet, Array] = everywhere
    if term.kind != "interior":
        region: Any = term.region
        points = term.points if term.points is not None else region.sample(len(interior) if region.axes else 1, rng=rng)
        jets = jets_of(state, problem.fields, points, expression.jets)
    values = term.known(points, problem.vocabulary.coordinates, term.data)
    values |= {symbol: jets[jet] for symbol, jet in expression.symbols.items()}
    parts = evaluate(list(sympy.Add.make_args(expression.formula)), values, expression.functions)
    zero = np.zeros(len(points))
    residual, size = _rms(sum(parts, zero)), _rms(sum((np.abs(part) for part in parts), zero))
    if term.kind != "interior":
        return residual, max(size, *[_rms(everywhere[jet]) for jet in expression.jets])
    halfwidth = 0.5 * np.diff(problem.domain.bounds, axis=1)[:, 0]
    natural = 0.0
    for jet, partial in zip(expression.jets, evaluate(expression.partials, values, expression.functions), strict=True):
        scale = float(np.prod(halfwidth ** np.array(jet.index)))
        natural += _rms(partial) * _rms(everywhere[Jet(jet.field, (0,) * len(halfwidth))]) / scale
    return residual, max(size, natural)


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
