"""Fits in two precisions: the digits of the dense fit, for every kind of data, or the dense fit itself."""

import numpy as np
import pytest

import rannpde.fitting.fit as fitting
from rannpde.fitting import mixed
from rannpde.fitting.fit import Samples, fit
from rannpde.network.features import FourierFeatures, RandomFeatures
from rannpde.network.laws import Gaussian

RNG = np.random.default_rng(8)
POINTS = RNG.random((1500, 5))
VALUES = np.exp(-np.square(POINTS - 0.5).sum(axis=1))


@pytest.fixture
def small(monkeypatch):
    """Two precisions from few columns on."""
    monkeypatch.setattr(mixed, "FEWEST_COLUMNS", 10)
    monkeypatch.setattr(fitting, "FEWEST_COLUMNS", 10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("penalty", [1e-1, 1e-3, 1e-5])
def test_the_digits_are_those_of_the_dense_fit(small, penalty, outputs, weighted):
    features = FourierFeatures.sample(width=100, dim=5, scale=3.0, rng=0)
    values = VALUES if outputs == 1 else VALUES[:, None] * np.array([1.0, -1e6, 1e-6])
    weights = RNG.random(len(POINTS)) if weighted else None
    fast = fit(features, POINTS, values, penalty=penalty, weights=weights)
    dense = fit(features, POINTS, values, penalty=penalty, weights=weights, method="dense")
    assert (fast.about["solver"], dense.about["solver"]) == ("mixed", "dense")
    assert np.allclose(fast.coefficients, dense.coefficients, rtol=1e-7, atol=1e-9 * np.abs(dense.coefficients).max())
    assert fast.about["training_error"] == pytest.approx(dense.about["training_error"], rel=1e-6)
    assert fast.about["condition"] > 0.1 * dense.about["condition"]  # an upper bound of it up to the estimate's factor


def test_small_penalties_take_the_dense_sums(small):
    features = RandomFeatures.sample(width=80, dim=5, law=Gaussian(1.0), rng=0)
    assert fit(features, POINTS, VALUES, penalty=1e-9).about["solver"] != "mixed"


def test_values_that_vanish_are_fitted_by_nothing(small):
    features = FourierFeatures.sample(width=50, dim=5, scale=3.0, rng=0)
    network = fit(features, POINTS, 0 * VALUES, penalty=1e-3)
    assert not network.coefficients.any()


def test_equations_that_do_not_converge_are_given_up(small, monkeypatch):
    features = FourierFeatures.sample(width=50, dim=5, scale=3.0, rng=0)
    monkeypatch.setattr(mixed, "MOST_ITERATIONS", 0)
    assert mixed.fit_mixed(features, Samples(features, POINTS, VALUES, None), 1e-3) is None
    assert fit(features, POINTS, VALUES, penalty=1e-3).about["solver"] == "dense"


def test_few_columns_are_left_to_the_dense_sums():
    features = FourierFeatures.sample(width=100, dim=5, scale=3.0, rng=0)
    assert fit(features, POINTS, VALUES, penalty=1e-3).about["solver"] == "dense"
