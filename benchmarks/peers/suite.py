"""Run every library on every problem that it is for, and put the rows side by side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.harness.case import relative_error
from benchmarks.harness.record import BenchRecord, read_record
from benchmarks.peers import programs
from rannpde.arrays import Array, ArrayMap
from rannpde.errors import choose, positive_number
from rannpde.io import prepare_folder, write_whole
from rannpde.pde.zoo.cole_hopf import ColeHopf
from rannpde.studies.run.environment import facts

FRESH = 4000
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""The same for all: libraries that spin on several threads lose most of their time where cores are shared."""
GRACE = 90.0
"""Seconds for imports and compilation beyond the time allowed."""


@dataclass(frozen=True)
class Task:
    """A problem that libraries are compared on: title, points where they are judged, and the reference solution."""

    title: str
    points: Array
    reference: ArrayMap


def tasks() -> dict[str, Task]:
    """Burgers with a sharp front, a non-linear Poisson equation, and a large fit.

    >>> {name: task.points.shape for name, task in tasks().items()}
    {'burgers': (4000, 2), 'square': (4000, 2), 'fit': (4000, 2)}
    """
    draws = np.random.default_rng(99).random((FRESH, 2))
    moments = np.resize(programs.MOMENTS, FRESH)
    front = np.column_stack([moments, 2 * draws[:, 1] - 1])
    return {
        "burgers": Task("Burgers, ν = 0.01/π", front, ColeHopf(programs.NU)),
        "square": Task("-Δu + u² = f, unit square", draws, lambda p: programs.square_exact(*p.T)),
        "fit": Task("fit of 500,000 points, two outputs", draws * [1.0, 4.0] - [0.0, 2.0], programs.fit_values),
    }


def run_peers(
    names: Sequence[str] | None, folder: Path, *, python: str, seconds: float, again: bool = False
) -> Iterator[str]:
    """A line for each row, as it is found; ``table.md`` in the folder at the end. Finished rows are kept."""
    known = tasks()
    wanted = {name: choose("problem", name, known) for name in names or known}
    positive_number("seconds", seconds)
    folder = prepare_folder(folder)
    lines = ["| problem | library | error | seconds | what was done |", "|---|---|---|---|---|"]
    yield from lines
    for name, task in wanted.items():
        for program in (one for one in programs.PROGRAMS if one.endswith(f" {name}")):
            record = _record(program, task, folder, python, seconds, again)
            error = "–" if record.error is None else f"{record.error:.1e}"
            spent = "–" if record.seconds is None else f"{record.seconds:.2f}"
            lines.append(f"| {task.title} | {record.method} | {error} | {spent} | {record.message} |")
            yield lines[-1]
    write_whole(folder / "table.md", "\n".join([*lines, ""]))


def _record(program: str, task: Task, folder: Path, python: str, seconds: float, again: bool) -> BenchRecord:
    case = program.replace(" ", "-").lower()
    settings = {"seconds": seconds, "python": python, "threads": 1}
    record = None if again else read_record(folder, case)
    if record is None or record.settings != settings:
        record = run_isolated(program, case, task, settings)
        record.write(folder)
    return record


def run_isolated(program: str, case: str, task: Task, settings: dict[str, object]) -> BenchRecord:
    """One library on one problem, in a process of its own; a row also where it is missing, fails, or does not end."""
    library, (distribution, _) = program.split(" ")[0], programs.PROGRAMS[program]
    interpreter = sys.executable if distribution == "rannpde" else str(settings["python"])
    seconds = float(str(settings["seconds"]))
    row = BenchRecord(case, settings, "crashed", method=library, environment=facts())
    with tempfile.TemporaryDirectory() as place:
        points, values = Path(place) / "points.npy", Path(place) / "values.npy"
        np.save(points, task.points)
        command = [interpreter, programs.__file__, program, str(points), str(values), str(seconds)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=seconds + GRACE, check=False, env=os.environ | THREADS
            )
        except subprocess.TimeoutExpired:
            return replace(row, outcome="overran", message=f"no end after {seconds + GRACE:.0f} s")
        except OSError as refusal:
            return replace(row, message=f"{interpreter} cannot be run: {refusal.strerror}")
        if done.returncode:
            return _failed(row, done.stderr, distribution)
        message = json.loads(done.stdout.splitlines()[-1])
        error = relative_error(np.load(values), task.reference(task.points))
    done_so = f"{message['done']}; version {message['version']}"
    return replace(row, outcome="solved", message=done_so, error=error, seconds=float(message["seconds"]))


def _failed(row: BenchRecord, stderr: str, distribution: str) -> BenchRecord:
    last = (stderr.strip().splitlines() or ["no message"])[-1]
    missing = "PackageNotFoundError" in stderr
    message = f"not installed: pip install {distribution}" if missing else last[:200]
    return replace(row, outcome="waits" if missing else "crashed", message=message)
