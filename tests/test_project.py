"""What stands beside the code says the same everywhere: versions, citation, paper, what goes into a wheel."""

import re
import tomllib
from datetime import date
from pathlib import Path

import pytest

import rannpde

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PAPER = (ROOT / "paper" / "paper.md").read_text("utf-8")


def test_one_version_everywhere():
    assert PROJECT["version"] == rannpde.__version__


def test_the_citation_is_complete_and_of_this_version():
    yaml = pytest.importorskip("yaml")
    known = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert known["cff-version"] == "1.2.0"
    assert known["version"] == rannpde.__version__
    assert known["license"] == PROJECT["license"]
    assert known["type"] == "software"
    assert isinstance(known["date-released"], date)
    assert known["message"]
    for author in (*known["authors"], *(one for work in known["references"] for one in work["authors"])):
        assert "name" in author or {"family-names", "given-names"} <= set(author)
    assert all({"type", "title", "authors", "year"} <= set(work) for work in known["references"])


def test_the_paper_cites_what_the_bibliography_has_and_shows_figures_that_are_made():
    entries = re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text("utf-8"), re.MULTILINE)
    assert len(entries) == len(set(entries))
    assert set(re.findall(r"@([a-z]+\d{4})", PAPER)) == set(entries)
    maker = (ROOT / "paper" / "figures" / "make.py").read_text("utf-8")
    for figure in re.findall(r"\]\(figures/([\w.]+)\)", PAPER):
        assert (ROOT / "paper" / "figures" / figure).exists()
        assert figure in maker
    for heading in ("Summary", "Statement of need", "State of the field", "References"):
        assert f"# {heading}\n" in PAPER
    words = re.sub(r"```.*?```", "", PAPER, flags=re.DOTALL).split()
    assert 250 <= len(words) <= 1000  # as the journal asks


def test_files_that_are_no_code_go_into_the_wheel():
    """Whatever lies beside the modules is matched by the package data: a page without its style would be a surprise."""
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    listed = whole["tool"]["setuptools"]["package-data"]["rannpde"]
    package = Path(rannpde.__file__).parent
    made = (".py", ".pyc", ".nbi", ".nbc", ".typed")
    beside = [p.relative_to(package) for p in package.rglob("*") if p.is_file() and p.suffix not in made]
    assert [path for path in beside if not any(path.match(pattern.removeprefix("**/")) for pattern in listed)] == []
    assert (package / "py.typed").exists()


def test_the_versions_that_the_site_names_are_those_of_the_project():
    page = (ROOT / "docs" / "start" / "install.md").read_text("utf-8")
    asked = dict(re.split(r">=", text) for text in PROJECT["dependencies"])
    rows = re.findall(r"^\| (NumPy|SciPy|SymPy|matplotlib|scikit-learn) \| ([\d.]+) \|", page, re.MULTILINE)
    assert len(rows) == 5
    for name, shown in rows:
        assert asked[name.lower()] == shown
    assert f"| Python | {PROJECT['requires-python'].removeprefix('>=')} |" in page
