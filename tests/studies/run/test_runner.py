"""Running: only what is missing, in any number of processes, through failures, deaths and kills."""

from __future__ import annotations

import os
import re
import runpy
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from rannpde.errors import InputError
from rannpde.studies.cell import Sampling
from rannpde.studies.curves import FittedCurve
from rannpde.studies.layer import Layer
from rannpde.studies.run.records import Records
from rannpde.studies.run.runner import Failure, attempt, missing_cells, run_cells
from rannpde.studies.study import Study
from rannpde.studies.target import GaussianBump, NavierStokes, PorousMedium

SMALL = Sampling(points_per_width=10, test_points=300)
STUDY = Study(
    "tiny",
    PorousMedium(1),
    Layer(scale=5.0),
    widths=(8, 16),
    seeds=(0, 1),
    sampling=SMALL,
    curves=(FittedCurve("d = 1"), FittedCurve("d = 2", PorousMedium(2)), FittedCurve("wave", NavierStokes())),
)


@dataclass(frozen=True)
class Difficult(GaussianBump):
    """Cannot be fitted: its values do what ``manner`` says."""

    manner: str = "raise"

    def values(self, points: np.ndarray) -> np.ndarray:
        if self.manner == "die":
            os._exit(9)
        if self.manner == "nan":
            return np.full(len(points), np.nan)
        raise RuntimeError("no luck")


def errors(path: Path, study: Study) -> list[float]:
    with Records(path) as records:
        found = records.find(study.cells)
        return [found[cell.key].result.error for cell in study.cells]


def test_only_missing_cells_run_and_the_result_is_the_same(tmp_path: Path) -> None:
    seen: list[str] = []
    with Records(tmp_path / "whole") as records:
        assert run_cells(STUDY.cells, records, notice=lambda cell, _: seen.append(cell.key)) == []
    assert len(seen) == len(STUDY.cells)
    seen.clear()
    with Records(tmp_path / "parts") as records:
        run_cells(STUDY.cells[:5], records)
        assert len(missing_cells(STUDY.cells, records)) == len(STUDY.cells) - 5
        run_cells(STUDY.cells, records, notice=lambda cell, _: seen.append(cell.key))
        run_cells(STUDY.cells, records, notice=lambda cell, _: seen.append("again"))
    assert seen == [cell.key for cell in STUDY.cells[5:]]
    assert errors(tmp_path / "parts", STUDY) == pytest.approx(errors(tmp_path / "whole", STUDY), rel=1e-12)


@pytest.mark.slow
def test_workers_do_not_change_the_results(tmp_path: Path) -> None:
    for workers in (1, 2):
        with Records(tmp_path / str(workers)) as records:
            assert run_cells(STUDY.cells, records, workers=workers) == []
    # the same draws and one thread each; what may differ is the alignment of arrays, hence the last bits of sums
    assert errors(tmp_path / "2", STUDY) == pytest.approx(errors(tmp_path / "1", STUDY), rel=1e-12)


def test_a_cell_listed_twice_runs_once(tmp_path: Path) -> None:
    seen: list[str] = []
    with Records(tmp_path / "r") as records:
        run_cells([*STUDY.cells[:2], *STUDY.cells[:2]], records, notice=lambda cell, _: seen.append(cell.key))
    assert len(seen) == 2


def difficult(manner: str) -> Study:
    curves = (FittedCurve("good"), FittedCurve("bad", Difficult(1, manner=manner), widths=(8,)))
    return replace(STUDY, target=GaussianBump(1), seeds=(0,), curves=curves)


@pytest.mark.parametrize(
    ("manner", "reason"), [("raise", r"RuntimeError: no luck \(.*line"), ("nan", "values has a NaN")]
)
def test_failures_are_told_and_the_others_finish(tmp_path: Path, manner: str, reason: str) -> None:
    study = difficult(manner)
    with Records(tmp_path / "r") as records:
        failures = run_cells(study.cells, records)
        assert {cell.curve for cell, _ in failures} == {"bad"}
        assert len(failures) == 1
        assert all(re.search(reason, failure.reason) for _, failure in failures)
        assert [cell.curve for cell in missing_cells(study.cells, records)] == ["bad"]


def test_a_process_that_dies_takes_no_other_cell_with_it(tmp_path: Path) -> None:
    study = difficult("die")
    with Records(tmp_path / "r") as records:
        failures = run_cells(study.cells, records, workers=2)
        assert [cell.curve for cell, _ in failures] == ["bad"]
        assert all("died twice" in failure.reason for _, failure in failures)
        assert len(records.keys()) == 2


def test_an_attempt_never_raises() -> None:
    assert isinstance(attempt(difficult("raise").cells[-1]), Failure)


@pytest.mark.parametrize("name", ["workers", "threads"])
@pytest.mark.parametrize("value", [0, -1, 1.5])
def test_wrong_numbers_of_workers_are_refused(tmp_path: Path, name: str, value: float) -> None:
    with Records(tmp_path / "r") as records, pytest.raises(InputError, match=name):
        run_cells(STUDY.cells, records, **{name: value})


SCRIPT = """
import sys
import time
from pathlib import Path
from rannpde.studies.layer import Layer
from rannpde.studies.target import PorousMedium
from rannpde.studies.run.records import Records
from rannpde.studies.run.runner import run_cells
from rannpde.studies.cell import Sampling
from rannpde.studies.study import Study

STUDY = Study("kill", PorousMedium(3), Layer(scale=5.0), widths=(16, 32), seeds=tuple(range(16)),
              sampling=Sampling(test_points=300))
done = []


def notice(*_):
    done.append(1)
    if len(done) == 4:
        print("four", flush=True)
    if len(done) == 24:  # never finished, however late the signal comes
        time.sleep(600)


if __name__ == "__main__":
    with Records(Path(sys.argv[1])) as records:
        run_cells(STUDY.cells, records, workers=int(sys.argv[2]), notice=notice)
"""


def finished(path: Path) -> int:
    """Rows in the file."""
    # SQLite may have to recover what a killed process left before it can read: hence the timeout
    with closing(sqlite3.connect(path, timeout=5)) as connection:
        return int(connection.execute("SELECT count(*) FROM cells").fetchone()[0])


def children(pid: int) -> list[int]:
    listing = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in listing.read_text().split()] if listing.exists() else []


def alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to see the processes")
@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_killed_in_the_middle_and_run_again(tmp_path: Path, workers: int) -> None:
    """kill -9 of a real process: nothing is lost, nothing is doubled, the sum is that of an undisturbed run."""
    script, path = tmp_path / "run.py", tmp_path / "records.sqlite"
    script.write_text(SCRIPT)
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen([sys.executable, str(script), str(path), str(workers)], stdout=subprocess.PIPE, text=True)
        )
        stack.callback(process.kill)
        assert process.stdout is not None
        assert process.stdout.readline() == "four\n"
        helpers = children(process.pid)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert bool(helpers) == (workers > 1)
    deadline = time.monotonic() + 120
    while any(map(alive, helpers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, helpers)), "processes outlive their parent"
    kept = finished(path)
    assert 4 <= kept <= 24
    study: Study = runpy.run_path(str(script))["STUDY"]
    seen: list[str] = []
    with Records(path) as records:
        assert run_cells(study.cells, records, notice=lambda cell, _: seen.append(cell.key)) == []
    assert len(seen) == len(study.cells) - kept
    with Records(tmp_path / "other") as records:
        run_cells(study.cells, records)
    assert errors(path, study) == pytest.approx(errors(tmp_path / "other", study), rel=1e-12)
