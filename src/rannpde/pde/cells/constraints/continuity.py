"""Rows that constraint the functions of cells to the traces on their faces:  ∂_n^k u = λ_k, k below the order in space.

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
from rannpde.pde.cells.condensation.blocks import (
    IllConditioned,
    PivotBlock,
    SchurComplement,
    append_rows,
    gram,
    schur,
    triangular_factor,
)
from rannpde.pde.cells.mesh.mesh import Face, Mesh

Traces = Sequence[tuple[int, int]]
"""(number of a field, order k of its derivative across the face)."""


NORMAL_THRESHOLD = 1e-9
"""Component of a normal below which it does not point along an axis."""


@dataclass(frozen=True, eq=False)
class FaceOperator:
    """A face as one of its cells sees it: per trace rows of the cell's own functions.

    held (t, functions) : components along the face's polynomials; lost (P - t, functions) : what these cannot hold
    """

    face: int
    traces: Traces
    projected: tuple[Array, ...]
    complement: tuple[Array, ...]

    @property
    def width(self) -> int:
        """Of all its traces."""
        return sum(map(len, self.projected))


@dataclass(frozen=True, eq=False)
class FluxOperator:
    """The flux of an equation through a face as one of its cells sees it: rows (…, own + 1) with a right side.

    number : of the trace among those of the face; held, lost : as of a ``FaceOperator``
    """

    face: int
    number: int
    projected: Array
    complement: Array


class ContinuityConstraints:
    """The faces of a mesh: numbers of traces (widths), faces of each cell (own), and how it sees them (crossings).

    traces : by axis; sizes (fields,) : of the fields, which make the rows dimensionless
    beside, fluxes : traces where a flux jumps, without the fluxes, and the number of these
    """

    def __init__(
        self, mesh: Mesh, traces: Sequence[Traces], sizes: Array, flux_traces: Traces = (), fluxes: int = 0
    ) -> None:
        self.mesh, self.traces, self.sizes, self.flux_traces = mesh, traces, sizes, flux_traces
        self.widths = [face.columns.shape[1] * (len(self.traces_of(face)) + fluxes * face.flux) for face in mesh.faces]
        self.cell_faces: list[list[int]] = [[] for _ in mesh.cells]
        for number, face in enumerate(mesh.faces):
            for one in dict.fromkeys(face.cells):
                self.cell_faces[one].append(number)
        self.operators: list[list[FaceOperator]] = [[] for _ in mesh.cells]
        self.face_bases: dict[int, tuple[Array, Array, Array]] = {}
        self.face_weight = next(cell.basis.tuning.face_weight[cell.basis.dim - 1] for _, cell in mesh.present)
        for number, cell in mesh.present:
            self.operators[number] = [
                operator for j in self.cell_faces[number] for operator in self._operators(j, number, cell)
            ]

    def traces_of(self, face: Face) -> Traces:
        """The fields and orders that are continuous across a face."""
        if face.flux:
            return self.flux_traces
        if face.normals is None:
            return self.traces[face.axis]
        steep = np.flatnonzero(np.abs(face.normals).max(axis=0) > NORMAL_THRESHOLD)
        return list(dict.fromkeys(trace for axis in steep.tolist() for trace in self.traces[axis]))

    def face_bases_of(self, j: int) -> tuple[Array, Array, Array]:
        """Roots of the weights (P, 1) of a face; its polynomials (P, t) and what they cannot hold (P, P - t)."""
        face: Face = self.mesh.faces[j]
        if id(face.columns) not in self.face_bases:  # faces inside the domain share theirs
            root = np.sqrt(face.weights)[:, None]
            trace_basis = face.columns * root
            complement_basis = np.linalg.qr(trace_basis, mode="complete")[0][:, trace_basis.shape[1] :]
            self.face_bases[id(face.columns)] = root, trace_basis, complement_basis
        return self.face_bases[id(face.columns)]

    def _operators(self, j: int, number: int, cell: Cell) -> list[FaceOperator]:
        """A face of a cell, twice where both its sides are here."""
        face: Face = self.mesh.faces[j]
        traces = self.traces_of(face)
        powers = {k: _normal_derivative(face, k, len(cell.bounds)) for _, k in traces}
        root, trace_basis, complement_basis = self.face_bases_of(j)
        operators = []
        for side in (0, 1):
            if face.cells[side] != number:
                continue
            tables = cell.at(face.sides[side], {index for terms in powers.values() for index in terms})
            projected, complement = [], []
            for column, k in traces:
                along = sum(tables[index] * factor for index, factor in powers[k].items())
                rows = along * (root * (face.length**k / self.sizes[column]))
                projected.append(trace_basis.T @ rows)
                complement.append(complement_basis.T @ rows)
            operators.append(FaceOperator(j, traces, tuple(projected), tuple(complement)))
        return operators

    def condensed(
        self,
        number: int,
        blocks: Sequence[Array],
        functions: int,
        fluxes: Sequence[FluxOperator] = (),
        weights: Array | None = None,
    ) -> tuple[PivotBlock, SchurComplement]:
        """A cell's rows (rows, own + right sides) with those of its faces, after the elimination of its weights.

        strengths (fields,) : by which the faces of this cell weigh more than those of others
        """
        face_weight = self.face_weight * (np.ones(len(self.sizes)) if weights is None else weights)
        local, kind = functions * len(self.sizes), np.result_type(*blocks)
        rhs = blocks[0].shape[1] - local
        alone = list(blocks)
        for operator in self.operators[number]:
            for (column, _), complement in zip(operator.traces, operator.complement, strict=True):
                block = np.zeros((len(complement), local + rhs), dtype=kind)
                block[:, column * functions : (column + 1) * functions] = face_weight[column] * complement
                alone.append(block)
        alone += [self.face_weight * flux_operator.complement for flux_operator in fluxes]
        inner = triangular_factor(np.asfortranarray(np.concatenate(alone)))
        faces = self.cell_faces[number]
        starts = dict(zip(faces, local + np.cumsum([0, *(self.widths[j] for j in faces)]), strict=False))
        total = local + sum(self.widths[j] for j in faces)
        height = sum(len(part) for operator in self.operators[number] for part in operator.projected)
        height += sum(len(flux_operator.projected) for flux_operator in fluxes)
        known = np.zeros((min(local, len(inner)), total + rhs), dtype=kind)
        known[:, :local], known[:, total:] = inner[:local, :local], inner[:local, local:]
        matrix, row = np.zeros((height, total + rhs), dtype=kind), 0
        for operator in self.operators[number]:
            at = starts[operator.face]
            for (column, _), projected in zip(operator.traces, operator.projected, strict=True):
                count = len(projected)
                rows = np.arange(row, row + count)
                matrix[row : row + count, column * functions : (column + 1) * functions] = (
                    face_weight[column] * projected
                )
                matrix[rows, at + np.arange(count)] = -face_weight[column]
                row, at = row + count, at + count
        for flux_operator in fluxes:
            count = len(flux_operator.projected)
            rows, at = np.arange(row, row + count), starts[flux_operator.face] + flux_operator.number * count
            matrix[row : row + count, :local] = self.face_weight * flux_operator.projected[:, :local]
            matrix[row : row + count, total:] = self.face_weight * flux_operator.projected[:, local:]
            matrix[rows, at + np.arange(count)] = -self.face_weight
            row += count
        pivot_rows, complement = append_rows(known, matrix, local)
        return PivotBlock(local, tuple(faces), pivot_rows), SchurComplement(tuple(faces), complement)

    def normal_products(self, number: int, functions: int) -> Array:
        """A*A of the rows of the faces of a cell, in the columns [own | traces | a right side]."""
        local, faces = functions * len(self.sizes), self.cell_faces[number]
        starts = dict(zip(faces, local + np.cumsum([0, *(self.widths[j] for j in faces)]), strict=False))
        total = local + sum(self.widths[j] for j in faces)
        products = np.zeros((total + 1, total + 1))
        for operator in self.operators[number]:
            at = starts[operator.face]
            for (column, _), projected, complement in zip(
                operator.traces, operator.projected, operator.complement, strict=True
            ):
                mine, traces = slice(column * functions, (column + 1) * functions), slice(at, at + len(projected))
                products[mine, mine] += projected.T @ projected + complement.T @ complement
                products[mine, traces] -= projected.T
                products[traces, mine] -= projected
                products[traces, traces] += np.eye(len(projected))
                at = traces.stop
        return self.face_weight**2 * products

    def condensed_normal(
        self, number: int, blocks: Sequence[Array], functions: int, constraints: Array
    ) -> tuple[PivotBlock, SchurComplement]:
        """As ``eliminated``, but what is left is products of rows; constraints : as of ``products``.

        With a third of the work, and accurate enough for factors by which residuals are corrected.
        """
        local = functions * len(self.sizes)
        matrix = constraints.astype(np.result_type(*blocks))
        matrix[:local, :local] += gram(np.concatenate(blocks)[:, :local])
        try:
            return schur(matrix, local, tuple(self.cell_faces[number]))
        except IllConditioned:
            pivot, rows_left = self.condensed(number, blocks, functions)
            return pivot, SchurComplement(rows_left.faces, gram(rows_left.rows))


def _normal_derivative(face: Face, order: int, dim: int) -> dict[MultiIndex, Array | float]:
    """Multi-index → factor (P, 1): the derivative of that order along the normals of a face."""
    if face.normals is None:
        return {tuple(order * (axis == face.axis) for axis in range(dim)): 1.0}
    factors: dict[MultiIndex, Array | float] = {}
    for index in product(range(order + 1), repeat=dim):
        if sum(index) == order:
            ways = factorial(order) / prod(map(factorial, index))
            factors[index] = ways * np.prod(face.normals ** np.array(index), axis=1)[:, None]
    return factors
