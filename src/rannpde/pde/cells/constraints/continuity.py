"""Rows that tie the functions of cells to the traces on their joints:  ∂_n^k u = λ_k, k below the order in space.

Where a flux jumps, u = λ_0 and flux · n = λ_1, the rows of which a system makes, since they may change with the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import factorial, prod

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.cells.basis.basis import Cell
from rannpde.pde.cells.condensation.blocks import Delicate, Kept, Remainder, added, gram, schur, triangle_of
from rannpde.pde.cells.mesh.mesh import Joint, Mesh

Traces = Sequence[tuple[int, int]]
"""(number of a field, order k of its derivative across the joint)."""


UPRIGHT = 1e-9
"""Component of a normal below which it does not point along an axis."""


@dataclass(frozen=True, eq=False)
class Crossing:
    """A joint as one of its cells sees it: per trace rows of the cell's own functions.

    held (t, functions) : components along the joint's polynomials; lost (P - t, functions) : what these cannot hold
    """

    joint: int
    traces: Traces
    held: tuple[Array, ...]
    lost: tuple[Array, ...]

    @property
    def width(self) -> int:
        """Of all its traces."""
        return sum(map(len, self.held))


@dataclass(frozen=True, eq=False)
class Through:
    """The flux of an equation through a joint as one of its cells sees it: rows (…, own + 1) with a right side.

    number : of the trace among those of the joint; held, lost : as of a ``Crossing``
    """

    joint: int
    number: int
    held: Array
    lost: Array


class Ties:
    """The joints of a mesh: numbers of traces (widths), joints of each cell (own), and how it sees them (crossings).

    traces : by axis; sizes (fields,) : of the fields, which make the rows dimensionless
    beside, fluxes : traces where a flux jumps, without the fluxes, and the number of these
    """

    def __init__(
        self, mesh: Mesh, traces: Sequence[Traces], sizes: Array, beside: Traces = (), fluxes: int = 0
    ) -> None:
        self.mesh, self.traces, self.sizes, self.beside = mesh, traces, sizes, beside
        self.widths = [
            joint.columns.shape[1] * (len(self.traces_of(joint)) + fluxes * joint.flux) for joint in mesh.joints
        ]
        self.own: list[list[int]] = [[] for _ in mesh.cells]
        for number, joint in enumerate(mesh.joints):
            for one in dict.fromkeys(joint.cells):
                self.own[one].append(number)
        self.crossings: list[list[Crossing]] = [[] for _ in mesh.cells]
        self.parted: dict[int, tuple[Array, Array, Array]] = {}
        self.heavy = next(cell.draw.tuning.face_weight[cell.draw.dim - 1] for _, cell in mesh.present)
        for number, cell in mesh.present:
            self.crossings[number] = [crossing for j in self.own[number] for crossing in self._across(j, number, cell)]

    def traces_of(self, joint: Joint) -> Traces:
        """The fields and orders that are continuous across a joint."""
        if joint.flux:
            return self.beside
        if joint.normals is None:
            return self.traces[joint.axis]
        steep = np.flatnonzero(np.abs(joint.normals).max(axis=0) > UPRIGHT)
        return list(dict.fromkeys(trace for axis in steep.tolist() for trace in self.traces[axis]))

    def split(self, j: int) -> tuple[Array, Array, Array]:
        """Roots of the weights (P, 1) of a joint; its polynomials (P, t) and what they cannot hold (P, P - t)."""
        joint: Joint = self.mesh.joints[j]
        if id(joint.columns) not in self.parted:  # faces inside the domain share theirs
            root = np.sqrt(joint.weights)[:, None]
            basis = joint.columns * root
            beyond = np.linalg.qr(basis, mode="complete")[0][:, basis.shape[1] :]
            self.parted[id(joint.columns)] = root, basis, beyond
        return self.parted[id(joint.columns)]

    def _across(self, j: int, number: int, cell: Cell) -> list[Crossing]:
        """A joint of a cell, twice where both its sides are here."""
        joint: Joint = self.mesh.joints[j]
        traces = self.traces_of(joint)
        powers = {k: _powers(joint, k, len(cell.bounds)) for _, k in traces}
        root, basis, beyond = self.split(j)
        found = []
        for side in (0, 1):
            if joint.cells[side] != number:
                continue
            tables = cell.at(joint.sides[side], {index for terms in powers.values() for index in terms})
            held, lost = [], []
            for column, k in traces:
                along = sum(tables[index] * factor for index, factor in powers[k].items())
                rows = along * (root * (joint.length**k / self.sizes[column]))
                held.append(basis.T @ rows)
                lost.append(beyond.T @ rows)
            found.append(Crossing(j, traces, tuple(held), tuple(lost)))
        return found

    def eliminated(
        self,
        number: int,
        blocks: Sequence[Array],
        functions: int,
        fluxes: Sequence[Through] = (),
        strengths: Array | None = None,
    ) -> tuple[Kept, Remainder]:
        """A cell's rows (rows, own + right sides) with those of its joints, after the elimination of its weights.

        strengths (fields,) : by which the joints of this cell weigh more than those of others
        """
        heavy = self.heavy * (np.ones(len(self.sizes)) if strengths is None else strengths)
        own, kind = functions * len(self.sizes), np.result_type(*blocks)
        sides = blocks[0].shape[1] - own
        alone = list(blocks)
        for crossing in self.crossings[number]:
            for (column, _), lost in zip(crossing.traces, crossing.lost, strict=True):
                block = np.zeros((len(lost), own + sides), dtype=kind)
                block[:, column * functions : (column + 1) * functions] = heavy[column] * lost
                alone.append(block)
        alone += [self.heavy * through.lost for through in fluxes]
        inner = triangle_of(np.asfortranarray(np.concatenate(alone)))
        joints = self.own[number]
        starts = dict(zip(joints, own + np.cumsum([0, *(self.widths[j] for j in joints)]), strict=False))
        total = own + sum(self.widths[j] for j in joints)
        height = sum(len(part) for crossing in self.crossings[number] for part in crossing.held)
        height += sum(len(through.held) for through in fluxes)
        known = np.zeros((min(own, len(inner)), total + sides), dtype=kind)
        known[:, :own], known[:, total:] = inner[:own, :own], inner[:own, own:]
        matrix, row = np.zeros((height, total + sides), dtype=kind), 0
        for crossing in self.crossings[number]:
            at = starts[crossing.joint]
            for (column, _), held in zip(crossing.traces, crossing.held, strict=True):
                count = len(held)
                rows = np.arange(row, row + count)
                matrix[row : row + count, column * functions : (column + 1) * functions] = heavy[column] * held
                matrix[rows, at + np.arange(count)] = -heavy[column]
                row, at = row + count, at + count
        for through in fluxes:
            count = len(through.held)
            rows, at = np.arange(row, row + count), starts[through.joint] + through.number * count
            matrix[row : row + count, :own] = self.heavy * through.held[:, :own]
            matrix[row : row + count, total:] = self.heavy * through.held[:, own:]
            matrix[rows, at + np.arange(count)] = -self.heavy
            row += count
        determined, left = added(known, matrix, own)
        return Kept(own, tuple(joints), determined), Remainder(tuple(joints), left)

    def products(self, number: int, functions: int) -> Array:
        """A*A of the rows of the joints of a cell, in the columns [own | traces | a right side]."""
        own, joints = functions * len(self.sizes), self.own[number]
        starts = dict(zip(joints, own + np.cumsum([0, *(self.widths[j] for j in joints)]), strict=False))
        total = own + sum(self.widths[j] for j in joints)
        found = np.zeros((total + 1, total + 1))
        for crossing in self.crossings[number]:
            at = starts[crossing.joint]
            for (column, _), held, lost in zip(crossing.traces, crossing.held, crossing.lost, strict=True):
                mine, traces = slice(column * functions, (column + 1) * functions), slice(at, at + len(held))
                found[mine, mine] += held.T @ held + lost.T @ lost
                found[mine, traces] -= held.T
                found[traces, mine] -= held
                found[traces, traces] += np.eye(len(held))
                at = traces.stop
        return self.heavy**2 * found

    def squared(self, number: int, blocks: Sequence[Array], functions: int, ties: Array) -> tuple[Kept, Remainder]:
        """As ``eliminated``, but what is left is products of rows; ties : as of ``products``.

        With a third of the work, and accurate enough for factors by which residuals are corrected.
        """
        own = functions * len(self.sizes)
        matrix = ties.astype(np.result_type(*blocks))
        matrix[:own, :own] += gram(np.concatenate(blocks)[:, :own])
        try:
            return schur(matrix, own, tuple(self.own[number]))
        except Delicate:
            kept, part = self.eliminated(number, blocks, functions)
            return kept, Remainder(part.joints, gram(part.rows))


def _powers(joint: Joint, order: int, dim: int) -> dict[MultiIndex, Array | float]:
    """Multi-index → factor (P, 1): the derivative of that order along the normals of a joint."""
    if joint.normals is None:
        return {tuple(order * (axis == joint.axis) for axis in range(dim)): 1.0}
    found: dict[MultiIndex, Array | float] = {}
    for index in product(range(order + 1), repeat=dim):
        if sum(index) == order:
            ways = factorial(order) / prod(map(factorial, index))
            found[index] = ways * np.prod(joint.normals ** np.array(index), axis=1)[:, None]
    return found
