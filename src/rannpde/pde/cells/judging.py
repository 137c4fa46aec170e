"""What iterations over cells tell together: the error of the last one, whether more are worth it, whether it is
solved."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rannpde.pde.cells.tuning import CellsTuning

ROUNDING = 1e-9
"""Differences below are taken as they are: a smaller residual of the later iteration need not mean a smaller error."""
VAIN = 3
"""Iterations whose residuals are rounding, and which still differ, after which there is no hope."""
CLOSE, FREE = 1e-2, 1e3
"""Iterations that differ by less are approximations of one solution; by so many residuals, of many solutions."""
MENDED = 0.9
"""What two iterations with smaller cells must leave of a residual that would be vetoed; without a solution, it
stays."""


@dataclass(frozen=True)
class CellsIteration:
    """One iteration: cells, their degree, Newton steps, the largest residual, the change to the iteration before,
    seconds."""

    cells: int
    degree: int
    steps: int
    residual: float
    difference: float
    seconds: float

    def __str__(self) -> str:
        change = f", change {self.difference:.1e}" if np.isfinite(self.difference) else ""
        steps = f"{self.steps} step{'s' * (self.steps > 1)}"
        told = f"{self.cells} cells of degree {self.degree}, {steps}, residual {self.residual:.1e}"
        return f"{told}, {self.seconds:.2f} s{change}"


@dataclass(eq=False)
class Judge:
    """The iterations so far, and what follows from them.

    marching : iterations are marches; bent : along a line, where Newton's method is needed; cornered : there are
    corners or edges that all iterations resolve alike
    residuals : over the whole domain, by iteration; vetoes : the largest relative ones of iterations that agreed
    """

    tol: float
    tuning: CellsTuning
    marching: bool
    bent: bool
    cornered: bool
    iterations: list[CellsIteration] = field(default_factory=list)
    residuals: list[float] = field(default_factory=list)
    vetoes: list[float] = field(default_factory=list)

    def hear(self, one: CellsIteration, residual: float) -> None:
        """Of one more iteration, and of its residual in the root mean square."""
        self.iterations.append(one)
        self.residuals.append(residual)

    @property
    def lenient(self) -> float:
        """The largest residual of a cell in what is called solved."""
        return max(self.tuning.lenient, 0.5 * self.tol)

    def rounded(self, one: CellsIteration) -> bool:
        """Whether a residual is rounding, of second derivatives say, which smaller cells only make larger."""
        return not self.marching and one.residual < float(np.finfo(float).eps) * one.degree**4

    def estimate(self) -> float:
        """Of the error of the last iteration, from what it differs by from the one before, whose residual may be
        larger."""
        if len(self.iterations) < 2:
            return np.inf
        change = self.iterations[-1].difference
        if self.marching:
            return self.tuning.share * change * self._march_gain(change)
        if self.bent:  # residuals do not tell how errors grow along a line; one more iteration is cheap
            return change
        if self.cornered:  # what the corner spoils everywhere, iterations that resolve it alike have in common
            return self.tuning.cornered * change
        rounded = [one.difference for one in self.iterations if self.rounded(one)]
        change = max([change, *(one for one in rounded if np.isfinite(one))])  # of which one may be small by chance
        gain = self.tuning.trust * self.residuals[-1] / max(self.residuals[-2], 1e-300)
        gained = change * float(np.clip(gain, self.tuning.least, 1.0))
        return self.tuning.share * max(gained, min(change, ROUNDING))  # near rounding, residuals tell nothing of errors

    def _march_gain(self, change: float) -> float:
        """By how much the error of the last march is smaller than that of the one before, at least.

        Residuals of space do not tell the error in time: what iterations differ by must have fallen too.
        """
        before = self.iterations[-2].difference
        if not np.isfinite(before):
            return 1.0
        fallen = max(self.residuals[-1] / max(self.residuals[-2], 1e-300), change / max(before, 1e-300))
        return float(np.clip(self.tuning.trust * fallen, self.tuning.least_march, 1.0))

    def hopeless(self, agreed: bool) -> bool:
        """Whether many more cells have gained nothing: there is no solution, or what is left is rounding."""
        if not agreed and sum(self.rounded(one) for one in self.iterations) >= VAIN:
            return True
        first, small = 0, self.iterations[-1].residual <= self.lenient
        if small:  # what iterations differ by counts from the first two that leave little
            large = [k for k, one in enumerate(self.iterations) if one.residual > self.lenient]
            first = large[-1] + 2 if large else 1
        cells = np.array([one.cells for one in self.iterations[first:]])
        told = np.array([one.difference for one in self.iterations[first:]] if small else self.residuals)
        early = np.flatnonzero(cells * (4 if small else 16) <= cells[-1]) if len(cells) else cells
        later = len(cells) - early[-1] - 1 if len(early) else 0
        if len(self.iterations) < 4 or not (later >= 2 if small else 0 < later <= 2):
            return False
        gain = self.tuning.stall if small else self.tuning.stuck
        return bool(told[early[-1] + 1 :].min() > gain * told[early].min())

    def mendable(self, left: float) -> float:
        """By how much residuals must fall where iterations agree on what would be vetoed; 1 where nothing is to be
        done.

        left : the largest relative residual on fresh points. At corners of coefficients beside a Laplacian, equations
        are far from satisfied when values are right; where smaller cells have not mended it, they will not.
        """
        self.vetoes.append(left)
        bound = max(self.tuning.veto, 3 * self.tol)
        vain = len(self.vetoes) > 2 and left > MENDED * self.vetoes[-3]
        return 1.0 if left <= bound or vain else max(bound / left, self.tuning.boldest)

    def undetermined(self) -> bool:
        """Whether iterations that all satisfy the equations differ by far more than their residuals."""
        told = [one for one in self.iterations[-3:] if one.residual <= self.lenient]
        return len(told) == 3 and all(one.difference > max(CLOSE, FREE * one.residual) for one in told)
