"""The resolution before an iteration of the weak form, and the state after it: a solution with its indicators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.cells.network import CellNetwork
from rannpde.pde.cells.time.trajectory import CellTrajectory
from rannpde.pde.weak.assembly import HybridSolution
from rannpde.pde.weak.local import LocalMatrices
from rannpde.pde.weak.mesh import WeakMesh

CHECK_POINTS = 4000
"""Fresh points at which two solutions are compared."""


@dataclass(frozen=True, eq=False)
class WeakResolution:
    """Cells and the degree of their functions."""

    tree: CellNode
    degree: int


@dataclass(frozen=True, eq=False)
class WeakState:
    """One solution: the function, its mesh and functions, values at the check points (M, F), squared indicators (C,).

    energy : ∫ A∇u·∇u of the whole; trajectory : of an evolution, with its number of steps in time
    """

    network: CellNetwork
    mesh: WeakMesh
    local: LocalMatrices
    solution: HybridSolution
    values: Array
    indicators: Array
    energy: float
    unknowns: int
    trajectory: CellTrajectory | None = None
    steps: int = 0

    @property
    def degree(self) -> int:
        return self.local.layer.degree

    @property
    def function(self) -> CellNetwork | CellTrajectory:
        """The fields as a function of space, or of time and space."""
        return self.network if self.trajectory is None else self.trajectory

    @property
    def relative_indicator(self) -> float:
        """The energy of the error over that of the solution, up to a constant."""
        return float(np.sqrt(self.indicators.sum() / max(self.energy, 1e-300)))
