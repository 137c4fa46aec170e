"""Design matrices: exact derivatives, scaling by a domain, the shifted-cosine identity, the fused kernel."""

from itertools import product
from types import SimpleNamespace

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import EPS, PRECISE, SMOOTH
from rannpde.errors import InputError
from rannpde.network import FourierFeatures, Gaussian, Network, RandomFeatures, Uniform
from rannpde.network.kernels import REDUCTION_LIMIT


def layers(dim: int = 2, **options):
    law = Gaussian(1.3)
    random = [RandomFeatures.sample(width=7, dim=dim, law=law, activation=a, rng=3, **options) for a in SMOOTH]
    return [*random, FourierFeatures.sample(width=5, dim=dim, scale=2.0, rng=3, **options)]


@pytest.mark.parametrize("features", layers(), ids=lambda f: getattr(f, "activation", f).__class__.__name__)
@pytest.mark.parametrize("index", [(0, 0), (1, 0), (0, 2), (2, 1)])
def test_derivatives_are_limits_of_differences(features, index):
    """Each derivative is the central difference of the one below it, to second order in the step."""
    points = np.random.default_rng(0).uniform(-1, 1, (6, 2))
    for axis in range(2):
        raised = tuple(k + (j == axis) for j, k in enumerate(index))
        errors = []
        for step in (1e-2, 5e-3):
            shift = step * np.eye(2)[axis]
            difference = (features(points + shift, index) - features(points - shift, index)) / (2 * step)
            errors.append(np.abs(difference - features(points, raised)).max())
        assert errors[1] < 0.3 * errors[0] + 1e-12  # order two: a quarter


@given(st.integers(1, 4), st.lists(st.integers(0, 3), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_fourier_derivatives_in_closed_form(dim, orders, seed):
    """∂^α cos(w·z + b) = w^α cos(w·z + b + |α| π/2), and the same for sin; the constant has none."""
    index = tuple((orders * dim)[:dim])
    features = FourierFeatures.sample(width=4, dim=dim, scale=1.0, rng=seed)
    points = np.random.default_rng(seed).uniform(-1, 1, (5, dim))
    phase = points @ features.weights + features.phases + sum(index) * np.pi / 2
    factor = np.prod([w**k for w, k in zip(features.weights, index, strict=True)], axis=0) / 2
    constant = np.full((5, 1), float(not any(index)))
    exact = np.hstack([factor * np.cos(phase), factor * np.sin(phase), constant])
    # the phase has a size of 30, with the turns
    np.testing.assert_allclose(features(points, index), exact, rtol=0, atol=30 * EPS * max(np.abs(factor).max(), 1))


@pytest.mark.parametrize("activation", SMOOTH, ids=lambda a: a.name)
@pytest.mark.parametrize("index", [(0, 0, 0), (1, 0, 2), (2, 1, 1)])
def test_random_derivatives_in_high_precision(activation, index):
    """∂^α σ(w·z + b) from the Taylor series of σ(w·(z + h) + b) in arbitrary precision, one neuron at a time."""
    features = RandomFeatures.sample(width=3, dim=3, law=Uniform(2.0), activation=activation, rng=5, constant=True)
    points, order = np.random.default_rng(6).uniform(-1, 1, (2, 3)), sum(index)
    exact = np.zeros((2, 4))
    exact[:, -1] = order == 0
    with mp.workdps(40):
        for i, j in product(range(2), range(3)):
            w = [mp.mpf(x) for x in features.weights[:, j]]
            phase = mp.fdot(w, [mp.mpf(x) for x in points[i]]) + mp.mpf(features.biases[j])
            slope = mp.taylor(PRECISE[activation.name], phase, order)[order] * mp.factorial(order)
            exact[i, j] = slope * mp.fprod(a**k for a, k in zip(w, index, strict=True))
    # rounding of the phase and of `order` + 1 products and sums
    tolerance = 20 * EPS * (1 + order) * np.abs(exact).max()
    np.testing.assert_allclose(features(points, index), exact, rtol=0, atol=tolerance)


def test_random_columns_are_the_definition():
    features = RandomFeatures.sample(width=9, dim=3, law=Gaussian(2.0), activation="tanh", rng=0, constant=True)
    points = np.random.default_rng(1).standard_normal((4, 3))
    by_hand = np.tanh(points @ features.weights + features.biases)
    np.testing.assert_allclose(features(points)[:, :-1], by_hand, atol=4 * EPS, rtol=0)
    assert (features(points)[:, -1] == 1).all()
    assert (features(points, (0, 1, 0))[:, -1] == 0).all()


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4, 1e7])
def test_fourier_columns_are_the_definition(scale):
    features = FourierFeatures.sample(width=50, dim=3, scale=scale, rng=0)
    points = np.random.default_rng(1).uniform(-1, 1, (40, 3))
    phase = points @ features.weights + features.phases
    by_hand = np.hstack([np.cos(phase), np.sin(phase)]) / np.sqrt(50)
    # the phase itself carries a rounding of eps times its size, in either way of summing
    tolerance = EPS * max(np.abs(phase).max(), 1)
    np.testing.assert_allclose(features(points)[:, :-1], by_hand, rtol=0, atol=tolerance)
    # 1e7 takes the other branch: the kernel's argument reduction ends before
    assert (np.abs(phase).max() > REDUCTION_LIMIT) == (scale == 1e7)


