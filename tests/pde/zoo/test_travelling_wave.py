"""The travelling wave: end states, the equations it solves, and its profile against independent integrations."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from draws import draws
from rannpde.errors import InputError
from rannpde.pde.zoo.travelling_wave import TravellingWave

EPS = np.finfo(float).eps
WAVES = [
    TravellingWave(),
    TravellingWave(viscosity=0.3, stiffness=0.05, pressure_exponent=1.4, right_volume=2.5, left_velocity=1.0),
    TravellingWave(stiffness=1e-5, position=-1.0),
    TravellingWave(left_volume=1.2, right_volume=1.21, viscosity=0.01),
]


def plane(wave: TravellingWave, count: int = 4000) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.column_stack([rng.uniform(0, 1, count), wave.position + rng.uniform(-5, 5, count)])


def test_the_numbers_of_the_paper() -> None:
    wave = TravellingWave()
    assert wave.pressure(wave.left_state) == pytest.approx(1.0, rel=100 * EPS)
    assert wave.speed == pytest.approx(1.458, abs=5e-4)
    # the linearisation at v₋: growth of 43 in ξ, a corner 0.02 wide
    xi = np.array([-0.6, -0.5])
    assert np.diff(wave.log_ratio(xi))[0] / 0.1 == pytest.approx(43.0, abs=0.5)


@pytest.mark.parametrize("wave", WAVES)
def test_rankine_hugoniot_and_the_limits_at_both_ends(wave: TravellingWave) -> None:
    jump_v, jump_u = wave.right_volume - wave.left_state, wave.right_velocity - wave.left_velocity
    jump_p = wave.pressure(wave.right_volume) - wave.pressure(wave.left_state)
    assert -wave.speed * jump_v == pytest.approx(jump_u, rel=10 * EPS)
    assert wave.speed * jump_u == pytest.approx(jump_p, rel=1e3 * EPS)
    far = wave(np.array([[0.0, -1e4], [0.0, 1e4]]))
    assert far[0] == pytest.approx([wave.left_state, wave.left_velocity], abs=4 * EPS)
    assert far[1] == pytest.approx([wave.right_volume, wave.right_velocity], rel=10 * EPS)


@pytest.mark.parametrize("wave", WAVES)
def test_both_equations_hold(wave: TravellingWave) -> None:
    points = plane(wave)
    value = wave(points)
    t, x, xx = (wave.derivative(points, index) for index in ((1, 0), (0, 1), (0, 2)))
    volume = value[:, 0]
    assert np.abs(t[:, 0] - x[:, 1]).max() <= 4 * EPS * np.abs(t).max()
    viscous = wave.viscosity * (xx[:, 1] / volume - x[:, 1] * x[:, 0] / volume**2)
    force = wave.pressure(volume, 1) * x[:, 0]
    size = np.abs(t[:, 1]).max() + np.abs(viscous).max() + np.abs(force).max()
    # p'(v) loses the digits of v - 1, at worst EPS/(v₋ - 1)
    assert np.abs(t[:, 1] + force - viscous).max() < 50 * EPS / (wave.left_state - 1) * size


@pytest.mark.parametrize("wave", WAVES)
def test_profile_against_the_implicit_quadrature_in_high_precision(wave: TravellingWave) -> None:
    """ξ(v) = ∫ dv/v' with 30 digits, from the mean state; v(ξ(v)) must give v back."""
    with mpmath.workdps(30):
        one, low, high = mpmath.mpf(1), mpmath.mpf(wave.left_state), mpmath.mpf(wave.right_volume)
        mu, eps, gamma = mpmath.mpf(wave.viscosity), mpmath.mpf(wave.stiffness), mpmath.mpf(wave.pressure_exponent)

        def pressure(v: mpmath.mpf) -> mpmath.mpf:
            return eps / (v - one) ** gamma

        speed = mpmath.sqrt((pressure(low) - pressure(high)) / (high - low))

        def slope(v: mpmath.mpf) -> mpmath.mpf:
            return v / (mu * speed) * (speed**2 * (low - v) + pressure(low) - pressure(v))

        for share in (1e-6, 0.02, 0.3, 0.7, 0.999):
            volume = low + mpmath.mpf(share) * (high - low)

            # in the variable log((v - low)/(high - v)) the integrand is smooth up to both ends
            def integrand(y: mpmath.mpf) -> mpmath.mpf:
                v = low + (high - low) / (1 + mpmath.exp(-y))
                return (v - low) * (high - v) / (high - low) / slope(v)

            end = mpmath.log((volume - low) / (high - volume))
            xi = mpmath.quad(integrand, mpmath.linspace(0, end, 9))
            got = float(wave.profile(np.array([float(xi)]))[0])
            # ξ itself is rounded: an error EPS |ξ| moves v by v' EPS |ξ|
            moved = abs(float(slope(volume)) * float(xi)) * EPS
            assert abs(got - float(volume)) < 20 * EPS * float(volume) + 4 * moved, share


