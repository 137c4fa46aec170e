"""Named problems, each in a file that defines ``problem(…)``, and the exact solutions that they are checked against."""

from __future__ import annotations

from collections.abc import Callable

from rannpde.errors import choose
from rannpde.pde.problem.problem import Problem
from rannpde.pde.zoo import (
    advection,
    allen_cahn,
    burgers,
    heat,
    helmholtz,
    korteweg_de_vries,
    kovasznay,
    navier_stokes_eulerian,
    navier_stokes_lagrangian,
    nonlinear_poisson,
    poisson,
    porous_medium,
    schroedinger,
    wave,
)

ZOO: dict[str, Callable[..., Problem]] = {
    module.__name__.rpartition(".")[2]: module.problem
    for module in (
        advection, allen_cahn, burgers, heat, helmholtz, korteweg_de_vries, kovasznay, navier_stokes_eulerian,
        navier_stokes_lagrangian, nonlinear_poisson, poisson, porous_medium, schroedinger, wave,
    )
}  # fmt: skip


def zoo(name: str, **settings: float) -> Problem:
    """The problem of that name, e.g. ``zoo("porous_medium", dim=2)``.

    >>> zoo("heat").fields
    ('u',)
    """
    return choose("problem", name, ZOO)(**settings)
