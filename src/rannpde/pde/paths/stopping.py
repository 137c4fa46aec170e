"""Optimal stopping: u ≥ h at dates, between two numbers.

Backward, û_n is the regression of what continuing pays, on columns + martingale increments; forward, on fresh paths,

    lower   E[D_τ h(X_τ) - M_τ]            τ the first date at which h ≥ û: a policy that anyone can follow
    upper   E[max_n (D_n h(X_n) - M_n)]     for any martingale M: the one that the regression already has

so that the value lies between them, up to their standard errors. D is the discount exp(∫ c ds) of f = c u + k.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.errors import reject
from rannpde.pde.paths.grid import NormalDraws
from rannpde.pde.paths.inner import InnerCoordinate
from rannpde.pde.paths.layer import LayerAlongPaths, LayerLaw
from rannpde.pde.paths.network import PathNetwork
from rannpde.pde.paths.processes import PathProcess
from rannpde.pde.paths.regression import (
    TrainingPaths,
    data_gradients,
    data_values,
    noise_to_come,
    source_values,
    spread_of,
)
from rannpde.pde.paths.ridge import fit_columns
from rannpde.pde.paths.statistics import SampleMoments, pairs
from rannpde.pde.problem.parabolic import Parabolic
from rannpde.rounding import COMPUTED


@dataclass(frozen=True, eq=False)
class StoppingGrid:
    """Nodes s_n, and which of them are dates at which one may stop."""

    nodes: Array
    dates: Array

    @classmethod
    def of(cls, form: Parabolic, substeps: int, steps: int) -> StoppingGrid:
        """``substeps`` between neighbouring dates; ``steps`` dates, evenly, where one may stop at any time."""
        assert form.obstacle is not None
        ends = [0.0, form.length]
        if form.obstacle.dates:
            at = [t - form.time[0] if form.backward else form.time[1] - t for t in form.obstacle.dates]
            allowed = sorted(s for s in at if -1e-12 * form.length <= s <= form.length * (1 + 1e-12))
        else:
            allowed = list(np.linspace(0.0, form.length, steps + 1))
        slack = 1e-9 * form.length
        breaks = sorted([*allowed, *(end for end in ends if all(abs(end - s) > slack for s in allowed))])
        nodes = np.concatenate([np.linspace(a, b, substeps, endpoint=False) for a, b in pairwise(breaks)])
        nodes = np.append(nodes, breaks[-1])
        dates = np.array([any(abs(node - s) <= slack for s in allowed) for node in nodes])
        return cls(nodes, dates)


@dataclass(frozen=True, eq=False)
class StoppingModel:
    """The continuation value at every node but the last."""

    form: Parabolic
    process: PathProcess
    grid: StoppingGrid
    networks: tuple[PathNetwork, ...]
    training: int


def check_stopping(form: Parabolic) -> None:
    """Refuse sources that are not c(t, x)·u + k(t, x)."""
    points = np.random.default_rng(3).uniform(0.5, 2.0, (4, form.dim))
    if form.source.has("gradient"):
        reject("the equation with an obstacle", "one with grad(u) in a nonlinear term", "linear in u",
               "optimal stopping is solved for u_t + L u + c*u + k = 0")  # fmt: skip
    values = [source_values(form, 0.5 * form.length, points, np.full(4, float(u))) for u in (0, 1, 2, -3)]
    curved = max(
        np.abs(values[2] - 2 * values[1] + values[0]).max(), np.abs(values[3] - 4 * values[0] + 3 * values[1]).max()
    )
    if curved > COMPUTED * max(np.abs(values).max(), 1e-300):
        reject("the equation with an obstacle", "nonlinear in u", "linear in u", "write u_t + L u + c*u + k = 0")


def _rates(form: Parabolic, s: float, point: Array) -> tuple[Array, Array]:
    """The rates c and k (M,) of the source."""
    constant = source_values(form, s, point, np.zeros(len(point)))
    return source_values(form, s, point, np.ones(len(point))) - constant, constant


def payoff(form: Parabolic, s: float, point: Array) -> Array:
    """The payoff h (M,) of stopping."""
    assert form.obstacle is not None
    return form.values(form.obstacle.payoff, s, point)


def _final(model_form: Parabolic, grid: StoppingGrid, point: Array) -> Array:
    last = data_values(model_form, point, False)[0]
    return np.maximum(last, payoff(model_form, float(grid.nodes[-1]), point)) if grid.dates[-1] else last


def train_stopping(
    form: Parabolic,
    process: PathProcess,
    grid: StoppingGrid,
    start: Array,
    law: LayerLaw,
    inner: tuple[InnerCoordinate, ...],
    penalty: float,
    rng: np.random.Generator,
) -> StoppingModel:
    """Networks of the continuation value, from paths that begin at ``start`` (M, d)."""
    nodes = grid.nodes
    paths = TrainingPaths.simulate(process, nodes, start, rng)
    last = process.point(paths.states[-1].astype(float))
    carried = _final(form, grid, last)
    learned = data_gradients(form, process, paths.states[-1])
    networks: list[PathNetwork] = []
    for n in range(len(nodes) - 2, -1, -1):
        checkpoint()
        s, h = float(nodes[n]), float(nodes[n + 1] - nodes[n])
        state = paths.states[n].astype(float)
        point = process.point(state)
        move = paths.step(n)
        following = n + 1 + int(np.argmax(grid.dates[n + 1 :])) if grid.dates[n + 1 :].any() else len(nodes) - 1
        to_come = noise_to_come(paths, n, following)
        layer = law.sample(form, process, inner, s, state, spread_of(paths, n), to_come, rng, learned)
        rate, constant = _rates(form, s + 0.5 * h, point)
        target = np.exp(rate * h) * carried + h * constant
        values, increments = LayerAlongPaths(layer, state).design(move, h)
        weights = fit_columns(values + increments, target, penalty)
        networks.append(PathNetwork(layer, weights, weights))
        carried = target - increments @ weights
        if grid.dates[n]:
            now, later = payoff(form, s, point), values @ weights
            carried = np.where(now >= later, now, carried)
    return StoppingModel(form, process, grid, tuple(reversed(networks)), len(start))


@dataclass(frozen=True)
class StoppingSample:
    """Lower and upper bounds, as moments over antithetic pairs of fresh paths."""

    lower: SampleMoments
    upper: SampleMoments

    def __add__(self, other: StoppingSample) -> StoppingSample:
        return StoppingSample(self.lower + other.lower, self.upper + other.upper)


def bound(model: StoppingModel, start: Array, draws: NormalDraws) -> StoppingSample:
    """The lower and the upper bound, from new paths that begin at ``start`` (M, d)."""
    form, process, grid = model.form, model.process, model.grid
    nodes, count = grid.nodes, len(start)
    state = process.start(start)
    discount, martingale, collected = np.ones(count), np.zeros(count), np.zeros(count)
    lower, stopped = np.zeros(count), np.zeros(count, dtype=bool)
    upper = np.full(count, -np.inf)
    for n, network in enumerate(model.networks):
        checkpoint()
        s, h = float(nodes[n]), float(nodes[n + 1] - nodes[n])
        point = process.point(state)
        move = process.step(s, h, state, draws.normals(n))
        read = network.at(state)
        if grid.dates[n]:
            now = payoff(form, s, point)
            gain = discount * now + collected - martingale
            chosen = ~stopped & (now >= read.value)
            lower[chosen] = gain[chosen]
            stopped |= chosen
            upper = np.maximum(upper, gain)
        rate, constant = _rates(form, s + 0.5 * h, point)
        martingale += discount * read.moved(move, h)[0]
        collected += discount * h * constant
        discount = discount * np.exp(rate * h)
        state = move.state
    gain = discount * _final(form, grid, process.point(state)) + collected - martingale
    lower = np.where(stopped, lower, gain)
    return StoppingSample(SampleMoments.of(pairs(lower)), SampleMoments.of(pairs(np.maximum(upper, gain))))
