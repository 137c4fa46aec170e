"""Pictures of domains: outlines with the names of the sides in the plane, points of the surface in space."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import Side
from rannpde.domains.domain import SpaceTime
from rannpde.domains.operations.parts import border_of
from rannpde.domains.shapes.base import Domain
from rannpde.errors import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OUTLINE = 600
"""Points along the longest side of an outline."""
SURFACE = 4000
"""Points of the surface of a solid."""
CYCLED_COLOURS = 10


def plot_domain(domain: Domain, path: str | Path | None = None) -> Figure:
    """The boundary in colours, one for each side; of a space-time, that of its space."""
    from matplotlib.figure import Figure

    space = domain.space if isinstance(domain, SpaceTime) else domain
    require(space.dim in (2, 3), "the dimension of the domain", space.dim, "2 or 3 to be drawn")
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    if space.dim == 2:
        _outline(space, figure)
    else:
        _surface(space, figure)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _outline(domain: Domain, figure: Figure) -> None:
    from matplotlib.patches import Circle

    axes = figure.subplots()
    across, up = (np.linspace(lower, upper, 300) for lower, upper in domain.bounds)
    grid = np.stack([mesh.ravel() for mesh in np.meshgrid(across, up)], axis=1)
    level = domain.level(grid).reshape(len(up), len(across))
    axes.contourf(across, up, level, levels=[-np.inf, 0.0], colors=["#e9eef4"])
    size = float(np.linalg.norm(domain.bounds[:, 1] - domain.bounds[:, 0]))
    longest = max(side.measure for side in domain.sides.values())
    for number, (name, side) in enumerate(domain.sides.items()):
        colour = f"C{number % CYCLED_COLOURS}"
        count = max(50, round(OUTLINE * side.measure / longest))
        points = side.within(domain.bounds + size * np.array([-1.0, 1.0]), count, rng=0)
        axes.plot(points[:, 0], points[:, 1], ".", color=colour, markersize=2.2)
        _label(axes, name, side, points, colour, 0.02 * size)
    for corner in domain.corners:
        axes.add_patch(Circle(corner.point, 0.012 * size, fill=False, color="black", linewidth=0.8))
    axes.set_aspect("equal")
    margin = 0.1 * size  # room for the names of the outer sides
    (left, right), (bottom, top) = domain.bounds.tolist()
    axes.set(xlim=(left - margin, right + margin), ylim=(bottom - margin, top + margin))
    axes.set(xlabel=domain.names[0], ylabel=domain.names[1])


def _label(axes: Axes, name: str, side: Side, points: Array, colour: str, gap: float) -> None:
    """The name beside the middle of the side, outside of the domain."""
    middle = points[np.argmin(((points - np.median(points, axis=0)) ** 2).sum(axis=1))]
    normal = side.normals(middle[None, :])[0]
    position = middle + 2 * gap * normal
    axes.annotate(name, position, color=colour, fontsize=8, ha="center", va="center")


def _surface(domain: Domain, figure: Figure) -> None:
    axes = figure.add_subplot(projection="3d")
    total = border_of(domain.tree).measure
    for number, (name, side) in enumerate(domain.sides.items()):
        count = max(30, round(SURFACE * side.measure / total))
        points = side.sample(count, rng=0, method="sobol")
        axes.scatter(*points.T, s=2, color=f"C{number % CYCLED_COLOURS}", label=name)
    axes.legend(fontsize=7, markerscale=3)
    lengths = domain.bounds[:, 1] - domain.bounds[:, 0]
    axes.set_box_aspect(tuple(lengths))
    axes.set(xlabel=domain.names[0], ylabel=domain.names[1], zlabel=domain.names[2])
