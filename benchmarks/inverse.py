"""Unknown numbers and functions from noisy values, beside SciPy's least squares through a classical solver.

    python -m benchmarks.inverse                        the whole table, some minutes
    python -m benchmarks.inverse --only burgers lorenz --draws 10
    python -m benchmarks.inverse --coverage 200         how often 95 % intervals hold the truth, small problems
    python -m benchmarks.inverse --coverage 50 --only decay     draws are kept: what was interrupted goes on

Ours: ``solve(problem, tol=…)`` and nothing else. Classical: ``scipy.optimize.least_squares`` through a spectral solver
or ``solve_ivp``, nodes and steps chosen by hand, from the same guesses and the same values. Noise is relative to the
standard deviation of the exact values, but for PInv and HInv, where it is 0.1. Times of scattered values are multiples
of 0.001 of the duration, which the classical solvers meet. Columns, for each unknown number in turn:

    error   relative, the median over the draws; of an unknown function relative L²
    std     relative standard deviation that we state, the median
    ratio   root mean square over the draws of the error / the standard deviation stated: 1 for an efficient, honest fit
    bound   the standard deviation that we state / that of the classical fit, an independent Cramér–Rao bound
    gap     between our values and those of the classical fit, first draw, in standard deviations
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import binom

import rannpde as rp
from benchmarks import evolve
from benchmarks.classical import Array, Function
from benchmarks.inverse_cases import CASES, DRAWN, SMALL, Case
from rannpde.pde.inverse.identify import OuterIterations
from rannpde.pde.inverse.uncertainty import Uncertainty
from rannpde.pde.monitor import Monitor

CONFIDENCE = 0.95
LIMIT = 120.0
"""Seconds allowed to one solve."""


@dataclass(frozen=True)
class Draw:
    """One fit: errors and standard deviations by unknown, hidden fields, hits of the intervals, seconds."""

    errors: dict[str, float]
    stds: dict[str, float]
    held: dict[str, float]
    hidden: dict[str, float]
    wall: float
    cpu: float
    converged: bool
    method: str


def relative(function: Function, exact: Function, points: Array) -> float:
    """Relative L² error."""
    wanted = exact(points)
    return float(np.linalg.norm(function(points) - wanted) / np.linalg.norm(wanted))


def ours(case: Case, noise: float, seed: int, seconds: float) -> Draw:
    """Solve it once, and judge it by the truth."""
    problem = case.drawn(noise, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution, wall, cpu = evolve.timed(lambda: rp.solve(problem, tol=case.tol, seconds=seconds, rng=seed))
    return judged(case, solution, wall, cpu)


def judged(case: Case, solution: rp.Identified, wall: float, cpu: float) -> Draw:
    """A fit beside the truth."""
    problem = solution.stated
    errors, stds, held, hidden = {}, {}, {}, {}
    for name, truth in case.numbers.items():
        found = solution.parameters[name]
        errors[name], stds[name] = (found.value - truth) / truth, found.std / abs(truth)
        held[name] = float(found.interval[0] <= truth <= found.interval[1])
    for name, function in case.functions.items():
        estimate = solution.functions[name]
        chosen = [problem.domain.names.index(coordinate) for coordinate in estimate.of]
        points = problem.domain.sample(1000, rng=9)[:, chosen]
        wanted, (lower, upper) = function(points), estimate.band(points)
        errors[name] = relative(estimate, function, points)
        stds[name] = float(np.linalg.norm(estimate.std(points)) / np.linalg.norm(wanted))
        held[name] = float(np.mean((lower <= wanted) & (wanted <= upper)))
    for name, function in (case.hidden or {}).items():
        column = problem.fields.index(name)
        field = lambda at, column=column: np.reshape(solution(at), (len(at), -1))[:, column]  # noqa: E731
        hidden[name] = relative(field, function, problem.domain.sample(1000, rng=9))
    return Draw(errors, stds, held, hidden, wall, cpu, solution.converged, solution.method.name)


@dataclass(frozen=True)
class Rival:
    """The classical fit: relative errors and standard deviations, processor seconds, and calls of the solver."""

    errors: dict[str, float]
    stds: dict[str, float]
    cpu: float
    calls: int


def classical(case: Case, noise: float, seed: int) -> Rival:
    """SciPy's least squares through the classical solver: same guesses, same values."""
    assert case.predict is not None
    problem, predict, calls = case.drawn(noise, seed), case.predict, []
    values = np.concatenate([one.values for one in problem.measurements])
    sigmas = [np.full(len(one.exact), one.sigma or 1.0) for one in case.measured(noise).values()]
    sigma = np.concatenate(sigmas)

    def residual(numbers: Array) -> Array:
        calls.append(1)
        return (predict(numbers) - values) / sigma

    first = np.array([problem.unknown[name].guess for name in case.numbers])
    lower = np.array([problem.unknown[name].limits[0] for name in case.numbers])
    found, _, cpu = evolve.timed(
        lambda: least_squares(
            residual, first, jac="3-point", bounds=(lower, np.inf), x_scale=np.abs(first), diff_step=1e-4, xtol=1e-13,
            ftol=1e-13, gtol=1e-13, max_nfev=40,
        )
    )  # fmt: skip
    spread = np.sqrt(np.diag(np.linalg.inv(found.jac.T @ found.jac)))
    truths = case.numbers
    errors = {name: float(x - truths[name]) / truths[name] for name, x in zip(truths, found.x, strict=True)}
    stds = {name: float(s) / abs(truths[name]) for name, s in zip(truths, spread, strict=True)}
    return Rival(errors, stds, cpu, len(calls))


