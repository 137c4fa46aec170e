"""All chapters by name, in the order of the report."""

from __future__ import annotations

from collections.abc import Callable

from rannpde.errors import choose
from rannpde.studies.paper import (
    compact_set,
    dimension,
    generalisation,
    limits,
    literal,
    many_dimensions,
    navier_stokes,
    operator_laws,
    pinn_loss,
    porous_medium,
    scale_penalty,
    sobolev_rates,
    spectral_bias,
    theory_rates,
    unknowns,
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
    "pinn-loss": pinn_loss.chapter,
    "sobolev-rates": sobolev_rates.chapter,
    "unknowns": unknowns.chapter,
    "literal": literal.chapter,
    "generalisation": generalisation.chapter,
    "spectral-bias": spectral_bias.chapter,
    "operator-laws": operator_laws.chapter,
}


def chapters(names: list[str] | None, size: Size) -> list[Chapter]:
    """The chapters of these names, or all; an unknown name is answered with the known ones."""
    return [choose("study", name, CHAPTERS)(size) for name in names or CHAPTERS]
