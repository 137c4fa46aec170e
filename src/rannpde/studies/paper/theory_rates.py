"""Rates of the unbiased network of Theorem 1 and of the fitted network side by side, on a smooth function."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from rannpde.plotting.style import COLOURS, MARKERS
from rannpde.studies.cell import Sampling
from rannpde.studies.curves import FittedCurve, UnbiasedCurve
from rannpde.studies.layer import Layer
from rannpde.studies.run.unbiased import UnbiasedResult
from rannpde.studies.show.analysis import Series
from rannpde.studies.show.chapter import Chapter, Size, Table, doubling, seeds
from rannpde.studies.show.figures import ERROR_LABEL, WIDTH_LABEL, Drawing, error_curve, log_axes, panels
from rannpde.studies.study import Study
from rannpde.studies.target import SmoothBump

DECAY = 0.25
"""π has λ_τ = 1/2 + 1/4 and λ_a = d/2 + 1/4: close to the limits of the theorem, where low orders of ψ suffice."""
RATE_DIMENSIONS = (1, 3)
UNBIASED_WIDTHS = doubling(8, 256)
"""A pool holds 32 networks of the largest: wider ones would only repeat a slope that is known to three digits."""
RATE_PENALTY = 1e-10
"""Small enough not to limit the fits at these widths, large enough for the columns of heavy-tailed weights."""
DEVIATIONS = (
    "Not in the paper, which proves the rate for the unbiased network and measures it for fitted ones. Here both act "
    "on one smooth function, u = exp(-|z|²/2) on (0, 1) × (-1, 1)^d, with tanh neurons.",
    "Fitted networks have a constant column, M = 10N uniform points and λ = 10⁻¹⁰; unbiased ones have neither.",
)


def chapter(size: Size) -> Chapter:
    """Unbiased networks under π and under the best law, fitted ones with weights from π and from a Gaussian."""
    heavy = Layer("tanh", "heavy-tailed", scale=1.0, decay=DECAY)
    curves: list[FittedCurve | UnbiasedCurve] = []
    for d in RATE_DIMENSIONS:
        for name, law in (("π", "heavy-tailed"), ("best law", "best")):
            label = f"unbiased, {name}, d = {d}"
            curves.append(UnbiasedCurve(label, SmoothBump(d), law, DECAY, "tanh", UNBIASED_WIDTHS))
        for name, layer in (("π", heavy), ("Gaussian", Layer("tanh", "gaussian", scale=1.0))):
            curves.append(FittedCurve(f"fitted, {name}, d = {d}", target=SmoothBump(d), features=layer))
    study = Study(
        "theory-rates",
        title="Unbiased and fitted networks",
        target=SmoothBump(),
        features=heavy,
        widths=doubling(8, {"quick": 256, "default": 512, "full": 2048}[size]),
        seeds=seeds(size),
        sampling=Sampling(focus=0.0, test_points=5_000),
        penalty=RATE_PENALTY,
        curves=tuple(curves),
    )
    question = (
        "The theorem's network needs no fit and has rate N^(-1/2); what does least squares make of the same neurons?"
    )
    return Chapter("theory-rates", study, question, _draw, DEVIATIONS, tables=_tables)


def _draw(series: Sequence[Series]) -> list[Drawing]:
    groups = {d: [one for one in series if one.space_dim == d] for d in sorted({one.space_dim for one in series})}
    figure, grid = panels(len(groups), columns=2, height=3.4)
    for axes, (d, members) in zip(grid, groups.items(), strict=True):
        for number, one in enumerate(members):
            if one.unbiased is None:
                error_curve(axes, one, number, label=one.label.split(", d")[0])
            else:
                _unbiased_curve(axes, one, one.unbiased, number)
        axes.set(title=f"d = {d}", xlabel=WIDTH_LABEL, ylabel=ERROR_LABEL)
        log_axes(axes)
        axes.legend(loc="lower left")
    caption = (
        "exp(-|z|²/2) on (0, 1) × (-1, 1)^d, tanh: the unbiased network of Theorem 1 (marks: measured; lines: exact "
        "variance) under π and under the law of least variance, and least squares on the same kinds of neurons."
    )
    spoken = "Log-log plots of errors against width, a panel for each dimension: two unbiased and two fitted networks."
    return [Drawing("theory-rates", caption, spoken, figure)]


def _unbiased_curve(axes: Axes, one: Series, result: UnbiasedResult, number: int) -> None:
    """Root-mean-square errors over the pools as marks, the exact ones as a line."""
    measured = [float(np.sqrt(np.square(errors).mean())) for errors in one.values()]
    label = one.label.split(", d")[0]
    axes.plot(one.widths, result.constant / np.sqrt(one.widths), color=COLOURS[number], lw=1.0)
    axes.plot(one.widths, measured, color=COLOURS[number], ls="", marker=MARKERS[number], label=label)


def _tables(series: Sequence[Series]) -> list[Table]:
    curves = [(one.label, one.unbiased) for one in series if one.unbiased is not None]
    rows = [(label, f"{one.slope:.3f} ± {one.halfwidth:.3f}", f"{one.constant:.3g}") for label, one in curves]
    head = ("network", "slope, 95 % from the pools", "√N · relative error, exact")
    return [Table("Unbiased networks: fitted slope and exact constant.", head, tuple(rows))] if rows else []
