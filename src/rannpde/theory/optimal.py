"""The weight law of least variance for a given u, and the best decay exponents and order of ψ for π.

By the Cauchy–Schwarz inequality the second moment ∫∫ |R|² N² / π is least for

    π* = |R_ψ u(w, b)| N(w, b) / Z,        N² = Σ_α w^(2α) ‖σ^(|α|)(w·z - b)‖²_{L²(Ω)},        Z = ∫∫ |R| N dw db,

where it equals Z². Every neuron of the unbiased network then has the same norm Z/N in H^p_t H^q_x(Ω). A sum over
finitely many points of Ω can miss the thin ridges of large weights altogether, and the variance would be infinite;
``OptimalLaw`` therefore adds a small floor to N², which is positive everywhere and costs a few percent of optimality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp

import numpy as np
from scipy.optimize import minimize

from rannpde.arrays import Array, MultiIndex, Rng
from rannpde.domains import Domain, Estimate
from rannpde.domains.norms import derivative_indices
from rannpde.errors import positive_integer, require
from rannpde.network.activations import Activation, as_activation
from rannpde.network.laws import HeavyTailed
from rannpde.theory.parameter_space import Proposal, parameter_integral
from rannpde.theory.ridgelet_function import RidgeletFunction, admissible, with_parity
from rannpde.theory.targets import RidgeletTarget
from rannpde.theory.unbiased import (
    Estimator,
    check_activation,
    check_domain,
    estimator,
    squared_factors,
    variance_limit,
)

POINTS = 128
"""Points of the domain behind N(w, b): with the floor below, bias and variance pass tests/theory/test_estimator.py."""
FLOOR = 0.1
"""Share of ‖σ^(j)‖²_∞ w^(2α) / √(1 + radius²|w|²) added to N²: a ridge fills at least about such a share of Ω."""
SEARCH = 2**15
"""Proposals among which the largest ratio is looked for before it is polished: about a second."""
MARGIN = 1.1
"""Factor on the polished largest ratio, for maxima that the search may have missed (docs/theory.md, better laws)."""


@dataclass(frozen=True, eq=False)
class OptimalLaw:
    """A WeightLaw with density |R_ψ u| N / Z (N with its floor), sampled by rejection; build it with ``optimal_law``.

    normaliser : Z with its standard error (relative 1e-3 or less); log_density inherits that relative error
    envelope : log of the bound on |R| N / proposal, by search: above it draws would be too rare
    """

    target: RidgeletTarget
    activation: Activation
    psi: RidgeletFunction
    indices: tuple[MultiIndex, ...] = field(repr=False)
    points: Array = field(repr=False)
    volume: float = field(repr=False)
    proposal: Proposal = field(repr=False)
    normaliser: Estimate = field(repr=False)
    envelope: float = field(repr=False)

    def __repr__(self) -> str:
        return f"OptimalLaw({self.activation.name}, order={self.psi.order}, Z={float(self.normaliser):.4g})"

    @property
    def acceptance(self) -> float:
        """The share of proposals that become draws."""
        return float(self.normaliser) * exp(-self.envelope)

    def sample(self, width: int, dim: int, *, rng: Rng = None) -> tuple[Array, Array]:
        rng, width = np.random.default_rng(rng), positive_integer("width", width)
        require(dim == self.target.dim, "dim", dim, f"{self.target.dim}, the dimension of the target")
        weights, biases, missing = [], [], width
        while missing > 0:
            count = int(missing / self.acceptance * 1.1) + 64
            w, b = self.proposal.place(rng.random((count, self.proposal.columns)))
            ratio = np.exp(self._log_ratio(w, b) - self.envelope)
            accepted = np.flatnonzero(rng.random(count) < ratio)[:missing]
            weights.append(w[:, accepted])
            biases.append(b[accepted])
            missing -= len(accepted)
        return np.concatenate(weights, axis=1), -np.concatenate(biases)

    def log_density(self, weights: Array, biases: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.unnormalised(weights, -biases)) - np.log(float(self.normaliser)))

    def unnormalised(self, weights: Array, biases: Array) -> Array:
        """|R_ψ u| N at the columns, in the paper's sign of b."""
        return np.abs(self.target.ridgelet(self.psi, weights, biases)) * self.feature_norm(weights, biases)

    def feature_norm(self, weights: Array, biases: Array) -> Array:
        """N(w, b), the norm of the neuron in H^p_t H^q_x of the domain: a mean over the law's points plus the floor."""
        total = np.zeros_like(biases)
        phase = self.points @ weights - biases
        thin = FLOOR / np.sqrt(1 + self.proposal.radius**2 * np.square(weights).sum(axis=0))
        for order, factor in squared_factors(weights, list(self.indices)).items():
            mean = np.square(self.activation(phase, order)).mean(axis=0)
            total += factor * (mean + thin * self.activation.sup_norm(order) ** 2)
        return np.sqrt(self.volume * total)

    def variance_limit(self, activation: Activation, dim: int, p: int, q: int) -> float:
        """The limit on the order: ∫∫ |R| N'²/N, N' the norm asked for, is |w|^(-k + 2(p+q) - own) over R^n."""
        return dim + 2 * (p + q) - max(sum(index) for index in self.indices)

    def _log_ratio(self, weights: Array, biases: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.unnormalised(weights, biases)) - self.proposal.log_density(weights, biases)


