"""Pictures of what was identified: intervals, bands, measured against predicted values, and maps for sensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rannpde.arrays import Array
from rannpde.domains import SpaceTime
from rannpde.io import PathLike
from rannpde.pde.inverse.identified import residuals_of
from rannpde.plotting.figures import HEADING, canvas, component, draw_map, finished, first_view, heading
from rannpde.plotting.style import COLOURS, style
from rannpde.plotting.typeset import inline_equation, symbol
from rannpde.plotting.view import SYMBOL_FONT_SIZE, Panel, View, scale_of, span

if TYPE_CHECKING:
    from rannpde.pde.inverse.design import Sensitivity
    from rannpde.pde.inverse.estimates import FunctionEstimate
    from rannpde.pde.inverse.identified import Identified

CURVE_POINTS, IDENTIFIED_GRID = 300, 80
"""Points of a curve, and along each side of a map."""
BAND, MEASURED = COLOURS[:2]
COLUMNS = 3
"""Panels side by side: more would be too small to read on a page."""


def plot_identified(solution: Identified, path: PathLike | None = None) -> Figure:
    """The first field with its sensors, the numbers with their intervals, functions with bands, the residuals."""
    with style():
        return finished(_identified(solution), path)


def _identified(solution: Identified) -> Figure:
    functions = list(solution.functions.values())
    panels = 2 + bool(solution.parameters) + sum(1 + (len(f.of) == 2) for f in functions)
    figure, empty_axes = _panels(panels)
    _field(figure, next(empty_axes), solution)
    if solution.parameters:
        _numbers(next(empty_axes), solution)
    for one in functions:
        _function(figure, empty_axes, one)
    _residuals(next(empty_axes), solution)
    for empty in empty_axes:
        empty.set_axis_off()
    figure.suptitle(heading(solution, figure.get_figwidth()), fontsize=HEADING)
    return figure


def _panels(panels: int) -> tuple[Figure, Iterator[Axes]]:
    """A figure with room for that many panels, row by row."""
    columns = min(panels, COLUMNS)
    figure, axes = canvas(-(-panels // columns), columns, width=4.2, height=3.4)
    return figure, iter(axes.ravel())


def _field(figure: Figure, axes: Axes, solution: Identified) -> None:
    """The first field: a curve with its band, or a map over the first two coordinates with the sensors on it."""
    domain, name = solution.stated.domain, solution.fields[0]
    points = [one.points for one in solution.stated.measurements if len(one.points) == len(one.values)]
    if domain.dim == 1:
        line = span(domain, 0, CURVE_POINTS)
        values = np.reshape(solution.function(line[:, None])[:, 0], -1)
        half = solution.factor * np.reshape(solution.std(line[:, None]), (CURVE_POINTS, -1))[:, 0]
        axes.fill_between(line, values - half, values + half, color=BAND, alpha=0.25, lw=0)
        axes.plot(line, values, color=BAND)
        _label(axes, domain.names[0], name)
        for one in solution.stated.measurements:
            if len(one.points) == len(one.values) and str(one.expression.formula) == name:
                axes.plot(one.points[:, 0], one.values, ".", color=MEASURED, ms=5, label="measured")
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
        return
    view = first_view(domain)
    assert view is not None
    draw_map(
        figure, axes, view, Panel(f"{inline_equation(name)} and where it was measured", component(solution.function, 0))
    )
    across, up = view.plane
    for sensors in points:
        size = 3 if len(sensors) > 200 else 6
        axes.plot(sensors[:, across], sensors[:, up], ".", color="white", mec="black", mew=0.4, ms=size)


def _label(axes: Axes, across: str, up: str) -> None:
    axes.set_xlabel(inline_equation(across), fontsize=SYMBOL_FONT_SIZE)
    axes.set_ylabel(inline_equation(up), fontsize=SYMBOL_FONT_SIZE)


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
    axes.set_yticks(range(len(names)), map(inline_equation, names), fontsize=SYMBOL_FONT_SIZE)
    axes.grid(False, axis="y")
    axes.set(ylim=(-0.6, len(names) - 0.2), xlabel="interval, percent of the value")
    axes.margins(x=0.3)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _function(figure: Figure, empty_axes: Iterator[Axes], one: FunctionEstimate) -> None:
    bounds = one.expanded.basis.cell.bounds
    axes = next(empty_axes)
    if len(one.of) == 1:
        line = np.linspace(bounds[0, 0], bounds[0, 1], CURVE_POINTS)
        lower, upper = one.band(line[:, None])
        axes.fill_between(line, lower, upper, color=BAND, alpha=0.25, lw=0)
        axes.plot(line, one(line[:, None]), color=BAND)
        _label(axes, one.of[0], one.name)
        axes.set_title(f"{inline_equation(one.name)} with its band", fontsize=SYMBOL_FONT_SIZE - 1)
        return
    first, second = (np.linspace(lower, upper, IDENTIFIED_GRID) for lower, upper in bounds[:2])
    grid = np.tile(bounds.mean(axis=1), (IDENTIFIED_GRID * IDENTIFIED_GRID, 1))
    grid[:, 0], grid[:, 1] = np.tile(first, IDENTIFIED_GRID), np.repeat(second, IDENTIFIED_GRID)
    shown = [Panel(inline_equation(one.name), one)]
    if len(one.of) == 2:
        shown.append(Panel(f"± of {inline_equation(one.name)}", lambda points: one.factor * one.std(points)))
    for number, panel in enumerate(shown):
        axes = axes if number == 0 else next(empty_axes)
        values = panel.values(grid).reshape(IDENTIFIED_GRID, IDENTIFIED_GRID)
        scale = scale_of(values, panel)
        axes.grid(False)
        shaded = axes.pcolormesh(
            first, second, values, cmap=scale.colours, shading="gouraud", rasterized=True,
            vmin=scale.least, vmax=scale.most,
        )  # fmt: skip
        figure.colorbar(shaded, ax=axes).outline.set_visible(False)
        _label(axes, *one.of[:2])
        axes.set_title(panel.label, fontsize=SYMBOL_FONT_SIZE - 1)


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
    line = np.linspace(-width, width, CURVE_POINTS)
    axes.plot(line, np.exp(-(line**2) / 2) / np.sqrt(2 * np.pi), color="black", lw=1, label="normal noise")
    axes.set(xlabel="(measured - predicted) / noise", yticks=[])
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right", "left"]].set_visible(False)


def plot_sensitivity(sensitivity: Sensitivity, path: PathLike | None = None) -> Figure:
    """θ ∂u/∂θ of the first field for every unknown number, and the best positions of sensors."""
    with style():
        return finished(_sensitivity(sensitivity), path)


def _sensitivity(sensitivity: Sensitivity) -> Figure:
    domain, names = sensitivity.problem.domain, list(sensitivity.values)
    field = sensitivity.problem.fields[0]
    best = sensitivity.best(2 * len(names))
    view = first_view(domain)
    told = f"What {inline_equation(field)} tells of each unknown, and where {len(best)} sensors tell most"
    if view is not None and isinstance(domain, SpaceTime) and domain.dim > 2:  # at a time of the sensors, not the last
        time = float(np.median(best[:, 0]))
        view = View.of(domain, view.plane, {0: time})
        told += f"\nmaps at $t = {time:.3g}$; sensors at times from {best[:, 0].min():.3g} to {best[:, 0].max():.3g}"
    figure, empty_axes = _panels(len(names))
    for name in names:
        axes, values = next(empty_axes), _change(sensitivity, name)
        title = rf"${symbol(name)}\ \partial {symbol(field)} / \partial {symbol(name)}$"
        if view is None:
            line = span(domain, 0, CURVE_POINTS)
            axes.plot(line, values(line[:, None]), color=BAND)
            axes.plot(best[:, 0], values(best), "o", color=MEASURED)
            axes.set_xlabel(inline_equation(domain.names[0]), fontsize=SYMBOL_FONT_SIZE)
            axes.set_title(title, fontsize=SYMBOL_FONT_SIZE)
            continue
        draw_map(figure, axes, view, Panel(title, values))
        across, up = best[:, list(view.plane)].T
        axes.plot(across, up, "o", color="white", mec="black", ms=6, clip_on=False, zorder=3)
    for empty in empty_axes:
        empty.set_axis_off()
    figure.suptitle(told, fontsize=HEADING)
    return figure


def _change(sensitivity: Sensitivity, name: str) -> Callable[[Array], Array]:
    return lambda points: sensitivity(points)[name]
