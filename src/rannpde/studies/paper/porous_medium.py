"""Section "Experiments for PME" and its appendix: the Barenblatt profile in d = 1, …, 5."""

from __future__ import annotations

from collections.abc import Sequence

from rannpde.studies.curves import FittedCurve
from rannpde.studies.layer import Layer
from rannpde.studies.show.analysis import CRUDE, Series
from rannpde.studies.show.chapter import Chapter, Size, doubling, seeds
from rannpde.studies.show.figures import Drawing, cost_drawing, error_drawings
from rannpde.studies.study import Study
from rannpde.studies.target import PorousMedium

FIRST_WIDTH = {1: 16, 2: 32, 3: 64, 4: 128, 5: 128}
"""By dimension: at the first width from d = 3 on the error is still that of the zero function, about 1."""
LAST_WIDTH: dict[Size, dict[int, int]] = {
    "quick": {1: 512, 2: 1024, 3: 1024, 4: 1024, 5: 1024},
    "default": {1: 1024, 2: 2048, 3: 2048, 4: 2048, 5: 2048},
    "full": dict.fromkeys(range(1, 6), 8192),
}
"""Chosen for the time they take on 2 cores: minutes, a quarter of an hour, hours."""

DEVIATIONS = (
    "The paper does not give the widths; these are powers of two (and √2 between them beyond --quick).",
    "The profile is centred in the cube and b is such that the support has radius 0.3 at t₀, as the box [0.2, 0.8]^d "
    "suggests; T = 1.",
    "The bias β has no penalty. Errors are measured on 20,000 fresh uniform points of the whole cube.",
    "The paper prints no error values: its curves can be compared in shape only.",
    "The relative error is ‖û - u‖/‖u‖ in L², which is what is plotted in the paper; the Sobolev norm of its text is "
    "infinite for this profile.",
)


def study(size: Size) -> Study:
    """The paper's protocol: frequencies N(0, 10²), M = 10 N, half of the points in [0.2, 0.8]^d, λ = 1e-5."""
    steps = 1 if size == "quick" else 2
    curves = [
        FittedCurve(f"d = {d}", target=PorousMedium(d), widths=doubling(first, LAST_WIDTH[size][d], steps))
        for d, first in FIRST_WIDTH.items()
    ]
    return Study(
        "porous-medium",
        title="Porous medium equation: the Barenblatt profile",
        target=PorousMedium(),
        features=Layer("fourier", scale=10.0),
        penalty=1e-5,
        widths=(16,),
        seeds=seeds(size),
        curves=tuple(curves),
    )


def chapter(size: Size) -> Chapter:
    """Figures PME and PME-log."""
    return Chapter(
        "porous-medium",
        study(size),
        "Does the error of a random network fall like N^(-1/2) on the Barenblatt profile, in d = 1, …, 5?",
        _draw,
        DEVIATIONS,
        remarks=_remarks,
    )


def _draw(series: Sequence[Series]) -> list[Drawing]:
    subject = "Barenblatt profile in dimensions d = 1 to 5"
    return [*error_drawings(series, "porous-medium", subject), cost_drawing(series, "porous-medium")]


def _remarks(series: Sequence[Series]) -> list[str]:
    """Where the error is so large that a rate means nothing yet."""
    remarks = []
    for one in series:
        crude = one.widths[one.mean() > CRUDE]
        if len(crude):
            remarks.append(
                f"{one.label}: up to N = {crude[-1]} the error is above {CRUDE:g} (the zero function has 1); the "
                "asymptotic regime cannot begin before."
            )
    return remarks