def test_profile_against_a_runge_kutta_integration() -> None:
    """log(v - v₋) integrated backwards, v forwards, from the mean state, with tolerance 1e-13."""
    wave = TravellingWave()
    low, speed = wave.left_state, wave.speed

    def slope(v: float) -> float:
        return v / speed * (speed**2 * (low - v) + wave.pressure(low) - wave.pressure(v))

    start = 0.5 * (low + wave.right_volume)
    options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-15}
    ahead = np.linspace(0.0, 5.0, 21)
    forward = solve_ivp(lambda _, v: slope(v), (0.0, 5.0), [start], t_eval=ahead, **options)
    assert np.abs(wave.profile(ahead) - forward.y[0]).max() < 1e-11
    behind = np.linspace(0.0, -0.35, 15)
    backward = solve_ivp(
        lambda _, w: slope(low + np.exp(w)) * np.exp(-w), (0.0, -0.35), [np.log(start - low)], t_eval=behind, **options
    )
    assert np.abs(wave.profile(behind) - (low + np.exp(backward.y[0]))).max() < 1e-11


@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_derivatives_are_those_of_the_next_lower_one(wave: TravellingWave, order: int) -> None:
    length = 1.0 / wave._growth(np.array([-40.0]))[0]  # the shortest length on which the profile varies
    xi = length * np.linspace(-20, 60, 801)
    step = 1e-4 * length
    difference = (wave.profile(xi + step, order - 1) - wave.profile(xi - step, order - 1)) / (2 * step)
    exact = wave.profile(xi, order)
    # central differences: step² in truncation, EPS/step in rounding of the lower derivative
    rounding = EPS / (1e-4 * length) * np.abs(wave.profile(xi, order - 1)).max() / (wave.left_state - 1)
    assert np.abs(difference - exact).max() < 1e-6 * np.abs(exact).max() + 20 * rounding


def test_the_wave_moves_to_the_right_with_its_speed() -> None:
    wave = TravellingWave(position=0.3)
    x = np.linspace(-2, 3, 50)
    now, later = (np.column_stack([np.full_like(x, t), x + wave.speed * t]) for t in (0.0, 0.8))
    assert np.allclose(wave(now), wave(later), rtol=0, atol=100 * EPS * 43)
    assert wave(np.array([[0.0, 0.3]]))[0, 0] == pytest.approx(0.5 * (wave.left_state + wave.right_volume), rel=4 * EPS)


@settings(max_examples=draws(4, 10), deadline=None)
@given(
    stiffness=st.floats(1e-5, 0.5),
    exponent=st.floats(0.5, 4.0),
    viscosity=st.floats(0.1, 5.0),
    gap=st.floats(0.05, 3.0),
)
def test_it_rises_monotonically_between_its_states(
    stiffness: float, exponent: float, viscosity: float, gap: float
) -> None:
    left = 1 + stiffness ** (1 / exponent)
    wave = TravellingWave(viscosity, stiffness, exponent, left + gap)
    ratio = wave.log_ratio(np.linspace(-30, 30, 501))
    assert (np.diff(ratio) > 0).all()
    volume = wave.profile(np.linspace(-30, 30, 501))
    assert (volume >= left).all()
    assert (volume <= wave.right_volume).all()


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"viscosity": 0.0}, "viscosity"),
        ({"stiffness": -1e-3}, "stiffness"),
        ({"pressure_exponent": np.inf}, "pressure_exponent"),
        ({"left_volume": 0.9}, "left_volume"),
        ({"right_volume": 1.01}, "right_volume"),
        ({"position": np.nan}, "position"),
    ],
)
def test_wrong_parameters_are_named(arguments: dict, name: str) -> None:
    with pytest.raises(InputError, match=name):
        TravellingWave(**arguments)


def test_wrong_points_and_orders_are_refused() -> None:
    with pytest.raises(InputError, match="shape"):
        TravellingWave()(np.zeros((2, 3)))
    with pytest.raises(InputError, match="at most 4"):
        TravellingWave().derivative(np.zeros((1, 2)), (3, 2))
