"""Cells: random networks on the boxes of a tree that is cut where the solution asks for it, as a choice of settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError, positive_integer, require
from rannpde.pde.cells.evolved import MarchedNetwork
from rannpde.pde.cells.iterations import CellsFound, CellsIterations
from rannpde.pde.cells.judging import CellsIteration
from rannpde.pde.cells.marching import Marching, march_obstacles
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.functions import State, Zero
from rannpde.pde.initial import integrated
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import held_out_residual
from rannpde.pde.solution import Choice, Solution
from rannpde.pde.start import as_state, check_weights, first_guess, linearises, membranes
from rannpde.threads import one_thread

LOOSE = 1e-2
"""The error wanted of a membrane, which is only a start."""


@dataclass(frozen=True)
class Cells:
    """Solve on boxes, each with a random network of its own, tied together by the traces on their faces.

    Least squares by orthogonal elimination along the tree of boxes; cells are cut where the residual is large, across
    the axis along which the solution is not resolved. One to three coordinates, any domain.

    degree : the functions of a cell are as many and as good as polynomials of this degree; None follows ``tol``
    guess : field → formula or callable with derivatives, or a Solution
    weights : factor of the rows of an equation or condition by name
    march : whether to go through time in steps, with cells in space; with False time is a coordinate like the others,
        None marches where the problem can and space has two coordinates or more
    tuning : the empirical numbers behind all this

    >>> from rannpde.pde.solve import solve
    >>> from rannpde.pde.zoo import zoo
    >>> solution = solve(zoo("nonlinear_poisson"), tol=1e-9, method=Cells())
    >>> solution.converged, solution.errors()["u"] < 1e-9
    (True, True)
    """

    degree: int | None = None
    guess: Any = None
    weights: Mapping[str, float] = field(default_factory=dict)
    march: bool | None = None
    tuning: CellsTuning = field(default_factory=CellsTuning)

    name = "cells"

    def __post_init__(self) -> None:
        if self.degree is not None:
            require(2 <= positive_integer("degree", self.degree) <= 30, "degree", self.degree, "from 2 to 30")
        require(self.march in (True, False, None), "march", self.march, "True, False or None")
        require(isinstance(self.weights, Mapping), "weights", self.weights, "a mapping of names to numbers")

    def obstacles(self, problem: Problem) -> tuple[str, ...]:
        """Reasons why this method cannot solve the problem."""
        found = list(march_obstacles(problem)) if self.march else []
        if problem.domain.dim > 3 and not self._marches(problem):
            found.append(f"the domain has {problem.domain.dim} coordinates, more than three")
        if problem.bounds:
            found.append("fields have bounds")
        if problem.pairings:
            found.append("some fields are periodic and others not")
        if self.guess is not None and self._marches(problem):
            found.append("a march starts from the initial values and takes no guess")
        return tuple(found)

    def drawbacks(self, problem: Problem) -> tuple[str, ...]:
        """Reasons to prefer another method that can solve the problem too."""
        around = isinstance(problem.domain, SpaceTime) and set(problem.domain.space.names) <= set(problem.periodic)
        if around and self._marches(problem):
            return ("space is periodic in all coordinates, where one network without seams is better",)
        return ()

    def _marches(self, problem: Problem) -> bool:
        wanted = self.march is not False and isinstance(problem.domain, SpaceTime)
        wanted = wanted and (self.march is True or problem.domain.dim > 2)
        return wanted and not march_obstacles(problem)

    def solve(self, problem: Problem, tol: float, rng: np.random.Generator, monitor: Monitor, why: str) -> Solution:
        """The solution to a relative L² error of about ``tol``, or the best that was found, with its estimate."""
        if self.weights:
            check_weights(problem, self.weights)
        with one_thread(problem.domain.dim < 3):  # small matrices wait for threads longer than they take
            found = self._found(problem, tol, rng, monitor)
        return self._solution(problem, found, tol, monitor, why)

    def _found(self, problem: Problem, tol: float, rng: np.random.Generator, monitor: Monitor) -> CellsFound:
        if self._marches(problem):
            marching = Marching(problem, tol, monitor, self.tuning, self.weights)
            iterations = CellsIterations(problem, tol, monitor, rng, self.tuning, self.degree, self.weights, marching)
            return iterations.run(Zero(len(problem.fields)), marching.first_tree(iterations.draw()))
        iterations = CellsIterations(problem, tol, monitor, rng, self.tuning, self.degree, self.weights)
        plain = problem.linear and self.guess is None  # any state will do
        return iterations.run(Zero(len(problem.fields)) if plain else self._start(problem, rng, monitor))

    def _start(self, problem: Problem, rng: np.random.Generator, monitor: Monitor) -> State:
        """The user's guess, or an integrator's, or the first that fits the conditions.

        Where equations have no linearisation there, the membrane that leaves least of them.
        """
        known = as_state(self.guess, problem)
        known = along_a_line(problem) if known is None else known
        if known is not None:
            return known
        guess = first_guess(problem)
        if linearises(problem, guess):
            return guess
        if not isinstance(problem.domain, SpaceTime):
            tried = [
                CellsIterations(one, LOOSE, monitor, rng, self.tuning).run(guess).best.network
                for one in membranes(problem)
            ]
            usable = [network for network in tried if linearises(problem, network)]
            if usable:
                return min(usable, key=lambda network: max(held_out_residual(problem, network).values()))
        raise InputError(
            "the equations have no linearisation at the first guess (a root or quotient leaves its domain there, or "
            "all derivatives vanish); pass rp.Cells(guess={…}) with a formula for each field"
        )

    def _solution(self, problem: Problem, found: CellsFound, tol: float, monitor: Monitor, why: str) -> Solution:
        best, network = found.best, found.best.network
        held_out = held_out_residual(problem, network)
        status, detail = found.status, found.detail
        worst = max(held_out.values())
        veto = self.tuning.veto_march if isinstance(network, MarchedNetwork) else self.tuning.veto
        if status is Status.CONVERGED and worst > max(veto, 3 * tol):
            status, detail = Status.VETOED, f"two iterations agree, but leave a relative residual of {worst:.1e}"
        measures: dict[str, float] = {}
        for term in problem.terms:
            measures[term.name] = measures.get(term.name, 0.0) + term.measure
        label = f"{len(network.boxes)} cells of degree {found.iterations[-1].degree}"
        label += f", {network.steps} steps in time" if isinstance(network, MarchedNetwork) else ""
        return Solution(
            problem=problem, fields=problem.fields, function=network, status=status, detail=detail,
            estimate=found.estimate, held_out=held_out, losses=best.losses,
            integrals={name: loss * measures[name] for name, loss in best.losses.items()},
            history=CellsHistory(found.iterations), method=Choice(self.name, label, why), seconds=monitor.elapsed,
        )  # fmt: skip


def along_a_line(problem: Problem) -> State | None:
    """Where Newton's method begins for an initial value problem of one coordinate; None for all others."""
    return integrated(problem) if problem.domain.dim == 1 else None


@dataclass(frozen=True)
class CellsHistory:
    """What only cells can tell: the iterations, with cells, residuals and changes."""

    iterations: tuple[CellsIteration, ...]

    advice = "more time, a higher degree or a better guess of rp.Cells may help"

    def lines(self) -> list[str]:
        """For the report."""
        return [f"iteration {number}: {one}" for number, one in enumerate(self.iterations, start=1)]

    def to_table(self) -> dict[str, Any]:
        """As JSON-able data."""
        return {"iterations": [list(vars(one).values()) for one in self.iterations]}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> CellsHistory:
        return cls(tuple(CellsIteration(*row) for row in table["iterations"]))
