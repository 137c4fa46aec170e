"""The ridgelet function ψ: a derivative of the normal density, normalised so that K_{ψ,σ} = 1 (Proposition 1).

With g(x) = e^(-x²/2)/√(2π) and an integer k > 0, the *order* of ψ,

    ψ = a g^(k),        ψ̂(ω) = a (iω)^k e^(-ω²/2),

is real and Schwartz in every dimension, and vanishes to order k at ω = 0. The amplitude a is fixed by the
admissibility constant on R^n, n = d + 1,

    K_{ψ,σ} = (2π)^(n-1) ∫ conj(ψ̂(ζ)) σ̂(ζ) |ζ|^(-n) dζ = 1,

for which u = R†_σ R_ψ u. (The paper prints (2π)^(d-1), |ζ|^(-m) and no conjugate: see ``admissibility_constant``.)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, gamma, inf, lgamma, log, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import exp1, gammainc, gammaincc

from rannpde.arrays import Array
from rannpde.domains.region import composite_gauss
from rannpde.errors import positive_integer, require
from rannpde.network.activations import Activation, as_activation


@dataclass(frozen=True)
class RidgeletFunction:
    """ψ = amplitude · g^(order), with g the standard normal density.

    >>> psi = RidgeletFunction(order=3, amplitude=1.0)
    >>> float(psi(0.0)), round(psi.norm() ** 2, 6)
    (0.0, 0.528928)
    """

    order: int
    amplitude: float

    def __post_init__(self) -> None:
        positive_integer("order", self.order)
        require(0 < abs(self.amplitude) < inf, "amplitude", self.amplitude, "finite and not 0")

    def __call__(self, x: ArrayLike, derivative: int = 0) -> Array:
        """ψ^(derivative)(x), the shape of x."""
        order = self.order + derivative
        return np.asarray(
            self.amplitude * (-1) ** order / sqrt(2 * pi) * hermite_functions(np.asarray(x, float), order)[-1]
        )

    def fourier(self, omega: ArrayLike) -> Array:
        """ψ̂(ω) = a (iω)^k e^(-ω²/2), complex."""
        omega = np.asarray(omega, dtype=float)
        return self.amplitude * 1j**self.order * omega**self.order * np.exp(-0.5 * omega**2)

    def norm(self, derivative: int = 0) -> float:
        """‖ψ^(derivative)‖_{L²}: ‖ψ‖² = a² Γ(k + 1/2) / 2π."""
        return abs(self.amplitude) * exp(0.5 * (lgamma(self.order + derivative + 0.5) - log(2 * pi)))

    def fourier_norm(self, derivative: int = 0) -> float:
        """‖ψ̂‖_{L²} for derivative 0 and ‖ψ̂'‖_{L²} for derivative 1."""
        require(derivative in (0, 1), "derivative", derivative, "0 or 1")
        if derivative == 0:
            return self.norm() * sqrt(2 * pi)
        return abs(self.amplitude) * sqrt(hermite_moments(self.order)[1])

    def vanishing_constant(self, m: float) -> float:
        """A_{ψ,m} = ∫_{-1}^{1} |ψ̂|² |ω|^(-m) dω (eq. psi-condition); infinite unless 2k - m > -1."""
        return self.power_integral(-m, 0.0, 1.0)

    def power_integral(self, power: float, lower: float = 0.0, upper: float = inf, derivative: int = 0) -> float:
        """∫_{lower<|ω|<upper} |∂^derivative ψ̂|² |ω|^power dω by incomplete Gamma functions; bounds 0, 1 or ∞."""
        k = self.order
        # |ψ̂|² = a² ω^2k e^(-ω²);  |ψ̂'|² = a² (k² ω^(2k-2) - 2k ω^2k + ω^(2k+2)) e^(-ω²)
        terms = [(1.0, 2 * k)] if derivative == 0 else [(k**2, 2 * k - 2), (-2.0 * k, 2 * k), (1.0, 2 * k + 2)]
        shapes = [(factor, 0.5 * (exponent + power + 1)) for factor, exponent in terms]
        if lower == 0.0 and min(shape for _, shape in shapes) <= 0:
            return inf
        return self.amplitude**2 * sum(factor * _gamma_between(shape, lower, upper) for factor, shape in shapes)


def _gamma_between(shape: float, lower: float, upper: float) -> float:
    """∫ over lower < ω² < upper of y^(shape-1) e^(-y) dy, bounds in {0, 1, ∞}; shape may be negative away from 0."""
    if lower == 0.0:
        return gamma(shape) * float(gammainc(shape, upper) if upper < inf else 1.0)
    if shape > 0:
        return gamma(shape) * float(gammaincc(shape, lower))
    # Γ(s, x) = (Γ(s + 1, x) - x^s e^(-x)) / s climbs to a positive shape; s = 0 is the exponential integral
    if shape == 0:
        return float(exp1(lower))
    return float((_gamma_between(shape + 1, lower, upper) - lower**shape * exp(-lower)) / shape)


def hermite_functions(x: Array, order: int) -> Array:
    """He_j(x) e^(-x²/2) for j = 0, …, order: shape (order + 1, *x.shape). The recurrence never overflows in x."""
    table = np.empty((order + 1, *x.shape))
    table[0] = np.exp(-0.5 * np.minimum(x * x, 1e4))
    if order:
        x = np.clip(x, -1e2, 1e2)
        table[1] = x * table[0]
    for j in range(1, order):
        table[j + 1] = x * table[j]
        table[j + 1] -= j * table[j - 1]
    return table


