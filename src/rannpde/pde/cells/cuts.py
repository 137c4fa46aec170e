"""Which cells: those to begin with, and which of them a solve asks to cut.

The first end at flat sides, hold no whole hole, and shrink where data or corners ask.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log2, pi, prod

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander

from rannpde.arrays import Array
from rannpde.domains.creases import NONE, Creases
from rannpde.domains.domain import Domain, SpaceTime, is_box
from rannpde.pde.cells.evolved import MarchedNetwork
from rannpde.pde.cells.interfaces import Interfaces
from rannpde.pde.cells.mesh import Mesh
from rannpde.pde.cells.network import CellNetwork, Weights
from rannpde.pde.cells.tree import CellNode
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.functions import State
from rannpde.pde.monitor import Status
from rannpde.pde.problem.problem import Problem

GRADING = 0.25
"""Length of a cell over that of the next one away from a re-entrant corner."""
ALONG, LEVELS = 0.9, 2
"""Cosine of the angle to an axis above which an edge runs along it; how often cells at re-entrant edges of solids are
cut for one iteration: they are many, so only those that need it, as the iterations show."""
MEETING, MOST_MEETING = 3 * pi, 600
"""The angle of a re-entrant corner like which those of interfaces are treated at first, and so many cells at most.
What a last cell leaves is multiplied by the contrast: with 1.5 π one of 100 left 2e-3 at a tolerance of 1e-4, with 3 π
2e-5."""
LINES, TURN, SMALLEST = 24, 0.5, 1 / 128
"""Lines along each axis on which an interface is looked for in a cell; least cosine of the angle between its normals
and their mean in a first cell; the share of the domain below which cells are not cut for that."""
FOLLOWED = 1e-5
"""Last Legendre coefficients of a guess in a cell, over its size, with which Newton's method still begins well."""
SIDE_POINTS, FLAT = 200, 1e-9
"""Points of a side that show its extent; what is thinner, relative to the domain, is flat."""


