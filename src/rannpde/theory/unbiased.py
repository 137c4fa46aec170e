"""The unbiased network of Theorem 1, its exact variance, and the choices that make the variance finite.

    u_N(z) = (1/N) Σ_i R_ψ u(w_i, b_i) / π(w_i, b_i) · σ(w_i·z - b_i),        (w_i, b_i) ~ π independent,

has mean u, with all derivatives, and N E‖u - u_N‖² is the same number for every N:

    variance = ∫∫ |R_ψ u|²/π Σ_α w^(2α) ‖σ^(|α|)(w·z - b)‖²_{L²(Ω)} dw db - ‖u‖²_{H^p_t H^q_x(Ω)}.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Unpack

import numpy as np

from rannpde.arrays import Array, MultiIndex, Rng
from rannpde.domains import Domain, Estimate, sobolev_norm
from rannpde.domains.norms import derivative_indices
from rannpde.domains.quadrature.integrals import Options
from rannpde.errors import InputError, positive_integer, reject, require
from rannpde.network.activations import Activation, as_activation
from rannpde.network.features import RandomFeatures
from rannpde.network.laws import Gaussian, HeavyTailed, Uniform, WeightLaw
from rannpde.network.network import Network
from rannpde.theory.parameter_space import Proposal, parameter_integral
from rannpde.theory.ridgelet_function import RidgeletFunction, admissible, with_parity
from rannpde.theory.targets import RidgeletTarget


@dataclass(frozen=True, eq=False)
class Estimator:
    """One choice of everything that Theorem 1 leaves open: build it with ``estimator``, which checks it.

    time_order, space_order : p and q of the norm H^p_t H^q_x in which the error is measured
    """

    target: RidgeletTarget
    law: WeightLaw
    activation: Activation
    psi: RidgeletFunction
    time_order: int
    space_order: int

    def network(self, width: int, *, rng: Rng = None) -> Network:
        """An ordinary Network of that width whose output weights are R_ψ u / (N π)."""
        width, dim = positive_integer("width", width), self.target.dim
        weights, biases = self.law.sample(width, dim, rng=rng)
        features = RandomFeatures(weights, biases, self.activation, np.zeros(dim), np.ones(dim))
        # the paper's neuron is σ(w·z - b), the network's σ(w·z + b)
        transform = self.target.ridgelet(self.psi, weights, -biases)
        coefficients = np.sign(transform) * importance(transform, self.law.log_density(weights, biases)) / width
        about = {"kind": "unbiased network (Theorem 1)", "order": self.psi.order, "law": repr(self.law)}
        return Network(features, coefficients, about)

    def second_moment(self, domain: Domain, **options: Unpack[Options]) -> Estimate:
        """∫∫ |R_ψ u|²/π Σ_α w^(2α) ‖σ^(|α|)(w·z - b)‖² dw db: N E‖u_N‖² up to the square of the mean."""

        def integrand(weights: Array, biases: Array, points: Array) -> Array:
            transform = self.target.ridgelet(self.psi, weights, biases)
            square = importance(transform, self.law.log_density(weights, -biases), power=2)
            return square * self.feature_square(domain, weights, biases, points)

        return parameter_integral(integrand, self._proposal(), domain, **options)

    def variance(self, domain: Domain, **options: Unpack[Options]) -> Estimate:
        """N E‖u - u_N‖² in H^p_t H^q_x of the domain, by quadrature with its standard error."""
        check_domain(self.target, domain)
        moment, size = self.second_moment(domain, **options), self.size(domain)
        return Estimate(float(moment) - size**2, moment.error, moment.points, moment.rule)

    def size(self, domain: Domain) -> float:
        """‖u‖ in H^p_t H^q_x of the domain."""
        return float(sobolev_norm(self.target, domain, time_order=self.time_order, space_order=self.space_order, rng=0))

    def feature_square(self, domain: Domain, weights: Array, biases: Array, points: Array) -> Array:
        """Σ_α |∂^α σ(w·z - b)|² for pairs: weights (n, M), biases (M,), points (M, n) → (M,)."""
        phase = np.einsum("nm,mn->m", weights, points) - biases
        factors = squared_factors(weights, derivative_indices(domain, self.time_order, self.space_order))
        return np.asarray(
            np.sum([factor * self.activation(phase, order) ** 2 for order, factor in factors.items()], axis=0)
        )

    def _proposal(self) -> Proposal:
        limit = variance_limit(self.activation, self.law, self.target.dim, self.time_order, self.space_order)
        # under π the integrand decays like |w|^(-n - 2(k - limit)), under a law like |R| N itself with half that
        # excess; a proposal of that tail keeps the ratio bounded
        rate = 2.0 if isinstance(self.law, HeavyTailed) else 1.0
        excess = rate * (self.psi.order - limit) if abs(limit) < inf else 1.0
        return Proposal.matching(self.target, self.psi, min(max(excess, 0.5), 20.0))


def importance(transform: Array, log_density: Array, power: int = 1) -> Array:
    """|R|^power / π in logarithms, and 0 where the transform is: both may be far below the smallest float."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(transform == 0, 0.0, np.exp(power * np.log(np.abs(transform)) - log_density))


def squared_factors(weights: Array, indices: list[MultiIndex]) -> dict[int, Array]:
    """Σ over the α of each order |α| of w^(2α): the chain rule's factors, squared, for columns of weights."""
    squares = np.square(weights)
    factors: dict[int, Array] = {}
    for index in indices:
        factor = np.prod([squares[axis] ** power for axis, power in enumerate(index) if power], axis=0)
        factors[sum(index)] = factors.get(sum(index), np.zeros(1)) + factor
    return factors


