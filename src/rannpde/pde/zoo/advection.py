"""Advection: u_t + β u_x = 0, periodic, with one sine wave carried around."""

from __future__ import annotations

from rannpde.domains import SpaceTime
from rannpde.pde.problem.conditions import On, Periodic
from rannpde.pde.problem.problem import Problem


def problem(speed: float = 2.0, duration: float = 1.0) -> Problem:
    """u = sin(2π(x - βt)) on the unit circle."""
    wave = "sin(2*pi*(x - beta*t))"
    return Problem(
        "u_t + beta*u_x = 0",
        SpaceTime(t=(0, duration), x=(0, 1)),
        {"start": On("t=0", f"u = {wave}"), "circle": Periodic("x")},
        parameters={"beta": speed},
        exact={"u": wave},
        name="advection",
    )
