"""What is wrong with the benchmark's own references, each with a proof that runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi

import numpy as np
import sympy

from benchmarks.harness.coefficients import read_numbers
from benchmarks.pinnacle.inverse import X, Y, coded_load_of_pinv, load_of_pinv
from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem
from rannpde.pde.zoo.cole_hopf import ColeHopf

T = sympy.Symbol("t", real=True)


@dataclass(frozen=True)
class Fault:
    """A claim about a case, and what shows it: a sentence with the numbers found."""

    case: str
    claim: str
    proof: Callable[[], str]


def burgers_gap() -> float:
    """How far the file is from Cole–Hopf at least, relative L² on its own grid of 101 places and 11 times.

    Its five rows next to x = 0 on either side (it is odd) are compared; all others count as exact.
    """
    rows = read_numbers("burgers_1d_reference")
    times, exact = np.arange(11) / 10, ColeHopf(0.01 / pi)
    found, places = rows[:, 1:], rows[:, 0]
    pairs = np.array([(t, x) for x in places for t in times[1:]])
    square = 2 * np.square(found.ravel() - exact(pairs)).sum()
    grid = np.array([(t, x) for x in np.linspace(-1, 1, 101) for t in times])
    return float(np.sqrt(square / np.square(exact(grid)).sum()))


def coded_wave() -> sympy.Expr:
    """The "exact" solution of Wave 2d-MS: m = (1, 3), n = (1, 2), p = (1, 1)."""
    first = sympy.sin(sympy.pi * X) * sympy.sinh(sympy.pi * Y)
    second = sympy.sinh(3 * sympy.pi * X) * sympy.sin(2 * sympy.pi * Y)
    return (first + second) * sympy.cos(sympy.pi * T)


def wave_residual(u: sympy.Expr) -> sympy.Expr:
    """u_tt - u_xx - 2 u_yy."""
    return sympy.diff(u, T, 2) - sympy.diff(u, X, 2) - 2 * sympy.diff(u, Y, 2)


def load_gap() -> float:
    """Relative L² distance of PInv's coded source from the one that its solution has."""
    coded, derived = (sympy.lambdify((X, Y), load()) for load in (coded_load_of_pinv, load_of_pinv))
    x, y = np.meshgrid(*[(np.arange(50) + 0.5) / 50] * 2)
    return float(np.linalg.norm(coded(x, y) - derived(x, y)) / np.linalg.norm(derived(x, y)))


def refusal_of(statement: Callable[[], Problem]) -> str:
    """Why the library refuses a statement; empty where it accepts it."""
    try:
        statement()
    except InputError as refusal:
        return str(refusal)
    return ""


def coded_kuramoto_sivashinsky() -> Problem:
    """As coded: a start, and nothing at the ends."""
    equation = "u_t + 100/16*u*u_x + 100/16**2*u_xx + 100/16**4*u_xxxx = 0"
    return Problem(equation, SpaceTime(t=(0, 1), x=(0, 2 * pi)), {"start": On("t=0", "u = cos(x)*(1 + sin(x))")})


def coded_gray_scott() -> Problem:
    """As coded: a start, and nothing at the sides."""
    equations = ["u_t = 1e-5*laplace(u) + 0.04*(1 - u) - u*v**2", "v_t = 5e-6*laplace(v) - 0.1*v + u*v**2"]
    start = {
        "start of u": On("t=0", "u = 1 - exp(-80*((x + 0.05)**2 + (y + 0.02)**2))"),
        "start of v": On("t=0", "v = exp(-80*((x - 0.05)**2 + (y - 0.02)**2))"),
    }
    return Problem(equations, SpaceTime(t=(0, 200), x=(-1, 1), y=(-1, 1)), start, fields=("u", "v"))


def _wave_proof() -> str:
    u = coded_wave()
    rest = sympy.expand(wave_residual(u) - 2 * sympy.diff(u, T, 2))
    return f"u_tt - u_xx - 2 u_yy = 2 u_tt, not 0: the difference of both sides of this is {rest}"


FAULTS = (
    Fault(
        "burgers-1d", "The reference solution is 1.3e-2 away from Cole–Hopf, which nobody trained against it can beat.",
        lambda: f"its rows at 0 < |x| ≤ 0.1 alone make {burgers_gap():.1e} of relative L² distance on its own grid",
    ),
    Fault("wave-2d-ms", "The “exact” solution does not satisfy the equation.", _wave_proof),
    Fault(
        "poisson-inverse", "The source has a wrong sign: 2x + 1 and 2y + 1 stand for 2x - 1 and 2y - 1.",
        lambda: f"coded and derived source are {load_gap():.2f} apart, relative L², so that the right a is another",
    ),
    Fault(
        "kuramoto-sivashinsky", "No condition is coded at the ends, so that the problem has many solutions.",
        lambda: f"stated as coded, the library refuses it: {refusal_of(coded_kuramoto_sivashinsky)}",
    ),
    Fault(
        "gray-scott", "No condition is coded at the sides, so that the problem has many solutions.",
        lambda: f"stated as coded, the library refuses it: {refusal_of(coded_gray_scott)}",
    ),
)  # fmt: skip
