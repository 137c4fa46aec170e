"""Estimates that rest on the equation: intrinsic waves and layers, turning points, near-resonance."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import dawsn

import rannpde as rp
from draws import covering, draws, some
from rannpde.pde.functions import Zero
from rannpde.pde.intrinsic import layer_rates, resolved_growth, resolved_phase, wavenumbers
from rannpde.pde.trapping import turning_amplification

ENDS = {"ends": rp.On("boundary", "u = 0")}
MIDDLE = np.array([[0.5]])


def on_interval(equation: str, lower: float = 0.0, upper: float = 1.0) -> rp.Problem:
    return rp.Problem(equation, rp.Interval(lower, upper), ENDS, incomplete=True)


@settings(max_examples=draws(12, 30), deadline=None)
@given(st.floats(1e-6, 1e6), st.floats(1e-3, 1e3))
def test_the_wavenumber_of_an_oscillator_does_not_depend_on_units(wavenumber, factor):
    problem = on_interval(f"{factor!r}*u_xx + {factor * wavenumber**2!r}*u = 1")
    assert wavenumbers(problem, Zero(1), MIDDLE)[0, 0] == pytest.approx(wavenumber, rel=1e-6)


@pytest.mark.parametrize(
    ("equation", "wavenumber"),
    [
        ("u_xx - 100*u = 1", 0.0),
        ("u_xxxx - 10000*u = 1", 10.0),
        ("u_xxxx + 10000*u = 1", 0.0),  # equally damped: a layer
        ("u_xxx + 400*u_x = 1", 20.0),
        ("u_xx + u_x = 1", 0.0),
    ],
)
def test_only_undamped_waves_count(equation, wavenumber):
    assert wavenumbers(on_interval(equation), Zero(1), MIDDLE)[0, 0] == pytest.approx(wavenumber, rel=1e-8)


def test_a_system_of_first_order_has_the_wavenumber_of_its_second_order_form():
    problem = rp.Problem(["u_x = v", "v_x = -900*u"], rp.Interval(0, 1), {"start": rp.On("x=0", ["u = 0", "v = 1"])})
    assert wavenumbers(problem, Zero(2), MIDDLE)[0, 0] == pytest.approx(30, rel=1e-8)


@pytest.mark.parametrize("degree", [6, 10, 16])
@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_resolved_functions_are_approximated_by_polynomials_to_the_tolerance(degree, tol):
    """Least squares at Chebyshev points is within a small factor of the best approximation."""
    x = np.cos(np.pi * (np.arange(200) + 0.5) / 200)
    basis = np.polynomial.chebyshev.chebvander(x, degree)
    for values in (np.cos(resolved_phase(degree, tol) / 2 * x), np.exp(resolved_growth(degree, tol) / 2 * (x - 1))):
        rest = values - basis @ np.linalg.lstsq(basis, values, rcond=None)[0]
        assert np.abs(rest).max() < 5 * tol


def test_layers_stand_where_modes_grow_towards_an_end():
    assert layer_rates(on_interval("0.001*u_xx = u_x"), Zero(1)) == pytest.approx((0, 1000))
    assert layer_rates(on_interval("0.0001*u_xx = u"), Zero(1)) == pytest.approx((100, 100))


def test_a_turning_point_amplifies_with_outflow_at_both_ends_only():
    """Scalar equations by times of exit; systems by the Wronskian, with the same barrier 1/2ε in the exponent."""
    for epsilon in (0.05, 0.03):
        problem = on_interval(f"{epsilon}*u_xx = x*u_x", -1, 1)
        assert np.log(turning_amplification(problem, Zero(1))) == pytest.approx(0.5 / epsilon, abs=3)
    for equation in ("0.1*u_xx = -x*u_x", "0.1*u_xx = u_x", "0.001*u_xx = u", "0.01*u_xx = x*u_x + u"):
        assert turning_amplification(on_interval(equation, -1, 1), Zero(1)) == 1
    system = rp.Problem(["u_x = v", "0.1*v_x = x*v"], rp.Interval(-1, 1), ENDS)
    assert turning_amplification(system, Zero(2)) == pytest.approx(np.exp(5), rel=1e-2)


# ------------------------------------------------------------------------------------------------------------ solves


@pytest.mark.filterwarnings("ignore::rannpde.ConvergenceWarning")
@pytest.mark.parametrize(("wavenumber", "tol"), some(covering([37, 311.7, 500, 1234.5], [1e-2, 1e-6]), 2))
def test_oscillations_that_the_data_do_not_show_are_resolved(wavenumber, tol):
    """u_xx + k² u = 1 has smooth data and a solution of k/2π waves; unresolved, it once "converged" with error 0.94."""
    k = wavenumber
    tangent = float((1 - np.cos(k)) / np.sin(k))
    exact = f"(1 - cos({k}*x) - ({tangent!r})*sin({k}*x))/{k**2!r}"
    problem = rp.Problem(f"u_xx + {k**2!r}*u = 1", rp.Interval(0, 1), ENDS, exact={"u": exact})
    solution = rp.solve(problem, tol=tol)
    assert solution.converged
    assert solution.errors()["u"] < max(tol, 10 * solution.estimate)


@pytest.mark.filterwarnings("ignore::rannpde.ConvergenceWarning")
@pytest.mark.parametrize(("lower", "epsilon"), some(covering([-1.0, -0.7], [0.1, 0.05, 0.03, 0.02, 0.01, 0.001]), 2))
def test_outflow_at_both_ends_is_right_or_undetermined(epsilon, lower):
    """ε u'' = x u': layers at both ends, and between them a constant that exponentially small remainders determine."""
    ends = {"lower": rp.On(f"x={lower:g}", "u = 0"), "upper": rp.On("x=1", "u = 1")}
    problem = rp.Problem(f"{epsilon}*u_xx = x*u_x", rp.Interval(lower, 1), ends)
    x = np.linspace(lower, 1, 1001)

    def primitive(z):
        return np.exp((z**2 - 1) / (2 * epsilon)) * dawsn(z / np.sqrt(2 * epsilon))

    exact = (primitive(x) - primitive(lower)) / (primitive(1.0) - primitive(lower))
    for tol in (1e-2, 1e-4):
        solution = rp.solve(problem, tol=tol, seconds=60)
        error = np.linalg.norm(solution(x[:, None]) - exact) / np.linalg.norm(exact)
        assert not solution.converged or error < max(tol, 10 * solution.estimate), (tol, error, solution.estimate)
        if epsilon >= 0.05:
            assert solution.converged


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8])
@pytest.mark.filterwarnings("ignore::rannpde.ConvergenceWarning")
def test_an_eigenvalue_leaves_the_solution_undetermined(tol):
    solution = rp.solve(on_interval("-u_xx = pi**2*u"), tol=tol)
    assert solution.status is rp.Status.UNDETERMINED
    assert rp.solve(on_interval("-u_xx = 9.5*u + 1"), tol=tol).converged


