"""The table of the page and its summary in the README, which keep what no record tells otherwise."""

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


def test_the_readme_shows_the_summary_of_the_page():
    """If this fails: python -m benchmarks.publish."""
    assert publish.between(publish.README.read_text("utf-8"), "pinnacle")[1] == publish.summary(LONG)


def test_the_page_shows_the_reference_solutions_that_are_there():
    inside = publish.between(publish.PAGE.read_text("utf-8"), "reference-solutions")[1]
    assert publish.rows_of(inside) == publish.reference_rows()


def test_a_record_replaces_its_row_and_no_other():
    rows = publish.long_rows({"wave-1d": WAVE}, LONG)
    changed = [row for row, old in zip(rows, LONG, strict=True) if row != old]
    assert [row[0] for row in changed] == ["Wave 1d-C"]
    assert not publish.reached(changed[0])
    late = publish.long_rows({"wave-1d": replace(WAVE, error=1e-11, seconds=3.0)}, LONG)[TITLES.index("Wave 1d-C")]
    assert publish.reached(late)
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
    assert "| 1.0e-09 |" in publish.PAGE.read_text("utf-8")
    assert "17 of 22 cases reach" in publish.README.read_text("utf-8")
    with pytest.raises(SystemExit, match="no place for chess"):
        publish.between(before[0], "chess")
