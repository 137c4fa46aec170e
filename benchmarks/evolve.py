"""Evolution equations to many digits, beside a classical spectral solver of the same accuracy, in one run.

    python -m benchmarks.evolve                     the whole table, some minutes
    python -m benchmarks.evolve --only burgers kdv
    python -m benchmarks.evolve --small             loose tolerances, to see that it runs
    python -m benchmarks.evolve --slower 10         on a busy machine: limits ten times longer

Ours: ``solve(problem, tol=…)`` and nothing else, with three times the target's seconds. Classical: Chebyshev or Fourier
collocation with SciPy's Radau (with the exact Jacobian) or ETDRK4, its number of nodes chosen by hand for the accuracy;
ours has to find everything. Errors are relative L² over space-time on fresh uniform points. References: exact solutions
where they exist, else a Fourier solution with more modes and a tighter tolerance than either. Where the classical one
wins, the table says so. For jumps, the target is an estimate that is within a factor of 3 of the error.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.sparse import diags_array

import rannpde as rp
from benchmarks import classical
from benchmarks.classical import Array, Function, barycentric, chebyshev_points
from benchmarks.reference_solvers.fourier import Waves, carried, gray_scott_rate
from benchmarks.reference_solvers.fourier import square as fourier_square
from rannpde.pde.zoo import zoo

TIMES = 1000
"""Errors are measured at this many times, which the steps of the classical solvers meet."""

SHARED_TIMES = 40
"""The same in several dimensions of space, where a classical solution is evaluated time by time."""
HONEST = 3.0
"""The factor between estimate and error that is allowed where the solution jumps."""


@dataclass(frozen=True)
class Case:
    """A problem, the error wanted, the target, and the classical solver and reference, if any.

    target : the error to reach within ``seconds``; None where the estimate only has to be honest
    fields : how many of them count
    """

    problem: rp.Problem
    tol: float
    target: float | None
    seconds: float
    exact: Function | None
    classical: Callable[[], Function] | None = None
    label: str = ""
    fields: int | None = None

    @property
    def times(self) -> int:
        return TIMES if self.problem.domain.dim == 2 else SHARED_TIMES

    @property
    def goal(self) -> str:
        wanted = f"{self.target:.0e}" if self.target else f"estimate within {HONEST:g}"
        return f"{wanted} in {self.seconds:g} s"

    def met(self, error: float, estimate: float, seconds: float) -> bool:
        good = error <= self.target if self.target else error / HONEST <= estimate <= error * HONEST
        return bool(good) and seconds <= self.seconds


# ------------------------------------------------------------------------------------------ classical solvers


def chebyshev(
    problem: rp.Problem, nodes: int, rate: Callable, jacobian: Callable, start: Function, rtol: float
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


def fourier(problem: rp.Problem, modes: int, linear: Function, flux: Callable, start: Function, steps: int) -> Function:
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


# ------------------------------------------------------------------------------------------------------ problems


def burgers(viscosity: float, tol: float, target: float, seconds: float, nodes: int, rtol: float) -> Case:
    problem = zoo("burgers", viscosity=viscosity)

    def classical() -> Function:
        return chebyshev(
            problem, nodes,
            lambda u, D1, D2: viscosity * (D2 @ u) - u * (D1 @ u),
            lambda u, D1, D2: viscosity * D2 - u[:, None] * D1 - np.diag(D1 @ u),
            lambda x: -np.sin(np.pi * x), rtol,
        )  # fmt: skip

    return Case(problem, tol, target, seconds, problem.exact_solution, classical, f"Chebyshev, {nodes + 1} nodes")


def periodic(equation: str, domain: rp.SpaceTime, start: str, **parameters: float) -> rp.Problem:
    return rp.Problem(equation, domain, {"start": rp.On("t=0", f"u = {start}"), "circle": rp.Periodic("x")}, parameters)


def allen_cahn() -> Case:
    problem = periodic("u_t = 0.0001*u_xx - 5*u**3 + 5*u", rp.SpaceTime(t=(0, 1), x=(-1, 1)), "x**2*cos(pi*x)")

    def run(modes: int, steps: int) -> Function:
        flux = lambda u, k, modes_of: modes_of(5 * u - 5 * u**3)  # noqa: E731
        return fourier(problem, modes, lambda k: -1e-4 * k**2 + 0j, flux, lambda x: x**2 * np.cos(np.pi * x), steps)

    return Case(problem, 1e-5, 1e-5, 20.0, run(1600, 2000), lambda: run(800, 1000), "Fourier ETDRK4, 800 modes")


def kdv() -> Case:
    problem = periodic("u_t + u*u_x + delta**2*u_xxx = 0", rp.SpaceTime(t=(0, 1), x=(-1, 1)), "cos(pi*x)", delta=0.022)

    def run(modes: int, steps: int) -> Function:
        flux = lambda u, k, modes_of: -0.5j * k * modes_of(u**2)  # noqa: E731
        return fourier(problem, modes, lambda k: 1j * 0.022**2 * k**3, flux, lambda x: np.cos(np.pi * x), steps)

    return Case(problem, 1e-7, 1e-7, 20.0, run(192, 40000), lambda: run(128, 10000), "Fourier ETDRK4, 128 modes")


def kuramoto_sivashinsky() -> Case:
    domain = rp.SpaceTime(t=(0, 5), x=(0, 32 * np.pi))
    problem = periodic("u_t + u*u_x + u_xx + u_xxxx = 0", domain, "cos(x/16)*(1 + sin(x/16))")

    def run(modes: int, steps: int) -> Function:
        flux = lambda u, k, modes_of: -0.5j * k * modes_of(u**2)  # noqa: E731
        return fourier(problem, modes, lambda k: k**2 - k**4 + 0j, flux, _ks_start, steps)

    return Case(problem, 1e-6, 1e-6, 5.0, run(96, 8000), lambda: run(48, 1000), "Fourier ETDRK4, 48 modes")


def _ks_start(x: Array) -> Array:
    return np.cos(x / 16) * (1 + np.sin(x / 16))


def advection() -> Case:
    domain = rp.SpaceTime(t=(0, 1), x=(0, 2 * np.pi))
    problem = periodic("u_t + beta*u_x = 0", domain, "sin(x)", beta=40.0)
    exact = lambda points: np.sin(points[:, 1] - 40 * points[:, 0])  # noqa: E731

    def classical() -> Function:
        return fourier(problem, 4, lambda k: 0j * k, lambda u, k, modes_of: -40j * k * modes_of(u), np.sin, 20000)

    return Case(problem, 1e-9, 1e-9, 2.0, exact, classical, "Fourier ETDRK4, 4 modes")


def wave() -> Case:
    conditions = {
        "shape": rp.On("t=0", "u = sin(pi*x) + 0.5*sin(4*pi*x)"),
        "rest": rp.On("t=0", "u_t = 0"),
        "ends": rp.On(("x=0", "x=1"), "u = 0"),
    }
    exact = "sin(pi*x)*cos(2*pi*t) + 0.5*sin(4*pi*x)*cos(8*pi*t)"
    problem = rp.Problem("u_tt = 4*u_xx", rp.SpaceTime(t=(0, 1), x=(0, 1)), conditions, exact={"u": exact})

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

    return Case(problem, 1e-8, 1e-8, 2.0, problem.exact_solution, classical, "Chebyshev, 41 nodes")


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

    return Case(problem, 1e-4, 1e-4, 15.0, exact, classical, "finite volumes, 800 cells")


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

    return Case(problem, 5e-6, 5e-6, 25.0, exact, classical, "Chebyshev, 257 nodes")


def times_of(problem: rp.Problem) -> Array:
    """The times that several-dimensional classical solvers keep."""
    assert isinstance(problem.domain, rp.SpaceTime)
    return np.linspace(*problem.domain.time, SHARED_TIMES + 1)


def heat(names: str, seconds: float, nodes: int) -> Case:
    """The unit square or cube, Π sin πx."""
    profile, dim = "*".join(f"sin(pi*{name})" for name in names), len(names)
    conditions = {"start": rp.On("t=0", f"u = {profile}"), "walls": rp.On("boundary", "u = 0")}
    domain = rp.SpaceTime(t=(0, 0.2), **dict.fromkeys(names, (0, 1)))
    problem = rp.Problem("u_t = laplace(u)", domain, conditions, exact={"u": f"exp(-{dim}*pi**2*t)*{profile}"})

    def run() -> Function:
        start = lambda points: np.sin(np.pi * points).prod(axis=1)  # noqa: E731
        return classical.modal([nodes] * dim, [1.0] * dim, start, lambda rates, t: np.exp(rates * t))

    return Case(problem, 1e-9, 1e-9, seconds, problem.exact_solution, run, f"Chebyshev, {nodes + 1} nodes a side")


def two_scales() -> Case:
    """PINNacle's Heat 2d-MS."""
    profile = "sin(20*pi*x)*sin(pi*y)"
    conditions = {"start": rp.On("t=0", f"u = {profile}"), "walls": rp.On("boundary", "u = 0")}
    domain = rp.SpaceTime(t=(0, 5), x=(0, 1), y=(0, 1))
    equation, exact = "u_t = u_xx/(500*pi)**2 + u_yy/pi**2", f"exp(-(1 + (20/500)**2)*t)*{profile}"
    problem = rp.Problem(equation, domain, conditions, exact={"u": exact})

    def run() -> Function:
        start = lambda p: np.sin(20 * np.pi * p[:, 0]) * np.sin(np.pi * p[:, 1])  # noqa: E731
        rates = (1 / (500 * np.pi) ** 2, 1 / np.pi**2)
        return classical.modal([72, 20], rates, start, lambda rates, t: np.exp(rates * t))

    return Case(problem, 1e-8, 1e-8, 5.0, problem.exact_solution, run, "Chebyshev, 73 × 21 nodes")


