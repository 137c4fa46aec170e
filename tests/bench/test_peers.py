"""Peers: the problems are those of the zoo, a missing or broken library is a row that says so."""

import shutil
import sys
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

import rannpde as rp
from benchmarks.paper import cells_of, compared, numpy_whole
from benchmarks.peers import programs
from benchmarks.peers.suite import run_isolated, run_peers, tasks

SETTINGS = {"seconds": 20.0, "python": sys.executable}


def test_the_square_is_that_of_the_zoo():
    problem, points = rp.zoo("nonlinear_poisson"), tasks()["square"].points[:50]
    exact = problem.exact_solution
    assert programs.square_exact(*points.T) == pytest.approx(exact(points)[:, 0], rel=1e-13)
    bend = exact.derivative(points, (2, 0)) + exact.derivative(points, (0, 2))
    left = -bend[:, 0] + exact(points)[:, 0] ** 2
    assert programs.square_source(*points.T) == pytest.approx(left, rel=1e-12)


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_every_program_has_its_task(name):
    assert name.split(" ")[1] in tasks()


def test_a_peer_that_is_not_installed_is_a_row():
    if find_spec("pyrfm") is not None:
        pytest.skip("it is installed here")
    row = run_isolated("pyRFM square", "pyrfm-square", tasks()["square"], SETTINGS)
    assert (row.outcome, row.message) == ("waits", "not installed: pip install pyrfm")


def test_a_python_that_is_not_there_is_a_row():
    row = run_isolated("pyRFM square", "pyrfm-square", tasks()["square"], SETTINGS | {"python": "/no/such/python"})
    assert row.outcome == "crashed"
    assert "/no/such/python cannot be run" in row.message


def test_a_peer_that_fails_says_its_last_word():
    silent = shutil.which("false")
    if silent is None:
        pytest.skip("this system has no command that fails")
    row = run_isolated("pyRFM square", "x", tasks()["square"], SETTINGS | {"python": silent})
    assert (row.outcome, row.message) == ("crashed", "no message")


@pytest.mark.slow
def test_ours_is_one_of_the_rows_and_is_kept(tmp_path):
    lines = list(run_peers(["square"], tmp_path, python="/no/such/python", seconds=60.0))
    ours = next(line for line in lines if "| rannpde |" in line)
    assert float(ours.split("|")[3]) < 1e-9
    assert sum("cannot be run" in line for line in lines) == 2
    assert list(run_peers(["square"], tmp_path, python="/no/such/python", seconds=60.0)) == lines
    assert (tmp_path / "table.md").read_text("utf-8").splitlines() == lines


def test_the_paper_part_agrees_with_numpy():
    """A small cell: the same fit, so the errors differ by rounding times the condition."""
    cell = replace(min(cells_of("quick"), key=lambda one: one.width), width=20)
    (width, *seconds), line = compared(cell)
    assert width == cell.width
    assert min(seconds) > 0
    assert float(line.split()[-1]) < 1e-9


def test_the_law_of_numpy_is_summed_over_all_cells():
    cells = cells_of("quick")
    widths = np.array([10.0, 20.0, 40.0])
    law = lambda n: 1e-3 * n + 2e-5 * n**2 + 3e-7 * n**3  # noqa: E731
    assert numpy_whole(cells, widths, law(widths)) == pytest.approx(sum(law(cell.width) for cell in cells), rel=1e-9)
