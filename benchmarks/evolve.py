"""Evolution equations to many digits, beside a classical spectral solver of the same accuracy, in one run.

    python benchmarks/evolve.py                     the whole table, about two minutes
    python benchmarks/evolve.py --only burgers kdv
    python benchmarks/evolve.py --small             loose tolerances, to see that it runs

Ours: ``solve(problem, tol=…)`` and nothing else. Classical: Chebyshev or Fourier collocation with SciPy's Radau (with
the exact Jacobian) or ETDRK4, its number of nodes chosen by hand for the accuracy; ours has to find everything. Errors
are relative L² over space-time on fresh uniform points. References: exact solutions where they exist, else a Fourier
solution with more modes and a tighter tolerance than either. Where the classical one wins, the table says so.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp
from scipy.sparse import diags_array

from rannpde.domains import SpaceTime
from rannpde.pde.problem.conditions import On, Periodic
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solve import solve
from rannpde.pde.zoo import zoo

TIMES = 1000
"""Errors are measured at this many times, which the steps of the classical solvers meet."""

Array = np.ndarray
Function = Callable[[Array], Array]


@dataclass(frozen=True)
class Case:
    """A problem, the tolerance we ask for, the target, and the classical solver and reference, if any."""

    problem: Problem
    tol: float
    target: str
    exact: Function | None
    classical: Callable[[], Function] | None = None
    label: str = ""


# ------------------------------------------------------------------------------------------ classical solvers


def chebyshev(
    problem: Problem, nodes: int, rate: Callable, jacobian: Callable, start: Function, rtol: float
) -> Function:
    """u at Chebyshev points with u = 0 at both ends, SciPy's Radau; barycentric interpolation in space."""
    (t0, t1), (lower, upper) = problem.domain.time, problem.domain.space.bounds[0]
    x, D, weights = chebyshev_points(nodes, lower, upper)
    inner = slice(1, -1)
    D1, D2 = D[inner, inner], (D @ D)[inner, inner]
    solution = solve_ivp(
        lambda t, u: rate(u, D1, D2), (t0, t1), start(x[inner]), method="Radau", jac=lambda t, u: jacobian(u, D1, D2),
        rtol=rtol, atol=1e-2 * rtol, dense_output=True,
    )  # fmt: skip

    def evaluate(points: Array) -> Array:
        values = np.zeros((nodes + 1, len(points)))
        values[inner] = solution.sol(points[:, 0])
        return barycentric(x, weights, values, points[:, 1])

    return evaluate


