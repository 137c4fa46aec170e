"""Continuity constraints between cells and the traces on their faces: ∂_n^k u = λ_k for k below the order in space.

Where a flux jumps, the constraints are u = λ_0 and flux · n = λ_1. The rows of the latter are made by the system, since
they may depend on the state. The traces λ are unknowns on the faces, as in HDG and mortar methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import factorial, prod

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.checkpoints import checkpoint
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
from rannpde.rounding import COMPUTED

Traces = Sequence[tuple[int, int]]
"""The traces on a face: (number of a field, order k of its normal derivative)."""


@dataclass(frozen=True, eq=False)
class FaceOperator:
    """The rows of the trace operators of a face, applied to the basis functions of one of its cells.

    projected : for each trace the components (t, functions) along the face's polynomials
    complement : for each trace the components (P - t, functions) orthogonal to them
    """

    face: int
    traces: Traces
    projected: tuple[Array, ...]
    complement: tuple[Array, ...]

    @property
    def width(self) -> int:
        """Number of coefficients of all traces on the face."""
        return sum(map(len, self.projected))


@dataclass(frozen=True, eq=False)
class FluxOperator:
    """The rows (…, local + 1) of the flux of an equation through a face, from one of its cells, with right-hand side.

    number : of this trace among those of the face; projected, complement : as in ``FaceOperator``
    """

    face: int
    number: int
    projected: Array
    complement: Array


class ContinuityConstraints:
    """The traces on the faces of a mesh and the rows that couple them to the cells.

    traces : the continuous derivatives for faces normal to each axis; sizes (fields,) : scales that make rows
        dimensionless
    flux_traces, fluxes : the traces where a flux jumps, other than fluxes, and the number of fluxes
    widths : number of trace coefficients per face; cell_faces : faces of each cell; operators : their rows
    """

    def __init__(
        self, mesh: Mesh, traces: Sequence[Traces], sizes: Array, flux_traces: Traces = (), fluxes: int = 0
    ) -> None:
        self.mesh, self.traces, self.sizes, self.flux_traces = mesh, traces, sizes, flux_traces
        self.widths = [face.columns.shape[1] * (len(self.traces_of(face)) + fluxes * face.flux) for face in mesh.faces]
        self.cell_faces: list[list[int]] = [[] for _ in mesh.cells]
        for number, face in enumerate(mesh.faces):
            for cell_number in dict.fromkeys(face.cells):
                self.cell_faces[cell_number].append(number)
        self.operators: list[list[FaceOperator]] = [[] for _ in mesh.cells]
        self.face_bases: dict[int, tuple[Array, Array, Array]] = {}
        self.face_weight = next(cell.basis.tuning.condition_weight[cell.basis.dim - 1] for _, cell in mesh.present)
        for number, cell in mesh.present:
            checkpoint()
            self.operators[number] = [
                operator for j in self.cell_faces[number] for operator in self._operators(j, number, cell)
            ]

    def traces_of(self, face: Face) -> Traces:
        """Return the fields and derivatives that are continuous across a face."""
        if face.flux:
            return self.flux_traces
        if face.normals is None:
            return self.traces[face.axis]
        steep = np.flatnonzero(np.abs(face.normals).max(axis=0) > COMPUTED)
        return list(dict.fromkeys(trace for axis in steep.tolist() for trace in self.traces[axis]))

    def face_bases_of(self, j: int) -> tuple[Array, Array, Array]:
        """Return the square roots (P, 1) of the weights of a face, its trace basis (P, t) and the complement (P, P -
        t)."""
        face: Face = self.mesh.faces[j]
        if id(face.columns) not in self.face_bases:  # uncut faces share their polynomials
            root = np.sqrt(face.weights)[:, None]
            trace_basis = face.columns * root
            complement_basis = np.linalg.qr(trace_basis, mode="complete")[0][:, trace_basis.shape[1] :]
            self.face_bases[id(face.columns)] = root, trace_basis, complement_basis
        return self.face_bases[id(face.columns)]

    def _operators(self, j: int, number: int, cell: Cell) -> list[FaceOperator]:
        """Return the operators of a face of a cell: two where both its sides belong to this cell."""
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
        """Condense a cell: join its rows (rows, local + rhs) with those of its faces and eliminate its weights.

        weights (fields,) : factors by which the continuity rows of this cell are multiplied
        """
        face_weight = self.face_weight * (np.ones(len(self.sizes)) if weights is None else weights)
        local, kind = functions * len(self.sizes), np.result_type(*blocks)
        rhs = blocks[0].shape[1] - local
        cell_rows = list(blocks)
        for operator in self.operators[number]:
            for (column, _), complement in zip(operator.traces, operator.complement, strict=True):
                block = np.zeros((len(complement), local + rhs), dtype=kind)
                block[:, column * functions : (column + 1) * functions] = face_weight[column] * complement
                cell_rows.append(block)
        cell_rows += [self.face_weight * flux_operator.complement for flux_operator in fluxes]
        inner = triangular_factor(np.asfortranarray(np.concatenate(cell_rows)))
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
        """Return A*A for the continuity rows A of a cell, in the columns [local | traces | one right-hand side]."""
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
        """Condense a cell as ``condensed`` does, but by normal equations; constraints : from ``normal_products``.

        This takes a third of the work, and is accurate enough for factors that correct residuals.
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
    """Return multi-index → factor (P, 1): the derivative of that order along the normals of a face."""
    if face.normals is None:
        return {tuple(order * (axis == face.axis) for axis in range(dim)): 1.0}
    factors: dict[MultiIndex, Array | float] = {}
    for index in product(range(order + 1), repeat=dim):
        if sum(index) == order:
            ways = factorial(order) / prod(map(factorial, index))
            factors[index] = ways * np.prod(face.normals ** np.array(index), axis=1)[:, None]
    return factors
