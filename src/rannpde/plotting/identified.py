"""Pictures of what was identified: intervals, bands, measured against predicted values, and maps for sensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rannpde.arrays import Array
from rannpde.io import PathLike
from rannpde.pde.inverse.identified import residuals_of
from rannpde.plotting.figures import HEADING, component, draw_map, first_view, heading
from rannpde.plotting.style import style
from rannpde.plotting.view import Panel

if TYPE_CHECKING:
    from rannpde.pde.inverse.design import Sensitivity
    from rannpde.pde.inverse.estimates import FunctionEstimate
    from rannpde.pde.inverse.identified import Identified

LINE, GRID = 300, 80
"""Points of a curve, and along each side of a map."""
BAND, MEASURED = "#0072b2", "#d55e00"
"""Blue and vermilion, apart for all eyes."""


def plot_identified(solution: Identified, path: PathLike | None = None) -> Figure:
    """The first field with its sensors, the numbers with their intervals, functions with bands, the residuals."""
    with style():
        figure = _identified(solution)
        if path is not None:
            figure.savefig(path, dpi=150)
    return figure


def _identified(solution: Identified) -> Figure:
    functions = list(solution.functions.values())
    panels = 2 + bool(solution.parameters) + sum(1 + (len(f.of) == 2) for f in functions)
    columns = min(panels, 3)
    rows = -(-panels // columns)
    figure = Figure(figsize=(4.2 * columns, 3.4 * rows + 0.4), layout="constrained")
    places = iter(np.atleast_1d(figure.subplots(rows, columns)).ravel())
    _field(figure, next(places), solution)
    if solution.parameters:
        _numbers(next(places), solution)
    for one in functions:
        _function(figure, places, one)
    _residuals(next(places), solution)
    for empty in places:
        empty.set_axis_off()
    figure.suptitle(heading(solution, figure.get_figwidth()), fontsize=HEADING)
    return figure


def _field(figure: Figure, axes: Axes, solution: Identified) -> None:
    """The first field: a curve with its band, or a map over the first two coordinates with the sensors on it."""
    domain, name = solution.stated.domain, solution.fields[0]
    points = [one.points for one in solution.stated.measurements if len(one.points) == len(one.values)]
    if domain.dim == 1:
        line = span(domain.bounds[0], LINE)
        values = np.reshape(solution.function(line[:, None])[:, 0], -1)
        half = solution.factor * np.reshape(solution.std(line[:, None]), (LINE, -1))[:, 0]
        axes.fill_between(line, values - half, values + half, color=BAND, alpha=0.25, lw=0)
        axes.plot(line, values, color=BAND)
        axes.set(xlabel=domain.names[0], ylabel=name)
        for one in solution.stated.measurements:
            if len(one.points) == len(one.values) and str(one.expression.formula) == name:
                axes.plot(one.points[:, 0], one.values, ".", color=MEASURED, ms=5, label="measured")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False)
        return
    view = first_view(domain)
    assert view is not None
    draw_map(figure, axes, view, Panel(f"{name} and where it was measured", component(solution.function, 0)))
    across, up = view.plane
    for places in points:
        size = 3 if len(places) > 200 else 6
        axes.plot(places[:, across], places[:, up], ".", color="white", mec="black", mew=0.4, ms=size)


def _shade(figure: Figure, axes: Axes, first: Array, second: Array, values: Array) -> None:
    shaded = axes.pcolormesh(
        first, second, values.reshape(len(first), len(second)).T, shading="gouraud", rasterized=True
    )
    figure.colorbar(shaded, ax=axes)


def span(ends: Array, count: int) -> Array:
    """Points from end to end."""
    return np.linspace(float(ends[0]), float(ends[1]), count)


def _numbers(axes: Axes, solution: Identified) -> None:
    """Intervals over the values, each in its own percent."""
    names = list(solution.parameters)
    for row, one in enumerate(solution.parameters.values()):
        size = abs(one.value) or 1.0
        ends = [100 * (end - one.value) / size for end in one.interval]
        if np.isfinite(ends).all():
            axes.plot(ends, [row, row], color=BAND, lw=3, solid_capstyle="butt")
        axes.plot(0, row, "o", color=BAND, mec="white")
        axes.annotate(str(one), (0, row), xytext=(0, 9), textcoords="offset points", ha="center", fontsize=8)
    axes.set_yticks(range(len(names)), names)
    axes.set(ylim=(-0.6, len(names) - 0.2), xlabel="interval, percent of the value")
    axes.margins(x=0.3)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _function(figure: Figure, places: Iterator[Axes], one: FunctionEstimate) -> None:
    bounds = one.expanded.basis.cell.bounds
    axes = next(places)
    if len(one.of) == 1:
        line = span(bounds[0], LINE)
        lower, upper = one.band(line[:, None])
        axes.fill_between(line, lower, upper, color=BAND, alpha=0.25, lw=0)
        axes.plot(line, one(line[:, None]), color=BAND)
        axes.set(xlabel=one.of[0], ylabel=one.name, title=f"{one.name} with its band")
        return
    first, second = (span(bounds[k], GRID) for k in (0, 1))
    grid = np.tile(bounds.mean(axis=1), (GRID * GRID, 1))
    grid[:, 0], grid[:, 1] = np.repeat(first, GRID), np.tile(second, GRID)
    shown = [(one(grid), one.name)] + ([(one.factor * one.std(grid), f"± of {one.name}")] if len(one.of) == 2 else [])
    for number, (values, title) in enumerate(shown):
        axes = axes if number == 0 else next(places)
        _shade(figure, axes, first, second, values)
        axes.set(xlabel=one.of[0], ylabel=one.of[1], title=title)


def _residuals(axes: Axes, solution: Identified) -> None:
    """Residuals over the noise, beside what normal noise would give."""
    everything = np.concatenate(list(residuals_of(solution).values()))
    width = max(4.0, float(np.abs(everything).max()))
    axes.hist(
        everything,
        bins=min(40, max(8, len(everything) // 8)),
        range=(-width, width),
        color=MEASURED,
        alpha=0.5,
        density=True,
    )
    line = np.linspace(-width, width, LINE)
    axes.plot(line, np.exp(-(line**2) / 2) / np.sqrt(2 * np.pi), color="black", lw=1, label="normal noise")
    axes.set(xlabel="(measured - predicted) / noise", yticks=[])
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right", "left"]].set_visible(False)


def plot_sensitivity(sensitivity: Sensitivity, path: PathLike | None = None) -> Figure:
    """θ ∂u/∂θ of the first field for every unknown number, and the places of the best sensors."""
    domain, names = sensitivity.problem.domain, list(sensitivity.values)
    figure = Figure(figsize=(4.6 * len(names), 3.6), layout="constrained")
    all_axes = np.atleast_1d(figure.subplots(1, len(names)))
    best = sensitivity.best(2 * len(names))
    for axes, name in zip(all_axes, names, strict=True):
        title = f"change of {sensitivity.problem.fields[0]} with {name}"
        if domain.dim == 1:
            line = span(domain.bounds[0], LINE)
            axes.plot(line, sensitivity(line[:, None])[name], color=BAND)
            axes.plot(best[:, 0], sensitivity(best)[name], "o", color=MEASURED)
            axes.set(xlabel=domain.names[0], title=title)
            continue
        view = first_view(domain)
        assert view is not None
        draw_map(figure, axes, view, Panel(title, lambda points, name=name: sensitivity(points)[name]))  # type: ignore[misc]
        axes.plot(*best[:, list(view.plane)].T, "o", color=MEASURED, mec="white", clip_on=False)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
