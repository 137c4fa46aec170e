"""Walls on which u = 0: paths that touch them are killed, with exact probabilities between the nodes.

A wall is a hyperplane of states, n·y = c with nᵀa n = 1, so that distances to it move like a Brownian motion with a
drift. Given its distances p and q at the ends of a step of length h, a path touches the wall with probability
exp(-2pq/h) whatever the drift; between two parallel walls at a distance L it survives with probability

    Σ_k [exp(-2kL(kL + q - p)/h) - exp(-2(kL + p)(kL + q)/h)] ,

and independent directions multiply. Nothing of this has an error in time.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError, reject
from rannpde.pde.paths.processes import GaussianProcess, LognormalProcess, PathProcess
from rannpde.pde.problem.parabolic import KillingWall, Parabolic
from rannpde.pde.statement.vector import evaluate_vector, value_and_gradients
from rannpde.rounding import COMPUTED


@dataclass(frozen=True, eq=False)
class WallPair:
    """One wall, or two parallel ones: normal·y - level is the distance, above zero inside, and below width."""

    normal: Array
    level: float
    width: float = np.inf

    def distance(self, state: Array) -> Array:
        distance: Array = state @ self.normal - self.level
        return distance

    def survival(self, start: Array, end: Array, h: float) -> Array:
        """Probability (M,) that a Brownian bridge between two distances stays inside."""
        inside = (start > 0) & (end > 0) & (start < self.width) & (end < self.width)
        if not np.isfinite(self.width):
            return np.where(inside, -np.expm1(-2 * np.maximum(start * end, 0.0) / h), 0.0)
        total, terms = np.zeros(len(start)), ceil(sqrt(20 * h) / self.width) + 1
        p, q = np.where(inside, start, 0.0), np.where(inside, end, 0.0)
        for k in range(-terms, terms + 1):
            shift = k * self.width
            total += np.exp(-2 * shift * (shift + q - p) / h) - np.exp(-2 * (shift + p) * (shift + q) / h)
        return np.where(inside, np.clip(total, 0.0, 1.0), 0.0)


@dataclass(frozen=True, eq=False)
class PathWalls:
    """All walls; the noise normal to walls of different pairs is independent."""

    pairs: tuple[WallPair, ...]

    def inside(self, state: Array) -> Array | None:
        """Which states (M, d) are inside, None without walls."""
        if not self.pairs:
            return None
        distances = [(pair.distance(state), pair.width) for pair in self.pairs]
        return np.logical_and.reduce([(distance > 0) & (distance < width) for distance, width in distances])

    def survival(self, state: Array, moved: Array, h: float) -> Array:
        """Probability (M,) that a step of length h touches no wall."""
        total = np.ones(len(state))
        for pair in self.pairs:
            total *= pair.survival(pair.distance(state), pair.distance(moved), h)
        return total


NO_WALLS = PathWalls(())
"""R^d without walls."""


def walls_of(form: Parabolic, process: PathProcess, start: Array) -> PathWalls:
    """The walls of a problem in the states of paths from ``start`` (M, d); an InputError where no formula is known."""
    if not form.walls:
        return NO_WALLS
    state = process.start(start)
    planes = [_plane(wall, form, process, state) for wall in form.walls]
    covariance = _covariance(process)
    groups: list[list[tuple[Array, float]]] = []
    for normal, level in planes:
        size = sqrt(float(normal @ _times(covariance, normal)))
        if not size:
            raise InputError("a wall is not reached by the noise of the equation; leave it out")
        normal, level = normal / size, level / size
        for group in groups:
            angle = float(group[0][0] @ _times(covariance, normal))
            if abs(abs(angle) - 1) <= COMPUTED:
                group.append((normal, level))
                break
            if abs(angle) > COMPUTED:
                reject("walls", [wall.text for wall in form.walls], "parallel to each other, or with independent noise",
                       "other angles have no closed form between the nodes")  # fmt: skip
        else:
            groups.append([(normal, level)])
    return PathWalls(tuple(_pair(group) for group in groups))


def _pair(group: list[tuple[Array, float]]) -> WallPair:
    """The nearest wall on either side. Normals point inwards, so that those of two parallel walls are opposite."""
    normal = group[0][0]
    low = max(level for other, level in group if other @ normal > 0)
    high = [-level for other, level in group if other @ normal < 0]
    return WallPair(normal, low, min(high) - low if high else np.inf)


def _plane(wall: KillingWall, form: Parabolic, process: PathProcess, state: Array) -> tuple[Array, float]:
    """Normal and level of a wall in states, with the sign for which the start is inside."""
    point = process.point(state)
    values = np.broadcast_to(evaluate_vector(wall.level, {"point": point}), (len(point), 1))[:, 0]
    if not ((values > 0).all() or (values < 0).all()):
        reject("at", "on both sides of a wall, or on it", f"on one side of {wall.text}")
    sign = 1.0 if values[0] > 0 else -1.0
    probes = np.random.default_rng(22).uniform(0.5, 2.0, (3, form.dim))
    value, slope = value_and_gradients(wall.level, {"point": probes}, ("point",))
    gradient = np.broadcast_to(slope["point"], probes.shape)
    scale = float(np.abs(gradient).max())
    if scale == 0 or np.ptp(gradient, axis=0).max() > COMPUTED * scale:
        reject("a wall", wall.text, "a hyperplane such as x[1]=0 or sum(x)=1", "other boundaries are not simulated")
    normal = gradient[0]
    level = float(probes[0] @ normal - value[0, 0])
    if isinstance(process, GaussianProcess) and not process.decay.any():
        return sign * normal, sign * level
    if isinstance(process, LognormalProcess) and np.count_nonzero(np.abs(normal) > COMPUTED * scale) == 1:
        k = int(np.argmax(np.abs(normal)))
        ratio = level / normal[k]
        if ratio <= 0:
            reject("a wall", wall.text, f"at a positive x[{k + 1}], as the process stays so")
        unit = np.zeros(form.dim)
        unit[k] = sign * np.sign(normal[k])
        return unit, float(unit[k] * np.log(ratio))
    return reject("a wall", wall.text, "a hyperplane for Brownian motion, or x[i]=c for geometric Brownian motion",
           "for other processes the paths between the nodes are not known")  # fmt: skip


def _covariance(process: PathProcess) -> Array:
    """a of states: its diagonal (d,) or the matrix (d, d)."""
    assert isinstance(process, (GaussianProcess, LognormalProcess))
    return process.spread**2 if process.spread.ndim == 1 else process.spread @ process.spread.T


def _times(covariance: Array, vector: Array) -> Array:
    product: Array = covariance * vector if covariance.ndim == 1 else covariance @ vector
    return product
