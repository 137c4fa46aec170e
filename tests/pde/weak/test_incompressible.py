"""Nearly incompressible elasticity: high degrees do not lock, and rounding of the pressure does not spread."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy

import rannpde as rp
from draws import draws, some
from rannpde import On
from rannpde.pde.weak.form import StiffnessPart, weak_formulation
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation
from rannpde.pde.weak.stiff_strains import IteratedPenalty

PLACE = np.array([[0.6, 0.5]])

BALANCE = ["(lam+2*mu)*u_xx + mu*u_yy + (lam+mu)*v_xy = 0", "mu*v_xx + (lam+2*mu)*v_yy + (lam+mu)*u_xy = 0"]
TRACTION = (
    "((lam+2*mu)*u_x + lam*v_y)*nx + mu*(u_y+v_x)*ny", "mu*(u_y+v_x)*nx + ((lam+2*mu)*v_y + lam*u_x)*ny"
)  # fmt: skip


def cylinder(ratio, inner=0.5, outer=1.0, shear=1.0, pressure=1.0):
    """A quarter of a thick cylinder under pressure in plane strain: u_r = A r + B/r (Lamé)."""
    lam = 2 * shear * ratio / (1 - 2 * ratio)
    squares = outer**2 - inner**2
    radial, even = pressure * (inner * outer) ** 2 / (2 * shear * squares), pressure * inner**2 / squares
    even /= 2 * (lam + shear)
    ball = lambda radius, name: rp.Ball((0, 0), radius, names=("x", "y"), name=name)  # noqa: E731
    quarter = (ball(outer, "outer") - ball(inner, "inner")) & rp.Box(x=(0, 2 * outer), y=(0, 2 * outer))
    conditions = {
        "inside": On("inner", [f"{TRACTION[0]} = -p*nx", f"{TRACTION[1]} = -p*ny"]),
        "outside": On("outer", [f"{TRACTION[0]} = 0", f"{TRACTION[1]} = 0"]),
        "left": On("x=0", ["u = 0", "mu*(u_y+v_x) = 0"]), "below": On("y=0", ["v = 0", "mu*(u_y+v_x) = 0"]),
    }  # fmt: skip
    shape = f"({even!r} + {radial!r}/(x**2 + y**2))"
    constants = {"lam": lam, "mu": shear, "p": pressure}
    return rp.Problem(BALANCE, quarter, conditions, constants, exact={"u": f"{shape}*x", "v": f"{shape}*y"})


@pytest.mark.parametrize("ratio", some([0.3, 0.49, 0.4999, 0.49999], 2))
def test_a_thick_cylinder_does_not_lock(ratio):
    solution = rp.solve(cylinder(ratio), tol=1e-3, method="weak")
    assert solution.converged
    assert max(solution.errors().values()) < 1e-3


def test_a_thick_cylinder_in_other_units():
    solution = rp.solve(cylinder(0.4999, 13.0, 40.0, 8e4, 250.0), tol=1e-3, method="weak")
    assert solution.converged
    assert max(solution.errors().values()) < 1e-3


def random_cylinder(seed):
    """Ratios from 0.49 to 0.49999999 in random units, and a tolerance from 1e-3 to 1e-7."""
    rng = np.random.default_rng(seed)
    ratio = 0.5 - float(10 ** rng.uniform(-8, -2))
    inner = float(10 ** rng.uniform(-2, 2))
    outer, shear, pressure = inner * float(rng.uniform(1.5, 3)), *(10 ** rng.uniform(-3, 6, 2)).tolist()
    return cylinder(ratio, inner, outer, shear, pressure), float(10 ** rng.uniform(-7, -3))


def random_body(seed):
    """A ring or a box under loads of its own, whose pressure is not constant: u = curl ψ + ∇φ/λ, λ ∇·u = Δφ."""
    rng = np.random.default_rng(seed)
    lam = 1 / (1 - 2 * (0.5 - float(10 ** rng.uniform(-8, -3))))
    x, y = sympy.symbols("x y")
    a, b = (sympy.Float(round(one, 3)) for one in rng.uniform(0.5, 2.5, 2))
    stream, potential = sympy.sin(a * x + 0.3) * sympy.exp(b * y), sympy.cos(b * x) * sympy.cosh(a * y + 0.2)
    u = stream.diff(y) + potential.diff(x) / lam
    v = -stream.diff(x) + potential.diff(y) / lam
    pressure = potential.diff(x, 2) + potential.diff(y, 2)
    across = u.diff(y) + v.diff(x)
    along = (pressure + 2 * u.diff(x), pressure + 2 * v.diff(y))
    loads = along[0].diff(x) + across.diff(y), along[1].diff(y) + across.diff(x)
    equations = [one.replace("= 0", f"= {load}") for one, load in zip(BALANCE, loads, strict=True)]
    held = [f"u = {u}", f"v = {v}"]
    pulled = [f"{TRACTION[0]} = ({along[0]})*nx + ({across})*ny", f"{TRACTION[1]} = ({across})*nx + ({along[1]})*ny"]
    if seed % 2:
        shape = rp.Box(x=(0, 1), y=(0, round(float(rng.uniform(0.3, 1)), 2)))
        conditions = {"ends": On(("x=0", "x=1"), held), "rest": On("boundary except x=0, x=1", pulled)}
    else:
        disc = lambda radius, name: rp.Ball((0.1, 0), radius, names=("x", "y"), name=name)  # noqa: E731
        shape = disc(1.0, "outer") - disc(float(rng.uniform(0.3, 0.6)), "inner")
        conditions = {"inside": On("inner", held), "outside": On("outer", pulled)}
    exact = {"u": str(u), "v": str(v)}
    problem = rp.Problem(equations, shape, conditions, {"lam": lam, "mu": 1.0}, exact=exact)
    return problem, float(10 ** rng.uniform(-7, -3))


@pytest.mark.parametrize("seed", range(draws(1, 12)))
@pytest.mark.parametrize("drawn", [random_cylinder, random_body])
def test_rounding_of_stiff_strains_counts_no_more(drawn, seed):
    problem, tol = drawn(seed)
    solution = rp.solve(problem, tol=tol, method="weak", seconds=100)
    assert solution.converged
    assert max(solution.errors().values()) <= tol


@pytest.mark.slow
def test_a_tolerance_of_six_digits():
    """The matrix of which all strains have their stiffness leaves 1.3e-5, shared by all solutions."""
    solution = rp.solve(cylinder(0.4999), tol=1e-6, method="weak", seconds=100)
    assert solution.converged
    assert max(solution.errors().values()) <= 1e-6


def test_iterated_penalty_is_the_same_discrete_solution():
    """At a ratio at which rounding counts little the system with all stiffness and the iterated one agree."""
    form = weak_formulation(cylinder(0.45))
    discretisation = WeakDiscretisation(form, 1e-3, WeakSettings(), np.random.default_rng(0), lambda: None)
    state = discretisation.solve(discretisation.first())
    iterated = IteratedPenalty(state.local, 3.0, 1e-11)
    found = iterated.solve()
    assert iterated.remaining <= 1e-11
    assert np.allclose(found.traces, state.solution.traces, rtol=0, atol=1e-8 * np.abs(found.traces).max())


def test_parts_of_the_stiffness_add_up():
    form = weak_formulation(cylinder(0.4999))
    points = np.array([[0.6, 0.3]])
    whole = form.at(points).diffusion
    factor = StiffnessPart(10.0).excess(whole)
    limited, rest = (replace(form, part=StiffnessPart(10.0, one)) for one in (0.0, factor))
    assert np.allclose(limited.at(points).diffusion + factor * rest.at(points).diffusion, whole, rtol=1e-12)
    assert limited.stiffness_ratio(points) == pytest.approx(10.0)


def test_the_ratio_of_stiffness_is_that_of_lame():
    assert weak_formulation(cylinder(0.25)).stiffness_ratio(PLACE) == pytest.approx(2.0)
    assert weak_formulation(cylinder(0.4999)).stiffness_ratio(PLACE) == pytest.approx(1 / (1 - 2 * 0.4999))
    one = rp.Problem("laplace(u) = 1", rp.Box(x=(0, 1), y=(0, 1)), {"rim": On("boundary", "u = 0")})
    assert np.isclose(weak_formulation(one).stiffness_ratio(PLACE), 1.0)
