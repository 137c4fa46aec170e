"""The command ``rannpde theory`` and the study of rates: they print, draw and refuse."""

import numpy as np
import pytest
from typer.testing import CliRunner

from rannpde.cli import build
from rannpde.domains import SpaceTime
from rannpde.network.laws import HeavyTailed
from rannpde.studies.show import theory_figures
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


def test_a_folder_that_cannot_be_used_is_told(tmp_path):
    (tmp_path / "file").write_text("a file, not a folder")
    result = run("--activation", "cos", "--out", str(tmp_path / "file"))
    assert result.exit_code == 2
    assert "cannot be used" in result.output + result.stderr


@pytest.mark.slow
def test_order_of_finite_bound_makes_the_bound_finite():
    law = HeavyTailed(0.75, 0.75)
    order = order_of_finite_bound("tanh", law, 2, 1, 1)
    choice = estimator(GaussianMixture.gaussian(2), law, time_order=1, space_order=1, order=order)
    rows = {row.name: row for row in constants_table(choice, SpaceTime(t=(0, 1), x=(-1, 1)))}
    bound = rows["N · E‖u - u_N‖²"]
    assert rows["N · E‖u - u_N‖², exact"].corrected < bound.corrected < np.inf
    assert rows["the same under the best law"].corrected < rows["N · E‖u - u_N‖², exact"].corrected
    assert rows["left / right side"].corrected < 1


@pytest.mark.slow
def test_figures_are_drawn(monkeypatch):
    monkeypatch.setattr(theory_figures, "FITTED_WIDTHS", (8, 16))
    monkeypatch.setattr(theory_figures, "GROWTH_DIMENSIONS", (1, 2))
    choice = estimator(GaussianMixture.gaussian(2), HeavyTailed(0.75, 0.75), activation="cos")
    drawings = theory_figures.theory_drawings(choice, SpaceTime(t=(0, 1), x=(-1, 1)))
    assert [drawing.name for drawing in drawings] == ["transform", "tightness", "laws", "growth"]
    for drawing in drawings:
        assert drawing.caption
        assert drawing.figure.axes
