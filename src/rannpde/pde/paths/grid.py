"""Nodes in time with their quadrature rules, and the random numbers of every step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rannpde.arrays import Array


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
            own[1:-1:2], own[2:-1:2] = 4, 2
            own /= 3
        else:
            own[0] = own[-1] = 0.5
        weights = np.zeros(self.steps + 1)
        weights[::every] = own * every / self.steps
        return weights * self._speed

    def pair_rule(self, n: int) -> Array:
        """Weights (3,) of Simpson's rule over the steps n and n + 1."""
        return np.array([1, 4, 1]) / (3 * self.steps) * self._speed[n : n + 3]

    @cached_property
    def _speed(self) -> Array:
        """ds/d(n/N) at the nodes."""
        share = np.arange(self.steps + 1) / self.steps
        return self.length * self.power * (1 - share) ** (self.power - 1)


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
        """The normal variables of step n."""
        rng = np.random.default_rng((self.seed, n))
        if self.antithetic:
            half = rng.standard_normal((self.count // 2, self.columns))
            normals = np.concatenate([half, -half])
        else:
            normals = rng.standard_normal((self.count, self.columns))
        if not self.halved:
            return normals
        pairs = normals.reshape(self.count, -1, 2, self.halved)
        return ((pairs[:, :, 0] + pairs[:, :, 1]) / np.sqrt(2.0)).reshape(self.count, -1)

    def paired(self, dim: int) -> NormalDraws:
        """The same normal numbers, joined in pairs, for half as many substeps in ``dim`` dimensions."""
        return replace(self, halved=dim)
