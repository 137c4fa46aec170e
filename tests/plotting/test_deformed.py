"""Displacements are drawn as deformed shapes, velocities as streamlines, and reports explain large residuals."""

from dataclasses import replace

import pytest

import rannpde as rp


@pytest.fixture(scope="module")
def bent():
    problem = rp.Problem(
        "div(sigma) = [0, 0.01]", rp.Box(x=(0, 1), y=(0, 0.2)),
        {"x=0": "u = 0", "boundary except x=0": "dot(sigma, n) = 0"},
        parameters={"lam": 0.33, "mu": 0.385}, fields={"u": 2},
        definitions={"eps": "sym(grad(u))", "sigma": "lam*tr(eps)*I + 2*mu*eps"},
    )  # fmt: skip
    return rp.solve(problem, tol=1e-2)


def test_a_displacement_is_a_deformed_shape(bent):
    figure = bent.plot()
    first = figure.axes[0]
    assert "shape drawn with" in first.get_title()
    assert first.get_ylim()[0] < -0.02  # the beam hangs below its own outline
    assert not first.collections[0].get_label().startswith("stream")


def test_a_report_explains_large_residuals_beside_small_errors(bent):
    assert "large residuals beside a small error" not in str(replace(bent, held_out={"equation": 1e-3}).report())
    assert "large residuals beside a small error" in str(replace(bent, held_out={"equation": 3.0}).report())


def test_an_unfinished_iteration_tells_no_estimate():
    problem, told = rp.zoo("burgers"), []
    with pytest.warns(rp.ConvergenceWarning):
        solution = rp.solve(problem, tol=1e-10, seconds=0.05, progress=told.append)
    assert not solution.converged
    # time may be up between two iterations: only the last report of each one, when it is finished, has an estimate
    for number in {one.number for one in told}:
        reports = [one.estimate for one in told if one.number == number]
        assert all(estimate is None for estimate in reports[:-1])
