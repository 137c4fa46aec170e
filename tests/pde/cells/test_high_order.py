"""Derivatives of high order on an interval: rounding in the residual is not what prevents convergence."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import rannpde as rp

X = sp.symbols("x")


def manufactured(order: int, length: float, rng: np.random.Generator) -> tuple[rp.Problem, sp.Expr]:
    """u^(order) + a u = f with conditions at both ends, and its solution."""
    solution = sp.sin(rng.uniform(1, 8) / length * X + rng.uniform(0, 6)) + rng.uniform(-1, 1) * sp.exp(-X / length)
    factor = rng.uniform(0.1, 3) / length**order
    slopes = [f"u_{'x' * k}" if k else "u" for k in range(order + 1)]

    def conditions(end: float, count: int) -> list[str]:
        return [f"{slopes[k]} = {float(solution.diff(X, k).subs(X, end))!r}" for k in range(count)]

    left = (order + 1) // 2
    problem = rp.Problem(
        f"{slopes[order]} + {factor!r}*u = {solution.diff(X, order) + factor * solution}",
        rp.Box(x=(0, length)),
        {"x=0": conditions(0.0, left), f"x={length!r}": conditions(length, order - left)},
    )
    return problem, solution


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("order", [3, 4, 6])
def test_agreement_at_the_level_of_rounding_is_convergence(order, seed):
    """Rounding in u_xxxx is 1e-8 of its size where u has twelve digits: tolerances between them are met."""
    rng = np.random.default_rng([order, seed])
    length, tol = round(rng.uniform(0.2, 6) * 10.0 ** rng.integers(-1, 2), 3), 10.0 ** -rng.integers(7, 11)
    problem, solution = manufactured(order, length, rng)
    found = rp.solve(problem, tol=tol, rng=seed)
    points = problem.domain.sample(200, rng=1)
    exact = sp.lambdify(X, solution)(points[:, 0])
    error = np.linalg.norm(found(points).ravel() - exact) / np.linalg.norm(exact)
    assert found.converged
    assert error < max(tol, 10 * found.estimate)