def wave_square() -> Case:
    """PINNacle's Wave 2d-MS, with a solution that solves it."""
    shape = "sin(pi*x)*sin(pi*y) + sin(3*pi*x)*sin(2*pi*y)"
    exact = "sin(pi*x)*sin(pi*y)*cos(sqrt(3)*pi*t) + sin(3*pi*x)*sin(2*pi*y)*cos(sqrt(17)*pi*t)"
    conditions = {
        "shape": rp.On("t=0", f"u = {shape}"),
        "rest": rp.On("t=0", "u_t = 0"),
        "walls": rp.On("boundary", "u = 0"),
    }
    domain = rp.SpaceTime(t=(0, 100), x=(0, 1), y=(0, 1))
    problem = rp.Problem("u_tt = u_xx + 2*u_yy", domain, conditions, exact={"u": exact})

    def run() -> Function:
        def start(points: Array) -> Array:
            x, y = np.pi * points.T
            return np.sin(x) * np.sin(y) + np.sin(3 * x) * np.sin(2 * y)

        law = lambda rates, t: np.cos(np.sqrt(np.abs(rates)) * t)  # noqa: E731
        return classical.modal([28, 24], [1.0, 2.0], start, law)

    return Case(problem, 1e-6, 1e-6, 30.0, problem.exact_solution, run, "Chebyshev, 29 × 25 nodes")


