"""Identification through a family: samples of the parameters given measurements, with noise of any law."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rannpde.arrays import Array, Rng
from rannpde.errors import (
    InputError,
    choose,
    finite_array,
    is_real,
    positive_integer,
    probability,
    random_generator,
    require,
)
from rannpde.pde.family.estimate import judged_values
from rannpde.pde.family.polynomial import ParameterPolynomial
from rannpde.pde.family.quadrature import is_frozen
from rannpde.pde.family.sampler import Chain, sample_density
from rannpde.pde.solution import Report
from rannpde.pde.tolerance import CONFIDENCE, MUCH_SMALLER, NEARBY
from rannpde.rounding import ROOT_ROUNDED

WALKERS = 32
"""Walkers at least; two for each parameter are the least that the sampler allows, and many mix better."""
LEAST_BURN = 300
"""Steps that are forgotten at least; otherwise the first half of a chain (Gelman et al., Bayesian Data Analysis, 11.4).
"""
LEAST_EFFECTIVE = 400
"""Independent samples below which quantiles at 2.5 % have fewer than ten samples beyond them: not called converged."""
SCAN = 4096
"""Values among which the walkers find their starting points."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """Samples of the parameters given the measurements.

    samples : parameter → (K,); converged : whether the chain is long enough, in its own autocorrelation times
    model_error : largest error of the family's predictions, which should be far below the noise
    """

    samples: Mapping[str, Array]
    chain: Chain
    converged: bool
    model_error: float

    @property
    def mean(self) -> dict[str, float]:
        """Parameter → posterior mean."""
        return {name: float(values.mean()) for name, values in self.samples.items()}

    @property
    def std(self) -> dict[str, float]:
        """Parameter → posterior standard deviation."""
        return {name: float(values.std(ddof=1)) for name, values in self.samples.items()}

    def interval(self, name: str, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """The central credible interval of a parameter."""
        confidence = probability("confidence", confidence)
        values = choose("the parameter", name, self.samples)
        lower, upper = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
        return float(lower), float(upper)

    def report(self) -> Report:
        """Mean, deviation and 95 % interval of every parameter, and how well the chain mixed."""
        lines = ["converged" if self.converged else "NOT CONVERGED: take more samples"]
        for name, mean in self.mean.items():
            lower, upper = self.interval(name)
            lines.append(f"  {name} = {mean:.6g} ± {self.std[name]:.2g}, 95 % in [{lower:.6g}, {upper:.6g}]")
        lines.append(f"  worth {self.chain.effective:.0f} independent samples, {self.chain.acceptance:.0%} accepted")
        return Report("\n".join(lines))


def sample_posterior(
    polynomial: ParameterPolynomial, measured: Any, noise: Any, prior: Mapping[str, Any], count: int, rng: Rng
) -> Posterior:
    """Samples of the density prior × likelihood of the measurements, by the affine-invariant sampler."""
    shape = polynomial.values.shape[1:]
    values = finite_array("measured", measured, tuple(range(len(shape) + 2))).ravel()
    size = int(np.prod(shape))
    require(len(values) == size, "measured with size", len(values), f"{size}, as many as are predicted")
    positive_integer("samples", count)
    require(isinstance(prior, Mapping), "prior", prior, "a mapping of parameters to distributions of scipy.stats")
    for name, law in prior.items():
        one = choose("the parameter", name, polynomial.ranges)
        remedy = f"e.g. stats.uniform({one.lower:g}, {one.upper - one.lower:g}); a narrow one nearly fixes it"
        frozen = is_frozen(law, ("logpdf",))
        require(frozen, f"prior[{name!r}]", law, "a continuous frozen distribution of scipy.stats", remedy)
    likelihood = log_likelihood(noise, size)
    flat = polynomial.values.reshape(len(polynomial.values), -1)

    def log_density(reduced: Array) -> Array:
        inside = np.all(np.abs(reduced) <= 1, axis=1)
        logs = np.full(len(reduced), -np.inf)
        if inside.any():
            rows = reduced[inside]
            logs[inside] = likelihood(values - polynomial.grid.weights(rows) @ flat) + _log_prior(rows)
        return np.where(np.isnan(logs), -np.inf, logs)

    def _log_prior(rows: Array) -> Array:
        total = np.zeros(len(rows))
        for k, (name, one) in enumerate(polynomial.ranges.items()):
            if name in prior:  # a density of the parameter, turned into one of its reduced coordinate
                value = one.value(rows[:, k])
                total += prior[name].logpdf(value) - np.log(one.slope(value))
        return total

    generator = random_generator("rng", rng)
    dim = len(polynomial.ranges)
    walkers = max(WALKERS, 4 * dim)
    steps = -(-count // walkers) * 4
    starts = _starts(log_density, dim, walkers, generator)
    chain = sample_density(log_density, starts, steps, max(steps, LEAST_BURN), generator)
    flat_chain = chain.samples.reshape(-1, dim)
    picked = np.linspace(0, len(flat_chain) - 1, count).round().astype(int)
    samples = {name: one.value(flat_chain[picked, k]) for k, (name, one) in enumerate(polynomial.ranges.items())}
    converged = chain.effective >= LEAST_EFFECTIVE and chain.acceptance > MUCH_SMALLER
    return Posterior(samples, chain, converged, polynomial.error)


def log_likelihood(noise: Any, size: int) -> Callable[[Array], Array]:
    """The log-likelihood (K,) of differences measured - predicted (K, M)."""
    if is_real(noise) or isinstance(noise, (list, tuple, np.ndarray)):
        sigma = finite_array("noise", np.atleast_1d(noise), 1)
        require(bool((sigma > 0).all()) and len(sigma) in (1, size), "noise", noise, f"> 0, one or {size} of them")
        return lambda differences: -0.5 * np.sum(np.square(differences / sigma), axis=1)
    if is_frozen(noise, ("logpdf",)):
        return lambda differences: np.sum(noise.logpdf(differences), axis=1)
    expected = (
        "a standard deviation, a frozen distribution of scipy.stats, such as stats.laplace(0, 0.1), or a function"
    )
    require(callable(noise) and not hasattr(noise, "freeze"), "noise", noise, expected)

    def stated(differences: Array) -> Array:
        logs = np.asarray(noise(differences))
        numbers = logs.shape == (len(differences),) and logs.dtype.kind in "fiu"
        remedy = "sum over the measurements: np.sum(…, axis=1)"
        require(numbers, "noise(differences) with shape", logs.shape, f"numbers ({len(differences)},)", remedy)
        return logs.astype(float)

    return stated


def _starts(log_density: Callable[[Array], Array], dim: int, walkers: int, rng: np.random.Generator) -> Array:
    """Walkers around the best of values that fill the range, and around what is better near these.

    Resampling by weight, and shrinking clouds, find a density that is far narrower than the range.
    """
    cloud = judged_values(dim, SCAN)
    width = 1.0
    for _ in range(12):
        logs = log_density(cloud)
        if not np.isfinite(logs).any():
            raise InputError(
                "no value of the parameters within their ranges has a positive density; is a prior outside of its "
                "range, or is noise(differences) not a number?"
            )
        best = cloud[np.argsort(-logs)[: 4 * walkers]]
        weights = np.exp(np.sort(logs)[::-1][: 4 * walkers] - logs.max())
        effective = float(weights.sum() ** 2 / np.square(weights).sum()) if np.isfinite(weights).all() else 0.0
        if effective >= walkers:
            return np.asarray(best[rng.choice(len(best), walkers, p=weights / weights.sum())]
                              + NEARBY * width * rng.normal(size=(walkers, dim))).clip(-1, 1)  # fmt: skip
        width /= 4
        centres = best[: max(2 * dim, 4)]
        cloud = (centres[rng.integers(len(centres), size=SCAN)] + width * rng.normal(size=(SCAN, dim))).clip(-1, 1)
    return np.asarray(best[:walkers] + ROOT_ROUNDED * rng.normal(size=(walkers, dim))).clip(-1, 1)
