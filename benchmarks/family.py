"""Parametric families and learned operators: solves, errors, CPU seconds, and times of queries, measured in one run.

    python -m benchmarks.family                         # all rows
    python -m benchmarks.family --torch /path/to/python # the operators beside an FNO with ten times the seconds

Families are compared with solves at values that are no nodes; operators with examples that they have not seen. The data
of the operators come from classical solvers: exponential time differencing with Fourier modes for Burgers' equation
(ν = 0.1, u0 from N(0, 625 (-Δ + 25)^-2), 1,000 training and 200 test examples, Li et al. 2021), five-point differences
for Darcy flow with the coefficient 12 or 3 by the sign of N(0, (-Δ + 9)^-2).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.fft import idctn
from scipy.sparse import coo_array
from scipy.sparse.linalg import spsolve

import rannpde as rp
from rannpde.arrays import Array

TRAINED, TESTED = 1000, 200
"""Examples of operators."""


def burgers() -> rp.Problem:
    return rp.Problem(
        "u_t + u*u_x = nu*u_xx", rp.SpaceTime(t=(0, 1), x=(-1, 1)), {"t=0": "u = -sin(pi*x)", "boundary": "u = 0"},
        parameters={"nu": rp.Range(0.01, 0.1, scale="log")}, name="Burgers",
    )  # fmt: skip


def heat() -> rp.Problem:
    return rp.Problem(
        "u_t = k*u_xx", rp.SpaceTime(t=(0, 1), x=(0, 1)),
        {"t=0": "u = sin(pi*x) + a*sin(2*pi*x)", "boundary": "u = 0"}, name="heat",
        parameters={"k": rp.Range(0.02, 0.2, scale="log"), "a": rp.Range(0, 1)},
    )  # fmt: skip


def family_row(problem: rp.Problem, tol: float) -> None:
    """Solve a family; print its cost, its error at four independent values, and the time of a query."""
    start = time.process_time()
    family = rp.solve(problem, tol=tol)
    used = time.process_time() - start
    assert isinstance(family, rp.Family)
    points, rng, worst = problem.domain.sample(1000, rng=1), np.random.default_rng(11), 0.0
    for _ in range(4):
        values = {name: float(one.value(rng.uniform(-1, 1))) for name, one in family.ranges.items()}
        exact = rp.solve(problem.with_parameters(values), tol=max(tol / 100, 1e-12))(points)
        worst = max(worst, float(np.linalg.norm(family(points, **values) - exact) / np.linalg.norm(exact)))
    clock = min(_seconds(lambda: family(points[:10], **values)) for _ in range(50))
    state = "converged" if family.converged else "NOT converged"
    print(
        f"{family.title}: {state}, {len(family.members)} + {len(family.checked)} solves, {used:.1f} s CPU, error "
        f"{worst:.1e}, estimate {family.estimate:.1e}, query of 10 points {1e3 * clock:.2f} ms"
    )


def _seconds(call: object) -> float:
    start = time.perf_counter()
    call()  # type: ignore[operator]
    return time.perf_counter() - start


def burgers_examples(count: int, size: int = 256, steps: int = 200) -> tuple[Array, Array]:
    """u(0, ·) and u(1, ·) on a periodic grid, by the exponential Runge–Kutta method of order 4 (Kassam, Trefethen)."""
    rng, wave = np.random.default_rng(0), np.arange(size // 2 + 1)
    spread = 25 / (4 * np.pi**2 * wave**2 + 25)
    modes = (rng.normal(size=(count, len(wave))) - 1j * rng.normal(size=(count, len(wave)))) * spread / 2**0.5
    modes[:, 0], modes[:, -1] = rng.normal(size=count), 0
    start = np.fft.irfft(modes * size, size)
    step, linear, slope = 1 / steps, -0.1 * (2 * np.pi * wave) ** 2, -1j * np.pi * wave * (wave < size / 3)
    circle = step * linear[:, None] + np.exp(1j * np.pi * (np.arange(32) + 0.5) / 32)
    e = np.exp(circle)
    whole, half = np.exp(step * linear), np.exp(step * linear / 2)
    q = step * np.mean((np.exp(circle / 2) - 1) / circle, axis=1).real
    f1 = step * np.mean((-4 - circle + e * (4 - 3 * circle + circle**2)) / circle**3, axis=1).real
    f2 = step * np.mean((2 + circle + e * (circle - 2)) / circle**3, axis=1).real
    f3 = step * np.mean((-4 - 3 * circle - circle**2 + e * (4 - circle)) / circle**3, axis=1).real

    def rate(v: Array) -> Array:
        return slope * np.fft.rfft(np.fft.irfft(v, size) ** 2)

    v = np.fft.rfft(start)
    for _ in range(steps):
        now = rate(v)
        a = half * v + q * now
        at_a = rate(a)
        at_b = rate(half * v + q * at_a)
        at_c = rate(half * a + q * (2 * at_b - now))
        v = whole * v + now * f1 + 2 * (at_a + at_b) * f2 + at_c * f3
    return start, np.fft.irfft(v, size)


def darcy_examples(count: int, size: int = 29) -> tuple[Array, Array]:
    """Coefficients and solutions of -div(a grad u) = 1 with u = 0 on the square, on a grid of size × size points."""
    rng, wave = np.random.default_rng(1), np.arange(size)
    spread = 1 / (np.pi**2 * (wave[:, None] ** 2 + wave[None, :] ** 2) + 9)
    spread[0, 0] = 0
    level = idctn(rng.normal(size=(count, size, size)) * spread * size, axes=(1, 2), norm="ortho")
    coefficient = np.where(level >= 0, 12.0, 3.0)
    number = np.arange(size * size).reshape(size, size)
    inner = number[1:-1, 1:-1].ravel()
    solutions = np.zeros((count, size * size))
    for k, a in enumerate(coefficient):
        rows, columns, values = [inner], [inner], [np.zeros(len(inner))]
        for axis, side in ((0, -1), (0, 1), (1, -1), (1, 1)):
            face = (0.5 * (a + np.roll(a, -side, axis=axis)))[1:-1, 1:-1].ravel() * (size - 1) ** 2
            values[0] = values[0] + face
            rows.append(inner)
            columns.append(np.roll(number, -side, axis=axis)[1:-1, 1:-1].ravel())
            values.append(-face)
        matrix = coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))).tocsr()
        solutions[k, inner] = spsolve(matrix[inner][:, inner].tocsc(), np.ones(len(inner)))
    return coefficient, solutions.reshape(count, size, size)


def operator_row(name: str, inputs: Array, outputs: Array, python: str | None, width: int) -> None:
    """Learn an operator; print its error on unseen examples, and that of an FNO with ten times the seconds."""
    flat, targets = inputs.reshape(len(inputs), -1), outputs.reshape(len(outputs), -1)
    start = time.process_time()
    operator = rp.Operator.fit(flat[:TRAINED], targets[:TRAINED], width=width)
    used = time.process_time() - start
    error = operator.error(flat[TRAINED:], targets[TRAINED:])
    print(f"{name}: {error:.2e} on unseen examples (held out {operator.held_out:.2e}), {used:.1f} s CPU", flush=True)
    if python is not None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "examples.npz"
            np.savez(path, inputs=inputs, outputs=outputs, count=TRAINED)
            script = Path(__file__).with_name("family_fno.py")
            subprocess.run([python, str(script), str(path), str(10 * used)], check=True)


def main() -> None:
    python = sys.argv[sys.argv.index("--torch") + 1] if "--torch" in sys.argv else None
    if "--operators" not in sys.argv:
        family_row(burgers(), 1e-8)
        family_row(heat(), 1e-6)
    count = TRAINED + TESTED
    operator_row("Burgers' operator", *burgers_examples(count), python, 1000)
    operator_row("Darcy's operator", *darcy_examples(count), python, 1000)


if __name__ == "__main__":
    main()
