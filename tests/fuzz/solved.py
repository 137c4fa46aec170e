"""Random small problems that are solved, not only read: ``python tests/fuzz/solved.py --count 10000 --record FILE``.

The problems are hostile on purpose: roots and logarithms that leave their domain, right-hand sides that are not
Lipschitz, solutions that blow up or vanish, data that are zero, huge or tiny, conditions that contradict each other.
A refusal with an error of ours is fine, and so is a result that did not converge; an exception that is not ours, or a
solve far beyond its budget, is not.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from long_runs import Endless, Record, Row, run
from rannpde.domains import Box, Interval, SpaceTime
from rannpde.domains.domain import Domain
from rannpde.errors import InputError
from rannpde.pde.budget import timed_by
from rannpde.pde.problem.conditions import Condition, On
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solve import solve

SECONDS = 1.0
OVERRUN = 1.2 * SECONDS + 1.0
"""Seconds of the processor's time after which a solve has overrun its budget."""
BLOCK = 20
"""Problems of one process. The first solves of a process load modules and kernels and are not judged by their time."""
FOREIGN, LATE = "FOREIGN EXCEPTION", "OVERRUN"

TERMS = (
    "sqrt(u)", "sqrt(abs(u))", "u**0.3", "exp(exp(u))", "exp(u)", "log(u)", "1/u", "u**2", "u**3", "abs(u)", "sign(u)",
    "max(u, 0)", "min(u, 1)", "sin(u)", "tan(u)", "where(x < 0.5, u, 0)", "u*u_x", "abs(u_x)", "u_x**2", "sqrt(u_x)",
    "0", "1", "x", "1e30", "1e-30", "exp(100*x)", "sin(300*x)", "u - u",
)  # fmt: skip
VALUES = ("0", "1", "-1", "x", "1e-12", "1e12", "sin(9*x)", "where(x < 0.3, 0, 1)", "u_x", "2*u")
FACTORS = ("", "1e-6*", "1e6*", "-", "0.3*", "x*", "(x - 0.5)*")


def random_problem(rng: np.random.Generator) -> tuple[str, Problem]:
    """The text of a statement and its problem; InputError where the statement is refused."""

    def pick(options: tuple[str, ...]) -> str:
        return options[int(rng.integers(len(options)))]

    kind = pick(("first order", "second order", "plane", "evolution", "oscillation", "system"))
    right = " + ".join(f"{pick(FACTORS)}{pick(TERMS)}" for _ in range(int(rng.integers(1, 3))))
    ends: dict[str, Condition] = {"ends": On("boundary", f"u = {pick(VALUES[:-2])}")}
    domain: Domain = Interval(0, float(rng.choice([1.0, 0.7, 30.0])))
    conditions = ends
    if kind == "first order":
        equations, conditions = [f"u_x = {right}"], {"start": On("x=0", f"u = {pick(VALUES[:-2])}")}
    elif kind == "second order":
        equations = [f"{pick(FACTORS)}u_xx = {right}"]
        if rng.random() < 0.3:
            conditions = {"ends": On("boundary", f"dn(u) = {pick(VALUES)}")}
    elif kind == "plane":
        domain, equations = Box(x=(0, 1), y=(0, 0.7)), [f"{pick(FACTORS)}laplace(u) = {right}"]
    elif kind == "system":
        equations = [f"u_x = v*{pick(TERMS)}", f"v_x = {right}"]
        conditions = {"start": On("x=0", [f"u = {pick(VALUES[:-2])}", f"v = {pick(VALUES[:-2])}"])}
    else:
        domain = SpaceTime(t=(0, 1), x=(0, 1))
        equations = [f"u_t = {pick(FACTORS)}u_xx + {right}"]
        conditions = {"start": On("t=0", f"u = {pick(VALUES[:-2])}"), **ends}
        if kind == "oscillation":
            equations = [f"u_tt = {pick(FACTORS)}u_xx + {right}"]
            conditions = {"start": On("t=0", [f"u = {pick(VALUES[:-2])}", f"u_t = {pick(VALUES[:-2])}"]), **ends}
    text = f"{equations} on {domain!r} with {conditions}"
    return text, Problem({f"equation {k}": one for k, one in enumerate(equations)}, domain, conditions)


@dataclass(frozen=True)
class Attempt:
    """What became of one problem: a status, "refused", or a defect; seconds are of the processor."""

    outcome: str
    seconds: float
    text: str

    @property
    def defect(self) -> bool:
        return self.outcome.startswith((FOREIGN, LATE))


def attempt(seed: int) -> Attempt:
    """State and solve the problem of a seed within a second."""
    rng = np.random.default_rng(seed)
    text, begin = "a statement that was refused", process_time()
    try:
        with warnings.catch_warnings(), timed_by(process_time):
            warnings.simplefilter("ignore")
            text, problem = random_problem(rng)
            tol = float(rng.choice([1e-2, 1e-4, 1e-8]))
            text, begin = f"seed {seed}, tol {tol:g}: {text}", process_time()
            solution = solve(problem, tol=tol, seconds=SECONDS, rng=int(rng.integers(100)))
        outcome = solution.status.name
    except InputError:
        outcome = "refused"
    except Exception as error:  # whatever it is, it should have been an error of ours
        return Attempt(f"{FOREIGN} {type(error).__name__}: {error}", process_time() - begin, text)
    seconds = process_time() - begin
    return Attempt(LATE if seconds > OVERRUN else outcome, seconds, text)


def block_row(block: int) -> Row:
    """Counts of the problems of a block, and its defects."""
    for seed in range(3):
        attempt(seed)
    tried = [attempt(BLOCK * block + k) for k in range(BLOCK)]
    tally = Counter(LATE if one.outcome == LATE else FOREIGN if one.defect else one.outcome for one in tried)
    told = [f"{one.outcome}, {one.seconds:.1f} s: {one.text}" for one in tried if one.defect]
    return {"tally": dict(tally), "defects": told}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="problems")
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time, one thread each")
    parser.add_argument("--record", type=Path, help="file to which each block is added as it comes")
    chosen = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"

    def failed(failure: Exception) -> Row:
        word = "HUNG" if isinstance(failure, Endless) else "CRASHED"
        return {"tally": {word: BLOCK}, "defects": [f"{word}: {failure}"]}

    tally, defects = Counter[str](), 0
    blocks = range(chosen.first // BLOCK, (chosen.first + chosen.count) // BLOCK)
    rows = run(block_row, blocks, 4 * BLOCK * OVERRUN, failed, Record(chosen.record), chosen.workers)
    for number, (block, row) in enumerate(rows, start=1):
        tally.update(row["tally"])
        defects += len(row["defects"])
        for told in row["defects"]:
            print(f"block {block}: {told}", flush=True)
        if number % 10 == 0 or number == len(blocks):
            print(", ".join(f"{name} {count}" for name, count in sorted(tally.items())), flush=True)
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
