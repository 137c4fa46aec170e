"""The adapted weight law: density, draws, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rannpde.errors import InputError
from rannpde.network.adapted import Adapted
from rannpde.network.features import RandomFeatures
from rannpde.network.laws import WeightLaw


def layer(dim: int = 1) -> Adapted:
    """Short lengths near 0."""
    axes = [np.linspace(-1, 1, 101 if dim == 1 else 15)] * dim
    places = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    return Adapted.to_lengths(places, 0.1 + np.linalg.norm(places, axis=1))


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
    assert total == pytest.approx(1.0, abs=1e-2)  # the density of slopes jumps: first order in the step


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_importance_weights_of_another_law_have_mean_one(dim):
    """E_q[p/q] = 1: the draws of p and its density belong together (false alarm below 1e-6, five sigma)."""
    places = np.zeros((1, dim))
    wide = Adapted(places, np.ones(1), np.ones(1), 2.0, (0.2, 3.0))
    narrow = Adapted(places + 0.3, np.ones(1), np.ones(1), 1.0, (0.5, 2.0))
    weights, biases = wide.sample(1, 40_000, dim)
    ratio = np.exp(narrow.log_density(weights, biases) - wide.log_density(weights, biases))
    assert abs(ratio.mean() - 1.0) < 5 * ratio.std() / np.sqrt(len(ratio))


def test_centres_follow_the_probabilities_and_slopes_the_lengths():
    """Kolmogorov–Smirnov at level 1e-6 with a fixed seed."""
    law = layer(1)
    weights, biases = law.sample(3, 5000, 1)
    centres = -biases / weights[0]
    edges = np.append(law.places[:, 0] - 0.01, law.places[-1, 0] + 0.01)
    cumulative = np.append(0.0, np.cumsum(law.probabilities))
    assert stats.kstest(centres, lambda x: np.interp(x, edges, cumulative)).pvalue > 1e-6
    scaled = np.abs(weights[0]) * (0.1 + np.abs(centres))
    # the length at the centre differs from that at the place by at most a few spreads
    assert scaled.min() > 0.15
    assert scaled.max() < 2.0


def test_draws_are_reproducible_and_lie_in_the_support():
    law = layer(2)
    first, again = law.sample(5, 50, 2), law.sample(5, 50, 2)
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
        ({"places": np.full((3, 1), np.nan)}, "places"),
    ],
)
def test_bad_input_is_named(change, message):
    good = {"places": np.zeros((3, 1)), "lengths": np.ones(3), "probabilities": np.full(3, 1 / 3), "spread": 1.0}
    with pytest.raises(InputError, match=message):
        Adapted(**(good | change))


def test_wrong_dimension_is_named():
    with pytest.raises(InputError, match="dim is 3"):
        layer(2).sample(0, 10, 3)
