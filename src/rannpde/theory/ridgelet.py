"""The ridgelet transform, its dual, and the reconstruction u = R†_σ R_ψ u shown by numbers (Proposition 1).

R_ψ u(w, b) = ∫ u(z) ψ(w·z - b) dz,        R†_σ T(z) = ∫∫ T(w, b) σ(w·z - b) dw db,        w = (τ, a), z = (t, x).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt
from typing import Unpack

import numpy as np

from rannpde.arrays import Array, row_blocks
from rannpde.domains import Estimate
from rannpde.domains.quadrature.integrals import Options
from rannpde.errors import finite_array, finite_points, require
from rannpde.network.activations import Activation, as_activation
from rannpde.theory.parameter_space import Proposal, parameter_integral
from rannpde.theory.ridgelet_function import RidgeletFunction, admissible, panels, with_parity
from rannpde.theory.targets import RidgeletTarget

BLOCK = 2**21
"""Values of σ at a time: 16 MB, so that memory does not grow with the rule."""


@dataclass(frozen=True)
class Reconstruction:
    """R†_σ R_ψ u beside u at the points.

    values, exact : (M,)
    error : max |values - exact| / max |exact|
    parameters : number of (w, b) at which the transform was evaluated
    """

    values: Array
    exact: Array
    parameters: int

    @property
    def error(self) -> float:
        return float(np.abs(self.values - self.exact).max() / np.abs(self.exact).max())


def ridgelet_transform(target: RidgeletTarget, psi: RidgeletFunction, weights: Array, biases: Array) -> Array:
    """R_ψ u at the columns of weights (n, N) and the biases (N,), in the paper's sign ψ(w·z - b): shape (N,).

    >>> from rannpde.theory.targets import GaussianMixture
    >>> psi = admissible("cos", dim=2, order=4)
    >>> ridgelet_transform(GaussianMixture.gaussian(2), psi, np.zeros((2, 1)), np.zeros(1)).round(6)
    array([0.31405])
    """
    weights, biases = finite_array("weights", weights, 2), finite_array("biases", biases, 1)
    shape = (target.dim, len(biases))
    require(weights.shape == shape, "weights with shape", weights.shape, f"of shape {shape}, one column a neuron")
    return target.ridgelet(psi, weights, biases)


def dual_transform(
    transform: Callable[[Array, Array], Array],
    activation: str | Activation,
    points: Array,
    proposal: Proposal,
    **options: Unpack[Options],
) -> Estimate:
    """R†_σ T at the points (M, n) by Sobol points in (w, b), with standard errors; T(weights, biases) → (N,)."""
    activation = as_activation(activation)
    points = finite_points("points", points, proposal.dim)

    def integrand(weights: Array, biases: Array) -> Array:
        phase = weights.T @ points.T - biases[:, None]
        return np.asarray(transform(weights, biases)[:, None] * activation(phase))

    return parameter_integral(integrand, proposal, **options)


def reconstruct(
    target: RidgeletTarget,
    activation: str | Activation,
    points: Array,
    *,
    order: int | None = None,
    reach: float = 8.0,
    fineness: int = 1,
) -> Reconstruction:
    """R†_σ R_ψ u at the points (M, n), n = 2 or 3, by a deterministic rule in (|w|, w/|w|, b).

    The integral over |w| is cut at reach / radius of u, which leaves a share of about reach^(n - order); the other
    rules converge spectrally with ``fineness``. The order of ψ is 9 or 10 above the least, so that the cut is far out.

    >>> from rannpde.theory.targets import GaussianMixture
    >>> reconstruct(GaussianMixture.gaussian(2), "tanh", np.array([[0.0, 0.5]])).error < 1e-5
    True
    """
    activation = as_activation(activation)
    points = finite_points("points", points, target.dim)
    require(target.dim in (2, 3), "dimension of the target", target.dim, "2 or 3", "use dual_transform above")
    if order is None:
        order = with_parity(activation, target.dim + activation.fourier.pole + 8)
    psi = admissible(activation, target.dim, order)
    directions, direction_weights = half_sphere(target.dim, 12 * fineness)
    lengths, length_weights = panels(0.0, reach / target.radius, 4 * fineness, 10)
    total, used = np.zeros(len(points)), 0
    for length, weight in zip(lengths, length_weights * lengths ** (target.dim - 1), strict=True):
        offsets, step = _bias_rule(length, target, psi, fineness)
        weights = np.repeat(length * directions.T, len(offsets), axis=1)
        biases = target.centre @ weights + np.tile(offsets, len(directions))
        masses = 2 * weight * step * np.repeat(direction_weights, len(offsets))  # (w, b) and (-w, -b) count alike
        masses *= target.ridgelet(psi, weights, biases)
        total += _sum_of_neurons(activation, psi.order % 2, points, weights, biases, masses)
        used += len(biases)
    return Reconstruction(total, target(points), used)


def half_sphere(dim: int, count: int) -> tuple[Array, Array]:
    """Directions (K, dim) and weights of a rule on half of the unit sphere, dim 2 or 3."""
    if dim == 2:
        angle = pi * np.arange(2 * count) / (2 * count)
        return np.stack([np.cos(angle), np.sin(angle)], axis=1), np.full(2 * count, pi / (2 * count))
    x, weight = np.polynomial.legendre.leggauss(count)
    height, angle = 0.5 * (x + 1), 2 * pi * np.arange(2 * count) / (2 * count)
    ring = np.sqrt(1 - height**2)
    spots = [np.outer(ring, np.cos(angle)), np.outer(ring, np.sin(angle)), np.outer(height, np.ones_like(angle))]
    return np.stack([spot.ravel() for spot in spots], axis=1), np.repeat(0.5 * weight * pi / count, 2 * count)


def _bias_rule(length: float, target: RidgeletTarget, psi: RidgeletFunction, fineness: int) -> tuple[Array, float]:
    """A trapezoidal rule over the b for which the transform is not negligible."""
    width = sqrt(1 + (length * target.radius) ** 2)
    reach = width * (2 * sqrt(psi.order) + 6.0)
    step = 0.25 / fineness
    half = int(np.ceil(reach / step))
    return step * np.arange(-half, half + 1), step


def _sum_of_neurons(
    activation: Activation, odd: int, points: Array, weights: Array, biases: Array, masses: Array
) -> Array:
    """Σ_i mass_i σ(w_i·z - b_i), where σ is replaced by the half of it, even or odd, that the pairs ± leave over."""
    total = np.zeros(len(points))
    for block in row_blocks(len(biases), max(1, BLOCK // len(points))):
        phase = points @ weights[:, block] - biases[block]
        sign = -1.0 if odd else 1.0
        total += 0.5 * (activation(phase) + sign * activation(-phase)) @ masses[block]
    return total