@pytest.mark.parametrize(
    ("equation", "told"),
    [
        pytest.param("u_x = -sqrt(u)", r"'rate' .*guess", id="torricelli"),
        pytest.param("u_x = 2*sqrt(abs(u))", "not unique: it reaches u = 0 at x = 0", id="cusp"),
        pytest.param("u_x = exp(exp(u))", r"'rate' .*guess", id="explosion", marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore::rannpde.ConvergenceWarning")
def test_terms_without_a_linearisation_are_named(equation, told):
    value = 1 if "-sqrt" in equation else 0
    problem = rp.Problem({"rate": equation}, rp.Interval(0, 3), {"start": rp.On("x=0", f"u = {value}")})
    with pytest.raises(rp.InputError, match=told):
        rp.solve(problem, tol=1e-4, seconds=100)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: 1.0 if x > 0.5 else 0.0, r"functions\['f'\] failed .* NumPy arrays"),
        (lambda x: np.exp(1j * x), r"values of functions\['f'\] is .*complex128"),
    ],
    ids=["scalar", "complex"],
)
def test_functions_that_take_no_arrays_or_give_no_reals_are_refused_by_name(function, message):
    with pytest.raises(rp.InputError, match=message):
        rp.solve(rp.Problem("u_xx = f(x)", rp.Interval(0, 1), ENDS, functions={"f": function}), tol=1e-4)


