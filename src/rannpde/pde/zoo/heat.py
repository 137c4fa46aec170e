"""Heat: u_t = κ Δu in d dimensions, with product sines that decay."""

from __future__ import annotations

from rannpde.domains import SpaceTime
from rannpde.errors import positive_integer
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem


def problem(dim: int = 1, diffusivity: float = 0.2, duration: float = 1.0) -> Problem:
    """u = e^(-dκπ²t) Π sin(πx_i) on the unit cube, zero on the walls."""
    names = [f"x{k}" for k in range(1, positive_integer("dim", dim) + 1)]
    profile = "*".join(f"sin(pi*{name})" for name in names)
    return Problem(
        "u_t = kappa*laplace(u)",
        SpaceTime(t=(0, duration), x=[(0, 1)] * dim),
        {"start": On("t=0", f"u = {profile}"), "walls": On("boundary", "u = 0")},
        parameters={"kappa": diffusivity, "dimension": dim},
        exact={"u": f"exp(-dimension*kappa*pi**2*t)*{profile}"},
        name=f"heat in {dim}-D",
    )
