"""Points of the sides of a domain in the leaves of a tree."""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.sides import FlatSide, Side
from rannpde.pde.cells.basis import gauss_grid
from rannpde.pde.cells.tree import Node

EXTENT_POINTS = 200
"""Points of a side that show where it lies."""
INWARDS = 1e-10
"""How far inside a point of the boundary is looked for, as a share of the domain's length."""


class Rims:
    """Sides cut up by the leaves of a tree; nodes : along an axis of a cell."""

    def __init__(self, tree: Node, nodes: int, rng: np.random.Generator) -> None:
        self.tree, self.nodes, self.rng = tree, nodes, rng
        self.extents: dict[Side, tuple[Array, Array]] = {}
        self.known: dict[tuple[Side, int, bool], tuple[Array, Array]] = {}

    def points(self, side: Side, number: int, boundary: bool) -> tuple[Array, Array]:
        """Points (P, n) of a side, or of a slice that is none of the boundary, in a leaf, and weights (P,).

        The same for all conditions on a side: they are as many as there are fields.
        """
        key = (side, number, boundary)
        if key not in self.known:
            self.known[key] = self._points(side, number, boundary)
        return self.known[key]

    def _points(self, side: Side, number: int, boundary: bool) -> tuple[Array, Array]:
        bounds = self.tree.leaves[number].bounds
        if not self._meets(side, bounds):
            return np.empty((0, len(bounds))), np.empty(0)
        if isinstance(side, FlatSide):
            points, weights = _flat_points(side, bounds, self.nodes)
        else:
            points = side.within(bounds, 2 * self.nodes if len(bounds) == 2 else self.nodes**2, self.rng)
            weights = np.ones(len(points))
        inwards = points
        if boundary and len(points):  # a side may lie in a cut: it belongs to the leaf inside
            inwards = points - INWARDS * self.tree.lengths.max() * side.normals(points)
        mine = self.tree.locate(inwards) == number
        return points[mine], weights[mine]

    def _meets(self, side: Side, bounds: Array) -> bool:
        """Whether the extent of a side, a little enlarged, meets a box."""
        if side not in self.extents:
            sample = side.sample(EXTENT_POINTS, rng=0)
            lower, upper = sample.min(axis=0), sample.max(axis=0)
            margin = 0.02 * float((upper - lower).max(initial=0.0)) + 1e-9 * self.tree.lengths.max()
            self.extents[side] = (lower - margin, upper + margin)
        lower, upper = self.extents[side]
        return bool(((bounds[:, 0] <= upper) & (lower <= bounds[:, 1])).all())


def _flat_points(side: FlatSide, bounds: Array, count: int) -> tuple[Array, Array]:
    """Gauss points of what a box holds of a flat side of a box."""
    whole = np.insert(side.face.bounds.reshape(-1, 2), side.axis, side.value, axis=0)
    lower, upper = np.maximum(whole[:, 0], bounds[:, 0]), np.minimum(whole[:, 1], bounds[:, 1])
    across = np.arange(len(lower)) == side.axis
    if (lower > upper)[across].any() or (lower >= upper)[~across].any():
        return np.empty((0, len(lower))), np.empty(0)
    return gauss_grid(np.stack([lower, upper], axis=1), count)
