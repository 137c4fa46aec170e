"""From chapters to a folder: run what is missing, draw, write the report, say what was found."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from rannpde.studies import report
from rannpde.studies.analysis import collect
from rannpde.studies.chapter import Chapter, Table
from rannpde.studies.figures import style
from rannpde.studies.files import prepare_folder, write_whole
from rannpde.studies.findings import findings
from rannpde.studies.progress import Display, title
from rannpde.studies.records import Record, Records
from rannpde.studies.runner import missing_cells, run_cells
from rannpde.studies.study import Cell
from rannpde.studies.vector import render, write_figure

RECORDS_FILE = "records.sqlite"
SHOWN = ("study", "curve", "slope", "95 % interval", "straight from", "reading")
"""Columns of the slope table that fit a terminal."""


@dataclass(frozen=True)
class Product:
    """What was left in the folder, and what went wrong (name of the cell, reason)."""

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
    console: Console | None = None,
) -> Product:
    """Run the missing cells of the chapters, then write figures, slopes.csv and report.html into the folder."""
    console = console or Console(quiet=True)
    folder = prepare_folder(Path(folder))
    cells = list({cell.key: cell for chapter in chapters for cell in chapter.study.cells}.values())
    with Records(folder / RECORDS_FILE) as records:
        with Display(len(cells), missing_cells(cells, records), console) as display:
            failed = run_cells(cells, records, workers=workers, threads=threads, notice=display.notice)
        found = records.find(cells)
    failures = tuple((title(cell), failure.reason) for cell, failure in failed)
    sections: list[report.Section] = []
    figures: list[Path] = []
    for chapter in chapters:
        series = collect(chapter.study, found)
        with style():
            drawings = chapter.draw(series) if series else []
        rendered = [(drawing, render(drawing)) for drawing in drawings]
        for drawing, formats in rendered:
            figures += write_figure(drawing.name, formats, folder / "figures")
        sections.append(report.Section(chapter, series, [(drawing, formats["svg"]) for drawing, formats in rendered]))
    page = report.Page(heading, command, sections, failures, _environments(found, cells), findings(sections))
    slopes = report.slope_table(sections)
    write_whole(folder / "slopes.csv", _csv(slopes))
    path = write_whole(folder / "report.html", report.render(page))
    return Product(path, folder / RECORDS_FILE, tuple(figures), slopes, failures)


def show(product: Product, console: Console) -> None:
    """The table of slopes, the failures, and where everything is."""

    def say(text: str, style: str = "") -> None:
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    rows = [
        tuple(row[product.slopes.head.index(name)] for name in SHOWN)
        for row in (product.slopes.head, *product.slopes.rows)
    ]
    lengths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows if product.slopes.rows else []):
        say(
            "  ".join(cell.ljust(length) for cell, length in zip(row, lengths, strict=True)).rstrip(),
            "bold" * (number == 0),
        )
    for name, reason in product.failures:
        say(f"failed: {name}: {reason}", "red")
    if product.figures:
        say(f"figures: {product.figures[0].parent} ({len(product.figures)} files)")
    say(f"records: {product.records}")
    say(f"report:  {product.page}")


def _environments(found: dict[str, Record], cells: Sequence[Cell]) -> list[dict[str, object]]:
    """The different environments behind the records, in order of appearance."""
    different: list[dict[str, object]] = []
    for cell in cells:
        facts = dict(found[cell.key].environment) if cell.key in found else None
        if facts is not None and facts not in different:
            different.append(facts)
    return different


def _csv(table: Table) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.head)
    writer.writerows(table.rows)
    return text.getvalue()