def estimator(
    target: RidgeletTarget,
    law: WeightLaw,
    *,
    activation: str | Activation = "tanh",
    time_order: int = 0,
    space_order: int = 0,
    order: int | None = None,
) -> Estimator:
    """The checked choice behind ``unbiased_network``; the order of ψ is the least with finite variance unless given.

    Refused, with the reason: activations outside T_{p+q}, laws that the transform does not fit, and orders of ψ or
    decay exponents for which the variance is infinite.

    >>> from rannpde.theory.targets import GaussianMixture
    >>> estimator(GaussianMixture.gaussian(2), HeavyTailed(1.0, 1.0)).psi.order
    5
    """
    activation = as_activation(activation)
    check_activation(activation, time_order + space_order)
    least = least_order(activation, law, target.dim, time_order, space_order)
    order = least if order is None else positive_integer("order", order)
    psi = admissible(activation, target.dim, order)
    if order < least:
        limit = variance_limit(activation, law, target.dim, time_order, space_order)
        reject(
            "order",
            order,
            f"> {limit:g} for a finite variance in H^{time_order}_t H^{space_order}_x under {law!r}",
            f"take order={least} or smaller decay exponents: R_ψ u decays like |w|^-(order+1), 1/π grows faster",
        )
    return Estimator(target, law, activation, psi, time_order, space_order)


def unbiased_network(
    target: RidgeletTarget,
    law: WeightLaw,
    width: int,
    *,
    rng: Rng = None,
    activation: str | Activation = "tanh",
    time_order: int = 0,
    space_order: int = 0,
    order: int | None = None,
) -> Network:
    """The network of Theorem 1: output weights R_ψ u / (N π), no fitting; unbiased for u and its derivatives.

    >>> from rannpde.theory.targets import GaussianMixture
    >>> network = unbiased_network(GaussianMixture.gaussian(2), HeavyTailed(1.0, 1.0), 4000, rng=0)
    >>> bool(abs(network(np.zeros((1, 2)))[0] - 1) < 0.5)
    True
    """
    choice = estimator(target, law, activation=activation, time_order=time_order, space_order=space_order, order=order)
    return choice.network(width, rng=rng)


# ------------------------------------------------------------------------------------------- finite variance


def variance_limit(activation: str | Activation, law: WeightLaw, dim: int, p: int = 0, q: int = 0) -> float:
    """The variance in H^p_t H^q_x is finite if and only if the order of ψ exceeds this number (smooth, decaying u).

    For large |w|, R_ψ u(w, b) = |w|^(-k-1) G(b/|w|, w/|w|), a k-th derivative of the Radon transform of u. Over b the
    integrand R²(1+b²) σ² thus gives |w|^(1-2k), or |w|^(-2k) where σ^(j) decays and only b near w·z counts; with 1/π,
    the factor |w|^(2j) of j derivatives and dw this converges for k > λ_τ + λ_a + j + n/2 + (1/2 unless σ^(j) decays).
    A law with its own ``variance_limit(activation, dim, p, q)`` is asked instead; for a law of compact or Gaussian
    tails no order is enough and the limit is infinite. Of any other law nothing is known: -∞, and no order is refused.
    """
    activation = as_activation(activation)
    if isinstance(law, Gaussian | Uniform):
        return inf
    if not isinstance(law, HeavyTailed):
        return law.variance_limit(activation, dim, p, q) if hasattr(law, "variance_limit") else -inf
    law.space_dim(dim)
    decay = law.space_decay + (law.time_decay or 0.0)
    return decay + 0.5 * dim + max(j + (0.0 if decays(activation, j) else 0.5) for j in range(p + q + 1))


def decays(activation: Activation, order: int) -> bool:
    """Whether σ^(order) tends to 0 at infinity."""
    far = np.linspace(60.0, 80.0, 64)
    return bool(np.abs(activation(np.concatenate([-far, far]), order)).max() < 1e-9)


def least_order(activation: str | Activation, law: WeightLaw, dim: int, p: int = 0, q: int = 0) -> int:
    """The least order of ψ for which the unbiased network has finite variance in H^p_t H^q_x.

    >>> least_order("cos", HeavyTailed(1.0, 1.0), dim=2), least_order("tanh", HeavyTailed(1.0, 1.0), dim=2)
    (4, 5)
    """
    activation = as_activation(activation)
    limit = variance_limit(activation, law, dim, p, q)
    if limit == inf:
        raise InputError(
            f"law is {law!r}, under which the unbiased network has infinite variance or a bias for every order of ψ: "
            "R_ψ u decays only algebraically in the weights; use HeavyTailed, or optimal_law for the least variance"
        )
    integrable = dim + max(activation.fourier.pole, 1)
    return with_parity(activation, max(integrable, int(np.floor(limit)) + 1 if limit > -inf else 0))


def check_activation(activation: Activation, order: int) -> None:
    """Refuse σ outside T_order, with the largest admissible k (Definition 2)."""
    require(
        isinstance(order, (int, np.integer)) and order >= 0, "time_order + space_order", order, "a whole number ≥ 0"
    )
    if activation.in_T(order):
        return
    if activation.largest_k is None:
        reason, largest = "σ itself is unbounded", "none"
    else:
        reason, largest = f"σ^({int(activation.largest_k) + 1}) has jumps", f"{activation.largest_k:g}"
    raise InputError(
        f"activation is {activation.name!r}, which is not in T_{order}: {reason} (largest admissible k: {largest}); "
        "use 'tanh', 'sigmoid', 'cos', 'sin' or 'gaussian', which are in every T_k"
    )


def check_domain(target: RidgeletTarget, domain: Domain) -> None:
    """Refuse a domain of another dimension than the target's."""
    require(domain.dim == target.dim, "dimension of the domain", domain.dim, f"{target.dim}, as the target has")
