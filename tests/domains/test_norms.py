"""Norms against closed forms: sines, exponentials, Gaussians, tanh; of tables, networks, callables and differences."""

from itertools import product
from math import pi, sqrt, tanh

import numpy as np
import pytest

from rannpde.domains import Ball, Box, Difference, Interval, SpaceTime, l2_norm, relative_l2, sobolev_norm
from rannpde.domains.norms import derivative_indices, relative_errors
from rannpde.errors import InputError
from rannpde.network.activations import as_activation
from rannpde.network.features import FourierFeatures, RandomFeatures
from rannpde.network.network import Network

EPS = np.finfo(float).eps


class DecayingWave:
    """u(t, x) = e^(-rt) Π sin(k_i x_i) with all its derivatives."""

    def __init__(self, rate, wavenumbers):
        self.rate, self.wavenumbers = rate, wavenumbers

    def derivative(self, points, index):
        values = (-self.rate) ** index[0] * np.exp(-self.rate * points[:, 0])
        for order, number, x in zip(index[1:], self.wavenumbers, points.T[1:], strict=True):
            values = values * number**order * np.sin(number * x + order * pi / 2)
        return values

    def norm(self, time_order, space_order, duration):
        """In closed form on (0, duration) × (0, 1)^d for wave numbers in πℕ: every squared sine or cosine gives 1/2."""
        dim = len(self.wavenumbers)
        time = sum(self.rate ** (2 * order) for order in range(time_order + 1))
        time *= (1 - np.exp(-2 * self.rate * duration)) / (2 * self.rate)
        betas = [beta for beta in product(range(space_order + 1), repeat=dim) if sum(beta) <= space_order]
        space = sum(np.prod(np.array(self.wavenumbers, dtype=float) ** (2 * np.array(beta))) for beta in betas)
        return sqrt(time * space / 2**dim)


@pytest.mark.parametrize(("p", "q"), [(0, 0), (1, 0), (0, 1), (1, 2), (2, 3)])
@pytest.mark.parametrize("wavenumbers", [(pi,), (pi, 2 * pi)])
def test_mixed_sobolev_norms_in_closed_form(p, q, wavenumbers):
    wave = DecayingWave(1.5, wavenumbers)
    domain = SpaceTime(t=(0, 2), x=[(0, 1)] * len(wavenumbers))
    norm = sobolev_norm(wave, domain, time_order=p, space_order=q)
    assert norm.rule.startswith("gauss")
    assert float(norm) == pytest.approx(wave.norm(p, q, 2), rel=64 * EPS, abs=0)
    assert norm.error < 1e-8 * float(norm)


def test_mixed_sobolev_norm_in_five_dimensions_by_sobol():
    wave = DecayingWave(1.0, (pi,) * 5)
    domain = SpaceTime(t=(0, 1), x=[(0, 1)] * 5)
    norm = sobolev_norm(wave, domain, time_order=1, space_order=1, rng=0)
    assert norm.rule.startswith("sobol")
    assert norm.error <= 1e-3 * float(norm)
    # four standard errors: odds 0.0012 for this fixed seed (Student's t, 15 degrees of freedom)
    assert abs(float(norm) - wave.norm(1, 1, 1)) < 4 * norm.error


def test_every_multi_index_is_counted_once():
    domain = SpaceTime(t=(0, 1), x=[(0, 1)] * 2)
    expected = [(k, *b) for k in (0, 1) for b in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0))]
    assert sorted(derivative_indices(domain, 1, 2)) == sorted(expected)
    assert derivative_indices(Box([(0, 1)] * 2), 0, 1) == [(0, 0), (0, 1), (1, 0)]


def test_the_norm_is_the_fourier_one_for_orders_up_to_one():
    """u = e^(-(t²+x²)/2): ∫∫ |û|² (1+s²)(1+ξ²) / (2π)² = (∫ e^(-s²)(1+s²))² = 9π/4; tails beyond 9 are e^(-81)."""

    def profile(z):
        return np.exp(-0.5 * (z**2).sum(axis=1))

    table = {
        index: lambda z, index=index: (-z[:, 0]) ** index[0] * (-z[:, 1]) ** index[1] * profile(z)
        for index in product((0, 1), repeat=2)
    }
    norm = sobolev_norm(table, SpaceTime(t=(-9, 9), x=(-9, 9)), time_order=1, space_order=1)
    assert float(norm) == pytest.approx(1.5 * sqrt(pi), rel=64 * EPS, abs=0)


def tanh_network():
    """u(x) = tanh x."""
    unit = np.ones(1)
    return Network(RandomFeatures(np.ones((1, 1)), np.zeros(1), as_activation("tanh"), 0 * unit, unit), unit)


