"""The error estimator and the stopping rules, from lists of iterations."""

from __future__ import annotations

import numpy as np
import pytest

from rannpde.pde.adaptivity.result import Iteration
from rannpde.pde.cells.adaptivity.estimation import CellsEstimator
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.tolerance import MUCH_SMALLER

TUNING = CellsTuning()


def estimator(*iterations: tuple[int, float, float], tol: float = 1e-6, **facts: bool) -> CellsEstimator:
    """Iterations of (cells, residual, difference), the residual of a cell being that of the whole."""
    one = CellsEstimator(
        tol, TUNING, **({"in_time": False, "nonlinear_line": False, "singular": False, "order": 2} | facts)
    )
    for cells, residual, difference in iterations:
        one.record(Iteration(cells, 1, difference, 0.1, residual, 10), residual)
    return one


def test_one_iteration_gives_no_estimate():
    assert estimator((4, 1e-3, np.inf)).estimate() == np.inf


def test_an_estimate_that_the_next_iteration_refutes_is_raised():
    """Cauchy data: the residual fell by three orders of magnitude, the error by less than one."""
    trusted = estimator((4, 9e-5, np.inf), (8, 3e-8, 1.5e-2))
    refuted = estimator((4, 9e-5, np.inf), (8, 3e-8, 1.5e-2), (8, 6e-9, 9e-3))
    assert trusted.estimate() == pytest.approx(MUCH_SMALLER * 1.5e-2 / np.sqrt(2))  # residuals are trusted that far
    assert refuted.corrected(trusted.estimate()) == pytest.approx(9e-3 / np.sqrt(2))
    assert refuted.corrected(1e-2) == 1e-2
    worse = estimator((8, 3e-8, 1.5e-2), (8, 6e-8, 9e-3))  # whose difference may be its own error
    assert worse.corrected(1e-4) == 1e-4


def test_residuals_are_not_trusted_where_differences_do_not_fall():
    """Fast waves: residuals fell by a factor of 40, and three differences in a row were 9e-8, which was the error."""
    start = (23, 3e-5, np.inf), (26, 9e-6, 9e-8)
    assert estimator(*start, (30, 8e-7, 9.4e-8)).estimate() == pytest.approx(9.4e-8 / np.sqrt(2))
    fallen = estimator(*start, (30, 8e-8, 4.5e-8))
    assert fallen.estimate() == pytest.approx(MUCH_SMALLER * 4.5e-8 / np.sqrt(2))


def test_iterations_with_alike_residuals_may_share_their_error():
    """One more degree left the same residual: the small difference says nothing, the residual does."""
    alike = estimator((2, 2.7e-7, np.inf), (3, 7.0e-10, 7.8e-9), (3, 7.7e-10, 3.3e-12))
    assert alike.estimate() == pytest.approx(7.8e-9 * 7.7e-10 / 2.7e-7 / np.sqrt(2))
    finer = estimator((2, 2.7e-7, np.inf), (3, 7.0e-10, 7.8e-9), (3, 9e-14, 3.3e-12))
    assert finer.estimate() < 1e-11


def test_rounding_that_a_nonlinear_problem_amplifies_is_not_small_by_chance():
    """Residuals of rounding, differences of 1e-7: one of 1e-8 after them is luck, unless its residuals are smaller."""
    line = {"nonlinear_line": True, "order": 1}
    start = (18, 4e-5, np.inf), (19, 9e-14, 0.2), (19, 2.2e-13, 1.3e-7)
    assert estimator(*start, **line).estimate() == pytest.approx(1.3e-7)
    assert estimator(*start, (19, 3e-14, 1.3e-8), **line).estimate() == pytest.approx(1.3e-7)
    assert estimator(*start, (19, 9e-14, 4e-7), **line).estimate() == pytest.approx(4e-7)
    # an iteration before rounding was reached says nothing about rounding
    assert estimator((9, 1e-12, np.inf), (9, 1e-12, 1e-10), (9, 1e-14, 1e-9), (9, 1e-14, 1e-11), **line).estimate() == (
        pytest.approx(1e-11)
    )
    assert estimator((18, 4e-5, np.inf), (19, 9e-6, 1e-9), **line).estimate() == 1e-9


