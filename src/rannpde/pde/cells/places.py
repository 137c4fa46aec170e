"""Where the terms of a problem stand in cells: points of equations and conditions, and how much they count there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import sympy

from rannpde.arrays import Array, MultiIndex
from rannpde.domains.domain import Domain
from rannpde.domains.sides import FlatSide, Side
from rannpde.pde.cells.basis import Cell, gauss_grid
from rannpde.pde.cells.mesh import Mesh
from rannpde.pde.cells.tree import CellNode
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import Jet

EXTENT_POINTS = 200
"""Points of a side that show where it lies."""
INWARDS = 1e-10
"""How far inside a point of the boundary is looked for, as a share of the domain's length."""
NEAR = 0.25
"""Distance from a corner within which rows weigh less, as a share of the shortest side of the domain."""

Flows = dict[str, tuple[Array, Array]]
"""Field → (diffusion (n,), velocity (n,)), means over a cell."""


@dataclass(frozen=True, eq=False)
class Place:
    """Points (P, n) of one term in one cell, weights (P,), sum 1, what is known there, and ∂^index of the functions."""

    term: Term
    points: Array
    weights: Array
    known: Mapping[sympy.Symbol, Array]
    tables: Mapping[MultiIndex, Array]


def places_of(
    problem: Problem, mesh: Mesh, rng: np.random.Generator, checkpoint: Callable[[], None]
) -> list[list[Place]]:
    """The places of all terms, by cell; checkpoint : called between cells."""
    found: list[list[Place]] = [[] for _ in mesh.cells]
    rims = Rims(mesh.tree, next(cell.draw.nodes for _, cell in mesh.present), rng)
    for number, cell in mesh.present:
        checkpoint()
        found[number] = [*_inside(problem, cell), *_beside(problem, mesh, rims, number, cell)]
    return found


def own_jets(problem: Problem, term: Term) -> list[Jet]:
    """The jets of fields in a term: others are of what is given beside them."""
    return [jet for jet in term.expression.jets if jet.field in problem.fields]


def _inside(problem: Problem, cell: Cell) -> list[Place]:
    """Equations at the points of a cell."""
    terms, words = problem.interior, problem.vocabulary
    tables = cell.tables({jet.index for term in terms for jet in own_jets(problem, term)})
    return [Place(term, cell.points, cell.weights, term.known(cell.points, words), tables) for term in terms]


def _beside(problem: Problem, mesh: Mesh, rims: Rims, number: int, cell: Cell) -> Iterator[Place]:
    """Conditions at points in the leaf of a cell."""
    for term in problem.constraints:
        data = None
        if term.points is not None:
            mine = mesh.tree.locate(term.points) == number
            data = None if term.data is None else term.data[mine]
            points, weights = term.points[mine], np.ones(int(mine.sum()))
        else:
            points, weights = rims.points(cast(Side, term.region), number, term.kind == "boundary")
        if len(points):
            tables = cell.at(points, {jet.index for jet in own_jets(problem, term)})
            known = term.known(points, problem.vocabulary, data)
            yield Place(term, points, weights / weights.sum(), known, tables)


class Rims:
    """Sides cut up by the leaves of a tree; nodes : along an axis of a cell."""

    def __init__(self, tree: CellNode, nodes: int, rng: np.random.Generator) -> None:
        self.tree, self.nodes, self.rng = tree, nodes, rng
        self.extents: dict[Side, tuple[Side, tuple[Array, Array]]] = {}
        self.alike: dict[int, tuple[Side, Side, tuple[Array, Array]]] = {}
        self.known: dict[tuple[int, int, bool], tuple[Array, Array]] = {}

    def points(self, side: Side, number: int, boundary: bool) -> tuple[Array, Array]:
        """Points (P, n) of a side, or of a slice that is none of the boundary, in a leaf, and weights (P,).

        The same for all conditions on a side: they are as many as there are fields.
        """
        own, (lower, upper) = self._first(side)
        bounds = self.tree.leaves[number].bounds
        if (bounds[:, 0] > upper).any() or (lower > bounds[:, 1]).any():
            return np.empty((0, len(bounds))), np.empty(0)
        key = (id(own), number, boundary)
        if key not in self.known:
            self.known[key] = self._points(own, number, boundary)
        return self.known[key]

    def _first(self, side: Side) -> tuple[Side, tuple[Array, Array]]:
        """The first side that equals this one, and its extent; found by identity, as hashes of sides take long."""
        if id(side) not in self.alike:
            if side not in self.extents:
                self.extents[side] = (side, self._extent(side))
            self.alike[id(side)] = (side, *self.extents[side])  # as it is kept, no other can have its identity
        return self.alike[id(side)][1:]

    def _points(self, side: Side, number: int, boundary: bool) -> tuple[Array, Array]:
        bounds = self.tree.leaves[number].bounds
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

    def _extent(self, side: Side) -> tuple[Array, Array]:
        """The ends (n,) of a side, a little enlarged."""
        sample = side.sample(EXTENT_POINTS, rng=0)
        lower, upper = sample.min(axis=0), sample.max(axis=0)
        margin = 0.02 * float((upper - lower).max(initial=0.0)) + 1e-9 * self.tree.lengths.max()
        return lower - margin, upper + margin