def burgers_square() -> Case:
    """The system with the front of Cole–Hopf, its values given on all sides."""
    front = "1/(4*(1 + exp((-4*x + 4*y - t)/(32*nu))))"
    exact = {"u": f"3/4 - {front}", "v": f"3/4 + {front}"}
    conditions = {}
    for name, formula in exact.items():
        conditions[f"start of {name}"] = rp.On("t=0", f"{name} = {formula}")
        conditions[f"sides of {name}"] = rp.On("boundary", f"{name} = {formula}")
    equations = [f"{name}_t + u*{name}_x + v*{name}_y = nu*laplace({name})" for name in exact]
    domain = rp.SpaceTime(t=(0, 1), x=(0, 1), y=(0, 1))
    problem = rp.Problem(equations, domain, conditions, {"nu": 0.01}, fields=("u", "v"), exact=exact)
    known = problem.exact_solution
    assert known is not None

    def run() -> Function:
        return classical.burgers_square(36, 4000, 0.01, known, times_of(problem))

    return Case(problem, 1e-8, 1e-8, 20.0, known, run, "Chebyshev and Runge–Kutta, 37² nodes")


def taylor_green() -> Case:
    """Incompressible Navier–Stokes on a periodic square; the level of the pressure is given at one point."""
    decay = "exp(-2*nu*t)"
    exact = {
        "u": f"cos(x)*sin(y)*{decay}",
        "v": f"-sin(x)*cos(y)*{decay}",
        "p": f"-(cos(2*x) + cos(2*y))/4*{decay}**2",
    }
    equations = {
        "momentum x": "u_t + u*u_x + v*u_y + p_x = nu*laplace(u)",
        "momentum y": "v_t + u*v_x + v*v_y + p_y = nu*laplace(v)",
        "mass": "u_x + v_y = 0",
    }
    times = np.linspace(0, 1, 21)
    corner = np.column_stack([times, np.zeros((len(times), 2))])
    conditions = {
        "start of u": rp.On("t=0", f"u = {exact['u']}"),
        "start of v": rp.On("t=0", f"v = {exact['v']}"),
        "level": rp.Data(corner, -0.5 * np.exp(-0.08 * times), "p"),
        "around x": rp.Periodic("x"),
        "around y": rp.Periodic("y"),
    }
    domain = rp.SpaceTime(t=(0, 1), x=(0, 2 * np.pi), y=(0, 2 * np.pi))
    problem = rp.Problem(equations, domain, conditions, {"nu": 0.02}, fields=("u", "v", "p"), exact=exact)

    def rate(w: Array, waves: Waves) -> Array:
        """-(u·∇)u without its gradient part."""
        (ik, il), f = waves.factors, carried(w, waves)
        square = ik**2 + il**2
        pressure = (ik * f[0] + il * f[1]) / np.where(square == 0, 1.0, square)
        return np.stack([f[0] - ik * pressure, f[1] - il * pressure])

    def run() -> Function:
        return fourier_square(
            (0.0, 2 * np.pi), 16, 200, times_of(problem)[1:], lambda square: -0.02 * np.stack([square] * 2), rate,
            lambda x, y: np.stack([np.cos(x) * np.sin(y), -np.sin(x) * np.cos(y)]),
        )  # fmt: skip

    return Case(problem, 1e-9, 1e-9, 10.0, problem.exact_solution, run, "Fourier ETDRK4, 16²", fields=2)


