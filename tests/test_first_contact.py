"""What a newcomer meets first: the bare command, ``new``, ``doctor``, the shell's completion."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rannpde.cli import build
from rannpde.pde.problem.toml import read_problem


@pytest.fixture
def run():
    runner, app = CliRunner(), build()
    return lambda *arguments, answers="": runner.invoke(app, list(map(str, arguments)), input=answers)


def test_the_bare_command_names_three_things_to_try(run):
    result = run()
    assert result.exit_code == 0
    for command in ("rannpde examples burgers", "rannpde new", "rannpde reproduce --quick"):
        assert command in result.output


BURGERS = [
    "u_t + u*u_x = nu*u_xx",
    "",
    "",
    "0.1",
    "0, 1",
    "-1, 1",
    "t=0",
    "u = -sin(pi*x)",
    "boundary",
    "u = 0",
    "1e-4",
]


def test_new_writes_a_file_that_solves(run, tmp_path):
    file = tmp_path / "own.toml"
    result = run("new", file, answers="\n".join(BURGERS) + "\n")
    assert result.exit_code == 0, result.output
    problem, settings = read_problem(file)
    assert problem.fields == ("u",)
    assert problem.parameters == {"nu": 0.1}
    assert settings == {"tol": 1e-4}
    solved = run("solve", file, "--out", tmp_path / "out", "--quiet")
    assert solved.exit_code == 0, solved.output
    assert (tmp_path / "out" / "own.html").exists()
    again = run("new", file)
    assert again.exit_code == 1
    assert "--force" in again.output


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        (["u_t + = 3", *BURGERS], "expected a number"),
        (["", *BURGERS], "an equation is needed"),
        ([*BURGERS[:3], "many", *BURGERS[3:]], "'many' is unknown"),
        ([*BURGERS[:5], "1, -1", *BURGERS[5:]], "lower < upper"),
        ([*BURGERS[:6], "t=5", *BURGERS[6:]], "outside the domain"),
        ([*BURGERS[:6], "periodic t", *BURGERS[6:]], "'t' is none of x"),
        ([*BURGERS[:7], "u = w", *BURGERS[7:]], "'w' is unknown"),
        ([*BURGERS[:10], "7", *BURGERS[10:]], "below 1"),
    ],
)
def test_new_checks_every_answer_and_asks_again(answers, told, run, tmp_path):
    result = run("new", tmp_path / "own.toml", answers="\n".join(answers) + "\n")
    assert told in result.output
    assert result.exit_code == 0, result.output
    read_problem(tmp_path / "own.toml")


def test_new_says_what_is_still_open(run, tmp_path):
    result = run("new", tmp_path / "own.toml", answers="\n".join(BURGERS) + "\n")
    assert "still open: the field 'u' is of order 2 in x" in result.output


@pytest.mark.parametrize(
    ("answers", "equations", "conditions"),
    [
        (["-laplace(u) = 1", "", "x y", "0 1", "0 pi", "boundary", "u = 0", ""], 1, {"walls"}),
        (["u_t = v_xx", "v_t = -u_xx", "", "", "0, 1", "0, 2*pi", "t=0", "u = 1", "t=0", "v = 0", "periodic x", ""],
         2, {"start", "start_2", "circle"}),
    ],
    ids=["steady", "system on a ring"],
)  # fmt: skip
def test_new_knows_other_kinds_of_problems(answers, equations, conditions, run, tmp_path):
    result = run("new", tmp_path / "own.toml", answers="\n".join(answers) + "\n")
    assert result.exit_code == 0, result.output
    problem, settings = read_problem(tmp_path / "own.toml")
    assert len(problem.equations) == equations
    assert set(problem.conditions) == conditions
    assert settings == {"tol": 1e-6}


def test_new_without_answers_writes_nothing(run, tmp_path):
    result = run("new", tmp_path / "own.toml", answers="u_t = u_xx\n")
    assert result.exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_doctor_solves_and_judges(run, monkeypatch):
    monkeypatch.setattr("rannpde.studies.run.environment.examine", list)
    monkeypatch.setattr("rannpde.cli.doctor.SECONDS", 1e9)
    assert run("doctor").exit_code == 0
    monkeypatch.setattr("rannpde.cli.doctor.SECONDS", 0.0)
    slow = run("doctor")
    assert slow.exit_code == 1
    assert "digits  heat equation to" in slow.output
    assert "! slow" in slow.output
    monkeypatch.setattr("rannpde.pde.solution.Solution.errors", lambda self: {"u": 1e-3})
    assert "digits are lost" in run("doctor").output


@pytest.mark.parametrize(("line", "completed"), [("examples bur", {"burgers", "burgers_inverse"}), ("doc", {"doctor"})])
def test_the_shell_completes(line, completed):
    words = f"rannpde {line}"
    asked = {"_RANNPDE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    code = "import sys; sys.argv = ['rannpde']; from rannpde.cli import main; main()"
    source = str(Path(__file__).parents[1] / "src")
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | asked | {"PYTHONPATH": source}, capture_output=True, text=True
    )
    assert set(done.stdout.split()) == completed, done.stderr
