"""One solve on one mesh, and which of its cells are to be cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander

from rannpde.arrays import Array
from rannpde.pde.cells.evolved import MarchedNetwork
from rannpde.pde.cells.first import axes_of
from rannpde.pde.cells.mesh import Mesh
from rannpde.pde.cells.network import CellNetwork
from rannpde.pde.cells.tree import Node
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.cells.weights import Weights
from rannpde.pde.watch import Ending


@dataclass(frozen=True, eq=False)
class Solved:
    """One solve: the function; residuals per leaf, of equations (C,) and of conditions by axis (C, n); its ending."""

    network: CellNetwork | MarchedNetwork
    mesh: Mesh
    weights: Weights
    inside: Array
    beside: Array
    losses: Mapping[str, float]
    steps: int
    ending: Ending
    free: bool

    @property
    def marks(self) -> Array:
        """Dimensionless residual per leaf, (C,)."""
        return np.hypot(self.inside, np.linalg.norm(self.beside, axis=1))


def refined(tree: Node, solved: Solved, mark: float, sizes: Array, tuning: CellsTuning) -> Node:
    """The tree with the cells whose residual is above the mark cut; the same tree where there are none.

    sizes (fields,) : of the fields
    """
    marks, homes = solved.marks, solved.mesh.homes
    chosen = np.flatnonzero(marks > max(mark, tuning.worst * float(marks.max())))
    chosen = chosen[np.argsort(marks[chosen], kind="stable")]  # of two parts of a box the worse one is heard
    cuts = {tree.leaves[homes[k]]: _axes(solved, int(k), sizes, tuning) for k in chosen}
    return tree.refined(cuts) if cuts else tree


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
