"""One case in a process of its own: solve, judge, draw, write the record; then the classical solver, and write again.

python -m benchmarks.harness.child '{"case": "wave-1d", "folder": "out", "tol": 1e-6, "seconds": 60, "small": false}'
"""

from __future__ import annotations

import json
import sys
import time
import traceback
import warnings
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.case import Case, judged, relative_error
from benchmarks.harness.record import BenchRecord
from benchmarks.harness.reference_solution import ReferenceSolution
from benchmarks.harness.settings import Settings
from benchmarks.pinnacle.table import CASES
from rannpde.arrays import Array
from rannpde.errors import InputError
from rannpde.pde.solution import Solution
from rannpde.pde.solve import solve
from rannpde.pde.zoo import zoo
from rannpde.studies.run.environment import facts

PICTURE = 80
"""Dots per inch: twenty pictures are part of one page."""
LONGEST = 2000
"""Characters of a message that a record keeps."""


def peak_memory() -> float | None:
    """MiB that this process has held at most; None where the system does not tell."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux hands the largest memory of a parent down to its children where one asks for its usage
        return (
            int(next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM"))) / 2**10
        )
    try:
        import resource  # not on Windows
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def solved(case: Case, settings: Settings, folder: Path) -> tuple[BenchRecord, ReferenceSolution | None]:
    """Our part of the row; the reference solution goes on to the classical solver."""
    record = BenchRecord(case.name, settings.table, "crashed", environment=facts())
    clock, processor = time.perf_counter(), time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the record says whether it converged
            problem = case.problem(settings.small)
            solution = solve(problem, tol=settings.tol, seconds=settings.seconds)
    except InputError as refusal:
        return replace(record, outcome="refused", message=str(refusal)[:LONGEST]), None
    except Exception:  # whatever it is, the row says so and the table goes on
        return replace(record, message=traceback.format_exc()[-LONGEST:]), None
    record = replace(
        record,
        outcome="solved",
        message=solution.reason,
        estimate=solution.estimate,
        converged=solution.converged,
        method=solution.method.name,
        seconds=time.perf_counter() - clock,  # with what it takes to understand the statement
        processor_seconds=time.process_time() - processor,
        memory=peak_memory(),
        columns=sum(solution.widths),
    )
    reference = case.judged_at(problem, settings.small)
    values, estimate = judged(case, solution, reference.points)
    error = relative_error(values, reference.values, case.fields)
    record = replace(
        record,
        error=error,
        estimate=estimate,
        accuracy=reference.accuracy,
        message=solution.reason + _unknown(values, reference, case),
    )
    record.write(folder)
    return replace(record, picture=_drawn(solution, folder, case.name)), reference


def _unknown(values: Array, reference: ReferenceSolution, case: Case) -> str:
    """What a march that ended early knows; nothing where it knows all."""
    known = np.isfinite(values).all(axis=1)
    if known.all():
        return ""
    part = relative_error(values[known], reference.values[known], case.fields) if known.any() else float("nan")
    return f"; it is known at {known.mean():.0%} of the points, where its error is {part:.1e}"


def _drawn(solution: Solution, folder: Path, name: str) -> str:
    """The file name of the picture; empty where it could not be drawn."""
    try:
        solution.plot().savefig(folder / f"{name}.png", dpi=PICTURE)
    except Exception:  # a picture is worth less than the row
        return ""
    return f"{name}.png"


def with_reference_solver(case: Case, record: BenchRecord, reference: ReferenceSolution) -> BenchRecord:
    """The row with the classical solver's part."""
    solver = case.solver
    if solver is None:
        return record
    record = replace(record, solver=solver.label)
    if solver.needs and find_spec(solver.needs) is None:
        return replace(record, solver_message=f"needs pip install {solver.needs}")
    begin = time.perf_counter()
    try:
        found = solver.make()
        seconds = time.perf_counter() - begin
        error = relative_error(found(reference.points), reference.values, case.fields)
    except Exception as failure:  # theirs is theirs; ours is kept
        return replace(record, solver_message=f"{type(failure).__name__}: {failure}"[:LONGEST])
    return replace(record, solver_error=error, solver_seconds=seconds)


def run(table: dict[str, Any]) -> None:
    """The case, with these settings; its record in the folder, twice."""
    case, folder = CASES[table["case"]], Path(table["folder"])
    settings = Settings(table["tol"], table["seconds"], table["small"])
    solve(zoo("heat"), tol=1e-3)  # imports and first calls are not counted
    record, reference = solved(case, settings, folder)
    record.write(folder)
    if reference is not None and not settings.small:
        with_reference_solver(case, record, reference).write(folder)


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
