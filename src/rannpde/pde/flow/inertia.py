"""Inertia on one mesh: its forces for several states at once, such as the stages of a step, and its linearisation.

All whole cells have one table of functions, so that velocities and gradients of all of them, and of all states, are one
product of matrices. Cut cells have tables of their own. C is evaluated once at the points of all cells and faces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sparse

from rannpde.arrays import Array
from rannpde.pde.flow.form import Inertia
from rannpde.pde.flow.local import FlowCells
from rannpde.pde.flow.matrices import FlowMatrices, FlowState
from rannpde.pde.weak.local import CellBatch, face_diagonal

VELOCITY_DERIVATIVES = (2, 1)
"""Numbers of the derivatives of a stream function that are its velocity, ∂_y and (with its sign changed) ∂_x."""
GRADIENT_DERIVATIVES = (4, 5, 3)
"""Numbers of those that are u_x = -v_y, u_y and (with its sign changed) v_x."""


class CellTables:
    """Cells with one table of functions: it evaluates velocities and gradients, and integrates forces against
    functions."""

    def __init__(self, local: FlowCells, cells: Array) -> None:
        self.cells = cells
        points, weights, table = local.stream_tables(cells)
        hx, hy = local.mesh.halfwidths[cells].T
        self.size = len(table)
        self.points = points.swapaxes(0, 1).reshape(-1, 2)  # (Q B, 2), as all values below
        derived = table[:, [*VELOCITY_DERIVATIVES, *GRADIENT_DERIVATIVES]].swapaxes(0, 1)
        self.derived = np.ascontiguousarray(derived).reshape(-1, table.shape[2])
        self.scales = np.stack([1 / hy, -1 / hx, 1 / (hx * hy), 1 / hy**2, -1 / hx**2])[:, None, None]
        self.testing = np.ascontiguousarray(table[:, VELOCITY_DERIVATIVES].swapaxes(0, 1).reshape(-1, table.shape[2]).T)
        self.weights = np.stack([weights.T / hy, -weights.T / hx])[:, :, None]  # (2, Q, 1, B)
        self.volumes = weights.T  # (Q, B)
        self.plain = np.ascontiguousarray(table[:, :3])  # (Q, 3, k): the functions and their gradients
        self.plain_scales = np.stack([np.ones_like(hx), 1 / hx, 1 / hy])

    def fields(self, stream: Array, velocity: Array, slopes: Array) -> None:
        """Write velocities (2, s, Q B) and gradients (2, 2, s, Q B) of stream functions (s, C, k)."""
        count, own = len(stream), stream[:, self.cells].reshape(-1, stream.shape[2])
        derivatives = (self.derived @ own.T).reshape(5, self.size, count, len(self.cells))
        derivatives *= self.scales
        flat = derivatives.swapaxes(1, 2).reshape(5, count, -1)
        velocity[:], slopes[0], slopes[1, 0] = flat[:2], flat[2:4], flat[4]
        np.negative(flat[2], out=slopes[1, 1])

    def velocity(self, stream: Array) -> Array:
        """Velocities (2, s, Q B) of stream functions (s, C, k)."""
        count, own = len(stream), stream[:, self.cells].reshape(-1, stream.shape[2])
        derivatives = (self.derived[: 2 * self.size] @ own.T).reshape(2, self.size, count, len(self.cells))
        return np.asarray((derivatives * self.scales[:2]).swapaxes(1, 2).reshape(2, count, -1))

    def scalars(self, weights: Array) -> Array:
        """Values and gradients (S, 3, Q B) of scalars (C, S, k)."""
        own = weights[self.cells]
        values = np.einsum("qdk,bsk->sdqb", self.plain, own, optimize=True) * self.plain_scales[:, None]
        return np.asarray(values.reshape(own.shape[1], 3, -1))

    def tested(self, values: Array) -> Array:
        """∫ values·v (s, B, k) for values (2, s, Q B)."""
        count = values.shape[1]
        heavy = values.reshape(2, count, self.size, -1).swapaxes(1, 2) * self.weights
        integrals = self.testing @ heavy.reshape(2 * self.size, -1)
        return integrals.T.reshape(count, len(self.cells), -1)

    def carried(self, by: Array, advection: Array, columns: Array) -> Array:
        """∫ (b·∇u + C' u)·v (B, k, k) of some of the cells, columns (B,), for C' (2, 2, Q, B) and b (2, Q, B)."""
        q, k = self.size, self.derived.shape[1]
        scales = self.scales[:, 0, 0, columns]
        bx, by_axis = advection
        weights = self.weights[:, :, 0, columns]
        table = np.ascontiguousarray(self.derived.reshape(5, q, k).swapaxes(0, 1))  # (Q, 5, k)
        total = np.zeros((len(columns), k, k))
        zero = np.zeros(bx.shape)
        for component, slopes in ((0, (bx, by_axis, zero)), (1, (-by_axis, zero, bx))):  # v_y = -u_x
            terms = np.stack([by[component, 0], by[component, 1], *slopes], axis=2)  # (Q, B, 5)
            terms *= scales.T
            terms *= weights[component][:, :, None]
            applied = np.matmul(terms, table).reshape(q, -1)
            total += (table[:, component].T @ applied).reshape(k, len(columns), k).swapaxes(0, 1)
        return total


@dataclass(frozen=True, eq=False)
class LinearisedInertia:
    """The inertia of a state: velocities (2, M) at all points, C there, the part of C that remains on the right-hand
    sides of cells after linearisation, (C, k), and scalars with their gradients, (S, 3, M)."""

    velocity: Array
    inertia: Inertia
    load: Array
    scalars: Array


@dataclass(frozen=True, eq=False)
class FlowFields:
    """The fields of s states: velocities (2, s, M) and gradients (2, 2, s, M), left out on faces, at all points;
    tangential and normal velocities (P, q, s) of pairs of cells and faces, and the weights (P, k, s) of their cells."""

    velocity: Array
    slopes: Array
    slip: Array
    through: Array
    here: Array


class InertiaOperator:
    """The terms of C, less its value at rest, in the equations of cells and faces; share : their factor."""

    def __init__(self, local: FlowCells, share: float) -> None:
        self.local, self.share = local, share
        mesh = local.mesh
        whole = np.setdiff1d(np.arange(mesh.count), list(mesh.parts))
        groups = [one for one in (whole, *(np.array([cell]) for cell in mesh.parts)) if len(one)]
        self.tables = [CellTables(local, cells) for cells in groups]
        self.home = np.zeros(mesh.count, dtype=int)
        self.column = np.zeros(mesh.count, dtype=int)
        for number, cells in enumerate(groups):
            self.home[cells], self.column[cells] = number, np.arange(len(cells))
        self.points = np.concatenate([*(one.points for one in self.tables), local.points.reshape(-1, 2)]).T.copy()
        ends = np.cumsum([0, *(len(one.points) for one in self.tables)])
        self.slices = [slice(first, last) for first, last in pairwise(ends.tolist())]
        self.beside = slice(int(ends[-1]), None)
        pairs = len(local.cell)
        self.gather = sparse.csr_matrix((np.ones(pairs), (local.cell, np.arange(pairs))), (mesh.count, pairs))
        self._known: tuple[FlowState, LinearisedInertia] | None = None

    def fields(self, stream: Array) -> FlowFields:
        """Velocities and gradients of stream functions (s, C, k) at all points."""
        local, count, points = self.local, len(stream), self.points.shape[1]
        velocity, slopes = np.empty((2, count, points)), np.zeros((2, 2, count, points))
        for one, part in zip(self.tables, self.slices, strict=True):
            one.fields(stream, velocity[..., part], slopes[..., part])
        here = np.moveaxis(stream[:, local.cell], 0, 2)
        slip, through = np.matmul(local.along, here), np.matmul(local.across, here)
        beside = slip[..., None] * local.tangents[:, :, None] + through[..., None] * local.normals[:, :, None]
        velocity[..., self.beside] = beside.transpose(3, 2, 0, 1).reshape(2, count, -1)
        return FlowFields(velocity, slopes, slip, through, here)

    def scalars(self, weights: Array) -> Array:
        """Scalars (C, S, k) at all points, with their gradients, which are left out on faces: (S, 3, M)."""
        local, count = self.local, len(self.local.form.scalars)
        values = np.zeros((count, 3, self.points.shape[1]))
        if count:
            for one, part in zip(self.tables, self.slices, strict=True):
                values[..., part] = one.scalars(weights)
            beside = np.matmul(local.values_on_pairs(np.arange(len(local.cell))), weights[local.cell].swapaxes(1, 2))
            values[:, 0, self.beside] = beside.reshape(-1, count).T
        return values

    # ----------------------------------------------------------------------------------------------------- forces

    def forces(
        self, stream: Array, tangential: Array, prescribed: Array, move: Callable[[int], None]
    ) -> tuple[Array, Array]:
        """Forces of cells (s, C, k) and of tangential velocities (s, N, m), for states (s, C, k) and (s, N, m).

        prescribed (s, B, q, 2) : velocities of the boundary; move : sets the data to those of a state
        """
        local, count = self.local, len(stream)
        own, around = np.zeros_like(stream), np.zeros_like(tangential)
        if local.form.inert:
            return own, around
        fields = self.fields(stream)
        velocity, slopes, slip = fields.velocity, fields.slopes, fields.slip
        carried, drift = np.empty_like(velocity), np.empty((count, *slip.shape[:2]))
        for k in range(count):
            move(k)
            carried[:, k], advection = local.form.carried(self.points, velocity[:, k], slopes[:, :, k])
            across = advection[:, self.beside].reshape(2, *slip.shape[:2])
            drift[k] = across[0] * local.normals[..., 0] + across[1] * local.normals[..., 1]
        for one, part in zip(self.tables, self.slices, strict=True):
            own[:, one.cells] += one.tested(carried[..., part])
        self._upwinded(np.moveaxis(slip, 2, 0), tangential, prescribed, drift, own, around)
        return own, around

    def _upwinded(
        self, slip: Array, tangential: Array, prescribed: Array, drift: Array, own: Array, around: Array
    ) -> None:
        """Add the upwind terms of differences of tangential velocities across faces; slip, drift (s, P, q) : u_t and
        b·n."""
        local, count, faces = self.local, len(slip), tangential.shape[1]
        inner = local.interior
        outside = np.empty(slip.shape)
        outside[:, :faces] = outside[:, faces:inner] = tangential @ local.tangential_functions.T
        outside[:, inner:] = np.einsum("pqf,spqf->spq", local.tangents[inner:], prescribed)
        gap = local.weights * (slip - outside)
        gap[:, inner:] *= local.boundary.tangential[:, None]
        entering = np.matmul((np.maximum(-drift, 0.0) * gap).swapaxes(0, 1), local.along)  # (P, s, k)
        gathered = self.gather @ entering.reshape(len(entering), -1)
        own += gathered.reshape(-1, count, own.shape[2]).swapaxes(0, 1)
        leaving = (np.maximum(drift, 0.0) * -gap)[:, :inner] @ local.tangential_functions
        around += leaving[:, :faces] + leaving[:, faces:]

    def multiplied(self, cells: Array, matrix: Array) -> Array:
        """∫ (M u)·v (B, k, k) of cells of a batch, for M (B, Q, 2, 2) at the points of ``stream_tables``."""
        by = matrix.transpose(2, 3, 1, 0)
        return self.tables[int(self.home[cells[0]])].carried(by, np.zeros(by.shape[1:]), self.column[cells])

    # ---------------------------------------------------------------------------------------------- linearisation

    def linearised(self, state: FlowState) -> LinearisedInertia:
        """C at a state, with its derivatives; that of the last state is stored."""
        if self._known is None or self._known[0] is not state:
            fields = self.fields(state.stream[None])
            velocity, slopes = fields.velocity[:, 0], fields.slopes[:, :, 0]
            form, points = self.local.form, self.points.T
            scalars = self.scalars(state.scalars)
            inertia = form.inertia(points, velocity.T, slopes.transpose(2, 0, 1), self.share, scalars[:, 0])
            left = inertia.value.T - form.at_rest(self.points)
            left -= np.einsum("mj,fjm->fm", inertia.advection, slopes)
            left -= np.einsum("mfg,gm->fm", inertia.by_velocity, velocity)
            left -= np.einsum("mfs,sm->fm", inertia.by_scalars, scalars[:, 0])
            load = np.empty_like(state.stream)
            for one, part in zip(self.tables, self.slices, strict=True):
                load[one.cells] = one.tested(left[:, None, part])[0]
            self._known = state, LinearisedInertia(velocity, inertia, load, scalars)
        return self._known[1]

    def added(self, batch: CellBatch, state: FlowState, still: FlowMatrices) -> FlowMatrices:
        """The matrices of a batch with those of inertia at a state."""
        local, every = self.local, self.linearised(state)
        square, upper, lower = still.square.copy(), still.upper.copy(), still.lower.copy()
        corner, load, data = still.corner.copy(), still.load.copy(), still.data.copy()
        home = int(self.home[batch.cells[0]])
        table, columns = self.tables[home], self.column[batch.cells]
        inside, inertia, q = self.slices[home], every.inertia, table.size
        by = inertia.by_velocity[inside].reshape(q, -1, 2, 2)[:, columns]
        advection = inertia.advection[inside].reshape(q, -1, 2)[:, columns]
        square += table.carried(by.transpose(2, 3, 0, 1), advection.transpose(2, 0, 1), columns)
        load -= every.load[batch.cells]
        # faces and patches: the upwind side, and how it changes with the velocity
        b, s, t, k = len(batch.cells), batch.pairs.shape[1], batch.faces, local.size
        flat = batch.pairs.ravel()
        nodes = local.weights.shape[1]
        shape = (len(local.cell), nodes)
        velocity = every.velocity[:, self.beside].reshape(2, *shape)[:, flat]
        normals, tangents, weights = local.normals[flat], local.tangents[flat], local.weights[flat]
        drift = np.einsum("pqj,pqj->pq", inertia.advection[self.beside].reshape(*shape, 2)[flat], normals)
        turn = np.einsum("pqjl,pqj->pql", inertia.change[self.beside].reshape(*shape, 2, 2)[flat], normals)
        outer, patch = flat >= local.interior, flat[flat >= local.interior] - local.interior
        inner = np.flatnonzero(~outer)
        outside = np.empty(weights.shape)  # û, or what is prescribed, at the state
        outside[inner] = state.tangential[local.face[flat[inner]]] @ local.tangential_functions.T
        outside[outer] = np.einsum("pqf,pqf->pq", tangents[outer], local.boundary.values[patch])
        gap = np.einsum("pqf,fpq->pq", tangents, velocity) - outside
        share = weights.copy()
        share[outer] *= local.boundary.tangential[patch][:, None]
        along, inflow, outflow = local.along[flat], np.maximum(-drift, 0.0), np.maximum(drift, 0.0)
        turns = np.einsum("pql,pqfl->pqf", turn, np.stack([tangents, normals], axis=2))
        turned = turns[:, :, :1] * along + turns[:, :, 1:] * local.across[flat]
        change = np.einsum("pql,lpq->pq", turn, velocity)
        back, tall = (drift < 0) * gap, (b, s * nodes, k)
        lead = (share[:, :, None] * along).reshape(tall).swapaxes(1, 2)
        square += np.matmul(lead, (inflow[:, :, None] * along - back[:, :, None] * turned).reshape(tall))
        known = np.where(outer[:, None], inflow * outside, 0.0)  # what is prescribed enters as it is
        load += np.matmul(lead, (known - back * change).reshape(b, -1, 1))[:, :, 0]
        if t:
            trace = (weights[inner][:, :, None] * local.tangential_functions).swapaxes(1, 2)
            m = trace.shape[1]
            forth = (drift[inner] > 0) * gap[inner]
            leaving = outflow[inner][:, :, None] * along[inner] + forth[:, :, None] * turned[inner]
            lower[:, : t * m] -= np.matmul(trace, leaving).reshape(b, t * m, k)
            entering = np.matmul(trace, inflow[inner][:, :, None] * along[inner])
            upper[:, :, : t * m] -= entering.reshape(b, t * m, k).swapaxes(1, 2)
            blocks = np.matmul(trace * outflow[inner][:, None], local.tangential_functions)
            corner[:, : t * m, : t * m] += face_diagonal(blocks.reshape(b, t, m, m))
            data[:, : t * m] -= np.matmul(trace, (forth * change[inner])[:, :, None]).reshape(b, t * m)
        return FlowMatrices(square, upper, lower, corner, load, data)
