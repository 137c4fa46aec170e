"""Gauss rules are exact where they must be and converge at their order; error estimates cover the error."""

from math import pi

import numpy as np
import pytest
from scipy.special import i0, iv

from rannpde.domains import Ball, Box, Interval, SpaceTime, gauss_rule, integrate
from rannpde.errors import InputError

EPS = np.finfo(float).eps


def cosine_sum(points):
    return np.cos(points.sum(axis=1))


def cosine_sum_integral(dim):
    """∫ cos(z_1 + … + z_n) over the unit cube = Re ((e^i - 1)/i)^n."""
    return (((np.exp(1j) - 1) / 1j) ** dim).real


@pytest.mark.parametrize("count", [1, 2, 5, 20])
def test_gauss_rule_is_exact_to_its_degree_and_no_further(count):
    points, weights = gauss_rule(Interval(0, 1), count)
    for degree in range(2 * count):
        # a power magnifies the rounding of its node by the degree
        assert weights @ points[:, 0] ** degree == pytest.approx(1 / (degree + 1), rel=(16 + 2 * degree) * EPS, abs=0)
    # the error for x^(2m) is (m!)^4 / ((2m+1) ((2m)!)^2): visible for small m only
    if count <= 5:
        assert abs(weights @ points[:, 0] ** (2 * count) - 1 / (2 * count + 1)) > 1e-7


@pytest.mark.parametrize("count", [1, 2, 3])
def test_panels_converge_with_order_twice_the_count(count):
    """log-log slope of the error of ∫ e^x with panels 2 … 16; steps that reached round-off are left out."""
    panels = np.array([2, 4, 8, 16])
    errors = []
    for number in panels:
        points, weights = gauss_rule(Interval(0, 1), count, panels=int(number))
        errors.append(abs(weights @ np.exp(points[:, 0]) - (np.e - 1)))
    resolved = np.array(errors) > 100 * EPS
    slope = np.polyfit(np.log(panels[resolved]), np.log(np.array(errors)[resolved]), 1)[0]
    assert slope == pytest.approx(-2 * count, abs=0.1, rel=0)


def test_gauss_points_are_inside_and_weights_sum_to_the_measure():
    cylinder = SpaceTime(t=(0, 2), x=Ball((1, 0), 0.5))
    for region in (Box(x=(0, 1), y=(2, 5)), Ball((1, 2, 3), 2), cylinder, *cylinder.sides.values(), cylinder.final):
        points, weights = gauss_rule(region, 5, panels=2)
        assert len(points) == len(weights) == 10**region.extent
        assert region.contains(points).all()
        assert (weights > 0).all()
        assert weights.sum() == pytest.approx(region.measure, rel=64 * EPS, abs=0)


@pytest.mark.parametrize("dim", [2, 3, 4])
def test_ball_rules_are_exact_for_polynomials(dim):
    """∫ over the unit ball of |x|^2 and of x_1^2 x_2^2 (degree 4), from Gamma functions; odd ones vanish."""
    ball = Ball([0] * dim, 1)
    points, weights = gauss_rule(ball, 6)
    assert weights @ (points**2).sum(axis=1) == pytest.approx(ball.volume * dim / (dim + 2), rel=64 * EPS, abs=0)
    quartic = ball.volume / ((dim + 2) * (dim + 4))
    assert weights @ (points[:, 0] * points[:, 1]) ** 2 == pytest.approx(quartic, rel=64 * EPS, abs=0)
    assert abs(weights @ (points[:, 0] ** 3 * points[:, 1])) < 64 * EPS * ball.volume


def test_ball_rules_converge_spectrally():
    """∫ e^x over the unit disc is 2π I_1(1), over the unit sphere 4π sinh 1, over the circle 2π I_0(1)."""
    exact = {Ball((0, 0), 1): 2 * pi * iv(1, 1.0), Ball((0, 0), 1).side("boundary"): 2 * pi * i0(1.0)}
    exact[Ball((0, 0, 0), 1).side("boundary")] = 4 * pi * np.sinh(1.0)
    exact[Ball((0, 0, 0), 1)] = 4 * pi * (np.cosh(1.0) - np.sinh(1.0))
    for region, value in exact.items():
        errors = []
        for count in (4, 16):
            points, weights = gauss_rule(region, count)
            errors.append(abs(weights @ np.exp(points[:, 0]) - value) / value)
        assert errors[0] < 0.05
        assert errors[1] < 64 * EPS


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_low_dimension_takes_gauss_to_many_digits(dim):
    estimate = integrate(cosine_sum, Box([(0, 1)] * dim))
    assert estimate.rule == "gauss " + " × ".join(["32"] * dim)
    assert estimate.points == 32**dim
    assert abs(float(estimate) - cosine_sum_integral(dim)) <= estimate.error < 1e-13


