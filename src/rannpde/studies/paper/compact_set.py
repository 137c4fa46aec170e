"""The Barenblatt profile on a compact set inside its support, where the theorem applies, against the whole cube."""

from __future__ import annotations

from collections.abc import Sequence

from rannpde.studies.curves import FittedCurve
from rannpde.studies.layer import Layer
from rannpde.studies.show.analysis import Series
from rannpde.studies.show.chapter import Chapter, Size, doubling, seeds
from rannpde.studies.show.figures import Drawing, comparison_drawing
from rannpde.studies.study import Study
from rannpde.studies.target import PorousMedium

FRACTION = 0.8
"""Radius of the compact set over that of the support: far enough from its edge for a smooth function, large enough to
see most of it."""
COMPACT_SET_DIMENSIONS = (1, 2)
DEVIATIONS = (
    "Proposed in the paper's remark on the smoothness of the profile, but not shown there. The compact set is "
    f"[t₀, t₀ + 1] × the ball of {FRACTION:g} times the initial support's radius; training and test points lie in it.",
)


def chapter(size: Size) -> Chapter:
    """Full domain and compact set, with the paper's penalty and with one that does not limit."""
    curves = [
        FittedCurve(f"d = {d}, {part}, λ = {penalty:g}", target=PorousMedium(d, inside=inside), penalty=penalty)
        for d in COMPACT_SET_DIMENSIONS
        for part, inside in (("full cube", None), ("inside", FRACTION))
        for penalty in (1e-5, 1e-12)
    ]
    study = Study(
        "compact-set",
        title="Inside the support",
        target=PorousMedium(1),
        features=Layer(scale=10.0),
        widths=doubling(8, {"quick": 256, "default": 512, "full": 2048}[size]),
        seeds=seeds(size),
        curves=tuple(curves),
    )
    question = (
        "The profile is not differentiable at the edge of its support: how much of the error is due to that edge?"
    )
    return Chapter("compact-set", study, question, _draw, DEVIATIONS, remarks=_remarks)


def _draw(series: Sequence[Series]) -> list[Drawing]:
    groups = [(f"d = {d}", [one for one in series if one.space_dim == d]) for d in COMPACT_SET_DIMENSIONS]
    caption = (
        "Relative L² error on the whole cube and on a compact set inside the support, with the paper's penalty and "
        "with λ = 10⁻¹²."
    )
    return [comparison_drawing([group for group in groups if group[1]], "compact-set", caption)]


def _remarks(series: Sequence[Series]) -> list[str]:
    last = {one.label: (int(one.widths[-1]), float(one.mean()[-1])) for one in series}
    remarks = []
    for d in COMPACT_SET_DIMENSIONS:
        full, inside = last.get(f"d = {d}, full cube, λ = 1e-12"), last.get(f"d = {d}, inside, λ = 1e-12")
        if full and inside:
            remarks.append(
                f"d = {d}, N = {full[0]}, λ = 10⁻¹²: error {full[1]:.2g} on the full cube, {inside[1]:.2g} inside the "
                f"support, {full[1] / inside[1]:.0f} times less."
            )
    return remarks
