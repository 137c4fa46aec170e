"""Generalisation: test error against the number of noisy samples, beside the rates of random feature ridge
regression."""

from __future__ import annotations

from collections.abc import Sequence

from rannpde.studies.curves import MeasuredCurve
from rannpde.studies.layer import Layer
from rannpde.studies.run.generalisation import SampleError
from rannpde.studies.show.analysis import Series
from rannpde.studies.show.chapter import Chapter, Size, Table, doubling
from rannpde.studies.show.figures import ERROR_LABEL, Drawing, error_curve, log_axes, panels
from rannpde.studies.study import Study
from rannpde.studies.target import GaussianBump

RULES = {"fixed": "N = 64", "root": "N = √M", "root-log": "N = √M log M"}
NOISES = (0.0, 0.1, 0.5)
_LAST: dict[Size, int] = {"quick": 4096, "default": 16384, "full": 65536}
RATES = (("M^(-1/4), guaranteed", -0.25, ":"), ("M^(-1/2)", -0.5, "--"))
DEVIATIONS = (
    "Not in the paper, which proves approximation and cites Rudi and Rosasco (2017) for generalisation. They "
    "show for ridge "
    "regression with λ ~ M^(-1/2) and N ~ √M log M random features an excess risk of order M^(-1/2), an L² "
    "error of order "
    "M^(-1/4), for every function of the kernel's space, and faster rates, up to M^(-1/2), for smoother ones.",
    "u = exp(-|z - c|²/(2·0.5²)) on (0, 1)³ (d = 2), Fourier features of scale 4 on [-1, 1], λ = 10⁻⁴ M^(-1/2); "
    "the noise is "
    "Gaussian, in units of the root mean square of u; errors are against u without noise.",
)


def chapter(size: Size) -> Chapter:
    """Three rules for the width, three levels of noise."""
    sizes = doubling(64, _LAST[size])
    curves = [
        MeasuredCurve(f"noise {noise:g}, {name}", SampleError("", "", GaussianBump(2), 0, sizes, noise, rule))
        for noise in NOISES
        for rule, name in RULES.items()
    ]
    study = Study(
        "generalisation",
        title="Generalisation: error against samples",
        target=GaussianBump(2),
        features=Layer(),
        widths=(64,),
        seeds=(0,),
        curves=tuple(curves),
    )
    question = "How does the test error fall with the number M of samples, with noise, at a fixed width and at N ~ √M?"
    return Chapter("generalisation", study, question, _draw, DEVIATIONS, _tables, with_slopes=False)


def _draw(series: Sequence[Series]) -> list[Drawing]:
    groups = [
        (f"noise {noise:g}", [one for one in series if one.label.startswith(f"noise {noise:g},")]) for noise in NOISES
    ]
    groups = [group for group in groups if group[1]]
    figure, grid = panels(len(groups))
    figure.set_figheight(figure.get_figheight() + 0.5)
    words = []
    for axes, (heading, members) in zip(grid, groups, strict=True):
        for number, one in enumerate(members):
            error_curve(axes, one, number, label=one.label.split(", ", 1)[1])
            words.append(f"{one.label}: {one.mean()[0]:.2g} to {one.mean()[-1]:.2g}.")
        sizes, first = members[0].widths, float(members[0].mean()[0])
        for label, rate, dash in RATES:
            axes.plot(sizes, first * (sizes / sizes[0]) ** rate, color="black", ls=dash, lw=1.0, label=label)
        axes.set(title=heading, xlabel="samples M")
        log_axes(axes)
    grid[0].set_ylabel(ERROR_LABEL)
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    caption = (
        "Test error against the number of samples, at a fixed width and at widths that grow with √M; bands of "
        "one standard "
        "deviation over draws; dotted the guaranteed M^(-1/4), dashed M^(-1/2)."
    )
    return [Drawing("generalisation", caption, "Log-log plots of errors against samples. " + " ".join(words), figure)]


def _tables(series: Sequence[Series]) -> list[Table]:
    rows = [
        (one.label, f"{one.mean()[-1]:.2g}", f"{one.slope.value:.2f} [{one.slope.low:.2f}, {one.slope.high:.2f}]")
        for one in series
        if one.slope is not None
    ]
    head = ("samples", "last error", "slope in M, 95 % interval")
    return [Table("Slopes of log error against log M; guaranteed: -1/4.", head, tuple(rows))] if rows else []
