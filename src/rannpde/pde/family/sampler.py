"""An affine-invariant ensemble sampler of a density known up to a factor (Goodman and Weare, 2010).

Walkers move along lines through each other: a density that is stretched or sheared is sampled as well as a round one,
without a step size to tune.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError

STRETCH = 2.0
"""The scale a of the stretch move, with density 1/√z on [1/a, a], as its authors recommend."""


@dataclass(frozen=True, eq=False)
class Chain:
    """samples : (steps, walkers, d); acceptance : share of accepted moves; autocorrelation : times (d,) in steps."""

    samples: Array
    acceptance: float
    autocorrelation: Array

    @property
    def effective(self) -> float:
        """The effective sample size: independent samples with the same standard error."""
        steps, walkers, _ = self.samples.shape
        return float(steps * walkers / max(float(self.autocorrelation.max()), 1.0))


def sample_density(
    log_density: Callable[[Array], Array], start: Array, steps: int, burn: int, rng: np.random.Generator
) -> Chain:
    """Walk from starting points (walkers, d), an even number of them, for burn + steps steps.

    log_density : function of points (k, d) with values (k,), -inf where the density is zero
    """
    walkers, dim = start.shape
    if walkers % 2 or walkers < 2 * dim:
        raise InputError(f"the sampler has {walkers} walkers, but needs an even number ≥ {2 * dim}")
    positions, logs = start.copy(), log_density(start)
    samples = np.empty((steps, walkers, dim))
    half, accepted = walkers // 2, 0
    for step in range(burn + steps):
        for first in (0, 1):
            moved = slice(first * half, (first + 1) * half)
            other = positions[(1 - first) * half : (2 - first) * half]
            partner = other[rng.integers(half, size=half)]
            stretch = ((STRETCH - 1) * rng.uniform(size=half) + 1) ** 2 / STRETCH
            proposed = partner + stretch[:, None] * (positions[moved] - partner)
            proposed_logs = log_density(proposed)
            with np.errstate(invalid="ignore"):
                better = np.log(rng.uniform(size=half)) < (dim - 1) * np.log(stretch) + proposed_logs - logs[moved]
            positions[moved] = np.where(better[:, None], proposed, positions[moved])
            logs[moved] = np.where(better, proposed_logs, logs[moved])
            accepted += int(better.sum()) if step >= burn else 0
        if step >= burn:
            samples[step - burn] = positions
    return Chain(samples, accepted / max(steps * walkers, 1), _autocorrelation_times(samples))


def _autocorrelation_times(samples: Array) -> Array:
    """Integrated autocorrelation time of each coordinate, in steps, from the mean over walkers of autocovariances.

    Sums of two neighbouring autocovariances are positive and decrease for reversible chains: the sum ends where they
    are not positive any more, and the rest is noise (the initial positive sequence of Geyer, Statist. Sci. 7, 1992).
    """
    steps, _, dim = samples.shape
    times = np.ones(dim)
    for k in range(dim):
        centred = samples[:, :, k] - samples[:, :, k].mean()
        spectrum = np.fft.rfft(centred, n=2 * steps, axis=0)
        covariance = np.fft.irfft(np.abs(spectrum) ** 2, axis=0)[:steps].mean(axis=1)
        if covariance[0] <= 0:
            continue
        neighbours = covariance[: steps // 2 * 2].reshape(-1, 2).sum(axis=1) / covariance[0]
        positive = np.cumprod(neighbours > 0).astype(bool)
        times[k] = max(2 * float(neighbours[positive].sum()) - 1, 1.0)
    return times
