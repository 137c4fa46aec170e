"""Values along paths at a fixed cost: the error against the reference, and what the interval says."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

from rannpde.studies.cell import PathsCell
from rannpde.studies.known_values import KnownValue
from rannpde.studies.run.fit import check_measured


@dataclass(frozen=True)
class PathsResult:
    """error : relative error against the reference; halfwidth : relative half-width of the 95 % interval; seconds :
    time of the solve."""

    error: float
    halfwidth: float
    seconds: float

    def __post_init__(self) -> None:
        for name in ("error", "halfwidth", "seconds"):
            check_measured(name, getattr(self, name))

    @property
    def last_error(self) -> float:
        """The error of the value."""
        return self.error


def run_paths(cell: PathsCell) -> PathsResult:
    """Solve the cell's problem with the same number of steps, neurons and paths in every dimension."""
    # the solvers of all methods, which no other cell needs: workers that fit functions start three times as fast
    from rannpde.pde.paths.method import Paths
    from rannpde.pde.paths.solution import PathsSolution
    from rannpde.pde.solution import ConvergenceWarning
    from rannpde.pde.solve import solve

    target = cell.target
    assert isinstance(target, KnownValue)  # its curve was made for it
    method = Paths(steps=cell.steps, width=cell.width, training=cell.training, paths=cell.paths)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the tolerance is out of reach on purpose
        solution = solve(target.problem, at=0.0, tol=1e-12, method=method, rng=cell.seed)
    assert isinstance(solution, PathsSolution)
    size = abs(target.reference)
    return PathsResult(
        abs(solution.value - target.reference) / size, solution.half_width / size, time.perf_counter() - started
    )
