"""The whole suite: choose cases, run what is missing, write the table and the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.case import Case
from benchmarks.harness.page import markdown, render, result_table
from benchmarks.harness.record import BenchRecord
from benchmarks.harness.run import run_cases, stored_record
from benchmarks.harness.settings import settings_for
from benchmarks.pinnacle.table import CASES
from rannpde.errors import choose
from rannpde.io import prepare_folder, write_whole
from rannpde.studies.show.chapter import Table


@dataclass(frozen=True)
class BenchPages:
    """What was left in the folder: the page, the table in Markdown, and the table itself."""

    page: Path
    markdown: Path
    table: Table
    records: tuple[BenchRecord, ...]


def chosen(names: Sequence[str] | None) -> list[Case]:
    """The cases of these names, all when none is given; an unknown name is answered with the nearest.

    >>> [case.title for case in chosen(["wave-1d"])]
    ['Wave 1d-C']
    """
    return [choose("case", name, CASES) for name in names or CASES]


def run_suite(
    names: Sequence[str] | None,
    folder: Path,
    *,
    command: str,
    tol: float | None = None,
    seconds: float | None = None,
    small: bool = False,
    again: bool = False,
    report: Callable[[BenchRecord, bool], None] = lambda record, stored: None,
) -> BenchPages:
    """Run the missing cases and write ``report.html`` and ``table.md``; Ctrl-C writes them of what is done.

    The pages tell of every case that the folder has with these settings, also of those not named now.
    """
    cases, folder = chosen(names), prepare_folder(folder)
    for case in cases:  # wrong settings are refused before any work
        settings_for(case, tol, seconds, small)
    try:
        run_cases(cases, folder, tol=tol, seconds=seconds, small=small, again=again, report=report)
    finally:
        found = [
            (case, stored_record(case, settings_for(case, tol, seconds, small), folder)) for case in CASES.values()
        ]
        done = [(case, record) for case, record in found if record is not None]
        product = _written([case for case, _ in done], [record for _, record in done], folder, command)
    return product


def _written(cases: Sequence[Case], records: Sequence[BenchRecord], folder: Path, command: str) -> BenchPages:
    table = result_table(cases, records)
    page = write_whole(folder / "report.html", render(cases, records, folder, command))
    return BenchPages(page, write_whole(folder / "table.md", markdown(table)), table, tuple(records))
