"""Matrices of cells, static condensation on tangential velocities and normal tractions of faces, and the solution.

For all cells K, with the tangential traction τ(u) = ν t·(∂_n u + κ ∇(u·n)), find curls u, û and λ with

    Σ_K ∫ ν (∇u + κ ∇uᵀ) : ∇v + C(u)·v
      - ∫_∂K τ(u) (v_t - v̂) - ∫_∂K τ(v) (u_t - û) + ∫_∂K η (u_t - û)(v_t - v̂) + ∫_∂K λ v_n
      + ∫_{∂K, b·n<0} |b·n| (u_t - û) v_t + ∫_{∂K, b·n>0} |b·n| (û - u_t) v̂ = boundary tractions ,
    Σ_K ∫_∂K μ u_n = boundary velocities

for all curls v, all v̂ and μ: tangential velocities by interior penalty, normal ones by multipliers. Cells meet only in
(û, λ), and are eliminated: each is well posed alone, since a rigid motion has a tangential velocity somewhere. Scalars
that the flow carries (``transport``) are further functions of the cells, and their traces further unknowns of faces.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sparse

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.flow.inertia import InertiaOperator
from rannpde.pde.flow.local import FlowCells
from rannpde.pde.flow.matrices import EquilibratedFactors, FlowMatrices, FlowState
from rannpde.pde.flow.multipliers import stable_multipliers
from rannpde.pde.flow.transport import TransportOperator
from rannpde.pde.weak.local import CellBatch, face_diagonal


class FlowSystem:
    """Newton's linear systems on one mesh; share : of inertia."""

    def __init__(self, local: FlowCells, share: float = 1.0, active: Array | None = None) -> None:
        self.local, self.share, self.form, self.mesh = local, share, local.form, local.mesh
        self.m, self.n = local.tangential_functions.shape[1], local.normal_functions.shape[1]
        self.faces, self.patches = len(self.mesh.axis), len(self.mesh.patches)
        self.r = local.form.diffusion.fields * local.layer.face_functions.shape[1] if local.form.scalars else 0
        self.active = self._active() if active is None else active

    def at(self, share: float) -> FlowSystem:
        """The system on the same mesh with another share of inertia."""
        return FlowSystem(self.local, share, self.active)

    @property
    def enclosed(self) -> bool:
        """Whether the normal velocity is prescribed on the whole boundary, so that a constant pressure is free."""
        return bool(self.local.boundary.normal.all())

    @property
    def total(self) -> int:
        return self.carried + self.faces * self.r

    @property
    def carried(self) -> int:
        """The number of the first unknown of a scalar on faces."""
        return self.faces * self.m + (self.faces + self.patches) * self.n

    @property
    def unknowns(self) -> int:
        return int(self.active.sum()) + (1 + len(self.form.scalars)) * int(self.local.functions.used.sum())

    def _active(self) -> Array:
        """Which unknowns of faces are used (total,): no multiplier of the normal flux where the traction is known."""
        active = np.ones(self.total, dtype=bool)
        normal = active[self.faces * self.m : self.carried].reshape(-1, self.n)
        if self.mesh.parts:
            normal &= stable_multipliers(self.local, self._still())
        normal[self.faces :][~self.local.boundary.normal] = False
        if self.enclosed:
            normal[0, 0] = False  # the constant of the pressure, which is chosen afterwards
        return active

    def _still(self) -> dict[int, Array]:
        """The matrices of the cut cells for a fluid at rest: cut cell → (k, k)."""
        cut = [batch for batch in self.local.batches() if int(batch.cells[0]) in self.mesh.parts]
        return {int(batch.cells[0]): self.still(batch).square[0] for batch in cut}

    def rest(self) -> FlowState:
        """The state of a fluid at rest."""
        count = len(self.form.scalars)
        return FlowState(
            np.zeros((self.mesh.count, self.local.size)), np.zeros((self.faces, self.m)),
            np.zeros((self.faces + self.patches, self.n)), np.zeros((self.mesh.count, count, self.local.size)),
            np.zeros((self.faces, count, self.r // max(count, 1))),
        )  # fmt: skip

    def dofs(self, batch: CellBatch) -> Array:
        """Numbers (B, T) of the unknowns around each cell: û of its faces, λ of faces and patches, then scalars."""
        items = self.local.face[batch.pairs]
        count = len(batch.cells)
        one = items[:, : batch.faces, None] * self.m + np.arange(self.m)
        other = self.faces * self.m + items[:, :, None] * self.n + np.arange(self.n)
        last = self.carried + items[:, : batch.faces, None] * self.r + np.arange(self.r)
        return np.concatenate([part.reshape(count, -1) for part in (one, other, last)], axis=1)

    # --------------------------------------------------------------------------------------------------- one step

    def solve(self, state: FlowState) -> FlowState:
        """The next state of Newton's method, which is the solution if the problem is linear."""
        right = np.zeros(self.total)
        eliminated, pieces = [], []
        for batch in self.local.batches():
            matrices = self.matrices(batch, state)
            both = np.linalg.solve(matrices.square, np.concatenate([matrices.upper, matrices.load[:, :, None]], axis=2))
            response, own = both[:, :, :-1], both[:, :, -1]
            dofs = self.dofs(batch)
            schur = matrices.corner - np.matmul(matrices.lower, response)
            np.add.at(right, dofs, matrices.data - np.matmul(matrices.lower, own[:, :, None])[:, :, 0])
            pieces.append((dofs, schur))
            eliminated.append((batch, dofs, response, own))
            checkpoint()
            self.local.check_budget()
        traces = np.zeros(self.total)
        traces[self.active] = self.factorised(pieces).solve(right[self.active])
        count = len(self.form.scalars)
        inside = np.zeros((self.mesh.count, (1 + count) * self.local.size))
        for batch, dofs, response, own in eliminated:
            inside[batch.cells] = own - np.matmul(response, traces[dofs][:, :, None])[:, :, 0]
        split, weights = self.faces * self.m, inside.reshape(self.mesh.count, 1 + count, -1)
        return FlowState(
            weights[:, 0], traces[:split].reshape(self.faces, self.m), traces[split : self.carried].reshape(-1, self.n),
            weights[:, 1:], traces[self.carried :].reshape(self.faces, count, self.r // max(count, 1)),
        )  # fmt: skip

    def factorised(self, pieces: list[tuple[Array, Array]]) -> EquilibratedFactors:
        """The factors of the matrix of the unknowns of faces that are used; pieces : numbers (B, T) of the unknowns
        around cells, and the Schur complements (B, T, T) of the cells."""
        row = np.concatenate([np.repeat(dofs, dofs.shape[1], axis=1).ravel() for dofs, _ in pieces])
        column = np.concatenate([np.tile(dofs, (1, dofs.shape[1])).ravel() for dofs, _ in pieces])
        entry = np.concatenate([schur.ravel() for _, schur in pieces])
        numbers = np.cumsum(self.active) - 1
        used = self.active[row] & self.active[column]
        size = int(self.active.sum())
        matrix = sparse.csc_matrix((entry[used], (numbers[row[used]], numbers[column[used]])), (size, size))
        return EquilibratedFactors.of(matrix)

    def still(self, batch: CellBatch) -> FlowMatrices:
        """The matrices of the cells of a batch, for a fluid at rest: viscosity, penalties, multipliers, and all that is
        given."""
        local = self.local
        _, weights, table = local.stream_tables(batch.cells)
        square = self.regular(batch, self.form.viscosity * self._viscous(batch.cells, weights, table))
        b, s, t, k = len(batch.cells), batch.pairs.shape[1], batch.faces, local.size
        flat = batch.pairs.ravel()
        along, traction, penalty = local.along[flat], self.form.viscosity * local.shear[flat], self.penalty(flat)
        heavy = local.weights[flat]
        nodes = heavy.shape[1]
        inner = np.flatnonzero(np.tile(np.arange(s) < t, b))
        lead = (self.held(flat)[:, None] * heavy)[:, :, None] * along
        tall = (b, s * nodes, k)
        own = np.matmul(lead.reshape(tall).swapaxes(1, 2), (0.5 * penalty[:, :, None] * along - traction).reshape(tall))
        square += own + own.swapaxes(1, 2)
        total = t * self.m + s * self.n
        lower, corner = np.zeros((b, total, k)), np.zeros((b, total, total))
        if t:
            trace = (heavy[inner][:, :, None] * local.tangential_functions).swapaxes(1, 2)
            plain = np.matmul(trace, traction[inner] - penalty[inner][:, :, None] * along[inner])
            lower[:, : t * self.m] = plain.reshape(b, t * self.m, k)
            blocks = np.matmul(trace * penalty[inner][:, None], local.tangential_functions)
            corner[:, : t * self.m, : t * self.m] = face_diagonal(blocks.reshape(b, t, self.m, self.m))
        normal = np.matmul((heavy[:, :, None] * local.normal_functions).swapaxes(1, 2), local.across[flat])
        lower[:, t * self.m :] = normal.reshape(b, s * self.n, k)
        load, data = self.loads(batch)
        if s > t:
            self._robin(batch, square)
        return FlowMatrices(square, lower.swapaxes(1, 2).copy(), lower, corner, load, data)

    def matrices(self, batch: CellBatch, state: FlowState) -> FlowMatrices:
        """The matrices of the cells of a batch, linearised at a state."""
        matrices = self.still(batch)
        if not self.form.inert:
            matrices = self.inertia.added(batch, state, matrices)
        return self.transport.coupled(batch, state, matrices) if self.form.scalars else matrices

    @cached_property
    def transport(self) -> TransportOperator:
        """The operator that couples the flow with its scalars."""
        return TransportOperator(self.inertia)

    @cached_property
    def inertia(self) -> InertiaOperator:
        """The operator of inertia: C less its value for a fluid at rest."""
        return InertiaOperator(self.local, self.share)

    def held(self, pairs: Array) -> Array:
        """Whether (P,) the tangential velocity of pairs is that of a face, or prescribed."""
        outer = pairs >= self.local.interior
        shares = np.ones(len(pairs))
        shares[outer] = self.local.boundary.tangential[pairs[outer] - self.local.interior]
        return shares

    def penalty(self, pairs: Array) -> Array:
        """Penalties (P, q) of differences of tangential velocities."""
        local, form = self.local, self.form
        constant = np.einsum("pqj,pj->pq", np.abs(local.normals[pairs]), local.functions.penalty[local.cell[pairs]])
        return np.asarray(local.layer.settings.coercivity * constant * form.viscosity * (1 + form.transposed))

    def tested(self, cells: Array, weights: Array, table: Array, values: Array) -> Array:
        """-∫ values·v (B, k) of cells, for values (B, Q, 2) at the points of ``stream_tables``."""
        hx, hy = self.mesh.halfwidths[cells].T[:, :, None]
        heavy = weights[:, :, None] * values
        return np.asarray(heavy[:, :, 1] / hx @ table[:, 1] - heavy[:, :, 0] / hy @ table[:, 2])

    def regular(self, batch: CellBatch, square: Array) -> Array:
        """Add to matrices (B, k, k) terms that fix the constants of stream functions and the weights of unused
        functions at zero."""
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
        energy = pure[0] / hx**4 + (2 + 2 * turned) * pure[1] / (hx * hy) ** 2 + pure[2] / hy**4
        if turned:
            mixed = (xx.T * shares) @ yy
            energy = energy - turned * (mixed + mixed.T) / (hx * hy) ** 2
        return np.asarray(volume * energy)

    def loads(self, batch: CellBatch) -> tuple[Array, Array]:
        """Right-hand sides (B, k) and (B, T) of cells at rest: given forces, velocities and tractions."""
        points, weights, table = self.local.stream_tables(batch.cells)
        still = self.form.at_rest(points.reshape(-1, 2).T).T
        load = self.tested(batch.cells, weights, table, still.reshape(*weights.shape, 2))
        data = np.zeros((len(batch.cells), batch.faces * self.m + batch.pairs.shape[1] * self.n))
        if batch.pairs.shape[1] > batch.faces:
            self._prescribed(batch, load, data)
        return load, data

    def _prescribed(self, batch: CellBatch, load: Array, data: Array) -> None:
        """Add prescribed velocities and tractions to right-hand sides."""
        local, boundary = self.local, self.local.boundary
        b, s = batch.pairs.shape
        flat = batch.pairs[:, batch.faces :].ravel()
        patch = flat - local.interior
        weights, normals, tangents = local.weights[flat], local.normals[flat], local.tangents[flat]
        given, known = boundary.values[patch], boundary.natural[patch]
        along = np.einsum("pqf,pqf->pq", tangents, given) * boundary.tangential[patch][:, None] * weights
        right = np.einsum("pq,pqk->pk", self.penalty(flat) * along, local.along[flat])
        right -= self.form.viscosity * np.einsum("pq,pqk->pk", along, local.shear[flat])
        for direction, moved in ((tangents, local.along[flat]), (normals, local.across[flat])):
            right += np.einsum("pq,pqk->pk", weights * (direction * known).sum(axis=2), moved)
        load += right.reshape(b, s - batch.faces, -1).sum(axis=1)
        flux = np.einsum("pqf,pqf->pq", normals, given) * weights
        columns = data[:, batch.faces * (self.m + self.n) :]
        columns += (flux @ local.normal_functions).reshape(columns.shape)

    def _robin(self, batch: CellBatch, square: Array) -> None:
        """Add the terms of tractions that depend on the velocity."""
        local, boundary = self.local, self.local.boundary
        flat = batch.pairs[:, batch.faces :].ravel()
        patch = flat - local.interior
        if not boundary.robin[patch].any():
            return
        along, across = local.along[flat][:, :, None], local.across[flat][:, :, None]
        values = local.tangents[flat][..., None] * along + local.normals[flat][..., None] * across
        weights = local.weights[flat]
        added = np.einsum("pq,pqfk,pqfg,pqgl->pkl", weights, values, boundary.robin[patch], values, optimize=True)
        square += added.reshape(len(square), -1, *square.shape[1:]).sum(axis=1)
