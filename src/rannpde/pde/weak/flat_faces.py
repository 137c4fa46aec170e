"""Matrices of whole boxes whose coefficients are constant along each face: few integrals over faces serve all cells.

Faces that lie alike in the coordinates of their cells have the same products of functions, slopes and traces, up to the
area of the face and the lengths of the cell. The contribution of a face to the matrices of a cell is a combination of
these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.volume import even_coefficients


@dataclass(frozen=True, eq=False)
class PairCoefficients:
    """Coefficients at the nodes of faces and patches, seen from their cells.

    flux (P, q, K, F, d) : n·A; penalty (P, q, K, K); drift (P, q, K) : b·n; prescribed (P, q, K, K) : projection on
    what is prescribed, the identity on faces; total (P, q, K, K) : penalty, inflow and Robin's coefficient of the cell
    """

    flux: Array
    penalty: Array
    drift: Array
    prescribed: Array
    total: Array

    @property
    def constant(self) -> bool:
        """Whether the coefficients are constant along each face."""
        every = (self.flux, self.penalty, self.drift, self.prescribed, self.total)
        return all(bool(even_coefficients(one).all()) for one in every)


@dataclass(frozen=True, eq=False)
class FaceCoefficients:
    """Factors of the products on faces (P,), times the areas of the faces.

    held (P, K, F, d) : n·A of the prescribed combinations, over the lengths of the cell; total (P, K, F) : penalty,
    inflow and Robin's coefficient; flux (P, K, F, d), penalty (P, K, F), inflow and outflow (P, K) : beside traces
    """

    held: Array
    total: Array
    flux: Array
    penalty: Array
    inflow: Array
    outflow: Array


@dataclass(frozen=True, eq=False)
class FaceProducts:
    """Integrals over faces of [-1, 1]^d, of kinds of faces (U,), each in the coordinates of its cell.

    same (P,) : the kind of each face; plain (1 + d, U, k, k) : of functions and functions, of functions and slopes;
    traced (1 + d, U, k, m) : of functions and traces, of slopes and traces; unit (m, m) : of traces
    """

    same: Array
    plain: Array
    traced: Array
    unit: Array

    @classmethod
    def of(cls, layer: HiddenLayer, scaled: Array, same: Array) -> FaceProducts:
        """scaled (U, q, d) : the nodes of one face of each kind."""
        count, size, trace = len(scaled), layer.size, layer.face_functions
        shares = layer.face_grid[1]
        plain = np.empty((1 + layer.dim, count, size, size))
        traced = np.empty((1 + layer.dim, count, size, trace.shape[1]))
        heavy = trace * shares[:, None]
        for kind, points in enumerate(scaled):
            table = layer.side_tables(points[None])[0]  # (q, 1 + d, k)
            weighted = table[:, 0].T * shares
            for j in range(1 + layer.dim):
                own = np.ascontiguousarray(table[:, j])
                np.matmul(weighted, own, out=plain[j, kind])
                np.matmul(own.T, heavy, out=traced[j, kind])
        return cls(same, plain, traced, trace.T @ heavy)

    def add_to_cells(self, matrix: Array, coefficients: FaceCoefficients) -> None:
        """Add the faces to the matrices (B, F, k, F, k) of cells, each of which has s consecutive faces."""
        count, fields = len(matrix), matrix.shape[1]
        rows = np.arange(len(self.same)).reshape(count, -1)
        for column in rows.T:
            kinds = self.same[column]
            for f in range(fields):
                for g in range(fields):
                    for j in np.flatnonzero(coefficients.held[column, f, g].any(axis=0)):
                        own = coefficients.held[column, f, g, j, None, None] * self.plain[1 + j, kinds]
                        matrix[:, f, :, g, :] -= own
                        matrix[:, g, :, f, :] -= own.transpose(0, 2, 1)
                    if coefficients.total[column, f, g].any():
                        matrix[:, f, :, g, :] += coefficients.total[column, f, g, None, None] * self.plain[0, kinds]

    def beside_traces(self, count: int, faces: int, coefficients: FaceCoefficients) -> tuple[Array, Array, Array]:
        """Cell–trace (B, F, k, t, F, m), trace–cell (B, t, F, m, F, k), trace–trace (B, t, F, m, F, m), by the first t
        faces of each of B cells."""
        rows = np.arange(len(self.same)).reshape(count, -1)[:, :faces]
        fields, (size, m) = coefficients.penalty.shape[1], self.traced.shape[2:]
        upper = np.zeros((count, fields, size, faces, fields, m))
        lower = np.zeros((count, faces, fields, m, fields, size))
        corner = np.zeros((count, faces, fields, m, fields, m))
        for t, column in enumerate(rows.T):
            kinds = self.same[column]
            for f in range(fields):
                for g in range(fields):
                    up = -coefficients.penalty[column, f, g, None, None] * self.traced[0, kinds]
                    for j in np.flatnonzero(coefficients.flux[column, g, f].any(axis=0)):
                        up += coefficients.flux[column, g, f, j, None, None] * self.traced[1 + j, kinds]
                    down, pushed = up, coefficients.penalty[column, f, g]
                    if f == g and (coefficients.inflow.any() or coefficients.outflow.any()):
                        down = up - coefficients.outflow[column, f, None, None] * self.traced[0, kinds]
                        up = up - coefficients.inflow[column, f, None, None] * self.traced[0, kinds]
                        pushed = pushed + coefficients.outflow[column, f]
                    upper[:, f, :, t, g, :] = up
                    lower[:, t, g, :, f, :] = down.transpose(0, 2, 1)
                    corner[:, t, f, :, g, :] = pushed[:, None, None] * self.unit
        return upper, lower, corner
