"""All chapters by name, in the order of the report."""

from __future__ import annotations

from collections.abc import Callable

from rannpde.errors import choose
from rannpde.studies.paper import (
    compact_set,
    dimension,
    limits,
    many_dimensions,
    navier_stokes,
    porous_medium,
    scale_penalty,
    theory_rates,
    weight_laws,
)
from rannpde.studies.show.chapter import Chapter, Size

CHAPTERS: dict[str, Callable[[Size], Chapter]] = {
    "porous-medium": porous_medium.chapter,
    "navier-stokes": navier_stokes.chapter,
    "navier-stokes-penalty": navier_stokes.penalty_chapter,
    "limits": limits.chapter,
    "compact-set": compact_set.chapter,
    "weight-laws": weight_laws.chapter,
    "scale-penalty": scale_penalty.chapter,
    "dimension": dimension.chapter,
    "many-dimensions": many_dimensions.chapter,
    "theory-rates": theory_rates.chapter,
}


def chapters(names: list[str] | None, size: Size) -> list[Chapter]:
    """Those of that name, or all; an unknown name is answered with the known ones."""
    return [choose("study", name, CHAPTERS)(size) for name in names or CHAPTERS]
