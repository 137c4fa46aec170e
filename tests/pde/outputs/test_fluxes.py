"""Fluxes by the weak residual: balance, known values, sides that end at re-entrant corners, random problems."""

import os

import numpy as np
import pytest
import sympy

import rannpde as rp
from draws import draws
from rannpde.domains.quadrature.integrals import integrate

COUNT = int(os.environ.get("RANNPDE_FUZZ", "0")) // 10 or draws(2, 4)
"""Random problems; RANNPDE_FUZZ draws more of them."""
CAPACITANCE = 10.23409256936805
"""Of a square in a square of twice its size, over the permittivity (Bowman's elliptic integrals)."""


@pytest.fixture(scope="module")
def capacitor():
    line = rp.Box(x=(-2, 2), y=(-2, 2)) - rp.Box(x=(-1, 1), y=(-1, 1), name="inner")
    sides = {
        "inner": rp.On(("inner.x=1", "inner.y=1"), "u = 1"),
        "outer": rp.On(("x=2", "y=2"), "u = 0"),
        "cuts": rp.On(("x=0", "y=0"), "dn(u) = 0"),
    }
    problem = rp.Problem("laplace(u) = 0", line & rp.Box(x=(0, 2), y=(0, 2)), sides)
    return rp.solve(problem, tol=1e-4, method="weak")


@pytest.mark.parametrize(("factor", "sides"), [(4, ("inner.x=1", "inner.y=1")), (-4, ("x=2", "y=2"))])
def test_the_flux_through_sides_that_end_at_a_corner_is_that_through_the_others(capacitor, factor, sides):
    """The derivative is infinite at the corner of the inner square; the flux is not."""
    found = capacitor.integral(f"{factor}*dn(u)", on=sides)
    assert found.how == "the weak residual"
    assert abs(float(found) - CAPACITANCE) <= found.bound < 1e-3
    assert abs(float(found) - CAPACITANCE) < 2e-5


def test_fluxes_balance(capacitor):
    every = [values[0] for values, _ in capacitor.history.fluxes.values()]
    assert abs(sum(every)) < 1e-9  # up to the rounding of the solver
    assert capacitor.integral("dn(u)", on="x=0").value == 0


def test_what_is_no_flux_is_integrated_pointwise(capacitor):
    assert "two solutions" in capacitor.integral("y*dn(u)", on="x=2").how
    assert "two solutions" in capacitor.integral("u_x + u", on="x=2").how


def test_files_keep_fluxes(capacitor, tmp_path):
    capacitor.save(tmp_path / "capacitor.rann")
    assert rp.load(tmp_path / "capacitor.rann").history.fluxes == capacitor.history.fluxes


def flux_problem(seed: int) -> tuple[rp.Problem, str, str, float, float]:
    """Variable conductivity on boxes, with holes, and L-shapes, in random units: problem, flux, side, value, tol."""
    rng = np.random.default_rng(seed)
    a, b, c, d, w = (float(one) for one in rng.uniform(0.5, 2.5, 5))
    unit, x0, y0 = float(10 ** rng.uniform(-1, 1)), *map(float, rng.uniform(-3, 3, 2))
    left, low = f"((x - ({x0!r}))/{unit!r})", f"((y - ({y0!r}))/{unit!r})"
    u = sympy.sympify(f"sin({a!r}*{left} + {b!r}*{low}) + exp({c!r}*{left}/2)*cos({1.5 * w!r}*{low})")
    k = sympy.sympify(f"1.5 + {d / 4!r}*sin({left})")
    x, y = sympy.symbols("x y")
    flux = [k * u.diff(x), k * u.diff(y)]
    box = rp.Box(x=(x0, x0 + unit), y=(y0, y0 + 1.2 * unit))
    corners = [(0, 0), (1, 0), (1, 0.4), (0.5, 0.4), (0.5, 1), (0, 1)]
    shape = [
        box,
        box - rp.Ball((x0 + 0.5 * unit, y0 + 0.25 * unit), 0.1 * unit, name="hole"),
        rp.Polygon([(x0 + unit * p, y0 + unit * q) for p, q in corners]),
    ][seed % 3]
    side = str(rng.choice(list(shape.sides)))
    natural = f"({k})*dn(u) = ({flux[0]})*nx + ({flux[1]})*ny"
    given = {name: rp.On(name, f"u = {u}" if name == side or rng.uniform() < 0.6 else natural) for name in shape.sides}
    source = flux[0].diff(x) + flux[1].diff(y)
    problem = rp.Problem(f"div(({k})*grad(u)) = {source}", shape, given)
    region = shape.sides[side]
    both = [sympy.lambdify((x, y), one) for one in flux]

    def across(points):
        rows = zip(both, region.normals(points).T, strict=True)
        return sum(np.broadcast_to(one(*points.T), len(points)) * n for one, n in rows)

    exact = float(integrate(across, region, tolerance=1e-12).value)
    return problem, f"({k})*dn(u)", side, exact, float(10 ** rng.uniform(-5, -1.5))


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_fluxes_are_within_their_bounds(seed):
    problem, flux, side, exact, tol = flux_problem(seed)
    found = rp.solve(problem, tol=tol, method="weak").integral(flux, on=side)
    assert found.how == "the weak residual"
    assert abs(float(found) - exact) <= found.bound


def test_a_relative_bound_of_the_energy_is_no_bound_of_values():
    """Values of size 1e6: the guaranteed bound of the energy norm is relative, and says nothing about single values."""
    plate = rp.Problem("laplace(u) = 0", rp.Box(x=(0, 1), y=(0, 1)), {"boundary": "u = 1e6*exp(3*x)*sin(3*y)"})
    solution = rp.solve(plate, tol=1e-2, method=rp.WeakCells(degree=3))
    found = solution.probe([0.3, 0.7])
    assert abs(float(found) - 1e6 * np.exp(0.9) * np.sin(2.1)) <= found.bound
    total = solution.integral("u")
    assert abs(float(total) - 1e6 * (np.exp(3) - 1) / 3 * (1 - np.cos(3)) / 3) <= total.bound
