"""Fitted networks: points, layers, errors, automatic penalties, and results that are none."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from rannpde.errors import InputError
from rannpde.studies.cell import Sampling
from rannpde.studies.curves import FittedCurve
from rannpde.studies.layer import Layer
from rannpde.studies.run.cell import result_from, result_text, run_cell
from rannpde.studies.run.fit import FitResult, errors_of, training_points
from rannpde.studies.study import Study
from rannpde.studies.target import GaussianBump, PorousMedium, WrittenFunction

SMALL = Sampling(points_per_width=10, test_points=500)


def tiny(**changes: object) -> Study:
    base = Study("tiny", PorousMedium(1), Layer(scale=5.0), widths=(8, 16), seeds=(0, 1), sampling=SMALL)
    return replace(base, **changes)


def test_training_points_are_half_focused() -> None:
    cell = tiny(target=PorousMedium(2), widths=(100,)).cells[0]
    points = training_points(cell)
    assert points.shape == (1000, 3)
    box = ((points[500:, 1:] >= 0.2) & (points[500:, 1:] <= 0.8)).all()
    assert box
    assert not ((points[:500, 1:] >= 0.2) & (points[:500, 1:] <= 0.8)).all(axis=1).all()


@pytest.mark.parametrize("law", ["gaussian", "uniform", "heavy-tailed"])
@pytest.mark.parametrize("activation", ["fourier", "tanh", "sigmoid"])
def test_every_layer_fits_a_smooth_function(law: str, activation: str) -> None:
    layer = Layer(activation, law, scale=2.0, scaled=True)
    study = tiny(target=GaussianBump(1), features=layer, widths=(64,), seeds=(0,), penalty=1e-9)
    result = run_cell(study.cells[0])
    assert result.columns == layer.columns(64)
    assert result.error < 0.01


def test_errors_are_relative_and_of_each_field() -> None:
    exact = np.array([[3.0, 0.0], [0.0, 4.0]])
    total, each = errors_of(exact + np.array([[0.3, 0.0], [0.0, 0.0]]), exact)
    assert total == pytest.approx(0.3 / 5)
    assert each == pytest.approx([0.1, 0.0])


def test_automatic_penalties_are_recorded_and_do_not_harm() -> None:
    study = tiny(
        widths=(64,),
        seeds=(0,),
        curves=(
            FittedCurve("fixed", penalty=1.0),
            FittedCurve("gcv", penalty="gcv"),
            FittedCurve("h", penalty="held-out"),
        ),
    )
    fixed, gcv, held = (run_cell(cell) for cell in study.cells)
    assert gcv.error < fixed.error
    assert held.error < fixed.error
    assert 0 < gcv.penalty < 1
    assert held.validation_error is not None
    assert held.validation_error == pytest.approx(held.error, rel=0.7)


def test_a_target_that_vanishes_has_no_relative_error() -> None:
    with pytest.raises(InputError, match="no relative error"):
        run_cell(tiny(target=WrittenFunction("0*t"), seeds=(0,)).cells[0])


RESULT = FitResult(0.1, {"u": 0.1}, 0.09, 1e-5, float("inf"), "dense", 80, 17, 0.01, 0.02)


def test_a_result_is_read_as_it_was_written() -> None:
    assert result_from(result_text(RESULT)) == RESULT


@pytest.mark.parametrize(
    "change",
    [
        {"error": "0.1"},
        {"error": None},
        {"error": float("nan")},
        {"error": -0.1},
        {"field_errors": [0.1]},
        {"field_errors": {"u": "x"}},
        {"points": 80.5},
        {"solver": 3},
        {"kind": "Fit"},
        {"kind": []},
        {"surplus": 1},
    ],
)
def test_results_that_are_none_are_refused(change: dict) -> None:
    with pytest.raises(InputError):
        result_from(json.dumps(json.loads(result_text(RESULT)) | change))


@pytest.mark.parametrize("text", ["", "[]", "3", '{"kind": "FitResult"}', "[" * 100_000, "9" * 5000])
def test_texts_that_are_no_results_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        result_from(text)
