"""The table of the paper's statements: 77 rows whose code, tests and figures exist, and which the page shows."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from rannpde.studies.paper.catalogue import CHAPTERS
from rannpde.studies.paper.statements import STATEMENTS, PaperStatement, table

ROOT = Path(__file__).parents[3]
BEGIN, END = "<!-- statements: begin -->", "<!-- statements: end -->"


def test_every_statement_has_a_row_of_its_own():
    assert len(STATEMENTS) == 77
    assert len({one.label for one in STATEMENTS}) == 77


@pytest.mark.parametrize("one", STATEMENTS, ids=lambda one: one.label)
def test_code_test_and_figure_exist(one: PaperStatement):
    module, name = one.code.rsplit(".", 1)
    assert hasattr(import_module(f"rannpde.{module}"), name)
    path, test = one.test.split("::")
    assert re.search(rf"^def {test}\(", (ROOT / "tests" / path).read_text(), re.M), one.test
    for figure in filter(None, one.figure.split(", ")):
        assert figure in CHAPTERS


def test_the_page_shows_the_table():
    """Written by benchmarks/publish.py, or by hand: python -c "from rannpde.studies.paper.statements import …"."""
    page = (ROOT / "docs" / "theory.md").read_text()
    shown = page[page.index(BEGIN) + len(BEGIN) : page.index(END)].strip()
    assert shown == table(), "docs/theory.md: put statements.table() between the markers"
