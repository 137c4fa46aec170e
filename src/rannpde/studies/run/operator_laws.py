"""One linear equation on the unit square, solved with four laws of the hidden weights: π, Gaussian, learned, Trefftz.

Every network has N output weights, computed by one linear least-squares problem: residuals of the equation at interior
points and of the boundary values. A law that knows the operator needs no interior points. Its frequencies are the
Gaussian ones, put on the characteristic variety of the operator: λ = ik w/|w| for Δu + k²u = 0, and λ = w^⊥ + iw for
Δu = 0, so that Re and Im of exp(λ·x) satisfy the equation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi

import numpy as np
from scipy.linalg import lstsq
from scipy.special import y0

from rannpde.arrays import Array, MultiIndex
from rannpde.errors import choose, is_real, positive_integer, require
from rannpde.fitting.adaptive import adaptive_features
from rannpde.network.features import FourierFeatures, RandomFeatures
from rannpde.network.laws import Gaussian, HeavyTailed
from rannpde.pde.trefftz.families import ExponentialFamily
from rannpde.studies.cell import MeasurementCell
from rannpde.studies.target import PlainTarget

OPERATOR_LAWS = ("pi", "gaussian", "learned", "trefftz")
SOURCE = (-0.2, -0.3)
"""Where the exact solutions have their singularity, outside of the square."""
LAPLACE_SCALE = 5.0
"""Root mean square of |w| for Laplace's equation: the solution varies over about its distance from the source."""
_INNER, _RIM = 4, 2
"""Interior and boundary points for each output weight."""
_TEST_POINTS = 2000
"""Fresh uniform points."""
_CUTOFF = 1e-13
"""Relative singular values that are kept: rounding with some room."""

Columns = Callable[[Array, MultiIndex], Array]
"""Derivatives of all features at points: (M, n), index → (M, N)."""


@dataclass(frozen=True)
class SquareSource(PlainTarget):
    """Δu + k²u = 0 on (0, 1)² with the boundary values of a source outside: log r for k = 0, Y₀(kr) for k > 0."""

    wave_number: float = 0.0
    space_dim: int = 1

    def __post_init__(self) -> None:
        good = is_real(self.wave_number) and 0 <= self.wave_number < np.inf
        require(good, "wave_number", self.wave_number, "a number ≥ 0", "0 is Laplace's equation")

    @property
    def bounds(self) -> Array:
        return np.array([[0.0, 1.0], [0.0, 1.0]])

    @property
    def frequency(self) -> float:
        """Root mean square of |w|: the wave number where there is one."""
        return self.wave_number or LAPLACE_SCALE

    def values(self, points: Array) -> Array:
        radius = np.hypot(*(points - np.array(SOURCE)).T)
        return np.asarray(y0(self.wave_number * radius) if self.wave_number else np.log(radius))


