"""Whether a fit of unknowns is a result: its status with the reason, and what a report notes about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rannpde.pde.inverse.estimates import Parameter
from rannpde.pde.inverse.regression import RegressionResult
from rannpde.pde.inverse.settings import IdentificationSettings
from rannpde.pde.inverse.unknowns import Unknowns
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.measurements import Measurement
from rannpde.pde.solution import Solution
from rannpde.pde.tolerance import ILL_POSED_RATIO, MUCH_SMALLER


@dataclass(frozen=True)
class Verdict:
    """The last fit, and what it is judged by.

    solutions : solutions of all problems, with the unknowns of the fit; tol : their tolerance
    agreed : whether two discretisations agree on the unknowns; monitor : knows the time that is left
    """

    fit: RegressionResult
    unknowns: Unknowns
    measured: Sequence[Measurement]
    solutions: Sequence[Solution]
    settings: IdentificationSettings
    tol: float
    agreed: bool
    monitor: Monitor

    @property
    def noise_left(self) -> bool:
        """Whether the values leave a degree of freedom to find a noise that is not given."""
        freedom = self.fit.count - self.fit.effective
        return all(one.noise is not None for one in self.measured) or not np.isfinite(freedom) or freedom > 0.5

    def status(self, parameters: Mapping[str, Parameter]) -> tuple[Status, str]:
        """Return the status and its reason, with the remedy."""
        fit = self.fit
        worst = next((s for s in self.solutions if not s.converged), self.solutions[0])
        free = [name for name, one in parameters.items() if not np.isfinite(one.std)]
        if self.monitor.exhausted and not self.agreed:
            return Status.BUDGET, str(Status.BUDGET)
        if len(fit.free) and free:
            return Status.UNDETERMINED, _valley(fit, self.unknowns, free)
        if not self.noise_left:
            return Status.UNDETERMINED, (
                f"{fit.count} measured values determine {fit.effective:.3g} numbers, and nothing is left to find their "
                "noise; give the noise, or more values"
            )
        if not fit.converged or not np.isfinite(fit.effective):
            detail = f"the fit of the unknowns did not converge in {fit.steps} steps; give better guesses"
            return Status.NEWTON, detail
        if not worst.converged:
            return worst.status, worst.detail
        for one, scale in zip(self.measured, fit.noise.scales, strict=True):
            size = float(np.sqrt(np.mean(one.values**2))) or 1.0
            if (
                one.noise is not None
                and not one.noise.any()
                and scale > ILL_POSED_RATIO * max(self.tol, worst.estimate) * size
            ):
                missed = f"the values of {one.name!r} are said to be exact but are missed by {scale:.1e}"
                return Status.RESIDUAL_TOO_LARGE, f"{missed}: give their noise, or correct the equations"
        for k, one in enumerate(self.measured):
            if (
                one.noise is not None
                and one.noise.any()
                and one.loss == "squares"
                and fit.misfit(k) > self.settings.contradicting_misfit
            ):
                held = "".join(f"{n} is {p.note}, " for n, p in parameters.items() if p.note.startswith("held"))
                missed = f"{held}the residuals of {one.name!r} are {fit.misfit(k):.1f} times the noise given"
                remedy = "correct the equations or bounds" if held else "correct the equations"
                degree = ", or a larger degree" if self.unknowns.bases else ""
                return Status.RESIDUAL_TOO_LARGE, f"{missed}: {remedy}, give a larger noise{degree}"
        left = fit.rows.constraint_residuals
        relative = self.settings.constraint_tolerance * float(np.sqrt(np.mean(np.square(left)))) if len(left) else 0.0
        if relative > self.settings.residual_tolerance:
            missed = f"missed by {relative:.1e} of their size"
            remedy = "give a larger degree, or conditions that agree"
            return Status.RESIDUAL_TOO_LARGE, f"the conditions on unknown functions alone are {missed}; {remedy}"
        if not self.agreed:
            return Status.DISAGREE, "discretisations do not agree on the unknowns as well as their intervals say"
        return Status.CONVERGED, f"two discretisations agree on the unknowns, {fit.count} measured values"

    def notes(self, fits: Sequence[RegressionResult]) -> tuple[str, ...]:
        """Return what a report adds about all fits, of which this is the last."""
        fit = self.fit
        known = f"the data determine {fit.effective:.1f} of {self.unknowns.count} numbers"
        notes = [f"{len(fits)} outer iterations, {sum(f.steps for f in fits)} steps; {known}"]
        for k, one in enumerate(self.measured):
            if (
                one.noise is None
                and np.mean(np.square(fit.rows.residuals[k] * fit.noise.scales[k]))
                >= np.var(one.values / fit.noise.shapes[k])
                > (np.finfo(float).eps * np.abs(one.values / fit.noise.shapes[k]).max()) ** 2
            ):
                notes.append(f"the noise estimated for {one.name!r} is as large as its values vary: they say little")
            given = one.noise is not None and one.noise.any()
            if given and abs(fit.misfit(k) - 1) > 4 / len(one.values) ** 0.5 + MUCH_SMALLER:
                size = f"{fit.misfit(k):.2f} times the noise given"
                notes.append(f"the residuals of {one.name!r} are {size}: is it right, are the equations?")
        return tuple(notes)


def _valley(fit: RegressionResult, unknowns: Unknowns, names: list[str]) -> str:
    """The direction that the data leave undetermined, in words."""
    direction = fit.free[0]
    parts = []
    for name in names:
        k = unknowns.slices[name].start
        parts.append(f"{direction[k] / max(np.abs(direction).max(), 1e-300):+.2g} in {name}")
    if len(names) == 1:
        return f"the data do not determine {names[0]}: they do not change with it"
    return f"the data do not determine {', '.join(names)} one by one: they stay the same along {', '.join(parts)}"
