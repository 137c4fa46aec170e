"""MARK and REFINE: which cells are split after a solve, across which axes, and where."""

from __future__ import annotations

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander

from rannpde.arrays import Array
from rannpde.domains.creases import NONE, Creases
from rannpde.pde.cells.mesh.initial import FLAT, axes_of, split_fractions
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.cells.network import DiscreteSolution
from rannpde.pde.cells.tuning import CellsTuning

ALONG, LEVELS = 0.9, 2
"""Cosine of the angle to an axis above which an edge runs along it; how often cells at re-entrant edges of solids are
cut for one iteration: they are many, so only those that need it, as the iterations show."""


def refined(
    tree: CellNode, solved: DiscreteSolution, mark: float, sizes: Array, tuning: CellsTuning, creases: Creases = NONE
) -> CellNode:
    """The tree with the cells whose residual is above the mark cut; the same tree where there are none.

    sizes (fields,) : of the fields; creases : re-entrant edges, towards which cells at them are cut
    """
    marks, homes = solved.marks, solved.mesh.homes
    chosen = np.flatnonzero(marks > max(mark, tuning.marking_fraction * float(marks.max())))
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
    return axes_of(across.any(axis=0)), split_fractions(leaf, place)


def _axes(solved: DiscreteSolution, number: int, sizes: Array, tuning: CellsTuning) -> tuple[int, ...]:
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
        return axes_of(np.array(found) >= tuning.curvature_threshold * max(found))
    if not cell.whole or dim == 1:
        lengths = solved.mesh.tree.leaves[number].lengths
        return axes_of(lengths > 0.6 * lengths.max())
    count, degree = cell.basis.nodes, cell.basis.degree
    nodes, shares = leggauss(count)
    analysis = legvander(nodes, count - 1).T * shares * np.sqrt(np.arange(count)[:, None] + 0.5)
    plain = (0,) * dim
    grid = (cell.tables([plain])[plain] @ weights / sizes).reshape((count,) * dim + (-1,))
    for axis in range(dim):
        grid = np.moveaxis(np.tensordot(analysis, grid, axes=(1, axis)), 0, axis)
    beyond = np.arange(int(tuning.tail_fraction * degree), degree + 1)
    tails = np.array([np.linalg.norm(np.take(grid, beyond, axis=axis)) for axis in range(dim)])
    return axes_of(tails >= tuning.anisotropy_threshold * tails.max())
