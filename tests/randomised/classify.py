"""One user's problem, solved in a process of its own and classified; and the table of many.

A process of its own can be ended whatever it does, so that a solve that never returns is seen and counted.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from time import perf_counter, process_time

import numpy as np

from honesty.judge import FACTOR, ROUNDING, true_error
from randomised.problems import UserProblem, user_problem
from randomised.wider import wider_problem
from rannpde.errors import InputError
from rannpde.pde.solve import solve

SOLVED, OPEN, REFUSED = "solved", "not converged", "refused"
WRONG, LATE, CRASHED, HUNG = "CONFIDENTLY WRONG", "OVERRUN", "CRASHED", "HUNG"
DEFECTS = (WRONG, LATE, CRASHED, HUNG)
CLASSES = (SOLVED, OPEN, REFUSED, *DEFECTS)
OVERRUN = (1.2, 1.0)
"""A solve with a budget of s seconds may take 1.2 s + 1 s, of its processor's time."""
PATIENCE = 6.0
"""After this multiple of the budget (and a minute for the start of a process) by the clock, a solve hangs."""


@dataclass(frozen=True)
class Classified:
    """What became of a problem: its class, the true error, the estimate, the time, and what the solver said."""

    problem: UserProblem
    outcome: str
    error: float = np.nan
    estimate: float = np.nan
    seconds: float = np.nan
    message: str = ""

    @property
    def defect(self) -> bool:
        return self.outcome in DEFECTS

    def __str__(self) -> str:
        figures = f"error {self.error:.1e}, estimate {self.estimate:.1e}, {self.seconds:.1f} s"
        return f"{self.outcome}: {figures}; {self.message}\n      {self.problem}"


def classify(problem: UserProblem, seconds: float = 30.0, rng: int = 0) -> Classified:
    """Solve a problem in this process within its budget, and compare the result with the manufactured solution."""
    begin, work = perf_counter(), process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            solution = solve(problem.problem(), tol=problem.tol, rng=rng, seconds=seconds)
            error = true_error(solution)
    except InputError as refusal:
        return Classified(problem, REFUSED, message=str(refusal).splitlines()[0])
    except Exception as failure:  # whatever it is, it should have been an error of ours
        return Classified(problem, CRASHED, message=f"{type(failure).__name__}: {failure}")
    taken = min(perf_counter() - begin, process_time() - work)
    untrue = not error <= max(FACTOR * solution.estimate, problem.tol, ROUNDING)
    if solution.converged:
        outcome = WRONG if untrue else SOLVED
    else:
        outcome = OPEN
    if outcome != WRONG and taken > OVERRUN[0] * seconds + OVERRUN[1]:
        outcome = LATE
    message = f"{solution.method.name}, {solution.status.name}: {solution.reason}"
    return Classified(problem, outcome, error, solution.estimate, taken, message)


def _problem(seed: int, wider: bool) -> UserProblem:
    return wider_problem(seed) if wider else user_problem(seed)


def _child(seed: int, seconds: float, wider: bool, answer: Connection) -> None:
    answer.send(classify(_problem(seed, wider), seconds))


def classify_apart(seed: int, seconds: float, wider: bool = False) -> Classified:
    """The same in a process of its own, which is ended when it hangs."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(seed, seconds, wider, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        if ours.poll(PATIENCE * seconds + 60):
            return ours.recv()
        return Classified(_problem(seed, wider), HUNG, seconds=PATIENCE * seconds)
    except EOFError:
        return Classified(_problem(seed, wider), CRASHED, message="the process ended without an answer")
    finally:
        process.kill()
        process.join()
        ours.close()


def classify_many(seeds: Iterable[int], seconds: float, workers: int, wider: bool = False) -> Iterator[Classified]:
    """The problems of these seeds, in their order."""
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(lambda seed: classify_apart(seed, seconds, wider), seeds)


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
