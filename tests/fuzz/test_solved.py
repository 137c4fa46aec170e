"""Random small problems that are solved, not only read: whatever a statement is, no foreign exception and no overrun.

The problems are hostile on purpose: roots and logarithms that leave their domain, right-hand sides that are not
Lipschitz, solutions that blow up or vanish, data that are zero, huge or tiny, conditions that contradict each other.
A refusal with an error of ours is fine, and so is a result that did not converge; an exception that is not ours, or a
solve far beyond its budget, is not. ``make fuzz`` runs many more of them, new ones every time.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from time import process_time

import numpy as np
import pytest

from draws import draws
from fuzz.watch import report
from rannpde.domains import Box, Interval, SpaceTime
from rannpde.domains.domain import Domain
from rannpde.errors import InputError
from rannpde.pde.problem.conditions import Condition, On
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solve import solve

COUNT = int(os.environ.get("RANNPDE_FUZZ", "0")) // 10 or draws(12, 24)
"""A tenth of the cases of other fuzzers: each of these is solved."""
SECONDS = 1.0
ALLOWED = 20.0
"""Seconds of the processor's time after which a solve with a budget of one second has overrun it. Compilation of
kernels and the first statement of a process take several."""

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


@pytest.mark.parametrize("part", range(4))
def test_whatever_is_solved_raises_only_errors_of_ours(part):
    tally: Counter[str] = Counter()
    rng = np.random.default_rng([part, 0 if "RANNPDE_FUZZ" not in os.environ else np.random.SeedSequence().entropy])
    for _ in range(COUNT // 4):
        text, begin = "a statement that was refused", process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                text, problem = random_problem(rng)
                begin = process_time()
                tol = float(rng.choice([1e-2, 1e-4, 1e-8]))
                solution = solve(problem, tol=tol, seconds=SECONDS, rng=int(rng.integers(100)))
            tally[solution.status.name] += 1
        except InputError:
            tally["refused"] += 1
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}\n{text}") from error
        assert process_time() - begin < ALLOWED, text
    report(tally)
