"""Curves to matplotlib figures, and these to files and pages; one style: legible, colour-blind safe, even sizes."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from rannpde.io import write_whole
from rannpde.plotting.style import COLOURS, MARKERS, style
from rannpde.studies.show.analysis import Series

ERROR_LABEL, WIDTH_LABEL = "relative L² error", "width N"
"""Labels in plain text: TeX parsing would take longer than all the rest of the drawing."""
PANEL_INCHES = (3.5, 2.7)
"""Inches of one panel."""


@dataclass(frozen=True)
class Drawing:
    """A figure with its file name, caption and the words for those who cannot see it."""

    name: str
    caption: str
    alternative: str
    figure: Figure


def panels(count: int, columns: int = 3, height: float = PANEL_INCHES[1]) -> tuple[Figure, list[Axes]]:
    """A figure with that many panels in rows of at most ``columns``."""
    columns = min(count, columns)
    rows = -(-count // columns)
    figure = Figure(figsize=(PANEL_INCHES[0] * columns, height * rows))
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for empty in grid[count:]:
        empty.set_axis_off()
    return figure, list(grid[:count])


def error_curve(axes: Axes, series: Series, number: int = 0, label: str | None = None, band: bool = True) -> None:
    """Mean error against width with its band of one standard deviation."""
    mean, deviation = series.mean(), series.deviation()
    colour = COLOURS[number % len(COLOURS)]
    if band:  # on a log axis the band must stay positive
        axes.fill_between(
            series.widths, np.maximum(mean - deviation, 1e-3 * mean), mean + deviation, color=colour, alpha=0.2, lw=0
        )
    axes.plot(series.widths, mean, color=colour, marker=MARKERS[number % len(MARKERS)], label=label or series.label)


def reference_line(axes: Axes, series: Series) -> None:
    """C/√N through the first error of a curve."""
    fine = np.geomspace(series.widths[0], series.widths[-1], 20)
    constant = float(series.mean()[0]) * np.sqrt(series.widths[0])
    axes.plot(fine, constant / np.sqrt(fine), color="black", ls="--", lw=1.0, label="C/√N")


def error_panel(axes: Axes, series: Series, logarithmic: bool) -> None:
    """One curve as in the paper: the band, C/√N and, on logarithmic axes, the fitted line with its slope."""
    error_curve(axes, series, label="random network")
    fine = np.geomspace(series.widths[0], series.widths[-1], 100)
    axes.plot(fine, series.constant / np.sqrt(fine), color="black", ls="--", lw=1.0, label="C/√N")
    if logarithmic:
        slope = series.slope
        if slope is not None:
            text = f"slope {slope.value:.2f} [{slope.low:.2f}, {slope.high:.2f}]"
            axes.plot(fine, slope.constant * fine**slope.value, color=COLOURS[1], ls=":", label=text)
        log_axes(axes)
    else:
        axes.set_ylim(bottom=0)
    axes.set_title(series.label)
    axes.set_xlabel(WIDTH_LABEL)
    axes.set_ylabel(ERROR_LABEL)
    axes.legend(loc="best")


def log_axes(axes: Axes) -> None:
    """Logarithmic axes with plain numbers: powers of two for the widths, decimal ones for the errors."""
    log_scale(axes, "x", base=2)
    log_scale(axes, "y")


def log_scale(axes: Axes, which: Literal["x", "y"], base: int = 10) -> None:
    """A logarithmic axis with few, plain numbers; within three decades also at 2 and 5."""
    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(LogLocator(base=base, numticks=7))
    axis.set_major_formatter(plain_numbers)
    low, high = axis.get_view_interval()
    narrow = base == 10 and high / low < 1000
    axis.set_minor_locator(LogLocator(base=base, subs=(2.0, 5.0), numticks=12) if narrow else NullLocator())
    axis.set_minor_formatter(plain_numbers if narrow else NullFormatter())


def plain_numbers(value: float, position: float | None = None) -> str:
    """0.002, 0.5, 128, 1e-05."""
    return f"{value:g}"


def error_drawings(series: Sequence[Series], name: str, subject: str) -> list[Drawing]:
    """Error against width, linear and log–log, a panel for each curve (figures PME, PME-log, NS, NS-log)."""
    drawings = []
    for logarithmic, suffix, scale in ((False, "", "linear"), (True, "-log", "logarithmic")):
        figure, grid = panels(len(series))
        for axes, one in zip(grid, series, strict=True):
            error_panel(axes, one, logarithmic)
        extra = " and the least-squares line in the logarithms" if logarithmic else ""
        caption = (
            f"Relative L² error against width N, {subject}, {scale} axes. The band is one standard deviation "
            f"over the seeds; dashed the curve C/√N{extra}."
        )
        drawings.append(Drawing(f"{name}{suffix}", caption, f"{scale} plot. " + spoken(series), figure))
    return drawings


def comparison_drawing(
    groups: Sequence[tuple[str, Sequence[Series]]], name: str, caption: str, label: str = ERROR_LABEL
) -> Drawing:
    """Several curves in a panel, log–log, one panel a group (title, curves); one legend where the curves are alike.

    Curves have bands of one standard deviation, panels the reference C/√N through the first curve. The group's title is
    left out where a curve's label begins with it.
    """
    figure, grid = panels(len(groups))
    figure.set_figwidth(figure.get_figwidth() + 2.2)  # room for the legend
    for axes, (heading, members) in zip(grid, groups, strict=True):
        for number, one in enumerate(members):
            error_curve(axes, one, number, label=one.label.removeprefix(f"{heading}, "))
        reference_line(axes, members[0])
        log_axes(axes)
        axes.set_title(heading)
        axes.set_xlabel(WIDTH_LABEL)
    grid[0].set_ylabel(label)
    handles = {label: handle for axes in grid for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(list(handles.values()), list(handles), loc="outside right center")
    alternative = " ".join(f"{heading}: {spoken(members)}" for heading, members in groups)
    return Drawing(name, caption, alternative, figure)


def cost_drawing(series: Sequence[Series], name: str) -> Drawing:
    """Error and run time against width side by side, and error against run time."""
    figure, (errors, times, both) = panels(3)
    for number, one in enumerate(series):
        error_curve(errors, one, number, band=False)
        look: dict[str, Any] = {
            "color": COLOURS[number % len(COLOURS)],
            "marker": MARKERS[number % len(MARKERS)],
            "label": one.label,
        }
        times.plot(one.widths, one.least("seconds"), **look)
        both.plot(one.least("seconds"), one.mean(), **look)
    log_axes(errors)
    log_axes(times)
    log_scale(both, "x")
    log_scale(both, "y")
    errors.set(xlabel=WIDTH_LABEL, ylabel=ERROR_LABEL)
    times.set(xlabel=WIDTH_LABEL, ylabel="seconds for one fit")
    both.set(xlabel="seconds for one fit", ylabel=ERROR_LABEL)
    times.legend(loc="best")
    caption = (
        "Error against width, next to the run time of the fit (features, normal equations and Cholesky for all fields; "
        "least of the seeds; other cells run at the same time), and error against run time. A bend in the run time is "
        "where the NUFFT takes over from the dense sums."
    )
    words = " ".join(
        f"{one.label}: {one.least('seconds')[0]:.2g} s at N = {one.widths[0]}, {one.least('seconds')[-1]:.2g} s at "
        f"N = {one.widths[-1]}."
        for one in series
    )
    return Drawing(f"{name}-run-time", caption, f"Three logarithmic plots. Run times: {words}", figure)


def spoken(series: Sequence[Series]) -> str:
    """The curves in words: from what to what, at which slope."""
    sentences = []
    for one in series:
        mean = one.mean()
        text = f"{one.label}: error {mean[0]:.2g} at N = {one.widths[0]}"
        if len(mean) > 1:
            text += f", {mean[-1]:.2g} at N = {one.widths[-1]}"
        if one.slope is not None:
            text += f", slope {one.slope.value:.2f}"
        sentences.append(text + ".")
    return " ".join(sentences)


# ------------------------------------------------------------------------------------------- files and pages

FORMATS = ("svg", "pdf", "png")
_DATELESS = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}


def render_figure(drawing: Drawing, formats: Sequence[str] = FORMATS) -> dict[str, bytes]:
    """The figure in each format; the same bytes for the same data."""
    rendered = {}
    with style(), mpl.rc_context({"svg.hashsalt": drawing.name}):
        drawing.figure.draw_without_rendering()
        drawing.figure.set_layout_engine("none")  # laid out once, not again for each format
        for kind in formats:
            buffer = io.BytesIO()
            drawing.figure.savefig(buffer, format=kind, metadata=_DATELESS[kind])
            rendered[kind] = buffer.getvalue()
    return rendered


def write_figure(name: str, rendered: dict[str, bytes], folder: Path) -> list[Path]:
    """All formats of a figure, each replaced whole."""
    return [write_whole(folder / f"{name}.{kind}", content) for kind, content in rendered.items()]


def inline_svg(drawing: Drawing, svg: bytes, narrowest: str) -> str:
    """An <svg> element with ids of its own, a title and a description for those who cannot see it.

    narrowest : the width in CSS below which it scrolls rather than shrinks
    """
    text = svg.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r"<style[^>]*>.*?</style>", "", text, flags=re.S)  # its rules would hold for the whole page
    prefix = f"{drawing.name}-"
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = re.sub(r"url\(#", f"url(#{prefix}", text)
    text = re.sub(r'href="#', f'href="#{prefix}', text)
    opening, body = text.split(">", 1)
    width = re.search(r'\bwidth="([\d.]+)pt"', opening)
    opening = re.sub(r'\s(width|height|version|xmlns:xlink|xmlns)="[^"]*"', "", opening)
    body = body.replace("xlink:href=", "href=")
    pixels = float(width.group(1)) * 96 / 72 if width else 600.0
    # never larger than drawn; on narrow screens wide figures scroll rather than shrink until they cannot be read
    size = f' style="width: {pixels:.0f}px; min-width: min({pixels:.0f}px, {narrowest})"'
    labels = f'aria-labelledby="{prefix}title" aria-describedby="{prefix}description"'
    words = (
        f'<title id="{prefix}title">{escape(drawing.caption)}</title>'
        f'<desc id="{prefix}description">{escape(drawing.alternative)}</desc>'
    )
    return f'{opening} role="img" {labels}{size}>{words}{body}'
