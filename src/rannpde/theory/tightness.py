"""How tight the bounds are, and which width an error requires: measured errors, the exact variance, and the bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from scipy.special import stdtrit

from rannpde.arrays import Array, Rng
from rannpde.domains import Domain
from rannpde.domains.norms import derivative_indices
from rannpde.errors import positive_integer, require
from rannpde.fitting.fit import fit
from rannpde.network.activations import Activation
from rannpde.network.features import RandomFeatures
from rannpde.network.laws import HeavyTailed, WeightLaw
from rannpde.theory.bounds import theorem_bound
from rannpde.theory.corollaries import require_probability
from rannpde.theory.targets import RidgeletTarget
from rannpde.theory.unbiased import Estimator, estimator

ERROR_POINTS = 64
"""Sobol points of the domain at which errors are averaged; each pool has its own, so that their error averages out."""
FIT_POINTS_PER_NEURON = 10
"""M = 10 N, as in the paper's experiments."""


@dataclass(frozen=True)
class RequiredWidth:
    """The least widths for which ‖u - u_N‖ ≤ error · ‖u‖ with probability 1 - δ, by Markov's inequality.

    exact : width by the variance; bound : by the corrected Theorem 1; printed : by the theorem as printed (0 in L²);
    the last two are None for laws other than π
    """

    exact: int
    bound: int | None
    printed: int | None


def required_width(
    target: RidgeletTarget,
    law: WeightLaw,
    error: float,
    delta: float,
    *,
    domain: Domain,
    activation: str | Activation = "tanh",
    time_order: int = 0,
    space_order: int = 0,
    order: int | None = None,
    relative: bool = True,
) -> RequiredWidth:
    """Which width gives that error in H^p_t H^q_x with probability 1 - delta?

    relative : the error is a share of ‖u‖ in the same norm; else it is absolute

    >>> from rannpde.domains import SpaceTime
    >>> from rannpde.theory.targets import GaussianMixture
    >>> domain = SpaceTime(t=(0, 1), x=(-1, 1))
    >>> width = required_width(GaussianMixture.gaussian(2), HeavyTailed(1.0, 1.0), 1e-2, 0.05, domain=domain)
    >>> 1e7 < width.exact < width.bound
    True
    """
    delta = require_probability(delta)
    require(isinstance(error, (int, float)) and error > 0, "error", error, "a number > 0")
    choice = estimator(target, law, activation=activation, time_order=time_order, space_order=space_order, order=order)
    square = (error * (choice.size(domain) if relative else 1.0)) ** 2 * delta
    exact = ceil(float(choice.variance(domain)) / square)
    if not isinstance(law, HeavyTailed):
        return RequiredWidth(exact, None, None)
    bound = theorem_bound(choice, domain)
    finite = bound.corrected < float("inf")
    return RequiredWidth(exact, ceil(bound.corrected / square) if finite else None, ceil(bound.printed / square))


@dataclass(frozen=True)
class Measured:
    """Root-mean-square errors of unbiased networks, one for each width, in H^p_t H^q_x of the domain.

    errors (K,); pools (pools, K), those of each pool alone; scatter (K,), the standard errors of log errors; slope of
    log error against log width with the half-width of its 95 % interval, Student's from the scatter of the pools
    """

    widths: Array
    errors: Array
    pools: Array
    scatter: Array
    slope: float
    halfwidth: float


def measured_errors(
    choice: Estimator, domain: Domain, widths: Sequence[int], *, pools: int = 8, rng: Rng = None
) -> Measured:
    """Errors of networks of all widths from common pools of neurons; a pool holds the widest network 32 times.

    Each pool is cut into disjoint networks of each width, so all widths see the same neurons and the slope is sharp.
    """
    widths_array = np.array([positive_integer("a width", width) for width in widths])
    require(len(widths_array) >= 2, "widths", list(widths), "at least two")
    rng = np.random.default_rng(rng)
    logs = np.log([_pool_errors(choice, domain, widths_array, rng) for _ in range(positive_integer("pools", pools))])
    mean = np.log(np.exp(logs).mean(axis=0))  # of squares
    slopes = 0.5 * np.polyfit(np.log(widths_array), logs.T, 1)[0]
    scatter = 0.5 * logs.std(axis=0, ddof=1) / sqrt(pools)
    slope = 0.5 * float(np.polyfit(np.log(widths_array), mean, 1)[0])
    halfwidth = float(stdtrit(pools - 1, 0.975) * slopes.std(ddof=1)) / sqrt(pools)
    return Measured(widths_array, np.exp(0.5 * mean), np.exp(0.5 * logs), scatter, slope, halfwidth)


def _pool_errors(choice: Estimator, domain: Domain, widths: Array, rng: np.random.Generator) -> Array:
    """Mean squares ‖u - u_N‖² for each width from one pool of 32 times the largest width."""
    points = domain.sample(ERROR_POINTS, rng=rng, method="sobol")
    pool = choice.network(32 * int(widths.max()), rng=rng)
    features, scale = pool.features, pool.coefficients * len(pool.coefficients)
    totals, ridge_order, ridge = np.zeros(len(widths)), -1, np.empty(0)
    for index in sorted(derivative_indices(domain, choice.time_order, choice.space_order), key=sum):
        if sum(index) != ridge_order:
            ridge_order, ridge = sum(index), features.ridge(points, sum(index))
        neurons = ridge * (scale * features.factor(index))
        exact = choice.target.derivative(points, index)
        # nested partial sums would share neurons between networks; disjoint groups do not
        for k, width in enumerate(widths):
            groups = neurons.shape[1] // width
            means = neurons[:, : groups * width].reshape(len(points), groups, width).mean(axis=2)
            totals[k] += domain.measure * np.square(means - exact[:, None]).mean()
    return totals


def fitted_error(
    choice: Estimator,
    domain: Domain,
    width: int,
    *,
    penalty: float = 0.0,
    law: WeightLaw | None = None,
    rng: Rng = None,
) -> float:
    """‖u - u_fit‖ in H^p_t H^q_x for least squares on features of the same law (or another) and width."""
    rng = np.random.default_rng(rng)
    width, dim = positive_integer("width", width), choice.target.dim
    features = RandomFeatures.sample(width=width, dim=dim, law=law or choice.law, activation=choice.activation, rng=rng)
    points = domain.sample(FIT_POINTS_PER_NEURON * width, rng=rng)
    network = fit(features, points, choice.target(points), penalty=penalty)
    check = domain.sample(1024, rng=rng, method="sobol")
    total = 0.0
    for index in derivative_indices(domain, choice.time_order, choice.space_order):
        total += float(np.square(network.derivative(check, index) - choice.target.derivative(check, index)).mean())
    return sqrt(domain.measure * total)
