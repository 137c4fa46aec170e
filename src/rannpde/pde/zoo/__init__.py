"""Named problems with exact or high-accuracy solutions, one a file; ``ZOO`` maps names to functions that build them."""

from __future__ import annotations

from collections.abc import Callable

from rannpde.errors import choose
from rannpde.pde.problem import Problem
from rannpde.pde.zoo.advection import advection
from rannpde.pde.zoo.allen_cahn import allen_cahn
from rannpde.pde.zoo.burgers import burgers
from rannpde.pde.zoo.heat import heat
from rannpde.pde.zoo.helmholtz import helmholtz
from rannpde.pde.zoo.korteweg_de_vries import korteweg_de_vries
from rannpde.pde.zoo.kovasznay import kovasznay
from rannpde.pde.zoo.navier_stokes_eulerian import navier_stokes_eulerian
from rannpde.pde.zoo.navier_stokes_lagrangian import navier_stokes_lagrangian
from rannpde.pde.zoo.nonlinear_poisson import nonlinear_poisson
from rannpde.pde.zoo.poisson import poisson
from rannpde.pde.zoo.porous_medium import porous_medium
from rannpde.pde.zoo.schroedinger import schroedinger
from rannpde.pde.zoo.wave import wave

ZOO: dict[str, Callable[..., Problem]] = {
    function.__name__: function
    for function in (
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


__all__ = ["ZOO", "zoo", *ZOO]
