"""Is a solution what it says it is? One solve, judged against the truth, and the tally of many."""

from __future__ import annotations

import signal
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import process_time

import numpy as np

from honesty.cases import Case
from rannpde.domains.norms import relative_errors
from rannpde.errors import InputError
from rannpde.pde.budget import timed_by
from rannpde.pde.solution import Solution
from rannpde.pde.solve import solve
from rannpde.pde.weak.displacement import is_displacement, judged_difference
from rannpde.pde.weak.form import weak_formulation

GRACE = 5.0
"""Seconds after its budget within which a solve must have come back."""
PATIENCE = 60.0
"""Seconds after its budget at which a solve that has not come back is ended."""
FACTOR = 10.0
"""An estimate is honest within this factor of the error."""
ROUNDING = 1e-11
"""Errors below this are rounding, or the moment before a jump in time at which a march stops, whatever the estimate."""
POINTS = 20_000

WRONG, ILL, CRASHED, HUNG = "CONVERGED AND WRONG", "ILL-POSED CONVERGED", "CRASHED", "HUNG"
DEFECTS = (WRONG, ILL, CRASHED, HUNG)
COLUMNS = (
    "tried", "refused", "converged", "honest", "too small", "too large", "unknown", *DEFECTS,
)  # fmt: skip


class Hung(BaseException):
    """Not an Exception: no handler of the solver may take it for its own."""


@dataclass(frozen=True)
class Verdict:
    """What became of a case; ``words`` are those columns of the table that it counts in."""

    case: Case
    words: tuple[str, ...]
    seconds: float
    error: float = np.nan
    estimate: float = np.nan
    score: float = 0.0
    told: str = ""
    method: str = ""

    @property
    def defect(self) -> bool:
        return any(word in DEFECTS for word in self.words)

    def __str__(self) -> str:
        judged = f"error {self.error:.1e}, estimate {self.estimate:.1e}, {self.seconds:.1f} s; {self.told}"
        return f"{', '.join(self.words)}: {judged}\n      {self.case}"


def judge(case: Case, seconds: float = 10.0) -> Verdict:
    """Solve a case within its budget and compare what comes back with what is known.

    Seconds are those of the processor: a busy machine is not the solver's fault.
    """
    begin = process_time()

    def used() -> float:
        return process_time() - begin

    try:
        with _watchdog(seconds + PATIENCE), warnings.catch_warnings(), timed_by(process_time):
            warnings.simplefilter("ignore", UserWarning)
            problem = case.problem()
            begin = process_time()
            solution = solve(problem, tol=case.tol, rng=case.rng, method=case.method, seconds=seconds)
    except InputError as error:
        return Verdict(case, ("refused",), used(), told=str(error).splitlines()[0])
    except Hung:
        return Verdict(case, (HUNG,), used())
    except Exception as error:  # whatever it is, it is what the hunt is for
        return Verdict(case, (CRASHED,), used(), told=f"{type(error).__name__}: {error}")
    taken, error = used(), true_error(solution)
    words = list(_words(case, solution, error))
    if taken > seconds + GRACE:
        words.append(HUNG)
    told = f"{solution.status.name}, residuals " + ", ".join(f"{k}: {v:.0e}" for k, v in solution.held_out.items())
    return Verdict(case, tuple(words), taken, error, solution.estimate, solution.score, told, solution.method.name)


def true_error(solution: Solution) -> float:
    """The relative L² error, the largest over the fields, of displacements that of the vector, as the estimate is; NaN
    where the truth or the end of the solution is missing."""
    exact = solution.stated.exact_solution
    if exact is None:
        return np.nan
    points = solution.stated.domain.sample(POINTS, rng=7)
    found, wanted = solution.function(points), exact(points)
    several = solution.method.name == "weak" and len(solution.fields) > 1
    vector = several and is_displacement(weak_formulation(solution.stated))
    return judged_difference(True, found, wanted) if vector else float(relative_errors(found, wanted).max())


def _words(case: Case, solution: Solution, error: float) -> Iterator[str]:
    estimate = solution.estimate
    if solution.converged:
        yield "converged"
        if not case.posed:
            yield ILL
    if not (np.isfinite(error) and np.isfinite(estimate)):
        yield "unknown"
    elif error > FACTOR * estimate and error > ROUNDING:
        yield "too small"
        if solution.converged and error > case.tol:
            yield WRONG
    elif estimate > FACTOR * error and estimate > ROUNDING:
        yield "too large"
    else:
        yield "honest"


@contextmanager
def _watchdog(seconds: float) -> Iterator[None]:
    def bark(*_: object) -> None:
        raise Hung

    old = signal.signal(signal.SIGPROF, bark)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)


class Tally:
    """Verdicts counted by family."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}
        self.seconds: Counter[str] = Counter()
        self.residuals: dict[str, float] = {}
        self.defects: list[Verdict] = []
        self.effectivities: dict[str, list[float]] = {}

    def add(self, verdict: Verdict) -> None:
        if "converged" in verdict.words and np.isfinite(verdict.error) and verdict.error > ROUNDING:
            self.effectivities.setdefault(verdict.method, []).append(verdict.error / max(verdict.estimate, ROUNDING))
        self.counts.setdefault(verdict.case.family, Counter()).update(("tried", *verdict.words))
        self.seconds[verdict.case.family] += verdict.seconds  # type: ignore[assignment]
        if {"converged", "honest"} <= set(verdict.words):
            before = self.residuals.get(verdict.case.family, 0.0)
            self.residuals[verdict.case.family] = max(before, verdict.score)
        if verdict.defect:
            self.defects.append(verdict)

    def table(self) -> str:
        """A row for every family, and their sum; last the largest held-out residual that was honestly converged."""
        names = [column.lower() for column in COLUMNS]
        lines = [f"{'family':<26}" + "".join(f"{name[:10]:>11}" for name in names) + f"{'seconds':>9}{'residual':>10}"]
        whole: Counter[str] = Counter()
        for name, counts in self.counts.items():
            lines.append(self._row(name, counts, self.seconds[name], self.residuals.get(name, 0.0)))
            whole += counts
        largest = max(self.residuals.values(), default=0.0)
        return "\n".join([*lines, self._row("all", whole, sum(self.seconds.values()), largest)])

    def effectivity_table(self) -> str:
        """Error over estimate of what converged, by method: smallest, quartiles, 95 % and largest."""
        lines = [
            f"{'method':<14}{'count':>7}"
            + "".join(f"{name:>10}" for name in ("0 %", "25 %", "50 %", "75 %", "95 %", "100 %"))
        ]
        for method, values in sorted(self.effectivities.items()):
            quantiles = np.quantile(values, (0, 0.25, 0.5, 0.75, 0.95, 1))
            lines.append(f"{method:<14}{len(values):>7}" + "".join(f"{value:>10.2g}" for value in quantiles))
        return "\n".join(lines)

    @staticmethod
    def _row(name: str, counts: Counter[str], seconds: float, residual: float) -> str:
        cells = "".join(f"{counts[column] or '':>11}" for column in COLUMNS)
        return f"{name:<26}{cells}{seconds:9.0f}{residual:10.0e}"