def _difference(rng: np.random.Generator, first: float, second: float) -> tuple[float, float]:
    """Difference of two iterations with independent errors of these sizes, and the error of the second."""
    errors = [size * rng.standard_normal(200) / np.sqrt(200) for size in (first, second)]
    return float(np.linalg.norm(errors[0] - errors[1])), float(np.linalg.norm(errors[1]))


def test_independent_errors_of_one_size_are_estimated_within_a_fifth():
    """The difference of two independent errors is √2 times their size; in 200 dimensions it varies by 5 %."""
    rng = np.random.default_rng(3)
    for _ in range(100):
        difference, error = _difference(rng, 1e-4, 1e-4)
        estimate = estimator((4, 1e-3, np.inf), (4, 1e-3, difference)).estimate()
        assert 0.8 < estimate / error < 1.25


@pytest.mark.parametrize("gain", [0.5, 0.1, 0.03])
def test_a_smaller_residual_means_a_smaller_error_but_never_below_it(gain):
    """If error and residual fall by one factor, the estimate is smaller than the difference and above the error."""
    rng = np.random.default_rng(4)
    for _ in range(100):
        difference, error = _difference(rng, 1e-4, gain * 1e-4)
        estimate = estimator((4, 1e-3, np.inf), (16, gain * 1e-3, difference)).estimate()
        assert error < estimate < 1.01 * difference


def test_a_tiny_residual_does_not_make_a_tiny_estimate():
    steps = [estimator((4, 1e-3, np.inf), (16, residual, 1e-4)).estimate() for residual in (1e-6, 1e-9, 1e-12)]
    assert steps[0] == steps[1] == steps[2] > 1e-7


def test_singularities_that_all_iterations_share_make_the_estimate_larger():
    pair = ((4, 1e-3, np.inf), (16, 1e-5, 1e-4))
    assert estimator(*pair, singular=True).estimate() > 1e-4 > estimator(*pair).estimate()
    assert estimator(*pair, nonlinear_line=True).estimate() == 1e-4  # residuals do not show how errors grow


def test_in_time_the_estimate_falls_only_if_both_residuals_and_differences_fall():
    slow = estimator((4, 1e-3, np.inf), (8, 1e-4, 1e-4), (16, 1e-6, 9e-5), in_time=True).estimate()
    assert 0.5 * 9e-5 < slow <= 9e-5  # the residual fell by a hundred, the difference did not
    fast = estimator((4, 1e-3, np.inf), (8, 1e-4, 1e-4), (16, 1e-6, 1e-6), in_time=True).estimate()
    assert 0.1 * 1e-6 < fast < 0.5 * 1e-6


def test_iterations_at_rounding_that_differ_end_the_loop():
    rounding = (8, 1e-14, 1e-9)
    assert not estimator((4, 1e-3, np.inf), rounding, rounding, tol=1e-12).stagnated(agreed=False)
    three = estimator((4, 1e-3, np.inf), rounding, rounding, rounding, tol=1e-12)
    assert three.stagnated(agreed=False)
    assert not three.stagnated(agreed=True)
    assert three.estimate() >= 0.7 * 1e-9  # though one of them may be small by chance


def test_many_more_cells_that_gain_nothing_end_the_loop():
    stuck = [(1, 0.5, np.inf), (4, 0.5, 1.0), (16, 0.49, 1.0), (64, 0.48, 1.0)]
    assert estimator(*stuck).stagnated(agreed=False)
    assert not estimator(*stuck[:3], (64, 0.01, 1.0)).stagnated(agreed=False)


def test_a_failed_residual_check_asks_for_refinement_while_it_helps():
    one = estimator((4, 1e-4, np.inf), (8, 1e-4, 1e-7))
    wanted = [left * one.residual_reduction(left) for left in (0.1, 0.05)]
    assert wanted == pytest.approx([TUNING.residual_tolerance] * 2)  # both end at the tolerance
    assert one.residual_reduction(0.5 * TUNING.residual_tolerance) == 1.0
    other = estimator((4, 1e-4, np.inf), (8, 1e-4, 1e-7))
    assert [other.residual_reduction(0.1) < 1 for _ in range(3)] == [True, True, False]  # nothing helps


def test_iterations_that_differ_by_far_more_than_their_residuals_are_undetermined():
    assert estimator(*[(4, 1e-6, 0.3)] * 3).undetermined()
    assert not estimator(*[(4, 1e-6, 1e-3)] * 3).undetermined()
    assert not estimator(*[(4, 0.1, 0.3)] * 3).undetermined()
