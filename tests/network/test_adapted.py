"""The adapted weight law: density, draws, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rannpde.errors import InputError
from rannpde.network.adapted import Adapted, inverse_length
from rannpde.network.features import RandomFeatures
from rannpde.network.laws import WeightLaw


def layer(dim: int = 1) -> Adapted:
    """Short lengths near 0."""
    axes = [np.linspace(-1, 1, 101 if dim == 1 else 15)] * dim
    points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    return Adapted.to_lengths(points, 0.1 + np.linalg.norm(points, axis=1))


def test_it_is_a_weight_law_that_features_can_draw_from():
    law = layer(2)
    assert isinstance(law, WeightLaw)
    features = RandomFeatures.sample(width=20, dim=2, law=law, rng=0)
    assert np.isfinite(law.log_density(features.weights, features.biases)).all()


def test_density_on_the_line_has_integral_one():
    """By the midpoint rule; slopes lie in [0.25/1.1, 1.25/0.1], centres in [-1, 1] and a few spreads beyond."""
    law = layer(1)
    weights = (np.arange(800) + 0.5) * (12.5 / 800)
    centres = np.linspace(-1.2, 1.2, 241)
    mesh = np.meshgrid(weights, centres, indexing="ij")
    density = np.exp(law.log_density(mesh[0].reshape(1, -1), (-mesh[0] * mesh[1]).ravel())).reshape(mesh[0].shape)
    # (w, b) → (w, centre) has the factor |w|; w < 0 counts as much as w > 0
    total = 2 * np.sum(density * mesh[0]) * (weights[1] - weights[0]) * (centres[1] - centres[0])
    assert total == pytest.approx(1.0, abs=1e-2, rel=0)  # the density of slopes jumps: first order in the step


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_importance_weights_of_another_law_have_mean_one(dim):
    """E_q[p/q] = 1: the draws of p and its density belong together (false alarm below 1e-6, five sigma)."""
    points = np.zeros((1, dim))
    wide = Adapted(points, np.ones(1), np.ones(1), 2.0, (0.2, 3.0))
    narrow = Adapted(points + 0.3, np.ones(1), np.ones(1), 1.0, (0.5, 2.0))
    weights, biases = wide.sample(40_000, dim, rng=1)
    ratio = np.exp(narrow.log_density(weights, biases) - wide.log_density(weights, biases))
    assert abs(ratio.mean() - 1.0) < 5 * ratio.std() / np.sqrt(len(ratio))


def test_centres_follow_the_probabilities_and_slopes_the_lengths():
    """Kolmogorov–Smirnov at level 1e-6 with a fixed seed."""
    law = layer(1)
    weights, biases = law.sample(5000, 1, rng=3)
    centres = -biases / weights[0]
    edges = np.append(law.points[:, 0] - 0.01, law.points[-1, 0] + 0.01)
    cumulative = np.append(0.0, np.cumsum(law.probabilities))
    assert stats.kstest(centres, lambda x: np.interp(x, edges, cumulative)).pvalue > 1e-6
    scaled = np.abs(weights[0]) * (0.1 + np.abs(centres))
    # the length at the centre differs from that at the place by at most a few spreads
    assert scaled.min() > 0.15
    assert scaled.max() < 2.0


def test_draws_are_reproducible_and_lie_in_the_support():
    law = layer(2)
    first, again = law.sample(50, 2, rng=5), law.sample(50, 2, rng=5)
    assert np.array_equal(first[0], again[0])
    assert np.array_equal(first[1], again[1])
    assert np.isneginf(law.log_density(np.full((2, 1), 1e3), np.zeros(1)))[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lengths": np.zeros(3)}, "lengths"),
        ({"lengths": np.ones(2)}, "lengths with shape"),
        ({"probabilities": np.ones(3)}, "sum 1"),
        ({"spread": 0.0}, "spread"),
        ({"slopes": (2.0, 1.0)}, "slopes"),
        ({"points": np.full((3, 1), np.nan)}, "points"),
    ],
)
def test_bad_input_is_named(change, message):
    good = {"points": np.zeros((3, 1)), "lengths": np.ones(3), "probabilities": np.full(3, 1 / 3), "spread": 1.0}
    with pytest.raises(InputError, match=message):
        Adapted(**(good | change))


def test_wrong_dimension_is_named():
    with pytest.raises(InputError, match="dim is 3"):
        layer(2).sample(10, 3, rng=0)


# ------------------------------------------------------------------------------------------------- the local length


def test_length_of_a_sine_in_closed_form():
    """u = 3 sin(kx) on an interval of length L: U = 3, |u'|/U = k |cos kx|, |u''|/U = k² |sin kx|."""
    k, size = 7.0, 4.0
    x = np.linspace(-2, 2, 5001)[:, None]
    rate = inverse_length(3 * np.sin(k * x), 3 * k * np.abs(np.cos(k * x)), 3 * k**2 * np.sin(k * x), size)
    wanted = np.sqrt(0.25 + (k * np.cos(k * x)) ** 2) + k * np.sqrt(np.abs(np.sin(k * x)))
    # the grid misses the crests by at most k h/2, which changes the range by (k h)²/8
    np.testing.assert_allclose(rate, wanted[:, 0], rtol=(k * 4 / 5000) ** 2 / 8)


def test_length_is_that_of_the_worst_time_and_one_range_serves_all_times():
    x = np.linspace(-1, 1, 201)[:, None]
    values, slopes = np.hstack([x, 10 * x]), np.hstack([1 + 0 * x, 10 + 0 * x])
    np.testing.assert_allclose(inverse_length(values, slopes, 0 * values, 2.0), np.sqrt(2.0), rtol=1e-15)


def test_length_does_not_change_with_units():
    x = np.linspace(0, 1, 101)[:, None]
    values, slopes, bends = np.exp(-5 * x), 5 * np.exp(-5 * x), 25 * np.exp(-5 * x)
    plain = inverse_length(values, slopes, bends, 1.0)
    for unit, metre in ((1e-200, 1.0), (1e150, 1.0), (1.0, 1e3)):
        scaled = inverse_length(unit * values, unit * slopes / metre, unit * bends / metre**2, metre)
        np.testing.assert_allclose(scaled * metre, plain, rtol=1e-14)


@pytest.mark.parametrize("level", [0.0, 1.0, 1e9])
def test_constant_fields_have_the_length_of_a_quarter_domain(level):
    flat = np.full((5, 2), level) * (1 + 1e-14 * np.arange(10).reshape(5, 2))
    assert (inverse_length(flat, 1e-3 + 0 * flat, 0 * flat, 2.0) == 2.0).all()
