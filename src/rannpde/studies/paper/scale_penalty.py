"""Why 10 and 1e-5? The error over frequency scale and penalty, and what automatic choices give at the same width."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from rannpde.arrays import Array
from rannpde.studies.cell import PENALTY_RULES
from rannpde.studies.curves import FittedCurve
from rannpde.studies.layer import Layer
from rannpde.studies.show.analysis import Series
from rannpde.studies.show.chapter import Chapter, Size, Table
from rannpde.studies.show.figures import ERROR_LABEL, Drawing, log_scale, panels
from rannpde.studies.study import Study
from rannpde.studies.target import PorousMedium

SCALE_PENALTY_DIMENSIONS = (2, 4)
SWEPT_SCALES: dict[Size, tuple[float, ...]] = {
    "quick": (1.0, 2.0, 3.0, 5.0, 10.0, 20.0),
    "default": (1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 14.0, 20.0),
    "full": (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 14.0, 20.0, 30.0),
}
ROWS: tuple[float | str, ...] = (*(10.0**k for k in range(-11, 0, 2)), *PENALTY_RULES)
"""Penalties, then the rules that choose one."""
PAPER_SETTING = (10.0, 1e-5)
"""The paper's choice."""
ScaleAndPenalty = tuple[float, float | str]
"""Frequency scale, and penalty or rule."""
DEVIATIONS = (
    "Not in the paper, which uses scale 10 and λ = 10⁻⁵ unexplained. 'held-out' chooses λ from powers of ten by "
    "the error on a fifth of the training points and fits again on all; 'gcv' minimises the generalised "
    "cross-validation score. The automatic scale is the one of least held-out error. No rule sees test points.",
)


def chapter(size: Size) -> Chapter:
    """A heat map for d = 2 and for d = 4."""
    curves = [
        FittedCurve(
            f"d = {d}, scale {scale:g}, λ = {_show(penalty)}", PorousMedium(d), Layer(scale=scale), penalty=penalty
        )
        for d in SCALE_PENALTY_DIMENSIONS
        for scale in SWEPT_SCALES[size]
        for penalty in ROWS
    ]
    study = Study(
        "scale-penalty",
        title="Frequency scale and penalty",
        target=PorousMedium(2),
        features=Layer(),
        widths=(256 if size == "quick" else 512,),
        seeds=(0, 1) if size == "quick" else tuple(range(5)),
        curves=tuple(curves),
    )
    question = "Why the frequency scale 10 and the penalty 10⁻⁵? What would an automatic choice give at the same width?"
    return Chapter("scale-penalty", study, question, _draw, DEVIATIONS, _tables, with_slopes=False)


def _draw(series: Sequence[Series]) -> list[Drawing]:
    maps = {d: _by_choice(series, d) for d in SCALE_PENALTY_DIMENSIONS if any(one.space_dim == d for one in series)}
    figure, grid = panels(len(maps), 2)
    figure.set_size_inches(4.6 * len(maps), 3.4)
    words = []
    for axes, (d, series_of) in zip(grid, maps.items(), strict=True):
        scales = sorted({scale for scale, _ in series_of})
        errors = np.array([[_error(series_of, (scale, penalty)) for scale in scales] for penalty in ROWS])
        _heat_map(figure, axes, scales, errors)
        axes.set_title(f"d = {d}")
        best = min(series_of, key=lambda choice: _error(series_of, choice))
        words.append(f"d = {d}: least error {_error(series_of, best):.2g} at scale {best[0]:g}, λ {_show(best[1])}.")
    caption = (
        f"Mean relative L² error at N = {series[0].widths[0]} over frequency scale and penalty; in the two top rows λ "
        "is chosen from the data."
    )
    return [Drawing("scale-penalty", caption, "Heat maps. " + " ".join(words), figure)]


def _heat_map(figure: Figure, axes: Axes, scales: Sequence[float], errors: Array) -> None:
    """Errors (penalties, scales) in colour and as numbers."""
    norm = LogNorm(np.nanmin(errors), np.nanmax(errors))
    image = axes.pcolormesh(errors, norm=norm, cmap="cividis", edgecolors="white")
    for (row, column), value in np.ndenumerate(errors):
        ink = "black" if norm(value) > 0.5 else "white"
        axes.text(column + 0.5, row + 0.5, f"{value:.2g}", ha="center", va="center", fontsize=6.5, color=ink)
    axes.set_xticks(np.arange(len(scales)) + 0.5, [f"{scale:g}" for scale in scales])
    axes.set_yticks(np.arange(len(ROWS)) + 0.5, [_show(penalty) for penalty in ROWS])
    axes.set(xlabel="frequency scale", ylabel="penalty λ")
    axes.grid(False)
    bar = figure.colorbar(image, ax=axes, label=ERROR_LABEL)
    if bar.solids is not None:
        bar.solids.set(rasterized=False, edgecolor="face")  # vectors, as all the rest
    log_scale(bar.ax, "y")


def _by_choice(series: Sequence[Series], d: int) -> dict[ScaleAndPenalty, Series]:
    return {(one.first_fit.features.scale, one.first_fit.penalty): one for one in series if one.space_dim == d}


def _error(series_of: dict[ScaleAndPenalty, Series], choice: ScaleAndPenalty, quantity: str = "error") -> float:
    return float(series_of[choice].mean(quantity)[0]) if choice in series_of else np.nan


def _tables(series: Sequence[Series]) -> list[Table]:
    """The paper's choice, automatic ones, and the best that the map holds."""
    rows = []
    for d in SCALE_PENALTY_DIMENSIONS:
        series_of = _by_choice(series, d)
        for name, choice in _choices(series_of):
            if choice in series_of:
                numbers = (
                    f"{choice[0]:g}",
                    f"{_error(series_of, choice, 'penalty'):.1g}",
                    f"{_error(series_of, choice):.3g}",
                )
                rows.append((f"d = {d}", name, *numbers))
    head = ("function", "choice", "scale", "λ used", "error")
    return [Table("The paper's choice, automatic ones, and the best of the map.", head, tuple(rows))]


def _choices(series_of: dict[ScaleAndPenalty, Series]) -> list[tuple[str, ScaleAndPenalty]]:
    choices: list[tuple[str, ScaleAndPenalty]] = [("as in the paper", PAPER_SETTING)]
    choices += [(f"λ by {rule}", (PAPER_SETTING[0], rule)) for rule in PENALTY_RULES]
    held_out = [choice for choice in series_of if choice[1] == "held-out"]
    if held_out:
        scale = min(held_out, key=lambda choice: _error(series_of, choice, "validation_error"))[0]
        choices += [(f"scale by held-out, λ by {rule}", (scale, rule)) for rule in PENALTY_RULES]
    fixed = [choice for choice in series_of if choice[1] not in PENALTY_RULES]
    if fixed:
        choices.append(("best of the map", min(fixed, key=lambda choice: _error(series_of, choice))))
    return choices


def _show(penalty: float | str) -> str:
    return penalty if isinstance(penalty, str) else f"{penalty:.0e}"
