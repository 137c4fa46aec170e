"""Activations against arbitrary precision, their identities, sup-norms, Fourier transforms and the class T_k."""

import pickle

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from helpers import EPS, PRECISE, SMOOTH
from rannpde.errors import InputError
from rannpde.network.activations import ACTIVATIONS, as_activation, hard_tanh, relu, sigmoid, softplus, swish, tanh

ARGUMENTS = np.array([-40.0, -7.3, -2.0, -0.61, 0.0, 0.17, 1.0, 3.9, 12.0, 33.0])


def precise_derivative(name: str, z: float, order: int) -> float:
    """σ^(order)(z) from the Taylor coefficients of the function, with digits to spare for exponentially small tails."""
    with mp.workdps(60 + int(abs(z))):
        return float(mp.taylor(PRECISE[name], mp.mpf(z), order)[order] * mp.factorial(order))


@pytest.mark.parametrize("order", range(9))
@pytest.mark.parametrize("activation", SMOOTH, ids=lambda a: a.name)
def test_derivatives_match_high_precision(activation, order):
    exact = np.array([precise_derivative(activation.name, z, order) for z in ARGUMENTS])
    # a sum of `order` terms of the size of the sup-norm: absolute rounding of some eps for each
    size = activation.sup_norm(order) if np.isfinite(activation.sup_norm(order)) else np.abs(exact).max()
    np.testing.assert_allclose(activation(ARGUMENTS, order), exact, rtol=0, atol=(20 + 20 * order) * EPS * size)


@pytest.mark.parametrize("order", range(1, 9))
@pytest.mark.parametrize("name", ["tanh", "sigmoid", "softplus", "swish"])
def test_tails_keep_relative_accuracy(name, order):
    # softplus' and swish' tend to 1 on the right; every other tail is exponentially small and must keep its digits
    for z in (-30.0, -300.0, 30.0, 300.0):
        exact = precise_derivative(name, z, order)
        # a sum of `order` terms, each rounded a few times
        assert ACTIVATIONS[name](np.array(z), order) == pytest.approx(exact, rel=(10 + 5 * order) * EPS, abs=0)


@pytest.mark.parametrize("activation", SMOOTH, ids=lambda a: a.name)
def test_large_arguments_stay_finite(activation):
    z = np.array([-1e8, -800.0, 800.0, 1e8])
    for order in range(9):
        assert np.isfinite(activation(z, order)).all()


def test_high_orders_agree_with_the_recurrence_of_the_logistic():
    # p^(n+1) = Σ_k C(n, k) p^(k) (δ_{k,n} - p^(n-k)) is Leibniz' rule on p' = p - p²: an identity at any order
    z = np.linspace(-3, 3, 13)
    derivatives = [sigmoid(z, k) for k in range(22)]
    for n in (9, 15, 20):
        products = [float(mp.binomial(n, k)) * derivatives[k] * derivatives[n - k] for k in range(n + 1)]
        scale = sum(np.abs(p) for p in products)
        assert (np.abs(derivatives[n + 1] - derivatives[n] + sum(products)) <= 1e3 * EPS * scale).all()


def test_families_are_linked():
    z = np.linspace(-20, 20, 401)
    np.testing.assert_allclose(tanh(z), 2 * sigmoid(2 * z) - 1, atol=4 * EPS, rtol=0)
    np.testing.assert_allclose(softplus(z, 1), sigmoid(z), rtol=4 * EPS)
    np.testing.assert_allclose(swish(z, 2), z * sigmoid(z, 2) + 2 * sigmoid(z, 1), atol=4 * EPS, rtol=0)


@given(st.floats(-50, 50), st.integers(0, 6))
def test_sup_norm_is_an_upper_bound(z, order):
    for activation in SMOOTH:
        assert abs(float(activation(z, order))) <= activation.sup_norm(order) * (1 + 100 * EPS)


