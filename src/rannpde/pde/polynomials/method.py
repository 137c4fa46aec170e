"""Polynomials: integral equations, integro-differential equations and delays, as a choice of settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from rannpde.domains.domain import Box, SpaceTime
from rannpde.errors import choose, require
from rannpde.pde.capability import Capability
from rannpde.pde.forward_model import ForwardModel, ModelRequest
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.polynomials.adaptive import AdaptivePolynomials, PolynomialIteration, PolynomialResult
from rannpde.pde.polynomials.settings import PolynomialSettings
from rannpde.pde.polynomials.system import refused_shape, relative_size
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import Choice, Solution


@dataclass(frozen=True)
class Polynomials:
    """Solve equations with integrals of fields, or with their values at other points, by piecewise polynomials.

    Equations and conditions at Gauss nodes are one least-squares problem for the coefficients, whose Jacobian is exact:
    an integral of polynomials times a kernel is a Gauss sum. Other methods compute features from point to point, where
    ∫ k u and u(t - 1) have no meaning. See docs/solving.md, integrals and delays.

    guess : field → formula from which Newton's method starts where equations are not linear; they may have several
        solutions, of which it tends to find the nearest
    settings : the empirical numbers behind all this

    >>> from rannpde.domains import Interval
    >>> from rannpde.pde.solve import solve
    >>> problem = Problem("u = x + integral(x*s*u(s), s, 0, 1)", Interval(0, 1), exact={"u": "3*x/2"})
    >>> solution = solve(problem, tol=1e-10)
    >>> solution.converged, solution.errors()["u"] < 1e-10, solution.method.name
    (True, True, 'polynomials')
    """

    guess: Mapping[str, str] = field(default_factory=dict)
    settings: PolynomialSettings = field(default_factory=PolynomialSettings)

    def __post_init__(self) -> None:
        require(isinstance(self.guess, Mapping), "guess", self.guess, "a mapping of fields to formulas")

    name = "polynomials"
    reason: ClassVar[str] = "the problem contains integrals of fields, or their values at other points"
    share: ClassVar[float] = 1.0
    hands_over: ClassVar[frozenset[Status]] = frozenset()
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.FUNCTIONALS})

    def obstacles(self, problem: Problem) -> tuple[str, ...]:
        """Reasons why this method cannot solve the problem."""
        if not problem.functionals:
            return ("the problem has neither integrals of fields nor their values at other points",)
        what = problem.functionals[0]
        space = problem.domain.space if isinstance(problem.domain, SpaceTime) else problem.domain
        reasons = []
        if not isinstance(space, Box):
            reasons.append(f"{what}: integrals and values elsewhere are solved on intervals and boxes only")
        elif problem.domain.dim > 2:  # dense least squares on a tensor grid
            reasons.append(f"{what}: they are solved in one or two coordinates, not {problem.domain.dim}")
        if problem.bounds:
            reasons.append("fields have bounds")
        if problem.pairings:
            reasons.append("some fields are periodic and others are not")
        reasons += [f"the flux of equation {name!r} jumps" for name in problem.jumping]
        part = refused_shape(problem) if isinstance(space, Box) else ""
        return (*reasons, part) if part else tuple(reasons)

    def drawbacks(self, problem: Problem) -> tuple[str, ...]:
        """Reasons to prefer another method that can solve the problem too: there is none."""
        return ()

    def model(self, request: ModelRequest) -> ForwardModel | None:
        """None: identification solves anew at every value."""
        return None

    def solve(self, problem: Problem, tol: float, rng: np.random.Generator, monitor: Monitor, why: str) -> Solution:
        """The solution to a relative L² error of about ``tol``, or the best iterate, with its estimate."""
        guess = None
        if self.guess:
            for name in (*self.guess, *problem.fields):
                choose("guess", name, dict.fromkeys(problem.fields))
                require(name in self.guess, "guess", dict(self.guess), f"given for every field, also {name!r}")
            guess = replace(problem, exact=dict(self.guess)).exact_solution
        adaptive = AdaptivePolynomials(problem, tol, monitor, self.settings, guess)
        adaptive.on_result = lambda make: monitor.keep(lambda *end: self._solution(problem, make(*end), monitor, why))
        return self._solution(problem, adaptive.run(), monitor, why)

    def _solution(self, problem: Problem, result: PolynomialResult, monitor: Monitor, why: str) -> Solution:
        fresh = result.system.with_more_nodes()
        held_out, losses = {}, {}
        for name, (value, size) in fresh.residuals(result.coefficients).items():
            losses[name] = float(np.mean(np.square(value)))
            held_out[name] = relative_size(value, size)
        measures = {term.name: term.measure for term in problem.terms}
        last = result.iterations[-1]
        label = f"piecewise polynomials of degree {' × '.join(map(str, last.degrees))}"
        return Solution(
            problem=problem, fields=problem.fields, function=result.function, status=result.status,
            detail=result.detail, estimate=result.estimate, held_out=held_out, losses=losses,
            integrals={name: loss * measures[name] for name, loss in losses.items()},
            history=PolynomialHistory(result.iterations), method=Choice(self.name, label, why), seconds=monitor.elapsed,
        )  # fmt: skip


@dataclass(frozen=True)
class PolynomialHistory:
    """The record of this method: its iterations."""

    iterations: tuple[PolynomialIteration, ...]

    advice = "a guess of rp.Polynomials, a larger tol, or a shorter interval, may help"

    def lines(self) -> list[str]:
        """The lines of a report."""
        return [f"iteration {number}: {one}" for number, one in enumerate(self.iterations, start=1)]

    def to_table(self) -> dict[str, Any]:
        """The history as data that JSON can hold."""
        rows = []
        for one in self.iterations:
            estimate = one.estimate if np.isfinite(one.estimate) else None
            rows.append([list(one.cells), list(one.degrees), one.unknowns, one.panels, estimate, one.seconds])
        return {"iterations": rows}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> PolynomialHistory:
        rows = []
        for cells, degrees, unknowns, panels, estimate, seconds in table["iterations"]:
            known = np.inf if estimate is None else float(estimate)
            sizes = tuple(map(int, cells)), tuple(map(int, degrees))
            rows.append(PolynomialIteration(*sizes, int(unknowns), int(panels), known, float(seconds)))
        return cls(tuple(rows))
