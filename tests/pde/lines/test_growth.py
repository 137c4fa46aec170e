"""Solutions that grow by many orders of magnitude: logistic growth from almost nothing is no blow-up, a pole is one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rannpde as rp


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
