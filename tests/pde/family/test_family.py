"""Families of solutions: right for every value of the parameters, or honestly not converged."""

import warnings
from time import process_time

import numpy as np
import pytest
from typer.testing import CliRunner

import rannpde as rp
from draws import some
from helpers import inked
from rannpde.cli import build
from rannpde.pde.budget import timed_by
from rannpde.pde.problem.toml import from_table, to_table

POINTS = np.random.default_rng(5).uniform((0, 0), (0.3, 1), (200, 2))


def heat(lower=0.05, upper=0.5, scale="log", **more):
    return rp.Problem(
        "u_t = k*u_xx", rp.SpaceTime(t=(0, 0.3), x=(0, 1)), {"t=0": "u = sin(2*pi*x) + 0.5", "x": "periodic"},
        parameters={"k": rp.Range(lower, upper, scale)}, exact={"u": "sin(2*pi*x)*exp(-4*k*pi**2*t) + 0.5"}, **more,
    )  # fmt: skip


def heat_exact(points, k):
    return np.sin(2 * np.pi * points[:, 1]) * np.exp(-4 * k * np.pi**2 * points[:, 0]) + 0.5


def heat_slope(points, k):
    return -4 * np.pi**2 * points[:, 0] * (heat_exact(points, k) - 0.5)


@pytest.fixture(scope="module")
def family():
    return rp.solve(heat(), tol=1e-7)


@pytest.fixture(scope="module")
def loads():
    """A bar under two loads: u = (a x (1 - x) + b x (1 - x²)/3)/2, of which everything is known."""
    problem = rp.Problem(
        "-u_xx = a + b*x", rp.Interval(0, 1), {"boundary": "u = 0"},
        parameters={"a": rp.Range(1, 3), "b": rp.Range(-1, 2)}, exact={"u": "a*x*(1 - x)/2 + b*x*(1 - x**2)/6"},
    )  # fmt: skip
    return rp.solve(problem, tol=1e-8)


def relative(found, exact):
    return np.linalg.norm(found - exact) / np.linalg.norm(exact)


@pytest.mark.parametrize("k", [0.05, 0.0612, 0.123, 0.3, 0.5])
def test_every_value_is_within_the_estimate(family, k):
    error = relative(family(POINTS, k=k), heat_exact(POINTS, k))
    assert family.converged
    assert family.estimate <= 1e-7
    assert error <= 1e-7
    assert family.error(k=k) <= family.estimate * (1 + 1e-9) + 1e-12


def test_errors_over_the_range(family):
    assert family.errors()["u"] <= 1e-7


def test_derivatives_in_the_coordinates_and_by_the_parameter(family):
    assert relative(family.derivative(POINTS, (0, 1), k=0.2), 2 * np.pi * np.cos(2 * np.pi * POINTS[:, 1])
                    * np.exp(-0.8 * np.pi**2 * POINTS[:, 0])) < 1e-5  # fmt: skip
    assert relative(family.derivative(POINTS, None, by="k", k=0.2), heat_slope(POINTS, 0.2)) < 1e-5
    assert relative(family.on(POINTS).derivative("k", k=0.2), heat_slope(POINTS, 0.2)) < 1e-5


def test_the_solution_at_a_value_is_a_solution(family, tmp_path):
    solution = family.at(k=0.2)
    assert type(solution) is rp.Solution
    assert solution.errors()["u"] <= 1e-7
    assert solution.score < 1e-4
    assert np.abs(solution.residual(POINTS)["equation"]).max() < 1e-3
    again = rp.load(solution.save(tmp_path / "one.npz"))
    assert np.array_equal(again(POINTS), solution(POINTS))
    assert "k = 0.2" in solution.report()


def test_the_table_agrees_with_the_solutions_at_the_nodes(family):
    assert family.table is not None
    slow = family.derivative(POINTS, None, by=None, k=0.17)
    exact = np.asarray(family.at(k=0.17)(POINTS))
    assert relative(slow, exact) < 2e-8


def test_a_family_is_saved_and_loaded(family, tmp_path):
    again = rp.load(family.save(tmp_path / "family.npz"))
    assert isinstance(again, rp.Family)
    assert np.array_equal(again(POINTS, k=0.11), family(POINTS, k=0.11))
    assert again.error(k=0.11) == pytest.approx(family.error(k=0.11), rel=1e-12)
    assert again.report() == family.report()
    assert again.history == family.history


@pytest.mark.slow
def test_pictures_and_pages(family, loads, tmp_path):
    for number, one in enumerate((family, loads)):
        path = tmp_path / f"{number}.png"
        assert min(inked(one.plot(path), path)) > 0.005
        assert "<svg" in one.to_html(tmp_path / f"{number}.html").read_text(encoding="utf-8")


def test_two_parameters(loads):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (50, 1))
    assert loads.converged
    for a, b in rng.uniform((1, -1), (3, 2), (5, 2)):
        exact = a * x[:, 0] * (1 - x[:, 0]) / 2 + b * x[:, 0] * (1 - x[:, 0] ** 2) / 6
        assert relative(loads(x, a=a, b=b), exact) < 1e-8
        slope = x[:, 0] * (1 - x[:, 0] ** 2) / 6
        assert relative(loads.derivative(x, None, by="b", a=a, b=b), slope) < 1e-6


