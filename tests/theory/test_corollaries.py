"""Corollaries on true solutions: losses vanish there, both parts hold, for real m and for p = ρ^γ, μ = ρ^α; traces."""

import numpy as np
import pytest

from draws import covering, some
from rannpde.domains import Ball, Box, Interval, SpaceTime, gauss_rule, integrate, sobolev_norm
from rannpde.domains.norms import derivative_indices
from rannpde.errors import InputError
from rannpde.fitting.fit import fit
from rannpde.network.features import RandomFeatures
from rannpde.network.laws import Gaussian, HeavyTailed
from rannpde.network.network import Network
from rannpde.pde.zoo.barenblatt import Barenblatt
from rannpde.theory import (
    EulerianWave,
    GaussianMixture,
    PeriodicFlow,
    Reflection,
    barenblatt_target,
    boundary_loss,
    boundary_trace,
    box_target,
    condition_bounds,
    continuity_corollary,
    estimator,
    face_constant,
    initial_loss,
    initial_trace,
    navier_stokes_approximation,
    navier_stokes_corollary,
    navier_stokes_losses,
    paired_network,
    porous_medium_approximation,
    porous_medium_corollary,
    porous_medium_loss,
    separable_target,
    theorem_bound,
)
from rannpde.theory.corollaries import mean_value
from rannpde.theory.losses import Gas, power_derivative
from rannpde.theory.table import order_of_finite_bound

LAW = HeavyTailed(0.75, 0.75)
ORDER = order_of_finite_bound("tanh", LAW, 2, 1, 2)
MEDIUM = SpaceTime(t=(1.0, 2.0), x=(0, 1))
GAS = SpaceTime(t=(0.0, 0.5), x=(0, 1))


@pytest.fixture(scope="module")
def medium():
    target = barenblatt_target(Barenblatt((0.5,), 1.0), MEDIUM, margin=[0.9, 1.5])
    return estimator(target, LAW, time_order=1, space_order=2, order=ORDER)


@pytest.fixture(scope="module")
def flow():
    wave = EulerianWave()
    fields = [box_target(lambda z, k=k: wave(z)[:, k], GAS, margin=0.7, count=96) for k in range(2)]
    return [estimator(field, LAW, time_order=1, space_order=2, order=ORDER) for field in fields]


# ----------------------------------------------------------------------------------------------- losses vanish there


@pytest.mark.parametrize(("exponent", "d"), covering([1.5, 2, 2.5, 3, 4.25], [1, 2]))
def test_the_loss_vanishes_on_barenblatt_solutions_of_every_exponent(d, exponent):
    domain = SpaceTime(t=(1.0, 2.0), x=[(0.3, 0.7)] * d if d > 1 else (0.3, 0.7))
    assert float(porous_medium_loss(Barenblatt((0.5,) * d, 1.0, exponent), domain, exponent=exponent)) < 1e-26


@pytest.mark.parametrize(("gamma", "alpha"), [(0.0, 0.0), (1.4, 0.0), (2.0, 1.0), (0.5, 0.7), (0.0, 0.5)])
def test_the_losses_vanish_on_travelling_waves_of_every_gas(gamma, alpha):
    wave = EulerianWave(gamma=gamma, alpha=alpha)
    losses = navier_stokes_losses(wave, GAS, gamma=gamma, alpha=alpha)
    assert max(map(float, losses)) < 1e-24
    z, h = GAS.sample(20, rng=0), 1e-4
    for index, raised in (((0, 0), (1, 0)), ((0, 1), (0, 2)), ((1, 1), (1, 2)), ((0, 3), (0, 4))):
        step = h * (np.array(raised) - np.array(index))
        slope = (wave.derivative(z + step, index) - wave.derivative(z - step, index)) / (2 * h)
        assert np.abs(slope - wave.derivative(z, raised)).max() < 1e-6


def test_the_pressureless_wave_is_an_exponential():
    wave = EulerianWave()
    xi = np.linspace(-2, 2, 9)
    found = wave(np.column_stack([np.zeros(9), xi]))
    scale = -wave.slope * wave.viscosity / wave.flux
    expected = wave.velocity - scale + scale * np.exp(-wave.flux * xi / wave.viscosity)
    assert np.abs(found[:, 1] - expected).max() < 1e-10
    assert np.abs(found[:, 0] * (wave.speed - found[:, 1]) - wave.flux).max() < 1e-12


