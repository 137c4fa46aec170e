"""Newton's method for inertia, with continuation in the Reynolds number where it does not contract.

Inertia is taken in shares s, which is a flow of the Reynolds number s·Re. Steps of Newton's method that do not become
shorter show that the start was too far from the solution (Deuflhard): the step of s is halved then, and doubled where
few iterations sufficed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.flow.assembly import FlowSystem
from rannpde.pde.flow.local import FlowCells
from rannpde.pde.flow.matrices import FlowState
from rannpde.pde.newton import NewtonFailure, NewtonIteration
from rannpde.pde.weak.settings import WeakSettings


@dataclass(frozen=True)
class FlowStep:
    """A step of Newton's method from one flow to the next; size : their relative distance."""

    aim: FlowState
    size: float

    def accepted(self, before: Sequence[float]) -> FlowState | None:
        """The next flow; None where steps have become longer, after the first one, which may be short by chance."""
        return self.aim if len(before) < 2 or self.size < before[-1] else None


@dataclass(frozen=True)
class FlowNewton:
    """Newton's method on one mesh; tol : relative size of the last step."""

    tol: float
    settings: WeakSettings

    def solve(self, system: FlowSystem, known: Callable[[Array], Array] | None) -> tuple[FlowState, int]:
        """The flow and the number of steps, NewtonFailure where there is none; known : velocities (M, 2) at points on
        another mesh, or None."""
        if system.local.form.linear:
            return system.solve(system.rest()), 0
        start = projected(system, known) if known is not None else creeping(system)
        try:
            return self._iteration.run(partial(flow_step, system), start)
        except NewtonFailure as failure:
            steps = failure.steps
        return self.continued(system, steps)

    @property
    def _iteration(self) -> NewtonIteration:
        return NewtonIteration(self.tol, self.settings.newton, "the Reynolds number")

    def continued(self, system: FlowSystem, steps: int = 0) -> tuple[FlowState, int]:
        """The flow and the number of steps by continuation in the Reynolds number; steps : taken before."""
        rest = creeping(system)
        return self._iteration.continued(lambda share: partial(flow_step, system.at(share)), rest, rest, 0.5, steps)


def creeping(system: FlowSystem) -> FlowState:
    """The flow without inertia."""
    return system.at(0.0).solve(system.rest())


def flow_step(system: FlowSystem, state: FlowState) -> FlowStep:
    """A step of Newton's method."""
    flow = system.solve(state)
    return FlowStep(flow, flow_distance(system.local, flow, state))


def flow_distance(local: FlowCells, one: FlowState, other: FlowState) -> float:
    """Relative distance of two flows in about the L² norm of their velocities."""
    held = local.constants(np.arange(local.mesh.count))

    def moving(stream: Array) -> Array:
        return np.asarray(stream - (stream * held).sum(axis=1, keepdims=True) * held)

    gap, size = (float(np.linalg.norm(moving(stream))) for stream in (one.stream - other.stream, one.stream))
    distance = gap / max(size, 1e-300)
    for here, there in zip(one.scalars.swapaxes(0, 1), other.scalars.swapaxes(0, 1), strict=True):
        distance = max(distance, float(np.linalg.norm(here - there)) / max(float(np.linalg.norm(here)), 1e-300))
    return distance


def projected(system: FlowSystem, known: Callable[[Array], Array]) -> FlowState:
    """A flow with its scalars (velocities and scalars (M, 2 + S) at points) in the functions of a mesh, by least
    squares in each cell."""
    local, state = system.local, system.rest()
    for batch in local.batches():
        points, weights, table = local.stream_tables(batch.cells)
        wanted = known(points.reshape(-1, 2)).reshape(*weights.shape, -1)
        shares = weights[0] / weights[0].sum()  # the same for all whole cells
        hx, hy = local.mesh.halfwidths[batch.cells].T
        x, y = table[:, 1], table[:, 2]
        squares = [(one.T * shares) @ one for one in (x, y)]
        right = (wanted[:, :, 0] / hy[:, None] * shares) @ y - (wanted[:, :, 1] / hx[:, None] * shares) @ x
        gram = squares[0] / hx[:, None, None] ** 2 + squares[1] / hy[:, None, None] ** 2
        index = np.arange(local.size)
        gram[:, index, index] += 1e-12 * np.trace(gram, axis1=1, axis2=2)[:, None] / local.size
        state.stream[batch.cells] = np.linalg.solve(gram, right[:, :, None])[:, :, 0]
        if local.form.scalars:
            mass = (table[:, 0].T * shares) @ table[:, 0]
            mass[index, index] += 1e-12 * np.trace(mass) / local.size
            tested = np.matmul((table[:, 0].T * shares), wanted[:, :, 2:])
            state.scalars[batch.cells] = np.linalg.solve(mass, tested).swapaxes(1, 2)
    points, _ = local.mesh.face_points(local.layer.nodes)
    if len(points):
        tangents, shares = local.tangents[: len(points)], local.layer.face_grid[1]
        values = known(points.reshape(-1, 2)).reshape(*points.shape[:2], -1)
        state.tangential[:] = ((values[:, :, :2] * tangents).sum(axis=2) * shares) @ local.tangential_functions
        if local.form.scalars:
            state.traces[:] = np.matmul((values[:, :, 2:] * shares[:, None]).swapaxes(1, 2), local.layer.face_functions)
    return state
