"""The method of cells on domains with holes, corners and curved sides."""

import numpy as np
import pytest

import rannpde as rp
from rannpde.domains.shapes.meshes import surface_mesh

SQUARE = rp.Box(x=(0, 1), y=(0, 1))
HOLE = rp.Ball((0.4, 0.5), 0.2, names=("x", "y"), name="hole")


def solved(equation, domain, conditions, exact, tol, **more):
    problem = rp.Problem(equation, domain, conditions, exact=exact, **more)
    solution = rp.solve(problem, tol=tol, method="cells")
    assert solution.method.name == "cells"
    assert solution.converged, solution.report()
    worst = max(solution.errors().values())
    assert worst < tol
    assert worst < 10 * solution.estimate + 1e-13
    return solution


HARMONIC = {"u": "exp(2*x)*sin(2*y)"}
SHAPES = {
    "hole": SQUARE - HOLE,
    "disc": rp.Ball((0.5, 0.5), 0.7, names=("x", "y")),
    "ellipse with a square bite": rp.Implicit("x**2/4 + y**2 < 1", within=rp.Box(x=(-2.1, 2.1), y=(-1.1, 1.1)))
    - rp.Box(x=(-0.5, 0.5), y=(0, 2)),
    "triangle": rp.Polygon([(0, 0), (1.5, 0.2), (0.4, 1.1)], names=("x", "y")),
    "turned square": SQUARE.rotated(0.4) - rp.Ball((0.3, 0.7), 0.1, names=("x", "y")),
}


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] if "bite" in one else []) for one in SHAPES]
)
def test_a_harmonic_function_is_recovered_from_its_boundary_values(name):
    values = {"all around": rp.On("boundary", "u = exp(2*x)*sin(2*y)")}
    solved("laplace(u) = 0", SHAPES[name], values, HARMONIC, 1e-4 if "bite" in name else 1e-7)


@pytest.mark.parametrize("name", ["hole", "disc", "triangle"])
def test_normal_derivatives_on_curved_sides_are_exact(name):
    """With v prescribed and dn(u) + u = dn(v) + v, both fields are the same harmonic function."""
    conditions = {
        "slope": rp.On("boundary", "dn(u) + u = dn(v) + v"),
        "known": rp.On("boundary", "v = exp(2*x)*sin(2*y)"),
    }
    equations = {"u": "laplace(u) = 0", "v": "laplace(v) = 0"}
    solved(equations, SHAPES[name], conditions, HARMONIC | {"v": HARMONIC["u"]}, 1e-6, fields=("u", "v"))


def test_a_hole_has_its_own_condition():
    """u = log r / log(1/5) between two circles: 1 on the small one, 0 on the large one."""
    ring = rp.Ball((0, 0), 1, names=("x", "y"), name="outer") - rp.Ball((0, 0), 0.2, names=("x", "y"), name="inner")
    conditions = {"out": rp.On("outer", "u = 0"), "in": rp.On("inner", "u = 1")}
    solution = solved("laplace(u) = 0", ring, conditions, {"u": "log(x**2 + y**2)/2/log(1/5)"}, 1e-6)
    lengths = np.diff(solution.function.boxes, axis=2)[:, :, 0].max(axis=1)
    near = np.linalg.norm(solution.function.boxes.mean(axis=2), axis=1) < 0.4
    assert lengths[near].mean() < lengths[~near].mean()  # cells shrink towards the small circle


@pytest.mark.slow
def test_a_reentrant_corner_is_graded():
    """r^(2/3) sin(2θ/3) on an L: no polynomial follows it, but cells that shrink by four do."""
    corner = SQUARE.translated(-0.5, -0.5).scaled(2) - rp.Box(x=(0, 1), y=(-1, 0))

    def singular(points):
        radius, angle = np.hypot(*points.T), np.mod(np.arctan2(points[:, 1], points[:, 0]), 2 * np.pi)
        return radius ** (2 / 3) * np.sin(2 * angle / 3)

    values = {"all around": rp.On("boundary", "u = g(x, y)")}
    functions = {"g": rp.PointFunction(singular)}
    solution = solved("laplace(u) = 0", corner, values, {"u": singular}, 1e-5, functions=functions)
    assert np.diff(solution.function.boxes, axis=2).min() < 1e-3