def fourier(problem: Problem, modes: int, linear: Function, flux: Callable, start: Function, steps: int) -> Function:
    """û' = linear(k) û + flux: ETDRK4 with fixed steps (Kassam & Trefethen 2005), quadratic terms without aliases."""
    (t0, t1), (lower, upper) = problem.domain.time, problem.domain.space.bounds[0]
    size, h = 3 * modes, (t1 - t0) / steps
    x = lower + (upper - lower) * np.arange(8 * size) / (8 * size)
    k = 2 * np.pi * np.arange(modes + 1) / (upper - lower)
    circle = np.exp(2j * np.pi * (np.arange(64) + 0.5) / 64)
    z = h * linear(k)[:, None] + circle
    E, E2 = np.exp(h * linear(k)), np.exp(h * linear(k) / 2)
    Q = h * ((np.exp(z / 2) - 1) / z).mean(axis=1)
    f1 = h * ((-4 - z + np.exp(z) * (4 - 3 * z + z**2)) / z**3).mean(axis=1)
    f2 = h * ((2 + z + np.exp(z) * (z - 2)) / z**3).mean(axis=1)
    f3 = h * ((-4 - 3 * z - z**2 + np.exp(z) * (4 - z)) / z**3).mean(axis=1)

    def rate(w: Array) -> Array:
        u = np.fft.irfft(np.pad(w, (0, size // 2 - modes)), size, norm="forward")
        return flux(u, k, lambda v: np.fft.rfft(v, norm="forward")[: modes + 1])

    w = np.fft.rfft(start(x), norm="forward")[: modes + 1]
    kept, every = [w], steps // TIMES
    for step in range(1, steps + 1):
        n = rate(w)
        a = E2 * w + Q * n
        na = rate(a)
        b = E2 * w + Q * na
        nb = rate(b)
        c = E2 * a + Q * (2 * nb - n)
        w = E * w + n * f1 + 2 * (na + nb) * f2 + rate(c) * f3
        if step % every == 0:
            kept.append(w)
    table = np.array(kept)

    def evaluate(points: Array) -> Array:
        rows = np.rint((points[:, 0] - t0) / (t1 - t0) * TIMES).astype(int)
        w = table[rows] * np.where(np.arange(modes + 1) > 0, 2.0, 1.0)
        return (w * np.exp(1j * np.outer(points[:, 1] - lower, k))).sum(axis=1).real

    return evaluate


def chebyshev_points(nodes: int, lower: float, upper: float) -> tuple[Array, Array, Array]:
    """Points (nodes + 1,), differentiation matrix and barycentric weights."""
    k = np.arange(nodes + 1)
    s = np.cos(np.pi * k / nodes)
    ends = (k == 0) | (k == nodes)
    c = np.where(ends, 2.0, 1.0) * (-1.0) ** k
    D = np.outer(c, 1 / c) / (s[:, None] - s + np.eye(nodes + 1))
    D -= np.diag(D.sum(axis=1))
    return lower + (s + 1) * (upper - lower) / 2, D * 2 / (upper - lower), np.where(ends, 0.5, 1.0) * (-1.0) ** k


def barycentric(x: Array, weights: Array, values: Array, places: Array) -> Array:
    """Column m of the values (nodes + 1, M) at place m."""
    parts = weights[:, None] / (places - x[:, None])
    return (parts * values).sum(axis=0) / parts.sum(axis=0)


# ------------------------------------------------------------------------------------------------------ problems


def burgers(viscosity: float, tol: float, target: str, nodes: int, rtol: float) -> Case:
    problem = zoo("burgers", viscosity=viscosity)

    def classical() -> Function:
        return chebyshev(
            problem, nodes,
            lambda u, D1, D2: viscosity * (D2 @ u) - u * (D1 @ u),
            lambda u, D1, D2: viscosity * D2 - u[:, None] * D1 - np.diag(D1 @ u),
            lambda x: -np.sin(np.pi * x), rtol,
        )  # fmt: skip

    return Case(problem, tol, target, problem.exact_solution, classical, f"Chebyshev, {nodes + 1} nodes")


def periodic(equation: str, domain: SpaceTime, start: str, **parameters: float) -> Problem:
    return Problem(equation, domain, {"start": On("t=0", f"u = {start}"), "circle": Periodic("x")}, parameters)


def allen_cahn() -> Case:
    problem = periodic("u_t = 0.0001*u_xx - 5*u**3 + 5*u", SpaceTime(t=(0, 1), x=(-1, 1)), "x**2*cos(pi*x)")

    def run(modes: int, steps: int) -> Function:
        flux = lambda u, k, modes_of: modes_of(5 * u - 5 * u**3)  # noqa: E731
        return fourier(problem, modes, lambda k: -1e-4 * k**2 + 0j, flux, lambda x: x**2 * np.cos(np.pi * x), steps)

    return Case(problem, 1e-5, "1e-5 in 20 s", run(1600, 2000), lambda: run(800, 1000), "Fourier ETDRK4, 800 modes")


def kdv() -> Case:
    problem = periodic("u_t + u*u_x + delta**2*u_xxx = 0", SpaceTime(t=(0, 1), x=(-1, 1)), "cos(pi*x)", delta=0.022)

    def run(modes: int, steps: int) -> Function:
        flux = lambda u, k, modes_of: -0.5j * k * modes_of(u**2)  # noqa: E731
        return fourier(problem, modes, lambda k: 1j * 0.022**2 * k**3, flux, lambda x: np.cos(np.pi * x), steps)

    return Case(problem, 1e-7, "1e-7 in 20 s", run(192, 40000), lambda: run(128, 10000), "Fourier ETDRK4, 128 modes")


def kuramoto_sivashinsky() -> Case:
    domain = SpaceTime(t=(0, 5), x=(0, 32 * np.pi))
    problem = periodic("u_t + u*u_x + u_xx + u_xxxx = 0", domain, "cos(x/16)*(1 + sin(x/16))")

    def run(modes: int, steps: int) -> Function:
        flux = lambda u, k, modes_of: -0.5j * k * modes_of(u**2)  # noqa: E731
        return fourier(problem, modes, lambda k: k**2 - k**4 + 0j, flux, _ks_start, steps)

    return Case(problem, 1e-6, "1e-6", run(96, 8000), lambda: run(48, 1000), "Fourier ETDRK4, 48 modes")


def _ks_start(x: Array) -> Array:
    return np.cos(x / 16) * (1 + np.sin(x / 16))


def advection() -> Case:
    domain = SpaceTime(t=(0, 1), x=(0, 2 * np.pi))
    problem = periodic("u_t + beta*u_x = 0", domain, "sin(x)", beta=40.0)
    exact = lambda points: np.sin(points[:, 1] - 40 * points[:, 0])  # noqa: E731

    def classical() -> Function:
        return fourier(problem, 4, lambda k: 0j * k, lambda u, k, modes_of: -40j * k * modes_of(u), np.sin, 20000)

    return Case(problem, 1e-9, "1e-9 in 2 s", exact, classical, "Fourier ETDRK4, 4 modes")


def wave() -> Case:
    conditions = {
        "shape": On("t=0", "u = sin(pi*x) + 0.5*sin(4*pi*x)"),
        "rest": On("t=0", "u_t = 0"),
        "ends": On(("x=0", "x=1"), "u = 0"),
    }
    exact = "sin(pi*x)*cos(2*pi*t) + 0.5*sin(4*pi*x)*cos(8*pi*t)"
    problem = Problem("u_tt = 4*u_xx", SpaceTime(t=(0, 1), x=(0, 1)), conditions, exact={"u": exact})

    def classical(nodes: int = 40) -> Function:
        x, D, weights = chebyshev_points(nodes, 0.0, 1.0)
        D2 = 4 * (D @ D)[1:-1, 1:-1]
        n = nodes - 1
        first = (np.sin(np.pi * x) + 0.5 * np.sin(4 * np.pi * x))[1:-1]
        matrix = np.block([[np.zeros((n, n)), np.eye(n)], [D2, np.zeros((n, n))]])
        start = np.append(first, np.zeros(n))
        result = solve_ivp(
            lambda t, y: matrix @ y, (0, 1), start, method="Radau", jac=matrix, rtol=1e-9, atol=1e-10, dense_output=True
        )

        def evaluate(points: Array) -> Array:
            values = np.zeros((nodes + 1, len(points)))
            values[1:-1] = result.sol(points[:, 0])[:n]
            return barycentric(x, weights, values, points[:, 1])

        return evaluate

    return Case(problem, 1e-8, "1e-8 in 2 s", problem.exact_solution, classical, "Chebyshev, 41 nodes")


def barenblatt() -> Case:
    problem = zoo("porous_medium", radius=0.3)
    exact = problem.exact_solution
    assert exact is not None

    def classical(cells: int = 800) -> Function:
        """Finite volumes of second order, banded Jacobian: what one uses for degenerate diffusion."""
        h = 1.0 / cells
        x = (np.arange(cells) + 0.5) * h
        first = exact(np.column_stack([np.full(cells, 0.1), x]))[:, 0]

        def rate(t: float, u: Array) -> Array:
            ends = exact(np.array([[t, 0.0], [t, 1.0]]))[:, 0] ** 2
            square = u**2
            flux = np.concatenate([[2 * (square[0] - ends[0])], np.diff(square), [2 * (ends[1] - square[-1])]]) / h
            return np.diff(flux) / h

        band = diags_array([np.ones(cells - 1), np.ones(cells), np.ones(cells - 1)], offsets=[-1, 0, 1])
        result = solve_ivp(
            rate, (0.1, 1.1), first, method="BDF", jac_sparsity=band, rtol=1e-6, atol=1e-8, dense_output=True
        )

        def evaluate(points: Array) -> Array:
            table = result.sol(points[:, 0])
            return np.array([np.interp(p, x, column) for p, column in zip(points[:, 1], table.T, strict=True)])

        return evaluate

    return Case(problem, 1e-4, "1e-4 in 15 s", exact, classical, "finite volumes, 800 cells")


def navier_stokes() -> Case:
    problem = zoo("navier_stokes_lagrangian")
    exact = problem.exact_solution
    assert exact is not None

    def classical(nodes: int = 256) -> Function:
        """Chebyshev collocation, the velocity given at both ends, exact Jacobian, SciPy's Radau."""
        x, D, weights = chebyshev_points(nodes, -5.0, 5.0)
        epsilon, gamma, mu = (problem.parameters[name] for name in ("epsilon", "gamma", "mu"))
        n, inner = nodes + 1, slice(1, -1)

        def split(t: float, y: Array) -> tuple[Array, Array]:
            ends = exact(np.column_stack([np.full(2, t), x[[0, -1]]]))[:, 1]
            return y[:n], np.concatenate([ends[:1], y[n:], ends[1:]])

        def rate(t: float, y: Array) -> Array:
            v, u = split(t, y)
            u_x = D @ u
            return np.append(u_x, (D @ (mu * u_x / v - epsilon * (v - 1) ** -gamma))[inner])

        def jacobian(t: float, y: Array) -> Array:
            v, u = split(t, y)
            by_volume = D * (gamma * epsilon * (v - 1) ** (-gamma - 1) - mu * (D @ u) / v**2)
            by_velocity = (D * (mu / v)) @ D
            return np.block([[np.zeros((n, n)), D[:, inner]], [by_volume[inner], by_velocity[inner, inner]]])

        state = exact(np.column_stack([np.zeros(n), x]))
        first = np.append(state[:, 0], state[inner, 1])
        result = solve_ivp(rate, (0, 1), first, method="Radau", jac=jacobian, rtol=1e-6, atol=1e-8, dense_output=True)

        def evaluate(points: Array) -> Array:
            states = [split(t, y) for t, y in zip(points[:, 0], result.sol(points[:, 0]).T, strict=True)]
            tables = [np.stack([pair[k] for pair in states], axis=1) for k in range(2)]
            return np.stack([barycentric(x, weights, table, points[:, 1]) for table in tables], axis=1)

        return evaluate

    return Case(problem, 5e-6, "5e-6 in 25 s", exact, classical, "Chebyshev, 257 nodes")


CASES: dict[str, Callable[[], Case]] = {
    "burgers": lambda: burgers(0.01, 1e-12, "1e-12 in 6 s", 512, 1e-9),
    "burgers 1e-8": lambda: burgers(0.01, 1e-8, "1e-8 in 2 s", 384, 1e-8),
    "burgers sharp": lambda: burgers(0.01 / np.pi, 2e-12, "5e-12 in 10 s", 768, 1e-7),
    "allen-cahn": allen_cahn,
    "kdv": kdv,
    "kuramoto-sivashinsky": kuramoto_sivashinsky,
    "advection": advection,
    "wave": wave,
    "barenblatt": barenblatt,
    "navier-stokes": navier_stokes,
}


def timed(call: Callable[[], object]) -> tuple[object, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def error(function: Function, exact: Function, points: Array) -> float:
    """Relative L², the largest over the fields."""
    found, wanted = (np.reshape(f(points), (len(points), -1)) for f in (function, exact))
    return float((np.linalg.norm(found - wanted, axis=0) / np.linalg.norm(wanted, axis=0)).max())


def run(name: str, small: bool) -> None:
    case = CASES[name]()
    assert case.exact is not None
    tol = max(case.tol, 1e-4) if small else case.tol
    solution, wall, cpu = timed(lambda: solve(case.problem, tol=tol))
    points = case.problem.domain.sample(4000, rng=99)
    start, end = case.problem.domain.time
    points[:, 0] = (
        start + (end - start) * np.clip(np.rint((points[:, 0] - start) / (end - start) * TIMES), 1, TIMES) / TIMES
    )
    ours = error(solution.network, case.exact, points)  # type: ignore[attr-defined]
    estimate = solution.estimate  # type: ignore[attr-defined]
    line = f"{name:<22}{tol:8.0e}{ours:10.1e}{estimate:10.1e}{wall:8.2f}{cpu:8.2f}   target {case.target:<15}"
    if case.classical is not None:
        other, other_wall, _ = timed(case.classical)
        theirs = error(other, case.exact, points)  # type: ignore[arg-type]
        line += f"{case.label}: {theirs:.1e} in {other_wall:.2f} s, {other_wall / wall:.1f} times ours"
        line += "   (classical wins)" if theirs <= ours and other_wall <= wall else ""
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=CASES, nargs="*")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    solve(zoo("heat"), tol=1e-3)  # imports and first calls are not counted
    print(f"{'problem':<22}{'tol':>8}{'error':>10}{'estimate':>10}{'wall s':>8}{'CPU s':>8}")
    for name in options.only or CASES:
        run(name, options.small)


if __name__ == "__main__":
    main()
