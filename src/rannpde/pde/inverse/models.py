"""Forward models without a discretisation of their own: by repeated solves, memoised, and from a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.forward_model import ForwardModel, Response
from rannpde.pde.functions import State
from rannpde.pde.inverse.estimates import FunctionEstimate
from rannpde.pde.inverse.tangent import with_sensitivities
from rannpde.pde.inverse.unknowns import Unknowns
from rannpde.pde.lines.sensitivities.dependence import ParametricDependence, weak_form
from rannpde.pde.lines.sensitivities.forward import forward_sensitivities
from rannpde.pde.lines.solution import SpaceTimeSolution
from rannpde.pde.problem.problem import Problem


class RepeatedSolveModel:
    """Solves the problem at every value by whatever method suits, with sensitivities as fields; unknown numbers
    only."""

    latest: State | None = None

    def __init__(self, problem: Problem, unknowns: Unknowns, forward: Callable[[Problem], State]) -> None:
        self.problem, self.unknowns, self.forward = problem, unknowns, forward

    def respond(self, vector: Array) -> Response:
        """A solve of the problem with its sensitivities."""
        values: Mapping[str, float] = {n: float(vector[part][0]) for n, part in self.unknowns.slices.items()}
        return Response(self.forward(with_sensitivities(self.problem, values)), len(self.problem.fields))

    def solution(self, vector: Array) -> State:
        """A solve of the problem alone."""
        return self.forward(self.problem.at(self.unknowns.values(vector)))


@dataclass(eq=False)
class MemoisedModel:
    """A model that remembers its first response: fits to resampled values all begin there."""

    model: ForwardModel
    first: tuple[Array, Response] | None = None

    @property
    def latest(self) -> State | None:
        return self.model.latest

    def respond(self, vector: Array) -> Response:
        """The response of the model."""
        if self.first is None:
            self.first = np.array(vector), self.model.respond(vector)
        return self.first[1] if np.array_equal(vector, self.first[0]) else self.model.respond(vector)

    def solution(self, vector: Array) -> State:
        """The solution of the model."""
        return self.model.solution(vector)


def restored(
    problem: Problem,
    numbers: Mapping[str, float],
    functions: Mapping[str, FunctionEstimate],
    solution: SpaceTimeSolution,
) -> Response:
    """The response of a solution that a file holds: its sensitivities are computed again."""
    unknowns = Unknowns(problem, np.random.default_rng(0), {n: one.expanded.basis for n, one in functions.items()})
    vector = unknowns.guess.copy()
    for name, part in unknowns.slices.items():
        vector[part] = functions[name].expanded.weights if name in functions else numbers[name]
    dependence = ParametricDependence.of(problem, weak=weak_form(solution))
    sensitive = forward_sensitivities(solution, dependence, unknowns, vector, lambda: False)
    return Response(sensitive, len(problem.fields))
