"""Constants and bounds: closed forms against quadrature, inequalities on concrete functions, errata pinned."""

from dataclasses import replace
from math import exp, gamma, inf, pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from draws import draws
from rannpde.domains import SpaceTime
from rannpde.errors import InputError
from rannpde.network.laws import Gaussian, HeavyTailed
from rannpde.theory import (
    FourierTarget,
    GaussianMixture,
    RidgeletFunction,
    SmoothnessWarning,
    admissible,
    best_decay,
    critical_ratio,
    estimator,
    fitted_error,
    growth,
    growth_exponent,
    growth_factor,
    navier_stokes_corollary,
    navier_stokes_losses,
    normaliser,
    optimal_law,
    paired_network,
    parseval_check,
    parseval_constant,
    parseval_constants,
    porous_medium_corollary,
    porous_medium_loss,
    required_width,
    theorem_bound,
)
from rannpde.theory.corollaries import embedding_constant
from rannpde.theory.dimension import log_absolute_integral, log_parseval_left

UNIT = GaussianMixture.gaussian(2)
DOMAIN = SpaceTime(t=(0, 1), x=(-1, 1))
LAW = HeavyTailed(0.75, 0.75)


# --------------------------------------------------------------------------------------------------- constants


@pytest.mark.parametrize(
    ("law", "dim"), [(LAW, 2), (HeavyTailed(1.0, 2.0), 4), (HeavyTailed(0.6, 2.7), 6), (HeavyTailed(None, 2.0), 3)]
)
def test_normaliser_closed_form_is_the_integral(law, dim):
    assert normaliser(law, dim) == pytest.approx(normaliser(law, dim, by_quadrature=True), rel=1e-10)


@pytest.mark.parametrize("order", [6, 9])
@pytest.mark.parametrize(("p", "q"), [(0.0, 0.0), (0.75, 0.75), (1.5, 2.25)])
def test_parseval_constants_agree_with_quadrature(order, p, q):
    psi, dim = RidgeletFunction(order, 0.3), 2

    def integral(values, power):
        def integrand(w):
            return values(w) ** 2 * max(1.0, w ** (-2 * (p + q))) * w ** (-float(power))

        return 2 * quad(integrand, 0, 14, points=[1.0], epsabs=0, epsrel=1e-12, limit=200)[0]

    def hat(w):
        return 0.3 * w**order * exp(-0.5 * w * w)

    def slope(w):
        return 0.3 * (order * w ** (order - 1) - w ** (order + 1)) * exp(-0.5 * w * w)

    exact = parseval_constants(psi, dim, p, q)
    assert exact.first == pytest.approx(integral(hat, dim), rel=1e-10)
    assert exact.second == pytest.approx(integral(slope, dim), rel=1e-10)
    assert exact.third == pytest.approx(2 * integral(hat, dim + 2), rel=1e-10)


def test_parseval_constants_are_infinite_below_the_order_needed():
    assert parseval_constants(RidgeletFunction(3, 1.0), 2, 1.0, 1.0).third == inf


def test_printed_lemma_constant_is_the_printed_formula():
    psi = admissible("tanh", 2, 5)
    m = (2 * 0.75 + 2 * 0.75 + 1 + 3) / 2
    expected = (4 * pi + psi.norm()) * (1 + 4 * 1 + 4 * 2) + 4 * pi * (m + 1) ** 2 + psi.norm(1) ** 2
    assert parseval_constant(psi, 2, 0.75, 0.75, time=1, space=2, as_printed=True) == pytest.approx(expected, rel=1e-14)


# ------------------------------------------------------------------------------------------------------- lemma


@pytest.mark.parametrize(("d", "p", "q"), [(1, 0.75, 0.75), (1, 2.0, 1.0), (2, 0.75, 1.25)])
def test_left_side_of_the_lemma_agrees_with_its_closed_integral(d, p, q):
    target, psi = GaussianMixture.gaussian(d + 1), admissible("cos", d + 1, 10)
    check = parseval_check(target, psi, p, q, time=1, space=1)
    assert float(check.left) == pytest.approx(exp(log_parseval_left(psi, d + 1, p, q)), rel=5 * 1e-3)


@settings(max_examples=draws(6, 15), deadline=None)
@given(
    width=st.floats(0.5, 2.0),
    centre=st.floats(-1.0, 1.0),
    powers=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    p=st.sampled_from([0.0, 0.75, 1.0]),
    q=st.sampled_from([0.0, 0.75, 2.0]),
)
def test_corrected_lemma_holds(width, centre, powers, p, q):
    target = GaussianMixture.gaussian(2, width=width, centre=centre, powers=powers)
    check = parseval_check(target, admissible("tanh", 2, 7), p, q, time=1, space=1)
    assert check.ratio <= 1 + 5 * check.left.error / float(check.left)