def first_tree(
    problem: Problem,
    degree: int,
    tol: float,
    tuning: CellsTuning,
    interfaces: Interfaces,
    space: Domain | None = None,
) -> CellNode:
    """Cells about as long as wide in which the data of the problem change by no more than the functions can follow.

    They end at flat interfaces, and curved ones turn by no more than a right angle or so in them.
    space : of a space-time, for cells in space that hold for all times
    """
    domain = problem.domain if space is None else space
    bounds = np.asarray(domain.bounds, dtype=float)
    others = np.asarray(problem.domain.bounds, dtype=float)[: problem.domain.dim - len(bounds)]
    tree = _at_sides(CellNode(bounds), domain)
    for axis, place in _planes(interfaces, tuning.most_cells[len(bounds) - 1] // 4):
        tree = tree.cut_at(axis, place, FLAT * float(tree.lengths[axis]))
    if len(tree.leaves) == 1:
        tree = _longest_first(tree, 0.5 ** tuning.first_cuts[len(bounds) - 1])
    tree = _until_none(tree, lambda leaf: leaf.lengths > 2 * leaf.lengths.min())
    tree = at_holes_and_corners(tree, domain, log2(1 / tol), interfaces)
    data, most = problem.variation, tuning.most_cells[len(bounds) - 1] // 4
    tree = _along(tree, interfaces, most)
    if data is None:
        return tree

    def changes(leaf: CellNode) -> Array:
        return data.changes(np.concatenate([others, leaf.bounds]))[len(others) :] > tuning.per_cell * degree

    return _until_none(tree, changes, most)


def _longest_first(tree: CellNode, share: float) -> CellNode:
    """A box cut into cells of at most that share of each length, the longest at most twice as long as the shortest.

    Longest lengths are cut first: a plane along a long box would have the traces of all its cells, to be eliminated
    together.
    """
    wanted = np.minimum(tree.lengths * share, 2 * share * tree.lengths.min())

    def longest(leaf: CellNode) -> Array:
        longer = leaf.lengths > wanted * (1 + FLAT)
        return longer & (leaf.lengths > (1 - FLAT) * leaf.lengths[longer].max(initial=0.0))

    return _until_none(tree, longest)


def following(tree: CellNode, state: State, degree: int, most: int) -> CellNode:
    """Cells of one coordinate that are cut until polynomials of their degree follow a guess."""
    nodes, shares = leggauss(degree + 1)
    analysis = legvander(nodes, degree).T * shares * (np.arange(degree + 1)[:, None] + 0.5)

    def values(leaf: CellNode) -> Array:
        return state.derivative(leaf.bounds.mean() + 0.5 * leaf.lengths * nodes[:, None], (0,))

    sizes = np.max([np.abs(values(leaf)).max(axis=0) for leaf in tree.refined_leaves((0,)).leaves], axis=0)

    def escapes(leaf: CellNode) -> Array:
        beyond = np.abs(analysis[-degree // 3 :] @ values(leaf)).max(axis=0)
        return np.array([bool((beyond > FOLLOWED * sizes).any())])

    return _until_none(tree, escapes, most)


def _planes(interfaces: Interfaces, most: int) -> list[tuple[int, float]]:
    """Axis and place of flat interfaces; without those where no flux jumps if they would make too many cells."""
    planes = [(axis, place) for axis, place, _ in interfaces.flat]
    cells = prod(1 + sum(own == axis for own, _ in planes) for axis in {own for own, _ in planes})
    return planes if cells <= most else [(axis, place) for axis, place, flux in interfaces.flat if flux]


def _along(tree: CellNode, interfaces: Interfaces, most: int) -> CellNode:
    """Cells in which curved interfaces turn little, found by looking at ever smaller boxes down to a least size."""

    def turning(leaf: CellNode) -> Array:
        none = np.zeros(len(leaf.bounds), dtype=bool)
        if (leaf.lengths < SMALLEST * tree.lengths).any():
            return none
        for interface in interfaces.curved:
            points, _ = interface.within(leaf.bounds, LINES)
            if len(points):
                normals = interface.normals(points)
                middle = normals.mean(axis=0)
                if (normals @ middle).min() < TURN * np.linalg.norm(middle):
                    return leaf.lengths > 0.6 * leaf.lengths.max()
        return none

    return _until_none(tree, turning, most)


def _until_none(tree: CellNode, asked: Callable[[CellNode], Array], most: int = 10**6) -> CellNode:
    """The tree with leaves cut across the axes that ``asked`` marks in them, until it marks none or they are many."""
    while len(tree.leaves) < most:
        cuts = {leaf: axes_of(asked(leaf)) for leaf in tree.leaves}
        if not any(cuts.values()):
            break
        tree = tree.refined(cuts)
    return tree


def _extents(domain: Domain) -> list[tuple[Array, Array]]:
    """Lower and upper ends of every side of a domain that is no box, each (n,)."""
    if is_box(domain):
        return []
    samples = [side.sample(SIDE_POINTS, rng=0) for side in domain.sides.values()]
    return [(points.min(axis=0), points.max(axis=0)) for points in samples]


def _at_sides(tree: CellNode, domain: Domain) -> CellNode:
    """Cells that end at the flat sides of a domain, and meet in its re-entrant corners, wherever cuts are shaken to."""
    for lower, upper in _extents(domain):
        flat = np.flatnonzero(upper - lower < FLAT * tree.lengths)
        if len(flat) == 1:
            axis = int(flat[0])
            tree = tree.cut_at(axis, float(lower[axis]), FLAT * float(tree.lengths[axis]))
    for corner in domain.corners:
        shift = len(tree.bounds) - len(corner.point)
        point = np.concatenate([tree.bounds[:shift].mean(axis=1), np.asarray(corner.point)])
        for axis in range(shift, len(point)):
            tree = tree.cut_near(point, axis, FLAT * float(tree.lengths[shift:].max()))
    return tree


def at_holes_and_corners(tree: CellNode, domain: Domain, digits: float, interfaces: Interfaces) -> CellNode:
    """Cells that hold no hole as a whole, and shrink towards re-entrant corners and those of interfaces.

    digits : binary, of the error wanted; near a corner of the angle ω a solution is like r^(π/ω), and the error that a
        last cell of length h leaves elsewhere like h^(2π/ω)
    """
    if interfaces.corners:
        levels = ceil(digits * MEETING / (2 * pi) / -log2(GRADING))
        tree = towards(tree, interfaces.corners, min(levels, MOST_MEETING // (12 * len(interfaces.corners))))
    if is_box(domain):
        return tree
    shift = domain.dim - (domain.space.dim if isinstance(domain, SpaceTime) else domain.dim)
    boxes = _extents(domain)
    space = np.arange(domain.dim) >= shift

    def holding(leaf: CellNode) -> Array:
        longer = (leaf.lengths > 0.6 * leaf.lengths[space].max()) & space
        return longer if _surrounds(leaf, boxes, space) else np.zeros_like(space)

    tree = _until_none(tree, holding)
    most = max((corner.angle for corner in domain.corners), default=0.0)
    return towards(tree, _points(domain), ceil(digits * most / (2 * pi) / -log2(GRADING)))


def towards_corners(tree: CellNode, domain: Domain, interfaces: Interfaces) -> CellNode:
    """Smaller cells at re-entrant corners and those of interfaces."""
    return towards(tree, [*_points(domain), *interfaces.corners])


def _points(domain: Domain) -> list[tuple[float, ...]]:
    return [tuple(corner.point) for corner in domain.corners]


def towards(tree: CellNode, corners: Sequence[tuple[float, ...]], levels: int = 1) -> CellNode:
    """The leaves that touch one of these points cut so often, each time near it."""
    for corner in corners:
        shift = len(tree.bounds) - len(corner)
        space = np.arange(len(tree.bounds)) >= shift
        point = np.concatenate([tree.bounds[:shift].mean(axis=1), np.asarray(corner)])
        for _ in range(levels):
            near = [leaf for leaf in tree.leaves if _holds(leaf, point, space)]
            tree = tree.refined(dict.fromkeys(near, axes_of(space)), {leaf: _towards(leaf, point) for leaf in near})
    return tree


def _towards(leaf: CellNode, point: Array) -> Array:
    """Shares (n,) at which a leaf is cut: near the end where the point lies, in the middle where it lies at none."""
    slack = FLAT * leaf.lengths
    below, above = np.abs(point - leaf.bounds[:, 0]) <= slack, np.abs(point - leaf.bounds[:, 1]) <= slack
    return np.where(below, GRADING, np.where(above, 1 - GRADING, 0.5))


def _surrounds(leaf: CellNode, boxes: list[tuple[Array, Array]], space: Array) -> bool:
    """Whether a whole side lies inside a leaf."""
    return any(((leaf.bounds[:, 0] < low) & (high < leaf.bounds[:, 1]))[space].all() for low, high in boxes)


def _holds(leaf: CellNode, point: Array, space: Array) -> bool:
    slack = FLAT * leaf.lengths
    inside = (leaf.bounds[:, 0] - slack <= point) & (point <= leaf.bounds[:, 1] + slack)
    return bool(inside[space].all())


def axes_of(chosen: Array) -> tuple[int, ...]:
    return tuple(int(axis) for axis in np.flatnonzero(chosen))


# ---------------------------------------------------------------------------------------------------- after a solve


@dataclass(frozen=True, eq=False)
class Solved:
    """One solve: the function; residuals per leaf, of equations (C,) and of conditions by axis (C, n); its status."""

    network: CellNetwork | MarchedNetwork
    mesh: Mesh
    weights: Weights
    inside: Array
    beside: Array
    losses: Mapping[str, float]
    steps: int
    status: Status
    free: bool

    @property
    def marks(self) -> Array:
        """Dimensionless residual per leaf, (C,)."""
        return np.hypot(self.inside, np.linalg.norm(self.beside, axis=1))


def refined(
    tree: CellNode, solved: Solved, mark: float, sizes: Array, tuning: CellsTuning, creases: Creases = NONE
) -> CellNode:
    """The tree with the cells whose residual is above the mark cut; the same tree where there are none.

    sizes (fields,) : of the fields; creases : re-entrant edges, towards which cells at them are cut
    """
    marks, homes = solved.marks, solved.mesh.homes
    chosen = np.flatnonzero(marks > max(mark, tuning.worst * float(marks.max())))
    chosen = chosen[np.argsort(marks[chosen], kind="stable")]  # of two parts of a box the worse one is heard
    cuts = {tree.leaves[homes[k]]: _axes(solved, int(k), sizes, tuning) for k in chosen}
    if not cuts:
        return tree
    shares = {leaf: np.full(len(leaf.bounds), 0.5) for leaf in cuts}
    for level in range(LEVELS):
        known = set(tree.leaves)
        for leaf in cuts:
            cuts[leaf], shares[leaf] = _at_creases(leaf, creases) or (() if level else cuts[leaf], shares[leaf])
        tree = tree.refined(cuts, shares)
        cuts = dict.fromkeys(set(tree.leaves) - known, ())
        shares = dict.fromkeys(cuts, np.empty(0))
    return tree


def _at_creases(leaf: CellNode, creases: Creases) -> tuple[tuple[int, ...], Array] | None:
    """The axes across the re-entrant edges at a leaf and the shares (n,) at which it is cut; None where it has none."""
    if not len(creases):
        return None
    lower, upper = (leaf.bounds + FLAT * leaf.lengths[:, None] * np.array([-1.0, 1.0])).T
    near = ((lower <= creases.points) & (creases.points <= upper)).all(axis=1)
    if not near.any():
        return None
    across = np.abs(creases.directions[near]) < ALONG
    place = np.average(creases.points[near], axis=0, weights=np.where(across.any(axis=0), across, 1.0))
    return axes_of(across.any(axis=0)), _towards(leaf, place)


def _axes(solved: Solved, number: int, sizes: Array, tuning: CellsTuning) -> tuple[int, ...]:
    """The axes across which a cell is to be cut: those along which the solution is not resolved."""
    cell = solved.mesh.cells[number]
    assert cell is not None
    dim, beside, weights = len(cell.bounds), solved.beside[number], solved.weights.cells[number]
    if dim > 1 and np.linalg.norm(beside) > 3 * solved.inside[number]:
        return axes_of(beside > 0.3 * beside.max())
    if dim > 2 and not cell.whole:  # all its axes would make eight of it
        bends = [tuple(2 * (axis == other) for other in range(dim)) for axis in range(dim)]
        tables = cell.tables(bends)
        found = [np.linalg.norm(tables[index] @ weights / sizes) / cell.factor(index) for index in bends]
        return axes_of(np.array(found) >= tuning.bend * max(found))
    if not cell.whole or dim == 1:
        lengths = solved.mesh.tree.leaves[number].lengths
        return axes_of(lengths > 0.6 * lengths.max())
    count, degree = cell.draw.nodes, cell.draw.degree
    nodes, shares = leggauss(count)
    analysis = legvander(nodes, count - 1).T * shares * np.sqrt(np.arange(count)[:, None] + 0.5)
    plain = (0,) * dim
    grid = (cell.tables([plain])[plain] @ weights / sizes).reshape((count,) * dim + (-1,))
    for axis in range(dim):
        grid = np.moveaxis(np.tensordot(analysis, grid, axes=(1, axis)), 0, axis)
    beyond = np.arange(int(tuning.tail * degree), degree + 1)
    tails = np.array([np.linalg.norm(np.take(grid, beyond, axis=axis)) for axis in range(dim)])
    return axes_of(tails >= tuning.direction * tails.max())
