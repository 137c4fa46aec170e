"""Newton's method on one mesh, with a line search, and with what it has learnt about its own convergence.

The first step goes from a function to weights, others between these. Close to the solution a change c is followed by
one of about κ c². The largest κ seen is remembered over the meshes of a solve: an iteration that starts from the one
before needs one step, since the second would only confirm that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.cells.network import Weights, cell_network
from rannpde.pde.cells.system import CellsSystem
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.functions import State
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.residual import apart

STEADY = 1e-6
"""A step that changes the solution by less and gains nothing has arrived at rounding."""
SHORTEST = 1 / 64
"""Step of the line search below which it gives up."""
NEAR, SAFE = 0.3, 10.0
"""Changes above say nothing of κ; the factor by which κ may be larger on another mesh."""


class Newton:
    """Solves systems one after the other; points (M, n) : where the first change is measured."""

    def __init__(self, tol: float, monitor: Monitor, tuning: CellsTuning, points: Array) -> None:
        self.tol, self.monitor, self.tuning, self.points = tol, monitor, tuning, points
        self.growth = np.inf
        """κ, as far as seen."""

    def solve(
        self, system: CellsSystem, state: State, number: int, first: bool, checkpoint: Callable[[], None]
    ) -> tuple[Weights, int, Status, bool]:
        """Weights, steps, how it ended, and whether something is left free.

        number : of the iteration; first : whether there is no other, so that what is there counts when time is up
        """
        weights, free = system.solve(state, checkpoint)
        before = np.inf
        if not first:
            still = (0,) * self.points.shape[1]
            old, new = (one.derivative(self.points, still) for one in (state, cell_network(system.mesh, weights)))
            before = apart(old, new)
            if self._ready(before):
                return weights, 1, Status.CONVERGED, free
        for step in range(2, self.tuning.newton_steps + 1):
            self.monitor.tell(number, step, width=len(system.mesh.cells))
            if self.monitor.exhausted and first:
                return weights, step, Status.BUDGET, free
            try:
                aim, free = system.solve(weights, checkpoint)
            except np.linalg.LinAlgError:  # the equations have no linearisation at what the step before has led to
                return weights, step, Status.NEWTON, free
            length, norm = 1.0, system.norm(weights)
            while length >= SHORTEST and not system.norm(weights.towards(aim, length)) < norm * (1 - 1e-4 * length):
                length /= 2
            if length < SHORTEST:
                arrived = weights.distance(aim) < STEADY
                return weights, step, Status.CONVERGED if arrived else Status.NEWTON, free
            trial = weights.towards(aim, length)
            change, weights = weights.distance(trial), trial
            if length < 1.0:
                before = np.inf
                continue
            if change < STEADY and change > 0.3 * before:  # rounding
                return weights, step, Status.CONVERGED, free
            if STEADY < before < NEAR:
                self.growth = max(change / before**2, self.growth if np.isfinite(self.growth) else 0.0)
            if change < 0.01 * self.tol or self._ready(change):
                return weights, step, Status.CONVERGED, free
            before = change
        return weights, self.tuning.newton_steps, Status.NEWTON, free

    def _ready(self, change: float) -> bool:
        """Whether the step after one that changed the solution by so much would change nothing that counts."""
        return change < NEAR and SAFE * self.growth * change**2 < 0.1 * self.tol
