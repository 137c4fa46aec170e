"""Initial value problems of one coordinate: a solution over the whole interval against a step-by-step integration.

The integration shares neither the basis nor the mesh nor Newton's method with the solution. Errors that grow along the
way grow in it as well, so that the difference of both contains the sensitivity of a solution to a shift in time, which
the difference of two least-squares solutions may lack: a flame that ignites at another moment.
"""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.functions import State
from rannpde.pde.initial import Integrated, integrated
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import relative_difference

STEP_TOLERANCES = (1e-1, 1e-2)
"""Relative errors of the steps of the two integrations, relative to the wanted error."""
SMALLEST_STEP_TOLERANCE = 1e-12
"""Below this, rounding decides which steps an ODE solver takes."""
JUDGING_RATIO = 3.0
"""An integration judges a solution where the gap between both is this multiple of the gap of two integrations: it is
then within a third of the error."""


class IntegrationCheck:
    """Two integrations of a problem with different tolerances, made when they are first asked for."""

    def __init__(self, problem: Problem, tol: float) -> None:
        self.problem, self.tol = problem, tol
        self._paths: list[Integrated] | None = None

    def error(self, state: State, points: Array, roots: Array) -> float:
        """Return the relative L² error of a state, or 0 where no integration is accurate enough to tell.

        points (M, 1), roots (M, 1) : a quadrature rule, with the square roots of its weights
        """
        if self._paths is None:
            tolerances = [max(share * self.tol, SMALLEST_STEP_TOLERANCE / share) for share in STEP_TOLERANCES]
            found = [integrated(self.problem, tolerance) for tolerance in tolerances]
            self._paths = [one for one in found if one is not None]
        if len(self._paths) < len(STEP_TOLERANCES):
            return 0.0
        values = [roots * one.derivative(points, (0,)) for one in (*self._paths, state)]
        with np.errstate(invalid="ignore", over="ignore"):
            gap = relative_difference(values[1], values[2])
            own = relative_difference(values[0], values[1])
        return gap if gap > JUDGING_RATIO * own else 0.0
