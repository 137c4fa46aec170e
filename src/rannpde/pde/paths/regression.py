"""Backward in time: one least-squares problem per step gives the value and the gradient of the solution together.

With w_n = E[û_{n+1} + ½h f_{n+1} | X_n] and its martingale increments M_n, paths carry

    Y_n = Y_{n+1} - M_n + ½h (f_n + f_{n+1}) ,     Y_N = g(X_N) ,

and w_n is the regression of Y_{n+1} + ½h f_{n+1} on columns + increments at X_n. The increments have mean zero given
X_n and explain most of the noise, so that few paths suffice. The network is û_n = w_n + ½h f(û_n), whose last part is
a function of X_n without noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.paths.grid import NormalDraws, TimeGrid
from rannpde.pde.paths.inner import InnerCoordinate
from rannpde.pde.paths.layer import MOMENT_ROWS, LayerAlongPaths, LayerLaw
from rannpde.pde.paths.linearisation import bounded_tilt, linearised
from rannpde.pde.paths.network import NetworkAtStates, PathNetwork
from rannpde.pde.paths.processes import PathProcess, PathStep
from rannpde.pde.paths.ridge import RidgeRegression, fit_columns
from rannpde.pde.paths.walls import NO_WALLS, PathWalls
from rannpde.pde.problem.parabolic import Parabolic
from rannpde.pde.statement.vector import evaluate_vector, value_and_gradients


@dataclass(frozen=True, eq=False)
class PathsModel:
    """u along the paths: one network for every node s_0 < … < s_{N-1}; at s_N it is the data."""

    form: Parabolic
    process: PathProcess
    grid: TimeGrid
    networks: tuple[PathNetwork, ...]
    walls: PathWalls = NO_WALLS


def source_values(form: Parabolic, s: float, point: Array, value: Array, gradient: Array) -> Array:
    """The source f (M,) at points, values and gradients."""
    known = form.known(s, point) | {"field": value[:, None], "gradient": gradient}
    return np.broadcast_to(evaluate_vector(form.source, known), (len(point), 1))[:, 0]


def data_values(form: Parabolic, point: Array, slopes: bool) -> tuple[Array, Array]:
    """g (M,) and its gradient (M, d), zeros where nobody asks for it."""
    known = form.known(form.length, point)
    if not slopes:
        return np.array(np.broadcast_to(evaluate_vector(form.data, known), (len(point), 1))[:, 0]), np.zeros_like(point)
    value, gradient = value_and_gradients(form.data, known, ("point",))
    return value[:, 0].copy(), gradient["point"]


@dataclass(frozen=True)
class TrainingPaths:
    """States of every node in single precision; the numbers behind a step are drawn again from its own seed.

    guide : a model that tilts the steps of every second path towards where the linearised equation sends them, so that
        regressions see those points too
    """

    process: PathProcess
    nodes: Array
    draws: NormalDraws
    states: tuple[Array, ...]
    guide: PathsModel | None = None

    @classmethod
    def simulate(
        cls, process: PathProcess, nodes: Array, start: Array, rng: np.random.Generator, guide: PathsModel | None = None
    ) -> TrainingPaths:
        draws = NormalDraws(int(rng.integers(2**62)), len(start), process.normal_count())
        states = [process.start(start).astype(np.float32)]
        for n in range(len(nodes) - 1):
            checkpoint()
            known = cls(process, nodes, draws, tuple(states), guide)
            states.append(known.step(n).state.astype(np.float32))
        return cls(process, nodes, draws, tuple(states), guide)

    def step(self, n: int) -> PathStep:
        """The step from node n."""
        s, h = float(self.nodes[n]), float(self.nodes[n + 1] - self.nodes[n])
        state, normals = self.states[n].astype(float), self.draws.normals(n)
        if self.guide is not None and h > 0:
            parts = normals.shape[1] // self.process.dim
            tilt = guided_tilt(self.guide, self.process, s, h, state[::2])
            normals[::2] += np.tile(tilt, parts) * np.sqrt(h / parts)
        return self.process.step(s, h, state, normals)


def guided_tilt(guide: PathsModel, process: PathProcess, s: float, h: float, state: Array) -> Array:
    """θ (M, d) of a model at states, from its network of the nearest node."""
    k = int(np.argmin(np.abs(guide.grid.nodes[:-1] - s)))
    network, tilts = guide.networks[k], []
    for rows in network.layer.blocks(len(state)):
        own = network.at(state[rows])
        slope = linearised(guide.form, s, own.features.point, own.value, own.gradient).by_gradient
        assert slope is not None
        tilts.append(bounded_tilt(process.pull(s, own.features.point, slope), h))
    return np.concatenate(tilts)


def data_gradients(form: Parabolic, process: PathProcess, state: Array) -> Array | None:
    """Gradients of the data in states, at some of the last states; None where they need differences."""
    if any(node.name == "call" and not hasattr(node.value, "gradient") for node in form.data.nodes):
        return None
    point = process.point(state[:: max(1, len(state) // MOMENT_ROWS)].astype(float))
    return process.to_state(point, np.broadcast_to(data_values(form, point, True)[1], point.shape))


def train(
    form: Parabolic,
    process: PathProcess,
    grid: TimeGrid,
    start: Array,
    law: LayerLaw,
    inner: tuple[InnerCoordinate, ...],
    penalty: float,
    rng: np.random.Generator,
    walls: PathWalls = NO_WALLS,
    guide: PathsModel | None = None,
) -> PathsModel:
    """Networks at all nodes, from paths that begin at ``start`` (M, d), some of them guided by an earlier model.

    With walls, a regression uses the paths that are inside at its node, and what lies behind a step counts with the
    probability that the step did not touch a wall.
    """
    nodes = grid.nodes
    paths = TrainingPaths.simulate(process, nodes, start, rng, guide)
    last = process.point(paths.states[-1].astype(float))
    target, slope = data_values(form, last, form.source.has("gradient"))
    source = source_values(form, nodes[-1], last, target, slope)
    inside = walls.inside(paths.states[-1].astype(float))
    if inside is not None:
        target, source = np.where(inside, target, 0.0), np.where(inside, source, 0.0)
    learned = data_gradients(form, process, paths.states[-1])
    networks: list[PathNetwork] = []
    for n in range(len(nodes) - 2, -1, -1):
        checkpoint()
        s, h = float(nodes[n]), float(nodes[n + 1] - nodes[n])
        state = paths.states[n].astype(float)
        move = paths.step(n)
        to_come = noise_to_come(paths, n, len(nodes) - 1)
        layer = law.sample(form, process, inner, s, state, spread_of(paths, n), to_come, rng, learned)
        ahead = target + 0.5 * h * source
        inside = walls.inside(state)
        if inside is not None:
            ahead = np.where(inside, ahead * walls.survival(state, move.state, h), 0.0)
        fitted = _fit_node(LayerAlongPaths(layer, state), move, h, ahead, penalty, inside)
        target, source = fitted.target, fitted.source
        networks.append(fitted.network)
    return PathsModel(form, process, grid, tuple(reversed(networks)), walls)


@dataclass(frozen=True)
class FittedNode:
    """The network of a node, and what paths carry to the one before it: Y_n and f_n (M,)."""

    network: PathNetwork
    target: Array
    source: Array


def _fit_node(
    along: LayerAlongPaths, move: PathStep, h: float, ahead: Array, penalty: float, inside: Array | None
) -> FittedNode:
    """Fit w = E[ahead | X], whose martingale increments are those of the step, then û = w + ½h f(û).

    inside : mask (M,) of the paths that count, None for all
    """
    form = along.layer.form
    rows = slice(None) if inside is None else inside
    values, increments = along.design(move, h)
    martingale = fit_columns((values + increments)[rows], ahead[rows], penalty)
    network = PathNetwork(along.layer, martingale, martingale)
    own = _source(network, values, along, h)
    if np.any(own):
        columns = RidgeRegression.of(values[rows], penalty)
        for _ in range(2 if form.source.has("field", "gradient") else 1):
            # ½h f has no noise: it is fitted on the columns alone
            more = np.nan * martingale if columns is None else columns.fit(values[rows], 0.5 * h * own[rows])
            network = PathNetwork(along.layer, martingale + more, martingale)
            own = _source(network, values, along, 0.0)
    target = ahead + 0.5 * h * own - increments @ martingale
    if inside is not None:
        target, own = np.where(inside, target, 0.0), np.where(inside, own, 0.0)
    return FittedNode(network, target, own)


def _source(network: PathNetwork, values: Array, along: LayerAlongPaths, h: float) -> Array:
    """f at the network's values, to which ½h f is added first where that is still missing."""
    form, s = along.layer.form, along.layer.s
    point, value = along.layer.process.point(along.state), values @ network.weights
    gradient = point
    if form.source.has("gradient"):
        gradient = np.concatenate([NetworkAtStates(network, own).gradient for own in along.blocks])
    source = source_values(form, s, point, value, gradient)
    return source_values(form, s, point, value + 0.5 * h * source, gradient) if h else source


def noise_to_come(paths: TrainingPaths, n: int, last: int) -> tuple[float, float]:
    """Root mean square, per component, of what states and points still move from node n to node ``last``."""
    every = max(1, len(paths.states[n]) // MOMENT_ROWS)
    here, there = (paths.states[k][::every].astype(float) for k in (n, last))
    return move_between(there, here), move_between(paths.process.point(there), paths.process.point(here))


def move_between(one: Array, other: Array) -> float:
    """Root mean square of the difference of two arrays, less that of its mean over the rows."""
    return float(np.sqrt(np.mean((one - other).var(axis=0, dtype=float))))


def spread_of(paths: TrainingPaths, n: int) -> Array:
    """Standard deviation (d,) of the states of a node; of the next one where all start at one point."""
    for k in range(n, len(paths.states)):
        spread = paths.states[k].std(axis=0, dtype=float)
        typical = float(np.abs(paths.states[k][:MOMENT_ROWS]).mean())
        if (spread > 100 * np.finfo(paths.states[k].dtype).eps * typical + 1e-30).all():  # not only rounding
            return spread
    fallback = paths.states[-1].std(axis=0, dtype=float)
    return np.where(fallback > 0, fallback, 1.0)