def gray_scott() -> Case:
    """Of PINNacle, which codes no condition: periodic."""
    start = {"u": "1 - exp(-80*((x + 0.05)**2 + (y + 0.02)**2))", "v": "exp(-80*((x - 0.05)**2 + (y - 0.02)**2))"}
    equations = ["u_t = 1e-5*laplace(u) + 0.04*(1 - u) - u*v**2", "v_t = 5e-6*laplace(v) - 0.1*v + u*v**2"]
    conditions = {f"start of {name}": rp.On("t=0", f"{name} = {formula}") for name, formula in start.items()}
    conditions |= {f"around {axis}": rp.Periodic(axis) for axis in ("x", "y")}
    domain = rp.SpaceTime(t=(0, 200), x=(-1, 1), y=(-1, 1))
    problem = rp.Problem(equations, domain, conditions, fields=("u", "v"))

    def run(size: int, steps: int) -> Function:
        def first(x: Array, y: Array) -> Array:
            squares = [(x + s) ** 2 + (y + 0.4 * s) ** 2 for s in (0.05, -0.05)]
            return np.stack([1 - np.exp(-80 * squares[0]), np.exp(-80 * squares[1])])

        linear = lambda square: np.stack([-1e-5 * square - 0.04, -5e-6 * square - 0.1])  # noqa: E731
        return fourier_square((-1.0, 1.0), size, steps, times_of(problem)[1:], linear, gray_scott_rate, first)

    return Case(problem, 1e-4, 1e-4, 120.0, run(448, 600), lambda: run(384, 320), "Fourier ETDRK4, 384²")


def square_wave() -> Case:
    """Two jumps, carried along; no basis of smooth functions resolves them, and the estimate has to say so."""
    problem = periodic("u_t + u_x = 0", rp.SpaceTime(t=(0, 1), x=(0, 1)), "where(abs(x - 0.5) < 0.25, 1, 0)")

    def exact(points: Array) -> Array:
        return (np.abs((points[:, 1] - points[:, 0]) % 1.0 - 0.5) < 0.25).astype(float)

    return Case(problem, 1e-3, None, 10.0, exact)


