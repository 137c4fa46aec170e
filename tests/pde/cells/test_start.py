"""Equations that have no linearisation where a solve would begin: at u = 0."""

import pytest

import rannpde as rp
from rannpde.pde.functions import Zero
from rannpde.pde.start import linearises, membranes

SQUARE = rp.Box(x=(0, 1), y=(0, 1))
BOWL = "exp((x**2 + y**2)/2)"
MONGE_AMPERE = rp.Problem(
    "u_xx*u_yy - u_xy**2 = (1 + x**2 + y**2)*exp(x**2 + y**2)", SQUARE, {"boundary": f"u = {BOWL}"}, exact={"u": BOWL}
)
DEGENERATE = {
    "Monge–Ampère": MONGE_AMPERE,
    # u = x²: |∇u| = 2x, and div(|∇u| ∇u) = d/dx (4x²)
    "3-Laplacian": rp.Problem(
        "div(sqrt(dot(grad(u), grad(u)))*grad(u)) = 8*x",
        rp.Box(x=(1, 2), y=(0, 1)),
        {"boundary": "u = x**2"},
        exact={"u": "x**2"},
    ),
    "a product": rp.Problem(
        "u*u_xx = 2*x**2 + 2", rp.Interval(0, 1), {"boundary": "u = 1 + x**2"}, exact={"u": "1 + x**2"}
    ),
    "a logarithm": rp.Problem(
        "u_xx + log(u) = exp(x) + x", rp.Interval(0, 1), {"boundary": "u = exp(x)"}, exact={"u": "exp(x)"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DEGENERATE)
def test_a_start_is_found_where_zero_is_none(name):
    problem = DEGENERATE[name]
    assert not linearises(problem, Zero(1))
    solution = rp.solve(problem, tol=1e-7)
    assert solution.converged
    assert solution.errors()["u"] < 1e-7


def test_what_linearises():
    cubic = rp.Problem("u_xx = u**3", rp.Interval(0, 1), {"boundary": "u = 1"})
    assert linearises(cubic, Zero(1))
    assert linearises(MONGE_AMPERE, MONGE_AMPERE.exact_solution)


def test_membranes_have_the_conditions_and_a_constant_laplacian():
    bends = [one.equations["u"] for one in membranes(MONGE_AMPERE)]
    assert bends[0] == "laplace(u) = 0.0"
    assert bends[1].startswith("laplace(u) = 10.")  # the largest value e over the square of the half length
    assert all(one.linear and one.conditions == MONGE_AMPERE.conditions for one in membranes(MONGE_AMPERE))


def test_without_any_start_a_guess_is_asked_for():
    problem = rp.Problem("u_xx + sqrt(u - 5) = 0", rp.Interval(0, 1), {"boundary": "u = 0"})
    with pytest.raises(rp.InputError, match=r"no linearisation at the first guess.*rp\.Cells\(guess="):
        rp.solve(problem)
