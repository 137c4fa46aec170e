"""From chapters to a folder: run what is missing, draw, write the report, say what it shows."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from rannpde.errors import FileError
from rannpde.io import prepare_folder, write_whole
from rannpde.plotting.style import style
from rannpde.studies.cell import StudyCell
from rannpde.studies.paper.findings import findings
from rannpde.studies.run.records import Record, Records
from rannpde.studies.run.runner import missing_cells, run_cells
from rannpde.studies.show import report
from rannpde.studies.show.analysis import collect
from rannpde.studies.show.chapter import Chapter, Table
from rannpde.studies.show.figures import render_figure, write_figure
from rannpde.studies.show.opening import opening
from rannpde.studies.show.progress import Display, title

RECORDS_FILE = "records.sqlite"
TERMINAL_COLUMNS = ("study", "curve", "slope", "95 % interval", "straight from", "reading")
"""Columns of the slope table that fit a terminal."""


@dataclass(frozen=True)
class Reproduction:
    """The files of a finished reproduction, and its failures (name of the cell, reason)."""

    page: Path
    records: Path
    figures: tuple[Path, ...]
    slopes: Table
    failures: tuple[tuple[str, str], ...]


def reproduce(
    chapters: Sequence[Chapter],
    folder: Path,
    *,
    heading: str,
    command: str,
    workers: int = 1,
    threads: int = 1,
    scheduler: str | None = None,
    console: Console | None = None,
) -> Reproduction:
    """Run the missing cells of the chapters, then write figures, slopes.csv and report.html into the folder.

    workers, threads, scheduler : as in ``run_cells``
    """
    console = console or Console(quiet=True)
    folder = prepare_folder(Path(folder))
    cells = list({cell.key: cell for chapter in chapters for cell in chapter.study.cells}.values())
    with Records(folder / RECORDS_FILE) as records:
        for name, count in records.drop_damaged().items():
            _warn(console, f"{count} damaged rows of study {name!r} in {records.path}; their cells run again")
        with Display(len(cells), missing_cells(cells, records), console) as display:
            failed = run_cells(
                cells, records, workers=workers, threads=threads, scheduler=scheduler, notice=display.notice
            )
        finished = records.find(cells)
    failures = tuple((title(cell), failure.reason) for cell, failure in failed)
    lost = len(cells) - len(finished) - len(failures)
    if lost:  # another program wrote into the file, or the disk forgets
        raise FileError(f"{lost} finished cells are not in {folder / RECORDS_FILE}; run again with another --out")
    sections: list[report.Section] = []
    figures: list[Path] = []
    for chapter in chapters:
        series = collect(chapter.study, finished)
        with style():
            drawings = chapter.draw(series) if series else []
        rendered = [(drawing, render_figure(drawing)) for drawing in drawings]
        for drawing, formats in rendered:
            figures += write_figure(drawing.name, formats, folder / "figures")
        sections.append(report.Section(chapter, series, [(drawing, formats["svg"]) for drawing, formats in rendered]))
    first = opening(sections, len(failures))
    environments = _environments(finished, cells)
    page = report.Page(
        heading, command, sections, failures, environments, findings(sections), first.sentences, first.figures
    )
    slopes = report.slope_table(sections)
    write_whole(folder / "slopes.csv", _csv(slopes))
    path = write_whole(folder / "report.html", report.render_report(page))
    return Reproduction(path, folder / RECORDS_FILE, tuple(figures), slopes, failures)


def show(product: Reproduction, console: Console) -> None:
    """The table of slopes, the failures, and where everything is."""

    rows = [
        tuple(row[product.slopes.head.index(name)] for name in TERMINAL_COLUMNS)
        for row in (product.slopes.head, *product.slopes.rows)
    ]
    lengths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows if product.slopes.rows else []):
        _say(
            console,
            "  ".join(cell.ljust(length) for cell, length in zip(row, lengths, strict=True)).rstrip(),
            "bold" * (number == 0),
        )
    for name, reason in product.failures:
        _say(console, f"failed: {name}: {reason}", "red")
    if product.figures:
        _say(console, f"figures: {product.figures[0].parent} ({len(product.figures)} files)")
    _say(console, f"records: {product.records}")
    _say(console, f"report:  {product.page}")


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def _warn(console: Console, text: str) -> None:
    _say(console, f"warning: {text}", "red")


def _environments(finished: dict[str, Record], cells: Sequence[StudyCell]) -> list[dict[str, object]]:
    """The different environments behind the records, in order of appearance."""
    different: list[dict[str, object]] = []
    for cell in cells:
        facts = dict(finished[cell.key].environment) if cell.key in finished else None
        if facts is not None and facts not in different:
            different.append(facts)
    return different


def _csv(table: Table) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.head)
    writer.writerows(table.rows)
    return text.getvalue()
