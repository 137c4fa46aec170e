"""Collocation points of equations and conditions in cells, and the weights of their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import sympy

from rannpde.arrays import Array, MultiIndex
from rannpde.checkpoints import checkpoint
from rannpde.domains.boundary.sides import FlatSide, Side
from rannpde.domains.domain import Domain
from rannpde.pde.cells.basis.basis import Cell
from rannpde.pde.cells.basis.quadrature import gauss_grid
from rannpde.pde.cells.mesh.initial import GRADING
from rannpde.pde.cells.mesh.mesh import Mesh
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import Jet

SIDE_SAMPLES = 200
"""Samples of a side from which its bounding box is estimated."""
INWARD_SHIFT = 1e-10
"""A point of the boundary is shifted inwards by this fraction of the domain's length to find its leaf."""
CORNER_RADIUS = GRADING
"""Distance from a corner within which rows have smaller weights, as a fraction of the shortest side of the domain: that
of a first step of grading."""

Flows = dict[str, tuple[Array, Array]]
"""For each field (diffusion (n,), velocity (n,)), averaged over a cell."""


@dataclass(frozen=True, eq=False)
class CollocationPoints:
    """Points (P, n) of one term in one cell, weights (P,) of sum 1, known values there, and tables of ∂^index of the
    basis."""

    term: Term
    points: Array
    weights: Array
    known: Mapping[sympy.Symbol, Array]
    tables: Mapping[MultiIndex, Array]


def collocation_points(problem: Problem, mesh: Mesh, rng: np.random.Generator) -> list[list[CollocationPoints]]:
    """Return the collocation points of all terms, by cell."""
    collocations: list[list[CollocationPoints]] = [[] for _ in mesh.cells]
    boundary = BoundaryPoints(mesh.tree, next(cell.basis.nodes for _, cell in mesh.present), rng)
    for number, cell in mesh.present:
        checkpoint()
        collocations[number] = [*_equations(problem, cell), *_conditions(problem, mesh, boundary, number, cell)]
    return collocations


def field_jets(problem: Problem, term: Term) -> list[Jet]:
    """Return the jets of a term that belong to fields of the problem; others belong to given unknowns."""
    return [jet for jet in term.expression.jets if jet.field in problem.fields]


def _equations(problem: Problem, cell: Cell) -> list[CollocationPoints]:
    """Return the equations at the points of a cell."""
    terms, words = problem.interior, problem.vocabulary
    tables = cell.tables({jet.index for term in terms for jet in field_jets(problem, term)})
    return [
        CollocationPoints(term, cell.points, cell.weights, term.known(cell.points, words), tables) for term in terms
    ]


def _conditions(
    problem: Problem, mesh: Mesh, boundary: BoundaryPoints, number: int, cell: Cell
) -> Iterator[CollocationPoints]:
    """Iterate over the conditions at points in the leaf of a cell."""
    for term in problem.constraints:
        data = None
        if term.points is not None:
            mine = mesh.tree.locate(term.points) == number
            data = None if term.data is None else term.data[mine]
            points, weights = term.points[mine], np.ones(int(mine.sum()))
        else:
            points, weights = boundary.points(cast(Side, term.region), number, term.kind == "boundary")
        if len(points):
            tables = cell.at(points, {jet.index for jet in field_jets(problem, term)})
            known = term.known(points, problem.vocabulary, data)
            yield CollocationPoints(term, points, weights / weights.sum(), known, tables)


class BoundaryPoints:
    """Boundary collocation points: the points of sides in the leaves of a tree; nodes : along an axis of a cell."""

    def __init__(self, tree: CellNode, nodes: int, rng: np.random.Generator) -> None:
        self.tree, self.nodes, self.rng = tree, nodes, rng
        self.side_bounds: dict[Side, tuple[Side, tuple[Array, Array]]] = {}
        self.first_equal: dict[int, tuple[Side, Side, tuple[Array, Array]]] = {}
        self.known: dict[tuple[int, int, bool], tuple[Array, Array]] = {}

    def points(self, side: Side, number: int, boundary: bool) -> tuple[Array, Array]:
        """Return points (P, n) of a side, or of a slice inside the domain, in a leaf, and their weights (P,).

        All conditions on one side share their points; there are as many conditions as fields.
        """
        first, (lower, upper) = self._first(side)
        bounds = self.tree.leaves[number].bounds
        if (bounds[:, 0] > upper).any() or (lower > bounds[:, 1]).any():
            return np.empty((0, len(bounds))), np.empty(0)
        key = (id(first), number, boundary)
        if key not in self.known:
            self.known[key] = self._points(first, number, boundary)
        return self.known[key]

    def _first(self, side: Side) -> tuple[Side, tuple[Array, Array]]:
        """Return the first side that equals this one, and its bounds; looked up by identity because hashing a side is
        slow."""
        if id(side) not in self.first_equal:
            if side not in self.side_bounds:
                self.side_bounds[side] = (side, self._bounds_of(side))
            # a reference to the side is held, so that no other object can get its identity
            self.first_equal[id(side)] = (
                side,
                *self.side_bounds[side],
            )
        return self.first_equal[id(side)][1:]

    def _points(self, side: Side, number: int, boundary: bool) -> tuple[Array, Array]:
        bounds = self.tree.leaves[number].bounds
        if isinstance(side, FlatSide):
            points, weights = _flat_points(side, bounds, self.nodes)
        else:
            points = side.within(bounds, 2 * self.nodes if len(bounds) == 2 else self.nodes**2, self.rng)
            weights = np.ones(len(points))
        inwards = points
        if boundary and len(points):  # a side in the plane of a split belongs to the leaf inside the domain
            inwards = points - INWARD_SHIFT * self.tree.lengths.max() * side.normals(points)
        mine = self.tree.locate(inwards) == number
        return points[mine], weights[mine]

    def _bounds_of(self, side: Side) -> tuple[Array, Array]:
        """Return the lower and upper corner (n,) of a side's bounding box, enlarged by what its samples may miss."""
        sample = side.sample(SIDE_SAMPLES, rng=0)
        lower, upper = sample.min(axis=0), sample.max(axis=0)
        margin = 4 / SIDE_SAMPLES * float((upper - lower).max(initial=0.0)) + 1e-9 * self.tree.lengths.max()
        return lower - margin, upper + margin


