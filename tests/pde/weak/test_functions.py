"""Functions of cells: what is computed on lines is what is computed at points."""

from __future__ import annotations

import numpy as np

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
