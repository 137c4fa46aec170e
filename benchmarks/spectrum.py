"""Eigenvalues, folds and growth rates: every row of the table, with NGSolve or SciPy beside, in one run.

    python -m benchmarks.spectrum --peer PYTHON      # the table; PYTHON : an interpreter that has NGSolve
    python -m benchmarks.spectrum --only drums
    python -m benchmarks.spectrum --draws 200        # random Sturm–Liouville problems: all within their bounds?
    python tests/pde/spectrum/shapes.py 0 60         # the same on random shapes

Errors are relative, against closed forms or published values. Seconds are of the process (CPU). Beside: differences or
Chebyshev collocation with SciPy on intervals and squares, finite elements (NGSolve) on shapes, each with as many
unknowns as take about a second where that suffices (``reference_solvers``); ``solve_bvp`` has neither eigenvalues with
bounds nor folds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import jn_zeros, mathieu_a, mathieu_b, mathieu_modcem1, mathieu_modsem1

import rannpde as rp
from benchmarks.reference_solvers import eigen_differences as peer

FIXED = {"boundary": "u = 0"}
L_SHAPE = [9.6397238440219, 15.197251926454, 2 * np.pi**2, 29.521481114145, 31.912635957138]
ISOSPECTRAL = [2.53794399980, 3.65550971352, 5.17555935622, 6.53755744376, 7.24807786256]
FIRST_DRUM = [(0, 0), (0, 2), (4, 6), (4, 4), (6, 4), (4, 2), (2, 2), (2, 0)]
SECOND_DRUM = [(0, 2), (0, 4), (4, 4), (4, 6), (6, 4), (4, 2), (2, 2), (2, 0)]
ANNULUS = [39.013288499003, *[40.872453378664] * 2, *[46.428454427220] * 2]
"""Zeros of J_m(x) Y_m(x/2) - J_m(x/2) Y_m(x), squared."""
FOUR_HOLES = [59.672212196487, *[121.18354234422] * 2, 139.70013191166, 165.47874077037]
FICHERA = [10.5320543]
"""The cube of side 2 without an octant, from its sixth x ≤ y ≤ z by finite elements that are graded geometrically
(NGSolve, ``reference_solvers/fichera_sixth.py``): upper bounds 10.5320554, 10.53205439, 10.53205432 with 21,302,
40,181, 63,225 unknowns."""
L_PRISM = [L_SHAPE[0] + np.pi**2]
"""Three unit cubes."""
PLATE = "laplace(laplace(u)) = lam*u"
STOKES = ["-laplace(u) + p_x = lam*u", "-laplace(v) + p_y = lam*v", "u_x + v_y = 0"]
PEER: list[str] = []
"""The interpreter with NGSolve, if one is given."""
ORR_SOMMERFELD = "(u_xxxx - 2*a**2*u_xx + a**4*u)/R = i*a*((1 - x**2 - c)*(u_xx - a**2*u) + 2*u)"


def row(
    name: str, goal: str, problem: rp.Problem, known: list[float] | np.ndarray, beside: str = "", **settings
) -> str:
    """One line of the table."""
    begin = time.process_time()
    found = rp.eigen(problem, len(known), **settings)
    seconds = time.process_time() - begin
    known = np.asarray(known)
    size = np.maximum(np.abs(known), 1e-3 * np.abs(known).max())  # one of them may be zero
    error, bound = (np.abs(found.values - known) / size).max(), (found.bounds / size).max()
    honest = "yes" if (np.abs(found.values - known) <= 10 * found.bounds + 1e-11 * size).all() else "NO"
    told = "yes" if found.converged else "no"
    return f"| {name} | {goal} | {error:.1e} | {bound:.1e} | {seconds:.2f} | {told} | {honest} | {beside} |"


def scipy_beside(known: float | np.ndarray, solve: Callable, *args, **settings) -> str:
    """The same by SciPy: its error and seconds."""
    begin = time.process_time()
    found, unknowns = solve(*args, **settings)
    error = np.abs(found / np.asarray(known) - 1).max()
    return f"SciPy, {unknowns} unknowns: {error:.1e} in {time.process_time() - begin:.2f} s"


def lines() -> Iterator[str]:
    """Intervals."""

    def on(equation: str, ends: tuple[float, float], conditions=FIXED, **more) -> rp.Problem:
        return rp.Problem(equation, rp.Interval(*ends), conditions, **{"eigenvalue": "lam"} | more)

    anharmonic = [1.0603620904841829, 3.7996730298013942, 7.4556979379867384]
    beside = scipy_beside(anharmonic, peer.line, lambda x: x**4, (-7, 7), 3, 0.0)
    yield row(
        "anharmonic oscillator", "1e-10 in 2 s", on("-u_xx + x**4*u = lam*u", (-7, 7)), anharmonic, beside, tol=1e-10
    )
    problem = on("-u_xx + 10*cos(2*x)*u = lam*u", (0, np.pi), {"x": "periodic"})
    mathieu = [mathieu_a(0, 5), mathieu_b(2, 5), mathieu_a(2, 5), mathieu_b(4, 5), mathieu_a(4, 5)]
    beside = scipy_beside(mathieu, peer.line, lambda x: 10 * np.cos(2 * x), (0, np.pi), 5, -20.0, periodic=True)
    yield row("Mathieu, q = 5", "1e-10 in 2 s", problem, mathieu, beside, tol=1e-10)
    problem = on("-u_xx + where(abs(x) < 1, -20, 0)*u = lam*u", (-12, 12))
    beside = scipy_beside(quantum_well(), peer.line, lambda x: np.where(np.abs(x) < 1, -20.0, 0.0), (-12, 12), 3, -20.0)
    yield row("quantum well of depth 20", "1e-10 in 2 s", problem, quantum_well(), beside, tol=1e-10)
    problem = on("-0.5*u_xx - u/x = lam*u", (0, 80))
    levels = -0.5 / np.arange(1.0, 4) ** 2
    beside = scipy_beside(levels, peer.line, lambda x: -1 / x, (0, 80), 3, -1.0, 0.5)
    yield row("hydrogen, radial", "1e-10 in 2 s", problem, levels, beside, tol=1e-10)
    walls = {"boundary": ("u = 0", "dn(u) = 0")}
    problem = on(ORR_SOMMERFELD, (-1, 1), walls, parameters={"i": 1j, "a": 1.0, "R": 1e4}, eigenvalue="c")
    known = np.array([0.23752648882047 + 0.00373967062298j])
    beside = scipy_beside(known, peer.orr_sommerfeld)
    yield row("Orr–Sommerfeld", "8 digits in 2 s", problem, known, beside, which="highest imaginary", tol=1e-9)
    ends = {"x=0": ("u = 0", "u_x = 0"), "x=1": ("u_xx = 0", "u_xxx = 0")}
    beam = np.array([1.875104068711961, 4.694091132974175, 7.854757438237613]) ** 4
    yield row("clamped beam", "1e-7 in 10 s", on("u_xxxx = lam*u", (0, 1), ends), beam,
              scipy_beside(beam, peer.beam, 3), tol=1e-9)  # fmt: skip


def quantum_well() -> np.ndarray:
    """Energies in a well of depth 20 and half width 1, walls at ±12: k tan k or -k cot k against κ coth 11κ."""

    def lack(energy: float, even: bool) -> float:
        k, outside = np.sqrt(energy), np.sqrt(20 - energy)
        inside = k * np.tan(k) if even else -k / np.tan(k)
        return inside - outside / np.tanh(11 * outside)

    ends = [(1e-9, (np.pi / 2) ** 2, True), ((np.pi / 2) ** 2, np.pi**2, False), (np.pi**2, 19.99, True)]
    return np.array([brentq(lack, a + 1e-6, b - 1e-6, args=(even,), xtol=1e-15) for a, b, even in ends]) - 20


def elements(name: str, known: list[float] | np.ndarray) -> str:
    """Finite elements of high order on the same domain, by NGSolve in another interpreter."""
    if not PEER:
        return ""
    script = Path(__file__).parent / "reference_solvers" / "eigen_elements.py"
    answer = subprocess.run([*PEER, str(script), name, str(len(known))], capture_output=True, text=True, check=False)
    if answer.returncode:
        return "NGSolve failed"
    found = json.loads(answer.stdout.splitlines()[-1])
    error = np.abs(np.array(found["values"]) / np.asarray(known) - 1).max()
    return f"NGSolve, {found['unknowns']} unknowns: {error:.1e} in {found['seconds']:.2f} s"


def drum(domain, conditions=FIXED, equation: str = "-laplace(u) = lam*u") -> rp.Problem:
    """The problem of a membrane."""
    return rp.Problem(equation, domain, conditions, eigenvalue="lam")


def ellipse(count: int) -> np.ndarray:
    """Eigenvalues of the ellipse with half axes 2 and 1: zeros of modified Mathieu functions in q = 3λ/4."""
    edge, found = np.arctanh(0.5), []
    for radial, first in ((mathieu_modcem1, 0), (mathieu_modsem1, 1)):
        for order in range(first, 4):
            grid = np.linspace(0.2, 12, 400)
            values = np.array([radial(order, q, edge)[0] for q in grid])
            for k in np.flatnonzero(values[1:] * values[:-1] < 0):
                root = brentq(lambda q, f=radial, m=order: f(m, q, edge)[0], grid[k], grid[k + 1], xtol=1e-14)
                found.append(4 / 3 * root)
    return np.sort(found)[:count]


def drums() -> Iterator[str]:
    """Plane shapes."""

    def ball(place: tuple[float, float], radius: float) -> rp.Ball:
        return rp.Ball(place, radius, names=("x", "y"))

    shape = rp.Polygon([(0, 0), (1, 0), (1, -1), (-1, -1), (-1, 1), (0, 1)])
    yield row("L-shape", "1e-9 in 10 s", drum(shape), L_SHAPE, elements("L-shape", L_SHAPE), tol=1e-9)
    disc = np.sort([z**2 for m in range(6) for z in jn_zeros(m, 4) for _ in range(1 if m == 0 else 2)])[:6]
    yield row("disc", "1e-9 in 5 s", drum(ball((0, 0), 1)), disc, elements("disc", disc), tol=1e-9)
    ring = ball((0, 0), 1) - ball((0, 0), 0.5)
    yield row("annulus", "1e-9 in 5 s", drum(ring), ANNULUS, elements("annulus", ANNULUS), tol=1e-9)
    holes = rp.Box(x=(0, 1), y=(0, 1))
    for x in (0.25, 0.75):
        for y in (0.25, 0.75):
            holes = holes - ball((x, y), 0.1)
    yield row("square, 4 holes", "1e-9 in 5 s", drum(holes), FOUR_HOLES, elements("four holes", FOUR_HOLES), tol=1e-9)
    oval = ellipse(3)
    yield row("ellipse 2:1", "1e-9 in 5 s", drum(rp.Ellipse((0, 0), (2, 1))), oval, elements("ellipse", oval), tol=1e-9)
    crack = {"crack": rp.On("slit (0, 0) to (1, 0)", "u = 0"), "rest": rp.On("boundary", "u = 0")}
    half = [np.pi**2, jn_zeros(1, 1)[0] ** 2, 4.493409457909064**2]
    yield row("disc with a crack", "1e-7 in 10 s", drum(ball((0, 0), 1), crack), half, tol=1e-7)
    for name, corners in (("first", FIRST_DRUM), ("second", SECOND_DRUM)):
        beside = elements(f"{name} drum", ISOSPECTRAL)
        yield row(f"{name} isospectral drum", "1e-8 in 20 s", drum(rp.Polygon(corners)), ISOSPECTRAL, beside, tol=1e-8)
    unit = ball((0, 0), 1)
    bessel = {m: jn_zeros(m, 2) ** 2 for m in range(4)}
    flow = rp.Problem(STOKES, unit, {"boundary": ("u = 0", "v = 0")}, eigenvalue="lam", incomplete=True)
    known = [bessel[1][0], *[bessel[2][0]] * 2, *[bessel[3][0]] * 2]
    yield row("Stokes on a disc", "", flow, known, elements("Stokes disc", known), tol=1e-7)
    known = np.array([3.196220616582541, *[4.610899879055831] * 2, *[5.905678235420435] * 2]) ** 4
    held = drum(unit, {"boundary": ("u = 0", "dn(u) = 0")}, PLATE)
    yield row("clamped disc", "1e-7 in 10 s", held, known, elements("clamped disc", known), tol=1e-8)
    supported = np.array([bessel[0][0], *[bessel[1][0]] * 2]) ** 2
    yield row("supported disc", "1e-7 in 10 s", drum(unit, {"boundary": ("u = 0", "laplace(u) = 0")}, PLATE), supported,
              "as the membrane's squares", tol=1e-8)  # fmt: skip
    steklov = drum(unit, {"boundary": "dn(u) = lam*u"}, "laplace(u) = 0")
    yield row("Steklov on a disc", "", steklov, [0, 1, 1, 2, 2], tol=1e-8)
    damped = drum(unit, FIXED, "-laplace(u) + lam*u + lam**2*u = 0")
    pair = np.sqrt(0.25 - bessel[0][0] + 0j)
    yield row("damped drum", "", damped, [-0.5 - pair, -0.5 + pair], tol=1e-8)


def boxes() -> Iterator[str]:
    """Boxes: a double well, plates, Stokes, Bloch waves, Turing's instability."""
    square = rp.Box(x=(0, 1), y=(0, 1))
    well = drum(rp.Box(x=(-4, 4), y=(-4, 4)), equation="-laplace(u) + (4*(x**2-1)**2 + 2*y**2)*u = lam*u")
    one, other = (
        rp.eigen(rp.Problem(f"-u_xx + {v}*u = E*u", rp.Interval(-4, 4), FIXED, eigenvalue="E"), 5, tol=1e-12).values
        for v in ("4*(x**2-1)**2", "2*x**2")
    )
    known = np.sort(np.add.outer(one, other).ravel())[:5]
    beside = scipy_beside(known, peer.square, lambda x, y: 4 * (x**2 - 1) ** 2 + 2 * y**2, 4.0, 5)
    yield row("double well in the plane", "1e-10 in 2 s", well, known, beside, tol=1e-10)
    held = {"boundary": ("u = 0", "laplace(u) = 0")}
    supported = np.pi**4 * np.array([4.0, 25, 25, 64])
    yield row("simply supported plate", "1e-7 in 10 s", drum(square, held, PLATE), supported,
              scipy_beside(supported, peer.plate, 4, False), tol=1e-8)  # fmt: skip
    clamped = drum(square, {"boundary": ("u = 0", "dn(u) = 0")}, PLATE)
    first = [1294.93397959171]
    beside = f"{elements('clamped square', first)}; {scipy_beside(first, peer.plate, 1, True)}"
    yield row("clamped plate", "1e-7 in 10 s", clamped, first, beside, tol=1e-8)
    flow = rp.Problem(STOKES, square, {"boundary": ("u = 0", "v = 0")}, eigenvalue="lam", incomplete=True)
    known = [52.3446911684, 92.1243940]
    yield row("Stokes on a square", "", flow, known, elements("Stokes square", known), tol=1e-7)
    waves = drum(rp.Box(x=(0, np.pi), y=(0, np.pi)), {"x": "periodic", "y": "periodic"},
                 "-laplace(u) + 4*(cos(2*x) + cos(2*y))*u = lam*u")  # fmt: skip
    anti = [2 * mathieu_b(1, 2), *[mathieu_b(1, 2) + mathieu_a(1, 2)] * 2]
    yield row("Bloch waves in the plane", "", waves, anti, tol=1e-10, phase={"x": np.pi, "y": np.pi})
    for name, jacobian, ratio in (("Brusselator", [[1.5, 1.0], [-2.5, -1.0]], 8.0),
                                  ("Schnakenberg", [[0.8, 1.0], [-1.8, -1.0]], 40.0)):  # fmt: skip
        (a, b), (c, d) = jacobian
        mixture = rp.Problem(
            [f"laplace(u) + {a}*u + {b}*v = s*u", f"{ratio}*laplace(v) + {c}*u + {d}*v = s*v"],
            rp.Box(x=(0, 10), y=(0, 7)), {"boundary": ("dn(u) = 0", "dn(v) = 0")}, eigenvalue="s",
        )  # fmt: skip
        squares = np.pi**2 * np.add.outer((np.arange(30) / 10) ** 2, (np.arange(30) / 7) ** 2).ravel()
        rates = np.concatenate([np.linalg.eigvals(np.array(jacobian) - q * np.diag([1, ratio])) for q in squares])
        growing = int((rates.real > 0).sum())
        order = np.lexsort((rates.imag, -np.round(rates.real, 9)))[: growing + 1 + growing % 2]
        known = rates[order] if np.iscomplexobj(rates) else rates[order].real
        beside = scipy_beside(known, peer.turing, jacobian, ratio, len(known))
        yield row(f"Turing, {name}: {growing} grow", "1e-8", mixture, known, beside, which="highest", tol=1e-9)


