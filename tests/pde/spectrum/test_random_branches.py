"""Random continuations with known folds and branch points: units, places, ranges, tolerances, starts on either branch.

Few are drawn here; RANNPDE_FUZZ=200 draws twenty of each.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import rannpde as rp

COUNT = int(os.environ.get("RANNPDE_FUZZ", "0")) // 10 or 3
FOLD = 3.513830719125161
"""Of u'' + λ exp(u) = 0 on the unit interval."""


def ignition(seed: int) -> tuple[rp.Problem, tuple[float, float], object, float, float, bool]:
    """c u'' + λ exp(ku) = 0 somewhere, in some unit: the problem, the range, the guess, tol, the fold, whether it is
    met: from the lower branch up or down, or from the upper one."""
    draw = np.random.default_rng(seed)
    length, factor = (np.round(10 ** draw.uniform(-2, 2, 2), 4)).tolist()
    place, power = float(np.round(length * draw.uniform(-3, 3), 4)), float(np.round(10 ** draw.uniform(-1, 1), 3))
    problem = rp.Problem(
        "c*u_xx + lam*exp(k*u) = 0", rp.Interval(place, place + length), {"boundary": "u = 0"},
        parameters={"lam": 0.0, "c": factor, "k": power},
    )  # fmt: skip
    fold, tol = factor * FOLD / (power * length**2), 10 ** draw.uniform(-9, -2)
    if seed % 3 == 0:
        return problem, (draw.uniform(0.01, 0.9) * fold, draw.uniform(1.05, 3) * fold), None, tol, fold, True
    if seed % 3 == 1:
        return problem, (draw.uniform(0.3, 0.95) * fold, draw.uniform(0.01, 0.1) * fold), None, tol, fold, False

    def upper(points: np.ndarray) -> np.ndarray:
        share = (points[:, 0] - place) / length
        return 12.8 * share * (1 - share) / power

    return problem, (draw.uniform(0.5, 0.9) * fold, 1.3 * fold), upper, tol, fold, True


@pytest.mark.parametrize("seed", range(COUNT))
def test_folds_are_met_from_either_branch(seed: int) -> None:
    problem, (start, stop), guess, tol, fold, met = ignition(seed)
    found = rp.continuation(problem, "lam", start, stop, guess=guess, tol=tol)
    assert found.converged
    assert [one.kind for one in found.special] == ["fold"] * met
    for one in found.special:
        assert abs(one.parameter - fold) <= min(10 * one.bound, tol * fold) + 1e-12 * fold


@pytest.mark.parametrize("seed", [1, *range(2, 1 + COUNT)])
def test_no_branch_of_stripes_is_missed(seed: int) -> None:
    """Swift and Hohenberg's equation on intervals of random lengths: r = (1 - (nπ/L)²)². In seed 1 one step passes two
    of them, so that the sign of the determinant does not change."""
    draw = np.random.default_rng(seed)
    length, place = float(np.round(draw.uniform(4, 22), 3)), float(np.round(draw.uniform(-9, 9), 2))
    tol, stop = 10 ** draw.uniform(-9, -2), float(np.round(draw.uniform(0.03, 0.3), 3))
    stripes = rp.Problem(
        ["u + u_xx - w = 0", "r*u - w - w_xx - c*u**3 = 0"], rp.Interval(place, place + length),
        {"boundary": ("dn(u) = 0", "dn(w) = 0")}, parameters={"r": 0.0, "c": float(10 ** draw.uniform(-1, 1))},
    )  # fmt: skip
    found = rp.continuation(stripes, "r", -0.05, stop, tol=tol)
    known = np.sort((1 - (np.arange(40) * np.pi / length) ** 2) ** 2)
    known = known[known < stop]
    assert found.converged
    assert len(found.branch_points) == len(known)
    for one, place_of_it in zip(found.branch_points, known, strict=True):
        assert abs(one.parameter - place_of_it) <= 10 * one.bound + 1e-11


def test_double_branch_points_are_found() -> None:
    """Two modes of a square are alike: both cross at once, and the determinant keeps its sign."""
    square = rp.Box(x=(0, 1), y=(0, 1))
    problem = rp.Problem("laplace(u) + lam*u - u**3 = 0", square, {"boundary": "u = 0"}, parameters={"lam": 0.0})
    found = rp.continuation(problem, "lam", 45.0, 55.0, tol=1e-5)
    assert [one.kind for one in found.special] == ["branch point"]
    assert abs(found.special[0].parameter - 5 * np.pi**2) < 1e-6