def test_flow_past_a_hole_has_a_pressure():
    exact = {"u": "sin(x)*cos(y)", "v": "-cos(x)*sin(y)", "p": "x*y"}
    equations = {
        "x": "-laplace(u) + p_x = 2*sin(x)*cos(y) + y",
        "y": "-laplace(v) + p_y = -2*cos(x)*sin(y) + x",
        "mass": "u_x + v_y = 0",
    }
    conditions = {
        "u": rp.On("boundary", "u = sin(x)*cos(y)"),
        "v": rp.On("boundary", "v = -cos(x)*sin(y)"),
        "level": rp.Data(np.array([[0.0, 0.0]]), np.zeros(1), "p"),
    }
    solved(equations, SQUARE - HOLE, conditions, exact, 1e-6, fields=("u", "v", "p"))


@pytest.mark.slow
def test_a_ball_taken_from_a_cube():
    solid = rp.Box(x=(0, 1), y=(0, 1), z=(0, 1)) - rp.Ball((0.5, 0.4, 0.6), 0.25, names=("x", "y", "z"))
    exact = "exp(x)*sin(y/2 + z*sqrt(3)/2)"
    solved("laplace(u) = 0", solid, {"all around": rp.On("boundary", f"u = {exact}")}, {"u": exact}, 1e-3)


@pytest.mark.slow
def test_robin_conditions_hold_on_a_cylinder_through_a_box():
    solid = rp.Box(x=(0, 2), y=(0, 1), z=(0, 1)) - rp.Cylinder((1, 0.5, -0.2), (1, 0.5, 1.2), 0.25, name="bore")
    exact = "sin(2*x)*cos(y) + x*z"
    flux = "(2*cos(2*x)*cos(y) + z)*dn(x) - sin(2*x)*sin(y)*dn(y) + x*dn(z)"
    conditions = {
        "bore": rp.On("bore.wall", f"dn(u) + 2*u = {flux} + 2*({exact})"),
        "rest": rp.On("boundary except bore.wall", f"u = {exact}"),
    }
    solved("-laplace(u) + u = 6*sin(2*x)*cos(y) + x*z", solid, conditions, {"u": exact}, 1e-5)


@pytest.mark.slow
def test_the_solid_of_a_mesh_of_flat_facets():
    around, along = 8, 6
    angles = [2 * np.pi * np.arange(count) / count for count in (around, along)]
    angle, turn = np.meshgrid(*angles, indexing="ij")
    reach = 1 + 0.4 * np.cos(turn)
    vertices = np.stack([reach * np.cos(angle), reach * np.sin(angle), 0.4 * np.sin(turn)], axis=2).reshape(-1, 3)
    faces = []
    for i in range(around):
        for j in range(along):
            a, b, c, d = ((k % around) * along + m % along for k, m in ((i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)))
            faces += [(a, b, c), (a, c, d)]
    ring = surface_mesh(vertices, faces, None, None, "ring")
    exact = "exp(x)*sin(y) + x*z"
    solved("laplace(u) = 0", ring, {"ring": rp.On("boundary", f"u = {exact}")}, {"u": exact}, 1e-4)


def test_a_solution_on_a_shape_survives_its_file(tmp_path):
    values = {"all around": rp.On("boundary", "u = exp(2*x)*sin(2*y)")}
    problem = rp.Problem("laplace(u) = 0", SQUARE - HOLE, values, exact=HARMONIC)
    solution = rp.solve(problem, tol=1e-4)
    again = rp.load(solution.save(tmp_path / "hole.rann"))
    points = problem.domain.sample(100, rng=0)
    assert np.array_equal(again(points), solution(points))
    assert again.stated.domain == problem.domain
