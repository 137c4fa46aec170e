"""The corollaries for the porous medium and the Navier–Stokes equations: residual losses and their bounds.

Both corollaries bound ∫ |𝓝(u_N) - 𝓝(u)|² by a coefficient made of sup-norms of u and u_N times ‖u_N - u‖² in one
Sobolev norm, and that norm by Markov's inequality with probability 1 - δ. The corrected form names the one norm that
contains every derivative needed (H^1_t H^2_x), so that one event of probability 1 - δ is enough, squares L, and keeps
the factors.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, lgamma, log, pi
from typing import Any

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.domains import Domain, Estimate, SpaceTime, integrate
from rannpde.domains.norms import evaluate
from rannpde.domains.quadrature.integrals import Options
from rannpde.errors import positive_integer, require
from rannpde.network.features import RandomFeatures
from rannpde.network.network import Network
from rannpde.pde.residual import jets_of
from rannpde.pde.statement.expression import Expression
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.zoo.navier_stokes_eulerian import equations
from rannpde.pde.zoo.porous_medium import EQUATION
from rannpde.theory.bounds import printed_coefficient, theorem_bound
from rannpde.theory.unbiased import Estimator

ACCURACY: Options = {"tolerance": 1e-3, "budget": 2**12, "rng": 0}
"""Three digits of a loss are enough beside bounds that are orders of magnitude above it."""
SUP_POINTS = 2**13
"""Sobol points at which sup-norms over the domain are taken: largest values found, not proven bounds."""


@dataclass(frozen=True)
class ResidualBound:
    """The second part of a corollary for one network.

    loss : J_PDE(u_N), the residual loss of the network
    difference : ∫ |𝓝(u_N) - 𝓝(u)|², which is the loss where u solves the equation; this is what the proofs bound
    coefficient : the corrected factor of ‖u_N - u‖²
    from_variance, corrected, printed : bounds that hold with probability 1 - δ (the printed one: are said to hold),
        by the exact variance, by the corrected Theorem 1, and as in the paper
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


# ---------------------------------------------------------------------------------------------------------- losses


def porous_medium_loss(function: Any, domain: SpaceTime, *, exponent: int = 2) -> Estimate:
    """J_PDE(u) = ∫ |∂_t u - Δ(u^m)|² over the domain, m = exponent, for a network or anything with derivatives."""
    equation = _porous_medium(domain.dim, exponent)
    return integrate(lambda z: equation.residuals(function, z)[:, 0] ** 2, domain, **ACCURACY)


def navier_stokes_losses(function: Any, domain: SpaceTime, *, viscosity: float = 1.0) -> tuple[Estimate, Estimate]:
    """J¹ = ∫ |∂_t ρ + ∂_x(ρu)|² and J² = ∫ |∂_t(ρu) + ∂_x(ρu²) - μ ∂_xx u|², d = 1; the function has outputs (ρ, u)."""
    require(domain.dim == 2, "dimension of the domain", domain.dim, "2: (t, x)")
    both = _navier_stokes(viscosity)
    first = integrate(lambda z: both.residuals(function, z)[:, 0] ** 2, domain, **ACCURACY)
    return first, integrate(lambda z: both.residuals(function, z)[:, 1] ** 2, domain, **ACCURACY)


@dataclass(frozen=True)
class _Equations:
    """Equations of the zoo, whose residuals are taken of any functions with derivatives."""

    expressions: tuple[Expression, ...]
    vocabulary: Vocabulary

    def residuals(self, function: Any, points: Array) -> Array:
        """(M, equations)."""
        words, state = self.vocabulary, _Columns(function)
        known = dict(zip(words.symbols, points.T, strict=True))
        found = [e.value(known, jets_of(state, words.fields, points, e.jets)) for e in self.expressions]
        return np.stack([np.broadcast_to(values, len(points)) for values in found], axis=1)

    def difference(self, function: Any, other: Any, domain: SpaceTime) -> float:
        """∫ |residuals of one - residuals of the other|², summed over the equations."""

        def gap(points: Array) -> Array:
            return np.asarray(np.square(self.residuals(function, points) - self.residuals(other, points)).sum(axis=1))

        return float(integrate(gap, domain, **ACCURACY))


@dataclass(frozen=True)
class _Columns:
    """A function, whatever the shape of its values, as the columns that residuals want."""

    function: Any

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        return evaluate(self.function, points, derivative)


def _porous_medium(dim: int, exponent: int) -> _Equations:
    names = ("t", *(f"x{i}" for i in range(1, dim)))
    words = Vocabulary(names, "t", ("u",), {"m": positive_integer("exponent", exponent)})
    return _Equations((read(EQUATION, words),), words)


