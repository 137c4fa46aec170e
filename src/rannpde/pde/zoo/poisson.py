"""Poisson: -Δu = f on the unit cube of any dimension."""

from __future__ import annotations

from rannpde.domains import Box
from rannpde.errors import positive_integer
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem


def problem(dim: int = 2) -> Problem:
    """u = Σ sin(πx_i/2), its values given on all sides."""
    domain = Box([(0, 1)] * positive_integer("dim", dim))
    solution = " + ".join(f"sin(pi*{name}/2)" for name in domain.names)
    return Problem(
        f"-laplace(u) = (pi/2)**2*({solution})",
        domain,
        {"sides": On("boundary", f"u = {solution}")},
        exact={"u": solution},
        name=f"Poisson in {dim}-D",
    )
