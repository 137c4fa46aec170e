"""ESTIMATE: the error of the last iteration, and the stopping rules of the adaptive loop over cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from rannpde.pde.adaptivity.loop import ERROR_SHARE
from rannpde.pde.adaptivity.result import Iteration
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.tolerance import ESTIMATOR_FACTOR, GAIN, SAME_SOLUTION
from rannpde.rounding import EPS


@dataclass(eq=False)
class CellsEstimator:
    """The error estimator and stopping rules, with the iterations so far.

    in_time : whether iterations are time integrations; nonlinear_line : whether the problem is non-linear in one
        coordinate
    singular : whether there are corners or edges that all iterations resolve equally well
    order : highest derivative in the equations
    residuals : over the whole domain, by iteration; checked_residuals : the largest held-out ones of iterations that
        agreed
    """

    tol: float
    tuning: CellsTuning
    in_time: bool
    nonlinear_line: bool
    singular: bool
    order: int
    iterations: list[Iteration] = field(default_factory=list)
    residuals: list[float] = field(default_factory=list)
    checked_residuals: list[float] = field(default_factory=list)

    def record(self, iteration: Iteration, residual: float) -> None:
        """Record one more iteration, and the root mean square of its residual."""
        self.iterations.append(iteration)
        self.residuals.append(residual)

    @property
    def residual_tolerance(self) -> float:
        """The largest residual of a cell with which a problem may be called solved."""
        return max(self.tuning.cell_residual_tolerance, 0.5 * self.tol)

    def rounding(self, degree: int) -> float:
        """Return the relative residual that rounding leaves.

        A derivative of order m multiplies the rounding of a polynomial of degree p by p^2m (Markov's inequality).
        """
        return EPS * degree ** (2 * max(self.order, 2))

    def at_rounding(self, one: Iteration) -> bool:
        """Return whether a residual is rounding; smaller cells only increase it."""
        return not self.in_time and one.residual < self.rounding(one.degree or 1)

    def estimate(self) -> float:
        """Estimate the error of the last iteration from its difference to the previous one."""
        if len(self.iterations) < 2:
            return np.inf
        change = self.iterations[-1].difference
        if self.in_time:
            return ERROR_SHARE * change * self._gain_in_time(change)
        if self.nonlinear_line:  # on a line residuals do not show how errors grow, and one more iteration is cheap
            return max(change, self._amplified_rounding())
        if self.singular:  # pollution by a corner is the same in all iterations that resolve it equally well
            return self.tuning.singular_estimator_factor * change
        at_rounding = [one.difference for one in self.iterations if self.at_rounding(one)]
        # one of these differences may be small by chance
        change = max([change, *(one for one in at_rounding if np.isfinite(one))])
        gain = self.tuning.residual_gain_factor * self.residuals[-1] / max(self.residuals[-2], 1e-300)
        gain = gain * self._growth_of_stability() if self._differences_fall() else 1.0
        gained = change * float(np.clip(gain, self.tuning.min_gain, 1.0))
        # near rounding, residuals say nothing about errors
        return ERROR_SHARE * max(gained, min(change, self.tuning.gain_floor), self._predicted_change())

    def _amplified_rounding(self) -> float:
        """Return the difference that the rounding of the last two iterations may cause, 0 where it is not rounding.

        Of two iterations with residuals at rounding level, the difference over the larger residual is the factor by
        which the problem amplifies rounding. The largest factor so far is used: one difference may be small by chance.
        """
        ratios, largest = [], 0.0
        for before, now in pairwise(self.iterations):
            largest = max(before.residual, now.residual)
            rounded = self.at_rounding(before) and self.at_rounding(now)
            ratios.append(now.difference / largest if rounded and largest > 0 else 0.0)
        return largest * max(ratios) if ratios[-1] > 0 else 0.0

    def corrected(self, estimate: float) -> float:
        """Return the estimate of the previous iteration, raised where the last one, with no larger residual, differs by
        more.

        The estimate assumed that errors fall with residuals, which they need not in an ill-conditioned problem.
        """
        if self.residuals[-1] > self.residuals[-2]:
            return estimate
        return max(estimate, ERROR_SHARE * self.iterations[-1].difference)

    def _growth_of_stability(self) -> float:
        """Return the factor ≥ 1 by which the ratio of errors to residuals grew in the last iteration.

        The difference of two iterations is the error of the earlier one. Where a problem is ill-posed, every finer
        resolution amplifies residuals more than the one before, and its error falls less than its residual.
        """
        before = self.iterations[-2].difference
        if len(self.iterations) < 3 or not (np.isfinite(before) and before > 0):
            return 1.0
        fallen = self.residuals[-2] / max(self.residuals[-3], 1e-300)
        return max(1.0, self.iterations[-1].difference / before / max(fallen, 1e-300))

    def _differences_fall(self) -> bool:
        """Return whether the last difference is smaller than the one before; also where there is none before."""
        return self.iterations[-1].difference < self.iterations[-2].difference

    def _predicted_change(self) -> float:
        """Return the difference before the last one, reduced as much as the residual since; 0 where it is not known.

        Two iterations whose residuals are alike, since more functions did not help, may share their error: their
        difference is small by chance.
        """
        before = self.iterations[-2].difference
        if not np.isfinite(before) or self.at_rounding(self.iterations[-1]):
            return 0.0
        return before * min(self.residuals[-1] / max(*self.residuals[-3:-1], 1e-300), 1.0)

    def _gain_in_time(self, change: float) -> float:
        """Bound the ratio of the errors of the last two integrations from below.

        Residuals in space say nothing about errors in time: the difference of iterations must have decreased as well.
        """
        before = self.iterations[-2].difference
        if not np.isfinite(before):
            return 1.0
        fallen = max(self.residuals[-1] / max(self.residuals[-2], 1e-300), change / max(before, 1e-300))
        return float(np.clip(self.tuning.residual_gain_factor * fallen, self.tuning.min_gain_in_time, 1.0))

    def stagnated(self, agreed: bool) -> bool:
        """Return whether many more cells have not helped: there is no solution, or rounding is reached."""
        if not agreed and sum(self.at_rounding(one) for one in self.iterations) >= self.tuning.max_rounded_iterations:
            return True
        first, small = 0, self.iterations[-1].residual <= self.residual_tolerance
        if small:  # differences count from the first two iterations with small residuals on
            large = [k for k, one in enumerate(self.iterations) if one.residual > self.residual_tolerance]
            first = large[-1] + 2 if large else 1
        cells = np.array([one.width for one in self.iterations[first:]])
        values = np.array([one.difference for one in self.iterations[first:]] if small else self.residuals)
        early = np.flatnonzero(cells * (4 if small else 16) <= cells[-1]) if len(cells) else cells
        later = len(cells) - early[-1] - 1 if len(early) else 0
        if len(self.iterations) < 4 or not (later >= 2 if small else 0 < later <= 2):
            return False
        gain = GAIN**2 if small else GAIN**4  # for every doubling of the cells
        return bool(values[early[-1] + 1 :].min() > gain * values[early].min())

    def residual_reduction(self, left: float) -> float:
        """Return the factor by which residuals must fall before iterations that agree pass the residual check; 1 if
        none.

        left : the largest relative residual on held-out points. Where discontinuous coefficients of a Laplacian have
            corners, values may be accurate although the equations are not satisfied; if smaller cells have not helped
            so far, they will not.
        """
        self.checked_residuals.append(left)
        bound = max(self.tuning.residual_tolerance, ESTIMATOR_FACTOR * self.tol)
        stagnant = len(self.checked_residuals) > 2 and left > GAIN * self.checked_residuals[-3]
        return 1.0 if left <= bound or stagnant else max(bound / left, self.tuning.max_threshold_reduction)

    def undetermined(self) -> bool:
        """Return whether iterations that all satisfy the equations differ by far more than their residuals."""
        values = [one for one in self.iterations[-3:] if one.residual <= self.residual_tolerance]
        return len(values) == 3 and all(
            one.difference > max(SAME_SOLUTION, self.tuning.undetermined_ratio * one.residual) for one in values
        )
