"""Checks of the outputs of a problem when it is stated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rannpde.domains.domain import SpaceTime
from rannpde.errors import finite_points, require
from rannpde.pde.problem.conditions import naming
from rannpde.pde.problem.output import IN_TIME
from rannpde.pde.problem.output_region import check_anchors, check_output_region, output_region, times_of

if TYPE_CHECKING:
    from rannpde.pde.problem.problem import Problem


def check_outputs(problem: Problem) -> None:
    """Refuse outputs that cannot be read, or whose region does not exist."""
    for name, output in problem.outputs.items():
        with naming(f"output {name!r}"):
            expression = problem.output_expressions[name]
            check_anchors(expression, problem)
            times = [None] if output.t is None else times_of(output.t, problem)[:1]
            timed = isinstance(problem.domain, SpaceTime)
            untimed = output.kind not in ("first time", *IN_TIME)
            require(untimed or timed, "kind", output.kind, "that of a problem in time")
            if output.kind in IN_TIME:
                times = [problem.domain.bounds[0, 0]]
            if output.kind not in ("value", "first time") and not expression.fixed:
                check_output_region(expression, output_region(output.on, times[0], problem))
            elif output.at is not None:
                at = finite_points(f"at of output {name!r}", np.atleast_2d(output.at), None)
                dim = problem.domain.dim - (timed and output.t is not None)
                require(at.shape == (1, dim), "at", output.at, f"a point of {dim} coordinates")
            else:
                remedy = "give at=(x, y, …), or write u(0.5, 0.5)"
                require(expression.fixed, "the expression", output.expression, "one of values at points", remedy)