def optimal_law(
    target: RidgeletTarget,
    domain: Domain,
    *,
    activation: str | Activation = "tanh",
    time_order: int = 0,
    space_order: int = 0,
    order: int | None = None,
    rng: Rng = 0,
) -> OptimalLaw:
    """The law of least variance for u in H^p_t H^q_x of the domain; rng scrambles the quadrature behind Z.

    >>> from rannpde.domains import SpaceTime
    >>> from rannpde.theory.targets import GaussianMixture
    >>> law = optimal_law(GaussianMixture.gaussian(2), SpaceTime(t=(0, 1), x=(-1, 1)), activation="cos")
    >>> weights, biases = law.sample(width=5, dim=2, rng=0)
    >>> weights.shape, bool(np.isfinite(law.log_density(weights, biases)).all())
    ((2, 5), True)
    """
    activation = as_activation(activation)
    check_activation(activation, time_order + space_order)
    check_domain(target, domain)
    # |R| N is at most |w|^(-k-1+p+q) on |b| ≲ |w|: integrable over R^n × R for k > n + p + q
    limit = target.dim + time_order + space_order
    least = with_parity(activation, max(limit + 1, target.dim + activation.fourier.pole))
    order = least if order is None else positive_integer("order", order)
    remedy = f"∫∫ |R| N may be infinite for orders ≤ n + p + q = {limit}"
    require(order >= least, "order", order, f"at least {least}", remedy)
    psi = admissible(activation, target.dim, order)
    indices = tuple(derivative_indices(domain, time_order, space_order))
    points = domain.sample(POINTS, rng=0, method="sobol")
    proposal = Proposal.matching(target, psi, min(float(order - limit), 20.0))
    bare = OptimalLaw(
        target, activation, psi, indices, points, domain.measure, proposal, Estimate(1.0, 0.0, 0, ""), 0.0
    )
    normaliser = parameter_integral(bare.unnormalised, proposal, tolerance=2e-4, budget=2**18, rng=rng)
    return OptimalLaw(
        target, activation, psi, indices, points, domain.measure, proposal, normaliser, _log_envelope(bare, rng)
    )


def _log_envelope(law: OptimalLaw, rng: Rng) -> float:
    """log of MARGIN times the largest |R| N / proposal: the best of many proposals, polished by local search."""
    unit = np.random.default_rng(rng).random((SEARCH, law.proposal.columns))
    weights, biases = law.proposal.place(unit)
    ratio = law._log_ratio(weights, biases)
    best = np.argsort(ratio)[-4:]

    def descent(parameters: Array) -> float:
        return -float(law._log_ratio(parameters[:-1, None], parameters[-1:])[0])

    starts = [np.append(weights[:, i], biases[i]) for i in best]
    peaks = [-minimize(descent, start, method="Nelder-Mead", options={"maxiter": 400}).fun for start in starts]
    return float(max(*peaks, ratio.max()) + np.log(MARGIN))


# ------------------------------------------------------------------------------- the best exponents and order for π


def best_estimator(choice: Estimator, domain: Domain) -> Estimator:
    """The same function, activation and norm under the law of least variance."""
    orders = {"time_order": choice.time_order, "space_order": choice.space_order}
    law = optimal_law(choice.target, domain, activation=choice.activation, **orders)
    return estimator(choice.target, law, activation=choice.activation, **orders)


@dataclass(frozen=True)
class BestDecay:
    """The best π for one order of ψ: its exponents and the variance that they give."""

    order: int
    law: HeavyTailed
    variance: float


def best_decay(
    target: RidgeletTarget,
    domain: Domain,
    *,
    activation: str | Activation = "tanh",
    time_order: int = 0,
    space_order: int = 0,
    orders: int = 4,
) -> list[BestDecay]:
    """The exponents λ_τ, λ_a of π that minimise the variance, for each of the least ``orders`` orders of ψ.

    One fixed set of random points serves all exponents, so that the variance is a smooth function of them.
    """
    d = target.dim - 1
    base = HeavyTailed(0.5 + 1e-3, 0.5 * d + 1e-3)
    first = estimator(target, base, activation=activation, time_order=time_order, space_order=space_order)
    choices = [first.psi.order + 2 * step for step in range(positive_integer("orders", orders))]
    return [_best_for_order(first, domain, order) for order in choices]


def _best_for_order(first: Estimator, domain: Domain, order: int) -> BestDecay:
    target, d = first.target, first.target.dim - 1
    psi = admissible(first.activation, target.dim, order)
    slack = order - variance_limit(first.activation, first.law, target.dim, first.time_order, first.space_order)
    proposal = Proposal.matching(target, psi, min(max(slack, 0.5), 6.0))
    weights, biases = proposal.place(np.random.default_rng(0).random((2**15, proposal.columns)))
    points = domain.sample(len(biases), rng=1)
    moment = target.ridgelet(psi, weights, biases) ** 2 * first.feature_square(domain, weights, biases, points)
    moment *= domain.measure * np.exp(-proposal.log_density(weights, biases)) / len(biases)

    def law(excess: Array) -> HeavyTailed:
        return HeavyTailed(0.5 + exp(excess[0]), 0.5 * d + exp(excess[1]))

    def second_moment(excess: Array) -> float:
        candidate = law(excess)
        if float(np.exp(excess).sum()) >= slack - 0.05:
            return float("inf")
        return float(moment @ np.exp(-candidate.log_density(weights, -biases)))

    start = np.log(np.array([0.3, 0.3]) * min(slack, 1.5))
    best = law(minimize(second_moment, start, method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-6}).x)
    choice = Estimator(target, best, first.activation, psi, first.time_order, first.space_order)
    return BestDecay(order, best, float(choice.variance(domain, budget=2**17)))