def test_a_solution_at_rest_on_a_shape_is_zero():
    domain = rp.SpaceTime(t=(0, 1), x=rp.Ball((0, 0), 1))
    conditions = {"start": rp.On("t=0", "u = 0"), "rim": rp.On("boundary", "u = 0")}
    solution = rp.solve(rp.Problem("u_t = laplace(u)", domain, conditions), tol=1e-4, seconds=60)
    assert solution.converged
    assert np.abs(solution(domain.sample(50, rng=0))).max() < 1e-12


def turning_box(eps, wall, tol, length=1.0):
    """ε Δu = x u_x between x = ±length, where u is 0 and 1: u depends on x alone where the walls allow it."""
    scale = 1 / np.sqrt(2 * eps)
    box = rp.Box(x=(-length, length), y=(0, length))

    def exact(x):
        z = x / length
        return 0.5 * (1 + np.exp((z**2 - 1) * scale**2) * dawsn(z * scale) / dawsn(scale))

    walls = {"none": "u_y = 0", "values": "u = ends(x)"}[wall]
    conditions = {
        "left": rp.On(f"x={-length}", "u = 0"), "right": rp.On(f"x={length}", "u = 1"),
        "walls": rp.On(("y=0", f"y={length}"), walls),
    }  # fmt: skip
    problem = rp.Problem(
        f"{eps * length**2}*laplace(u) = x*u_x", box, conditions,
        functions={"ends": lambda x: exact(x)} if wall == "values" else {},
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = rp.solve(problem, tol=tol, seconds=60)
    points = box.sample(2000, rng=3)
    found, known = solution(points), exact(points[:, 0])
    return solution, float(np.linalg.norm(found - known) / np.linalg.norm(known))


@pytest.mark.parametrize(
    ("eps", "wall", "tol", "length"),
    some([(0.1, "none", 1e-2, 1.0), (0.05, "none", 1e-3, 0.3), (0.02, "none", 1e-2, 1.0), (0.01, "none", 1e-4, 7.0),
          (0.05, "values", 1e-3, 1.0)], 3),
)  # fmt: skip
def test_outflow_at_both_ends_of_a_box_is_right_or_undetermined(eps, wall, tol, length):
    solution, error = turning_box(eps, wall, tol, length)
    if solution.converged:
        assert error < max(tol, 10 * solution.estimate)
    else:
        assert solution.status is rp.Status.UNDETERMINED
    rounding = np.finfo(float).eps * np.exp(0.5 / eps)  # as barriers amplify it: between both, either is right
    assert solution.converged or not (eps > 0.03 or wall == "values")
    assert not solution.converged or rounding < tol or wall == "values"


@pytest.mark.parametrize("value", ["1e12", "1e30", "-1e12"])
@pytest.mark.parametrize("term", ["exp(exp(u))", "sinh(u)", "cosh(exp(u))", "exp(-exp(u))"])
@pytest.mark.filterwarnings("ignore::rannpde.ConvergenceWarning")
def test_numbers_beyond_all_bounds_in_initial_values_are_no_work_for_sympy(term, value):
    """SymPy computes the exponential of a number with as many bits as that number has, or runs out of memory."""
    conditions = {"start": rp.On("t=0", f"u = {value}"), "ends": rp.On("boundary", f"u = {value}")}
    for equation, domain in (
        (f"u_t = u_xx + {term}", rp.SpaceTime(t=(0, 1), x=(0, 1))),
        (f"u_t = {term}", rp.Interval(0, 1, name="t")),
    ):
        given = conditions if isinstance(domain, rp.SpaceTime) else {"start": conditions["start"]}
        try:
            solution = rp.solve(rp.Problem(equation, domain, given), tol=1e-3, seconds=2)
        except rp.InputError as error:
            assert "not finite" in str(error)  # noqa: PT017
        else:
            assert term.startswith("exp(-") or value.startswith("-")
            assert solution.fields == ("u",)
