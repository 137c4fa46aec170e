"""Residuals that nothing smooths add up along characteristics: the bound of what they leave, and what is converged."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rannpde as rp
from draws import draws
from rannpde.pde.cells.adaptivity.checks import transported_error
from rannpde.pde.start import as_state


def carried(factor, speed, duration, length, exact):
    """A multiple of u_t + c u_x = 0 on a strip of any size, with this exact solution."""
    return rp.Problem(
        f"{factor!r}*(u_t + {speed!r}*u_x) = 0", rp.SpaceTime(t=(0, duration), x=(0, length)),
        {"start": rp.On("t=0", f"u = {exact(0)}"), "in": rp.On("x=0", f"u = {exact('t').replace('x', '0')}")},
        exact={"u": exact("t")},
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(draws(3, 30)))
def test_the_bound_is_sharp_for_residuals_of_one_sign_in_any_unit(seed):
    """An error that grows in proportion to t has a residual that is constant along characteristics."""
    rng = np.random.default_rng([118, seed])
    factor, speed, duration, length = (float(f"{10 ** rng.uniform(-3, 3):.3g}") for _ in range(4))
    length = length * speed * duration  # a wave on the way through
    wave = 2.0 / length

    def exact(time):
        return f"2 + cos({wave!r}*(x - {speed!r}*{time}))"

    problem = carried(factor, speed, duration, length, exact)
    wrong = as_state({"u": f"{exact('t')} + 1e-3*t/{duration!r}*cos({wave!r}*(x - {speed!r}*t))"}, problem)
    points = problem.domain.sample(4000, rng=seed)
    error, size = (np.sqrt(np.mean(v**2)) for v in (wrong(points) - problem.exact_solution(points), wrong(points)))
    bound = transported_error(problem, wrong, points)
    assert error / size <= bound < 1.2 * error / size  # 2/π beside 1/√3, up to the sampling


def test_the_bound_of_a_wave_holds():
    """Of second order in time, with the error (1 - cos ωt) of a constant load."""
    problem = rp.Problem(
        "u_tt = 4*u_xx", rp.SpaceTime(t=(0, 3), x=(0, 1)),
        {"start": rp.On("t=0", ["u = sin(pi*x)", "u_t = 0"]), "ends": rp.On(("x=0", "x=1"), "u = 0")},
        exact={"u": "sin(pi*x)*cos(2*pi*t)"},
    )  # fmt: skip
    wrong = as_state({"u": "sin(pi*x)*cos(2*pi*t) + 1e-4*sin(pi*x)*(1 - cos(2*pi*t))"}, problem)
    points = problem.domain.sample(4000, rng=1)
    error, size = (np.sqrt(np.mean(v**2)) for v in (wrong(points) - problem.exact_solution(points), wrong(points)))
    assert error / size < transported_error(problem, wrong, points)


@pytest.mark.parametrize("seed", range(draws(4, 60)))
def test_kinks_that_are_carried_along_are_converged_only_if_right(seed):
    """Least squares smooth a kink in all iterations alike: errors were ten times the estimate."""
    rng = np.random.default_rng([119, seed])
    speed, left, tol = float(f"{rng.uniform(0.2, 2):.3g}"), round(float(rng.uniform(0.1, 0.4)), 3), 5e-2
    right = round(left + float(rng.uniform(0.2, 0.5)), 3)
    roof = f"max(0, min(x - {left!r}, {right!r} - x))"

    def exact(points):
        x = points[:, 1] - speed * points[:, 0]
        x = x % 1.0 if around else x
        return np.maximum(0.0, np.minimum(x - left, right - x))

    around = bool(seed % 2)
    rest = {"around": rp.Periodic("x")} if around else {"in": rp.On("x=0", "u = 0")}
    problem = rp.Problem(
        f"u_t + {speed!r}*u_x = 0", rp.SpaceTime(t=(0, 1), x=(0, 1)), {"start": rp.On("t=0", f"u = {roof}"), **rest},
        exact={"u": exact},
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ConvergenceWarning)
        solution = rp.solve(problem, tol=tol, method="cells", rng=seed, seconds=60)
    assert solution.converged
    assert solution.errors()["u"] < 1.2 * tol
