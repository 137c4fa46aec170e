"""Messages where the adaptive loop of cells ends without the tolerance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.pde.monitor import Status
from rannpde.pde.problem.problem import Problem


def singularity(problem: Problem, at: float) -> str:
    """Return a message with the place where the solution of an initial value problem becomes singular, and a remedy."""
    where = f"{problem.domain.names[0]} = {at:.6g}"
    return f"the solution seems to become infinite or singular at {where}; end the interval before it"


@dataclass(frozen=True)
class Ending:
    """How the loop ended, after ``iterations`` of them.

    residual, residual_tolerance : the largest residual of a cell, and that with which a problem is called solved
    amplification : the factor from residuals to errors, the constant of stability; 1 where it is harmless
    undetermined : why the problem does not determine its solution, where that is known
    irremovable : the residual that no small change of the solution removes; 0 where it can be removed
    blow_up : where the solution becomes infinite, if it does
    """

    status: Status
    estimate: float
    tol: float
    residual: float
    residual_tolerance: float
    iterations: int
    amplification: float
    undetermined: str | None
    irremovable: float
    blow_up: float | None

    def detail(self, problem: Problem) -> str:
        """Return the reason and the remedy; empty where the status says all."""
        if self.status is Status.STALLED:
            known = f"two iterations differ by {self.estimate:.1e}, " if np.isfinite(self.estimate) else ""
            return f"{known}the largest residual of a cell is {self.residual:.1e} after {self.iterations} iterations"
        if self.blow_up is not None:
            return singularity(problem, self.blow_up)
        if self.status is Status.UNDETERMINED:
            return self._undetermined(problem)
        if self.status.by_caller and self.estimate <= self.tol and self.residual > self.residual_tolerance:
            left = f"a cell still leaves a residual of {self.residual:.1e}"
            return f"{self.status}; iterations agree to the tolerance, but {left}"
        return ""

    def _undetermined(self, problem: Problem) -> str:
        if self.undetermined is not None:
            return self.undetermined
        if self.irremovable > 0:
            return (
                f"no small change of the solution removes the residual of the equations, {self.irremovable:.1e} of "
                "their terms: there is no solution near this function, or the coefficient of the highest "
                "derivative vanishes inside, where solutions have several branches"
            )
        if self.amplification > 1:
            return (
                f"the problem is ill-conditioned: the solution may change by {self.amplification:.1e} times the "
                "residual of the equations; it is close to a problem with no or many solutions"
            )
        named = problem.free_constants
        what = f"a constant in {', '.join(named)}" if named else "a mode of the homogeneous problem"
        return f"the equations and conditions leave {what} free; add a condition that fixes it"
