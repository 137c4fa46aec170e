"""Residuals that nothing smooths add up along characteristics: the bound of what they leave, and what is converged."""

from __future__ import annotations

import warnings
from time import process_time

import numpy as np
import pytest

import rannpde as rp
from draws import draws
from rannpde.pde.budget import timed_by
from rannpde.pde.cells.adaptivity.checks import damping_rates, transported_error
from rannpde.pde.functions import Zero
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


@pytest.mark.parametrize(
    ("equations", "rate"),
    [
        ("u_t + 3*u_x = 0.02*u_xx", lambda k: 0.02 * k**2),
        ("5*u_t = -2*u_xxxx + u", lambda k: 0.4 * k**4),
        ("u_t = u_xxx - u*u_x", lambda k: 0 * k),
        ("u_t = -0.1*u_xx", lambda k: 0 * k),
        (["u_t = v_xx", "v_t = -u_xx"], lambda k: 0 * k),
        (["u_t = 2*u_xx + v_xx", "v_t = 3*v_xx"], lambda k: 2 * k**2),
        ("u_xx = sin(t)", lambda k: np.inf + k),
    ],
)
def test_waves_are_damped_as_the_symbol_says(equations, rate):
    problem = rp.Problem(equations, rp.SpaceTime(t=(0, 1), x=(0, 1)), incomplete=True)
    points, wavenumbers = problem.domain.sample(5, rng=1), np.array([0.1, 1.0, 3.0, 20.0, 1e3])
    found = damping_rates(problem, Zero(len(problem.fields)), points, wavenumbers)
    np.testing.assert_allclose(found, rate(wavenumbers), rtol=1e-6, atol=1e-9 * wavenumbers.max() ** 3)


@pytest.mark.parametrize("length", [0.3, 0.1, 0.03])
def test_diffusion_shortens_the_time_over_which_residuals_add_up(length):
    """Sharp where it damps little over the length of a cell, and smaller where it damps much."""
    problem = rp.Problem(
        "u_t + 0.7*u_x = 1e-4*u_xx", rp.SpaceTime(t=(0, 1), x=(0, 1)),
        {"start": rp.On("t=0", "u = 1"), "around": rp.Periodic("x")}, exact={"u": "1"},
    )  # fmt: skip
    wrong = as_state({"u": f"1 + 1e-3*t*cos({np.pi / length!r}*(x - 0.7*t))"}, problem)
    points = problem.domain.sample(4000, rng=2)
    error = np.sqrt(np.mean((wrong(points) - 1) ** 2))
    free = transported_error(problem, wrong, points)
    damped = transported_error(problem, wrong, points, np.full(len(points), length))
    assert error < damped <= free
    assert damped == pytest.approx(free / max(1.0, 2 / np.pi * 1e-4 * (np.pi / length) ** 2))


@pytest.mark.slow
@pytest.mark.parametrize("waves", [24, 12])
def test_a_small_wave_that_hardly_any_diffusion_damps_is_not_missed(waves):
    """No residual of a cell was large, and two iterations agreed to a fiftieth of the error."""
    decay = f"exp(-5.42e-05*({2 * waves}*pi)**2*t)"
    exact = f"sin(2*pi*(x - 0.666*t)) + 0.0161*{decay}*sin({2 * waves}*pi*(x - 0.666*t))"
    force = "5.42e-05*4*pi**2*sin(2*pi*(x - 0.666*t))"
    problem = rp.Problem(
        f"u_t + 0.666*u_x = 5.42e-05*u_xx + {force}", rp.SpaceTime(t=(0, 1), x=(0, 1)),
        {"start": rp.On("t=0", f"u = {exact.replace('*t', '*0')}"), "around": rp.Periodic("x")}, exact={"u": exact},
    )  # fmt: skip
    with warnings.catch_warnings(), timed_by(process_time):
        warnings.simplefilter("ignore", rp.ConvergenceWarning)
        solution = rp.solve(problem, tol=1e-3, method="cells", rng=824, seconds=60)
    assert not solution.converged or solution.errors()["u"] < 2e-3
