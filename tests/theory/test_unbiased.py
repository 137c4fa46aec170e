"""The network of Theorem 1: unbiased, of the computed variance, of slope -1/2; infinite variance refused.

Statistical tests have fixed seeds. Their odds of a false alarm, were the seed free, are stated beside them.
"""

from functools import cache

import numpy as np
import pytest

from draws import covering, some
from rannpde.domains import Box, SpaceTime, gauss_rule
from rannpde.domains.norms import derivative_indices
from rannpde.errors import InputError
from rannpde.network.laws import Gaussian, HeavyTailed, Uniform
from rannpde.network.network import Network
from rannpde.theory import (
    FourierTarget,
    GaussianMixture,
    admissible,
    dual_transform,
    estimator,
    least_order,
    measured_errors,
    optimal_law,
    reconstruct,
    ridgelet_transform,
    unbiased_network,
    variance_limit,
)
from rannpde.theory.dimension import log_moment
from rannpde.theory.parameter_space import Proposal
from rannpde.theory.ridgelet_function import panels

UNIT = GaussianMixture.gaussian(2)
LAW = HeavyTailed(0.75, 0.75)


def cylinder(d):
    return SpaceTime(t=(0, 1), x=[(-1, 1)] * d)


def law_for(d):
    return HeavyTailed(0.75, 0.5 * d + 0.25)


# ------------------------------------------------------------------------------------------------ reconstruction


@pytest.mark.parametrize(("name", "dim"), covering(["tanh", "sigmoid", "cos", "gaussian"], [2, 3]))
def test_dual_of_the_transform_is_the_function(name, dim):
    """u = R†R_ψ u by a deterministic rule; what is left beyond |w| = 8 is of order 8^(n-k) ≤ 8^-8."""
    points = np.random.default_rng(0).uniform(-1, 1, (3, dim))
    assert reconstruct(GaussianMixture.gaussian(dim), name, points).error < 2e-5


def test_reconstruction_of_a_mixture_with_a_polynomial():
    target = UNIT + (-0.5) * GaussianMixture.gaussian(2, width=0.8, centre=0.3, powers=(1, 0))
    assert (
        reconstruct(target, "cos", np.array([[0.2, -0.4], [0.5, 0.1]]), order=12, reach=16.0, fineness=2).error < 1e-6
    )


def test_dual_transform_by_sobol_points():
    """The dual of the transform within 5 standard errors of u, which are below 1 %."""
    psi = admissible("cos", 2, 8)
    points = np.array([[0.0, 0.3], [0.5, -0.5]])
    dual = dual_transform(
        lambda w, b: ridgelet_transform(UNIT, psi, w, b), "cos", points, Proposal.matching(UNIT, psi, 4.0)
    )
    assert (np.abs(dual.value - UNIT(points)) < 5 * dual.error + 1e-6).all()
    assert (dual.error < 1e-2).all()


# --------------------------------------------------------------------------------------------------------- mean


@pytest.mark.parametrize(
    ("name", "d", "law"),
    some([("tanh", 1, LAW), ("sigmoid", 1, LAW), ("cos", 1, LAW), ("gaussian", 1, LAW), ("tanh", 2, law_for(2))], 3),
)
def test_mean_is_the_function_with_its_derivatives(name, d, law):
    """At 100 points the mean over 400 seeds is within 4 standard errors, and so is that of ∂_t ∂_x.

    False alarm: 100 points are strongly dependent; by the union bound below 200 · 6.3e-5 = 1.3 % for normal means.
    """
    target = GaussianMixture.gaussian(d + 1)
    choice = estimator(target, law, activation=name, time_order=1, space_order=1)
    points = cylinder(d).sample(100, rng=1)
    for index in ((0,) * (d + 1), (1, 1) + (0,) * (d - 1)):
        values = np.array([choice.network(500, rng=seed).derivative(points, index) for seed in range(400)])
        error = np.abs(values.mean(axis=0) - target.derivative(points, index))
        assert (error < 4 * values.std(axis=0, ddof=1) / np.sqrt(400)).all()


def test_mean_of_a_function_given_by_its_transform():
    """The same for a FourierTarget; false alarm below 0.7 %."""
    target = FourierTarget(2, UNIT.fourier, bandwidth=9.0, radius=7.0)
    points = cylinder(1).sample(100, rng=1)
    values = np.array([unbiased_network(target, LAW, 100, rng=seed, activation="cos")(points) for seed in range(100)])
    error = np.abs(values.mean(axis=0) - UNIT(points))
    assert (error < 4 * values.std(axis=0, ddof=1) / 10).all()


