"""Forward models: a problem on a fixed discretisation as a function of its unknowns, with exact sensitivities.

A method gives a model of itself: ``method.model(request)``. The discretisation comes from a solve at values near by,
with the settings of that method. On it the solution is a smooth function of the unknowns, and its derivatives are those
of the discrete solution itself: what a least-squares fit needs to converge to all digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.functions import State
from rannpde.pde.monitor import Monitor
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import Solution
from rannpde.pde.statement.expression import Jet


class UnknownVector(Protocol):
    """All unknowns of a problem as one vector (p,): numbers, and the weights of unknown functions in their bases."""

    count: int
    slices: dict[str, slice]

    @property
    def bases(self) -> Mapping[str, Any]:
        """Unknown function → its basis."""
        ...

    @property
    def guess(self) -> Array:
        """The guesses (p,)."""
        ...

    @property
    def limits(self) -> tuple[Array, Array]:
        """Lower and upper bounds (p,)."""
        ...

    def values(self, vector: Array) -> Mapping[str, Any]:
        """Name → number or function, for ``Problem.at``."""
        ...

    def value(self, jet: Jet, points: Array, vector: Array) -> Array:
        """A derivative of an unknown at points (M, n) of all coordinates: (M,)."""
        ...

    def table(self, jet: Jet, points: Array) -> Array:
        """The derivative of ``value`` by those entries of the vector that describe this unknown: (M, size)."""
        ...


@dataclass(frozen=True, eq=False)
class Response:
    """A solution and its derivatives by the unknowns: a function with fields · (1 + p) outputs.

    fields : how many there are; the outputs are those of the solution, then for each unknown those of its sensitivity
    """

    function: State
    fields: int

    def jets(self, points: Array, index: MultiIndex) -> tuple[Array, Array]:
        """∂^index of the fields (M, fields), and its derivative by each unknown (M, p, fields)."""
        values = self.function.derivative(points, index)
        return values[:, : self.fields], values[:, self.fields :].reshape(len(points), -1, self.fields)


class ForwardModel(Protocol):
    """The protocol of forward models, as a fit of the unknowns uses them."""

    @property
    def latest(self) -> State | None:
        """The last solution, where the next solve of the method can start from it; else None."""
        ...

    def respond(self, vector: Array) -> Response:
        """The solution with its sensitivities at these unknowns (p,)."""
        ...

    def solution(self, vector: Array) -> State:
        """The solution alone; outputs beyond the fields are ignored."""
        ...


@dataclass(frozen=True)
class FailedEvaluation:
    """The answer of a model where it has no solution: NaN everywhere."""

    outputs: int

    def __call__(self, points: Array) -> Array:
        return np.full((len(points), self.outputs), np.nan)

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        return self(points)


@dataclass(frozen=True, eq=False)
class ModelRequest:
    """The arguments with which a method makes a forward model.

    problem : the problem with its unknowns; solution : its solution by this method, at the unknowns ``vector`` (p,)
    tol : tolerance of the model; previous : the model of the same problem in the last outer iteration, if there is one
    """

    problem: Problem
    solution: Solution
    unknowns: UnknownVector
    vector: Array
    tol: float
    rng: np.random.Generator
    monitor: Monitor
    previous: ForwardModel | None = None