def each(values: Mapping[str, float], form: str) -> str:
    """The values of all unknowns, in order."""
    return ", ".join(format(value, form) for value in values.values()) or "–"


def over_draws(draws: list[Draw], of: Callable[[Draw], Mapping[str, float]], how: Function) -> dict[str, float]:
    """Unknown → a statistic of its numbers over the draws."""
    return {name: float(how(np.array([of(draw)[name] for draw in draws]))) for name in of(draws[0])}


def rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


def row(name: str, case: Case, noise: float, draws: int, seconds: float) -> str:
    """A row of the table."""
    count = draws if noise else 1
    fits = [ours(case, noise, seed, seconds) for seed in range(count)]
    errors = over_draws(fits, lambda d: d.errors, lambda v: np.median(np.abs(v)))
    stds = over_draws(fits, lambda d: d.stds, np.median)
    parts = [name, f"{noise:g}", str(count), each(errors, ".1e"), each(stds, ".1e")]
    if noise and case.numbers:
        ratios = over_draws(fits, lambda d: {key: d.errors[key] / d.stds[key] for key in case.numbers}, rms)
        parts.append(each(ratios, ".2f") if count > 1 else "–")
    else:
        parts.append("–" if case.numbers else f"band holds {100 * np.mean([d.held['a'] for d in fits]):.0f} %")
    parts.append(each(over_draws(fits, lambda d: d.hidden, np.median), ".1e") if case.hidden else "–")
    walls, cpus = np.median([d.wall for d in fits]), np.median([d.cpu for d in fits])
    parts += [f"{walls:.1f}", f"{cpus:.1f}", f"{sum(d.converged for d in fits)}/{count}"]
    if case.predict is None:
        return " | ".join(["", *parts, "–", "–", "–", "–", ""]).strip()
    rival = classical(case, noise, 0)
    bound = {key: fits[0].stds[key] / rival.stds[key] for key in rival.stds}
    parts += [each({key: abs(e) for key, e in rival.errors.items()}, ".1e"), f"{rival.cpu:.1f}"]
    gap = {key: abs(fits[0].errors[key] - rival.errors[key]) / rival.stds[key] for key in rival.stds}
    parts += [each(bound, ".2f"), each(gap, ".0e")] if noise else ["–", "–"]
    return " | ".join(["", *parts, ""]).strip()


HEAD = (
    "| problem | noise | draws | error | std | ratio | hidden | wall s | CPU s | converged "
    "| classical error | its CPU s | bound | gap |"
)


