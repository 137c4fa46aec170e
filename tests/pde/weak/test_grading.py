"""Meshes that are graded towards points anywhere: sizes against distances, and few cells for many corners."""

import numpy as np
import pytest

from draws import seeds
from rannpde.pde.weak.grading import SingularPoint, graded_tree, touches


@pytest.mark.parametrize("seed", seeds("graded trees", few=3, many=30))
def test_leaves_are_small_where_a_point_is_near(seed):
    rng = np.random.default_rng(seed)
    bounds = np.sort(rng.uniform(-3, 3, (2, 2)), axis=1) * 10.0 ** rng.uniform(-3, 3)
    places = rng.uniform(bounds[:, 0], bounds[:, 1], (int(rng.integers(1, 7)), 2))
    tol = 10.0 ** rng.uniform(-8, -2)
    points = [SingularPoint(tuple(place.tolist()), float(rng.uniform(0.5, 0.9))) for place in places]
    tree = graded_tree(bounds, [], points, tol, 2)
    slack = 1e-9 * tree.lengths
    for one in points:
        point = np.array(one.point)
        at = max(leaf.lengths.max() for leaf in tree.leaves if touches(leaf, point, slack))
        assert at <= 2.0 ** -one.levels(tol) * tree.lengths.max()
        for leaf in tree.leaves:
            away = np.maximum(np.maximum(leaf.bounds[:, 0] - point, point - leaf.bounds[:, 1]), 0.0)
            assert leaf.lengths.min() <= max(at, 2 * np.linalg.norm(away)) * (1 + 1e-9)
    rings = sum(one.levels(tol) for one in points)
    assert len(tree.leaves) <= 30 * (rings + len(points)) + 40 * np.exp2(np.ptp(np.log2(tree.lengths))) + 100
