"""Coefficients that are infinite on the boundary: equations in polar and spherical coordinates, at their axis."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import jn_zeros, jv

import rannpde as rp
from draws import draws
from rannpde.errors import MethodError


@pytest.mark.parametrize("seed", range(draws(3, 40)))
def test_a_cooling_cylinder_in_its_radius(seed):
    """u_t = u_rr + u_r/r from 1 - (r/R)²: the series of Bessel functions."""
    rng = np.random.default_rng([101, seed])
    radius, tol = float(np.round(10 ** rng.uniform(-2, 2), 3)), float(10 ** rng.uniform(-9, -2))
    end = float(rng.uniform(0.02, 0.5)) * radius**2
    problem = rp.Problem(
        "u_t = u_xx + u_x/x",
        rp.SpaceTime(t=(0, end), x=(0, radius)),
        {"t=0": f"u = 1 - (x/{radius!r})**2", "x=0": "u_x = 0", f"x={radius!r}": "u = 0"},
    )
    solution = rp.solve(problem, tol=tol, rng=seed, seconds=30)
    x = np.linspace(0, radius, 401)
    exact = np.zeros(len(x))
    for zero in jn_zeros(0, 60):
        decay = np.exp(-(zero**2) * end / radius**2)
        exact += 8 * jv(0, zero * x / radius) / (zero**3 * jv(1, zero)) * decay
    values = solution(np.column_stack([np.full_like(x, end), x])).ravel()
    assert solution.converged
    assert np.linalg.norm(values - exact) < max(10 * solution.estimate, 1e-11) * np.linalg.norm(exact)


@pytest.mark.parametrize("seed", range(draws(2, 20)))
def test_spherical_waves_from_a_formula_that_is_undefined_at_the_centre(seed):
    """u_tt = u_rr + 2 u_r/r from sin(kπr)/r, whose value at r = 0 is its limit."""
    rng = np.random.default_rng([103, seed])
    mode, end, tol = int(rng.integers(1, 4)), float(rng.uniform(0.3, 2.0)), float(10 ** rng.uniform(-8, -2))
    problem = rp.Problem(
        "u_tt = u_xx + 2*u_x/x",
        rp.SpaceTime(t=(0, end), x=(0, 1)),
        {"t=0": [f"u = sin({mode}*pi*x)/x", "u_t = 0"], "x=0": "u_x = 0", "x=1": "u = 0"},
    )
    solution = rp.solve(problem, tol=tol, rng=seed, seconds=30)
    x = np.linspace(0, 1, 401)
    exact = mode * np.pi * np.sinc(mode * x) * np.cos(mode * np.pi * end)
    values = solution(np.column_stack([np.full_like(x, end), x])).ravel()
    size = mode * np.pi * np.linalg.norm(np.sinc(mode * x))  # of the wave over a period
    assert solution.converged
    assert np.linalg.norm(values - exact) < 10 * tol * size


def test_a_method_that_comes_to_nothing_hands_over(monkeypatch):
    """The next method solves the problem, and the report says why the first one did not."""

    def nothing(*arguments, **settings):
        raise MethodError("no step leads away from the start")

    monkeypatch.setattr(rp.Lines, "solve", nothing)
    end = rp.SpaceTime(t=(0, 0.1), x=(0, 1))
    problem = rp.Problem("u_t = u_xx", end, {"t=0": "u = sin(pi*x)", "x=0": "u = 0", "x=1": "u = 0"})
    solution = rp.solve(problem, tol=1e-4, seconds=20)
    assert solution.converged
    assert solution.method.name != "lines"
    assert "no step leads away from the start" in solution.method.why
