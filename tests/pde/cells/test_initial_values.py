"""Initial value problems by cells: growth by orders of magnitude, fronts, equations with several slopes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rannpde as rp
from rannpde.pde.cells.adaptivity.loop import CellsLoop
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


@pytest.mark.parametrize("start", [1e-3, 3e-3])
def test_a_flame_ignites_when_it_should(start):
    """1/u + log(1/u - 1) decreases like the time along every solution of u' = u² - u³."""
    solution = solved("u_t = u**2 - u**3", 2 / start, start, 1e-6)
    times = np.linspace(0, 0.999 / start, 40)
    u = solution(times[:, None])
    kept = 1 / u + np.log(1 / u - 1) + times
    if solution.converged:
        assert np.abs(kept - kept[0]).max() < 1e-4 / start


@pytest.mark.parametrize(("start", "tol"), [(1e-5, 1e-4), (3e-5, 1e-3)])
def test_a_flame_that_is_not_resolved_is_not_called_so(start, tol):
    solution = solved("u_t = u**2 - u**3", 2 / start, start, tol, seconds=2)
    exact = 1 / start + np.log(1 / start - 1) - 2  # where u is a half
    if solution.converged:
        values = solution(np.array([[exact - 30.0], [exact + 30.0]]))
        assert values[0] < 0.5 < values[1]


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
    original = CellsLoop._rule

    def spy(self, solution):
        found.append((self, solution))
        return original(self, solution)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CellsLoop, "_rule", spy)
        solved("u_t = u**2 - u**3", 2e3, 1e-3, 1e-3)
    loop, solution = found[-1]
    points, roots = original(loop, solution)
    assert np.sum(roots**2) == pytest.approx(1)
    assert np.sum(roots[:, 0] ** 2 * points[:, 0]) == pytest.approx(1e3)  # the mean of t
