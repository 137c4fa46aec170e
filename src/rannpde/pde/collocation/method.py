"""solve_space_time(): a random network in space-time whose output weights minimise the PINN loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError, choose, positive_integer, positive_number, reject, require, suggestion
from rannpde.network.features import Features
from rannpde.network.laws import Rng, WeightLaw
from rannpde.pde.collocation.attempt import Attempt, Recipe, attempt
from rannpde.pde.collocation.growing import Growth
from rannpde.pde.collocation.guess import first_guess
from rannpde.pde.collocation.newton import GaussNewton
from rannpde.pde.collocation.pieces import Piece, PiecewiseNetwork
from rannpde.pde.collocation.search import BoxFeatures, Scales, Search, first_scales
from rannpde.pde.functions import ExactSolution, State
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.restrict import restrict_time
from rannpde.pde.solution import Solution, solution_of

FIRST_WIDTH, LAST_WIDTH = 100, 1600
ROUGH = 3e-3
"""Above this, features placed by the solution are tried where the problem evolves in time."""


@dataclass(frozen=True)
class Settings:
    """The keyword arguments of ``solve_space_time``, checked."""

    width: int | str
    scale: float | Sequence[float] | str
    activation: str
    placement: str
    slabs: int
    pieces: Mapping[str, int]
    features: Features | None
    law: WeightLaw | None
    guess: State | None
    tol: float
    recipe: Recipe
    growth: Growth
    progress: Callable[[Attempt], None] | None


def solve_space_time(
    problem: Problem,
    *,
    tol: float = 1e-6,
    width: int | str = "auto",
    scale: float | Sequence[float] | str = "auto",
    rng: Rng = 0,
    activation: str = "tanh",
    placement: str = "auto",
    slabs: int = 1,
    pieces: Mapping[str, int] | None = None,
    features: Features | None = None,
    law: WeightLaw | None = None,
    guess: Any = None,
    weights: Mapping[str, float] | None = None,
    points_per_column: float = 3.0,
    newton: GaussNewton | None = None,
    growth: Growth | None = None,
    progress: Callable[[Attempt], None] | None = None,
) -> Solution:
    """Minimise the PINN loss of any stated problem by Gauss–Newton on the output weights.

    tol : "auto" widths stop when the held-out residual, relative to the equation's own terms, is below
    width : neurons a piece; "auto" doubles from 100 until the held-out residual is below ``tol`` or stalls
    scale : largest hidden weight on the domain mapped to [-1, 1]^n, one number or one a coordinate; "auto" searches
    placement : "uniform" draws neurons by the law, "placed" puts them where the solution varies, on a growing time
        window; "auto" tries the second when the first leaves a large residual
    slabs : time slabs, solved one after the other; pieces : {"x": 4} cuts the domain, joined by continuity
    features, law : your own hidden layer, or the law to draw it from
    guess : field → formula or callable with derivatives, or a Solution
    weights : factor of the rows of an equation or condition by name, beside the balance (see ``assemble``)

    >>> from rannpde.domains import Interval
    >>> from rannpde.pde.problem.conditions import On
    >>> ends = On(("x=0", "x=1"), "u = sin(x)")
    >>> problem = Problem("u_xx = -u", Interval(0, 1), {"ends": ends}, exact={"u": "sin(x)"})
    >>> solve_space_time(problem, width=40, scale=1.0, rng=0).errors()["u"] < 1e-10
    True
    """
    begin = perf_counter()
    recipe = Recipe(newton or GaussNewton(), _checked_weights(weights or {}, problem), points_per_column)
    settings = Settings(
        width if width == "auto" else positive_integer("width", width),
        scale, activation, choose("placement", placement, {n: n for n in ("auto", "uniform", "placed")}),
        positive_integer("slabs", slabs), dict(pieces or {}), features, law, _state(guess, problem),
        positive_number("tol", tol), recipe, growth or Growth(), progress,
    )  # fmt: skip
    generator = np.random.default_rng(rng)
    attempts = _by_slabs(problem, settings, generator) if slabs > 1 else _attempts(problem, settings, generator)
    return solution_of(problem, attempts[0], attempts[1:], perf_counter() - begin)


def _attempts(problem: Problem, settings: Settings, rng: np.random.Generator) -> list[Attempt]:
    """The best attempt first, then the others."""
    if settings.features is not None:
        return [_with_features(problem, settings, rng)]
    if settings.placement == "placed":
        return _placed(problem, settings, rng, None)
    found = _uniform(problem, settings, rng)
    sharp = found[0].score > ROUGH and isinstance(problem.domain, SpaceTime) and problem.domain.dim <= 3
    if settings.placement == "auto" and sharp and not (settings.pieces or problem.periodic or settings.scale != "auto"):
        with suppress(InputError):  # the window could not grow: what there is stays the answer
            found = sorted([*_placed(problem, settings, rng, None), *found], key=lambda one: one.score)
    return found


def _with_features(problem: Problem, settings: Settings, rng: np.random.Generator) -> Attempt:
    features = settings.features
    assert features is not None
    require(features.dim == problem.domain.dim, "features of dim", features.dim, f"{problem.domain.dim}, as the domain")
    pieces = (Piece(problem.domain.bounds, features),)
    return attempt(
        problem, pieces, settings.guess or first_guess(problem), rng, settings.recipe, label="given features"
    )


def _placed(problem: Problem, settings: Settings, rng: np.random.Generator, state: State | None) -> list[Attempt]:
    width = 400 if settings.width == "auto" else int(settings.width)
    return settings.growth.run(problem, width, rng, settings.recipe, state or settings.guess, settings.progress)


def _uniform(problem: Problem, settings: Settings, rng: np.random.Generator) -> list[Attempt]:
    source = BoxFeatures(problem, dict(settings.pieces), settings.activation, settings.law)
    search = Search(problem, source, settings.recipe, int(rng.integers(2**31)), settings.progress)
    state = settings.guess or first_guess(problem)
    if settings.width != "auto":
        return _one_width(search, settings, int(settings.width), state, None)
    attempts: list[Attempt] = []
    scales: Scales | None = None
    width = FIRST_WIDTH
    while width <= LAST_WIDTH:
        found = _one_width(search, settings, width, state, scales)
        stalled = bool(attempts) and found[0].score > 0.5 * attempts[0].score
        attempts = [*attempts, *found] if attempts and attempts[0].score < found[0].score else [*found, *attempts]
        if attempts[0].score < settings.tol or stalled:
            break
        state, width = attempts[0].network, 2 * width
    return attempts


def _one_width(search: Search, settings: Settings, width: int, state: State, start: Scales | None) -> list[Attempt]:
    dim = search.problem.domain.dim
    if settings.scale != "auto":
        return [search.solve(width, _scales(settings.scale, dim), state)]
    scales, tried = search.run(width, state, start or first_scales(search.problem, width))
    final = search.solve(width, scales, tried[0].network)
    # attempts of the search are cut short after two steps: prefer the full solve unless it is clearly worse
    if final.score <= 2 * tried[0].score or not tried[0].outcome.converged:
        return [final, *tried]
    return [*tried, final]


def _scales(scale: float | Sequence[float] | str, dim: int) -> Scales:
    if isinstance(scale, str):
        reject("scale", scale, "a number, one a coordinate, or 'auto'")
    values = (float(scale),) * dim if isinstance(scale, (int, float, np.floating)) else tuple(float(s) for s in scale)
    require(
        len(values) == dim and all(0 < v < np.inf for v in values), "scale", scale, f"one number > 0, or {dim} of them"
    )
    return values


def _by_slabs(problem: Problem, settings: Settings, rng: np.random.Generator) -> list[Attempt]:
    """Slabs one after the other; the pieces of all of them make one solution, judged by its worst slab."""
    if not isinstance(problem.domain, SpaceTime):
        reject("slabs", settings.slabs, "1, as the domain has no time")
    cuts = np.linspace(*problem.domain.time, settings.slabs + 1)
    best: list[Attempt] = []
    others: list[Attempt] = []
    for number in range(settings.slabs):
        before = best[-1].network if best else None
        part = restrict_time(problem, (float(cuts[number]), float(cuts[number + 1])), before)
        found = _attempts(part, settings, rng)
        label = f"slab {number + 1}: {found[0].label}"
        best.append(replace(found[0], label=label))
        others += [replace(one, label=f"slab {number + 1}: {one.label}") for one in found[1:]]
    worst = max(best, key=lambda one: (not one.outcome.converged, one.score))
    network = PiecewiseNetwork(
        tuple(piece for one in best for piece in one.network.pieces),
        tuple(c for one in best for c in one.network.coefficients),
    )
    return [replace(worst, network=network, label=f"{settings.slabs} slabs, worst is {worst.label}"), *others]


def _state(guess: Any, problem: Problem) -> State | None:
    if guess is None:
        return None
    if isinstance(guess, Solution):
        return guess.network
    if isinstance(guess, Mapping):
        known = replace(problem, exact=guess).exact_solution
        assert isinstance(known, ExactSolution)
        return known
    require(
        hasattr(guess, "derivative"),
        "guess",
        guess,
        "a mapping of fields to formulas, a Solution, or an object with derivative",
    )
    return guess


def _checked_weights(weights: Mapping[str, float], problem: Problem) -> Mapping[str, float]:
    known = {*problem.equations, *problem.conditions, "continuity", *(f"bounds of {n}" for n in problem.bounds)}
    for name, value in weights.items():
        if name not in known:
            raise InputError(f"weights names {name!r}, which is no equation or condition; {suggestion(name, known)}")
        positive = isinstance(value, (int, float, np.floating)) and 0 < value < np.inf
        require(positive, f"weights[{name!r}]", value, "a finite number > 0")
    return weights
