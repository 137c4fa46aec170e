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
    """What fresh paths of one model said: moments over antithetic pairs.

    gradient, gradient_in_time : of the score of the first step (d,), before it is turned into a gradient, and of what a
        step of twice the length changes in it
    residual : variance of Σ W ρ of single paths; mean_square : of u along the paths
    """

    value: SampleMoments
    in_time: SampleMoments
    gradient: SampleMoments
    gradient_in_time: SampleMoments
    residual: float
    mean_square: float

    @classmethod
    def of(cls, sums: PathSums) -> PathSample:
        value, in_time, score, score_in_time = (
            SampleMoments.of(pairs(one)) for one in (sums.value, sums.in_time, sums.score, sums.score_in_time)
        )
        return cls(value, in_time, score, score_in_time, float(sums.residual.var()), sums.mean_square)

    def __add__(self, other: PathSample) -> PathSample:
        mine, theirs = self.value.count, other.value.count
        share = mine / (mine + theirs)
        return PathSample(
            self.value + other.value, self.in_time + other.in_time, self.gradient + other.gradient,
            self.gradient_in_time + other.gradient_in_time, share * self.residual + (1 - share) * other.residual,
            share * self.mean_square + (1 - share) * other.mean_square,
        )  # fmt: skip
