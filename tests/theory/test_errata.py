"""Errata a to i: each claim about the paper, with a number that fails as printed and one that holds as corrected."""

from math import gamma, log, pi

import numpy as np
import pytest

from rannpde.network.laws import HeavyTailed
from rannpde.theory import GaussianMixture, RidgeletFunction, admissible, growth_factor, parseval_check
from rannpde.theory.dimension import critical_ratio
from rannpde.theory.errata import (
    derivative_gap,
    derivative_integrals,
    growth_bound,
    modal_norm,
    remark_ridgelet_norm,
    truncated_inversion,
)


def test_a_a_function_bounded_below_is_in_no_sobolev_space_of_the_whole_space():
    """‖u_0‖² over (-R, R)^d is at least c² (2R)^d: here with the best case, u_0 = c + a bump that decays."""
    sizes = []
    for reach in (10.0, 100.0, 1000.0):
        x = np.linspace(-reach, reach, 20_001)
        sizes.append(np.trapezoid((1.0 + np.exp(-(x**2))) ** 2, x))
    assert np.diff(np.log(sizes)).min() > 1.5  # it grows by nearly 10 each time; u_0 - c is in every H^k
    x = np.linspace(-50, 50, 20_001)
    assert np.trapezoid(np.exp(-2 * x**2), x) == pytest.approx((pi / 2) ** 0.5)


def lemma_left_side(frequency: float, order: int, p: float, q: float) -> float:
    """The left side of Lemma 1 for cos(ωt) e^(-|z|²/2), n = 2, up to a factor, by Plancherel in b and in z.

    With û = e^(-(s-ω)²/2 - ξ²/2) of one of its two waves and ψ̂ = r^k e^(-r²/2): the integrals of |ûψ̂|² and of
    |ûψ̂' + (s∂_s + ξ∂_ξ)û ψ̂/r|² with the weights (1+s²/r²)^p (1+ξ²/r²)^q r^-2.
    """
    r = np.linspace(0.2, 6.0, 120)[:, None, None]
    s = (frequency + np.linspace(-6, 6, 121))[None, :, None]
    xi = np.linspace(-6, 6, 61)[None, None, :]
    transform = np.exp(-0.5 * (s - frequency) ** 2 - 0.5 * xi**2) * r**order * np.exp(-0.5 * r**2)
    slope = order / r - r - (s * (s - frequency) + xi * xi) / r
    weight = (1 + (s / r) ** 2) ** p * (1 + (xi / r) ** 2) ** q * r**-2.0
    return float((transform**2 * (1 + slope**2) * weight).sum())


def test_b_two_derivatives_in_time_are_not_enough_for_the_residual():
    """∂_t u_N needs p = 1, so H^(1+s_1)_t with s_1 > 3/2: for an oscillating u the left side of Lemma 1 with p = 1 +
    λ_τ
    grows like ω^(2(p+1)), more than ω^5, and ‖u‖² in the printed H^2_t like ω^4."""
    for decay in (0.55, 0.75):
        values = [lemma_left_side(w, 9, 1 + decay, 0.75) for w in (200.0, 800.0)]
        assert log(values[1] / values[0]) / log(4) == pytest.approx(2 * (2 + decay), abs=0.05)


def test_c_data_in_h1_give_no_such_norm_down_to_the_first_time():
    """H^(5/2)_t for u_0 ∈ H^1: sums over modes diverge from t = 0 on and converge from t_0 = 0.01 on."""
    down = [modal_norm(1, 2.5, 0, modes=m) for m in (100, 200, 400)]
    later = [modal_norm(1, 2.5, 0, modes=m, start=0.01) for m in (100, 200, 400)]
    assert np.diff(np.log(down)).min() > 3
    assert later[2] == pytest.approx(later[0], rel=1e-12)


@pytest.mark.parametrize(("k", "finite"), [(5, False), (8, False), (9, True), (10, True)])
def test_d_each_time_derivative_costs_two_in_space(k, finite):
    """H^3_t H^4_x of the velocity: 3·2 + 4 derivatives, one of which the parabolic equation gives, so k ≥ 9."""
    sums = [modal_norm(k, 3, 4, modes=m) for m in (1000, 2000, 4000)]
    growing = np.diff(sums) / sums[0]
    assert (growing[1] < growing[0]) == finite
    assert (growing[0] < 0.1) == finite


