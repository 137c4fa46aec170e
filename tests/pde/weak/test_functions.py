"""Functions of cells: what is computed on lines is what is computed at points."""

from __future__ import annotations

import numpy as np
import pytest

from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.settings import WeakSettings


def test_tables_on_lines_are_those_at_points():
    layer = HiddenLayer.sample(2, 5, WeakSettings(), np.random.default_rng(0))
    rng = np.random.default_rng(1)
    heights = rng.uniform(-1, 1, 7)
    points = np.stack([rng.uniform(-1, 1, 60), rng.choice(heights, 60)], axis=1)
    jet, slopes = layer.cut_tables(points)
    assert np.abs(jet - layer.tables(points)).max() < 1e-11
    assert np.abs(slopes - layer.legendre(points) @ layer.derivative_span).max() < 1e-11


@pytest.mark.parametrize(("reach", "decompositions"), [(1.0, 1), (0.02, 2)])
def test_functions_of_a_part_are_orthonormal_by_as_few_decompositions_as_they_need(monkeypatch, reach, decompositions):
    """Those of nearly a whole box are independent enough for one; in a thin part a second one follows."""
    layer = HiddenLayer.sample(2, 6, WeakSettings(), np.random.default_rng(0))
    grid, weights = layer.grid
    tables = layer.tables(grid * [0.9, reach])
    counted = []
    plain = np.linalg.cholesky
    monkeypatch.setattr(np.linalg, "cholesky", lambda matrix: counted.append(1) or plain(matrix))
    own = layer.orthonormal(tables, weights)
    assert len(counted) == decompositions
    jets = (tables * np.sqrt(weights / weights.sum())[:, None, None]).reshape(-1, tables.shape[2]) @ own
    assert np.abs(jets.T @ jets - np.eye(jets.shape[1])).max() < 1e-3


def test_the_trace_constant_of_a_cell_that_a_quadrature_misses_is_zero():
    layer = HiddenLayer.sample(3, 3, WeakSettings(), np.random.default_rng(0))
    inside, weights = np.ones((4, 2)), np.ones(4)
    assert layer.trace_constant(inside, weights, np.ones((3, 2)), np.ones(3)) > 0
    assert layer.trace_constant(inside, weights, np.empty((0, 2)), np.empty(0)) == 0
    assert layer.trace_constant(0 * inside, weights, np.ones((3, 2)), np.ones(3)) == 0


def test_the_trace_constant_knows_negative_weights():
    """A rule for a cube in two parts, of which one is subtracted, has the constant of the whole rule."""
    layer = HiddenLayer.sample(3, 3, WeakSettings(), np.random.default_rng(0))
    rng = np.random.default_rng(1)
    inside, border = rng.standard_normal((40, 5)), rng.standard_normal((20, 5))
    extra = rng.standard_normal((10, 5))
    plain = layer.trace_constant(inside, np.ones(40), border, np.ones(20))
    weights = np.concatenate([np.ones(50), -np.ones(10)])
    same = layer.trace_constant(np.concatenate([inside, extra, extra]), weights, border, np.ones(20))
    assert same == pytest.approx(plain)
