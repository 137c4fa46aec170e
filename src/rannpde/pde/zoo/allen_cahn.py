"""Allen–Cahn: u_t = u_xx + u - u³ with a front that invades the unstable state."""

from __future__ import annotations

from rannpde.domains import SpaceTime
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem


def problem(duration: float = 1.0) -> Problem:
    """u = ½ + ½ tanh(x/(2√2) + 3t/4) on (-6, 6)."""
    front = "1/2 + tanh(x/(2*sqrt(2)) + 3*t/4)/2"
    return Problem(
        "u_t = u_xx + u - u**3",
        SpaceTime(t=(0, duration), x=(-6, 6)),
        {"start": On("t=0", f"u = {front}"), "ends": On(("x=-6", "x=6"), f"u = {front}")},
        exact={"u": front},
        name="Allen–Cahn",
    )