def _flat_points(side: FlatSide, bounds: Array, count: int) -> tuple[Array, Array]:
    """Return Gauss points of the part of a flat side that lies in a box."""
    whole = np.insert(side.face.bounds.reshape(-1, 2), side.axis, side.value, axis=0)
    lower, upper = np.maximum(whole[:, 0], bounds[:, 0]), np.minimum(whole[:, 1], bounds[:, 1])
    across = np.arange(len(lower)) == side.axis
    if (lower > upper)[across].any() or (lower >= upper)[~across].any():
        return np.empty((0, len(lower))), np.empty(0)
    return gauss_grid(np.stack([lower, upper], axis=1), count)


# ---------------------------------------------------------------------------------------------------- weights of rows


def outflow_weight(
    cell: Cell, collocation: CollocationPoints, flows: Mapping[str, tuple[Array, Array]]
) -> float | Array:
    """Return the weight of a prescribed value at an outflow boundary whose layer is thinner than the cell.

    The weight is the square of the share of diffusion in the flux through the wall, on the scale of the cell: small
    where convection out of the domain dominates. With the full weight a layer that is not resolved would be smeared
    over the whole domain; with the share itself it takes three times the cells along an insulated wall.
    """
    given = collocation.term.prescribed if collocation.term.kind == "boundary" else None
    if (
        given is None
        or given[0].order > 0
        or given[0].field not in flows
        or not isinstance(collocation.term.region, Side)
    ):
        return 1.0
    diffusion, velocity = flows[given[0].field]
    normals = collocation.term.region.normals(collocation.points)
    normal_diffusion = normals**2 @ diffusion
    outflow = np.maximum(normals @ velocity * np.where(normal_diffusion > 0, -1.0, 1.0), 0.0)
    diffusive_rate = np.abs(normal_diffusion) * (np.abs(normals) @ (1 / cell.halfwidth))
    return (diffusive_rate / np.maximum(diffusive_rate + outflow, 1e-300)) ** 2


def record_flow(flows: Flows, collocation: CollocationPoints, partials: Sequence[Array]) -> None:
    """Record mean diffusion and velocity (n,) of each field over a cell, from the most diffusive equation."""
    dim = collocation.points.shape[1]
    flow_of: dict[str, tuple[Array, Array]] = {}
    for jet, partial in zip(collocation.term.expression.jets, partials, strict=True):
        diffusion, velocity = flow_of.setdefault(jet.field, (np.zeros(dim), np.zeros(dim)))
        if jet.order == 2 and max(jet.index) == 2:
            diffusion[jet.index.index(2)] = float(np.mean(partial))
        elif jet.order == 1:
            velocity[jet.index.index(1)] = float(np.mean(partial))
    for name, (diffusion, velocity) in flow_of.items():
        before = np.abs(flows[name][0]).sum() if name in flows else 0.0
        if np.abs(diffusion).sum() > before:
            flows[name] = (diffusion, velocity)


def corner_weights(tree: CellNode, domain: Domain, power: float) -> Array:
    """Return weights (leaves,) of the rows of cells: (r/R)^power at a distance r < R of a leaf from a corner, else 1.

    They are for re-entrant corners where a field is unbounded, such as the pressure of a flow. No cell that touches
    such a corner satisfies its equations. With the full weight, least squares would trade this residual against
    residuals far away, and the whole solution would be wrong (pollution). Rows of all kinds are therefore weighted by a
    power of their distance from the corner, as in weighted-norm least squares. Where all fields are bounded, like
    r^(2/3), small cells do better without weights, which cost one digit on the L-shaped domain.

    >>> from rannpde.domains import Box
    >>> shape = Box(x=(0, 2), y=(0, 2)) - Box(x=(1, 2), y=(1, 2))
    >>> tree = CellNode(np.array([(0.0, 2.0), (0.0, 2.0)])).split(0).refined_leaves((1,))
    >>> corner_weights(tree, shape, 0.5).tolist()
    [1.0, 1.0, 1.0, 1.0]
    >>> round(float(corner_weights(tree.refined_leaves((0, 1)).refined_leaves((0, 1)), shape, 1.0).min()), 3)
    0.354
    """
    distances = np.ones(len(tree.leaves))
    centres = np.array([leaf.bounds.mean(axis=1) for leaf in tree.leaves])
    for corner in domain.corners:
        size = len(corner.point)  # the last coordinates: time may precede them
        distance = np.linalg.norm(centres[:, -size:] - np.asarray(corner.point), axis=1)
        distances = np.minimum(distances, distance / (CORNER_RADIUS * float(tree.lengths[-size:].min())))
    return np.asarray(distances**power)
