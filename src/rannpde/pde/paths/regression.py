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


def source_values(form: Parabolic, s: float, point: Array, value: Array, gradient: Array | None = None) -> Array:
    """The source f (M,) at points, values and gradients, None where it depends on none."""
    known = form.known(s, point) | {"field": value[:, None]} | ({} if gradient is None else {"gradient": gradient})
    return np.broadcast_to(evaluate_vector(form.source, known), (len(point), 1))[:, 0]


def data_values(form: Parabolic, point: Array, slopes: bool) -> tuple[Array, Array]:
    """g (M,) and its gradient (M, d), which is zero unless ``slopes`` asks for it."""
    known = form.known(form.length, point)
    if not slopes:
        return np.array(np.broadcast_to(evaluate_vector(form.data, known), (len(point), 1))[:, 0]), np.zeros_like(point)
    value, gradient = value_and_gradients(form.data, known, ("point",))
    return value[:, 0].copy(), gradient["point"]


@dataclass(frozen=True)
class TrainingPaths:
    """The states of training paths at every node, in single precision; the noise of a step is sampled again on request.

    guide : a model that tilts the steps of every second path as the linearised equation does, so that regressions have
        samples there too
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
        at_states = network.at(state[rows])
        slope = linearised(guide.form, s, at_states.features.point, at_states.value, at_states.gradient).by_gradient
        assert slope is not None
        tilts.append(bounded_tilt(process.pull(s, at_states.features.point, slope), h))
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

    With walls, a regression uses the paths that are inside at its node, and the target beyond a step is multiplied by
    the probability that the step did not touch a wall.
    """
    nodes = grid.nodes
    paths = TrainingPaths.simulate(process, nodes, start, rng, guide)
    last = process.point(paths.states[-1].astype(float))
    target, slope = data_values(form, last, form.source.has("gradient"))
    source = source_values(form, nodes[-1], last, target, slope)
    inside = walls.inside(paths.states[-1].astype(float))
    if inside is not None:
        target, source = np.where(inside, target, 0.0), np.where(inside, source, 0.0)
    data_slopes = data_gradients(form, process, paths.states[-1])
    networks: list[PathNetwork] = []
    for n in range(len(nodes) - 2, -1, -1):
        checkpoint()
        s, h = float(nodes[n]), float(nodes[n + 1] - nodes[n])
        state = paths.states[n].astype(float)
        move = paths.step(n)
        to_come = noise_to_come(paths, n, len(nodes) - 1)
        layer = law.sample(form, process, inner, s, state, spread_of(paths, n), to_come, rng, data_slopes)
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
    """The network of a node, with the targets Y_n and sources f_n (M,) for the regression at the node before it."""

    network: PathNetwork
    target: Array
    source: Array


def _fit_node(
    along: LayerAlongPaths, move: PathStep, h: float, ahead: Array, penalty: float, inside: Array | None
) -> FittedNode:
    """Fit w = E[ahead | X], whose martingale increments are those of the step, then û = w + ½h f(û).

    inside : mask (M,) of the paths that are used, None for all
    """
    form = along.layer.form
    rows = slice(None) if inside is None else inside
    values, increments = along.design(move, h)
    martingale = fit_columns((values + increments)[rows], ahead[rows], penalty)
    network = PathNetwork(along.layer, martingale, martingale)
    source = _source(network, values, along, h)
    if np.any(source):
        columns = RidgeRegression.of(values[rows], penalty)
        for _ in range(2 if form.source.has("field", "gradient") else 1):
            # ½h f has no noise: it is fitted on the columns alone
            correction = np.nan * martingale if columns is None else columns.fit(values[rows], 0.5 * h * source[rows])
            network = PathNetwork(along.layer, martingale + correction, martingale)
            source = _source(network, values, along, 0.0)
    target = ahead + 0.5 * h * source - increments @ martingale
    if inside is not None:
        target, source = np.where(inside, target, 0.0), np.where(inside, source, 0.0)
    return FittedNode(network, target, source)


def _source(network: PathNetwork, values: Array, along: LayerAlongPaths, h: float) -> Array:
    """f at the values of a network, to which ½h f is added first; h is 0 where the network contains it already."""
    form, s = along.layer.form, along.layer.s
    point, value = along.layer.process.point(along.state), values @ network.weights
    gradient = point
    if form.source.has("gradient"):
        gradient = np.concatenate([NetworkAtStates(network, block).gradient for block in along.blocks])
    source = source_values(form, s, point, value, gradient)
    return source_values(form, s, point, value + 0.5 * h * source, gradient) if h else source


def noise_to_come(paths: TrainingPaths, n: int, last: int) -> tuple[float, float]:
    """Root mean square, per component, of the changes of states and of points from node n to node ``last``."""
    every = max(1, len(paths.states[n]) // MOMENT_ROWS)
    here, there = (paths.states[k][::every].astype(float) for k in (n, last))
    return move_between(there, here), move_between(paths.process.point(there), paths.process.point(here))


def move_between(before: Array, after: Array) -> float:
    """Root mean square, over the components, of the standard deviation of the difference of two arrays of states."""
    return float(np.sqrt(np.mean((before - after).var(axis=0, dtype=float))))


def spread_of(paths: TrainingPaths, n: int) -> Array:
    """Standard deviation (d,) of the states of a node, or of the next node at which the states are not all equal."""
    for k in range(n, len(paths.states)):
        spread = paths.states[k].std(axis=0, dtype=float)
        typical = float(np.abs(paths.states[k][:MOMENT_ROWS]).mean())
        if (spread > 100 * np.finfo(paths.states[k].dtype).eps * typical + 1e-30).all():  # not only rounding
            return spread
    fallback = paths.states[-1].std(axis=0, dtype=float)
    return np.where(fallback > 0, fallback, 1.0)
