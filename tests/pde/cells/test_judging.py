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


@pytest.mark.parametrize("facts", [{}, {"cornered": True}, {"bent": True}])
def test_iterations_alike_err_by_what_they_differ_by(facts):
    """Independent errors of size e differ by e√2: the estimate is e within a factor of five, and in proportion."""
    one, ten = (judge((4, 1e-3, np.inf), (4, 1e-3, gap), **facts).estimate() for gap in (1e-4, 1e-3))
    assert 1e-4 / np.sqrt(2) / 5 < one < 5 * 1e-4 / np.sqrt(2)
    assert ten == pytest.approx(10 * one)


def test_corners_and_curves_make_an_estimate_larger_never_smaller():
    plain, bent, cornered = (
        judge((4, 1e-3, np.inf), (4, 1e-3, 1e-4), **facts).estimate()
        for facts in ({}, {"bent": True}, {"cornered": True})
    )
    assert plain < bent < cornered


def test_a_smaller_residual_means_a_smaller_error_but_not_without_end():
    same, fell, far = (judge((4, 1e-3, np.inf), (16, left, 1e-4)).estimate() for left in (1e-3, 1e-4, 1e-9))
    assert far < fell < same
    assert fell > 0.1 * same  # a residual of a tenth is no proof of an error of a tenth
    assert far > 1e-3 * same  # nor one of a millionth of anything
    assert judge((4, 1e-3, np.inf), (16, 1e-4, 1e-4), cornered=True).estimate() > 1e-4  # where residuals tell nothing


def test_marches_are_believed_only_where_both_residuals_and_differences_fall():
    slow = judge((4, 1e-3, np.inf), (8, 1e-4, 1e-4), (16, 1e-6, 9e-5), marching=True).estimate()
    assert slow > 0.5 * 9e-5  # residuals fell a hundredfold, differences did not
    fast = judge((4, 1e-3, np.inf), (8, 1e-4, 1e-4), (16, 1e-6, 1e-6), marching=True).estimate()
    assert 0.1 * 1e-6 < fast < 0.5 * 1e-6


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
