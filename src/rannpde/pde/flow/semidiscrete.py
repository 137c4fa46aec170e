"""A flow in time on one mesh: M ψ' + A(ψ, û, λ) = b(t), with the normal fluxes of faces as constraints.

The masses act within cells only. Tangential velocities û and multipliers λ of faces have no derivatives in time: an
index-2 system, whose stages are solved like a stationary flow with ρ σ u added, σ a number of the integrator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.sparse as sparse

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.flow.assembly import FlowSystem
from rannpde.pde.flow.evolution import FlowEvolution
from rannpde.pde.flow.local import FlowCells
from rannpde.pde.flow.matrices import FlowMatrices, FlowState
from rannpde.pde.weak.local import CellBatch


@dataclass(frozen=True, eq=False)
class FlowVector:
    """Weights of stream functions (C, k) and unknowns of faces (T,), or the residuals of their equations."""

    stream: Array
    traces: Array


@dataclass(frozen=True, eq=False)
class FlowGroup:
    """Cells with equally many faces and patches, and what does not change in time: the matrices without inertia,
    masses (B, k, k), the numbers (B, T) of the unknowns around."""

    cells: Array
    still: FlowMatrices
    mass: Array
    dofs: Array

    def part(self, rows: slice) -> FlowMatrices:
        """The matrices without inertia of some of the cells."""
        return FlowMatrices(*(getattr(self.still, one.name)[rows] for one in fields(FlowMatrices)))

    @cached_property
    def block(self) -> Array:
        """The matrices without inertia as one (B, k + T, k + T)."""
        still = self.still
        above = np.concatenate([still.square, still.upper], axis=2)
        return np.concatenate([above, np.concatenate([still.lower, still.corner], axis=2)], axis=1)


def joined_matrices(parts: list[FlowMatrices]) -> FlowMatrices:
    """The matrices of several batches as those of one."""
    names = [one.name for one in fields(FlowMatrices)]
    return FlowMatrices(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


class SemiDiscreteFlow:
    """The matrices, the inertia and the loads of a flow in time on a mesh."""

    def __init__(self, evolution: FlowEvolution, local: FlowCells, check_budget: Callable[[], None]) -> None:
        self.evolution, self.local, self.check_budget = evolution, local, check_budget
        self.system = FlowSystem(local)
        batches: dict[tuple[int, int], list[CellBatch]] = {}
        for batch in local.batches():
            batches.setdefault((batch.faces, batch.pairs.shape[1]), []).append(batch)
        self.batches = list(batches.values())
        still = [joined_matrices([self.system.still(one) for one in some]) for some in self.batches]
        self.groups = [
            FlowGroup(
                np.concatenate([one.cells for one in some]), matrices,
                np.concatenate([self._mass(one) for one in some]),
                np.concatenate([self.system.dofs(one) for one in some]),
            )
            for some, matrices in zip(self.batches, still, strict=True)
        ]  # fmt: skip
        dofs = np.concatenate([group.dofs.ravel() for group in self.groups])
        one = np.ones(len(dofs))
        self.scatter = sparse.csr_matrix((one, (dofs, np.arange(len(dofs)))), (self.system.total, len(dofs)))
        self._steady: FlowVector | None = None

    def _mass(self, batch: CellBatch) -> Array:
        """ρ ∫ u·v of cells (B, k, k)."""
        local = self.local
        _, weights, table = local.stream_tables(batch.cells)
        shares, volume = weights[0] / weights[0].sum(), weights.sum(axis=1)
        half = local.mesh.halfwidths[batch.cells]
        masses = np.zeros((len(batch.cells), local.size, local.size))
        for axis in range(2):
            one = table[:, 1 + axis]
            masses += (self.evolution.density * volume / half[:, axis] ** 2)[:, None, None] * ((one.T * shares) @ one)
        return masses

    @property
    def shape(self) -> tuple[int, int]:
        return self.local.mesh.count, self.local.size

    def state(self, vector: FlowVector) -> FlowState:
        """A vector of the evolution as a state of the stationary flow."""
        states = self.states(FlowVector(vector.stream[None], vector.traces[None]))
        return FlowState(states.stream[0], states.tangential[0], states.normal[0])

    def states(self, vectors: FlowVector) -> FlowState:
        """Several vectors as states of the stationary flow, stacked along the first axis."""
        split, count = self.system.faces * self.system.m, len(vectors.stream)
        tangential = vectors.traces[:, :split].reshape(count, -1, self.system.m)
        return FlowState(vectors.stream, tangential, vectors.traces[:, split:].reshape(count, -1, self.system.n))

    # ------------------------------------------------------------------------------------------------------- vectors

    def weighted(self, stream: Array) -> Array:
        """M times weights (…, C, k)."""
        product = np.zeros_like(stream)
        for group in self.groups:
            product[..., group.cells, :] = np.matmul(group.mass, stream[..., group.cells, :, None])[..., 0]
        return product

    def norm(self, stream: Array) -> float:
        """The root of the mean of ρ |u|² in space."""
        return float(np.sqrt(max(float((stream * self.weighted(stream)).sum()), 0.0)))

    def move(self, time: float) -> None:
        """Set the time at which data are evaluated."""
        self.evolution.moment.value = time
        if self.evolution.moving:
            self.local.read_conditions()

    def loads(self, time: float) -> FlowVector:
        """The loads b at a time."""
        if self._steady is not None:
            return self._steady
        system = self.system
        self.move(time)
        loads = FlowVector(np.zeros(self.shape), np.zeros(system.total))
        for some in self.batches:
            for batch in some:
                load, data = system.loads(batch)
                loads.stream[batch.cells] = load
                np.add.at(loads.traces, system.dofs(batch), data)
        if not self.evolution.moving:
            self._steady = loads
        return loads

    def residual(self, time: float, vector: FlowVector) -> FlowVector:
        """A(ψ, û, λ) - b(t)."""
        residuals = self.residuals(np.array([time]), FlowVector(vector.stream[None], vector.traces[None]))
        return FlowVector(residuals.stream[0], residuals.traces[0])

    def residuals(self, times: Array, vectors: FlowVector) -> FlowVector:
        """A(ψ, û, λ) - b(t) of several states, weights (s, C, k) and unknowns of faces (s, T), at times (s,)."""
        count, k, split = len(times), self.local.size, self.system.faces * self.system.m
        loads, prescribed = [], []
        for time in times.tolist():
            loads.append(self.loads(time))
            prescribed.append(self.local.boundary.values)

        def move(number: int) -> None:
            self.evolution.moment.value = float(times[number])

        tangential = vectors.traces[:, :split].reshape(count, self.system.faces, self.system.m)
        stream, around = self.system.inertia.forces(vectors.stream, tangential, np.stack(prescribed), move)
        stream -= np.stack([one.stream for one in loads])
        traces = -np.stack([one.traces for one in loads])
        traces[:, :split] += around.reshape(count, -1)
        pieces = []
        for group in self.groups:
            here = np.concatenate([vectors.stream[:, group.cells], vectors.traces[:, group.dofs]], axis=2)
            applied = np.matmul(group.block, here.transpose(1, 2, 0))  # (B, k + T, s)
            stream[:, group.cells] += applied[:, :k].transpose(2, 0, 1)
            pieces.append(applied[:, k:].reshape(-1, count))
        traces += (self.scatter @ np.concatenate(pieces)).T
        return FlowVector(stream, np.where(self.system.active, traces, 0.0))

    def projected(self, values: Callable[[Array], Array], time: float) -> Array:
        """Weights (C, k) of the nearest velocity to values (M, 2) whose fluxes fit those of the boundary at a time."""
        data = self.loads(time).traces
        right = np.zeros(self.shape)
        blocks = []
        for some, group in zip(self.batches, self.groups, strict=True):
            mass = []
            for batch in some:
                points, weights, table = self.local.stream_tables(batch.cells)
                wanted = values(points.reshape(-1, 2)).reshape(*points.shape)
                right[batch.cells] = -self.evolution.density * self.system.tested(batch.cells, weights, table, wanted)
                mass.append(self.system.regular(batch, self._mass(batch)))
            upper, lower, corner = (
                np.zeros_like(one) for one in (group.still.upper, group.still.lower, group.still.corner)
            )
            along = some[0].faces * self.system.m
            upper[:, :, along:], lower[:, along:] = group.still.upper[:, :, along:], group.still.lower[:, along:]
            index = np.arange(along)
            corner[:, index, index] = 1.0
            blocks.append((np.concatenate(mass), upper, lower, corner))
        fluxes = np.where(np.arange(len(data)) < self.system.faces * self.system.m, 0.0, data)
        return FactorisedFlow(self, blocks).solve(FlowVector(right, fluxes)).stream

    # ------------------------------------------------------------------------------------------------- factorisation

    def tangent(self, vector: FlowVector, time: float) -> list[FlowMatrices]:
        """The derivative of A at a state, by groups."""
        if self.evolution.form.inert:
            return [group.still for group in self.groups]
        self.move(time)
        state, groups = self.state(vector), []
        for some, group in zip(self.batches, self.groups, strict=True):
            ends = np.cumsum([0, *(len(one.cells) for one in some)]).tolist()
            own = [group.part(slice(*ends)) for ends in pairwise(ends)]
            inertia = self.system.inertia
            groups.append(
                joined_matrices([inertia.added(one, state, still) for one, still in zip(some, own, strict=True)])
            )
            self.check_budget()
        return groups

    def factorised(self, tangent: list[FlowMatrices], shift: complex) -> FactorisedFlow:
        """The solution operator of A' + shift M."""
        blocks = [
            (one.square + shift * group.mass, one.upper, one.lower, one.corner)
            for group, one in zip(self.groups, tangent, strict=True)
        ]
        return FactorisedFlow(self, blocks)


