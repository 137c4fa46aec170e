"""The command ``doctor``: versions, BLAS, threads, and a tiny problem solved, and what is wrong with any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.console import Console

if TYPE_CHECKING:
    from rannpde.studies.run.environment import Check

DOCTOR_TOLERANCE = 1e-8
"""Relative L² error asked of the tiny problem."""
SECONDS = 3.0
"""Processor time above which something is wrong: a core of 2.5 GHz takes 0.1 to 0.5 s once everything is loaded."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


def doctor() -> None:
    """Check the installation.

    Versions, BLAS, threads and rates are printed, a tiny problem is solved, and what is wrong is named with a remedy.
    """
    from rannpde.studies.run.environment import examine

    console, checks = Console(), [*examine(), *solved_example()]
    for check in checks:
        console.print(f"{check.name:>13}  {check.value}", markup=False, highlight=False, soft_wrap=True)
        if check.problem:
            console.print(f"{'':>13}  ! {check.problem}", style="red", markup=False, soft_wrap=True)
    wrong = sum(bool(check.problem) for check in checks)
    console.print(
        "no issues found" if not wrong else f"{wrong} issue{'s' * (wrong > 1)} found",
        style="green" if not wrong else "red",
    )
    if wrong:
        raise typer.Exit(1)


def solved_example() -> list[Check]:
    """Digits and speed of a heat equation with a known solution; the second of two solves counts, all being loaded."""
    import time
    import warnings

    from rannpde.pde.solution import ConvergenceWarning
    from rannpde.pde.solve import solve
    from rannpde.pde.zoo import zoo
    from rannpde.studies.run.environment import Check

    problem = zoo("heat")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what is wrong is reported below
        solve(problem, tol=DOCTOR_TOLERANCE)
        started = time.process_time()  # not by the clock: other programs may run
        solution = solve(problem, tol=DOCTOR_TOLERANCE)
        spent = time.process_time() - started
    error = max(solution.errors().values())
    good = solution.converged and error <= DOCTOR_TOLERANCE
    digits = f"heat equation to {error:.1e}, {DOCTOR_TOLERANCE:.0e} asked, {solution.estimate:.1e} estimated"
    lost = "digits are lost: the BLAS or its flags may be unsafe; reinstall numpy and scipy, then run the tests"
    slow = "slow: threads compete (see above), or the BLAS is not tuned"
    return [
        Check("digits", digits, "" if good else lost),
        Check("speed", f"{spent:.2f} s of processor time, {SECONDS:g} s allowed", "" if spent <= SECONDS else slow),
    ]
