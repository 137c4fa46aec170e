"""Feature learning in many coordinates: sampling laws of hidden layers that are fitted to an approximate solution.

In n coordinates there are C(n + p, n) polynomials of degree p, and features that know nothing about the solution need
about as many columns for its digits: 1600 ridges give 1e-4 in five dimensions. But solutions in many dimensions have
structure, and a rough solution shows it. Three kinds of structure are fitted:

- ``subspace`` : u varies in few directions. With C = E[∇u ∇uᵀ] (its active subspace), weights are N(0, scale² C/‖C‖).
- ``quadratic`` : u is nearly a function of one quadratic q. ∇q is then parallel to ∇u everywhere, and

      misalignment(q) = E[ |∇u|² |∇q|² - (∇u·∇q)² ] / E[ |∇u|² |∇q|² ]

  is a Rayleigh quotient over the quadratics, with eigenvalues λ_0 ≤ λ_1 ≤ … and eigenfunctions q_k. The argument of a
  neuron is Σ_k n_k (λ_0/λ_k)^(1/2) q_k with n_k normal, the law of density ∝ exp(-misalignment / 2 λ_0).
- ``products`` : u is a short sum of products. The singular functions v_ik of u in each coordinate i, with singular
  values σ_ik, give neurons Π_i Σ_k n_ik (σ_ik/σ_i0) v_ik(x_i).

If the structure is present and the solution is accurate to δ, then λ_0 ~ δ² and σ_i1 ~ δ: the neurons of the next
sample deviate by δ from the apparent structure, and one iteration squares the error. If it is absent, the laws are
broad, and the held-out residual prefers ordinary ridges.
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
from rannpde.pde.collocation.layers import NonRidgeLayer
from rannpde.pde.collocation.tuning import LearningTuning
from rannpde.pde.functions import State
from rannpde.pde.residual import gradient

MACHINE_EPSILON = float(np.finfo(float).eps)


@dataclass(frozen=True)
class LearnedLaw:
    """A sampling law that is fitted to a solution.

    kind : "subspace", "quadratic" or "products"
    scale : scale of the cosines' frequencies; free : fraction of ridges of random direction; products have neither
    """

    kind: str
    scale: float
    free: float

    def __str__(self) -> str:
        return f"learned {self.kind}" + ("" if self.kind == "products" else f", scale {self.scale:.3g}")

    def variants(self, tuning: LearningTuning) -> tuple[LearnedLaw, ...]:
        """Return the laws to try where this one helps little: other frequencies, and the other fraction of random
        ridges."""
        if self.kind == "products":
            return ()
        few = tuning.isotropic_fraction
        freer = 1 - few if self.free == few else few
        scales = (self.scale * tuning.step, self.scale / tuning.step)
        return (*(replace(self, scale=scale) for scale in scales), replace(self, free=freer))


@dataclass(frozen=True)
class FeatureLearner:
    """Samples hidden layers from laws fitted to a state."""

    domain: Domain
    tuning: LearningTuning

    def candidate_laws(self, scale: float) -> tuple[LearnedLaw, ...]:
        """Return the laws that can be fitted on this domain; products need a box, since lines through a ball leave
        it."""
        space = self.domain.space if isinstance(self.domain, SpaceTime) else self.domain
        kinds = ("subspace", "quadratic", "products") if isinstance(space, Box) else ("subspace", "quadratic")
        return tuple(LearnedLaw(kind, scale, self.tuning.isotropic_fraction) for kind in kinds)

    def layer(self, law: LearnedLaw, state: State, width: int, rng: np.random.Generator) -> NonRidgeLayer:
        """Return ``width`` neurons, equally many for each field of the state, and a constant."""
        fields = state.derivative(self.domain.sample(1, rng=rng), (0,) * self.domain.dim).shape[1]
        widths = [len(part) for part in np.array_split(np.arange(width), fields)]
        if law.kind == "products":
            return self._products(state, widths, rng)
        return self._polynomials(law, state, widths, rng)

    @property
    def _centre(self) -> Array:
        return self.domain.bounds.mean(axis=1)

    @property
    def _halfwidth(self) -> Array:
        return 0.5 * np.diff(self.domain.bounds, axis=1)[:, 0]

    # ------------------------------------------------------------------------------------- neurons of polynomials

    def _polynomials(
        self, law: LearnedLaw, state: State, widths: list[int], rng: np.random.Generator
    ) -> PolynomialFeatures:
        dim = self.domain.dim
        points = self.domain.sample(self.tuning.points, rng=rng)
        slopes = gradient(state, points) * self._halfwidth
        exponents = exponents_up_to(dim, 1 if law.kind == "subspace" else 2)
        scaled = (points - self._centre) / self._halfwidth
        parts = []
        for field, width in enumerate(widths):
            of_field = slopes[:, field]
            basis = active_subspace(of_field) if law.kind == "subspace" else aligned(of_field, scaled, exponents)
            weights = law.scale * basis @ rng.standard_normal((basis.shape[1], width))
            free = round(law.free * width)
            if free:  # ridges of random direction represent the rest of the solution
                weights[:, :free] = 0.0
                weights[:dim, :free], _ = FewCoordinates((law.scale,) * dim).sample(free, dim, rng=rng)
            parts.append(weights)
        phases = rng.uniform(0.0, 2 * np.pi, sum(widths))
        return PolynomialFeatures(
            exponents, np.concatenate(parts, axis=1), phases, as_activation("cos"), self._centre, self._halfwidth, True
        )

    # --------------------------------------------------------------------------------------- neurons of products

    def _products(self, state: State, widths: list[int], rng: np.random.Generator) -> ProductFeatures:
        nodes, quadrature = legendre.leggauss(self.tuning.degrees)
        points = self.domain.sample(self.tuning.lines, rng=rng)
        axes = []
        for axis in range(self.domain.dim):
            line = np.repeat(points, len(nodes), axis=0)
            line[:, axis] = np.tile(self._centre[axis] + self._halfwidth[axis] * nodes, len(points))
            values = state.derivative(line, (0,) * self.domain.dim).reshape(len(points), len(nodes), -1)
            parts = []
            for field, width in enumerate(widths):
                basis = line_functions(values[:, :, field], nodes, quadrature)
                factors = basis @ rng.standard_normal((basis.shape[1], width))
                parts.append(factors / np.maximum(_legendre_norms(factors), np.finfo(float).tiny))
            axes.append(np.concatenate(parts, axis=1))
        return ProductFeatures(np.stack(axes), self._centre, self._halfwidth, True)


def active_subspace(slopes: Array) -> Array:
    """Return C^(1/2), normalised to norm 1, for the gradients (M, n): (n, n).

    >>> slopes = np.outer([1.0, -2.0, 3.0], [0.6, 0.8])
    >>> bool(np.abs([0.8, -0.6] @ active_subspace(slopes)).max() < 1e-12)  # nothing across the one direction
    True
    """
    _, singular, directions = np.linalg.svd(slopes, full_matrices=False)
    if not singular.max(initial=0.0) > 0:
        return np.eye(slopes.shape[1])
    root: Array = directions.T * np.maximum(singular / singular[0], MACHINE_EPSILON)
    return root


def aligned(slopes: Array, points: Array, exponents: Array) -> Array:
    """Return the coefficients (monomials, monomials) of (λ_0/λ_k)^(1/2) q_k for gradients (M, n) at points (M, n).

    The q_k are orthogonal with E[|∇u|² |∇q_k|²] = E[|∇u|²]: the gradient of a neuron has length one where u varies.
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
    metric[np.diag_indices_from(metric)] += 1e-12 * metric.trace()  # for a gradient that vanishes almost everywhere
    values, vectors = eigh(across.T @ across / len(points), metric)
    values = np.maximum(values, MACHINE_EPSILON)
    scaled: Array = vectors * np.sqrt(values[0] / values)
    return scaled


