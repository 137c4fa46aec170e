"""The tables of the pages: the short one is made of the long one, and both keep what no record tells otherwise."""

from dataclasses import replace

import pytest

from benchmarks import publish
from benchmarks.harness.page import HEAD
from benchmarks.harness.record import BenchRecord
from benchmarks.pinnacle.table import CASES

LONG = publish.rows_of(publish.between(publish.PAGE.read_text("utf-8"), "pinnacle")[1])
TITLES = [case.title for case in CASES.values()]
WAVE = BenchRecord(
    "wave-1d", {"tol": 1e-10, "small": False}, "solved", error=1e-9, estimate=2e-9, seconds=0.5,
    solver="Chebyshev, 41 nodes", solver_error=1e-11, solver_seconds=1.0,
)  # fmt: skip


def test_the_page_has_a_row_for_every_case():
    assert [row[0] for row in LONG] == TITLES
    assert {len(row) for row in LONG} == {len(HEAD)}


def test_the_readme_shows_the_rows_of_the_page():
    """If this fails: python -m benchmarks.publish."""
    inside = publish.between(publish.README.read_text("utf-8"), "pinnacle")[1]
    assert publish.rows_of(inside) == list(map(publish.short_row, LONG))
    assert inside.startswith(publish.summary(LONG))


def test_the_page_shows_the_reference_solutions_that_are_there():
    inside = publish.between(publish.PAGE.read_text("utf-8"), "reference-solutions")[1]
    assert publish.rows_of(inside) == publish.reference_rows()


def test_a_record_replaces_its_row_and_no_other():
    rows = publish.long_rows({"wave-1d": WAVE}, LONG)
    changed = [row for row, old in zip(rows, LONG, strict=True) if row != old]
    assert [row[0] for row in changed] == ["Wave 1d-C"]
    short = publish.short_row(changed[0])
    assert len(short) == len(publish.SHORT)
    assert short[2] == "1.0e-09 (goal 1e-10)"
    assert short[5:] == ("Chebyshev, 41 nodes: 1.0e-11 in 1.00 s", "Chebyshev")
    late = publish.long_rows({"wave-1d": replace(WAVE, error=1e-11, seconds=3.0)}, LONG)[TITLES.index("Wave 1d-C")]
    assert publish.short_row(late)[2:5] == ("1.0e-11", "2.0e-09", "3.0 (goal 1)")
    with pytest.raises(SystemExit, match=r"python -m benchmarks\.pinnacle burgers-1d"):
        publish.long_rows({}, [])


def test_pages_are_written_between_their_marks(tmp_path, monkeypatch):
    for name in ("PAGE", "README"):
        copy = tmp_path / f"{name}.md"
        copy.write_text(getattr(publish, name).read_text("utf-8"), encoding="utf-8")
        monkeypatch.setattr(publish, name, copy)
    before = publish.PAGE.read_text("utf-8"), publish.README.read_text("utf-8")
    publish.publish({})
    assert (publish.PAGE.read_text("utf-8"), publish.README.read_text("utf-8")) == before
    publish.publish({"wave-1d": WAVE})
    assert "| 1.0e-09 (goal 1e-10) |" in publish.README.read_text("utf-8")
    with pytest.raises(SystemExit, match="no place for chess"):
        publish.between(before[0], "chess")