def _flat_points(side: FlatSide, bounds: Array, count: int) -> tuple[Array, Array]:
    """Gauss points of what a box holds of a flat side of a box."""
    whole = np.insert(side.face.bounds.reshape(-1, 2), side.axis, side.value, axis=0)
    lower, upper = np.maximum(whole[:, 0], bounds[:, 0]), np.minimum(whole[:, 1], bounds[:, 1])
    across = np.arange(len(lower)) == side.axis
    if (lower > upper)[across].any() or (lower >= upper)[~across].any():
        return np.empty((0, len(lower))), np.empty(0)
    return gauss_grid(np.stack([lower, upper], axis=1), count)


# ----------------------------------------------------------------------------------------------- how much they count


def entering(cell: Cell, place: Place, flows: Mapping[str, tuple[Array, Array]], power: float) -> float | Array:
    """How much of a prescribed value a cell can feel: little where a flow leaves through a layer thinner than it.

    With the full weight a layer that is not resolved would be smeared over the whole domain.
    """
    given = place.term.prescribed if place.term.kind == "boundary" else None
    if given is None or given[0].order > 0 or given[0].field not in flows or not isinstance(place.term.region, Side):
        return 1.0
    diffusion, velocity = flows[given[0].field]
    normals = place.term.region.normals(place.points)
    across = normals**2 @ diffusion
    leaving = np.maximum(normals @ velocity * np.where(across > 0, -1.0, 1.0), 0.0)
    thin = np.abs(across) * (np.abs(normals) @ (1 / cell.halfwidth))
    return (thin / np.maximum(thin + leaving, 1e-300)) ** power


def note_flow(flows: Flows, place: Place, partials: Sequence[Array]) -> None:
    """Field → (diffusion (n,), velocity (n,)): means over a cell in the equation that diffuses the field most."""
    dim = place.points.shape[1]
    found: dict[str, tuple[Array, Array]] = {}
    for jet, partial in zip(place.term.expression.jets, partials, strict=True):
        diffusion, velocity = found.setdefault(jet.field, (np.zeros(dim), np.zeros(dim)))
        if jet.order == 2 and max(jet.index) == 2:
            diffusion[jet.index.index(2)] = float(np.mean(partial))
        elif jet.order == 1:
            velocity[jet.index.index(1)] = float(np.mean(partial))
    for name, (diffusion, velocity) in found.items():
        before = np.abs(flows[name][0]).sum() if name in flows else 0.0
        if np.abs(diffusion).sum() > before:
            flows[name] = (diffusion, velocity)


def calm(tree: CellNode, domain: Domain, power: float) -> Array:
    """Weights (leaves,) of the rows of cells: (r/R)^power at the distance r < R of a leaf from a corner, else 1.

    For re-entrant corners where a field is unbounded, as the pressure of a flow. No cell that touches such a corner
    satisfies its equations. With the full weight least squares trade this residual against others, far away, and the
    whole solution is off (pollution). Rows of all kinds are weighed by a power of their distance from the corner, as in
    weighted-norm least squares. Where all fields are bounded, as r^(2/3), small cells do better without: weights cost
    the L-shape a digit.

    >>> from rannpde.domains import Box
    >>> shape = Box(x=(0, 2), y=(0, 2)) - Box(x=(1, 2), y=(1, 2))
    >>> tree = CellNode(np.array([(0.0, 2.0), (0.0, 2.0)])).split(0).refined_leaves((1,))
    >>> calm(tree, shape, 0.5).tolist()
    [1.0, 1.0, 1.0, 1.0]
    >>> round(float(calm(tree.refined_leaves((0, 1)).refined_leaves((0, 1)), shape, 1.0).min()), 3)
    0.354
    """
    found = np.ones(len(tree.leaves))
    middles = np.array([leaf.bounds.mean(axis=1) for leaf in tree.leaves])
    for corner in domain.corners:
        size = len(corner.point)  # the last coordinates: time may stand before them
        away = np.linalg.norm(middles[:, -size:] - np.asarray(corner.point), axis=1)
        found = np.minimum(found, away / (NEAR * float(tree.lengths[-size:].min())))
    return np.asarray(found**power)