def test_norms_of_a_network():
    """∫_0^1 tanh² = 1 - tanh 1 and ∫_0^1 sech⁴ = tanh 1 - tanh³ 1 / 3."""
    square = 1 - tanh(1)
    slope = tanh(1) - tanh(1) ** 3 / 3
    assert float(l2_norm(tanh_network(), Interval(0, 1))) == pytest.approx(sqrt(square), rel=64 * EPS, abs=0)
    first = sobolev_norm(tanh_network(), Interval(0, 1), space_order=1)
    assert float(first) == pytest.approx(sqrt(square + slope), rel=64 * EPS, abs=0)


def test_a_network_of_one_cosine_has_the_norms_of_its_table():
    weights, domain = np.array([[2.0], [3.0]]), SpaceTime(t=(0, 1), x=(-1, 1))
    features = FourierFeatures(weights, np.array([0.5]), np.zeros(2), np.ones(2), constant=False)
    network = Network(features, np.array([1.0, 0.0]))

    def derivative(index):
        factor, shift = 2.0 ** index[0] * 3.0 ** index[1], sum(index) * pi / 2
        return lambda z: factor * np.cos(z @ weights[:, 0] + 0.5 + shift)

    table = {index: derivative(index) for index in derivative_indices(domain, 1, 2)}
    norm = float(sobolev_norm(table, domain, time_order=1, space_order=2))
    assert float(sobolev_norm(network, domain, time_order=1, space_order=2)) == pytest.approx(norm, rel=64 * EPS, abs=0)
    gap = sobolev_norm(Difference(network, table), domain, time_order=1, space_order=2)
    assert float(gap) < 100 * EPS * norm


def test_norms_of_differences():
    """sin - cos on (0, 2π): ∫ (sin - cos)² = 2π, and the same for its derivative cos + sin."""
    sine = {(0,): lambda z: np.sin(z[:, 0]), (1,): lambda z: np.cos(z[:, 0])}
    cosine = {(0,): lambda z: np.cos(z[:, 0]), (1,): lambda z: -np.sin(z[:, 0])}
    period = Interval(0, 2 * pi)
    assert float(l2_norm(Difference(sine, cosine), period)) == pytest.approx(sqrt(2 * pi), rel=64 * EPS, abs=0)
    assert float(sobolev_norm(Difference(sine, cosine), period, space_order=1)) == pytest.approx(
        sqrt(4 * pi), rel=64 * EPS, abs=0
    )
    zero = l2_norm(Difference(sine, lambda z: np.sin(z)), period)  # (M,) and (M, 1) are the same function
    assert (float(zero), zero.error) == (0.0, 0.0)
    assert Difference(sine, cosine)(np.zeros((3, 1))).shape == (3, 1)


def test_several_outputs_have_the_product_norm_or_each_its_own():
    def pair(z):
        return np.stack([np.sin(pi * z[:, 0]), 3 * np.ones(len(z))], axis=1)

    each = l2_norm(pair, Interval(0, 2), per_output=True)
    np.testing.assert_allclose(each.value, [1.0, 3 * sqrt(2)], rtol=64 * EPS)
    assert each.error.shape == (2,)
    assert float(l2_norm(pair, Interval(0, 2))) == pytest.approx(sqrt(19), rel=64 * EPS, abs=0)
    table = {(0,): pair, (1,): lambda z: np.stack([pi * np.cos(pi * z[:, 0]), 0 * z[:, 0]], axis=1)}
    assert sobolev_norm(table, Interval(0, 2), space_order=1, per_output=True).value == pytest.approx(
        [sqrt(1 + pi**2), 3 * sqrt(2)], rel=64 * EPS, abs=0
    )


def test_norms_on_sides_and_balls():
    """∫ x² over the unit circle is π; over the unit ball of R³ 4π/15; over a side at x = 2 of (0, 3) it is 4·3."""

    def x(z):
        return z[:, 0]

    assert float(l2_norm(x, Ball((0, 0), 1).side("boundary"))) == pytest.approx(sqrt(pi), rel=64 * EPS, abs=0)
    assert float(l2_norm(x, Ball((0, 0, 0), 1))) == pytest.approx(sqrt(4 * pi / 15), rel=64 * EPS, abs=0)
    side = SpaceTime(t=(0, 3), x=(0, 2)).side("x=2")
    assert float(l2_norm(lambda z: z[:, 1], side)) == pytest.approx(sqrt(12), rel=64 * EPS, abs=0)


def test_constants_may_be_scalars():
    assert float(l2_norm(lambda z: 2.0, Interval(0, 4))) == pytest.approx(4, rel=64 * EPS, abs=0)


