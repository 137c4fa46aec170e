"""Linear problems without data: zero is a solution, and at an eigenvalue not the only one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rannpde as rp
from draws import covering, draws
from rannpde.pde.monitor import Status
from rannpde.pde.uniqueness import cancellation, loaded


def homogeneous(rng, dim, resonant):
    """c·Δu + λu = 0 with u = 0 on the rim of a box, at an eigenvalue or halfway to another one, in any unit."""
    unit, factor = 10.0 ** rng.integers(-2, 3), float(rng.choice([1.0, -1.0, 0.04, 250.0]))
    lengths = [round(rng.uniform(0.5, 2), 2) * unit for _ in range(dim)]
    values = sorted(
        sum((np.pi * k / length) ** 2 for k, length in zip(index, lengths, strict=True))
        for index in np.ndindex(*(6,) * dim)
        if min(index) > 0
    )
    number = int(rng.integers(3))
    value = values[number] if resonant else 0.5 * (values[number] + values[number + 1])
    names = "xy"[:dim]
    start = [round(rng.uniform(-3, 3), 1) * unit for _ in names]
    domain = rp.Box(**{n: (s, s + w) for n, s, w in zip(names, start, lengths, strict=True)})
    return rp.Problem(
        f"({factor!r})*laplace(u) + ({factor * value!r})*u = 0", domain, {"rim": rp.On("boundary", "u = 0")}
    )


@pytest.mark.parametrize(("dim", "method"), [(1, None), *covering([2], ["trefftz", "cells", "weak"])])
@pytest.mark.parametrize("seed", range(draws(1, 4)))
@pytest.mark.parametrize("resonant", [True, False])
def test_zero_is_converged_only_where_it_is_the_only_solution(dim, method, seed, resonant):
    rng = np.random.default_rng([59, seed, dim])
    tol = float(10.0 ** -rng.integers(2, 7))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ConvergenceWarning)
        found = rp.solve(homogeneous(rng, dim, resonant), tol=tol, method=method, rng=seed, seconds=60)
    assert found.converged is not resonant, found.reason
    if resonant:  # with a reason, or the method itself found what is left free
        assert found.status in (Status.UNDETERMINED, Status.BUDGET)
        assert any(words in found.reason for words in ("only solution", "ill-conditioned", "free")), found.reason


@pytest.mark.parametrize("seed", range(draws(2, 6)))
def test_a_load_at_a_resonance_is_not_fitted_by_a_huge_solution(seed):
    """With a loose tolerance, a multiple 1e12 of the eigenfunction has a small relative error on the boundary."""
    rng = np.random.default_rng([61, seed])
    problem = loaded(homogeneous(rng, 2, True))
    assert problem is not None
    with pytest.warns(rp.ConvergenceWarning):
        found = rp.solve(problem, tol=float(10.0 ** -rng.integers(2, 6)), method="trefftz", rng=seed)
    assert not found.converged
    near = loaded(homogeneous(rng, 2, False))
    assert near is not None
    assert rp.solve(near, tol=1e-4, method="trefftz", rng=seed).converged


def test_problems_with_one_solution_are_not_solved_twice():
    """Laplace's equation alone is coercive, and initial value problems have one solution."""
    zero = rp.On("boundary", "u = 0")
    assert rp.solve(rp.Problem("laplace(u) = 0", rp.Box(x=(0, 1), y=(0, 1)), {"rim": zero}), tol=1e-4).converged
    system = rp.Problem(["u_x = v", "v_x = -u"], rp.Interval(0, 3), {"x=0": ["u = 0", "v = 0"]})
    assert rp.solve(system, tol=1e-4).converged


def test_terms_of_a_resonant_response_cancel():
    problem = loaded(rp.Problem("u_xx + u = 0", rp.Interval(0, 1), {"rim": rp.On("boundary", "u = 0")}))
    assert problem is not None
    found = rp.solve(problem, tol=1e-6)
    assert 0.5 < cancellation(problem, found.function) < 10


@pytest.mark.parametrize(("rate", "unique"), [("sqrt(abs(u))", False), ("-sign(u)*sqrt(abs(u))", True)])
def test_an_evolution_at_rest_that_may_leave_is_not_called_converged(rate, unique):
    """u_t = u_xx + √|u| from 0: zero, and (t - s)²/4 from any s on."""
    conditions = {"start": rp.On("t=0", "u = 0"), "ends": rp.On(("x=0", "x=1"), "u_x = 0")}
    problem = rp.Problem(f"u_t = 0.1*u_xx + {rate}", rp.SpaceTime(t=(0, 1), x=(0, 1)), conditions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ConvergenceWarning)
        found = rp.solve(problem, tol=1e-3)
    assert found.converged is unique
    assert unique or found.status is Status.UNDETERMINED
