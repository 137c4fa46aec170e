"""Smooth segments of the boundary of a plane domain with a parameter, their images, and points clustered at corners."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.arcs import Arcs
from rannpde.domains.boundary.charts import Conic, Segments
from rannpde.domains.boundary.pieces import Curves, CutSide
from rannpde.domains.boundary.sides import FlatSide, RoundSide
from rannpde.domains.region import Region, composite_gauss
from rannpde.pde.residual import Term
from rannpde.pde.tolerance import SAME_SOLUTION
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.rounding import EPS

CLOSEST_POINT = 1e-13
"""Distance, relative to the length of a segment, of the collocation point nearest to a corner."""


def arcs_of(region: Region) -> list[Arcs] | None:
    """The curves of a side in the plane, None where they are not known."""
    one = np.ones(1)
    if isinstance(region, FlatSide) and region.dim == 2:
        ends = region.embed(region.face.bounds.T)
        along = ends[1] - ends[0]
        normal = region.normals(ends[:1])[0]
        if along[1] * normal[0] - along[0] * normal[1] < 0:  # the domain is to be on the left
            ends = ends[::-1]
        return [Arcs(Segments("", ends[:1], ends[1:]), np.zeros(1, dtype=int), 0 * one, one, one)]
    if isinstance(region, RoundSide) and region.dim == 2:
        chart = Conic("", np.asarray(region.ball.centre), region.ball.radius * np.eye(2))
        four = np.ones(4)
        return [Arcs(chart, np.arange(4), 0 * four, four, four)]
    if isinstance(region, CutSide) and isinstance(region.border, Curves) and not region.time:
        return list(region.border.families)
    return None


@dataclass(frozen=True)
class AxisImage:
    """Reflections at lines x_axis = position, one after the other: pairs (axis, position)."""

    flips: tuple[tuple[int, float], ...]

    def points(self, points: Array) -> Array:
        """The images (M, 2) of points (M, 2)."""
        images = np.array(points, dtype=float)
        for axis, position in self.flips:
            images[:, axis] = 2 * position - images[:, axis]
        return images

    def vectors(self, vectors: Array) -> Array:
        """The images (M, 2) of vectors (M, 2)."""
        images = np.array(vectors, dtype=float)
        for axis, _ in self.flips:
            images[:, axis] *= -1
        return images

    def sign(self, index: tuple[int, ...]) -> float:
        """∂^index of u(image of x) over (∂^index u)(image of x)."""
        return float((-1) ** sum(index[axis] for axis, _ in self.flips))

    @property
    def reverses(self) -> bool:
        """Whether left and right change places."""
        return len(self.flips) % 2 == 1


@dataclass(frozen=True, eq=False)
class BoundarySegment:
    """One smooth arc with its conditions, in the direction that has the domain on its left.

    terms : its conditions, one for each field of a system; none on a face between two cells
    corners : numbers of the singular points at its start and end, -1 where it goes on smoothly
    loop : the closed curve that it belongs to; 0 is the outer one
    image : by which reflection it comes from a segment of the boundary, in an unfolded domain; None for that one
    """

    terms: tuple[Term, ...]
    arcs: Arcs
    number: int
    form: CanonicalForm
    corners: tuple[int, int] = (-1, -1)
    loop: int = 0
    image: AxisImage | None = None

    @property
    def term(self) -> Term:
        """The first condition."""
        return self.terms[0]

    @property
    def forward(self) -> bool:
        """Whether the parameter grows with that of the arc."""
        reversed_image = self.image is not None and self.image.reverses
        return bool(self.arcs.sign[self.number] > 0) != reversed_image

    def share(self, unit: Array) -> Array:
        return unit if self.forward else 1 - unit

    def points(self, unit: Array) -> Array:
        """Points x (M, 2) at parameters (M,) in [0, 1]."""
        points = self.arcs.place(np.full(len(unit), self.number), self.share(unit))
        return points if self.image is None else self.image.points(points)

    def slopes(self, unit: Array) -> Array:
        """dy/dunit (M, 2), in canonical coordinates."""
        slopes = self.arcs.slopes(np.full(len(unit), self.number), self.share(unit)) * (1 if self.forward else -1)
        return (slopes if self.image is None else self.image.vectors(slopes)) @ self.form.matrix.T

    @cached_property
    def length(self) -> float:
        """The length of the segment in canonical coordinates."""
        nodes, weights = composite_gauss(np.array([0.0, 1.0]), 24)
        return float(np.linalg.norm(self.slopes(nodes), axis=1) @ weights)

    @cached_property
    def straight(self) -> bool:
        slopes = self.slopes(np.array([0, 1 / 3, 3 / 4, 1]))
        turn = slopes[0, 0] * slopes[:, 1] - slopes[0, 1] * slopes[:, 0]
        return bool(np.abs(turn).max() <= 1e-10 * float(np.square(slopes).sum(axis=1).max()))


def clustered(
    count: int, levels: int, crowd: tuple[bool, bool], segment: BoundarySegment, shift: float, width: float = 0.0
) -> Array:
    """Parameters (M,) of collocation points of a segment, from ``count`` evenly spread ones and ``levels`` per corner.

    shift in (0, 1) moves them within their gaps, so that other points are fresh; width : of layers, whose scale gets as
    many points again
    """
    base = (np.arange(count) + shift) / count
    if segment.corners[0] >= 0 or segment.corners[1] >= 0:
        base = 0.5 * (1 - np.cos(np.pi * base))
    parts = [base]
    if levels:
        distance = np.exp(
            np.log(CLOSEST_POINT) + (np.log(0.5) - np.log(CLOSEST_POINT)) * (np.arange(levels) + shift) / levels
        )
        if width:
            # from where a layer has hardly changed to where it has died out
            ends = np.log(SAME_SOLUTION), np.log(-np.log(EPS))
            near = width / segment.length * np.exp(np.linspace(*ends, levels) + shift * (ends[1] - ends[0]) / levels)
            distance = np.concatenate([distance, near[near < 0.5]])
        if crowd[0]:
            parts.append(distance)
        if crowd[1]:
            parts.append(1 - distance[distance > 4e-16])
    units = np.unique(np.concatenate(parts))
    return units[(units > 0) & (units < 1)]


def cell_lengths(segment: BoundarySegment, units: Array) -> Array:
    """The length of boundary (M,) that each of the points stands for."""
    edges = np.concatenate([[0.0], 0.5 * (units[1:] + units[:-1]), [1.0]])
    return np.diff(edges) * np.linalg.norm(segment.slopes(units), axis=1)