def test_printed_lemma_fails_for_wide_functions_and_large_amplitudes():
    """The printed L_ψ has ‖ψ‖(1+4T+4R) where the proof gives ‖ψ‖²(…+4T²+4R²): a u of width 4 in [-16, 16]² shows it."""
    psi, wide = admissible("tanh", 2, 5), GaussianMixture.gaussian(2, width=4.0)
    checks = [
        parseval_check(wide, RidgeletFunction(5, scale * psi.amplitude), 0.75, 0.75, time=8, space=8)
        for scale in (1.0, 1e4)
    ]
    assert checks[1].ratio == pytest.approx(checks[0].ratio, rel=1e-9)  # the corrected form is homogeneous
    assert checks[0].ratio < 1
    assert checks[1].ratio_printed > 2


def test_compactly_supported_form_is_above_the_one_with_norms():
    """A Gaussian of width 0.2 lives in [-2, 2]²: the product rule's L_ψ must dominate the sharper right-hand side."""
    target, psi = GaussianMixture.gaussian(2, width=0.2), admissible("tanh", 2, 7)
    check = parseval_check(target, psi, 1.0, 1.0, time=1, space=1)
    crude = parseval_constant(psi, 2, 1.0, 1.0, time=1, space=1) * target.squared_norm(2, 2)
    assert float(check.left) < check.right < crude


# ----------------------------------------------------------------------------------------------------- theorem


@pytest.mark.parametrize(
    ("name", "p", "q", "order"), [("tanh", 0, 0, 5), ("cos", 0, 0, 4), ("tanh", 1, 1, 7), ("cos", 2, 2, 8)]
)
def test_corrected_theorem_is_above_the_variance(name, p, q, order):
    choice = estimator(UNIT, LAW, activation=name, time_order=p, space_order=q, order=order)
    bound = theorem_bound(choice, DOMAIN)
    assert float(choice.variance(DOMAIN, budget=2**16)) < bound.corrected < inf


def test_printed_theorem_claims_no_error_in_l2():
    assert theorem_bound(estimator(UNIT, LAW), DOMAIN).printed == 0
    assert theorem_bound(estimator(UNIT, LAW, time_order=1, order=7), DOMAIN).printed > 0


def test_missing_smoothness_is_named():
    rough = FourierTarget(2, UNIT.fourier, bandwidth=9.0, radius=7.0, smoothness=(1.0, 9.0))
    with pytest.warns(SmoothnessWarning, match=r"1 derivatives in time.*needs 1\.75.*s_1 is short of 0\.75"):
        theorem_bound(estimator(rough, LAW), DOMAIN)
    rough = replace(rough, smoothness=(9.0, 1.5))
    with pytest.warns(SmoothnessWarning, match="s_2"):
        theorem_bound(estimator(rough, LAW), DOMAIN)


def test_bounds_are_for_heavy_tails_alone():
    law = optimal_law(UNIT, DOMAIN, activation="cos")
    with pytest.raises(InputError, match="HeavyTailed"):
        theorem_bound(estimator(UNIT, law, activation="cos"), DOMAIN)


# -------------------------------------------------------------------------------------------------------- width


def test_required_width_keeps_its_promise():
    """At the exact width the error exceeds the target in at most δ of the runs (here never in 40; Markov is crude)."""
    choice = estimator(UNIT, LAW, activation="cos")
    width = required_width(UNIT, LAW, 0.5, 0.1, domain=DOMAIN, activation="cos")
    points, size = DOMAIN.sample(256, rng=0, method="sobol"), choice.size(DOMAIN)
    errors = [
        np.sqrt(DOMAIN.measure * np.square(choice.network(width.exact, rng=seed)(points) - UNIT(points)).mean())
        for seed in range(40)
    ]
    assert np.mean(np.array(errors) > 0.5 * size) <= 0.1
    assert width.printed == 0
    assert width.exact < width.bound
    halved = required_width(UNIT, LAW, 0.25, 0.1, domain=DOMAIN, activation="cos").exact
    assert halved == pytest.approx(4 * width.exact, abs=4)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0, float("nan"), True])
def test_probabilities_outside_the_unit_interval_are_refused(delta):
    with pytest.raises(InputError, match="delta"):
        required_width(UNIT, LAW, 0.1, delta, domain=DOMAIN)


def test_errors_that_are_not_positive_are_refused():
    with pytest.raises(InputError, match="error"):
        required_width(UNIT, LAW, 0.0, 0.1, domain=DOMAIN)


def test_least_squares_does_better_than_the_unbiased_network():
    choice = estimator(UNIT, LAW)
    unbiased = np.sqrt(float(choice.variance(DOMAIN, budget=2**16)) / 200)
    assert fitted_error(choice, DOMAIN, 200, penalty=1e-10, law=Gaussian(1.0), rng=0) < 1e-2 * unbiased


# -------------------------------------------------------------------------------------------------- corollaries


def test_losses_vanish_for_solutions():
    class Constant:
        """u = 3, and the pair ρ = 2, u = 3: both solve their equations."""

        outputs = 1

        def derivative(self, points, index):
            values = np.full((len(points), 2), [2.0, 3.0]) * (sum(index) == 0)
            return values if self.outputs == 2 else values[:, 1]

    pair = Constant()
    pair.outputs = 2
    assert float(porous_medium_loss(Constant(), DOMAIN)) == 0
    assert [float(loss) for loss in navier_stokes_losses(pair, DOMAIN)] == [0, 0]


