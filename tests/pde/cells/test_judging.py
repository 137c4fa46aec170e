"""What is concluded from a list of iterations."""

from __future__ import annotations

import numpy as np
import pytest

from rannpde.pde.cells.judging import CellsIteration, Judge
from rannpde.pde.cells.tuning import CellsTuning

TUNING = CellsTuning()


def judge(*iterations: tuple[int, float, float], tol: float = 1e-6, **facts: bool) -> Judge:
    """Iterations of (cells, residual, difference), the residual of a cell being that of the whole."""
    one = Judge(tol, TUNING, **({"marching": False, "bent": False, "cornered": False} | facts))
    for cells, residual, difference in iterations:
        one.hear(CellsIteration(cells, 10, 1, residual, difference, 0.1), residual)
    return one


def test_one_pass_tells_no_error():
    assert judge((4, 1e-3, np.inf)).estimate() == np.inf


@pytest.mark.parametrize(
    ("facts", "share"), [({}, TUNING.share), ({"cornered": True}, TUNING.cornered), ({"bent": True}, 1.0)]
)
def test_passes_alike_err_by_a_share_of_what_they_differ_by(facts, share):
    assert judge((4, 1e-3, np.inf), (4, 1e-3, 1e-4), **facts).estimate() == pytest.approx(share * 1e-4)


def test_a_smaller_residual_means_a_smaller_error_but_not_without_end():
    fell = judge((4, 1e-3, np.inf), (16, 1e-4, 1e-4)).estimate()
    assert fell == pytest.approx(TUNING.share * TUNING.trust * 0.1 * 1e-4)
    assert judge((4, 1e-3, np.inf), (16, 1e-9, 1e-4)).estimate() == pytest.approx(TUNING.share * TUNING.least * 1e-4)
    assert judge((4, 1e-3, np.inf), (16, 1e-4, 1e-4), cornered=True).estimate() > 1e-4  # where residuals tell nothing


def test_marches_are_believed_only_where_both_residuals_and_differences_fall():
    slow = judge((4, 1e-3, np.inf), (8, 1e-4, 1e-4), (16, 1e-6, 9e-5), marching=True).estimate()
    assert slow == pytest.approx(TUNING.share * 9e-5)
    fast = judge((4, 1e-3, np.inf), (8, 1e-4, 1e-4), (16, 1e-6, 1e-6), marching=True).estimate()
    assert fast == pytest.approx(TUNING.share * TUNING.least_march * 1e-6)


def test_passes_at_rounding_that_differ_are_given_up():
    rounding = (8, 1e-14, 1e-9)
    assert not judge((4, 1e-3, np.inf), rounding, rounding, tol=1e-12).hopeless(agreed=False)
    three = judge((4, 1e-3, np.inf), rounding, rounding, rounding, tol=1e-12)
    assert three.hopeless(agreed=False)
    assert not three.hopeless(agreed=True)
    assert three.estimate() >= TUNING.share * 1e-9  # though one of them may be small by chance


def test_many_more_cells_that_gain_nothing_are_the_last():
    stuck = [(1, 0.5, np.inf), (4, 0.5, 1.0), (16, 0.49, 1.0), (64, 0.48, 1.0)]
    assert judge(*stuck).hopeless(agreed=False)
    assert not judge(*stuck[:3], (64, 0.01, 1.0)).hopeless(agreed=False)


def test_what_would_be_vetoed_is_mended_while_it_falls():
    one = judge((4, 1e-4, np.inf), (8, 1e-4, 1e-7))
    assert [one.mendable(left) for left in (0.1, 0.05)] == pytest.approx([TUNING.veto / 0.1, TUNING.veto / 0.05])
    assert one.mendable(0.5 * TUNING.veto) == 1.0
    other = judge((4, 1e-4, np.inf), (8, 1e-4, 1e-7))
    assert [other.mendable(0.1) < 1 for _ in range(3)] == [True, True, False]  # nothing helps


def test_solutions_that_differ_by_far_more_than_residuals_are_many():
    assert judge(*[(4, 1e-6, 0.3)] * 3).undetermined()
    assert not judge(*[(4, 1e-6, 1e-3)] * 3).undetermined()
    assert not judge(*[(4, 0.1, 0.3)] * 3).undetermined()
