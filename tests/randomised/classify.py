"""One user's problem, solved and classified; and the table of many."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from time import process_time

import numpy as np

from honesty.judge import FACTOR, ROUNDING, true_error
from long_runs import Endless, Record, Row, run
from randomised.mechanics import mechanics_problem
from randomised.problems import UserProblem, user_problem
from randomised.singular import StatedProblem
from randomised.wider import wider_problem
from rannpde.errors import InputError
from rannpde.pde.budget import timed_by
from rannpde.pde.solution import Solution
from rannpde.pde.solve import solve
from rannpde.pde.weak.displacement import is_displacement, judged_difference
from rannpde.pde.weak.form import weak_formulation

AnyProblem = UserProblem | StatedProblem
GENERATORS: Mapping[str, Callable[[int], AnyProblem]] = {
    "users": user_problem, "wider": wider_problem, "mechanics": mechanics_problem,
}  # fmt: skip
"""Name → the problem of a seed."""
FINER, COMPARED, OTHER_SEED = 1 / 30, 4000, 77
"""A reference that is computed: its tolerance over that of the problem, points of the comparison, its seed."""
SOLVED, OPEN, REFUSED = "solved", "not converged", "refused"
WRONG, LATE, CRASHED, HUNG = "CONFIDENTLY WRONG", "OVERRUN", "CRASHED", "HUNG"
DEFECTS = (WRONG, LATE, CRASHED, HUNG)
CLASSES = (SOLVED, OPEN, REFUSED, *DEFECTS)
OVERRUN = (1.2, 1.0)
"""A solve with a budget of s seconds may take 1.2 s + 1 s, of its processor's time."""
PATIENCE = (2.0, 60.0)
"""After so many budgets and seconds of the processor's time a solve hangs."""


@dataclass(frozen=True)
class Classified:
    """What became of a problem: its class, the true error, the estimate, the time, and what the solver said."""

    problem: AnyProblem
    outcome: str
    error: float = np.nan
    estimate: float = np.nan
    seconds: float = np.nan
    message: str = ""

    @property
    def defect(self) -> bool:
        return self.outcome in DEFECTS

    @property
    def underestimated(self) -> bool:
        """Whether the estimate is below a tenth of the error, converged or not."""
        return bool(self.error > max(FACTOR * self.estimate, ROUNDING))

    def __str__(self) -> str:
        figures = f"error {self.error:.1e}, estimate {self.estimate:.1e}, {self.seconds:.1f} s"
        return f"{self.outcome}: {figures}; {self.message}\n      {self.problem}"


def reference_error(problem: AnyProblem, solution: Solution) -> float:
    """The error of a solution: from the exact one, or from a finer solution, whose own estimate is taken off."""
    method = getattr(problem, "finer", "")
    if not method:
        return true_error(solution)
    finer = solve(problem.problem(), tol=FINER * problem.tol, rng=OTHER_SEED, method=method)
    points = solution.stated.domain.sample(COMPARED, rng=OTHER_SEED)
    several = len(solution.fields) > 1 and is_displacement(weak_formulation(solution.stated))
    apart = judged_difference(several, solution.function(points), finer.function(points))
    return max(apart - finer.estimate, 0.0) if finer.converged else np.nan


def classify(problem: AnyProblem, seconds: float = 30.0, rng: int = 0) -> Classified:
    """Solve a problem in this process within its budget, and compare the result with the manufactured solution.

    The budget is one of the processor's time: what else the machine does changes nothing.
    """
    try:
        with warnings.catch_warnings(), timed_by(process_time):
            warnings.simplefilter("ignore", UserWarning)
            stated = problem.problem()
            begin = process_time()
            method = getattr(problem, "method", None)
            solution = solve(stated, tol=problem.tol, rng=rng, seconds=seconds, method=method)
            taken = process_time() - begin
            error = reference_error(problem, solution)
    except InputError as refusal:
        return Classified(problem, REFUSED, message=str(refusal).splitlines()[0])
    except Exception as failure:  # whatever it is, it should have been an error of ours
        return Classified(problem, CRASHED, message=f"{type(failure).__name__}: {failure}")
    unknown = bool(getattr(problem, "finer", "")) and np.isnan(error)  # the finer solution did not converge
    untrue = not unknown and not error <= max(FACTOR * solution.estimate, problem.tol, ROUNDING)
    if solution.converged:
        outcome = WRONG if untrue else SOLVED
    else:
        outcome = OPEN
    if outcome != WRONG and taken > OVERRUN[0] * seconds + OVERRUN[1]:
        outcome = LATE
    message = f"{solution.method.name}, {solution.status.name}: {solution.reason}"
    return Classified(problem, outcome, error, solution.estimate, taken, message)


def classified_row(seed: int, seconds: float, generator: str) -> Row:
    """What is kept of the problem of a seed."""
    row = dict(vars(classify(GENERATORS[generator](seed), seconds)))
    del row["problem"]
    return row


def classify_many(
    seeds: Iterable[int], seconds: float, workers: int = 1, generator: str = "users", record: Record | None = None
) -> Iterator[Classified]:
    """The problems of these seeds, each in a process of its own."""

    def failed(failure: Exception) -> Row:
        return {"outcome": HUNG if isinstance(failure, Endless) else CRASHED, "message": str(failure)}

    work = partial(classified_row, seconds=seconds, generator=generator)
    limit = PATIENCE[0] * seconds + PATIENCE[1]
    for seed, row in run(work, seeds, limit, failed, record, workers):
        yield Classified(GENERATORS[generator](seed), **row)


def table(results: Iterable[Classified]) -> str:
    """Counts by kind of problem and class, their sum, and the median time of what was solved."""
    rows: dict[str, list[Classified]] = {}
    for one in results:
        rows.setdefault(one.problem.kind, []).append(one)
    lines = [f"{'kind':<32}{'count':>6}" + "".join(f"{name.lower()[:13]:>15}" for name in CLASSES) + f"{'seconds':>9}"]
    everything = [one for group in rows.values() for one in group]
    for name, group in [*sorted(rows.items()), ("all", everything)]:
        counts = Counter(one.outcome for one in group)
        times = [one.seconds for one in group if one.outcome == SOLVED]
        median = f"{np.median(times):9.1f}" if times else f"{'':>9}"
        lines.append(f"{name:<32}{len(group):>6}" + "".join(f"{counts[c] or '':>15}" for c in CLASSES) + median)
    return "\n".join(lines)
