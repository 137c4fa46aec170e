"""Obstacle problems: radial solutions in random units and positions, shapes, two bounds, statements."""

from __future__ import annotations

import numpy as np
import pytest

import rannpde as rp
from draws import draws
from rannpde import On
from rannpde.errors import InputError

SQUARE = rp.Box(x=(0, 1), y=(0, 1))


def radial(seed):
    """u - plane = c (½ (r² - a²) - a² log(r/a)) outside a circle of contact, in random units; and a tolerance."""
    rng = np.random.default_rng(seed)
    length, height = 10 ** rng.uniform(-2, 2, 2)
    side = 1 if rng.random() < 0.5 else -1
    radius = float(length * rng.uniform(0.3, 0.8))
    factor = float(side * height / length**2)
    east, north = (float(value) for value in length * rng.uniform(-0.2, 0.2, 2))
    a, b = (float(value) for value in 0.3 * height / length * rng.uniform(-1, 1, 2))
    box = rp.Box(x=(-length, length * rng.uniform(0.9, 1.5)), y=(-1.1 * length, length * rng.uniform(0.9, 1.3)))
    square, core = f"((x - ({east!r}))**2 + (y - ({north!r}))**2)", repr(radius**2)
    plane = f"({a!r}*x + {b!r}*y)"
    outside = f"0.5*({square} - {core}) - 0.5*{core}*log({square}/{core})"

    def exact(points):
        away = np.maximum((points[:, 0] - east) ** 2 + (points[:, 1] - north) ** 2, 1e-9 * radius**2)
        grown = 0.5 * (away - radius**2) - 0.5 * radius**2 * np.log(away / radius**2)
        return points @ [a, b] + factor * np.where(away > radius**2, grown, 0.0)

    stiff = float(10 ** rng.uniform(-1, 1))
    conditions = {
        "boundary": f"u = {plane} + {factor!r}*where({square} > {core}, {outside}, 0)",
        "interior": f"u {'>=' if side > 0 else '<='} {plane}",
    }
    equation = f"{stiff!r}*laplace(u) = {2 * stiff * factor!r}"
    return rp.Problem(equation, box, conditions, exact={"u": exact}), float(10 ** rng.uniform(-3.5, -2))


@pytest.mark.parametrize("seed", range(draws(1, 8)))
def test_circles_of_contact_in_any_units(seed):
    problem, tol = radial(seed)
    solution = rp.solve(problem, tol=tol)
    error = solution.errors()["u"]
    assert solution.method.name == "weak"
    assert solution.converged
    assert error <= tol
    assert error <= 2 * solution.estimate
    assert "inequalities by active sets" in solution.report()


def test_a_membrane_over_a_ball_on_a_disc():
    """-Δu ≥ 0 over the unit sphere, u = 0 at r = 2: contact up to r = 0.69797 (Bueler, PETSc for PDEs, § 12)."""
    contact = 0.6979651482233
    ball = "where(x**2+y**2 < 0.9, sqrt(1-x**2-y**2), sqrt(0.1) - (x**2+y**2-0.9)/(2*sqrt(0.1)))"

    def exact(points):
        r = np.maximum(np.hypot(*points.T), 1e-9)
        free = -(contact**2) * np.log(r / 2) / np.sqrt(1 - contact**2)
        return np.where(r < contact, np.sqrt(np.maximum(1 - r**2, 0)), free)

    conditions = {"boundary": "u = 0", "interior": f"u >= {ball}"}
    problem = rp.Problem("laplace(u) = 0", rp.Ball((0, 0), 2.0), conditions, exact={"u": exact})
    solution = rp.solve(problem, tol=1e-3)
    assert solution.converged
    assert solution.errors()["u"] < 1e-3


def test_two_bounds_hold_and_the_equation_between_them():
    conditions = {"boundary": "u = 0", "floor": On("interior", "u >= -0.05"), "roof": On("interior", "u <= 0.1")}
    problem = rp.Problem("laplace(u) = -20*sin(6*x)", SQUARE, conditions)
    solution = rp.solve(problem, tol=3e-3)
    points = problem.domain.sample(3000, rng=1)
    values = solution(points)
    assert solution.converged
    assert values.min() > -0.051
    assert values.max() < 0.101
    left = np.abs(problem.residual(solution.function, points)["equation"])
    between = (values > -0.04) & (values < 0.09)
    assert np.median(left[between]) < 0.05
    assert (values > 0.0999).mean() > 0.02


@pytest.mark.slow  # beside circles of contact, and minimal surfaces without an obstacle
def test_a_minimal_surface_over_a_hill():
    conditions = {"boundary": "u = 0", "interior": "u >= 0.3 - 2*((x - 0.5)**2 + (y - 0.4)**2)"}
    problem = rp.Problem("div(grad(u)/sqrt(1 + u_x**2 + u_y**2)) = 0", SQUARE, conditions)
    rough, fine = (rp.solve(problem, tol=tol, rng=3) for tol in (3e-3, 5e-4))
    points = problem.domain.sample(2000, rng=1)
    assert rough.converged
    assert fine.converged
    assert np.linalg.norm(rough(points) - fine(points)) < 3.5e-3 * np.linalg.norm(fine(points))


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ({"x=0": "u >= 0"}, "interior"),
        ({"interior": "w >= 0"}, "field on its left"),
        ({"interior": "u >= u_x"}, "must be a formula"),
        ({"interior": "u >= 1/(x - x)"}, "zero"),
        ({"a": On("interior", "u >= 0"), "b": On("interior", "u >= 1")}, "same side"),
        ({"a": On("interior", "u >= 1"), "b": On("interior", "u <= 0")}, "no room"),
    ],
)
def test_statements_that_make_no_sense(conditions, words):
    with pytest.raises(InputError, match=words):
        rp.Problem("laplace(u) = 1", SQUARE, {"boundary": "u = 0"} | conditions)


def test_other_methods_refuse_and_name_the_one_that_can():
    problem = rp.Problem("laplace(u) = 1", SQUARE, {"boundary": "u = 0", "interior": "u >= -0.01"})
    for method in ("cells", "collocation", "trefftz"):
        with pytest.raises(InputError, match="WeakCells"):
            rp.solve(problem, tol=1e-2, method=method)
