"""Heat: a coefficient that varies, two scales, many holes, a long time, a ball of five dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

import numpy as np

from benchmarks.harness.case import Case, ReferenceSolver, later
from benchmarks.harness.coefficients import random_field, random_field_values
from benchmarks.pinnacle.poisson import BY_ELEMENTS, NGSOLVE, discs_of, without
from benchmarks.reference_solvers import chebyshev, fourier
from rannpde.arrays import Array, ArrayMap
from rannpde.domains.domain import Ball, Box, SpaceTime
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem

LARGE = [(x, y, 1.0) for x in (-4, 4) for y in (-9, -3, 3, 9)] + [(0, y, 1.0) for y in (-6, 0, 6)]
LITTLE = [(x, y, 0.4) for x in (-3.2, 3.2) for y in (-6, 0, 6)]
SideLengths = tuple[float, float]
Discs = Sequence[tuple[float, float, float]]
SMALL_PLATE = {"half": (2, 2), "large": [(0, 0, 1.0)], "little": [(1.5, 1.5, 0.3)]}
"""A plate for a quick look."""
DIFFUSIVITY = random_field("heat_2d_vc", "x", "y")
MOMENTS_VC = tuple(float(moment) for moment in np.linspace(0.25, 5, 20))
MOMENTS_CG = tuple(3.0 / 2**k for k in range(6))
MOMENTS_LT = tuple(float(moment) for moment in np.linspace(2.5, 100, 40))


def heat_2d_vc(duration: float = 5.0) -> Problem:
    """u_t - a(x, y) Δu = 200 sin πx sin 5πy sin πt, from 0."""
    conditions = {"start": On("t=0", "u = 0"), "walls": On("boundary", "u = 0")}
    equation = f"u_t = {DIFFUSIVITY}*laplace(u) + 200*sin(pi*x)*sin(5*pi*y)*sin(pi*t)"
    return Problem(equation, SpaceTime(t=(0, duration), x=(0, 1), y=(0, 1)), conditions, name="Heat 2d-VC")


def heat_2d_ms(duration: float = 5.0) -> Problem:
    """u_t = u_xx/(500π)² + u_yy/π² from sin 20πx sin πy."""
    shape = "sin(20*pi*x)*sin(pi*y)"
    conditions = {"start": On("t=0", f"u = {shape}"), "walls": On("boundary", "u = 0")}
    exact = {"u": f"exp(-(1 + (20/500)**2)*t)*{shape}"}
    domain = SpaceTime(t=(0, duration), x=(0, 1), y=(0, 1))
    return Problem("u_t = u_xx/(500*pi)**2 + u_yy/pi**2", domain, conditions, exact=exact, name="Heat 2d-MS")


def heat_2d_cg(half: SideLengths = (8, 12), large: Discs = LARGE, little: Discs = LITTLE) -> Problem:
    """u_t = Δu from 0 on a plate with 17 holes, heated through all sides."""
    holes = [*large, *little]
    names = discs_of(holes)
    conditions = {
        "start": On("t=0", "u = 0"),
        "large": On(names[: len(large)], "dn(u) = 5 - u"),
        "small": On(names[len(large) :], "dn(u) = 1 - u"),
        "outside": On("boundary except " + ", ".join(names), "dn(u) = 0.1 - u"),
    }
    plate = Box(x=(-half[0], half[0]), y=(-half[1], half[1]))
    domain = SpaceTime(t=(0, 3), x=without(plate, holes))
    return Problem("u_t = laplace(u)", domain, conditions, name="Heat 2d-CG")


def heat_2d_lt(duration: float = 100.0) -> Problem:
    """u_t = 0.001 Δu + 5 sin(u²)(1 + 2 sin(πt/4)) sin 4πx sin 2πy, over a long time."""
    conditions = {"start": On("t=0", "u = sin(4*pi*x)*sin(3*pi*y)"), "walls": On("boundary", "u = 0")}
    equation = "u_t = 0.001*laplace(u) + 5*sin(u**2)*(1 + 2*sin(pi*t/4))*sin(4*pi*x)*sin(2*pi*y)"
    return Problem(equation, SpaceTime(t=(0, duration), x=(0, 1), y=(0, 1)), conditions, name="Heat 2d-LT")


def heat_nd(dim: int = 5) -> Problem:
    """u_t = Δu/5 - (r²/5) exp(r²/2 + t) in a ball, its flux given: u = exp(r²/2 + t)."""
    names = [f"x{k}" for k in range(1, dim + 1)]
    square = "(" + " + ".join(f"{name}**2" for name in names) + ")"
    exact = f"exp({square}/2 + t)"
    conditions = {"start": On("t=0", f"u = {exact}"), "edge": On("boundary", f"dn(u) = {exact}")}
    equation = f"u_t = laplace(u)/{dim} - {square}/{dim}*{exact}"
    domain = SpaceTime(t=(0, 1), x=Ball((0,) * dim, 1, names=names))
    return Problem(equation, domain, conditions, exact={"u": exact}, name="HNd")


def diffusivity(x: Array, y: Array) -> Array:
    """a(x, y) of Heat 2d-VC in numbers."""
    return random_field_values("heat_2d_vc", x, y)


def varying(nodes: int) -> ArrayMap:
    """2d-VC by Chebyshev collocation, exactly in time."""
    load = lambda x, y: 200 * np.sin(pi * x) * np.sin(5 * pi * y)  # noqa: E731
    return chebyshev.driven_heat(nodes, diffusivity, load, pi, MOMENTS_VC)


def two_scales(nodes: tuple[int, int]) -> ArrayMap:
    """2d-MS by Chebyshev collocation and fast diagonalisation."""
    start = lambda points: np.sin(20 * pi * points[:, 0]) * np.sin(pi * points[:, 1])  # noqa: E731
    rates = (1 / (500 * pi) ** 2, 1 / pi**2)
    return chebyshev.modal(nodes, rates, start, lambda rates, t: np.exp(rates * t))


def long_time(size: int, steps: int, moments: Sequence[float] = MOMENTS_LT) -> ArrayMap:
    """2d-LT by sines and ETDRK4: continued as an odd function, the solution is smooth on the whole plane.

    Start and force are odd about x = ¼ too, so that a quarter of the square has everything.
    """
    nodes, sides = (size // 4, size), (0.25, 1.0)
    x, y = (side * np.arange(1, count) / count for count, side in zip(nodes, sides, strict=True))
    shape = 5 * np.outer(np.sin(4 * pi * x), np.sin(2 * pi * y))

    def force(u: Array, t: float, *_: Array) -> Array:
        return (1 + 2 * np.sin(pi * t / 4)) * shape * np.sin(u**2)

    start = lambda x, y: np.sin(4 * pi * x) * np.sin(3 * pi * y)  # noqa: E731
    return fourier.sines(nodes, steps, moments, 0.001, force, start, sides)


CASES = (
    Case(
        "heat-2d-vc", "Heat 2d-VC", heat_2d_vc, 1e-4, 60, 2.1e-1,
        ReferenceSolver("Chebyshev, 25² nodes", lambda: varying(24)), times=MOMENTS_VC, reference="heat-2d-vc",
        small={"duration": 0.25}, remark="the file of a is not at hand: exp of a seeded Fourier field",
    ),
    Case(
        "heat-2d-ms", "Heat 2d-MS", heat_2d_ms, 1e-8, 5, 1.4e-2,
        ReferenceSolver("Chebyshev, 73 × 21 nodes", lambda: two_scales((72, 20))),
        times=tuple(np.linspace(0.125, 5, 40).tolist()), small={"duration": 0.125}, small_tol=1e-3,
    ),
    Case(
        "heat-2d-cg", "Heat 2d-CG", heat_2d_cg, 1e-4, 60, 1.6e-2,
        ReferenceSolver("NGSolve, order 5", later(BY_ELEMENTS, "plate", 1.5, 5, 6), NGSOLVE), times=MOMENTS_CG,
        reference="heat-2d-cg", small=SMALL_PLATE, small_tol=1e-1, small_reference="heat-2d-cg-small",
    ),
    Case(
        "heat-2d-lt", "Heat 2d-LT", heat_2d_lt, 1e-4, 120, 1.0,
        ReferenceSolver("sines, 64², ETDRK4", lambda: long_time(64, 2000)), times=MOMENTS_LT, reference="heat-2d-lt",
        small={"duration": 0.25}, small_reference="heat-2d-lt-small",
    ),
    Case(
        "heat-nd", "HNd", heat_nd, 1e-7, 30, 1.2e-4,
        ReferenceSolver("Chebyshev in r², 13 nodes", lambda: chebyshev.ball_heat(12, 1e-8)),
        small={"dim": 2}, small_tol=1e-2,
    ),
)  # fmt: skip
