"""Problems with known solutions; bounds that hold; when the method gives way to others."""

import warnings

import numpy as np
import pytest
from scipy.special import hankel1, jv, y0

import rannpde as rp
from benchmarks.linear_draws import drawn
from draws import draws
from rannpde.pde.residual import term_residual
from rannpde.pde.trefftz.bounds import boundary_errors
from rannpde.pde.trefftz.method import Trefftz
from rannpde.pde.trefftz.setting import trefftz_setting

SQUARE = rp.Box(x=(-1, 1), y=(-1, 1))
MOTZ = 401.1624537452
"""The first coefficient of Motz' problem (Li, Mathon and Sermer, 1987)."""


def exactly(problem, tol, **settings):
    """Solved by this method, and within its own estimate, up to a factor of two for the sampling of both."""
    solution = rp.solve(problem, tol=tol, **settings)
    assert solution.method.name == "trefftz"
    assert solution.converged
    for error in solution.errors().values():
        assert error <= max(2 * solution.estimate, 1e-13)
    return solution


@pytest.mark.parametrize("k", [0.3, 7.0, 61.0])
def test_helmholtz_beside_a_source(k):
    def wave(x, y):
        return y0(k * np.hypot(x + 0.15, y + 0.1))

    problem = rp.Problem(
        f"laplace(u) + {k}**2*u = 0", rp.Box(x=(0, 0.9), y=(0, 1.2)), {"boundary": "u = g(x, y)"}, functions={"g":
        wave}, exact={"u": lambda points: wave(*points.T)},
    )  # fmt: skip
    exactly(problem, 1e-9)


def test_the_bound_holds_in_the_maximum_norm():
    domain = SQUARE - rp.Ball((0.4, 0.3), 0.25) - rp.Ball((-0.5, -0.4), 0.3)
    exact = "exp(2*x)*sin(2*y) + log((x - 0.4)**2 + (y - 0.3)**2)"
    problem = rp.Problem("laplace(u) = 0", domain, {"boundary": f"u = {exact}"}, exact={"u": exact})
    for tol in (1e-3, 1e-6, 1e-10):
        solution = exactly(problem, tol)
        points = domain.sample(3000, rng=4)
        largest = np.abs(solution(points) - problem.exact_solution(points)[:, 0]).max()
        assert largest <= solution.history.bound + 1e-14
        assert solution.history.bound < 1e3 * max(largest, 1e-14)


@pytest.mark.parametrize("factor", [1.0, 250.0])
def test_the_sample_of_the_bound_tells_what_conditions_leave(factor):
    """Root mean squares along each condition, beside those at many points of its own; a factor does not change them."""
    domain = SQUARE - rp.Ball((0.4, 0.3), 0.25, name="hole")
    conditions = {
        "outside": rp.On("boundary except hole", f"{factor}*u = {factor}*exp(x)"),
        "hole": rp.On("hole", "u = 1"),
    }
    problem = rp.Problem("laplace(u) = 0", domain, conditions)
    solution = rp.solve(problem, tol=1e-3, method="trefftz")
    setting = trefftz_setting(problem)
    part = setting.particulars(problem, 1e-3)[0][0]
    told = boundary_errors(problem, solution.function, setting.boundary, setting.form, part, 2048)
    assert told.bound == solution.history.bound
    for term in problem.constraints:
        points = term.region.sample(20000, rng=3)
        residual = term_residual(term, solution.function, problem.vocabulary, points)
        scale = factor if term.name == "outside" else 1.0
        assert told.residuals[term] == pytest.approx(np.mean(residual**2), rel=0.1)
        assert told.errors[term] == pytest.approx(np.sqrt(np.mean(residual**2)) / scale, rel=0.05)


def test_a_corner_that_is_alone_gets_its_poles_at_once():
    """With f = 1 the powers at a re-entrant corner lack a logarithm, which smooth functions cannot replace."""
    a, b, unit = 0.9, 1.1, 37.0
    corners = unit * np.array([(0, 0), (a, 0), (a, 1), (-1, 1), (-1, -b), (0, -b)])
    problem = rp.Problem("-laplace(u) = 1", rp.Polygon(corners.tolist()), {"boundary": "u = 0"})
    solution = rp.solve(problem, tol=1e-9, method="trefftz")
    assert solution.converged
    assert len(solution.history.iterations) == 3


