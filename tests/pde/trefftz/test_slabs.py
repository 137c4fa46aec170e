"""Solids whose coefficients jump at parallel planes, and particular solutions on their bounding boxes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sympy

import rannpde as rp
from rannpde.pde.trefftz.box_solution import SlabOperator, box_solution, wall_conditions
from rannpde.pde.trefftz.cells.faces import one_sided, side_of
from rannpde.pde.trefftz.cells.slabs import plane_across
from rannpde.pde.trefftz.operator import LinearEquation, linear_equation

X, Y, Z = sympy.symbols("x y z", real=True)
BOX = {"x": (0.0, 1.1), "y": (-0.3, 0.5), "z": (0.2, 1.0)}


def hollow(centre: tuple[float, float, float] = (0.5, 0.1, 0.55), radius: float = 0.2) -> rp.Domain:
    """A box without a ball, which the plane z = 0.6 meets."""
    return rp.Box(**BOX) - rp.Ball(centre, radius, ("x", "y", "z"), name="ball")


def operator_of(problem: rp.Problem, planes: list[float], fluxes: bool) -> SlabOperator:
    ends = [0.2, *planes, 1.0]
    equations = []
    for low, high in itertools.pairwise(ends):
        side = side_of(problem, np.array([0.0, 0.0, 0.5 * (low + high)]))
        one = next(linear_equation(name, one_sided(own, side)) for name, own in problem.expressions.items())
        assert isinstance(one, LinearEquation)
        equations.append(one)
    operator = SlabOperator.of(equations, "u", 2, np.array(ends), fluxes)
    assert operator is not None
    return operator


@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_the_solution_on_a_box_has_the_conditions_of_its_sides(tol: float) -> None:
    """Insulated sides in x, u = 0 in y, Robin's condition and u = 0 in z: a product of eigenfunctions is the truth."""
    root = float(sympy.nsolve(Z * sympy.cot(Z * sympy.Rational(4, 5)) + 2, 3))  # φ' = 2 φ below, φ = 0 above
    exact = sympy.cos(3 * sympy.pi * X / 1.1) * sympy.sin(5 * sympy.pi * (Y + 0.3) / 0.8) * sympy.sin(root * (1 - Z))
    load = sympy.expand(-sum(sympy.diff(exact, s, 2) for s in (X, Y, Z)) + 7 * exact)
    conditions = {
        "insulated": rp.On(("x=0", "x=1.1"), "dn(u) = 0"),
        "held": rp.On(("y=-0.3", "y=0.5", "z=1"), "u = 0"),
        "warm": rp.On("z=0.2", "dn(u) = -2*u"),
        "ball": "u = 0",
    }
    problem = rp.Problem(f"-laplace(u) + 7*u = {load}", hollow(), conditions)
    ratios = wall_conditions(problem, problem.constraints)
    assert ratios is not None
    assert np.array_equal(np.isinf(ratios), [[False, False], [True, True], [False, True]])
    assert ratios[2, 0] == pytest.approx(2)
    points = problem.domain.sample(200, rng=1)
    whole = box_solution(problem, operator_of(problem, [], False), ratios, tol, points)
    assert whole is not None
    wanted = sympy.lambdify((X, Y, Z), exact)(*points.T)
    error = np.abs(whole.parts[0].derivative(points, (0, 0, 0)) - wanted).max()
    assert error <= tol * np.abs(wanted).max()
    assert error <= 10 * whole.defect * whole.gain  # an L² bound, seen at single points


def test_fluxes_or_slopes_are_continuous_at_planes() -> None:
    """∂_z(a ∂_z u) = f with a = 1, 4 below and above z = 0.6, and the same written without a divergence."""
    sides = {"sides": rp.On(("x=0", "x=1.1", "y=-0.3", "y=0.5"), "dn(u) = 0"), "ends": rp.On(("z=0.2", "z=1"), "u = 0")}
    a = "where(z < 0.6, 1, 4)"
    plane, points = 0.6, np.array([[0.5, 0.1, 0.3], [0.5, 0.1, 0.8]])
    for text, fluxes in ((f"div({a}*grad(u)) = -1", True), (f"{a}*laplace(u) = -1", False)):
        problem = rp.Problem(text, rp.Box(**BOX), sides)
        ratios = wall_conditions(problem, problem.constraints)
        assert ratios is not None
        whole = box_solution(problem, operator_of(problem, [plane], fluxes), ratios, 1e-6, points)
        assert whole is not None
        at = np.array([[0.4, 0.0, plane]])
        values, slopes = ([part.derivative(at, (0, 0, k))[0] for part in whole.parts] for k in (0, 1))
        assert values[0] == pytest.approx(values[1], rel=1e-12)
        assert slopes[0] == pytest.approx((4 if fluxes else 1) * slopes[1], rel=1e-9)


