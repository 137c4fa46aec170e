"""The report in headless Chromium: it loads without a word on the console, and nothing sticks out, narrow or wide."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from browser import OUT, measured, needs_chromium
from rannpde.studies.paper.catalogue import CHAPTERS
from rannpde.studies.reproduce import reproduce

pytestmark = needs_chromium

FIGURES = (
    OUT
    + """
  const figures = [...document.querySelectorAll("figure svg")].map(e => {
    const box = e.getBoundingClientRect();
    const name = id => document.getElementById(e.getAttribute(id))?.textContent ?? "";
    const words = [...e.querySelectorAll("text")].map(t => t.getBoundingClientRect().height);
    return {width: box.width, height: box.height, title: name("aria-labelledby"), words: name("aria-describedby"),
      smallest: Math.min(...words)};
  });
"""
)


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
    with pytest.MonkeyPatch.context() as patch:  # the page holds SVG; the other formats would take most of the time
        patch.setattr("rannpde.studies.show.figures.render_figure.__defaults__", (("svg",),))
        return reproduce(chapters, folder, heading="All studies", command="rannpde reproduce --quick").page


@pytest.mark.parametrize("width", [390, 1400])
def test_the_page_in_a_browser(page: Path, tmp_path: Path, width: int) -> None:
    found, said = measured(page.read_text(encoding="utf-8"), width, tmp_path, FIGURES, "{out, figures, size}")
    assert not re.findall(r".*CONSOLE.*", said), said
    assert found["size"]["scroll"] <= found["size"]["client"], "the page scrolls sideways"
    assert found["out"] == []
    assert len(found["figures"]) == 8  # the two of the opening and those of the chapters
    for figure in found["figures"]:
        assert figure["height"] > 100
        assert len(figure["title"]) > 20
        assert len(figure["words"]) > 20
        assert figure["smallest"] > 5, "letters too small to read"