def test_motz():
    def left(points):
        return (points[:, 1] < 1e-9) & (points[:, 0] < 0)

    def right(points):
        return (points[:, 1] < 1e-9) & (points[:, 0] > 0)

    conditions = {
        "left": rp.On(left, "u = 0"), "right": rp.On(right, "dn(u) = 0"), "x=1": "u = 500", "x=-1": "dn(u) = 0",
        "y=1": "dn(u) = 0",
    }  # fmt: skip
    solution = exactly(rp.Problem("laplace(u) = 0", rp.Box(x=(-1, 1), y=(0, 1)), conditions), 1e-7)
    angle = (np.arange(2000) + 0.5) * np.pi / 2000
    values = solution(0.3 * np.stack([np.cos(angle), np.sin(angle)], axis=1))
    assert abs(2 * np.mean(values * np.cos(angle / 2)) / np.sqrt(0.3) / MOTZ - 1) < 1e-6


def test_boundary_values_that_jump_at_corners():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = rp.Problem(
            "laplace(u) = 0", rp.Box(x=(0, 1), y=(0, 1)), {"x=0": "u = 1", "boundary except x=0": "u = 0"}
        )
        screened = rp.Problem(
            "laplace(u) = 50*u", rp.Box(x=(0, 1), y=(0, 1)), {"x=0": "u = 1", "boundary except x=0": "u = 0"}
        )
    solution = exactly(problem, 1e-10)
    assert abs(solution([[0.5, 0.5]])[0] - 0.25) < 1e-11  # four such sides together give one
    assert solution.history.bound < 1e-8
    assert exactly(screened, 1e-8).history.bound < 1e-5


@pytest.mark.parametrize("width", [1e-2, 1e-5])
def test_layers(width):
    exact = f"(exp((x - 1)/{width}) - exp(-1/{width}))/(1 - exp(-1/{width}))"
    box = rp.Box(x=(0, 1), y=(0, 1))
    problem = rp.Problem(f"-{width}*laplace(u) + u_x = 0", box, {"boundary": f"u = {exact}"})
    solution = exactly(problem, 1e-8)
    assert solution.history.bound < 1e-8
    depth = width * np.array([0.0, 0.5, 1.0, 3.0])
    points = np.stack([1 - depth, np.full(4, 0.37)], axis=1)
    assert np.abs(solution(points) - np.exp(-depth / width)).max() < 1e-8


def test_at_a_resonance_nothing_is_claimed():
    box = rp.Box(x=(0, 1), y=(0, 1))
    problem = rp.Problem("laplace(u) + 2*pi**2*u = 1", box, {"boundary": "u = x"})
    with pytest.warns(rp.ConvergenceWarning):
        solution = rp.solve(problem, tol=1e-8)
    assert not solution.converged
    near = rp.Problem("laplace(u) + 2*pi**2*1.001*u = 0", box, {"boundary": "u = cos(pi*1.4157*y)"})
    assert rp.solve(near, tol=1e-6, method="trefftz").history.iterations[-1].stability > 50


def test_systems():
    domain = rp.Box(x=(0, 1.3), y=(0, 1)) - rp.Ball((0.5, 0.4), 0.2, name="hole")
    plate = "x*exp(x)*cos(y)"
    exactly(
        rp.Problem(
            "laplace(laplace(u)) = 0",
            domain,
            {"boundary": (f"u = {plate}", f"dn(u) = dn({plate})")},
            exact={"u": plate},
        ),
        1e-9,
    )
    flow = {"u": "2*y + y**2", "v": "x**2", "p": "0.6*(x + y) - 0.12"}
    conditions = {"boundary": (f"u = {flow['u']}", f"v = {flow['v']}"), "pin": rp.Data([[0.1, 0.1]], [0.0], "p")}
    stokes = rp.Problem(
        ["0.3*laplace(u) = p_x", "0.3*laplace(v) = p_y", "u_x + v_y = 0"], domain, conditions, exact=flow
    )
    exactly(stokes, 1e-9, method="trefftz")
    bent = {"u": "sin(x)*exp(y)", "v": "0*x"}
    loads = ["3*u_xx + 0.7*u_yy + 2.3*v_xy = -2.3*sin(x)*exp(y)", "3*v_yy + 0.7*v_xx + 2.3*u_xy = 2.3*cos(x)*exp(y)"]
    elastic = rp.Problem(
        loads, domain, {"boundary": (f"u = {bent['u']}", "v = 0")}, exact={"u": bent["u"]} | {"v": "0"}
    )
    solution = rp.solve(elastic, tol=1e-5, method="trefftz")
    assert solution.converged
    assert solution.errors()["u"] < 1e-5


