"""Porous medium: u_t = Δ(u^m) (eq. PME) with Barenblatt's solution, smooth or through its free boundary."""

from __future__ import annotations

from rannpde.domains import SpaceTime
from rannpde.errors import positive_integer
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem
from rannpde.pde.zoo.barenblatt import Barenblatt

EQUATION = "u_t = laplace(u**m)"


def problem(
    dim: int = 1,
    exponent: float = 2.0,
    radius: float | None = None,
    mass_parameter: float = 1.0,
    start: float = 0.1,
    duration: float = 1.0,
) -> Problem:
    """The porous medium equation on the unit cube, with values given at the start and on the walls.

    With ``radius`` the support has that radius at the first time and its edge moves through the cube; without, b =
    ``mass_parameter`` = 1 makes the support cover the cube, so that the solution is smooth and positive, as
    Corollary "PME" asks.
    """
    dim = positive_integer("dim", dim)
    centre = (0.5,) * dim
    if radius is None:
        profile = Barenblatt(centre, mass_parameter, exponent)
    else:
        profile = Barenblatt.with_radius(radius, time=start, space_dim=dim, exponent=exponent)
    domain = SpaceTime(t=(start, start + duration), x=(0, 1) if dim == 1 else [(0, 1)] * dim)
    squares = " + ".join(f"({name} - 1/2)**2" for name in domain.names[1:])
    covered = profile.radius(start) > dim**0.5 / 2
    base = f"b - k*({squares})/t**(2*beta)"
    power = "" if exponent == 2 else "**(1/(m - 1))"
    formula = f"t**(-alpha)*({base}){power}" if covered else f"t**(-alpha)*max({base}, 0){power}"
    return Problem(
        EQUATION,
        domain,
        {"start": On(f"t={start!r}", f"u = {formula}"), "walls": On("boundary", f"u = {formula}")},
        parameters={
            "m": exponent,
            "b": profile.mass_parameter,
            "k": profile.curvature,
            "alpha": profile.decay_rate,
            "beta": profile.spreading_rate,
        },
        bounds={} if covered else {"u": (0, None)},
        exact={"u": profile},
        name=f"porous medium in {dim}-D" + ("" if covered else " with a free boundary"),
    )