def test_e_the_factors_of_the_proof_of_pme_are_twice_the_printed():
    """(a + b)² ≤ 2a² + 2b² with ∫ b² ≤ 12(…)‖e‖² gives 2 + 24(…), and equality is reached for a = b."""
    a = b = np.sqrt(12.0)
    assert (a + b) ** 2 > 1 + 12 * 1 + 12  # 48 against 12(…) + 1 with a² = b² = 12
    assert (a + b) ** 2 <= 2 * a**2 + 2 * b**2 + 1e-12


@pytest.mark.parametrize("order", [5, 9, 14])
def test_f_the_derivative_inequality_fails_near_one(order):
    """|ψ̂'| ≤ |ω||ψ̂| fails exactly on (1, √(M/2)); the integral that it is used for is bounded all the same."""
    low, high = derivative_gap(order)
    omega = np.linspace(1.0, 2 * high, 2001)
    ratio = np.abs(order / omega - omega) / omega
    inside = (omega > low + 1e-9) & (omega < high - 1e-9)
    assert (ratio[inside] > 1).all()
    assert (ratio[omega > high + 1e-9] < 1).all()
    assert derivative_gap(1.0) == (1.0, 1.0)


@pytest.mark.parametrize(("activation", "d"), [("tanh", 1), ("tanh", 3), ("cos", 1), ("cos", 5)])
def test_f_the_integral_bound_holds_in_the_cases_tried(activation, d):
    n = d + 1
    order = n + 5 if (n + 5) % 2 == (activation == "tanh") else n + 6
    left, right = derivative_integrals(admissible(activation, n, order), n)
    assert left < right


def test_g_the_printed_bound_of_log_f_is_false():
    assert growth_factor(1, 1.2) > growth_bound(1, 1.2, as_printed=True)
    values = [(d, r) for d in (1, 2, 5, 20, 100) for r in (0.3, critical_ratio(), 1.2, 3.0)]
    assert all(growth_factor(d, r) < growth_bound(d, r) for d, r in values)
    assert all(growth_bound(d, r) - growth_factor(d, r) < 0.1 for d, r in values if d >= 5)
    # its failure is not confined to small d
    assert all(growth_factor(d, 1.2) > growth_bound(d, 1.2, as_printed=True) for d in (2, 5, 20, 100))


@pytest.mark.parametrize("d", [1, 2, 4])
def test_h_the_printed_norm_of_psi_is_false(d):
    true = remark_ridgelet_norm(d)
    by_class = RidgeletFunction(d + 4, (2 * pi) ** 0.5).fourier_norm() ** 2
    assert true == pytest.approx(by_class, rel=1e-12)
    assert true > 4 * remark_ridgelet_norm(d, as_printed=True)
    # also with the exponent d + 3 of the remark's own text
    assert 2 * pi * gamma(d + 3.5) > remark_ridgelet_norm(d, as_printed=True)


def test_i_inversion_holds_at_points_only_where_the_transform_is_integrable():
    near, far = truncated_inversion(50.0), truncated_inversion(800.0)
    assert far[0] == pytest.approx(0.5, abs=1e-3)  # u is 1 on one side and 0 on the other
    assert far[1] - near[1] == pytest.approx(8 / pi * log(800 / 50), rel=0.02)


def test_erratum_4_needs_a_ridgelet_function_that_is_not_normalised():
    """With K = 1 the printed L_ψ is large enough, for a wide function too; with a large ψ it is not."""
    wide, law = GaussianMixture.gaussian(2, width=4.0), HeavyTailed(0.75, 0.75)
    psi = admissible("tanh", 2, 5)
    normal = parseval_check(wide, psi, law.time_decay or 0.0, law.space_decay, time=8, space=8)
    large = parseval_check(wide, RidgeletFunction(5, 1e4 * psi.amplitude), 0.75, 0.75, time=8, space=8)
    assert normal.ratio_printed < 1 < large.ratio_printed
    assert normal.ratio < 1
    assert large.ratio < 1
