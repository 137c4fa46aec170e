"""Special functions of the language: Bessel functions and sinc, with their derivatives by recurrences."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy
from scipy.special import iv, jv, kv, spherical_jn, yv

from rannpde.arrays import Array
from rannpde.grammar import StatementError
from rannpde.pde.statement.kinks import Real, Where


class BesselFunction(Real):
    """Abstract: a Bessel function of order ``args[0]``, a constant, at ``args[1]``."""

    signs = (1, 1)
    half = sympy.Rational(1, 2)

    def fdiff(self, argindex: int = 2) -> sympy.Expr:
        if argindex != 2:
            raise StatementError(f"{self.word}(order, x) is differentiated by x only; its order must be a number")
        order, argument = self.args
        below, above = self.signs
        return self.half * (below * self.func(order - 1, argument) + above * self.func(order + 1, argument))


class BesselFirst(BesselFunction):
    """J_n(x), J_n' = (J_{n-1} - J_{n+1}) / 2."""

    word, signs = "besselj", (1, -1)


class BesselSecond(BesselFunction):
    """Y_n(x), with the same derivative."""

    word, signs = "bessely", (1, -1)


class BesselGrowing(BesselFunction):
    """I_n(x), I_n' = (I_{n-1} + I_{n+1}) / 2."""

    word, signs = "besseli", (1, 1)


class BesselDecaying(BesselFunction):
    """K_n(x), K_n' = -(K_{n-1} + K_{n+1}) / 2."""

    word, signs = "besselk", (-1, -1)


class Spherical(Real):
    """j_n(x), the spherical Bessel function; sinc x = sin(x)/x is j_0.

    (2n + 1) j_n' = n j_{n-1} - (n + 1) j_{n+1}, which holds at zero too.
    """

    word = "sphericalj"

    def _sympystr(self, printer: Any) -> str:
        order, argument = self.args
        shown = printer.doprint(argument)
        return f"sinc({shown})" if order == 0 else f"sphericalj({order}, {shown})"

    def fdiff(self, argindex: int = 2) -> sympy.Expr:
        if argindex != 2:
            raise StatementError("sphericalj(order, x) is differentiated by x only; its order must be a number")
        order, argument = self.args
        below = order * Spherical(order - 1, argument) if order != 0 else sympy.Integer(0)
        return (below - (order + 1) * Spherical(order + 1, argument)) / (2 * order + 1)


def spherical_values(order: Array, argument: Array) -> Array:
    """j_n at arguments of either sign: j_n(-x) = (-1)^n j_n(x)."""
    number = int(np.asarray(order).flat[0])
    values = spherical_jn(number, np.abs(argument))
    return np.asarray(np.where(np.asarray(argument) < 0, (-1) ** number, 1) * values)


SPECIAL_FUNCTIONS: dict[str, Any] = {
    "besselj": BesselFirst,
    "bessely": BesselSecond,
    "besseli": BesselGrowing,
    "besselk": BesselDecaying,
    "sinc": lambda g: Spherical(sympy.Integer(0), g),
    "heaviside": lambda g: Where(g, sympy.Integer(1), sympy.Integer(0)),
}
"""Word → function; Bessel functions take their order first, sinc(x) is sin(x)/x, heaviside(x) is 1 where x > 0."""
OF_AN_ORDER = ("besselj", "bessely", "besseli", "besselk")
SPECIAL_VALUES: dict[Any, Any] = {
    BesselFirst: jv,
    BesselSecond: yv,
    BesselGrowing: iv,
    BesselDecaying: kv,
    Spherical: spherical_values,
}
"""Function → its values at arrays."""
