"""The paper's last question: are random networks prone to spectral bias? Errors by octave for three laws."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rannpde.plotting.style import COLOURS, MARKERS
from rannpde.studies.curves import MeasuredCurve
from rannpde.studies.layer import Layer
from rannpde.studies.run.spectral import BANDS, BandErrors, PlaneWaves
from rannpde.studies.show.analysis import Series
from rannpde.studies.show.chapter import Chapter, Size
from rannpde.studies.show.figures import Drawing, log_scale, panels
from rannpde.studies.study import Study

_LAWS = {
    "π of Theorem 1": ("pi", 5.0),
    "Gaussian, the paper's scale": ("gaussian", 5.0),
    "Gaussian, scale of the highest octave": ("gaussian", 25.0),
    "adapted to the data": ("adapted", 1.0),
}
"""Scales on [-1, 1]: 5 is the paper's 10 on (0, 1); the highest octave has wave numbers up to 31, that is 2π·31/2 ≈
97."""
_WIDTHS: dict[Size, tuple[int, ...]] = {"quick": (128, 512), "default": (64, 128, 512), "full": (128, 512, 2048)}
DEVIATIONS = (
    "Asked in the paper's conclusion. The function is a sum of plane waves in four octaves of equal energy on "
    "(0, 1)²; errors "
    "are split by the octave of the Fourier transform, 1 being an octave that is not learnt at all. M = 12N "
    "samples without "
    "noise, λ = 10⁻⁸. 'Adapted' are 2N tanh neurons placed where the data vary, as many columns as N Fourier "
    "features have.",
)


def chapter(size: Size) -> Chapter:
    """The chapter, whose figure has one panel for each width."""
    curves = [
        MeasuredCurve(name, BandErrors("", "", PlaneWaves(), 0, _WIDTHS[size], law, scale))
        for name, (law, scale) in _LAWS.items()
    ]
    study = Study(
        "spectral-bias",
        title="Spectral bias",
        target=PlaneWaves(),
        features=Layer(),
        widths=_WIDTHS[size],
        seeds=(0,),
        curves=tuple(curves),
    )
    question = "Which frequencies does a random network learn, and is it the law of the hidden weights that decides?"
    return Chapter("spectral-bias", study, question, _draw, DEVIATIONS, remarks=_remarks, with_slopes=False)


def _bands(curve: Series, index: int, share: float) -> np.ndarray:
    return np.array([curve.quantiles(share, f"band {band}")[index] for band in range(BANDS)])


def _draw(series: Sequence[Series]) -> list[Drawing]:
    widths = series[0].widths
    figure, grid = panels(len(widths))
    figure.set_figwidth(figure.get_figwidth() + 2.4)  # room for the legend
    words, octaves = [], np.arange(BANDS)
    for index, (axes, width) in enumerate(zip(grid, widths, strict=True)):
        for number, curve in enumerate(series):
            low, middle, high = (_bands(curve, index, share) for share in (0.0, 0.5, 1.0))
            axes.fill_between(octaves, low, high, color=COLOURS[number], alpha=0.2, lw=0)
            axes.plot(octaves, middle, color=COLOURS[number], marker=MARKERS[number], label=curve.label)
            words.append(
                f"N = {width}, {curve.label}: {middle[0]:.1g} in the lowest octave, {middle[-1]:.1g} in the highest."
            )
        axes.axhline(1.0, color="black", ls="--", lw=1.0, label="not learnt")
        axes.set_xticks(octaves, ["1", *(f"{2**b}–{2 ** (b + 1) - 1}" for b in range(1, BANDS))])
        axes.set(title=f"N = {width}", xlabel="wave number |κ|")
        log_scale(axes, "y")
    grid[0].set_ylabel("relative error in the octave")
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside right center")
    caption = (
        "Relative error by octave of the wave number for three laws of the hidden weights; median and range "
        "over draws; "
        "dashed: an octave that is not learnt."
    )
    return [Drawing("spectral-bias", caption, "Logarithmic plots of errors by octave. " + " ".join(words), figure)]


def _remarks(series: Sequence[Series]) -> list[str]:
    remarks = []
    for curve in series:
        middle = _bands(curve, len(curve.widths) - 1, 0.5)
        remarks.append(
            f"{curve.label}, N = {curve.widths[-1]}: {middle[0]:.1g} in the lowest octave, {middle[-1]:.1g} in the "
            f"highest, "
            f"{middle[-1] / max(middle[0], 1e-300):.1g} times as much."
        )
    return remarks
