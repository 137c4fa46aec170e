"""Compressible Navier–Stokes in Eulerian form (eq. NSE) on the circle: pressureless, or p = ρ^γ and μ = ρ^α."""

from __future__ import annotations

from rannpde.domains import SpaceTime
from rannpde.pde.problem.conditions import On, Periodic
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.reading import forced
from rannpde.pde.statement.vocabulary import Vocabulary


def equations(gamma: float = 0.0, alpha: float = 0.0) -> dict[str, str]:
    """Conservation of mass and momentum for rho and u, without forces, in terms of mu, gamma and alpha."""
    pressure = "rho**gamma" if gamma else "0"
    thickness = "mu*rho**alpha" if alpha else "mu"
    return {
        "mass": "d(rho, t) + d(rho*u, x)",
        "momentum": f"d(rho*u, t) + d(rho*u**2, x) - d({thickness}*u_x, x) + d({pressure}, x)",
    }


def problem(gamma: float = 0.0, alpha: float = 0.0, viscosity: float = 0.1, duration: float = 0.5) -> Problem:
    """A manufactured solution of both equations with forces; gamma = 0 is pressureless, alpha = 0 constant viscosity.

    ρ = 1 + 0.3 sin(2πx - t), u = 0.5 cos(2πx + t): smooth, periodic, ρ ≥ 0.7.
    """
    exact = {"rho": "1 + 0.3*sin(2*pi*x - t)", "u": "0.5*cos(2*pi*x + t)"}
    parameters = {"gamma": gamma, "alpha": alpha, "mu": viscosity}
    words = Vocabulary(("t", "x"), "t", ("rho", "u"), parameters)
    return Problem(
        {name: forced(text, exact, words) for name, text in equations(gamma, alpha).items()},
        SpaceTime(t=(0, duration), x=(0, 1)),
        {
            "density at start": On("t=0", f"rho = {exact['rho']}"),
            "velocity at start": On("t=0", f"u = {exact['u']}"),
            "circle": Periodic("x"),
        },
        parameters=parameters,
        fields=("rho", "u"),
        bounds={"rho": (0, None)},
        exact=exact,
        name="Navier–Stokes, Eulerian" + (", pressureless" if not gamma else ""),
    )
