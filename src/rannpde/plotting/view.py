"""One panel of a picture: colours over a plane of two coordinates that end at the boundary of the domain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.path import Path
from scipy.spatial import cKDTree

from rannpde.arrays import Array
from rannpde.domains import Box, Domain, SpaceTime
from rannpde.domains.export.outline import outlines, section_outlines
from rannpde.pde.solution import Solution
from rannpde.plotting.style import ONE_SIGN, TWO_SIGNS
from rannpde.plotting.typeset import inline_equation

PANEL_GRID = 120
"""Points of a panel along each axis."""
STREAMS = 0.9
"""Density of streamlines, of thirty along each axis."""
STILL = 1e-6
"""Speeds below this share of the largest that is drawn count as rest."""
ARROWS = 20
"""Arrows along each axis."""
SYMBOL_FONT_SIZE = 11
"""Size of symbols on axes: mathematics is set smaller than text of the same size."""
BOTH_SIGNS = 0.1
"""The smaller extreme over the larger from which values count as being of both signs: less is an undershoot."""
CUTS = (0.5, 0.25, 0.75, 0.35, 0.65, 0.42, 0.58)
"""Where a coordinate that is not shown may be cut, as shares of its length: the first unless values are small there."""
LEAST_SECTION_SIZE = 0.2
"""Mean size of a function in a cut, over the largest of all cuts, below which another cut is taken."""
CUT_POINTS = 512
"""Points at which the size of a function in a cut is measured."""


@dataclass(frozen=True, eq=False)
class Panel:
    """The contents of one picture: a number at points (M, n), in colours, and arrows (M, d) or streamlines over it.

    Without a colour map of its own, values of both signs are white at zero (see ``scale``).
    """

    label: str
    values: Callable[[Array], Array]
    colours: str = ""
    arrows: Callable[[Array], Array] | None = None
    streams: bool = False
    logarithm: bool = False
    deformed: bool = False


@dataclass(frozen=True, eq=False)
class View:
    """A plane of two coordinates through the middle of a domain, or at a time: a grid on it and the boundary in it.

    Grid points just outside take the value of the nearest point of the boundary, so that colours reach up to it; the
    picture is then cut along the boundary itself.
    """

    domain: Domain
    plane: tuple[int, int]
    middle: Array
    across: Array
    up: Array
    loops: tuple[Array, ...]
    points: Array
    known: Array
    inside: Array

    @classmethod
    def of(
        cls, domain: Domain, plane: tuple[int, int], at: Mapping[int, float] | None = None, grid: int = PANEL_GRID
    ) -> View:
        """A plane of two coordinates; ``at`` gives others, the rest are in the middle; ``grid`` points each way."""
        space = domain.space if isinstance(domain, SpaceTime) else domain
        first = domain.dim - space.dim
        middle = domain.bounds.mean(axis=1)
        for axis, value in (at or {}).items():
            middle[axis] = value
        across, up = (span(domain, axis, grid) for axis in plane)
        flat = np.stack([mesh.ravel() for mesh in np.meshgrid(across, up)], axis=1)
        if isinstance(space, Box):
            loops: tuple[Array, ...] = ()
        elif space.dim == 2:
            loops = tuple(outlines(space))
        else:
            inner = (plane[0] - first, plane[1] - first)
            loops = tuple(section_outlines(space, inner, middle[first:]))
        points = _lifted(middle, plane, flat)
        inside = domain.contains(points)
        known = inside.copy()
        if loops:
            rim = np.concatenate(loops)
            distance, nearest = cKDTree(rim).query(flat)
            # two cells: the corners of each cell that the boundary crosses
            band = ~inside & (distance <= 2 * float(np.hypot(across[1] - across[0], up[1] - up[0])))
            points[band] = _lifted(middle, plane, rim[nearest[band]])
            known |= band
        return cls(domain, plane, middle, across, up, loops, points, known, inside)

    def at(self, time: float) -> View:
        """The same plane of a space-time at another time."""
        middle, points = self.middle.copy(), self.points.copy()
        middle[0] = points[:, 0] = time
        return replace(self, middle=middle, points=points)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of a panel in inches: a long channel is drawn long."""
        width, height = (float(axis[-1] - axis[0]) for axis in (self.across, self.up))
        shape = min(max(height / width, 0.3), 2.0)
        return (3.8, 3.8 * shape * 0.68 + 0.55) if shape <= 1 else (3.8 * 1.2 / shape + 1.0, 3.8)

    @property
    def _density(self) -> tuple[float, float]:
        """Streamlines, in units of thirty, that are as far apart along both axes."""
        width, height = (float(axis[-1] - axis[0]) for axis in (self.across, self.up))
        return STREAMS * max(1.0, width / height) ** 0.5, STREAMS * max(0.5, min(1.0, (height / width) ** 0.5))

    def evaluate(self, function: Callable[[Array], Array]) -> Array:
        """Values (G, G), NaN where the plane is outside."""
        values = np.full(len(self.points), np.nan)
        if self.known.any():
            values[self.known] = function(self.points[self.known])
        return values.reshape(len(self.up), len(self.across))

    def draw(self, figure: Figure, axes: Axes, panel: Panel, values: Array, scale: Scale) -> None:
        """Colours up to the boundary, the boundary, and arrows or streamlines."""
        axes.grid(False)
        image = axes.pcolormesh(
            self.across, self.up, values, cmap=scale.colours, shading="gouraud", rasterized=True,
            vmin=scale.least, vmax=scale.most,
        )  # fmt: skip
        if self.loops:
            closed = [Path(np.concatenate([loop, loop[:1]]), closed=True) for loop in self.loops]
            image.set_clip_path(Path.make_compound_path(*closed), transform=axes.transData)
        figure.colorbar(image, ax=axes).outline.set_visible(False)
        if panel.arrows is not None:
            self._arrows(axes, panel.arrows, panel.streams, STILL * scale.most)
        axes.spines[:].set_visible(not self.loops)
        for loop in self.loops:
            axes.plot(*np.concatenate([loop, loop[:1]]).T, color="black", linewidth=0.8)
        axes.set(
            **{
                f"{side}label": inline_equation(self.domain.names[axis])
                for side, axis in zip("xy", self.plane, strict=True)
            }
        )
        axes.locator_params(nbins=5)  # more would touch in a panel
        axes.set_aspect("equal")
        axes.set(xlim=_widened(self.across, bool(self.loops)), ylim=_widened(self.up, bool(self.loops)))

    def _arrows(self, axes: Axes, function: Callable[[Array], Array], streams: bool, least: float) -> None:
        """Draw arrows or streamlines, unless no speed is above ``least``: what is at rest has no direction."""
        first = self.domain.dim - (self.domain.space.dim if isinstance(self.domain, SpaceTime) else self.domain.dim)
        velocities = np.full((len(self.points), 2), np.nan)
        velocities[self.inside] = function(self.points[self.inside])[:, [axis - first for axis in self.plane]]
        if not np.nanmax(np.hypot(*velocities[self.inside].T), initial=0.0) > least:
            return
        shape = (len(self.up), len(self.across))
        along, beside = (np.ma.masked_invalid(velocities[:, k].reshape(shape)) for k in (0, 1))
        if streams:
            axes.streamplot(
                self.across, self.up, along, beside, color="white", linewidth=0.6, arrowsize=0.6, density=self._density
            )
            return
        step = max(1, len(self.across) // ARROWS)
        few = slice(step // 2, None, step)
        arrows = (self.across[few], self.up[few], along[few, few], beside[few, few])
        axes.quiver(*arrows, color="white", width=0.004, pivot="mid")


def last_time(solution: Solution) -> float | None:
    """The last time that was reached, where the time integration ended early."""
    known = getattr(solution.history, "known_until", None)
    return None if known is None else float(known)


def informative_cut(domain: Domain, function: Callable[[Array], Array], rest: Sequence[int]) -> dict[int, float]:
    """Positions at which the coordinates ``rest``, which a picture does not show, are cut.

    They are cut in the middle, unless the function, with values (M, fields) at points (M, n), is nearly zero there, as
    sin 2πz is in the middle of a unit box.

    >>> from rannpde.domains.domain import Box
    >>> cube = Box(x=(0, 1), y=(0, 1), z=(0, 1))
    >>> informative_cut(cube, lambda points: np.cos(points[:, 2:]), [2])
    {2: 0.5}
    >>> informative_cut(cube, lambda points: np.sin(2 * np.pi * points[:, 2:]), [2])
    {2: 0.25}
    """
    points = domain.sample(CUT_POINTS, rng=0)
    unit = np.abs(np.reshape(function(points), (len(points), -1))).max(axis=0)
    unit[unit == 0] = 1.0
    lower, upper = domain.bounds[list(rest)].T
    cuts, seen = [lower + share * (upper - lower) for share in CUTS], []
    for position in cuts:
        points[:, list(rest)] = position
        inside = points[domain.contains(points)]
        values = np.reshape(function(inside), (len(inside), -1)) / unit if len(inside) else np.zeros((1, 1))
        seen.append(float(np.sqrt(np.mean(values**2))))
    best = 0 if seen[0] >= LEAST_SECTION_SIZE * max(seen) else int(np.argmax(seen))
    return dict(zip(rest, map(float, cuts[best]), strict=True))


def _lifted(middle: Array, plane: tuple[int, int], flat: Array) -> Array:
    """Points (M, 2) of a plane as points (M, n) of the domain."""
    points = np.tile(middle, (len(flat), 1))
    points[:, list(plane)] = flat
    return points


@dataclass(frozen=True)
class Scale:
    """The scale of colours of a panel: a colour map of matplotlib from the least to the largest value."""

    colours: str
    least: float
    most: float


def scale_of(values: Array, panel: Panel) -> Scale:
    """The scale from the least to the largest finite value; symmetric about zero where values have both signs.

    The scale of a logarithm begins at its first percentile, since it tends to minus infinity at zeros.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return Scale(panel.colours or ONE_SIGN, 0.0, 1.0)
    least = float(np.percentile(finite, 1.0) if panel.logarithm else finite.min())
    most = float(finite.max())
    size = max(-least, most)
    if not panel.colours and min(-least, most) > BOTH_SIGNS * size:
        return Scale(TWO_SIGNS, -size, size)
    return Scale(panel.colours or ONE_SIGN, least, most)


def _widened(axis: Array, room: bool) -> tuple[float, float]:
    """The ends of an axis, with some room around an outline."""
    margin = 0.02 * float(axis[-1] - axis[0]) if room else 0.0
    return float(axis[0]) - margin, float(axis[-1]) + margin


def span(domain: Domain, axis: int, count: int) -> Array:
    """Points (count,) from one end of a coordinate to the other."""
    lower, upper = domain.bounds[axis]
    return np.linspace(lower, upper, count)