def hermite_moments(order: int) -> tuple[float, float]:
    """∫ He_k² e^(-x²) dx and ∫ x² He_k² e^(-x²) dx, k = order."""
    k = order
    return gamma(k + 0.5), k**2 * gamma(k - 0.5) - 2 * k * gamma(k + 0.5) + gamma(k + 1.5)


# ------------------------------------------------------------------------------------------------ admissibility


def parity(activation: str | Activation) -> int:
    """0 where ψ must be of even order (σ̂ real off 0: cos, gaussian, softplus), 1 where odd (tanh, sigmoid, sin)."""
    fourier = as_activation(activation).fourier
    sample = sum(mass for location, mass in fourier.atoms if location > 0)
    if fourier.density is not None:
        sample = sample + complex(fourier.density(np.array([1.0]))[0])
    return int(abs(sample.imag) > abs(sample.real))


def half_line_integral(activation: Activation, power: float) -> complex:
    """∫_0^∞ ζ^power e^(-ζ²/2) σ̂(ζ) dζ with the point masses at ζ > 0; Gauss–Legendre to rounding."""
    fourier = activation.fourier
    total = sum(mass * location**power * exp(-0.5 * location**2) for location, mass in fourier.atoms if location > 0)
    if fourier.density is not None:
        # the mass of ζ^power e^(-ζ²/2) lies within 12 of its peak √power; panels of length ½ resolve every σ̂
        zeta, weight = panels(0.0, sqrt(max(power, 0)) + 12.0, 2 * int(sqrt(max(power, 0)) + 12) + 2)
        total = total + weight @ (zeta**power * np.exp(-0.5 * zeta**2) * fourier.density(zeta))
    return complex(total)


def panels(lower: float, upper: float, count: int, degree: int = 20) -> tuple[Array, Array]:
    """Composite Gauss–Legendre: nodes and weights of ``count`` equal panels with ``degree`` nodes each."""
    return composite_gauss(np.linspace(lower, upper, count + 1), degree)


def admissibility_constant(
    psi: RidgeletFunction, activation: str | Activation, dim: int, *, as_printed: bool = False, m: float | None = None
) -> float:
    """K_{ψ,σ} of Proposition 1 on R^dim, dim = d + 1.

    Corrected: (2π)^(n-1) ∫ conj(ψ̂) σ̂ |ζ|^(-n) dζ. As printed: (2π)^(d-1) ∫ ψ̂ σ̂ |ζ|^(-m) dζ, with m = d unless given.
    Both are real, and 0 where the parities of ψ and σ differ.
    """
    activation = as_activation(activation)
    dim = positive_integer("dim", dim)
    if psi.order % 2 != parity(activation):
        return 0.0
    power = dim if not as_printed else (dim - 1 if m is None else m)
    rest = psi.order - power
    finite = activation.fourier.density is None or rest > activation.fourier.pole - 1
    if not finite:
        return inf
    phase = 1j**psi.order if as_printed else (-1j) ** psi.order
    factor = (2 * pi) ** (dim - 2 if as_printed else dim - 1)
    return 2 * psi.amplitude * factor * (phase * half_line_integral(activation, rest)).real


def kernel_constant(activation: str | Activation, alpha: int) -> complex:
    """J_σ = ∫ ζ^(2α+β) σ̂(ζ) e^(-ζ²/2) dζ of Definition 2, β the order of the pole of σ̂."""
    activation = as_activation(activation)
    power = 2 * alpha + activation.fourier.pole
    # σ is real, so σ̂(-ζ) = conj σ̂(ζ): the two halves add up to 2 Re for even powers, 2i Im for odd ones
    half = half_line_integral(activation, power)
    whole = 2 * half.real if power % 2 == 0 else 2j * half.imag
    return complex(whole + sum(mass for location, mass in activation.fourier.atoms if location == 0 and power == 0))


def admissible(activation: str | Activation, dim: int, order: int | None = None) -> RidgeletFunction:
    """The ψ of that order with K_{ψ,σ} = 1 on R^dim; by default the least order whose transform is integrable.

    >>> psi = admissible("tanh", dim=2, order=5)
    >>> abs(admissibility_constant(psi, "tanh", 2) - 1) < 1e-14
    True
    """
    activation, dim = as_activation(activation), positive_integer("dim", dim)
    if order is None:
        order = with_parity(activation, dim + max(activation.fourier.pole, 1))
    order = positive_integer("order", order)
    name = "even" if parity(activation) == 0 else "odd"
    remedy = "the other parity makes K = 0, and nothing is reconstructed"
    require(order % 2 == parity(activation), "order", order, f"{name} for {activation.name}", remedy)
    least = with_parity(activation, dim + activation.fourier.pole)
    remedy = f"σ̂ has a pole of order {activation.fourier.pole} at 0, and K would be infinite"
    require(order >= least, "order", order, f"at least {least} for {activation.name} on R^{dim}", remedy)
    unit = RidgeletFunction(order, 1.0)
    return RidgeletFunction(order, 1.0 / admissibility_constant(unit, activation, dim))


def with_parity(activation: str | Activation, order: int) -> int:
    """The least integer ≥ order of the parity that the activation needs."""
    return order + (order - parity(activation)) % 2
