"""Rows that tie the functions of cells to the traces on their joints:  ∂_axis^k u = λ_k, k below the order in space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.cells.basis import Cell
from rannpde.pde.cells.elimination import Kept, Part, triangle_of
from rannpde.pde.cells.mesh import Joint, Mesh

Traces = Sequence[tuple[int, int]]
"""(number of a field, order k of its derivative across the joint)."""


@dataclass(frozen=True, eq=False)
class Crossing:
    """A joint as one of its cells sees it: per trace rows of the cell's own functions.

    held (t, functions) : components along the joint's polynomials; lost (P - t, functions) : what these cannot hold
    """

    joint: int
    traces: Traces
    held: tuple[Array, ...]
    lost: tuple[Array, ...]


class Ties:
    """The joints of a mesh: numbers of traces (widths), joints of each cell (own), and how it sees them (crossings).

    traces : by axis; sizes (fields,) : of the fields, which make the rows dimensionless
    """

    def __init__(self, mesh: Mesh, traces: Sequence[Traces], sizes: Array) -> None:
        self.mesh, self.traces, self.sizes = mesh, traces, sizes
        self.widths = [joint.columns.shape[1] * len(traces[joint.axis]) for joint in mesh.joints]
        self.own: list[list[int]] = [[] for _ in mesh.cells]
        for number, joint in enumerate(mesh.joints):
            for one in dict.fromkeys(joint.cells):
                self.own[one].append(number)
        self.crossings: list[list[Crossing]] = [[] for _ in mesh.cells]
        self.heavy = next(cell.draw.tuning.face_weight for _, cell in mesh.present)
        for number, cell in mesh.present:
            self.crossings[number] = [crossing for j in self.own[number] for crossing in self._across(j, number, cell)]

    def _across(self, j: int, number: int, cell: Cell) -> list[Crossing]:
        """A joint of a cell, twice where both its sides are here."""
        joint: Joint = self.mesh.joints[j]
        axis, traces = joint.axis, self.traces[joint.axis]
        indices = {k: tuple(k * (a == axis) for a in range(len(cell.bounds))) for _, k in traces}
        root = np.sqrt(joint.weights)[:, None]
        basis = joint.columns * root
        beyond = np.linalg.qr(basis, mode="complete")[0][:, basis.shape[1] :]
        found = []
        for side in (0, 1):
            if joint.cells[side] != number:
                continue
            tables = cell.at(joint.sides[side], set(indices.values()))
            held, lost = [], []
            for column, k in traces:
                rows = tables[indices[k]] * (root * (joint.length**k / self.sizes[column]))
                held.append(basis.T @ rows)
                lost.append(beyond.T @ rows)
            found.append(Crossing(j, traces, tuple(held), tuple(lost)))
        return found

    def eliminated(self, number: int, blocks: Sequence[Array], functions: int) -> tuple[Kept, Part]:
        """A cell's rows (rows, own + 1) with those of its joints, after the elimination of its weights."""
        own, kind = functions * len(self.sizes), np.result_type(*blocks)
        alone = list(blocks)
        for crossing in self.crossings[number]:
            for (column, _), lost in zip(crossing.traces, crossing.lost, strict=True):
                block = np.zeros((len(lost), own + 1), dtype=kind)
                block[:, column * functions : (column + 1) * functions] = self.heavy * lost
                alone.append(block)
        inner = triangle_of(np.asfortranarray(np.concatenate(alone)))
        joints = self.own[number]
        starts = dict(zip(joints, own + np.cumsum([0, *(self.widths[j] for j in joints)]), strict=False))
        total = own + sum(self.widths[j] for j in joints)
        height = sum(len(part) for crossing in self.crossings[number] for part in crossing.held)
        matrix = np.zeros((len(inner) + height, total + 1), dtype=kind, order="F")
        matrix[: len(inner), :own], matrix[: len(inner), -1] = inner[:, :own], inner[:, own]
        row = len(inner)
        for crossing in self.crossings[number]:
            at = starts[crossing.joint]
            for (column, _), held in zip(crossing.traces, crossing.held, strict=True):
                count = len(held)
                rows = np.arange(row, row + count)
                matrix[row : row + count, column * functions : (column + 1) * functions] = self.heavy * held
                matrix[rows, at + np.arange(count)] = -self.heavy
                row, at = row + count, at + count
        triangle = triangle_of(matrix)
        return Kept(own, tuple(joints), triangle[:own]), Part(tuple(joints), triangle[own:, own:])
