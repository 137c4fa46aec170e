"""Initial value problems on an interval: growth by many orders of magnitude, and solutions that end early."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

import rannpde as rp
from draws import draws
from rannpde.pde.initial import STANDSTILL, Integrated, blow_up_point, integrated
from rannpde.pde.monitor import Status


@pytest.mark.parametrize("seed", range(draws(3, 6)))
def test_linear_systems_that_grow_or_decay_by_many_orders(seed):
    """Residuals of the equations while a solution is small count relative to its size then."""
    rng = np.random.default_rng([41, seed])
    count, length, names = int(rng.integers(1, 4)), round(rng.uniform(0.5, 6), 2), "uvw"
    matrix = rng.normal(0, 1.5, (count, count))
    matrix += np.eye(count) * (rng.uniform(-30, 22) / length - np.linalg.eigvals(matrix).real.max())
    start = rng.normal(size=count) * 10.0 ** rng.integers(-5, 5)
    problem = rp.Problem(
        [f"{names[i]}_t = " + " + ".join(f"({matrix[i, j]!r})*{names[j]}" for j in range(count)) for i in range(count)],
        rp.Box(t=(0, length)),
        {"t=0": [f"{names[i]} = {start[i]!r}" for i in range(count)]},
    )
    tol = 10.0 ** -rng.integers(2, 7)
    found = rp.solve(problem, tol=tol, rng=seed)
    points = problem.domain.sample(100, rng=2)
    exact = np.array([expm(matrix * t) @ start for t in points[:, 0]])
    errors = np.linalg.norm(found(points).reshape(exact.shape) - exact, axis=0) / np.linalg.norm(exact, axis=0)
    assert found.converged
    assert errors.max() < max(tol, 10 * found.estimate)


@pytest.mark.parametrize("seed", range(draws(2, 4)))
def test_the_point_at_which_a_solution_becomes_infinite_is_found(seed):
    """u' = u^p from a becomes infinite at a^(1 - p)/(p - 1)."""
    rng = np.random.default_rng([43, seed])
    first, power = rng.uniform(0.1, 5), rng.choice([1.5, 2, 3])
    end = first ** (1 - power) / (power - 1)

    def problem(length: float) -> rp.Problem:
        return rp.Problem(f"u_t = u**{power}", rp.Box(t=(0, length)), {"t=0": f"u = {first!r}"})

    assert blow_up_point(problem(end * rng.uniform(1.1, 3))) == pytest.approx(end, rel=3e-3)
    assert blow_up_point(problem(end * rng.uniform(0.2, 0.9))) is None


def test_growth_that_is_only_exponential_is_no_blow_up():
    assert blow_up_point(rp.Problem("u_t = 30*u", rp.Box(t=(0, 2)), {"t=0": "u = 1"})) is None


def test_a_solution_that_becomes_infinite_is_told_with_its_place():
    problem = rp.Problem("u_t = 1 + u**2", rp.Box(t=(0, 5)), {"t=0": "u = 0"})
    with pytest.warns(rp.ConvergenceWarning, match="end the interval before it"):
        found = rp.solve(problem, tol=1e-3, rng=0)
    assert found.status is Status.BLOW_UP
    assert "t = 1.57" in found.reason
    assert found.estimate == np.inf


@pytest.mark.parametrize("seed", range(draws(2, 6)))
def test_an_integration_before_a_singularity_ends_soon(seed, monkeypatch):
    """Steps fall below rounding there, a hundred thousand of them once; the guess that is wanted does not exist."""
    rng = np.random.default_rng([47, seed])
    first, power = 10.0 ** rng.uniform(-3, 1), rng.choice([1.5, 2, 3])
    end = first ** (1 - power) / (power - 1) * rng.uniform(1.1, 3)
    asked = [0]
    rate = Integrated.rate

    def counted(*arguments):
        asked[0] += 1
        return rate(*arguments)

    monkeypatch.setattr(Integrated, "rate", counted)
    assert integrated(rp.Problem(f"u_t = u**{power}", rp.Box(t=(0, end)), {"t=0": f"u = {first!r}"})) is None
    assert asked[0] <= 2 * STANDSTILL


@pytest.mark.parametrize("seed", range(draws(3, 10)))
def test_where_a_formula_leaves_its_domain_is_found(seed):
    """u' = -u^p from a reaches 0 at a^(1 - p)/(1 - p), and powers of negative numbers are none."""
    rng = np.random.default_rng([53, seed])
    first, power = rng.uniform(0.2, 3), rng.uniform(0.2, 0.8)
    end = first ** (1 - power) / (1 - power)

    def problem(length: float) -> rp.Problem:
        return rp.Problem(f"u_t = -u**{power!r}", rp.Box(t=(0, length)), {"t=0": f"u = {first!r}"})

    assert blow_up_point(problem(end * rng.uniform(1.2, 3))) == pytest.approx(end, rel=1e-3)
    assert blow_up_point(problem(end * rng.uniform(0.2, 0.9))) is None


@pytest.mark.parametrize(("equation", "length"), [("u_t = sqrt(1 - u**2)", 4.0), ("u_t = sqrt(4 - u**2)/3", 7.3)])
def test_a_guess_that_ends_early_makes_no_endless_mesh(equation, length):
    """Cells at the jump to where the guess is not known were halved beyond rounding, and beyond Python's recursion."""
    with pytest.raises(rp.InputError, match="cannot be linearised at the initial guess"):
        rp.solve(rp.Problem(equation, rp.Box(t=(0, length)), {"t=0": "u = 0"}), tol=1e-4)
