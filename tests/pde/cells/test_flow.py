"""Incompressible flow by cells: what is claimed about it, what is kept of its mass, how often it is solved."""

import numpy as np
import pytest

import rannpde as rp
from benchmarks.harness.reference_solution import read_reference
from benchmarks.pinnacle.flow import FLOW, step
from rannpde.pde.cells.constraints.points import corner_weights
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.zoo import zoo

STEP = rp.Box(x=(0, 4), y=(0, 2)) - rp.Box(x=(0, 2), y=(1, 2))


def flow_through(solution: rp.Solution, x: float, height: float) -> float:
    nodes, weights = np.polynomial.legendre.leggauss(60)
    points = np.column_stack([np.full(60, x), 0.5 * height * (1 + nodes)])
    return float(0.5 * height * weights @ solution(points)[:, 0])


@pytest.mark.filterwarnings("ignore::rannpde.ConvergenceWarning")
def test_the_flow_behind_a_step_is_not_claimed_to_be_better_than_it_is():
    """Against finite elements (2e-5). Iterations that shared their cells and their degree once agreed 17 times too
    well."""
    reference = read_reference("ns-2d-cg")
    solution = rp.solve(step(), tol=5e-2)
    assert solution.converged, solution.report()
    gaps = np.linalg.norm(solution(reference.points)[:, :2] - reference.values, axis=0)
    gaps /= np.linalg.norm(reference.values, axis=0)
    assert gaps.max() < 5e-2
    assert gaps.max() < 10 * solution.estimate
    flux_operator = [flow_through(solution, x, 1.0 if x < 2 else 2.0) for x in (0.5, 1.5, 2.5, 4.0)]
    assert np.allclose(flux_operator, 2 / 3, rtol=1e-3)  # what comes in, at every section


def test_a_long_channel_keeps_its_flow():
    """u = 4y(1 - y), p = 8ν(L - x): little but the inflow holds it."""
    exact = {"u": "4*y*(1 - y)", "v": "0", "p": "8*nu*(6 - x)"}
    conditions = {"inflow": rp.On("x=0", "u = 4*y*(1 - y)"), "across": rp.On("x=0", "v = 0")}
    conditions |= {f"walls, {name}": rp.On(("y=0", "y=1"), f"{name} = 0") for name in ("u", "v")}
    conditions |= {"outflow, u": rp.On("x=6", "p = nu*u_x"), "outflow, v": rp.On("x=6", "v_x = 0")}
    domain = rp.Box(x=(0, 6), y=(0, 1))
    problem = rp.Problem(FLOW, domain, conditions, {"nu": 0.01}, fields=("u", "v", "p"), exact=exact)
    solution = rp.solve(problem, tol=1e-6)
    assert solution.converged, solution.report()
    errors = solution.errors()
    assert max(errors["u"], errors["p"]) < min(1e-6, 10 * solution.estimate + 1e-12)
    assert flow_through(solution, 6.0, 1.0) == pytest.approx(2 / 3, rel=1e-7)


def test_a_pass_close_to_the_one_before_takes_one_step():
    """Newton's error is squared: from an iteration that is off by 1e-6 the first step is exact up to 1e-12 or so."""
    solution = rp.solve(zoo("kovasznay"), tol=1e-7)
    assert solution.converged
    assert max(solution.errors().values()) < 1e-7
    assert solution.history.iterations[0].steps > 2
    assert solution.history.iterations[-1].steps == 1


def test_points_on_a_wall_belong_to_the_cell_beside_it():
    """Behind the wall y = 1 of a step lies one large leaf without a cell, whose middle is far from most of the wall."""
    values = {"all around": rp.On("boundary", "u = x**2 - y**2")}
    solution = rp.solve(rp.Problem("laplace(u) = 0", STEP, values), tol=1e-2, method=rp.Cells(degree=4))
    wall = np.column_stack([np.linspace(0, 2, 41), np.ones(41)])
    upright = np.column_stack([np.full(21, 2.0), np.linspace(1, 2, 21)])
    for points in (wall, upright):
        assert np.allclose(solution(points).ravel(), points[:, 0] ** 2 - points[:, 1] ** 2, atol=1e-5)


def test_rows_weigh_less_towards_a_corner_and_nowhere_else():
    tree = CellNode(np.array([(0.0, 4.0), (0.0, 2.0)])).refined_leaves((0, 0, 0, 0, 1, 1, 1))
    weights = corner_weights(tree, STEP, 0.5)
    away = np.array([np.linalg.norm(leaf.bounds.mean(axis=1) - (2.0, 1.0)) for leaf in tree.leaves])
    assert np.allclose(weights, np.minimum(1.0, away / 0.5) ** 0.5)
    assert (corner_weights(tree, rp.Box(x=(0, 4), y=(0, 2)), 0.5) == 1.0).all()