def test_gauss_refines_until_the_tolerance_or_the_budget():
    """|x - 1/3|^½ has a kink: panels help algebraically, and the reported error stays above the true one."""
    exact = 2 / 3 * ((1 / 3) ** 1.5 + (2 / 3) ** 1.5)

    def kink(points):
        return np.sqrt(np.abs(points[:, 0] - 1 / 3))

    errors = []
    for budget in (64, 1024, 2**14):
        estimate = integrate(kink, Interval(0, 1), budget=budget)
        assert estimate.points == budget
        errors.append(abs(float(estimate) - exact))
        assert errors[-1] <= 3 * estimate.error
    assert errors[2] < errors[0] / 100
    loose = integrate(kink, Interval(0, 1), tolerance=1e-3)
    assert loose.points < 1024
    assert loose.error <= 1e-3 * float(loose)


def test_the_integral_over_a_point_is_the_value_there():
    estimate = integrate(lambda points: points[:, 0] ** 2, Interval(0, 3).side("x=3"))
    assert (float(estimate), estimate.points) == (9.0, 1)


def test_high_dimension_takes_sobol_and_meets_the_tolerance():
    estimate = integrate(cosine_sum, Box([(0, 1)] * 6), rng=0)
    assert estimate.rule.startswith("sobol 16 × ")
    assert estimate.error <= 1e-3 * abs(float(estimate))
    # four standard errors of 16 replicates: odds 0.0012 by Student's t with 15 degrees of freedom, for this fixed seed
    assert abs(float(estimate) - cosine_sum_integral(6)) < 4 * estimate.error
    assert estimate == integrate(cosine_sum, Box([(0, 1)] * 6), rng=0)


@pytest.mark.parametrize("rule", ["sobol", "uniform"])
def test_standard_errors_are_honest(rule):
    """z = (value - truth)/error over 50 seeds, Student's t with 15 degrees of freedom: more than two |z| > 4 has odds
    below 1e-4, and so has a median |z| below 0.3 (0.69 is expected)."""
    region = Box([(0, 1)] * 4)
    runs = [integrate(cosine_sum, region, rule=rule, tolerance=0.0, budget=2**12, rng=seed) for seed in range(50)]
    scores = np.abs([(float(run) - cosine_sum_integral(4)) / run.error for run in runs])
    assert (scores > 4).sum() <= 2
    assert np.median(scores) > 0.3


def test_sobol_has_smaller_errors_than_independent_points():
    region = Box([(0, 1)] * 4)
    sobol, uniform = (
        integrate(cosine_sum, region, rule=rule, tolerance=0.0, budget=2**14, rng=0) for rule in ("sobol", "uniform")
    )
    assert sobol.error < uniform.error / 20
    assert sobol.points == uniform.points == 2**14


def test_several_integrals_at_once():
    both = integrate(lambda z: np.stack([z[:, 0], z[:, 0] ** 2], axis=1), Interval(0, 1))
    np.testing.assert_allclose(both.value, [1 / 2, 1 / 3], rtol=16 * EPS)
    assert both.error.shape == (2,)
    with pytest.raises(ValueError, match="size 1"):
        float(both)


UNIT = Interval(0, 1)
BAD = {
    "count 0": (lambda: gauss_rule(UNIT, 0), "count is 0"),
    "panels": (lambda: gauss_rule(UNIT, 2, panels=0.5), "panels is 0.5"),
    "too many points": (lambda: gauss_rule(Box([(0, 1)] * 8), 16), "Sobol"),
    "not a region": (lambda: integrate(cosine_sum, (0, 1)), "a domain or a side"),
    "not a region for a rule": (lambda: gauss_rule([(0, 1)], 3), "a domain or a side"),
    "rule": (lambda: integrate(cosine_sum, UNIT, rule="guass"), "did you mean 'gauss'"),
    "tolerance": (lambda: integrate(cosine_sum, UNIT, tolerance=-1), "tolerance is -1"),
    "nan tolerance": (lambda: integrate(cosine_sum, UNIT, tolerance=float("nan")), "tolerance"),
    "budget": (lambda: integrate(cosine_sum, UNIT, budget=20), "raise it"),
    "nan values": (lambda: integrate(lambda z: np.where(z[:, 0] < 0.5, np.nan, 1.0), UNIT), "row 0"),
    "number of values": (lambda: integrate(lambda z: np.zeros(3), UNIT), "16, one per point"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
