"""The pages are true: every Python block of README and docs runs, links lead somewhere, and the gallery has its form.

The scripts of the gallery themselves run when the site is built (``make docs``).
"""

import ast
import inspect
import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import matplotlib
import pytest

import rannpde as rp

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *(p for p in sorted((ROOT / "docs").rglob("*.md")) if "gallery" not in p.parts)]
GALLERY = sorted((ROOT / "examples").glob("*/plot_*.py"))
REFERENCE = [page for page in PAGES if page.parent.name == "api"]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
SCREEN = 70
"""Lines of a script: one screen of code."""


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


SNIPPETS = [page for page in PAGES if BLOCK.search(page.read_text("utf-8"))]
LONG = (
    "answers",
    "coming_from",
    "evolution",
    "experiments",
    "families",
    "howto",
    "inverse",
    "many_dimensions",
    "nonlinear",
    "scaling",
    "spectrum",
    "theory",
)
"""Pages whose snippets take 4 to 17 s of CPU time each: they run in ``make test-all``."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page, marks=[pytest.mark.slow] if page.parent.name == "docs" and page.stem in LONG else [], id=named(page)
        )
        for page in SNIPPETS
    ],
)
def test_snippets_run(page, tmp_path, monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    space: dict[str, object] = {"__name__": "snippet"}
    for number, code in enumerate(BLOCK.findall(page.read_text("utf-8")), start=1):
        exec(compile(code, f"{page.name}, block {number}", "exec"), space)
    matplotlib.pyplot.close("all")


def test_snippets_use_what_there_is():
    """Every block is Python, what it imports from us exists, and our functions have the keywords that it gives them."""
    for page in SNIPPETS:
        for number, code in enumerate(BLOCK.findall(page.read_text("utf-8")), start=1):
            where = f"{named(page)}, block {number}"
            for node in ast.walk(ast.parse(code, where)):
                match node:
                    case ast.ImportFrom(module=str(module), names=names) if module.split(".")[0] == "rannpde":
                        missing = [one.name for one in names if one.name != "*" and not has(module, one.name)]
                        assert not missing, f"{where}: {module} has no {missing}"
                    case ast.Call(func=ast.Attribute(value=ast.Name(id="rp"), attr=name), keywords=keywords):
                        inspect.signature(getattr(rp, name)).bind_partial(**{one.arg: 0 for one in keywords if one.arg})
                    case ast.Attribute(value=ast.Name(id="rp"), attr=name):
                        assert hasattr(rp, name), f"{where}: rannpde has no {name}"


def has(module: str, name: str) -> bool:
    return hasattr(import_module(module), name) or find_spec(f"{module}.{name}") is not None


def test_links_lead_somewhere():
    links = [(page, target) for page in PAGES for target in LINK.findall(page.read_text("utf-8"))]
    links = [(page, target) for page, target in links if not target.endswith("gallery/index.rst")]  # the build makes it
    assert links
    assert not [(page.name, target) for page, target in links if not (page.parent / target).exists()]


def test_the_gallery_is_large_and_grouped():
    assert len(GALLERY) >= 24
    for folder in {script.parent for script in GALLERY}:
        assert (folder / "GALLERY_HEADER.rst").exists()


def test_a_script_of_the_gallery_is_one_screen_with_a_title_and_a_picture():
    for script in GALLERY:
        text = script.read_text("utf-8")
        tree = ast.parse(text)
        title, underline = (ast.get_docstring(tree) or "").splitlines()[:2]
        assert set(underline) == {"="}, script
        assert len(underline) >= len(title), script
        assert len(text.splitlines()) <= SCREEN, script
        assert "figure" in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}, script


def test_every_public_name_is_in_the_reference_with_an_example():
    pages = [page.read_text("utf-8") for page in REFERENCE]
    for name in rp.__all__:
        (page,) = [text for text in pages if re.search(rf":: rannpde\.{name}$", text, re.MULTILINE)]
        documented = getattr(rp, name).__doc__ or ""
        assert len(documented) > 20, name
        shown = any(f"rp.{name}" in code for code in BLOCK.findall(page))
        assert shown or ">>>" in documented, f"{name} has no example, neither in its docstring nor on its page"


def test_docstrings_become_sections_of_numpydoc(monkeypatch):
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs" / "_ext"), *sys.path])
    from docstrings import converted

    text = "What |u| is.\n\npoints : array (M, 2)\n    of the plane\nrng : a seed; tol : the error\n\n>>> 1\n1"
    lines = text.splitlines()
    assert converted(lines) == [
        "What \\|u\\| is.", "", "", "",
        "Parameters", "----------", "points :", "    array (M, 2)", "    of the plane", "rng :", "    a seed",
        "tol :", "    the error", "", "Examples", "--------", ">>> 1", "1",
    ]  # fmt: skip


def test_the_picture_of_the_layers_is_that_of_the_imports(monkeypatch):
    """If this fails: python docs/_ext/layers.py."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs" / "_ext"), *sys.path])
    import layers

    text = layers.PAGE.read_text("utf-8")
    assert text.split(layers.BEGIN)[1].split(layers.END)[0] == layers.picture()


def test_every_word_of_the_glossary_has_a_sentence_and_a_reference():
    rows = [row.split("|")[1:-1] for row in (ROOT / "docs" / "glossary.md").read_text("utf-8").splitlines()[6:]]
    assert len(rows) > 25
    for word, sentence, reference in rows:
        assert word.strip()
        assert sentence.strip().endswith(".")
        assert reference.strip()