def test_porous_medium_loss_of_a_parabola():
    class Parabola:
        """u = t + x²: ∂_t u - Δ(u²) = 1 - 2(u u_xx + u_x²) = 1 - 4t - 12x²."""

        def derivative(self, points, index):
            t, x = points.T
            table = {(0, 0): t + x**2, (1, 0): 1 + 0 * t, (0, 1): 2 * x, (0, 2): 2 + 0 * t}
            return table[tuple(index)]

    # over t in (0, 1), x in (-1, 1): 2[1 - 4 + 16/3 - 8 + 16 + 144/5] by expanding (1 - 4t - 12x²)²
    expected = 2 * (1 + 16 / 3 + 144 / 5 - 4 - 8 + 16)
    assert float(porous_medium_loss(Parabola(), DOMAIN)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("exponent", [2, 3])
def test_porous_medium_corollary_bounds_the_residual(exponent):
    choice = estimator(UNIT, LAW, activation="cos", time_order=1, space_order=2)
    bound = porous_medium_corollary(choice, choice.network(500, rng=0), DOMAIN, 0.1, exponent=exponent)
    assert bound.difference < bound.from_variance < bound.corrected
    assert bound.printed > 0 if exponent == 2 else np.isnan(bound.printed)  # the paper gives C_m for m = 2 alone


def test_navier_stokes_corollary_bounds_the_residual():
    density = estimator(UNIT, LAW, activation="cos", time_order=1, space_order=1)
    velocity = estimator(GaussianMixture.gaussian(2, centre=0.2), LAW, activation="cos", time_order=1, space_order=2)
    network = paired_network(density.network(500, rng=0), velocity.network(500, rng=1))
    bound = navier_stokes_corollary(density, velocity, network, DOMAIN, 0.1)
    assert bound.difference < bound.from_variance < bound.corrected
    total = sum(float(loss) for loss in navier_stokes_losses(network, DOMAIN))
    assert bound.loss == pytest.approx(total)


def test_corollaries_refuse_norms_that_lack_derivatives():
    choice = estimator(UNIT, LAW, activation="cos")
    with pytest.raises(InputError, match="at least"):
        porous_medium_corollary(choice, choice.network(10, rng=0), DOMAIN, 0.1)


def test_embedding_constant_is_sharp_enough():
    """‖f‖_∞ ≤ C ‖f‖_{H^1(R)}: equality for e^(-|x|), whose norm is √2 with sup 1."""
    assert embedding_constant(1.0, 1) == pytest.approx(1 / np.sqrt(2), rel=1e-14)


# ------------------------------------------------------------------------------------------------------- growth


def test_growth_remark_as_printed():
    assert growth_factor(3, 1.2) == pytest.approx(
        np.log(pi**1.5 * gamma(3.6) / gamma(5.1) * np.sqrt(gamma(6.5))), rel=1e-13
    )
    assert growth_exponent(pi / np.e) < 0
    assert critical_ratio() < pi / np.e
    assert abs(growth_exponent(critical_ratio())) < 1e-12


def test_absolute_integral_agrees_with_quadrature():
    """∫∫ |R_ψ u| on R²: radial in w, so 2π ∫ r dr ∫ |R| db."""
    psi = admissible("cos", 2, 6)

    def over_biases(r):
        b = np.linspace(-14, 14, 20001) * np.sqrt(1 + r * r)
        values = UNIT.ridgelet(psi, np.array([[r], [0.0]]) * np.ones_like(b), b)
        return np.abs(values).sum() * (b[1] - b[0])

    total = quad(lambda x: over_biases(np.sinh(x)) * np.sinh(x) * np.cosh(x) * 2 * pi, 0, 8, limit=100)[0]
    assert exp(log_absolute_integral(psi, 2)) == pytest.approx(total, rel=1e-5)  # kinks in b


def test_true_growth_is_slow_for_small_decay_and_exponential_for_the_recommended_one():
    """What the remark promises for λ = π/e is not so: the order of ψ must grow with λ_a, and the moment with it."""
    low, high = growth(10, "tanh"), growth(40, "tanh")
    assert high.moment - low.moment < 3 * np.log(4)  # about polynomial
    assert high.least - low.least < 3 * np.log(4)
    low, high = (growth(d, "tanh", ratio=pi / np.e) for d in (10, 40))
    assert high.printed < low.printed
    assert high.moment - low.moment > 0.5 * 30
    assert low.least < low.moment < low.bound


def test_best_decay_improves_on_the_default():
    best = best_decay(UNIT, DOMAIN, activation="cos", orders=2)
    default = estimator(UNIT, LAW, activation="cos")
    assert best[0].variance < float(default.variance(DOMAIN))
    assert best[0].law.time_decay > 0.5
