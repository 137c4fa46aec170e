"""Problems in TOML files: the examples work, strangers' files are refused with the reason, the command line runs."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from rannpde.cli.solve import register
from rannpde.errors import FileError, InputError
from rannpde.pde.problem.toml import describe, example, examples, problem_from, read_problem
from rannpde.pde.zoo import ZOO, zoo

GOOD = """
equations = ["u_xx = -u"]
[domain]
x = [0, "pi/2"]
[conditions.ends]
on = "boundary"
equation = "u = sin(x)"
[exact]
u = "sin(x)"
[solve]
width = 40
scale = 1.0
"""


def write(tmp_path, text):
    path = tmp_path / "problem.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", examples())
def test_examples_state_sound_problems(name, tmp_path):
    problem, settings = read_problem(write(tmp_path, example(name)))
    assert problem.fields
    assert settings["width"]
    assert example(name).startswith("# ")  # the line that the listing shows


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("u_xx = -u", "u_xx = -u.__class__", "no meaning"),
        ("u_xx = -u", "u_xx = __import__(1)", "unknown"),
        ("u_xx = -u", "u_xx = 9**9**9**9", "refused"),
        ("u_xx = -u", "u_xx = " + "(" * 3000 + "u" + ")" * 1000, "deeper"),
        ("u_xx = -u", "u_xx = " + "u + " * 40_000 + "u", "characters"),
        ("equations", "equatons", "did you mean 'equations'"),
        ("on =", "at =", "unknown"),
        ("[domain]", "[domian]", "unknown"),
        ('x = [0, "pi/2"]', "x = [1, 0]", "lower < upper"),
        ('x = [0, "pi/2"]', "x = 3", "interval"),
        ('x = [0, "pi/2"]', "", "domain"),
        ("width", "widht", "did you mean 'width'"),
        ("boundary", "x=7", "outside"),
        ('u = "sin(x)"', "u = [1]", "exact"),
        ("[exact]", "[exact", "TOML"),
    ],
)
def test_bad_files_say_what_is_wrong(old, new, hint, tmp_path):
    with pytest.raises(InputError, match=hint):
        read_problem(write(tmp_path, GOOD.replace(old, new, 1)))


def test_huge_deep_binary_and_missing_files_are_refused(tmp_path):
    with pytest.raises(FileError, match="bytes"):
        read_problem(write(tmp_path, "# " + "x" * 10_000_000))
    with pytest.raises(FileError, match="TOML"):
        read_problem(write(tmp_path, "a = " + "[" * 5000 + "]" * 5000))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="TOML"):
        read_problem(tmp_path / "binary.toml")
    with pytest.raises(FileError, match="does not exist"):
        read_problem(tmp_path / "nothing.toml")


@pytest.mark.parametrize("name", [name for name in ZOO if describe(zoo(name)) is not None])
def test_text_problems_survive_a_round_trip(name):
    problem = zoo(name)
    again = problem_from(describe(problem))
    assert again.fields == problem.fields
    assert [term.expression.formula for term in again.terms] == [term.expression.formula for term in problem.terms]
    assert (again.domain.bounds == problem.domain.bounds).all()


@pytest.fixture
def run():
    app = typer.Typer()
    register(app)
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, list(map(str, arguments)))


def test_the_command_solves_a_file_and_writes_three_files(run, tmp_path):
    result = run("solve", write(tmp_path, GOOD), "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"problem.npz", "problem.png", "problem.txt"}
    assert "relative L² error of u" in (tmp_path / "out" / "problem.txt").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::rannpde.pde.solution.ConvergenceWarning")
def test_the_command_fails_loudly_when_it_did_not_converge(run, tmp_path):
    text = example("burgers").replace("nu = 0.05", "nu = 0.003").replace("width = 300", "width = 20\nscale = 1.0")
    result = run("solve", write(tmp_path, text), "--out", tmp_path / "out")
    assert result.exit_code == 3
    assert "DID NOT CONVERGE" in result.output


def test_examples_are_listed_and_copied(run, tmp_path):
    listing = run("examples")
    assert all(name in listing.output for name in examples())
    assert run("examples", "burgers", "--to", tmp_path).exit_code == 0
    assert (tmp_path / "burgers.toml").read_text(encoding="utf-8") == example("burgers")
    assert run("examples", "burgers", "--to", tmp_path).exit_code == 1
    assert run("examples", "burgers", "--to", tmp_path, "--force").exit_code == 0
    assert run("examples", "burgrs").exit_code == 2


def test_wrong_input_ends_with_one_message_and_no_traceback(run, tmp_path):
    result = run("solve", write(tmp_path, GOOD.replace("u_xx = -u", "u_xx = u.__class__")), "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "column 9" in result.output
    assert not (tmp_path / "out").exists()