def test_the_computed_flow_solves_its_equations_and_keeps_its_mass():
    flow = PeriodicFlow(0.2, 1.4, 0.5, times=(0.0, 0.3), modes=32, degree=24)
    domain = SpaceTime(t=(0.02, 0.3), x=(0, 1))
    losses = navier_stokes_losses(flow, domain, viscosity=0.2, gamma=1.4, alpha=0.5)
    assert max(map(float, losses)) < 1e-9
    x = np.arange(64) / 64
    masses = [flow(np.column_stack([np.full(64, t), x]))[:, 0].mean() for t in (0.0, 0.1, 0.3)]
    assert np.ptp(masses) < 1e-10


def test_powers_need_positive_functions_only_where_they_are_no_polynomials():
    signed = GaussianMixture.gaussian(2, powers=(0, 1), centre=0.5)
    assert float(porous_medium_loss(signed, GAS, exponent=3)) > 0
    with pytest.raises(InputError, match="> 0"):
        porous_medium_loss(signed, GAS, exponent=2.5)
    for bad in (1.0, 0.5, np.inf, "2"):
        with pytest.raises(InputError, match="exponent"):
            porous_medium_loss(signed, GAS, exponent=bad)
    with pytest.raises(InputError, match="viscosity"):
        Gas(viscosity=0.0)
    with pytest.raises(InputError, match="gamma"):
        Gas(gamma=-1.0)


def test_mean_values_are_divided_differences():
    a, b = np.array([1.5, 2.0, 0.7]), np.array([1.0, 2.5, 0.9])
    for power in (1.5, 2.0, 3.0, 4.5):
        slope = mean_value(a, b, lambda w, p=power: power_derivative(w, p, 1))
        assert np.abs(slope - (a**power - b**power) / (a - b)).max() < 1e-12


# ------------------------------------------------------------------------------------------------------- the
# corollaries


def test_first_part_of_both_corollaries_is_the_theorem(medium, flow):
    alone = porous_medium_approximation(medium, MEDIUM)
    assert alone.corrected == theorem_bound(medium, MEDIUM).corrected
    both = navier_stokes_approximation(*flow, GAS)
    assert both.corrected == pytest.approx(sum(theorem_bound(one, GAS).corrected for one in flow))
    other = estimator(flow[1].target, LAW, time_order=1, space_order=1)
    with pytest.raises(InputError, match="same norm"):
        navier_stokes_approximation(flow[0], other, GAS)


@pytest.mark.parametrize(("p", "q"), some([(1, 1), (0, 0), (1, 0)], 1))
def test_the_theorem_with_its_extension_bounds_that_of_the_continued_function(p, q):
    """C_Ω and the norm of u, against the norm of ũ itself; with one derivative too few the operator refuses."""
    domain, reflection = SpaceTime(t=(0, 1), x=(-1, 1)), Reflection(2, 1.0)
    u = GaussianMixture.gaussian(2)
    order = order_of_finite_bound("tanh", LAW, 2, p, q)
    setting = {"time_order": p, "space_order": q, "order": order}
    continued = box_target(u, domain, reflection=reflection, count=128)
    known = estimator(u, LAW, **setting)
    own = theorem_bound(estimator(continued, LAW, **setting), domain).corrected
    by_operator = theorem_bound(known, domain, extension=reflection)
    assert 0 < own < by_operator.corrected < np.inf
    orders = (p + 2, q + 2)  # λ_τ = λ_a = 3/4, rounded up, and one more
    factor = reflection.constant(domain, *orders)
    assert by_operator.printed == pytest.approx(factor * theorem_bound(known, domain).printed)
    assert porous_medium_approximation(known, domain, extension=reflection).corrected == by_operator.corrected
    both = navier_stokes_approximation(known, known, domain, extension=reflection)
    assert both.corrected == pytest.approx(2 * by_operator.corrected)
    with pytest.raises(InputError, match=r"take Reflection\(order=1\)" if p == q == 0 else "take Reflection"):
        theorem_bound(known, domain, extension=Reflection(0))


