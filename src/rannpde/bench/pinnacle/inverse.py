"""PInv and HInv: a coefficient that is itself a function, found from noisy values of the solution.

The library cannot state an unknown function yet. When it can (``unknown={"a": UnknownFunction(of=("x", "y"), …)}`` and
``Data(points, values, "u", noise=0.1)``), the statements belong here, with ``load_of_pinv`` as the source that
the benchmark meant, and ``solution.functions["a"]`` judged by a rival-free row.
"""

from __future__ import annotations

import sympy

from rannpde.bench.case import Case

WAITS = "unknown functions as coefficients"
X, Y = sympy.symbols("x y", real=True)
BULGE = 1 + X**2 + Y**2 + (X - 1) ** 2 + (Y - 1) ** 2
"""1/a of PInv."""


def load_of_pinv() -> sympy.Expr:
    """f = -∇·(a∇u) of PInv, derived: u = sin πx sin πy and a = 1/(1 + x² + y² + (x-1)² + (y-1)²)."""
    u, a = sympy.sin(sympy.pi * X) * sympy.sin(sympy.pi * Y), 1 / BULGE
    return -sum(sympy.diff(a * sympy.diff(u, axis), axis) for axis in (X, Y))


def coded_load_of_pinv(shift: int = 1) -> sympy.Expr:
    """What the benchmark codes: the slopes of 1/a with 2x + 1 and 2y + 1; a shift of -1 makes it right."""
    u = sympy.sin(sympy.pi * X) * sympy.sin(sympy.pi * Y)
    slopes = sum(2 * (2 * axis + shift) * sympy.diff(u, axis) for axis in (X, Y))
    return 2 * sympy.pi**2 * u / BULGE + slopes / BULGE**2


CASES = (
    Case(
        "poisson-inverse", "PInv", None, 1e-2, 30, None, waits_for=WAITS,
        remark="the coded source is wrong: 2x + 1 stands for 2x - 1; derived here",
    ),
    Case("heat-inverse", "HInv", None, 1e-2, 60, 3.8e-2, waits_for=WAITS),
)  # fmt: skip