def line_functions(values: Array, nodes: Array, quadrature: Array) -> Array:
    """Return the Legendre coefficients (degrees, degrees) of (σ_k/σ_0) v_k for values (M, degrees) on M lines.

    >>> nodes, quadrature = legendre.leggauss(4)
    >>> series = line_functions(np.outer([1.0, 2.0], nodes), nodes, quadrature)  # all lines carry multiples of x
    >>> np.abs(series[:, 0]).round(7).tolist(), float(np.abs(series[:, 1:]).max()) < 1e-12
    ([0.0, 1.2247449, 0.0, 0.0], True)
    """
    root = np.sqrt(quadrature)
    _, singular, functions = np.linalg.svd(values * root, full_matrices=False)
    degrees = np.arange(len(nodes))
    project = (legendre.legvander(nodes, len(nodes) - 1) * (degrees + 0.5)).T * root
    if not singular.max(initial=0.0) > 0:
        return np.eye(len(nodes))
    coefficients: Array = project @ functions.T * (singular / singular[0])
    return coefficients


def _legendre_norms(coefficients: Array) -> Array:
    """Return the L² norms (width,) on [-1, 1] of functions with Legendre coefficients (degrees, width)."""
    weights = 1.0 / (np.arange(len(coefficients)) + 0.5)
    norms: Array = np.sqrt(weights @ coefficients**2)
    return norms
