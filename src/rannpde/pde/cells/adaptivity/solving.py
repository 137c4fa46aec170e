"""SOLVE: a stationary problem on the leaves of a tree, and the protocol of solvers that integrate in time instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.cells.basis.basis import BasisSample
from rannpde.pde.cells.interfaces.detection import Interfaces
from rannpde.pde.cells.mesh.mesh import Mesh, MeshBuilder
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.cells.network import DiscreteSolution, cell_network
from rannpde.pde.cells.stationary.newton import Newton
from rannpde.pde.cells.stationary.residuals import cell_residuals, losses_by_term
from rannpde.pde.cells.stationary.system import CellsSystem
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.functions import State
from rannpde.pde.initial import starting_point
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import field_sizes
from rannpde.rounding import EPS

AMPLITUDE_POINTS = 5
"""Points of a cell at which the size of the last solution is taken."""


class MeshSolver(Protocol):
    """Solves on a mesh, in coordinates of its own: a stationary problem, or time integration on a mesh of space."""

    @property
    def dim(self) -> int: ...

    @property
    def bounds(self) -> Array: ...

    def first_tree(self, basis: BasisSample) -> CellNode: ...

    def solve(
        self,
        tree: CellNode,
        basis: BasisSample,
        sizes: Array,
        last: DiscreteSolution | None,
        seed: int,
        number: int,
    ) -> DiscreteSolution: ...


def sampled_sizes(values: Array, before: Array) -> Array:
    """Return the sizes of the fields from values (M, fields); the previous ones where no value is finite."""
    reached = values[np.isfinite(values).all(axis=1)]
    return field_sizes(np.sqrt(np.mean(reached**2, axis=0))) if reached.any() else before


class StationarySolver:
    """Solves a stationary problem on given meshes.

    points (M, n) : held-out points; system : the one of the last mesh, whose factors give the constant of stability
    """

    def __init__(
        self,
        problem: Problem,
        tol: float,
        monitor: Monitor,
        tuning: CellsTuning,
        factors: Mapping[str, float],
        interfaces: Interfaces,
        points: Array,
    ) -> None:
        self.problem, self.tuning, self.factors, self.points = problem, tuning, factors, points
        self.interfaces = interfaces
        self.newton = None if problem.linear else Newton(tol, monitor, tuning, points)
        self.origin = starting_point(problem) if problem.domain.dim == 1 else None
        self.system: CellsSystem | None = None

    def solve(
        self,
        tree: CellNode,
        basis: BasisSample,
        sizes: Array,
        last: DiscreteSolution | None,
        seed: int,
        number: int,
        state: State,
    ) -> DiscreteSolution:
        """Solve the problem on the leaves of a tree, starting from a state."""
        names = self.problem.domain.names
        builder = MeshBuilder(self.problem.domain, basis, self.interfaces)
        mesh = builder.build(tree, tuple(map(names.index, self.problem.periodic)))
        weak_outflow = self._missed_conditions(mesh.tree, last)
        system = CellsSystem(self.problem, mesh, sizes, weak_outflow, self.factors, seed)
        self.system = system
        if self.origin is not None:
            system.amplitudes = self._running_amplitudes(mesh, state)
        if self.newton is None:
            weights, rank_deficient = system.solve(state)
            steps, status = 1, Status.CONVERGED
        else:
            weights, steps, status, rank_deficient = self.newton.solve(system, state, number, last is None)
        network = cell_network(mesh, weights)
        if last is None:  # residuals are relative to the sizes of the fields, which are known now
            system.sizes = sampled_sizes(network(self.points), sizes)
        equation_residuals, condition_residuals = cell_residuals(system, weights)
        losses = losses_by_term(system, weights)
        return DiscreteSolution(
            network, mesh, weights, equation_residuals, condition_residuals, losses, steps, status, rank_deficient
        )

    def _running_amplitudes(self, mesh: Mesh, state: State) -> dict[int, float]:
        """Return for each cell the largest size of an initial value problem up to there, relative to the whole.

        Where a solution grows, residuals from where it is small are amplified with it: they are relative to the size
        that the solution has reached.
        """
        leaves = [(cell.bounds, id(cell)) for _, cell in mesh.present]
        points = np.concatenate(
            [np.linspace(bounds[0, 0], bounds[0, 1], AMPLITUDE_POINTS)[:, None] for bounds, _ in leaves]
        )
        values = np.abs(state.derivative(points, (0,))).reshape(len(leaves), AMPLITUDE_POINTS, -1)
        largest = values.max(axis=1)
        if not np.isfinite(largest).all() or not (largest.max(axis=0) > 0).all():
            return {}
        order = np.argsort([abs(bounds.mean() - self.origin) for bounds, _ in leaves])
        reached = np.maximum.accumulate(largest[order], axis=0)
        shares = np.clip((reached / reached[-1]).max(axis=1), EPS, 1.0)
        return {leaves[k][1]: float(share) for k, share in zip(order, shares, strict=True)}

    def _missed_conditions(self, tree: CellNode, last: DiscreteSolution | None) -> Array:
        """Return the leaves in which the previous iteration missed prescribed values; all in the first iteration."""
        if last is None:
            return np.ones(len(tree.leaves), dtype=bool)
        centres = np.array([leaf.bounds.mean(axis=1) for leaf in tree.leaves])
        home = last.mesh.tree.locate(centres)
        return np.linalg.norm(last.condition_residuals, axis=1)[home] > self.tuning.outflow_misfit
