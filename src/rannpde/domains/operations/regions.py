"""The patches of domains, of their sides and of lines, on which integrals are computed adaptively."""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.pieces import Curves, CutSide
from rannpde.domains.boundary.sides import FlatSide, RoundSide
from rannpde.domains.domain import Box, SpaceTime
from rannpde.domains.operations.cutcells import planar_outline
from rannpde.domains.quadrature.patches import ArcPatches, BoxPatches, PlanarPatches, RegionPatches, TimedPatches
from rannpde.domains.region import Region
from rannpde.domains.shapes.base import Domain


def patches_of(region: Region) -> RegionPatches | None:
    """The region as images of unit cubes; None for solids that are no boxes and for their surfaces.

    >>> from rannpde.domains import Ball
    >>> disc = Box(x=(0, 2), y=(0, 2)) - Ball((1, 1), 0.5, name="hole")
    >>> patches_of(disc).count, patches_of(disc.side("hole")).extent
    (6, 1)
    """
    if isinstance(region, SpaceTime):
        space = patches_of(region.space)
        return None if space is None else TimedPatches(space, *region.time)
    if isinstance(region, Box):
        return BoxPatches(region.bounds[:, 0], np.diag(np.diff(region.bounds, axis=1)[:, 0]))
    if isinstance(region, Domain):
        return PlanarPatches(planar_outline(region)) if region.dim == 2 else None
    if isinstance(region, FlatSide):
        return _flat(region)
    if isinstance(region, RoundSide):
        times = tuple((axis.lower, axis.upper) for axis in region.before)
        return _curves(region.ball.border, times)
    return _curves(region.border, region.time) if isinstance(region, CutSide) else None


def line_patches(start: Array, end: Array) -> RegionPatches:
    """The line between two points."""
    return BoxPatches(np.asarray(start, dtype=float), (np.asarray(end, dtype=float) - start)[None, :])


def _flat(side: FlatSide) -> RegionPatches | None:
    if isinstance(side.face, Box):
        origin = np.insert(side.face.bounds[:, 0], side.axis, side.value)
        edges = np.insert(np.diag(np.diff(side.face.bounds, axis=1)[:, 0]), side.axis, 0.0, axis=1)
        normal = np.zeros(len(origin))
        normal[side.axis] = side.outward
        return BoxPatches(origin, edges.reshape(side.face.dim, len(origin)), normal)
    space = patches_of(side.face)
    timed = isinstance(side.domain, SpaceTime) and side.axis == 0
    return TimedPatches(space, side.value) if timed and space is not None else None


def _curves(border: object, times: tuple[tuple[float, float], ...]) -> RegionPatches | None:
    if not isinstance(border, Curves):
        return None
    arcs = ArcPatches(border.families)
    return TimedPatches(arcs, *times[0]) if times else arcs
