"""Random outputs of the randomised problems, whose true values are known: is the error within the bound?

python tests/pde/outputs/coverage.py 0 500          # small problems, three questions each
python tests/pde/outputs/coverage.py 0 100 --large  # all shapes and tolerances, all questions
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from randomised.problems import UserProblem, user_problem
from rannpde import InputError, Quantity, Solution, SpaceTime, solve
from rannpde.pde.functions import ExactSolution
from rannpde.pde.outputs.comparison import SolutionPair
from rannpde.pde.outputs.evaluate import extremum, integral, probe
from rannpde.pde.outputs.settings import OutputSettings


@dataclass(frozen=True)
class Covered:
    """One question to one solution: the answer, the true value, and what was asked."""

    seed: int
    asked: str
    quantity: Quantity
    exact: float
    method: str

    @property
    def held(self) -> bool:
        """Whether the true error is within the bound; what is not called converged claims nothing."""
        return not self.quantity.converged or abs(float(self.quantity) - self.exact) <= float(self.quantity.bound)

    def __str__(self) -> str:
        error = abs(float(self.quantity) - self.exact)
        word = "held" if self.held else "BROKEN"
        ratio = error / max(float(self.quantity.bound), 1e-300)
        return f"{word} seed {self.seed} {self.method} {self.asked}: {self.quantity}, error {error:.1e} ({ratio:.2g})"


def small_problem(seed: int) -> UserProblem:
    """A problem that is solved within seconds: on an interval to any tolerance, in the plane to 1e-2 to 1e-4."""
    plane = ("rectangle", "disc", "annulus", "polygon", "one hole", "L-shape", "ellipse", "rotated rectangle")
    if seed % 5 < 3:
        return user_problem(seed, ("interval",))
    tol = float(f"{10 ** np.random.default_rng(seed).uniform(-4, -2):.1e}")
    return replace(user_problem(seed, plane, evolving=1), tol=tol)


def questions(problem: UserProblem, rng: np.random.Generator) -> Iterator[tuple[str, dict]]:
    """What may be asked of any problem: integrals of values and fluxes, values at a point, extrema."""
    domain = problem.domain
    field = next(iter(problem.exact))
    timed = isinstance(domain, SpaceTime)
    time = {"t": float(rng.uniform(*domain.time))} if timed else {}
    side = str(rng.choice(list(domain.sides)))
    point = domain.sample(1, rng=rng)[0]
    yield "integral", {"statement": field, **time}
    yield "mean", {"statement": f"{field}**2", **time}
    yield "integral", {"statement": f"dn({field})", "on": side, **time}
    yield "integral", {"statement": f"x*{field} + {field}_x", "on": side, **time}
    yield "probe", {"points": point, "statement": field}
    yield "probe", {"points": point, "statement": f"{field}_x"}
    yield "maximum", {"statement": field, **time}


def answer(pair: SolutionPair, kind: str, arguments: dict) -> Quantity:
    if kind == "probe":
        return probe(pair, **arguments)
    if kind in ("maximum", "minimum"):
        return extremum(pair, sign=1.0 if kind == "maximum" else -1.0, **arguments)
    return integral(pair, mean=kind == "mean", **arguments)


class Known:
    """The manufactured solution as a solved function, in place of a network."""

    def __init__(self, exact: ExactSolution, dim: int) -> None:
        self.exact, self.dim, self.widths = exact, dim, (0,)

    def __call__(self, points):
        return self.exact(points)

    def derivative(self, points, index):
        return self.exact.derivative(points, index)


def covered(
    seed: int, drawn: Callable[[int], UserProblem] = user_problem, asked: int = 7, seconds: float = 120.0
) -> list[Covered]:
    """Some of the questions to the problem of that seed."""
    stated = drawn(seed)
    rng = np.random.default_rng(seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            solution: Solution = solve(stated.problem(), tol=stated.tol, seconds=seconds)
    except InputError:
        return []
    pair = SolutionPair(solution, solution.companion, OutputSettings())
    problem = solution.stated
    truth = replace(solution, function=Known(problem.exact_solution, problem.domain.dim), estimate=1e-12)
    exact = SolutionPair(truth, truth if pair.companion else None, OutputSettings(points=2**16))
    found = []
    every = list(questions(stated, rng))
    for kind, arguments in (every[k] for k in sorted(rng.permutation(len(every))[:asked])):
        given = answer(pair, kind, arguments)
        found.append(
            Covered(seed, f"{kind} {arguments}", given, float(answer(exact, kind, arguments)), solution.method.name)
        )
    return found


def main(first: int, last: int, large: bool) -> None:
    claimed = broken = asked = 0
    for seed in range(first, last):
        begin = process_time()
        found = covered(seed) if large else covered(seed, small_problem, asked=3)
        for one in found:
            asked, claimed, broken = asked + 1, claimed + one.quantity.converged, broken + (not one.held)
            print(one, flush=True)
        print(
            f"seed {seed}: {asked} asked, {claimed} claimed, {broken} broken, {process_time() - begin:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), "--large" in sys.argv)
