"""The report in headless Chromium: it loads without a word on the console, and nothing sticks out, narrow or wide."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from rannpde.studies.paper.catalogue import CHAPTERS
from rannpde.studies.reproduce import reproduce

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed; .ci/run installs it")

MEASURE = """<script>
addEventListener("load", () => {
  const root = document.documentElement;
  const inside = e => { for (; e; e = e.parentElement) if (e.classList.contains("wide")) return true; return false; };
  const out = [...document.querySelectorAll("body *")].filter(e => !inside(e) && e.tagName !== "PRE"
    && e.getBoundingClientRect().right > root.clientWidth + 1).map(e => e.tagName + "#" + e.id);
  const figures = [...document.querySelectorAll("figure svg")].map(e => {
    const box = e.getBoundingClientRect();
    const name = id => document.getElementById(e.getAttribute(id))?.textContent ?? "";
    const words = [...e.querySelectorAll("text")].map(t => t.getBoundingClientRect().height);
    return {width: box.width, height: box.height, title: name("aria-labelledby"), words: name("aria-describedby"),
      smallest: Math.min(...words)};
  });
  const size = {client: root.clientWidth, scroll: root.scrollWidth};
  document.title = "MEASURED" + JSON.stringify({out, figures, size, ids: document.querySelectorAll("[id]").length});
});
</script>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with every kind of content, at tiny size."""
    folder = tmp_path_factory.mktemp("report")
    chapters = []
    for name in ("navier-stokes", "weight-laws", "scale-penalty"):
        chapter = CHAPTERS[name]("quick")
        sampling = replace(chapter.study.sampling, points_per_width=20, test_points=100)
        widths = (8, 16, 32) if len(chapter.study.widths) > 1 else (8,)
        chapters.append(replace(chapter, study=replace(chapter.study, widths=widths, seeds=(0, 1), sampling=sampling)))
    return reproduce(chapters, folder, heading="All studies", command="rannpde reproduce --quick").page


def load(page: Path, width: int, folder: Path) -> tuple[dict, str]:
    """What the page measures of itself in a window of that width, and what the browser printed."""
    assert CHROMIUM is not None
    measured = folder / "measured.html"
    measured.write_text(page.read_text().replace("</body>", MEASURE + "</body>"))
    result = subprocess.run(
        [
            CHROMIUM,
            *FLAGS,
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={width},1000",
            "--enable-logging=stderr",
            "--v=0",
            "--virtual-time-budget=5000",
            "--dump-dom",
            measured.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = re.search(r"<title>MEASURED(.*?)</title>", result.stdout, re.S)
    assert found, result.stderr
    return json.loads(unescape(found.group(1))), result.stderr


@pytest.mark.parametrize("width", [500, 1400])
def test_the_page_in_a_browser(page: Path, tmp_path: Path, width: int) -> None:
    found, said = load(page, width, tmp_path)
    assert not re.findall(r".*CONSOLE.*", said), said
    assert found["size"]["scroll"] <= found["size"]["client"], "the page scrolls sideways"
    assert found["out"] == []
    assert len(found["figures"]) == 7  # the opening and those of the chapters
    for figure in found["figures"]:
        assert figure["height"] > 100
        assert len(figure["title"]) > 20
        assert len(figure["words"]) > 20
        assert figure["smallest"] > 5, "letters too small to read"
