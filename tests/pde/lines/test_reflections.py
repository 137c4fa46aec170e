"""Boxes with reflection symmetry: which walls have it, tables of sines and cosines, solves, files, sensitivities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import rannpde as rp
from draws import some
from rannpde.loading import load
from rannpde.pde.lines.fourier.modes import FourierBasis, blocks
from rannpde.pde.lines.fourier.system import FourierSystem
from rannpde.pde.lines.sensitivities.dependence import ParametricDependence
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.problem.evolution import evolution_form

EPS = float(np.finfo(float).eps)
SQUARE = {"x": (0, 1), "y": (0, 1)}
SINES, COSINES = "sin(pi*x)*sin(2*pi*y)", "cos(pi*x)*cos(2*pi*y)"


def problem(equation: str, start: str, walls: object, exact: str | None = None, end: float = 0.5) -> rp.Problem:
    conditions = {"t=0": f"u = {start}", **({"boundary": walls} if isinstance(walls, str) else walls)}
    given = {} if exact is None else {"exact": {"u": exact}}
    return rp.Problem(equation, rp.SpaceTime(t=(0, end), **SQUARE), conditions, **given)


def mirrored(solution: rp.Solution) -> bool:
    return "reflected" in solution.method.label


# ------------------------------------------------------------------------------------------------- which walls are

BASIS_LABELS = {
    "odd": ("u_t = laplace(u) - u**3 + sin(4*pi*x)*sin(pi*y)*u**2", SINES, "u = 0", (1, 1)),
    "even": ("u_t = laplace(u) + u**2 + u_x**2 + cos(3*pi*x)", COSINES, "dn(u) = 0", (0, 0)),
    "divergence form": ("u_t = div((1 + u**2)*grad(u))", SINES, "u = 0", (1, 1)),
    "both": (
        "u_t = laplace(u) + u*u_y**2", "sin(pi*x)*cos(pi*y)",
        {"x": rp.On(("x=0", "x=1"), "u = 0"), "y": rp.On(("y=0", "y=1"), "u_y = 0")}, (1, 0),
    ),
    "even reaction of odd": ("u_t = laplace(u) + u**2", SINES, "u = 0", None),
    "odd about one wall only": ("u_t = laplace(u) + u*sin(pi*x/2)", "0", "u = 0", None),
    "drift": ("u_t = laplace(u) + u_x", SINES, "u = 0", None),
    "start with a kink": ("u_t = laplace(u)", "x*(1 - x)*y*(1 - y)", "u = 0", None),
    "source at the wall": ("u_t = laplace(u) + 1", "0", "u = 0", None),
    "given values": ("u_t = laplace(u)", "1", "u = 1", None),
    "Robin": ("u_t = laplace(u)", "0", "u + dn(u) = 0", None),
}  # fmt: skip


@pytest.mark.parametrize("kind", BASIS_LABELS)
def test_walls_reflect_where_all_that_is_stated_is_symmetric(kind):
    equation, start, walls, wanted = BASIS_LABELS[kind]
    for form in problem(equation, start, walls).forms.values():
        assert form.parities == (None if wanted is None else {"u": wanted})


def test_a_field_without_conditions_takes_the_parity_that_fits():
    both = rp.Problem(
        ["u_t = laplace(u) + u - u**3 - v", "v_t = u - v"], rp.SpaceTime(t=(0, 1), **SQUARE),
        {"u": rp.On("t=0", f"u = {SINES}"), "v": rp.On("t=0", "v = 0"), "walls": rp.On("boundary", "u = 0")},
    )  # fmt: skip
    assert evolution_form(both).parities == {"u": (1, 1), "v": (1, 1)}


# ----------------------------------------------------------------------------------------------------------- tables


@given(st.integers(1, 3), st.integers(0, 2**31 - 1))
@settings(max_examples=20, deadline=None)
def test_tables_and_grids_hold_the_same_function(dim, seed):
    rng = np.random.default_rng(seed)
    highest = tuple(int(k) for k in rng.integers(1, 6, dim))
    parity = tuple(int(k) for k in rng.integers(0, 2, dim))
    bounds = tuple((-1.0, float(length)) for length in rng.uniform(0.0, 3.0, dim))
    modes = FourierBasis(bounds, highest, parities=(parity,))
    tables = modes.to_tables(rng.standard_normal((1, *modes.grid_shape)), parity)
    values = modes.to_grid(tables, parity)
    assert_allclose(modes.to_tables(values, parity), tables, atol=1e3 * EPS)
    still, slope = (0,) * dim, (1,) + (0,) * (dim - 1)
    there = modes.at(tables, modes.exponentials(modes.points), [still, slope])
    assert_allclose(there[0, 0], values.ravel(), atol=1e4 * EPS)
    derived = modes.to_grid(tables * modes.factor(slope), modes.parity_of(0, slope))
    assert_allclose(there[0, 1], derived.ravel(), atol=1e5 * EPS)
    assert_allclose(modes.norms(tables), np.sqrt(np.mean(values**2)), rtol=1e4 * EPS)
    image = 2.0 * np.array([lower for lower, _ in bounds]) - modes.points
    beyond = modes.at(tables, modes.exponentials(image), [still])
    assert_allclose(beyond[0, 0], (-1.0) ** sum(parity) * values.ravel(), atol=1e4 * EPS)


def test_blocks_of_mirrored_tables_are_one():
    ((small, large),) = blocks((2, 3), (5, 4), True)
    assert small == large == (slice(0, 3), slice(0, 4))


# ------------------------------------------------------------------------------------------------------------ whole

DECAY = "exp(-t)"
WHOLE = {
    "heat": (problem("u_t = laplace(u)", SINES, "u = 0", f"exp(-5*pi**2*t)*{SINES}", 0.05), 1e-8),
    "Neumann wave": (
        problem(
            "u_tt = laplace(u)/5", COSINES, {"rest": rp.On("t=0", "u_t = 0"), "boundary": "dn(u) = 0"},
            f"cos(pi*t)*{COSINES}", 2,
        ), 1e-6,
    ),
    "reaction": (
        problem(
            f"u_t = laplace(u)/10 - u**3 - u + pi**2/2*{DECAY}*{COSINES} + ({DECAY}*{COSINES})**3",
            COSINES, "dn(u) = 0", f"{DECAY}*{COSINES}",
        ), 1e-5,
    ),
    "fourth order": (
        problem(
            "u_t = -laplace(laplace(u))/100 - u**3 + "
            f"(pi**4/4 - 1)*{DECAY}*{SINES} + ({DECAY}*{SINES})**3",
            SINES, {
                "sides": rp.On("boundary", "u = 0"), "x": rp.On(("x=0", "x=1"), "u_xx = 0"),
                "y": rp.On(("y=0", "y=1"), "u_yy = 0"),
            }, f"{DECAY}*{SINES}",
        ), 1e-5,
    ),
    "cube": (rp.zoo("heat", dim=3), 1e-6),
    "what only mirror images would break": (
        problem("u_t = laplace(u)/5 + pi**2*u", SINES, "u = 0", SINES, 10), 1e-6
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", some(WHOLE, 4))
def test_tolerance_is_kept_and_the_estimate_is_honest(name):
    stated, tol = WHOLE[name]
    solution = rp.solve(stated, tol=tol)
    assert mirrored(solution)
    assert solution.converged
    error = max(solution.errors().values())
    assert error < tol
    assert error < 3 * max(solution.estimate, 1e-13)


def test_data_that_kink_at_no_wall_are_left_to_products():
    """|sin 2πx| is even about both walls, but no number of modes carries its kink."""
    solution = rp.solve(problem("u_t = laplace(u)", "abs(sin(2*pi*x))*cos(pi*y)", "dn(u) = 0", end=0.01), tol=1e-4)
    assert not mirrored(solution)


def test_diffusion_that_varies_is_left_to_products():
    """Its steps would be as short as explicit ones."""
    varying = problem("u_t = (1 + cos(2*pi*x)/2)*laplace(u)/50", SINES, "u = 0", end=0.1)
    assert evolution_form(varying).parities == {"u": (1, 1)}
    assert not mirrored(rp.solve(varying, tol=1e-3))


def test_what_modes_do_not_resolve_is_left_to_products():
    """Layers of width 0.06 along the walls, and no more than a dozen modes allowed."""
    layers = problem("u_t = laplace(u)/100 + 10*(u - u**3)", "sin(pi*x)*sin(pi*y)", "u = 0", end=1)
    few = LinesTuning(most_modes=(16, 12, 8), rough_modes=(16, 8, 8))
    assert not mirrored(rp.solve(layers, tol=1e-3, method=rp.Lines(tuning=few)))


def test_a_file_holds_the_tables(tmp_path):
    solution = rp.solve(WHOLE["reaction"][0], tol=1e-4)
    solution.save(tmp_path / "kept.npz")
    again = load(tmp_path / "kept.npz")
    points = solution.problem.domain.sample(50, rng=0)
    assert_allclose(again(points), solution(points), rtol=1e-6)
    index = (1, 0, 2)
    assert_allclose(again.derivative(points, index), solution.derivative(points, index), atol=1e-4)


# --------------------------------------------------------------------------------------------------- sensitivities


def diffusing(equation: str) -> rp.Problem:
    conditions = {"t=0": f"u = {SINES}", "boundary": "u = 0"}
    return rp.Problem(equation, rp.SpaceTime(t=(0, 0.1), **SQUARE), conditions, unknown={"k": rp.Unknown(0.0)})


def test_sensitivities_to_a_number_are_those_of_the_exact_solution():
    stated = diffusing("u_t = (1 + k)*laplace(u)")
    found = rp.sensitivity(stated, tol=1e-6)
    points = stated.domain.sample(100, rng=0)
    t, x, y = points.T
    wanted = -5 * np.pi**2 * t * np.exp(-5 * np.pi**2 * t) * np.sin(np.pi * x) * np.sin(2 * np.pi * y)
    assert_allclose(found(points)["k"], wanted, atol=1e-5 * np.abs(wanted).max())


def test_an_unknown_that_would_break_the_symmetry_is_noticed():
    """At k = 0 the walls reflect, but u_x has the other parity."""
    stated = diffusing("u_t = laplace(u) + k*u_x")
    solution = rp.solve(stated.at({}), tol=1e-4)
    assert isinstance(solution.function.segments[0].system, FourierSystem)
    assert not ParametricDependence.of(stated, weak=True).fits(solution.function)
