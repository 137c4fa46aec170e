"""The opening of the report: the findings in five sentences and one figure, before its tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rannpde.plotting.style import COLOURS, MARKERS, style
from rannpde.studies.show.analysis import CRUDE, Series
from rannpde.studies.show.figures import (
    ERROR_LABEL,
    WIDTH_LABEL,
    Drawing,
    error_curve,
    log_axes,
    panels,
    reference_line,
    render_figure,
    spoken,
)
from rannpde.studies.show.report import RATE, Section, reading

OVERVIEW_CURVES = 7
"""Curves of the figure: as many as there are colours."""
_KINDS = (("covers", "cover it"), ("steeper", "fall faster"), ("flatter", "fall more slowly"), ("flat:", "are flat"))
_SINGULAR = {
    "cover it": "covers it",
    "fall faster": "falls faster",
    "fall more slowly": "falls more slowly",
    "are flat": "is flat",
}
_OPENING_INCHES = 4.8
"""Width of each figure: a phone shows it at three quarters of that."""
_SHORT_LABEL = 28
"""Letters of a label of which two fit side by side below the figure."""
_OPEN = "cannot be told"
_OUTSIDE = "outside"


@dataclass(frozen=True)
class Opening:
    """Sentences, and figures as drawings with their SVG; none where no curve has two widths."""

    sentences: tuple[str, ...]
    figures: tuple[tuple[Drawing, bytes], ...]


def opening(sections: Sequence[Section], failures: int) -> Opening:
    """Read from the finished curves; empty where there are none."""
    curves = [(section, one) for section in sections for one in section.series]
    if not curves:
        return Opening((), ())
    sloped = [(s, one) for s, one in curves if s.chapter.with_slopes and one.slope is not None]
    told = (_work(sections, curves, failures), _best(curves), *(_rates(sloped) if sloped else ()))
    return Opening(told, _figures(sloped[:OVERVIEW_CURVES]) if sloped else ())


def _work(sections: Sequence[Section], curves: Sequence[tuple[Section, Series]], failures: int) -> str:
    cells = sum(len(one.results) for _, one in curves)
    lost = "none failed" if not failures else f"{failures} failed"
    return f"{cells} random networks were computed for {len(curves)} curves in {_many(len(sections), 'study')}; {lost}."


def _best(curves: Sequence[tuple[Section, Series]]) -> str:
    section, one = min(curves, key=lambda pair: float(pair[1].mean().min()))
    least = int(one.mean().argmin())
    return (
        f"The smallest mean error is {one.mean()[least]:.2g}, of {section.chapter.name} ({one.label}) with "
        f"N = {one.widths[least]} neurons."
    )


def _rates(sloped: Sequence[tuple[Section, Series]]) -> tuple[str, ...]:
    settled = [one for _, one in sloped if _kind(one) != _OUTSIDE]
    counts = Counter(_kind(one) for one in settled)
    words = [word for word in (*(word for _, word in _KINDS), _OPEN) if counts[word]]
    parts = [f"{counts[word]} {_SINGULAR.get(word, word) if counts[word] == 1 else word}" for word in words]
    rate = (
        f"The theorem promises an error of the order 1/√N; of {_many(len(sloped), 'curve')} with a slope, "
        f"{len(settled)} {'is' if len(settled) == 1 else 'are'} in an asymptotic regime (errors below "
        f"{CRUDE:g}, five widths)" + (f": {_listed(parts)}." if parts else ".")
    )
    values = [(float(one.slope.value), section, one) for section, one in sloped if one.slope is not None]
    steep, flat = min(values, key=lambda v: v[0]), max(values, key=lambda v: v[0])
    extremes = (
        f"Slopes lie between {steep[0]:.2f} ({steep[1].chapter.name}, {steep[2].label}) and {flat[0]:.2f} "
        f"({flat[1].chapter.name}, {flat[2].label})."
    )
    late = sum(one.straight_slope is None or one.straight_slope.first > one.widths[0] for _, one in sloped)
    bend = (
        f"{late} of them bend: a straight line in the logarithms begins after the first width or not at all, so that "
        "their overall slope is no asymptotic rate."
        if late
        else "All of them are straight lines in the logarithms from the first width on."
    )
    return rate, extremes, bend


def _kind(one: Series) -> str:
    told = reading(one).removeprefix("bends up to the last width; overall ")
    if told.startswith("no rate"):
        return _OUTSIDE
    return next((word for start, word in _KINDS if told.startswith(start)), _OPEN)


def _figures(sloped: Sequence[tuple[Section, Series]]) -> tuple[tuple[Drawing, bytes], ...]:
    """Errors against width, and each slope with its interval: side by side, one below the other on phones."""
    names = [f"{section.chapter.name}: {one.label}" for section, one in sloped]
    with style():
        errors, (left,) = panels(1)
        columns = 2 if max(map(len, names)) <= _SHORT_LABEL else 1
        errors.set_size_inches(_OPENING_INCHES, 3.4 + 0.18 * (len(names) + 1) / columns)
        slopes, (right,) = panels(1)
        slopes.set_size_inches(_OPENING_INCHES, 3.4)
        for number, (_, one) in enumerate(sloped):
            error_curve(left, one, number, label=names[number])
            assert one.slope is not None
            low, high, value = one.slope.low, one.slope.high, one.slope.value
            look: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
            right.errorbar(value, -number, xerr=[[value - low], [high - value]], capsize=2, **look)
        reference_line(left, sloped[0][1])
        log_axes(left)
        left.set(xlabel=WIDTH_LABEL, ylabel=ERROR_LABEL)
        errors.legend(loc="outside lower center", ncols=columns)
        right.axvline(RATE, color="black", linestyle="--", linewidth=1)
        right.set(xlabel="slope (dashed: -1/2)", ylim=(-len(sloped) + 0.5, 0.5))
        right.set_yticks([-k for k in range(len(sloped))], names)
        right.grid(visible=False, axis="y")
    words = [(s, one, one.slope) for s, one in sloped if one.slope]
    told = " ".join(f"{s.chapter.name}, {one.label}: slope {slope.value:.2f}." for s, one, slope in words)
    caption = "Error against width with bands of one standard deviation; dashed: C/√N through the first curve."
    drawings = (
        Drawing("opening", caption, spoken([one for _, one in sloped]), errors),
        Drawing(
            "opening-slopes", "The slope of each curve with its 95 % interval beside the theorem's -1/2.", told, slopes
        ),
    )
    return tuple((drawing, render_figure(drawing, ["svg"])["svg"]) for drawing in drawings)


def _many(count: int, noun: str) -> str:
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{count} {noun if count == 1 else plural}"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + f" and {parts[-1]}"
