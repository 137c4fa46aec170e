"""The paper's curves in sentences: the slope, where a straight line begins, and what limits the error."""

from __future__ import annotations

from collections.abc import Sequence

from rannpde.studies.paper import limits
from rannpde.studies.show.analysis import Ratio, Series
from rannpde.studies.show.report import Section, interval_text, reading

PAPER_CHAPTERS = {"porous-medium": "", "navier-stokes": "travelling wave"}
"""Chapters of the paper, with the name of their only curve in the chapter on limits."""


def findings(sections: Sequence[Section]) -> list[str]:
    """One sentence or two for each curve of the paper; the limits are stated where their study was run."""
    held = {}
    for section in sections:
        if section.chapter.name == "limits" and section.series:
            held = limits.ratios(section.series)
    return [
        _sentence(section.chapter.name, one, held.get(PAPER_CHAPTERS[section.chapter.name] or one.label))
        for section in sections
        if section.chapter.name in PAPER_CHAPTERS
        for one in section.series
    ]


def _sentence(chapter: str, one: Series, changes: dict[str, Ratio] | None) -> str:
    name = f"{chapter}, {one.label}"
    if one.slope is None:
        return f"{name}: too few widths for a slope."
    text = (
        f"{name}: slope {one.slope.value:.2f} {interval_text(one.slope)} over N = {one.slope.first} to {one.slope.last}"
    )
    straight = one.straight_slope
    if straight is None:
        text += "; the curve bends up to its last width, so that no asymptotic regime is in sight"
    elif straight.first > one.slope.first:
        value = f"{straight.value:.2f} {interval_text(straight)}"
        text += f"; a straight line only from N = {straight.first}, with slope {value}"
    else:
        text += "; straight from the first width"
    text += f" ({reading(one)})."
    if changes:
        gains = ", ".join(f"{limits.CHANGES[limit]} ×{values[0]:.2f}" for limit, values in changes.items())
        text += f" Limited by {limits.verdict(changes)} (error when changed: {gains})."
    return text
