"""The statement of eigenvalue problems, what is refused, files, pictures and the command."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import rannpde as rp
from rannpde.cli import build
from rannpde.pde.problem.toml import from_table, to_table

LINE = rp.Interval(0, 1)
FIXED = {"boundary": "u = 0"}
STRING = rp.Problem("-u_xx = lam*(1 + x)*u", LINE, FIXED, eigenvalue="lam", name="String")

FILE = """
equations = ["-u_xx + i*k*u_x = lam*u"]
eigenvalue = "lam"
[domain]
x = [0, 1]
[parameters]
i = "1j"
k = 0.5
[conditions]
boundary = "u = 0"
[eigen]
count = 2
tol = 1e-7
"""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"equations": "-u_xx = lam*u + 1"}, "equation 'equation' is not homogeneous"),
        ({"conditions": {"boundary": "u = 2"}}, "condition 'boundary' is not homogeneous"),
        ({"equations": "-u_xx + u**3 = lam*u"}, "not linear"),
        ({"equations": "-u_xx = exp(lam)*u"}, "no polynomial in lam"),
        ({"equations": "-u_xx = u/lam"}, "no polynomial in lam"),
        ({"equations": "-u_xx = u"}, "stands in no equation"),
        ({"conditions": {"x=0": "u = 0"}, "incomplete": True}, "need 2"),
    ],
)
def test_what_is_no_eigenvalue_problem_is_refused(change: dict, message: str) -> None:
    stated = {"equations": "-u_xx = lam*u", "domain": LINE, "conditions": FIXED, "eigenvalue": "lam"}
    with pytest.raises(rp.InputError, match=message):
        rp.eigen(rp.Problem(**stated | change))


@pytest.mark.parametrize(
    "change",
    [
        {"eigenvalue": "2"},
        {"eigenvalue": 3},
        {"parameters": {"lam": 1.0}},
        {"exact": {"u": "x"}},
        {"bounds": {"u": (0, 1)}},
        {"unknown": {"k": rp.Unknown(guess=1.0)}},
        {"parameters": {"i": complex(np.inf, 1)}},
        {"domain": rp.SpaceTime(t=(0, 1), x=(0, 1))},
        {"eigenvalue": "x"},
        {"complex": True},
        {"definitions": {"q": "u_x"}},
        {"fields": {"u": "vector"}},
    ],
)
def test_what_does_not_go_with_an_eigenvalue_is_refused(change: dict) -> None:
    stated = {"equations": "-u_xx = lam*u", "domain": LINE, "conditions": FIXED, "eigenvalue": "lam"}
    with pytest.raises(rp.InputError):
        rp.Problem(**stated | change)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"count": 0}, "count"),
        ({"count": 1.5}, "count"),
        ({"count": 1000}, "count"),
        ({"near": "x"}, "near"),
        ({"near": np.nan}, "near"),
        ({"which": "middle"}, "which"),
        ({"which": "lowest", "near": 1.0}, "which"),
        ({"tol": 0}, "tol"),
        ({"tol": 2.0}, "tol"),
        ({"seconds": -1}, "seconds"),
        ({"rng": "a"}, "rng"),
        ({"progress": 3}, "progress"),
        ({"phase": {"y": 1.0}}, "phase"),
        ({"phase": {"x": 1.0}}, "phase"),
        ({"phase": 3}, "phase"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict, name: str) -> None:
    with pytest.raises(rp.InputError, match=name):
        rp.eigen(STRING, **arguments)


def test_solve_and_eigen_point_to_each_other() -> None:
    with pytest.raises(rp.InputError, match=r"rp\.eigen"):
        rp.solve(STRING)
    with pytest.raises(rp.InputError, match="eigenvalue="):
        rp.eigen(rp.Problem("-u_xx = 1", LINE, FIXED))


def test_a_complex_parameter_needs_an_eigenvalue() -> None:
    with pytest.raises(rp.InputError, match="parameters"):
        rp.Problem("-u_xx = i*u", LINE, FIXED, parameters={"i": 1j})


def test_tables_keep_the_statement() -> None:
    problem = rp.Problem("-u_xx + i*u_x = lam*u", LINE, FIXED, parameters={"i": 1j, "k": 2.0}, eigenvalue="lam")
    table = to_table(problem)
    assert table is not None
    again = from_table(table)
    assert again.eigenvalue == "lam"
    assert again.parameters == {"i": 1j, "k": 2.0}
    assert again.fingerprint == problem.fingerprint


def test_the_same_seed_gives_the_same_numbers_and_progress_is_told() -> None:
    told = []
    first = rp.eigen(STRING, 3, rng=3, progress=told.append)
    second = rp.eigen(STRING, 3, rng=3)
    assert told
    assert (first.values == second.values).all()


def test_saved_and_loaded(tmp_path) -> None:
    found = rp.eigen(STRING, 3)
    again = rp.load(found.save(tmp_path / "string.npz"))
    assert isinstance(again, rp.Spectrum)
    assert (again.values == found.values).all()
    assert again.report() == found.report()
    points = np.linspace(0, 1, 7)[:, None]
    assert (again.modes[2](points) == found.modes[2](points)).all()
    complex_one = rp.eigen(rp.Problem("-u_xx + i*u_x = lam*u", LINE, FIXED, parameters={"i": 1j}, eigenvalue="lam"), 2)
    again = rp.load(complex_one.save(tmp_path / "complex.npz"))
    assert np.iscomplexobj(again.modes[0](points))
    assert (again.modes[1](points) == complex_one.modes[1](points)).all()


def test_a_file_of_another_problem_is_refused(tmp_path) -> None:
    path = rp.eigen(STRING, 1).save(tmp_path / "string.npz")
    with pytest.raises(rp.FileError, match="another problem"):
        rp.load(path, rp.Problem("-u_xx = lam*u", LINE, FIXED, eigenvalue="lam"))


def test_pictures_and_page(tmp_path) -> None:
    found = rp.eigen(STRING, 3)
    assert len(found.plot(tmp_path / "a.png").axes) == 2
    text = found.to_html(tmp_path / "a.html", "a command").read_text(encoding="utf-8")
    assert "<svg" in text
    assert "a command" in text
    with pytest.raises(rp.InputError, match="html"):
        found.to_html(tmp_path / "a.txt")


def test_the_command_writes_all_parts(tmp_path) -> None:
    path = tmp_path / "drift.toml"
    path.write_text(FILE, encoding="utf-8")
    run = lambda *more: CliRunner().invoke(build(), ["eigen", str(path), "--out", str(tmp_path / "out"), *more])  # noqa: E731
    done = run()
    assert done.exit_code == 0, done.output
    assert {p.suffix for p in (tmp_path / "out").iterdir()} == {".npz", ".txt", ".png", ".html"}
    found = rp.load(tmp_path / "out" / "drift.npz")
    assert np.allclose(found.values.real, np.pi**2 * np.array([1, 4]) - 0.25**2)  # e^{ikx/2} sin(nπx)
    assert run("--count", "0").exit_code == 2
    assert run("--near", "nonsense").exit_code == 2
    path.write_text(FILE.replace("count = 2", "cuont = 2"), encoding="utf-8")
    done = run()
    assert done.exit_code == 2
    assert "did you mean 'count'" in done.output


def test_little_time_ends_with_what_is_known() -> None:
    """The budget is asked between discretisations."""
    hard = rp.Problem("-1e-7*u_xx + x**2*u = lam*u", rp.Interval(-1, 1), FIXED, eigenvalue="lam")
    with pytest.warns(rp.ConvergenceWarning):
        found = rp.eigen(hard, 4, tol=1e-12, seconds=1e-3)
    assert found.status is rp.Status.BUDGET
