"""Error against the dimension d = 1, …, 1,000 at a fixed cost, for a nonlinear equation along paths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rannpde.plotting.style import COLOURS
from rannpde.studies.control import ControlValue
from rannpde.studies.layer import Layer
from rannpde.studies.run.paths import PathsResult
from rannpde.studies.show.analysis import Series
from rannpde.studies.show.chapter import Chapter, Size, Table, seeds
from rannpde.studies.show.figures import Drawing, log_axes, panels
from rannpde.studies.study import PathsCurve, Study

DIMENSIONS = {
    "quick": (1, 10, 100),
    "default": (1, 3, 10, 30, 100, 300, 1000),
    "full": (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
}
TRAINING, PATHS, STEPS, WIDTH = 2000, 8192, 8, 32
DEVIATIONS = (
    "Not in the paper, whose rate N^(-1/2) does not depend on the dimension. The equation is u_t + Δu = |∇u|² with "
    "u(1) = log((1 + |x|²)/2), whose value at the origin is one integral in every dimension; steps, neurons and paths "
    "are the same in all of them.",
)


def chapter(size: Size) -> Chapter:
    """One equation, dimensions from 1 to 1,000, the same paths, steps and neurons."""
    curves = [PathsCurve(f"d = {d}", ControlValue(d), STEPS, TRAINING, PATHS) for d in DIMENSIONS[size]]
    study = Study(
        "many-dimensions",
        title="A nonlinear equation in 1 to 1,000 dimensions",
        target=ControlValue(1),
        features=Layer("tanh", "gaussian", scale=1.0),
        widths=(WIDTH,),
        seeds=seeds(size),
        curves=tuple(curves),
    )
    question = (
        "How does the error of a nonlinear equation grow with the dimension at a fixed number of paths and neurons?"
    )
    return Chapter("many-dimensions", study, question, _draw, DEVIATIONS, tables=_tables, with_slopes=False)


def _draw(series: Sequence[Series]) -> list[Drawing]:
    figure, (axes,) = panels(1, height=3.2)
    figure.set_size_inches(5.2, 3.4)
    dims = np.array([one.space_dim for one in series])
    errors = np.array([float(np.sqrt(np.mean(np.square(one.values()[0])))) for one in series])
    widths = np.array([float(one.mean("halfwidth")[0]) for one in series])
    axes.plot(dims, widths, color=COLOURS[0], marker="o", label="half-width of the 95 % interval")
    axes.plot(dims, errors, color=COLOURS[1], marker="s", ls="", label="error, root mean square over seeds")
    axes.plot(dims, np.full(len(dims), widths[-1]), color="0.6", lw=0.8, ls=":", label="free of the dimension")
    axes.set(xlabel="dimension d", ylabel="relative to u(0, 0)")
    log_axes(axes)
    axes.legend()
    caption = (
        f"u_t + Δu = |∇u|² at the origin: relative error and interval against d, with {PATHS} fresh paths, {TRAINING} "
        f"training paths, {STEPS} steps and {WIDTH} neurons in every dimension, beside a line that is free of d."
    )
    spoken = "Log-log plot of error and interval against dimension from 1 to 1,000; both fall with the dimension."
    return [Drawing("many-dimensions", caption, spoken, figure)]


def _tables(series: Sequence[Series]) -> list[Table]:
    rows = []
    for one in series:
        found = [result for result in one.results.values() if isinstance(result, PathsResult)]
        own = [result for cell in one.cells if isinstance(result := one.results.get(cell.key), PathsResult)]
        if not found or not own:
            continue
        held = sum(result.error <= result.halfwidth for result in own)
        seconds = float(np.median([result.seconds for result in own]))
        rows.append(
            (
                one.label,
                f"{one.mean()[0]:.1e}",
                f"{one.mean('halfwidth')[0]:.1e}",
                f"{held} of {len(own)}",
                f"{seconds:.1f}",
            )
        )
    head = ("dimension", "mean relative error", "half-width", "intervals that hold it", "seconds")
    return [Table("The same cost in every dimension.", head, tuple(rows))] if rows else []
