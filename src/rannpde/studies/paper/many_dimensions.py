"""Error against the dimension d = 1, …, 1,000 at a fixed cost, for two nonlinear equations along paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rannpde.plotting.style import COLOURS
from rannpde.studies.cell import PathsCell
from rannpde.studies.curves import PathsCurve
from rannpde.studies.known_values import ControlValue, KnownValue, ReactionValue
from rannpde.studies.layer import Layer
from rannpde.studies.run.paths import PathsResult
from rannpde.studies.show.analysis import Series
from rannpde.studies.show.chapter import Chapter, Size, Table, seeds
from rannpde.studies.show.figures import Drawing, log_axes, log_scale, panels
from rannpde.studies.study import Study


@dataclass(frozen=True)
class PathsCost:
    """The cost of every dimension: steps in time, neurons, training paths, fresh paths."""

    steps: int
    width: int
    training: int
    paths: int


DIMENSIONS: dict[Size, tuple[int, ...]] = {
    "quick": (1, 10, 100, 1000),
    "default": (1, 3, 10, 30, 100, 300, 1000),
    "full": (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
}
COSTS: dict[Size, PathsCost] = {
    "quick": PathsCost(4, 16, 1000, 1024),
    "default": PathsCost(8, 32, 2000, 8192),
    "full": PathsCost(8, 32, 2000, 8192),
}
PATHS_EQUATIONS: dict[str, type[KnownValue]] = {
    "u_t + Δu = |∇u|²": ControlValue,
    "u_t + Δu/2 + min(1, (u - v)²) = 0": ReactionValue,
}
DEVIATIONS = (
    "Not in the paper, whose rate N^(-1/2) does not depend on the dimension, and whose experiments end at d = 5. The "
    "first equation has u(1) = log((1 + |x|²)/2), and its value at the origin is one integral in every dimension "
    "(Cole and Hopf); the second has the explicit solution v = 8/5 + sin(Σx/√d) e^((t-1)/2). Steps, neurons and paths "
    "are the same in all dimensions; output weights are those of one ridge regression a step.",
    "1/√N and 1/√M are drawn with the constant 1, N being the neurons and M the fresh paths: they tell what 'free of "
    "the dimension' looks like, not what was proven for these equations. The grey curve is n^(-2/d), the order of a "
    "grid with as many points n as the paths have states, steps × M: no grid was computed.",
)


def chapter(size: Size) -> Chapter:
    """Two equations, dimensions from 1 to 1,000, the same paths, steps and neurons."""
    cost = COSTS[size]
    curves = [
        PathsCurve(f"{name}, d = {d}", kind(d), cost.steps, cost.training, cost.paths)
        for name, kind in PATHS_EQUATIONS.items()
        for d in DIMENSIONS[size]
    ]
    study = Study(
        "many-dimensions",
        title="Nonlinear equations in 1 to 1,000 dimensions",
        target=ControlValue(1),
        features=Layer("tanh", "gaussian", scale=1.0),
        widths=(cost.width,),
        seeds=seeds(size),
        curves=tuple(curves),
    )
    question = (
        "How does the error of a nonlinear equation grow with the dimension at a fixed number of paths and neurons?"
    )
    return Chapter("many-dimensions", study, question, _draw, DEVIATIONS, tables=_tables, with_slopes=False)


def _groups(series: Sequence[Series]) -> dict[str, list[Series]]:
    """equation → its curves by dimension."""
    groups: dict[str, list[Series]] = {}
    for one in series:
        groups.setdefault(one.label.rsplit(", ", 1)[0], []).append(one)
    return groups


def _draw(series: Sequence[Series]) -> list[Drawing]:
    groups, words = _groups(series), []
    figure, grid = panels(len(groups), height=3.2)
    lowest = min(float(np.min(one.values()[0])) for one in series)
    figure.set_figwidth(4.2 * len(groups))
    figure.set_figheight(3.9)
    cell = series[0].cells[0]
    assert isinstance(cell, PathsCell)
    for axes, (name, members) in zip(grid, groups.items(), strict=True):
        dims = np.array([one.space_dim for one in members])
        errors = [np.asarray(one.values()[0]) for one in members]
        middle = np.array([float(np.sqrt(np.mean(np.square(row)))) for row in errors])
        interval = np.array([float(one.mean("halfwidth")[0]) for one in members])
        low, high = np.array([row.min() for row in errors]), np.array([row.max() for row in errors])
        axes.fill_between(dims, low, high, color=COLOURS[1], alpha=0.2, lw=0)
        axes.plot(
            dims, middle, color=COLOURS[1], marker="s", label="error, root mean square over seeds; band: all seeds"
        )
        axes.plot(dims, interval, color=COLOURS[0], marker="o", label="half-width of the 95 % interval")
        for count, sign, dash in ((cell.width, "N", "--"), (cell.paths, "M", ":")):
            text = f"1/√{sign}, {sign} = {count}: free of the dimension"
            axes.plot(dims, np.full(len(dims), count**-0.5), color="black", ls=dash, lw=1.0, label=text)
        dimensions, points = np.geomspace(dims[0], dims[-1], 200), cell.paths * cell.steps
        text = f"n^(-2/d): a grid of n = {points} points, as many as states of paths"
        axes.plot(dimensions, points ** (-2 / dimensions), color="0.6", lw=2.0, label=text)
        axes.set(title=name, xlabel="dimension d", ylim=(0.5 * lowest, 2.0))
        log_axes(axes)
        log_scale(axes, "x")
        words.append(
            f"{name}: error {middle[0]:.1g} for d = {dims[0]}, {middle[-1]:.1g} for d = {dims[-1]}; half-widths "
            f"{interval[0]:.1g} and {interval[-1]:.1g}."
        )
    grid[0].set_ylabel("relative to u(0, 0)")
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    caption = (
        f"Two nonlinear equations at the origin: relative error and interval against d, with M = {cell.paths} fresh "
        f"paths, {cell.training} training paths, {cell.steps} steps and N = {cell.width} neurons in every dimension, "
        "beside lines that are free of d, and the order of a grid with as many points, which no dimension above a few "
        "leaves any use."
    )
    return [Drawing("many-dimensions", caption, "Log-log plots against the dimension. " + " ".join(words), figure)]


def _tables(series: Sequence[Series]) -> list[Table]:
    rows = []
    for one in series:
        own = [result for cell in one.cells if isinstance(result := one.results.get(cell.key), PathsResult)]
        if not own:
            continue
        held = sum(result.error <= result.halfwidth for result in own)
        seconds = float(np.median([result.seconds for result in own]))
        error, halfwidth = one.mean()[0], one.mean("halfwidth")[0]
        rows.append((one.label, f"{error:.1e}", f"{halfwidth:.1e}", f"{held} of {len(own)}", f"{seconds:.1f}"))
    head = ("equation and dimension", "mean relative error", "half-width", "intervals that hold it", "seconds")
    return [Table("The same paths, steps and neurons in every dimension.", head, tuple(rows))] if rows else []
