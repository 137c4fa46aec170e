"""The harness: processes that crash or overrun leave rows, what is done is kept, the page holds everything."""

import json
import subprocess
from dataclasses import replace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from benchmarks.harness import run as harness
from benchmarks.harness.case import ReferenceSolver
from benchmarks.harness.child import _unknown, peak_memory, with_reference_solver
from benchmarks.harness.page import markdown, number, result_table
from benchmarks.harness.record import BenchRecord, read_record
from benchmarks.harness.reference_solution import ReferenceSolution
from benchmarks.harness.settings import Settings, settings_for
from benchmarks.harness.verdicts import better_solver, verdict
from benchmarks.peers import __main__ as peers_program
from benchmarks.pinnacle import __main__ as pinnacle_program
from benchmarks.pinnacle.suite import run_suite
from benchmarks.pinnacle.table import CASES
from rannpde.errors import FileError, InputError

WAVE = CASES["wave-1d"]
SOLVED = BenchRecord("wave-1d", {"tol": 1e-10}, "solved", error=1e-11, estimate=2e-11, converged=True, seconds=0.5)


def test_a_record_comes_back_as_it_was(tmp_path):
    record = replace(SOLVED, message="ünd “so”", columns=7)
    record.write(tmp_path)
    assert read_record(tmp_path, "wave-1d") == record
    assert read_record(tmp_path, "heat-nd") is None


def test_numbers_that_are_none_are_not_known(tmp_path):
    replace(SOLVED, error=float("nan"), estimate=float("inf")).write(tmp_path)
    found = read_record(tmp_path, "wave-1d")
    assert (found.error, found.estimate) == (None, None)


@pytest.mark.parametrize("text", ["{}", "[1]", "no JSON", '{"case": "wave-1d"}', "\x00"])
def test_a_damaged_record_is_refused(tmp_path, text):
    (tmp_path / "wave-1d.json").write_text(text)
    with pytest.raises(FileError, match="no record of a case"):
        read_record(tmp_path, "wave-1d")


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({}, "met"),
        ({"seconds": 1.5}, "accurate, late"),
        ({"error": 1e-9}, "MISSED"),
        ({"error": None}, "MISSED"),
        ({"accuracy": 1e-12}, "met"),
        (
            {"accuracy": 1e-3},
            "open: the reference solution is known to 1e-03",
        ),  # it cannot prove more
        ({"accuracy": 1e-3, "error": 2e-2}, "MISSED"),
        ({"outcome": "crashed"}, "CRASHED"),
        ({"outcome": "overran"}, "OVERRAN"),
    ],
)
def test_verdicts(change, wanted):
    assert verdict(WAVE, replace(SOLVED, **change)) == wanted


def test_a_small_version_is_judged_by_what_was_asked_of_it():
    small = replace(SOLVED, settings={"tol": 1e-4, "seconds": 20.0, "small": True}, error=1e-5)
    assert verdict(WAVE, small) == "met"
    assert verdict(WAVE, replace(small, error=1e-3)) == "MISSED"
    row = result_table([WAVE], [small]).rows[0]
    assert row[1] == "1e-04 in 20 s"
    assert row[10] == "–"  # nobody published anything of it


@pytest.mark.parametrize(
    ("ours", "theirs", "wanted"),
    [
        ((1e-11, 0.5), (1e-9, 0.1), "rannpde"),  # only we reach 1e-10
        ((1e-9, 0.5), (1e-11, 5.0), "Chebyshev"),
        ((1e-11, 0.5), (1e-12, 0.6), "rannpde"),  # both do: the faster
        ((1e-11, 0.5), (1e-11, 0.4), "Chebyshev"),
        ((1e-8, 0.5), (1e-7, 0.1), "rannpde"),  # neither: the more accurate
        ((None, None), (1e-7, 0.1), "Chebyshev"),
        ((1e-8, 0.5), (None, None), "rannpde"),
    ],
)
def test_which_solver_is_better(ours, theirs, wanted):
    record = replace(
        SOLVED,
        error=ours[0],
        seconds=ours[1],
        solver="Chebyshev, 41 nodes",
        solver_error=theirs[0],
        solver_seconds=theirs[1],
    )
    assert better_solver(WAVE, record) == wanted
    assert better_solver(WAVE, replace(record, solver="", error=None, solver_error=None)) == ""