def shock() -> Case:
    """Burgers without viscosity: a shock stands at 0 from t = 1/π on."""
    conditions = {"start": rp.On("t=0", "u = -sin(pi*x)"), "ends": rp.On(("x=-1", "x=1"), "u = 0")}
    problem = rp.Problem("u_t + u*u_x = 0", rp.SpaceTime(t=(0, 1), x=(-1, 1)), conditions)

    def exact(points: Array) -> Array:
        """The foot ξ of the characteristic x = ξ - t sin πξ on the side of x, by bisection."""
        t, x = points[:, 0], np.abs(points[:, 1])
        lower, upper = np.arccos(np.clip(1 / np.maximum(np.pi * t, 1e-9), -1, 1)) / np.pi, np.ones(len(t))
        for _ in range(60):
            middle = (lower + upper) / 2
            below = middle - t * np.sin(np.pi * middle) < x
            lower, upper = np.where(below, middle, lower), np.where(below, upper, middle)
        return -np.sign(points[:, 1]) * np.sin(np.pi * lower)

    return Case(problem, 1e-3, None, 10.0, exact)


CASES: dict[str, Callable[[], Case]] = {
    "burgers": lambda: burgers(0.01, 1e-12, 1e-12, 6.0, 512, 1e-9),
    "burgers 1e-8": lambda: burgers(0.01, 1e-8, 1e-8, 2.0, 384, 1e-8),
    "burgers sharp": lambda: burgers(0.01 / np.pi, 2e-12, 5e-12, 10.0, 768, 1e-7),
    "allen-cahn": allen_cahn,
    "kdv": kdv,
    "kuramoto-sivashinsky": kuramoto_sivashinsky,
    "advection": advection,
    "wave": wave,
    "barenblatt": barenblatt,
    "navier-stokes": navier_stokes,
    "heat square": lambda: heat("xy", 1.0, 20),
    "heat two scales": two_scales,
    "heat cube": lambda: heat("xyz", 5.0, 20),
    "burgers square": burgers_square,
    "wave square": wave_square,
    "taylor-green": taylor_green,
    "gray-scott": gray_scott,
    "square wave": square_wave,
    "shock": shock,
}


def timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def error(function: Function, exact: Function, points: Array, fields: int | None) -> float:
    """Relative L², the largest over the fields."""
    found, wanted = (np.reshape(f(points), (len(points), -1))[:, :fields] for f in (function, exact))
    return float((np.linalg.norm(found - wanted, axis=0) / np.linalg.norm(wanted, axis=0)).max())


def fresh_points(case: Case) -> Array:
    """Uniform in space, their times moved to those that the classical solvers keep."""
    points = case.problem.domain.sample(4000, rng=99)
    assert isinstance(case.problem.domain, rp.SpaceTime)
    start, end = case.problem.domain.time
    steps = np.clip(np.rint((points[:, 0] - start) / (end - start) * case.times), 1, case.times)
    points[:, 0] = start + (end - start) * steps / case.times
    return points


def run(name: str, small: bool, slower: float) -> None:
    case = CASES[name]()
    assert case.exact is not None
    tol = max(case.tol, 1e-4) if small else case.tol
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution, wall, cpu = timed(lambda: rp.solve(case.problem, tol=tol, seconds=3 * slower * case.seconds))
    points = fresh_points(case)
    ours = error(solution.function, case.exact, points, case.fields)
    verdict = "met" if case.met(ours, solution.estimate, wall / slower) else "MISSED"
    line = (
        f"{name:<22}{tol:8.0e}{ours:10.1e}{solution.estimate:10.1e}{wall:8.2f}{cpu:8.2f}"
        f"{'yes' if solution.converged else 'no':>6}   {solution.method.name:<12}{case.goal:<28}{verdict:<9}"
    )
    if case.classical is not None:
        other, other_wall, _ = timed(case.classical)
        theirs = error(other, case.exact, points, case.fields)
        line += f"{case.label}: {theirs:.1e} in {other_wall:.2f} s, {other_wall / wall:.1f} times ours"
        line += "   (classical wins)" if theirs <= ours and other_wall <= wall else ""
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=CASES, nargs="*")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--slower", type=float, default=1.0)
    options = parser.parse_args()
    rp.solve(zoo("heat"), tol=1e-3)  # imports and first calls are not counted
    head = f"{'problem':<22}{'tol':>8}{'error':>10}{'estimate':>10}{'wall s':>8}{'CPU s':>8}{'conv':>6}"
    print(f"{head}   {'method':<12}target")
    for name in options.only or CASES:
        run(name, options.small, options.slower)


if __name__ == "__main__":
    main()
