"""The method of cells on problems with known solutions, layers, corners, and problems without one solution."""

import warnings
from time import process_time

import numpy as np
import pytest

import rannpde as rp
from draws import draws, some
from rannpde.pde.budget import timed_by
from rannpde.pde.monitor import Status

SQUARE = rp.Box(x=(0, 1), y=(0, 1))


def problem(equation, domain, conditions, exact=None, **more):
    return rp.Problem(equation, domain, conditions, exact={} if exact is None else exact, **more)


def dirichlet(value):
    return {"sides": rp.On("boundary", value)}


CASES = {
    "six periods": (
        problem(
            "-laplace(u) = 72*pi**2*sin(6*pi*x)*sin(6*pi*y)", SQUARE, dirichlet("u = 0"),
            {"u": "sin(6*pi*x)*sin(6*pi*y)"},
        ), 1e-8),
    "fine in x only": (
        problem(
            "laplace(u) = -401*pi**2*sin(20*pi*x)*cos(pi*y)", SQUARE,
            {"x": rp.On(("x=0", "x=1"), "u = 0"), "y": rp.On(("y=0", "y=1"), "dn(u) = 0")},
            {"u": "sin(20*pi*x)*cos(pi*y)"},
        ), 1e-8),
    "non-linear": (rp.zoo("nonlinear_poisson"), 1e-10),
    "flow with pressure": (rp.zoo("kovasznay"), 1e-8),
    "two lengths in 1-D": (
        problem(
            "u_xx = -4*pi**2*sin(2*pi*x) - 250*pi**2*sin(50*pi*x)", rp.Interval(0, 1), dirichlet("u = 0"),
            {"u": "sin(2*pi*x) + 0.1*sin(50*pi*x)"},
        ), 1e-9),
    "transport": (
        problem(
            "u_x + 2*u_y = 0", SQUARE,
            {"left": rp.On("x=0", "u = sin(3*pi*y)"), "below": rp.On("y=0", "u = sin(-6*pi*x)")},
            {"u": "sin(3*pi*(y - 2*x))"},
        ), 1e-8),
    "plate": (
        problem(
            "laplace(laplace(u)) = 4*pi**4*sin(pi*x)*sin(pi*y)", SQUARE,
            {"value": rp.On("boundary", "u = 0"), "moment": rp.On("boundary", "laplace(u) = 0")},
            {"u": "sin(pi*x)*sin(pi*y)"},
        ), 1e-6),
    "three dimensions": (
        problem(
            "laplace(u) = 0", rp.Box(x=(0, 1), y=(0, 1), z=(0, 1)), dirichlet("u = exp(x)*sin(y/2 + z*sqrt(3)/2)"),
            {"u": "exp(x)*sin(y/2 + z*sqrt(3)/2)"},
        ), 1e-5),
    "in space and time": (rp.zoo("burgers"), 1e-4),
    "a system of first order": (
        problem(
            {"a": "u_x = v", "b": "v_x = -u"}, rp.Interval(0, 20),
            {"u": rp.On("x=0", "u = 0"), "v": rp.On("x=0", "v = 1")}, {"u": "sin(x)", "v": "cos(x)"},
        ), 1e-10),
}  # fmt: skip


@pytest.mark.parametrize("name", some(CASES, 6))
def test_known_solutions_are_reached_with_estimates_that_hold(name):
    stated, tol = CASES[name]
    solution = rp.solve(stated, tol=tol, method="cells")
    worst = max(solution.errors().values())
    assert solution.converged, solution.report()
    assert worst < 3 * tol
    assert worst < 10 * solution.estimate + 1e-13


@pytest.mark.parametrize("thickness", [1e-2, 1e-4])
def test_a_boundary_layer_is_resolved_cell_by_cell(thickness):
    exact = "x - (exp((x - 1)/eps) - exp(-1/eps))/(1 - exp(-1/eps))"
    stated = problem(
        "-eps*u_xx + u_x = 1", rp.Interval(0, 1), dirichlet("u = 0"), {"u": exact}, parameters={"eps": thickness}
    )
    solution = rp.solve(stated, tol=1e-9, method="cells")
    assert solution.converged
    assert solution.errors()["u"] < 1e-9
    assert len(solution.widths) < 40