def test_relative_error_on_a_domain():
    """‖εx‖/‖e^x‖ on (0, 1) = ε √(1/3) / √((e²-1)/2)."""
    ratio = relative_l2(lambda z: np.exp(z) + 1e-3 * z, np.exp, Interval(0, 1))
    assert float(ratio) == pytest.approx(1e-3 * sqrt(1 / 3) / sqrt((np.e**2 - 1) / 2), rel=1e3 * EPS, abs=0)
    assert ratio.error < 1e-3 * float(ratio)
    assert float(relative_l2(np.exp, np.exp, Interval(0, 1))) == 0.0
    each = relative_l2(lambda z: np.tile(1.1 * z, 2), lambda z: np.tile(z, 2), Interval(0, 1), per_output=True)
    np.testing.assert_allclose(each.value, [0.1, 0.1], rtol=64 * EPS)


def test_relative_error_at_points_takes_functions_and_arrays():
    points = Interval(0, 1).sample(200, rng=0)
    by_arrays = relative_l2(np.exp(points) + 0.1, np.exp(points[:, 0]), points)
    by_functions = relative_l2(lambda z: np.exp(z[:, 0]) + 0.1, np.exp, points)
    expected = np.linalg.norm(np.full(200, 0.1)) / np.linalg.norm(np.exp(points))
    assert float(by_arrays) == pytest.approx(expected, rel=64 * EPS, abs=0)
    assert float(by_functions) == pytest.approx(expected, rel=64 * EPS, abs=0)
    assert by_arrays.rule == "points"


def test_standard_error_at_points_is_honest():
    """z = (ratio - truth)/error for 200 independent samples of 400 points has mean square 1; its standard deviation is
    √(2/200) = 0.1, so that a value outside (0.5, 1.6) has odds below 1e-5."""
    truth = sqrt(1 / 3) / sqrt((np.e**2 - 1) / 2)
    scores = []
    for seed in range(200):
        ratio = relative_l2(lambda z: np.exp(z) + z, np.exp, Interval(0, 1).sample(400, rng=seed))
        scores.append((float(ratio) - truth) / ratio.error)
    assert 0.5 < np.mean(np.square(scores)) < 1.6


UNIT = Interval(0, 1)
BAD = {
    "derivative of a callable": (lambda: sobolev_norm(np.sin, UNIT, space_order=1), "plain callable"),
    "missing in the table": (lambda: sobolev_norm({(0,): np.sin}, UNIT, space_order=1), r"a table with \(1,\)"),
    "not a function": (lambda: l2_norm(3, UNIT), "callable"),
    "time without time": (lambda: sobolev_norm(np.sin, UNIT, time_order=1), "SpaceTime"),
    "negative order": (lambda: sobolev_norm(np.sin, UNIT, space_order=-1), "space_order is -1"),
    "side": (lambda: sobolev_norm(np.sin, UNIT.side("x=0")), "l2_norm"),
    "not a region": (lambda: l2_norm(np.sin, (0, 1)), "a domain or a side"),
    "nan": (lambda: l2_norm(lambda z: z * np.nan, UNIT), "row 0"),
    "number of values": (lambda: l2_norm(lambda z: np.zeros(7), UNIT), "one per point"),
    "shapes": (lambda: l2_norm(Difference(np.sin, lambda z: np.tile(z, 2)), UNIT), "equal"),
    "shapes at points": (lambda: relative_l2(np.zeros((3, 2)), np.ones(3), np.zeros((3, 1))), "equal"),
    "values at points": (lambda: relative_l2(np.zeros(4), np.ones(3), np.zeros((3, 1))), "3, one per point"),
    "zero": (lambda: relative_l2(np.sin, lambda z: 0 * z, UNIT), "0 everywhere"),
    "zero at points": (lambda: relative_l2(np.ones(3), np.zeros(3), np.zeros((3, 1))), "0 everywhere"),
    "options at points": (lambda: relative_l2(np.ones(3), np.ones(3), np.zeros((3, 1)), rng=0), "left out"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_errors_of_columns_are_relative_each_to_its_own_and_root_mean_squares_for_zero():
    exact = np.array([[3.0, 1e-9, 0.0], [4.0, 0.0, 0.0]])
    wrong = exact + np.array([[0.0, 1e-12, 0.3], [0.5, 0.0, 0.4]])
    assert relative_errors(wrong, exact) == pytest.approx(
        [0.1, 1e-3, 0.5 / np.sqrt(2)], rel=1e4 * EPS, abs=0
    )  # 1e-9 + 1e-12 keeps 13 digits of the change
    assert relative_errors(exact, exact).tolist() == [0.0, 0.0, 0.0]