def test_sup_norms_in_closed_form():
    assert tanh.sup_norm(1) == pytest.approx(1.0, rel=4 * EPS, abs=0)
    assert tanh.sup_norm(2) == pytest.approx(4 / (3 * np.sqrt(3)), rel=10 * EPS, abs=0)
    assert tanh.sup_norm(3) == pytest.approx(2.0, rel=4 * EPS, abs=0)
    assert sigmoid.sup_norm(2) == pytest.approx(1 / (6 * np.sqrt(3)), rel=10 * EPS, abs=0)
    assert ACTIVATIONS["gaussian"].sup_norm(1) == pytest.approx(np.exp(-0.5), rel=10 * EPS, abs=0)
    assert ACTIVATIONS["gaussian"].sup_norm(8) == pytest.approx(105.0, rel=10 * EPS, abs=0)  # 7!!
    assert softplus.sup_norm(0) == np.inf
    assert softplus.sup_norm(1) == 1.0
    assert [ACTIVATIONS["cos"].sup_norm(j) for j in range(6)] == pytest.approx([1.0] * 6, rel=4 * EPS, abs=0)


def test_class_T_is_answered_truthfully():
    for name in ("tanh", "sigmoid", "cos", "sin", "gaussian"):
        assert ACTIVATIONS[name].in_T(0)
        assert ACTIVATIONS[name].in_T(100)
        assert ACTIVATIONS[name].largest_k == np.inf
    for name in ("relu", "softplus", "swish"):  # unbounded, so the sum over j ≥ 0 of |σ^(j)| is too
        assert not ACTIVATIONS[name].in_T(0)
        assert ACTIVATIONS[name].largest_k is None
    assert hard_tanh.in_T(0)
    assert not hard_tanh.in_T(1)
    assert relu.sup_norm(1) == 1.0
    assert relu.sup_norm(2) == np.inf


@pytest.mark.parametrize("name", ["gaussian", "tanh", "sigmoid", "softplus", "swish"])
def test_fourier_density_against_quadrature(name):
    """(iζ)^k σ̂(ζ) is the transform of σ^(k), which is integrable for k = 2 and for all of these."""
    activation = ACTIVATIONS[name]
    for zeta in (0.3, 1.0, 2.7):
        real = quad(lambda z, f=zeta: float(activation(z, 2)) * np.cos(f * z), -80, 80, limit=800, epsabs=1e-13)[0]
        imaginary = quad(lambda z, f=zeta: -float(activation(z, 2)) * np.sin(f * z), -80, 80, limit=800, epsabs=1e-13)[
            0
        ]
        density = activation.fourier.density(np.array(zeta))
        assert (1j * zeta) ** 2 * complex(density) == pytest.approx(real + 1j * imaginary, abs=1e-13, rel=0)


def test_fourier_transform_of_hard_tanh_and_its_kin():
    zeta = 0.8
    exact = quad(lambda z: np.cos(zeta * z), -1, 1)[0]
    assert 1j * zeta * complex(hard_tanh.fourier.density(np.array(zeta))) == pytest.approx(exact, abs=10 * EPS, rel=0)
    assert ACTIVATIONS["cos"].fourier.atoms == ((-1.0, np.pi + 0j), (1.0, np.pi + 0j))
    # overflow of sinh far out is a zero, not a warning
    assert complex(tanh.fourier.density(np.array(1e4))) == 0


@pytest.mark.parametrize("activation", [a for a in SMOOTH if a.in_T(0)], ids=lambda a: a.name)
@pytest.mark.parametrize("alpha", [0, 1, 3])
def test_admissibility_integral_does_not_vanish(activation, alpha):
    """J_σ of Definition 2 with β = pole."""
    fourier, power = activation.fourier, 2 * alpha + activation.fourier.pole
    total = sum(mass * location**power * np.exp(-(location**2) / 2) for location, mass in fourier.atoms)
    if fourier.density is not None:
        part = lambda z: complex(z**power * fourier.density(np.array(z)) * np.exp(-z * z / 2))  # noqa: E731
        for low, high in ((-30.0, -1e-9), (1e-9, 30.0)):
            total += quad(lambda z: part(z).real, low, high)[0] + 1j * quad(lambda z: part(z).imag, low, high)[0]
    assert abs(total) > 0.1


def test_bad_input_is_named():
    with pytest.raises(InputError, match=r"activation is 'tahn'.*did you mean 'tanh'.*known: .*cos"):
        as_activation("tahn")
    with pytest.raises(InputError, match="order is -1"):
        tanh(0.0, -1)
    with pytest.raises(InputError, match="at most 1 for relu"):
        relu(0.0, 2)
    with pytest.raises(InputError, match=r"k is 1\.5"):
        tanh.in_T(1.5)


def test_named_activations_travel_between_processes():
    for activation in ACTIVATIONS.values():
        assert pickle.loads(pickle.dumps(activation)) is activation
