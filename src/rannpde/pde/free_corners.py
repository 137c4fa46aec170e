"""Corners between free sides of a plate, whose force no condition on a side prescribes.

Kirchhoff's plate has an energy with ∇²u, and where two sides meet in an angle, the twisting moments along them leave a
force 2 (1 - ν) u_nt at the corner, which does work on the deflection there. Between sides without a prescribed
deflection or slope, the equation and all conditions on sides hold for a plate with any force at this corner. The weak
form has none, as is meant. Least squares of the strong form take any: a square plate that is clamped at one side had
a tip deflection of -0.056 instead of 0.129, with residuals of rounding.
"""

from __future__ import annotations

from math import pi

import numpy as np

from rannpde.domains.boundary.planar import SMOOTH_JOIN_ANGLE
from rannpde.domains.operations.cutcells import planar_outline
from rannpde.errors import InputError
from rannpde.pde.problem.problem import Problem
from rannpde.rounding import ROOT_ROUNDED


def free_corner(problem: Problem) -> tuple[float, float] | None:
    """A corner of a stationary plate between sides on which neither deflection nor slope is prescribed.

    None where there is none.

    >>> from rannpde.domains import Box
    >>> free = ["u_xx + 0.3*u_yy = 0", "u_xxx + 1.7*u_xyy = 0"], ["u_yy + 0.3*u_xx = 0", "u_yyy + 1.7*u_xxy = 0"]
    >>> held = {"x=0": ["u = 0", "u_x = 0"], "x=1": free[0], "y=0": free[1]}
    >>> free_corner(Problem("laplace(laplace(u)) = 1", Box(x=(0, 1), y=(0, 1)), held | {"y=1": ["u = 0", "u_y = 0"]}))
    (1.0, 0.0)
    >>> free_corner(Problem("laplace(laplace(u)) = 1", Box(x=(0, 1), y=(0, 1)), {"boundary": ["u = 0", "dn(u) = 0"]}))
    """
    try:
        outline = planar_outline(problem.domain)
        vertices = outline.vertices
    except InputError:
        return None
    holding = [
        term.region for term in problem.constraints
        if term.region is not None and max(jet.order for jet in term.expression.jets) < 2
    ]  # fmt: skip
    for vertex in vertices:
        if abs(vertex.angle - pi) <= SMOOTH_JOIN_ANGLE:
            continue
        beside = vertex.point + ROOT_ROUNDED * outline.size * np.stack([-vertex.arriving, vertex.leaving])
        if not any(region.contains(beside).any() for region in holding):
            x, y = (float(f"{value:.6g}") + 0.0 for value in vertex.point)
            return x, y
    return None
