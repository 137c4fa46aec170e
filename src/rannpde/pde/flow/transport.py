"""Scalars on the cells of a flow: their diffusion, their advection, and their forces on the flow, as one system.

For every scalar T with traces T̂ on the faces, the cells and faces of the flow get

    Σ_K ∫ κ ∇T·∇w + R w - ∫_∂K κ ∂_n T (w - ŵ) - ∫_∂K κ ∂_n w (T - T̂) + ∫_∂K η (T - T̂)(w - ŵ)
      + ∫_{∂K, b·n<0} |b·n| (T - T̂) w + ∫_{∂K, b·n>0} |b·n| (T̂ - T) ŵ = boundary data

for all w, ŵ. All is linearised in velocity and scalars together, so that Newton's method keeps its order.
"""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.flow.inertia import CellTables, InertiaOperator
from rannpde.pde.flow.matrices import FlowMatrices, FlowState
from rannpde.pde.flow.scalars import Carried, Transport, transport
from rannpde.pde.weak.local import CellBatch, LocalMatrices


class TransportOperator:
    """The terms of scalars in the equations of cells and faces."""

    def __init__(self, inertia: InertiaOperator) -> None:
        self.inertia, self.local = inertia, inertia.local
        assert self.local.diffusion is not None
        self.diffusion: LocalMatrices = self.local.diffusion
        self.count = len(self.local.form.scalars)
        self._known: tuple[FlowState, Transport] | None = None

    def linearised(self, state: FlowState) -> Transport:
        """R at a state at all points, with its derivatives; that of the last state is stored."""
        if self._known is None or self._known[0] is not state:
            every, form = self.inertia.linearised(state), self.local.form
            here = Carried(self.inertia.points, every.velocity, every.scalars[:, 0], every.scalars[:, 1:])
            self._known = state, transport(form.problem, form.scalars, form.velocity, here, self.inertia.share)
        return self._known[1]

    def coupled(self, batch: CellBatch, state: FlowState, flow: FlowMatrices) -> FlowMatrices:
        """The matrices of flow and scalars of a batch, at a state; flow : those of the flow alone."""
        still = self.diffusion.condensed(batch)
        b, k, around = len(batch.cells), self.local.size, flow.data.shape[1]
        inside = (1 + self.count) * k
        total = around + still.upper.shape[2]
        square, corner = np.zeros((b, inside, inside)), np.zeros((b, total, total))
        upper, lower = np.zeros((b, inside, total)), np.zeros((b, total, inside))
        square[:, :k, :k], square[:, k:, k:] = flow.square, still.square[still.same]
        upper[:, :k, :around], upper[:, k:, around:] = flow.upper, still.upper[still.same]
        lower[:, :around, :k], lower[:, around:, k:] = flow.lower, still.lower[still.same]
        corner[:, :around, :around], corner[:, around:, around:] = flow.corner, still.corner[still.same]
        load = np.concatenate([flow.load, still.load], axis=1)
        data = np.concatenate([flow.data, np.zeros((b, total - around))], axis=1)
        matrices = FlowMatrices(square, upper, lower, corner, load, data)
        self._add_inside(batch, state, matrices)
        for scalar in range(self.count):
            self._add_upwinded(batch, state, matrices, scalar, around)
        return matrices

    def _add_inside(self, batch: CellBatch, state: FlowState, matrices: FlowMatrices) -> None:
        """Add ∫ R w, and the forces of scalars in the equations of momentum."""
        every, here, k = self.inertia.linearised(state), self.linearised(state), self.local.size
        home = int(self.inertia.home[batch.cells[0]])
        table, columns = self.inertia.tables[home], self.inertia.column[batch.cells]
        inside = self.inertia.slices[home]

        def own(array: Array) -> Array:
            """Values (…, M) at the points of the cells of the batch, (…, Q, B)."""
            return np.asarray(array[..., inside].reshape(*array.shape[:-1], table.size, -1)[..., columns])

        velocity, scalars = own(every.velocity), own(every.scalars)
        value, by_velocity, by_scalars = own(here.value), own(here.by_velocity), own(here.by_scalars)
        advection, acting = own(here.advection), own(every.inertia.by_scalars.transpose(1, 2, 0))
        volumes, values = table.volumes[:, columns], table.plain[:, 0]
        curls = table.derived[: 2 * table.size].reshape(2, table.size, k)
        curl_scales, curl_weights = table.scales[:2, 0, 0][:, columns], table.weights[:, :, 0][..., columns]
        for s in range(self.count):
            rows = slice((1 + s) * k, (2 + s) * k)
            moved = by_velocity[s] * curl_scales[:, None] * volumes
            matrices.square[:, rows, :k] += _products(values, np.moveaxis(moved, 0, 2), curls.swapaxes(0, 1))
            left = value[s] - (by_velocity[s] * velocity).sum(axis=0) - (advection[s] * scalars[s, 1:]).sum(axis=0)
            for other in range(self.count):
                left = left - by_scalars[s, other] * scalars[other, 0]
                columns_of = slice((1 + other) * k, (2 + other) * k)
                slopes = advection[s] if other == s else np.zeros_like(advection[s])
                moved = np.concatenate([by_scalars[s, other][None], slopes]) * _scales(table, columns) * volumes
                matrices.square[:, rows, columns_of] += _products(values, np.moveaxis(moved, 0, 2), table.plain)
            matrices.load[:, rows] -= (values.T @ (volumes * left)).T
            for component in range(2):
                pushed = (acting[component, s] * curl_weights[component])[:, :, None]
                matrices.square[:, :k, rows] += _products(curls[component], pushed, table.plain[:, :1])

    def _add_upwinded(self, batch: CellBatch, state: FlowState, matrices: FlowMatrices, s: int, around: int) -> None:
        """Add the upwind terms of differences of a scalar across faces."""
        local, diffusion, here = self.local, self.diffusion, self.linearised(state)
        b, t, k = len(batch.cells), batch.faces, local.size
        flat = batch.pairs.ravel()
        nodes = local.weights.shape[1]
        beside = self.inertia.beside

        def own(array: Array) -> Array:
            """Values (…, M) on the pairs of the batch, (…, P, q)."""
            return np.asarray(array[..., beside].reshape(*array.shape[:-1], len(local.cell), nodes)[..., flat, :])

        normals, tangents, weights = local.normals[flat], local.tangents[flat], local.weights[flat]
        drift = np.einsum("jpq,pqj->pq", own(here.advection[s]), normals)
        turn = np.einsum("jlpq,pqj->pql", own(here.change[s]), normals)
        outer, patch = flat >= local.interior, flat[flat >= local.interior] - local.interior
        inner = np.flatnonzero(~outer)
        trace = local.layer.face_functions
        outside = np.empty(weights.shape)  # T̂, or what is prescribed, at the state
        outside[inner] = state.traces[local.face[flat[inner]], s] @ trace.T
        outside[outer] = diffusion.values[patch][..., s]
        gap = own(self.inertia.linearised(state).scalars[s, 0]) - outside
        share = weights.copy()
        share[outer] *= diffusion.projection[patch][..., s, s]
        values, inflow, outflow = local.values_on_pairs(flat), np.maximum(-drift, 0.0), np.maximum(drift, 0.0)
        turns = np.einsum("pql,pqfl->pqf", turn, np.stack([tangents, normals], axis=2))
        turned = turns[:, :, :1] * local.along[flat] + turns[:, :, 1:] * local.across[flat]
        change = np.einsum("pql,lpq->pq", turn, own(self.inertia.linearised(state).velocity))
        back, tall, rows = (drift < 0) * gap, (b, -1, k), slice((1 + s) * k, (2 + s) * k)
        lead = (share[:, :, None] * values).reshape(tall).swapaxes(1, 2)
        matrices.square[:, rows, rows] += np.matmul(lead, (inflow[:, :, None] * values).reshape(tall))
        matrices.square[:, rows, :k] -= np.matmul(lead, (back[:, :, None] * turned).reshape(tall))
        known = np.where(outer[:, None], inflow * outside, 0.0)  # what is prescribed enters as it is
        matrices.load[:, rows] += np.matmul(lead, (known - back * change).reshape(b, -1, 1))[:, :, 0]
        if not t:
            return
        m, forth = trace.shape[1], (drift[inner] > 0) * gap[inner]
        heavy = (weights[inner][:, :, None] * trace).swapaxes(1, 2)
        positions = (around + (np.arange(t)[:, None] * self.count + s) * m + np.arange(m)).ravel()
        every = (np.arange(b)[:, None], positions)
        leaving = np.matmul(heavy, outflow[inner][:, :, None] * values[inner]).reshape(b, t * m, k)
        matrices.lower[:, positions, rows] -= leaving
        matrices.lower[:, positions, :k] -= np.matmul(heavy, forth[:, :, None] * turned[inner]).reshape(b, t * m, k)
        entering = np.matmul(heavy, inflow[inner][:, :, None] * values[inner])
        matrices.upper[:, rows, positions] -= entering.reshape(b, t * m, k).swapaxes(1, 2)
        blocks = np.matmul(heavy * outflow[inner][:, None], trace).reshape(b, t, m, m)
        for face in range(t):
            mine = positions[face * m : (face + 1) * m]
            matrices.corner[:, mine[:, None], mine] += blocks[:, face]
        matrices.data[every] -= np.matmul(heavy, (forth * change[inner])[:, :, None]).reshape(b, t * m)


def _scales(table: CellTables, columns: Array) -> Array:
    """Factors (3, 1, B) of the functions and their gradients in the coordinates of cells."""
    return np.asarray(table.plain_scales[:, None, columns])


def _products(left: Array, coefficients: Array, right: Array) -> Array:
    """Σ left coefficients right over the points of cells: (B, k, k) of (Q, k), (Q, B, j) and (Q, j, k)."""
    q, b, _ = coefficients.shape
    weighted = np.matmul(coefficients, right).reshape(q, -1)
    return np.asarray((left.T @ weighted).reshape(-1, b, right.shape[2]).swapaxes(0, 1))
