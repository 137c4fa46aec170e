"""Leading coefficients that depend on the solution and change their sign at it: the problem has several solutions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rannpde as rp
from draws import draws, some
from rannpde.pde.degeneracy import other_branch, sign_change


def crossing(rng, equation, primitive="cos"):
    """An equation on an interval with any unit and position whose solution has a zero (a sine), or its derivative has
    (a cosine), in the middle half; the problem and the zero."""
    unit, size = 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.uniform(-2, 2)
    begin = float(rng.uniform(-3, 3)) * unit
    at = begin + float(rng.uniform(0.25, 0.75)) * unit
    wave = float(rng.uniform(0.5, 1.5)) / unit
    exact = f"{size!r}*{primitive}({wave!r}*(x - ({at!r})))"
    problem = rp.Problem(
        f"{equation} = f(x)", rp.Interval(begin, begin + unit), {"ends": rp.On("boundary", "u = g(x)")},
        functions={"f": lambda x: 0 * x, "g": lambda x: 0 * x}, exact={"u": exact},
    )  # fmt: skip
    return problem, at, unit


@pytest.mark.parametrize(
    ("equation", "primitive"),
    [("u_xx*u_x", "cos"), ("u*u_xx", "sin"), ("u_x**2 + u", "cos"), ("u*u_x", "sin"), ("u_xx*u + u_x**2", "sin"),
     ("u**3*u_xx - u", "sin")],
)  # fmt: skip
@pytest.mark.parametrize("seed", range(draws(1, 20)))
def test_a_change_of_sign_is_seen_and_where(equation, primitive, seed):
    problem, at, unit = crossing(np.random.default_rng([79, seed]), equation, primitive)
    told = sign_change(problem, problem.exact_solution, 1e-5, 1e-3)
    assert told is not None
    assert abs(float(told.rsplit("= ", 1)[1]) - at) < 0.01 * unit + 1e-3 * abs(at)


@pytest.mark.parametrize(
    "equation",
    ["d(abs(u_x)*u_x, x)", "d(u_x**3, x)", "u**2*u_xx + u*u_x", "u_xx + u*u_x", "(1 + u**2)*u_xx", "x*u_xx + u**2"],
)
@pytest.mark.parametrize("seed", range(draws(1, 20)))
def test_coefficients_that_keep_their_sign_or_do_not_depend_on_the_solution_do_no_harm(equation, seed):
    problem, _, _ = crossing(np.random.default_rng([83, seed]), equation)
    assert sign_change(problem, problem.exact_solution, 1e-8, 1e-8) is None


@pytest.mark.parametrize("equation", ["d(u*u_x, x)", "u*u_xx + u_x**2", "(1 + u**2)*u_xx - u_x", "u_xx**2 + u_x*u_xx"])
@pytest.mark.parametrize("seed", range(draws(2, 20)))
def test_a_highest_derivative_that_is_rounding_has_no_other_branch(equation, seed):
    """Straight lines, as a solver finds them: the second derivative is an error, and so is its sign."""
    rng = np.random.default_rng([89, seed])
    slope, height = float(rng.uniform(0.2, 3)), float(rng.uniform(4, 9))
    line = f"{height!r} - {slope!r}*x + 1e-14*sin(9*x)"
    ends = {"ends": rp.On("boundary", "u = g(x)")}
    functions = {
        "f": lambda x: (slope**2 if "d(" in equation or "**2" in equation else slope) + 0 * x,
        "g": lambda x: x,
    }
    problem = rp.Problem(f"{equation} = f(x)", rp.Interval(0, 1), ends, functions=functions, exact={"u": line})
    assert other_branch(problem, problem.exact_solution) is None


def test_a_porous_medium_at_rest_converges():
    problem = rp.Problem("d(u*u_x, x) = 1", rp.Interval(0, 1), {"x=0": "u = 2", "x=1": "u = 1"})
    assert rp.solve(problem, tol=1e-4).converged


@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_in_the_plane_both_signs_must_be_definite(shift):
    exact = {"u": f"{shift} + sin(2*x - y)"}
    box, rim = rp.Box(x=(-1, 1), y=(-1, 1)), {"rim": rp.On("boundary", f"u = {exact['u']}")}
    degenerate = rp.Problem("u*laplace(u) = f(x, y)", box, rim, functions={"f": lambda x, y: 0 * x}, exact=exact)
    told = sign_change(degenerate, degenerate.exact_solution, 1e-5, 1e-3)
    assert (told is None) is (shift > 0)
    minimal = rp.Problem("(1 + u_y**2)*u_xx - 2*u_x*u_y*u_xy + (1 + u_x**2)*u_yy = 0", box, rim, exact=exact)
    assert sign_change(minimal, minimal.exact_solution, 1e-8, 1e-8) is None


def test_errors_of_a_solution_are_no_change_of_sign():
    """What is positive up to its zero may be a little negative there."""
    exact = {"u": "x**2 - 1e-7"}
    problem = rp.Problem("u*u_xx = f(x)", rp.Interval(0, 1), {"ends": rp.On("boundary", "u = x**2")},
                         functions={"f": lambda x: 2 * x**2}, exact=exact)  # fmt: skip
    assert sign_change(problem, problem.exact_solution, 1e-6, 1e-4) is None


@pytest.mark.parametrize(
    ("size", "wave", "tol"), some([(0.358, 2.98, 6.5e-5), (0.443, 2.72, 1e-4), (0.764, 2.58, 1e-3)], 1)
)
def test_one_of_several_branches_is_not_called_converged(size, wave, tol):
    """(u_x)² is a primitive of 2f, u_x one of its roots: kinks, or none, next to the place where it passes zero."""
    exact = f"2 + x + {size}*sin({wave}*x)"
    load = f"-{size * wave**2!r}*sin({wave}*x)*(1 + {size * wave!r}*cos({wave}*x))"
    ends = {"ends": rp.On("boundary", f"u = {exact}")}
    problem = rp.Problem(f"u_xx*u_x = {load}", rp.Interval(0, 1), ends, exact={"u": exact})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ConvergenceWarning)
        solution = rp.solve(problem, tol=tol, rng=923, seconds=20)
    assert not solution.converged
    assert solution.errors()["u"] < 10 * solution.estimate


def test_a_solution_without_a_change_of_sign_converges():
    problem = rp.Problem("u_xx*u_x = 2*exp(2*x)", rp.Interval(0, 1), {"ends": rp.On("boundary", "u = 2**0.5*exp(x)")})
    assert rp.solve(problem, tol=1e-6).converged
