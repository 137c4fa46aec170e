"""Korteweg–de Vries: u_t + 6 u u_x + u_xxx = 0 with a soliton."""

from __future__ import annotations

from rannpde.domains import SpaceTime
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem


def problem(speed: float = 1.0, duration: float = 1.0) -> Problem:
    """u = c/2 sech²(√c/2 (x - ct)) on (-6, 6): two conditions on the right, one on the left."""
    soliton = "c/2/cosh(sqrt(c)/2*(x - c*t))**2"
    slope = "-sqrt(c)*c/2*tanh(sqrt(c)/2*(x - c*t))/cosh(sqrt(c)/2*(x - c*t))**2"
    return Problem(
        "u_t + 6*u*u_x + u_xxx = 0",
        SpaceTime(t=(0, duration), x=(-6, 6)),
        {
            "start": On("t=0", f"u = {soliton}"),
            "ends": On(("x=-6", "x=6"), f"u = {soliton}"),
            "slope": On("x=6", f"u_x = {slope}"),
        },
        parameters={"c": speed},
        exact={"u": soliton},
        name="Korteweg–de Vries",
    )
