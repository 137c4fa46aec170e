"""Non-linear Schrödinger: i ψ_t + ½ ψ_xx + |ψ|²ψ = 0 as two real fields, ψ = u + i v, with a moving soliton."""

from __future__ import annotations

from rannpde.domains import SpaceTime
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem


def problem(speed: float = 1.0, duration: float = 1.0) -> Problem:
    """ψ = sech(x - ct) exp(i(cx + (1 - c²)t/2)) on (-5, 5)."""
    real, imaginary = (f"{part}(c*x + (1 - c**2)*t/2)/cosh(x - c*t)" for part in ("cos", "sin"))
    ends = ("x=-5", "x=5")
    return Problem(
        {"real": "u_t + v_xx/2 + (u**2 + v**2)*v = 0", "imaginary": "v_t - u_xx/2 - (u**2 + v**2)*u = 0"},
        SpaceTime(t=(0, duration), x=(-5, 5)),
        {
            "start of u": On("t=0", f"u = {real}"),
            "start of v": On("t=0", f"v = {imaginary}"),
            "ends of u": On(ends, f"u = {real}"),
            "ends of v": On(ends, f"v = {imaginary}"),
        },
        parameters={"c": speed},
        exact={"u": real, "v": imaginary},
        name="Schrödinger",
    )
