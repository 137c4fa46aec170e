"""The command ``rannpde theory`` and the study of rates: they print, draw and refuse."""

import numpy as np
import pytest
from typer.testing import CliRunner

from rannpde.cli import build
from rannpde.domains import SpaceTime
from rannpde.network.laws import HeavyTailed
from rannpde.studies import theory_figures, theory_rates
from rannpde.theory import GaussianMixture, estimator
from rannpde.theory.table import constants_table, order_of_finite_bound


def run(*arguments):
    return CliRunner(env={"COLUMNS": "200"}).invoke(build(), ["theory", *arguments])


def test_table_is_printed():
    result = run("--activation", "cos", "-d", "2")
    assert result.exit_code == 0, result.output
    for name in ("C_π", "C_ψ1", "L_ψ", "K_ψσ", "E‖u - u_N‖²", "width for error 0.01"):
        assert name in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--activation", "relu", "-q", "1"], "not in T_1"),
        (["--time-decay", "0.5"], "time_decay"),
        (["--space-decay", "0.4"], "space_decay"),
        (["--delta", "1.5"], "delta"),
        (["--order", "3"], "finite variance"),
        (["--order", "4"], "odd for tanh"),
    ],
)
def test_bad_input_ends_with_its_message(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.output + result.stderr


def test_order_of_finite_bound_makes_the_bound_finite():
    law = HeavyTailed(0.75, 0.75)
    order = order_of_finite_bound("tanh", law, 2, 1, 1)
    choice = estimator(GaussianMixture.gaussian(2), law, time_order=1, space_order=1, order=order)
    rows = {row.name: row for row in constants_table(choice, SpaceTime(t=(0, 1), x=(-1, 1)))}
    bound = rows["N · E‖u - u_N‖²"]
    assert rows["N · E‖u - u_N‖², exact"].corrected < bound.corrected < np.inf
    assert rows["the same under the best law"].corrected < rows["N · E‖u - u_N‖², exact"].corrected
    assert rows["left / right side"].corrected < 1


def test_figures_are_drawn(monkeypatch):
    monkeypatch.setattr(theory_figures, "WIDTHS", (8, 16))
    monkeypatch.setattr(theory_figures, "DIMENSIONS", (1, 2))
    choice = estimator(GaussianMixture.gaussian(2), HeavyTailed(0.75, 0.75), activation="cos")
    drawings = theory_figures.theory_drawings(choice, SpaceTime(t=(0, 1), x=(-1, 1)))
    assert [drawing.name for drawing in drawings] == ["transform", "tightness", "laws", "growth"]
    for drawing in drawings:
        assert drawing.caption
        assert drawing.figure.axes


def test_study_puts_unbiased_beside_fitted_networks():
    chapter = theory_rates.chapter("quick")
    assert len(chapter.study.cells) == 4 * 6 * 3
    problem = theory_rates.SmoothBump(2)
    points = problem.uniform(10, np.random.default_rng(0))
    assert np.allclose(problem.values(points), np.exp(-0.5 * np.square(points).sum(axis=1)))
    for _, measured, exact in theory_rates._unbiased(theory_rates.SmoothBump(1), (8, 16, 32)):
        relative = measured.errors / np.sqrt(theory_rates._mean_square(theory_rates.SmoothBump(1)))
        assert np.abs(relative * np.sqrt(measured.widths) / exact - 1).max() < 0.2
