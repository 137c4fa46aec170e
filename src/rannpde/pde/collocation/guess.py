"""Where a solve begins: the state, from what a problem prescribes, and features placed for a state.

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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import sympy

from rannpde.arrays import Array, MultiIndex
from rannpde.domains.domain import Domain, SpaceTime
from rannpde.errors import InputError, require
from rannpde.network.activations import as_activation
from rannpde.network.adapted import length_rate
from rannpde.network.features import RandomFeatures
from rannpde.pde.collocation.attempt import Attempt, Recipe, attempt
from rannpde.pde.collocation.pieces import Piece
from rannpde.pde.collocation.tuning import PlacementTuning
from rannpde.pde.functions import ExactSolution, Formula, State
from rannpde.pde.problem.forms import rates
from rannpde.pde.problem.problem import Problem, restrict_time
from rannpde.pde.residual import gradient
from rannpde.pde.solution import Solution
from rannpde.pde.statement.expansion import expand
from rannpde.pde.statement.expression import Expression

STEP = 1e-4
"""Of central differences of a user's function, relative to its argument: good enough for a guess."""
HOPELESS = 0.5
"""A window solved with a larger relative residual is shortened; three in a row end the growth."""


def first_guess(problem: Problem, moving: bool = False) -> State:
    """The initial values for all times, or with ``moving`` their Taylor polynomial of degree 1 in time.

    The time derivative comes from the equations: they are solved for it with the initial values inserted. Fields
    without initial values start at 0, or at the nearest number inside their bounds.
    """
    values: dict[str, sympy.Expr] = {}
    speeds: dict[str, sympy.Expr] = {}
    for term in problem.constraints:
        given = term.prescribed if term.kind == "initial" else None
        if given is not None and sum(given[0].index[1:]) == 0:
            {0: values, 1: speeds}.get(given[0].index[0], {})[given[0].field] = given[1]
    values = {name: values.get(name, _inside(problem, name)) for name in problem.fields}
    if isinstance(problem.domain, SpaceTime):
        clock, start = problem.vocabulary.symbols[0], problem.domain.time[0]
        values = {name: value.subs(clock, start) for name, value in values.items()}
        if moving:
            moved = _time_derivatives(problem, values, start) | {k: v.subs(clock, start) for k, v in speeds.items()}
            values = {name: value + (clock - start) * moved.get(name, 0) for name, value in values.items()}
    smooth = {name: _with_derivative(function) for name, function in problem.functions.items()}
    symbols = problem.vocabulary.symbols
    return _Finite(ExactSolution({n: Formula(Expression(v, v, {}, smooth), symbols) for n, v in values.items()}))


@dataclass(frozen=True)
class _Finite:
    """A state whose derivatives are 0 where they do not exist: at the edge of a support, say."""

    state: State

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        return np.nan_to_num(self.state.derivative(points, derivative), nan=0.0, posinf=0.0, neginf=0.0)


def _inside(problem: Problem, name: str) -> sympy.Expr:
    lower, upper = problem.bounds.get(name, (None, None))
    if lower is not None and upper is not None:
        return sympy.Float((lower + upper) / 2)
    if lower is not None and lower >= 0:
        return sympy.Float(lower + 1)
    return sympy.Float(upper - 1) if upper is not None and upper <= 0 else sympy.Integer(0)


def _time_derivatives(problem: Problem, values: dict[str, sympy.Expr], start: float) -> dict[str, sympy.Expr]:
    """∂_t of the fields at the start, where the equations are of first order in time and give it."""
    solved = rates(problem) if all(problem.order(name, 0) == 1 for name in problem.fields) else None
    found = {}
    for name, rate in (solved or {}).items():
        table = {}
        for symbol, jet in rate.symbols.items():
            orders = [(c, k) for c, k in zip(problem.vocabulary.symbols, jet.index, strict=True) if k]
            table[symbol] = expand(sympy.diff(values[jet.field], *orders)) if orders else values[jet.field]
        found[name] = rate.formula.xreplace(table).subs(problem.vocabulary.symbols[0], start)
    return found


def _with_derivative(function: Callable[..., Any]) -> Any:
    return function if hasattr(function, "derivative") else Differenced(function)


@dataclass(frozen=True)
class Differenced:
    """A user's function with derivatives by central differences: good enough for a guess, never in a residual."""

    function: Callable[..., Any]

    def __call__(self, *arguments: Array) -> Any:
        return self.function(*arguments)

    def derivative(self, orders: MultiIndex, *arguments: Array) -> Any:
        if not any(orders):
            return self.function(*arguments)
        place = next(k for k, order in enumerate(orders) if order)
        lower = tuple(order - (k == place) for k, order in enumerate(orders))
        step = STEP * max(1.0, float(np.abs(arguments[place]).max()))
        sides = [
            self.derivative(lower, *[a + sign * step if k == place else a for k, a in enumerate(arguments)])
            for sign in (1, -1)
        ]
        return (np.asarray(sides[0], dtype=float) - sides[1]) / (2 * step)


def as_state(guess: Any, problem: Problem) -> State | None:
    """A guess given as formulas, as a Solution, or as any object with derivatives."""
    if guess is None:
        return None
    if isinstance(guess, Solution):
        return guess.function
    if isinstance(guess, Mapping):
        try:
            known = replace(problem, exact=guess).exact_solution
        except InputError as error:
            raise InputError(str(error).replace("exact", "guess", 1)) from None
        assert isinstance(known, ExactSolution)
        return known
    remedy = "a mapping of fields to formulas, a Solution, or an object with derivative"
    require(hasattr(guess, "derivative"), "guess", guess, remedy)
    return guess


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
