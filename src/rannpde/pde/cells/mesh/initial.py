"""The initial mesh, graded towards corners.

Its cells end at flat sides of the domain, contain no whole hole, and are small where data vary or corners require it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, log2, pi, prod

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.domains.domain import Domain, SpaceTime, is_box
from rannpde.pde.cells.interfaces.detection import Interfaces
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.discontinuities import corner_jumps
from rannpde.pde.functions import State
from rannpde.pde.initial import Integrated
from rannpde.pde.intrinsic import layer_rates, resolved_growth, resolved_phase, wavenumbers
from rannpde.pde.problem.problem import Problem
from rannpde.pde.tolerance import MUCH_SMALLER, PILOT_TOLERANCE
from rannpde.rounding import ROUNDED

GRADING = 0.25
"""Ratio of the lengths of neighbouring cells in a graded mesh, towards a corner."""
INTERFACE_CORNER_ANGLE, MAX_CORNER_CELLS = 3 * pi, 600
"""The angle of the re-entrant corner whose grading is used where interfaces cross; and the limit on cells for that.

The error that the last cell leaves is multiplied by the contrast of the coefficients: at a contrast of 100 and a
tolerance of 1e-4, the grading for 1.5 π left an error of 2e-3, that for 3 π one of 2e-5.
"""
SEARCH_LINES, MIN_NORMAL_COSINE, MIN_FRACTION = 24, 0.5, 1 / 128
"""How curved interfaces are resolved: lines per axis on which the interface is searched for in a cell; smallest cosine
of the angle between its normals and their mean in an initial cell; the fraction of the domain's length below which
cells are not split for that."""
LONG_SIDE = 2**-0.5
"""Sides above this share of the longest one count as long: they are nearer to it than to half of it."""
GUESS_TOLERANCE = MUCH_SMALLER * PILOT_TOLERANCE
"""The highest Legendre coefficients of a guess in a cell, relative to its size: what a cell leaves of the guess is much
smaller than the error of a pilot solve, so that Newton's method begins as near as the guess was."""
MAX_LAYER_LEVELS = 20
"""How often cells are graded towards an end with a layer: to 4⁻²⁰, where the spacing of numbers ends it."""
WAVE_SAMPLES = 500
"""Points of the domain at which the wavenumbers of the linearised equations are computed."""
SIDE_SAMPLES, FLAT = 200, 1e-9
"""Samples of a side from which its bounding box is estimated; a thickness below this, relative to the domain, is zero.
"""


