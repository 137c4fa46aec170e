"""Pictures and pages of families: solutions over the range of each parameter, the decay and the size of the error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from rannpde.arrays import Array
from rannpde.domains import SpaceTime
from rannpde.io import PathLike
from rannpde.pde.family.history import FamilyHistory
from rannpde.pde.family.parametric import ParametricSolution
from rannpde.pde.family.shape_family import ShapeFamily
from rannpde.plotting.document import write_summary
from rannpde.plotting.style import style

CURVES, FAMILY_CURVE_POINTS = 9, 201
"""Values of a parameter that are drawn as curves, and points of each."""


def plot_family(family: ParametricSolution, path: PathLike | None = None) -> Figure:
    """For every parameter the first field at several of its values, the others at the middle of their ranges; then the
    error over the number of solves, and over the first parameter.

    Where the domain changes with the parameters, the outputs over each parameter replace the field.
    """
    ranges = family.ranges
    with style():
        figure = Figure(figsize=(3.6 * (len(ranges) + 2), 3.4), layout="constrained")
        panels = figure.subplots(1, len(ranges) + 2)
        for axes, parameter in zip(panels, ranges, strict=False):
            if isinstance(family, ShapeFamily):
                _outputs(axes, family, parameter)
            else:
                _curves(axes, family, parameter)
        _decay(panels[-2], family)
        _estimate(panels[-1], family)
        figure.suptitle(family.title)
        if path is not None:
            figure.savefig(path)
        return figure


def _section(family: ParametricSolution) -> tuple[Array, Array, str, str]:
    """Points (K, n) of a line across the domain, at the last time where there is one, and where it is."""
    domain = family.stated.domain
    bounds = np.asarray(domain.bounds, dtype=float)
    timed = isinstance(domain, SpaceTime)
    axis = 1 if timed else 0
    points = np.tile(bounds.mean(axis=1), (FAMILY_CURVE_POINTS, 1))
    along = np.linspace(bounds[axis, 0], bounds[axis, 1], FAMILY_CURVE_POINTS)
    points[:, axis] = along
    positions = []
    if timed:
        points[:, 0] = bounds[0, 1]
        positions.append(f"t = {bounds[0, 1]:g}")
    positions += [f"{domain.names[k]} = {points[0, k]:g}" for k in range(axis + 1, domain.dim)]
    return points, along, domain.names[axis], f" at {', '.join(positions)}" if positions else ""


def _outputs(axes: Any, family: ShapeFamily, parameter: str) -> None:
    """Outputs over a parameter, with bands of their errors; of several, each over its largest value."""
    one = family.ranges[parameter]
    fixed = {name: other.middle for name, other in family.ranges.items()}
    values = one.value(np.linspace(-1, 1, FAMILY_CURVE_POINTS))
    several = len(family.outputs) > 1
    for name, output in family.outputs.items():
        curve = np.array([output(**{**fixed, parameter: float(value)}) for value in values])
        size = np.abs(curve).max() or 1.0
        scale = 1 / size if several else 1.0
        (line,) = axes.plot(values, scale * curve, label=f"{name} / {size:.3g}" if several else name)
        low, high = scale * (curve - output.error), scale * (curve + output.error)
        axes.fill_between(values, low, high, color=line.get_color(), alpha=0.3, linewidth=0)
    if one.scale == "log":
        axes.set_xscale("log")
    axes.set_xlabel(parameter)
    axes.legend()


def _curves(axes: Any, family: ParametricSolution, parameter: str) -> None:
    points, along, name, position = _section(family)
    axes.set_xlabel(name)
    axes.set_ylabel(f"{family.fields[0]}{position}")
    inside = family.stated.domain.contains(points)
    fixed = {name: one.middle for name, one in family.ranges.items()}
    values = family.ranges[parameter].value(np.linspace(-1, 1, CURVES))
    for share, value in zip(np.linspace(0, 0.9, CURVES), values, strict=True):
        curve = np.full(len(points), np.nan)
        curve[inside] = family.field(family.fields[0], points[inside], **{**fixed, parameter: float(value)})
        ends = value in (values[0], values[-1])
        axes.plot(along, curve, color=colormaps["viridis"](share), label=f"{parameter} = {value:.3g}" if ends else None)
    axes.legend()


def _decay(axes: Any, family: ParametricSolution) -> None:
    assert isinstance(family.history, FamilyHistory)
    iterations = family.history.iterations
    known = [(one.solves, one.estimate) for one in iterations if np.isfinite(one.estimate) and one.estimate > 0]
    if known:
        axes.semilogy(*zip(*known, strict=True), marker=".")
    axes.set_xlabel("solves")
    axes.set_ylabel("estimated error, largest over the range")


def _estimate(axes: Any, family: ParametricSolution) -> None:
    parameter, one = next(iter(family.ranges.items()))
    fixed = {name: other.middle for name, other in family.ranges.items()}
    values = one.value(np.linspace(-1, 1, FAMILY_CURVE_POINTS))
    errors = [family.error(**{**fixed, parameter: float(value)}) for value in values]
    if np.isfinite(errors).all() and max(errors) > 0:
        (axes.loglog if one.scale == "log" else axes.semilogy)(values, errors)
    nodes = family.model.grid.nodes[:, 0]
    axes.plot(one.value(nodes), np.full(len(nodes), 0.02), "|", color="0.4", transform=axes.get_xaxis_transform())
    if one.scale == "log":
        axes.set_xticks([one.lower, one.middle, one.upper], [f"{v:.3g}" for v in (one.lower, one.middle, one.upper)])
        axes.minorticks_off()
    axes.set_xlabel(parameter)
    axes.set_ylabel("estimated relative error")


def write_family_page(family: ParametricSolution, path: PathLike, command: str = "") -> Path:
    """A page without scripts: statement, picture, report."""
    facts = [("estimated relative L² error, all values", f"{family.estimate:.1e}")]
    return write_summary(family, path, plot_family(family), facts, command=command)
