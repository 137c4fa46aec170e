"""Outputs that are forces of a flow, or fluxes: by the weak residual, far more accurate than pointwise derivatives."""

from __future__ import annotations

import numpy as np

from rannpde.domains.boundary.sides import Side
from rannpde.pde.flow.forces import as_force
from rannpde.pde.flow.method import FlowHistory
from rannpde.pde.outputs.quantity import Quantity
from rannpde.pde.outputs.settings import OutputSettings
from rannpde.pde.problem.output_expression import OutputExpression
from rannpde.pde.problem.output_region import OutputRegion
from rannpde.pde.solution import Solution
from rannpde.pde.weak.fluxes import as_flux
from rannpde.pde.weak.method import WeakHistory


def has_forces(solution: Solution) -> bool:
    """Whether a weak form has told forces or fluxes."""
    history = solution.history
    return bool(history.forces if isinstance(history, FlowHistory) else getattr(history, "fluxes", {}))


def weak_force(solution: Solution, expression: OutputExpression, region: OutputRegion) -> Quantity | None:
    """The integral of a traction or flux over sides, by a weak form; None where it is something else."""
    history = solution.history
    if not has_forces(solution) or expression.anchors or region.time is not None:
        return None
    sides, settings = [], OutputSettings()
    for one in region.regions:
        if not isinstance(one, Side):
            return None
        points = one.sample(settings.cloud, rng=0)
        sides.append((str(one.name), points, one.normals(points)))
    stated, integrand = solution.stated, expression.expression
    if isinstance(history, FlowHistory):
        found, how = as_force(stated, integrand, sides, history.forces), "the weak residual of momentum"
    else:
        assert isinstance(history, WeakHistory)
        found, how = as_flux(stated, integrand, sides, history.fluxes), "the weak residual"
    if found is None:
        return None
    value, bound = found
    return Quantity(value, bound, solution.converged and bool(np.isfinite(bound)), how)
