"""Solving from the equations: error, target, best supervised fit in the same features, and time, in one run.

    python benchmarks/solve.py                 # all cases
    python benchmarks/solve.py poisson wave    # those whose name contains one of the words

``ratio`` is the total time over the time inside orthogonal least-squares factorisations (target: at most 3).
``fit`` is the relative L² error of the best least-squares fit to the exact solution in the very features that the
solver ended with: a floor for the solver, up to the rounding of the fit itself.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rannpde.pde.collocation.linear import Factor
from rannpde.pde.collocation.pieces import locate
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import ConvergenceWarning, Solution
from rannpde.pde.solve import solve
from rannpde.pde.zoo import zoo

FRESH = 4000


@dataclass(frozen=True)
class Case:
    """A problem of the zoo, how to solve it, and what is asked of it."""

    name: str
    target: float
    solver: Mapping[str, Any]
    problem: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None

    @property
    def label(self) -> str:
        return self.name + "".join(f" {key}={value}" for key, value in self.problem.items())


CASES = (
    Case("nonlinear_poisson", 1e-12, {"width": 700, "scale": 3.0}, seconds=3.0),
    Case("nonlinear_poisson", 1e-12, {"width": 400}),
    Case("helmholtz", 1e-11, {"width": 500}),
    Case("poisson", 1e-8, {"width": 1000, "scale": 1.0}, {"dim": 5}),
    Case("porous_medium", 6e-5 / 3, {"width": 200}, {"dim": 1}),
    Case("porous_medium", 6e-3 / 3, {"width": 400}, {"dim": 2}),
    Case("porous_medium", 3e-2 / 3, {"width": 600}, {"dim": 3}),
    Case("porous_medium", 1.2e-1 / 3, {"width": 800}, {"dim": 5}),
    Case("porous_medium", 5e-3, {"width": 800, "placement": "placed"}, {"dim": 1, "radius": 0.3}),
    Case("porous_medium", 4e-2, {"width": 800, "placement": "placed"}, {"dim": 2, "radius": 0.3}),
    Case("navier_stokes_lagrangian", 1e-2, {"width": 400, "placement": "placed"}),
)


def best_fit(problem: Problem, solution: Solution) -> float:
    """The largest relative error over the fields of the best fit in the solution's features."""
    exact = problem.exact_solution
    assert exact is not None
    errors = []
    columns = sum(piece.features.columns for piece in solution.network.pieces)
    points, fresh = problem.domain.sample(6 * columns, rng=11), problem.domain.sample(FRESH, rng=7)
    for number in range(len(problem.fields)):
        squares = 0.0
        for which, piece in enumerate(solution.network.pieces):
            here, there = (some[locate(solution.network.pieces, some) == which] for some in (points, fresh))
            step = Factor.of(piece.features(here), exact(here)[:, number]).solve(1e-15)
            squares += float(np.square(piece.features(there) @ step.solution - exact(there)[:, number]).sum())
        errors.append(np.sqrt(squares / np.square(exact(fresh)[:, number]).sum()))
    return float(max(errors))


def conservation(problem: Problem, solution: Solution) -> str:
    """Smallest value, and the largest relative error of the mass in the box over eleven times (fresh points)."""
    exact, domain = problem.exact_solution, problem.domain
    assert exact is not None
    points = domain.sample(20 * FRESH, rng=9, method="sobol")
    gaps = []
    for time in np.linspace(domain.bounds[0, 0], domain.bounds[0, 1], 11):
        points[:, 0] = time
        gaps.append(abs(solution(points).mean() / exact(points).mean() - 1))
    return f"    smallest value {solution(domain.sample(20 * FRESH, rng=8)).min():.1e}, mass to {max(gaps):.1e}"


def run(case: Case) -> str:
    """Solve one case; the row of the table."""
    problem = zoo(case.name, **case.problem)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solution = solve(problem, method="space-time", rng=0, **case.solver)
    error = max(solution.errors(FRESH).values())
    met = error <= case.target and (case.seconds is None or solution.seconds <= case.seconds)
    ratio = solution.seconds / solution.linear_seconds
    fit = best_fit(problem, solution)
    more = "\n" + conservation(problem, solution) if "radius" in case.problem else ""
    return (
        f"{case.label:<38}{sum(solution.widths):>7}{error:>10.1e}{case.target:>10.1e}{fit:>10.1e}"
        f"{solution.seconds:>9.2f}{ratio:>7.1f}   {'met' if met else 'MISSED'}{more}"
    )


def main(words: list[str]) -> None:
    print(f"{'problem':<38}{'columns':>7}{'error':>10}{'target':>10}{'fit':>10}{'seconds':>9}{'ratio':>7}")
    for case in CASES:
        if not words or any(word in case.label for word in words):
            print(run(case), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