def test_a_wrong_constant_would_be_seen():
    """The test above can fail: with the printed K the mean is off by far more than its standard error."""
    choice = estimator(UNIT, LAW, activation="cos")
    points = cylinder(1).sample(100, rng=1)
    values = np.array([choice.network(500, rng=seed)(points) for seed in range(400)]) / (2 * np.pi)
    error = np.abs(values.mean(axis=0) - UNIT(points))
    assert (error > 4 * values.std(axis=0, ddof=1) / np.sqrt(400)).any()


def test_network_is_an_ordinary_one(tmp_path):
    network = unbiased_network(UNIT, LAW, 50, rng=0)
    assert isinstance(network, Network)
    assert network.save(tmp_path / "network.rann").exists()
    again = unbiased_network(UNIT, LAW, 50, rng=np.random.default_rng(0))
    assert np.array_equal(network.coefficients, again.coefficients)


# ----------------------------------------------------------------------------------------------------- variance


@pytest.mark.parametrize(("name", "p", "q"), [("tanh", 0, 0), ("cos", 0, 0), ("gaussian", 1, 1)])
def test_variance_integral_agrees_with_tensor_quadrature(name, p, q):
    """Sobol points in (w, b, z) against a product rule in (τ, a, b) and Gauss points in z, which shares no code."""
    domain, law = cylinder(1), HeavyTailed(1.0, 1.0)
    choice = estimator(UNIT, law, activation=name, time_order=p, space_order=q, order=9 if name == "tanh" else 8)
    x, wx = panels(0.0, 4.0, 8, 6)  # τ = sinh x: the tail beyond sinh 4 = 27 is below 27^-7
    tau, dtau = np.sinh(x), np.cosh(x) * wx
    t, a = (m.ravel() for m in np.meshgrid(tau, np.concatenate([-tau, tau]), indexing="ij"))
    mass = 2 * np.outer(dtau, np.concatenate([dtau, dtau])).ravel()  # (w, b) and (-w, -b) count alike
    points, weights = gauss_rule(domain, 6)
    offsets = np.linspace(-11, 11, 111)
    total = 0.0
    for offset in offsets:
        w = np.array([t, a])
        b = offset * np.sqrt(1 + t**2 + a**2)
        density = np.sqrt(1 + t**2 + a**2) * (offsets[1] - offsets[0]) * mass
        square = UNIT.ridgelet(choice.psi, w, b) ** 2 / np.exp(law.log_density(w, b)) * density
        for index in derivative_indices(domain, p, q):
            ridge = choice.activation(points @ w - b, sum(index)) ** 2 * t ** (2 * index[0]) * a ** (2 * index[1])
            total += weights @ ridge @ square
    # the Gauss rule in z is the coarse part: σ(w·z - b)² has transitions 1/|w| wide
    assert float(choice.second_moment(domain)) == pytest.approx(total, rel=0.01)


@pytest.mark.parametrize("p", [0, 1])
def test_mean_square_error_times_width_is_the_variance(p):
    """N E‖u - u_N‖² for N = 8 … 256 against the integral, within 4 standard errors over 16 pools each.

    False alarm: 6 strongly dependent comparisons, below 6 · 6.3e-5 for normal logarithms.
    """
    domain = cylinder(1)
    choice = estimator(UNIT, LAW, activation="cos", time_order=p, space_order=p, order=6)
    measured = measured_errors(choice, domain, [8, 32, 256], pools=16, rng=0)
    logs = np.log(measured.errors * np.sqrt(measured.widths)) - 0.5 * np.log(float(choice.variance(domain)))
    assert (np.abs(logs) < 4 * measured.scatter + 0.01).all()


@pytest.mark.parametrize(("d", "orders"), covering([1, 2, 3, 4, 5], list(np.ndindex(3, 3))))
def test_slope_is_one_half(d, orders):
    """-0.50 ± 0.05 in L² and H^p_t H^q_x; the 95 % interval of these slopes has half-width 0.01 … 0.03 (4 pools)."""
    p, q = orders
    choice = estimator(GaussianMixture.gaussian(d + 1), law_for(d), time_order=p, space_order=q)
    measured = measured_errors(choice, cylinder(d), [4, 8, 16, 32, 64], pools=4, rng=1)
    assert abs(measured.slope + 0.5) < 0.05
    assert abs(measured.slope + 0.5) < max(3 * measured.halfwidth, 0.02)


# -------------------------------------------------------------------------------------------------- optimal law


@cache
def optimal(name, p=0):
    """The law of least variance on the cylinder of one dimension."""
    return optimal_law(UNIT, cylinder(1), activation=name, time_order=p, space_order=p)


