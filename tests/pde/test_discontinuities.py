"""Jumps of data: where they are found, what they cost, and that no solution with one is called better than it is."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import rannpde as rp
from draws import some
from rannpde.pde.discontinuities import (
    averaged_at_jumps,
    corner_jumps,
    error_over_difference,
    initial_smoothness,
    jumps,
    shock_advice,
    without_smoothing,
)
from rannpde.pde.problem.evolution import evolution_form

PLANE = rp.Box(x=(0, 1.3), y=(-0.2, 0.7))
TUBE = rp.SpaceTime(t=(0, 0.5), x=(0, 1))


def plate(left: str, rest: str = "u = 0", equation: str = "u_t = laplace(u)", domain=None) -> rp.Problem:
    sides = {"left": rp.On("x=0", left), "rest": rp.On("boundary except x=0", rest)}
    timed = {} if domain is PLANE else {"start": rp.On("t=0", "u = 0")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the corners
        return rp.Problem(equation, domain or rp.SpaceTime(t=(0, 1), x=(0, 1.3), y=(-0.2, 0.7)), timed | sides)


@pytest.mark.parametrize(
    ("left", "corners"),
    [
        ("u = 5", {(0, -0.2), (0, 0.7)}),
        ("2*u = 1e-9", {(0, -0.2), (0, 0.7)}),
        ("u = y + 0.2", {(0, 0.7)}),
        ("u = sqrt(y + 0.2)*(0.7 - y)", set()),
        ("u_x = 5", set()),
        ("u = 1e6*t", {(0, -0.2), (0, 0.7)}),
    ],
)
def test_corners_at_which_prescribed_values_jump_are_found(left, corners):
    assert set(corner_jumps(plate(left))) == corners
    if "t" not in left.replace("sqrt", ""):
        assert set(corner_jumps(plate(left, equation="laplace(u) = u**3", domain=PLANE))) == corners


def test_values_that_vanish_at_corners_and_middles_do_not_jump():
    assert corner_jumps(rp.zoo("kovasznay")) == []
    waves = "u = sin(2*pi*(y + 0.2)/0.9)*cos(4*pi*x/1.3)"
    assert corner_jumps(plate(waves, waves)) == []


def test_a_plate_that_is_heated_at_one_side_does_not_go_to_lines():
    assert "jump at a corner" in rp.Lines().drawbacks(plate("u = 5"))[0]
    assert not rp.Lines().drawbacks(plate("u = (y + 0.2)*(0.7 - y)"))


def test_a_jump_differs_from_a_kink_a_square_root_and_a_bump():
    rng = np.random.default_rng(1)
    grid = np.linspace(0, 1, 4097)
    for _ in range(50):
        place, size = rng.uniform(0.05, 0.95), 10 ** rng.uniform(-9, 9)
        smooth = np.sin(rng.uniform(0, 30) * grid)
        assert jumps(size * (smooth + 3 * (grid > place)))
        assert not jumps(size * (smooth + 9 * np.abs(grid - place)))
        assert not jumps(size * np.exp(-(((grid - place) / 0.01) ** 2)))
    assert not jumps(np.sqrt(grid))
    assert not jumps(np.ones(9))


@pytest.mark.parametrize(
    ("start", "power"),
    [
        ("where(x < 0.4, 1, 0)", 0.5), ("abs(x - 0.31)", 1.5), ("max(0, min(x - 0.2, 0.5 - x))", 1.5), ("x", np.inf),
        ("0.3", np.inf), ("0", np.inf), ("sin(40*x)", np.inf), ("abs(x - 0.31)**3", np.inf),
    ],
)  # fmt: skip
@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e6])
def test_the_smoothness_of_initial_values_in_any_unit(start, power, unit):
    conditions = {"start": rp.On("t=0", f"u = {unit!r}*({start})"), "in": rp.On("x=0", "u = 0")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = rp.Problem("u_t + u_x = 0", TUBE, conditions)
    assert initial_smoothness(evolution_form(problem)) == power


def test_errors_at_a_jump_exceed_the_difference_of_similar_resolutions():
    """At equal rates the factor follows d² = e_coarse² - e²; a resolution that is far coarser hides nothing."""
    assert error_over_difference(2.0, 0.5) > error_over_difference(4.0, 0.5) > 1
    assert error_over_difference(1e60, 0.5) < 1e-3


@pytest.mark.parametrize(
    ("equation", "start", "advised"),
    [
        ("u_t + u*u_x = 0", "u = sin(6*x)", True),
        ("u_t + u_x = 0", "u = where(x < 0.4, 1, 0)", True),
        ("u_t + u_x = 0", "u = sin(6*x)", False),
        ("u_t + u*u_x = 0.1*u_xx", "u = where(x < 0.4, 1, 0)", False),
    ],
)
def test_shocks_and_carried_jumps_get_the_advice_of_the_pages(equation, start, advised):
    problem = rp.Problem(equation, TUBE, {"start": rp.On("t=0", start), "circle": rp.Periodic("x")})
    assert without_smoothing(problem) == ("u_xx" not in equation)
    assert ("finite volumes" in shock_advice(problem)) == advised


@pytest.mark.parametrize(("tol", "half"), some([(0.1, 0.15), (0.2, 0.25), (0.05, 0.25)], 1))
def test_a_square_wave_is_not_called_better_than_it_is(tol, half):
    conditions = {"start": rp.On("t=0", f"u = where(abs(x - 0.5) < {half}, 1, 0)"), "circle": rp.Periodic("x")}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        solution = rp.solve(rp.Problem("u_t + u_x = 0", TUBE, conditions), tol=tol)
    points = TUBE.sample(20_000, rng=3)
    exact = np.abs((points[:, 1] - points[:, 0]) % 1 - 0.5) < half
    error = np.linalg.norm(solution(points).ravel() - exact) / np.linalg.norm(exact)
    assert error < solution.estimate
    if not solution.converged:
        assert any("finite volumes" in str(one.message) for one in told)


@pytest.mark.parametrize("seed", range(5))
def test_rules_integrate_jumps_between_their_nodes_exactly(seed):
    """Gauss rules on panels, in any order of the nodes: several steps, and what is smooth beside them as before."""
    rng = np.random.default_rng([131, seed])
    lower, length, panels = rng.uniform(-3, 3), 10 ** rng.uniform(-3, 3), int(rng.integers(3, 9))
    local, shares = np.polynomial.legendre.leggauss(6)
    edges = lower + length * np.sort(np.append(rng.uniform(0, 1, panels - 1), [0.0, 1.0]))
    nodes = np.concatenate([(a + b) / 2 + (b - a) / 2 * local for a, b in itertools.pairwise(edges)])
    weights = np.concatenate([(b - a) / 2 * shares for a, b in itertools.pairwise(edges)])
    order = rng.permutation(len(nodes))
    places = lower + length * np.array([0.23, 0.61, 0.9])
    heights = rng.standard_normal(3)

    def steps(points):
        return (heights * (points > places)).sum(axis=1)

    values = averaged_at_jumps(steps, nodes[order], weights[order], lower)
    assert weights[order] @ values == pytest.approx(heights @ (lower + length - places), rel=1e-9)
    smooth = averaged_at_jumps(lambda points: np.sin(points[:, 0] / length), nodes[order], weights[order], lower)
    np.testing.assert_array_equal(smooth, np.sin(nodes[order] / length))


@pytest.mark.parametrize("seed", range(4))
def test_insulated_heat_keeps_the_mean_of_a_jump(seed):
    """It was wrong by 1e-4 in all iterations, of which two agreed to 1e-5 by chance."""
    rng = np.random.default_rng([132, seed])
    place, nu, tol = round(float(rng.uniform(0.1, 0.9)), 3), float(f"{10 ** rng.uniform(-1.5, 0):.3g}"), 1e-4
    problem = rp.Problem(
        f"u_t = {nu!r}*u_xx", rp.SpaceTime(t=(0, 1), x=(0, 1)),
        {"start": rp.On("t=0", f"u = where(x < {place!r}, 1, 0)"), "ends": rp.On(("x=0", "x=1"), "u_x = 0")},
    )  # fmt: skip
    solution = rp.solve(problem, tol=tol, method="lines", rng=seed)
    x, w = np.polynomial.legendre.leggauss(40)
    late = np.column_stack([np.ones(40), (1 + x) / 2])
    assert solution.converged
    assert abs(w @ solution(late) / 2 - place) < 2e-5
