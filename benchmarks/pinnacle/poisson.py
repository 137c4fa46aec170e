"""Poisson's equation and its kin: around discs and balls, with many blocks, in five dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

import numpy as np

from benchmarks.harness.case import Case, ReferenceSolver, later
from benchmarks.harness.coefficients import blocks, read_numbers
from benchmarks.reference_solvers import chebyshev
from rannpde.arrays import Array, ArrayMap
from rannpde.domains.domain import Ball, Box, Domain
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem

FOUR = [(x, y, 0.1) for x in (-0.3, 0.3) for y in (-0.3, 0.3)]
UNEVEN = [(0.5, 0.5, 0.2), (0.4, -0.4, 0.4), (-0.2, -0.7, 0.1), (-0.6, 0.5, 0.3)]
BALLS = [(0.4, 0.3, 0.6, 0.2), (0.6, 0.7, 0.6, 0.2), (0.2, 0.8, 0.7, 0.1), (0.6, 0.2, 0.3, 0.1)]
LOAD_2D = "10*(17 + x**2 + y**2)*sin(pi*x)*sin(4*pi*y)"
CUTS = np.array([-6.0, -2.0, 2.0, 6.0])
"""Where the square of 2d-MS is cut, in x and in y."""


def without(box: Box, balls: Sequence[Sequence[float]]) -> Domain:
    """A box without balls, each a row (centre, radius), called disc0, disc1, …"""
    domain: Domain = box
    for number, (*centre, radius) in enumerate(balls):
        domain = domain - Ball(tuple(centre), radius, box.names, name=f"disc{number}")
    return domain


def discs_of(balls: Sequence[Sequence[float]]) -> tuple[str, ...]:
    """The names of their sides."""
    return tuple(f"disc{number}" for number in range(len(balls)))


def around(balls: Sequence[Sequence[float]], outside: str, on_discs: str) -> dict[str, On]:
    """One condition on the sides of the box, one on all balls."""
    rest = "boundary except " + ", ".join(discs_of(balls))
    return {"outside": On(rest, outside), "discs": On(discs_of(balls), on_discs)}


def poisson_2d_c() -> Problem:
    """Δu = 0 on a square without four discs."""
    domain = without(Box(x=(-0.5, 0.5), y=(-0.5, 0.5)), FOUR)
    return Problem("laplace(u) = 0", domain, around(FOUR, "u = 1", "u = 0"), name="Poisson 2d-C")


def poisson_2d_cg() -> Problem:
    """-Δu + 64 u = f on a square without four discs of different sizes."""
    domain = without(Box(x=(-1, 1), y=(-1, 1)), UNEVEN)
    conditions = around(UNEVEN, "u = 0.2", "u = 1")
    return Problem(f"-laplace(u) + 64*u = {LOAD_2D}", domain, conditions, name="Poisson 2d-CG")


def load_3d(waves: tuple[int, int] = (10, 5)) -> str:
    """f of 3d-CG, with so many half waves along y and z."""
    (j, k), square = waves, "x**2 + y**2 + z**2"
    bumps = f"20*exp(sin(pi*x) + sin({j}*pi*y) + sin({k}*pi*z))*({square} - 1)/({square} + 1)"
    return f"{bumps} + 100*sin(pi*x)*sin({j}*pi*y)*sin({k}*pi*z)"


def poisson_3d_cg(balls: int = 4, waves: tuple[int, int] = (10, 5)) -> Problem:
    """-Δu + k² u = f on a cube without four balls, k = 8 below z = ½ and 10 above, no flux anywhere."""
    domain = without(Box(x=(0, 1), y=(0, 1), z=(0, 1)), BALLS[:balls])
    equation = f"-laplace(u) + where(z < 0.5, 64, 100)*u = {load_3d(waves)}"
    return Problem(equation, domain, {"sides": On("boundary", "dn(u) = 0")}, name="Poisson 3d-CG")


def poisson_2d_ms() -> Problem:
    """a Δu + f = 0 with a and f on 5 × 5 blocks, ∂_n u = -u; sin(π ξ) of a block is |sin(π(x + 10)/4)|."""
    a, (mean, wave) = read_numbers("poisson_2d_ms_a"), block_loads()
    load = f"{blocks(mean, CUTS)} + {blocks(wave, CUTS)}*abs(sin(pi*(x + 10)/4)*sin(pi*(y + 10)/4))"
    conditions = {"sides": On("boundary", "dn(u) = -u")}
    domain = Box(x=(-10, 10), y=(-10, 10))
    return Problem(f"({blocks(a, CUTS)})*laplace(u) + {load} = 0", domain, conditions, name="Poisson 2d-MS")


def block_loads() -> tuple[Array, Array]:
    """c_00 and c_11 (5, 5) of f: with i = 0 or j = 0 a sine vanishes, and c_00 is added once."""
    given = read_numbers("poisson_2d_ms_f").reshape(5, 5, 2, 2)
    return given[:, :, 0, 0], given[:, :, 1, 1]


def poisson_nd(dim: int = 5) -> Problem:
    """-Δu = (π²/4) Σ sin(πx_i/2) on the unit cube, its solution prescribed on the sides."""
    exact = " + ".join(f"sin(pi*x{k}/2)" for k in range(1, dim + 1))
    conditions = {"sides": On("boundary", f"u = {exact}")}
    return Problem(f"-laplace(u) = pi**2/4*({exact})", Box([(0, 1)] * dim), conditions, exact={"u": exact}, name="PNd")


def five_sines(nodes: int) -> ArrayMap:
    """PNd by Chebyshev collocation."""

    def exact(points: Array) -> Array:
        return np.sin(pi * points / 2).sum(axis=1)

    return chebyshev.poisson(5, nodes, lambda points: pi**2 / 4 * exact(points), exact)


NGSOLVE, BY_ELEMENTS = "ngsolve", "benchmarks.pinnacle.by_elements"
CASES = (
    Case(
        "poisson-2d-c", "Poisson 2d-C", poisson_2d_c, 1e-5, 20, 8.2e-3,
        ReferenceSolver("NGSolve, order 6", later(BY_ELEMENTS, "discs_elements", 0.15, 6), NGSOLVE),
        reference="poisson-2d-c",
    ),
    Case(
        "poisson-2d-cg", "Poisson 2d-CG", poisson_2d_cg, 1e-5, 30, 4.1e-3,
        ReferenceSolver("NGSolve, order 9", later(BY_ELEMENTS, "uneven_elements", 0.25, 9), NGSOLVE),
        reference="poisson-2d-cg",
        small_tol=1e-1,
    ),
    Case(
        "poisson-3d-cg", "Poisson 3d-CG", poisson_3d_cg, 1e-3, 120, 5.7e-2,
        ReferenceSolver("NGSolve, order 6", later(BY_ELEMENTS, "balls_elements", 0.2, 6), NGSOLVE),
        reference="poisson-3d-cg",
        small={"balls": 0, "waves": (1, 1)}, small_tol=1e-1, small_reference="poisson-3d-cg-small",
    ),
    Case(
        "poisson-2d-ms", "Poisson 2d-MS", poisson_2d_ms, 1e-4, 60, 5.9e-1,
        ReferenceSolver("NGSolve, order 6", later(BY_ELEMENTS, "block_elements", 2.0, 6, 1), NGSOLVE),
        reference="poisson-2d-ms",
        remark="a multiplies Δu, so only the curvature jumps; the flux does not",
    ),
    Case(
        "poisson-nd", "PNd", poisson_nd, 1e-12, 3, 1.3e-4,
        ReferenceSolver("Chebyshev, 13⁵ nodes", lambda: five_sines(12)),
        small={"dim": 4}, small_tol=1e-4, remark="plain extreme learning machines: 2e-8",
    ),
)  # fmt: skip
