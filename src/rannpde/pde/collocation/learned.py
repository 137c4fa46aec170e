"""Laws of hidden layers that are learned from a solution, for many coordinates.

In n coordinates the polynomials of degree p number C(n + p, n), and features that know nothing of the solution need
about as many columns for its digits: 1600 ridges give 1e-4 in five dimensions. But solutions in many dimensions have
structure, or nobody could state them, and a rough solution shows it. Three kinds are looked for:

- ``subspace`` : u varies in few directions. With C = E[∇u ∇uᵀ] (its active subspace), weights are N(0, scale² C/‖C‖).
- ``quadratic`` : u is nearly a function of one quadratic q. ∇q is then parallel to ∇u everywhere, and

      misalignment(q) = E[ |∇u|² |∇q|² - (∇u·∇q)² ] / E[ |∇u|² |∇q|² ]

  is a Rayleigh quotient over the quadratics, with eigenvalues λ_0 ≤ λ_1 ≤ … and eigenfunctions q_k. Neurons see
  Σ_k n_k (λ_0/λ_k)^(1/2) q_k with n_k normal, which is the law of density ∝ exp(-misalignment / 2 λ_0).
- ``products`` : u is a short sum of products. The singular functions v_ik of u in each coordinate i, of singular values
  σ_ik, make neurons Π_i Σ_k n_ik (σ_ik/σ_i0) v_ik(x_i).

If the structure is there and the solution good to δ, then λ_0 ~ δ², σ_i1 ~ δ: the neurons of the next draw deviate by δ
from what the solution seems to be, and one iteration squares the error. If it is not there, the laws are broad, and the
held-out residual prefers ridges that nobody taught.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.polynomial import legendre
from scipy.linalg import eigh

from rannpde.arrays import Array
from rannpde.domains.domain import Box, Domain, SpaceTime
from rannpde.network.activations import as_activation
from rannpde.network.laws import FewCoordinates
from rannpde.network.polynomial import PolynomialFeatures, exponents_up_to, monomials
from rannpde.network.product import ProductFeatures
from rannpde.pde.collocation.layers import Curved
from rannpde.pde.collocation.tuning import LearningTuning
from rannpde.pde.functions import State
from rannpde.pde.residual import gradient

ROUNDING = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Lesson:
    """What is to be learned, and how it is used.

    kind : "subspace", "quadratic" or "products"
    scale : of the cosines' frequencies; free : share of ridges of any direction; products have neither
    """

    kind: str
    scale: float
    free: float

    def __str__(self) -> str:
        return f"learned {self.kind}" + ("" if self.kind == "products" else f", scale {self.scale:.3g}")

    def variants(self, tuning: LearningTuning) -> tuple[Lesson, ...]:
        """What else to try where this gains little: other frequencies, and the other share of free ridges."""
        if self.kind == "products":
            return ()
        freer = tuning.freer if self.free == tuning.free else tuning.free
        scales = (self.scale * tuning.step, self.scale / tuning.step)
        return (*(replace(self, scale=scale) for scale in scales), replace(self, free=freer))


@dataclass(frozen=True)
class Teacher:
    """Draws hidden layers from what a state shows."""

    domain: Domain
    tuning: LearningTuning

    def lessons(self, scale: float) -> tuple[Lesson, ...]:
        """What can be learned on this domain; lines through a ball leave it, so that products need a box."""
        space = self.domain.space if isinstance(self.domain, SpaceTime) else self.domain
        kinds = ("subspace", "quadratic", "products") if isinstance(space, Box) else ("subspace", "quadratic")
        return tuple(Lesson(kind, scale, self.tuning.free) for kind in kinds)

    def layer(self, lesson: Lesson, state: State, width: int, rng: np.random.Generator) -> Curved:
        """``width`` neurons, as many for each field of the state, and a constant."""
        fields = state.derivative(self.domain.sample(1, rng=rng), (0,) * self.domain.dim).shape[1]
        shares = [len(part) for part in np.array_split(np.arange(width), fields)]
        if lesson.kind == "products":
            return self._products(state, shares, rng)
        return self._polynomials(lesson, state, shares, rng)

    @property
    def _centre(self) -> Array:
        return self.domain.bounds.mean(axis=1)

    @property
    def _halfwidth(self) -> Array:
        return 0.5 * np.diff(self.domain.bounds, axis=1)[:, 0]

    # ------------------------------------------------------------------------------------- neurons of polynomials

    def _polynomials(
        self, lesson: Lesson, state: State, shares: list[int], rng: np.random.Generator
    ) -> PolynomialFeatures:
        dim = self.domain.dim
        points = self.domain.sample(self.tuning.points, rng=rng)
        slopes = gradient(state, points) * self._halfwidth
        exponents = exponents_up_to(dim, 1 if lesson.kind == "subspace" else 2)
        scaled = (points - self._centre) / self._halfwidth
        parts = []
        for field, share in enumerate(shares):
            own = slopes[:, field]
            basis = active_subspace(own) if lesson.kind == "subspace" else aligned(own, scaled, exponents)
            weights = lesson.scale * basis @ rng.standard_normal((basis.shape[1], share))
            free = round(lesson.free * share)
            if free:  # ridges of any direction, for what the structure leaves out
                weights[:, :free] = 0.0
                weights[:dim, :free], _ = FewCoordinates((lesson.scale,) * dim).sample(free, dim, rng=rng)
            parts.append(weights)
        phases = rng.uniform(0.0, 2 * np.pi, sum(shares))
        return PolynomialFeatures(
            exponents, np.concatenate(parts, axis=1), phases, as_activation("cos"), self._centre, self._halfwidth, True
        )

    # --------------------------------------------------------------------------------------- neurons of products

    def _products(self, state: State, shares: list[int], rng: np.random.Generator) -> ProductFeatures:
        nodes, quadrature = legendre.leggauss(self.tuning.degrees)
        points = self.domain.sample(self.tuning.lines, rng=rng)
        axes = []
        for axis in range(self.domain.dim):
            line = np.repeat(points, len(nodes), axis=0)
            line[:, axis] = np.tile(self._centre[axis] + self._halfwidth[axis] * nodes, len(points))
            values = state.derivative(line, (0,) * self.domain.dim).reshape(len(points), len(nodes), -1)
            parts = []
            for field, share in enumerate(shares):
                basis = line_functions(values[:, :, field], nodes, quadrature)
                factors = basis @ rng.standard_normal((basis.shape[1], share))
                parts.append(factors / np.maximum(_legendre_norms(factors), np.finfo(float).tiny))
            axes.append(np.concatenate(parts, axis=1))
        return ProductFeatures(np.stack(axes), self._centre, self._halfwidth, True)


def active_subspace(slopes: Array) -> Array:
    """C^(1/2), up to a factor that makes its norm 1, for the gradients (M, n): (n, n).

    >>> slopes = np.outer([1.0, -2.0, 3.0], [0.6, 0.8])
    >>> bool(np.abs([0.8, -0.6] @ active_subspace(slopes)).max() < 1e-12)  # nothing across the one direction
    True
    """
    _, singular, directions = np.linalg.svd(slopes, full_matrices=False)
    if not singular.max(initial=0.0) > 0:
        return np.eye(slopes.shape[1])
    found: Array = directions.T * np.maximum(singular / singular[0], ROUNDING)
    return found


def aligned(slopes: Array, points: Array, exponents: Array) -> Array:
    """Coefficients (monomials, monomials) of (λ_0/λ_k)^(1/2) q_k for the gradients (M, n) at points (M, n).

    The q_k are orthogonal with E[|∇u|² |∇q_k|²] = E[|∇u|²]: a neuron's gradient has length one where u varies.
    """
    dim = points.shape[1]
    lengths = np.linalg.norm(slopes, axis=1)
    size = float(np.sqrt(np.mean(lengths**2)))
    if not size > 0:
        return np.eye(len(exponents))
    unit = slopes / np.maximum(lengths, np.finfo(float).tiny)[:, None]
    weight = lengths / size
    inner = np.stack([monomials(points, exponents, axis) for axis in np.eye(dim, dtype=int)], axis=1)
    inner *= weight[:, None, None]
    along = np.einsum("mak,ma->mk", inner, unit)
    across = (inner - along[:, None, :] * unit[:, :, None]).reshape(-1, len(exponents))
    whole = inner.reshape(-1, len(exponents))
    metric = whole.T @ whole / len(points)
    metric[np.diag_indices_from(metric)] += 1e-12 * metric.trace()  # where the gradient vanishes nearly everywhere
    values, vectors = eigh(across.T @ across / len(points), metric)
    values = np.maximum(values, ROUNDING)
    found: Array = vectors * np.sqrt(values[0] / values)
    return found


def line_functions(values: Array, nodes: Array, quadrature: Array) -> Array:
    """Legendre coefficients (degrees, degrees) of (σ_k/σ_0) v_k for values (M, degrees) on M lines at Gauss nodes.

    >>> nodes, quadrature = legendre.leggauss(4)
    >>> found = line_functions(np.outer([1.0, 2.0], nodes), nodes, quadrature)  # all lines carry multiples of x
    >>> np.abs(found[:, 0]).round(7).tolist(), float(np.abs(found[:, 1:]).max()) < 1e-12
    ([0.0, 1.2247449, 0.0, 0.0], True)
    """
    root = np.sqrt(quadrature)
    _, singular, functions = np.linalg.svd(values * root, full_matrices=False)
    degrees = np.arange(len(nodes))
    project = (legendre.legvander(nodes, len(nodes) - 1) * (degrees + 0.5)).T * root
    if not singular.max(initial=0.0) > 0:
        return np.eye(len(nodes))
    found: Array = project @ functions.T * (singular / singular[0])
    return found


def _legendre_norms(coefficients: Array) -> Array:
    """L² norms (width,) on [-1, 1] of functions with Legendre coefficients (degrees, width)."""
    weights = 1.0 / (np.arange(len(coefficients)) + 0.5)
    norms: Array = np.sqrt(weights @ coefficients**2)
    return norms
