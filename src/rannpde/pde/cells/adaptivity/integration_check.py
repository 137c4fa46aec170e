"""Initial value problems of one coordinate: a solution over the whole interval against a step-by-step integration.

The integration shares neither the basis nor the mesh nor Newton's method with the solution. Errors that grow along the
way grow in it as well, so that the difference of both contains the sensitivity of a solution to a shift in time, which
the difference of two least-squares solutions may lack: a flame that ignites at another moment.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.equilibria import Equilibrium, reached_equilibrium
from rannpde.pde.functions import State
from rannpde.pde.initial import PERTURBATION, Integrated, blow_up_point, departure, integrated
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import relative_difference
from rannpde.pde.singular_points import Branching, reached_singular_point
from rannpde.pde.tolerance import PILOT_TOLERANCE


class IntegrationCheck:
    """Two integrations of a problem with different tolerances, made when they are first asked for."""

    def __init__(self, problem: Problem, tol: float) -> None:
        self.problem, self.tol = problem, tol

    @cached_property
    def _paths(self) -> list[Integrated]:
        """The integrations that reached the end, the more accurate one last."""
        coarse = max(min(self.tol, PILOT_TOLERANCE), 100 * PERTURBATION) / 10
        integrations = [integrated(self.problem, tolerance) for tolerance in (coarse, coarse / 10)]
        return [one for one in integrations if one is not None and one.regular]

    @cached_property
    def equilibrium(self) -> Equilibrium | None:
        """The equilibrium that the solution reaches, and from which it may depart at any time."""
        return reached_equilibrium(self._paths[-1]) if self._paths else None

    @cached_property
    def blow_up(self) -> float | None:
        """Where the solution becomes infinite, if an integration shows that."""
        return blow_up_point(self.problem)

    @cached_property
    def branches(self) -> str | None:
        """Why the solution has several continuations: the coefficient of its highest derivative vanishes."""
        return self._described(reached_singular_point(self.problem))

    @cached_property
    def several(self) -> str | None:
        """Why the solution is not unique: several continuations, or an equilibrium that it may leave; else None."""
        return self.branches or self._described(self.equilibrium)

    def _described(self, reached: Branching | Equilibrium | None) -> str | None:
        return None if reached is None else reached.described(self.problem.domain.names[0])

    @cached_property
    def departure(self) -> str | None:
        """Why no computation determines the solution: perturbations that are nearly rounding grow to its size."""
        at, name = departure(self.problem), self.problem.domain.names[0]
        return None if at is None else (
            f"the problem is ill-conditioned: initial values that differ by {PERTURBATION:.0e} of their size lead to "
            f"different solutions from {name} = {at:.4g} on; end the interval before it"
        )  # fmt: skip

    def error(self, state: State, points: Array, roots: Array) -> float:
        """Return the relative L² error of a state, or 0 where no integration is accurate enough to measure it.

        points (M, 1), roots (M, 1) : a quadrature rule, with the square roots of its weights
        """
        if len(self._paths) < 2:
            return 0.0
        values = [roots * one.derivative(points, (0,)) for one in (*self._paths, state)]
        with np.errstate(invalid="ignore", over="ignore"):
            gap = relative_difference(values[1], values[2])
            between_integrations = relative_difference(values[0], values[1])
        return gap if gap > 2 * between_integrations else 0.0  # the finer integration is closer than half of the gap
