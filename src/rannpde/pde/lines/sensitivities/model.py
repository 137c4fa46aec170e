"""The model of the method of lines for identification: re-integration on a frozen basis, with its sensitivities."""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.forward_model import ModelRequest, Response
from rannpde.pde.lines.sensitivities.dependence import ParametricDependence, weak_form
from rannpde.pde.lines.sensitivities.forward import forward_sensitivities
from rannpde.pde.lines.sensitivities.reintegration import reintegrate
from rannpde.pde.lines.solution import SpaceTimeSolution
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.tolerance import ALGEBRA_SHARE


class LinesModel:
    """The forward model on the basis in space of a solution, for unknown numbers and functions in the equations.

    tuning, integrator : those of the method that the solution comes from
    """

    def __init__(
        self,
        request: ModelRequest,
        start: SpaceTimeSolution,
        dependence: ParametricDependence,
        tuning: LinesTuning,
        integrator: str,
    ) -> None:
        self.problem, self.unknowns, self.start = request.problem, request.unknowns, start
        self.dependence, self.tol, self.monitor = dependence, request.tol, request.monitor
        self.vector, self.forward = request.vector, start.evolution.problem
        self.tuning, self.integrator = tuning, integrator
        self.step_limit = dependence.step_limit(request.tol)

    @classmethod
    def of(cls, request: ModelRequest, tuning: LinesTuning, integrator: str) -> LinesModel | None:
        """The model of a solution; None where an unknown changes the basis, so that there is none."""
        solution = request.solution.function
        assert isinstance(solution, SpaceTimeSolution)
        weak, previous = weak_form(solution), request.previous
        same = isinstance(previous, LinesModel) and previous.dependence.weak == weak
        dependence = previous.dependence if same else ParametricDependence.of(request.problem, weak)  # type: ignore[union-attr]
        return cls(request, solution, dependence, tuning, integrator) if dependence.fits(solution) else None

    @property
    def latest(self) -> SpaceTimeSolution:
        """The last solution, whose length scales the next solve can use."""
        return self.start

    def respond(self, vector: Array) -> Response:
        """One integration, and its sensitivities along the same steps."""
        solution = self.solution(vector)
        sensitive = forward_sensitivities(solution, self.dependence, self.unknowns, vector, self._exhausted)
        return Response(sensitive, len(self.problem.fields))

    def solution(self, vector: Array) -> SpaceTimeSolution:
        """One integration."""
        if not np.array_equal(vector, self.vector):
            self.vector, self.forward = np.array(vector), self.problem.at(self.unknowns.values(vector))
        self.start = reintegrate(
            self.start, self.forward, ALGEBRA_SHARE * self.tol,
            self.tuning, self.integrator, self.step_limit,
        )  # fmt: skip
        return self.start

    def _exhausted(self) -> bool:
        return self.monitor.exhausted