def test_every_quadrant_of_the_kernel():
    features = FourierFeatures(np.array([[1.0]]), np.array([0.0]), np.zeros(1), np.ones(1))
    points = np.linspace(-30, 30, 6001)[:, None]
    for order in range(8):
        values = features.ridge(points, order)
        np.testing.assert_allclose(values[:, 0], np.cos(points[:, 0] + order * np.pi / 2), atol=30 * EPS, rtol=0)
        np.testing.assert_allclose(values[:, 1], np.sin(points[:, 0] + order * np.pi / 2), atol=30 * EPS, rtol=0)


def test_shifted_cosine_identity():
    """Appendix "Random Feature Neural Networks": a cos + c sin = W cos(· - θ), so it is a network with σ = cos."""
    features = FourierFeatures.sample(width=6, dim=2, scale=3.0, rng=1)
    rng = np.random.default_rng(2)
    a, c, bias = rng.standard_normal(6), rng.standard_normal(6), 0.7
    network = Network(features, np.concatenate([a, c, [bias]]))
    shift = np.arctan2(c, a)
    single = RandomFeatures.sample(width=6, dim=2, law=Gaussian(1.0), activation="cos", rng=0)
    single = RandomFeatures(features.weights, features.phases - shift, single.activation, np.zeros(2), np.ones(2))
    shifted = Network(single, np.hypot(a, c) / np.sqrt(6))
    points = rng.uniform(-2, 2, (50, 2))
    np.testing.assert_allclose(network(points), bias + shifted(points), atol=100 * EPS, rtol=0)
    np.testing.assert_allclose(
        network.derivative(points, (1, 1)), shifted.derivative(points, (1, 1)), atol=300 * EPS, rtol=0
    )


def test_domain_scales_the_inputs_to_the_unit_box():
    domain = SimpleNamespace(bounds=np.array([[10.0, 14.0], [-1.0, 0.0]]))
    points = np.random.default_rng(0).uniform(domain.bounds[:, 0], domain.bounds[:, 1], (20, 2))
    unit = (points - [12, -0.5]) / [2, 0.5]
    for raw, scaled in zip(layers(), layers(dim=None, domain=domain), strict=True):
        np.testing.assert_allclose(scaled(points), raw(unit), atol=50 * EPS, rtol=0)
        # ∂_1 ∂_2² picks up 1/2 · (1/0.5)²
        np.testing.assert_allclose(scaled(points, (1, 2)), raw(unit, (1, 2)) * 2, atol=100 * EPS, rtol=0)


def test_out_is_filled_and_returned():
    features = FourierFeatures.sample(width=3, dim=1, scale=1.0, rng=0)
    out = np.empty((4, 7))
    assert features(np.zeros((4, 1)), out=out) is out
    with pytest.raises(InputError, match=r"out with shape"):
        features(np.zeros((5, 1)), out=out)


def test_one_axis_is_many_points_in_one_dimension():
    features = FourierFeatures.sample(width=3, dim=1, scale=1.0, rng=0)
    assert features(np.zeros(4)).shape == (4, 7)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f(np.zeros((3, 3))), r"points with shape is \(3, 3\).*\(M, 2\)"),
        (lambda f: f(np.zeros(3)), r"points with shape is \(3,\)"),
        (lambda f: f(np.array([[0, 0], [0, np.nan]])), "first in row 1"),
        (lambda f: f(np.array([["a", "b"]])), "array of numbers"),
        (lambda f: f(np.zeros((3, 2)), (1,)), r"derivative is \(1,\).*tuple of 2.*e\.g\. \(1, 0\)"),
        (lambda f: f(np.zeros((3, 2)), (0, -1)), "derivative"),
        (lambda f: f(np.zeros((3, 2)), (0, 0.5)), "derivative"),
        (lambda f: FourierFeatures.sample(width=0, dim=2, scale=1.0), "width is 0"),
        (lambda f: FourierFeatures.sample(width=True, dim=2, scale=1.0), "width is True"),
        (lambda f: FourierFeatures.sample(width=2, dim=2, scale=-1.0), "scale is -1.0"),
        (lambda f: FourierFeatures.sample(width=2, scale=1.0), r"pass dim=… or domain=…"),
        (lambda f: FourierFeatures(np.ones((2, 3)), np.ones(2), np.zeros(2), np.ones(2)), "phases with shape"),
        (lambda f: FourierFeatures(np.ones((2, 3)), np.ones(3), np.zeros(2), np.zeros(2)), "halfwidth"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call(FourierFeatures.sample(width=3, dim=2, scale=1.0, rng=0))
