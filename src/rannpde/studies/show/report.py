"""One self-contained HTML page from finished chapters: figures, tables, parameters, deviations, versions, command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Any

from rannpde.studies.cell import as_data
from rannpde.studies.show.analysis import CRUDE, FEWEST_FOR_A_RATE, Series, Slope
from rannpde.studies.show.chapter import Chapter, Table
from rannpde.studies.show.figures import Drawing, inline_svg
from rannpde.studies.show.markup import bullets, compact, document, machine, table_of

RATE = -0.5
"""The exponent of Theorem 1."""
FLAT_SLOPE = -0.1
"""A tail whose whole interval lies above this has stopped falling: less than 7 % for a doubled width."""
WIDE_INTERVAL = 1.0
"""Intervals wider than this leave all of -1 to 0 open."""

READABLE, PHONE = "40rem", "20rem"
"""Widths to which figures shrink: those of several panels, which scroll on phones, and those that phones show whole."""

_METHOD = (
    "Slopes are least-squares lines through the mean logarithmic errors of the widths. The 95 % interval is Student's "
    "with K - 2 degrees of freedom (K widths) from the scatter of these means about the line: it holds both the spread "
    "of the seeds and the departure of the curve from a straight line. “Straight from” is the smallest width from "
    "which on an F test of lack of fit (level 1 %, against the spread of the seeds) does not reject a straight line; "
    "the slope next to it belongs to those widths. Unbiased networks of all widths share their neurons; their interval "
    "is Student's from the spread of independent pools. Slopes are what is measured: where the interval misses -1/2, "
    "the table says so. Of a rate nothing is said while relative errors exceed 0.5 (the zero function has 1) or fewer "
    "than five widths lie beyond that: such a fit is not in its asymptotic regime. The paper prints no error "
    "values, so "
    "that curves can be compared with its figures in shape only."
)


@dataclass(frozen=True)
class Section:
    """A chapter with what was found; figures are pairs of a drawing and its SVG."""

    chapter: Chapter
    series: Sequence[Series]
    figures: Sequence[tuple[Drawing, bytes]]


@dataclass(frozen=True)
class Page:
    """All that the report shows; it opens with the sentences and figures of ``show.opening``."""

    title: str
    command: str
    sections: Sequence[Section]
    failures: Sequence[tuple[str, str]]
    environments: Sequence[Mapping[str, Any]]
    findings: Sequence[str] = ()
    sentences: Sequence[str] = ()
    opening: Sequence[tuple[Drawing, bytes]] = ()


def slope_table(sections: Sequence[Section]) -> Table:
    """Every curve of the chapters where slopes mean something, against -1/2."""
    rows = [
        (section.chapter.name, one.label, *_slope_cells(one))
        for section in sections
        if section.chapter.with_slopes
        for one in section.series
    ]
    head = (
        "study",
        "curve",
        "widths",
        "last error",
        "slope",
        "95 % interval",
        "straight from",
        "slope there",
        "reading",
    )
    return Table("Measured slopes of log error against log N; the theorem's rate is -1/2.", head, tuple(rows))


def _slope_cells(one: Series) -> tuple[str, ...]:
    slope, straight = one.slope, one.straight_slope
    widths = f"{one.widths[0]}–{one.widths[-1]}"
    last = f"{one.mean()[-1]:.3g}"
    if slope is None:
        return widths, last, "–", "–", "–", "–", "too few widths"
    start = "not reached" if straight is None else f"N = {straight.first}"
    there = "–" if straight is None else f"{straight.value:.2f} {interval_text(straight)}"
    return widths, last, f"{slope.value:.2f}", interval_text(slope), start, there, reading(one)


def interval_text(slope: Slope) -> str:
    """[low, high]."""
    return f"[{slope.low:.2f}, {slope.high:.2f}]"


def reading(one: Series) -> str:
    """What the slopes say, in words. Of a rate it speaks only in the asymptotic regime: errors ≤ 0.5, five widths."""
    slope = one.straight_slope or one.slope
    if slope is None:
        return "too few widths"
    if one.resolved[-1] and slope.low > FLAT_SLOPE:
        bend = "" if one.straight_slope is not None else "bends up to the last width; overall "
        return f"{bend}flat: the width does not limit"
    slope = one.asymptotic_slope
    if slope is None:
        return f"no rate: {_outside(one)}"
    if slope.contains(RATE):
        return "interval too wide to tell" if slope.high - slope.low > WIDE_INTERVAL else "covers -1/2"
    return "steeper than -1/2" if slope.high < RATE else "flatter than -1/2"


def _outside(one: Series) -> str:
    """Why a curve is not in its asymptotic regime."""
    if not one.resolved[-1]:
        return f"the error is above {CRUDE:g} up to the last width"
    if one.resolved.sum() < FEWEST_FOR_A_RATE <= len(one.widths):
        count = int(one.resolved.sum())
        return f"only {count} {'width' if count == 1 else 'widths'} with errors below {CRUDE:g}"
    if one.resolved.sum() < FEWEST_FOR_A_RATE:
        return f"fewer than {FEWEST_FOR_A_RATE} widths"
    if one.straight_slope is None:
        return "bends up to the last width"
    return f"straight over the last {int((one.widths >= one.straight_slope.first).sum())} widths only"


def render_report(page: Page) -> str:
    """The whole page; nothing in it points outside."""
    head = [_head(page), _opening(page), _failures(page), _summary(page)]
    return document(page.title, [*head, *map(_section, page.sections), machine(page.environments)])


def _head(page: Page) -> str:
    links = "".join(
        f'<li><a href="#{s.chapter.name}">{escape(s.chapter.study.title or s.chapter.name)}</a></li>'
        for s in page.sections
    )
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    cells = sum(len(one.results) for section in page.sections for one in section.series)
    return (
        f"<header><h1>{escape(page.title)}</h1>\n"
        f'<p class="facts">{cells} cells, {made}. Made by <code>{escape(page.command)}</code></p></header>\n'
        f'<nav aria-label="Studies"><ul><li><a href="#slopes">Slopes</a></li>{links}'
        '<li><a href="#machine">Versions</a></li></ul></nav>'
    )


def _opening(page: Page) -> str:
    if not page.sentences:
        return ""
    figures = "".join(_shown(*one, narrowest=PHONE) for one in page.opening)
    words = f'<h2 id="found">What was found</h2><p>{escape(" ".join(page.sentences))}</p>'
    return f'<section>{words}<div class="pair">{figures}</div></section>'


def _shown(drawing: Drawing, svg: bytes, narrowest: str = READABLE) -> str:
    return (
        f'<figure><div class="wide" tabindex="0" role="group" aria-label="{escape(drawing.name)}">'
        f"{inline_svg(drawing, svg, narrowest)}</div><figcaption>{escape(drawing.caption)}</figcaption></figure>"
    )


def _failures(page: Page) -> str:
    if not page.failures:
        return ""
    rows = "".join(f"<li><strong>{escape(name)}</strong>: {escape(reason)}</li>" for name, reason in page.failures)
    return f'<section class="failed"><h2 id="failures">Cells that failed</h2><ul>{rows}</ul></section>'


def _summary(page: Page) -> str:
    table = slope_table(page.sections)
    if not table.rows:
        return ""
    findings = bullets("The paper's curves, and what holds them", page.findings)
    return (
        f'<section><h2 id="slopes">Slopes</h2>{findings}<h3>Every curve</h3>{table_of(table)}'
        f'<p class="facts">{escape(_METHOD)}</p></section>'
    )


def _section(section: Section) -> str:
    chapter = section.chapter
    title = chapter.study.title or chapter.name
    figures = "".join(_shown(*one) for one in section.figures)
    series = section.series
    parts = [
        f'<section><h2 id="{escape(chapter.name)}">{escape(title)}</h2>',
        f"<p>{escape(chapter.question)}</p>" if chapter.question else "",
        figures,
        "".join(table_of(table) for table in (chapter.tables(series) if series else [])),
        bullets("What was measured", chapter.remarks(series) if series else []),
        bullets("What differs from the paper, and why", chapter.deviations),
        f"<details><summary>Every parameter</summary><pre>{escape(_parameters(chapter))}</pre></details></section>",
    ]
    return "\n".join(part for part in parts if part)


def _parameters(chapter: Chapter) -> str:
    parameters: dict[str, Any] = as_data(chapter.study)
    lines = [f"{name}: {compact(value)}" for name, value in parameters.items() if name not in ("kind", "curves")]
    lines.append("curves (what is not given is as above):")
    for curve in parameters["curves"]:
        changes = {k: v for k, v in curve.items() if v is not None and k not in ("kind", "label")}
        lines.append(f"  {curve['label']}: {compact(changes)}")
    return "\n".join(lines)
