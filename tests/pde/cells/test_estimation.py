"""What is concluded from a list of iterations."""

from __future__ import annotations

import numpy as np
import pytest

from rannpde.pde.cells.adaptivity.estimation import CellsEstimator, CellsIteration
from rannpde.pde.cells.tuning import CellsTuning

TUNING = CellsTuning()


def estimator(*iterations: tuple[int, float, float], tol: float = 1e-6, **facts: bool) -> CellsEstimator:
    """Iterations of (cells, residual, difference), the residual of a cell being that of the whole."""
    one = CellsEstimator(tol, TUNING, **({"in_time": False, "nonlinear_line": False, "singular": False} | facts))
    for cells, residual, difference in iterations:
        one.record(CellsIteration(cells, 10, 1, residual, difference, 0.1), residual)
    return one


def test_one_pass_tells_no_error():
    assert estimator((4, 1e-3, np.inf)).estimate() == np.inf


@pytest.mark.parametrize(
    ("facts", "share"),
    [
        ({}, TUNING.estimator_factor),
        ({"singular": True}, TUNING.singular_estimator_factor),
        ({"nonlinear_line": True}, 1.0),
    ],
)
def test_passes_alike_err_by_a_share_of_what_they_differ_by(facts, share):
    assert estimator((4, 1e-3, np.inf), (4, 1e-3, 1e-4), **facts).estimate() == pytest.approx(share * 1e-4)


def test_a_smaller_residual_means_a_smaller_error_but_not_without_end():
    fell = estimator((4, 1e-3, np.inf), (16, 1e-4, 1e-4)).estimate()
    assert fell == pytest.approx(TUNING.estimator_factor * TUNING.residual_gain_factor * 0.1 * 1e-4)
    assert estimator((4, 1e-3, np.inf), (16, 1e-9, 1e-4)).estimate() == pytest.approx(
        TUNING.estimator_factor * TUNING.min_gain * 1e-4
    )
    assert (
        estimator((4, 1e-3, np.inf), (16, 1e-4, 1e-4), singular=True).estimate() > 1e-4
    )  # where residuals tell nothing


def test_marches_are_believed_only_where_both_residuals_and_differences_fall():
    slow = estimator((4, 1e-3, np.inf), (8, 1e-4, 1e-4), (16, 1e-6, 9e-5), in_time=True).estimate()
    assert slow == pytest.approx(TUNING.estimator_factor * 9e-5)
    fast = estimator((4, 1e-3, np.inf), (8, 1e-4, 1e-4), (16, 1e-6, 1e-6), in_time=True).estimate()
    assert fast == pytest.approx(TUNING.estimator_factor * TUNING.min_gain_in_time * 1e-6)


def test_passes_at_rounding_that_differ_are_given_up():
    rounding = (8, 1e-14, 1e-9)
    assert not estimator((4, 1e-3, np.inf), rounding, rounding, tol=1e-12).stagnated(agreed=False)
    three = estimator((4, 1e-3, np.inf), rounding, rounding, rounding, tol=1e-12)
    assert three.stagnated(agreed=False)
    assert not three.stagnated(agreed=True)
    assert three.estimate() >= TUNING.estimator_factor * 1e-9  # though one of them may be small by chance


def test_many_more_cells_that_gain_nothing_are_the_last():
    stuck = [(1, 0.5, np.inf), (4, 0.5, 1.0), (16, 0.49, 1.0), (64, 0.48, 1.0)]
    assert estimator(*stuck).stagnated(agreed=False)
    assert not estimator(*stuck[:3], (64, 0.01, 1.0)).stagnated(agreed=False)


def test_what_would_be_vetoed_is_mended_while_it_falls():
    one = estimator((4, 1e-4, np.inf), (8, 1e-4, 1e-7))
    assert [one.residual_reduction(left) for left in (0.1, 0.05)] == pytest.approx(
        [TUNING.residual_tolerance / 0.1, TUNING.residual_tolerance / 0.05]
    )
    assert one.residual_reduction(0.5 * TUNING.residual_tolerance) == 1.0
    other = estimator((4, 1e-4, np.inf), (8, 1e-4, 1e-7))
    assert [other.residual_reduction(0.1) < 1 for _ in range(3)] == [True, True, False]  # nothing helps


def test_solutions_that_differ_by_far_more_than_residuals_are_many():
    assert estimator(*[(4, 1e-6, 0.3)] * 3).undetermined()
    assert not estimator(*[(4, 1e-6, 1e-3)] * 3).undetermined()
    assert not estimator(*[(4, 0.1, 0.3)] * 3).undetermined()
