"""Coefficients that jump along circles, ellipses, inclined lines and other curves."""

from __future__ import annotations

import os
from math import cos, pi, sin

import numpy as np
import pytest
import sympy
from scipy.optimize import brentq

import rannpde as rp
from draws import draws, some
from rannpde import On
from rannpde.pde.statement.divergence import NoDivergenceForm
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.form import weak_formulation
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation

X, Y = sympy.symbols("x y")
SQUARE = rp.Box(x=(-1, 1), y=(-1, 1))
DRAWS = int(os.environ.get("RANNPDE_INTERFACE_DRAWS", draws(1, 4)))


def inclusion(contrast, centre=(0.1, -0.05), radius=0.4):
    """A disc in a uniform field: E inside, E and a dipole outside."""
    across = f"(x - {centre[0]!r})"
    square = f"({across}**2 + (y - {centre[1]!r})**2)"
    dipole = (1 - contrast) / (1 + contrast) * radius**2
    outside = f"{across}*(1 + ({dipole!r})/{square})"
    exact = f"where({square} < {radius**2!r}, {2 / (1 + contrast)!r}*{across}, {outside})"
    equation = f"div(where({square} < {radius**2!r}, {contrast!r}, 1)*grad(u)) = 0"
    return rp.Problem(equation, SQUARE, {"rim": On("boundary", f"u = {outside}")}, exact={"u": exact})


def manufactured(generator):
    """u = S/k with a smooth S that vanishes on the interface: u and the flux k∇u = ∇S are continuous."""
    kind = generator.choice(["circle", "root", "ellipse", "line", "curve"])
    contrast, scale = (10 ** float(generator.uniform(*ends)) for ends in ((-3, 4), (-2, 2)))
    shift = (scale * generator.uniform(-3, 3, 2)).tolist()
    x, y = (X - shift[0]) / scale, (Y - shift[1]) / scale
    (a, b), radius = generator.uniform(-0.4, 0.4, 2).tolist(), float(generator.uniform(0.15, 0.55))
    level = written = (x - a) ** 2 + (y - b) ** 2 - radius**2
    if kind == "root":
        written = sympy.sqrt((x - a) ** 2 + (y - b) ** 2) - radius
    elif kind == "ellipse":
        cosine, sine = cos(10 * a), sin(10 * a)
        one, other = (x - a) * cosine + (y - b) * sine, (y - b) * cosine - (x - a) * sine
        level = written = one**2 / radius**2 + other**2 / (float(generator.uniform(0.3, 0.9)) * radius) ** 2 - 1
    elif kind == "line":
        level = written = x * cos(10 * a) + y * sin(10 * a) - b
    elif kind == "curve":
        level = written = y - 0.2 * sympy.sin(2.3 * x) - b
    phase, offset = generator.uniform(0, 3), generator.uniform(-1.5, 1.5)
    smooth = level * (sympy.sin(1.3 * x - 0.7 * y + phase) + offset)
    factor = f"where({written} < 0, {contrast!r}, 1)"
    exact = f"where({written} < 0, ({smooth})/{contrast!r}, {smooth})"
    (left, right), (low, high) = ((middle - scale, middle + scale) for middle in shift)
    side = f"x={left!r}"
    conditions = {
        "left": On(side, f"{factor}*u_x = {sympy.diff(smooth, X)}"),
        "rest": On(f"boundary except {side}", f"u = {exact}"),
    }
    equation = f"div({factor}*grad(u)) = {sympy.diff(smooth, X, 2) + sympy.diff(smooth, Y, 2)}"
    domain = rp.Box(x=(left, right), y=(low, high))
    return rp.Problem(equation, domain, conditions, exact={"u": exact}), f"{kind}, {contrast:.1e}, {scale:.1e}"


@pytest.mark.parametrize("contrast", some([1e-3, 0.2, 1e4], 2))
def test_a_disc_in_a_uniform_field(contrast):
    solution = rp.solve(inclusion(contrast), tol=1e-4, method="weak")
    assert solution.converged
    assert solution.errors()["u"] < 1e-4


@pytest.mark.parametrize("seed", range(DRAWS))
def test_random_interfaces(seed):
    generator = np.random.default_rng(seed)
    problem, told = manufactured(generator)
    tol = 10 ** generator.uniform(-7, -2)
    solution = rp.solve(problem, tol=tol, method="weak")
    assert solution.converged, told
    assert solution.errors()["u"] <= min(tol, 3 * solution.estimate), told


