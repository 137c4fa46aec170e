"""The command line from a file to what it leaves behind: every shipped example, every status, everything refused."""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import rannpde as rp
from draws import FULL, some
from rannpde.cli import build
from rannpde.pde.problem.toml import example, examples

SETTLED = """
equations = ["u_xx = -u"]
[domain]
x = [0, "pi/2"]
[conditions.ends]
on = "boundary"
equation = "u = sin(x)"
[exact]
u = "sin(x)"
[solve]
tol = 1e-6
"""


@pytest.fixture
def run():
    runner, app = CliRunner(), build()
    return lambda *arguments: runner.invoke(app, list(map(str, arguments)))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "settled.toml"
    path.write_text(SETTLED, encoding="utf-8")
    return path


def test_ctrl_c_while_a_solution_is_written_loses_no_part_of_it(run, file, tmp_path, monkeypatch):
    save = rp.Solution.save

    def pressed(solution, path):
        signal.raise_signal(signal.SIGINT)
        return save(solution, path)

    monkeypatch.setattr(rp.Solution, "save", pressed)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = run("solve", file, "--out", tmp_path, "--quiet")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.exit_code == 0
    assert {path.suffix for path in tmp_path.iterdir()} >= {".npz", ".txt", ".png", ".html"}


@pytest.fixture
def untouched(monkeypatch):
    """No solve may begin."""

    def began(*_, **__):
        raise AssertionError("the solve began")

    monkeypatch.setattr("rannpde.pde.solve.solve", began)


@pytest.fixture
def undrawn(monkeypatch):
    """Pictures and pages are empty files: the examples draw them, which takes longer than a short solve."""
    for part in ("plot", "to_html"):
        monkeypatch.setattr(rp.Solution, part, lambda solution, path, *_: Path(path).touch())


def copied(name: str, folder: Path) -> Path:
    path = folder / f"{name}.toml"
    path.write_text(example(name), encoding="utf-8")
    return path


# --------------------------------------------------------------------------------------------- the whole way


DRAWN = ("burgers", "disc")
"""An evolution on a line and a shape; pictures of all other kinds have tests of their own (test_pictures)."""


