"""Fields of a solution as tables of other libraries: arrays on a grid, xarray, pandas, PyVista."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array, combinations
from rannpde.domains import Domain, SpaceTime
from rannpde.errors import InputError, finite_array, is_real, reject, require

if TYPE_CHECKING:
    from rannpde.pde.solution import Solution

Grid = int | Sequence[int] | Mapping[str, Any]
"""Number of points along every coordinate; one number for each; or name → number of points, or the points."""
MOST_GRID_POINTS = 2**24
"""Points of a grid at most: 128 MB for each field."""


def grid_axes(domain: Domain, grid: Grid) -> dict[str, Array]:
    """Name of a coordinate → its points (k,), equally spaced over the bounds of the domain unless they are given.

    >>> from rannpde.domains import Box
    >>> axes = grid_axes(Box(x=(0, 1), y=(0, 2)), {"x": [0.25, 0.5], "y": 3})
    >>> axes["x"].tolist(), axes["y"].tolist()
    ([0.25, 0.5], [0.0, 1.0, 2.0])
    """
    names = tuple(domain.names)
    if isinstance(grid, Mapping):
        for name in grid:
            require(name in names, "grid", name, f"a coordinate: {', '.join(names)}")
        wanted: list[Any] = [grid.get(name, 64) for name in names]
    elif is_real(grid):
        wanted = [grid] * domain.dim
    else:
        wanted = list(grid)  # type: ignore[arg-type]
        require(len(wanted) == domain.dim, "grid", grid, f"{domain.dim} numbers of points, one for each coordinate")
    axes = {}
    for name, one, (lower, upper) in zip(names, wanted, domain.bounds, strict=True):
        if not is_real(one):
            axes[name] = finite_array(f"grid[{name!r}]", one, 1)
            continue
        whole = float(one) == int(one) and one >= 2
        require(whole, "grid", one, f"a whole number from 2 to {int(MOST_GRID_POINTS ** (1 / domain.dim))}")
        require(one <= MOST_GRID_POINTS, "grid", one, f"at most {int(MOST_GRID_POINTS ** (1 / domain.dim))}")
        axes[name] = np.linspace(lower, upper, int(one))
    total = float(np.prod([float(len(axis)) for axis in axes.values()]))
    if total > MOST_GRID_POINTS:
        most = int(MOST_GRID_POINTS ** (1 / domain.dim))
        reject("grid", f"of {total:.0f} points", f"too fine for {domain.dim}-D, at most {most} along each coordinate")
    return axes


def grid_arrays(solution: Solution, grid: Grid) -> tuple[dict[str, Array], dict[str, Array]]:
    """Coordinates (1-D) and fields on their grid, NaN outside the domain."""
    domain = solution.stated.domain
    axes = grid_axes(domain, grid)
    points = combinations(list(axes.values()))
    values, inside = np.full((len(points), len(solution.fields)), np.nan), domain.contains(points)
    values[inside] = solution.function(points[inside])
    shape = tuple(len(axis) for axis in axes.values())
    return axes, {name: values[:, k].reshape(shape) for k, name in enumerate(solution.fields)}


def as_xarray(solution: Solution, grid: Grid) -> Any:
    """An xarray.Dataset with a summary of the solve as attributes."""
    xarray = optional_library("xarray", "to_xarray", "to_arrays()")
    axes, fields = grid_arrays(solution, grid)
    about = {"title": solution.title, "method": solution.method.name, "converged": int(solution.converged)}
    if np.isfinite(solution.estimate):
        about["estimated_relative_error"] = solution.estimate
    return xarray.Dataset({name: (tuple(axes), one) for name, one in fields.items()}, coords=axes, attrs=about)


def as_dataframe(solution: Solution, grid: Grid) -> Any:
    """A pandas.DataFrame with a row for each point of the grid inside the domain: coordinates, then fields."""
    pandas = optional_library("pandas", "to_dataframe", "to_arrays()")
    axes, fields = grid_arrays(solution, grid)
    points = combinations(list(axes.values()))
    inside = solution.stated.domain.contains(points)
    columns = {name: points[inside, k] for k, name in enumerate(axes)}
    return pandas.DataFrame(columns | {name: one.ravel()[inside] for name, one in fields.items()})


def as_pyvista(solution: Solution, resolution: int, time: float | None) -> Any:
    """A pyvista.UnstructuredGrid of triangles or tetrahedra that follow the boundary, with all fields at its points."""
    from rannpde.domains.export.vtk import in_space, simplices_of  # loads what shapes need to be filled

    pyvista = optional_library("pyvista", "to_pyvista", "to_vtk(…)")
    domain = solution.stated.domain
    points, cells = simplices_of(domain, resolution)
    if isinstance(domain, SpaceTime):
        start, end = domain.time
        moment = end if time is None else time
        require(is_real(moment) and start <= moment <= end, "time", moment, f"from {start:g} to {end:g}")
        where = np.column_stack([np.full(len(points), float(moment)), points])
    else:
        require(time is None, "time", time, "left out where the domain has no time")
        where = points
    kind = pyvista.CellType.TRIANGLE if points.shape[1] == 2 else pyvista.CellType.TETRA
    mesh = pyvista.UnstructuredGrid({kind: cells}, in_space(points))
    for name, array in named_values(solution, where).items():
        mesh.point_data[name] = in_space(array) if array.ndim == 2 else array
    return mesh


def named_values(solution: Solution, points: Array) -> dict[str, Array]:
    """Field → values (M,), and the vector that the first fields form, if they do, as (M, k)."""
    values = solution.function(points)
    named = {name: values[:, k] for k, name in enumerate(solution.fields)}
    vector = solution.vector
    return named | ({f"({', '.join(vector)})": values[:, : len(vector)]} if vector else {})


def optional_library(name: str, needed_by: str, instead: str) -> Any:
    """A library that is an extra of this package; an InputError that says how to install it where it is missing."""
    try:
        return import_module(name)
    except ImportError:
        raise InputError(f"{needed_by} needs the package {name}; pip install {name}, or use {instead}") from None
