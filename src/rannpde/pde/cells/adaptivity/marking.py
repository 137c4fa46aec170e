"""MARK and REFINE: which cells are split after a solve, across which axes, and where."""

from __future__ import annotations

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander

from rannpde.arrays import Array
from rannpde.domains.boundary.creases import NONE, Creases
from rannpde.pde.cells.mesh.initial import FLAT, LONG_SIDE, axes_of, split_fractions
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.cells.network import DiscreteSolution
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.tolerance import COMPARABLE, MUCH_SMALLER, TAIL_START


def refine_marked(
    tree: CellNode,
    solution: DiscreteSolution,
    marked: Array,
    sizes: Array,
    tuning: CellsTuning,
    creases: Creases = NONE,
) -> CellNode:
    """Split the marked cells (bool, (C,)); the tree itself is returned where there are none.

    sizes (fields,) : magnitudes of the fields; creases : re-entrant edges, towards which cells that touch them are
        graded
    """
    indicators, homes = solution.indicators, solution.mesh.homes
    chosen = np.flatnonzero(marked)
    chosen = chosen[np.argsort(indicators[chosen], kind="stable")]  # in one box the largest indicator decides
    splits = {tree.leaves[homes[k]]: _unresolved_axes(solution, int(k), sizes, tuning) for k in chosen}
    if not splits:
        return tree
    fractions = {leaf: np.full(len(leaf.bounds), 0.5) for leaf in splits}
    for level in range(tuning.crease_levels):
        known = set(tree.leaves)
        for leaf in splits:
            splits[leaf], fractions[leaf] = _crease_splits(leaf, creases) or (
                () if level else splits[leaf],
                fractions[leaf],
            )
        tree = tree.refined(splits, fractions)
        splits = dict.fromkeys(set(tree.leaves) - known, ())
        fractions = dict.fromkeys(splits, np.empty(0))
    return tree


def _crease_splits(leaf: CellNode, creases: Creases) -> tuple[tuple[int, ...], Array] | None:
    """Return the axes across the re-entrant edges at a leaf and the fractions (n,) at which it is split; None without
    edges."""
    if not len(creases):
        return None
    lower, upper = (leaf.bounds + FLAT * leaf.lengths[:, None] * np.array([-1.0, 1.0])).T
    near = ((lower <= creases.points) & (creases.points <= upper)).all(axis=1)
    if not near.any():
        return None
    across = 1 - np.abs(creases.directions[near]) > MUCH_SMALLER  # by the cosines of the angles to the axes
    centre = np.average(creases.points[near], axis=0, weights=np.where(across.any(axis=0), across, 1.0))
    return axes_of(across.any(axis=0)), split_fractions(leaf, centre)


def _unresolved_axes(solution: DiscreteSolution, number: int, sizes: Array, tuning: CellsTuning) -> tuple[int, ...]:
    """Return the axes across which a cell is to be split: those along which the solution is not resolved."""
    cell = solution.mesh.cells[number]
    assert cell is not None
    dim, condition_residuals, weights = (
        len(cell.bounds),
        solution.condition_residuals[number],
        solution.weights.cells[number],
    )
    if dim > 1 and np.linalg.norm(condition_residuals) > 3 * solution.equation_residuals[number]:
        return axes_of(condition_residuals > COMPARABLE * condition_residuals.max())
    if dim > 2 and not cell.uncut:  # splitting across all axes would make eight cells of it
        second_derivatives = [tuple(2 * (axis == other) for other in range(dim)) for axis in range(dim)]
        tables = cell.tables(second_derivatives)
        sizes_of = [
            np.linalg.norm(tables[index] @ weights / sizes) / cell.factor(index) for index in second_derivatives
        ]
        return axes_of(np.array(sizes_of) >= tuning.anisotropy_threshold * max(sizes_of))
    if not cell.uncut or dim == 1:
        lengths = solution.mesh.tree.leaves[number].lengths
        return axes_of(lengths > LONG_SIDE * lengths.max())
    count, degree = cell.basis.nodes, cell.basis.degree
    nodes, gauss_weights = leggauss(count)
    analysis = legvander(nodes, count - 1).T * gauss_weights * np.sqrt(np.arange(count)[:, None] + 0.5)
    plain = (0,) * dim
    grid = (cell.tables([plain])[plain] @ weights / sizes).reshape((count,) * dim + (-1,))
    for axis in range(dim):
        grid = np.moveaxis(np.tensordot(analysis, grid, axes=(1, axis)), 0, axis)
    beyond = np.arange(int(TAIL_START * degree), degree + 1)
    tails = np.array([np.linalg.norm(np.take(grid, beyond, axis=axis)) for axis in range(dim)])
    return axes_of(tails >= tuning.anisotropy_threshold * tails.max())