@pytest.mark.parametrize(("name", "p"), some([("tanh", 0), ("gaussian", 0), ("cos", 1)], 1))
def test_optimal_law_beats_the_best_heavy_tails(name, p):
    domain = cylinder(1)
    law = optimal(name, p)
    best = estimator(UNIT, law, activation=name, time_order=p, space_order=p)
    variance = float(best.variance(domain, budget=2**16))
    heavy = estimator(UNIT, LAW, activation=name, time_order=p, space_order=p)
    assert variance < 0.5 * float(heavy.variance(domain, budget=2**16))
    # Z is the integral with the floor in N, so that the second moment lies between Z'² (without) and Z²
    assert variance + best.size(domain) ** 2 < 1.05 * float(law.normaliser) ** 2


@pytest.mark.slow
def test_optimal_law_is_sampled_from_its_density():
    """E_π*[f/π*] = ∫ f for a normal density f of (w, b): a test of draws and density together, 4 standard errors."""
    law = optimal("tanh")
    weights, biases = law.sample(40000, 2, rng=0)
    scales = np.array([[1.0], [1.0]])
    f = np.exp(-0.5 * np.square(weights / scales).sum(axis=0) - 0.5 * (biases / 2) ** 2) / ((2 * np.pi) ** 1.5 * 2)
    # f/π* is unbounded where R has zeros, so the bounded f·1{|R|N > floor} is compared with its own integral
    rng = np.random.default_rng(1)
    w, b = rng.standard_normal((2, 40000)), 2 * rng.standard_normal(40000)
    inside, outside = law.unnormalised(weights, -biases) > 0.02, law.unnormalised(w, -b) > 0.02
    ratio = np.where(inside, f / np.exp(law.log_density(weights, biases)), 0.0)
    spread = np.hypot(ratio.std(), outside.std()) / 200
    assert abs(ratio.mean() - outside.mean()) < 4 * spread + 1e-3


def test_unbiased_under_the_optimal_law():
    """100 points, mean over 100 seeds within 4 standard errors; false alarm below 0.7 %."""
    law = optimal("cos")
    choice = estimator(UNIT, law, activation="cos")
    points = cylinder(1).sample(100, rng=1)
    values = np.array([choice.network(200, rng=seed)(points) for seed in range(100)])
    error = np.abs(values.mean(axis=0) - UNIT(points))
    assert (error < 4 * values.std(axis=0, ddof=1) / 10).all()


# ------------------------------------------------------------------------------------------------------ refusals


def test_least_order_follows_the_decay_exponents():
    assert variance_limit("tanh", HeavyTailed(1.0, 1.0), 2) == 3.5
    assert variance_limit("gaussian", HeavyTailed(1.0, 1.0), 2) == 3.0
    assert variance_limit("tanh", HeavyTailed(1.0, 1.0), 2, 1, 1) == 5.0  # σ'' decays: no extra half
    assert variance_limit("cos", HeavyTailed(1.0, 1.0), 2, 1, 1) == 5.5
    assert least_order("tanh", HeavyTailed(1.0, 1.0), 2, 1, 1) == 7


def test_infinite_variance_is_seen_below_the_limit_and_not_above():
    """∫∫ |R|²/π over |w| < r grows with r for k = 2 (limit 3.5) and settles for k = 4."""
    law = HeavyTailed(1.0, 1.0)
    finite, infinite = (np.exp(log_moment(admissible("cos", 2, k), law, 2)) for k in (4, 2))
    assert infinite > 1e6 * finite  # the grid of log_moment ends at |w| = sinh 40: the divergence shows


@pytest.mark.parametrize(
    ("law", "options", "message"),
    [
        (HeavyTailed(1.0, 1.0), {"activation": "cos", "order": 2}, r"> 3.5 for a finite variance.*order=4"),
        (HeavyTailed(1.0, 1.0), {"order": 3}, r"> 3.5 for a finite variance"),
        (HeavyTailed(1.0, 0.5), {}, "space_decay"),
        (Gaussian(1.0), {}, r"infinite variance.*every order"),
        (Uniform(1.0), {}, r"infinite variance or a bias"),
        (LAW, {"activation": "relu", "space_order": 1}, r"not in T_1.*largest admissible k: none"),
        (LAW, {"activation": "hard_tanh", "time_order": 1}, r"not in T_1.*jumps.*largest admissible k: 0"),
        (LAW, {"activation": "softplus"}, r"unbounded"),
        (LAW, {"activation": "tangh"}, "did you mean 'tanh'"),
        (LAW, {"time_order": -1}, "whole number"),
    ],
)
def test_bad_choices_are_refused_with_the_reason(law, options, message):
    with pytest.raises(InputError, match=message):
        unbiased_network(UNIT, law, 10, rng=0, **options)


def test_decay_at_the_limit_is_refused_by_the_law():
    with pytest.raises(InputError, match="time_decay"):
        HeavyTailed(0.5, 1.0)


def test_domains_of_another_dimension_are_refused():
    with pytest.raises(InputError, match="dimension of the domain"):
        estimator(UNIT, LAW).variance(Box([(-1, 1)] * 3))