def test_in_space():
    exact = "1/sqrt((x - 2)**2 + (y - 1)**2 + (z - 0.4)**2)"
    domain = rp.Ball((0, 0, 0), 1) - rp.Ball((0.2, 0.1, 0), 0.3)
    problem = rp.Problem("laplace(u) = 0", domain, {"boundary": f"u = {exact}"}, exact={"u": exact})
    exactly(problem, 1e-4)


def _only_inside(x, y):
    return np.where(x**2 + y**2 < 1 + 1e-9, np.sin(3 * x) * np.cos(2 * y), np.nan)


def test_a_failure_hands_over_to_the_next_method():
    """A source that is known inside only has no Fourier extension: cells solve it, and the report tells."""
    disc, given = rp.Ball((0, 0), 1), {"f": _only_inside}
    problem = rp.Problem("laplace(u) = f(x, y)", disc, {"boundary": "u = x"}, functions=given)
    solution = rp.solve(problem, tol=1e-4)
    assert solution.converged
    assert solution.method.name == "cells"
    assert "tried by trefftz" in solution.report()
    assert "not finite around the domain" in solution.method.why
    with pytest.warns(rp.ConvergenceWarning):  # who asks for a method gets that one
        alone = rp.solve(problem, tol=1e-4, method="trefftz")
    assert (alone.method.name, alone.method.why, alone.converged) == ("trefftz", "asked for", False)


def test_the_reason_for_the_choice_is_told():
    problem = rp.Problem("laplace(u) = 0", SQUARE, {"boundary": "u = x*y"})
    assert "linear" in rp.solve(problem).method.why
    varying = rp.Problem("laplace(u) = x*u", rp.Ball((0.0, 0.0), 1.0), {"boundary": "u = x*y"})
    assert any("varies" in reason for reason in Trefftz().obstacles(varying))
    with pytest.raises(rp.InputError, match="varies"):
        rp.solve(varying, method="trefftz")
    with pytest.raises(rp.InputError, match="features is 0"):
        Trefftz(features=0)


def test_files_hold_it(tmp_path):
    domain = SQUARE - rp.Ball((0.4, 0.3), 0.25)
    for equation in ("laplace(u) = exp(x)", "laplace(u) + 30*u = 1", "laplace(u) - 3*u + u_x = 0"):
        solution = rp.solve(rp.Problem(equation, domain, {"boundary": "u = x*y"}), tol=1e-4)
        again = rp.load(solution.save(tmp_path / "solution.npz"))
        points = domain.sample(50, rng=1)
        assert np.array_equal(again(points), solution(points))
        assert again.report().splitlines()[:3] == solution.report().splitlines()[:3]
        assert again.history == solution.history


def test_scattering_by_a_disc_is_its_series():
    k, centre = 9.7, np.array([0.3, -0.2])
    wave = rp.scatter(rp.Ball(centre, 0.8), k, angle=0.6, tol=1e-9)
    assert wave.converged
    points = centre + np.random.default_rng(0).normal(size=(40, 2)) * 3
    points = points[np.linalg.norm(points - centre, axis=1) > 0.9]
    away = points - centre
    radius, turn = np.hypot(*away.T), np.arctan2(away[:, 1], away[:, 0]) - 0.6
    n = np.arange(-40, 41)
    terms = (
        1j**n * jv(n, 0.8 * k) / hankel1(n, 0.8 * k) * hankel1(n, k * radius[:, None]) * np.exp(1j * n * turn[:, None])
    )
    series = -terms.sum(axis=1) * np.exp(1j * k * centre @ wave.direction)
    assert np.abs(wave.scattered(points) - series).max() < 1e-8
    with pytest.raises(rp.InputError, match="condition"):
        rp.scatter(rp.Ball((0, 0), 1), 3.0, condition="wet")