def solids() -> Iterator[str]:
    """Solids."""
    cube = rp.Box(x=(0, 1), y=(0, 1), z=(0, 1))
    known = np.pi**2 * np.array([3.0, 6, 6, 6])
    yield row("cube", "1e-5 in 60 s", drum(cube), known, elements("cube", known), tol=1e-5)
    zeros = np.array([np.pi, *[4.493409457909064] * 3]) ** 2
    yield row("ball", "1e-5 in 60 s", drum(rp.Ball((0, 0, 0), 1)), zeros, elements("ball", zeros), tol=1e-5)
    corner = rp.Box(x=(-1, 1), y=(-1, 1), z=(-1, 1)) - rp.Box(x=(0, 1), y=(0, 1), z=(0, 1))
    yield row("Fichera, first", "1e-5 in 60 s", drum(corner), FICHERA, elements("Fichera", FICHERA), tol=1e-5)
    prism = rp.Box(x=(-1, 1), y=(-1, 1), z=(0, 1)) - rp.Box(x=(0, 1), y=(0, 1), z=(0, 1))
    yield row("L-shaped prism, first", "1e-5 in 60 s", drum(prism), L_PRISM, tol=1e-5)
    yield torus()


def torus() -> str:
    """The torus of radii 1 and 0.4 by its section: u = f(r, z) cos(mφ), with the radius r = x as a weight."""
    begin = time.process_time()
    section = rp.Ball((1.0, 0.0), 0.4, names=("x", "z"))
    values, bounds = [], []
    for m in range(3):
        text = f"-div(x*grad(u)) + {m**2}/x*u = lam*x*u"
        found = rp.eigen(rp.Problem(text, section, FIXED, eigenvalue="lam"), 2, tol=1e-9)
        values += list(found.values) * (2 if m else 1)
        bounds += list(found.bounds) * (2 if m else 1)
    seconds = time.process_time() - begin
    order = np.argsort(values)[:5]
    known = np.array(values)[order]
    bound = (np.array(bounds)[order] / known).max()
    beside = elements("torus", known)
    return f"| torus by its section | 1e-5 in 60 s | beside | {bound:.1e} | {seconds:.2f} | yes | | {beside} |"


