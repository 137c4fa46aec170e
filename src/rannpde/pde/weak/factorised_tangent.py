"""States of a non-linear weak form in cells and traces, and tangents that are condensed on traces and factorised."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse

from rannpde.arrays import Array
from rannpde.pde.weak.assembly import factorised_traces
from rannpde.pde.weak.local import CellBatch, LocalMatrices


@dataclass(frozen=True, eq=False)
class HybridState:
    """Weights of the functions of cells (C, F, k) and of traces (N, F, m)."""

    weights: Array
    traces: Array

    def moved(self, step: HybridState, length: float) -> HybridState:
        """This state plus a multiple of a step."""
        return HybridState(self.weights + length * step.weights, self.traces + length * step.traces)

    def dot(self, other: HybridState) -> float:
        return float(np.vdot(self.weights, other.weights) + np.vdot(self.traces, other.traces))


class FactorisedTangent:
    """A tangent condensed on traces: solves with as many right-hand sides as wanted."""

    def __init__(
        self,
        local: LocalMatrices,
        rest: HybridState,
        eliminated: list[tuple[CellBatch, Array, Array, Array]],
        entries: list[tuple[Array, Array]],
    ) -> None:
        self.local, self.rest, self.eliminated = local, rest, eliminated
        total = rest.traces.size
        self._factors = None
        if total:
            rows = np.concatenate([np.repeat(p, p.shape[1], axis=1).ravel() for p, _ in entries])
            columns = np.concatenate([np.tile(p, (1, p.shape[1])).ravel() for p, _ in entries])
            values = np.concatenate([schur.ravel() for _, schur in entries])
            if not np.isfinite(values).all():
                raise np.linalg.LinAlgError("the tangent is not finite")
            matrix = sparse.csc_matrix((values, (rows, columns)), (total, total))
            self._factors = factorised_traces(matrix, local.layer.dim)

    def solve(self, right: HybridState) -> HybridState:
        """The state x with tangent · x = right."""
        state = HybridState(np.zeros_like(self.rest.weights), np.zeros_like(self.rest.traces))
        traces = right.traces.reshape(-1).copy()
        inside = []
        for batch, inverse, _, lower in self.eliminated:
            own = np.matmul(inverse, right.weights[batch.cells].reshape(len(batch.cells), -1, 1))
            inside.append(own)
            if batch.faces:
                np.subtract.at(traces, self.local.dofs(batch), np.matmul(lower, own)[:, :, 0])
        flat = self._factors.solve(traces) if self._factors is not None else traces
        for (batch, inverse, upper, _), own in zip(self.eliminated, inside, strict=True):
            whole = own
            if batch.faces:
                around = flat[self.local.dofs(batch)][:, :, None]
                whole = own - np.matmul(inverse, np.matmul(upper, around))
            state.weights[batch.cells] = whole.reshape(len(batch.cells), self.local.fields, -1)
        state.traces[:] = flat.reshape(state.traces.shape)
        return state

    def adjoint(self, load: Array) -> HybridState:
        """The state z with tangentᵀ · z = (load, 0), for a load (C, F, k) on the functions of cells."""
        state = HybridState(np.zeros_like(self.rest.weights), np.zeros_like(self.rest.traces))
        traces = np.zeros(state.traces.size)
        inside = []
        for batch, inverse, upper, _ in self.eliminated:
            own = np.matmul(np.swapaxes(inverse, 1, 2), load[batch.cells].reshape(len(batch.cells), -1, 1))
            inside.append(own)
            if batch.faces:
                pulled = np.matmul(np.swapaxes(upper, 1, 2), own)[:, :, 0]
                np.subtract.at(traces, self.local.dofs(batch), pulled)
        flat = self._factors.solve(traces, "T") if self._factors is not None else traces
        for (batch, inverse, _, lower), own in zip(self.eliminated, inside, strict=True):
            whole = own
            if batch.faces:
                around = np.matmul(np.swapaxes(lower, 1, 2), flat[self.local.dofs(batch)][:, :, None])
                whole = own - np.matmul(np.swapaxes(inverse, 1, 2), around)
            state.weights[batch.cells] = whole.reshape(len(batch.cells), self.local.fields, -1)
        state.traces[:] = flat.reshape(state.traces.shape)
        return state