def _navier_stokes(viscosity: float) -> _Equations:
    words = Vocabulary(("t", "x"), "t", ("rho", "u"), {"mu": viscosity})
    return _Equations(tuple(read(text, words) for text in equations().values()), words)


@dataclass(frozen=True)
class _Jet:
    """u, ∂_t u, ∇u (d, M), Δu at points."""

    value: Array
    time: Array
    gradient: Array
    laplacian: Array

    @classmethod
    def of(cls, function: Any, points: Array) -> _Jet:
        n = points.shape[1]
        unit = np.eye(n, dtype=int)

        def at(index: Array) -> Array:
            return evaluate(function, points, tuple(int(k) for k in index))[:, 0]

        gradient = np.array([at(unit[axis]) for axis in range(1, n)])
        laplacian = sum((at(2 * unit[axis]) for axis in range(1, n)), np.zeros(len(points)))
        return cls(at(0 * unit[0]), at(unit[0]), gradient, laplacian)

    @property
    def gradient_square(self) -> Array:
        return np.asarray(np.square(self.gradient).sum(axis=0))


# ------------------------------------------------------------------------------------------------- porous medium


def porous_medium_corollary(
    choice: Estimator, network: Network, domain: SpaceTime, delta: float, *, exponent: int = 2
) -> ResidualBound:
    """Corollary for the porous medium equation, part 2, for a network of ``choice`` (built with p ≥ 1 and q ≥ 2).

    With e = u_N - u and u_N^m - u^m = e S, S = Σ_j u_N^j u^(m-1-j): ∫ |𝓝(u_N) - 𝓝(u)|² ≤ c ‖e‖²_{H^1_t H^2_x},
    c = max(2, 6d‖S‖²_∞, 24‖∇S‖²_∞, 6‖ΔS‖²_∞). Printed: C_m (L + C_emb‖u‖²_{L^∞ H^(2+k)}) 𝓜_ψ/(Nδ) ‖u‖²_{H² H^(3+k)}
    with L unsquared, C_m = 12 (the proof's value for m = 2) and k = d/2 + 1/2.
    """
    delta = require_probability(delta)
    _require_orders(choice, 1, 2)
    sample = domain.sample(SUP_POINTS, rng=0, method="sobol")
    approximate, exact = _Jet.of(network, sample), _Jet.of(choice.target, sample)
    d = domain.dim - 1
    s, grad, lap = _power_quotient(approximate, exact, positive_integer("exponent", exponent))
    coefficient = max(2.0, 6 * d * _sup(s) ** 2, 24 * _sup(np.linalg.norm(grad, axis=0)) ** 2, 6 * _sup(lap) ** 2)
    largest = _sup(approximate.value) + _sup(np.sqrt(approximate.gradient_square)) + _sup(approximate.laplacian)
    k = 0.5 * d + 0.5
    in_time = 0.5 * choice.target.squared_norm(1, 2 + k)  # ‖u‖²_{L^∞_t} ≤ ½ ‖u‖²_{H^1_t}
    printed = 12 * (largest + embedding_constant(k, d) * in_time) * choice.target.squared_norm(2, 3 + k)
    printed *= printed_coefficient(choice, domain, 0, 2)

    difference = _porous_medium(domain.dim, exponent).difference(network, choice.target, domain)
    loss = float(porous_medium_loss(network, domain, exponent=exponent))
    width = len(network.coefficients)
    return _residual_bound(loss, difference, coefficient, [choice], domain, width * delta, printed)


def embedding_constant(order: float, d: int) -> float:
    """C_emb of H^order(R^d) → L^∞, order > d/2: ((2π)^(-d) ∫ (1+|ξ|²)^(-order) dξ)^(1/2)."""
    require(order > 0.5 * d, "order", order, f"> d/2 = {0.5 * d:g}")
    return exp(0.5 * (-0.5 * d * log(4 * pi) + lgamma(order - 0.5 * d) - lgamma(order)))


def _power_quotient(v: _Jet, u: _Jet, m: int) -> tuple[Array, Array, Array]:
    """S = Σ_{j<m} v^j u^(m-1-j), ∇S and ΔS by the chain rule."""

    def partial(i: int, j: int) -> Array:
        """∂_v^i ∂_u^j S."""
        total = np.zeros_like(v.value)
        for a in range(i, m - j):
            b = m - 1 - a
            factor = np.prod(np.arange(a - i + 1, a + 1)) * np.prod(np.arange(b - j + 1, b + 1))
            total += factor * v.value ** (a - i) * u.value ** (b - j)
        return total

    gradient = partial(1, 0) * v.gradient + partial(0, 1) * u.gradient
    laplacian = partial(1, 0) * v.laplacian + partial(0, 1) * u.laplacian
    laplacian = laplacian + partial(2, 0) * v.gradient_square + partial(0, 2) * u.gradient_square
    return partial(0, 0), gradient, laplacian + 2 * partial(1, 1) * (v.gradient * u.gradient).sum(axis=0)


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


