"""Waves, and patterns: Gray–Scott, Kuramoto–Sivashinsky."""

from __future__ import annotations

from math import pi

import numpy as np

from benchmarks.harness.case import Case, ReferenceSolver
from benchmarks.harness.coefficients import random_field, random_field_values
from benchmarks.reference_solvers import chebyshev, fourier
from rannpde.arrays import Array, ArrayMap
from rannpde.domains.domain import SpaceTime
from rannpde.pde.problem.conditions import On, Periodic
from rannpde.pde.problem.problem import Problem

MOMENTS_CG = tuple(float(moment) for moment in np.linspace(0.25, 5, 20))
MOMENTS_GS = tuple(float(moment) for moment in np.linspace(5, 200, 40))
MOMENTS_KS = tuple(float(moment) for moment in np.linspace(0.01, 1, 100))
BLOBS = ((80.0, -0.05, -0.02), (80.0, 0.05, 0.02))
"""Steepness and centre of the two spots that Gray–Scott starts from."""


def wave_1d(duration: float = 1.0) -> Problem:
    """u_tt = 4 u_xx with two frequencies."""
    conditions = {
        "shape": On("t=0", "u = sin(pi*x) + 0.5*sin(4*pi*x)"),
        "rest": On("t=0", "u_t = 0"),
        "ends": On(("x=0", "x=1"), "u = 0"),
    }
    exact = {"u": "sin(pi*x)*cos(2*pi*t) + 0.5*sin(4*pi*x)*cos(8*pi*t)"}
    domain = SpaceTime(t=(0, duration), x=(0, 1))
    return Problem("u_tt = 4*u_xx", domain, conditions, exact=exact, name="Wave 1d-C")


def wave_2d_cg(duration: float = 5.0) -> Problem:
    """u_tt = c(x, y) Δu, walls that reflect, a bump at rest."""
    conditions = {
        "shape": On("t=0", "u = exp(-((x + 0.5)**2 + y**2)/0.18)"),
        "rest": On("t=0", "u_t = 0"),
        "walls": On("boundary", "dn(u) = 0"),
    }
    speed = random_field("wave_2d_cg", "(x + 1)/2", "(y + 1)/2")
    domain = SpaceTime(t=(0, duration), x=(-1, 1), y=(-1, 1))
    return Problem(f"u_tt = {speed}*laplace(u)", domain, conditions, name="Wave 2d-CG")


def wave_2d_ms(duration: float = 100.0) -> Problem:
    """u_tt = u_xx + 2 u_yy over a long time: Σ sin mπx sin nπy cos pπt, p² = m² + 2n²."""
    conditions = {
        "shape": On("t=0", "u = sin(pi*x)*sin(pi*y) + sin(3*pi*x)*sin(2*pi*y)"),
        "rest": On("t=0", "u_t = 0"),
        "walls": On("boundary", "u = 0"),
    }
    exact = "sin(pi*x)*sin(pi*y)*cos(sqrt(3)*pi*t) + sin(3*pi*x)*sin(2*pi*y)*cos(sqrt(17)*pi*t)"
    domain = SpaceTime(t=(0, duration), x=(0, 1), y=(0, 1))
    return Problem("u_tt = u_xx + 2*u_yy", domain, conditions, exact={"u": exact}, name="Wave 2d-MS")


def gray_scott(duration: float = 200.0) -> Problem:
    """Two substances on a periodic square."""
    spots = [f"exp(-{k:g}*((x - ({x!r}))**2 + (y - ({y!r}))**2))" for k, x, y in BLOBS]
    conditions: dict[str, On | Periodic] = {f"around {axis}": Periodic(axis) for axis in ("x", "y")}
    conditions |= {"start of u": On("t=0", f"u = 1 - {spots[0]}"), "start of v": On("t=0", f"v = {spots[1]}")}
    equations = ["u_t = 1e-5*laplace(u) + 0.04*(1 - u) - u*v**2", "v_t = 5e-6*laplace(v) - 0.1*v + u*v**2"]
    domain = SpaceTime(t=(0, duration), x=(-1, 1), y=(-1, 1))
    return Problem(equations, domain, conditions, fields=("u", "v"), name="Gray–Scott")


def kuramoto_sivashinsky(duration: float = 1.0) -> Problem:
    """u_t + α u u_x + β u_xx + γ u_xxxx = 0: in 16x and 100t the standard form, far into its chaos."""
    conditions: dict[str, On | Periodic] = {"start": On("t=0", "u = cos(x)*(1 + sin(x))"), "circle": Periodic("x")}
    equation = "u_t + 100/16*u*u_x + 100/16**2*u_xx + 100/16**4*u_xxxx = 0"
    domain = SpaceTime(t=(0, duration), x=(0, 2 * pi))
    return Problem(equation, domain, conditions, name="Kuramoto–Sivashinsky")


