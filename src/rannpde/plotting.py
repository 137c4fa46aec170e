"""Pictures of solutions: profiles and a space-time map in 1-D, panels in 2-D, slices beyond.

The one module below the studies that knows matplotlib; ``Solution.plot`` imports it when it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rannpde.arrays import Array
from rannpde.domains import Domain, SpaceTime
from rannpde.io import PathLike

if TYPE_CHECKING:
    from rannpde.pde.solution import Ensemble, Solution

_GRID = 120
_LINE = 400
_SNAPSHOTS = 5


def plot_solution(solution: Solution, path: PathLike | None = None) -> Figure:
    """The picture that suits the dimension; one row per field; written to ``path`` if given."""
    problem = solution.stated
    space_dim = problem.domain.dim - isinstance(problem.domain, SpaceTime)
    draw = {(1, False): _interval, (1, True): _space_time}.get(
        (space_dim, isinstance(problem.domain, SpaceTime)), _planes
    )
    figure = draw(solution, problem.domain)
    figure.suptitle(_title(solution), fontsize=11)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def plot_ensemble(ensemble: Ensemble, path: PathLike | None = None) -> Figure:
    """Mean and spread of every field over the first two coordinates, or over the one; the rest at mid-box."""
    first = ensemble.members[0]
    domain, fields = first.stated.domain, first.fields
    figure, axes = _canvas(len(fields), 2, width=4.6, height=3.2)
    shown: list[tuple[Callable[[Array], Array], str]] = [(ensemble, "mean"), (ensemble.spread, "spread")]
    for row, name in enumerate(fields):
        for column, (function, label) in enumerate(shown):
            place = axes[row, column]
            if domain.dim == 1:
                line = _span(domain, 0, _LINE)
                place.plot(line, np.reshape(function(line[:, None]), (_LINE, -1))[:, row])
                place.set(xlabel=domain.names[0], ylabel=f"{label} of {name}")
                continue
            plane = (1, 0) if isinstance(domain, SpaceTime) else (0, 1)
            points, across, up = _plane(domain, plane, None)
            values = np.reshape(function(points), (len(points), -1))[:, row]
            values = np.log10(np.maximum(values, 1e-17)) if column else values
            _colour(figure, place, domain, plane, across, up, points, values, "magma" if column else "viridis")
            place.set_title(f"log10 {label} of {name}" if column else f"{label} of {name}", fontsize=9)
    figure.suptitle(f"{first.title}: {len(ensemble.members)} independent draws", fontsize=11)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _title(solution: Solution) -> str:
    problem = solution.stated
    name = problem.name or "; ".join(str(equation) for equation in problem.equations.values())
    errors = ", ".join(f"{name} {error:.1e}" for name, error in solution.errors().items())
    verdict = "" if solution.converged else "   (DID NOT CONVERGE)"
    return (
        (name if len(name) < 80 else name[:77] + "…") + (f"   relative L² error: {errors}" if errors else "") + verdict
    )


def _interval(solution: Solution, domain: Domain) -> Figure:
    """Stationary problems on an interval: each field, with the exact solution and the error below it."""
    exact = solution.stated.exact_solution
    line = _span(domain, 0, _LINE)[:, None]
    values = solution.function(line)
    rows = 1 if exact is None else 2
    figure, axes = _canvas(rows, len(solution.fields), width=5.0, height=2.6)
    for column, name in enumerate(solution.fields):
        axes[0, column].plot(line[:, 0], values[:, column], label="solution")
        axes[0, column].set_ylabel(name)
        if exact is not None:
            wanted = exact(line)[:, column]
            axes[0, column].plot(line[:, 0], wanted, "k:", label="exact")
            axes[0, column].legend(frameon=False)
            axes[1, column].semilogy(line[:, 0], np.maximum(np.abs(values[:, column] - wanted), 1e-17))
            axes[1, column].set_ylabel(f"error of {name}")
        axes[-1, column].set_xlabel(domain.names[0])
    return figure


def _space_time(solution: Solution, domain: Domain) -> Figure:
    """One space dimension and time: snapshots, the space-time map, and the map of the error where it is known."""
    exact = solution.stated.exact_solution
    (start, end), (left, right) = domain.bounds
    figure, axes = _canvas(len(solution.fields), 2 if exact is None else 3, width=4.2, height=3.2)
    line = np.linspace(left, right, _LINE)
    for row, name in enumerate(solution.fields):
        for shade, time in enumerate(np.linspace(start, end, _SNAPSHOTS)):
            points = np.column_stack([np.full(_LINE, time), line])
            colour = f"C{shade}"
            axes[row, 0].plot(line, solution.function(points)[:, row], color=colour, label=f"t = {time:.3g}")
            if exact is not None:
                axes[row, 0].plot(line, exact(points)[:, row], "k:", linewidth=1)
        axes[row, 0].legend(frameon=False, fontsize=7)
        axes[row, 0].set(xlabel=domain.names[1], ylabel=name)
        _map(figure, axes[row, 1], domain, (1, 0), solution, exact, row, name, error=False)
        if exact is not None:
            _map(figure, axes[row, 2], domain, (1, 0), solution, exact, row, f"log10 error of {name}", error=True)
    return figure


def _planes(solution: Solution, domain: Domain) -> Figure:
    """Two space dimensions or more: panels in the first two, at three times if there is time, the rest at mid-box."""
    exact = solution.stated.exact_solution
    timed = isinstance(domain, SpaceTime)
    plane = (1, 2) if timed else (0, 1)
    times = _span(domain, 0, 3) if timed else np.array([np.nan])
    kinds = [False] if exact is None else [False, True]
    panels = [(field, error, time) for field in range(len(solution.fields)) for error in kinds for time in times]
    columns = len(times) if timed else len(kinds)
    figure, axes = _canvas(len(panels) // columns, columns, width=3.8, height=3.2)
    for place, (field, error, time) in zip(axes.flat, panels, strict=True):
        name = solution.fields[field]
        label = (f"log10 error of {name}" if error else name) + (f", t = {time:.3g}" if timed else "")
        _map(figure, place, domain, plane, solution, exact, field, label, error, time if timed else None)
        place.set_aspect("equal")
    rest = [n for k, n in enumerate(domain.names) if k not in plane and not (timed and k == 0)]
    if rest:
        figure.supxlabel(f"slice through the middle of {', '.join(rest)}", fontsize=8)
    return figure


def _map(
    figure: Figure, axes: Axes, domain: Domain, plane: tuple[int, int], solution: Solution, exact: Any, field: int,
    label: str, error: bool, time: float | None = None,
) -> None:  # fmt: skip
    """A colour map over two coordinates (horizontal, vertical), the others at the middle of the box, time as given."""
    points, across, up = _plane(domain, plane, time)
    values = solution.function(points)[:, field]
    if error:
        values = np.log10(np.maximum(np.abs(values - exact(points)[:, field]), 1e-17))
    _colour(figure, axes, domain, plane, across, up, points, values, "magma" if error else "viridis")
    axes.set_title(label, fontsize=9)


def _plane(domain: Domain, plane: tuple[int, int], time: float | None) -> tuple[Array, Array, Array]:
    """Points (G², n) over two coordinates, and the two axes (G,)."""
    across, up = (_span(domain, axis, _GRID) for axis in plane)
    points = np.tile(domain.bounds.mean(axis=1), (_GRID * _GRID, 1))
    mesh = np.meshgrid(across, up)
    points[:, plane[0]], points[:, plane[1]] = mesh[0].ravel(), mesh[1].ravel()
    if time is not None:
        points[:, 0] = time
    return points, across, up


def _colour(
    figure: Figure, axes: Axes, domain: Domain, plane: tuple[int, int], across: Array, up: Array, points: Array,
    values: Array, colours: str,
) -> None:  # fmt: skip
    shown = np.where(domain.contains(points), values, np.nan).reshape(_GRID, _GRID)
    image = axes.pcolormesh(across, up, shown, cmap=colours, shading="gouraud", rasterized=True)
    figure.colorbar(image, ax=axes)
    axes.set(xlabel=domain.names[plane[0]], ylabel=domain.names[plane[1]])


def _span(domain: Domain, axis: int, count: int) -> Array:
    lower, upper = domain.bounds[axis]
    return np.linspace(lower, upper, count)


def _canvas(rows: int, columns: int, width: float, height: float) -> tuple[Figure, Array]:
    figure = Figure(figsize=(width * columns, height * rows + 0.4), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)
