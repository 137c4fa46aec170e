"""Windows in time: the same solution, transfers within the estimate, taken where one basis is too narrow."""

import numpy as np
import pytest

from rannpde.errors import InputError
from rannpde.loading import load
from rannpde.pde.lines.method import Lines
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.solution import ConvergenceWarning
from rannpde.pde.solve import solve
from rannpde.pde.zoo import zoo


def test_windows_keep_the_digits_and_the_estimate_holds():
    problem = zoo("burgers", viscosity=0.02)
    solution = solve(problem, tol=1e-8, rng=0, method=Lines(windows=3))
    assert solution.converged
    assert len(solution.function.segments) == 3
    error = solution.errors()["u"]
    assert error < 1e-8
    assert 0.1 * error < solution.estimate < 1e-8
    # values just before and after a cut differ by the errors of transfer only
    x = np.linspace(-0.99, 0.99, 50)
    before, after = (solution(np.column_stack([np.full_like(x, 1 / 3 + s), x])) for s in (-1e-12, 1e-12))
    assert np.abs(after - before).max() < 1e-8


def test_second_order_in_time_carries_the_velocity():
    solution = solve(zoo("wave"), tol=1e-4, rng=0, method=Lines(windows=2))
    assert solution.errors()["u"] < 1e-4


@pytest.mark.slow
def test_windows_are_taken_where_one_basis_is_too_narrow():
    problem = zoo("burgers", viscosity=0.03)
    # a limit below what the whole interval wants at this tolerance, above what a quarter of it does
    narrow = LinesTuning(most_width=(70, 1200))
    with pytest.warns(ConvergenceWarning):
        alone = solve(problem, tol=1e-4, rng=0, method=Lines(windows=1, tuning=narrow))
    chosen = solve(problem, tol=1e-4, rng=0, method=Lines(tuning=narrow))
    assert len(alone.function.segments) == 1
    assert len(chosen.function.segments) > 1
    assert chosen.errors()["u"] < 0.1 * alone.errors()["u"]


def test_windows_are_saved_and_bad_numbers_refused(tmp_path):
    problem = zoo("heat")
    solution = solve(problem, tol=1e-6, rng=0, method=Lines(windows=2))
    loaded = load(solution.save(tmp_path / "heat.npz"), problem)
    points = problem.domain.sample(200, rng=1)
    assert np.abs(loaded(points) - solution(points)).max() <= 1e-13
    with pytest.raises(InputError, match="windows is 0"):
        Lines(windows=0)
