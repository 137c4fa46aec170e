"""Windows in time: the same solution, transfers within the estimate, taken where one basis is too narrow."""

import numpy as np
import pytest

from rannpde.errors import InputError
from rannpde.pde.lines import passes
from rannpde.pde.lines.method import solve_lines
from rannpde.pde.lines.resolution import Resolution, grid_places
from rannpde.pde.solution import load_solution
from rannpde.pde.zoo import zoo


def test_windows_keep_the_digits_and_the_estimate_holds():
    problem = zoo("burgers", viscosity=0.02)
    solution = solve_lines(problem, tol=1e-8, rng=0, windows=3)
    assert solution.converged
    assert len(solution.network.stretches) == 3
    error = solution.errors()["u"]
    assert error < 1e-8
    assert 0.1 * error < solution.estimate < 1e-8
    # values just before and after a cut differ by the errors of transfer only
    x = np.linspace(-0.99, 0.99, 50)
    before, after = (solution(np.column_stack([np.full_like(x, 1 / 3 + s), x])) for s in (-1e-12, 1e-12))
    assert np.abs(after - before).max() < 1e-8


def test_second_order_in_time_carries_the_velocity():
    solution = solve_lines(zoo("wave"), tol=1e-6, rng=0, windows=2)
    assert solution.errors()["u"] < 1e-6


def test_windows_are_taken_where_one_basis_is_too_narrow(monkeypatch):
    problem = zoo("burgers", viscosity=0.02)
    # a limit below what the whole interval wants at this tolerance, above what a quarter of it does
    monkeypatch.setitem(passes.WIDEST, 1, 120)
    alone = solve_lines(problem, tol=1e-6, rng=0, windows=1)
    chosen = solve_lines(problem, tol=1e-6, rng=0)
    assert len(alone.network.stretches) == 1
    assert len(chosen.network.stretches) > 1
    assert chosen.errors()["u"] < 0.1 * alone.errors()["u"]


def test_features_move_to_the_largest_residual():
    solution = solve_lines(zoo("burgers", viscosity=0.02), tol=1e-3, rng=0).network
    space = solution.evolution.domain.space
    flat = Resolution(space, np.full(len(grid_places(space)), 10.0))
    moved = passes.finer_by_residual(flat, solution)
    assert moved.lengths_across == pytest.approx(flat.lengths_across, rel=1e-9)
    assert 1.1 < moved.inverse.max() / moved.inverse.min() <= 1 + passes.RESIDUAL_SHARE
    # the layer of Burgers' equation is at the origin, and nothing else is hard to resolve
    assert abs(moved.places[moved.inverse.argmax(), 0]) < 0.2


def test_windows_are_saved_and_bad_numbers_refused(tmp_path):
    problem = zoo("heat")
    solution = solve_lines(problem, tol=1e-6, rng=0, windows=2)
    loaded = load_solution(solution.save(tmp_path / "heat.npz"), problem)
    points = problem.domain.sample(200, rng=1)
    assert np.array_equal(loaded(points), solution(points))
    with pytest.raises(InputError, match="windows is 0"):
        solve_lines(problem, windows=0)
