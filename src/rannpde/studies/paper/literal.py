"""The travelling wave as the paper prints it: its table of 5,000 points, and v = -s u. What does each change?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rannpde.studies.curves import FittedCurve
from rannpde.studies.paper import navier_stokes
from rannpde.studies.show.analysis import Series
from rannpde.studies.show.chapter import Chapter, Size
from rannpde.studies.show.figures import Drawing, comparison_drawing
from rannpde.studies.target import NavierStokes

TABLE = 5000
_WIDTHS = (10, 20, 40, 80, 160, 250)
MODES = {
    "corrected": NavierStokes(),
    "table of 5,000 points": NavierStokes(table_points=TABLE),
    "v = -s u": NavierStokes(printed_velocity=True),
    "both, as printed": NavierStokes(table_points=TABLE, printed_velocity=True),
}
DEVIATIONS = (
    "The literal modes of the chapter on Navier–Stokes: linear interpolation of 5,000 equidistant values of the "
    "profile on "
    "[-5, 5], constant beyond, and u = -v/s instead of u = u₋ - s(v - v₋). Fits are tested against the baseline "
    "that they "
    "were trained on, as in the paper; draws are shared.",
)


def chapter(size: Size) -> Chapter:
    """Four baselines, the same fits."""
    base = navier_stokes.study(size)
    study = replace(
        base,
        name="literal",
        title="The travelling wave as printed",
        widths=_WIDTHS,
        seeds=base.seeds[: 2 if size == "quick" else 5],
        curves=tuple(FittedCurve(name, target=target) for name, target in MODES.items()),
    )
    question = (
        "Does it matter for the error curve that the paper's baseline is a table, and that its velocity is wrong?"
    )
    return Chapter("literal", study, question, _draw, DEVIATIONS, remarks=_remarks)


def _draw(series: Sequence[Series]) -> list[Drawing]:
    caption = (
        "The travelling wave fitted with the paper's literal baselines and with the corrected one, each tested "
        "against its own; "
        "bands of one standard deviation; dashed: C/√N."
    )
    return [comparison_drawing([("travelling wave", series)], "literal", caption)]


def _remarks(series: Sequence[Series]) -> list[str]:
    points = MODES["corrected"].uniform(20_000, np.random.default_rng(0))
    exact = MODES["corrected"].values(points)
    remarks = []
    for name, target in MODES.items():
        if name != "corrected":
            gap = np.linalg.norm(target.values(points) - exact, axis=0) / np.linalg.norm(exact, axis=0)
            remarks.append(
                f"Baseline '{name}' against the corrected wave: {gap[0]:.1g} in v and {gap[1]:.1g} in u, relative."
            )
    last = "; ".join(f"{one.label} {one.mean()[-1]:.3g}" for one in series)
    return [*remarks, f"Errors of the widest fits, each against its own baseline: {last}."]
