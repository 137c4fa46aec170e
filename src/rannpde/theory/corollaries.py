"""The corollaries for the porous medium and the Navier–Stokes equations, both parts of each, on any target.

Part 1 is Theorem 1 for u, and for the pair (ρ, u) with the product norm. Part 2 bounds ∫ |𝓝(u_N) - 𝓝(u)|², the loss
where
u solves the equation, by a coefficient made of sup-norms of u and u_N times ‖u_N - u‖² in one Sobolev norm, and that
norm by Markov's inequality with probability 1 - δ. The corrected form names the one norm that contains every derivative
needed (H^1_t H^2_x), so that one event of probability 1 - δ is enough, squares L, and keeps the factors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, lgamma, log, nan, pi
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.domains import Domain, SpaceTime
from rannpde.errors import require
from rannpde.network.features import RandomFeatures
from rannpde.network.network import Network
from rannpde.theory.bounds import Constant, printed_coefficient, theorem_bound
from rannpde.theory.extension import Reflection
from rannpde.theory.losses import (
    Gas,
    derivatives_of,
    loss_integral,
    navier_stokes,
    navier_stokes_losses,
    porous_medium,
    porous_medium_loss,
    power_derivative,
    require_exponent,
    require_positive,
    sup,
    sup_sample,
)
from rannpde.theory.unbiased import Estimator

MEAN_VALUE_NODES = 12
"""Gauss nodes of the mean-value integrals ∫_0^1 Φ''(u + θ e) dθ: exact for whole m ≤ 25, 1e-9 for others at |e| ≤
u/2."""


@dataclass(frozen=True)
class ResidualBound:
    """The second part of a corollary for one network.

    loss : J_PDE(u_N), the residual loss of the network
    difference : ∫ |𝓝(u_N) - 𝓝(u)|², which is the loss where u solves the equation; this is what the proofs bound
    coefficient : the corrected factor of ‖u_N - u‖²
    from_variance, corrected, printed : bounds that hold with probability 1 - δ (the printed one: are said to hold),
        by the exact variance, by the corrected Theorem 1, and as in the paper (nan where the paper gives no number)
    """

    loss: float
    difference: float
    coefficient: float
    from_variance: float
    corrected: float
    printed: float


def require_probability(delta: float) -> float:
    """δ, refused outside (0, 1)."""
    number = isinstance(delta, (int, float)) and not isinstance(delta, bool)
    require(
        number and 0 < delta < 1, "delta", delta, "strictly between 0 and 1", "the bound holds with probability 1 - δ"
    )
    return float(delta)


# ------------------------------------------------------------------------------------------------------- part 1


def porous_medium_approximation(
    choice: Estimator, domain: SpaceTime, *, extension: Reflection | None = None
) -> Constant:
    """Corollary PME, part 1 (eq. PME-bound): N · E‖u - u_N‖²_{H^p_t H^q_x} ≤ N-free constant, printed and corrected.

    extension : the operator whose C_Ω counts where u is known on the domain alone, as in ``theorem_bound``
    """
    bound = theorem_bound(choice, domain, extension=extension)
    return Constant("N · E‖u - u_N‖²", "Corollary PME, part 1", bound.printed, bound.corrected, bound.note)


def navier_stokes_approximation(
    density: Estimator, velocity: Estimator, domain: SpaceTime, *, extension: Reflection | None = None
) -> Constant:
    """Corollary NS, part 1: N · E‖(ρ, u) - v_N‖² in the product norm, for networks of N neurons each (2N together).

    The paper states L²_t H^q_x, p = 0; any p is meant ("for any p, q"). Its factor q is 0 for q = 0.
    """
    same = (density.time_order, density.space_order) == (velocity.time_order, velocity.space_order)
    got = [(one.time_order, one.space_order) for one in (density, velocity)]
    require(same, "orders of both estimators", got, "the same norm for ρ and u")
    parts = [theorem_bound(one, domain, extension=extension) for one in (density, velocity)]
    printed, corrected = (sum(getattr(part, name) for part in parts) for name in ("printed", "corrected"))
    return Constant("N · E‖(ρ, u) - v_N‖²", "Corollary NS, part 1", printed, corrected, parts[0].note)


# ------------------------------------------------------------------------------------------------- porous medium


@dataclass(frozen=True)
class _Jet:
    """u, ∇u (d, M), Δu at points."""

    value: Array
    gradient: Array
    laplacian: Array

    @classmethod
    def of(cls, function: Any, points: Array) -> _Jet:
        n = points.shape[1]
        first, second = ([tuple(times * int(k == axis) for k in range(n)) for axis in range(1, n)] for times in (1, 2))
        derivatives = derivatives_of(function, points, [(0,) * n, *first, *second])
        gradient = np.array([derivatives[index][:, 0] for index in first])
        laplacian = np.sum([derivatives[index][:, 0] for index in second], axis=0)
        return cls(derivatives[(0,) * n][:, 0], gradient, laplacian)


def porous_medium_corollary(
    choice: Estimator,
    network: Network,
    domain: SpaceTime,
    delta: float,
    *,
    exponent: float = 2,
    variance: float | None = None,
    theorem: float | None = None,
    losses: tuple[float, float] | None = None,
) -> ResidualBound:
    """Corollary PME, part 2, for a network of ``choice`` (built with p ≥ 1 and q ≥ 2) and any real m > 1.

    With e = u_N - u and Φ(w) = w^m the mean-value formulas Φ'(u_N) - Φ'(u) = A e and Φ''(u_N) - Φ''(u) = B e give
    Δ(u_N^m - u^m) = Φ'(u_N) Δe + Φ''(u_N) ∇(u_N + u)·∇e + (A Δu + B |∇u|²) e, so ∫ |𝓝(u_N) - 𝓝(u)|² ≤ c ‖e‖²_{H^1_t
    H^2_x},
    c = max(2, 6d‖Φ'(u_N)‖²_∞, 6‖Φ''(u_N) ∇(u_N + u)‖²_∞, 6‖A Δu + B|∇u|²‖²_∞).
    Printed: C_m (L + C_emb‖u‖²_{L^∞ H^(2+k)})
    𝓜_ψ/(Nδ) ‖u‖²_{H² H^(3+k)} with L unsquared, C_m = 12 (the proof's value for m = 2; it gives none for others) and
    k = d/2 + 1/2. Where m is no whole number u_N and u must be positive.

    variance, theorem : N · E‖u - u_N‖² in H^p_t H^q_x and its corrected bound where they are known; else computed
    losses : loss and difference of the network where they are known
    """
    delta, m = require_probability(delta), require_exponent(exponent)
    _require_orders(choice, 1, 2)
    sample = sup_sample(domain)
    approximate, exact = _Jet.of(network, sample), _Jet.of(choice.target, sample)
    if not m.is_integer():
        require_positive(np.concatenate([approximate.value, exact.value]))
    d = domain.dim - 1
    second = mean_value(approximate.value, exact.value, lambda w: power_derivative(w, m, 2))
    third = mean_value(approximate.value, exact.value, lambda w: power_derivative(w, m, 3))
    factors = (
        d**0.5 * sup(power_derivative(approximate.value, m, 1)),
        sup(power_derivative(approximate.value, m, 2) * np.linalg.norm(approximate.gradient + exact.gradient, axis=0)),
        sup(second * exact.laplacian + third * np.square(exact.gradient).sum(axis=0)),
    )
    coefficient = max(2.0, *(6 * factor**2 for factor in factors))
    largest = sup(approximate.value) + sup(np.linalg.norm(approximate.gradient, axis=0)) + sup(approximate.laplacian)
    k = 0.5 * d + 0.5
    in_time = 0.5 * choice.target.squared_norm(1, 2 + k)  # ‖u‖²_{L^∞_t} ≤ ½ ‖u‖²_{H^1_t}
    printed = 12 * (largest + embedding_constant(k, d) * in_time) * choice.target.squared_norm(2, 3 + k)
    printed = printed * printed_coefficient(choice, domain, 0, 2) if m == 2 else nan

    if losses is None:
        difference = porous_medium(domain.dim, m).difference(network, choice.target, domain)
        losses = float(porous_medium_loss(network, domain, exponent=m)), difference
    width = len(network.coefficients)
    return _residual_bound(losses, coefficient, [choice], domain, width * delta, printed, variance, theorem)


def mean_value(one: Array, other: Array, function: Callable[[Array], Array]) -> Array:
    """∫_0^1 function(other + θ (one - other)) dθ by Gauss's rule."""
    nodes, weights = np.polynomial.legendre.leggauss(MEAN_VALUE_NODES)
    total = np.zeros_like(one)
    for node, weight in zip(0.5 * (1 + nodes), 0.5 * weights, strict=True):
        total += weight * function(other + node * (one - other))
    return total


def embedding_constant(order: float, d: int) -> float:
    """C_emb of H^order(R^d) → L^∞, order > d/2: ((2π)^(-d) ∫ (1+|ξ|²)^(-order) dξ)^(1/2)."""
    require(order > 0.5 * d, "order", order, f"> d/2 = {0.5 * d:g}")
    return exp(0.5 * (-0.5 * d * log(4 * pi) + lgamma(order - 0.5 * d) - lgamma(order)))


# ------------------------------------------------------------------------------------------------ Navier–Stokes


def paired_network(first: Network, second: Network) -> Network:
    """(ρ_N, u_N) as the two outputs of one network of width 2N, as the proof of the corollary says."""
    left, right = first.features, second.features
    same = (
        isinstance(left, RandomFeatures) and isinstance(right, RandomFeatures) and left.activation == right.activation
    )
    require(same, "networks", (type(left).__name__, type(right).__name__), "random features of one activation")
    assert isinstance(left, RandomFeatures)
    assert isinstance(right, RandomFeatures)
    weights = np.concatenate([left.weights, right.weights], axis=1)
    biases = np.concatenate([left.biases, right.biases])
    coefficients = np.zeros((len(biases), 2))
    coefficients[: left.width, 0], coefficients[left.width :, 1] = first.coefficients, second.coefficients
    features = RandomFeatures(weights, biases, left.activation, left.centre, left.halfwidth)
    return Network(features, coefficients, {"kind": "two unbiased networks (corollary for Navier–Stokes)"})


@dataclass(frozen=True)
class _Flow:
    """ρ, u and the derivatives ∂_t, ∂_x, and u_xx, at points."""

    rho: Array
    rho_t: Array
    rho_x: Array
    u: Array
    u_t: Array
    u_x: Array
    u_xx: Array

    @classmethod
    def of(cls, pair: Any, points: Array) -> _Flow:
        indices = ((0, 0), (1, 0), (0, 1), (0, 2))
        derivatives = derivatives_of(pair, points, indices)
        jets = [derivatives[index].T for index in indices]
        return cls(*(jet[0] for jet in jets[:3]), *(jet[1] for jet in jets))

    def squares(self) -> tuple[float, float]:
        """‖ρ‖² and ‖u‖² in W^(1,∞), each a sum of sup-norms, squared."""
        rho = sup(self.rho) + sup(self.rho_t) + sup(self.rho_x)
        return rho**2, (sup(self.u) + sup(self.u_t) + sup(self.u_x)) ** 2


def continuity_corollary(
    density: Estimator,
    velocity: Estimator,
    network: Network,
    domain: SpaceTime,
    delta: float,
    *,
    variance: float | None = None,
    theorem: float | None = None,
    losses: tuple[float, float] | None = None,
) -> ResidualBound:
    """The bound of J¹ alone in the proof of Corollary NS, for both choices built with p ≥ 1 and q ≥ 1.

    With e = ρ_N - ρ, f = u_N - u the residual is e_t + u e_x + u_x e + ρ_N f_x + ρ_N,x f, five terms, so that
    J¹ ≤ 5 max(1, ‖u‖²_∞, ‖u_x‖²_∞, ‖ρ_N‖²_∞, ‖ρ_N,x‖²_∞) (‖e‖² + ‖f‖²) in H^1_t H^1_x. Printed: 𝓑_N ≤ 4(L +
    ‖u‖²_{W^(1,∞)}),
    which has dropped the term of e_t (it fails where all fields are small) and takes 4 for 5.
    """
    delta = require_probability(delta)
    _require_orders(density, 1, 1)
    _require_orders(velocity, 1, 1)
    sample, exact = sup_sample(domain), _Pair(density.target, velocity.target)
    approximate, true = _Flow.of(network, sample), _Flow.of(exact, sample)
    factors = (1.0, sup(true.u), sup(true.u_x), sup(approximate.rho), sup(approximate.rho_x))
    coefficient = 5 * max(factor**2 for factor in factors)
    big = sum(approximate.squares()) + sum(true.squares())
    size = density.target.squared_norm(3, 3) + velocity.target.squared_norm(3, 3)
    printed = 4 * (big + true.squares()[1]) * printed_coefficient(velocity, domain, 0, 1) * size

    system = navier_stokes(Gas())

    def gap(points: Array) -> Array:
        return np.asarray((system.residuals(network, points) - system.residuals(exact, points))[:, 0] ** 2)

    if losses is None:
        losses = float(navier_stokes_losses(network, domain)[0]), float(loss_integral(gap, domain))
    width = len(network.coefficients) // 2
    both = [density, velocity]
    return _residual_bound(losses, coefficient, both, domain, width * delta, printed, variance, theorem)


def navier_stokes_corollary(
    density: Estimator,
    velocity: Estimator,
    network: Network,
    domain: SpaceTime,
    delta: float,
    *,
    viscosity: float = 1.0,
    gamma: float = 0.0,
    alpha: float = 0.0,
    variance: float | None = None,
    theorem: float | None = None,
    losses: tuple[float, float] | None = None,
) -> ResidualBound:
    """Corollary NS, part 2, for ``paired_network`` of both choices (p ≥ 1; q ≥ 1 and q ≥ 2); p = ρ^γ, μ = viscosity
    · ρ^α.

    With e = ρ_N - ρ, f = u_N - u and A = ρ_N (u_N + u) the residual of mass differs by e_t + u e_x + u_x e + ρ_N f_x +
    ρ_N,x f, that of momentum by

        u e_t + (u² + p'(ρ_N) - μ'(ρ_N) u_x) e_x + (u_t + 2uu_x + P ρ_x - M u_xx - M' ρ_x u_x) e
        + ρ_N f_t + (ρ_N,t + A_x) f + (A - μ'(ρ_N) ρ_N,x) f_x - μ(ρ_N) f_xx

    with the mean values P of p'', M of μ', M' of μ'' between ρ and ρ_N. So J¹ + J² ≤ c (‖e‖²_{H^1 H^1} + ‖f‖²_{H^1
    H^2})
    with c the largest sum of 5 and 7 times the squared factors. Printed, for γ = α = 0 alone:
    C_L = 16L² + 80L + 2μ + 64(L+1)‖u‖²_{W^(1,∞)}. Where γ or α is no whole number ρ_N must be positive.
    """
    delta, gas = require_probability(delta), Gas(viscosity, gamma, alpha)
    _require_orders(density, 1, 1)
    _require_orders(velocity, 1, 2)
    sample, exact = sup_sample(domain), _Pair(density.target, velocity.target)
    near, true = _Flow.of(network, sample), _Flow.of(exact, sample)
    if gas.needs_positive:
        require_positive(np.concatenate([near.rho, true.rho]))
    coefficient = max(5 * sup(one) ** 2 + 7 * sup(two) ** 2 for one, two in _flow_factors(near, true, gas))
    size_rho, size_u = true.squares()
    big = sum(near.squares()) + size_rho + size_u
    constant = 16 * big**2 + 80 * big + 2 * viscosity + 64 * (big + 1) * size_u
    size = density.target.squared_norm(3, 3) + (2 * viscosity + 1) * velocity.target.squared_norm(3, 4)
    printed = constant * printed_coefficient(velocity, domain, 0, 2) * size if gamma == alpha == 0 else nan

    if losses is None:
        parts = navier_stokes_losses(network, domain, viscosity=viscosity, gamma=gamma, alpha=alpha)
        losses = sum(float(part) for part in parts), navier_stokes(gas).difference(network, exact, domain)
    width = len(network.coefficients) // 2
    both = [density, velocity]
    return _residual_bound(losses, coefficient, both, domain, width * delta, printed, variance, theorem)


def _flow_factors(near: _Flow, true: _Flow, gas: Gas) -> list[tuple[Array | float, Array | float]]:
    """Factors of e_t, e_x, e, f_x, f, f_t, f_xx in the residuals of mass and of momentum."""
    mixed = near.rho * (near.u + true.u)
    mixed_x = near.rho_x * (near.u + true.u) + near.rho * (near.u_x + true.u_x)
    steep = mean_value(near.rho, true.rho, lambda w: gas.pressure(w, 2))
    thick = mean_value(near.rho, true.rho, lambda w: gas.thickness(w, 1))
    thicker = mean_value(near.rho, true.rho, lambda w: gas.thickness(w, 2))
    change = gas.thickness(near.rho, 1)
    zeroth = true.u_t + 2 * true.u * true.u_x + steep * true.rho_x - thick * true.u_xx
    zeroth = zeroth - thicker * true.rho_x * true.u_x
    return [
        (1.0, true.u),
        (true.u, true.u**2 + gas.pressure(near.rho, 1) - change * true.u_x),
        (true.u_x, zeroth),
        (near.rho, mixed - change * near.rho_x),
        (near.rho_x, near.rho_t + mixed_x),
        (0.0, near.rho),
        (0.0, gas.thickness(near.rho, 0)),
    ]


@dataclass(frozen=True)
class _Pair:
    """Two scalar functions as one of two outputs."""

    first: Any
    second: Any

    def derivative(self, points: Array, derivative: Any) -> Array:
        return np.stack([part.derivative(points, derivative) for part in (self.first, self.second)], axis=1)


def _residual_bound(
    losses: tuple[float, float],
    coefficient: float,
    choices: list[Estimator],
    domain: Domain,
    scale: float,
    printed: float,
    variance: float | None,
    theorem: float | None,
) -> ResidualBound:
    if variance is None:
        variance = sum(float(choice.variance(domain)) for choice in choices)
    if theorem is None:
        theorem = sum(theorem_bound(choice, domain).corrected for choice in choices)
    return ResidualBound(
        *losses, coefficient, coefficient * variance / scale, coefficient * theorem / scale, printed / scale
    )


def _require_orders(choice: Estimator, p: int, q: int) -> None:
    enough = choice.time_order >= p and choice.space_order >= q
    got = (choice.time_order, choice.space_order)
    require(enough, "orders of the estimator", got, f"at least ({p}, {q})", "the residual takes those derivatives of u")
