"""Residuals of an interval by their means over cells: the error that they leave, and what no solution removes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import erf

import rannpde as rp
from draws import draws
from rannpde.pde.budget import Budget
from rannpde.pde.cells.adaptivity.checks import mean_defect
from rannpde.pde.cells.adaptivity.loop import CellsLoop
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.functions import Zero
from rannpde.pde.monitor import Monitor


def loaded(width, centre):
    """u'' = a bump of this width; the problem and its solution."""

    def inner(x):
        z = (x - centre) / width
        return width**2 * (np.sqrt(np.pi) / 2 * z * erf(z) + np.exp(-(z**2)) / 2)

    load = f"exp(-((x - {centre!r})/{width!r})**2)"
    problem = rp.Problem(f"u_xx = {load}", rp.Interval(0, 1), {"ends": rp.On("boundary", "u = 0")})
    return problem, lambda x: inner(x) - (1 - x) * inner(0.0) - x * inner(1.0)


@pytest.mark.parametrize("seed", range(draws(4, 40)))
def test_the_mean_of_a_residual_gives_the_error_of_a_narrow_load(seed):
    """Its integral is what acts beyond the cell; a smaller residual may miss more of it."""
    rng = np.random.default_rng([89, seed])
    problem, exact = loaded(float(10 ** rng.uniform(-3.7, -2)), float(rng.uniform(0.2, 0.8)))
    loop = CellsLoop(problem, 1e-5, Monitor(None, Budget(60.0)), rng, CellsTuning())
    result = loop.run(Zero(1))
    now = loop.last
    means = mean_defect(loop.stationary.system, now, loop.sizes, loop.degree)
    x = np.linspace(0, 1, 20001)[:, None]
    error = np.linalg.norm(now.network(x) - exact(x)) / np.linalg.norm(exact(x))
    assert means.error < 10 * error
    assert means.remainder < 1e-9
    assert error < 10 * result.estimate


def test_an_estimate_counts_the_integral_of_a_load():
    """A second mesh with a residual 25 times smaller than the first had six times its error, 14 times the estimate."""
    problem, exact = loaded(0.000262, 0.721)
    solution = rp.solve(problem, tol=3.3e-6, rng=602)
    x = np.linspace(0, 1, 100_001)[:, None]
    error = np.linalg.norm(solution(x)[:, None] - exact(x)) / np.linalg.norm(exact(x))
    assert solution.converged
    assert error < 5 * solution.estimate


@pytest.mark.parametrize("seed", range(draws(3, 60)))
def test_the_integral_of_an_infinite_peak_is_counted(seed):
    """A load |x - c|^-p has an integral that cells as small as numbers allow still miss; the estimate says so."""
    rng = np.random.default_rng([97, seed])
    power, centre = float(rng.uniform(0.1, 0.85)), float(np.round(rng.uniform(0.1, 0.9), 3))
    tol = float(10 ** rng.uniform(-8, -2))

    def particular(x):
        return np.abs(x - centre) ** (2 - power) / ((2 - power) * (1 - power))

    problem = rp.Problem(
        f"u_xx = abs(x - {centre!r})**(-{power!r})", rp.Interval(0, 1), {"ends": rp.On("boundary", "u = 0")}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ConvergenceWarning)
        solution = rp.solve(problem, tol=tol, rng=seed, seconds=30)
    x = np.linspace(0, 1, 20003)
    exact = particular(x) - (1 - x) * particular(0.0) - x * particular(1.0)
    error = np.linalg.norm(solution(x[:, None]) - exact) / np.linalg.norm(exact)
    assert error < 10 * solution.estimate or error < tol
