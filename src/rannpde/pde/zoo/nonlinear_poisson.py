"""Non-linear Poisson: -Δu + u² = f on the unit square."""

from __future__ import annotations

from rannpde.domains import Box
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem


def problem() -> Problem:
    """u = sin πx sin πy + 0.3 e^(xy)."""
    solution = "sin(pi*x)*sin(pi*y) + 0.3*exp(x*y)"
    source = f"2*pi**2*sin(pi*x)*sin(pi*y) - 0.3*(x**2 + y**2)*exp(x*y) + ({solution})**2"
    return Problem(
        f"-laplace(u) + u**2 = {source}",
        Box(x=(0, 1), y=(0, 1)),
        {"sides": On("boundary", f"u = {solution}")},
        exact={"u": solution},
        name="non-linear Poisson",
    )
