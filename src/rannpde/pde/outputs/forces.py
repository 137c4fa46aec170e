"""Outputs that are forces of a flow, or fluxes: by the weak residual, far more accurate than pointwise derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import Side
from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError
from rannpde.pde.flow.evolution import flow_evolution
from rannpde.pde.flow.forces import as_force, force_weights
from rannpde.pde.flow.history import FlowHistory
from rannpde.pde.flow.recognition import flow_formulation
from rannpde.pde.flow.scalar_fluxes import as_scalar_flux
from rannpde.pde.outputs.quantity import Quantity
from rannpde.pde.outputs.settings import OutputSettings
from rannpde.pde.problem.output_expression import OutputExpression, read_output
from rannpde.pde.problem.output_region import OutputRegion, output_region
from rannpde.pde.solution import Solution
from rannpde.pde.weak.fluxes import as_flux
from rannpde.pde.weak.form import weak_formulation
from rannpde.pde.weak.history import WeakHistory

SidePoints = list[tuple[str, Array, Array]]
"""Name, points (M, d) and outward normals (M, d) of sides."""


def has_forces(solution: Solution) -> bool:
    """Whether the history of a solution has forces or fluxes from its weak form."""
    history = solution.history
    return bool(history.forces if isinstance(history, FlowHistory) else getattr(history, "fluxes", {}))


def weak_force(solution: Solution, expression: OutputExpression, region: OutputRegion) -> Quantity | None:
    """The integral of a traction or flux over sides, by a weak form; None where it is something else."""
    history = solution.history
    if not has_forces(solution) or expression.anchors or region.time is not None:
        return None
    sides = _points_of(region)
    if sides is None:
        return None
    stated, integrand = solution.stated, expression.expression
    if isinstance(history, FlowHistory):
        form = flow_formulation(stated)
        force, how = as_force(form, integrand, sides, history.forces), "the weak residual of momentum"
        if force is None:
            force, how = as_scalar_flux(form, integrand, sides, history.fluxes), "the weak residual"
    else:
        assert isinstance(history, WeakHistory)
        force, how = as_flux(weak_formulation(stated), integrand, sides, history.fluxes), "the weak residual"
    if force is None:
        return None
    value, bound = force
    return Quantity(value, bound, solution.converged and bool(np.isfinite(bound)), how)


def force_signals(solution: Solution, expression: OutputExpression, on: Any) -> list[tuple[Array, Array]] | None:
    """Times (N,) and values (N,) of a force of a flow in time, and those of the iteration before; None for others."""
    history, problem = solution.history, solution.stated
    if not isinstance(history, FlowHistory) or not history.series or on is None or expression.anchors:
        return None
    assert isinstance(problem.domain, SpaceTime)
    sides = _points_of(output_region(on, problem.domain.time[0], problem))
    if sides is None or not all(name in one.forces for name, _, _ in sides for one in history.series):
        return None
    form = flow_evolution(problem).form
    try:
        integrand = read_output(expression.text, form.problem.vocabulary).expression
    except InputError:  # it depends on the time, or on derivatives by it
        return None
    weights = force_weights(form, integrand, sides)
    if weights is None:
        return None
    signals = []
    for one in history.series:
        total = np.sum([np.array(one.forces[name]) for name, _, _ in sides], axis=0)
        signals.append((np.array(one.times), total @ weights))
    return signals


def _points_of(region: OutputRegion) -> SidePoints | None:
    """Points of the sides of a region; None where it is no sides."""
    sides: SidePoints = []
    for one in region.regions:
        if not isinstance(one, Side):
            return None
        points = one.sample(OutputSettings().cloud, rng=0)
        sides.append((str(one.name), points, one.normals(points)))
    return sides or None
