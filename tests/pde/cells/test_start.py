"""Equations that have no linearisation where a solve would begin: at u = 0."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import rannpde as rp
from rannpde.domains.norms import relative_errors
from rannpde.pde.cells.mesh.initial import resolve_guess
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.functions import ExactSolution, Zero
from rannpde.pde.start import linearises, poisson_guesses

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
def test_there_is_an_initial_guess_where_zero_has_no_linearisation(name):
    problem = DEGENERATE[name]
    assert not linearises(problem, Zero(1))
    solution = rp.solve(problem, tol=1e-7)
    assert solution.converged
    assert solution.errors()["u"] < 1e-7


def test_what_linearises():
    cubic = rp.Problem("u_xx = u**3", rp.Interval(0, 1), {"boundary": "u = 1"})
    assert linearises(cubic, Zero(1))
    assert linearises(MONGE_AMPERE, MONGE_AMPERE.exact_solution)


def test_poisson_guesses_have_the_conditions_and_a_constant_laplacian():
    equations = [one.equations["u"] for one in poisson_guesses(MONGE_AMPERE)]
    assert equations[0] == "laplace(u) = 0.0"
    assert equations[1].startswith("laplace(u) = 10.")  # the largest value e over the square of the half length
    assert all(one.linear and one.conditions == MONGE_AMPERE.conditions for one in poisson_guesses(MONGE_AMPERE))


def test_without_any_start_a_guess_is_asked_for():
    problem = rp.Problem("u_xx + sqrt(u - 5) = 0", rp.Interval(0, 1), {"boundary": "u = 0"})
    with pytest.raises(rp.InputError, match=r"no linearisation at the first guess.*rp\.Cells\(guess="):
        rp.solve(problem)


def initial_values(equations, start, end):
    names = ("u", "v", "w")[: len(equations)]
    stated = [f"{name} = {value}" for name, value in zip(names, start, strict=True)]
    return rp.Problem(equations, rp.Interval(0, end, "t"), {"t=0": stated}, fields=names)


@pytest.mark.parametrize(
    ("equations", "rate", "start", "end"),
    [
        pytest.param(
            ["u_t = v", "v_t = 5*(1 - u**2)*v - u"],
            lambda t, y: [y[1], 5 * (1 - y[0] ** 2) * y[1] - y[0]],
            [2, 0],
            12,
            marks=pytest.mark.slow,
        ),
        (
            ["u_t = 10*(v - u)", "v_t = u*(28 - w) - v", "w_t = u*v - 8*w/3"],
            lambda t, y: [10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 * y[2] / 3],
            [1, 1, 1],
            2,
        ),
    ],
    ids=["relaxation", "growing errors"],
)
def test_the_initial_mesh_resolves_the_guess_of_an_ode_solver(equations, rate, start, end):
    """Without it Newton's method diverged; the difference of two iterations shows errors that grow."""
    solution = rp.solve(initial_values(equations, start, end), tol=1e-6)
    known = solve_ivp(rate, (0, end), start, method="Radau", rtol=1e-11, atol=1e-12, dense_output=True).sol
    times = np.linspace(0, end, 1000)
    error = relative_errors(solution(times[:, None]), known(times).T).max()
    assert solution.converged
    assert error < 1e-6
    assert solution.estimate > error / 10


def test_cells_are_cut_until_they_follow_a_guess():
    front = ExactSolution({"u": lambda points: np.tanh(100 * points[:, 0])})
    tree = resolve_guess(CellNode(np.array([(-1.0, 1.0)])), front, 12, 1000)
    shortest = min(leaf.lengths[0] for leaf in tree.leaves)
    assert 1 / 64 <= shortest <= 1 / 8  # some widths of the front
    assert max(leaf.lengths[0] for leaf in tree.leaves) >= 1 / 2
    assert resolve_guess(CellNode(np.array([(-1.0, 1.0)])), Zero(1), 12, 1000).children is None