def test_conditions_that_are_not_homogeneous_or_not_constant_have_no_solution_on_the_box() -> None:
    for text in ("u = x", "dn(u) = 1", "dn(u) = -x*u", "u_x + dn(u) = 0"):
        problem = rp.Problem("laplace(u) = u", rp.Box(**BOX), {"sides": rp.On("boundary", text)})
        assert wall_conditions(problem, problem.constraints) is None, text


def test_planes_across_axes_are_recognised() -> None:
    symbols = (X, Y, Z)
    assert plane_across(3 * Z - 1.5, symbols) == (2, 0.5)
    assert plane_across(X * Y, symbols) is None
    assert plane_across(Z**2 - 1, symbols) is None


def test_a_screening_that_jumps_at_a_plane_through_a_ball(tmp_path):
    """Insulated walls; on the ball the flux of a manufactured solution, whose source jumps."""
    exact = sympy.cos(sympy.pi * X / 1.1) * sympy.cos(sympy.pi * (Y + 0.3) / 0.8) + sympy.cos(
        5 * (Z - 0.2) * sympy.pi / 4
    )
    slopes = [sympy.diff(exact, s) for s in (X, Y, Z)]
    flux = " + ".join(f"({slope})*dn({name})" for slope, name in zip(slopes, "xyz", strict=True))
    lap = sum(sympy.diff(exact, s, 2) for s in (X, Y, Z))
    k = "where(z < 0.6, 9, 25)"
    conditions = {"walls": rp.On("boundary except ball", "dn(u) = 0"), "ball": rp.On("ball", f"dn(u) = {flux} + 1")}
    other = rp.Problem(f"-laplace(u) + {k}*u = {-lap} + {k}*({exact})", hollow(), conditions)
    solution = rp.solve(other, tol=5e-2, method="trefftz", rng=1)
    assert solution.converged
    again = rp.solve(other, tol=1e-2, method="trefftz", rng=2)
    points = other.domain.sample(500, rng=3)
    gap = np.linalg.norm(solution(points) - again(points)) / np.linalg.norm(again(points))
    assert gap <= solution.estimate + again.estimate
    solution.save(tmp_path / "slabs.rann")
    assert np.array_equal(rp.load(tmp_path / "slabs.rann")(points), solution(points))


def test_a_diffusion_that_jumps_at_a_plane_beside_a_ball() -> None:
    """u = (z - 0.7)(1 + x y)/a solves div(a ∇u) = 0 and has a continuous flux at z = 0.7."""
    a = "where(z < 0.7, 1, 5)"
    exact = f"(z - 0.7)*(1 + x*y)/{a}"
    domain = hollow((0.5, 0.1, 0.45), 0.15)
    problem = rp.Problem(
        f"div({a}*grad(u)) = 0", domain, {"all": rp.On("boundary", f"u = {exact}")}, exact={"u": exact}
    )
    solution = rp.solve(problem, tol=1e-3, method="trefftz", rng=0)
    assert solution.converged
    assert solution.errors()["u"] <= solution.estimate


def test_fluxes_that_jump_where_a_plane_cuts_a_ball_are_a_drawback() -> None:
    text = "div(where(z < 0.6, 1, 5)*grad(u)) = 0"
    for centre, oblique in (((0.5, 0.1, 0.55), True), ((0.5, 0.1, 0.35), False)):
        problem = rp.Problem(text, hollow(centre, 0.1), {"all": rp.On("boundary", "u = z")})
        assert rp.Trefftz().obstacles(problem) == ()
        assert bool(rp.Trefftz().drawbacks(problem)) is oblique
    slanted = rp.Problem("div(where(z + x < 0.6, 1, 5)*grad(u)) = 0", hollow(), {"all": rp.On("boundary", "u = z")})
    assert "parallel planes" in rp.Trefftz().obstacles(slanted)[0]
