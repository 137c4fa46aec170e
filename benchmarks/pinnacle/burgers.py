"""Burgers' equation, in one dimension with Cole–Hopf's solution, and as a system on a periodic square."""

from __future__ import annotations

from math import pi

import numpy as np

from benchmarks.harness.case import Case, ReferenceSolver
from benchmarks.harness.coefficients import read_numbers
from benchmarks.reference_solvers import chebyshev, fourier
from rannpde.arrays import Array, ArrayMap
from rannpde.domains.domain import SpaceTime
from rannpde.pde.problem.conditions import On, Periodic
from rannpde.pde.problem.problem import Problem
from rannpde.pde.zoo import zoo

VISCOSITY = 0.001
MOMENTS = tuple(float(moment) for moment in np.linspace(0.025, 1, 40))
"""Times at which the system is looked at."""


def burgers_1d(duration: float = 1.0) -> Problem:
    """u_t + u u_x = (0.01/π) u_xx from -sin πx."""
    return zoo("burgers", viscosity=0.01 / pi, duration=duration)


def burgers_2d(duration: float = 1.0) -> Problem:
    """(u, v)_t + (u ∂_x + v ∂_y)(u, v) = 0.001 Δ(u, v), periodic, from random waves: 2 w/max w + c."""
    fields = ("u", "v")
    conditions: dict[str, On | Periodic] = {"around x": Periodic("x"), "around y": Periodic("y")}
    for name, row in zip(fields, read_numbers("burgers_2d_c"), strict=True):
        waves = [f"({a!r})*sin(2*pi*({i}*x + {j}*y)) + ({b!r})*cos(2*pi*({i}*x + {j}*y))" for a, b, i, j in _modes(row)]
        conditions[f"start of {name}"] = On("t=0", f"{name} = 2*({' + '.join(waves)})/{row[32]} + ({row[33]})")
    equations = [f"{name}_t + u*{name}_x + v*{name}_y = nu*laplace({name})" for name in fields]
    domain = SpaceTime(t=(0, duration), x=(0, 4), y=(0, 4))
    return Problem(equations, domain, conditions, {"nu": VISCOSITY}, fields=fields, name="Burgers 2d-C")


def _modes(row: Array) -> list[tuple[float, float, int, int]]:
    return [(float(row[4 * i + j]), float(row[16 + 4 * i + j]), i, j) for i in range(4) for j in range(4)]


def start_values(x: Array, y: Array) -> Array:
    """The start in numbers, (2, …) at x and y of one shape."""
    values = []
    for row in read_numbers("burgers_2d_c"):
        phases = [(a, b, 2 * pi * (i * x + j * y)) for a, b, i, j in _modes(row)]
        values.append(2 * sum(a * np.sin(phase) + b * np.cos(phase) for a, b, phase in phases) / row[32] + row[33])
    return np.stack(values)


def waves_on_a_cell(size: int, steps: int, moments: tuple[float, ...] = MOMENTS) -> ArrayMap:
    """The system by Fourier and ETDRK4 on the unit cell: the start repeats itself four times along each side."""
    linear = fourier.diffusion(VISCOSITY, VISCOSITY)
    return fourier.square((0.0, 1.0), size, steps, moments, linear, fourier.carried, start_values, part=2 / 3)


CASES = (
    Case(
        "burgers-1d", "Burgers 1d-C", burgers_1d, 1e-10, 3, 1.3e-2,
        ReferenceSolver("Chebyshev, 769 nodes, Radau", lambda: chebyshev.burgers(0.01 / pi, 768, 1e-7)),
        small={"duration": 0.1}, small_tol=1e-4,
        remark="the reference solution is Cole–Hopf; the benchmark's own reference is 1.3e-2 away from it",
    ),
    Case(
        "burgers-2d", "Burgers 2d-C", burgers_2d, 1e-4, 60, 2.6e-1,
        ReferenceSolver("Fourier ETDRK4, 128² on the cell of period 1", lambda: waves_on_a_cell(128, 400)),
        times=MOMENTS, reference="burgers-2d", small={"duration": 0.025}, small_tol=3e-1,
        remark="the coefficients of the start are our own draw",
    ),
)  # fmt: skip
