"""Uniform and Sobol points are uniform, reproducible and on target; mixtures have exact shares.

Kolmogorov–Smirnov tests use fixed seeds; each p-value below 1e-4 would fail, so that a correct sampler fails one of the
some 40 tests with odds below 0.5 %, once and for all seeds fixed here.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc
from scipy.stats import kstest

from rannpde.domains import Ball, Box, Interval, SpaceTime, mixture
from rannpde.errors import InputError

FALSE_ALARM = 1e-4


def uniform_pvalue(numbers):
    return kstest(numbers, "uniform").pvalue


def test_boxes_are_sampled_uniformly():
    domain = SpaceTime(t=(0.1, 1.1), x=[(-1, 3), (2, 2.5)])
    lower, upper = domain.bounds.T
    unit = (domain.sample(20_000, rng=0) - lower) / (upper - lower)
    assert min(uniform_pvalue(column) for column in unit.T) > FALSE_ALARM
    # independent columns: the correlation of 20,000 pairs is N(0, 1/20,000); 5 standard deviations have odds 6e-7
    assert np.abs(np.corrcoef(unit.T) - np.eye(3)).max() < 5 / np.sqrt(20_000)


@pytest.mark.parametrize("dim", [2, 3, 4, 7])
def test_balls_and_spheres_are_sampled_uniformly(dim):
    """|x|^n is uniform; each coordinate of the direction has the law of (1 - z²)^((n-3)/2)."""
    ball = Ball(np.arange(dim), 2.0)
    points = (ball.sample(10_000, rng=dim) - ball.centre) / 2
    radii = np.linalg.norm(points, axis=1)
    assert uniform_pvalue(radii**dim) > FALSE_ALARM
    sphere = (ball.side("boundary").sample(10_000, rng=dim) - ball.centre) / 2
    shape = (dim - 1) / 2
    for directions in (points / radii[:, None], sphere):
        for column in directions.T:
            assert uniform_pvalue(betainc(shape, shape, (1 + column) / 2)) > FALSE_ALARM


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_directions_have_no_preferred_axis(dim):
    """E[x xᵀ] = I/n on the unit sphere; entries are in [-1, 1], so the mean of M has a standard deviation ≤ 1/√M."""
    count = 20_000
    points = Ball([0] * dim, 1).side("boundary").sample(count, rng=3)
    assert np.abs(points.T @ points / count - np.eye(dim) / dim).max() < 5 / np.sqrt(count)
    assert np.abs(points.mean(axis=0)).max() < 5 / np.sqrt(count)


def test_a_side_in_space_covers_the_whole_time():
    for domain in (SpaceTime(t=(1, 3), x=(0, 1), y=(0, 1)), SpaceTime(t=(1, 3), x=Ball((0, 0), 1))):
        for side in domain.sides.values():
            assert uniform_pvalue((side.sample(5_000, rng=5)[:, 0] - 1) / 2) > FALSE_ALARM


@pytest.mark.parametrize("domain", [Box([(0, 1)] * 4), Ball([0] * 3, 1), SpaceTime(t=(0, 1), x=Ball([0] * 2, 1))])
def test_sobol_beats_independent_points_on_a_smooth_integral(domain):
    """Mean of cos(z_1 + … + z_n): the error of 2^12 Sobol points against the 1/√M of independent ones."""
    reference = np.cos(domain.sample(2**17, rng=9, method="sobol").sum(axis=1)).mean()

    def error(method):
        means = [np.cos(domain.sample(2**12, rng=seed, method=method).sum(axis=1)).mean() for seed in range(8)]
        return np.sqrt(np.mean((np.array(means) - reference) ** 2))

    assert error("sobol") < error("uniform") / 20


@pytest.mark.parametrize("method", ["uniform", "sobol"])
@pytest.mark.parametrize("count", [1, 2, 3, 100, 1023])
def test_the_same_rng_gives_the_same_numbers(method, count):
    for region in (Box([(0, 1)] * 3), Ball((0, 0), 1).side("boundary"), Interval(0, 1).side("x=1")):
        first = region.sample(count, rng=7, method=method)
        assert first.shape == (count, region.dim)
        np.testing.assert_array_equal(first, region.sample(count, rng=7, method=method))
        np.testing.assert_array_equal(first, region.sample(count, rng=np.random.default_rng(7), method=method))


def test_a_generator_moves_on():
    generator = np.random.default_rng(0)
    box = Box([(0, 1)] * 2)
    for method in ("uniform", "sobol"):
        assert not np.array_equal(
            box.sample(4, rng=generator, method=method), box.sample(4, rng=generator, method=method)
        )


def test_sobol_points_continue_whatever_the_count():
    box = Box([(0, 1)] * 3)
    np.testing.assert_array_equal(box.sample(100, rng=1, method="sobol"), box.sample(1000, rng=1, method="sobol")[:100])


def test_sobol_stratifies_every_coordinate():
    """2^k points of a scrambled Sobol sequence: exactly one in each of the 2^k equal intervals, in every coordinate."""
    points = Box([(0, 1)] * 6).sample(256, rng=0, method="sobol")
    for column in points.T:
        assert np.array_equal(np.sort(np.floor(256 * column)), np.arange(256))


def test_the_papers_mixture_is_half_and_half():
    d, domain = 3, SpaceTime(t=(0.1, 1.1), x=[(0, 1)] * 3)
    points = mixture([(0.5, domain), (0.5, domain.restrict(x=[(0.2, 0.8)] * d))], 1000, rng=0)
    inner = Box([(0.2, 0.8)] * d)
    assert points.shape == (1000, 4)
    assert domain.contains(points).all()
    assert inner.contains(points[500:, 1:]).all()
    # of the first half a share 0.6³ = 0.216 lies inside: 108 ± 9.2, within 5 standard deviations but for odds 6e-7
    assert abs(inner.contains(points[:500, 1:]).sum() - 108) < 46
    np.testing.assert_array_equal(points, mixture([(0.5, domain), (0.5, domain.restrict(x=(0.2, 0.8)))], 1000, rng=0))


class Constant:
    """A sampler of one's own: all points equal to a number."""

    def __init__(self, value):
        self.value = value

    def sample(self, count, *, rng=None):
        return np.full((count, 1), self.value)