def test_settings_are_the_goal_unless_given():
    assert settings_for(CASES["heat-2d-lt"], None, None, False) == Settings(1e-4, 180.0)
    assert settings_for(WAVE, 1e-3, 7.0, True) == Settings(1e-3, 7.0, True)
    for wrong in ({"tol": 2.0}, {"tol": -1.0}, {"seconds": 0.0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            Settings(**({"tol": 0.1, "seconds": 1.0} | wrong))


@pytest.mark.slow  # beside a case that crashes
def test_a_case_runs_in_a_process_of_its_own_and_is_kept(tmp_path):
    """The small wave: solved, judged, drawn; the second time nothing runs, and other settings are another record."""
    message = []
    listen = lambda record, kept: message.append((record.case, record.outcome, kept))  # noqa: E731
    names = ["wave-1d", "poisson-inverse"]
    other = CASES["poisson-inverse"]  # solved before, by the same settings
    replace(SOLVED, case=other.name, settings=settings_for(other, None, None, True).table).write(tmp_path)
    product = run_suite(names, tmp_path, command="rannpde <bench>", small=True, report=listen)
    again = run_suite(["wave-1d"], tmp_path, command="rannpde <bench>", small=True, report=listen)
    assert message == [("wave-1d", "solved", False), ("poisson-inverse", "solved", True), ("wave-1d", "solved", True)]
    record = next(one for one in product.records if one.case == "wave-1d")
    assert product.records == again.records  # the pages tell of what was not named this time, too
    assert record.converged
    assert record.error <= WAVE.small_tol
    assert record.method == "lines"
    assert record.memory > 50
    assert record.processor_seconds > 0
    assert harness.stored_record(WAVE, Settings(1e-9, 20.0), tmp_path) is None
    page = product.page.read_text("utf-8")
    for text in (
        "Wave 1d-C",
        "rannpde &lt;bench&gt;",
        "data:image/png;base64,",
        "u_tt = 4*u_xx",
        "scipy",
        "a(x, y)",
        '<a href="#wave-1d">',
    ):
        assert text in page
    assert 'src="http' not in page
    assert 'href="http' not in page
    assert "wrong sign" in page  # of PInv, which is among the cases
    assert "Cole–Hopf" not in page  # of a case that is not
    assert product.markdown.read_text("utf-8").count("\n") == 4


def test_a_case_that_crashes_leaves_a_row(tmp_path):
    nameless = replace(WAVE, name="no-such-case")  # the process does not know it
    record = harness.run_isolated(nameless, Settings(1e-3, 5.0), tmp_path)
    assert record.outcome == "crashed"
    assert "KeyError" in record.message
    assert json.loads((tmp_path / "no-such-case.json").read_text("utf-8"))["outcome"] == "crashed"
    assert verdict(nameless, record) == "CRASHED"


def test_a_case_that_does_not_end_is_ended(tmp_path):
    """Python alone takes longer to load than the time that is left."""
    record = harness.run_isolated(WAVE, Settings(1e-3, 1e-4, True), tmp_path, grace=0.05)
    assert record.outcome == "overran"
    assert "no end after" in record.message


def test_ctrl_c_ends_the_process_and_keeps_what_is_done(tmp_path, monkeypatch):
    SOLVED.write(tmp_path)
    ended = []

    class Interrupted(subprocess.Popen):
        def communicate(self, *arguments, **settings):
            raise KeyboardInterrupt

        def kill(self):
            ended.append(True)
            super().kill()

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        harness.run_isolated(CASES["heat-nd"], Settings(1e-3, 5.0), tmp_path)
    assert ended
    assert not (tmp_path / "heat-nd.json").exists()
    assert read_record(tmp_path, "wave-1d") == SOLVED


def test_a_reference_solver_that_is_missing_or_fails_is_told():
    reference = WAVE.judged_at(WAVE.problem())

    def fail():
        raise ZeroDivisionError("a pivot")

    missing = replace(WAVE, solver=ReferenceSolver("elements", fail, "no_such_package"))
    assert with_reference_solver(missing, SOLVED, reference).solver_message == "needs pip install no_such_package"
    assert (
        with_reference_solver(replace(WAVE, solver=ReferenceSolver("x", fail)), SOLVED, reference).solver_message
        == "ZeroDivisionError: a pivot"
    )
    assert with_reference_solver(replace(WAVE, solver=None), SOLVED, reference) == SOLVED
    assert peak_memory() is None or peak_memory() > 10


def test_a_march_that_ended_early_says_what_it_knows():
    reference = ReferenceSolution(np.zeros((4, 2)), np.ones((4, 1)), "exact")
    assert _unknown(np.ones((4, 1)), reference, WAVE) == ""
    partly = np.array([[1.1], [np.nan], [1.1], [np.nan]])
    assert _unknown(partly, reference, WAVE) == "; it is known at 50% of the points, where its error is 1.0e-01"
    assert "0% of the points" in _unknown(np.full((4, 1), np.nan), reference, WAVE)


def test_the_table_says_what_is_not_known():
    other = CASES["heat-inverse"]
    table = result_table(
        [WAVE, other], [SOLVED, BenchRecord("heat-inverse", {"small": True, "tol": 0.1, "seconds": 20.0}, "overran")]
    )
    assert {len(row) for row in table.rows} == {len(table.head)}
    assert table.rows[1][2:4] == ("–", "–")
    assert "small" in table.caption
    assert number(None) == "–"
    assert "a \\| b" in markdown(replace(table, rows=(("a | b",),)))


def test_the_programs_answer_wrong_names_and_settings(tmp_path):
    runner = CliRunner()
    pinnacle, peers = typer.Typer(), typer.Typer()
    pinnacle.command()(pinnacle_program.pinnacle)
    peers.command()(peers_program.peers)
    wrong = runner.invoke(pinnacle, ["wave-1", "--out", str(tmp_path)])
    assert wrong.exit_code == 2
    assert "did you mean 'wave-1d'" in wrong.stderr
    assert runner.invoke(pinnacle, ["--tol", "3", "--out", str(tmp_path)]).exit_code == 2
    assert runner.invoke(peers, ["chess", "--out", str(tmp_path)]).exit_code == 2