def squared_error(network, targets, domain, orders):
    """Σ over fields of ‖e‖² in H^1_t H^q_x by Gauss's rule."""
    points, weights = gauss_rule(domain, 40)
    total = 0.0
    for column, (target, order) in enumerate(zip(targets, orders, strict=True)):
        for index in derivative_indices(domain, 1, order):
            wrong = network.derivative(points, index).reshape(len(points), -1)[:, column]
            total += float(weights @ (wrong - target.derivative(points, index)) ** 2)
    return total


def test_porous_medium_corollary_on_a_true_solution(medium):
    """The loss is the difference, since u solves its equation; the coefficient bounds every draw."""
    theorem = theorem_bound(medium, MEDIUM).corrected
    for seed in range(2):
        network = medium.network(200, rng=seed)
        # the variance, 8e3, is by quadrature, to one digit
        bound = porous_medium_corollary(medium, network, MEDIUM, 0.1, variance=8e3, theorem=theorem)
        assert bound.loss == pytest.approx(bound.difference, rel=1e-2)
        assert bound.difference <= bound.coefficient * squared_error(network, [medium.target], MEDIUM, [2])
        assert bound.difference < bound.from_variance < bound.corrected < bound.printed


@pytest.mark.parametrize("exponent", some([1.5, 2.5, 3, 4.25], 2))
def test_the_coefficient_holds_for_every_exponent(medium, exponent):
    """∫ |𝓝(u_N) - 𝓝(u)|² ≤ c ‖e‖² is no matter of probability; powers that are no polynomials need u_N > 0."""
    features = RandomFeatures.sample(width=25, law=Gaussian(1.5), rng=0, domain=MEDIUM, constant=True)
    points = MEDIUM.sample(400, rng=0)
    network = fit(features, points, medium.target(points), penalty=1e-8)
    bound = porous_medium_corollary(medium, network, MEDIUM, 0.5, exponent=exponent, variance=1.0, theorem=1.0)
    assert bound.difference <= bound.coefficient * squared_error(network, [medium.target], MEDIUM, [2])
    assert np.isnan(bound.printed)
    if exponent != 3:
        negative = Network(network.features, -network.coefficients)
        with pytest.raises(InputError, match="> 0"):
            porous_medium_corollary(medium, negative, MEDIUM, 0.5, exponent=exponent, variance=1.0)


@pytest.mark.parametrize(("gamma", "alpha"), some([(2.0, 1.0), (0.0, 0.0)], 1))
def test_navier_stokes_corollary_on_a_true_solution(flow, gamma, alpha):
    network = paired_network(flow[0].network(100, rng=1), flow[1].network(100, rng=2))
    known = {"variance": 1e4, "theorem": 1e9}
    bound = navier_stokes_corollary(*flow, network, GAS, 0.1, gamma=gamma, alpha=alpha, **known)
    targets = [one.target for one in flow]
    assert bound.difference <= bound.coefficient * squared_error(network, targets, GAS, [1, 2])
    assert bound.corrected == pytest.approx(bound.coefficient * 1e9 / 10)
    if gamma == alpha == 0:
        assert bound.loss == pytest.approx(bound.difference, rel=1e-2)
        mass = continuity_corollary(*flow, network, GAS, 0.1, **known)
        assert mass.loss < bound.loss
        assert mass.difference <= mass.coefficient * squared_error(network, targets, GAS, [1, 1])
        assert mass.coefficient <= bound.coefficient
        assert 0 < mass.printed < bound.printed
    else:
        assert np.isnan(bound.printed)


def test_the_printed_coefficient_of_mass_lacks_the_time_derivative():
    """𝓑_N has no term for ∂_t e: for fields that vanish it is 0, and J¹ = ‖∂_t ρ_N‖² is not."""

    class Still:
        def derivative(self, points, index):
            rho = {(0, 0): points[:, 0], (1, 0): np.ones(len(points))}.get(tuple(index), np.zeros(len(points)))
            return 1e-3 * np.stack([rho, 0 * rho], axis=1)

    loss = float(navier_stokes_losses(Still(), GAS)[0])
    error = 1e-6 * (0.5**3 / 3 + 0.5)
    printed = 4 * (1e-3 * 0.5) ** 2 * error
    assert printed < 1e-5 * loss
    assert loss <= 5 * error


# --------------------------------------------------------------------------------------------------------------- traces


