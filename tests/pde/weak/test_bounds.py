"""The bound of Prager and Synge: never below the error in energy, seldom ten times as large."""

from __future__ import annotations

import numpy as np
import pytest

import rannpde as rp
from draws import draws
from rannpde import On
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.weak.bounds import energy_bound
from rannpde.pde.weak.evaluation import sampled
from rannpde.pde.weak.form import weak_formulation
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation
from rannpde.pde.weak.state import WeakResolution

SMOOTH = "exp(2*x)*sin(2*y)"


def slopes(points):
    factor = 2 * np.exp(2 * points[:, 0])
    return np.stack([factor * np.sin(2 * points[:, 1]), factor * np.cos(2 * points[:, 1])], axis=1)


def values(points):
    return np.exp(2 * points[:, 0]) * np.sin(2 * points[:, 1])


def effectivity(problem, slopes, tree, degree, diffusion=lambda p: 1.0, reaction=0.0, values=None, seed=0):
    """Bound over error, both in the energy norm of the cells."""
    form = weak_formulation(problem)
    discretisation = WeakDiscretisation(form, 1e-3, WeakSettings(), np.random.default_rng(seed), lambda: None)
    state = discretisation.solve(WeakResolution(tree or discretisation.first().tree, degree))
    points, weights, _, tables = sampled(state.local, state.solution, [(0, 0), (1, 0), (0, 1)])
    found = np.stack([tables[1, 0][:, 0], tables[0, 1][:, 0]], axis=1)
    error = (weights * diffusion(points) * ((found - slopes(points)) ** 2).sum(axis=1)).sum()
    if reaction:
        error += reaction * (weights * (tables[0, 0][:, 0] - values(points)) ** 2).sum()
    return energy_bound(state.local, state.solution).error / np.sqrt(error)


def unit_square(hanging):
    tree = CellNode(np.array([(0.0, 1.0), (0.0, 1.0)])).refined_leaves((0, 1))
    return tree.refined({tree.leaves[1]: (0, 1)}) if hanging else tree


@pytest.mark.parametrize("degree", [2, 4, 7])
@pytest.mark.parametrize("hanging", [False, True])
def test_the_bound_holds_for_smooth_solutions(degree, hanging):
    problem = rp.Problem("laplace(u) = 0", rp.Box(x=(0, 1), y=(0, 1)), {"rim": On("boundary", f"u = {SMOOTH}")})
    for seed in range(draws(1, 3)):
        assert 1.0 <= effectivity(problem, slopes, unit_square(hanging), degree, seed=seed) < 10


@pytest.mark.parametrize("degree", [3, 6])
def test_the_bound_holds_with_reaction_robin_and_neumann(degree):
    sides = {
        "left": On("x=0", f"u = {SMOOTH}"), "right": On("x=1", f"u_x = 2*{SMOOTH}"),
        "rest": On(("y=0", "y=1"), f"dn(u) + 2*u = 2*{SMOOTH} + dn(y)*2*exp(2*x)*cos(2*y)"),
    }  # fmt: skip
    problem = rp.Problem(f"-laplace(u) + 3*u = 3*{SMOOTH}", rp.Box(x=(0, 1), y=(0, 1)), sides)
    assert 1.0 <= effectivity(problem, slopes, unit_square(True), degree, reaction=3.0, values=values) < 10


def corner_slopes(points):
    angle, radius = np.mod(np.arctan2(points[:, 1], points[:, 0]), 2 * np.pi), np.hypot(*points.T)
    return 2 / 3 * radius[:, None] ** (-1 / 3) * np.stack([-np.sin(angle / 3), np.cos(angle / 3)], axis=1)


def test_the_bound_holds_at_a_re_entrant_corner():
    known = lambda x, y: np.hypot(x, y) ** (2 / 3) * np.sin(2 / 3 * np.mod(np.arctan2(y, x), 2 * np.pi))  # noqa: E731
    conditions = {"corner": On(("x=0", "y=0"), "u = 0"), "rest": On("boundary except x=0, y=0", "u = g(x, y)")}
    shape = rp.Box(x=(-1, 1), y=(-1, 1)) - rp.Box(x=(0, 1), y=(-1, 0))
    problem = rp.Problem("laplace(u) = 0", shape, conditions, functions={"g": known})
    for degree in (3, 6):
        assert 1.0 <= effectivity(problem, corner_slopes, None, degree) < 10


@pytest.mark.parametrize("contrast", [1e-3, 50.0])
def test_the_bound_holds_at_interfaces(contrast):
    """u = cos(π y) f(x) with a continuous flux at x = 0.4."""
    w, a = np.pi, 0.4
    p, q = np.cosh(w * a), np.sinh(w * a) / contrast

    def shape(x):
        inside, outside = np.cosh(w * x), p * np.cosh(w * (x - a)) + q * np.sinh(w * (x - a))
        turn = w * np.sinh(w * x), w * (p * np.sinh(w * (x - a)) + q * np.cosh(w * (x - a)))
        return np.where(x < a, inside, outside), np.where(x < a, *turn)

    def layered(points):
        value, slope = shape(points[:, 0])
        return np.stack([slope * np.cos(w * points[:, 1]), -w * value * np.sin(w * points[:, 1])], axis=1)

    end = float(shape(np.array([1.0]))[0][0])
    conditions = {"left": On("x=0", "dn(u) = 0"), "right": On("x=1", f"u = {end!r}*cos(pi*y)"),
                  "rest": On(("y=0", "y=1"), "dn(u) = 0")}  # fmt: skip
    problem = rp.Problem(f"div(where(x < {a}, 1, {contrast})*grad(u)) = 0", rp.Box(x=(0, 1), y=(0, 1)), conditions)
    factor = lambda points: np.where(points[:, 0] < a, 1.0, contrast)  # noqa: E731
    for degree in (3, 5):
        assert 1.0 <= effectivity(problem, layered, None, degree, factor) < 10


def test_the_report_tells_the_bound_and_files_keep_it(tmp_path):
    sides = {"left": On("x=0", "u = 0"), "rest": On("boundary except x=0", "dn(u) = 0")}
    solution = rp.solve(rp.Problem("laplace(u) = -1", rp.Box(x=(0, 1), y=(0, 1)), sides), tol=1e-4, method="weak")
    assert 0 < solution.history.bound < 1e-3
    assert "energy norm of the error at most" in solution.report()
    assert rp.load(solution.save(tmp_path / "plate.rann")).history.bound == solution.history.bound


def test_no_bound_where_there_is_none():
    problem = rp.Problem("laplace(u) + u_x = 1", rp.Box(x=(0, 1), y=(0, 1)), {"rim": On("boundary", "u = 0")})
    assert rp.solve(problem, tol=1e-3, method="weak").history.bound is None
