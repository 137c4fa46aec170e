"""Sums over fresh paths: value, error in time and gradient, with standard errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.paths.forward import PathSums


def pairs(values: Array) -> Array:
    """Means (M/2, …) of antithetic pairs, which are independent of each other."""
    half = len(values) // 2
    return 0.5 * (values[:half] + values[half:])


@dataclass(frozen=True)
class SampleMoments:
    """Number, sum and sum of squared deviations of independent numbers (or vectors); adding two joins the samples."""

    count: int
    mean: Array
    spread: Array

    @classmethod
    def of(cls, values: Array) -> SampleMoments:
        mean = values.mean(axis=0)
        return cls(len(values), mean, ((values - mean) ** 2).sum(axis=0))

    def __add__(self, other: SampleMoments) -> SampleMoments:
        count = self.count + other.count
        change = other.mean - self.mean
        mean = self.mean + change * (other.count / count)
        return SampleMoments(count, mean, self.spread + other.spread + change**2 * (self.count * other.count / count))

    @property
    def deviation(self) -> Array:
        return np.sqrt(self.spread / max(self.count - 1, 1))

    @property
    def error(self) -> Array:
        """Standard error of the mean."""
        return self.deviation / np.sqrt(self.count)


@dataclass(frozen=True)
class PathSample:
    """Statistics of new paths of one model: moments over antithetic pairs.

    in_time, before : moments of what a step of twice the length changes in the value, and of what doubling it once more
        does
    gradient, gradient_in_time : moments of the score of the first step (d,), before it is turned into a gradient, and
        of what a step of twice the length changes in it
    residual : variance of Σ W ρ of single paths; mean_square : mean square of u along the paths
    """

    value: SampleMoments
    in_time: SampleMoments
    before: SampleMoments
    gradient: SampleMoments
    gradient_in_time: SampleMoments
    residual: float
    mean_square: float

    @classmethod
    def of(cls, sums: PathSums) -> PathSample:
        parts = (sums.value, sums.in_time, sums.before, sums.score, sums.score_in_time)
        value, in_time, before, score, score_in_time = (SampleMoments.of(pairs(one)) for one in parts)
        return cls(value, in_time, before, score, score_in_time, float(sums.residual.var()), sums.mean_square)

    def time_error(self, errors: float) -> float:
        """The error in time that is left, from the changes D of the last doubling of the step and D' of the one before.

        A geometric series of the ratio q = D/D' leaves D q/(1 - q): a third of D for a rule of order two, at least
        that, and D itself where the changes do not fall by half. What may be noise of D counts as a third of itself,
        and ``errors`` standard errors of D are added likewise.
        """
        change, before, noise = (abs(float(one)) for one in (self.in_time.mean, self.before.mean, self.in_time.error))
        share = min(max(change / (before - change), 1 / 3), 1.0) if change < before else 1.0
        certain = max(change - noise, 0.0)
        return max(share * certain + (change - certain + errors * noise) / 3, 0.0)

    def __add__(self, other: PathSample) -> PathSample:
        mine, theirs = self.value.count, other.value.count
        share = mine / (mine + theirs)
        return PathSample(
            self.value + other.value, self.in_time + other.in_time, self.before + other.before,
            self.gradient + other.gradient, self.gradient_in_time + other.gradient_in_time,
            share * self.residual + (1 - share) * other.residual,
            share * self.mean_square + (1 - share) * other.mean_square,
        )  # fmt: skip
