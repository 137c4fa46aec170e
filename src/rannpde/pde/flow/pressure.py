"""The pressure inside cells, the fields as a network, and indicators of the error.

The pressure does no work on divergence-free velocities. It is computed afterwards, in each cell, from its gradient,
which the equations of momentum determine, and from the tractions of the faces: a combination p of the functions of the
cell with the least

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
from rannpde.pde.flow.assembly import FlowSystem
from rannpde.pde.flow.local import FlowCells
from rannpde.pde.flow.matrices import FlowState
from rannpde.pde.flow.tractions import FaceTractions, tractions
from rannpde.pde.weak.evaluation import output_weights, sampled
from rannpde.pde.weak.local import CellBatch
from rannpde.rounding import COMPUTED

THIRD = tuple((3 - j, j) for j in range(4))


@dataclass(frozen=True, eq=False)
class RecoveredFlow:
    """A state with its pressure: weights (C, 2 + S, k) of stream functions, pressures and scalars, and squared jumps
    (C,) of the tangential and normal velocity with their penalties."""

    state: FlowState
    weights: Array
    jumps: Array


class PressureRecovery:
    """Finds the pressures of states on one mesh; what does not depend on the state is prepared once."""

    def __init__(self, system: FlowSystem, density: float = 0.0) -> None:
        self.system, self.density, local = system, density, system.local
        self.lengths = 2 * local.mesh.halfwidths.min(axis=1) / local.layer.degree
        # functions on faces with their weights, (P, q, k)
        heavy = local.weights * (self.lengths / local.layer.degree)[local.cell][:, None]
        self.beside = heavy[:, :, None] * local.values_on_pairs(np.arange(len(local.cell)))
        self.inverse = np.empty((local.mesh.count, local.size, local.size))
        for batch in local.batches():
            self.inverse[batch.cells] = self._inverse(batch)
        self.third = [self._third(one.cells) for one in system.inertia.tables]

    def _inverse(self, batch: CellBatch) -> Array:
        """Inverse Gram matrices (B, k, k)."""
        local, cells, k = self.system.local, batch.cells, self.system.local.size
        _, weights, table = local.stream_tables(cells)
        half = local.mesh.halfwidths[cells]
        shares = weights[0] / weights[0].sum()  # the same for whole cells
        volume = self.lengths[cells] ** 2 * weights.sum(axis=1)
        gram = np.zeros((len(cells), k, k))
        for axis in range(2):
            one = table[:, 1 + axis]
            gram += (volume / half[:, axis] ** 2)[:, None, None] * ((one.T * shares) @ one)
        flat = batch.pairs.ravel()
        beside, tested = (one.reshape(len(cells), -1, k) for one in (local.values_on_pairs(flat), self.beside[flat]))
        gram += np.matmul(tested.swapaxes(1, 2), beside)
        row, column = np.nonzero(np.arange(k) >= local.functions.used[cells][:, None])
        gram[row, column, column] = 1.0
        return np.linalg.inv(gram)

    def _third(self, cells: Array) -> tuple[Array, Array]:
        """Third derivatives (4 Q, k) in [-1, 1]² of the functions of cells with one table, and their scales (4, B)."""
        local, half = self.system.local, self.system.local.mesh.halfwidths[cells]
        points = local.stream_tables(cells[:1])[0]
        table = local.layer.derivative_tables(local.mesh.scaled(cells[:1], points)[0], THIRD)
        if int(cells[0]) in local.mesh.parts:
            table = table @ local.functions.combinations[int(cells[0])]
        scales = np.stack([np.prod(half ** -np.array(index, dtype=float), axis=1) for index in THIRD])
        return np.ascontiguousarray(table.swapaxes(0, 1)).reshape(-1, local.size), scales

    def recovered(self, state: FlowState, rate: Array | None = None) -> RecoveredFlow:
        """A state with its pressure; rate (C, k) : its derivative in time, where it has one."""
        alone = state.alone
        acting = tractions(self.system, alone)
        pressures = self.pressures(alone, acting, None if rate is None else rate[None])[0]
        weights = np.stack([state.stream, pressures], axis=1)
        if self.system.form.scalars:
            weights = np.concatenate([weights, state.scalars], axis=1)
        return RecoveredFlow(state, weights, self._jumps(acting))

    def pressures(self, states: FlowState, acting: FaceTractions, rates: Array | None = None) -> Array:
        """Weights (s, C, k) of the pressures of several states along a first axis; acting : their tractions."""
        system, local = self.system, self.system.local
        spread = np.matmul(local.stretch, acting.here)  # (P, q, s)
        border = np.moveaxis(acting.normal, 0, 2) + system.form.viscosity * (1 + system.form.transposed) * spread
        right = system.inertia.gather @ np.matmul(border.transpose(0, 2, 1), self.beside).reshape(len(border), -1)
        total = right.reshape(local.mesh.count, len(states.stream), -1).swapaxes(0, 1)
        wanted = acting.carried
        for one, part, (table, scales) in zip(system.inertia.tables, system.inertia.slices, self.third, strict=True):
            own = states.stream[:, one.cells].reshape(-1, local.size)
            third = (table @ own.T).reshape(4, one.size, len(states.stream), len(one.cells)) * scales[:, None, None]
            viscous = np.stack([third[1] + third[3], -third[0] - third[2]]).swapaxes(1, 2)
            left = system.form.viscosity * viscous.reshape(2, len(states.stream), -1) - wanted[..., part]
            if rates is not None:
                left -= self.density * one.velocity(rates)
            tested = one.tested(
                np.stack([left[1], -left[0]])
            )  # with gradients, which are curls turned by a right angle
            total[:, one.cells] += (self.lengths[one.cells] ** 2)[:, None] * tested
        return np.asarray(np.matmul(self.inverse, total[..., None])[..., 0])

    def _jumps(self, acting: FaceTractions) -> Array:
        """Squared jumps (C,) of the velocity of one state around cells, with their penalties."""
        local = self.system.local
        smooth = (acting.lost * local.layer.face_grid[1]) @ local.normal_functions @ local.normal_functions.T
        squares = local.weights * acting.penalty * (acting.gap**2 + (acting.lost - smooth) ** 2)[0]
        return np.bincount(local.cell, squares.sum(axis=1), local.mesh.count)


def flow_network(tree: CellNode, local: FlowCells, weights: Array) -> CellNetwork:
    """Velocity, pressure and scalars as functions of the hidden layer; weights (C, f F, k) : of F stream functions,
    then of as many pressures, and of each scalar. The outputs are the fields, flow by flow."""
    homes = np.zeros(len(tree.leaves), dtype=int)
    homes[local.mesh.leaves] = np.arange(local.mesh.count)
    whole = output_weights(local, CellWeights(weights))  # (C, columns, f F)
    features, count = local.layer.features, weights.shape[1] // local.fields
    (hx, hy), (x, y, p) = local.mesh.halfwidths.T[:, :, None, None], local.form.columns
    root = np.sqrt(features.width)  # by which the columns of a network are smaller than cosines
    cells, columns = whole.shape[:2]
    fields = np.zeros((cells, columns, count, 1 + local.fields))
    flat = whole[:, :, :count].transpose(1, 0, 2).reshape(columns, -1)
    for column, index, size in ((x, (0, 1), root / hy), (y, (1, 0), -root / hx)):
        fields[..., column] = size * derivative_weights(features, index, flat).reshape(columns, cells, count).swapaxes(
            0, 1
        )
    for number, column in enumerate((p, *local.form.scalar_columns), start=1):
        fields[..., column] = whole[:, :, number * count : (number + 1) * count]
    return CellNetwork(tree, features, local.mesh.boxes, fields.reshape(cells, columns, -1), homes)


@dataclass(frozen=True, eq=False)
class CellWeights:
    """Weights (C, F, k) of any functions of cells."""

    weights: Array


def residual_indicators(
    local: FlowCells, solution: RecoveredFlow, rate: Array | None = None
) -> tuple[Array, float, float]:
    """(h/p)² ∫ residual² / ν of each cell (C,), and ν ∫ |∇u|² and ν ∫ |u|² of the whole.

    rate (C, k) : weights of ρ ∂_t of the stream functions

    Of a fluid at rest the energy is rounding: that of its pressure, ∫ p² / ν, replaces it.
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
    scalars = tables[0, 0][:, 2 : local.fields].T
    left = gradient - form.viscosity * viscous + form.inertia(points, values, slopes, scalars=scalars).value
    if rate is not None:
        left += np.stack([tables[0, 1][:, -1], -tables[1, 0][:, -1]], axis=1)
    lengths = 2 * mesh.halfwidths.min(axis=1)[owners] / local.layer.degree
    squares = weights * lengths**2 * (left**2).sum(axis=1) / form.viscosity
    energy = form.viscosity * float((weights[:, None, None] * slopes**2).sum())
    pressed = float((weights * tables[0, 0][:, 1] ** 2).sum()) / form.viscosity
    energy = max(energy, COMPUTED * pressed)
    kinetic = form.viscosity * float((weights[:, None] * values**2).sum())
    return np.bincount(owners, squares, mesh.count), energy, kinetic


def entering(local: FlowCells, state: FlowState, error: float) -> bool:
    """Whether more fluid than the error enters where the traction is given, which leaves no bound of its energy."""
    pairs = local.interior + np.flatnonzero(~local.boundary.normal)
    through = np.matmul(local.across[pairs], state.stream[local.cell[pairs]][:, :, None])[:, :, 0]
    flux = local.weights[pairs] * through
    return bool(-np.minimum(flux, 0.0).sum() > error * np.abs(flux).sum())