@dataclass(frozen=True)
class Record:
    """Draws of one row of coverage, kept in a file, a line each, so that what was interrupted goes on where it was."""

    path: Path

    def read(self) -> list[Draw]:
        """Those that are there; a line that was cut short is not."""
        found: list[Draw] = []
        for line in self.path.read_text().splitlines() if self.path.exists() else ():
            with contextlib.suppress(ValueError, TypeError):
                found.append(Draw(**json.loads(line)))
        return found

    def add(self, draw: Draw) -> None:
        """One more."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(draw)) + "\n")


def fits_of(case: Case, noise: float) -> Callable[[int], Draw]:
    """Seed → a fit. All share the discretisation of a fit to exact values, and begin there: only the noise is new.

    The discretisation's error, which that fit found to be far below what the noise leaves uncertain, is the same for
    all; every fit is a search of its own, with its own path of priors and its own intervals.
    """
    problem = case.smooth(noise)
    monitor = Monitor()
    search = OuterIterations(
        [problem], case.tol, rp.Identify().solver([problem], monitor), np.random.default_rng(0), monitor
    )
    search.run()

    def fit(seed: int) -> Draw:
        values = [np.asarray(one.values, dtype=float) for one in case.values(noise, seed).values()]
        solution, wall, cpu = evolve.timed(lambda: search.again(values, Uncertainty()))
        return judged(case, solution, wall, cpu)

    return fit


def covered(name: str, draws: int, limit: float, records: Path) -> str:
    """How often 95 % intervals held the truth, with the range that chance allows 95 times out of 100.

    limit : seconds allowed to all draws together; where it ends, fewer were drawn
    """
    build, noise = SMALL[name] if name in SMALL else DRAWN[name]
    case, record = build(0) if name in DRAWN else build(), Record(records / f"{name.replace(' ', '_')}.jsonl")
    until, fits = time.perf_counter() + limit, record.read()[:draws]
    fit: Callable[[int], Draw] | None = None
    if len(fits) < draws:
        fit = (lambda seed: ours(build(seed), noise, seed, LIMIT)) if name in DRAWN else fits_of(case, noise)
    while fit is not None and len(fits) < draws and (not fits or time.perf_counter() < until):
        fits.append(fit(len(fits)))
        record.add(fits[-1])
    count = len(fits)
    shares = over_draws(fits, lambda d: d.held, np.mean)
    ratios = over_draws(fits, lambda d: {key: d.errors[key] / d.stds[key] for key in d.errors}, rms)
    low, high = (100 * end / count for end in binom.interval(0.95, count, CONFIDENCE))
    spent = float(np.mean([d.cpu for d in fits]))
    held = each({key: 100 * share for key, share in shares.items()}, ".1f")
    chance = f"{low:.1f} to {high:.1f}" if case.numbers else "points of a band go together"
    done, theirs = sum(d.converged for d in fits), "–"
    if case.quick:  # chance does the same to both
        rivals = [classical(case, noise, seed) for seed in range(count)]
        half = NormalDist().inv_cdf(0.5 + 0.5 * CONFIDENCE)
        hits = {key: float(np.mean([abs(r.errors[key]) <= half * r.stds[key] for r in rivals])) for key in shares}
        theirs = each({key: 100 * hit for key, hit in hits.items()}, ".1f")
    parts = [name, f"{noise:g}", str(count), held, chance, theirs, each(ratios, ".2f"), f"{done}/{count}"]
    return " | ".join(["", *parts, f"{spent:.2f}", ""]).strip()


COVERAGE_HEAD = (
    "| problem | noise | draws | held, % | by chance, % | classical, same draws | ratio | converged | CPU s each |"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted({*CASES, *SMALL, *DRAWN}), nargs="*", metavar="row")
    parser.add_argument("--draws", type=int, default=10, help="draws of the noise")
    parser.add_argument("--noise", type=float, nargs="*", help="levels of noise in the place of those of the table")
    parser.add_argument("--seconds", type=float, default=LIMIT, help="time allowed to one solve")
    parser.add_argument("--coverage", type=int, metavar="DRAWS", help="coverage over so many draws, at small sizes")
    parser.add_argument("--limit", type=float, default=np.inf, help="seconds allowed to all draws of a row of coverage")
    parser.add_argument(
        "--records", type=Path, default=Path("coverage-records"), help="folder of the draws; go on where it ended"
    )
    options = parser.parse_args()
    head = HEAD if options.coverage is None else COVERAGE_HEAD
    print(head, "|".join(["", *["---"] * (head.count("|") - 1), ""]), sep="\n", flush=True)
    known = CASES if options.coverage is None else SMALL | DRAWN
    for name in [one for one in options.only or known if one in known]:
        if options.coverage is not None:
            print(covered(name, options.coverage, options.limit, options.records), flush=True)
            continue
        case = CASES[name]()
        for noise in case.noises if options.noise is None else options.noise:
            print(row(name, case, noise, options.draws, options.seconds), flush=True)


if __name__ == "__main__":
    main()
