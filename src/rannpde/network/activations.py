"""Activations σ: every derivative in closed form, sup-norms, Fourier transforms and the class T_k (Definition 2).

Tanh, sigmoid, softplus and swish all come from one recurrence. With p = sigmoid(z) and q = 1 - p = sigmoid(-z),

    dⁿp/dzⁿ = Σ_{k<n} (-1)ᵏ A(n, k) p^(k+1) q^(n-k),        A = Eulerian numbers,

a sum that is homogeneous in p and q. In the tails one of the two is tiny and is computed without subtraction, so
the derivatives keep their relative accuracy for large arguments, where polynomials in tanh lose all digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from math import inf, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from rannpde.arrays import Array
from rannpde.errors import choose, require
from rannpde.network.profiles import ACTIVATION_PROFILES


@dataclass(frozen=True)
class FourierTransform:
    """σ̂(ζ) = ∫ e^(-iζz) σ(z) dz as a density away from ζ = 0 plus point masses.

    For activations that grow (softplus, swish, ReLU) the transform exists as a Lizorkin distribution: the density
    is exact for ζ ≠ 0, and polynomials, which the ridgelet transform does not see, are dropped.

    density : vectorised ζ → complex, or None where there are only point masses
    atoms : (location, complex mass) pairs
    pole : the smallest β for which ζ^β σ̂(ζ) is continuous at 0 and every J_σ ≠ 0 (Definition 2 ii)
    """

    density: Callable[[Array], Array] | None
    atoms: tuple[tuple[float, complex], ...]
    pole: int


@dataclass(frozen=True)
class Activation:
    """A named activation. Call it as ``tanh(z)``, or ``tanh(z, order=3)`` for σ‴(z), element by element.

    >>> float(tanh(0.0, order=1))
    1.0
    >>> tanh.in_T(5), relu.in_T(0)
    (True, False)
    """

    name: str
    evaluate: Callable[[Array, int], Array] = field(repr=False, compare=False)
    fourier: FourierTransform = field(repr=False, compare=False)
    bounded_from: int = field(default=0, repr=False)
    """The least j for which σ^(j) is bounded."""
    smoothness: float = field(default=inf, repr=False)
    """The number of classical derivatives: infinite, or 0 where there is a kink."""
    limits: tuple[float, ...] = field(default=(), repr=False)
    """lim |σ^(j)| at infinity for j = 0, 1, …; 0 beyond the end."""

    def __call__(self, z: ArrayLike, order: int = 0) -> Array:
        """σ^(order)(z), the shape of z, float64. A kinked activation has its weak derivative of order 1, no more."""
        require(isinstance(order, (int, np.integer)) and order >= 0, "order", order, "a whole number ≥ 0")
        if order > self.smoothness + 1:
            remedy = "use a smooth activation such as 'tanh' or 'swish'"
            require(
                False, "order", order, f"at most {int(self.smoothness) + 1} for {self.name}, which has kinks", remedy
            )
        return self.evaluate(np.asarray(z, dtype=float), int(order))

    def sup_norm(self, order: int = 0) -> float:
        """‖σ^(order)‖∞; infinity where the derivative is unbounded or not a function."""
        if order < self.bounded_from or order > self.smoothness + 1:
            return inf
        return _sup_norm(self, order)

    def in_T(self, k: int) -> bool:
        """Whether σ ∈ T_k (Definition 2): σ, …, σ^(k) exist everywhere and are bounded, and J_σ ≠ 0.

        Softplus, swish and ReLU are themselves unbounded, so they lie in no T_k.
        """
        require(isinstance(k, (int, np.integer)) and k >= 0, "k", k, "a whole number ≥ 0")
        return self.largest_k is not None and k <= self.largest_k

    def __reduce__(self) -> Any:
        # a named activation travels between processes as its name
        return (as_activation, (self.name,)) if ACTIVATIONS.get(self.name) is self else super().__reduce__()

    @property
    def largest_k(self) -> float | None:
        """The largest k with σ ∈ T_k: a whole number, infinity, or None when σ is in no T_k."""
        return None if self.bounded_from > 0 else self.smoothness


# ------------------------------------------------------------------------------------------------- sup-norms


@cache
def _sup_norm(activation: Activation, order: int) -> float:
    """Largest |σ^(order)|: a fine grid finds the hump, a bounded search polishes it to rounding."""
    # the extrema of order n lie within about n of the origin (Hermite zeros: 2√n); spacing resolves every hump
    reach = 8.0 + 2.0 * order
    grid = np.linspace(-reach, reach, 4001 + 2000 * order)
    values = np.abs(activation(grid, order))
    peak = int(values.argmax())
    best = float(values[peak])
    if 0 < peak < len(grid) - 1:
        hump = minimize_scalar(
            lambda z: -abs(float(activation(z, order))),
            bounds=(grid[peak - 1], grid[peak + 1]),
            method="bounded",
            options={"xatol": 1e-12},
        )
        best = max(best, -float(hump.fun))
    limit = activation.limits[order] if order < len(activation.limits) else 0.0
    return max(best, limit)


# ----------------------------------------------------------------------------------------- Fourier transforms


def _over_sinh(zeta: Array, rate: float) -> Array:
    """1 / sinh(rate ζ), zero where sinh overflows."""
    with np.errstate(over="ignore", divide="ignore"):
        return 1.0 / np.sinh(rate * np.asarray(zeta, dtype=float))


def _swish_hat(zeta: Array) -> Array:
    inverse = _over_sinh(zeta, pi)
    # cosh/sinh² = sign · √(1 + sinh²)/sinh² in terms of 1/sinh alone, so that nothing overflows
    return -(pi**2) * np.abs(inverse) * np.sqrt(1.0 + inverse**2) + 0j


_TANH_HAT = FourierTransform(lambda zeta: -1j * pi * _over_sinh(zeta, pi / 2), (), pole=1)
_SIGMOID_HAT = FourierTransform(lambda zeta: -1j * pi * _over_sinh(zeta, pi), ((0.0, pi + 0j),), pole=1)
_COS_HAT = FourierTransform(None, ((-1.0, pi + 0j), (1.0, pi + 0j)), pole=0)
_SIN_HAT = FourierTransform(None, ((-1.0, 1j * pi), (1.0, -1j * pi)), pole=1)
_GAUSSIAN_HAT = FourierTransform(lambda zeta: sqrt(2 * pi) * np.exp(-0.5 * np.square(zeta)) + 0j, (), pole=0)
_SOFTPLUS_HAT = FourierTransform(lambda zeta: -pi / zeta * _over_sinh(zeta, pi) + 0j, (), pole=2)
_SWISH_HAT = FourierTransform(_swish_hat, (), pole=2)
_RELU_HAT = FourierTransform(lambda zeta: -1.0 / np.square(zeta) + 0j, (), pole=2)
# hard tanh is the integral of the indicator of [-1, 1], whose transform is 2 sin ζ / ζ
_HARD_TANH_HAT = FourierTransform(lambda zeta: -2j * np.sin(zeta) / np.square(zeta), (), pole=1)

tanh = Activation("tanh", ACTIVATION_PROFILES["tanh"], _TANH_HAT, limits=(1.0,))
sigmoid = Activation("sigmoid", ACTIVATION_PROFILES["sigmoid"], _SIGMOID_HAT, limits=(1.0,))
cos = Activation("cos", ACTIVATION_PROFILES["cos"], _COS_HAT)
sin = Activation("sin", ACTIVATION_PROFILES["sin"], _SIN_HAT)
gaussian = Activation("gaussian", ACTIVATION_PROFILES["gaussian"], _GAUSSIAN_HAT)
softplus = Activation("softplus", ACTIVATION_PROFILES["softplus"], _SOFTPLUS_HAT, bounded_from=1, limits=(inf, 1.0))
swish = Activation("swish", ACTIVATION_PROFILES["swish"], _SWISH_HAT, bounded_from=1, limits=(inf, 1.0))
relu = Activation("relu", ACTIVATION_PROFILES["relu"], _RELU_HAT, bounded_from=1, smoothness=0, limits=(inf, 1.0))
hard_tanh = Activation("hard_tanh", ACTIVATION_PROFILES["hard_tanh"], _HARD_TANH_HAT, smoothness=0, limits=(1.0,))

ACTIVATIONS: dict[str, Activation] = {
    a.name: a for a in (tanh, sigmoid, cos, sin, gaussian, softplus, swish, relu, hard_tanh)
}


def as_activation(name: str | Activation) -> Activation:
    """The activation of that name; an Activation is passed through. Unknown names are answered with the known ones."""
    return name if isinstance(name, Activation) else choose("activation", name, ACTIVATIONS)