def folds() -> Iterator[str]:
    """Bratu's fold on the unit square; a Hopf point; branch points of Swift and Hohenberg's equation."""
    square = rp.Box(x=(0, 1), y=(0, 1))
    bratu = rp.Problem("laplace(u) + lam*exp(u) = 0", square, FIXED, parameters={"lam": 0.0})
    yield special("Bratu's fold", "1e-8 in 30 s", 6.80812442259, peer.bratu, bratu, "lam", 0.1, 10.0)
    mixture = rp.Problem(
        ["0.05*u_xx + 1 - (B + 1)*u + u**2*v = 0", "0.02*v_xx + B*u - u**2*v = 0"], rp.Interval(0, 1),
        {"boundary": ("dn(u) = 0", "dn(v) = 0")}, parameters={"B": 1.0},
    )  # fmt: skip
    yield special("Brusselator, Hopf point", "1e-8", 2.0, peer.hopf, mixture, "B", 1.5, 2.3, guess={"u": 1.0, "v": 1.5})
    stripes = rp.Problem(
        ["u + u_xx - w = 0", "r*u - w - w_xx - u**3 = 0"], rp.Interval(0, 10), {"boundary": ("dn(u) = 0", "dn(w) = 0")},
        parameters={"r": 0.0},
    )  # fmt: skip
    least = min((1 - (n * np.pi / 10) ** 2) ** 2 for n in range(1, 8))
    yield special("Swift–Hohenberg, first branch", "1e-8", least, peer.swift_hohenberg, stripes, "r", -0.1, 0.08)


