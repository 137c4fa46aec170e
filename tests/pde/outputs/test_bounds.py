"""Bounds hold on random outputs of random problems; derivatives that are infinite are called so."""

import numpy as np
import pytest

import rannpde as rp
from pde.outputs.coverage import covered, small_problem

SEEDS = (2, 11)
"""Of the quick ones; ``coverage.py`` runs any number of them by hand."""


@pytest.mark.parametrize("seed", SEEDS)
def test_true_errors_are_within_the_bounds(seed):
    found = covered(seed)
    assert found
    assert all(one.held for one in found), "\n".join(map(str, found))


@pytest.fixture(scope="module")
def reentrant():
    corner = rp.Box(x=(-1, 1), y=(-1, 1)) - rp.Box(x=(0, 2), y=(-2, 0))
    return rp.solve(rp.Problem("laplace(u) = -1", corner, {"boundary": "u = 0"}), tol=1e-5)


def test_a_slope_at_a_reentrant_corner_is_infinite(reentrant):
    found = reentrant.probe([0, 0], "u_y")
    assert np.isinf(found.value)
    assert "r^-0.3" in found.how
    assert str(found).startswith("infinite at (0, 0)")


@pytest.mark.parametrize("point", [(-0.5, 0.5), (-1, 0.3), (-0.1, 0.1), (0.5, 0.0)])
def test_slopes_elsewhere_are_finite(reentrant, point):
    found = reentrant.probe(point, "u_y")
    assert np.isfinite(found.value)
    assert found.bound < 1e-2


def test_values_at_the_corner_are_finite(reentrant):
    assert abs(reentrant.probe([0, 0]).value) <= 1e-4


def test_a_smooth_peak_is_not_taken_for_a_singularity():
    """A narrow but smooth maximum of the slope."""
    problem = rp.Problem(
        "laplace(u) = 0", rp.Box(x=(0, 1), y=(0, 1)), {"boundary": "u = log((x + 0.1)**2 + (y + 0.1)**2)"}
    )
    solution = rp.solve(problem, tol=1e-7)
    corner = solution.probe([0, 0], "u_x")
    assert np.isfinite(corner.value)
    assert not corner.converged or abs(corner.value - 10) <= corner.bound  # the network has poles at corners
    beside = solution.probe([0.01, 0.02], "u_x")
    assert abs(beside.value - 2 * 0.11 / (0.11**2 + 0.12**2)) <= beside.bound < 1e-2


def test_rounding_is_that_of_summands_that_cancel():
    """-x*u and u_x are 0.64 each and their sum 0.002; two solutions agree on what rounding left of u_x."""
    found = covered(290, small_problem)
    assert all(one.held for one in found), "\n".join(map(str, found))
