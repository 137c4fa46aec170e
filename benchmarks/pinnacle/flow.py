"""Incompressible flow: the lid-driven cavity, the backward step, a channel with an inflow that beats."""

from __future__ import annotations

import numpy as np

from benchmarks.harness.case import Case, ReferenceSolver, later
from benchmarks.pinnacle.poisson import BY_ELEMENTS, NGSOLVE
from benchmarks.reference_solvers import steady
from rannpde.arrays import Array, ArrayMap
from rannpde.domains.domain import Box, SpaceTime
from rannpde.pde.problem.conditions import Data, On
from rannpde.pde.problem.problem import Problem

VISCOSITY = 0.01
FLOW = {
    "momentum x": "u*u_x + v*u_y + p_x = nu*laplace(u)",
    "momentum y": "u*v_x + v*v_y + p_y = nu*laplace(v)",
    "mass": "u_x + v_y = 0",
}
OUTFLOW = "p = 0 alone is one condition too few at the outflow: no force, p = ν u_x and v_x = 0, is what COMSOL takes"
MOMENTS = tuple(float(moment) for moment in np.linspace(0.25, 5, 20))
BEAT = "(sin(pi*t) + sin(3*pi*t) + sin(5*pi*t))"


def cavity() -> Problem:
    """ν = 0.01, the lid moves with 4x(1 - x); the pressure is zero in a corner."""
    conditions: dict[str, On | Data] = {
        "lid": On("y=1", "u = 4*x*(1 - x)"),
        "walls, u": On(("x=0", "x=1", "y=0"), "u = 0"),
        "all sides, v": On("boundary", "v = 0"),
        "level": Data(np.zeros((1, 2)), np.zeros(1), "p"),
    }
    domain = Box(x=(0, 1), y=(0, 1))
    return Problem(FLOW, domain, conditions, {"nu": VISCOSITY}, fields=("u", "v", "p"), name="NS 2d-C")


def step() -> Problem:
    """The flow behind a backward step."""
    conditions = {"inflow, u": On("x=0", "u = 4*y*(1 - y)"), "inflow, v": On("x=0", "v = 0")}
    conditions |= {f"walls, {name}": On("boundary except x=0, x=4", f"{name} = 0") for name in ("u", "v")}
    conditions |= {"outflow, u": On("x=4", "p = nu*u_x"), "outflow, v": On("x=4", "v_x = 0")}
    domain = Box(x=(0, 4), y=(0, 2)) - Box(x=(0, 2), y=(1, 2))
    return Problem(FLOW, domain, conditions, {"nu": VISCOSITY}, fields=("u", "v", "p"), name="NS 2d-CG")


def channel(duration: float = 5.0, viscosity: float = VISCOSITY) -> Problem:
    """Unsteady, from rest; the inflow beats with three frequencies, a force pushes across."""
    equations = {
        "momentum x": "u_t + u*u_x + v*u_y + p_x = nu*laplace(u)",
        "momentum y": "v_t + u*v_x + v*v_y + p_y = nu*laplace(v) - sin(pi*x)*sin(pi*y)*sin(pi*t)",
        "mass": "u_x + v_y = 0",
    }
    conditions = {f"start of {name}": On("t=0", f"{name} = 0") for name in ("u", "v")}
    conditions |= {"inflow, u": On("x=0", f"u = sin(pi*y)*{BEAT}"), "inflow, v": On("x=0", "v = 0")}
    conditions |= {f"walls, {name}": On(("y=0", "y=1"), f"{name} = 0") for name in ("u", "v")}
    conditions |= {"outflow, u": On("x=2", "p = nu*u_x"), "outflow, v": On("x=2", "v_x = 0")}
    domain = SpaceTime(t=(0, duration), x=(0, 2), y=(0, 1))
    return Problem(equations, domain, conditions, {"nu": viscosity}, fields=("u", "v", "p"), name="NS 2d-LT")


def cavity_nodes(nodes: int) -> ArrayMap:
    """The cavity by Chebyshev collocation and Newton."""

    def velocity(points: Array) -> Array:
        x, y = points.T
        return np.column_stack([np.where(y > 1 - 1e-12, 4 * x * (1 - x), 0.0), np.zeros(len(x))])

    return steady.navier_stokes(((0.0, 1.0), (0.0, 1.0)), VISCOSITY, velocity, (0.0, 0.0, 0.0), nodes)


CASES = (
    Case(
        "ns-2d-c", "NS 2d-C", cavity, 1e-4, 60, 2.4e-2,
        ReferenceSolver("Chebyshev, 33² nodes", lambda: cavity_nodes(32)),
        fields=2, reference="ns-2d-c", small_tol=1e-1,
    ),
    Case(
        "ns-2d-cg", "NS 2d-CG", step, 1e-3, 60, 8.2e-2,
        ReferenceSolver("NGSolve, order 5", later(BY_ELEMENTS, "step_elements", 0.4, 5, 3), NGSOLVE),
        fields=2, reference="ns-2d-cg",
        small_tol=1e-1, remark=OUTFLOW,
    ),
    Case(
        "ns-2d-lt", "NS 2d-LT", channel, 1e-3, 120, 9.7e-1,
        ReferenceSolver("NGSolve, order 6", later(BY_ELEMENTS, "channel_elements", 6, 3, 2, 6, 100), NGSOLVE), fields=2,
        times=MOMENTS, reference="ns-2d-lt", small={"duration": 0.25, "viscosity": 0.2}, small_tol=1e-1,
        small_reference="ns-2d-lt-small", remark=OUTFLOW,
    ),
)  # fmt: skip
