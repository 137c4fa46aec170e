"""Solving from the equations: error, target, best supervised fit in the same features, and time, in one run.

    python -m benchmarks.solve                 # both tables
    python -m benchmarks.solve poisson wave    # the cases whose name contains one of the words
    python -m benchmarks.solve --free          # the second table only
    python -m benchmarks.solve --slower 10     # on a busy machine: limits ten times longer

First problems of the zoo by collocation with given settings. ``ratio`` is the total time over the time inside
orthogonal least-squares factorisations (target: at most 3). ``fit`` is the relative L² error of the best least-squares
fit to the exact solution in the very features that the solver ended with: a floor for the solver, up to the rounding of
the fit itself.

Then problems with no setting but the error wanted, each beside a strong classical solver, whose resolution was chosen
by hand for the accuracy. A solve gets three times the target's seconds. Errors are relative L² on fresh points, the
largest over the fields; the pressure of the cavity, which is singular in two corners, does not count. Its
reference, 49² nodes, is good to about 2e-5 (41² nodes differ from it by 3e-5), enough to judge 1e-4 and no more.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import rannpde as rp
from benchmarks import classical
from benchmarks.classical import Array, Function
from rannpde.fitting.orthogonal import Factor
from rannpde.pde.collocation.method import CollocationHistory
from rannpde.pde.collocation.subdomains import SubdomainNetwork, locate
from rannpde.pde.zoo import zoo

FRESH = 4000
LONGEST = 120.0
"""Seconds for a solve with given settings."""


# ------------------------------------------------------------------------------------------------- given settings


@dataclass(frozen=True)
class Case:
    """A problem of the zoo, how to solve it, and what is asked of it."""

    name: str
    target: float
    solver: Mapping[str, Any]
    problem: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None

    @property
    def label(self) -> str:
        return self.name + "".join(f" {key}={value}" for key, value in self.problem.items())


CASES = (
    Case("nonlinear_poisson", 1e-12, {"width": 700, "scale": 3.0}, seconds=3.0),
    Case("nonlinear_poisson", 1e-12, {"width": 400}),
    Case("helmholtz", 1e-11, {"width": 500}),
    Case("poisson", 1e-8, {"width": 1000, "scale": 1.0}, {"dim": 5}),
    Case("porous_medium", 6e-5 / 3, {"width": 200}, {"dim": 1}),
    Case("porous_medium", 6e-3 / 3, {"width": 400}, {"dim": 2}),
    Case("porous_medium", 3e-2 / 3, {"width": 600}, {"dim": 3}),
    Case("porous_medium", 1.2e-1 / 3, {"width": 800}, {"dim": 5}),
    Case("porous_medium", 5e-3, {"width": 800, "placement": "placed"}, {"dim": 1, "radius": 0.3}),
    Case("porous_medium", 4e-2, {"width": 800, "placement": "placed"}, {"dim": 2, "radius": 0.3}),
    Case("navier_stokes_lagrangian", 1e-2, {"width": 400, "placement": "placed"}),
)


def best_fit(problem: rp.Problem, solution: rp.Solution) -> float:
    """The largest relative error over the fields of the best fit in the solution's features."""
    exact, network = problem.exact_solution, solution.function
    assert exact is not None
    assert isinstance(network, SubdomainNetwork)
    errors = []
    columns = sum(network.widths)
    points, fresh = problem.domain.sample(6 * columns, rng=11), problem.domain.sample(FRESH, rng=7)
    for number in range(len(problem.fields)):
        squares = 0.0
        for which, piece in enumerate(network.subdomains):
            here, there = (some[locate(network.subdomains, some) == which] for some in (points, fresh))
            step = Factor.of(piece.features(here), exact(here)[:, number]).solve(1e-15)
            squares += float(np.square(piece.features(there) @ step.solution - exact(there)[:, number]).sum())
        errors.append(np.sqrt(squares / np.square(exact(fresh)[:, number]).sum()))
    return float(max(errors))


def conservation(problem: rp.Problem, solution: rp.Solution) -> str:
    """Smallest value, and the largest relative error of the mass in the box over eleven times (fresh points)."""
    exact, domain = problem.exact_solution, problem.domain
    assert exact is not None
    points = domain.sample(20 * FRESH, rng=9, method="sobol")
    gaps = []
    for moment in np.linspace(domain.bounds[0, 0], domain.bounds[0, 1], 11):
        points[:, 0] = moment
        gaps.append(abs(solution(points).mean() / exact(points).mean() - 1))
    return f"    smallest value {solution(domain.sample(20 * FRESH, rng=8)).min():.1e}, mass to {max(gaps):.1e}"