@dataclass(frozen=True)
class OperatorLaw(MeasurementCell):
    """Relative L² errors of networks with N output weights by one law, for several draws.

    law : "pi", "gaussian", "learned" (tanh neurons placed where a first, Gaussian solution varies), "trefftz"
    """

    law: str = "gaussian"
    draws: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        choose("law", self.law, dict.fromkeys(OPERATOR_LAWS))
        positive_integer("draws", self.draws)
        require(isinstance(self.target, SquareSource), "target", self.target, "a SquareSource")

    @property
    def cost(self) -> float:
        """One factorisation of 6N × N for each draw and width, and more for the learned law."""
        return 1e8 + self.draws * (400 if self.law == "learned" else 40) * float(max(self.networks)) ** 3

    def measure(self) -> dict[str, list[list[float]]]:
        return {"error": [[self._error(width, draw) for draw in range(self.draws)] for width in self.networks]}

    def _error(self, width: int, draw: int) -> float:
        problem = self.target
        assert isinstance(problem, SquareSource)
        rng = np.random.default_rng([self.seed, draw, width])  # all laws share their points and Gaussian draws
        inner, rim = rng.random((_INNER * width, 2)), _rim(_RIM * width, rng)
        weights = Gaussian(problem.frequency / 2**0.5).sample(width // 2, 2, rng=rng)[0]
        columns = self._columns(problem, weights, inner, rim, width, rng)
        interior = None if self.law == "trefftz" else inner
        coefficients = solved(columns, problem, interior, rim)
        test = rng.random((_TEST_POINTS, 2))
        exact = problem.values(test)
        return float(np.linalg.norm(columns(test, (0, 0)) @ coefficients - exact) / np.linalg.norm(exact))

    def _columns(
        self, problem: SquareSource, weights: Array, inner: Array, rim: Array, width: int, rng: np.random.Generator
    ) -> Columns:
        if self.law == "trefftz":
            return on_the_variety(problem, weights)
        if self.law == "pi":
            heavy = HeavyTailed(None, 1.5).sample(width // 2, 2, rng=rng)[0]  # Cauchy tails in the plane
            return _fourier(problem.frequency / 2**0.5 * heavy)
        gaussian = _fourier(weights)
        if self.law == "gaussian":
            return gaussian
        first = solved(gaussian, problem, inner, rim)
        points = np.concatenate([inner, rim])
        features: RandomFeatures = adaptive_features(points, gaussian(points, (0, 0)) @ first, width - 1, rng=rng)
        return features


def on_the_variety(problem: SquareSource, weights: Array) -> Columns:
    """Features that satisfy the equation: the frequencies (2, K) moved to the characteristic variety."""
    lengths = np.linalg.norm(weights, axis=0)
    if problem.wave_number:
        frequencies = 1j * problem.wave_number * (weights / lengths).T
    else:
        frequencies = np.stack([-weights[1], weights[0]], axis=1) + 1j * weights.T
    centre = np.full(2, 0.5)
    offsets = 0.5 * np.abs(frequencies.real).sum(axis=1)  # the largest exponent on the square
    family = ExponentialFamily(frequencies, offsets, centre)
    return lambda points, index: family.values(points, index)[:, 0, :]


def _fourier(weights: Array) -> Columns:
    features = FourierFeatures(weights, np.zeros(weights.shape[1]), np.full(2, 0.5), np.ones(2), constant=False)
    return lambda points, index: features(points, index)


def solved(columns: Columns, problem: SquareSource, inner: Array | None, rim: Array) -> Array:
    """The output weights of least residual: mean squares of (Δu + k²u)/max(k², 2π²) inside and of u - g on the rim.

    2π² is the least eigenvalue of the square, so that both parts are sizes of u.
    """
    square = problem.wave_number**2
    edge = columns(rim, (0, 0)) / len(rim) ** 0.5
    rows, goals = [edge], [problem.values(rim) / len(rim) ** 0.5]
    if inner is not None:
        residual = columns(inner, (2, 0)) + columns(inner, (0, 2)) + square * columns(inner, (0, 0))
        rows.append(residual / (max(square, 2 * pi**2) * len(inner) ** 0.5))
        goals.append(np.zeros(len(inner)))
    matrix = np.concatenate(rows)
    sizes = np.linalg.norm(matrix, axis=0)
    sizes[sizes == 0.0] = 1.0
    scaled = lstsq(matrix / sizes, np.concatenate(goals), cond=_CUTOFF, lapack_driver="gelsy")[0]
    return np.asarray(scaled / sizes)


def _rim(count: int, rng: np.random.Generator) -> Array:
    """Points (count, 2) of the boundary of the unit square, one in every equal piece of it."""
    position = 4 * (np.arange(count) + rng.random(count)) / count
    side, along = np.divmod(position, 1.0)
    ends = np.where(side % 3 == 0, 0.0, 1.0)
    return np.where((side % 2 == 0)[:, None], np.stack([along, ends], axis=1), np.stack([ends, along], axis=1))
