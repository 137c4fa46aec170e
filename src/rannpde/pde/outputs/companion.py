"""A second solution of a problem, of another resolution and with features of its own, which bounds compare with."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from rannpde.errors import InputError
from rannpde.pde.budget import Budget
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.outputs.settings import OutputSettings
from rannpde.pde.selection import METHODS, guarded_solution
from rannpde.pde.solution import Solution
from rannpde.pde.tolerance import MUCH_SMALLER

COMPANION_SEED = 28_657
"""Seed of the features of second solutions; any number, as long as solves do not begin with it."""
FAILED = (Status.NEWTON, Status.INTEGRATOR, Status.BLOW_UP, Status.UNDETERMINED, Status.INTERRUPTED)
"""Statuses of a second solution that says nothing about the first."""


def solve_companion(solution: Solution, settings: OutputSettings) -> Solution | None:
    """The same problem by the same method to a smaller tolerance, with other random features; None where it fails.

    The tolerance is below the estimate of the first, so that the difference of both is the error of the first; where
    float64 allows no smaller one, the two are independent and equally good.
    """
    problem = solution.problem
    if problem is None or problem.unknown or problem.parabolic is not None or solution.method.name not in METHODS:
        return None
    method = METHODS[solution.method.name]()
    known = solution.estimate if np.isfinite(solution.estimate) else 1.0
    tol = float(np.clip(settings.finer * known, settings.least_tolerance, MUCH_SMALLER))
    factor, more = settings.companion_time
    monitor = Monitor(None, Budget(factor * solution.seconds + more), residuals=False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            plain = replace(problem, outputs={}) if problem.outputs else problem
            rng = np.random.default_rng(COMPANION_SEED)
            companion = guarded_solution(
                lambda own: method.solve(plain, tol, rng, own, "a second discretisation"), monitor
            )
    except InputError:
        return None
    return None if companion is None or companion.status in FAILED else companion
