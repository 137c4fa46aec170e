"""Nonlinear equations in R^d whose value at the origin is known in every dimension: reference values for paths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.integrate import quad

from rannpde.arrays import Array
from rannpde.domains import SpaceTime
from rannpde.domains.shapes.euclidean import Euclidean
from rannpde.errors import positive_integer
from rannpde.pde.problem.problem import Problem
from rannpde.studies.target import PlainTarget


@dataclass(frozen=True)
class KnownValue(PlainTarget, ABC):
    """A problem on (0, 1) × R^d with data at t = 1, and its value at t = 0, x = 0."""

    space_dim: int = 1

    def __post_init__(self) -> None:
        positive_integer("space_dim", self.space_dim)

    @property
    def bounds(self) -> Array:
        return np.tile([0.0, 1.0], (1 + self.space_dim, 1))

    @abstractmethod
    def values(self, points: Array) -> Array:
        """Values (M,) for the protocol of targets: nothing is fitted to them."""

    @property
    @abstractmethod
    def problem(self) -> Problem:
        """The statement."""

    @property
    @abstractmethod
    def reference(self) -> float:
        """The value at the origin."""


@dataclass(frozen=True)
class ControlValue(KnownValue):
    """u_t + Δu = |∇u|², u(1, x) = log((1 + |x|²)/2), the cost of steering a Brownian motion.

    By Cole and Hopf's transformation its value at the origin is -log E[2/(1 + 2χ²)] with d degrees of freedom.
    """

    def values(self, points: Array) -> Array:
        """The data at t = 1."""
        return np.asarray(np.log((1 + np.sum(points[:, 1:] ** 2, axis=1)) / 2))

    @property
    def problem(self) -> Problem:
        domain = SpaceTime(t=(0, 1), x=Euclidean(self.space_dim))
        return Problem("u_t + laplace(u) = dot(grad(u), grad(u))", domain, {"t=1": "u = log((1 + norm(x)**2)/2)"})

    @property
    def reference(self) -> float:
        """The value by quadrature against the law of χ².

        >>> round(ControlValue(100).reference, 12)
        4.590161724605
        """
        from scipy.stats import chi2  # loading it takes half a second

        law = chi2(self.space_dim)
        ends = [float(law.ppf(1e-17)), float(law.mean()), float(law.isf(1e-17))]
        parts = [
            quad(lambda r: 2 / (1 + 2 * r) * law.pdf(r), *pair, epsabs=1e-15, epsrel=1e-12, limit=400)[0]
            for pair in (ends[:2], ends[1:])
        ]
        return float(-np.log(sum(parts)))


@dataclass(frozen=True)
class ReactionValue(KnownValue):
    """u_t + Δu/2 + min(1, (u - v)²) = 0 with the solution u = v = 8/5 + sin(Σx/√d) e^((t-1)/2), 8/5 at the origin."""

    def values(self, points: Array) -> Array:
        """The solution."""
        phase = points[:, 1:].sum(axis=1) / self.space_dim**0.5
        return np.asarray(1.6 + np.sin(phase) * np.exp(0.5 * (points[:, 0] - 1)))

    @property
    def problem(self) -> Problem:
        domain = SpaceTime(t=(0, 1), x=Euclidean(self.space_dim))
        wave = f"sin(sum(x)/sqrt({self.space_dim}))"
        equation = f"u_t + laplace(u)/2 + min(1, (u - 8/5 - {wave}*exp((t - 1)/2))**2) = 0"
        return Problem(equation, domain, {"t=1": f"u = 8/5 + {wave}"})

    @property
    def reference(self) -> float:
        return 1.6
