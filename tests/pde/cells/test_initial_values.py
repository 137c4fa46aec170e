"""Initial value problems by cells: growth by orders of magnitude, fronts, equations with several slopes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rannpde as rp
from rannpde.pde.cells.adaptivity import loop
from rannpde.pde.cells.adaptivity.integration_check import IntegrationCheck
from rannpde.pde.monitor import Status


def solved(equation, end, start, tol, **settings):
    domain = rp.Interval(0, end, name="t")
    problem = rp.Problem(equation, domain, {"start": rp.On("t=0", f"u = {start}")})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rp.solve(problem, tol=tol, **settings)


@pytest.mark.parametrize(("rate", "end", "tol"), [(1.0, 20.0, 1e-8), (0.7, 31.0, 1e-6), (2.0, 9.0, 1e-7)])
def test_exponential_growth_is_solved_relative_to_the_size_that_was_reached(rate, end, tol):
    solution = solved(f"u_t = {rate}*u", end, 1, tol)
    assert solution.converged
    times = np.linspace(0, end, 50)[:, None]
    assert np.abs(solution(times) / np.exp(rate * times[:, 0]) - 1).max() < 100 * tol  # at every time, not at the end


def ignition(solution, start, end):
    """Relative L² error of a flame, near its front too: u = 1/(1 + e^q), q + e^q = 1/u₀ - 1 + log(1/u₀ - 1) - t."""
    front = 1 / start + np.log(1 / start - 1)
    near = np.clip(front + np.linspace(-60, 60, 2000), 0, end)
    times = np.sort(np.concatenate([np.linspace(0, end, 2000), near]))
    level = front - 1 - times
    q = np.where(level > 1, np.log(np.maximum(level, 1)), level)
    for _ in range(60):  # Newton's method
        q -= (q + np.exp(q) - level) / (1 + np.exp(q))
    w = np.exp(q)
    weights = np.gradient(times)
    gap = solution(times[:, None]) - 1 / (1 + w)
    return np.sqrt(weights @ gap**2 / (weights @ (1 + w) ** -2.0))


def random_flames(count):
    """Starts from 1e-2 to 1e-6, ends and tolerances, as decimal numbers."""
    rng = np.random.default_rng(30)
    for _ in range(count):
        start = float(f"{10 ** rng.uniform(-6, -2):.2g}")
        yield start, float(f"{rng.uniform(1.3, 3) / start:.3g}"), float(f"{10 ** rng.uniform(-8, -2):.1g}")


@pytest.mark.parametrize(("start", "end", "tol"), [(1e-4, 2e4, 1e-6), (1e-5, 2e5, 1e-3), *random_flames(6)])
def test_a_flame_ignites_when_it_should(start, end, tol):
    """The front is 1e-3 to 1e-6 of the interval, and an error of 1e-6 before it moves it by more than its width."""
    solution = solved("u_t = u**2 - u**3", end, start, tol)
    assert solution.converged
    error = ignition(solution, start, end)
    assert error < max(tol, 10 * solution.estimate)


def test_an_integration_exposes_what_two_solutions_agree_on():
    """A state that ignites 1 % too late has the error of the shift; the solution itself has hardly any."""
    problem = rp.Problem("u_t = u**2 - u**3", rp.Interval(0, 200, name="t"), {"start": rp.On("t=0", "u = 0.01")})
    solution, late = (
        rp.solve(problem, tol=1e-8),
        rp.solve(rp.Problem("u_t = u**2 - u**3", problem.domain, {"start": rp.On("t=0", "u = 0.0099")}), tol=1e-8),
    )
    points, roots = np.linspace(0, 200, 4001)[:, None], np.full((4001, 1), 4001**-0.5)
    check = IntegrationCheck(problem, 1e-6)
    assert check.error(late.function, points, roots) > 1e-2
    assert check.error(solution.function, points, roots) < 1e-6


@pytest.mark.parametrize(("equation", "rng"), [("abs(u_x) = 1", 0), ("abs(u_x) = 1", 1), ("u_x**2 = 1 + x", 2)])
def test_zigzags_are_not_called_the_solution(equation, rng):
    problem = rp.Problem(equation, rp.Interval(0, 1), {"start": rp.On("x=0", "u = 0")})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = rp.solve(problem, tol=1e-3, rng=rng, seconds=20)
    slopes = solution.derivative(problem.domain.sample(500, rng=0), (1,))
    if slopes.min() < 0 < slopes.max():
        assert not solution.converged
    if solution.status is Status.UNDETERMINED:
        assert "several solutions" in solution.reason


def test_differences_on_a_line_see_a_front_between_check_points():
    """Points spread evenly over 2·10⁵ lie 50 apart; the front of a flame is 10 wide."""
    found = []
    original = loop.quadrature

    def spy(solution, degree):
        found.append((solution, degree))
        return original(solution, degree)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "quadrature", spy)
        solved("u_t = u**2 - u**3", 2e3, 1e-3, 1e-3)
    points, roots = original(*found[-1])
    assert np.sum(roots**2) == pytest.approx(1)
    assert np.sum(roots[:, 0] ** 2 * points[:, 0]) == pytest.approx(1e3)  # the mean of t