def first_tree(
    problem: Problem,
    degree: int,
    tol: float,
    tuning: CellsTuning,
    interfaces: Interfaces,
    space: Domain | None = None,
) -> CellNode:
    """Return an initial mesh on which the data of the problem are resolved by functions of a degree.

    Its cells are about as long as wide, and end at flat interfaces; in each cell the normals of curved interfaces
    differ from their mean by at most 60°.

    space : the spatial domain of a space-time, for a mesh of space alone; the data must then be resolved at all times
    """
    domain = problem.domain if space is None else space
    bounds = np.asarray(domain.bounds, dtype=float)
    others = np.asarray(problem.domain.bounds, dtype=float)[: problem.domain.dim - len(bounds)]
    tree = _split_at_sides(CellNode(bounds), domain)
    for axis, position in _flat_interfaces(interfaces, tuning.max_cells[len(bounds) - 1] // 4):
        tree = tree.split_at(axis, position, FLAT * float(tree.lengths[axis]))
    if len(tree.leaves) == 1:
        tree = _longest_first(tree, 0.5 ** tuning.first_splits[len(bounds) - 1])
    tree = _refine_while(tree, lambda leaf: leaf.lengths > 2 * leaf.lengths.min())
    tree = resolve_holes_and_corners(tree, domain, log2(1 / tol), interfaces)
    # where prescribed values jump, the error in the last cell is of the order of its length
    tree = graded_towards(tree, corner_jumps(problem), ceil(log2(1 / tol) / -log2(GRADING)))
    data, max_cells = problem.variation, tuning.max_cells[len(bounds) - 1] // 4
    tree = _resolve_curved_interfaces(tree, interfaces, max_cells)
    if data is None:
        return tree

    largest = resolved_phase(degree, PILOT_TOLERANCE) / 2  # cos(x) changes by x over half a cell, in units of its size

    def changes(leaf: CellNode) -> Array:
        return data.changes(np.concatenate([others, leaf.bounds]))[len(others) :] > largest

    return _refine_while(tree, changes, max_cells)


def _longest_first(tree: CellNode, fraction: float) -> CellNode:
    """Split a box into cells of at most ``fraction`` of each length, with longest sides at most twice the shortest.

    The longest sides are split first: a plane along a long box would carry the traces of all cells beside it, and they
    would have to be eliminated together.
    """
    largest = np.minimum(tree.lengths * fraction, 2 * fraction * tree.lengths.min())

    def longest(leaf: CellNode) -> Array:
        longer = leaf.lengths > largest * (1 + FLAT)
        return longer & (leaf.lengths > (1 - FLAT) * leaf.lengths[longer].max(initial=0.0))

    return _refine_while(tree, longest)


def resolve_guess(tree: CellNode, state: State, degree: int, max_cells: int) -> CellNode:
    """Split the cells of an interval until polynomials of the given degree approximate a guess.

    Where the guess was integrated, the steps of the ODE solver stand close together in a front between the nodes of a
    cell, and what the polynomials miss there is relative to the size that the solution has reached.
    """
    nodes, gauss_weights = leggauss(degree + 1)
    analysis = legvander(nodes, degree).T * gauss_weights * (np.arange(degree + 1)[:, None] + 0.5)

    def values(leaf: CellNode) -> Array:
        return state.derivative(leaf.bounds.mean() + 0.5 * leaf.lengths * nodes[:, None], (0,))

    sizes = np.max([np.abs(values(leaf)).max(axis=0) for leaf in tree.refined_leaves((0,)).leaves], axis=0)

    steps = state.steps if isinstance(state, Integrated) else np.zeros((0, 1))
    passed = state.derivative(steps, (0,)) if len(steps) else np.zeros((0, len(sizes)))
    reached = np.maximum(np.maximum.accumulate(np.abs(passed), axis=0), np.finfo(float).eps ** 0.5 * sizes)

    def unresolved(leaf: CellNode) -> Array:
        coefficients = analysis @ values(leaf)
        beyond = np.abs(coefficients[-degree // 3 :]).max(axis=0)
        inside = ((leaf.bounds[0, 0] <= steps) & (steps <= leaf.bounds[0, 1]))[:, 0]
        between = legvander(2 * (steps[inside, 0] - leaf.bounds.mean()) / leaf.lengths, degree)
        missed = np.abs(between @ coefficients - passed[inside])
        return np.array(
            [bool((beyond > GUESS_TOLERANCE * sizes).any() or (missed > GUESS_TOLERANCE * reached[inside]).any())]
        )

    return _refine_while(tree, unresolved, max_cells)


def resolve_waves(
    tree: CellNode, problem: Problem, state: State, degree: int, tol: float, max_cells: int
) -> tuple[CellNode, float]:
    """Split cells until functions of a degree resolve the undamped waves of the equations linearised at a state.

    Return the mesh, and the largest phase over one of its cells relative to what is resolved: above 1 where resolving
    the waves would take more than ``max_cells`` cells.
    """
    points = problem.domain.sample(WAVE_SAMPLES, rng=20_071)
    waves = wavenumbers(problem, state, points)
    if not waves.any():
        return tree, 0.0
    largest, allowed = waves.max(axis=0), resolved_phase(degree, tol)

    def phases(leaf: CellNode) -> Array:
        inside = ((leaf.bounds[:, 0] <= points) & (points <= leaf.bounds[:, 1])).all(axis=1)
        return leaf.lengths * (waves[inside].max(axis=0) if inside.any() else largest)

    tree = _refine_while(tree, lambda leaf: phases(leaf) > allowed, max_cells)
    return tree, max(float(phases(leaf).max()) for leaf in tree.leaves) / allowed


def resolve_layers(tree: CellNode, problem: Problem, state: State, degree: int, tol: float) -> CellNode:
    """Grade the mesh of an interval towards ends at which the equations linearised at a state allow a layer.

    A solution without the layer may satisfy all equations on cells that cannot represent it: an outflow at both ends.
    """
    allowed, bounds = resolved_growth(degree, tol), tree.bounds[0]
    for end, rate in zip(bounds, layer_rates(problem, state), strict=True):
        levels = 0
        while rate * min(leaf.lengths[0] for leaf in tree.leaves if end in leaf.bounds[0]) > allowed:
            tree, levels = graded_towards(tree, [(float(end),)]), levels + 1
            if levels == MAX_LAYER_LEVELS:
                break
    return tree


def _flat_interfaces(interfaces: Interfaces, max_cells: int) -> list[tuple[int, float]]:
    """Return axis and position of the flat interfaces.

    If they would make more than ``max_cells`` cells, those across which no flux jumps are left out.
    """
    planes = [(axis, position) for axis, position, _ in interfaces.flat]
    normals = [axis for axis, _ in planes]
    cells = prod(1 + normals.count(axis) for axis in set(normals))
    return planes if cells <= max_cells else [(axis, position) for axis, position, flux in interfaces.flat if flux]


def _resolve_curved_interfaces(tree: CellNode, interfaces: Interfaces, max_cells: int) -> CellNode:
    """Split cells until the normals of curved interfaces vary little in each, down to a smallest size."""

    def too_curved(leaf: CellNode) -> Array:
        none = np.zeros(len(leaf.bounds), dtype=bool)
        if (leaf.lengths < MIN_FRACTION * tree.lengths).any():
            return none
        for interface in interfaces.curved:
            points, _ = interface.within(leaf.bounds, SEARCH_LINES)
            if len(points):
                normals = interface.normals(points)
                middle = normals.mean(axis=0)
                if (normals @ middle).min() < MIN_NORMAL_COSINE * np.linalg.norm(middle):
                    return leaf.lengths > LONG_SIDE * leaf.lengths.max()
        return none

    return _refine_while(tree, too_curved, max_cells)


def _refine_while(tree: CellNode, split_axes: Callable[[CellNode], Array], max_cells: int = 10**6) -> CellNode:
    """Split leaves across the axes that ``split_axes`` chooses, until it chooses none or there are ``max_cells``
    leaves; never below the rounding of coordinates, where a guess jumps or is singular."""
    shortest = ROUNDED * np.abs(tree.bounds).max(axis=1)

    def splits_of(leaf: CellNode) -> tuple[int, ...]:
        checkpoint()
        return axes_of(split_axes(leaf) & (leaf.lengths > shortest))

    while len(tree.leaves) < max_cells:
        splits = {leaf: splits_of(leaf) for leaf in tree.leaves}
        if not any(splits.values()):
            break
        tree = tree.refined(splits)
    return tree


def _side_bounds(domain: Domain) -> list[tuple[Array, Array]]:
    """Return the lower and upper corner, each (n,), of every side of a domain that is not a box."""
    if is_box(domain):
        return []
    samples = [side.sample(SIDE_SAMPLES, rng=0) for side in domain.sides.values()]
    return [(points.min(axis=0), points.max(axis=0)) for points in samples]


def _split_at_sides(tree: CellNode, domain: Domain) -> CellNode:
    """Split cells at the flat sides and in the re-entrant corners of a domain; these splits are not jittered."""
    for lower, upper in _side_bounds(domain):
        flat = np.flatnonzero(upper - lower < FLAT * tree.lengths)
        if len(flat) == 1:
            axis = int(flat[0])
            tree = tree.split_at(axis, float(lower[axis]), FLAT * float(tree.lengths[axis]))
    for corner in domain.corners:
        shift = len(tree.bounds) - len(corner.point)
        point = np.concatenate([tree.bounds[:shift].mean(axis=1), np.asarray(corner.point)])
        for axis in range(shift, len(point)):
            tree = tree.split_near(point, axis, FLAT * float(tree.lengths[shift:].max()))
    return tree


def resolve_holes_and_corners(tree: CellNode, domain: Domain, digits: float, interfaces: Interfaces) -> CellNode:
    """Refine until no cell contains a whole hole, and grade the mesh towards all corners.

    digits : the wanted accuracy in binary digits. Near a corner of angle ω a solution behaves like r^(π/ω), and a last
        cell of length h leaves an error of about h^(2π/ω) elsewhere.
    """
    if interfaces.corners:
        levels = ceil(digits * INTERFACE_CORNER_ANGLE / (2 * pi) / -log2(GRADING))
        tree = graded_towards(tree, interfaces.corners, min(levels, MAX_CORNER_CELLS // (12 * len(interfaces.corners))))
    if is_box(domain):
        return tree
    shift = domain.dim - (domain.space.dim if isinstance(domain, SpaceTime) else domain.dim)
    boxes = _side_bounds(domain)
    space = np.arange(domain.dim) >= shift

    def contains_hole(leaf: CellNode) -> Array:
        longer = (leaf.lengths > LONG_SIDE * leaf.lengths[space].max()) & space
        return longer if _contains_side(leaf, boxes, space) else np.zeros_like(space)

    tree = _refine_while(tree, contains_hole)
    largest_angle = max((corner.angle for corner in domain.corners), default=0.0)
    return graded_towards(tree, _corner_points(domain), ceil(digits * largest_angle / (2 * pi) / -log2(GRADING)))


def graded_at_corners(tree: CellNode, domain: Domain, interfaces: Interfaces) -> CellNode:
    """Grade the mesh once more towards re-entrant corners and corners of interfaces."""
    return graded_towards(tree, [*_corner_points(domain), *interfaces.corners])


def _corner_points(domain: Domain) -> list[tuple[float, ...]]:
    return [tuple(corner.point) for corner in domain.corners]


def graded_towards(tree: CellNode, corners: Sequence[tuple[float, ...]], levels: int = 1) -> CellNode:
    """Split the leaves that touch one of these points ``levels`` times, each time close to the point (graded mesh)."""
    for corner in corners:
        shift = len(tree.bounds) - len(corner)
        space = np.arange(len(tree.bounds)) >= shift
        point = np.concatenate([tree.bounds[:shift].mean(axis=1), np.asarray(corner)])
        for _ in range(levels):
            near = [leaf for leaf in tree.leaves if _touches(leaf, point, space)]
            tree = tree.refined(
                dict.fromkeys(near, axes_of(space)), {leaf: split_fractions(leaf, point) for leaf in near}
            )
    return tree


def distance_to_corners(leaf: CellNode, lengths: Array, corners: Sequence[tuple[float, ...]]) -> float:
    """Return the distance from the nearest of these points of space within which a leaf lies, along axes relative to
    ``lengths`` (n,), the largest of them."""
    return min(
        float((np.abs(leaf.bounds[-len(corner) :].T - corner) / lengths[-len(corner) :]).max()) for corner in corners
    )


def split_fractions(leaf: CellNode, point: Array) -> Array:
    """Return the fractions (n,) at which a leaf is split: near the end where the point lies, else in the middle."""
    slack = FLAT * leaf.lengths
    below, above = np.abs(point - leaf.bounds[:, 0]) <= slack, np.abs(point - leaf.bounds[:, 1]) <= slack
    return np.where(below, GRADING, np.where(above, 1 - GRADING, 0.5))


def _contains_side(leaf: CellNode, boxes: list[tuple[Array, Array]], space: Array) -> bool:
    """Return whether a whole side of the domain lies inside a leaf."""
    return any(((leaf.bounds[:, 0] < low) & (high < leaf.bounds[:, 1]))[space].all() for low, high in boxes)


def _touches(leaf: CellNode, point: Array, space: Array) -> bool:
    slack = FLAT * leaf.lengths
    inside = (leaf.bounds[:, 0] - slack <= point) & (point <= leaf.bounds[:, 1] + slack)
    return bool(inside[space].all())


def axes_of(chosen: Array) -> tuple[int, ...]:
    return tuple(int(axis) for axis in np.flatnonzero(chosen))
