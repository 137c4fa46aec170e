"""Fits in Sobolev norms: the same minimiser as dense least squares on stacked rows, by every method; bad input."""

import numpy as np
import pytest

from draws import some
from rannpde.errors import InputError
from rannpde.fitting.fit import fit
from rannpde.fitting.sobolev import sobolev_samples
from rannpde.network.features import FourierFeatures, RandomFeatures
from rannpde.network.laws import Gaussian

RNG = np.random.default_rng(5)


def wave(z, index):
    """∂^index of sin(2t + 3x)."""
    order = sum(index)
    return 2.0 ** index[0] * 3.0 ** index[1] * np.sin(2 * z[:, 0] + 3 * z[:, 1] + 0.5 * np.pi * order)


class Wave:
    def derivative(self, points, index):
        return wave(points, index)


def layer(kind, dim=2, constant=True):
    if kind == "fourier":
        return FourierFeatures.sample(width=15, dim=dim, scale=2.0, rng=1, constant=constant)
    return RandomFeatures.sample(width=30, dim=dim, law=Gaussian(1.5), rng=1, constant=constant)


def stacked(features, points, values, derivatives, penalty, weights=None):
    """The minimiser by lstsq on all rows."""
    count = np.ones(len(points)) if weights is None else weights
    rows, right = [np.sqrt(count)[:, None] * features(points)], [np.sqrt(count) * values]
    for index, entry in derivatives.items():
        data, weight = entry if isinstance(entry, tuple) else (entry, 1.0)
        rows.append(np.sqrt(weight * count)[:, None] * features(points, index))
        right.append(np.sqrt(weight * count) * data)
    ridge = np.sqrt(penalty * count.sum()) * np.eye(features.columns)
    if features.constant:
        ridge[-1, -1] = 0.0
    rows.append(ridge)
    right.append(np.zeros(features.columns))
    return np.linalg.lstsq(np.concatenate(rows), np.concatenate(right), rcond=None)[0]


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("kind", "method"),
    [("fourier", "dense"), ("fourier", "nufft"), ("fourier", "orthogonal"), ("tanh", "dense"), ("tanh", "orthogonal")],
)
def test_every_method_finds_the_minimiser(kind, method, constant):
    features, points = layer(kind, constant=constant), RNG.random((400, 2))
    derivatives = {(1, 0): wave(points, (1, 0)), (0, 1): (wave(points, (0, 1)), 0.25), (1, 2): wave(points, (1, 2))}
    weights = RNG.random(400)
    network = fit(
        features, points, wave(points, (0, 0)), derivatives=derivatives, penalty=1e-4, method=method, weights=weights
    )
    expected = stacked(features, points, wave(points, (0, 0)), derivatives, 1e-4, weights)
    # normal equations lose the square of the condition, about 1e4 here; the transform has 13 digits
    assert np.abs(network.coefficients - expected).max() < 1e-7 * np.abs(expected).max()


@pytest.mark.parametrize("order", some([1, 2, 3, 4, 5], 2))
def test_one_gram_matrix_serves_derivatives_of_every_order(order):
    """cos → -sin → -cos → sin → cos: each residue of the order modulo 4, in both coordinates."""
    features, points = layer("fourier"), RNG.random((300, 2))
    index = (order // 2, order - order // 2)
    derivatives = {index: wave(points, index)}
    values = wave(points, (0, 0))
    fast, dense = (
        fit(features, points, values, derivatives=derivatives, penalty=1e-3, method=m) for m in ("nufft", "dense")
    )
    assert np.abs(fast.coefficients - dense.coefficients).max() < 1e-8 * np.abs(dense.coefficients).max()


def test_several_outputs_are_fitted_together():
    features, points = layer("tanh"), RNG.random((300, 2))
    pair = {index: np.stack([wave(points, index), -2 * wave(points, index)], axis=1) for index in ((0, 0), (0, 1))}
    network = fit(features, points, pair[(0, 0)], derivatives={(0, 1): pair[(0, 1)]}, penalty=1e-6)
    assert network.coefficients.shape == (features.columns, 2)
    assert np.allclose(network.coefficients[:, 1], -2 * network.coefficients[:, 0], rtol=1e-9)


def test_derivatives_help_where_points_are_few():
    """20 points for 60 unknown coefficients: with two derivatives there are as many equations."""
    features = RandomFeatures.sample(width=60, dim=2, law=Gaussian(1.0), rng=3)
    points, test = RNG.random((25, 2)), RNG.random((500, 2))
    values, derivatives = sobolev_samples(Wave(), points, time_order=1, space_order=1)
    plain = fit(features, points, values[:, 0], penalty=1e-10)
    richer = fit(
        features, points, values[:, 0], derivatives={k: v[:, 0] for k, v in derivatives.items()}, penalty=1e-10
    )
    errors = [np.abs(network(test) - wave(test, (0, 0))).max() for network in (plain, richer)]
    assert errors[1] < 0.3 * errors[0]


def test_values_of_any_size_give_the_same_fit():
    features, points = layer("tanh"), RNG.random((300, 2))
    for size in (1e-150, 1e150):
        derivatives = {(0, 1): size * wave(points, (0, 1))}
        network = fit(features, points, size * wave(points, (0, 0)), derivatives=derivatives, penalty=1e-6)
        plain = fit(features, points, wave(points, (0, 0)), derivatives={(0, 1): wave(points, (0, 1))}, penalty=1e-6)
        assert np.allclose(network.coefficients / size, plain.coefficients, rtol=1e-9)


def test_penalty_by_generalised_cross_validation():
    features, points = layer("tanh"), RNG.random((300, 2))
    derivatives = {(0, 1): wave(points, (0, 1))}
    assert fit(features, points, wave(points, (0, 0)), derivatives=derivatives, penalty="gcv").about["penalty"] > 0


@pytest.mark.parametrize(
    ("derivatives", "message"),
    [
        ({}, "derivatives"),
        ([1], "derivatives"),
        ({(0, 0): np.zeros(10)}, "order ≥ 1"),
        ({(1,): np.zeros(10)}, "derivative"),
        ({(1, 0): np.zeros(9)}, "shape"),
        ({(1, 0): np.zeros((10, 2))}, "shape"),
        ({(1, 0): np.full(10, np.nan)}, "derivative"),
        ({(1, 0): (np.zeros(10), -1.0)}, "weight"),
        ({(1, 0): (np.zeros(10), "much")}, "weight"),
    ],
)
def test_bad_derivatives_are_refused(derivatives, message):
    with pytest.raises(InputError, match=message):
        fit(layer("tanh"), np.zeros((10, 2)), np.zeros(10), derivatives=derivatives)


def test_settings_without_meaning_are_refused():
    points, values = np.zeros((10, 2)), np.zeros(10)
    with pytest.raises(InputError, match="stream"):
        fit(layer("tanh"), [(points, values)], derivatives={(1, 0): values})
    with pytest.raises(InputError, match="penalty"):
        fit(layer("tanh"), points, values, derivatives={(1, 0): values}, penalty="folds")
    with pytest.raises(InputError, match="time_order"):
        sobolev_samples(Wave(), points, time_order=-1)
