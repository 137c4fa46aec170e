"""Backward in time: one least-squares problem per step gives the value and the gradient of the solution together.

With the martingale increments M_n of the network û_n, paths carry

    Y_n = Y_{n+1} - M_n + ½h (f_n + f_{n+1}) ,     Y_N = g(X_N) ,

and û_n is the regression of Y_{n+1} + ½h (f_n + f_{n+1}) on columns + increments at X_n. The increments have mean
zero given X_n and explain most of the noise, so that few paths suffice. f_n needs û_n: it is taken from a first fit
without it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg

from rannpde.arrays import Array
from rannpde.pde.paths.inner import InnerCoordinate
from rannpde.pde.paths.layer import LayerLaw, PathNetwork
from rannpde.pde.paths.processes import PathProcess
from rannpde.pde.problem.parabolic import Parabolic
from rannpde.pde.statement.vector import evaluate_vector, value_and_gradients


@dataclass(frozen=True, eq=False)
class TimeGrid:
    """Nodes s_n = S (1 - (1 - n/N)^p): even for p = 1, graded towards the data, where kinks make the solution steep,
    for p = 2. Integrals over time are taken in n/N, in which the integrand is as smooth as it can be.
    """

    length: float
    steps: int
    power: int = 1

    @cached_property
    def nodes(self) -> Array:
        share = np.arange(self.steps + 1) / self.steps
        nodes = self.length * (1 - (1 - share) ** self.power)
        nodes[-1] = self.length
        return nodes

    def rule(self, every: int) -> Array:
        """Weights (N + 1,) of Simpson's rule on every ``every``-th node, trapezoidal where their number is odd."""
        steps = self.steps // every
        own = np.ones(steps + 1)
        if steps % 2 == 0:
            own[1:-1:2], own[2:-1:2] = 4.0, 2.0
            own /= 3
        else:
            own[0] = own[-1] = 0.5
        weights = np.zeros(self.steps + 1)
        share = np.arange(self.steps + 1) / self.steps
        weights[::every] = own * every / self.steps
        return weights * self.length * self.power * (1 - share) ** (self.power - 1)

    @cached_property
    def trapezoidal(self) -> Array:
        """Weights of the trapezoidal rule on the nodes."""
        lengths = np.diff(self.nodes)
        return 0.5 * (np.append(lengths, 0.0) + np.append(0.0, lengths))


@dataclass(frozen=True, eq=False)
class PathsModel:
    """u along the paths: one network for every node s_0 < … < s_{N-1}; at s_N it is the data."""

    form: Parabolic
    process: PathProcess
    grid: TimeGrid
    networks: tuple[PathNetwork, ...]


