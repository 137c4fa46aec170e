"""Helmholtz (screened): u'' - λu = f on an interval, with an oscillating solution."""

from __future__ import annotations

from rannpde.domains import Interval
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem


def problem(shift: float = 10.0, length: float = 8.0) -> Problem:
    """u = sin(3πx + 3π/20) cos(2πx + π/10) + 2 on (0, length), as in the random-feature literature."""
    high, low = "sin(5*pi*x + a)", "sin(pi*x + b)"  # sin A cos B = ½ (sin(A + B) + sin(A - B))
    return Problem(
        f"u_xx - shift*u = -(25*pi**2 + shift)*{high}/2 - (pi**2 + shift)*{low}/2 - 2*shift",
        Interval(0, length),
        {"ends": On("boundary", f"u = {high}/2 + {low}/2 + 2")},
        parameters={"shift": shift, "a": 0.7853981633974483, "b": 0.15707963267948966},
        exact={"u": f"{high}/2 + {low}/2 + 2"},
        name="Helmholtz",
    )
