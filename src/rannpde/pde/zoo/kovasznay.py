"""Kovasznay flow: a steady solution of the incompressible Navier–Stokes equations behind a grid."""

from __future__ import annotations

from math import pi, sqrt

from rannpde.domains import Box
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem


def problem(reynolds: float = 40.0) -> Problem:
    """Velocity (u, v) and pressure p on (-½, 1) × (-½, 1½); the pressure is fixed on the inflow side."""
    decay = reynolds / 2 - sqrt(reynolds**2 / 4 + 4 * pi**2)
    u = "1 - exp(k*x)*cos(2*pi*y)"
    v = "k/(2*pi)*exp(k*x)*sin(2*pi*y)"
    p = "(1 - exp(2*k*x))/2"
    return Problem(
        {
            "momentum x": "u*u_x + v*u_y + p_x = laplace(u)/Re",
            "momentum y": "u*v_x + v*v_y + p_y = laplace(v)/Re",
            "mass": "u_x + v_y = 0",
        },
        Box(x=(-0.5, 1), y=(-0.5, 1.5)),
        {
            "velocity x": On("boundary", f"u = {u}"),
            "velocity y": On("boundary", f"v = {v}"),
            "inflow pressure": On("x=-0.5", f"p = {p}"),
        },
        parameters={"Re": reynolds, "k": decay},
        fields=("u", "v", "p"),
        exact={"u": u, "v": v, "p": p},
        name="Kovasznay flow",
    )