def test_a_layer_along_a_side_is_cut_across_it_only():
    """-ε Δu + u_x = 1 with u = 0 at both ends: cells become thin in x and stay long in y."""
    stated = problem(
        "-eps*laplace(u) + u_x = 1", SQUARE,
        {"ends": rp.On(("x=0", "x=1"), "u = 0"), "walls": rp.On(("y=0", "y=1"), "dn(u) = 0")},
        {"u": "x - (exp((x - 1)/eps) - exp(-1/eps))/(1 - exp(-1/eps))"}, parameters={"eps": 1e-3},
    )  # fmt: skip
    solution = rp.solve(stated, tol=1e-6, method="cells")
    assert solution.converged
    assert solution.errors()["u"] < 1e-6
    lengths = np.diff(solution.function.boxes, axis=2)[:, :, 0]
    assert lengths[:, 0].min() < 0.02
    assert lengths[:, 1].min() > 0.2


def test_data_that_meet_badly_in_corners_are_graded_there():
    """Δu = -1, u = 0: u behaves like r² log r in the corners; the middle value is known: 0.07367135328…"""
    solution = rp.solve(problem("laplace(u) = -1", SQUARE, dirichlet("u = 0")), tol=1e-7, method="cells")
    assert solution.converged
    assert solution(np.array([[0.5, 0.5]]))[0] == pytest.approx(0.07367135328, abs=1e-8)
    lengths = np.diff(solution.function.boxes, axis=2)[:, :, 0]
    assert lengths.min() < lengths.max() / 4


def test_periodic_problems_need_no_seam():
    conditions = {"x": rp.Periodic("x"), "y": rp.Periodic("y")}
    smooth = rp.Problem(
        "-laplace(u) + u = (1 + 4*pi**2)*sin(2*pi*x) + (1 + 16*pi**2)*cos(4*pi*y)", SQUARE, conditions,
        exact={"u": "sin(2*pi*x) + cos(4*pi*y)"},
    )  # fmt: skip
    solution = rp.solve(smooth, tol=1e-9, method="cells")
    assert solution.errors()["u"] < 1e-9


def test_a_problem_that_does_not_determine_its_solution_is_reported():
    stated = problem("laplace(u) = -2*pi**2*cos(pi*x)*cos(pi*y)", SQUARE, dirichlet("dn(u) = 0"))
    with pytest.warns(rp.ConvergenceWarning, match="leave a constant in u free"):
        solution = rp.solve(stated, tol=1e-6, method="cells")
    assert solution.status is Status.UNDETERMINED


@pytest.mark.slow
def test_a_problem_without_solution_is_not_called_solved():
    """∂_n u = 0 all around contradicts Δu = 1."""
    stated = problem("laplace(u) = 1", SQUARE, dirichlet("dn(u) = 0"))
    with pytest.warns(rp.ConvergenceWarning):
        solution = rp.solve(stated, tol=1e-6, method="cells")
    assert not solution.converged


def test_time_that_is_used_up_gives_back_the_pass_before():
    stated = CASES["six periods"][0]
    with pytest.warns(rp.ConvergenceWarning, match="time allowed"):
        solution = rp.solve(stated, tol=1e-13, method="cells", seconds=0.01)
    assert solution.status is Status.BUDGET
    assert np.isfinite(solution(np.array([[0.5, 0.5]]))).all()


def test_a_solution_survives_its_file(tmp_path):
    solution = rp.solve(rp.zoo("nonlinear_poisson"), tol=1e-8, method="cells")
    again = rp.load(solution.save(tmp_path / "solution.rann"))
    points = solution.stated.domain.sample(50, rng=1)
    assert np.array_equal(again(points), solution(points))
    assert again.report() == solution.report()


def test_the_same_seed_gives_the_same_solution():
    stated, points = rp.zoo("nonlinear_poisson"), rp.zoo("nonlinear_poisson").domain.sample(50, rng=1)
    one, other = (rp.solve(stated, tol=1e-6, method="cells", rng=5) for _ in range(2))
    assert np.allclose(one(points), other(points), rtol=0, atol=1e-12)


def test_weights_and_guesses_are_checked():
    stated = rp.zoo("nonlinear_poisson")
    with pytest.raises(rp.InputError, match="no equation or condition"):
        rp.solve(stated, method=rp.Cells(weights={"sidess": 2.0}))
    with pytest.raises(rp.InputError, match="degree"):
        rp.Cells(degree=1)
    solution = rp.solve(stated, tol=1e-6, method=rp.Cells(degree=8, guess={"u": "x*y"}))
    assert solution.errors()["u"] < 3e-6


