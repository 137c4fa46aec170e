"""The pressure inside cells, the fields as a network, indicators of the error, and forces on sides.

Curls do not see the pressure. It is found afterwards, in each cell, from its gradient, which momentum says, and from
the tractions of the faces: a combination p of the functions of the cell with the least

    (h/n)² ∫_K |∇p - ν Δu + C|² + h/n² ∫_∂K (p - λ - (1 + κ) ν n·∂_n u)² ,

n the degree: the weights of both are those of the inverse inequalities of polynomials.
"""

from __future__ import annotations

from dataclasses import dataclass

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


def with_pressure(system: FlowSystem, state: FlowState) -> RecoveredFlow:
    """Recover the pressure of a state."""
    local = system.local
    pressures, jumps = np.zeros_like(state.stream), np.zeros(local.mesh.count)
    third = local.layer.derivative_coefficients(local.functions.whole_weights(state.stream[:, None]), THIRD)[..., 0]
    for batch in local.batches():
        flat = batch.pairs.ravel()
        on = system.on_faces(flat, state)
        found = tractions(system, flat, state, on)
        pressures[batch.cells] = _recovered(system, batch, state, third[batch.cells], found)
        lost = np.einsum("pqf,pqf->pq", local.normals[flat], on.velocity)
        shares = local.layer.face_grid[1]
        inner = flat < local.interior
        lost[~inner] -= np.einsum(
            "pqf,pqf->pq", local.normals[flat[~inner]], local.boundary.values[flat[~inner] - local.interior]
        )
        lost[~inner] *= local.boundary.normal[flat[~inner] - local.interior][:, None]
        smooth = (lost * shares) @ local.normal_functions @ local.normal_functions.T
        squares = (local.weights[flat] * on.penalty * (found.gap**2 + (lost - smooth) ** 2)).sum(axis=1)
        np.add.at(jumps, local.cell[flat], squares)
    return RecoveredFlow(state, np.stack([state.stream, pressures], axis=1), jumps)


def _recovered(system: FlowSystem, batch: CellBatch, state: FlowState, third: Array, found: FaceTractions) -> Array:
    """Weights (B, k) of the pressure; third (B, 4, R) : Legendre coefficients of third derivatives of ψ."""
    local, form = system.local, system.form
    cells, (count, k) = batch.cells, (len(batch.cells), local.size)
    points, weights, table = local.stream_tables(cells)
    here, half = state.stream[cells], local.mesh.halfwidths[cells]
    velocity, slope = local.flow_inside(table, cells, here)
    inertia = form.inertia(points.reshape(-1, 2), velocity.reshape(-1, 2), slope.reshape(-1, 2, 2)).value
    scales = np.stack([np.prod(half ** -np.array(index, dtype=float), axis=1) for index in THIRD], axis=1)
    scaled = local.layer.legendre(local.mesh.scaled(cells[:1], points[:1])[0])  # whole cells have the same grid
    xxx, xxy, xyy, yyy = np.moveaxis(np.matmul(third * scales[:, :, None], scaled.T), 1, 0)
    viscous = form.viscosity * np.stack([xxy + yyy, -xxx - xyy], axis=2)
    wanted = viscous - inertia.reshape(velocity.shape)
    length = 2 * half.min(axis=1) / local.layer.degree
    shares = weights[0] / weights[0].sum()  # the same for all whole cells
    volume = length**2 * weights.sum(axis=1)
    gram, right = np.zeros((count, k, k)), np.zeros((count, k))
    for axis in range(2):
        one = table[:, 1 + axis]
        gram += (volume / half[:, axis] ** 2)[:, None, None] * ((one.T * shares) @ one)
        right += (volume / half[:, axis])[:, None] * ((wanted[:, :, axis] * shares) @ one)
    flat = batch.pairs.ravel()
    spread = np.matmul(local.stretch[flat], state.stream[local.cell[flat]][:, :, None])[:, :, 0]
    border = (found.normal + form.viscosity * (1 + form.transposed) * spread).reshape(count, -1, 1)
    beside = local.values_on_pairs(flat).reshape(count, -1, k)
    shares = local.weights[flat].reshape(count, -1) * (length / local.layer.degree)[:, None]
    tested = (shares[:, :, None] * beside).swapaxes(1, 2)
    gram += np.matmul(tested, beside)
    right += np.matmul(tested, border)[:, :, 0]
    missing = np.arange(k) >= local.functions.used[cells][:, None]
    row, column = np.nonzero(missing)
    gram[row, column, column] = 1.0
    return np.asarray(np.linalg.solve(gram, right[:, :, None])[:, :, 0])


def flow_network(tree: CellNode, local: FlowCells, solution: RecoveredFlow) -> CellNetwork:
    """Velocity and pressure as functions of the hidden layer."""
    homes = np.zeros(len(tree.leaves), dtype=int)
    homes[local.mesh.leaves] = np.arange(local.mesh.count)
    whole = output_weights(local, solution)  # (C, columns, 2)
    features = local.layer.features
    (hx, hy), (x, y, p) = local.mesh.halfwidths.T[:, :, None], local.form.places
    root = np.sqrt(features.width)  # by which the columns of a network are smaller than cosines
    stream = whole[:, :, 0].T
    fields = np.zeros((*whole.shape[:2], 3))
    fields[:, :, x] = root * derivative_weights(features, (0, 1), stream).T / hy
    fields[:, :, y] = -root * derivative_weights(features, (1, 0), stream).T / hx
    fields[:, :, p] = whole[:, :, 1]
    return CellNetwork(tree, features, local.mesh.boxes, fields, homes)


def residual_indicators(local: FlowCells, solution: RecoveredFlow) -> tuple[Array, float, float]:
    """(h/p)² ∫ residual² / ν of each cell (C,), and ν ∫ |∇u|² and ν ∫ |u|² of the whole.

    Of a fluid at rest the energy is rounding: that of its pressure, ∫ p² / ν, takes its place.
    """
    form, mesh = local.form, local.mesh
    indices = [(i, j) for i in range(4) for j in range(4 - i)]
    points, weights, owners, tables = sampled(local, solution, indices)
    stream = {index: table[:, 0] for index, table in tables.items()}
    values = np.stack([stream[0, 1], -stream[1, 0]], axis=1)
    cross = stream[1, 1]
    rows = [np.stack([cross, stream[0, 2]], axis=1), np.stack([-stream[2, 0], -cross], axis=1)]
    slopes = np.stack(rows, axis=1)
    viscous = np.stack([stream[2, 1] + stream[0, 3], -stream[3, 0] - stream[1, 2]], axis=1)
    gradient = np.stack([tables[1, 0][:, 1], tables[0, 1][:, 1]], axis=1)
    left = gradient - form.viscosity * viscous + form.inertia(points, values, slopes).value
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
