"""Sections of sets in space: by planes, for Gauss rules slice by slice, and by surfaces that bound them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.charts import Chart, Parallelograms
from rannpde.domains.boundary.planar import JOINED, Planar
from rannpde.domains.boundary.solids import AllOrNothing, Branch, Leaf, Solid, SublevelSet, Tree, without_constants
from rannpde.domains.boundary.tracing import CAUTION, Wall, regularised
from rannpde.domains.boundary.walls import Plane, Quadric, box_charts
from rannpde.domains.quadrature.plane import endpoint_grading, planar_rule
from rannpde.domains.shapes.base import box_level
from rannpde.domains.shapes.boxes import Box
from rannpde.errors import InputError

SQUARE = np.array([[0.0, 1.0], [0.0, 1.0]])
SLICES_PER_PANEL = 8
"""Slices of a panel by which it is judged."""
SLICE_HALVINGS = 7
"""Times that a panel of slices is halved at most: at most 1e-9 of the volume is then at stake."""
SLICED = 1e-10
"""Volume, relative to the whole, that a panel may be wrong by before it is halved."""


@dataclass(frozen=True, eq=False)
class Pulled(Wall):
    """A wall as a function of the parameters of a surface."""

    wall: Wall
    embed: Callable[[Array], Array]
    tangents: Callable[[Array], Array]

    def both(self, points: Array) -> tuple[Array, Array]:
        value, gradient = self.wall.both(self.embed(points))
        return value, np.einsum("mn,mnk->mk", gradient, self.tangents(points))


@dataclass(frozen=True, eq=False)
class Square(Solid):
    """A rectangle of parameters."""

    rectangle: Array

    @property
    def bounds(self) -> Array:
        return self.rectangle

    @property
    def walls(self) -> tuple[Wall, ...]:
        return ()

    def level(self, points: Array) -> Array:
        return box_level(points, self.rectangle)

    def charts(self, clip: Array) -> tuple[Chart, ...]:
        return box_charts(self.rectangle, ("a", "b", "c", "d"))


def pulled_back(tree: Tree, leaves: Sequence[Leaf], own: int, chart: Chart, piece: int, size: float) -> Planar | None:
    """The part of the parameter square of a piece that bounds the set of a tree; None where nothing does.

    Inside and outside of the own solid, the tree is a set of the parameters each; their difference counts.
    """

    def embed(unit: Array) -> Array:
        return chart.place(np.full(len(unit), piece), unit)

    def tangents(unit: Array) -> Array:
        return chart.tangents(np.full(len(unit), piece), unit)

    samples = np.stack([g.ravel() for g in np.meshgrid(*[np.linspace(0.03, 0.97, 9)] * 2, indexing="ij")], axis=1)
    known = embed(samples)
    normals = chart.outward(known)

    def cut(solid: Solid, side: int) -> Tree:
        if not solid.walls:
            raise InputError(
                "a mesh or polygon has no smooth walls, so that other shapes cannot cut its surface exactly"
            )
        parts: list[Tree] = []
        for wall in solid.walls:
            value, gradient = wall.both(known)
            slope = np.maximum(np.linalg.norm(gradient, axis=1), 1e-300)
            if (np.abs(value) / slope <= JOINED * size).all():  # the wall is the surface itself
                same = float((gradient * normals).sum()) > 0
                parts.append(Leaf(AllOrNothing((side < 0) == same)))
            elif isinstance(chart, Parallelograms):
                edges = np.stack([chart.first[piece], chart.second[piece]], axis=1)
                parts.append(_section(wall, chart.origins[piece], edges, SQUARE, size))
            else:
                parts.append(_pulled(Pulled(wall, embed, tangents)))
        return parts[0] if len(parts) == 1 else Branch("intersection", tuple(parts))

    def turned(node: Tree, side: int) -> Tree:
        if isinstance(node, Leaf):
            number = next(k for k, leaf in enumerate(leaves) if leaf is node)
            return Leaf(AllOrNothing(side < 0)) if number == own else cut(node.solid, side)
        return Branch(node.operation, tuple(turned(part, side) for part in node.parts))

    marked = _marked(tree, iter(leaves))
    inner, outer = turned(marked, -1), turned(marked, 1)
    square: Tree = Leaf(Square(SQUARE))
    one = Branch("difference", (Branch("intersection", (square, inner)), outer))
    other = Branch("difference", (Branch("intersection", (square, outer)), inner))
    for candidate in (one, other):
        planar = Planar(without_constants(candidate), np.array([[-0.01, 1.01], [-0.01, 1.01]]))
        if planar.labelled_arcs:
            return planar
    return None


def _pulled(wall: Pulled) -> Tree:
    """The set behind a wall on the square; everything or nothing where the wall is far from all of it."""
    steps = 33
    samples = np.stack([g.ravel() for g in np.meshgrid(*[np.linspace(-0.02, 1.02, steps)] * 2, indexing="ij")], axis=1)
    level = regularised(*wall.both(samples), 1.0)
    if np.abs(level).min() > 2 * CAUTION / steps and (level[0] > 0) == (level > 0).all():
        return Leaf(AllOrNothing(bool(level[0] < 0)))
    return Leaf(SublevelSet(wall, SQUARE, 1.0))


def _marked(tree: Tree, leaves: Any) -> Tree:
    """The tree with the very leaves of the list, by whose identity equal solids are distinguished."""
    if isinstance(tree, Leaf):
        leaf: Leaf = next(leaves)
        return leaf
    return Branch(tree.operation, tuple(_marked(part, leaves) for part in tree.parts))


# ---------------------------------------------------------------------------------------------------- slices


def slice_of(tree: Tree, height: float, bounds: Array) -> Tree:
    """The section by the plane in which the last coordinate has that value, in the other two."""
    origin, edges = np.array([0.0, 0.0, height]), np.eye(3)[:, :2]
    size = float(np.linalg.norm(bounds[:, 1] - bounds[:, 0]))
    if isinstance(tree, Leaf):
        if isinstance(tree.solid, Box):
            lower, upper = tree.solid.bounds[2]
            return Leaf(Square(tree.solid.bounds[:2]) if lower < height < upper else AllOrNothing(False))
        if not tree.solid.walls:
            raise InputError("a mesh has no Gauss rule; use rule='sobol'")
        parts = tuple(_section(wall, origin, edges, bounds[:2], size) for wall in tree.solid.walls)
        return parts[0] if len(parts) == 1 else Branch("intersection", parts)
    return Branch(tree.operation, tuple(slice_of(part, height, bounds) for part in tree.parts))


def _section(wall: Wall, origin: Array, edges: Array, rectangle: Array, size: float) -> Tree:
    from rannpde.domains.operations.moved import MovedWall

    if isinstance(wall, MovedWall):
        start = wall.move.back(origin[None, :])[0]
        turned = np.array(wall.move.rotation).T @ edges / wall.move.factor
        return _section(wall.wall, start, turned, rectangle, size)
    if isinstance(wall, Plane | Quadric):
        section = wall.section(origin, edges, 1e-14 * size)
        return Leaf(AllOrNothing(False)) if section is None else section

    def embed(unit: Array) -> Array:
        return origin + unit @ edges.T

    def tangents(unit: Array) -> Array:
        return np.broadcast_to(edges, (len(unit), *edges.shape))

    return Leaf(SublevelSet(Pulled(wall, embed, tangents), rectangle, size))


def _planar(tree: Tree, height: float, bounds: Array) -> Planar | None:
    margin = 0.01 * (bounds[:2, 1] - bounds[:2, 0]).max()
    planar = Planar(without_constants(slice_of(tree, height, bounds)), bounds[:2] + np.array([-margin, margin]))
    return planar if planar.labelled_arcs else None


def smooth_panels(tree: Tree, bounds: Array) -> list[tuple[float, float]]:
    """Intervals of the last coordinate between which slices change smoothly, by the areas of slices."""
    lower, upper = bounds[2]
    ends = {lower, upper}
    stack: list[Tree] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, Branch):
            stack += node.parts
        else:
            ends |= {float(end) for end in node.solid.bounds[2] if lower < end < upper}
    heights = sorted(ends)

    def area(a: float, b: float) -> float:
        nodes, weights = endpoint_grading(SLICES_PER_PANEL, 1)
        slices = [_planar(tree, a + (b - a) * float(node), bounds) for node in nodes]
        return (b - a) * sum(float(w) * (0.0 if s is None else s.area) for w, s in zip(weights, slices, strict=True))

    panels = []
    work = [(a, b, area(a, b), 0) for a, b in pairwise(heights) if b - a > 1e-12 * (upper - lower)]
    whole = sum(abs(part[2]) for part in work)
    while work:
        a, b, value, depth = work.pop()
        middle = 0.5 * (a + b)
        left, right = area(a, middle), area(middle, b)
        if abs(left + right - value) <= SLICED * whole or depth >= SLICE_HALVINGS:
            panels.append((a, b))
        else:
            work += [(a, middle, left, depth + 1), (middle, b, right, depth + 1)]
    return sorted(panels)


def space_rule(
    tree: Tree, bounds: Array, intervals: list[tuple[float, float]], count: int, panels: int
) -> tuple[Array, Array]:
    """Points (M, 3) and weights (M,) inside a set in space: Gauss rules of its slices.

    intervals : intervals of the last coordinate, as ``smooth_panels`` finds them
    """
    points, weights = [np.empty((0, 3))], [np.empty(0)]
    unit, shares = endpoint_grading(count, panels)
    for a, b in intervals:
        for node, share in zip(unit.tolist(), shares.tolist(), strict=True):
            height = a + (b - a) * node
            planar = _planar(tree, height, bounds)
            if planar is not None:
                inner, inner_weights = planar_rule(planar, count, panels)
                points.append(np.column_stack([inner, np.full(len(inner), height)]))
                weights.append((b - a) * share * inner_weights)
    return np.concatenate(points), np.concatenate(weights)
