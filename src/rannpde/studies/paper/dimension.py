"""Error against the dimension d = 1, …, 10 at a fixed width, for an analytic function."""

from __future__ import annotations

from collections.abc import Sequence

from rannpde.plotting.style import COLOURS, MARKERS
from rannpde.studies.cell import Sampling
from rannpde.studies.curves import FittedCurve
from rannpde.studies.layer import Layer
from rannpde.studies.show.analysis import Series
from rannpde.studies.show.chapter import Chapter, Size, seeds
from rannpde.studies.show.figures import ERROR_LABEL, Drawing, log_scale, panels
from rannpde.studies.study import Study
from rannpde.studies.target import GaussianBump

STUDIED_DIMENSIONS = tuple(range(1, 11))
WEIGHT_SCALES = (1.0, 2.0, 10.0)
"""Half the scale of the function's transform, the same, and the paper's."""
DEVIATIONS = (
    "Not in the paper. The function is exp(-|z - c|²/(2·0.5²)) on (0, 1)^(1+d), whose Fourier transform has scale 2 "
    "in every coordinate; points are uniform and λ = 10⁻⁸, so that neither a front nor the penalty interferes.",
)


def chapter(size: Size) -> Chapter:
    """One width, ten dimensions, frequencies narrower than the function's, as wide, and as in the paper."""
    curves = [
        FittedCurve(f"d = {d}, scale {scale:g}", target=GaussianBump(d), features=Layer(scale=scale))
        for scale in WEIGHT_SCALES
        for d in STUDIED_DIMENSIONS
    ]
    study = Study(
        "dimension",
        title="Error against dimension",
        target=GaussianBump(1),
        features=Layer(scale=2.0),
        sampling=Sampling(points_per_width=10, focus=0.0),
        penalty=1e-8,
        widths=({"quick": 256, "default": 512, "full": 4096}[size],),
        seeds=seeds(size),
        curves=tuple(curves),
    )
    question = "How does the error grow with the dimension for a smooth function, at the same width?"
    return Chapter("dimension", study, question, _draw, DEVIATIONS, with_slopes=False)


def _draw(series: Sequence[Series]) -> list[Drawing]:
    figure, (axes,) = panels(1, height=3.2)
    figure.set_size_inches(5.2, 3.4)
    words = []
    for number, scale in enumerate(WEIGHT_SCALES):
        members = [one for one in series if one.first_fit.features.scale == scale]
        if not members:
            continue
        dims, means = [one.space_dim for one in members], [float(one.mean()[0]) for one in members]
        spread = [float(one.deviation()[0]) for one in members]
        axes.errorbar(
            dims,
            means,
            spread,
            color=COLOURS[number],
            marker=MARKERS[number],
            capsize=2,
            label=f"frequency scale {scale:g}",
        )
        words.append(f"Scale {scale:g}: error {means[0]:.1g} for d = {dims[0]}, {means[-1]:.1g} for d = {dims[-1]}.")
    width = int(series[0].widths[0])
    axes.set(xlabel="space dimension d", ylabel=ERROR_LABEL, xticks=STUDIED_DIMENSIONS)
    log_scale(axes, "y")
    axes.legend(loc="best")
    caption = (
        f"Relative L² error at width N = {width} against the dimension, for three scales of the frequencies; bars: one "
        "standard deviation."
    )
    return [Drawing("dimension", caption, "Logarithmic plot of error against dimension. " + " ".join(words), figure)]
