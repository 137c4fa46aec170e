"""Burgers: u_t + u u_x = ν u_xx from -sin πx, solved exactly by the Cole–Hopf transformation."""

from __future__ import annotations

from rannpde.domains import SpaceTime
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem
from rannpde.pde.zoo.cole_hopf import ColeHopf


def problem(viscosity: float = 0.1, duration: float = 1.0) -> Problem:
    """The classical test on (-1, 1); a layer of width ν forms at x = 0 for small ν."""
    return Problem(
        "u_t + u*u_x = nu*u_xx",
        SpaceTime(t=(0, duration), x=(-1, 1)),
        {"start": On("t=0", "u = -sin(pi*x)"), "walls": On(("x=-1", "x=1"), "u = 0")},
        parameters={"nu": viscosity},
        exact={"u": ColeHopf(viscosity)},
        name="Burgers",
    )
