"""Layers that are no ridges: values, derivatives by Faà di Bruno and Leibniz, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rannpde.errors import InputError
from rannpde.network.activations import as_activation, tanh
from rannpde.network.features import RandomFeatures
from rannpde.network.polynomial import PolynomialFeatures, exponents_up_to, monomials, partitions
from rannpde.network.product import ProductFeatures

EPS = np.finfo(float).eps
CENTRE, HALFWIDTH = np.array([0.3, -1.0, 2.0]), np.array([0.5, 2.0, 1.5])


def polynomials(rng, degree=2, activation="tanh", constant=True):
    exponents = exponents_up_to(3, degree)
    weights = 0.5 * rng.standard_normal((len(exponents), 7))
    biases = rng.standard_normal(7)
    return PolynomialFeatures(exponents, weights, biases, as_activation(activation), CENTRE, HALFWIDTH, constant)


def products(rng, constant=True):
    return ProductFeatures(rng.standard_normal((3, 5, 7)), CENTRE, HALFWIDTH, constant)


def points_of(rng, count=20):
    return CENTRE + HALFWIDTH * rng.uniform(-1, 1, (count, 3))


indices = st.tuples(*[st.integers(0, 2)] * 3).filter(lambda index: 0 < sum(index) <= 4)


@settings(max_examples=30, deadline=None)
@given(indices, st.sampled_from([polynomials, products]), st.integers(0, 1000))
def test_derivatives_are_those_of_the_derivative_before(index, build, seed):
    """∂^α is the central difference of ∂^(α - e_i), to the square of the step and its rounding."""
    rng = np.random.default_rng(seed)
    features, points = build(rng), points_of(rng)
    axis = max(range(3), key=lambda a: index[a])
    lower = tuple(order - (a == axis) for a, order in enumerate(index))
    step = 1e-4 * HALFWIDTH[axis] * np.eye(3)[axis]
    numeric = (features(points + step, lower) - features(points - step, lower)) / (2 * step[axis])
    exact = features(points, index)
    sizes = [np.abs(features(points, i)).max() for i in (lower, index)]
    more = tuple(order + 2 * (a == axis) for a, order in enumerate(index))
    curvature = np.abs(features(points, more)).max() * step[axis] ** 2
    assert np.abs(numeric - exact).max() <= 2 * curvature + 1e3 * EPS * sizes[0] / step[axis] + 1e3 * EPS * sizes[1]


def test_polynomials_of_degree_one_are_ridges():
    rng = np.random.default_rng(0)
    curved = polynomials(rng, degree=1)
    ridges = RandomFeatures(curved.weights, curved.biases, tanh, CENTRE, HALFWIDTH, constant=True)
    points = points_of(rng)
    for index in [(0, 0, 0), (1, 0, 0), (0, 1, 1), (2, 0, 1)]:
        assert np.allclose(curved(points, index), ridges(points, index), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("build", [polynomials, products])
def test_a_combination_is_the_sum_of_its_parts(build):
    rng = np.random.default_rng(0)
    features, points = build(rng), points_of(rng)
    chosen = [(0, 0, 0), (2, 0, 0), (0, 2, 0), (0, 1, 1)]
    partials = [np.asarray(2.0), rng.standard_normal(20), np.asarray(-1.0), rng.standard_normal(20)]
    total = sum(np.reshape(p, (-1, 1)) * features(points, i) for p, i in zip(partials, chosen, strict=True))
    found = features.at(points).combine(chosen, partials)
    assert np.allclose(found, total, rtol=1e-12, atol=1e-12)
    for index, columns in features.at(points).columns(chosen):
        assert np.allclose(columns, features(points, index), rtol=1e-12, atol=1e-13)


def test_the_partitions_are_counted_by_bell():
    for order, bell in enumerate([1, 1, 2, 5, 15, 52]):
        assert sum(partitions((order,)).values()) == bell
        assert sum(partitions((1,) * order).values()) == bell


def test_monomials_number_as_they_should():
    assert [len(exponents_up_to(dim, 2)) for dim in (1, 5, 10)] == [2, 20, 65]
    values = monomials(np.array([[2.0, 3.0]]), np.array([[2, 1], [0, 3]]), np.array([1, 1]))
    assert values.tolist() == [[4.0, 0.0]]  # ∂_x ∂_y of x² y and of y³


def test_layers_that_do_not_fit_together_are_refused():
    rng = np.random.default_rng(0)
    good = polynomials(rng)
    parts = (good.exponents, good.weights, good.biases, tanh, CENTRE, HALFWIDTH)
    for number, bad, name in [
        (0, -good.exponents, "exponents"),
        (1, good.weights[:3], "weights with shape"),
        (2, good.biases[:3], "biases with shape"),
        (5, -HALFWIDTH, "halfwidth"),
    ]:
        with pytest.raises(InputError, match=name):
            PolynomialFeatures(*[bad if place == number else part for place, part in enumerate(parts)])
    with pytest.raises(InputError, match="centre with shape"):
        ProductFeatures(np.ones((3, 2, 4)), np.zeros(2), HALFWIDTH)
    with pytest.raises(InputError, match="factors"):
        ProductFeatures(np.full((3, 2, 4), np.nan), CENTRE, HALFWIDTH)
    with pytest.raises(InputError, match="derivative"):
        good(points_of(rng), (1, 0))