def run(case: Case, slower: float) -> str:
    """Solve one case; the row of the table."""
    problem = zoo(case.name, **case.problem)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ConvergenceWarning)
        solution = rp.solve(problem, tol=case.target, method=rp.Collocation(**case.solver), seconds=slower * LONGEST)
    error = max(solution.errors(FRESH).values())
    met = error <= case.target and (case.seconds is None or solution.seconds <= slower * case.seconds)
    assert isinstance(solution.history, CollocationHistory)
    ratio = solution.seconds / solution.history.linear_seconds
    fit = best_fit(problem, solution)
    more = "\n" + conservation(problem, solution) if "radius" in case.problem else ""
    return (
        f"{case.label:<38}{sum(solution.widths):>7}{error:>10.1e}{case.target:>10.1e}{fit:>10.1e}"
        f"{solution.seconds:>9.2f}{ratio:>7.1f}   {'met' if met else 'MISSED'}{more}"
    )


# ------------------------------------------------------------------------------------------------- no settings


@dataclass(frozen=True)
class Free:
    """A problem, the error wanted within so many seconds, and the classical solver.

    truth : where no exact solution is known; fields : how many of them count
    """

    problem: Callable[[], rp.Problem]
    target: float
    seconds: float
    classical: Callable[[], Function]
    label: str
    truth: Callable[[], Function] | None = None
    fields: int | None = None


def sines() -> rp.Problem:
    exact = "sin(10*pi*x)*sin(10*pi*y)"
    sides = {"sides": rp.On("boundary", "u = 0")}
    return rp.Problem(f"-laplace(u) = 200*pi**2*{exact}", rp.Box(x=(0, 1), y=(0, 1)), sides, exact={"u": exact})


def sines_classical() -> Function:
    load = lambda p: 200 * np.pi**2 * np.sin(10 * np.pi * p[:, 0]) * np.sin(10 * np.pi * p[:, 1])  # noqa: E731
    return classical.poisson(2, 56, load, lambda p: np.zeros(len(p)))


def cavity() -> rp.Problem:
    """The lid moves smoothly; the pressure is zero in a corner."""
    equations = {
        "momentum x": "u*u_x + v*u_y + p_x = nu*laplace(u)",
        "momentum y": "u*v_x + v*v_y + p_y = nu*laplace(v)",
        "mass": "u_x + v_y = 0",
    }
    walls = ("x=0", "x=1", "y=0")
    conditions = {
        "lid": rp.On("y=1", "u = 4*x*(1 - x)"),
        "walls, u": rp.On(walls, "u = 0"),
        "all sides, v": rp.On("boundary", "v = 0"),
        "level": rp.Data(np.zeros((1, 2)), np.zeros(1), "p"),
    }
    return rp.Problem(equations, rp.Box(x=(0, 1), y=(0, 1)), conditions, {"nu": 0.01}, fields=("u", "v", "p"))


def cavity_classical(nodes: int) -> Function:
    def velocity(points: Array) -> Array:
        x, y = points.T
        return np.column_stack([np.where(y > 1 - 1e-12, 4 * x * (1 - x), 0.0), np.zeros(len(x))])

    return classical.navier_stokes(np.array([[0.0, 1.0], [0.0, 1.0]]), 0.01, velocity, (0.0, 0.0, 0.0), nodes)


def kovasznay_classical() -> Function:
    problem = zoo("kovasznay")
    exact = problem.exact_solution
    assert exact is not None
    level = float(exact(np.array([[-0.5, 0.0]]))[0, 2])
    return classical.navier_stokes(problem.domain.bounds, 1 / 40, lambda p: exact(p)[:, :2], (-0.5, 0.0, level), 24)


EPSILON = 1e-4


def layer() -> rp.Problem:
    ends = {"ends": rp.On(("x=0", "x=1"), "u = 0")}
    exact = {"u": lambda points: points[:, 0] - np.exp((points[:, 0] - 1) / EPSILON)}
    return rp.Problem("-eps*u_xx + u_x = 1", rp.Interval(0, 1), ends, {"eps": EPSILON}, exact=exact)


def layer_square() -> rp.Problem:
    sides = {"sides": rp.On("boundary", "u = 0")}
    equation, domain = "-eps*laplace(u) + u_x = sin(pi*y)", rp.Box(x=(0, 1), y=(0, 1))
    return rp.Problem(equation, domain, sides, {"eps": EPSILON}, exact={"u": layer_exact})


def layer_exact(points: Array) -> Array:
    """g(x) sin πy with -ε g'' + g' + ε π² g = 1, g = 0 at both ends."""
    x, y = points.T
    root = np.sqrt(1 + (2 * np.pi * EPSILON) ** 2)
    slow, fast = -2 * EPSILON * np.pi**2 / (1 + root), (1 + root) / (2 * EPSILON)
    g = (-np.expm1(slow * x) + np.expm1(slow) * np.exp(fast * (x - 1))) / (EPSILON * np.pi**2)
    return g * np.sin(np.pi * y)


def cube(exact: str, load: str) -> rp.Problem:
    sides = {"sides": rp.On("boundary", f"u = {exact}")}
    return rp.Problem(f"-laplace(u) = {load}", rp.Box([(0, 1)] * 5), sides, exact={"u": exact})


