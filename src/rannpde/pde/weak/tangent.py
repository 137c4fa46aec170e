"""Residual and tangent of a non-linear weak form on cells, and the factorised linear systems of Newton's method.

The hybridised interior penalty method for ∂_i F_i(u, ∇u) + f(u, ∇u) = 0: on every cell K and for traces û find u, û:

    Σ_K  ∫ F(u)·∇v - f(u) v  -  ∫_∂K n·F(u)·(v - v̂)  -  ∫_∂K (n·A∇v)·(u - û)  +  ∫_∂K η (u - û)·(v - v̂)  =  0 ,

A = ∂F/∂∇u at u. On the boundary û is what is prescribed, and the flux is what natural conditions say. In the tangent, A
and η beside the jump u - û are not differentiated: jumps are of the size of the discretisation error, and so is what
they change in the rate of convergence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.residual import field_sizes
from rannpde.pde.statement.quasilinear import Linearisation
from rannpde.pde.weak.factorised_tangent import FactorisedTangent, HybridState
from rannpde.pde.weak.local import CellBatch, LocalMatrices, flat_blocks
from rannpde.pde.weak.quasilinear_form import LinearisedForm
from rannpde.pde.weak.samples import volume_samples

PENALTY_FLOOR = 1e-3
"""Penalty where the diffusion vanishes at a point of a face, over that of its mean over the cell."""


@dataclass(frozen=True, eq=False)
class _PairTerms:
    """Functions, state and coefficients on the faces and patches of a batch: P pairs with q points each."""

    flat: Array
    outer: Array
    values: Array
    slopes: Array
    weights: Array
    normal: Array  # (P, q, K): n·F where it is part of the form, projected on prescribed combinations
    gap: Array  # (P, q, K): u - û
    given_flux: Array  # (P, q, K): flux of natural conditions
    here: Linearisation
    normals: Array
    prescribed: Array
    robin: Array
    penalty: Array
    inflow: Array
    outflow: Array
    lack: Array  # (P, q, K): residual of natural conditions, squared, over the penalty


class TangentSystem:
    """The non-linear weak form on a mesh; share : factor of loads and prescribed values."""

    def __init__(self, local: LocalMatrices, form: LinearisedForm, share: float = 1.0) -> None:
        self.local, self.form, self.share = local, form, share
        self.mesh, self.layer, self.fields = local.mesh, local.layer, local.fields
        self.batches = list(local.batches())

    # ---------------------------------------------------------------------------------------------------- states

    def rest(self) -> HybridState:
        """The state u = 0."""
        traces = np.zeros((self.mesh.faces, self.fields, self.layer.face_functions.shape[1]))
        return HybridState(np.zeros((self.mesh.count, self.fields, self.local.size)), traces)

    def projected(self, function: Callable[[Array], Array]) -> HybridState:
        """The state nearest to a function of points (M, d) with values (M, F)."""
        mesh, layer, state = self.mesh, self.layer, self.rest()
        (grid, shares), values = layer.grid, layer.reference[0]
        root = np.sqrt(shares)[:, None]
        inverse = np.linalg.pinv(root * values, rcond=1e-12) * root[:, 0]
        whole = mesh.whole
        if len(whole):
            known = function(mesh.mapped(whole, grid).reshape(-1, grid.shape[1])).reshape(
                len(whole), len(grid), self.fields
            )
            state.weights[whole] = np.einsum("kq,cqf->cfk", inverse, known, optimize=True)
        for cell, part in mesh.parts.items():
            root = np.sqrt(np.abs(part.weights))[:, None]  # some are negative in space, and any serve a projection
            table = self.local.functions.part_table(cell)[:, 0]
            state.weights[cell] = np.linalg.lstsq(root * table, root * function(part.points), rcond=1e-10)[0].T
        nodes = mesh.face_points(layer.nodes)[0]
        if not len(nodes):
            return state
        known = function(nodes.reshape(-1, grid.shape[1])).reshape(*nodes.shape[:2], self.fields)
        state.traces[:] = np.einsum("qm,q,nqf->nfm", layer.face_functions, layer.face_grid[1], known, optimize=True)
        return state

    def size(self, state: HybridState) -> Array:
        """The size (F,) of each field, about its L² norm."""
        volumes = self.mesh.halfwidths.prod(axis=1)
        return np.asarray(np.sqrt(np.einsum("c,cfk->f", volumes, state.weights**2)))

    def relative(self, step: HybridState, state: HybridState) -> float:
        """The size of a step over that of a state, the largest over the fields."""
        return float((self.size(step) / field_sizes(self.size(state))).max())

    # --------------------------------------------------------------------------------------------------- volumes

    def _volume(self, batch: CellBatch, state: HybridState, tangent: bool) -> tuple[Array, Array, Array]:
        """Residual (B, F, k) and tangent (B, F, k, F, k) of the volumes, and the mean diffusion (B,)."""
        fields, k = self.fields, self.local.size
        count = len(batch.cells)
        residual, means = np.zeros((count, fields, k)), np.zeros(count)
        matrix = np.zeros((count, fields, k, fields, k)) if tangent else np.zeros(0)
        numbers = np.empty(self.mesh.count, dtype=int)
        numbers[batch.cells] = np.arange(count)
        for samples in volume_samples(self.local.functions, batch.cells):
            rows, weights = numbers[samples.cells], samples.weights
            known = samples.jets(state.weights)
            b, q, _, jets = known.shape
            flat, dim = known.reshape(b * q, fields, jets), jets - 1
            here = self._at(samples.points.reshape(-1, dim), flat[..., 0], flat[..., 1:])
            residual[rows] = samples.tested(here.terms.reshape(known.shape))
            own = np.einsum("mkkii->m", here.diffusion).reshape(b, q)
            means[rows] = (own * weights).sum(axis=1) / weights.sum(axis=1) / (dim * fields)
            if not tangent:
                continue
            flow = here.tangent.reshape(b, q, fields, fields, jets, jets)
            for p in range(fields):
                for f in range(fields):
                    matrix[rows, p, :, f, :] = samples.tangent(flow[:, :, p, f])
        return residual, matrix, means

    def _at(self, points: Array, values: Array, slopes: Array) -> Linearisation:
        """Terms and tangent with the share of the load; LinAlgError where they are not finite."""
        here = self.form.linearised(points, values, slopes)
        if not (np.isfinite(here.terms).all() and np.isfinite(here.tangent).all()):
            raise np.linalg.LinAlgError("the form is not finite at this state")
        if self.share < 1:
            here = Linearisation(here.terms - (1 - self.share) * self.form.load_at_rest(points), here.tangent)
        return here

    # ----------------------------------------------------------------------------------------------------- faces

    def _pairs(self, batch: CellBatch, state: HybridState, means: Array) -> _PairTerms:
        local, fields = self.local, self.fields
        flat, s = batch.pairs.ravel(), batch.pairs.shape[1]
        cells, points, normals = local.cell[flat], local.points[flat], local.normals[flat]
        values, slopes = local.tables(cells, points)
        own = state.weights[cells]
        inside = np.einsum("pqa,pfa->pqf", values, own, optimize=True)
        inclined = np.einsum("jpqa,pfa->pqfj", slopes, own, optimize=True)
        seen, dim = points, points.shape[2]
        if self.form.kinked:
            seen = self.mesh.moved_inside(cells, points, normals)
        shape = points.shape[:2]
        here = self._at(seen.reshape(-1, dim), inside.reshape(-1, fields), inclined.reshape(-1, fields, dim))
        here = Linearisation(here.terms.reshape(*shape, fields, 1 + dim),
                             here.tangent.reshape(*shape, fields, fields, 1 + dim, 1 + dim))  # fmt: skip
        outer = np.flatnonzero(flat >= local.interior)
        inner = np.flatnonzero(flat < local.interior)
        on_face = np.einsum("qm,pfm->pqf", self.layer.face_functions, state.traces[local.face[flat[inner]]],
                            optimize=True)  # fmt: skip
        normal = np.einsum("pqi,pqki->pqk", normals, here.terms[..., 1:], optimize=True)
        gap = inside.copy()
        gap[inner] -= on_face
        prescribed = np.broadcast_to(np.eye(fields), (*shape, fields, fields)).copy()
        robin, given_flux = np.zeros((*shape, fields, fields)), np.zeros((*shape, fields))
        self._conditions(flat, outer, points, inside, inclined, here, prescribed, gap, given_flux, robin)
        penalty = self._penalty(here, normals, cells, np.repeat(means, s))
        held_flux = np.einsum("pqkl,pql->pqk", prescribed[outer], normal[outer])
        lack = np.zeros_like(normal)
        lack[outer] = (normal[outer] - held_flux - given_flux[outer]) ** 2 / np.einsum("pqkk->pqk", penalty[outer])
        normal[outer] = held_flux
        fixed = prescribed[outer]
        penalty[outer] = np.einsum("pqlk,pqlm,pqmf->pqkf", fixed, penalty[outer], fixed, optimize=True)
        drift = np.einsum("pqkkj,pqj->pqk", here.advection, normals, optimize=True)
        held = np.einsum("pqkk->pqk", prescribed)
        inflow = np.maximum(-drift, 0.0) * held
        return _PairTerms(flat, outer, values, slopes, local.weights[flat], normal, gap, given_flux, here, normals,
                          prescribed, robin, penalty, inflow, np.maximum(drift, 0.0), lack)  # fmt: skip

    def _conditions(
        self, flat: Array, outer: Array, points: Array, inside: Array, inclined: Array, here: Linearisation,
        prescribed: Array, gap: Array, given_flux: Array, robin: Array,
    ) -> None:  # fmt: skip
        """Fill in the conditions on patches."""
        patches, fields, dim = self.mesh.patches, self.fields, points.shape[2]
        group = patches.group[flat[outer] - self.local.interior]
        for number in np.unique(group):
            mine = outer[group == number]
            count = points.shape[1]

            def flatten(array: Array, mine: Array = mine) -> Array:
                return array[mine].reshape(-1, *array.shape[2:])

            own = Linearisation(flatten(here.terms), flatten(here.tangent))
            nodes, normals = flatten(points), self.local.normals[flat[mine]].reshape(-1, dim)
            numbers = self.mesh.conditions[number]
            conditions = self.form.boundary(
                numbers, nodes, normals, flatten(inside), flatten(inclined), own, self.share
            )
            data, flux = conditions.values, conditions.flux
            prescribed[mine] = conditions.projection.reshape(len(mine), count, fields, fields)
            gap[mine] = np.einsum("pqkl,pql->pqk", prescribed[mine], inside[mine]) - data.reshape(
                len(mine), count, fields
            )
            given_flux[mine] = flux.reshape(len(mine), count, fields)
            robin[mine] = conditions.robin.reshape(len(mine), count, fields, fields)

    def _penalty(self, here: Linearisation, normals: Array, cells: Array, means: Array) -> Array:
        """η (P, q, K, K): the trace constant of the cell times n·A n, and more where A is larger than in the cell."""
        across = np.einsum("pqi,pqkfij,pqj->pqkf", normals, here.diffusion, normals, optimize=True)
        across = 0.5 * (across + np.swapaxes(across, 2, 3))
        values, vectors = np.linalg.eigh(across)
        least = PENALTY_FLOOR * np.maximum(means, 0.0)[:, None, None]
        across = np.einsum("pqkl,pql,pqml->pqkm", vectors, np.maximum(np.abs(values), least), vectors, optimize=True)
        dim = normals.shape[2]
        own = np.abs(np.einsum("pqkkii->pq", here.diffusion)) / (dim * self.fields)
        excess = np.maximum(own / np.maximum(np.abs(means), 1e-300)[:, None], 1.0)
        constant = np.einsum("pqj,pj->pq", np.abs(normals), self.local.functions.penalty[cells], optimize=True) * excess
        return np.asarray(self.layer.settings.coercivity * constant[:, :, None, None] * across)

    def _face_residual(self, batch: CellBatch, pairs: _PairTerms, residual: Array) -> Array:
        """Add the residual of faces and patches to that of cells (B, F, k); return that of the traces (B, t, F, m)."""
        b, s, t = len(batch.cells), batch.pairs.shape[1], batch.faces
        weights, fields, k = pairs.weights, self.fields, self.local.size
        pushed = np.einsum("pqkl,pql->pqk", pairs.penalty, pairs.gap)
        plain = pushed - pairs.normal - pairs.given_flux + pairs.inflow * pairs.gap
        integrals = np.matmul((weights[:, :, None] * plain).transpose(0, 2, 1), pairs.values)  # (P, F, k)
        flux = np.einsum("pqi,pqkfij,pqk->pqfj", pairs.normals, pairs.here.diffusion, pairs.gap, optimize=True)
        flux = weights[:, :, None, None] * flux
        for j in range(flux.shape[3]):
            integrals -= np.matmul(flux[..., j].transpose(0, 2, 1), pairs.slopes[j])
        residual += integrals.reshape(b, s, fields, k).sum(axis=1)
        inner = np.flatnonzero(np.tile(np.arange(s) < t, b))
        left = pairs.normal[inner] - pushed[inner] - (pairs.outflow * pairs.gap)[inner]
        traces = np.matmul((weights[inner][:, :, None] * left).transpose(0, 2, 1), self.layer.face_functions)
        return np.asarray(traces.reshape(b, t, fields, traces.shape[-1]))

    # --------------------------------------------------------------------------------------- residual and tangent

    def residual(self, state: HybridState) -> HybridState:
        """The residual of the weak form at a state; LinAlgError where it is not defined there."""
        return self._assemble(state, False)[0]

    def jumps(self, state: HybridState) -> Array:
        """∫_∂K η |u - û|² of each cell (C,), and the residuals of natural conditions, as energies."""
        energies = np.zeros(self.mesh.count)
        for batch in self.batches:
            pairs = self._pairs(batch, state, self._volume(batch, state, False)[2])
            energy = np.einsum("pq,pqk,pqkl,pql->p", pairs.weights, pairs.gap, pairs.penalty, pairs.gap, optimize=True)
            energy += np.einsum("pq,pqk->p", pairs.weights, pairs.lack)
            np.add.at(energies, self.local.cell[pairs.flat], energy)
        return energies

    def adjoint_jumps(self, state: HybridState, adjoint: HybridState, given: Array) -> Array:
        """∫_∂K η |z - ẑ|² of each cell (C,) with the penalty at a state, for values ``given`` (B, q, K) on patches."""
        energies = np.zeros(self.mesh.count)
        for batch in self.batches:
            pairs = self._pairs(batch, state, self._volume(batch, state, False)[2])
            cells, inner = self.local.cell[pairs.flat], np.flatnonzero(pairs.flat < self.local.interior)
            gap = np.einsum("pqa,pfa->pqf", pairs.values, adjoint.weights[cells], optimize=True)
            gap = np.einsum("pqkl,pql->pqk", pairs.prescribed, gap)
            on_face = adjoint.traces[self.local.face[pairs.flat[inner]]]
            gap[inner] -= np.einsum("qm,pfm->pqf", self.layer.face_functions, on_face, optimize=True)
            gap[pairs.outer] -= given[pairs.flat[pairs.outer] - self.local.interior]
            energy = np.einsum("pq,pqk,pqkl,pql->p", pairs.weights, gap, pairs.penalty, gap, optimize=True)
            np.add.at(energies, cells, energy)
        return energies

    def linearise(self, state: HybridState) -> tuple[HybridState, FactorisedTangent]:
        """The residual at a state, and its tangent ready to be solved with; LinAlgError where that is singular."""
        residual, eliminated, entries = self._assemble(state, True)
        return residual, FactorisedTangent(self.local, self.rest(), eliminated, entries)

    def _assemble(
        self, state: HybridState, tangent: bool
    ) -> tuple[HybridState, list[tuple[CellBatch, Array, Array, Array]], list[tuple[Array, Array]]]:
        total = self.rest()
        traces = total.traces.reshape(-1)
        eliminated, entries = [], []
        for batch in self.batches:
            residual, matrix, means = self._volume(batch, state, tangent)
            pairs = self._pairs(batch, state, means)
            around = self._face_residual(batch, pairs, residual)
            total.weights[batch.cells] = residual
            if batch.faces:
                np.add.at(traces, self.local.dofs(batch), around.reshape(len(batch.cells), -1))
            if tangent:
                inverse, upper, lower, corner = self._matrices(batch, pairs, matrix)
                eliminated.append((batch, inverse, upper, lower))
                if batch.faces:
                    entries.append((self.local.dofs(batch), corner - np.matmul(lower, np.matmul(inverse, upper))))
            self.local.check_budget()
        return total, eliminated, entries

    def _matrices(self, batch: CellBatch, pairs: _PairTerms, matrix: Array) -> tuple[Array, Array, Array, Array]:
        """Inverse of cell–cell (B, n, n), cell–trace (B, n, T), trace–cell, trace–trace."""
        cells, t = batch.cells, batch.faces
        b, s, fields, k = len(cells), batch.pairs.shape[1], self.fields, self.local.size
        weights, values, slopes = pairs.weights, pairs.values, pairs.slopes
        count = weights.shape[1]
        trace = self.layer.face_functions
        m = trace.shape[1]
        normals = pairs.normals
        fluxes = np.einsum("pqi,pqkfib->pqkfb", normals, pairs.here.tangent[..., 1:, :], optimize=True)
        tall = (values * weights[:, :, None]).reshape(b, s * count, k)
        inner = np.flatnonzero(np.tile(np.arange(s) < t, b))
        heavy = weights[inner][:, :, None] * trace
        upper, lower = np.empty((b, fields, k, t, fields, m)), np.empty((b, t, fields, m, fields, k))
        corner = np.empty((b, t, fields, m, fields, m))
        # n·A∇φ and n·(A∇φ + aφ) of the functions, (K, F, P, q, k)
        across = fluxes.transpose(2, 3, 4, 0, 1)[..., None]
        sloped = sum((across[:, :, 1 + j] * slope for j, slope in enumerate(slopes)), np.zeros(()))
        whole = sloped + across[:, :, 0] * values if fluxes[..., 0].any() else sloped
        outer, held, tested = pairs.outer, whole, sloped
        if len(outer):
            held, tested, fixed = whole.copy(), sloped.copy(), pairs.prescribed[outer]
            held[:, :, outer] = np.einsum("pqkl,lfpqa->kfpqa", fixed, whole[:, :, outer], optimize=True)
            tested[:, :, outer] = np.einsum("pqlk,lfpqa->kfpqa", fixed, sloped[:, :, outer], optimize=True)
        total = pairs.penalty + pairs.robin
        index = np.arange(fields)
        total[:, :, index, index] += pairs.inflow
        for f in range(fields):
            for g in range(fields):
                matrix[:, f, :, g, :] -= np.matmul(tall.transpose(0, 2, 1), held[f, g].reshape(b, s * count, k))
                back = np.matmul(tall.transpose(0, 2, 1), tested[f, g].reshape(b, s * count, k))
                matrix[:, g, :, f, :] -= back.transpose(0, 2, 1)
                if total[:, :, f, g].any():
                    pushed = tall * total[:, :, f, g].reshape(b, s * count, 1)
                    matrix[:, f, :, g, :] += np.matmul(pushed.transpose(0, 2, 1), values.reshape(b, s * count, k))
                if not t:
                    continue
                stiff = pairs.penalty[inner][:, :, f, g][:, :, None] * heavy
                up = np.matmul(sloped[g, f][inner].transpose(0, 2, 1), heavy)
                up -= np.matmul(values[inner].transpose(0, 2, 1), stiff)
                down = up.copy()
                if whole is not sloped:
                    down += np.matmul((whole - sloped)[g, f][inner].transpose(0, 2, 1), heavy)
                edge = np.matmul(trace.T, stiff)
                if f == g:
                    up -= np.matmul(values[inner].transpose(0, 2, 1), pairs.inflow[inner][:, :, f, None] * heavy)
                    leaving = pairs.outflow[inner][:, :, f, None] * heavy
                    down -= np.matmul(values[inner].transpose(0, 2, 1), leaving)
                    edge += np.matmul(trace.T, leaving)
                upper[:, f, :, :, g, :] = up.reshape(b, t, k, m).transpose(0, 2, 1, 3)
                lower[:, :, g, :, f, :] = down.reshape(b, t, k, m).transpose(0, 1, 3, 2)
                corner[:, :, f, :, g, :] = edge.reshape(b, t, m, m)
        square, above, below, traces = flat_blocks((matrix, upper, lower, corner), self.local.functions.used[cells])
        if not np.isfinite(square).all():
            raise np.linalg.LinAlgError("the tangent is not finite")
        return np.linalg.inv(square), above, below, traces
