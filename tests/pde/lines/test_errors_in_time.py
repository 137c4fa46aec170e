"""Estimates where errors in time are shared by iterations, or grow to the size of the solution."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import rannpde as rp
from rannpde.domains.norms import relative_errors
from rannpde.pde.lines.method import Lines
from rannpde.pde.lines.settings import tightened
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.monitor import Status
from rannpde.pde.problem.step_limit import StepLimit

T, X = sympy.symbols("t x")


def stated(exact, diffusivity, left, right, end=1.0):
    """u_t - (diffusivity u_x)_x = f with that solution; value or Robin conditions at the ends of (0, 1)."""
    u = sympy.sympify(exact)
    source = sympy.diff(u, T) - sympy.diff(diffusivity.subs("u", u) * sympy.diff(u, X), X)
    conditions = {"start": rp.On("t=0", f"u = {u.subs(T, 0)}")}
    for side, (value, slope) in (("x=0", left), ("x=1", right)):
        given = value * u + slope * sympy.diff(u, X)
        conditions[side] = rp.On(side, f"{value}*u + {slope}*u_x = {given}")
    equation = f"u_t - d(({diffusivity})*u_x, x) = {source}"
    return rp.Problem(equation, rp.SpaceTime(t=(0, end), x=(0, 1)), conditions, exact={"u": str(u)})


def error(problem, solution):
    points = problem.domain.sample(4000, rng=7)
    return float(relative_errors(solution.function(points), problem.exact_solution(points)).max())


@pytest.mark.parametrize(("centre", "width"), [(0.825, 0.0446), (0.31, 0.05)])
def test_pulses_do_not_hide_in_steps_that_iterations_share(centre, width):
    """Steps through a pulse are those that the data allow: errors were 26 and more times the estimate."""
    exact = f"2 + (1 + exp(-((t - {centre})/{width})**2))*tanh((x - 0.136)/0.337)"
    problem = stated(exact, sympy.exp(-X), (1.0, -1.19), (1.0, 0.91))
    solution = rp.solve(problem, tol=3.2e-7, method="lines")
    assert solution.converged
    assert error(problem, solution) < 3 * solution.estimate


def test_a_tightened_limit_has_no_length_in_common():
    lengths = np.array([0.25, 0.125, np.inf])
    limit = StepLimit(np.linspace(0.0, 1.0, 4), lengths, (0.5,))
    shorter = tightened(limit, 0.25, 3)
    assert shorter.breaks == limit.breaks
    np.testing.assert_allclose(shorter.lengths, lengths / 2**0.5)


@pytest.mark.filterwarnings("ignore::UserWarning")  # what is not converged says so
@pytest.mark.parametrize(("slope", "end"), [(1.6, 0.35)])
def test_agreement_counts_for_nothing_where_perturbations_grow_to_the_size_of_the_solution(slope, end):
    """Two iterations leave the unstable solution alike, for one other: the first pair was called converged, with an
    error of 0.5 and an estimate of 0.02."""
    u = sympy.Symbol("u")
    problem = stated(f"2 + cos(12.7*t)*exp({slope}*x)", 1 + u**2, (1.0, 0.0), (0.0, 1.0), end)
    solution = rp.solve(problem, tol=5e-2, method=Lines(tuning=LinesTuning(most_iterations=5)))
    assert solution.status is Status.UNDETERMINED
    assert solution.estimate > error(problem, solution)


def test_the_same_solution_where_perturbations_do_not_grow():
    u = sympy.Symbol("u")
    problem = stated("2 + cos(12.7*t)*exp(0.8*x)", 1 + u**2, (1.0, 0.0), (0.0, 1.0), 0.35)
    solution = rp.solve(problem, tol=1e-2, method="lines")
    assert solution.status is Status.CONVERGED
    assert error(problem, solution) < 1e-2


@pytest.mark.filterwarnings("ignore::rannpde.ConvergenceWarning")
def test_iterations_that_are_far_apart_disagree_and_say_nothing_of_the_problem():
    """So few features hold nothing of the initial values, and nothing grows."""
    conditions = {"start": rp.On("t=0", f"u = sin({round(19 * np.pi, 12)}*x)"), "ends": rp.On("boundary", "u = 0")}
    domain = rp.SpaceTime(t=(0, 1), x=(0, 1))
    for width in (4, 6, 10):
        problem = rp.Problem("u_t = 1e-3*u_xx", domain, conditions, incomplete=True)
        solution = rp.solve(problem, method=Lines(width=width), tol=1e-6)
        assert solution.estimate > 0.3
        assert solution.status is Status.STALLED