def test_what_cells_cannot_do_is_refused_with_the_method_that_can():
    many = rp.zoo("poisson", dim=5)
    with pytest.raises(rp.InputError, match=r"not by cells: the domain has 5 coordinates.*Collocation"):
        rp.solve(many, method="cells")


def test_a_field_that_is_zero_is_no_scale():
    """Flow between walls, u = y(1 - y), p = 0.2(2 - x), v = 0: errors of v count by the size of the others."""
    channel = rp.Problem(
        ["u*u_x + v*u_y + p_x = 0.1*laplace(u)", "u*v_x + v*v_y + p_y = 0.1*laplace(v)", "u_x + v_y = 0"],
        rp.Box(x=(0, 2), y=(0, 1)),
        {
            "inflow": rp.On("x=0", "u = y*(1 - y)"),
            "walls": rp.On(("y=0", "y=1"), "u = 0"),
            "outflow": rp.On("x=2", "p = 0"),
            "across": rp.On("boundary", "v = 0"),
        },
        exact={"u": "y*(1 - y)", "v": "0", "p": "0.2*(2 - x)"},
        fields=("u", "v", "p"),
    )
    solution = rp.solve(channel, tol=1e-6)
    assert solution.converged
    points = channel.domain.sample(500, rng=0)
    assert np.abs(solution(points) - channel.exact_solution(points)).max() < 1e-8


def pulled(modulus, length):
    """A plate half as high as long under a cubic displacement: this on one side, tractions on the others."""
    stiff, half = modulus / (1 - 0.09), length / 4
    u, v = f"x*y**2/{length}**3", f"(x**3 - y**3/3)/{length}**3"
    across, shear = f"{stiff}*(v_y + 0.3*u_x)", f"{stiff * 0.35}*(u_y + v_x)"
    known = f"{stiff}*(-y**2 + 0.3*y**2)/{length}**3", f"{stiff * 0.35}*(2*x*y + 3*x**2)/{length}**3"
    end, top = f"x={length:g}", (f"y=-{half:g}", f"y={half:g}")
    conditions = {
        "u": rp.On("x=0", f"u = {u}"),
        "v": rp.On("x=0", f"v = {v}"),
        "end": rp.On(end, f"{stiff}*(u_x + 0.3*v_y) = {stiff}*(y**2 - 0.3*y**2)/{length}**3"),
        "end, shear": rp.On(end, f"{shear} = {known[1]}"),
        "faces": rp.On(top, f"{across} = {known[0]}"),
        "faces, shear": rp.On(top, f"{shear} = {known[1]}"),
    }
    equations = [
        f"{stiff}*(u_xx + 0.35*u_yy + 0.65*v_xy) = {stiff * 0.7}*x/{length}**3",
        f"{stiff}*(v_yy + 0.35*v_xx + 0.65*u_xy) = {stiff}*(2.1*x - 0.7*y)/{length}**3",
    ]
    domain = rp.Box(x=(0, length), y=(-half, half))
    return rp.Problem(equations, domain, conditions, fields=("u", "v"), exact={"u": u, "v": v})


def test_units_of_a_statement_do_not_matter():
    """Steel in metres or a unit square: the same iterations, and ten digits of a polynomial, which rounding allows."""
    told = []
    for modulus, length in ((1.0, 1.0), (2e11, 64.0)):
        solution = rp.solve(pulled(modulus, length), tol=1e-10, method="cells")
        assert solution.converged, solution.report()
        assert max(solution.errors().values()) < 1e-10
        told.append([(one.width, one.degree) for one in solution.history.iterations])
    assert told[0] == told[1]


@pytest.mark.parametrize("seed", range(draws(1, 6)))
def test_backward_diffusion_is_not_called_converged_with_another_solution(seed):
    """Finer cells resolve modes that grow faster: residuals fall, and errors do not."""
    rng = np.random.default_rng([89, seed])
    end, tol = (0.275, 5.6e-7) if seed == 0 else (float(rng.uniform(0.15, 0.3)), float(10.0 ** -rng.uniform(3, 8)))
    backward = problem(
        "u_t = -u_xx", rp.SpaceTime(t=(0, end), x=(0, 1)), {"t=0": "u = sin(2*pi*x)", "around": rp.Periodic("x")},
        {"u": "exp(4*pi**2*t)*sin(2*pi*x)"},
    )  # fmt: skip
    with timed_by(process_time), warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ConvergenceWarning)
        solution = rp.solve(backward, tol=tol, method="cells", rng=832 + seed, seconds=4)
    error = solution.errors()["u"]
    assert error < tol if solution.converged else error < 10 * solution.estimate
