"""Functions on a domain as files for ParaView: triangles or tetrahedra with values at their corners."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.domain import SpaceTime
from rannpde.domains.export.simplices import filled
from rannpde.domains.shapes.base import Domain
from rannpde.domains.shapes.meshes import library
from rannpde.errors import finite_array, require
from rannpde.io import PathLike, write_whole

FINEST_FILE_CELLS = {2: 2048, 3: 160}
"""Cells along the longest side at most, by the dimension of space: some millions of simplices."""
MOMENTS = 11
"""Times of a series unless they are given."""

Values = Callable[[Array], Mapping[str, Array]]


def write_vtk(path: PathLike, domain: Domain, values: Values, resolution: int, times: Sequence[float] | None) -> Path:
    """Write values(points) → name → (M,) or (M, k) on a domain as ``.vtu``; over time a ``.pvd`` that lists several.

    Points of the boundary lie on it, so that holes are round. Gives back the path of the file to open.
    """
    timed = isinstance(domain, SpaceTime)
    file = Path(path)
    require(file.suffix == ".vtu", "path", str(path), "a name that ends in .vtu")
    require(timed or times is None, "times", times, "left out where the domain has no time")
    check_fineness(domain, resolution)
    meshio = library("meshio", "writing VTK files")
    points, cells = simplices_of(domain, resolution)
    if not isinstance(domain, SpaceTime):
        return _written(meshio, file, points, cells, values(points))
    moments = np.linspace(*domain.time, MOMENTS) if times is None else finite_array("times", times, 1)
    start, end = domain.time
    inside = bool(len(moments)) and bool(((moments >= start) & (moments <= end)).all())
    require(inside, "times", np.asarray(times).tolist(), f"one or more from {start:g} to {end:g}")
    listed = []
    for number, moment in enumerate(moments.tolist()):
        part = file.with_name(f"{file.stem}-{number:04d}.vtu")
        now = np.column_stack([np.full(len(points), moment), points])
        listed.append((moment, _written(meshio, part, points, cells, values(now)).name))
    return write_whole(file.with_suffix(".pvd"), _collection(listed))


def check_fineness(domain: Domain, resolution: int) -> None:
    """Refuse a space that VTK cannot show, and a mesh that is too fine."""
    space = domain.space if isinstance(domain, SpaceTime) else domain
    remedy = "use to_arrays()"
    require(space.dim in (2, 3), "the dimension of space", space.dim, "2 or 3 for a VTK file", remedy)
    finest = FINEST_FILE_CELLS[space.dim]
    require(2 <= resolution <= finest, "resolution", resolution, f"from 2 to {finest} in {space.dim}-D")


def simplices_of(domain: Domain, resolution: int) -> tuple[Array, Array]:
    """Points (P, d) of space and triangles or tetrahedra (C, d + 1) that fill it, points of the boundary on it."""
    check_fineness(domain, resolution)
    return filled(domain.space if isinstance(domain, SpaceTime) else domain, resolution)


def _written(meshio: Any, file: Path, points: Array, cells: Array, values: Mapping[str, Array]) -> Path:
    """One file. VTK knows space only: a plane lies at z = 0, vectors get a third component."""
    kind = "triangle" if points.shape[1] == 2 else "tetra"
    data = {name: in_space(array) if array.ndim == 2 else array for name, array in values.items()}
    mesh = meshio.Mesh(in_space(points), [(kind, cells)], point_data=data)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.part")
    try:
        mesh.write(temporary, file_format="vtu")
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
    return file


def in_space(rows: Array) -> Array:
    """Rows (M, d) with zeros for the missing coordinates of space: (M, 3)."""
    return np.pad(rows, ((0, 0), (0, 3 - rows.shape[1])))


def _collection(listed: list[tuple[float, str]]) -> str:
    """ParaView's list of files by time."""
    rows = [f'    <DataSet timestep="{moment!r}" part="0" file="{escape(name)}"/>' for moment, name in listed]
    head = '<VTKFile type="Collection" version="0.1" byte_order="LittleEndian">\n  <Collection>\n'
    return '<?xml version="1.0"?>\n' + head + "\n".join(rows) + "\n  </Collection>\n</VTKFile>\n"