def neighbours():
    """The same kind of problem in other units, ranges, scales and tolerances."""
    rng = np.random.default_rng(17)
    for number in range(6):
        lower = 10.0 ** rng.uniform(-3, 3)
        yield number, lower, lower * rng.uniform(1.1, 8), ("log", "linear")[number % 2], 10.0 ** rng.uniform(-7, -2)


@pytest.mark.parametrize(("number", "lower", "upper", "scale", "tol"), some(neighbours(), 2))
def test_neighbours(number, lower, upper, scale, tol):
    """-u_xx + c² u = c² on (0, L): boundary layers that grow with c L, in units of L = 2.3 / lower."""
    length = 2.3 / lower
    problem = rp.Problem(
        "-u_xx + c**2*u = c**2", rp.Interval(-0.3 * length, 0.7 * length), {"boundary": "u = 0"},
        parameters={"c": rp.Range(lower, upper, scale)},
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ConvergenceWarning)
        family = rp.solve(problem, tol=tol, rng=number)
    x = np.random.default_rng(number).uniform(-0.3 * length, 0.7 * length, (400, 1))
    worst = 0.0
    for share in (0.0, 0.13, 0.5, 0.77, 1.0):
        c = lower + share * (upper - lower)
        exact = 1 - np.cosh(c * (x[:, 0] - 0.2 * length)) / np.cosh(c * length / 2)
        worst = max(worst, relative(family(x, c=c), exact))
    assert family.converged
    assert worst <= tol


@pytest.mark.parametrize(("lower", "upper"), some([(2.9, 3.4), (1.0, 5.0)], 1))
def test_a_resonance_in_the_range_ends_not_converged(lower, upper):
    problem = rp.Problem(
        "u_xx + k**2*u = 1", rp.Interval(0, 1), {"boundary": "u = 0"}, parameters={"k": rp.Range(lower, upper)}
    )
    with pytest.warns(rp.ConvergenceWarning):
        family = rp.solve(problem, tol=1e-4)
    assert not family.converged
    assert family.estimate > 1e-2


def test_a_budget_is_kept_and_told():
    with pytest.warns(rp.ConvergenceWarning, match="time allowed"), timed_by(process_time):
        family = rp.solve(heat(0.001, 1.0), tol=1e-10, seconds=0.4)
    assert family.status is rp.Status.BUDGET
    assert family.estimate > family.errors()["u"]
    assert np.isfinite(family(POINTS, k=0.1)).all()


def test_the_same_seed_gives_the_same_family(loads):
    again = rp.solve(loads.problem, tol=1e-8)
    x = np.linspace(0, 1, 7)[:, None]
    assert np.array_equal(again(x, a=1.7, b=0.3), loads(x, a=1.7, b=0.3))


def test_wrong_input():
    with pytest.raises(rp.InputError, match="lower < upper"):
        rp.Range(1, 1)
    with pytest.raises(rp.InputError, match="logarithmic"):
        rp.Range(0, 1, scale="log")
    with pytest.raises(rp.InputError, match="scale"):
        rp.Range(0, 1, scale="cubic")
    with pytest.raises(rp.InputError, match="rename"):
        rp.solve(rp.Problem("-u_xx = by", rp.Interval(0, 1), {"boundary": "u = 0"}, {"by": rp.Range(0, 1)}))
    with pytest.raises(rp.InputError, match="ensemble"):
        rp.ensemble(heat(), 2)
    with pytest.raises(rp.InputError, match="posterior"):
        rp.Problem(
            "u_xx = k + m", rp.Interval(0, 1), {"boundary": "u = 0"}, parameters={"k": rp.Range(0, 1)},
            unknown={"m": rp.Unknown(1.0)},
        )  # fmt: skip


def test_wrong_values(family):
    with pytest.raises(rp.InputError, match="'k' has no value"):
        family(POINTS)
    with pytest.raises(rp.InputError, match=r"from 0\.05 to 0\.5"):
        family(POINTS, k=0.6)
    with pytest.raises(rp.InputError, match="no parameter"):
        family(POINTS, kk=0.1)
    with pytest.raises(rp.InputError, match="by"):
        family.derivative(POINTS, None, by="nu", k=0.1)


def test_ranges_in_files():
    problem = heat()
    again = from_table(to_table(problem))
    assert again.ranges == problem.ranges
    with pytest.raises(rp.InputError, match="range"):
        from_table(to_table(problem) | {"parameters": {"k": {"from": 1}}})
    with pytest.raises(rp.InputError, match=r"parameters\.k"):
        from_table(to_table(problem) | {"parameters": {"k": {"range": [2, 1]}}})


@pytest.mark.slow
def test_the_command_line_solves_a_family(tmp_path):
    text = """
equations = "-u_xx = a"
[domain]
x = [0, 1]
[parameters]
a = { range = [1, 2] }
[conditions]
boundary = "u = 0"
[solve]
tol = 1e-6
"""
    (tmp_path / "bar.toml").write_text(text, encoding="utf-8")
    done = CliRunner().invoke(build(), ["solve", str(tmp_path / "bar.toml"), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "a from 1 to 2" in done.output
    family = rp.load(tmp_path / "out" / "bar.npz")
    assert abs(family(np.array([[0.5]]), a=1.5)[0] - 1.5 / 8) < 1e-6