@pytest.mark.parametrize("seed", range(draws(3, 12)))
def test_random_problems_stay_within_their_estimates(seed):
    """Every claim is true; the benchmark draws five hundred."""
    draw = drawn(np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = rp.solve(draw.problem, tol=float(10.0 ** -(3 + seed % 6)), method="trefftz")
    error = solution.errors()["u"]
    assert error <= max(3 * solution.estimate, 1e-12)
    if solution.history.bound is not None:
        points = draw.problem.domain.sample(1000, rng=2)
        gap = np.abs(solution(points) - draw.problem.exact_solution(points)[:, 0]).max()
        assert gap <= solution.history.bound * 1.01 + 1e-13


def test_what_is_concentrated_is_not_missed():
    """A source and boundary values that live in one thousandth of the domain: no claim without them."""
    box = rp.Box(x=(0, 1), y=(0, 1))
    spike = "exp(-((x - 0.31)**2 + (y - 0.62)**2)/0.001**2)"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inner = rp.Problem(f"-laplace(u) = 1e6*{spike}", box, {"boundary": "u = 0"})
        assert not rp.solve(inner, tol=1e-4, method=Trefftz(features=250)).converged
        edge = rp.Problem("laplace(u) = 0", box, {"boundary": "u = x + exp(-((y - 0.3137)/0.0005)**2)"})
        assert not rp.solve(edge, tol=1e-5, method=Trefftz(features=250)).converged


@pytest.mark.parametrize("seed", range(draws(2, 3)))
def test_stokes_flow_round_discs_in_random_units(seed):
    """A point force outside: velocities and pressure known, estimates within a factor of ten."""
    rng = np.random.default_rng(seed)
    length, unit = float(rng.uniform(1, 3)), float(10 ** rng.uniform(-2, 2))
    left, below = (rng.uniform(-3, 3, 2) * unit).tolist()
    domain = rp.Box(x=(left, left + length * unit), y=(below, below + unit))
    for k in range(seed):
        middle = (left + unit * length * (k + 0.5) / seed, below + unit * float(0.5 + rng.uniform(-0.1, 0.1)))
        domain = domain - rp.Ball(middle, float(unit * rng.uniform(0.08, 0.2)))
    a, b = rng.normal(size=2).tolist()
    x, y = f"((x - {left!r})/{unit!r} + 0.4)", f"((y - {below!r})/{unit!r} - 0.3)"
    square, force = f"({x}**2 + {y}**2)", f"({a!r}*{x} + {b!r}*{y})"
    exact = {
        "u": f"-{a!r}*log({square})/2 + {force}*{x}/{square}",
        "v": f"-{b!r}*log({square})/2 + {force}*{y}/{square}",
        "p": f"2*{force}/{square}/{unit!r}",
    }
    pin = np.array([[left + 0.02 * unit, below + 0.02 * unit]])
    away = (pin[0] - [left, below]) / unit + [0.4, -0.3]
    known = 2 * float(away @ [a, b]) / float(away @ away) / unit
    problem = rp.Problem(
        ["laplace(u) = p_x", "laplace(v) = p_y", "u_x + v_y = 0"],
        domain,
        {"all": rp.On("boundary", [f"u = {exact['u']}", f"v = {exact['v']}"]), "pin": rp.Data(pin, [known], "p")},
        exact=exact,
    )
    solution = rp.solve(problem, tol=1e-7, method="trefftz")
    assert solution.converged
    assert max(solution.errors().values()) < max(10 * solution.estimate, 1e-12)


def test_a_cantilever_by_goursats_functions():
    stress = ["3.25*u_x + 1.25*v_y = 0", "u_y + v_x = 0", "3.25*v_y + 1.25*u_x = 0"]
    beam = rp.Problem(
        ["3.25*u_xx + u_yy + 2.25*v_xy = 0", "v_xx + 3.25*v_yy + 2.25*u_xy = 0.016"],
        rp.Box(x=(0, 1), y=(0, 0.2)),
        {"x=0": ("u = 0", "v = 0"), "x=1": tuple(stress[:2]), "y=0": tuple(stress[1:]), "y=0.2": tuple(stress[1:])},
    )
    solution = rp.solve(beam, tol=1e-5, method="trefftz")
    assert solution.converged
    assert abs(solution.field("v", np.array([[1.0, 0.1]]))[0] + 0.22465528) < 1e-6


def test_balls_in_a_box_in_space():
    domain = rp.Box(x=(0, 2), y=(0, 2), z=(0, 2)) - rp.Ball((0.6, 0.6, 0.7), 0.25) - rp.Ball((1.4, 1.3, 1.3), 0.3)
    exact = "1/sqrt((x - 0.6)**2 + (y - 0.6)**2 + (z - 0.7)**2) + exp(x)*sin(y) + x*y*z"
    problem = rp.Problem("laplace(u) = 0", domain, {"boundary": f"u = {exact}"}, exact={"u": exact})
    solution = exactly(problem, 1e-6, method="trefftz")
    assert "multipoles in holes" in solution.method.label


def test_sides_of_shapes_are_found_by_all_their_decimals():
    left, below = 0.29468469634950684, -0.38270630521
    plate = rp.Box(x=(left, left + 0.2034), y=(below, below + 0.1563)) - rp.Ball((left + 0.1, below + 0.08), 0.03)
    conditions = {"left": rp.On(f"x={left!r}", "u = 1"), "rest": rp.On(f"boundary except x={left!r}", "u = 0")}
    assert len(rp.Problem("laplace(u) = 0", plate, conditions).constraints) == 5


def test_angles_stand_only_where_given_values_jump():
    """θ has infinite derivatives at its corner: it is no feature of a solution that is smooth there."""
    square = rp.Polygon([(0, 0), (1, 0), (1.1, 1), (0, 1)])
    smooth = rp.Problem("laplace(u) = 0", square, {"boundary": "u = 1/(1.2 + x + y**2)"})
    jumping = rp.Problem("laplace(u) = 0", square, {"edge4": "u = 1", "boundary except edge4": "u = 0"})
    labels = [rp.solve(one, tol=1e-8, method="trefftz").method.label for one in (smooth, jumping)]
    assert ["angles" in label for label in labels] == [False, True]


def test_derivatives_at_corners_are_left_to_other_methods():
    square = rp.Box(x=(0, 1), y=(0, 1))
    outputs = {"slope": rp.Output("u_x", at=(0.0, 0.0)), "beside": rp.Output("u_x", at=(0.3, 0.0))}
    asked = rp.Problem("laplace(u) = -1", square, {"boundary": "u = 0"}, outputs=outputs)
    assert Trefftz().drawbacks(asked)[0].startswith("an output is a derivative at a corner")
    found = rp.solve(asked, tol=1e-8, method="trefftz").outputs
    assert not found["slope"].converged
    assert found["beside"].converged


@pytest.mark.parametrize(
    ("equation", "exact"),
    [
        ("laplace(u) + 81*u = 0", "cos(9*{r})/{r}"),
        ("laplace(u) = 4*u", "exp(-2*{r})/{r}"),
        ("laplace(u) + u_x + 30.25*u = 0", "exp(-x/2)*sin(sqrt(30)*{r})/{r}"),
    ],
)
def test_waves_and_screens_in_space(equation, exact):
    domain = rp.Ball((0.2, 0, 0), 0.6) - rp.Ball((0.3, 0.1, 0), 0.2)
    exact = exact.format(r="sqrt((x - 1.5)**2 + (y - 0.6)**2 + (z - 0.4)**2)")
    problem = rp.Problem(equation, domain, {"boundary": f"u = {exact}"}, exact={"u": exact})
    solution = exactly(problem, 1e-6, method="trefftz")
    assert "multipoles in holes" in solution.method.label


def test_limits_of_memory_and_time():
    """What does not fit is not begun; a limit of time ends a solve with what it has."""
    domain = SQUARE - rp.Ball((0.4, 0.3), 0.25)
    problem = rp.Problem("laplace(u) = 0", domain, {"boundary": "u = exp(x)"})
    with pytest.raises(rp.InputError, match="memory is too small"):
        rp.solve(problem, tol=1e-8, method="trefftz", memory=1e4)
    hard = rp.Problem("laplace(u) = 0", domain, {"boundary": "u = exp(-(x - y)**2/0.001)"})
    with pytest.warns(rp.ConvergenceWarning):
        ended = rp.solve(hard, tol=1e-12, method="trefftz", seconds=0.5)
    assert ended.status.name == "BUDGET"
    with pytest.raises(rp.InputError, match="seconds"):
        rp.scatter(rp.Box(x=(0, 1), y=(0, 1)), 40.0, seconds=1e-6)