@pytest.mark.parametrize("length", [0.1, 1.0, 7.0])
def test_the_trace_inequality_holds_and_is_nearly_reached(length):
    ratios = []
    for rate in np.concatenate([[0.0], np.geomspace(0.1, 50, 40)]):
        value = Interval(0, length)
        square = float(integrate(lambda z, r=rate: np.exp(-2 * r * z[:, 0]), value)) * (1 + rate**2)
        ratios.append(1 / square)
    assert max(ratios) <= face_constant(length)
    assert max(ratios) > 0.5 * face_constant(length)


@pytest.mark.parametrize("d", [1, 2])
def test_initial_and_boundary_residuals_are_bounded_by_traces(d):
    domain = SpaceTime(t=(0, 1), x=[(0, 2.0), (-1, 0.5)][:d] if d > 1 else (0, 2.0))
    error = GaussianMixture.gaussian(d + 1, width=0.6, centre=0.3)
    zero = {(0,) * (d + 1): lambda z: np.zeros(len(z))}
    in_time = float(sobolev_norm(error, domain, time_order=1)) ** 2
    in_space = float(sobolev_norm(error, domain, space_order=1)) ** 2
    assert initial_loss(error, zero, domain) <= initial_trace(domain) * in_time
    assert boundary_loss(error, zero, domain) <= boundary_trace(domain) * in_space


def test_bounds_of_conditions_scale_with_width_and_probability(medium):
    one, two = (condition_bounds([medium], MEDIUM, scale) for scale in (10.0, 40.0))
    assert set(one) == {"initial", "boundary"}
    assert one["initial"].corrected == pytest.approx(4 * two["initial"].corrected)
    plain = estimator(medium.target, LAW)
    with pytest.raises(InputError, match="at least"):
        condition_bounds([plain], MEDIUM, 1.0)
    with pytest.raises(InputError, match="box"):
        boundary_trace(SpaceTime(t=(0, 1), x=Ball((0, 0), 1)))


# ------------------------------------------------------------------------------------------------------------ extension


@pytest.mark.parametrize("order", [0, 1, 3, 5])
@pytest.mark.parametrize("margin", [0.25, 1.0])
def test_reflections_continue_with_all_derivatives(order, margin):
    """Polynomials up to the order are continued exactly near the side, before the cut-off acts."""
    extended = Reflection(order, margin, cutoff=lambda x: np.where(x < 1, 1.0, 0.0)).extend(
        lambda z: (0.3 + z[:, 0]) ** order, Box([(0, 1)])
    )
    x = np.linspace(-0.05, 1.05, 12)[:, None]
    assert np.abs(extended(x) - (0.3 + x[:, 0]) ** order).max() < 1e-9


def test_reflections_ask_for_values_inside_alone():
    def inside(z):
        assert (z >= -1e-12).all()
        assert (z <= 1 + 1e-12).all()
        return np.exp(z.sum(axis=1))

    box = SpaceTime(t=(0, 1), x=[(0, 1)] * 3)
    extended = Reflection(2).extend(inside, box)
    points = np.random.default_rng(0).uniform(-0.5, 1.5, (500, 4))
    assert np.isfinite(extended(points)).all()

    def in_ball(z):
        assert (np.linalg.norm(z, axis=1) <= 2 + 1e-12).all()
        return z[:, 0] ** 2

    ball = Reflection(2, 0.25).extend(in_ball, Ball((0, 0, 0), 2.0))
    assert ball(np.array([[2.001, 0, 0]]))[0] == pytest.approx(2.001**2, rel=1e-6)
    assert ball(np.array([[3.0, 0, 0]]))[0] == 0.0


@pytest.mark.parametrize(("p", "q"), [(0, 1), (1, 1), (1, 2)])
def test_the_constant_bounds_the_norm_of_the_extension_on_boxes(p, q):
    """‖ũ‖² on the whole space, by Fourier, against ‖u‖² on the box."""
    domain, reflection = SpaceTime(t=(0, 1), x=(0, 2)), Reflection(2, 0.5)
    for k in range(3):
        u = {
            (i, j): lambda z, i=i, j=j, k=k: (1.0 + k) ** i * k**j * np.exp((1 + k) * z[:, 0] + k * z[:, 1])
            for i in range(2)
            for j in range(3)
        }
        target = box_target(u[(0, 0)], domain, reflection=reflection, count=128)
        inside = float(sobolev_norm(u, domain, time_order=p, space_order=q)) ** 2
        assert target.squared_norm(p, q) <= reflection.constant(domain, p, q) * inside
    assert reflection.constant(domain) == 1.0


