"""What limits the error of each curve: the paper's fit at one width, with one setting changed at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from rannpde.pde.zoo.travelling_wave import TravellingWave
from rannpde.plotting.style import COLOURS, MARKERS
from rannpde.studies.cell import Sampling
from rannpde.studies.curves import FittedCurve
from rannpde.studies.layer import Layer
from rannpde.studies.paper import navier_stokes, porous_medium
from rannpde.studies.show.analysis import Ratio, Series, paired_ratio
from rannpde.studies.show.chapter import Chapter, Size, Table
from rannpde.studies.show.figures import Drawing, log_scale, panels
from rannpde.studies.study import Study
from rannpde.studies.target import NavierStokes, PorousMedium, Target

BASE = "as in the paper"
CHANGES = {
    "width": "2 N neurons",
    "penalty": "λ / 10⁴",
    "sampling": "4 times the points",
    "frequency scale": "half the scale",
    "smoothness": "a smoother edge",
}
SMOOTH_EXPONENT = 1.25
"""m for which the profile vanishes like the fourth power of the distance to the edge of its support."""
SMOOTH_STIFFNESS = 0.1
"""ε for which the wave's left corner is about 20 times wider than with the paper's 1e-3."""
DEVIATIONS = (
    "Not in the paper. Each row fits the paper's protocol at one width, then again with one thing changed, with the "
    "same seeds. 'A smoother edge' is the Barenblatt profile with m = 5/4 in place of 2, on the same cube with the "
    "same initial support: three times continuously differentiable where that of m = 2 has a kink; for the travelling "
    "wave a pressure with ε = 0.1, without the sharp corner.",
)
HELPS = 0.9
"""A change that lowers the error by less than a tenth is not called a limit."""


def chapter(size: Size) -> Chapter:
    """Six targets × six variants."""
    width = {"quick": 256, "default": 724, "full": 2048}[size]
    wave_width = {"quick": 120, "default": 250, "full": 250}[size]
    medium, stokes = porous_medium.study(size), navier_stokes.study(size)
    curves: list[FittedCurve] = []
    for d in porous_medium.FIRST_WIDTH:
        smooth = PorousMedium(d, exponent=SMOOTH_EXPONENT)
        curves += _variants(f"d = {d}", PorousMedium(d), smooth, medium, width)
    smooth_wave = NavierStokes(TravellingWave(stiffness=SMOOTH_STIFFNESS))
    curves += _variants("travelling wave", NavierStokes(), smooth_wave, stokes, wave_width)
    study = Study(
        "limits",
        title="What limits each curve",
        target=PorousMedium(),
        features=Layer(),
        widths=(width,),
        seeds=medium.seeds[:3],
        curves=tuple(curves),
    )
    question = "What limits the error of each curve: width, penalty, sampling, frequency scale or smoothness?"
    return Chapter("limits", study, question, _draw, DEVIATIONS, _tables, with_slopes=False)


def _variants(name: str, target: Target, smooth: Target, base: Study, width: int) -> list[FittedCurve]:
    sampling, layer = base.sampling, base.features
    more = replace(sampling, points_per_width=4 * sampling.points_per_width)
    scale = replace(layer, scale=layer.scale / 2)

    def curve(
        change: str, target: Target = target, layer: Layer = layer, sampling: Sampling = sampling, factor: int = 1
    ) -> FittedCurve:
        penalty = float(base.penalty) * (1e-4 if change == CHANGES["penalty"] else 1.0)
        return FittedCurve(f"{name}: {change}", target, layer, sampling, penalty, (factor * width,))

    return [
        curve(BASE),
        curve(CHANGES["width"], factor=2),
        curve(CHANGES["penalty"]),
        curve(CHANGES["sampling"], sampling=more),
        curve(CHANGES["frequency scale"], layer=scale),
        curve(CHANGES["smoothness"], target=smooth),
    ]


def ratios(series: Sequence[Series]) -> dict[str, dict[str, Ratio]]:
    """target → limit → error with the change over error without it, over the seeds that have both."""
    by_label = {curve.label: curve for curve in series}
    names = dict.fromkeys(label.split(": ")[0] for label in by_label if label.endswith(BASE))
    table: dict[str, dict[str, Ratio]] = {name: {} for name in names}
    for name, (limit, change) in product(names, CHANGES.items()):
        changed = by_label.get(f"{name}: {change}")
        ratio = paired_ratio(changed, by_label[f"{name}: {BASE}"]) if changed else None
        if ratio is not None:
            table[name][limit] = ratio
    return table


def verdict(changes: dict[str, Ratio]) -> str:
    """The limits in the order of the gain from removing them; only gains of a tenth or more, with every seed, count."""
    helping = sorted((values[0], limit) for limit, values in changes.items() if values[0] < HELPS and values[2] < 1)
    return ", then ".join(limit for _, limit in helping) if helping else "none of these"


def _tables(series: Sequence[Series]) -> list[Table]:
    base = {curve.label.split(": ")[0]: curve for curve in series if curve.label.endswith(BASE)}
    rows = [
        (
            name,
            f"N = {base[name].widths[-1]}",
            f"{base[name].mean()[-1]:.3g}",
            *(f"{changes[limit][0]:.2f}" if limit in changes else "–" for limit in CHANGES),
            verdict(changes),
        )
        for name, changes in ratios(series).items()
    ]
    head = ("function", "width", "error", *(f"× with {change}" for change in CHANGES.values()), "limited by")
    caption = "Factor on the error when one thing is changed (geometric mean over paired seeds; below 1 is better)."
    return [Table(caption, head, tuple(rows))]


def _draw(series: Sequence[Series]) -> list[Drawing]:
    table = ratios(series)
    figure, (axes,) = panels(1)
    figure.set_size_inches(7.0, 3.4)
    for number, (limit, change) in enumerate(CHANGES.items()):
        positions = [k + 0.14 * (number - 2) for k, changes in enumerate(table.values()) if limit in changes]
        values = np.array([changes[limit] for changes in table.values() if limit in changes])
        if len(values):
            reach = np.abs(values[:, 1:].T - values[:, 0])
            axes.errorbar(
                positions, values[:, 0], reach, color=COLOURS[number], marker=MARKERS[number], ls="", label=change
            )
    axes.axhline(1.0, color="black", lw=0.8)
    axes.set_xticks(range(len(table)), list(table))
    axes.set(ylabel="error with change / error without")
    log_scale(axes, "y")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    words = " ".join(f"{name}: limited by {verdict(changes)}." for name, changes in table.items())
    caption = (
        "Evidence for the limits: the factor of each change on the error; bars from the least to the largest seed."
    )
    return [Drawing("limits", caption, "Dot plot with a logarithmic axis. " + words, figure)]
