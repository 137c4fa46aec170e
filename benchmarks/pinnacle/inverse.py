"""PInv and HInv: a coefficient that is itself a function, found from noisy values of the solution."""

from __future__ import annotations

import numpy as np
import sympy

from benchmarks.harness.case import Case
from rannpde.arrays import combinations
from rannpde.domains.domain import Box, SpaceTime
from rannpde.pde.problem.conditions import Condition, Data, On
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.unknown import UnknownFunction

NOISE = 0.1
"""Standard deviation of the noise, of values of size 1."""
T, X, Y = sympy.symbols("t x y", real=True)
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


def poisson_inverse(count: int = 50) -> Problem:
    """∇·(a∇u) + f = 0: a from u at count × count places."""
    line = np.linspace(0, 1, count)
    places = combinations([line, line])
    noise = NOISE * np.random.default_rng(1).standard_normal(len(places))
    conditions: dict[str, Condition] = {"sides": On("boundary", "u = 0"), "rim": On("boundary", f"a = 1/({BULGE})")}
    values = np.prod(np.sin(np.pi * places), axis=1) + noise
    conditions["sensors"] = Data(places, values, "u", noise=NOISE)
    return Problem(
        f"div(a*grad(u)) + {load_of_pinv()} = 0", Box(x=(0, 1), y=(0, 1)), conditions,
        unknown={"a": UnknownFunction(of=("x", "y"), guess=0.5, bounds=(0, None))},
        exact={"u": "sin(pi*x)*sin(pi*y)", "a": f"1/({BULGE})"}, name="PInv",
    )  # fmt: skip


def heat_inverse(count: int = 2500) -> Problem:
    """u_t - ∇·(a∇u) = f: a(x, y) from values of u at scattered places and times."""
    u, a = sympy.exp(-T) * sympy.sin(sympy.pi * X) * sympy.sin(sympy.pi * Y), "2 + sin(pi*x)*sin(pi*y)"
    coefficient = 2 + sympy.sin(sympy.pi * X) * sympy.sin(sympy.pi * Y)
    flux = sum(sympy.diff(coefficient * sympy.diff(u, axis), axis) for axis in (X, Y))
    domain = SpaceTime(t=(0, 1), x=Box(x=(-1, 1), y=(-1, 1)))
    places = domain.sample(count, rng=1)
    exact = np.exp(-places[:, 0]) * np.prod(np.sin(np.pi * places[:, 1:]), axis=1)
    values = exact + NOISE * np.random.default_rng(2).standard_normal(count)
    conditions: dict[str, Condition] = {"start": On("t=0", "u = sin(pi*x)*sin(pi*y)"), "sides": On("boundary", "u = 0")}
    conditions |= {"rim": On("boundary", f"a = {a}"), "sensors": Data(places, values, "u", noise=NOISE)}
    return Problem(
        f"u_t - div(a*grad(u)) = {sympy.diff(u, T) - flux}", domain, conditions,
        unknown={"a": UnknownFunction(of=("x", "y"), guess=2.0, bounds=(0, None))},
        exact={"u": "exp(-t)*sin(pi*x)*sin(pi*y)", "a": a}, name="HInv",
    )  # fmt: skip


CASES = (
    Case(
        "poisson-inverse", "PInv", poisson_inverse, 1e-2, 30, None, function="a", small={"count": 15},
        small_tol=1e-1,
        remark="the coded source is wrong: 2x + 1 stands for 2x - 1; derived here",
    ),
    Case(
        "heat-inverse", "HInv", heat_inverse, 1e-2, 60, 3.8e-2, function="a", small={"count": 300}, small_tol=2e-1,
    ),
)  # fmt: skip