def test_the_constant_bounds_the_norm_of_the_extension_on_balls():
    """H^1 by central differences on a fine grid."""
    ball, reflection = Ball((0.0, 0.0), 1.0), Reflection(1, 0.5)
    axis = np.linspace(-1.6, 1.6, 401)
    h = axis[1] - axis[0]
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    for frequency in (0.0, 2.0, 5.0):
        values = reflection.extend(lambda z, w=frequency: np.cos(w * z[:, 0] + z[:, 1]), ball)(grid).reshape(401, 401)
        slopes = np.gradient(values, h)
        outer = float((values**2 + slopes[0] ** 2 + slopes[1] ** 2).sum() * h * h)
        inner = float(
            integrate(
                lambda z, w=frequency: (
                    np.cos(w * z[:, 0] + z[:, 1]) ** 2 + (w**2 + 1) * np.sin(w * z[:, 0] + z[:, 1]) ** 2
                ),
                ball,
            )
        )
        assert inner < outer <= reflection.constant(ball, 0, 1) * inner


def test_extensions_refuse_what_they_cannot_do():
    for bad in (-1, 13, 1.5):
        with pytest.raises(InputError, match="order"):
            Reflection(bad)
    with pytest.raises(InputError, match="margin"):
        Reflection(2, 3.0)
    with pytest.raises(InputError, match="at most 3"):
        Reflection(2).constant(Box([(0, 1)]), 0, 4)
    with pytest.raises(InputError, match="not both"):
        box_target(np.ones_like, Box([(0, 1)] * 2), margin=1.0, reflection=Reflection(2))


# ----------------------------------------------------------------------------------------------------- separable
# targets


def test_separable_targets_agree_with_sampled_ones():
    domain = SpaceTime(t=(0, 1), x=(0, 1))
    terms = [[np.exp, np.cos], [np.sin, lambda x: x**2]]
    apart = separable_target(terms, domain, margin=1.0)
    together = box_target(
        lambda z: np.exp(z[:, 0]) * np.cos(z[:, 1]) + np.sin(z[:, 0]) * z[:, 1] ** 2, domain, margin=1.0, count=256
    )
    z = domain.sample(50, rng=0)
    assert np.abs(apart.derivative(z, (1, 1)) - together.derivative(z, (1, 1))).max() < 1e-5
    # one ends at a square of frequencies, the other at a disc: the tail of the cut-off differs in high norms
    for p, q, rel in ((0, 0, 1e-9), (1, 1, 1e-6), (0.75, 3, 1e-3)):
        assert apart.squared_norm(p, q) == pytest.approx(together.squared_norm(p, q), rel=rel)
    moved = apart.times_coordinate(1), together.times_coordinate(1)
    assert moved[0].squared_norm(1, 1) == pytest.approx(moved[1].squared_norm(1, 1), rel=1e-5)


@pytest.mark.parametrize("d", [1, 3, pytest.param(5, marks=pytest.mark.slow)])
def test_barenblatt_targets_are_the_profile_in_any_dimension(d):
    domain = SpaceTime(t=(1.0, 2.0), x=[(0, 1)] * d if d > 1 else (0, 1))
    profile = Barenblatt((0.5,) * d, 1.0)
    target = barenblatt_target(profile, domain, margin=[0.9] + [1.5] * d)
    z = domain.sample(40, rng=0)
    index = (0, 2) + (0,) * (d - 1)
    assert np.abs(target(z) - profile(z)).max() < 1e-9
    assert np.abs(target.derivative(z, index) - profile.derivative(z, index)).max() < 1e-5
    choice = estimator(target, HeavyTailed(0.75, 0.5 * d + 0.25))
    assert choice.network(20, rng=0)(z).shape == (40,)
    with pytest.raises(InputError, match="support"):
        barenblatt_target(Barenblatt((0.5,) * d, 1e-3), domain, margin=[0.9] + [1.5] * d)
    with pytest.raises(InputError, match="t₀"):
        barenblatt_target(profile, domain, margin=1.5)