@pytest.mark.parametrize(
    ("shares", "count", "expected"),
    [
        ([0.5, 0.5], 5, [3, 2]),
        ([0.29, 0.71], 100, [29, 71]),
        ([1 / 3, 1 / 3, 1 / 3], 8, [3, 3, 2]),
        ([0.9, 0.1], 2, [2, 0]),
        ([1.0], 7, [7]),
    ],
)
def test_shares_are_exact_with_largest_remainders(shares, count, expected):
    points = mixture([(share, Constant(number)) for number, share in enumerate(shares)], count)
    assert np.bincount(points[:, 0].astype(int), minlength=len(shares)).tolist() == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 100), min_size=1, max_size=6), st.integers(1, 500))
def test_every_component_is_within_one_of_its_share(weights, count):
    shares = np.array(weights) / sum(weights)
    points = mixture([(share, Constant(number)) for number, share in enumerate(shares)], count)
    counts = np.bincount(points[:, 0].astype(int), minlength=len(shares))
    assert counts.sum() == count
    assert (np.abs(counts - shares * count) < 1 + 1e-9).all()


BOX = Interval(0, 1)
BAD = {
    "no components": ([], 3, "at least one"),
    "zero share": ([(0.0, BOX), (1.0, BOX)], 3, "positive"),
    "negative share": ([(-0.5, BOX), (1.5, BOX)], 3, "positive"),
    "nan share": ([(float("nan"), BOX)], 3, "NaN"),
    "sum not one": ([(0.5, BOX), (0.6, BOX)], 3, "divide each by their sum"),
    "not pairs": ([BOX, BOX], 3, "pairs"),
    "not a sampler": ([(1.0, "box")], 3, "pairs"),
    "count": ([(1.0, BOX)], 0, "count is 0"),
    "different dimensions": ([(0.5, BOX), (0.5, Box([(0, 1)] * 2))], 4, "shapes"),
}


@pytest.mark.parametrize(("components", "count", "message"), BAD.values(), ids=BAD.keys())
def test_bad_mixtures_are_refused(components, count, message):
    with pytest.raises(InputError, match=message):
        mixture(components, count, rng=0)
