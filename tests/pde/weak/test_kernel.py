"""What nothing holds: constants under pure Neumann conditions, by the default method."""

from __future__ import annotations

import numpy as np
import pytest

import rannpde as rp
from draws import draws


@pytest.mark.parametrize("seed", range(draws(1, 3)))
def test_fluxes_that_do_not_balance_are_told_whatever_the_method(seed):
    """∫f + ∮g = 0 is necessary for pure Neumann conditions; by default too, where the solution would be smooth."""
    rng = np.random.default_rng([47, seed])
    wide, high = np.round(rng.uniform(0.2, 30, 2), 2)
    load = rng.uniform(0.5, 3)

    def problem(flux: float) -> rp.Problem:
        return rp.Problem(
            f"-laplace(u) = {load!r}",
            rp.Box(x=(0, float(wide)), y=(0, float(high))),
            {f"x={wide!r}": f"dn(u) = {flux!r}", "x=0": "dn(u) = 0", "y=0": "dn(u) = 0", f"y={high!r}": "dn(u) = 0"},
        )

    with pytest.raises(rp.InputError, match="do not balance"):
        rp.solve(problem(rng.uniform(0, 1) * load * wide), tol=1e-2)
    with pytest.warns(rp.ConvergenceWarning, match="a constant in u free"):
        found = rp.solve(problem(-load * wide), tol=1e-6, rng=seed)
    slopes = found.derivative(found.problem.domain.sample(50, rng=1), (1, 0)).ravel()
    points = found.problem.domain.sample(50, rng=1)
    assert np.allclose(slopes, -load * points[:, 0], atol=1e-5 * load * wide)


def test_a_small_imbalance_is_told_by_its_size():
    sides = {"right": rp.On("x=1", "dn(u) = 1"), "rest": rp.On("boundary except x=1", "dn(u) = 0")}
    with pytest.raises(rp.InputError, match=r"a share of 0\.0005 "):
        rp.solve(rp.Problem("laplace(u) = 1.001", rp.Box(x=(0, 1), y=(0, 1)), sides), tol=1e-4)
