"""Integrals over the parameters (w, b) of hidden neurons, by importance sampling with scrambled Sobol points.

The transform of a function that lives within ``radius`` of ``centre`` is spread in w like a Student density of scale
1/radius and in b around w·centre with width √(1 + radius²|w|²); ``Proposal`` is that density, with closed-form draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import lgamma, log, pi
from typing import Unpack

import numpy as np
from scipy.special import chdtri, ndtri, stdtrit

from rannpde.arrays import Array
from rannpde.domains import Box, Domain, Estimate, integrate
from rannpde.domains.quadrature.integrals import Options
from rannpde.errors import require
from rannpde.theory.ridgelet_function import RidgeletFunction
from rannpde.theory.targets import RidgeletTarget

BIAS_FREEDOM = 4.0
"""Degrees of freedom of the proposal's biases: tails fatter than the transform's Gaussian ones, for safety."""
DEFAULTS: Options = {"rule": "sobol", "tolerance": 1e-3, "budget": 2**18, "rng": 0}
"""Three digits of a variance: 2^16 to 2^17 points in the table of docs/theory.md, d = 1, 3 and 5."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """w ∝ (1 + radius²|w|²)^(-(freedom + n)/2) and, given w, b = w·centre + spread √(1 + radius²|w|²) t_4.

    Biases have the sign of the paper, σ(w·z - b).
    """

    centre: Array
    radius: float
    freedom: float
    spread: float

    def __post_init__(self) -> None:
        require(self.freedom > 0, "freedom", self.freedom, "> 0", "the integral over the weights diverges")

    @classmethod
    def matching(cls, target: RidgeletTarget, psi: RidgeletFunction, freedom: float) -> Proposal:
        """The proposal for that target: |He_k| e^(-x²/2) reaches to about 2√k, whence the spread."""
        return cls(target.centre, target.radius, freedom, psi.order**0.5)

    @property
    def dim(self) -> int:
        return len(self.centre)

    @property
    def columns(self) -> int:
        """Uniform numbers that one draw takes."""
        return self.dim + 2

    def place(self, unit: Array) -> tuple[Array, Array]:
        """Weights (n, M) and biases (M,) of points (M, n + 2) of the unit cube."""
        unit = np.clip(unit, 2.0**-60, 1 - 2.0**-53)
        normal, chi = ndtri(unit[:, : self.dim]).T, chdtri(self.freedom, unit[:, self.dim])
        weights = normal / np.sqrt(np.maximum(chi, 1e-280)) / self.radius
        return weights, self.centre @ weights + self._width(weights) * stdtrit(BIAS_FREEDOM, unit[:, -1])

    def log_density(self, weights: Array, biases: Array) -> Array:
        """log of the joint density at the columns, shape (M,)."""
        n, width = self.dim, self._width(weights)
        decay = 0.5 * (self.freedom + n)
        constant = lgamma(decay) - lgamma(0.5 * self.freedom) - 0.5 * n * log(pi) + n * log(self.radius)
        student = log(3 / 8) - 2.5 * np.log1p(((biases - self.centre @ weights) / width) ** 2 / 4)
        return np.asarray(
            constant - decay * np.log1p(self.radius**2 * np.square(weights).sum(axis=0)) + student - np.log(width)
        )

    def _width(self, weights: Array) -> Array:
        return np.asarray(self.spread * np.sqrt(1 + self.radius**2 * np.square(weights).sum(axis=0)))


def parameter_integral(
    integrand: Callable[..., Array],
    proposal: Proposal,
    domain: Domain | None = None,
    **options: Unpack[Options],
) -> Estimate:
    """∫∫ integrand(w, b) dw db, or with a domain ∫∫∫ integrand(w, b, z) dz dw db, with its standard error.

    integrand(weights (n, M), biases (M,)[, points (M, n)]) → (M,) or (M, K)
    options : those of ``rannpde.domains.integrate``
    """
    extra = 0 if domain is None else domain.columns

    def on_cube(unit: Array) -> Array:
        weights, biases = proposal.place(unit[:, : proposal.columns])
        inverse = np.exp(-proposal.log_density(weights, biases))
        if domain is None:
            values = integrand(weights, biases)
        else:
            values = domain.measure * integrand(weights, biases, domain.from_cube(unit[:, proposal.columns :]))
        return (values.T * inverse).T

    cube = Box([(0.0, 1.0)] * (proposal.columns + extra))
    chosen: Options = {**DEFAULTS, **options}
    return integrate(on_cube, cube, **chosen)
