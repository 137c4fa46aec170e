"""A flow in time on one mesh: M ψ' + A(ψ, û, λ) = b(t), with the normal fluxes of faces as constraints.

The masses act within cells only. Tangential velocities û and multipliers λ of faces have no derivatives in time: an
index-2 system, whose stages are solved like a stationary flow with ρ σ u added, σ a number of the integrator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.flow.assembly import FlowMatrices, FlowState, FlowSystem
from rannpde.pde.flow.evolution import FlowEvolution
from rannpde.pde.flow.local import FlowCells
from rannpde.pde.weak.local import CellBatch


@dataclass(frozen=True, eq=False)
class FlowVector:
    """Weights of stream functions (C, k) and unknowns of faces (T,), or what is left of their equations."""

    stream: Array
    traces: Array


@dataclass(frozen=True, eq=False)
class FlowGroup:
    """A batch of cells with what does not change in time: the matrices without inertia, masses (B, k, k), the numbers
    (B, T) of the unknowns around."""

    batch: CellBatch
    still: FlowMatrices
    mass: Array
    places: Array


class SemiDiscreteFlow:
    """The matrices, the inertia and the loads of a flow in time on a mesh."""

    def __init__(self, evolution: FlowEvolution, local: FlowCells, pause: Callable[[], None]) -> None:
        self.evolution, self.local, self.pause = evolution, local, pause
        self.system = FlowSystem(local)
        rest, still = self.system.rest(), self.system.at(0.0)
        self.groups = []
        for batch in local.batches():
            found = still.matrices(batch, rest)
            self.groups.append(FlowGroup(batch, found, self._mass(batch), self.system.places(batch)))
            pause()
        self._steady: FlowVector | None = None

    def _mass(self, batch: CellBatch) -> Array:
        """ρ ∫ u·v of cells (B, k, k)."""
        local = self.local
        _, weights, table = local.stream_tables(batch.cells)
        shares, volume = weights[0] / weights[0].sum(), weights.sum(axis=1)
        half = local.mesh.halfwidths[batch.cells]
        found = np.zeros((len(batch.cells), local.size, local.size))
        for axis in range(2):
            one = table[:, 1 + axis]
            found += (self.evolution.density * volume / half[:, axis] ** 2)[:, None, None] * ((one.T * shares) @ one)
        return found

    @property
    def shape(self) -> tuple[int, int]:
        return self.local.mesh.count, self.local.size

    def state(self, vector: FlowVector) -> FlowState:
        """The same as a state of the stationary flow."""
        split = self.system.faces * self.system.m
        traces = vector.traces
        return FlowState(vector.stream, traces[:split].reshape(-1, self.system.m), traces[split:].reshape(-1, self.system.n))

    # ------------------------------------------------------------------------------------------------------- vectors

    def weighted(self, stream: Array) -> Array:
        """M times weights (C, k)."""
        found = np.zeros_like(stream)
        for group in self.groups:
            found[group.batch.cells] = np.matmul(group.mass, stream[group.batch.cells][:, :, None])[:, :, 0]
        return found

    def norm(self, stream: Array) -> float:
        """The root of the mean of ρ |u|² in space."""
        return float(np.sqrt(max(float((stream * self.weighted(stream)).sum()), 0.0)))

    def loads(self, time: float) -> FlowVector:
        """b at a time."""
        if self._steady is not None:
            return self._steady
        local, system = self.local, self.system
        self.evolution.moment.value = time
        if self.evolution.moving:
            local.boundary = local._boundary()
        found = FlowVector(np.zeros(self.shape), np.zeros(system.total))
        still = system.at(0.0)
        for group in self.groups:
            load, data = still.loads(group.batch)
            found.stream[group.batch.cells] = load
            np.add.at(found.traces, group.places, data)
        if not self.evolution.moving:
            self._steady = found
        return found

    def residual(self, time: float, vector: FlowVector) -> FlowVector:
        """A(ψ, û, λ) - b(t)."""
        loads = self.loads(time)
        stream, traces = -loads.stream, -loads.traces
        own, around = self.system.inertia(self.state(vector))
        stream += own
        traces += around
        for group in self.groups:
            here, beside = vector.stream[group.batch.cells][:, :, None], vector.traces[group.places][:, :, None]
            still = group.still
            stream[group.batch.cells] += (np.matmul(still.square, here) + np.matmul(still.upper, beside))[:, :, 0]
            found = np.matmul(still.lower, here) + np.matmul(still.corner, beside)
            np.add.at(traces, group.places, found[:, :, 0])
        return FlowVector(stream, np.where(self.system.active, traces, 0.0))

    def projected(self, values: Callable[[Array], Array], time: float) -> Array:
        """Weights (C, k) of the nearest velocity to values (M, 2) whose fluxes fit those of the boundary at a time."""
        data = self.loads(time).traces
        right = np.zeros(self.shape)
        for group in self.groups:
            points, weights, table = self.local.stream_tables(group.batch.cells)
            wanted = values(points.reshape(-1, 2)).reshape(*points.shape)
            right[group.batch.cells] = -self.evolution.density * self.system.tested(group.batch.cells, weights, table, wanted)
        split = self.system.faces * self.system.m
        bare = []
        for group in self.groups:
            upper, lower, corner = (np.zeros_like(one) for one in (group.still.upper, group.still.lower, group.still.corner))
            along = group.batch.faces * self.system.m
            upper[:, :, along:], lower[:, along:] = group.still.upper[:, :, along:], group.still.lower[:, along:]
            index = np.arange(along)
            corner[:, index, index] = 1.0
            bare.append((self.system.regular(group.batch, group.mass.copy()), upper, lower, corner))
        return FactorisedFlow(self, bare).solve(FlowVector(right, np.where(np.arange(len(data)) < split, 0.0, data))).stream

    # ------------------------------------------------------------------------------------------------- factorisation

    def tangent(self, vector: FlowVector, time: float) -> list[FlowMatrices]:
        """The derivative of A at a state, by groups."""
        self.evolution.moment.value = time
        state = self.state(vector)
        found = []
        for group in self.groups:
            found.append(self.system.matrices(group.batch, state))
            self.pause()
        return found

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
        self.kept: list[tuple[Array, Array, Array]] = []
        pieces = []
        for group, (square, upper, lower, corner) in zip(flow.groups, blocks, strict=True):
            inverse = np.linalg.inv(square)
            response = np.matmul(inverse, upper)
            self.kept.append((inverse, response, lower))
            pieces.append((group.places, corner - np.matmul(lower, response)))
            checkpoint()
        self.factors = flow.system.factorised(pieces)

    def solve(self, right: FlowVector) -> FlowVector:
        """Weights and unknowns of faces for right-hand sides."""
        flow, active = self.flow, self.flow.system.active
        traces = right.traces.astype(np.result_type(right.stream, self.kept[0][0]))
        own = []
        for group, (inverse, _, lower) in zip(flow.groups, self.kept, strict=True):
            one = np.matmul(inverse, right.stream[group.batch.cells][:, :, None])
            own.append(one)
            np.subtract.at(traces, group.places, np.matmul(lower, one)[:, :, 0])
        found = np.zeros_like(traces)
        found[active] = self.factors.solve(traces[active])
        stream = np.zeros(flow.shape, dtype=traces.dtype)
        for group, one, (_, response, _) in zip(flow.groups, own, self.kept, strict=True):
            stream[group.batch.cells] = (one - np.matmul(response, found[group.places][:, :, None]))[:, :, 0]
        return FlowVector(stream, found)