def speed_squared(x: Array, y: Array) -> Array:
    """c(x, y) of Wave 2d-CG in numbers."""
    return random_field_values("wave_2d_cg", (x + 1) / 2, (y + 1) / 2)


def reflected(size: int) -> ArrayMap:
    """2d-CG by cosines: continued as an even function, only the kink that the start has at the walls is left."""
    start = lambda x, y: np.exp(-((x + 0.5) ** 2 + y**2) / 0.18)  # noqa: E731
    return fourier.reflected_wave(size, MOMENTS_CG, speed_squared, start)


def two_modes(nodes: tuple[int, int]) -> ArrayMap:
    """2d-MS by Chebyshev collocation and fast diagonalisation."""

    def shape(points: Array) -> Array:
        x, y = pi * points.T
        return np.sin(x) * np.sin(y) + np.sin(3 * x) * np.sin(2 * y)

    law = lambda rates, t: np.cos(np.sqrt(np.abs(rates)) * t)  # noqa: E731
    return chebyshev.modal(nodes, (1.0, 2.0), shape, law)


def start_values(x: Array, y: Array) -> Array:
    """The start of Gray–Scott in numbers, (2, …) at x and y of one shape."""
    u, v = (np.exp(-k * ((x - a) ** 2 + (y - b) ** 2)) for k, a, b in BLOBS)
    return np.stack([1 - u, v])


def reacting(size: int, steps: int) -> ArrayMap:
    """Gray–Scott by Fourier and ETDRK4."""
    linear = fourier.diffusion(1e-5, 5e-6, decay=(0.04, 0.1))
    return fourier.square((-1.0, 1.0), size, steps, MOMENTS_GS, linear, fourier.gray_scott_rate, start_values)


def chaotic(modes: int, steps: int) -> ArrayMap:
    """Kuramoto–Sivashinsky by Fourier and ETDRK4."""
    linear = lambda k: 100 / 16**2 * k**2 - 100 / 16**4 * k**4  # noqa: E731
    start = lambda x: np.cos(x) * (1 + np.sin(x))  # noqa: E731
    return fourier.circle(modes, steps, MOMENTS_KS, linear, -100 / 32, start)


CASES = (
    Case(
        "wave-1d", "Wave 1d-C", wave_1d, 1e-10, 1, 1.6e-2,
        ReferenceSolver("Chebyshev, 41 nodes", lambda: chebyshev.wave(40)), small={"duration": 0.25}, small_tol=1e-4,
    ),
    Case(
        "wave-2d-cg", "Wave 2d-CG", wave_2d_cg, 1e-4, 60, 7.9e-1,
        ReferenceSolver("cosines, 128², Chebyshev in time", lambda: reflected(128)),
        times=MOMENTS_CG, reference="wave-2d-cg",
        small={"duration": 0.25}, small_tol=1e-1,
        remark="the file of c is not at hand: exp of a seeded Fourier field; the start has a slope of 1.4 at a wall "
        "that allows none, so that a kink travels for ever",
    ),
    Case(
        "wave-2d-ms", "Wave 2d-MS", wave_2d_ms, 1e-6, 30, None,
        ReferenceSolver("Chebyshev, 29 × 25 nodes", lambda: two_modes((28, 24))),
        times=tuple(np.linspace(2.5, 100, 40).tolist()), small={"duration": 2.5}, small_tol=1e-3,
        remark="the benchmark's solution does not solve its equation; ours has p² = m² + 2n²",
    ),
    Case(
        "gray-scott", "Gray–Scott", gray_scott, 1e-4, 120, 8.0e-2,
        ReferenceSolver("Fourier ETDRK4, 384²", lambda: reacting(384, 320)), times=MOMENTS_GS, reference="gray-scott",
        small={"duration": 5.0}, remark="the benchmark codes no condition at the sides: periodic",
    ),
    Case(
        "kuramoto-sivashinsky", "Kuramoto–Sivashinsky", kuramoto_sivashinsky, 1e-6, 5, 9.5e-1,
        ReferenceSolver("Fourier ETDRK4, 128 modes", lambda: chaotic(128, 8000)), times=MOMENTS_KS,
        reference="kuramoto-sivashinsky", small={"duration": 0.05}, small_tol=1e-4,
        remark="the benchmark codes no condition at the ends: periodic",
    ),
)  # fmt: skip
