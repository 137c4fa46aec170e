"""A problem whose value is known in every dimension: the cost of steering a Brownian motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.integrate import quad
from scipy.stats import chi2

from rannpde.arrays import Array
from rannpde.domains import SpaceTime
from rannpde.domains.shapes.euclidean import Euclidean
from rannpde.errors import positive_integer
from rannpde.pde.problem.problem import Problem
from rannpde.studies.target import PlainTarget


@dataclass(frozen=True)
class ControlValue(PlainTarget):
    """u_t + Δu = |∇u|², u(1, x) = log((1 + |x|²)/2), whose value at t = 0, x = 0 is -log E[2/(1 + 2χ²)] (Cole–Hopf)."""

    space_dim: int = 1

    def __post_init__(self) -> None:
        positive_integer("space_dim", self.space_dim)

    @property
    def bounds(self) -> Array:
        return np.tile([0.0, 1.0], (1 + self.space_dim, 1))

    def values(self, points: Array) -> Array:
        """The data at t = 1, for the protocol of targets: nothing is fitted to them."""
        return np.asarray(np.log((1 + np.sum(points[:, 1:] ** 2, axis=1)) / 2))

    @property
    def problem(self) -> Problem:
        """The statement."""
        domain = SpaceTime(t=(0, 1), x=Euclidean(self.space_dim))
        return Problem("u_t + laplace(u) = dot(grad(u), grad(u))", domain, {"t=1": "u = log((1 + norm(x)**2)/2)"})

    @property
    def reference(self) -> float:
        """The value at the origin, by quadrature against the law of χ² with d degrees of freedom.

        >>> round(ControlValue(100).reference, 12)
        4.590161724605
        """
        law = chi2(self.space_dim)
        ends = [float(law.ppf(1e-17)), float(law.mean()), float(law.isf(1e-17))]
        parts = [
            quad(lambda r: 2 / (1 + 2 * r) * law.pdf(r), *pair, epsabs=1e-15, epsrel=1e-12, limit=400)[0]
            for pair in (ends[:2], ends[1:])
        ]
        return float(-np.log(sum(parts)))
