"""Slits: statement, lips, r^½ at their ends, and exponential convergence there and at crossings of interfaces."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import rannpde as rp
from draws import covering, draws, some
from rannpde import On
from rannpde.domains.boundary.slits import slit_lips
from rannpde.errors import InputError
from rannpde.pde.weak.assembly import HybridSystem, factorised_traces
from rannpde.pde.weak.evaluation import weak_network
from rannpde.pde.weak.form import weak_formulation
from rannpde.pde.weak.grading import graded_tree, towards_points
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation
from rannpde.pde.weak.state import WeakResolution


def crack(scale=1.0, at=(0.0, 0.0), lips="dn(u) = 0"):
    """r^½ cos(θ/2), θ from 0 to 2π off a slit that runs from a point to the right side, free or held at zero."""
    free = lips.startswith("dn")

    def polar(x, y):
        x, y = (x - at[0]) / scale, (y - at[1]) / scale
        return np.hypot(x, y), np.mod(np.arctan2(y, x), 2 * np.pi)

    def known(x, y):
        radius, angle = polar(x, y)
        return np.sqrt(radius) * (np.cos(angle / 2) if free else np.sin(angle / 2))

    def across(x, y):  # ∂_x
        radius, angle = polar(x, y)
        return 0.5 / np.sqrt(radius) * (np.cos(angle / 2) if free else -np.sin(angle / 2)) / scale

    box = rp.Box(x=(at[0] - scale, at[0] + scale), y=(at[1] - scale, at[1] + scale))
    right = f"x={at[0] + scale!r}"
    conditions = {
        "crack": On(f"slit ({at[0]!r}, {at[1]!r}) to ({at[0] + scale!r}, {at[1]!r})", lips),
        "right": On(right, "dn(u) = f(x, y)"), "rest": On(f"boundary except {right}", "u = g(x, y)"),
    }  # fmt: skip
    exact = lambda points: known(points[:, 0], points[:, 1])  # noqa: E731
    return rp.Problem("laplace(u) = 0", box, conditions, functions={"g": known, "f": across}, exact={"u": exact})


@pytest.mark.parametrize(
    ("place", "lips"), covering([(1.0, (0.0, 0.0)), (2.3e-3, (0.41, -0.07))], ["dn(u) = 0", "u = 0"])
)
def test_the_end_of_a_crack_in_any_units(place, lips):
    scale, at = place
    for tol in (1e-2, 1e-6):
        solution = rp.solve(crack(scale, at, lips), tol=tol)
        assert solution.method.name == "weak"
        assert solution.converged
        assert solution.errors()["u"] < tol
        assert solution.history.bound < 0.05


@pytest.mark.slow
def test_lips_may_have_conditions_of_their_own_and_mirrored_problems_agree():
    """-Δu = 1 about a slit: one lip held, the other free. What is mirrored in the slit is the mirrored solution."""
    box, rest = rp.Box(x=(-1, 1), y=(-1, 1)), {"rest": On("boundary", "u = 0")}
    values = []
    for held, free, sign in (("left", "right", 1.0), ("right", "left", -1.0)):
        lips = {"a": On(f"slit (-0.5, 0) to (0.5, 0), {held}", "u = 0"),
                "b": On(f"slit (-0.5, 0) to (0.5, 0), {free}", "dn(u) = 0")}  # fmt: skip
        solution = rp.solve(rp.Problem("laplace(u) = -1", box, lips | rest), tol=1e-4)
        assert solution.converged
        values.append(solution(np.array([[0.1, 0.2], [-0.3, -0.4], [0.2, -1e-9], [0.2, 1e-9]]) * [1.0, sign]))
    assert values[0] == pytest.approx(values[1], abs=1e-4)
    assert abs(values[0][3]) < 1e-5 < values[0][2]


def slope_of_errors(states, error):
    roots = [state.unknowns ** (1 / 3) for state in states]
    logs = [np.log(error(state)) for state in states]
    slope, offset = np.polyfit(roots, logs, 1)
    left = np.array(logs) - slope * np.array(roots) - offset
    return slope, float(np.abs(left).max()), logs


def solved(problem, degree, levels, point):
    discretisation = WeakDiscretisation(
        weak_formulation(problem), 0.1, WeakSettings(), np.random.default_rng(3), lambda: None
    )
    bounds = np.asarray(problem.domain.bounds, dtype=float)
    places = [(axis, value) for axis, value in enumerate(point)]
    tree = graded_tree(bounds, places, [], 0.1, 2)
    return discretisation.solve(WeakResolution(towards_points(tree, [(point, levels)]), degree))


def kellogg(contrast, at=(0.0, 0.0), ends=(-1.0, 1.0, -1.0, 1.0)):
    """r^λ Φ(θ) of a checkerboard that crosses at a point, λ = 4/π arctan(1/√k); ends : of the box, from there."""
    power = 4 / np.pi * np.arctan(1 / np.sqrt(contrast))
    ratio = 1 / np.tan(power * np.pi / 4)

    def known(x, y):
        x, y = x - at[0], y - at[1]
        angle, radius = np.mod(np.arctan2(y, x), 2 * np.pi), np.hypot(x, y)
        number = np.floor(angle / (np.pi / 2))
        own = power * (angle - (number + 0.5) * np.pi / 2)
        sign = np.where(number < 2, 1.0, -1.0)
        return radius**power * sign * np.where(number % 2 == 0, np.cos(own), -ratio * np.sin(own))

    corner = tuple(float(value) for value in at)
    equation = f"div(where((x - ({corner[0]!r}))*(y - ({corner[1]!r})) > 0, {contrast!r}, 1)*grad(u)) = 0"
    exact = lambda points: known(points[:, 0], points[:, 1])  # noqa: E731
    left, right, down, up = (float(value) for value in ends)
    box = rp.Box(x=(corner[0] + left, corner[0] + right), y=(corner[1] + down, corner[1] + up))
    return rp.Problem(equation, box, {"rim": On("boundary", "u = g(x, y)")}, functions={"g": known}, exact={"u": exact})


def reentrant():
    """r^(2/3) sin(2θ/3) on the L-shape."""

    def known(x, y):
        return np.hypot(x, y) ** (2 / 3) * np.sin(2 / 3 * np.mod(np.arctan2(y, x), 2 * np.pi))

    domain = rp.Box(x=(-1, 1), y=(-1, 1)) - rp.Box(x=(0, 1), y=(-1, 0))
    exact = lambda points: known(points[:, 0], points[:, 1])  # noqa: E731
    conditions = {"rim": On("boundary", "u = g(x, y)")}
    return rp.Problem("laplace(u) = 0", domain, conditions, functions={"g": known}, exact={"u": exact})


@pytest.mark.parametrize(("problem", "resolutions"), some([
    (crack(), ((3, 6), (5, 10), (7, 14), (9, 18))),
    (reentrant(), ((3, 5), (5, 8), (7, 11), (9, 14))),
    (kellogg(10.0), ((3, 7), (5, 12), (7, 17), (9, 22))),
    (kellogg(1e4), ((3, 7), (5, 12), (7, 17), (9, 22))),
], 2))  # fmt: skip
def test_convergence_is_exponential_in_the_cube_root_of_the_unknowns(problem, resolutions):
    """log error against unknowns^(1/3) is a line (Babuška, Guo), for a slit, the L-shape and a checkerboard."""
    points = problem.domain.sample(2000, rng=0)
    truth = problem.exact["u"](points)
    states = [solved(problem, degree, levels, (0.0, 0.0)) for degree, levels in resolutions]
    error = lambda state: np.linalg.norm(state.network(points)[:, 0] - truth) / np.linalg.norm(truth)  # noqa: E731
    slope, left, logs = slope_of_errors(states, error)
    assert slope < -0.35
    assert left < 0.25 * (logs[0] - logs[-1])
    assert logs[-1] < np.log(1e-6)


@pytest.mark.parametrize(("contrast", "tol"), some([(10.0, 1e-4), (351.0, 3.4e-4), (1e4, 1e-2), (1e4, 1e-6)], 2))
def test_checkerboards_are_right(contrast, tol):
    """λ = 0.39 by halving cells; 0.068 and 0.013, which no mesh of float64 resolves, by rings continued to infinity."""
    solution = rp.solve(kellogg(contrast), tol=tol, seconds=60, method="weak")
    assert solution.converged
    assert solution.errors()["u"] < solution.estimate <= tol


@pytest.mark.slow
def test_checkerboards_in_random_boxes_are_right():
    rng = np.random.default_rng(8)
    for _ in range(draws(2, 4)):
        contrast, size = float(np.exp(rng.uniform(np.log(20), np.log(2e4)))), float(10 ** rng.uniform(-3, 3))
        ends = np.round(rng.uniform(0.3, 2, 4), 3) * [-1, 1, -1, 1] * size
        at = np.round(rng.uniform(-1, 1, 2), 3) * size
        problem = kellogg(contrast, tuple(at), ends)
        solution = rp.solve(problem, tol=1e-4, method="weak")
        assert solution.converged
        assert solution.errors()["u"] < 1e-4


def test_infinitely_many_rings_are_the_limit_of_many():
    """With λ = 0.39 forty halvings are enough, and the continued mesh of ten gives the same."""
    problem = kellogg(10.0)
    points = problem.domain.sample(500, rng=0)
    values = []
    for levels, crossings in ((10, [(0.0, 0.0)]), (40, [])):
        local = solved(problem, 6, levels, (0.0, 0.0)).local
        found = HybridSystem(local).solve(None, crossings)
        assert len(found.inside) == (16 if crossings else 0)
        values.append(weak_network(local, found)(points))
    assert np.abs(values[0] - values[1]).max() < 1e-7


def test_a_checkerboard_of_contrast_ten_thousand_under_a_uniform_load():
    problem = rp.Problem(
        "div(where(x*y > 0, 10000, 1)*grad(u)) = -1", rp.Box(x=(-1, 1), y=(-1, 1)), {"rim": On("boundary", "u = 0")}
    )  # fmt: skip
    solution = rp.solve(problem, tol=1e-4)
    assert solution.converged
    assert solution(np.array([[-0.5, 0.5]]))[0] == pytest.approx(0.0736928, rel=1e-4)  # of a finer solve


@pytest.mark.parametrize(("text", "reason"), [
    ("slit (0, 0) to (3, 0)", "inside the domain"), ("slit (0, 0) to (0, 0)", "same point"),
    ("slit (0, 0)", "must read"), ("slit (0, 0) to (1, 0), upper", "must read"),
])  # fmt: skip
def test_slits_that_are_none(text, reason):
    with pytest.raises(InputError, match=reason):
        rp.Problem(
            "laplace(u) = 0", rp.Box(x=(-1, 1), y=(-1, 1)), {"a": On(text, "u = 0"), "b": On("boundary", "u = 0")}
        )


def test_inclined_slits_are_refused_with_the_reason():
    conditions = {"a": On("slit (0, 0) to (0.5, 0.4)", "u = 0"), "b": On("boundary", "u = 0")}
    with pytest.raises(InputError, match="along no axis"):
        rp.solve(rp.Problem("laplace(u) = 1", rp.Box(x=(-1, 1), y=(-1, 1)), conditions))


def test_a_lip_is_a_region():
    left, right = slit_lips("slit (0, 0) to (0, 2)", rp.Box(x=(-1, 1), y=(-3, 3)), float)
    points, weights = left.rule(5, 2)
    assert weights.sum() == pytest.approx(2.0)
    assert left.contains(points).all()
    assert (left.sample(50, rng=0)[:, 0] < 0).all()
    assert (right.sample(50, rng=0)[:, 0] > 0).all()
    assert np.allclose(left.normals(points) + right.normals(points), 0.0)
    assert left.within([(-1, 1), (0.5, 1)], 7).shape == (7, 2)
    assert left.within([(0.1, 1), (0.5, 1)], 7).shape == (0, 2)


def test_a_singular_matrix_of_traces_is_an_error_that_solves_know():
    with pytest.raises(np.linalg.LinAlgError, match="matrix of traces"):
        factorised_traces(sparse.csc_matrix((3, 3)), 2)
