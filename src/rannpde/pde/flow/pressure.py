"""The pressure inside cells, the fields as a network, indicators of the error, and forces on sides.

Curls do not see the pressure. It is found afterwards, in each cell, from its gradient, which momentum says, and from
the tractions of the faces: a combination p of the functions of the cell with the least

    (h/n)² ∫_K |∇p - ν Δu + C|² + h/n² ∫_∂K (p - λ - (1 + κ) ν n·∂_n u)² ,

n the degree: the weights of both are those of the inverse inequalities of polynomials.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.cells.basis.basis import derivative_weights
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.cells.network import CellNetwork
from rannpde.pde.flow.assembly import FaceValues, FlowState, FlowSystem
from rannpde.pde.flow.local import FlowCells
from rannpde.pde.weak.evaluation import output_weights, sampled
from rannpde.pde.weak.local import CellBatch
from rannpde.rounding import COMPUTED

THIRD = tuple((3 - j, j) for j in range(4))


@dataclass(frozen=True, eq=False)
class RecoveredFlow:
    """A state with its pressure: weights (C, 2, k) of stream functions and pressures, and squared jumps (C,) of the
    tangential and normal velocity with their penalties."""

    state: FlowState
    weights: Array
    jumps: Array


@dataclass(frozen=True, eq=False)
class FaceTractions:
    """On pairs of cells and faces: λ (P, q), the tangential traction T_t (P, q), u_t - û (P, q) where a face or the
    boundary prescribes û."""

    normal: Array
    tangential: Array
    gap: Array


def tractions(system: FlowSystem, pairs: Array, state: FlowState, on: FaceValues) -> FaceTractions:
    """The tractions with which cells act on faces and patches."""
    local, boundary = system.local, system.local.boundary
    tangents, normals = local.tangents[pairs], local.normals[pairs]
    here = state.stream[local.cell[pairs]]
    along = np.einsum("pqf,pqf->pq", tangents, on.velocity)
    outside = np.zeros(along.shape)
    inner, outer = np.flatnonzero(pairs < local.interior), np.flatnonzero(pairs >= local.interior)
    patch = pairs[outer] - local.interior
    outside[inner] = state.tangential[local.face[pairs[inner]]] @ local.tangential_functions.T
    outside[outer] = np.einsum("pqf,pqf->pq", tangents[outer], boundary.values[patch])
    gap = along - outside
    tangential = np.einsum("pqk,pk->pq", on.traction, here) - (on.penalty + np.maximum(-on.drift, 0.0)) * gap
    normal = state.normal[local.face[pairs]] @ local.normal_functions.T
    known = boundary.natural[patch] - np.einsum("pqfg,pqg->pqf", boundary.robin[patch], on.velocity[outer])
    free = ~boundary.normal[patch]
    normal[outer[free]] = -np.einsum("pqf,pqf->pq", normals[outer], known)[free]
    loose = ~boundary.tangential[patch]
    tangential[outer[loose]] = np.einsum("pqf,pqf->pq", tangents[outer], known)[loose]
    gap[outer[loose]] = 0.0
    return FaceTractions(normal, tangential, gap)


class PressureRecovery:
    """Finds the pressures of states on one mesh; what does not depend on the state is prepared once."""

    def __init__(self, system: FlowSystem, density: float = 0.0) -> None:
        self.system, self.density = system, density
        self.cells = [(batch, *self._prepared(batch)) for batch in system.local.batches()]

    def _prepared(self, batch: CellBatch) -> tuple[Array, Array]:
        """Inverse Gram matrices (B, k, k), and the functions on faces with their weights (B, k, S q)."""
        local, cells, k = self.system.local, batch.cells, self.system.local.size
        _, weights, table = local.stream_tables(cells)
        half = local.mesh.halfwidths[cells]
        length = 2 * half.min(axis=1) / local.layer.degree
        shares, volume = weights[0] / weights[0].sum(), length**2 * weights.sum(axis=1)  # the same for whole cells
        gram = np.zeros((len(cells), k, k))
        for axis in range(2):
            one = table[:, 1 + axis]
            gram += (volume / half[:, axis] ** 2)[:, None, None] * ((one.T * shares) @ one)
        flat = batch.pairs.ravel()
        beside = local.values_on_pairs(flat).reshape(len(cells), -1, k)
        lengths = local.weights[flat].reshape(len(cells), -1) * (length / local.layer.degree)[:, None]
        tested = (lengths[:, :, None] * beside).swapaxes(1, 2)
        gram += np.matmul(tested, beside)
        row, column = np.nonzero(np.arange(k) >= local.functions.used[cells][:, None])
        gram[row, column, column] = 1.0
        return np.linalg.inv(gram), tested

    def recovered(self, state: FlowState, rate: Array | None = None) -> RecoveredFlow:
        """A state with its pressure; rate (C, k) : its derivative in time, where it has one."""
        system, local = self.system, self.system.local
        pressures, jumps = np.zeros_like(state.stream), np.zeros(local.mesh.count)
        coefficients = local.functions.whole_weights(state.stream[:, None])
        third = local.layer.derivative_coefficients(coefficients, THIRD)[..., 0]
        for batch, inverse, tested in self.cells:
            flat = batch.pairs.ravel()
            on = system.on_faces(flat, state)
            found = tractions(system, flat, state, on)
            spread = np.matmul(local.stretch[flat], state.stream[local.cell[flat]][:, :, None])[:, :, 0]
            border = found.normal + system.form.viscosity * (1 + system.form.transposed) * spread
            right = self._gradient(batch, state, rate, third[batch.cells])
            right += np.matmul(tested, border.reshape(len(batch.cells), -1, 1))[:, :, 0]
            pressures[batch.cells] = np.matmul(inverse, right[:, :, None])[:, :, 0]
            np.add.at(jumps, local.cell[flat], self._jumps(flat, on, found))
        return RecoveredFlow(state, np.stack([state.stream, pressures], axis=1), jumps)

    def _gradient(self, batch: CellBatch, state: FlowState, rate: Array | None, third: Array) -> Array:
        """∫ of the gradient of the pressure that momentum says, tested (B, k); third (B, 4, R) : Legendre coefficients
        of third derivatives of ψ."""
        local, form, cells = self.system.local, self.system.form, batch.cells
        points, weights, table = local.stream_tables(cells)
        half = local.mesh.halfwidths[cells]
        velocity, slope = local.flow_inside(table, cells, state.stream[cells])
        inertia = form.inertia(points.reshape(-1, 2), velocity.reshape(-1, 2), slope.reshape(-1, 2, 2)).value
        scales = np.stack([np.prod(half ** -np.array(index, dtype=float), axis=1) for index in THIRD], axis=1)
        scaled = local.layer.legendre(local.mesh.scaled(cells[:1], points[:1])[0])  # whole cells have the same grid
        xxx, xxy, xyy, yyy = np.moveaxis(np.matmul(third * scales[:, :, None], scaled.T), 1, 0)
        viscous = form.viscosity * np.stack([xxy + yyy, -xxx - xyy], axis=2)
        wanted = viscous - inertia.reshape(velocity.shape)
        if rate is not None:
            wanted -= self.density * local.flow_inside(table, cells, rate[cells])[0]
        shares = weights[0] / weights[0].sum()
        volume = (2 * half.min(axis=1) / local.layer.degree) ** 2 * weights.sum(axis=1)
        right = np.zeros((len(cells), local.size))
        for axis in range(2):
            right += (volume / half[:, axis])[:, None] * ((wanted[:, :, axis] * shares) @ table[:, 1 + axis])
        return right

    def _jumps(self, flat: Array, on: FaceValues, found: FaceTractions) -> Array:
        """Squared jumps (P,) of pairs, with their penalties."""
        local = self.system.local
        lost = np.einsum("pqf,pqf->pq", local.normals[flat], on.velocity)
        shares = local.layer.face_grid[1]
        outer = flat >= local.interior
        patch = flat[outer] - local.interior
        lost[outer] -= np.einsum("pqf,pqf->pq", local.normals[flat[outer]], local.boundary.values[patch])
        lost[outer] *= local.boundary.normal[patch][:, None]
        smooth = (lost * shares) @ local.normal_functions @ local.normal_functions.T
        return np.asarray((local.weights[flat] * on.penalty * (found.gap**2 + (lost - smooth) ** 2)).sum(axis=1))


def flow_network(tree: CellNode, local: FlowCells, weights: Array) -> CellNetwork:
    """Velocity and pressure as functions of the hidden layer; weights (C, 2 S, k) : of S stream functions, and then of
    as many pressures. The outputs are the fields, flow by flow."""
    homes = np.zeros(len(tree.leaves), dtype=int)
    homes[local.mesh.leaves] = np.arange(local.mesh.count)
    whole = output_weights(local, _Weighted(weights))  # (C, columns, 2 S)
    features, count = local.layer.features, weights.shape[1] // 2
    (hx, hy), (x, y, p) = local.mesh.halfwidths.T[:, :, None, None], local.form.places
    root = np.sqrt(features.width)  # by which the columns of a network are smaller than cosines
    cells, columns = whole.shape[:2]
    fields = np.zeros((cells, columns, count, 3))
    flat = whole[:, :, :count].transpose(1, 0, 2).reshape(columns, -1)
    for place, index, size in ((x, (0, 1), root / hy), (y, (1, 0), -root / hx)):
        fields[..., place] = size * derivative_weights(features, index, flat).reshape(columns, cells, count).swapaxes(0, 1)
    fields[..., p] = whole[:, :, count:]
    return CellNetwork(tree, features, local.mesh.boxes, fields.reshape(cells, columns, -1), homes)


@dataclass(frozen=True, eq=False)
class _Weighted:
    weights: Array


def residual_indicators(
    local: FlowCells, solution: RecoveredFlow, rate: Array | None = None
) -> tuple[Array, float, float]:
    """(h/p)² ∫ residual² / ν of each cell (C,), and ν ∫ |∇u|² and ν ∫ |u|² of the whole.

    rate (C, k) : weights of ρ ∂_t of the stream functions

    Of a fluid at rest the energy is rounding: that of its pressure, ∫ p² / ν, takes its place.
    """
    form, mesh = local.form, local.mesh
    indices = [(i, j) for i in range(4) for j in range(4 - i)]
    if rate is not None:
        solution = replace(solution, weights=np.concatenate([solution.weights, rate[:, None]], axis=1))
    points, weights, owners, tables = sampled(local, solution, indices)
    stream = {index: table[:, 0] for index, table in tables.items()}
    values = np.stack([stream[0, 1], -stream[1, 0]], axis=1)
    cross = stream[1, 1]
    rows = [np.stack([cross, stream[0, 2]], axis=1), np.stack([-stream[2, 0], -cross], axis=1)]
    slopes = np.stack(rows, axis=1)
    viscous = np.stack([stream[2, 1] + stream[0, 3], -stream[3, 0] - stream[1, 2]], axis=1)
    gradient = np.stack([tables[1, 0][:, 1], tables[0, 1][:, 1]], axis=1)
    left = gradient - form.viscosity * viscous + form.inertia(points, values, slopes).value
    if rate is not None:
        left += np.stack([tables[0, 1][:, 2], -tables[1, 0][:, 2]], axis=1)
    lengths = 2 * mesh.halfwidths.min(axis=1)[owners] / local.layer.degree
    squares = weights * lengths**2 * (left**2).sum(axis=1) / form.viscosity
    energy = form.viscosity * float((weights[:, None, None] * slopes**2).sum())
    pressed = float((weights * tables[0, 0][:, 1] ** 2).sum()) / form.viscosity
    energy = max(energy, COMPUTED * pressed)
    kinetic = form.viscosity * float((weights[:, None] * values**2).sum())
    return np.bincount(owners, squares, mesh.count), energy, kinetic


def side_forces(system: FlowSystem, state: FlowState) -> Array:
    """Force (B, 2) of the flow on each patch of the boundary, ∫ p n - ν (∂_n u + κ ∇(u·n)) by the weak residual."""
    local = system.local
    pairs = local.interior + np.arange(system.patches)
    if not len(pairs):
        return np.zeros((0, 2))
    found = tractions(system, pairs, state, system.on_faces(pairs, state))
    acting = found.normal[:, :, None] * local.normals[pairs] - found.tangential[:, :, None] * local.tangents[pairs]
    return np.asarray((local.weights[pairs][:, :, None] * acting).sum(axis=1))


def entering(local: FlowCells, state: FlowState, error: float) -> bool:
    """Whether more fluid than the error enters where the traction is given, which leaves no bound of its energy."""
    pairs = local.interior + np.flatnonzero(~local.boundary.normal)
    through = np.matmul(local.across[pairs], state.stream[local.cell[pairs]][:, :, None])[:, :, 0]
    flux = local.weights[pairs] * through
    return bool(-np.minimum(flux, 0.0).sum() > error * np.abs(flux).sum())
