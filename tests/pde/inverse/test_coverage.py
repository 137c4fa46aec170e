"""Intervals hold the truth as often as they say: repeated fits of an equation whose exact solution is known."""

import numpy as np
import pytest
from scipy.stats import binom, chi2

import rannpde as rp
from draws import draws

DRAWS, NOISE, TIMES = draws(14, 40), 0.02, np.linspace(0.1, 2.0, 20)
TRUTH = {"k": 1.3, "b": 0.5}
FALSE_ALARM = 1e-3
"""Probability that one of the limits below fails by bad luck, were the seeds drawn anew."""


def problem(seed: int, noise: float | None = NOISE) -> rp.Problem:
    """u' = -k u + b from 1, whose solution is b/k + (1 - b/k) exp(-kt), with noise drawn anew."""
    k, b = TRUTH.values()
    exact = b / k + (1 - b / k) * np.exp(-k * TIMES)
    values = exact + NOISE * np.random.default_rng([seed, 3]).standard_normal(len(TIMES))
    conditions = {"start": rp.On("t=0", "u = 1"), "sensors": rp.Data(TIMES[:, None], values, "u", noise=noise)}
    unknown = {"k": rp.Unknown(guess=1.0), "b": rp.Unknown(guess=0.2)}
    return rp.Problem("u_t = -k*u + b", rp.Interval(0, 2, name="t"), conditions, unknown=unknown)


def slopes() -> np.ndarray:
    """The derivatives of the exact solution by k and b at the times (20, 2), by hand."""
    k, b = TRUTH.values()
    decayed = np.exp(-k * TIMES)
    by_k = -b / k**2 * (1 - decayed) - (1 - b / k) * TIMES * decayed
    return np.column_stack([by_k, (1 - decayed) / k])


@pytest.fixture(scope="module")
def fits() -> list[rp.Solution]:
    return [rp.solve(problem(seed), tol=1e-4) for seed in range(DRAWS)]


@pytest.mark.parametrize("name", TRUTH)
def test_intervals_hold_the_truth_as_often_as_they_say(fits, name):
    held = sum(one.parameters[name].interval[0] <= TRUTH[name] <= one.parameters[name].interval[1] for one in fits)
    # 40 draws cannot tell 95 from 100 %; too narrow intervals, by a factor of 1.6 and more, would hold 78 % and less
    # (14 draws: by a factor of 2, 67 %)
    assert held >= binom.ppf(FALSE_ALARM, DRAWS, 0.95)
    half = [np.ptp(one.parameters[name].interval) / 2 for one in fits]
    inner = sum(abs(one.parameters[name].value - TRUTH[name]) <= 0.344 * h for one, h in zip(fits, half, strict=True))
    # 0.344 · 1.96 standard deviations hold half of all: this tells intervals that are too wide
    assert binom.ppf(FALSE_ALARM, DRAWS, 0.5) <= inner <= binom.ppf(1 - FALSE_ALARM, DRAWS, 0.5)


def test_errors_are_those_of_the_covariance(fits):
    """eᵀ C⁻¹ e, summed over the draws, is χ² with two degrees of freedom for each."""
    errors = np.array([[one.parameters[name].value - TRUTH[name] for name in TRUTH] for one in fits])
    total = sum(e @ np.linalg.solve(one.covariance, e) for e, one in zip(errors, fits, strict=True))
    # the model bends within these intervals: 5 % more or less beside chance
    low, high = chi2.ppf([FALSE_ALARM, 1 - FALSE_ALARM], 2 * DRAWS)
    assert 0.95 * low <= total <= 1.05 * high


def test_the_covariance_is_the_cramer_rao_bound(fits):
    """σ² (JᵀJ)⁻¹ with the derivatives of the exact solution at the truth."""
    bound = NOISE**2 * np.linalg.inv(slopes().T @ slopes())
    stated = np.mean([one.covariance for one in fits], axis=0)
    # each is taken at the values found, which differ from the truth by 6 %; their mean by 6 % / √40 and its square
    np.testing.assert_allclose(stated, bound, rtol=0.1)


def test_an_estimated_noise_widens_intervals_by_students_factor():
    known, estimated = (rp.solve(problem(0, noise), tol=1e-4) for noise in (NOISE, None))
    assert estimated.noise["sensors"] == pytest.approx(NOISE, rel=4 / np.sqrt(2 * len(TIMES)))  # four deviations
    assert estimated.factor > known.factor
    for name in TRUTH:
        assert estimated.parameters[name].value == pytest.approx(known.parameters[name].value, rel=1e-6)
