"""Every chapter with invented records: it draws and speaks also when cells are missing."""

from __future__ import annotations

import re

import pytest

from draws import covering
from rannpde.studies.cell import Fit, MeasurementCell, PathsCell, StudyCell, Unbiased
from rannpde.studies.paper import limits
from rannpde.studies.paper.catalogue import CHAPTERS
from rannpde.studies.paper.findings import findings
from rannpde.studies.run.cell import Result
from rannpde.studies.run.fit import FitResult
from rannpde.studies.run.measured import MeasuredResult
from rannpde.studies.run.paths import PathsResult
from rannpde.studies.run.records import Record
from rannpde.studies.run.spectral import BANDS
from rannpde.studies.run.unbiased import UnbiasedResult
from rannpde.studies.show.analysis import Series, collect
from rannpde.studies.show.chapter import Chapter, doubling
from rannpde.studies.show.figures import style
from rannpde.studies.show.report import Page, Section, render_report, slope_table


def invented(cell: StudyCell) -> Result:
    """An error that falls like N^(-1/2), and that one change alone, the smaller penalty, makes a quarter."""
    if isinstance(cell, Unbiased):
        return UnbiasedResult(tuple((n**-0.5, 1.01 * n**-0.5) for n in cell.widths), -0.5, 0.01, 1.0, 0.1)
    if isinstance(cell, MeasurementCell):
        rows = tuple((n**-0.5, 1.01 * n**-0.5) for n in cell.widths)
        names = ("error", "initial", "boundary", "from_variance", "corrected", "printed")
        others = (
            "initial_bound",
            "boundary_bound",
            "mass_bound",
            "equation 1",
            "equation 2",
            *(f"band {k}" for k in range(BANDS)),
        )
        return MeasuredResult(dict.fromkeys((*names, *others), rows), 0.1)
    if isinstance(cell, PathsCell):
        return PathsResult(0.01, 0.02, 0.1)
    assert isinstance(cell, Fit)
    error = cell.width**-0.5 * (1 + 0.01 * cell.seed) * (0.25 if "λ / 10⁴" in cell.curve else 1.0)
    fields = dict.fromkeys(cell.target.fields, error)
    penalty = 1e-6 if isinstance(cell.penalty, str) else cell.penalty
    return FitResult(error, fields, error, penalty, 10.0, "dense", cell.points, 9, 0.1, 0.2, error)


def section(name: str, share: int = 1) -> Section:
    """A chapter with one of ``share`` cells missing from its records (none for 1)."""
    chapter = CHAPTERS[name]("quick")
    kept = [c for c in chapter.study.cells if share == 1 or int(c.key, 16) % share]
    series = collect(chapter.study, {cell.key: Record(invented(cell), {}, "") for cell in kept})
    with style():
        drawings = chapter.draw(series)
    return Section(chapter, series, [(drawing, b'<svg width="10pt"></svg>') for drawing in drawings])


@pytest.mark.parametrize(("share", "name"), covering([1, 2, 3], list(CHAPTERS)))
def test_chapters_draw_and_speak_whatever_is_missing(name: str, share: int) -> None:
    found = section(name, share)
    assert found.figures
    for drawing, _ in found.figures:
        assert len(drawing.alternative) > 30
        assert drawing.caption.endswith(".")
        assert re.fullmatch(r"[a-z-]+", drawing.name)
    for table in found.chapter.tables(found.series):
        assert all(len(row) == len(table.head) for row in table.rows)
    text = render_report(Page("t", "c", [found], [], [], findings([found])))
    assert found.chapter.question in text.replace("&#x27;", "'")


def test_slopes_of_invented_curves_are_found() -> None:
    table = slope_table([section("porous-medium"), section("dimension")])
    assert [row[1] for row in table.rows] == [f"d = {d}" for d in range(1, 6)]
    assert {row[table.head.index("slope")] for row in table.rows} == {"-0.50"}


def test_the_limit_is_what_helps() -> None:
    found = section("limits")
    changes = limits.ratios(found.series)
    assert set(changes) == {*(f"d = {d}" for d in range(1, 6)), "travelling wave"}
    for values in changes.values():
        assert values["penalty"][0] == pytest.approx(0.25)
        assert values["width"][0] == pytest.approx(2**-0.5)
        assert limits.verdict(values) == "penalty, then width"
    assert limits.verdict({"width": (0.95, 0.9, 1.0), "sampling": (0.8, 0.7, 1.1)}) == "none of these"


def test_findings_join_slopes_and_limits() -> None:
    sentences = findings([section("porous-medium"), section("navier-stokes"), section("limits")])
    assert len(sentences) == 6
    assert all("slope -0.50" in s and "Limited by penalty, then width" in s for s in sentences)
    assert "Limited" not in findings([section("porous-medium")])[0]


def test_an_empty_chapter_is_a_page_without_figures() -> None:
    chapter: Chapter = CHAPTERS["limits"]("quick")
    empty: list[Series] = []
    text = render_report(Page("t", "c", [Section(chapter, empty, [])], [("a cell", "<reason>")], []))
    assert "&lt;reason&gt;" in text
    assert "<figure" not in text


def test_widths_double() -> None:
    assert doubling(16, 100) == (16, 32, 64)
    assert doubling(16, 64, steps=2) == (16, 23, 32, 45, 64)
