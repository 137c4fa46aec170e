"""Matrices of cells, static condensation on tangential velocities and normal tractions of faces, and the solution.

For all cells K, with the tangential traction τ(u) = ν t·(∂_n u + κ ∇(u·n)), find curls u, û and λ with

    Σ_K ∫ ν (∇u + κ ∇uᵀ) : ∇v + C(u)·v
      - ∫_∂K τ(u) (v_t - v̂) - ∫_∂K τ(v) (u_t - û) + ∫_∂K η (u_t - û)(v_t - v̂) + ∫_∂K λ v_n
      + ∫_{∂K, b·n<0} |b·n| (u_t - û) v_t + ∫_{∂K, b·n>0} |b·n| (û - u_t) v̂ = boundary tractions ,
    Σ_K ∫_∂K μ u_n = boundary velocities

for all curls v, all v̂ and μ: tangential velocities by interior penalty, normal ones by multipliers. Cells meet only in
(û, λ), and are eliminated: each is well posed alone, since a rigid motion has a tangential velocity somewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import SuperLU

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.flow.local import FlowCells
from rannpde.pde.flow.multipliers import stable_multipliers
from rannpde.pde.weak.assembly import factorised_traces
from rannpde.pde.weak.local import CellBatch


@dataclass(frozen=True, eq=False)
class FlowState:
    """Weights of stream functions (C, k), tangential velocities of faces (N, m), tractions of faces and patches
    (N + B, n)."""

    stream: Array
    tangential: Array
    normal: Array


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


class FlowSystem:
    """Newton's linear systems on one mesh; share : of inertia."""

    def __init__(self, local: FlowCells, share: float = 1.0, active: Array | None = None) -> None:
        self.local, self.share, self.form, self.mesh = local, share, local.form, local.mesh
        self.m, self.n = local.tangential_functions.shape[1], local.normal_functions.shape[1]
        self.faces, self.patches = len(self.mesh.axis), len(self.mesh.patches)
        self.active = self._active() if active is None else active

    def at(self, share: float) -> FlowSystem:
        """The same with another share of inertia."""
        return FlowSystem(self.local, share, self.active)

    @property
    def enclosed(self) -> bool:
        """Whether the normal velocity is prescribed on the whole boundary, so that a constant pressure is free."""
        return bool(self.local.boundary.normal.all())

    @property
    def total(self) -> int:
        return self.faces * self.m + (self.faces + self.patches) * self.n

    @property
    def unknowns(self) -> int:
        return int(self.active.sum()) + int(self.local.functions.used.sum())

    def _active(self) -> Array:
        """Which unknowns of faces there are: no multiplier where the traction is known."""
        active = np.ones(self.total, dtype=bool)
        normal = active[self.faces * self.m :].reshape(-1, self.n)
        if self.mesh.parts:
            normal &= stable_multipliers(self.local, {cell: self._still(cell) for cell in self.mesh.parts})
        normal[self.faces :][~self.local.boundary.normal] = False
        if self.enclosed:
            normal[0, 0] = False  # the constant of the pressure, which is chosen afterwards
        return active

    def _still(self, cell: int) -> Array:
        """The matrix (k, k) of one cell without inertia."""
        (batch,) = (one for one in self.local.batches() if cell in one.cells)
        square = self.matrices(batch, self.rest()).square[0]
        return 0.5 * (square + square.T)

    def rest(self) -> FlowState:
        """No flow."""
        return FlowState(
            np.zeros((self.mesh.count, self.local.size)), np.zeros((self.faces, self.m)),
            np.zeros((self.faces + self.patches, self.n)),
        )  # fmt: skip

    def places(self, batch: CellBatch) -> Array:
        """Numbers (B, T) of the unknowns around each cell: û of its faces, then λ of faces and patches."""
        items = self.local.face[batch.pairs]
        count = len(batch.cells)
        one = items[:, : batch.faces, None] * self.m + np.arange(self.m)
        other = self.faces * self.m + items[:, :, None] * self.n + np.arange(self.n)
        return np.concatenate([one.reshape(count, -1), other.reshape(count, -1)], axis=1)

    # --------------------------------------------------------------------------------------------------- one step

    def solve(self, state: FlowState) -> FlowState:
        """The next state of Newton's method; of a linear problem its solution."""
        right = np.zeros(self.total)
        kept, pieces = [], []
        for batch in self.local.batches():
            found = self.matrices(batch, state)
            both = np.linalg.solve(found.square, np.concatenate([found.upper, found.load[:, :, None]], axis=2))
            response, own = both[:, :, :-1], both[:, :, -1]
            places = self.places(batch)
            schur = found.corner - np.matmul(found.lower, response)
            np.add.at(right, places, found.data - np.matmul(found.lower, own[:, :, None])[:, :, 0])
            pieces.append((places, schur))
            kept.append((batch, places, response, own))
            checkpoint()
            self.local.pause()
        traces = np.zeros(self.total)
        traces[self.active] = self.factorised(pieces).solve(right[self.active])
        stream = np.zeros((self.mesh.count, self.local.size))
        for batch, places, response, own in kept:
            stream[batch.cells] = own - np.matmul(response, traces[places][:, :, None])[:, :, 0]
        split = self.faces * self.m
        return FlowState(stream, traces[:split].reshape(self.faces, self.m), traces[split:].reshape(-1, self.n))

    def factorised(self, pieces: list[tuple[Array, Array]]) -> SuperLU:
        """The factors of the matrix of the unknowns of faces that are used; pieces : numbers (B, T) of the unknowns
        around cells, and what each cell adds (B, T, T)."""
        row = np.concatenate([np.repeat(places, places.shape[1], axis=1).ravel() for places, _ in pieces])
        column = np.concatenate([np.tile(places, (1, places.shape[1])).ravel() for places, _ in pieces])
        entry = np.concatenate([schur.ravel() for _, schur in pieces])
        numbers = np.cumsum(self.active) - 1
        used = self.active[row] & self.active[column]
        size = int(self.active.sum())
        matrix = sparse.csc_matrix((entry[used], (numbers[row[used]], numbers[column[used]])), (size, size))
        return factorised_traces(matrix, 2)

    def matrices(self, batch: CellBatch, state: FlowState) -> FlowMatrices:
        """Of the cells of a batch, linearised at a state."""
        square, load = self._volume(batch, state)
        return self._around(batch, state, square, load)

    def _volume(self, batch: CellBatch, state: FlowState) -> tuple[Array, Array]:
        local, form = self.local, self.form
        points, weights, table = local.stream_tables(batch.cells)
        hx, hy = local.mesh.halfwidths[batch.cells].T
        square = form.viscosity * self._viscous(batch.cells, weights, table)
        here = state.stream[batch.cells]
        velocity, slope = local.flow_inside(table, batch.cells, here)
        found = form.inertia(points.reshape(-1, 2), velocity.reshape(-1, 2), slope.reshape(-1, 2, 2), self.share)
        shape = weights.shape
        source = found.value.reshape(*shape, 2)
        if not form.inert:
            by_velocity, advection = found.by_velocity.reshape(*shape, 2, 2), found.advection.reshape(*shape, 2)
            linear = np.einsum("bqj,bqfj->bqf", advection, slope) + np.einsum("bqfg,bqg->bqf", by_velocity, velocity)
            source = source - linear
            square += self._carried(weights, table, by_velocity, advection, hx, hy)
        return self.regular(batch, square), self.tested(batch.cells, weights, table, source)

    def tested(self, cells: Array, weights: Array, table: Array, values: Array) -> Array:
        """-∫ values·v (B, k) of cells, for values (B, Q, 2) at the points of ``stream_tables``."""
        hx, hy = self.mesh.halfwidths[cells].T[:, :, None]
        heavy = weights[:, :, None] * values
        return np.asarray(heavy[:, :, 1] / hx @ table[:, 1] - heavy[:, :, 0] / hy @ table[:, 2])

    def regular(self, batch: CellBatch, square: Array) -> Array:
        """Add to matrices (B, k, k) what holds the constants of stream functions and functions that are not there."""
        held, size = self.local.constants(batch.cells), np.trace(square, axis1=1, axis2=2) / self.local.size
        square += size[:, None, None] * held[:, :, None] * held[:, None, :]
        missing = np.arange(self.local.size) >= self.local.functions.used[batch.cells][:, None]
        row, column = np.nonzero(missing)
        square[row, column, column] = np.broadcast_to(size[:, None], missing.shape)[row, column]
        return square

    def _viscous(self, cells: Array, weights: Array, table: Array) -> Array:
        """∫ (∇u + κ ∇uᵀ) : ∇v of cells, (B, k, k), from three integrals of second derivatives."""
        turned = self.form.transposed
        hx, hy = self.mesh.halfwidths[cells].T[:, :, None, None]
        shares = weights[0] / weights[0].sum()  # the same for all whole cells
        volume = weights.sum(axis=1)[:, None, None]
        xx, xy, yy = table[:, 3], table[:, 4], table[:, 5]
        pure = [(one.T * shares) @ one for one in (xx, xy, yy)]
        found = pure[0] / hx**4 + (2 + 2 * turned) * pure[1] / (hx * hy) ** 2 + pure[2] / hy**4
        if turned:
            mixed = (xx.T * shares) @ yy
            found = found - turned * (mixed + mixed.T) / (hx * hy) ** 2
        return np.asarray(volume * found)

    def _carried(
        self, weights: Array, table: Array, by_velocity: Array, advection: Array, hx: Array, hy: Array
    ) -> Array:
        """∫ (b·∇u + C' u)·v of cells, (B, k, k), in two products of matrices for all of them."""
        hx, hy = hx[:, None], hy[:, None]
        bx, by = advection[..., 0], advection[..., 1]
        zero = np.zeros(bx.shape)
        count, k = len(weights), table.shape[2]
        total = np.zeros((count, k, k))
        rows = (
            ([-by_velocity[..., 0, 1] / hx, by_velocity[..., 0, 0] / hy, zero, bx / (hx * hy), by / hy**2], 2, 1 / hy),
            (
                [-by_velocity[..., 1, 1] / hx, by_velocity[..., 1, 0] / hy, -bx / hx**2, -by / (hx * hy), zero],
                1,
                -1 / hx,
            ),
        )
        for terms, tested, scale in rows:
            factors = np.stack([scale * weights * one for one in terms], axis=2).swapaxes(0, 1)  # (Q, B, 5)
            carried = np.matmul(np.ascontiguousarray(factors), table[:, 1:]).reshape(len(table), -1)
            total += (table[:, tested].T @ carried).reshape(k, count, k).swapaxes(0, 1)
        return total

    def on_faces(self, pairs: Array, state: FlowState) -> FaceValues:
        """Functions and the state on pairs of cells and faces."""
        local, form = self.local, self.form
        normals, tangents = local.normals[pairs], local.tangents[pairs]
        along, across = local.along[pairs], local.across[pairs]
        constant = np.einsum("pqj,pj->pq", np.abs(normals), local.functions.penalty[local.cell[pairs]])
        penalty = local.layer.settings.coercivity * constant * form.viscosity * (1 + form.transposed)
        here = state.stream[local.cell[pairs]][:, :, None]
        slip, through = np.matmul(along, here)[:, :, 0], np.matmul(across, here)[:, :, 0]
        velocity = slip[:, :, None] * tangents + through[:, :, None] * normals
        drift, turn = np.zeros(penalty.shape), np.zeros((*penalty.shape, 2))
        if not form.inert:
            shape = (*penalty.shape, 2)
            flat = velocity.reshape(-1, 2)
            still = np.zeros((len(flat), 2, 2))  # the velocity of advection does not depend on gradients
            found = form.inertia(local.points[pairs].reshape(-1, 2), flat, still, self.share)
            drift = np.einsum("pqj,pqj->pq", found.advection.reshape(shape), normals)
            turn = np.einsum("pqjl,pqj->pql", found.change.reshape(*shape, 2), normals)
        return FaceValues(along, across, form.viscosity * local.shear[pairs], penalty, velocity, drift, turn)

    def _around(self, batch: CellBatch, state: FlowState, square: Array, load: Array) -> FlowMatrices:
        """Add what faces and patches give."""
        local, m, n = self.local, self.m, self.n
        b, s, t, k = len(batch.cells), batch.pairs.shape[1], batch.faces, local.size
        flat = batch.pairs.ravel()
        on = self.on_faces(flat, state)
        weights, tangents, normals = local.weights[flat], local.tangents[flat], local.normals[flat]
        nodes = weights.shape[1]
        inner = np.flatnonzero(np.tile(np.arange(s) < t, b))
        outer = np.flatnonzero(np.tile(np.arange(s) >= t, b))
        patch = flat[outer] - local.interior
        boundary = local.boundary
        held = np.ones(len(flat))  # whether the tangential velocity is that of a face, or prescribed
        held[outer] = boundary.tangential[patch]
        outside = np.zeros(weights.shape)  # û, or what is prescribed, at the state
        outside[inner] = state.tangential[local.face[flat[inner]]] @ local.tangential_functions.T
        outside[outer] = np.einsum("pqf,pqf->pq", tangents[outer], boundary.values[patch])
        inflow, outflow = np.maximum(-on.drift, 0.0), np.maximum(on.drift, 0.0)
        share = held[:, None] * weights
        gap = np.einsum("pqf,pqf->pq", tangents, on.velocity) - outside
        tall = (b, s * nodes, k)
        # cell–cell, and how the upwind side changes with the velocity
        lead = (share[:, :, None] * on.along).reshape(tall).swapaxes(1, 2)
        own = np.matmul(lead, on.traction.reshape(tall))
        square -= own + own.swapaxes(1, 2)
        pushed = (on.penalty + inflow)[:, :, None] * on.along
        turns = np.einsum("pql,pqfl->pqf", on.turn, np.stack([tangents, normals], axis=2))
        turned = turns[:, :, :1] * on.along + turns[:, :, 1:] * on.across
        change = np.einsum("pql,pql->pq", on.turn, on.velocity)
        back = (on.drift < 0) * gap
        square += np.matmul(lead, (pushed - back[:, :, None] * turned).reshape(tall))
        load -= np.matmul(lead, (back * change).reshape(b, -1, 1))[:, :, 0]
        # cell–face
        total = t * m + s * n
        upper, lower = np.zeros((b, k, total)), np.zeros((b, total, k))
        corner, data = np.zeros((b, total, total)), np.zeros((b, total))
        if t:
            trace = weights[inner][:, :, None] * local.tangential_functions
            along, traction = on.along[inner], on.traction[inner]
            plain = np.matmul(trace.swapaxes(1, 2), traction - on.penalty[inner][:, :, None] * along)
            leaving = outflow[inner][:, :, None] * along
            forth = (on.drift[inner] > 0) * gap[inner]
            down = plain - np.matmul(trace.swapaxes(1, 2), forth[:, :, None] * turned[inner] + leaving)
            up = plain - np.matmul(trace.swapaxes(1, 2), inflow[inner][:, :, None] * along)
            lower[:, : t * m] = down.reshape(b, t * m, k)
            upper[:, :, : t * m] = up.reshape(b, t * m, k).swapaxes(1, 2)
            heavy = (on.penalty + outflow)[inner][:, :, None] * trace
            block = np.matmul(local.tangential_functions.T, heavy).reshape(b, t, m, m)
            index = np.arange(t)
            view = corner[:, : t * m, : t * m].reshape(b, t, m, t, m)
            view[:, index, :, index, :] = block.swapaxes(0, 1)
            corner[:, : t * m, : t * m] = view.reshape(b, t * m, t * m)
            moved = forth * change[inner]
            data[:, : t * m] = -np.matmul(trace.swapaxes(1, 2), moved[:, :, None]).reshape(b, t * m)
        normal = np.matmul((weights[:, :, None] * local.normal_functions).swapaxes(1, 2), on.across)
        lower[:, t * m :] = normal.reshape(b, s * n, k)
        upper[:, :, t * m :] = lower[:, t * m :].swapaxes(1, 2)
        if len(outer):
            self._prescribed(batch, state, load, data)
            self._robin(batch, on, outer, patch, square)
        return FlowMatrices(square, upper, lower, corner, load, data)

    def loads(self, batch: CellBatch) -> tuple[Array, Array]:
        """Right-hand sides (B, k) and (B, T) of cells at rest: given forces, velocities and tractions."""
        points, weights, table = self.local.stream_tables(batch.cells)
        flat = points.reshape(-1, 2)
        still = self.form.inertia(flat, np.zeros((len(flat), 2)), np.zeros((len(flat), 2, 2)), 0.0).value
        load = self.tested(batch.cells, weights, table, still.reshape(*weights.shape, 2))
        data = np.zeros((len(batch.cells), batch.faces * self.m + batch.pairs.shape[1] * self.n))
        self._prescribed(batch, self.rest(), load, data)
        return load, data

    def _prescribed(self, batch: CellBatch, state: FlowState, load: Array, data: Array) -> None:
        """Add prescribed velocities and tractions to right-hand sides."""
        local, boundary = self.local, self.local.boundary
        b, s = batch.pairs.shape
        outer = np.flatnonzero(np.tile(np.arange(s) >= batch.faces, b))
        if not len(outer):
            return
        flat = batch.pairs.ravel()[outer]
        patch = flat - local.interior
        on = self.on_faces(flat, state)
        weights, normals, tangents = local.weights[flat], local.normals[flat], local.tangents[flat]
        given, known = boundary.values[patch], boundary.natural[patch]
        along = np.einsum("pqf,pqf->pq", tangents, given) * boundary.tangential[patch][:, None] * weights
        pushed = (on.penalty + np.maximum(-on.drift, 0.0)) * along
        right = np.einsum("pq,pqk->pk", pushed, on.along) - np.einsum("pq,pqk->pk", along, on.traction)
        for direction, moved in ((tangents, on.along), (normals, on.across)):
            right += np.einsum("pq,pqk->pk", weights * (direction * known).sum(axis=2), moved)
        rows = outer // s
        np.add.at(load, rows, right)
        flux = np.einsum("pqf,pqf->pq", normals, given) * weights
        columns = data[:, batch.faces * self.m :].reshape(b, s, self.n)
        columns[rows, outer % s] = flux @ local.normal_functions
        data[:, batch.faces * self.m :] = columns.reshape(b, s * self.n)

    def _robin(self, batch: CellBatch, on: FaceValues, outer: Array, patch: Array, square: Array) -> None:
        """Add what tractions that depend on the velocity give."""
        local, boundary = self.local, self.local.boundary
        if not boundary.robin[patch].any():
            return
        flat = batch.pairs.ravel()[outer]
        weights, normals, tangents = local.weights[flat], local.normals[flat], local.tangents[flat]
        along, across = on.along[outer][:, :, None], on.across[outer][:, :, None]
        values = tangents[..., None] * along + normals[..., None] * across
        added = np.einsum("pq,pqfk,pqfg,pqgl->pkl", weights, values, boundary.robin[patch], values, optimize=True)
        np.add.at(square, outer // batch.pairs.shape[1], added)

    # --------------------------------------------------------------------------------------------------- inertia

    def inertia(self, state: FlowState) -> tuple[Array, Array]:
        """What C beyond its value at rest adds to the equations of cells (C, k) and of faces (T,), not linearised."""
        own, around = np.zeros((self.mesh.count, self.local.size)), np.zeros(self.total)
        if self.form.inert:
            return own, around
        for batch in self.local.batches():
            points, weights, table = self.local.stream_tables(batch.cells)
            velocity, slope = self.local.flow_inside(table, batch.cells, state.stream[batch.cells])
            flat = points.reshape(-1, 2)
            found = self.form.carried(flat, velocity.reshape(-1, 2), slope.reshape(-1, 2, 2))[0]
            own[batch.cells] -= self.tested(batch.cells, weights, table, found.reshape(velocity.shape))
        return self._upwinded(state, own, around)

    def _upwinded(self, state: FlowState, own: Array, around: Array) -> tuple[Array, Array]:
        """Add what differences of tangential velocities across faces carry."""
        local, boundary = self.local, self.local.boundary
        here = state.stream[local.cell][:, :, None]
        slip, through = np.matmul(local.along, here)[:, :, 0], np.matmul(local.across, here)[:, :, 0]
        velocity = slip[:, :, None] * local.tangents + through[:, :, None] * local.normals
        still = np.zeros((velocity[..., 0].size, 2, 2))
        advection = self.form.carried(local.points.reshape(-1, 2), velocity.reshape(-1, 2), still)[1]
        drift = np.einsum("pqj,pqj->pq", advection.reshape(velocity.shape), local.normals)
        inner = local.interior
        outside = np.empty_like(slip)
        outside[:inner] = state.tangential[local.face[:inner]] @ local.tangential_functions.T
        outside[inner:] = np.einsum("pqf,pqf->pq", local.tangents[inner:], boundary.values)
        gap = local.weights * (slip - outside)
        gap[inner:] *= boundary.tangential[:, None]
        entering = np.matmul((np.maximum(-drift, 0.0) * gap)[:, None], local.along)[:, 0]
        np.add.at(own, local.cell, entering)
        leaving = (np.maximum(drift, 0.0) * -gap)[:inner] @ local.tangential_functions
        np.add.at(around[: self.faces * self.m].reshape(-1, self.m), local.face[:inner], leaving)
        return own, around


@dataclass(frozen=True, eq=False)
class FaceValues:
    """On pairs of cells and faces, at their nodes: tangential and normal velocities and tangential tractions of the
    functions, each (P, q, k), penalty (P, q); of the state the velocity (P, q, 2), b·n (P, q) and its change with
    the velocity (P, q, 2)."""

    along: Array
    across: Array
    traction: Array
    penalty: Array
    velocity: Array
    drift: Array
    turn: Array
