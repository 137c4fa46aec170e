"""Solutions that grow by many orders of magnitude: logistic growth from almost nothing is no blow-up, a pole is one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rannpde as rp
from draws import draws


def random_growths(count):
    """Start, rate and tolerance of u_t = k u_xx + r u (1 - u); the time is long enough to saturate."""
    rng = np.random.default_rng(31)
    for _ in range(count):
        yield 10.0 ** int(rng.integers(-30, -3)), float(f"{10 ** rng.uniform(-2, 2):.2g}"), 10 ** rng.uniform(-6, -3)


@pytest.mark.parametrize(("start", "rate", "tol"), [(1e-30, 1.0, 1e-4), *random_growths(4)])
def test_logistic_growth_is_followed_from_almost_nothing(start, rate, tol):
    """Errors that are made while the solution is small grow with it: they are relative to its size at that time."""
    end = -1.4 * np.log(start) / rate
    problem = rp.Problem(
        f"u_t = 0.01*u_xx + {rate!r}*u*(1 - u)", rp.SpaceTime(t=(0, end), x=(0, 1)),
        {"start": rp.On("t=0", f"u = {start!r}"), "ends": rp.On(("x=0", "x=1"), "u_x = 0")},
    )  # fmt: skip
    solution = rp.solve(problem, tol=tol)
    points = problem.domain.sample(2000, rng=1)
    exact = 1 / (1 + (1 / start - 1) * np.exp(-rate * points[:, 0]))
    error = np.linalg.norm(solution(points) - exact) / np.linalg.norm(exact)
    assert solution.converged
    assert error < max(tol, 10 * solution.estimate)


@pytest.mark.parametrize(("power", "start"), [(2, 5.0), (3, 4.0)])
def test_a_pole_in_time_is_still_called_a_blow_up(power, start):
    """u_t = u_xx/100 + u^p with u = start everywhere is infinite at t = start^(1 - p)/(p - 1)."""
    problem = rp.Problem(
        f"u_t = 0.01*u_xx + u**{power}", rp.SpaceTime(t=(0, 1), x=(0, 1)),
        {"start": rp.On("t=0", f"u = {start}"), "ends": rp.On(("x=0", "x=1"), "u_x = 0")},
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = rp.solve(problem, tol=1e-4)
    assert solution.status is rp.Status.BLOW_UP
    assert f"{start ** (1 - power) / (power - 1):.2g}"[:4] in solution.reason


@pytest.mark.parametrize("seed", range(draws(3, 20)))
def test_a_kink_that_is_carried_around_a_torus_does_not_grow(seed):
    """Perturbations were no real functions: of modes with k_d = 0, one half was not the conjugate of the other, and
    what grew was rounding that no function has."""
    rng = np.random.default_rng([90, seed])
    c, d = (float(f"{rng.uniform(0.3, 2):.3g}") for _ in range(2))
    problem = rp.Problem(
        f"u_t + {c!r}*u_x + {d!r}*u_y = 0", rp.SpaceTime(t=(0, 0.5), x=(0, 1), y=(0, 0.8)),
        {"start": rp.On("t=0", "u = max(0, min(x - 0.2, 0.5 - x))"), "x": rp.Periodic("x"), "y": rp.Periodic("y")},
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = rp.solve(problem, tol=1e-3, rng=seed, seconds=20)
    points = problem.domain.sample(4000, rng=1)
    x = (points[:, 1] - c * points[:, 0]) % 1.0
    exact = np.maximum(0.0, np.minimum(x - 0.2, 0.5 - x))
    error = np.linalg.norm(solution(points) - exact) / np.linalg.norm(exact)
    assert solution.status is not rp.Status.UNDETERMINED
    assert error / 10 < solution.estimate < 10 * error


def test_transport_that_grows_on_a_basis_is_solved_by_another_method():
    """A linear equation of transport has no pole; the Galerkin method with few features may have growing modes."""
    problem = rp.Problem(
        "u_t + 0.199*(1 + x)*u_x + 0.319*u = 0", rp.SpaceTime(t=(0, 9.2725), x=(0, 1)),
        {"start": rp.On("t=0", "u = max(0, min(x - 0.055, 0.329 - x))"), "in": rp.On("x=0", "u = 0")},
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = rp.solve(problem, tol=1e-2, rng=193, seconds=60)
    assert solution.status is not rp.Status.BLOW_UP
    points = problem.domain.sample(4000, rng=1)
    x = (1 + points[:, 1]) * np.exp(-0.199 * points[:, 0]) - 1
    exact = np.exp(-0.319 * points[:, 0]) * np.maximum(0.0, np.minimum(x - 0.055, 0.329 - x))
    assert np.linalg.norm(solution(points) - exact) < 0.02 * np.linalg.norm(exact)