SUM, SQUARES = "(x1 + x2 + x3 + x4 + x5)", "(x1**2 + x2**2 + x3**2 + x4**2 + x5**2)"


def ridge() -> rp.Problem:
    return cube(f"sin{SUM}", f"5*sin{SUM}")


def ridge_classical() -> Function:
    exact = lambda p: np.sin(p.sum(axis=1))  # noqa: E731
    return classical.poisson(5, 8, lambda p: 5 * exact(p), exact)


def gaussian() -> rp.Problem:
    return cube(f"exp(-{SQUARES})", f"(10 - 4*{SQUARES})*exp(-{SQUARES})")


def gaussian_classical() -> Function:
    exact = lambda p: np.exp(-np.square(p).sum(axis=1))  # noqa: E731
    return classical.poisson(5, 10, lambda p: (10 - 4 * np.square(p).sum(axis=1)) * exact(p), exact)


def ball() -> rp.Problem:
    exact = f"exp({SQUARES}/2 + t)"
    conditions = {"start": rp.On("t=0", f"u = {exact}"), "edge": rp.On("boundary", f"dn(u) = {exact}")}
    domain = rp.SpaceTime(t=(0, 1), x=rp.Ball((0,) * 5, 1))
    return rp.Problem(f"u_t = laplace(u)/5 - {SQUARES}/5*{exact}", domain, conditions, exact={"u": exact})


FREE = {
    "sines": Free(sines, 1e-9, 5.0, sines_classical, "57² nodes"),
    "cavity": Free(
        cavity, 1e-4, 30.0, lambda: cavity_classical(32), "33² nodes", lambda: cavity_classical(48), fields=2
    ),
    "kovasznay": Free(lambda: zoo("kovasznay"), 1e-11, 5.0, kovasznay_classical, "25² nodes"),
    "layer": Free(layer, 1e-9, 1.0, lambda: classical.layer(EPSILON, 64), "65 mapped nodes"),
    "layer in 2-D": Free(layer_square, 1e-6, 20.0, lambda: classical.layer(EPSILON, 56, 16), "57 × 17 mapped nodes"),
    "ridge in 5-D": Free(ridge, 1e-8, 10.0, ridge_classical, "9⁵ nodes"),
    "gaussian in 5-D": Free(gaussian, 1e-7, 10.0, gaussian_classical, "11⁵ nodes"),
    "ball in 5-D": Free(ball, 1e-7, 30.0, lambda: classical.ball_heat(12, 1e-8), "13 nodes, as it is radial"),
}


def largest_error(function: Function, exact: Function, points: Array, fields: int | None) -> float:
    """Relative L², the largest over the first fields."""
    found, wanted = (np.reshape(f(points), (len(points), -1))[:, :fields] for f in (function, exact))
    return float((np.linalg.norm(found - wanted, axis=0) / np.linalg.norm(wanted, axis=0)).max())


def run_free(name: str, slower: float) -> str:
    """Solve one case with nothing but the error wanted; the row of the table."""
    case = FREE[name]
    problem = case.problem()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = rp.solve(problem, tol=case.target, seconds=3 * slower * case.seconds)
    points = problem.domain.sample(FRESH, rng=7)
    exact = case.truth() if case.truth else problem.exact_solution
    assert exact is not None
    error = largest_error(solution.function, exact, points, case.fields)
    begin = time.perf_counter()
    other = case.classical()
    seconds = time.perf_counter() - begin
    theirs = largest_error(other, exact, points, case.fields)
    met = error <= case.target and solution.seconds <= slower * case.seconds
    goal = f"{case.target:.0e} in {case.seconds:g} s"
    return (
        f"{name:<18}{error:>9.1e}{solution.estimate:>10.1e}{solution.seconds:>9.2f}"
        f"{'yes' if solution.converged else 'no':>11}   {goal:<14}{'met' if met else 'MISSED':<8}"
        f"{theirs:>9.1e}{seconds:>9.2f}   {case.label}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--free", action="store_true")
    parser.add_argument("--slower", type=float, default=1.0)
    options = parser.parse_args()

    def wanted(label: str) -> bool:
        return not options.words or any(word in label for word in options.words)

    rp.solve(zoo("poisson"), tol=1e-3)  # imports and first calls are not counted
    given = [case for case in CASES if wanted(case.label) and not options.free]
    if given:
        print("Collocation with given settings")
        print(f"{'problem':<38}{'columns':>7}{'error':>10}{'target':>10}{'fit':>10}{'seconds':>9}{'ratio':>7}")
        for case in given:
            print(run(case, options.slower), flush=True)
        print()
    print("Nothing given but the error wanted, and a classical solver")
    head = f"{'problem':<18}{'error':>9}{'estimate':>10}{'seconds':>9}{'converged':>11}   {'target':<22}"
    print(f"{head}{'classical':>9}{'seconds':>9}")
    for name in filter(wanted, FREE):
        print(run_free(name, options.slower), flush=True)


if __name__ == "__main__":
    main()