def test_areas_of_cells_and_lengths_of_faces_and_the_divergence_theorem():
    equation = "div(where(x**2 + y**2 < 0.25, 9, where(x + 0.3*y < 0.9, 1, 5))*grad(u)) = where(y > x - 0.3, 1, 2)"
    form = weak_formulation(rp.Problem(equation, SQUARE, {"rim": On("boundary", "u = 0")}))
    discretisation = WeakDiscretisation(form, 1e-3, WeakSettings(), np.random.default_rng(0), lambda: None)
    layer = HiddenLayer.sample(2, 6, WeakSettings(), np.random.default_rng(0), True)
    mesh = discretisation.mesh(discretisation.first().tree, layer)
    areas = 4 * mesh.halfwidths.prod(axis=1)
    for cell, part in mesh.parts.items():
        areas[cell] = part.weights.sum()
    assert areas.sum() == pytest.approx(4, rel=1e-12)
    assert mesh.curves is not None
    inner = np.bincount(mesh.materials, areas)
    inside = [k for k, region in enumerate(discretisation.mesher.regions) if region.level(np.zeros((1, 2)))[0] < 0]
    assert len(inside) == 1
    assert len(inner) > 4
    # ∮ x·n over the faces and patches of each cell is twice its area
    flux = np.zeros(mesh.count)
    points, weights, normals = *mesh.face_points(layer.nodes), mesh.face_normals(layer.nodes)
    through = np.einsum("nq,nqi,nqi->n", weights, points, normals)
    np.add.at(flux, mesh.beside[:, 0], through)
    np.add.at(flux, mesh.beside[:, 1], -through)
    outer = mesh.patches
    np.add.at(flux, outer.cell, np.einsum("nq,nqi,nqi->n", outer.weights, outer.points, outer.normals))
    assert np.abs(flux - 2 * areas).max() < 1e-12


def test_points_find_the_cell_of_their_material():
    solution = rp.solve(inclusion(50.0), tol=1e-2, method="weak")
    angle = np.linspace(0, 2 * pi, 101)[:-1]
    ring = np.stack([0.1 + np.cos(angle) * 0.4, -0.05 + np.sin(angle) * 0.4], axis=1)
    inward = ring - np.array([0.1, -0.05])
    slopes = [solution.function.derivative(ring + sign * 1e-6 * inward, (1, 0))[:, 0] for sign in (-1, 1)]
    assert np.abs(slopes[0] - 2 / 51).max() < 0.02  # inside
    assert slopes[1].max() > 1.5  # outside the field is up to twice as strong


@pytest.mark.parametrize("angle", [0.4, 2.0])
def test_an_inclined_interface_that_ends_at_the_boundary_is_singular_there(angle):
    """r^λ Φ(θ) with u = 0 on both sides of a half-plane: sin(λθ) below the interface, and the flux goes on."""
    contrast = 100.0
    first = sympy.Symbol("a")
    balance = sympy.lambdify(
        first, contrast * sympy.cos(first * angle) * sympy.sin(first * (pi - angle))
        + sympy.sin(first * angle) * sympy.cos(first * (pi - angle)),
    )  # fmt: skip
    grid = np.linspace(0.05, 1.9, 400)
    start = next(k for k in range(399) if balance(grid[k]) * balance(grid[k + 1]) < 0)
    power = brentq(balance, grid[start], grid[start + 1])
    ratio = np.sin(power * angle) / np.sin(power * (pi - angle))

    def known(x, y):
        theta = np.arctan2(y, x)
        above = ratio * np.sin(power * (pi - theta))
        return np.hypot(x, y) ** power * np.where(theta < angle, np.sin(power * theta), above)

    below = f"y*{cos(angle)!r} - x*{sin(angle)!r} < 0"
    problem = rp.Problem(
        f"div(where({below}, {contrast}, 1)*grad(u)) = 0", rp.Box(x=(-1, 1), y=(0, 1)),
        {"floor": On("y=0", "u = 0"), "rest": On("boundary except y=0", "u = g(x, y)")}, functions={"g": known},
        exact={"u": lambda points: known(points[:, 0], points[:, 1])},
    )  # fmt: skip
    solution = rp.solve(problem, tol=1e-4, method="weak")
    assert solution.converged
    assert solution.errors()["u"] < 1e-4


def test_curves_that_touch_are_an_obstacle_that_is_named():
    circles = "where(x**2 + y**2 < 0.25, 2, where((x - 1)**2 + y**2 < 0.25, 3, 1))"
    problem = rp.Problem(f"div({circles}*grad(u)) = 1", SQUARE, {"rim": On("boundary", "u = 0")})
    with pytest.raises(NoDivergenceForm, match="coefficients jump along curves"):
        WeakDiscretisation(weak_formulation(problem), 1e-2, WeakSettings(), np.random.default_rng(0), lambda: None)
    assert any("coefficients jump" in reason for reason in rp.WeakCells().obstacles(problem))
