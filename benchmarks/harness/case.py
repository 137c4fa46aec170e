"""A case of a benchmark: what is stated, what is wanted, what others reached, and who stands beside us."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.harness.reference_solution import ReferenceSolution, read_reference
from rannpde.arrays import Array, ArrayMap
from rannpde.pde.inverse.identified import Identified
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.unknown import UnknownFunction
from rannpde.pde.solution import Solution

FRESH = 4000


@dataclass(frozen=True)
class ReferenceSolver:
    """A classical solver, its grid chosen by hand for the goal.

    label : what it is; make : solves, and gives a function of points; needs : the package it cannot do without
    """

    label: str
    make: Callable[[], ArrayMap]
    needs: str = ""


def later(module: str, name: str, *arguments: float) -> Callable[[], ArrayMap]:
    """A call of a function of a module that is loaded only then: finite elements are an extra.

    >>> later("math", "hypot", 3.0, 4.0)()
    5.0
    """
    return lambda: getattr(import_module(module), name)(*arguments)


@dataclass(frozen=True)
class Case:
    """A problem of the benchmark.

    statement : makes the problem; of evolution problems it takes a shorter ``duration``
    goal, seconds : the relative L² error to reach, the largest over the fields that count, and within which time
    published : the lowest relative L² error published for trained networks, None where none is valid
    fields : how many of the fields count; None for all
    times : at which the error of an evolution is looked at; empty: at any time
    reference : name of the reference file, empty where the problem knows its exact solution
    small : arguments of the statement for a quick look; small_tol : the error wanted then
    small_reference : name of the reference file of that, where it is no part of the whole problem
    remark : what a reader of the row must know
    function : the unknown function that is judged in the place of the fields
    """

    name: str
    title: str
    statement: Callable[..., Problem]
    goal: float
    seconds: float
    published: float | None
    solver: ReferenceSolver | None = None
    fields: int | None = None
    times: tuple[float, ...] = ()
    reference: str = ""
    small: Mapping[str, Any] = field(default_factory=dict)
    small_tol: float = 1e-2
    small_reference: str = ""
    remark: str = ""
    function: str = ""

    def problem(self, small: bool = False) -> Problem:
        """The problem, or its small version."""
        return self.statement(**self.small) if small else self.statement()

    def judged_at(self, problem: Problem, small: bool = False) -> ReferenceSolution:
        """Points of this problem's domain (a small one has fewer) with the true values (M, fields) there."""
        if small and self.small_reference:
            return read_reference(self.small_reference)
        if self.reference:
            return read_reference(self.reference).within(problem.domain)
        if self.function:
            unknown = problem.unknown[self.function]
            chosen = [problem.domain.names.index(name) for name in unknown.of]
            points = problem.domain.sample(FRESH, rng=99)[:, chosen]
            formula = UnknownFunction(unknown.of, problem.exact[self.function]).formula
            return ReferenceSolution(points, formula(points)[:, None], "exact")
        points = problem.domain.sample(FRESH, rng=99)
        end = problem.domain.bounds[0, 1]
        moments = [moment for moment in self.times if moment <= end]
        if moments:
            points[:, 0] = np.resize(moments, len(points))
        exact = problem.exact_solution
        assert exact is not None, f"{self.name} has neither a reference file nor an exact solution"
        return ReferenceSolution(points, exact(points), "exact")


def judged(case: Case, solution: Solution, points: Array) -> tuple[Array, float]:
    """What a case is judged by at points, and our estimate of its relative error."""
    if not case.function:
        return solution.function(points), solution.estimate
    assert isinstance(solution, Identified)
    found = solution.functions[case.function]
    values, std = found(points)[:, None], found.std(points)
    return values, float(np.linalg.norm(std) / np.linalg.norm(values))


def relative_error(found: Array, wanted: Array, fields: int | None = None) -> float:
    """Relative L² of values (M, fields), the largest over the first fields; NaN where one tenth is not known.

    >>> relative_error(np.array([[1.1], [2.2]]), np.array([[1.0], [2.0]])).__round__(12)
    0.1
    """
    found, wanted = (np.reshape(part, (len(part), -1))[:, :fields] for part in (found, wanted))
    known = np.isfinite(found).all(axis=1) & np.isfinite(wanted).all(axis=1)
    if known.mean() < 0.9:
        return float("nan")
    gap, size = (np.linalg.norm(part[known], axis=0) for part in (found - wanted, wanted))
    return float((gap / size).max())
