"""Run cases one after the other, each in a process of its own, and keep what was done."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.harness.case import Case
from benchmarks.harness.record import BenchOutcome, BenchRecord, read_record
from benchmarks.harness.settings import Settings, settings_for
from rannpde.errors import FileError
from rannpde.studies.run.environment import facts

ROOT = Path(__file__).parents[2]
"""Where ``benchmarks`` can be imported from."""
GRACE = 240.0
"""Seconds beyond twice the time allowed after which a case is ended: the classical solver takes some of them."""
TAIL = 1500
"""Characters of a crash's last words that are kept."""


def run_cases(
    cases: Sequence[Case],
    folder: Path,
    *,
    tol: float | None = None,
    seconds: float | None = None,
    small: bool = False,
    again: bool = False,
    report: Callable[[BenchRecord, bool], None] = lambda record, stored: None,
) -> list[BenchRecord]:
    """The records of all cases; those that are in the folder with the same settings are not run again.

    again : run all; report : called with every record, and whether it was there before
    """
    records = []
    for case in cases:
        settings = settings_for(case, tol, seconds, small)
        stored = None if again else stored_record(case, settings, folder)
        record = stored or run_isolated(case, settings, folder)
        report(record, stored is not None)
        records.append(record)
    return records


def stored_record(case: Case, settings: Settings, folder: Path) -> BenchRecord | None:
    """The record in the folder, if it is whole and was made with these settings."""
    try:
        record = read_record(folder, case.name)
    except FileError:
        return None
    return record if record is not None and record.settings == settings.table else None


def run_isolated(case: Case, settings: Settings, folder: Path, grace: float = GRACE) -> BenchRecord:
    """Run a case in a process of its own; one that crashes or does not end leaves a record that says so.

    What the process had written before it ended, our part of the row, is kept.
    """
    (folder / f"{case.name}.json").unlink(missing_ok=True)
    table = {"case": case.name, "folder": str(folder.resolve())} | settings.table
    command = [sys.executable, "-m", "benchmarks.harness.child", json.dumps(table)]
    limit = 2 * settings.seconds + grace
    outcome: BenchOutcome = "crashed"
    # a session of its own: Ctrl-C reaches us alone, and we end it
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            _, last_words = process.communicate(timeout=limit)
            fault = f"ended with code {process.returncode}: {last_words[-TAIL:].strip()}"
        except subprocess.TimeoutExpired:
            outcome, fault = "overran", f"no end after {limit:.0f} s, of which {settings.seconds:.0f} s were allowed"
            process.kill()
        except BaseException:  # Ctrl-C: what was done is kept, this case is not
            process.kill()
            (folder / f"{case.name}.json").unlink(missing_ok=True)
            raise
    record = stored_record(case, settings, folder)
    if record is None:
        record = BenchRecord(case.name, settings.table, outcome, fault, environment=facts())
        record.write(folder)
    return record
