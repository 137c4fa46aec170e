"""Unbiased networks as cells: measured errors agree with the exact variance, and the record holds all of it."""

from __future__ import annotations

import numpy as np
import pytest

from rannpde.errors import InputError
from rannpde.studies.curves import UnbiasedCurve
from rannpde.studies.layer import Layer
from rannpde.studies.run.cell import result_from, result_text, run_cell
from rannpde.studies.run.unbiased import UnbiasedResult
from rannpde.studies.study import Study
from rannpde.studies.target import SmoothBump


@pytest.fixture(scope="module")
def results() -> list[UnbiasedResult]:
    curves = tuple(UnbiasedCurve(law, SmoothBump(1), law) for law in ("heavy-tailed", "best"))
    study = Study("s", SmoothBump(1), Layer(), widths=(8, 16, 32), curves=curves)
    found = [run_cell(cell) for cell in study.cells]
    assert all(isinstance(result, UnbiasedResult) for result in found)
    return found


def test_measured_errors_agree_with_the_exact_variance(results: list[UnbiasedResult]) -> None:
    """Eight pools of 32 networks of the largest width: a spread of 1/√(2·256) = 4 % for light tails, more for π."""
    widths = np.array([8, 16, 32])
    for result in results:
        assert np.shape(result.error) == (3, 8)
        measured = np.sqrt(np.square(result.error).mean(axis=1))
        assert np.abs(measured * np.sqrt(widths) / result.constant - 1).max() < 0.2
        assert result.last_error == pytest.approx(measured[-1])
        assert abs(result.slope + 0.5) < 3 * result.halfwidth
    assert results[1].constant < results[0].constant


def test_the_record_is_the_result(results: list[UnbiasedResult]) -> None:
    for result in results:
        assert result_from(result_text(result)) == result


@pytest.mark.parametrize("error", [3.0, [], [[0.1], [0.1, 0.2]], [["a"]], [[-1.0]]])
def test_wrong_shapes_and_kinds_are_refused(error: object) -> None:
    with pytest.raises(InputError):
        UnbiasedResult(error, -0.5, 0.1, 1.0, 1.0)
