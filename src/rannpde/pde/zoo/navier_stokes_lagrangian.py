"""Compressible Navier–Stokes in Lagrangian coordinates with a singular pressure (eq. lagrangian): a travelling wave."""

from __future__ import annotations

from rannpde.domains import SpaceTime
from rannpde.pde.functions import OneField, PointFunction
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem
from rannpde.pde.zoo.travelling_wave import TravellingWave


def problem(duration: float = 1.0, half_length: float = 5.0) -> Problem:
    """v_t = u_x, u_t + p(v)_x = μ (u_x/v)_x, p = ε (v-1)^-γ, with the paper's numbers; v > 1 always."""
    wave = TravellingWave()
    volume, velocity = OneField(wave, 0, (0, 0)), OneField(wave, 1, (0, 0))
    ends = (f"x={-half_length!r}", f"x={half_length!r}")
    return Problem(
        {"mass": "v_t = u_x", "momentum": "u_t + d(epsilon/(v - 1)**gamma, x) = mu*d(u_x/v, x)"},
        SpaceTime(t=(0, duration), x=(-half_length, half_length)),
        {
            "volume at start": On("t=0", "v = volume(t, x)"),
            "velocity at start": On("t=0", "u = velocity(t, x)"),
            "volume at ends": On(ends, "v = volume(t, x)"),
            "velocity at ends": On(ends, "u = velocity(t, x)"),
        },
        parameters={"epsilon": wave.stiffness, "gamma": wave.pressure_exponent, "mu": wave.viscosity},
        functions={"volume": PointFunction(volume), "velocity": PointFunction(velocity)},
        bounds={"v": (1, None)},
        exact={"v": volume, "u": velocity},
        name="Navier–Stokes, Lagrangian",
    )
