"""Verdicts on rows: was the goal met, and who of the two wins."""

from __future__ import annotations

from benchmarks.harness.case import Case
from benchmarks.harness.record import BenchRecord

OURS = "rannpde"
CLEARLY = 3.0
"""Distances beyond this many times the accuracy of a reference solution are errors of ours, not of it solution."""


def aim(case: Case, record: BenchRecord) -> tuple[float, float]:
    """The error and the seconds to reach: the goal's, and of a small version those that it was solved with."""
    if record.settings.get("small"):
        return float(record.settings["tol"]), float(record.settings["seconds"])
    return case.goal, case.seconds


def verdict(case: Case, record: BenchRecord) -> str:
    """``met``, ``accurate, late``, ``MISSED``, or what happened instead.

    A reference solution that is coarser than the goal can prove a miss, never a success.
    """
    if record.outcome != "solved":
        return record.outcome.upper()
    if record.error is None:  # not known on most of the domain; ``message`` says where it is
        return "MISSED"
    accuracy, (goal, seconds) = record.accuracy or 0.0, aim(case, record)
    if accuracy > goal and record.error <= goal + CLEARLY * accuracy:
        return f"open: the reference solution is known to {accuracy:.0e}"
    if record.error > goal:
        return "MISSED"
    return "met" if record.seconds is not None and record.seconds <= seconds else "accurate, late"


def better_solver(case: Case, record: BenchRecord) -> str:
    """Who reached the goal's error; of both the faster, of neither the more accurate; empty where nobody knows."""
    ours, theirs = record.error if record.outcome == "solved" else None, record.solver_error
    classical = record.solver.partition(",")[0]
    if ours is None or theirs is None:
        return classical if ours is None and theirs is not None else OURS if ours is not None and record.solver else ""
    reached = ours <= case.goal, theirs <= case.goal
    if reached[0] != reached[1]:
        return OURS if reached[0] else classical
    if all(reached) and record.seconds is not None and record.solver_seconds is not None:
        return OURS if record.seconds < record.solver_seconds else classical
    return OURS if ours < theirs else classical
