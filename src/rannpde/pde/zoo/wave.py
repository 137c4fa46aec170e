"""Wave: u_tt = c² u_xx with two frequencies, second order in time."""

from __future__ import annotations

from rannpde.domains import SpaceTime
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem


def problem(speed: float = 1.0, duration: float = 1.0) -> Problem:
    """u = sin(πx) cos(πct) + ½ sin(3πx) cos(3πct) on (0, 1), fixed ends, at rest at first."""
    return Problem(
        "u_tt = c**2*u_xx",
        SpaceTime(t=(0, duration), x=(0, 1)),
        {
            "shape": On("t=0", "u = sin(pi*x) + 0.5*sin(3*pi*x)"),
            "rest": On("t=0", "u_t = 0"),
            "ends": On(("x=0", "x=1"), "u = 0"),
        },
        parameters={"c": speed},
        exact={"u": "sin(pi*x)*cos(pi*c*t) + 0.5*sin(3*pi*x)*cos(3*pi*c*t)"},
        name="wave",
    )
