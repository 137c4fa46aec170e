"""Boxes without discs, of random sizes and units, at tolerances from 1e-2 to 1e-7: estimates are honest."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import rannpde as rp
from draws import seeds
from rannpde import On


def random_plate(seed):
    """A screened field on a plate with one or two holes, through which its flux is known, and a tolerance."""
    rng = np.random.default_rng(seed)
    size = float(10 ** rng.uniform(-2, 2))
    shape = rp.Box(x=(0, 2 * size), y=(0, 1.4 * size))
    centres = [(0.5, 0.7), (1.5, 0.6)][: int(rng.integers(1, 3))]
    names = tuple(f"disc{number}" for number in range(len(centres)))
    for name, centre in zip(names, centres, strict=True):
        at = tuple(float(size * (value + rng.uniform(-0.1, 0.1))) for value in centre)
        shape = shape - rp.Ball(at, float(size * rng.uniform(0.1, 0.4)), ("x", "y"), name=name)
    x, y = sympy.symbols("x y")
    a, b = (sympy.Float(round(value, 3)) / size for value in rng.uniform(0.5, 3, 2))
    u = sympy.cos(a * x + 0.3) * sympy.exp(b * y)
    load = u.diff(x, 2) + u.diff(y, 2) - u / size**2
    conditions = {
        "holes": On(names, f"dn(u) = ({u.diff(x)})*nx + ({u.diff(y)})*ny"),
        "rest": On("boundary except " + ", ".join(names), f"u = {u}"),
    }
    problem = rp.Problem(f"laplace(u) - u/{size**2!r} = {load}", shape, conditions, exact={"u": str(u)})
    return problem, float(10 ** rng.uniform(-7, -2))


@pytest.mark.parametrize("seed", seeds("plates with holes", 1, 24))
def test_plates_with_holes_converge_within_their_estimates(seed):
    problem, tol = random_plate(seed)
    solution = rp.solve(problem, tol=tol, method="weak")
    assert solution.converged
    assert solution.errors()["u"] <= min(tol, 2 * solution.estimate)
