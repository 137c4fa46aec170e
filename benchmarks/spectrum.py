"""Eigenvalues, folds and growth rates: every row of the table, with SciPy beside, in one run.

    python benchmarks/spectrum.py                    # the table
    python benchmarks/spectrum.py --only drums
    python benchmarks/spectrum.py --draws 200        # random Sturm–Liouville problems: all within their bounds?

Errors are relative, against closed forms or published values. Seconds are of the process (CPU). Beside: second-order
differences with SciPy's sparse shift-and-invert ``eigsh``, as many unknowns as it solves in about the same time on
intervals and squares; ``solve_bvp`` has no eigenvalues with bounds, and no fold.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import eigsh
from scipy.special import jn_zeros, mathieu_a, mathieu_b

import rannpde as rp

FIXED = {"boundary": "u = 0"}
L_SHAPE = [9.6397238440219, 15.197251926454, 2 * np.pi**2, 29.521481114145, 31.912635957138]
ISOSPECTRAL = [2.53794399980, 3.65550971352, 5.17555935622, 6.53755744376, 7.24807786256]
FIRST_DRUM = [(0, 0), (0, 2), (4, 6), (4, 4), (6, 4), (4, 2), (2, 2), (2, 0)]
SECOND_DRUM = [(0, 2), (0, 4), (4, 4), (4, 6), (6, 4), (4, 2), (2, 2), (2, 0)]
ORR_SOMMERFELD = "(u_xxxx - 2*a**2*u_xx + a**4*u)/R = i*a*((1 - x**2 - c)*(u_xx - a**2*u) + 2*u)"


def row(
    name: str, goal: str, problem: rp.Problem, known: list[float] | np.ndarray, beside: str = "", **settings
) -> str:
    """One line of the table."""
    begin = time.process_time()
    found = rp.eigen(problem, len(known), **settings)
    seconds = time.process_time() - begin
    known = np.asarray(known)
    size = np.maximum(np.abs(known), 1e-3 * np.abs(known).max())
    error, bound = (np.abs(found.values - known) / size).max(), (found.bounds / size).max()
    honest = "yes" if (np.abs(found.values - known) <= 10 * found.bounds + 1e-11 * size).all() else "NO"
    told = "yes" if found.converged else "no"
    return f"| {name} | {goal} | {error:.1e} | {bound:.1e} | {seconds:.2f} | {told} | {honest} | {beside} |"


def differences(potential: Callable[[np.ndarray], np.ndarray], ends: tuple[float, float], known: list[float]) -> str:
    """Second-order differences on an interval, by SciPy."""
    begin, n = time.process_time(), 4000
    x = np.linspace(*ends, n + 2)[1:-1]
    h = x[1] - x[0]
    matrix = sparse.diags([np.full(n - 1, -1.0), 2 + h**2 * potential(x), np.full(n - 1, -1.0)], [-1, 0, 1]) / h**2
    found = np.sort(eigsh(matrix.tocsc(), len(known), sigma=known[0] - 1.0, return_eigenvectors=False))
    error = np.abs(found / known - 1).max()
    return f"SciPy, {n} differences: {error:.1e} in {time.process_time() - begin:.2f} s"


def square_differences(inside: Callable[[np.ndarray, np.ndarray], np.ndarray], side: float, known: list[float]) -> str:
    """The five-point stencil on a part of a square, by SciPy."""
    begin, n = time.process_time(), 240
    line = -side + 2 * side * np.arange(1, n) / n
    x, y = np.meshgrid(line, line, indexing="ij")
    kept = np.flatnonzero(inside(x, y).ravel())
    one = sparse.diags([np.full(n - 2, -1.0), np.full(n - 1, 2.0), np.full(n - 2, -1.0)], [-1, 0, 1])
    unit = sparse.identity(n - 1)
    matrix = (sparse.kron(one, unit) + sparse.kron(unit, one)).tocsc()[kept][:, kept] / (2 * side / n) ** 2
    found = np.sort(eigsh(matrix.tocsc(), len(known), sigma=0.0, return_eigenvectors=False))
    error = np.abs(found / np.asarray(known) - 1).max()
    return f"SciPy, {len(kept)} differences: {error:.1e} in {time.process_time() - begin:.2f} s"


def lines() -> Iterator[str]:
    """Intervals."""

    def on(equation: str, ends: tuple[float, float], conditions=FIXED, **more) -> rp.Problem:
        return rp.Problem(equation, rp.Interval(*ends), conditions, **{"eigenvalue": "lam"} | more)

    anharmonic = [1.0603620904841829, 3.7996730298013942, 7.4556979379867384]
    beside = differences(lambda x: x**4, (-7, 7), anharmonic)
    yield row(
        "anharmonic oscillator", "1e-10 in 2 s", on("-u_xx + x**4*u = lam*u", (-7, 7)), anharmonic, beside, tol=1e-10
    )
    problem = on("-u_xx + 10*cos(2*x)*u = lam*u", (0, np.pi), {"x": "periodic"})
    mathieu = [mathieu_a(0, 5), mathieu_b(2, 5), mathieu_a(2, 5), mathieu_b(4, 5), mathieu_a(4, 5)]
    yield row("Mathieu, q = 5", "1e-10 in 2 s", problem, mathieu, "scipy.special is the reference", tol=1e-10)
    problem = on("-0.5*u_xx - u/x = lam*u", (0, 80))
    yield row("hydrogen, radial", "1e-10 in 2 s", problem, -0.5 / np.arange(1.0, 4) ** 2, tol=1e-10)
    walls = {"boundary": ("u = 0", "dn(u) = 0")}
    problem = on(ORR_SOMMERFELD, (-1, 1), walls, parameters={"i": 1j, "a": 1.0, "R": 1e4}, eigenvalue="c")
    known = np.array([0.23752648882047 + 0.00373967062298j])
    yield row("Orr–Sommerfeld", "8 digits in 2 s", problem, known, which="highest imaginary", tol=1e-9)
    ends = {"x=0": ("u = 0", "u_x = 0"), "x=1": ("u_xx = 0", "u_xxx = 0")}
    beam = np.array([1.875104068711961, 4.694091132974175, 7.854757438237613]) ** 4
    yield row("clamped beam", "1e-7 in 10 s", on("u_xxxx = lam*u", (0, 1), ends), beam, tol=1e-9)


def drums() -> Iterator[str]:
    """Plane shapes."""

    def drum(domain) -> rp.Problem:
        return rp.Problem("-laplace(u) = lam*u", domain, FIXED, eigenvalue="lam")

    shape = rp.Polygon([(0, 0), (1, 0), (1, -1), (-1, -1), (-1, 1), (0, 1)])
    beside = square_differences(lambda x, y: ~((x >= -1e-12) & (y >= -1e-12)), 1.0, L_SHAPE)
    yield row("L-shape", "1e-9 in 10 s", drum(shape), L_SHAPE, beside, tol=1e-9)
    disc = np.sort([z**2 for m in range(6) for z in jn_zeros(m, 4) for _ in range(1 if m == 0 else 2)])[:6]
    beside = square_differences(lambda x, y: x**2 + y**2 < 1, 1.0, list(disc))
    yield row("disc", "1e-9 in 5 s", drum(rp.Ball((0, 0), 1, names=("x", "y"))), disc, beside, tol=1e-9)
    for name, corners in (("first", FIRST_DRUM), ("second", SECOND_DRUM)):
        yield row(f"{name} isospectral drum", "1e-8 in 20 s", drum(rp.Polygon(corners)), ISOSPECTRAL, tol=1e-8)


def solids() -> Iterator[str]:
    """The cube."""
    cube = rp.Problem("-laplace(u) = lam*u", rp.Box(x=(0, 1), y=(0, 1), z=(0, 1)), FIXED, eigenvalue="lam")
    yield row("cube", "1e-5 in 60 s", cube, np.pi**2 * np.array([3.0, 6, 6, 6]), tol=1e-5)


def folds() -> Iterator[str]:
    """Bratu's fold on the unit square."""
    square = rp.Box(x=(0, 1), y=(0, 1))
    bratu = rp.Problem("laplace(u) + lam*exp(u) = 0", square, FIXED, parameters={"lam": 0.0})
    begin = time.process_time()
    found = rp.continuation(bratu, "lam", 0.1, 10.0, tol=1e-9)
    seconds = time.process_time() - begin
    fold = found.folds[0]
    error = abs(fold.parameter / 6.80812442259 - 1)
    told = "yes" if found.converged else "no"
    yield f"| Bratu's fold | 1e-8 in 30 s | {error:.1e} | {fold.bound / 6.8:.1e} | {seconds:.2f} | {told} | yes | |"