def navier_stokes_corollary(
    density: Estimator,
    velocity: Estimator,
    network: Network,
    domain: SpaceTime,
    delta: float,
    *,
    viscosity: float = 1.0,
) -> ResidualBound:
    """Corollary for Navier–Stokes, part 2, for ``paired_network`` of both choices (p ≥ 1; q ≥ 1 and q ≥ 2).

    With e = ρ_N - ρ, f = u_N - u and A = ρ_N (u_N + u) the residuals differ by e_t + u e_x + u_x e + ρ_N f_x + ρ_N,x f
    and u e_t + (u_t + 2uu_x) e + u² e_x + ρ_N f_t + (ρ_N,t + A_x) f + A f_x - μ f_xx, so
    J¹ + J² ≤ c (‖e‖²_{H^1 H^1} + ‖f‖²_{H^1 H^2}) with c the largest sum of 5 and 7 times the squared factors.
    Printed: C_L = 16L² + 80L + 2μ + 64(L+1)‖u‖²_{W^(1,∞)}.
    """
    delta = require_probability(delta)
    _require_orders(density, 1, 1)
    _require_orders(velocity, 1, 2)
    sample = domain.sample(SUP_POINTS, rng=0, method="sobol")
    (rn, un), (rnt, unt), (rnx, unx) = (evaluate(network, sample, i).T for i in ((0, 0), (1, 0), (0, 1)))
    (r, rt, rx), (u, ut, ux) = (
        [evaluate(choice.target, sample, i)[:, 0] for i in ((0, 0), (1, 0), (0, 1))] for choice in (density, velocity)
    )
    mixed = rn * (un + u)
    mixed_x = rnx * (un + u) + rn * (unx + ux)
    pairs = [(1.0, u), (u, u**2), (ux, ut + 2 * u * ux), (rn, mixed), (rnx, rnt + mixed_x), (0.0, rn), (0.0, viscosity)]
    coefficient = max(5 * _sup(one) ** 2 + 7 * _sup(two) ** 2 for one, two in pairs)
    velocity_norm = (_sup(u) + _sup(ut) + _sup(ux)) ** 2
    norms = [(rn, rnt, rnx), (un, unt, unx), (r, rt, rx)]
    big = velocity_norm + sum((_sup(a) + _sup(b) + _sup(c)) ** 2 for a, b, c in norms)
    constant = 16 * big**2 + 80 * big + 2 * viscosity + 64 * (big + 1) * velocity_norm
    size = density.target.squared_norm(3, 3) + (2 * viscosity + 1) * velocity.target.squared_norm(3, 4)
    printed = constant * printed_coefficient(velocity, domain, 0, 2) * size
    exact = _Pair(density.target, velocity.target)

    loss = sum(float(part) for part in navier_stokes_losses(network, domain, viscosity=viscosity))
    difference = _navier_stokes(viscosity).difference(network, exact, domain)
    width = len(network.coefficients) // 2
    return _residual_bound(loss, difference, coefficient, [density, velocity], domain, width * delta, printed)


@dataclass(frozen=True)
class _Pair:
    """Two scalar functions as one of two outputs."""

    first: Any
    second: Any

    def derivative(self, points: Array, derivative: Any) -> Array:
        return np.stack([part.derivative(points, derivative) for part in (self.first, self.second)], axis=1)


def _residual_bound(
    loss: float,
    difference: float,
    coefficient: float,
    choices: list[Estimator],
    domain: Domain,
    scale: float,
    printed: float,
) -> ResidualBound:
    variance = sum(float(choice.variance(domain)) for choice in choices)
    corrected = sum(theorem_bound(choice, domain).corrected for choice in choices)
    return ResidualBound(
        loss, difference, coefficient, coefficient * variance / scale, coefficient * corrected / scale, printed / scale
    )


def _require_orders(choice: Estimator, p: int, q: int) -> None:
    enough = choice.time_order >= p and choice.space_order >= q
    got = (choice.time_order, choice.space_order)
    require(enough, "orders of the estimator", got, f"at least ({p}, {q})", "the residual takes those derivatives of u")


def _sup(values: Array | float) -> float:
    return float(np.abs(values).max())
