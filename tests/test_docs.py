"""The pages are true: every Python block of README and docs runs, a page after the other, and so does every script."""

import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


@pytest.mark.parametrize("page", [p for p in PAGES if BLOCK.search(p.read_text("utf-8"))], ids=lambda p: p.name)
def test_snippets_run(page, tmp_path, monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    space: dict[str, object] = {"__name__": "snippet"}
    for number, code in enumerate(BLOCK.findall(page.read_text("utf-8")), start=1):
        exec(compile(code, f"{page.name}, block {number}", "exec"), space)
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_example_scripts_run_and_leave_their_figure(script, tmp_path):
    done = subprocess.run([sys.executable, script, "--out", tmp_path], capture_output=True, text=True, check=True)
    assert "relative L² error" in done.stdout
    assert (tmp_path / f"{script.stem}.png").exists()