@pytest.mark.parametrize("name", examples())
def test_every_example_goes_the_whole_way(name, run, tmp_path, request):
    drawn = FULL or name in DRAWN
    if not drawn:
        request.getfixturevalue("undrawn")
    file, out = copied(name, tmp_path), tmp_path / "out"
    result = run("solve", file, "--out", out)
    assert result.exit_code == 0, result.output
    assert {path.name for path in out.iterdir()} == {f"{name}{suffix}" for suffix in (".npz", ".png", ".txt", ".html")}
    report = (out / f"{name}.txt").read_text(encoding="utf-8")
    assert report.strip() in result.output
    assert ": converged (" in report
    assert not drawn or (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")

    solution = rp.load(out / f"{name}.npz")
    assert isinstance(solution, rp.Solution)
    assert solution.converged
    assert solution.report().splitlines()[0] == report.splitlines()[0]
    domain = solution.stated.domain
    if solution.stated.parabolic is None:  # in all of R^d, values are known where they were asked for
        assert np.isfinite(solution(domain.sample(20, rng=1))).all()
    tol = float(example(name).partition("tol = ")[2].split()[0])
    assert solution.estimate <= tol
    for error in solution.errors().values():
        assert error <= min(tol, 10 * max(solution.estimate, 1e-14))  # below that, all is rounding


def test_examples_are_listed_and_copied(run, tmp_path):
    listing = run("examples").output
    assert all(name in listing for name in examples())
    assert run("examples", "burgers", "--out", tmp_path).exit_code == 0
    assert (tmp_path / "burgers.toml").read_text(encoding="utf-8") == example("burgers")
    assert run("examples", "burgers", "-o", tmp_path).exit_code == 1
    assert run("examples", "burgers", "-o", tmp_path / "own.toml").exit_code == 0
    assert run("examples", "burgers", "-o", tmp_path, "--force").exit_code == 0
    wrong = run("examples", "burgrs")
    assert wrong.exit_code == 2
    assert "did you mean 'burgers'" in wrong.output


@pytest.mark.usefixtures("undrawn")
def test_quiet_prints_nothing(run, file, tmp_path):
    result = run("solve", file, "-o", tmp_path / "out", "--quiet")
    assert (result.exit_code, result.output) == (0, "")


# -------------------------------------------------------------------------------------------------- options


def test_options_come_before_the_file(run, tmp_path, monkeypatch):
    seen = {}

    def note(problem, **settings):
        seen.update(settings)
        raise rp.InputError("noted")

    monkeypatch.setattr("rannpde.pde.solve.solve", note)
    file = tmp_path / "file.toml"
    own = 'tol = 1e-5\nseconds = 7\nrng = 3\nmethod = "collocation"\nwidth = 40\n'
    file.write_text(SETTLED.replace("tol = 1e-6\n", own), encoding="utf-8")
    run("solve", file, "-o", tmp_path)
    assert (seen["tol"], seen["seconds"], seen["rng"], seen["method"].width) == (1e-5, 7, 3, 40)
    run("solve", file, "-o", tmp_path, "--tol", "1e-3", "--seconds", "2.5", "--seed", 9)
    assert (seen["tol"], seen["seconds"], seen["rng"], seen["method"].width) == (1e-3, 2.5, 9, 40)
    run("solve", file, "-o", tmp_path, "--method", "collocation")
    assert (seen["tol"], seen["seconds"], seen["rng"], seen["method"].width) == (1e-5, 7, 3, None)


@pytest.mark.usefixtures("undrawn")
def test_a_seed_gives_the_same_file_again_and_another_seed_another(run, file, tmp_path):
    found = []
    for folder, seed in (("a", 4), ("b", 4), ("c", 5)):
        assert run("solve", file, "-o", tmp_path / folder, "--seed", seed).exit_code == 0
        found.append(rp.load(tmp_path / folder / "settled.npz")(np.linspace(0, 1.5, 7)[:, None]))
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


@pytest.mark.usefixtures("undrawn")
def test_a_method_can_be_asked_for(run, tmp_path):
    result = run("solve", copied("porous_medium", tmp_path), "-o", tmp_path, "--method", "collocation", "--tol", "1e-4")
    assert result.exit_code == 0, result.output
    assert rp.load(tmp_path / "porous_medium.npz").method.name == "collocation"


# ------------------------------------------------------------------------------------- what did not converge


@pytest.mark.parametrize("name", some(["burgers", "nonlinear_poisson", "allen_cahn"], 1))
def test_what_the_clock_ended_is_written_and_loads(name, run, tmp_path):
    result = run("solve", copied(name, tmp_path), "-o", tmp_path, "--seconds", "0.001")
    assert result.exit_code == 3, result.output
    assert "DID NOT CONVERGE" in (tmp_path / f"{name}.txt").read_text(encoding="utf-8")
    assert "did not converge: the time allowed was used up" in result.output
    solution = rp.load(tmp_path / f"{name}.npz")
    assert solution.status is rp.Status.BUDGET
    start = solution.stated.domain.sample(20, rng=1)
    if name != "nonlinear_poisson":
        start[:, 0] = 0.0  # of an evolution, the first moment is known
    assert np.isfinite(solution(start)).all()
    assert (tmp_path / f"{name}.png").exists()


@pytest.mark.usefixtures("undrawn")
def test_a_tolerance_out_of_reach_is_told_by_the_code_and_the_report(run, file, tmp_path):
    narrow = file.read_text(encoding="utf-8").replace("tol = 1e-6", 'method = "collocation"\nwidth = 4\nscale = 1.0')
    file.write_text(narrow, encoding="utf-8")
    result = run("solve", file, "-o", tmp_path, "--tol", "1e-12")
    assert result.exit_code == 3, result.output
    solution = rp.load(tmp_path / "settled.npz")
    assert not solution.converged
    assert solution.estimate > 1e-12
    assert solution.reason in result.output


# --------------------------------------------------------------------------------------------- nothing is lost


@pytest.fixture
def refuge(tmp_path, monkeypatch):
    """The temporary folder, for one test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.usefixtures("undrawn")
def test_a_failure_while_saving_loses_nothing(run, file, tmp_path, refuge, monkeypatch):
    out, save = tmp_path / "out", rp.Solution.save

    def full(solution, path):
        if Path(path).parent == out:
            raise OSError(28, "No space left on device")
        return save(solution, path)

    monkeypatch.setattr(rp.Solution, "save", full)
    result = run("solve", file, "-o", out)
    assert result.exit_code == 1
    assert {path.suffix for path in out.iterdir()} == {".txt", ".png", ".html"}
    (kept,) = refuge.rglob("settled.npz")
    assert f"{out / 'settled.npz'} could not be written" in result.output
    assert f"it was written to {kept} instead" in result.output
    assert rp.load(kept).converged


@pytest.mark.usefixtures("undrawn")
def test_where_a_part_cannot_be_written_at_all_the_others_are(run, file, tmp_path, refuge, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no page today")

    monkeypatch.setattr(rp.Solution, "to_html", broken)
    result = run("solve", file, "-o", tmp_path / "out", "--quiet")
    assert result.exit_code == 1
    assert result.output.count("no page today") == 2
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".npz", ".txt", ".png"}


# ---------------------------------------------------------------------------------------------------- refused


@pytest.mark.usefixtures("untouched")
def test_a_folder_that_cannot_be_written_is_refused_before_any_work(run, file, tmp_path):
    (tmp_path / "taken").write_text("a file, not a folder")
    for folder in (tmp_path / "taken", tmp_path / "taken" / "below"):
        result = run("solve", file, "-o", folder)
        assert result.exit_code == 2
        assert str(folder) in result.output
        assert "--out" in result.output


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("u_xx = -u", "u_xx = u.__class__", "column 9"),
        ("[exact]", "[exact", "TOML"),
        ("tol = 1e-6", "second = 7", "did you mean 'seconds'"),
        ("tol = 1e-6", "width = 40", "name its method too"),
        ("tol = 1e-6", "rng = -1", "whole number ≥ 0"),
        ("tol = 1e-6", 'method = "space-time"', "known: cells, collocation, flow, identify, lines"),
        ("tol = 1e-6", 'method = "collocation"\nwidth = "wide"', "width"),
        ("tol = 1e-6", 'method = "collocation"\nscale = ["small"]', "scale"),
        ("tol = 1e-6", 'method = "collocation"\npoints_per_column = -3', "points_per_column"),
        ("tol = 1e-6", 'method = "collocation"\nwindows = 2', "windows"),
        ("tol = 1e-6", 'method = "lines"\nevents = 2', "events"),
    ],
)
def test_bad_files_end_with_one_message_and_no_traceback(old, new, told, run, file, tmp_path):
    assert old in SETTLED
    file.write_text(SETTLED.replace(old, new), encoding="utf-8")
    result = run("solve", file, "-o", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert told in result.output
    assert "settled.toml" in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (["tol = -1"], 11),
        (["tol = 1.5"], 11),
        (["rng = 3", "seconds = 0"], 12),
        (["rng = 3", "width = 40"], 12),
        (["tol = 1e-6", 'method = "collocation"', "windows = 2"], 13),
        (["tol = 1e-6", 'method = "collocation"', "width = -4"], 13),
        (["tol = 1e-6", 'method = "line"'], 12),
    ],
)
def test_wrong_settings_are_named_with_their_file_and_line(settings, line, run, file, tmp_path):
    file.write_text(SETTLED.replace("tol = 1e-6", "\n".join(settings)), encoding="utf-8")
    result = run("solve", file, "-o", tmp_path / "out")
    assert f"{file}, line {line}, column " in result.output
    blamed = run("solve", file.with_name("settled.toml"), "-o", tmp_path / "out", "--seed", -1)
    assert f"{file}, line {line}, column " in blamed.output  # the file is judged first


def test_a_wrong_option_is_not_blamed_on_the_file(run, file, tmp_path):
    assert "settled.toml" not in run("solve", file, "-o", tmp_path / "out", "--tol", 2).output


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--tol", "0", "tol"),
        ("--tol", "2", "below 1"),
        ("--tol", "nan", "tol"),
        ("--seconds", "-1", "seconds"),
        ("--seed", "-1", "rng"),
        ("--method", "magic", "known: cells, collocation, flow, identify, lines"),
        ("--method", "lines", "the domain has no time"),
    ],
)
def test_bad_options_end_with_one_message_and_no_traceback(option, value, told, run, file, tmp_path):
    result = run("solve", file, "-o", tmp_path / "out", option, value)
    assert result.exit_code == 2, result.output
    assert told in result.output
    assert not list((tmp_path / "out").glob("*"))


def test_a_width_that_no_machine_has_room_for_is_one_message(run, file, tmp_path):
    wide = SETTLED.replace("tol = 1e-6", 'method = "collocation"\nwidth = 10000000\nscale = 1.0')
    file.write_text(wide, encoding="utf-8")
    result = run("solve", file, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "memory is too small" in result.output
    assert "GB" in result.output


def test_a_file_that_is_not_there_is_named(run, tmp_path):
    result = run("solve", tmp_path / "nothing.toml")
    assert result.exit_code == 2
    assert "does not exist" in result.output