class FactorisedFlow:
    """(A' + σM)⁻¹ by static condensation; blocks : cell–cell, cell–face, face–cell, face–face of every group."""

    def __init__(self, flow: SemiDiscreteFlow, blocks: list[tuple[Array, Array, Array, Array]]) -> None:
        self.flow = flow
        self.eliminated: list[tuple[Array, Array, Array]] = []
        pieces = []
        for group, (square, upper, lower, corner) in zip(flow.groups, blocks, strict=True):
            inverse = np.linalg.inv(square)
            response = np.matmul(inverse, upper)
            self.eliminated.append((inverse, response, lower))
            pieces.append((group.dofs, corner - np.matmul(lower, response)))
            checkpoint()
        self.factors = flow.system.factorised(pieces)

    def solve(self, right: FlowVector) -> FlowVector:
        """Weights and unknowns of faces for right-hand sides."""
        flow, active = self.flow, self.flow.system.active
        own, pieces = [], []
        for group, (inverse, _, lower) in zip(flow.groups, self.eliminated, strict=True):
            one = np.matmul(inverse, right.stream[group.cells][:, :, None])
            own.append(one)
            pieces.append(np.matmul(lower, one).ravel())
        traces = right.traces - flow.scatter @ np.concatenate(pieces)
        unknowns = np.zeros_like(traces)
        unknowns[active] = self.factors.solve(traces[active])
        stream = np.zeros(flow.shape, dtype=traces.dtype)
        for group, one, (_, response, _) in zip(flow.groups, own, self.eliminated, strict=True):
            stream[group.cells] = (one - np.matmul(response, unknowns[group.dofs][:, :, None]))[:, :, 0]
        return FlowVector(stream, unknowns)
