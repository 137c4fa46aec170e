"""Newton's method on one mesh, with a line search and an estimate of its own convergence.

The first step goes from a function to weights, later ones between weights. Close to the solution a change c is followed
by a change of about κ c². The largest κ observed is remembered over the meshes of a solve: an iteration that starts
from the previous solution then needs a single step, since the second one would only confirm it.
"""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.cells.network import Weights, cell_network
from rannpde.pde.cells.stationary.residuals import row_norm
from rannpde.pde.cells.stationary.system import CellsSystem
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.functions import State
from rannpde.pde.monitor import Monitor, Status, status_of
from rannpde.pde.residual import relative_difference
from rannpde.pde.tolerance import ALGEBRA_SHARE, COMPARABLE, LINEAR_CHANGE, SUFFICIENT_DECREASE


class Newton:
    """Solves systems one after the other; points (M, n) : where the first change is measured."""

    def __init__(self, tol: float, monitor: Monitor, tuning: CellsTuning, points: Array) -> None:
        self.tol, self.monitor, self.tuning, self.points = tol, monitor, tuning, points
        self.quadratic_constant = np.inf
        """The largest κ observed."""

    def solve(self, system: CellsSystem, state: State, number: int, first: bool) -> tuple[Weights, int, Status, bool]:
        """Return weights, number of steps, status, and whether the system is rank deficient.

        number : of the adaptive iteration; first : whether it is the first; its partial result is returned when time is
            up
        """
        weights, rank_deficient = system.solve(state)
        before = np.inf
        if not first:
            order = (0,) * self.points.shape[1]
            old, new = (u.derivative(self.points, order) for u in (state, cell_network(system.mesh, weights)))
            before = relative_difference(old, new)
            if self._negligible_next_step(before):
                return weights, 1, Status.CONVERGED, rank_deficient
        for step in range(2, self.tuning.max_newton_steps + 1):
            self.monitor.tell(number, step, width=len(system.mesh.cells), counted="cells")
            if self.monitor.exhausted and first:
                return weights, step, self.monitor.ending, rank_deficient
            try:
                target, rank_deficient = system.solve(weights)
            # the previous step led to a state at which the equations cannot be linearised
            except np.linalg.LinAlgError:
                return weights, step, Status.NEWTON, rank_deficient
            except KeyboardInterrupt as stop:
                if not first:
                    raise
                return weights, step, status_of(stop)[0], rank_deficient
            length, norm = 1.0, row_norm(system, weights)
            shortest = self.tuning.newton_shortest_step
            while length >= shortest and not (
                row_norm(system, weights.moved_towards(target, length)) < norm * (1 - SUFFICIENT_DECREASE * length)
            ):
                length /= 2
            if length < shortest:
                negligible = weights.distance(target) < self.tuning.newton_rounding
                return weights, step, Status.CONVERGED if negligible else Status.NEWTON, rank_deficient
            trial = weights.moved_towards(target, length)
            change, weights = weights.distance(trial), trial
            if length < 1.0:
                before = np.inf
                continue
            if change < self.tuning.newton_rounding and change > COMPARABLE * before:  # rounding
                return weights, step, Status.CONVERGED, rank_deficient
            if self.tuning.newton_rounding < before < LINEAR_CHANGE:
                self.quadratic_constant = max(
                    change / before**2, self.quadratic_constant if np.isfinite(self.quadratic_constant) else 0.0
                )
            if change < ALGEBRA_SHARE * self.tol or self._negligible_next_step(change):
                return weights, step, Status.CONVERGED, rank_deficient
            before = change
        return weights, self.tuning.max_newton_steps, Status.NEWTON, rank_deficient

    def _negligible_next_step(self, change: float) -> bool:
        """Return whether the step after one with this change would be negligible."""
        return change < LINEAR_CHANGE and self.quadratic_constant * change**2 < ALGEBRA_SHARE * self.tol
