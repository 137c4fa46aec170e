"""The cases by finite elements (NGSolve): loaded only when one of them is wanted."""

from __future__ import annotations

from math import pi

import numpy as np

from rannpde.bench.case import Function
from rannpde.bench.coefficients import read_numbers
from rannpde.bench.pinnacle import flow, heat, poisson
from rannpde.bench.rivals import elements, meshes


def discs_elements(spacing: float, order: int) -> Function:
    """2d-C by finite elements."""
    mesh = meshes.plate(((-0.5, 0.5),) * 2, poisson.FOUR, spacing, order)
    return elements.scalar(mesh, order, "0", {"outside": 1.0} | dict.fromkeys(poisson.discs_of(poisson.FOUR), 0.0))


def uneven_elements(spacing: float, order: int) -> Function:
    """2d-CG by finite elements."""
    mesh = meshes.plate(((-1.0, 1.0),) * 2, poisson.UNEVEN, spacing, order)
    return elements.scalar(
        mesh,
        order,
        poisson.LOAD_2D,
        {"outside": 0.2} | dict.fromkeys(poisson.discs_of(poisson.UNEVEN), 1.0),
        {"all": 64.0},
    )


def balls_elements(spacing: float, order: int) -> Function:
    """3d-CG by finite elements, with a face of elements at z = ½."""
    mesh = meshes.cube(poisson.BALLS, spacing, order)
    return elements.scalar(mesh, order, poisson.LOAD_3D, {}, {"low": 64.0, "high": 100.0})


def block_elements(spacing: float, order: int, levels: int) -> Function:
    """2d-MS by finite elements that end at the blocks, refined to the corners of the blocks."""
    a, (mean, wave) = read_numbers("poisson_2d_ms_a"), poisson.block_loads()
    mesh = meshes.chequered(10.0, 5, spacing, order, levels)
    return elements.block_poisson(mesh, order, mean / a, wave / a)


def plate(spacing: float, order: int, steps: int) -> Function:
    """2d-CG by finite elements and an implicit Runge–Kutta method, in stretches of time that double."""
    mesh = meshes.plate(((-8.0, 8.0), (-12.0, 12.0)), [*heat.LARGE, *heat.LITTLE], spacing, order)
    large = dict.fromkeys(poisson.discs_of([*heat.LARGE, *heat.LITTLE])[: len(heat.LARGE)], 5.0)
    outer = dict.fromkeys(poisson.discs_of([*heat.LARGE, *heat.LITTLE]), 1.0) | large | {"outside": 0.1}
    return elements.heated(mesh, order, outer, heat.MOMENTS_CG, steps)


def step_elements(spacing: float, order: int, levels: int) -> Function:
    """The step by finite elements, refined to its corner."""
    mesh = meshes.cornered(((0, 4), (0, 2)), ((0, 2), (1, 2)), spacing, order, levels)
    return elements.flow(mesh, order, flow.VISCOSITY, ("left", "4*y*(1 - y)"))


def cavity_elements(spacing: float, order: int, levels: int) -> Function:
    """The cavity by finite elements, refined to its corners."""
    mesh = meshes.lidded(spacing, order, levels)
    return elements.flow(mesh, order, flow.VISCOSITY, ("lid", "4*x*(1 - x)"), enclosed=True)


def channel_elements(along: int, across: int, order: int, steps: int) -> Function:
    """The channel by finite elements, an implicit Runge–Kutta method in time."""
    mesh = meshes.channel(2.0, along, across)
    beat = lambda t: float(np.sin(pi * t) + np.sin(3 * pi * t) + np.sin(5 * pi * t))  # noqa: E731
    push = lambda t: -float(np.sin(pi * t))  # noqa: E731
    inflow, force = ("sin(pi*y)", beat), ("sin(pi*x)*sin(pi*y)", push)
    return elements.unsteady_flow(mesh, order, flow.VISCOSITY, inflow, force, flow.MOMENTS, steps)
