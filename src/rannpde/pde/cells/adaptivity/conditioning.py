"""Defect times stability of a solution on cells, and whether its problem determines it at all."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.domain import SpaceTime
from rannpde.pde.cells.adaptivity.checks import (
    MeanDefect,
    defect_error,
    may_be_ill_conditioned,
    mean_defect,
    quadrature,
    stability_constant,
    transported_error,
)
from rannpde.pde.cells.adaptivity.integration_check import IntegrationCheck
from rannpde.pde.cells.network import DiscreteSolution
from rannpde.pde.cells.stationary.system import CellsSystem
from rannpde.pde.degeneracy import several_solutions
from rannpde.pde.discontinuities import without_smoothing
from rannpde.pde.functions import State
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import held_out_residual
from rannpde.pde.tolerance import COMPARABLE, ILL_POSED_RATIO, MUCH_SMALLER
from rannpde.pde.trapping import Trapping, trapping

MOST_AMPLIFICATION = float(np.finfo(float).eps) ** -0.5
"""Stability constant above which no residual in floating-point numbers is small enough."""


@dataclass(eq=False)
class Conditioning:
    """How much the residuals of a problem are amplified in its solution, as far as it is known.

    points (M, n) : held-out points; timed : whether cells of space are integrated in time, which has checks of its own
    integration : of an initial value problem of one coordinate that is not linear
    trapping : by a flow that is trapped; stability : that of residuals with random signs
    defect : the relative error by residuals of their present size, on a line or where nothing smooths them
    means : what the means of residuals over cells leave
    undetermined : why the problem does not determine its solution, where that is known
    """

    problem: Problem
    tol: float
    points: Array
    rng: np.random.Generator
    timed: bool
    integration: IntegrationCheck | None
    trapping: Trapping = field(default_factory=Trapping)
    stability: float = 0.0
    defect: float = 0.0
    means: MeanDefect = field(default_factory=MeanDefect)
    undetermined: str | None = None

    def __post_init__(self) -> None:
        self.line = self.problem.domain.dim == 1 and not self.timed
        self.suspect = may_be_ill_conditioned(self.problem)
        self.transported = not self.timed and without_smoothing(self.problem)
        evolves = not self.timed and isinstance(self.problem.domain, SpaceTime) and self.problem.domain.dim == 2
        self.damped = evolves and not self.transported and not self.problem.incomplete
        self.flows = any(jet.order == 1 for term in self.problem.interior for jet in term.expression.jets)

    @property
    def several(self) -> str | None:
        """Why the solution of an initial value problem is not unique; None where it is."""
        return None if self.integration is None else self.integration.several

    @property
    def blow_up(self) -> float | None:
        """Where the solution of a non-linear initial value problem becomes infinite."""
        return None if self.integration is None else self.integration.blow_up

    @property
    def turning(self) -> float:
        """The amplification by a trapped flow, 1 for none."""
        return self.trapping.amplification

    @property
    def amplification(self) -> float:
        """The largest factor that is known."""
        return max(self.stability, self.turning)

    @property
    def irremovable(self) -> float:
        """The residual that no change of the solution removes, where it exceeds the tolerance; else 0."""
        return self.means.irremovable(self.tol)

    @property
    def limited_by_rounding(self) -> bool:
        """Whether no residual in floating-point numbers is small enough."""
        return not self.stability <= MOST_AMPLIFICATION

    @property
    def grows_unchecked(self) -> bool:
        """Whether residuals are amplified by as much as backwards in time, or by missing conditions."""
        return self.problem.incomplete or self.stability > ILL_POSED_RATIO

    def linearise(self, state: State) -> None:
        """Measure the amplification by a trapped flow, which may depend on the solution."""
        if self.line or self.flows:
            self.trapping = trapping(self.problem, state)

    def trapped_error(self, state: State, residual: float) -> float:
        """Return the relative error that residuals leave where a flow is trapped: defect times stability, as residuals
        of two iterations may have the same sign.

        residual : the relative one, or rounding, for equations whose response to residuals is not known
        """
        error = self.trapping.error(self.problem, state)
        return self.turning * residual if error is None else error

    def compare_means(
        self, system: CellsSystem | None, now: DiscreteSolution, sizes: Array, degree: int, change: float, rounded: bool
    ) -> None:
        """Measure what the means of residuals over cells leave on a line.

        change : the relative difference to the solution before; rounded : whether residuals are rounding. They show
            no means then, but a solution that is near one with a known error has nearly the same: a load with an
            infinite peak is missed by cells as small as numbers allow.
        """
        known, self.means = self.means.error, MeanDefect()
        if not self.line or system is None or now.status.by_caller:
            return
        if rounded:
            self.means = MeanDefect(known - change if change < COMPARABLE * known else 0.0)
            return
        try:
            self.means = mean_defect(system, now, sizes, degree)
        except np.linalg.LinAlgError:  # the equations have no linearisation there
            return

    def measure(
        self, system: CellsSystem | None, now: DiscreteSolution, sizes: Array, degree: int, estimate: float,
        rounded: bool,
    ) -> None:  # fmt: skip
        """Measure the stability, and on a line or in transport the error that agreement does not show.

        estimate : the one by agreement; rounded : whether residuals are rounding, which show nothing more
        """
        self.defect = 0.0
        system = system if self.suspect else None
        if system is not None:
            self.stability = stability_constant(system, now, sizes, self.points, self.rng)
        if self.transported:
            self.defect = transported_error(self.problem, now.network, self.points)
        elif self.damped:
            tree = now.mesh.tree
            lengths = np.array([leaf.lengths[1] for leaf in tree.leaves])[tree.locate(self.points)]
            self.defect = transported_error(self.problem, now.network, self.points, lengths)
        if not self.line or self.limited_by_rounding:
            return
        if not self.problem.linear:
            left = max(held_out_residual(self.problem, now.network).values())
            self.undetermined = several_solutions(self.problem, now.network, estimate, left)
        if system is not None and not rounded:
            self.defect = defect_error(system, now, sizes, degree, self.rng)
        if self.integration is None:
            return
        self.undetermined = self.several or self.undetermined
        if self.undetermined is None and MUCH_SMALLER * self.stability > 1:  # elsewhere perturbations do not grow
            self.undetermined = self.integration.departure
        self.defect = max(self.defect, self.integration.error(now.network, *quadrature(now, degree)))
