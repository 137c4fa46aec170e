"""ψ: values, transforms and norms against quadrature that shares no code, and the admissibility constant K = 1."""

from math import inf, pi, sqrt

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad

from rannpde.errors import InputError
from rannpde.network.activations import ACTIVATIONS
from rannpde.theory import RidgeletFunction, admissibility_constant, admissible, kernel_constant
from rannpde.theory.ridgelet_function import parity

ORDERS = (1, 2, 5, 8)
EXACT = {"epsabs": 1e-13, "epsrel": 1e-12, "limit": 200}


def integral(function, lower=-12.0, upper=12.0):
    return quad(function, lower, upper, points=[0.0] if lower < 0 < upper else None, **EXACT)[0]


@pytest.mark.parametrize("order", ORDERS)
def test_values_are_the_inverse_transform(order):
    psi = RidgeletFunction(order, 0.7)
    for x in (-1.3, 0.4, 3.0):
        inverse = integral(lambda w, x=x: (np.exp(1j * w * x) * psi.fourier(w)).real) / (2 * pi)
        assert abs(inverse - psi(x)) < 1e-12
        slope = integral(lambda w, x=x: (1j * w * np.exp(1j * w * x) * psi.fourier(w)).real) / (2 * pi)
        assert abs(slope - psi(x, derivative=1)) < 1e-12


@pytest.mark.parametrize("order", ORDERS)
def test_norms_agree_with_quadrature(order):
    psi = RidgeletFunction(order, -1.4)
    assert psi.norm() == pytest.approx(sqrt(integral(lambda x: psi(x) ** 2)), rel=1e-10)
    assert psi.norm(1) == pytest.approx(sqrt(integral(lambda x: psi(x, 1) ** 2)), rel=1e-10)
    assert psi.fourier_norm() == pytest.approx(sqrt(integral(lambda w: abs(psi.fourier(w)) ** 2)), rel=1e-10)

    def derivative(w):  # of (iω)^k e^(-ω²/2), by the product rule
        return psi.amplitude * (order * w ** (order - 1) - w ** (order + 1)) * np.exp(-0.5 * w * w)

    assert psi.fourier_norm(1) == pytest.approx(sqrt(integral(lambda w: derivative(w) ** 2)), rel=1e-10)


@pytest.mark.parametrize("m", [0, 1, 3])
def test_vanishing_constant_agrees_with_quadrature(m):
    psi = RidgeletFunction(3, 2.0)
    direct = 2 * integral(lambda w: abs(psi.fourier(w)) ** 2 * w ** float(-m), 0.0, 1.0)
    assert psi.vanishing_constant(m) == pytest.approx(direct, rel=1e-10)


def test_vanishing_constant_is_infinite_from_twice_the_order():
    psi = RidgeletFunction(3, 1.0)
    assert psi.vanishing_constant(6.9) < inf
    assert psi.vanishing_constant(7) == inf


@pytest.mark.parametrize("power", [-3.0, -11.0, -12.0, -13.5])
@pytest.mark.parametrize("derivative", [0, 1])
def test_outer_power_integrals_cover_negative_shapes(power, derivative):
    psi = RidgeletFunction(4, 1.0)
    factor = {0: lambda w: w**4, 1: lambda w: 4 * w**3 - w**5}[derivative]
    direct = 2 * integral(lambda w: factor(w) ** 2 * np.exp(-w * w) * w**power, 1.0, 12.0)
    assert psi.power_integral(power, 1.0, inf, derivative) == pytest.approx(direct, rel=1e-10)


def high_precision_constant(name, psi, dim):
    """K by mpmath from the transforms as written in the literature."""
    with mpmath.workdps(30):
        transforms = {
            "tanh": lambda z: -mpmath.pi / mpmath.sinh(mpmath.pi * z / 2),
            "sigmoid": lambda z: -mpmath.pi / mpmath.sinh(mpmath.pi * z),
            "gaussian": lambda z: mpmath.sqrt(2 * mpmath.pi) * mpmath.exp(-z * z / 2),
        }
        # odd σ: conj((iω)^k)(-i) = -Re(i^(k+1)) up to the sign kept here; even σ: conj((iω)^k) = (-1)^(k/2)
        sign = (-1) ** ((psi.order + 1) // 2) if name != "gaussian" else (-1) ** (psi.order // 2)
        sign = -sign if name != "gaussian" else sign
        rest = psi.order - dim
        half = mpmath.quad(lambda z: z**rest * mpmath.exp(-z * z / 2) * transforms[name](z), [0, 1, 4, 20])
        return (2 * mpmath.pi) ** (dim - 1) * mpmath.mpf(psi.amplitude) * 2 * sign * half


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "gaussian"])
@pytest.mark.parametrize("dim", [2, 3, 6])
def test_normalised_constant_is_one(name, dim):
    psi = admissible(name, dim)
    assert abs(float(high_precision_constant(name, psi, dim)) - 1) < 1e-12


@pytest.mark.parametrize("dim", [2, 5])
def test_normalised_constant_is_one_for_point_masses(dim):
    psi = admissible("cos", dim)
    value = (2 * pi) ** (dim - 1) * psi.amplitude * (-1) ** (psi.order // 2) * 2 * pi * np.exp(-0.5)
    assert abs(value - 1) < 1e-12


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_every_activation_has_an_admissible_function(name):
    psi = admissible(name, 3)
    assert abs(admissibility_constant(psi, name, 3) - 1) < 1e-12
    assert psi.order % 2 == parity(name)


@pytest.mark.parametrize("name", ["tanh", "cos", "sigmoid", "gaussian"])
@pytest.mark.parametrize("alpha", [0, 1, 4])
def test_kernel_constants_do_not_vanish(name, alpha):
    assert abs(kernel_constant(name, alpha)) > 1e-3


def test_kernel_constant_of_cos_needs_an_even_power():
    """The appendix takes β = 1 for cos, for which J = ∫ ζ^(2α+1) π(δ_1 + δ_-1) e^(-ζ²/2) is 0; β = 0 is right."""
    assert kernel_constant("cos", 2) == pytest.approx(2 * pi * np.exp(-0.5), rel=1e-14)


def test_printed_constant_is_another_number():
    psi = admissible("tanh", 2, 5)
    assert abs(admissibility_constant(psi, "tanh", 2, as_printed=True) - 1) > 0.5


def test_wrong_parity_is_refused_with_the_reason():
    with pytest.raises(InputError, match=r"odd for tanh.*K = 0"):
        admissible("tanh", 2, 4)


def test_too_low_an_order_is_refused_with_the_pole():
    with pytest.raises(InputError, match=r"at least 5.*pole"):
        admissible("tanh", 4, 3)


def test_infinite_constant_is_reported():
    assert admissibility_constant(RidgeletFunction(1, 1.0), "tanh", 4) == inf
    assert admissibility_constant(RidgeletFunction(2, 1.0), "tanh", 4) == 0
