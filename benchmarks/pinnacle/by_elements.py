"""The cases by finite elements (NGSolve): loaded only when one of them is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

import numpy as np

from benchmarks.harness.coefficients import read_numbers
from benchmarks.pinnacle import flow, heat, poisson
from benchmarks.reference_solvers import elements, meshes
from rannpde.arrays import ArrayMap


def discs_elements(spacing: float, order: int) -> ArrayMap:
    """2d-C by finite elements."""
    mesh = meshes.plate(((-0.5, 0.5),) * 2, poisson.FOUR, spacing, order)
    return elements.scalar(mesh, order, 0.0, {"outside": 1.0} | dict.fromkeys(poisson.discs_of(poisson.FOUR), 0.0))


def uneven_elements(spacing: float, order: int) -> ArrayMap:
    """2d-CG by finite elements."""
    mesh = meshes.plate(((-1.0, 1.0),) * 2, poisson.UNEVEN, spacing, order)
    return elements.scalar(
        mesh,
        order,
        elements.formula(poisson.LOAD_2D),
        {"outside": 0.2} | dict.fromkeys(poisson.discs_of(poisson.UNEVEN), 1.0),
        64.0,
    )


def balls_elements(spacing: float, order: int, balls: int = 4, waves: tuple[int, int] = (10, 5)) -> ArrayMap:
    """3d-CG by finite elements, with a face of elements at z = ½."""
    mesh = meshes.cube(poisson.BALLS[:balls], spacing, order)
    load, squares = elements.formula(poisson.load_3d(waves)), mesh.MaterialCF({"low": 64.0, "high": 100.0})
    return elements.scalar(mesh, order, load, {}, squares)


def block_elements(spacing: float, order: int, levels: int) -> ArrayMap:
    """2d-MS by finite elements that end at the blocks, refined to the corners of the blocks."""
    a, (mean, wave) = read_numbers("poisson_2d_ms_a"), poisson.block_loads()
    mesh = meshes.chequered(10.0, 5, spacing, order, levels)
    return elements.block_poisson(mesh, order, mean / a, wave / a)


def plate(
    spacing: float, order: int, steps: int, half: heat.SideLengths = (8.0, 12.0), large: heat.Discs = heat.LARGE,
    little: heat.Discs = heat.LITTLE,
) -> ArrayMap:  # fmt: skip
    """2d-CG by finite elements and an implicit Runge–Kutta method, in stretches of time that double."""
    holes = [*large, *little]
    mesh = meshes.plate([(-one, one) for one in half], holes, spacing, order)
    names = poisson.discs_of(holes)
    outer = dict.fromkeys(names, 1.0) | dict.fromkeys(names[: len(large)], 5.0) | {"outside": 0.1}
    return elements.heated(mesh, order, outer, heat.MOMENTS_CG, steps)


def step_elements(spacing: float, order: int, levels: int) -> ArrayMap:
    """The step by finite elements, refined to its corner."""
    mesh = meshes.cornered(((0, 4), (0, 2)), ((0, 2), (1, 2)), spacing, order, levels, outlet=True)
    return elements.flow(mesh, order, flow.VISCOSITY, ("left", "4*y*(1 - y)"))


def cavity_elements(spacing: float, order: int, levels: int) -> ArrayMap:
    """The cavity by finite elements, refined to its corners."""
    mesh = meshes.lidded(spacing, order, levels)
    return elements.flow(mesh, order, flow.VISCOSITY, ("lid", "4*x*(1 - x)"), enclosed=True)


def channel_elements(
    along: int, across: int, levels: int, order: int, steps: int, viscosity: float = flow.VISCOSITY,
    moments: Sequence[float] = flow.MOMENTS,
) -> ArrayMap:  # fmt: skip
    """The channel by finite elements, backward differences of order 4 in time."""
    mesh = meshes.channel(2.0, along, across, levels)
    beat = lambda t: float(np.sin(pi * t) + np.sin(3 * pi * t) + np.sin(5 * pi * t))  # noqa: E731
    push = lambda t: -float(np.sin(pi * t))  # noqa: E731
    inflow, force = ("sin(pi*y)", beat), ("sin(pi*x)*sin(pi*y)", push)
    return elements.unsteady_flow(mesh, order, viscosity, inflow, force, moments, steps)
