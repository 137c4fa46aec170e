"""Outputs that problems state: files, reports, pages, tolerances, the command line."""

import numpy as np
import pytest
from typer.testing import CliRunner

import rannpde as rp
from draws import covering
from rannpde.cli import build
from rannpde.pde.problem.toml import from_table, read_problem, to_table

FILE = """
name = "torsion"
equations = "laplace(u) = -1"
[domain]
x = [0, 1]
y = [0, 1]
[conditions]
boundary = "u = 0"
[outputs]
volume = "u"
centre = "u(0.5, 0.5)"
flux = { expression = "dn(u)", on = ["x=0", "x=1"] }
largest = { expression = "u", kind = "maximum" }
line = { expression = "u", on = [[0, 0.5], [1, 0.5]], kind = "mean" }
slope = { expression = "u_x", at = [0, 0.5] }
[solve]
tol = 1e-6
"""
EXACT = {"volume": 0.14057701495515551 / 4, "centre": 0.07367135328, "flux": -0.5, "largest": 0.07367135328}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "torsion.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_outputs_go_through_files_reports_and_pages(file, tmp_path):
    problem, settings = read_problem(file)
    assert list(problem.outputs) == ["volume", "centre", "flux", "largest", "line", "slope"]
    again = from_table(to_table(problem))
    assert again.outputs == problem.outputs
    solution = rp.solve(problem, tol=settings["tol"])
    for name, exact in EXACT.items():
        found = solution.outputs[name]
        assert abs(found.value - exact) <= found.bound + 1e-11
        assert found.converged
        assert f"{name} = {found}" in solution.report()
    loaded = rp.load(solution.save(tmp_path / "torsion.npz"))
    assert {name: str(one) for name, one in loaded.outputs.items()} == {
        name: str(one) for name, one in solution.outputs.items()
    }
    assert loaded.outputs["largest"].location == solution.outputs["largest"].location
    page = solution.to_html(tmp_path / "torsion.html").read_text(encoding="utf-8")
    assert "Outputs" in page
    assert str(solution.outputs["volume"]) in page


def test_the_command_prints_and_writes_them(file, tmp_path):
    text = file.read_text(encoding="utf-8").replace("tol = 1e-6", "tol = { volume = 1e-5 }")
    file.write_text(text, encoding="utf-8")
    done = CliRunner().invoke(build(), ["solve", str(file), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "volume = 0.0351" in done.output
    assert "volume = 0.0351" in (tmp_path / "out" / "torsion.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(("tol", "seed"), covering([1e-2, 1e-5, 1e-9], range(2)))
def test_a_solve_reaches_the_tolerance_of_an_output(tol, seed):
    """∫ u of -Δu = 1 on an ellipse in any units: π a³ b³ / (4 (a² + b²))."""
    rng = np.random.default_rng(seed)
    unit = 10.0 ** int(rng.integers(-2, 3))
    a, b = (np.round(rng.uniform(0.4, 1.5, 2), 2) * unit).tolist()
    ellipse = rp.Ellipse((unit, -2 * unit), (a, b), round(float(rng.uniform(0, 3)), 2))
    problem = rp.Problem("laplace(u) = -1", ellipse, {"boundary": "u = 0"}, outputs={"stiffness": "u"})
    solution = rp.solve(problem, tol={"stiffness": tol})
    found = solution.outputs["stiffness"]
    exact = np.pi * a**3 * b**3 / (4 * (a**2 + b**2))
    assert solution.converged
    assert found.relative_bound <= tol
    assert abs(found.value - exact) <= found.bound + 1e-13 * exact


def test_an_output_of_a_problem_in_time():
    problem = rp.Problem(
        "u_t = u_xx/10",
        rp.SpaceTime(t=(0, 2), x=(0, 1)),
        {"t=0": "u = sin(pi*x)", "boundary": "u = 0"},
        outputs={"half": "u(0.5) = 0.5", "heat": rp.Output("u", t=(0.5, 1.0)), "late": rp.Output("u(0.5)", t=1)},
    )
    solution = rp.solve(problem, tol={"half": 1e-6})
    rate = np.pi**2 / 10
    assert solution.converged
    assert abs(float(solution.outputs["half"]) - np.log(2) / rate) <= solution.outputs["half"].bound
    heat = solution.outputs["heat"]
    assert (np.abs(heat.value - 2 / np.pi * np.exp(-rate * np.array([0.5, 1.0]))) <= heat.bound).all()
    assert float(solution.outputs["late"]) == pytest.approx(np.exp(-rate), rel=1e-6)


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ({"m": "v"}, "output 'm'.*unknown"),
        ({"m": rp.Output("dn(u)")}, "name a side"),
        ({"m": rp.Output("u", on="q")}, "does not exist"),
        ({"m": "u = 1"}, "problem in time"),
        ({"m": rp.Output("u", t=2)}, "no time"),
        ({"m": rp.Output("u", kind="value")}, "values at points"),
        ({"m": rp.Output("u", at=(0.5,))}, "a point of 2 coordinates"),
        ({"m": "u(3, 3)"}, "outside"),
        ({"m": "u(1)"}, "coordinates"),
        (["u"], "mapping"),
        ({1: "u"}, "name of an output"),
    ],
)
def test_outputs_that_cannot_be_are_refused_when_they_are_stated(outputs, words):
    with pytest.raises(rp.InputError, match=words):
        rp.Problem("laplace(u) = -1", rp.Box(x=(0, 1), y=(0, 1)), {"boundary": "u = 0"}, outputs=outputs)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"expression": "u", "kind": "median"}, "kind"),
        ({"expression": "u", "at": (0, 0), "kind": "integral"}, "at"),
        ({"expression": "u(1) = 1", "t": 3}, "first time"),
        ({"expression": "u", "on": "x=0", "at": (0, 0)}, "on"),
    ],
)
def test_an_output_that_contradicts_itself_is_refused(arguments, words):
    with pytest.raises(rp.InputError, match=words):
        rp.Output(**arguments)


@pytest.mark.parametrize(
    ("tol", "words"), [({"drag": 1e-3}, "no output"), ({"m": 2.0}, "below 1"), ({"m": -1}, "> 0"), ({}, "name of an")]
)
def test_tolerances_of_outputs_that_cannot_be_are_refused(tol, words):
    problem = rp.Problem("u_xx = -u", rp.Interval(0, 1), {"boundary": "u = sin(x)"}, outputs={"m": "u"})
    with pytest.raises(rp.InputError, match=words):
        rp.solve(problem, tol=tol)


def test_a_time_that_is_too_short_is_said():
    ring = rp.Ball((0, 0), 1) - rp.Ball((0.2, 0.1), 0.3)
    problem = rp.Problem("laplace(u) = -exp(u)", ring, {"boundary": "u = 0"}, outputs={"m": "u"})
    with pytest.warns(rp.ConvergenceWarning):
        solution = rp.solve(problem, tol={"m": 1e-12}, seconds=0.2)
    assert not solution.converged