def special(name: str, goal: str, known: float, other: Callable, problem: rp.Problem, *args, **settings) -> str:
    """One line of the table for the first special point of a continuation."""
    begin = time.process_time()
    found = rp.continuation(problem, *args, tol=1e-9, **settings)
    seconds = time.process_time() - begin
    if not found.special:
        return f"| {name} | {goal} | not found | | {seconds:.2f} | no | | |"
    point = found.special[0]
    error, told = abs(point.parameter / known - 1), "yes" if found.converged else "no"
    honest = "yes" if error <= 10 * point.bound / abs(known) + 1e-11 else "NO"
    bound, beside = point.bound / abs(known), scipy_beside(known, other)
    return f"| {name} | {goal} | {error:.1e} | {bound:.1e} | {seconds:.2f} | {told} | {honest} | {beside} |"


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
    parser.add_argument("--peer", default="", help="a Python interpreter that has NGSolve")
    given = parser.parse_args()
    PEER.extend([given.peer] if given.peer else [])
    warnings.simplefilter("ignore")
    if given.draws:
        draws(given.draws)
        return
    print("| problem | goal | error | bound | CPU s | converged | within ten bounds | beside |")
    print("|---" * 8 + "|")
    for part in (lines, drums, boxes, solids, folds):
        if given.only in part.__name__:
            for line in part():
                print(line, flush=True)


if __name__ == "__main__":
    main()