def draws(count: int) -> None:
    """Random Sturm–Liouville problems: how far are eigenvalues from the truth, in units of their bounds?"""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from pde.spectrum.families import potential

    worst, missed, begin = 0.0, 0, time.process_time()
    for seed in range(count):
        problem, reference, unit = potential(seed)
        draw = np.random.default_rng(seed + 5000)
        number, tol = int(draw.integers(1, 13)), 10 ** draw.uniform(-10, -2)
        found, known = rp.eigen(problem, number, tol=tol), reference.values(number)
        rounding = 1e-12 * (np.maximum(np.abs(known), 10 * unit) + np.abs(known).max())
        if len(found) < number or not found.converged:
            missed += 1
            continue
        worst = max(worst, float((np.maximum(np.abs(found.values - known) - rounding, 0) / found.bounds).max()))
    seconds = time.process_time() - begin
    print(f"{count} problems, {missed} not solved; worst error {worst:.2g} bounds; {seconds:.1f} s, reference included")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--draws", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.draws:
        draws(given.draws)
        return
    print("| problem | goal | error | bound | CPU s | converged | within ten bounds | beside |")
    print("|---" * 8 + "|")
    for part in (lines, drums, solids, folds):
        if given.only in part.__name__:
            for line in part():
                print(line, flush=True)


if __name__ == "__main__":
    main()
