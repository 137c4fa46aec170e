"""Outputs that are forces of a flow: by the weak residual, which is far more accurate than pointwise tractions."""

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


def weak_force(solution: Solution, expression: OutputExpression, region: OutputRegion) -> Quantity | None:
    """The integral of a traction over sides of a flow; None where it is something else."""
    history = solution.history
    if not isinstance(history, FlowHistory) or expression.anchors or region.time is not None:
        return None
    sides, settings = [], OutputSettings()
    for one in region.regions:
        if not isinstance(one, Side):
            return None
        points = one.sample(settings.cloud, rng=0)
        sides.append((str(one.name), points, one.normals(points)))
    found = as_force(solution.stated, expression.expression, sides, history.forces)
    if found is None:
        return None
    value, bound = found
    return Quantity(value, bound, solution.converged and bool(np.isfinite(bound)), "the weak residual of momentum")
