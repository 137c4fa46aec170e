"""Rules on cut cells: areas, moments and the divergence theorem, cell by cell, to rounding."""

from __future__ import annotations

import numpy as np
import pytest

from rannpde.domains import Ball, Box
from rannpde.domains.operations.cutcells import BoxClipper
from rannpde.domains.quadrature.integrals import integrate
from rannpde.domains.shapes.formed import Implicit
from rannpde.domains.shapes.polygon import Polygon
from rannpde.domains.shapes.quadrics import Ellipse
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.weak.legendre import gauss_cube

PLATE = Box(x=(0, 0.7), y=(0, 0.6))
SHAPES = {
    "hole": PLATE - Ball((0.31, 0.27), 0.12),
    "holes": PLATE - Ball((0.31, 0.27), 0.12) - Ellipse((0.55, 0.4), (0.1, 0.05), 0.3) - Ball((0.0, 0.6), 0.1),
    "disc": Ball((0.2, -0.1), 1.3),
    "polygon": Polygon([(0, 0), (1, 0.1), (1.3, 0.9), (0.4, 0.5), (-0.2, 1.1)]),
    "corner": Box(x=(-1, 1), y=(-1, 1)) - Box(x=(0, 1), y=(-1, 0)),
    "quartic": Implicit("x**4 + y**4 < 1", Box(x=(-1.5, 1.5), y=(-1.5, 1.5))),
}


def clipped(shape, seed=1, count=20):
    tree = CellNode(np.asarray(shape.bounds, dtype=float)).refined_leaves((0, 1)).refined_leaves((0, 1))
    tree = tree.jittered(0.3, np.random.default_rng(seed))
    boxes = np.array([leaf.bounds for leaf in tree.leaves])
    return boxes, BoxClipper(shape).clip(boxes, tree.locate, count)


def over_cells(boxes, found, function):
    """∫ function over each cell that is there."""
    grid, weights = gauss_cube(16, 2)
    values = np.zeros(len(boxes))
    for number in np.flatnonzero(found.whole):
        half = 0.5 * np.diff(boxes[number], axis=1)[:, 0]
        values[number] = half.prod() * weights @ function(boxes[number].mean(axis=1) + half * grid)
    for number, rule in found.rules.items():
        values[number] = rule.weights @ function(rule.points)
    return values


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_areas_and_moments_are_exact(name, seed):
    shape = SHAPES[name]
    boxes, found = clipped(shape, seed)
    slack = 1e-13
    assert over_cells(boxes, found, lambda p: np.ones(len(p))).sum() == pytest.approx(shape.measure, rel=slack)
    for power in ((1, 0), (2, 1), (0, 4)) if name != "quartic" else ():  # adaptive integration of that takes minutes
        moment = integrate(lambda p, power=power: (p**power).prod(axis=1), shape, tolerance=1e-13)
        mine = over_cells(boxes, found, lambda p, power=power: (p**power).prod(axis=1)).sum()
        size = over_cells(boxes, found, lambda p, power=power: np.abs(p**power).prod(axis=1)).sum()
        assert abs(mine - moment.value) <= 10 * slack * size
    assert all((rule.weights >= 0).all() for rule in found.rules.values())


@pytest.mark.parametrize("name", SHAPES)
def test_the_divergence_theorem_holds(name):
    shape = SHAPES[name]
    boxes, found = clipped(shape)
    inside = over_cells(boxes, found, lambda p: 2 * np.cos(2 * p[:, 0] + p[:, 1]) + 3 * p[:, 0] * p[:, 1] ** 2).sum()
    x, y = found.pieces.points[..., 0], found.pieces.points[..., 1]
    flux = np.sin(2 * x + y) * found.pieces.normals[..., 0] + x * y**3 * found.pieces.normals[..., 1]
    assert inside == pytest.approx((found.pieces.weights * flux).sum(), abs=1e-13 * found.pieces.weights.sum())


def test_boxes_along_flat_sides_are_whole():
    shape = SHAPES["corner"]
    tree = CellNode(np.asarray(shape.bounds, dtype=float)).refined_leaves((0, 1))
    boxes = np.array([leaf.bounds for leaf in tree.leaves])
    found = BoxClipper(shape).clip(boxes, tree.locate, 8)
    assert found.whole.sum() == 3
    assert not found.cut.any()
