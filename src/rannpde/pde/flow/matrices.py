"""States of a flow on cells, the matrices of cells, and the factors of those of faces."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import SuperLU

from rannpde.arrays import Array
from rannpde.pde.weak.assembly import factorised_traces


@dataclass(frozen=True, eq=False)
class FlowState:
    """Weights of stream functions (C, k), tangential velocities of faces (N, m), tractions of faces and patches
    (N + B, n), and of S scalars in cells (C, S, k) and on faces (N, S, r)."""

    stream: Array
    tangential: Array
    normal: Array
    scalars: Array = field(default_factory=lambda: np.zeros((0, 0, 0)))
    traces: Array = field(default_factory=lambda: np.zeros((0, 0, 0)))

    @property
    def alone(self) -> FlowState:
        """This state with a first axis of length one, along which several states are stacked."""
        return FlowState(*(getattr(self, one.name)[None] for one in fields(FlowState)))


@dataclass(frozen=True, eq=False)
class FlowMatrices:
    """Matrices of a batch of cells, all of them linearised at a state: cell–cell (B, k, k), cell–face (B, k, T), face–
    cell (B, T, k), face–face (B, T, T), right-hand sides (B, k), (B, T)."""

    square: Array
    upper: Array
    lower: Array
    corner: Array
    load: Array
    data: Array


@dataclass(frozen=True, eq=False)
class EquilibratedFactors:
    """The factors of D A D with a diagonal D (n,), by which the diagonal of A becomes one in size.

    Unknowns are velocities, tractions and scalars, in any units: which pivots are large must not depend on these.
    """

    factors: SuperLU
    scale: Array

    @classmethod
    def of(cls, matrix: sparse.csc_matrix) -> EquilibratedFactors:
        """The factors of a matrix of unknowns of faces."""
        size = np.abs(matrix.diagonal())
        size = np.where(size > 0, size, np.abs(matrix).max(axis=1).toarray().ravel())
        scale = 1 / np.sqrt(size)
        return cls(factorised_traces((sparse.diags(scale) @ matrix @ sparse.diags(scale)).tocsc(), 2), scale)

    def solve(self, right: Array) -> Array:
        """The solution (n,) of the system."""
        return np.asarray(self.scale * self.factors.solve(self.scale * right))