def source_values(form: Parabolic, s: float, point: Array, value: Array, gradient: Array) -> Array:
    """f (M,)."""
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
class NormalDraws:
    """The standard normal numbers (count, columns) of every step, each from a seed of its own, so that they can be had
    again; antithetic: the second half of the rows is the negative of the first.

    halved : columns of a step of Euler's that are added in pairs, for half as many substeps on the same path
    """

    seed: int
    count: int
    columns: int
    antithetic: bool = True
    halved: int = 0

    def normals(self, n: int) -> Array:
        """Those of step n."""
        rng = np.random.default_rng((self.seed, n))
        if self.antithetic:
            half = rng.standard_normal((self.count // 2, self.columns))
            found = np.concatenate([half, -half])
        else:
            found = rng.standard_normal((self.count, self.columns))
        if not self.halved:
            return found
        pairs = found.reshape(self.count, -1, 2, self.halved)
        return ((pairs[:, :, 0] + pairs[:, :, 1]) / np.sqrt(2.0)).reshape(self.count, -1)

    def paired(self, dim: int) -> NormalDraws:
        """For half as many substeps in ``dim`` dimensions."""
        return replace(self, halved=dim)


@dataclass(frozen=True)
class TrainingPaths:
    """States of every node in single precision; the numbers behind a step are drawn again from its own seed."""

    process: PathProcess
    draws: NormalDraws
    states: tuple[Array, ...]

    @classmethod
    def simulate(cls, process: PathProcess, nodes: Array, start: Array, rng: np.random.Generator) -> TrainingPaths:
        draws = NormalDraws(int(rng.integers(2**62)), len(start), process.normal_count())
        state = process.start(start)
        states = [state.astype(np.float32)]
        for n in range(len(nodes) - 1):
            state = process.step(float(nodes[n]), float(nodes[n + 1] - nodes[n]), state, draws.normals(n)).state
            states.append(state.astype(np.float32))
        return cls(process, draws, tuple(states))


def solve_normal(design: Array, targets: Array, penalty: float) -> Array:
    """Ridge regression by normal equations on columns scaled to one; penalty relative to them.

    Targets that are not finite, of a solution that blows up along its paths, give weights that are not numbers.
    """
    if not (np.isfinite(targets).all() and np.isfinite(design).all()):
        return np.full((design.shape[1], *targets.shape[1:]), np.nan)
    size = np.sqrt(np.einsum("ij,ij->j", design, design) / len(design))
    size[size == 0] = 1.0
    gram = scipy.linalg.blas.dsyrk(1.0 / len(design), design, trans=1, lower=1)
    gram /= size[:, None] * size
    gram[np.diag_indices_from(gram)] += penalty
    right = (design.T @ targets) / len(design) / (size if targets.ndim == 1 else size[:, None])
    factor = scipy.linalg.cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
    found: Array = scipy.linalg.cho_solve(factor, right, check_finite=False)
    return found / (size if targets.ndim == 1 else size[:, None])


def train(
    form: Parabolic,
    process: PathProcess,
    grid: TimeGrid,
    start: Array,
    law: LayerLaw,
    inner: tuple[InnerCoordinate, ...],
    penalty: float,
    rng: np.random.Generator,
) -> PathsModel:
    """Networks at all nodes, from paths that begin at ``start`` (M, d)."""
    nodes = grid.nodes
    paths = TrainingPaths.simulate(process, nodes, start, rng)
    gradients = form.source.has("gradient")
    last = process.point(paths.states[-1].astype(float))
    target, slope = data_values(form, last, gradients)
    source = source_values(form, nodes[-1], last, target, slope)
    networks: list[PathNetwork] = []
    for n in range(len(nodes) - 2, -1, -1):
        s, h = float(nodes[n]), float(nodes[n + 1] - nodes[n])
        state = paths.states[n].astype(float)
        point = process.point(state)
        move = process.step(s, h, state, paths.draws.normals(n))
        spread = spread_of(paths, n)
        to_come = (move_between(paths.states[-1], paths.states[n]), move_between(last, point))
        layer = law.sample(form, process, inner, s, state, spread, to_come, rng)
        values, increments = layer.design(state, move, h)
        design = values + increments
        half = target + 0.5 * h * source
        network = PathNetwork(layer, solve_normal(design, half, penalty))
        own = _source(network, values, state, point, s, h, form, gradients)
        network = PathNetwork(layer, solve_normal(design, half + 0.5 * h * own, penalty))
        own = _source(network, values, state, point, s, 0.0, form, gradients)
        target = half + 0.5 * h * own - increments @ network.weights
        source = own
        networks.append(network)
    return PathsModel(form, process, grid, tuple(reversed(networks)))


def _source(
    network: PathNetwork, values: Array, state: Array, point: Array, s: float, h: float, form: Parabolic, slopes: bool
) -> Array:
    """f at the network's values, to which ½h f is added first where that is still missing."""
    value = values @ network.weights
    gradient = network.read(state).gradient if slopes else point
    found = source_values(form, s, point, value, gradient)
    return source_values(form, s, point, value + 0.5 * h * found, gradient) if h else found


def move_between(one: Array, other: Array) -> float:
    """Root mean square of the difference of two arrays, less that of its mean over the rows."""
    return float(np.sqrt(np.mean((one - other).var(axis=0, dtype=float))))


def spread_of(paths: TrainingPaths, n: int) -> Array:
    """Standard deviation (d,) of the states of a node; of the next one where all start at one point."""
    for k in range(n, len(paths.states)):
        spread = paths.states[k].std(axis=0, dtype=float)
        typical = float(np.abs(paths.states[k]).mean())
        if (spread > 1e-5 * typical + 1e-30).all():
            return spread
    fallback = paths.states[-1].std(axis=0, dtype=float)
    return np.where(fallback > 0, fallback, 1.0)
